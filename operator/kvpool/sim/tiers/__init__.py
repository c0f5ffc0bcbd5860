"""Objects over fixed tiers: what moves between them, and where a request finds its prefix."""

"""The existing deployment that kvpool meets: a Mooncake master, engines and a gateway."""

"""Which instance takes a request, and which share of them an instance gets."""

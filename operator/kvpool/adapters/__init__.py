"""Outside systems, one module each: stores that use the memory, routers that carry the weights."""

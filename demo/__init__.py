"""The demonstration: an existing deployment of real parts, and kvpool put beside it."""

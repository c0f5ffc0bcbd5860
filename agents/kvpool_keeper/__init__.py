"""The keeper: holds one unit of memory and mounts it as a store segment."""

"""The node agent: binds, verifies and reports capacity; decides nothing."""

__version__ = "0.1.0"

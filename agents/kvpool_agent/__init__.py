"""The node agent: binds, verifies and reports capacity; decides nothing."""

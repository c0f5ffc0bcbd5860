"""Devices and hosts that fail, and the operator's own failover core on the virtual clock."""

"""Measures this machine: host memory, SSD, loopback network, and an accelerator where there is one."""

"""The demonstration without real nodes: Pods are processes on simulated hosts, as any user can have them."""

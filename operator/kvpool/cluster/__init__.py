"""The edge to the Kubernetes API: requests, writes, watches, the fact store, the Lease, events."""

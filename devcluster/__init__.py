"""A real Kubernetes control plane without a container engine: built once, started in seconds.

`python -m devcluster.build` compiles it, `python -m devcluster up` starts it for a person,
`devcluster.controlplane.ControlPlane` starts it for tests and the demo, and
`python -m devcluster.sandbox` runs a command in namespaces of its own.
"""

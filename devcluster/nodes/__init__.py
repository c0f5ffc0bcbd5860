"""A Kubernetes cluster of real kubelets on one machine, each node in namespaces of its own, inside a sandbox.

The sandbox's network is the switch: the bridge `br0`, where kubectl, helm, pytest and the demonstration
run. On it hang `cp` (the control plane, which is no Node) and `node1` to `node9` (containerd, kubelet,
kube-proxy). Nothing shows outside but cgroups, and those go with the cluster.
`devcluster.nodes.cluster.RealCluster` is the way in.
"""

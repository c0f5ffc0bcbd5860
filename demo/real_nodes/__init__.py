"""The demonstration on real nodes: kubelets in namespaces of their own, and Pods from images."""

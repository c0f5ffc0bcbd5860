"""Starts the cluster in the form that was chosen, and says where its kubeconfig is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from demo import places
from demo.cluster import Cluster
from demo.forms import Form
from demo.process_form import cluster as process_form
from demo.real_nodes import cluster as real_nodes


@contextmanager
def running_cluster(form: Form) -> Iterator[Cluster]:
    """Start everything; end everything when left.

    Raises NodesImpossibleError, NotBuiltError, ProcessError or ApiError.
    """
    start = real_nodes.running_cluster if form is Form.NODES else process_form.running_cluster
    with start() as cluster:
        places.KUBECONFIG.unlink(missing_ok=True)
        places.KUBECONFIG.symlink_to(cluster.plane.kubeconfig)
        yield cluster

"""What is known of the workloads that groups name, whatever the API server answers."""

from __future__ import annotations

from kvpool.api import PDGroup
from kvpool.cluster.resources import DEPLOYMENTS
from kvpool.cluster.rest import Rest, Verb
from kvpool.control.workloads import Workloads
from tests.harness.faultproxy import Answer, FaultProxy


def a_group(namespace: str) -> PDGroup:
    decode = {"workloadRef": {"kind": "Deployment", "name": "decode"}}
    return PDGroup.parse(
        {
            "metadata": {"name": "chat", "namespace": namespace, "uid": "u"},
            "spec": {"poolRef": {"name": "chat"}, "decode": decode},
        }
    )


async def a_deployment(rest: Rest, namespace: str) -> None:
    labels = {"app": "decode"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "engine", "image": "engine"}]}}
    body = {
        "metadata": {"name": "decode", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }
    await rest.request(Verb.CREATE, DEPLOYMENTS.at(namespace), body=body)


async def test_a_failed_look_keeps_what_is_known_and_a_missing_right_ends_it(
    rest: Rest, namespace: str, proxy: FaultProxy
) -> None:
    changes: list[None] = []
    workloads = Workloads(rest, lambda: changes.append(None))
    await a_deployment(rest, namespace)
    key = f"{namespace}/Deployment/decode"

    await workloads.look([a_group(namespace)])
    selector = workloads.selectors()[key]
    assert selector is not None
    assert selector.matches({"app": "decode"})

    proxy.inject(Answer(500), path="/scale")
    await workloads.look([a_group(namespace)])
    assert workloads.selectors()[key] == selector
    assert len(changes) == 1

    proxy.inject(Answer(403), path="/scale")
    await workloads.look([a_group(namespace)])
    assert workloads.selectors()[key] is None

    await workloads.look([])
    assert workloads.selectors() == {}
    assert len(changes) == 3

"""What goes into the Snapshot that plans are made of."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from kvpool.api.common import Mode
from kvpool.cluster.resources import PODS
from kvpool.cluster.store import EventType
from kvpool.control.facts import Facts
from kvpool.control.gather import Gatherer
from kvpool.control.marks import Marks
from kvpool.control.metrics import OperatorMetrics
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import DeviceView
from kvpool.model.snapshot import Leadership
from tests.builders.objects import an_agent

ENGINE = ObjectKey("inference", "engine-0")


def test_holders_that_kubelet_names_are_the_pods_that_the_api_server_told_of() -> None:
    facts = Facts(OperatorMetrics(CollectorRegistry()))
    pod: dict[str, Any] = {
        "metadata": {
            "name": ENGINE.name,
            "namespace": ENGINE.namespace,
            "uid": "uid-engine-0",
            "resourceVersion": "1",
            "creationTimestamp": (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "spec": {"nodeName": "node-1", "containers": []},
    }
    facts.store.observe(PODS, EventType.ADDED, pod)
    named = tuple(
        DeviceView(f"acc-{number}", "", str(pod), (), observed=True, holder_pods=(pod,))
        for number, pod in enumerate((ENGINE, ObjectKey("inference", "engine-1")))
    )
    agent = replace(an_agent("node-1", at=time.monotonic()), devices=named, holders_at=time.monotonic())
    nothing = cast("Any", SimpleNamespace(views=dict, acks=tuple, errors=tuple, selectors=dict))
    gatherer = Gatherer(
        facts,
        lambda: {"node-1": agent},
        nothing,
        nothing,
        Marks(),
        nothing,
        mode_cap=Mode.ENFORCE,
        leadership=lambda: Leadership(1, since=0.0, api_back_since=0.0),
    )
    (view,) = gatherer.snapshot().agents.values()
    assert [device.holder for device in view.devices] == ["uid-engine-0", "inference/engine-1"]

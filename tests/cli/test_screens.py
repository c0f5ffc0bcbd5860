"""Whole screens from hand-written objects at a fixed time: what people see, letter by letter."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from kvpool.api.common import Mode
from kvpool.cli.operator_state import OperatorState, Pause
from kvpool.cli.options import Format
from kvpool.cli.printing import render
from kvpool.cli.screen import Column, Screen, Table
from kvpool.cli.views.moments import Happening, timeline_screen
from kvpool.cli.views.overview import ROWS_MOST, overview
from kvpool.cluster.election import LeaseRecord
from kvpool.model.instant import Instant
from kvpool.world.build import Objects, read_objects

NOW = Instant(5000.0, datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC))
LEASE = LeaseRecord("operator-a", "2026-03-01T11:59:59.000000Z", 1, 6.0, 3)
OPERATOR = OperatorState("kvpool-system", lease=LEASE, mode_cap=Mode.ENFORCE)


def obj(
    kind: str, name: str, spec: dict[str, Any], status: dict[str, Any], **metadata: object
) -> dict[str, Any]:
    meta = {"name": name, **metadata}
    return {
        "apiVersion": "kvpool.dev/v1alpha1",
        "kind": kind,
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def said(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    at = "2026-03-01T11:57:00.000Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def node(name: str, *conditions: dict[str, str], **status: object) -> list[dict[str, Any]]:
    told = list(conditions) or [
        said("AgentConnected", "True", "Connected"),
        said("LeaseHeld", "True", "Granted"),
    ]
    kvnode = {"lastReport": "2026-03-01T11:59:56.000Z", "conditions": told, **status}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return [
        {"kind": "Node", "metadata": {"name": name, "uid": name}, "status": ready},
        obj("KVNode", name, {}, kvnode),
    ]


def small_cluster() -> Objects:
    """One pool in Enforce on two nodes, of which one lost its lease; a slot that moves."""
    dram = {
        "name": "DRAM",
        "declared": "128Gi",
        "admitted": "128Gi",
        "bound": "64Gi",
        "used": "37Gi",
        "foreign": "4Gi",
        "unknown": "64Gi",
        "observedAt": "2026-03-01T11:59:56.000Z",
    }
    pool = obj(
        "KVPool",
        "chat",
        {
            "mode": "Enforce",
            "tiers": [{"name": "DRAM", "size": "128Gi"}],
            "store": {"mooncake": {"master": {"address": "m"}}},
        },
        {
            "tiers": [dram],
            "foreign": [
                {
                    "node": "node-1",
                    "tier": "DRAM",
                    "size": "3Gi",
                    "segments": 2,
                    "observedAt": "2026-03-01T11:59:57.000Z",
                }
            ],
            "conditions": [
                said(
                    "StoreReachable", "True", "Answers", "the master answers; others brought 4Gi: node-1 4Gi"
                )
            ],
        },
        namespace="inference",
    )
    device = {"id": "0", "verdict": "Healthy"}
    lost = [said("AgentConnected", "False", "Disconnected"), said("LeaseHeld", "False", "Expired", "ran out")]
    seat = [{"index": 0, "node": "node-2", "devices": ["0"]}]
    slot = obj(
        "EngineSlot",
        "chat-decode-0",
        {"pdGroup": "chat", "role": "Decode", "instance": 0, "seats": seat, "epoch": 3145729},
        {"weightAsked": 0, "weightAcknowledged": 0, "conditions": [said("Serving", "False", "WeightZero")]},
        namespace="inference",
    )
    remap = obj(
        "Remap",
        "chat-decode-0-3145729-1",
        {
            "operatorEpoch": 3,
            "slot": "chat-decode-0",
            "from": seat,
            "to": [{"index": 0, "node": "node-1", "devices": ["0"]}],
            "fromEpoch": 3145729,
            "epoch": 3145730,
            "kind": "Restorative",
            "cause": "node-2: HostDead",
            "firstEvidenceAt": "2026-03-01T11:59:50.000Z",
        },
        {"phase": "Running"},
        namespace="inference",
    )
    supernode = obj(
        "Supernode",
        "sn-a",
        {"mode": "Recommend", "nodeSelector": {}, "maintenance": [{"node": "node-2", "devices": ["1"]}]},
        {
            "nodes": 2,
            "devices": {"active": 1, "spare": 1},
            "spares": {"ready": 1, "floor": 1},
            "conditions": [
                said("ActionWithheld", "True", "ModeRecommend", "Supernode sn-a is in mode Recommend")
            ],
        },
    )
    nodes = [*node("node-1", devices=[device]), *node("node-2", *lost, devices=[device])]
    return read_objects([pool, slot, remap, supernode, *nodes], NOW)


SMALL = """\
Operator: operator-a leads, operator epoch 3, Lease renewed 1s ago
Mode cap: Enforce; the cluster is not paused

POOLS
POOL            TIER  DECLARED  ADMITTED  BOUND  USED  FOREIGN  UNKNOWN  AGE
────────────────────────────────────────────────────────────────────────────
inference/chat  DRAM     128Gi     128Gi   64Gi  37Gi      4Gi     64Gi   4s

BUDGETS
no budgets

STORES
POOL            ANSWERS  SINCE  WHAT IT SAYS
──────────────────────────────────────────────────────────────────────────────────
inference/chat  True        3m  the master answers; others brought 4Gi: node-1 4Gi

MEMORY OF OTHERS
POOL            NODE    TIER  BYTES  SEGMENTS  AGE
──────────────────────────────────────────────────
inference/chat  node-1  DRAM    3Gi         2   3s
inference/chat  others  DRAM    1Gi         -   4s

NODES
NODE    READY  AGENT         LEASE    REPORT  UNITS  BOUND  USED  HEALTHY  CLAIMED  QUAR
────────────────────────────────────────────────────────────────────────────────────────
node-1  True   Connected     Granted      4s    0/0      0     0      1/1        0     0
node-2  True   Disconnected  Expired      4s    0/0      0     0      1/1        0     0

SUPERNODES
SUPERNODE  MODE       NODES  ACTIVE  SPARES  FLOOR  RESERVED  FAULTY  UNKNOWN  MAINTENANCE
──────────────────────────────────────────────────────────────────────────────────────────
sn-a       Recommend      2       1       1      1         0       0        0  node-2/1

GROUPS
no groups

SLOTS
SLOT                     PLACE       EPOCH  WEIGHT  SERVING  REASON
───────────────────────────────────────────────────────────────────────
inference/chat-decode-0  node-2/0  3145729     0/0  False    WeightZero

OPEN MOVES
OPEN MOVE                          KIND         FROM      TO        PHASE    AGE  CAUSE
──────────────────────────────────────────────────────────────────────────────────────────────────
inference/chat-decode-0-3145729-1  Restorative  node-2/0  node-1/0  Running  10s  node-2: HostDead

HELD BACK
OBJECT          MODE       REASON         WITHHELD
─────────────────────────────────────────────────────────────────────────────
Supernode sn-a  Recommend  ModeRecommend  Supernode sn-a is in mode Recommend

FINDINGS
! KVNode node-2: AgentConnected is False (Disconnected)
! KVNode node-2: LeaseHeld is False (Expired): ran out
! EngineSlot inference/chat-decode-0: Serving is False (WeightZero)
"""


def test_the_overview_of_a_small_cluster() -> None:
    screen = overview(small_cluster(), OPERATOR, None, NOW, wide=False)
    assert render(screen, Format.TABLE) + "\n" == SMALL


def test_programs_get_the_same_figures_as_json_and_as_yaml() -> None:
    screen = overview(small_cluster(), OPERATOR, None, NOW, wide=False)
    document = json.loads(render(screen, Format.JSON))
    assert document == yaml.safe_load(render(screen, Format.YAML))
    (pool,) = document["pools"]
    assert (pool["boundBytes"], pool["unknownBytes"], pool["ageSeconds"]) == (64 << 30, 64 << 30, 4.0)
    assert document["supernodes"][0]["maintenance"] == ["node-2/1"]
    assert document["openMoves"][0]["target"] == ["node-1/0"]
    assert len(document["findings"]) == 3


def many_nodes(count: int) -> Objects:
    lost = [said("AgentConnected", "False", "Disconnected"), said("LeaseHeld", "True", "Granted")]
    found = [raw for number in range(count - 1) for raw in node(f"node-{number:02}")]
    return read_objects([*found, *node("node-zz", *lost)], NOW)


def test_of_many_nodes_only_those_that_are_not_well_fill_the_screen() -> None:
    objects = many_nodes(ROWS_MOST + 1)
    text = render(overview(objects, OPERATOR, None, NOW, wide=False), Format.TABLE)
    assert "node-zz" in text
    assert "node-00" not in text
    assert f"{ROWS_MOST} nodes that are well are not shown (-o wide shows all)" in text
    assert "node-00" in render(overview(objects, OPERATOR, None, NOW, wide=True), Format.WIDE)
    assert "node-00" in render(overview(many_nodes(ROWS_MOST), OPERATOR, None, NOW, wide=False), Format.TABLE)


@pytest.mark.parametrize(
    ("pause", "text"),
    [
        (Pause(paused=False, by="kim"), "the cluster is not paused"),
        (Pause(paused=True), "the cluster is PAUSED"),
        (
            Pause(paused=True, by="kim", at="2026-03-01T11:00:00Z", reason="drill"),
            "the cluster is PAUSED by kim 60m ago: drill",
        ),
    ],
)
def test_a_pause_is_told_with_all_that_is_known_of_it(pause: Pause, text: str) -> None:
    operator = OperatorState("kvpool-system", pause=pause, lease=LEASE)
    printed = render(overview(Objects(), operator, None, NOW, wide=False), Format.TABLE)
    assert f"Mode cap: unknown; {text}\n" in printed


def test_a_leader_that_stopped_renewing_is_a_finding() -> None:
    stale = LeaseRecord("operator-a", "2026-03-01T11:50:00.000000Z", 1, 6.0, 3)
    operator = OperatorState("kvpool-system", lease=stale)
    found = overview(Objects(), operator, None, NOW, wide=False).findings
    assert found == ["the operator operator-a renewed its Lease 600 s ago: nothing below is kept up to date"]


def test_an_object_that_cannot_be_read_is_a_finding() -> None:
    objects = read_objects([{"kind": "KVPool", "metadata": {"name": "odd"}, "spec": {"tiers": 7}}], NOW)
    (found,) = overview(objects, OPERATOR, None, NOW, wide=False).findings
    assert found.startswith("KVPool odd cannot be read and is left out")


@pytest.mark.parametrize("wide", [False, True])
def test_long_cells_are_folded_and_nothing_is_lost(wide: bool) -> None:
    name = "x" * 130
    screen = Screen([Table("", (Column("A"), Column("B", wide=True)), [(name, "y")])], {})
    text = render(screen, Format.WIDE if wide else Format.TABLE)
    assert text.count("x") == 130
    assert max(len(line) for line in text.splitlines()) <= (240 if wide else 100)
    assert ("y" in text) is wide


@pytest.mark.parametrize(
    ("first", "shown"),
    [("2026-03-01T09:00:00.000Z", "09:00:00.000"), ("2026-02-28T09:00:00.000Z", "02-28 09:00:00")],
)
def test_a_timeline_over_several_days_names_the_day(first: str, shown: str) -> None:
    found = [Happening(at, "Event", "KVPool a/b", "x") for at in (first, "2026-03-01T10:00:00.000Z")]
    assert render(timeline_screen(found, "2d"), Format.TABLE).splitlines()[2].startswith(shown)


def test_an_agent_whose_loop_died_is_not_shown_as_merely_connected() -> None:
    stale = [
        said("AgentConnected", "True", "Connected"),
        said("AgentHealthy", "False", "LoopStale", "no success of loop bind for over 2 min"),
        said("LeaseHeld", "True", "Granted"),
    ]
    text = render(
        overview(read_objects(node("node-1", *stale), NOW), OPERATOR, None, NOW, wide=False), Format.TABLE
    )
    assert "node-1  True   LoopStale  Granted" in text
    assert (
        "! KVNode node-1: AgentHealthy is False (LoopStale): no success of loop bind for over 2 min" in text
    )


def test_memory_of_others_is_cut_to_one_screen_and_what_is_on_no_node_is_elsewhere() -> None:
    entries = [
        {
            "node": f"node-{number:02}" if number else "",
            "tier": "DRAM",
            "size": "1Gi",
            "segments": 1,
            "observedAt": "2026-03-01T11:59:57.000Z",
        }
        for number in range(ROWS_MOST + 2)
    ]
    status = {"foreign": entries, "tiers": [{"name": "DRAM", "foreign": f"{ROWS_MOST + 2}Gi"}]}
    pool = obj("KVPool", "chat", {"store": {"none": {}}}, status, namespace="inference")
    objects = read_objects([pool], NOW)
    text = render(overview(objects, OPERATOR, None, NOW, wide=False), Format.TABLE)
    shown = [line.split()[1] for line in text.splitlines() if line.startswith("inference/chat  ")][1:]
    assert shown == ["elsewhere", *(f"node-{number:02}" for number in range(1, ROWS_MOST))]
    assert "2 more are not shown (-o wide shows all)" in text
    wide = render(overview(objects, OPERATOR, None, NOW, wide=True), Format.TABLE)
    assert f"node-{ROWS_MOST + 1}" in wide
    assert "are not shown" not in wide

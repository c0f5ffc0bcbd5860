"""`kubectl kvpool timeline`: one list from objects and events, in order."""

from __future__ import annotations

import secrets

from devcluster.controlplane import ControlPlane
from tests.cli.conftest import Plugin, ago, condition, own, put

FROM = [{"index": 0, "node": "node-1", "devices": ["0"]}]
TO = [{"index": 0, "node": "node-2", "devices": ["1"]}]


def finished_move(namespace: str, seconds: float = 100) -> dict[str, object]:
    """A move that began `seconds` ago and was serving three seconds later."""
    return own(
        "Remap",
        "chat-decode-0-3145729-1",
        {
            "operatorEpoch": 3,
            "slot": "chat-decode-0",
            "from": FROM,
            "to": TO,
            "fromEpoch": 3145729,
            "epoch": 3145730,
            "kind": "Restorative",
            "cause": "node-1/0: nvml reported 48 (Fatal)",
            "incident": "77aa00bb11cc22dd-695742b0",
            "firstEvidenceAt": ago(seconds),
        },
        namespace,
        status={
            "phase": "Succeeded",
            "stages": [
                {"name": "fence", "endedAt": ago(seconds - 1), "seconds": "1.00s", "detail": "ReleaseAck"},
                {"name": "serving", "endedAt": ago(seconds - 3), "seconds": "3.00s"},
            ],
            "finishedAt": ago(seconds - 3),
        },
    )


def test_evidence_stages_and_weights_stand_in_the_order_of_their_times(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    put(kvpool_plane, finished_move(namespace))
    outputs = [{"name": "edge", "revision": 7, "acknowledged": "Observed", "at": ago(98)}]
    group = own(
        "PDGroup",
        "chat",
        {"poolRef": {"name": "chat"}, "decode": {"podSelector": {"matchLabels": {"app": "decode"}}}},
        namespace,
        status={"routing": {"revision": 7, "outputs": outputs}},
    )
    put(kvpool_plane, group)
    told = plugin("timeline", "-n", namespace, "-o", "json").document["happenings"]
    mine = [entry for entry in told if namespace in entry["about"]]
    assert [(entry["what"], entry["text"]) for entry in mine][:4] == [
        ("Evidence", "node-1/0: nvml reported 48 (Fatal)"),
        ("Stage", "fence over after 1.00s: ReleaseAck"),
        ("Weights", "output edge carries revision 7 (Observed)"),
        ("Move", "over: Succeeded"),
    ]
    assert [entry["at"] for entry in told] == sorted(entry["at"] for entry in told)
    (opened,) = [entry["text"] for entry in mine if "opened" in entry["text"]]
    assert opened.endswith("epoch 3145730, incident 77aa00bb11cc22dd-695742b0")


def test_what_is_older_than_since_is_left_out(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    put(kvpool_plane, finished_move(namespace, seconds=600))
    ran = plugin("timeline", "-n", namespace, "--since", "2m")
    assert "nvml reported 48" not in ran.out
    assert "nvml reported 48" in plugin("timeline", "-n", namespace, "--since", "20m").out


def test_device_evidence_losses_and_lease_changes_are_told(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    name = f"node-{secrets.token_hex(3)}"
    device = {
        "id": "0",
        "verdict": "Faulty",
        "evidence": [
            {
                "source": "nvml",
                "code": "48",
                "class": "Fatal",
                "count": 3,
                "firstSeen": ago(50),
                "lastSeen": ago(40),
            }
        ],
    }
    lease = condition("LeaseHeld", "False", "Expired", "its lease ran out", seconds=30)
    put(kvpool_plane, own("KVNode", name, {}, status={"devices": [device], "conditions": [lease]}))
    told = plugin("timeline", "-o", "json").document["happenings"]
    assert [entry["text"] for entry in told if entry["about"] == f"KVNode {name}"] == [
        "0: nvml 48 (Fatal) first seen",
        "0: nvml 48 (Fatal) seen 3 times, now last",
        "LeaseHeld is False (Expired) its lease ran out",
    ]


def test_nothing_is_said_to_have_happened_when_nothing_did(namespace: str, plugin: Plugin) -> None:
    ran = plugin("timeline", "-n", namespace, "--since", "1ms")
    assert (ran.code, ran.out) == (0, "nothing happened within 1ms\n")
    ran = plugin("timeline", "--since", "yesterday")
    assert ran.code == 2
    assert ran.err.startswith("error: --since: 'yesterday' is not a duration")

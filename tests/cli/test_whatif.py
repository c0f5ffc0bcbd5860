"""`kubectl kvpool whatif`: what would follow from a loss or from more memory, and that nothing is written."""

from __future__ import annotations

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from tests.cli.conftest import Plugin, own, put
from tests.cli.world import GIB, World, claim, new_mark

MIB = 1 << 20


@pytest.fixture
def world(kvpool_plane: ControlPlane, namespace: str) -> World:
    """Four nodes with an accelerator each; a slot on the first, warm standby engines on the others."""
    made = World(kvpool_plane, namespace, new_mark())
    made.put_node(1, claims=[claim(namespace)])
    for number in (2, 3, 4):
        made.put_node(number, devices=[{"id": "0", "verdict": "Healthy", "holder": standby(made, number)}])
    made.put_supernode()
    made.put_budget(per_node="64Gi")
    put(kvpool_plane, made.pool("200Gi"))
    decode = {
        "podSelector": {"matchLabels": {"app": "decode"}},
        "instances": 1,
        "attach": "Standby",
        "standby": {"podSelector": {"matchLabels": {"app": "standby"}}},
    }
    spec = {
        "mode": "Enforce",
        "poolRef": {"name": "chat"},
        "supernodeRef": {"name": made.supernode},
        "decode": decode,
    }
    put(kvpool_plane, own("PDGroup", "chat", spec, namespace))
    made.put_slot(1)
    return made


def standby(world: World, number: int) -> str:
    """A ready engine Pod that waits on a node; returns its UID."""
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"standby-{number}", "namespace": world.namespace, "labels": {"app": "standby"}},
        "spec": {
            "nodeName": world.node(number),
            "automountServiceAccountToken": False,
            "containers": [{"name": "engine", "image": "engine"}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return str(put(world.plane, pod)["metadata"]["uid"])


def row_of(document: JsonObject, name: str, key: str, value: str) -> JsonObject:
    """The one row of a list whose `key` is `value`: other tests' objects are in the same cluster."""
    rows: list[JsonObject] = [row for row in document[name] if row[key] == value]
    assert len(rows) == 1, document[name]
    return rows[0]


def test_a_lost_node_s_slot_moves_and_the_pool_no_longer_fits(world: World, plugin: Plugin) -> None:
    ran = plugin("whatif", "--lose", f"node/{world.node(1)}", "-o", "json")
    assert ran.code == 1, "a pool that no longer fits is a finding"
    memory = row_of(ran.document, "memory", "pool", f"{world.namespace}/chat")
    assert (memory["mostBefore"], memory["mostAfter"]) == (4 * 64 * GIB, 3 * 64 * GIB)
    assert memory["fits"] is False
    slot = f"EngineSlot {world.namespace}/chat-decode-0"
    (move,) = [deed for deed in ran.document["moves"] if deed["about"] == slot and "open the" in deed["text"]]
    assert f"from {world.node(1)}" in move["text"]
    spares = row_of(ran.document, "spares", "supernode", world.supernode)
    assert (spares["before"], spares["after"]) == (3, 2)
    assert world.plane.admin.list("kvpool.dev/v1alpha1", "Remap", world.namespace) == []


def test_a_lost_accelerator_moves_its_slot_and_costs_no_memory(world: World, plugin: Plugin) -> None:
    ran = plugin("whatif", "--lose", f"device/{world.node(1)}/0", "-o", "json")
    memory = row_of(ran.document, "memory", "pool", f"{world.namespace}/chat")
    assert memory["mostAfter"] == memory["mostBefore"]
    slot = f"EngineSlot {world.namespace}/chat-decode-0"
    assert any(deed["about"] == slot and "Restorative" in deed["text"] for deed in ran.document["moves"])


def test_a_slot_without_a_spare_is_named_as_stuck(world: World, plugin: Plugin) -> None:
    lost = [flag for number in (2, 3, 4) for flag in ("--lose", f"device/{world.node(number)}/0")]
    ran = plugin("whatif", "--lose", f"device/{world.node(1)}/0", *lost, "-o", "json")
    assert ran.code == 1
    stuck = row_of(ran.document, "stuck", "object", f"EngineSlot {world.namespace}/chat-decode-0")
    assert stuck["why"]
    assert row_of(ran.document, "spares", "supernode", world.supernode)["after"] == 0


def test_more_memory_lets_a_pool_in_that_did_not_fit(world: World, plugin: Plugin) -> None:
    put(world.plane, world.pool("320Gi"))
    ran = plugin("whatif", "--add", "tier=DRAM:128Gi", "-o", "json")
    memory = row_of(ran.document, "memory", "pool", f"{world.namespace}/chat")
    nodes = int(ran.document["if"][0].split("of ")[-1].split()[0])
    assert nodes >= 4
    assert memory["mostBefore"] == 256 * GIB
    share = 128 * GIB // nodes // MIB * MIB  # units are whole mebibytes, and other tests' nodes share as well
    assert memory["mostAfter"] == 256 * GIB + 4 * share


def test_a_rate_of_failure_says_how_often_the_spares_are_enough(world: World, plugin: Plugin) -> None:
    document = plugin("whatif", "--fail-rate", "10%", "-o", "json").document
    spares = row_of(document, "spares", "supernode", world.supernode)
    assert (spares["cards"], spares["before"], spares["after"]) == (1, 3, 3)
    assert spares["whole"] == pytest.approx(1 - 0.1**4), "down only when all four are"
    assert spares["wanted"] == 2
    lost = plugin(
        "whatif", "--fail-rate", "10%", "--lose", f"node/{world.node(2)}", "--lose", f"node/{world.node(3)}"
    )
    assert lost.code == 1
    assert "99.9% needs 2" in " ".join(lost.out.split())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), ("--lose node/NAME", "--add tier=CXL:8Ti")),
        (("--lose", "node-1"), ("node-1", "node/NAME", "device/NODE/ID")),
        (("--lose", "node/nowhere"), ("knows no node 'nowhere'",)),
        (("--add", "tier=HBM:8Ti"), ("DRAM, CXL, SSD",)),
        (("--add", "tier=CXL:lots"), ("--add tier=CXL: 'lots' is no size: write 256Gi",)),
        (("--add", "tier=CXL:8Ei"), ("must be 1Mi or more and below 8Ei, not 8Ei",)),
        (("--add", f"tier=CXL:{'9' * 5000}"), (f"'{'9' * 32}...' is no size",)),
        (("--add", "tier=CXL:0"), ("1Mi or more and below 8Ei, not 0",)),
        (("--add", "tier=CXL:1023Ki"), ("1Mi or more and below 8Ei, not 1023Ki",)),
        (("--add", "tier=CXL:-1Ti"), ("'-1Ti' is no size",)),
        (("--add", "tier=CXL:+1Ti"), ("'+1Ti' is no size",)),
        (("--add", "tier=CXL:\u0663Ti"), ("'\u0663Ti' is no size",)),
        (("--add", "tier=CXL:0.0000001Ti"), ("'0.0000001Ti' is not a whole number of bytes",)),
        (("--add", "tier=SSD:8Ti"), ("no TierBudget gives SSD",)),
        (("--fail-rate", "0.1"), ("0.1%",)),
        *(
            (("--fail-rate", rate), (f"--fail-rate '{rate}': write a percentage above 0% and below 100%",))
            for rate in (
                "200%",
                "100%",
                "0%",
                "0.000%",
                "-1%",
                "nan%",
                "1e-99999999%",
                "1/3%",
                "\uff11%",
                "1_0%",
            )
        ),
    ],
)
def test_a_question_that_cannot_be_asked_says_how_to_ask(
    world: World, plugin: Plugin, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ran = plugin("whatif", *flags)
    assert ran.code == 2
    for word in words:
        assert word in " ".join(ran.err.split())


def test_a_size_that_no_node_could_have_is_refused_with_what_would_do(world: World, plugin: Plugin) -> None:
    ran = plugin("whatif", "--add", "tier=DRAM:3Mi")
    assert ran.code == 2
    nodes = int(ran.err.split("shared by ")[1].split()[0])
    assert nodes >= 4
    assert f"less than 1Mi on each: add {nodes}Mi or more" in " ".join(ran.err.split())
    flags = [flag for _ in range(2 * nodes) for flag in ("--add", "tier=DRAM:7Ei")]
    ran = plugin("whatif", *flags)
    assert ran.code == 2
    assert "perNode of TierBudget" in ran.err
    assert "has to be below 8Ei: add less" in ran.err


def test_more_of_one_tier_twice_is_the_sum_of_both(world: World, plugin: Plugin) -> None:
    once = plugin("whatif", "--add", "tier=DRAM:3Ti", "-o", "json")
    twice = plugin("whatif", "--add", "tier=DRAM:1Ti", "--add", "tier=DRAM:2Ti", "-o", "json")
    assert once.document["if"][0].startswith("3Ti more of DRAM: ")
    rows = [row_of(ran.document, "memory", "pool", f"{world.namespace}/chat") for ran in (once, twice)]
    assert rows[0] == rows[1]
    assert len(twice.document["if"]) == 1


def test_a_lost_node_that_holds_nothing_costs_no_more_than_its_room(world: World, plugin: Plugin) -> None:
    ran = plugin("whatif", "--lose", f"node/{world.node(4)}", "--lose", f"node/{world.node(4)}", "-o", "json")
    slot = f"EngineSlot {world.namespace}/chat-decode-0"
    assert not [deed for deed in ran.document["moves"] if deed["about"] == slot]
    memory = row_of(ran.document, "memory", "pool", f"{world.namespace}/chat")
    assert (memory["mostBefore"], memory["mostAfter"], memory["lost"]) == (4 * 64 * GIB, 3 * 64 * GIB, 0)
    assert ran.document["if"] == [f"node {world.node(4)} goes dark for good"]


def test_all_can_be_supposed_at_once(world: World, plugin: Plugin) -> None:
    flags = ("--lose", f"node/{world.node(2)}", "--add", "tier=DRAM:8Ti", "--fail-rate", "99.999999999%")
    said = plugin("whatif", *flags, "-o", "json").document["if"]
    assert said[0] == f"node {world.node(2)} goes dark for good"
    assert said[1].startswith("8Ti more of DRAM: ")
    assert said[2] == "each accelerator is down 99.999999999% of the time"


def test_the_table_says_what_is_supposed_and_what_follows(world: World, plugin: Plugin) -> None:
    ran = plugin("whatif", "--lose", f"node/{world.node(1)}")
    text = " ".join(ran.out.split())
    assert ran.code == 1
    for word in (f"node {world.node(1)} goes dark for good", "256Gi", "192Gi", "MOVES AT ONCE", "SPARES"):
        assert word in text

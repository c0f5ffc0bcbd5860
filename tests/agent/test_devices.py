"""Accelerators that a person breaks by editing a file."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kvpool.api.supernode import EvidenceClass
from kvpool_agent.devices.base import Device
from kvpool_agent.devices.simulated import SimulatedDevices
from tests.agent.conftest import MakeNode
from tests.agent.scripted_operator import ScriptedOperator, write
from tests.harness.waiting import wait_until

NOW = 1_800_000_000.0
FAULT = {"source": "driver", "code": "79", "class": "Fatal"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "devices.json"


def poll(file: Path, *devices: dict[str, object]) -> tuple[Device, ...]:
    write(file, json.dumps({"devices": devices}))
    found = SimulatedDevices(file).poll(NOW)
    assert found is not None
    return found


def test_devices_and_their_holders_are_read(file: Path) -> None:
    (device,) = poll(file, {"id": "gpu0", "uuid": "GPU-0", "holderPodUid": "pod-a"})
    assert device == Device("gpu0", "GPU-0", "pod-a")


def test_a_fault_counts_from_when_it_was_first_seen(file: Path) -> None:
    (device,) = poll(file, {"id": "gpu0", "uuid": "GPU-0", "faults": [FAULT]})
    (fault,) = device.faults
    assert fault.evidence_class is EvidenceClass.FATAL
    assert fault.seen_at_seconds == (NOW,)


def test_the_same_code_listed_twice_is_two_sightings(file: Path) -> None:
    at = ["2027-01-15T08:00:00Z", "2027-01-15T07:59:00Z"]
    (device,) = poll(file, {"id": "gpu0", "uuid": "", "faults": [{**FAULT, "at": when} for when in at]})
    assert device.faults[0].seen_at_seconds == (NOW - 60, NOW)


def test_an_unchanged_file_is_no_news(file: Path) -> None:
    write(file, json.dumps({"devices": [{"id": "gpu0"}]}))
    provider = SimulatedDevices(file)
    assert provider.poll(NOW) is not None
    assert provider.poll(NOW) is None


def one_fault(**changes: str) -> str:
    return json.dumps({"devices": [{"id": "gpu0", "faults": [{**FAULT, **changes}]}]})


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ('{"devices": [', "JSON"),
        ("", "JSON"),
        ("[]", "object"),
        (one_fault(**{"class": "Deadly"}), "class"),
        (one_fault(at="noon"), "at"),
        (one_fault(at="2027-01-15T08:00:00"), "at"),
        ('{"devices": [{"id": "gpu0", "fault": []}]}', "fault"),
        ('{"devices": [{"id": "gpu0"}, {"id": "gpu0"}]}', "2 times"),
    ],
)
def test_a_malformed_file_makes_devices_unknown_never_faulty(file: Path, text: str, trouble: str) -> None:
    write(file, json.dumps({"devices": [{"id": "gpu0", "uuid": "GPU-0", "faults": [FAULT]}]}))
    provider = SimulatedDevices(file)
    provider.poll(NOW)
    write(file, text)
    assert provider.poll(NOW) == (Device("gpu0", "GPU-0", observed=False),)
    assert trouble in provider.trouble
    assert provider.poll(NOW) is None


def test_a_file_that_is_gone_makes_devices_unknown_until_it_is_back(file: Path) -> None:
    content = json.dumps({"devices": [{"id": "gpu0", "uuid": "GPU-0"}]})
    write(file, content)
    provider = SimulatedDevices(file)
    provider.poll(NOW)
    file.rename(file.with_name("elsewhere"))
    assert provider.poll(NOW) == (Device("gpu0", "GPU-0", observed=False),)
    file.with_name("elsewhere").rename(file)
    assert provider.poll(NOW) == (Device("gpu0", "GPU-0"),)


def test_a_broken_device_reaches_the_operator_at_once(
    make_node: MakeNode, operator: ScriptedOperator
) -> None:
    node = make_node(devices=[{"id": "gpu0", "uuid": "GPU-0"}, {"id": "gpu1", "uuid": "GPU-1"}])
    node.start_agent()
    operator.wait_for_report("two devices", lambda r: len(r.devices) == 2)
    began = time.monotonic()
    node.break_device("gpu1")
    wait_until(lambda: operator.heard.evidence, 5, "evidence", poll_seconds=0.01)
    assert time.monotonic() - began < 0.5
    (evidence,) = operator.heard.evidence
    assert (evidence.device, evidence.uuid, evidence.code) == ("gpu1", "GPU-1", "79")
    assert evidence.evidence_class == "Fatal"
    report = operator.wait_for_report("the same in a report", lambda r: any(d.evidence for d in r.devices))
    assert [(d.id, len(d.evidence), d.observed) for d in report.devices] == [
        ("gpu0", 0, True),
        ("gpu1", 1, True),
    ]


def test_a_malformed_file_is_reported_as_not_observed(
    make_node: MakeNode, operator: ScriptedOperator
) -> None:
    node = make_node(devices=[{"id": "gpu0", "uuid": "GPU-0"}])
    node.start_agent()
    operator.wait_for_report("the device", lambda r: [d.observed for d in r.devices] == [True])
    write(node.devices_file, "{")
    report = operator.wait_for_report("unknown", lambda r: [d.observed for d in r.devices] == [False])
    assert not report.devices[0].evidence
    assert operator.heard.evidence == []

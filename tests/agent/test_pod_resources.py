"""Who holds the accelerators, as kubelet says over its socket."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import pytest

from kvpool_agent.devices.pod_resources import HeldDevices, PodResources
from kvpool_agent.devices.simulated import SimulatedDevices
from kvpool_agent.settings import parse_arguments
from tests.agent.conftest import MakeNode
from tests.agent.fake_kubelet import AGENT_POD, RESOURCE, FakeKubelet, a_pod
from tests.agent.scripted_operator import ScriptedOperator, write
from tests.harness.waiting import wait_until_async

NOW = 1_800_000_000.0


@pytest.fixture
def kubelet() -> Iterator[FakeKubelet]:
    # Unix sockets have short names; the test's own folder may be a long one.
    with tempfile.TemporaryDirectory(prefix="kvpool-") as folder:
        fake = FakeKubelet(Path(folder) / "kubelet.sock").start()
        yield fake
        fake.stop()


@pytest.fixture
async def asked(kubelet: FakeKubelet) -> AsyncIterator[PodResources]:
    """What asks the kubelet; nothing was asked yet."""
    pod_resources = PodResources(kubelet.socket, frozenset({RESOURCE}), AGENT_POD)
    yield pod_resources
    await pod_resources.close()


@pytest.fixture
def provider(asked: PodResources, tmp_path: Path) -> HeldDevices:
    """Two devices, of which the file names no holder, with kubelet's holders."""
    file = write(tmp_path / "devices.json", json.dumps({"devices": [{"id": "gpu0"}, {"id": "gpu1"}]}))
    return HeldDevices(SimulatedDevices(file), asked)


def holders(provider: HeldDevices) -> list[str]:
    devices = provider.poll(NOW)
    assert devices is not None, "nothing changed"
    return [device.holder for device in devices]


async def test_kubelet_names_the_pods_that_hold_devices(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices
) -> None:
    kubelet.hold(gpu0="inference/engine-0")
    before = time.time()
    await asked.look()
    assert asked.trouble == ""
    assert asked.said_at_seconds is not None
    assert before <= asked.said_at_seconds <= time.time()
    assert holders(provider) == ["inference/engine-0", ""]
    await asked.look()
    assert provider.poll(NOW) is None, "the same again is no news"
    kubelet.hold(gpu1="inference/engine-0")
    await asked.look()
    assert holders(provider) == ["", "inference/engine-0"]


async def test_devices_of_other_resources_are_not_looked_at(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices
) -> None:
    kubelet.pods.append(a_pod("other/pod", ["gpu0"], "example.com/fpga"))
    await asked.look()
    assert holders(provider) == ["", ""]


async def test_a_device_of_which_two_pods_are_listed_is_reported_with_both(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices
) -> None:
    kubelet.pods += [a_pod("inference/new", ["gpu0"]), a_pod("inference/ended", ["gpu0"])]
    await asked.look()
    devices = provider.poll(NOW)
    assert devices is not None
    assert devices[0].holder_pods == ("inference/ended", "inference/new")
    assert devices[0].holder == "unknown"


async def test_before_kubelet_was_asked_nobody_knows_who_holds_devices(provider: HeldDevices) -> None:
    assert holders(provider) == ["unknown", "unknown"]


async def test_a_silent_kubelet_frees_no_device_and_takes_none_from_its_holder(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices
) -> None:
    kubelet.hold(gpu0="inference/engine-0")
    await asked.look()
    said_at = asked.said_at_seconds
    assert holders(provider) == ["inference/engine-0", ""]
    kubelet.refuses = grpc.StatusCode.RESOURCE_EXHAUSTED
    await asked.look()
    assert holders(provider) == ["inference/engine-0", "unknown"]
    assert "RESOURCE_EXHAUSTED as the test wants" in asked.trouble
    assert str(kubelet.socket) in asked.trouble
    assert asked.said_at_seconds == said_at


async def test_a_kubelet_that_does_not_list_the_agents_own_pod_is_not_believed(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices
) -> None:
    kubelet.hold(gpu0="inference/engine-0")
    await asked.look()
    holders(provider)
    kubelet.pods = []  # as right after its start
    await asked.look()
    assert holders(provider) == ["inference/engine-0", "unknown"]
    assert f"lists 0 pods, but not {AGENT_POD}" in asked.trouble


@pytest.mark.parametrize("name", ["/engine", "inference/", f"{'n' * 63}/{'p' * 444}", "inference/a\nb"])
async def test_a_pod_without_a_proper_name_makes_the_whole_answer_doubtful(
    kubelet: FakeKubelet, asked: PodResources, provider: HeldDevices, name: str
) -> None:
    kubelet.pods.append(a_pod(name, ["gpu0"]))
    await asked.look()
    assert "is not the name of a pod" in asked.trouble
    assert holders(provider) == ["unknown", "unknown"]


async def test_a_kubelet_that_restarts_is_heard_again(kubelet: FakeKubelet, asked: PodResources) -> None:
    async def heard() -> bool:
        await asked.look()
        return asked.trouble == ""

    await asked.look()
    assert asked.trouble == ""
    kubelet.stop()
    await asked.look()
    assert "UNAVAILABLE" in asked.trouble
    kubelet.start()
    await wait_until_async(heard, 10, "an answer of the new kubelet")


async def test_a_kubelet_that_fails_is_asked_less_and_less_often(
    kubelet: FakeKubelet, asked: PodResources, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubelet.refuses = grpc.StatusCode.INTERNAL
    at = [1000.0]
    monkeypatch.setattr("kvpool_agent.devices.pod_resources.time.monotonic", lambda: at[0])
    asked_at = []
    for _ in range(60):
        before = kubelet.calls
        await asked.look()
        if kubelet.calls > before:
            asked_at.append(at[0] - 1000)
        at[0] += 1
    assert asked_at == [0, 1, 3, 7, 15, 23, 31, 39, 47, 55]


async def test_a_kubelet_that_never_answers_is_given_up_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvpool_agent.devices.pod_resources.POD_RESOURCES_ANSWER_SECONDS", 0.3)
    with tempfile.TemporaryDirectory(prefix="kvpool-") as folder, socket.socket(socket.AF_UNIX) as deaf:
        path = Path(folder) / "kubelet.sock"
        deaf.bind(str(path))
        deaf.listen()
        pod_resources = PodResources(path, frozenset({RESOURCE}), AGENT_POD)
        began = time.monotonic()
        await pod_resources.look()
        assert time.monotonic() - began < 5
        assert "DEADLINE_EXCEEDED" in pod_resources.trouble
        await pod_resources.close()


async def test_a_holder_that_the_file_names_stands_unless_kubelet_names_another(
    kubelet: FakeKubelet, asked: PodResources, tmp_path: Path
) -> None:
    entries = [{"id": name, "holderPodUid": "uid-of-file"} for name in ("gpu0", "gpu1")]
    file = write(tmp_path / "named.json", json.dumps({"devices": entries}))
    provider = HeldDevices(SimulatedDevices(file), asked)
    assert holders(provider) == ["uid-of-file", "uid-of-file"]
    kubelet.hold(gpu0="inference/engine-0")
    await asked.look()
    assert holders(provider) == ["inference/engine-0", "uid-of-file"]


def test_the_agent_reports_holders_with_their_age_and_lives_on_without_kubelet(
    make_node: MakeNode, operator: ScriptedOperator, kubelet: FakeKubelet
) -> None:
    kubelet.hold(gpu0="inference/engine-0")
    node = make_node(
        devices=[{"id": "gpu0"}, {"id": "gpu1"}],
        flags=(
            f"--pod-resources={kubelet.socket}",
            f"--device-resources={RESOURCE}",
            f"--pod-name={AGENT_POD}",
        ),
    )
    node.start_agent()
    report = operator.wait_for_report(
        "the holder",
        lambda r: (
            [list(d.holder_pods) for d in r.devices] == [["inference/engine-0"], []]
            and not r.devices[1].holder_unknown
        ),
    )
    assert report.holders_age_ms < 5000
    kubelet.stop()
    report = operator.wait_for_report(
        "kubelet's silence",
        lambda r: (
            [d.holder_unknown for d in r.devices] == [False, True]
            and list(r.devices[0].holder_pods) == ["inference/engine-0"]
        ),
    )
    operator.wait_for_report("an older word", lambda r: r.holders_age_ms > report.holders_age_ms)
    assert node.get("/healthz") == (200, "ok\n")
    kubelet.hold(gpu1="inference/engine-1")
    kubelet.start()
    operator.wait_for_report(
        "the new holder", lambda r: [list(d.holder_pods) for d in r.devices] == [[], ["inference/engine-1"]]
    )


@pytest.mark.parametrize("missing", ["--devices", "--device-resources", "--pod-name"])
def test_what_is_needed_to_ask_kubelet_is_named_when_it_is_missing(
    missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "--node-name": "n",
        "--operator": "o:1",
        "--enroll": "o:2",
        "--token-file": "t",
        "--ca-file": "c",
        "--local-socket": "s",
        "--devices": "simulated:/d.json",
        "--pod-resources": "/k.sock",
        "--device-resources": f"{RESOURCE},example.com/other",
        "--pod-name": AGENT_POD,
    }
    settings = parse_arguments([f"{flag}={value}" for flag, value in given.items()])
    assert settings.device_resources == (RESOURCE, "example.com/other")
    with pytest.raises(SystemExit):
        parse_arguments([f"{flag}={value}" for flag, value in given.items() if flag != missing])
    assert f"--pod-resources /k.sock without {missing}\n" in capsys.readouterr().err


def test_without_a_kubelet_to_ask_no_age_is_reported(make_node: MakeNode, operator: ScriptedOperator) -> None:
    node = make_node(devices=[{"id": "gpu0", "holderPodUid": "pod-a"}])
    node.start_agent()
    report = operator.wait_for_report("the device", lambda r: len(r.devices) == 1)
    assert not report.HasField("holders_age_ms")
    assert not report.devices[0].holder_unknown

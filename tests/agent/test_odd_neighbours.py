"""What agent and keeper are told by others that are broken: a master, peers, an operator, an authority."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent.enrolment import CERTIFICATE_FILE, Enrolment, EnrolmentError, EnrolmentOptions, Identity
from kvpool_agent.lease import Member
from kvpool_agent.peers import PeerWatch
from kvpool_agent.stream import OperatorStream, Session
from kvpool_keeper.master_admin import (
    ADMIN_TIMEOUT_SECONDS,
    AdminError,
    MasterAdmin,
    MasterHangsError,
    parse_metrics,
)
from kvpool_keeper.probe import NOT_REACHED, ask_peer, hosts_that_answer
from tests.agent.node import TestNode
from tests.agent.quiet_node import QuietNode
from tests.agent.scripted_operator import SERVER_NAME, Authority, ScriptedOperator, write

OK = b"HTTP/1.1 200 OK\r\n"


@contextlib.contextmanager
def neighbour(*pieces: bytes, every_seconds: float = 0.0, hangs_up: bool = True) -> Iterator[str]:
    """Something that listens and answers whoever comes with `pieces`, the last one over and over."""
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def answer(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.recv(1 << 16)
            for piece in pieces:
                client.sendall(piece)
            while every_seconds and not ended.wait(every_seconds):
                client.sendall(pieces[-1])
            if not hangs_up:
                ended.wait(60)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        ended.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x16\x03\x01garbage",
        b"HTTP/1.1 two hundred OK\r\n\r\n",
        OK + b"Content-Length: 100\r\n\r\nshort",
        OK + b"Content-Length: nine\r\n\r\n{",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK + b"X: " + b"y" * (1 << 17) + b"\r\n\r\n",
        OK + b"\r\n" + b"[" * 200_000,
        OK + b"\r\n" + b"x" * (17 << 20),
        OK + b"\r\n[]",
        OK + b'\r\n{"segments": {"a": 1}}',
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=lambda answer: repr(answer[:40]),
)
def test_whatever_a_master_answers_is_an_error_that_names_it(answer: bytes) -> None:
    with neighbour(answer) as address, pytest.raises(AdminError, match=address):
        MasterAdmin(address).segments()


@pytest.mark.parametrize(
    ("pieces", "every_seconds"),
    [((), 0.0), ((OK, b"X: y\r\n"), 0.3), ((OK + b"Content-Length: 100\r\n\r\n", b"x"), 0.3)],
    ids=["silent", "header after header", "byte after byte"],
)
def test_a_master_that_never_ends_its_answer_is_left_in_time(
    pieces: tuple[bytes, ...], every_seconds: float
) -> None:
    with neighbour(*pieces, every_seconds=every_seconds, hangs_up=False) as address:
        began = time.monotonic()
        with pytest.raises(MasterHangsError):
            MasterAdmin(address).segments()
        assert time.monotonic() - began < 2 * ADMIN_TIMEOUT_SECONDS + 3


@pytest.mark.parametrize(
    "address", ["", "host", "a b:1", "127.0.0.1:port", "127.0.0.1:99999", "a\nb:1", "é" * 70]
)
def test_an_address_that_is_none_is_an_error_of_the_master(address: str) -> None:
    with pytest.raises(AdminError):
        MasterAdmin(address).segments()


def test_figures_of_a_master_that_cannot_be_are_unknown() -> None:
    text = f'master_ping_requests_total 7\nsegment_allocated_bytes{{segment="a:1"}} {"9" * 5000}\n'
    assert parse_metrics(text, "a:1").used_bytes is None
    with pytest.raises(AdminError, match="master_ping_requests_total"):
        parse_metrics(f"master_ping_requests_total {'9' * 5000}\n", "a:1")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "host",
        "127.0.0.1:99999",
        "127.0.0.1:\N{SUPERSCRIPT TWO}",
        "a\0b:1",
        "x" * 300 + ":1",
        "[::1:5",
        ".:1",
    ],
)
async def test_a_peer_of_an_impossible_address_is_one_that_is_not_reached(address: str) -> None:
    assert await ask_peer("node-2", address) == NOT_REACHED
    assert await hosts_that_answer({"node-2": address}, 10250) == frozenset()


async def test_many_dead_hosts_are_asked_at_the_same_time() -> None:
    """One after another they would outlast every word of those that live."""

    async def dead(*_: object) -> None:
        await asyncio.sleep(60)

    members = [Member(f"node-{n}", f"192.0.2.{n}:9631", f"192.0.2.{n}", "") for n in range(1, 31)]
    watch = PeerWatch("node-1")
    with mock.patch("asyncio.open_connection", dead):
        began = time.monotonic()
        await watch.look(members, everybody=True)
    assert time.monotonic() - began < 4
    assert not any(seen.reached for seen in watch.sightings.values())


def stream_of(folder: Path) -> OperatorStream:
    options = EnrolmentOptions("node-1", "127.0.0.1:1", folder / "token", folder / "ca.pem", SERVER_NAME)
    return OperatorStream(
        "127.0.0.1:1", SERVER_NAME, Enrolment(folder, options, lambda: None), QuietNode(), lambda: None
    )


async def test_an_operator_that_ends_every_stream_at_once_is_not_dialled_without_rest(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    dial = mock.AsyncMock(side_effect=lambda _: Session("a", mock.AsyncMock(), mock.AsyncMock()))
    with (
        mock.patch.object(stream, "_enrolment", mock.AsyncMock()),
        mock.patch.object(stream, "_dial", dial),
        mock.patch.object(stream, "_follow", mock.AsyncMock()),
        contextlib.suppress(TimeoutError),
    ):
        async with asyncio.timeout(2):
            await stream.run()
    assert 2 <= dial.await_count <= 12


@pytest.mark.parametrize("ttl_ms", [0, 1, 2**64 - 1])
def test_an_operator_whose_terms_make_no_sense_is_left_and_the_agent_lives(
    ttl_ms: int, node: TestNode, operator: ScriptedOperator
) -> None:
    operator.script.ttl_ms = ttl_ms
    node.start_agent()
    node.agent.wait_for_line("refused terms that make no sense", 30)
    operator.script.ttl_ms = 10_000
    node.wait_until_connected()


def test_a_roster_of_impossible_addresses_costs_no_lease(node: TestNode, operator: ScriptedOperator) -> None:
    operator.script.roster = wire.Roster(
        revision=1,
        members=[
            wire.RosterMember(node_name=f"n{number}", peer_address=address, host_address="x" * 300, board="b")
            for number, address in enumerate(["h:99999", "h:\N{SUPERSCRIPT TWO}", "x" * 300 + ":1", ""])
        ],
    )
    node.start_agent()
    node.wait_until_connected()
    count = len(operator.heard.renews)
    operator.wait_for_report("a beat of the peers' loop", lambda r: "peers" in r.loop_age_seconds)
    node.wait_until_connected()
    assert len(operator.heard.renews) > count
    assert "loop failed" not in node.agent.text()


@pytest.mark.parametrize("odd", [b"\xff\xfe\n", b"", b"x" * (2 << 20)], ids=["no text", "empty", "endless"])
async def test_an_odd_token_is_waited_for_until_a_good_one_is_there(odd: bytes, tmp_path: Path) -> None:
    options = EnrolmentOptions("node-1", "127.0.0.1:1", tmp_path / "token", tmp_path / "ca.pem", SERVER_NAME)
    (tmp_path / "token").write_bytes(odd)
    (tmp_path / "ca.pem").write_text("an authority")
    with pytest.raises((EnrolmentError, OSError), match="token"):
        await Enrolment(tmp_path, options, lambda: None)._enrol()


async def enrolled(operator: ScriptedOperator, folder: Path) -> tuple[Enrolment, Identity]:
    token = write(folder / "token", "a-token")
    authority = write(folder / "ca.pem", operator.authority.pem.decode())
    options = EnrolmentOptions("node-1", f"127.0.0.1:{operator.enrol_port}", token, authority, SERVER_NAME)
    enrolment = Enrolment(folder, options, lambda: None)
    return enrolment, await enrolment.identity()


def another_key(folder: Path) -> None:
    """As after a death between the writes of a new key and its certificate."""
    key, _ = Authority().server()
    (folder / "key.pem").write_bytes(key)


def no_certificate(folder: Path) -> None:
    (folder / CERTIFICATE_FILE).write_bytes(b"\xff garbage")


@pytest.mark.parametrize("damage", [another_key, no_certificate])
async def test_a_kept_certificate_that_is_of_no_use_is_asked_for_anew(
    damage: Callable[[Path], None], operator: ScriptedOperator, tmp_path: Path
) -> None:
    enrolment, identity = await enrolled(operator, tmp_path)
    damage(tmp_path)
    _, renewed = await enrolled(operator, tmp_path)
    assert renewed.certificate_pem != identity.certificate_pem
    assert len(operator.heard.enrolments) == 2
    enrolment.load()
    assert dataclasses.replace(await enrolment.identity(), renew_at=renewed.renew_at) == renewed


def test_a_keeper_of_a_master_that_hangs_stays_awake_and_says_so(
    node: TestNode, operator: ScriptedOperator
) -> None:
    with neighbour(hangs_up=False) as address:
        unit = node.unit("ssd", mooncake=wire.MooncakeTarget(master=address, admin=address))
        operator.plan(revision=1, units=[unit])
        node.start_agent()
        keeper = node.keeper_of(unit)
        waiting = operator.wait_for_report(
            "what hangs", lambda r: bool(r.units) and "hangs and is not joined" in r.units[0].message, 40
        )
        assert waiting.units[0].phase == "Allocating"
        assert keeper.terminate(8) == 0

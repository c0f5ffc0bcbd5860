"""Fixtures for the agent channel: a running Fleet on loopback, and agents that say what a test tells them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from kvpool.fleet.ca import Authority
from kvpool.fleet.fleet import Fleet, FleetCallbacks
from kvpool.fleet.settings import EnrolmentRules, FleetSettings
from kvpool.model.ids import ObjectKey
from tests.fleet.agents import ScriptedAgent
from tests.fleet.doubles import Counts, MemoryAccess

NAMESPACE = "kvpool-system"


@dataclass
class Told:
    """What a Fleet told the rest of the operator."""

    changed: list[str] = field(default_factory=list)
    higher_epochs: list[int] = field(default_factory=list)

    @property
    def callbacks(self) -> FleetCallbacks:
        return FleetCallbacks(self.changed.append, self.higher_epochs.append)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def access() -> MemoryAccess:
    return MemoryAccess()


def loopback_settings(namespace: str = NAMESPACE, service_account: str = "agent") -> FleetSettings:
    rules = EnrolmentRules(ObjectKey(namespace, service_account))
    names = ("kvpool-operator.test.svc", "127.0.0.1")
    base = FleetSettings(namespace=namespace, server_names=names, enrolment=rules)
    return replace(base, listen_address="127.0.0.1", agent_port=0, enrolment_port=0)


@pytest.fixture
async def fleet(access: MemoryAccess, told: Told, counts: Counts) -> AsyncIterator[Fleet]:
    """A Fleet that leads under epoch 7."""
    running = Fleet(loopback_settings(), access, told.callbacks, counts)
    await running.start()
    running.set_leader(7)
    yield running
    await running.stop()


Connect = Callable[..., Awaitable[ScriptedAgent]]


@pytest.fixture
async def connect(fleet: Fleet, access: MemoryAccess) -> AsyncIterator[Connect]:
    """Opens a stream as the agent of a node, with a certificate of the fleet's authority."""
    opened: list[ScriptedAgent] = []

    async def open_stream(node: str = "node-1", authority: Authority | None = None) -> ScriptedAgent:
        signer = authority or access.authority()
        agent = ScriptedAgent.with_certificate(
            node, signer, access.authority().certificate_pem, fleet.agent_port, datetime.now(UTC)
        )
        opened.append(agent)
        return agent

    yield open_stream
    for agent in opened:
        await agent.close()

"""What people write of kvpool's kinds and what kvpool says of them, as short calls on a real API server."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from devcluster.rest import Api, JsonObject
from kvpool.api.quantity import parse_quantity
from tests.harness.waiting import wait_until

KVPOOL = "kvpool.dev/v1alpha1"
NAMESPACE = "inference"
MIB = 1 << 20
BIND_SECONDS = 45.0
SETTLE_SECONDS = 45.0
SELECTOR = {"matchLabels": {"pool": "gpu"}}
STATES = ("declared", "admitted", "bound", "used", "foreign", "unknown")

_number = itertools.count(1)


class KvpoolObjects:
    """Budgets, pools and KVNodes of one cluster, whose pools live in one namespace.

    `nodes` are those with agents; `ssd_folder` is where their SSD units go.
    """

    ssd_folder: str

    @property
    def admin(self) -> Api:
        """The administrator's client."""
        raise NotImplementedError

    @property
    def nodes(self) -> Sequence[str]:
        """The nodes with agents."""
        raise NotImplementedError

    # What people do

    def apply(self, kind: str, name: str, spec: JsonObject, namespace: str | None = None) -> JsonObject:
        """Server-side apply of one of our kinds."""
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        manifest = {"apiVersion": KVPOOL, "kind": kind, "metadata": metadata, "spec": spec}
        applied: JsonObject = self.admin.apply(manifest, field_manager="people")
        return applied

    def budget(self, *tiers: JsonObject, name: str = "gpu", mode: str = "Enforce", **spec: Any) -> None:  # noqa: ANN401 - fields of the spec
        """Create or edit a budget for all nodes with agents; DRAM and SSD when no tier is given."""
        usual = (
            {"name": "DRAM", "perNode": "256Mi", "reserve": "64Mi"},
            {"name": "SSD", "perNode": "128Mi", "reserve": "0", "path": self.ssd_folder},
        )
        given = {"mode": mode, "nodeSelector": SELECTOR, "tiers": list(tiers or usual), **spec}
        self.apply("TierBudget", name, given)

    def pool(
        self,
        name: str,
        mode: str = "Enforce",
        *,
        store: bool | JsonObject = True,
        **spec: Any,  # noqa: ANN401 - fields of the spec
    ) -> None:
        """Create or edit a pool; upper-case words are tiers (`DRAM="64Mi"`), others are fields.

        `store` is the usual one, none, or the field as given.
        """
        tiers = [{"name": word, "size": size} for word, size in spec.items() if word.isupper()]
        rest = {word: value for word, value in spec.items() if not word.isupper()}
        usual: JsonObject = {"mooncake": {"master": {"serviceRef": {"name": "mooncake-master"}}}}
        joined = store if isinstance(store, dict) else usual if store else {"none": {}}
        chosen = {"mode": mode, "tiers": tiers, "store": joined}
        self.apply("KVPool", name, {**chosen, **rest}, NAMESPACE)

    @contextlib.contextmanager
    def bound_pool(self, *, store: bool = True, **spec: Any) -> Iterator[str]:  # noqa: ANN401 - fields of the spec
        """A pool of its own name, bound; in the end it is deleted and its memory given back."""
        name = f"pool-{next(_number)}"
        self.pool(name, store=store, **spec)
        try:
            self.wait_bound(name)
            yield name
        finally:
            self.delete_pool(name)

    def delete_pool(self, name: str, reclaim: str = "Release") -> None:
        """Delete a pool whose memory is to be given back, and wait until it is."""
        if self.admin.find(KVPOOL, "KVPool", name, NAMESPACE) is not None:
            change = {"spec": {"reclaimPolicy": reclaim, "mode": "Enforce"}}
            self.admin.patch(KVPOOL, "KVPool", name, change, NAMESPACE)
            for node in self.nodes:  # the policy is on record with each unit before the pool goes
                wait_until(
                    lambda node=node: all(  # type: ignore[misc] # mypy infers no type for a bound default
                        unit.get("reclaimPolicy", "Retain") == reclaim
                        for unit in self.decided(node, name).values()
                    ),
                    20,
                    f"units of {name} on {node} to follow reclaimPolicy {reclaim}",
                )
            self.admin.delete(KVPOOL, "KVPool", name, NAMESPACE)
        wait_until(
            lambda: not any(self.decided(node, name) for node in self.nodes),
            SETTLE_SECONDS,
            f"the units of {name} to be given back",
        )

    def delete_pool_object(self, name: str) -> None:
        """Delete a pool and nothing else."""
        self.admin.delete(KVPOOL, "KVPool", name, NAMESPACE)

    # What kvpool says

    def status(self, name: str, kind: str = "KVPool") -> JsonObject:
        """The status of a pool or a budget."""
        found = self.admin.get(KVPOOL, kind, name, NAMESPACE if kind in ("KVPool", "PDGroup") else None)
        status: JsonObject = found.get("status", {})
        return status

    def figures(self, name: str, tier: str = "DRAM", kind: str = "KVPool") -> dict[str, int]:
        """Bytes of a tier by state; empty while the status does not name the tier."""
        for found in self.status(name, kind).get("tiers", []):
            if found["name"] == tier:
                return {state: parse_quantity(found[state]) for state in STATES}
        return {}

    def condition(self, name: str, kind_of: str, kind: str = "KVPool") -> JsonObject:
        """One condition; empty when it is not there."""
        found = [one for one in self.status(name, kind).get("conditions", []) if one["type"] == kind_of]
        return found[0] if found else {}

    def wait_condition(
        self, name: str, says: str, pattern: str = "", kind: str = "KVPool", seconds: float = BIND_SECONDS
    ) -> JsonObject:
        """Wait for `Type=Status reason` with a message that matches; returns the condition."""
        kind_of, _, rest = says.partition("=")
        status, _, reason = rest.partition(" ")
        seen: list[JsonObject] = [{}]

        def said() -> JsonObject | None:
            seen[0] = one = self.condition(name, kind_of, kind)
            fits = one.get("status") == status and (not reason or one.get("reason") == reason)
            return one if fits and re.search(pattern, one.get("message", "")) else None

        try:
            return wait_until(said, seconds, f"{kind} {name} to say {says} /{pattern}/") or {}
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {seen[0]}") from error

    def wait_bound(self, name: str, seconds: float = BIND_SECONDS) -> None:
        """Wait until everything that the pool's newest spec asks for is bound."""

        def bound() -> bool:
            found = self.admin.get(KVPOOL, "KVPool", name, NAMESPACE)
            condition = self.condition(name, "Bound")
            newest: bool = condition.get("observedGeneration") == found["metadata"]["generation"]
            return newest and condition.get("status") == "True"

        try:
            wait_until(bound, seconds, f"pool {name} to be bound")
        except AssertionError as error:
            told = json.dumps(self.status(name).get("conditions"), indent=1)
            raise AssertionError(f"{error}; {told}") from error

    def decided(self, node: str, pool: str) -> dict[str, JsonObject]:
        """The units of a pool in a KVNode's spec, by name."""
        found = self.admin.find(KVPOOL, "KVNode", node)
        units = (found or {}).get("spec", {}).get("units", [])
        return {unit["name"]: unit for unit in units if unit["pool"] == f"{NAMESPACE}/{pool}"}

    def unit(self, node: str, pool: str, tier: str = "DRAM") -> JsonObject:
        """The one unit of a pool's tier on a node."""
        (unit,) = [unit for unit in self.decided(node, pool).values() if unit["tier"] == tier]
        return unit

    def reported(self, node: str, unit: str) -> JsonObject:
        """What a KVNode's status says of a unit; empty when nothing."""
        found = self.admin.get(KVPOOL, "KVNode", node).get("status", {}).get("units", [])
        return next((one for one in found if one["name"] == unit), {})

    def wait_reported(
        self, node: str, unit: JsonObject, phase: str, seconds: float = BIND_SECONDS
    ) -> JsonObject:
        """Wait until the KVNode's status has this generation of a unit in a phase; returns what it says."""

        def said() -> JsonObject | None:
            told = self.reported(node, unit["name"])
            return (
                told if (told.get("generation"), told.get("phase")) == (unit["generation"], phase) else None
            )

        return wait_until(said, seconds, f"{node} {unit['name']} to be {phase}") or {}

"""Conditions as in metav1.Condition, and the closed set of types and reasons kvpool writes."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from kvpool.api.moment import Moment
from kvpool.api.schema import ListMap, Model

MESSAGE_MAX = 1024


class ConditionType(StrEnum):
    """Every condition type kvpool writes."""

    READY = "Ready"
    ACTION_WITHHELD = "ActionWithheld"
    ADMITTED = "Admitted"
    BOUND = "Bound"
    BUDGET_NOT_APPLIED = "BudgetNotApplied"
    NUMA_SKEW = "NumaSkew"
    PLACEMENT_DRIFT = "PlacementDrift"
    STORE_CONTENTS_LOST = "StoreContentsLost"
    STORE_REACHABLE = "StoreReachable"
    OBSERVER_SUSPECT = "ObserverSuspect"
    ABOVE_HIGH_WATERMARK = "AboveHighWatermark"
    RATIO_CONSTRAINT_VIOLATED = "RatioConstraintViolated"
    WEIGHT_NOT_EXPRESSIBLE = "WeightNotExpressible"
    OUTPUT_NOT_WRITTEN = "OutputNotWritten"
    FENCE_NOT_ENFORCEABLE = "FenceNotEnforceable"
    SPARES_LOW = "SparesLow"
    PAUSED = "Paused"
    SERVING = "Serving"
    REMAPPED = "Remapped"
    BLOCKED = "Blocked"
    SUCCEEDED = "Succeeded"
    AGENT_CONNECTED = "AgentConnected"
    AGENT_HEALTHY = "AgentHealthy"
    LEASE_HELD = "LeaseHeld"
    PLANNED = "Planned"
    CALIBRATED = "Calibrated"


class Condition(Model):
    """metav1.Condition with its own observedGeneration."""

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """What is said about, such as `Ready`."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    reason: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """One word: why."""
    message: Annotated[str, Field(max_length=MESSAGE_MAX)] = ""
    """The figures behind the reason, for people."""
    observed_generation: int | None = None
    """The generation of the spec that was judged."""
    last_transition_time: Moment | None = None
    """When the status last changed."""


Conditions = Annotated[tuple[Condition, ...], ListMap("type"), Field(max_length=32)]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a decision says about one condition; :func:`merge_conditions` gives it its time."""

    type: ConditionType
    status: bool | None
    reason: str
    message: str = ""

    @property
    def status_text(self) -> Literal["True", "False", "Unknown"]:
        """``True``, ``False`` or ``Unknown``, as Kubernetes spells it."""
        if self.status is None:
            return "Unknown"
        return "True" if self.status else "False"


def merge_conditions(
    old: Iterable[Condition], verdicts: Iterable[Verdict], generation: int, now_text: str
) -> tuple[Condition, ...]:
    """Return ``verdicts`` as conditions, sorted by type; the transition time moves only with the status.

    Conditions of ``old`` without a verdict are dropped: a verdict list is complete (level-triggered).
    """
    before = {condition.type: condition for condition in old}
    merged = []
    for verdict in sorted(verdicts, key=lambda verdict: verdict.type):
        previous = before.get(verdict.type)
        same = previous is not None and previous.status == verdict.status_text
        merged.append(
            Condition(
                type=verdict.type,
                status=verdict.status_text,
                reason=verdict.reason,
                message=verdict.message[:MESSAGE_MAX],
                observed_generation=generation,
                last_transition_time=(same and previous and previous.last_transition_time) or now_text,
            )
        )
    return tuple(merged)


def find_condition(conditions: Iterable[Condition], kind: ConditionType) -> Condition | None:
    """Return the condition of type ``kind``, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)

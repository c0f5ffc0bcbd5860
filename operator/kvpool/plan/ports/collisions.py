"""How often flows meet on a spine when nobody chooses: closed forms for F flows on S equal spines.

Source: kvpool's own derivation (balls into bins). They bound what choosing can gain: chosen, no spine carries
more than ceil(F / S).
"""

from fractions import Fraction


def flows_seen(flows: int, spines: int) -> float:
    """Flows that a flow finds on its spine on average, itself included: 1 + (F - 1) / S."""
    return 1 + (flows - 1) / spines


def no_collision(flows: int, spines: int) -> float:
    """How likely every flow has its spine alone: product of (S - i) / S for i < F; 0 when F > S."""
    likely = Fraction(1)
    for taken in range(min(flows, spines + 1)):
        likely *= Fraction(spines - taken, spines)
    return float(likely)


def idle_share(flows: int, spines: int) -> float:
    """Share of the spines that carry nothing on average: (1 - 1 / S)^F."""
    return float(Fraction(spines - 1, spines) ** flows)


def chosen_most(flows: int, spines: int) -> int:
    """Flows on the fullest spine when they are chosen: ceil(F / S)."""
    return -(-flows // spines)

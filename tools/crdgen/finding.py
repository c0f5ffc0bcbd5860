"""One thing wrong with a generated definition."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """``path`` is the node from the schema's root (``.spec.tiers[]``), ``rule`` names the broken rule."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} [{self.rule}]"

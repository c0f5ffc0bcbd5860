"""Names that facts and decisions use to point at each other."""

from typing import NamedTuple


class ObjectKey(NamedTuple):
    """A namespaced object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @classmethod
    def of(cls, text: str) -> "ObjectKey":
        """Read `namespace/name`.

        Raises:
            ValueError: when there is no namespace.
        """
        namespace, slash, name = text.partition("/")
        if not slash:
            raise ValueError(f"{text!r} is not namespace/name")
        return cls(namespace, name)


class DeviceRef(NamedTuple):
    """An accelerator: its node and its id there."""

    node: str
    device: str

    def __str__(self) -> str:
        return f"{self.node}/{self.device}"

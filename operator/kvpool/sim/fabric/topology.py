"""A leaf-spine fabric: hosts with one card each, leaves, spines, and the links between them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeafSpine:
    """Every leaf has one link to every spine; both directions of a link are apart."""

    leaves: int
    spines: int
    hosts_per_leaf: int
    nic_bytes_per_second: int
    uplink_bytes_per_second: int
    """Of one link between a leaf and a spine."""

    @property
    def hosts(self) -> int:
        """All of them."""
        return self.leaves * self.hosts_per_leaf

    @property
    def oversubscription(self) -> float:
        """What the hosts of a leaf can send over what its uplinks carry: 1.0 is a fabric that never binds."""
        return self.hosts_per_leaf * self.nic_bytes_per_second / (self.spines * self.uplink_bytes_per_second)

    def leaf_of(self, host: int) -> int:
        """The leaf of a host."""
        return host // self.hosts_per_leaf

    def capacities(self) -> list[int]:
        """Bytes a second of each link, in the numbering of `path`."""
        cards = [self.nic_bytes_per_second] * self.hosts
        links = [self.uplink_bytes_per_second] * (self.leaves * self.spines)
        return [*cards, *links, *links, *cards]

    def path(self, source: int, destination: int, spine: int) -> tuple[int, ...]:
        """Links from host to host over a spine: card, leaf to spine, spine to leaf, card.

        Hosts of one leaf meet in it and touch no spine.
        """
        links = self.leaves * self.spines
        into = self.hosts + 2 * links + destination
        here, there = self.leaf_of(source), self.leaf_of(destination)
        if here == there:
            return source, into
        up = self.hosts + here * self.spines + spine
        down = self.hosts + links + there * self.spines + spine
        return source, up, down, into

"""PodLabel: in or out, for routers that select pods by a label."""

from kvpool.adapters.routers.base import Reading, Rendered, Revision


class PodLabelOutput:
    """The label is on the pods of members with a weight above 0, and on no other member."""

    carries_weights = False

    def render(self, revision: Revision) -> Rendered:
        """Return the label of each attached member's pod."""
        target = revision.output.pod_label
        if target is None:
            raise ValueError(f"output {revision.output.name} of {revision.group}: podLabel is missing")
        wanted = {
            member.pod_uid: {target.key: target.value if member.weight > 0 else None}
            for member in revision.members
            if member.pod_uid
        }
        return Rendered((), wanted)

    async def read_back(self, revision: Revision) -> Reading | None:
        """Routers do not say which pods they select."""
        return None

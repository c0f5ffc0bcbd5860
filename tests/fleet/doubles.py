"""Stand-ins at the fleet's own seams: counted metrics, and a cluster access that lives in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from kvpool.fleet.access import PodPlace, StoredData, TokenVerdict, UnavailableError
from kvpool.fleet.ca import Authority
from kvpool.fleet.ca_store import CERTIFICATE, KEY
from kvpool.model.ids import ObjectKey


class Counts:
    """FleetMetrics that remember."""

    def __init__(self) -> None:
        self.by_name: Counter[tuple[str, str]] = Counter()

    def enrolled(self, outcome: str) -> None:
        self.by_name["enrolled", outcome] += 1

    def received(self, message: str) -> None:
        self.by_name["received", message] += 1

    def refused(self, reason: str) -> None:
        self.by_name["refused", reason] += 1

    def sent(self, message: str) -> None:
        self.by_name["sent", message] += 1

    def superseded(self, message: str) -> None:
        self.by_name["superseded", message] += 1


class MemoryAccess:
    """ClusterAccess without a cluster: what a test puts in is what there is."""

    def __init__(self) -> None:
        self.secrets: dict[str, StoredData] = {}
        self.config_maps: dict[str, StoredData] = {}
        self.verdicts: dict[str, TokenVerdict] = {}
        self.pods: dict[tuple[ObjectKey, str], PodPlace] = {}
        self.reviews = 0
        self.down = False

    def authority(self) -> Authority:
        data = self.secrets["kvpool-ca"].data
        return Authority.read(data[KEY], data[CERTIFICATE], datetime.now(UTC))

    async def read_secret(self, name: str) -> StoredData | None:
        return self.secrets.get(name)

    async def create_secret(self, name: str, data: Mapping[str, bytes]) -> bool:
        if name in self.secrets:
            return False
        self.secrets[name] = StoredData(dict(data), "1")
        return True

    async def read_config_map(self, name: str) -> StoredData | None:
        return self.config_maps.get(name)

    async def write_config_map(self, name: str, data: Mapping[str, bytes], at: StoredData | None) -> bool:
        if self.config_maps.get(name) != at:
            return False
        self.config_maps[name] = StoredData(dict(data), "1" if at is None else at.resource_version + "1")
        return True

    async def review_token(self, token: str, audience: str) -> TokenVerdict:
        if self.down:
            raise UnavailableError("the API server is down")
        self.reviews += 1
        return self.verdicts.get(token, TokenVerdict(authenticated=False, error=f"not for {audience}"))

    async def find_pod(self, key: ObjectKey, uid: str) -> PodPlace | None:
        if self.down:
            raise UnavailableError("the API server is down")
        return self.pods.get((key, uid))

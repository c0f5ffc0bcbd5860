"""One authority for all replicas: created once in a Secret, its certificate published in a ConfigMap."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kvpool.fleet.access import ClusterAccess, StoredData, UnavailableError
from kvpool.fleet.ca import Authority, AuthorityError

KEY: Final = "tls.key"
CERTIFICATE: Final = "tls.crt"
BUNDLE: Final = "ca.crt"
_ATTEMPTS: Final = 5


async def load_or_create(access: ClusterAccess, secret: str, now: datetime) -> Authority:
    """The authority of the Secret, made and stored first when there is no such Secret.

    Whoever creates the Secret first decides; a Secret that cannot be used is never replaced, because every
    enrolled node trusts it. Raises AuthorityError or UnavailableError.
    """
    for _ in range(_ATTEMPTS):
        stored = await access.read_secret(secret)
        if stored is not None:
            return _read(secret, stored, now)
        made = Authority.create(now)
        if await access.create_secret(secret, {KEY: made.key_pem, CERTIFICATE: made.certificate_pem}):
            return made
    raise UnavailableError(f"Secret {secret} was created and deleted by others {_ATTEMPTS} times in a row")


def _read(secret: str, stored: StoredData, now: datetime) -> Authority:
    try:
        return Authority.read(stored.data.get(KEY, b""), stored.data.get(CERTIFICATE, b""), now)
    except AuthorityError as error:
        raise AuthorityError(
            f"Secret {secret} ({KEY}, {CERTIFICATE}) holds no usable authority: {error}; restore it from a "
            "backup, or delete it and restart the operator: every agent then enrols anew"
        ) from error


async def publish(access: ClusterAccess, config_map: str, authority: Authority) -> None:
    """Make the trust bundle name this authority; without a write when it does. Raises UnavailableError."""
    for _ in range(_ATTEMPTS):
        stored = await access.read_config_map(config_map)
        if stored is not None and stored.data.get(BUNDLE) == authority.certificate_pem:
            return
        if await access.write_config_map(config_map, {BUNDLE: authority.certificate_pem}, stored):
            return
    raise UnavailableError(f"ConfigMap {config_map} was changed by others {_ATTEMPTS} times in a row")

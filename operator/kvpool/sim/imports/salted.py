"""Block ids that tell nothing without the salt: keyed BLAKE2, each over the id before it.

BLAKE2's keyed mode is a message authentication code (RFC 7693): who does not have the key can neither look
up a text's id nor test a guess. The same salt gives the same ids, so that parts of a log fit together.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

KEY_BYTES: Final = 64
"""The longest key of BLAKE2b."""
FEWEST_SALT_BYTES: Final = 16
ID_BYTES: Final = 8
NO_BLOCK: Final = -1


class SaltedIds:
    """Makes ids with one salt."""

    def __init__(self, salt: bytes) -> None:
        """Take a salt of at least 16 bytes; ValueError for a shorter one, which could be guessed."""
        if len(salt) < FEWEST_SALT_BYTES:
            raise ValueError(f"the salt has {len(salt)} bytes, and must have at least {FEWEST_SALT_BYTES}")
        self._key = salt if len(salt) <= KEY_BYTES else hashlib.blake2b(salt, digest_size=KEY_BYTES).digest()

    def block(self, before: int, content: bytes) -> int:
        """Return the id, of 63 bits, of a block with that content after the block `before` (-1: none)."""
        keyed = hashlib.blake2b(
            before.to_bytes(ID_BYTES, "big", signed=True), key=self._key, digest_size=ID_BYTES
        )
        keyed.update(content)
        return int.from_bytes(keyed.digest(), "big") >> 1

    def chain(self, contents: Iterable[bytes], before: int = NO_BLOCK) -> tuple[int, ...]:
        """Return the ids of blocks that follow each other."""
        ids = []
        for content in contents:
            before = self.block(before, content)
            ids.append(before)
        return tuple(ids)

    def name(self, text: str) -> str:
        """Return what stands for a name of a user: 16 hexadecimal digits."""
        return hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8
        ).hexdigest()


def token_bytes(token_ids: Sequence[int]) -> bytes:
    """Return token ids as bytes; equal for equal ids only."""
    return ",".join(map(str, token_ids)).encode()

"""Logs of OpenAI-style requests: messages or prompts, usage and times, in the shapes that proxies write.

Without the model's tokenizer blocks are cut by bytes: as many as a block's tokens have on the average of
the log's first requests. Where the log has token ids, blocks are exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvpool.sim.imports.log_fields import arrival_ns, first, layers
from kvpool.sim.imports.prompts import Prompt, answer_bytes, prompt_of
from kvpool.sim.imports.salted import SaltedIds, token_bytes
from kvpool.sim.workloads.fields import json_object, tokens
from kvpool.sim.workloads.reading import LineError, count
from kvpool.sim.workloads.request import Request

BYTES_PER_TOKEN: Final = 4.0
"""Where the log has no usage to measure it by; a round figure for English with today's vocabularies."""
MEASURED_REQUESTS: Final = 200
MEASURED_BYTES: Final = 32 << 20
"""So much at most is held back until the bytes of a token are known."""
LEAST_TEXT_SHARE: Final = 0.5
"""Of the bytes that a prompt's tokens have on average: with less text it is not cut into blocks."""
FAILED: Final = 400
SESSIONS: Final = ("session_id", "conversation_id", "thread_id", "chat_id", "sessionId", "conversationId")
USERS: Final = ("user", "user_id", "end_user", "api_key", "customer_id", "userId")
PROMPTS: Final = ("messages", "prompt", "prompt_token_ids", "input", "instructions")


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a line is a logged request."""
    return first(layers(record), *PROMPTS) is not None


@dataclass(frozen=True, slots=True)
class _Logged:
    """A request of the log, before its prompt is cut into blocks."""

    arrival_ns: int
    prompt: Prompt
    prompt_tokens: int | None
    output_tokens: int | None
    answer_bytes: int
    client: str
    session: int


class ChatLogReader:
    """Each line one request with its answer's usage, which comes at its time."""

    def __init__(self, ids: SaltedIds, block_tokens: int, bytes_per_token: float | None = None) -> None:
        self._ids = ids
        self._bytes_per_token = bytes_per_token
        self._held: list[_Logged] = []
        self._held_bytes = 0
        self._sessions: dict[str, int] = {}
        self.block_tokens = block_tokens
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the line's request, or all that were held back; none, and a note, if it failed."""
        found = layers(json_object(text))
        if _failed(found):
            count(self.notes, "failed_requests")
            return ()
        logged = self._logged(found)
        if self._bytes_per_token is not None:
            return self._cut(logged, self._bytes_per_token)
        self._held.append(logged)
        self._held_bytes += len(logged.prompt)
        measured = sum(each.prompt_tokens is not None for each in self._held)
        return self.finish() if measured >= MEASURED_REQUESTS or self._held_bytes > MEASURED_BYTES else ()

    def finish(self) -> Sequence[Request]:
        """Return the requests that were held back to measure the bytes of a token."""
        if self._bytes_per_token is None:
            self._bytes_per_token = self._measured()
        self.notes.setdefault("bytes_of_100_tokens", round(100 * self._bytes_per_token))
        held, self._held = self._held, []
        return [request for logged in held for request in self._cut(logged, self._bytes_per_token)]

    def _measured(self) -> float:
        texts = [each for each in self._held if isinstance(each.prompt, bytes) and each.prompt_tokens]
        if not texts:
            return BYTES_PER_TOKEN
        counted = sum(each.prompt_tokens or 0 for each in texts)
        return max(0.25, sum(len(each.prompt) for each in texts) / counted)

    def _logged(self, found: list[Mapping[str, Any]]) -> _Logged:
        prompt_tokens, output_tokens = _usage(found)
        answer = answer_bytes(found)
        if output_tokens is None and answer is None:
            raise LineError("tells no length of the answer: it has neither `usage` nor `choices`")
        user, session = first(found, *USERS), first(found, *SESSIONS)
        return _Logged(
            arrival_ns(found),
            prompt_of(found),
            prompt_tokens,
            output_tokens,
            answer or 0,
            self._ids.name(str(user)) if user is not None else "",
            self._sessions.setdefault(self._ids.name(str(session)), len(self._sessions))
            if session is not None
            else -1,
        )

    def _cut(self, logged: _Logged, bytes_per_token: float) -> Sequence[Request]:
        prompt, size = logged.prompt, self.block_tokens
        if isinstance(prompt, bytes):
            told = logged.prompt_tokens
            length = told if told is not None else round(len(prompt) / bytes_per_token)
            step = max(1, round(size * bytes_per_token))
            whole = length // size
            if LEAST_TEXT_SHARE * whole * step > len(prompt):
                # Pictures, or text that was not logged: equal words then say nothing of equal prompts.
                count(self.notes, "prompts_longer_than_their_text")
                whole = 0
            # Where a prompt has fewer bytes for a token than the log has, its last blocks are empty: their
            # ids hang on all that comes before, so that only equal prompts share them.
            contents = (prompt[start : start + step] for start in range(0, whole * step, step))
        else:
            length = len(prompt)
            whole = length // size
            contents = (token_bytes(prompt[start : start + size]) for start in range(0, whole * size, size))
        output = logged.output_tokens
        if output is None:
            count(self.notes, "answers_measured_by_their_text")
            output = round(logged.answer_bytes / bytes_per_token)
        if logged.prompt_tokens is None:
            count(self.notes, "prompts_measured_by_their_text")
        if not length or not output:
            count(self.notes, "zero_tokens")
            return ()
        request = Request(
            logged.arrival_ns,
            length,
            output,
            self._ids.chain(contents),
            client=logged.client,
            session=logged.session,
        )
        return (request,)


def _failed(found: list[Mapping[str, Any]]) -> bool:
    status = first(found, "status_code", "statusCode", "http_status")
    return first(found, "error") is not None or (
        isinstance(status, int) and not isinstance(status, bool) and status >= FAILED
    )


def _usage(found: list[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return prompt and output tokens as far as they are told; cached ones count as prompt."""
    usage = first(found, "usage")
    places = [usage, *found] if isinstance(usage, Mapping) else found
    told = [
        next(((place, name) for place in places for name in names if place.get(name) is not None), None)
        for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    ]
    prompt, output = (
        tokens(place, name) if place else None for place, name in (each or ({}, "") for each in told)
    )
    if prompt is not None and told[0] is not None and told[0][1] == "input_tokens":
        # Anthropic counts what was cached apart.
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens"):
            if told[0][0].get(name) is not None:
                prompt += tokens(told[0][0], name)
    return prompt, output

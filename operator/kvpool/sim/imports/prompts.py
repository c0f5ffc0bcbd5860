"""What of a logged request is its prompt, as one run of bytes or of token ids, in the order engines see it.

Shapes: OpenAI chat completions (`messages`, `tools`), completions (`prompt`: a text or token ids),
responses (`instructions`, `input`), Anthropic messages (`system`). Chat templates differ from model to
model; what matters is that equal beginnings stay equal, and so tools come first, then instructions, then
messages, each with its role.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvpool.sim.imports.log_fields import first, values
from kvpool.sim.workloads.reading import LineError

FIELD_END: Final = b"\x1f"
MESSAGE_END: Final = b"\x1e"
TEXT_KEYS: Final = ("text", "input_text", "output_text")

Prompt = bytes | Sequence[int]


def prompt_of(layers: list[Mapping[str, Any]]) -> Prompt:
    """Return the prompt of a logged request: bytes of its text, or token ids where those were sent."""
    token_ids = first(layers, "prompt_token_ids", "input_ids", "token_ids")
    if token_ids is not None:
        return _token_ids(token_ids)
    parts = [_canonical(tools) for tools in values(layers, "tools", "functions")]
    parts += [_content(text) for text in values(layers, "system", "instructions")]
    messages = first(layers, "messages")
    if messages is None:
        messages = next((each for each in values(layers, "input") if isinstance(each, str | list)), None)
    prompt = first(layers, "prompt")
    if messages is not None:
        parts += _messages(messages)
    elif isinstance(prompt, str):
        parts.append(prompt.encode("utf-8", "surrogatepass"))
    elif isinstance(prompt, list):
        return _listed(prompt)
    else:
        raise LineError(
            "has no prompt: none of `messages`, `prompt`, `input` and `prompt_token_ids` is there"
        )
    return MESSAGE_END.join(parts)


def answer_bytes(layers: list[Mapping[str, Any]]) -> int | None:
    """Return the length of the answer's text in bytes; None if it was not logged."""
    for choices in values(layers, "choices"):
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            choice = choices[0]
            message = choice.get("message") or choice.get("text") or ""
            return len(_message(message) if isinstance(message, Mapping) else _content(message))
    for text in values(layers, "completion", "response", "output", "answer"):
        if isinstance(text, str):
            return len(text.encode("utf-8", "surrogatepass"))
        if isinstance(text, list):
            return len(MESSAGE_END.join(_messages(text)))
    return None


def _token_ids(value: object) -> list[int]:
    if not isinstance(value, list) or set(map(type, value)) - {int}:
        raise LineError("has token ids that are no list of whole numbers")
    return value


def _listed(prompt: list[Any]) -> Prompt:
    """Return the one prompt of a list: a text, token ids, or a list of those with one in it."""
    if prompt and isinstance(prompt[0], int):
        return _token_ids(prompt)
    if len(prompt) != 1:
        raise LineError(
            f"`prompt` holds {len(prompt)} prompts, and a line must be one request: write one a line"
        )
    if isinstance(prompt[0], list):
        return _token_ids(prompt[0])
    return _content(prompt[0])


def _messages(messages: object) -> list[bytes]:
    if isinstance(messages, str):
        return [_content(messages)]
    if not isinstance(messages, list):
        raise LineError("`messages` is no list, and must hold the messages of one request")
    return [_message(each) if isinstance(each, Mapping) else _content(each) for each in messages]


def _message(message: Mapping[str, Any]) -> bytes:
    role = str(message.get("role", message.get("type", ""))).encode("utf-8", "surrogatepass")
    others = {
        key: value
        for key, value in message.items()
        if key not in ("role", "type", "content") and value is not None
    }
    parts = [role, _content(message.get("content"))]
    if others:
        parts.append(_canonical(others))
    return FIELD_END.join(parts)


def _content(content: object) -> bytes:
    """Return a content's text; what is no text, such as an image, as its digest."""
    if content is None:
        return b""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    if not isinstance(content, list):
        return _canonical(content)
    parts = []
    for part in content:
        text = None
        if isinstance(part, Mapping):
            text = next((part[key] for key in TEXT_KEYS if isinstance(part.get(key), str)), None)
        if isinstance(part, str):
            text = part
        parts.append(_content(text) if text is not None else hashlib.sha256(_canonical(part)).digest())
    return FIELD_END.join(parts)


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

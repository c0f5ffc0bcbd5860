"""Selectors as scale sub-resources state them."""

from __future__ import annotations

import pytest

from kvpool.cluster.scales import parse_selector

CHAT = {"app": "chat", "tier": "x"}


@pytest.mark.parametrize(
    ("text", "matches", "fails"),
    [
        ("app=chat", CHAT, {"app": "other"}),
        ("app == chat, tier=x", CHAT, {"app": "chat"}),
        ("app in (chat,talk),tier=x", CHAT, {"app": "chat,talk", "tier": "x"}),
        ("tier=x,app in ( talk , chat )", CHAT, {"app": "write", "tier": "x"}),
        ("app notin (a,b),tier", CHAT, {"app": "a", "tier": "x"}),
        ("app!=a", CHAT, {"app": "a"}),
        ("!canary,app", CHAT, {"app": "chat", "canary": ""}),
        ("kvpool.dev/role=decode", {"kvpool.dev/role": "decode"}, CHAT),
        ("canary=", {"canary": ""}, {"canary": "yes"}),
    ],
)
def test_a_selector_selects_what_it_says(text: str, matches: dict[str, str], fails: dict[str, str]) -> None:
    selector = parse_selector(text)
    assert selector.matches(matches)
    assert not selector.matches(fails)


@pytest.mark.parametrize("text", ["", " ", "a>1", "app in (a", "app=a,app=b", "a=b=c", "a in b", ",app=a"])
def test_a_selector_that_cannot_be_followed_is_an_error_and_selects_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_selector(text)

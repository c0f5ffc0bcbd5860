"""Dropping work whose answer nobody waits for any more."""


def comes_too_late(now_ns: int, first_token_after_ns: int, deadline_ns: int) -> bool:
    """Whether a request is better dropped now: its first token is predicted past its deadline.

    Early abort as in S-LoRA (Sheng et al., arXiv 2311.03285): work for an answer that nobody waits for makes
    the next one late too.
    """
    return now_ns + first_token_after_ns > deadline_ns

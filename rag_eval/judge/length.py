"""Prompts that are longer than the user allows are not sent."""

from collections.abc import Sequence
from typing import Any

from rag_eval.errors import OVER_LIMIT, JudgeError
from rag_eval.judge.calls import Answer, Call, Judge
from rag_eval.records import Usage


class LengthGuard:
    """A judge that refuses what is too long for it, before that costs anything."""

    def __init__(self, judge: Judge, most_tokens: int) -> None:
        self._judge = judge
        self._most = most_tokens

    def ask(self, call: Call[Any]) -> Answer:
        tokens = call.estimated_tokens
        if tokens > self._most:
            raise JudgeError(
                OVER_LIMIT,
                f"not sent: about {tokens:,.0f} tokens, and [limits] max_prompt_tokens is {self._most:,}; raise it, "
                "or set long_prompts = truncate",
            )
        return self._judge.ask(call)

    def prepare(self, deployment: str) -> None:
        self._judge.prepare(deployment)

    def key(self, call: Call[Any]) -> str:
        return self._judge.key(call)

    def usage(self) -> Usage:
        return self._judge.usage()

    @property
    def adaptations(self) -> Sequence[str]:
        return self._judge.adaptations

    def close(self) -> None:
        self._judge.close()

"""Judges that ask nobody, or refuse some calls, and a store that keeps nothing."""

from collections.abc import Sequence
from typing import Any

from rag_eval.errors import OVER_LIMIT, JudgeError, RunStoppedError, SettingsError
from rag_eval.judge.calls import Answer, Call, Judge
from rag_eval.records import Usage


class _InFront:
    """A judge that is asked as the one behind it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def adaptations(self) -> Sequence[str]:
        return self._judge.adaptations

    def prepare(self, deployment: str) -> None:
        self._judge.prepare(deployment)

    def key(self, call: Call[Any]) -> str:
        return self._judge.key(call)

    def ask(self, call: Call[Any]) -> Answer:
        return self._judge.ask(call)

    def usage(self) -> Usage:
        return self._judge.usage()

    def close(self) -> None:
        self._judge.close()


class StoredOnly(_InFront):
    """A judge that was asked before and is asked no more: what is not stored is not judged.

    Its usage is that of no request, which costs nothing where the prices are known.
    """

    adaptations: Sequence[str] = ()

    def prepare(self, deployment: str) -> None:
        raise RunStoppedError(
            "report_only",
            "--report-only: some replies are not stored; run without --report-only to request them, or use the JSON of "
            "the run as INPUT. A complete run keeps its replies only with [cache] enabled",
        )

    def ask(self, call: Call[Any]) -> Answer:
        raise AssertionError("a judge that is asked no more was asked")


class LengthGuard(_InFront):
    """Refuses what is too long for the judge behind it, before that costs anything."""

    def __init__(self, judge: Judge, most_tokens: int) -> None:
        super().__init__(judge)
        self._most = most_tokens

    def ask(self, call: Call[Any]) -> Answer:
        tokens = call.estimated_tokens
        if tokens > self._most:
            raise JudgeError(
                OVER_LIMIT,
                f"not sent: about {tokens:,.0f} tokens, and [limits] max_prompt_tokens is {self._most:,}; raise it, "
                "or set long_prompts = truncate",
            )
        return super().ask(call)


class NoJudge:
    """Stands behind metrics that never call a judge, and stores nothing."""

    adaptations: Sequence[str] = ()

    def prepare(self, deployment: str) -> None:
        """There is nothing to reach."""

    def key(self, call: Call[Any]) -> str:
        raise SettingsError(f"{call.task}: needs an LLM judge; set [judge] provider to azure or openai")

    def ask(self, call: Call[Any]) -> Answer:
        raise AssertionError(f"a call without a key was made ({call.task})")

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


class NoStore:
    """Keeps nothing and knows nothing from earlier runs."""

    def reply(self, key: str) -> str | None:
        return None

    def failure(self, key: str) -> tuple[str, str] | None:
        return None

    def put_reply(self, key: str, **paid: Any) -> None:
        """Nothing was paid for."""

    def put_failure(self, key: str, **failure: Any) -> None:
        """Nothing can fail."""

    def end(self, *, keep: bool) -> None:
        """There is no file."""

    def note(self, name: str) -> str | None:
        return None

    def put_note(self, name: str, value: str) -> None:
        """The next run finds it out again."""

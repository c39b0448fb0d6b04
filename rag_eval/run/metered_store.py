"""What the replies that a run found in its store took, which an earlier run paid for."""

from collections.abc import Mapping
from typing import Any

from rag_eval.records import TaskUsage
from rag_eval.store.reply_store import Store


class MeteredStore:
    """A store that counts the tokens of every reply that an earlier run paid for, each reply once. Safe to use as the
    store itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._own: set[str] = set()
        self._found: dict[str, tuple[str, int, int]] = {}

    def usage(self) -> Mapping[str, TaskUsage]:
        """Replies and tokens by task; without costs."""
        tasks: dict[str, TaskUsage] = {}
        for task, prompt_tokens, completion_tokens in self._found.values():
            tasks[task] = tasks.get(task, TaskUsage()) + TaskUsage(1, 0, prompt_tokens, completion_tokens)
        return tasks

    @property
    def uncounted(self) -> int:
        """How many of these replies came without a count of their tokens."""
        return sum(not prompt_tokens for _, prompt_tokens, _ in self._found.values())

    def reply(self, key: str) -> str | None:
        reply = self._store.reply(key)
        if reply is not None and key not in self._own and (paid := self._store.paid(key)):
            self._found[key] = paid
        return reply

    def failure(self, key: str) -> tuple[str, str] | None:
        return self._store.failure(key)

    def put_reply(self, key: str, **reply: Any) -> None:
        self._store.put_reply(key, **reply)
        self._own.add(key)

    def put_failure(self, key: str, **failure: Any) -> None:
        self._store.put_failure(key, **failure)

    def note(self, name: str) -> str | None:
        return self._store.note(name)

    def put_note(self, name: str, value: str) -> None:
        self._store.put_note(name, value)

    def end(self, *, keep: bool) -> None:
        self._store.end(keep=keep)

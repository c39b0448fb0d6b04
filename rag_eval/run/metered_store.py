"""What the replies behind the scores of a run took, whether this run paid for them or an earlier one did."""

from collections.abc import Mapping
from typing import Any

from rag_eval.records import TaskUsage
from rag_eval.store.reply_store import Store


class MeteredStore:
    """A store that counts the tokens of every reply that was used, each reply once. Safe to use as the store itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._paid: dict[str, tuple[str, int, int]] = {}

    def usage(self) -> Mapping[str, TaskUsage]:
        """Replies and tokens by task; without costs."""
        tasks: dict[str, TaskUsage] = {}
        for task, prompt_tokens, completion_tokens in self._paid.values():
            tasks[task] = tasks.get(task, TaskUsage()) + TaskUsage(1, 0, prompt_tokens, completion_tokens)
        return tasks

    def reply(self, key: str) -> str | None:
        reply = self._store.reply(key)
        if reply is not None and key not in self._paid and (paid := self._store.paid(key)):
            self._paid[key] = paid
        return reply

    def failure(self, key: str) -> tuple[str, str] | None:
        return self._store.failure(key)

    def put_reply(
        self, key: str, *, task: str, prompt_tokens: int, completion_tokens: int, **reply: Any
    ) -> None:
        tokens: dict[str, Any] = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
        self._store.put_reply(key, task=task, **tokens, **reply)
        self._paid[key] = task, prompt_tokens, completion_tokens

    def put_failure(self, key: str, **failure: Any) -> None:
        self._store.put_failure(key, **failure)

    def note(self, name: str) -> str | None:
        return self._store.note(name)

    def put_note(self, name: str, value: str) -> None:
        self._store.put_note(name, value)

    def end(self, *, keep: bool) -> None:
        self._store.end(keep=keep)

"""What a run took that this command did not pay for: earlier commands did, or other runs whose replies it found."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_eval.errors import StoreError
from rag_eval.records import TaskUsage, Usage
from rag_eval.store.batch_records import BatchRecords
from rag_eval.store.codec import from_plain, to_plain
from rag_eval.store.reply_store import Statement, Store
from rag_eval.store.store_format import insertion


def name_of_run(target: Path, source: str, about: str = "", asked: str = "") -> str:
    """The name of a run in its store: of its output and its input, of its rows and its judge, and of what is `asked`.

    What is paid for the same rows by the same judge is one account, whatever is asked.
    """
    return f"run {_digest(os.path.realpath(target), source)} {_digest(about)} {_digest(asked)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


class RunAccount:
    """What all commands of one run took, kept with the replies that they paid for until the run is complete.

    It is committed together with each reply, so that a killed command leaves what its stored replies took.
    """

    def __init__(
        self, store: Store, run: str, *, job: str = "", fresh: bool = False, since: float = 0.0
    ) -> None:
        """`run` is its name in the store, empty if it has none; `job` is that of the job that sends calls of its
        report in batches. With `fresh` the run begins again, and the store ignores what it has, unless an earlier
        command has begun it or the job again and was interrupted: that goes on, with `fresh` and without it. What was
        stored or taken before `since`, in seconds since 1970, is that of another run.
        """
        self._store = store
        self._account, _, self._asked = run.rpartition(" ")
        known: dict[str, Any] = json.loads(store.note(self._account) or "{}")
        self._open: dict[str, float] = known.get("open", {})
        """`fresh_since` of what was asked and has not come to its end."""
        self.fresh_since = self._open.get(self._asked, 0.0)
        """When a command with `fresh` began the run, until the run comes to its end; else 0."""
        self.continues = bool(self.fresh_since)
        """Whether an earlier command began the run again and was interrupted."""
        begun = BatchRecords(store).job(job) if job else None
        since = max(since, begun.replies_since if begun else 0.0)
        if fresh and not (since or self.fresh_since):
            self.fresh_since = store.next_moment()
        self.since = max(since, self.fresh_since)
        """What was stored before is ignored, in seconds since 1970."""
        store.ignore_before(self.since)
        same_input = f"{self._account.rpartition(' ')[0]} %"
        others = store.rows("notes", "name", "name LIKE ? AND name != ?", same_input, self._account)
        self.is_alone = not (others or self._open.keys() - {self._asked})
        """Whether nobody else needs the replies in the store: other runs of the same input, with other rows or metrics
        or by another judge, may not have come to their end. Asked now, since later the disk may be full."""
        self._now: Callable[[], Usage] = Usage
        self._before = Usage()
        self.began = max(time.time(), self.since)
        """In seconds since 1970."""
        if known and known["began"] >= self.since:
            self.began, self._before = known["began"], from_plain(Usage, known["usage"])

    def follow(self, now: Callable[[], Usage]) -> None:
        """Keep what `now` gives: what this command took so far, with the number of stored replies as `cached`.

        It is called in any thread.
        """
        self._now = now
        self._store.along = self._statements

    def total(self, usage: Usage) -> Usage:
        """That of the whole run, from that of this command: what an earlier one asked is not a cached reply of it."""
        before = self._before
        if not before.requests:
            return usage
        total = usage + before
        not_cached = {
            task: TaskUsage(0, -used.cached - min(used.cached, usage.by_task.get(task, TaskUsage()).cached))
            for task, used in before.by_task.items()
        }
        total += Usage(by_task=not_cached)
        is_known = before.cost is not None and (usage.cost is not None or not usage.requests)
        return replace(
            total,
            cached=sum(each.cached for each in total.by_task.values()),
            cost=total.cost if is_known else None,
            earlier_requests=before.requests,
            earlier_cost=before.cost or 0.0,
            by_task=dict(sorted(total.by_task.items())),
        )

    def begin(self) -> None:
        """Have the run known to others before its first reply: what it sends may be answered to another command.

        Raises StoreError.
        """
        if self._asked not in self._open:
            self._store.commit(self._statement(Usage()))

    def keep(self) -> None:
        """Commit it, requests without a reply included. A store that takes nothing has said so before."""
        with suppress(StoreError):
            self._store.commit()

    def reach_end(self) -> None:
        """The command has come to its end, with or without failures: the next one with `fresh` begins again."""
        if self.fresh_since:
            self.fresh_since = 0.0
            with suppress(StoreError):
                self._store.commit(self._statement(self._now()))

    def end(self) -> None:
        """The run is complete: the next command with its name begins another one, at no cost so far."""
        self._store.along = tuple
        if others := {asked: since for asked, since in self._open.items() if asked != self._asked}:
            self._store.commit(self._record(time.time(), Usage(), others))
        else:
            self._store.forget_note(self._account)

    def _statements(self) -> tuple[Statement, ...]:
        now = self._now()
        return (self._statement(now),) if now.requests else ()

    def _statement(self, now: Usage) -> Statement:
        usage = self._before + now if self._before.requests else now
        return self._record(self.began, usage, {**self._open, self._asked: self.fresh_since})

    def _record(self, began: float, usage: Usage, are_open: Mapping[str, float]) -> Statement:
        record = {"began": began, "usage": to_plain(usage), "open": are_open}
        return insertion("notes", (self._account, json.dumps(record)))


class MeteredStore:
    """A store that counts the tokens of every reply that another run paid for, each reply once. Safe to use as the
    store itself."""

    def __init__(self, store: Store, began: float) -> None:
        """`began` is when the run began, in seconds since 1970."""
        self._store = store
        self._began = began
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
        if reply is not None and (paid := self._store.paid(key, self._began)):
            self._found[key] = paid
        return reply

    def failure(self, key: str) -> tuple[str, str] | None:
        return self._store.failure(key)

    def put_reply(self, key: str, **reply: Any) -> None:
        self._store.put_reply(key, **reply)

    def put_failure(self, key: str, **failure: Any) -> None:
        self._store.put_failure(key, **failure)

    def note(self, name: str) -> str | None:
        return self._store.note(name)

    def put_note(self, name: str, value: str) -> None:
        self._store.put_note(name, value)

    def end(self, *, keep: bool) -> None:
        self._store.end(keep=keep)

"""What a store remembers of provider batches: the jobs that sent them, the batches, and every call in them.

A row is committed before what it stands for happens, so that a killed process leaves a trace of each batch that may
exist, and of what each of its calls may have cost.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from rag_eval.store.reply_store import Store, encodable
from rag_eval.store.store_format import insertion

LOOKS = 3
"""So many looks must miss what should be at the provider before RAG Eval believes that it is not there. With three,
one jump of the clock makes no absence believed: it covers only one of the two pauses between them."""
PAUSE = 600.0
"""Seconds between two looks that count. What a provider has just made is seen everywhere within seconds, sometimes
within minutes; a gateway that is being deployed answers 404 for minutes. A batch takes up to a day, so 20 minutes more
cost little, and a batch that is paid twice costs its price."""


def job_name(target: Path) -> str:
    """The name of the job whose results make the report at `target`."""
    return hashlib.sha256(os.path.realpath(target).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A report that is being judged by batches, over as many commands as it takes."""

    id: str
    replies_since: float = 0.0
    """Replies stored earlier are ignored; in seconds since 1970. 0 for all."""
    failures_since: float = 0.0
    requests: int = 0
    """The number of requests that were sent online."""
    spent: float = 0.0
    """What they cost at most, in the currency of the prices."""
    online: Mapping[str, tuple[int, int, float | None]] = field(default_factory=dict)
    """By task, what ended commands used online: prompt tokens, completion tokens and cost."""
    uncounted: int = 0
    """The number of replies that these had without a count of their tokens."""
    uncounted_cost: float = 0.0
    """The most that these can have cost; it is part of `online`."""
    most_tokens: int = 0
    """The number of tokens that the provider lets wait in its queue, as far as refusals show it; 0 if unknown."""
    batches: int = 0
    """The number of batches that were submitted."""
    models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By deployment, the models that answered, by their own names."""


class BatchState(StrEnum):
    PLANNED = "planned"
    UPLOADED = "uploaded"
    CREATING = "creating"
    """The request to create it may have been sent."""
    MISSING = "missing"
    """The same, and the provider did not list it."""
    SUBMITTED = "submitted"
    ENDED = "ended"
    """Its results are to be stored, as far as they are not."""
    STORED = "stored"
    """Its results are stored; its files are to be deleted."""
    DUPLICATE = "duplicate"
    """The provider made it besides the one that it was asked for: it is to be cancelled, and its files deleted."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    token: str
    """Our own name for it, which is sent along in its metadata."""
    job: str
    place: str
    """The endpoint that has it."""
    state: BatchState = BatchState.PLANNED
    id: str = ""
    """The provider's name for it."""
    files: tuple[str, ...] = ()
    """Names of its files at the provider: the input first, then those of the results."""
    requests: int = 0
    tokens: int = 0
    """The most that its requests can have, prompts and replies together."""
    submitted: float = 0.0
    """In seconds since 1970."""
    due: float = 0.0
    """When it ends at the latest; on Azure, when it should have ended."""
    misses: int = 0
    """The number of looks, since it is in its state, that did not find at the provider what should be there."""
    missed_at: float = 0.0
    """When the last of them was, in seconds since 1970."""

    def missed(self, now: float) -> "BatchRecord":
        """After one more such look. It counts only a PAUSE after the last one that did.

        If the clock was set back in between, the pause begins again, since its length is not known.
        """
        if not self.misses or now >= self.next_look:
            return replace(self, misses=self.misses + 1, missed_at=now)
        return replace(self, missed_at=min(now, self.missed_at))

    @property
    def is_given_up(self) -> bool:
        """Whether it is believed that the provider does not have what was looked for."""
        return self.misses >= LOOKS

    @property
    def next_look(self) -> float:
        """From when on a look counts, in seconds since 1970: a whole minute, as it is announced."""
        return 60 * math.ceil((self.missed_at + PAUSE) / 60)


class CallState(StrEnum):
    SENT = "sent"
    """In a batch that has not ended. The tokens are the most that it can take."""
    ANSWERED = "answered"
    """`result` is the line of the batch's output or error file."""
    UNCOUNTED = "uncounted"
    """The same, without a count of its tokens: they are still the most that it can have taken."""
    UNANSWERED = "unanswered"
    """The batch ended before the call's turn. `result` is a code. It costs nothing."""


ANSWERED = (CallState.ANSWERED, CallState.UNCOUNTED)


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One attempt at a call."""

    key: str
    token: str
    """The batch that it is in."""
    job: str
    task: str
    model: str
    state: CallState = CallState.SENT
    result: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    stored_at: float = 0.0


class BatchRecords:
    """The rows of one store about batches. Safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def job(self, job: str) -> JobRecord | None:
        rows = self._store.rows("jobs", "value", "id = ?", job)
        return JobRecord(**json.loads(rows[0][0])) if rows else None

    def put_job(self, job: JobRecord) -> None:
        self._store.commit(insertion("jobs", (job.id, json.dumps(asdict(job)), time.time())))

    def batches(self) -> list[BatchRecord]:
        """All of the store, whichever job sent them, the earliest first."""
        rows = self._store.rows("batches", "token, job, place, state, value")
        found = [
            BatchRecord(token, job, place, BatchState(state), **_with_tuples(json.loads(value)))
            for token, job, place, state, value in rows
        ]
        return sorted(found, key=lambda batch: batch.submitted)

    def put_batch(self, batch: BatchRecord, calls: Iterable[CallRecord] = ()) -> None:
        """Commit a batch together with its calls."""
        own = {name: getattr(batch, name) for name in _OWN}
        row = (batch.token, batch.job, batch.place, batch.state, json.dumps(own), time.time())
        self._store.commit(insertion("batches", row), *map(self._insertion, calls))

    def _insertion(self, call: CallRecord) -> tuple[str, tuple[str | int | float | bytes, ...]]:
        return insertion(
            "batch_calls",
            (
                f"{call.key}/{call.token}",
                call.token,
                call.job,
                call.task,
                call.model,
                str(call.state),
                encodable(call.result),
                call.prompt_tokens,
                call.completion_tokens,
                call.stored_at or self._store.now(),
            ),
        )

    def put_calls(self, calls: Iterable[CallRecord]) -> None:
        self._store.commit(*map(self._insertion, calls))

    def forget_batch(self, token: str) -> None:
        """Remove a batch. Its calls stay, as what they cost does."""
        self._store.commit(("DELETE FROM batches WHERE token = ?", (token,)))

    def withdraw(self, token: str) -> None:
        """Remove a batch that does not exist at the provider, with its calls."""
        self._store.commit(
            ("DELETE FROM batches WHERE token = ?", (token,)),
            ("DELETE FROM batch_calls WHERE token = ?", (token,)),
        )

    def withdraw_lost(self) -> None:
        """Remove the calls that wait for a batch of which nothing is known any more, as after damage."""
        self._store.commit(
            (
                "DELETE FROM batch_calls WHERE state = ? AND token NOT IN (SELECT token FROM batches)",
                (CallState.SENT,),
            )
        )

    def attempts(self, key: str) -> list[CallRecord]:
        """All attempts at a call, the earliest first. '0' is the character after '/'."""
        found = self._calls("id >= ? AND id < ?", f"{key}/", f"{key}0")
        return sorted(found, key=lambda call: call.stored_at)

    def calls_of_batch(self, token: str) -> dict[str, CallRecord]:
        """By key, without their results."""
        return {call.key: call for call in self._calls("token = ?", token, result="''")}

    def calls_of_job(self, job: str) -> list[CallRecord]:
        """Without their results."""
        return self._calls("job = ?", job, result="''")

    def sent(self) -> set[str]:
        """Keys of the calls in open batches, of any job."""
        return {call.key for call in self._calls("state = ?", CallState.SENT)}

    def _is_unread(self, call: CallRecord) -> bool:
        return self._store.reply(call.key) is None and self._store.failure(call.key) is None

    def end_job(self, job: str) -> None:
        """Forget a job and its calls, but no answer that nobody has read yet: it is paid for."""
        answers = self._calls("job = ? AND state IN (?, ?)", job, *ANSWERED)
        unread = filter(self._is_unread, answers)
        self._store.commit(
            *(self._insertion(replace(call, job="")) for call in unread),
            ("DELETE FROM jobs WHERE id = ?", (job,)),
            ("DELETE FROM batch_calls WHERE job = ?", (job,)),
        )

    def _calls(self, condition: str, *arguments: str, result: str = "result") -> list[CallRecord]:
        columns = f"id, token, job, task, model, state, {result}, prompt_tokens, completion_tokens, stored_at"
        rows = self._store.rows("batch_calls", columns, condition, *arguments)
        return [_call(str(name).partition("/")[0], *others) for name, *others in rows]


_OWN = ("id", "files", "requests", "tokens", "submitted", "due", "misses", "missed_at")
"""What the value of a batch's row holds."""


def _call(key: str, token: str, job: str, task: str, model: str, state: str, *others: Any) -> CallRecord:
    return CallRecord(key, token, job, task, model, CallState(state), *others)


def _with_tuples(value: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(each) if isinstance(each, list) else each for name, each in value.items()}

"""The batches of an endpoint, from the plan of each to the deletion of its files.

Every step is committed before and after the request that makes it, so that the next command finds out what a killed
one has done.

Nothing is requested again, and nothing is deleted at the provider, because it is missing there once: a batch, a file or
a result counts as lost after several looks over a minimum time, in this command and in later ones.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat

from rag_eval.errors import OutputError, RunStoppedError
from rag_eval.judge.batches.client import Batch, BatchClient, QueueFullError, UncertainError
from rag_eval.judge.batches.lines import NOT_MADE, Result, ResultLines
from rag_eval.judge.batches.outbox import Outbox, Parcel
from rag_eval.judge.outcomes import Completion
from rag_eval.store.batch_records import (
    ANSWERED,
    LOOKS,
    PAUSE,
    BatchRecord,
    BatchRecords,
    BatchState,
    CallRecord,
    CallState,
    JobRecord,
)

_DAY = 24 * 60 * 60.0
_CHUNK = 500
"""The number of results that are committed together."""
_MOST_BYTES = 100_000
"""The most that results are expected to be on average …"""
_MORE_BYTES = 1_000_000_000
"""… and so much more, of whatever else is among them. A longer file is read no further."""
_CODES = {"expired": "batch_expired", "cancelled": "batch_cancelled", "failed": NOT_MADE}
"""By the status of a batch that has ended, the code of calls without a result."""
_ENDED = frozenset({"completed", *_CODES})
_UNCERTAIN = frozenset({BatchState.CREATING, BatchState.MISSING})
_TRIES = 3
"""How often a command asks whether a file is ready, some seconds apart."""


class BatchQueue:
    """All batches that one store knows of one endpoint, whichever report they are for."""

    def __init__(
        self,
        client: BatchClient,
        records: BatchRecords,
        place: str,
        *,
        announce: Callable[[str], None],
        rest: Callable[[float], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`announce` gets sentences for the user; `clock` gives seconds since 1970."""
        self._client = client
        self._records = records
        self._place = place
        self._announce = announce
        self._rest = rest
        self._clock = clock
        self._models: dict[str, set[str]] = {}
        self._said: set[str] = set()

    def batches(self) -> list[BatchRecord]:
        """Those that have not ended, the earliest first."""
        return [batch for batch in self._records.batches() if batch.place == self._place]

    def collect(self, job: JobRecord) -> JobRecord:
        """Take in what has ended; the job, with what was learned. Raises RunStoppedError if a batch was refused."""
        refused: list[RunStoppedError] = []
        self._records.withdraw_lost()
        self._models = {model: set(names) for model, names in job.models.items()}
        for batch in self.batches():
            try:
                job = self._advance(batch, job)
            except RunStoppedError as error:
                if error.code not in ("batch_refused", "batch_stopped"):
                    raise
                refused.append(error)
        models = {model: sorted(names) for model, names in self._models.items()}
        if models != job.models:
            job = replace(job, models=models)
            self._records.put_job(job)
        if refused:
            raise refused[0]
        return job

    def submit(self, outbox: Outbox, job: JobRecord) -> JobRecord:
        """Send what was collected, as far as the provider's queue has room."""
        for parcel in outbox.parcels:
            waiting = sum(map(_tokens_in_queue, self.batches()))
            if waiting and job.most_tokens and waiting + parcel.tokens > job.most_tokens:
                break
            job = replace(job, batches=job.batches + 1)
            self._records.put_job(job)
            before = job.most_tokens
            job = self._create(self._upload(parcel, job.id), job)
            if job.most_tokens != before:
                break
        return job

    def cancel(self, job: JobRecord) -> JobRecord:
        """Ask the provider to end the job's batches, and take in what is finished."""
        for batch in [each for each in self.batches() if each.job == job.id]:
            if batch.state in (BatchState.PLANNED, BatchState.UPLOADED):
                self._give_up(batch)
            elif batch.state in _UNCERTAIN:
                self._look_for(batch)
        for batch in self.batches():
            if batch.job == job.id and batch.state is BatchState.SUBMITTED:
                self._client.cancel(batch.id)
        return self.collect(job)

    # One batch

    def _advance(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        if batch.state is BatchState.PLANNED:
            self._records.withdraw(batch.token)
        elif batch.state is BatchState.UPLOADED:
            return self._create(batch, job)
        elif batch.state is BatchState.STORED:
            self._clear_away(batch)
        elif batch.state is BatchState.DUPLICATE:
            self._drop(batch, self._client.batch(batch.id))
        else:
            known = self._look_for(batch) if batch.state in _UNCERTAIN else batch
            return self._poll(known, job) if known else job
        return job

    def _upload(self, parcel: Parcel, job: str) -> BatchRecord:
        token = secrets.token_hex(16)
        planned = BatchRecord(
            token, job, self._place, requests=len(parcel.calls), tokens=parcel.tokens, submitted=self._clock()
        )
        self._records.put_batch(planned, (replace(call, token=token) for call in parcel.calls))
        try:
            file = self._client.upload(parcel.file, parcel.size)
        except RunStoppedError:
            self._records.withdraw(token)
            raise
        return self._put(planned, state=BatchState.UPLOADED, files=(file,))

    def _create(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        """From the uploaded file. If that is not ready yet, or nothing is certain, the next command continues."""
        try:
            if not self._is_ready(batch):
                return job
            batch = self._put(batch, state=BatchState.CREATING)
            self._submitted(batch, self._client.create(batch.files[0], batch.token))
        except UncertainError as doubt:
            if not self._look_for(batch):
                self._say(f"The batch was not confirmed: {doubt}.")
        except QueueFullError:
            return self._put_off(batch, job)
        except RunStoppedError as error:
            if batch.state is BatchState.CREATING or error.code == "batch_refused":
                self._give_up(batch)
            raise
        return job

    def _is_ready(self, batch: BatchRecord) -> bool:
        for number in range(_TRIES):
            if number:
                self._rest(2.0**number)
            is_ready = self._client.is_ready(batch.files[0])
            if is_ready:
                return True
        what = f"The provider does not find {batch.files[0]}, the file of {_calls(batch)}"
        if is_ready is None and self._is_gone(batch, what):
            raise RunStoppedError(
                "batch_refused",
                "no batch was made of an uploaded file, because the provider does not find it; run the same command "
                "again to send a new one or, if the endpoint offers no batches, remove --batch",
            )
        return False

    def _look_for(self, batch: BatchRecord) -> BatchRecord | None:
        """A batch that may have been created, if it was."""
        found = self._client.find(batch.token)
        if found:
            return self._submitted(batch, found)
        batch = self._put(batch, state=BatchState.MISSING)
        if self._is_gone(
            batch, f"The provider may have a new batch of {_calls(batch)}, but does not list it"
        ):
            self._give_up(batch)
        return None

    def _submitted(self, batch: BatchRecord, created: Batch) -> BatchRecord:
        due = created.expires_at or batch.submitted + _DAY
        batch = self._put(batch, state=BatchState.SUBMITTED, id=created.id, due=due)
        for each in self._client.duplicates(batch.token, batch.id):
            what = f"Batch {batch.id}: the provider made it twice"
            self._announce(
                f"{what}; the other one, {each.id}, is cancelled. Calls that it answers nevertheless may be billed, "
                "and are not in the reported cost."
            )
            token = f"{batch.token} {each.id}"
            duplicate = replace(
                batch, token=token, state=BatchState.DUPLICATE, id=each.id, files=(), requests=0, tokens=0
            )
            self._records.put_batch(duplicate)
            with suppress(RunStoppedError):  # or else in the next command
                self._drop(duplicate, each)
        return batch

    def _drop(self, duplicate: BatchRecord, found: Batch | None) -> None:
        """Cancel a batch that the provider made besides another, and delete its results once it has ended."""
        if found is None:
            if duplicate.missed(self._clock()).is_given_up:
                self._records.forget_batch(duplicate.token)
            else:
                self._records.put_batch(duplicate.missed(self._clock()))
        elif found.status in _ENDED:
            self._clear_away(self._put(duplicate, files=found.files))
        elif found.status != "cancelling":
            self._client.cancel(duplicate.id)

    def _poll(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        found = self._client.batch(batch.id) or self._client.find(batch.token, batch.id)
        is_awaited = batch.state is BatchState.SUBMITTED
        if found is None:
            if not is_awaited:
                self._store(batch, Batch(batch.id, "completed"))  # its files may be there nevertheless
            elif self._is_gone(batch, f"Batch {batch.id}: the provider does not find it with this key"):
                self._end(batch, _open(self._records.calls_of_batch(batch.token)), "batch_incomplete")
            return job
        if batch.misses and is_awaited:
            batch = self._put(batch, misses=0)
        if found.did_nothing and is_awaited:
            return self._failed(batch, found, job)
        if found.status in _ENDED:
            self._store(batch, found)
        return job

    def _failed(self, batch: BatchRecord, found: Batch, job: JobRecord) -> JobRecord:
        if found.is_queue_full:
            return self._put_off(batch, job)
        self._give_up(batch)
        reason = self._client.masked(found.problem) or "no reason given"
        raise RunStoppedError(
            "batch_refused",
            f"batch {batch.id} was refused ({reason}); nothing in it was judged or billed. Remove the cause and "
            "run the same command again",
        )

    def _put_off(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        """The provider's queue is full: send less at a time, or later."""
        others = sum(_tokens_in_queue(each) for each in self.batches() if each.token != batch.token)
        self._give_up(batch)
        if not others and batch.requests == 1:
            raise RunStoppedError(
                "batch_refused",
                "the provider's queue has no room for even one call; raise the deployment's quota of enqueued tokens",
            )
        job = replace(job, most_tokens=max(1, others, batch.tokens // 2))
        self._records.put_job(job)
        self._announce(
            f"The provider's quota of enqueued tokens is used up; at most about {job.most_tokens:,} tokens are "
            "submitted at a time."
        )
        return job

    def _give_up(self, batch: BatchRecord) -> None:
        """A batch that does not exist, or did nothing: its calls are requested again."""
        with suppress(RunStoppedError):
            for file in batch.files:
                self._client.delete(file)
        self._records.withdraw(batch.token)

    def _is_gone(self, batch: BatchRecord, what: str) -> bool:
        """After a look that missed something, as `what` says: whether it counts as lost now. Either is announced."""
        batch = batch.missed(self._clock())
        self._records.put_batch(batch)
        if batch.is_given_up:
            looks = f"{batch.misses} looks, at least {PAUSE / 60:g} minutes apart"
            self._say(f"{what} ({looks}); calls without a result are requested again.")
        else:
            moment = time.strftime("%H:%M", time.localtime(batch.next_look))
            self._say(
                f"{what} (look {batch.misses} of {LOOKS}). Nothing is deleted or requested again yet; for the next "
                f"look, run the same command at {moment} or later."
            )
        return batch.is_given_up

    def _say(self, sentence: str) -> None:
        """Once in a command, however often it looks."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._announce(sentence)

    # Results

    def _store(self, batch: BatchRecord, found: Batch) -> None:
        """Store all results that are there as they are. Unless some are missing, the batch is done then."""
        if found.status == "cancelled":
            self._say(f"Batch {batch.id} was cancelled; its finished replies are kept.")
        batch = self._put(
            batch, state=BatchState.ENDED, files=tuple(dict.fromkeys((*batch.files, *found.files)))
        )
        calls = self._records.calls_of_batch(batch.token)
        number = len(_open(calls))
        refused = self._read(batch, calls)
        missing = _open(calls)
        if batch.misses and len(missing) < number:
            batch = self._put(batch, misses=0)
        what = f"Batch {batch.id}: {len(missing):,} of {batch.requests:,} results are missing"
        if not missing or _is_all(found, calls) or self._is_gone(batch, what):
            self._end(batch, missing, _CODES.get(found.status, "batch_incomplete"))
        if refused:
            message = self._client.masked(getattr(refused[0].outcome, "message", ""))
            raise RunStoppedError(
                "batch_stopped",
                f"{len(refused)} calls of batch {batch.id} were refused: {message}; run the same command "
                "again to request them again",
            )

    def _read(self, batch: BatchRecord, calls: dict[str, CallRecord]) -> Sequence[Result]:
        """Store what its files hold, and mark it in `calls`. Returns the results after which no call can succeed.

        If several lines are for one call, the first completion counts, or else the first line.
        """
        earlier = set(calls).difference(call.key for call in _open(calls))
        completed: set[str] = set()
        refused: dict[str, Result] = {}
        strange = 0
        chunk: list[CallRecord] = []
        for result in self._results(batch, calls):
            call = calls.get(result.key) if result else None
            if result is None or call is None:
                strange += 1
                continue
            if call.key in earlier:
                continue
            is_better = isinstance(result.outcome, Completion) and call.key not in completed
            if call.state is not CallState.SENT and not is_better:
                strange += 1
                continue
            refused.pop(call.key, None)
            if result.unanswered == NOT_MADE:
                refused[call.key] = result
            if isinstance(result.outcome, Completion):
                completed.add(call.key)
                if result.outcome.model:
                    self._models.setdefault(call.model, set()).add(result.outcome.model)
            stored = _with_result(call, result, self._clock())
            calls[call.key] = replace(stored, result="")  # they are many
            chunk.append(stored)
            if len(chunk) == _CHUNK:
                self._records.put_calls(chunk)
                chunk = []
        self._records.put_calls(chunk)
        if strange:
            lines = "1 line matches" if strange == 1 else f"{strange:,} lines match"
            self._say(f"Batch {batch.id}: {lines} no open call; ignored.")
        return [*refused.values()]

    def _results(self, batch: BatchRecord, calls: Container[str]) -> Iterator[Result | None]:
        """None for each line that is not a result of these calls."""
        most = _MOST_BYTES * batch.requests + _MORE_BYTES
        for name in batch.files[1:]:
            with tempfile.TemporaryFile() as file:
                lines = ResultLines(file, calls)
                try:
                    if self._client.download(name, lines, most):
                        yield from lines.results()
                        yield from repeat(None, lines.others)
                except OSError as error:
                    raise OutputError(
                        f"{tempfile.gettempdir()}: the results of a batch cannot be written "
                        f"({error.strerror or error}); free some space, or set TMPDIR to another folder"
                    ) from error

    def _end(self, batch: BatchRecord, missing: Iterable[CallRecord], code: str) -> None:
        """Of the calls that have no result, none is waited for any more."""
        now = self._clock()
        stored = replace(batch, state=BatchState.STORED)
        self._records.put_batch(stored, [_unanswered(call, code, now) for call in missing])
        self._clear_away(stored)

    def _clear_away(self, batch: BatchRecord) -> None:
        gone = [self._client.delete(file) for file in batch.files]
        if all(gone):
            self._records.forget_batch(batch.token)

    def _put(self, batch: BatchRecord, **changes: object) -> BatchRecord:
        if changes.get("state", batch.state) is not batch.state:
            changes["misses"] = 0
        changed = replace(batch, **changes)  # type: ignore[arg-type]
        self._records.put_batch(changed)
        return changed


def _calls(batch: BatchRecord) -> str:
    return "1 call" if batch.requests == 1 else f"{batch.requests:,} calls"


def _tokens_in_queue(batch: BatchRecord) -> int:
    return 0 if batch.state in (BatchState.ENDED, BatchState.STORED) else batch.tokens


def _open(calls: Mapping[str, CallRecord]) -> list[CallRecord]:
    return [call for call in calls.values() if call.state is CallState.SENT]


def _is_all(found: Batch, calls: Mapping[str, CallRecord]) -> bool:
    """Whether the provider counts as many results as there are. When it has completed a batch, all calls have one."""
    if found.status == "completed" or found.completed is None:
        return False
    return found.completed + found.failed == sum(call.state in ANSWERED for call in calls.values())


def _with_result(call: CallRecord, result: Result, now: float) -> CallRecord:
    if result.unanswered:
        return _unanswered(call, result.unanswered, now)
    tokens = result.outcome.tokens
    found = replace(call, state=CallState.UNCOUNTED, result=result.text, stored_at=now)
    if not tokens.are_counted:
        return found
    return replace(
        found,
        state=CallState.ANSWERED,
        prompt_tokens=tokens.prompt,
        completion_tokens=tokens.completion,
    )


def _unanswered(call: CallRecord, code: str, now: float) -> CallRecord:
    return replace(
        call,
        state=CallState.UNANSWERED,
        result=code,
        prompt_tokens=0,
        completion_tokens=0,
        stored_at=now,
    )

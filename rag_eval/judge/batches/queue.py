"""The batches of an endpoint, from the plan of each to the deletion of its files.

Every step is committed before and after the request that makes it, so that the next command finds out what a killed
one has done.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from rag_eval.errors import OutputError, RunStoppedError
from rag_eval.judge.batches.client import Batch, BatchClient, QueueFullError, UncertainError
from rag_eval.judge.batches.lines import NOT_MADE, Result, results
from rag_eval.judge.batches.outbox import Outbox, Parcel
from rag_eval.judge.outcomes import Completion
from rag_eval.store.batch_records import (
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
_MORE_BYTES = 10_000_000
"""… and so much more, for a small batch. A longer file is not read."""
_CODES = {"expired": "batch_expired", "cancelled": "batch_cancelled", "failed": NOT_MADE}
"""By the status of a batch that has ended, the code of calls without a result."""
_ENDED = frozenset({"completed", *_CODES})
_LOOKS = 3
"""How often a command looks whether a file is ready, some seconds apart."""


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
            waiting = sum(batch.tokens for batch in self.batches())
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
            elif batch.state in (BatchState.CREATING, BatchState.MISSING):
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
        elif batch.state in (BatchState.CREATING, BatchState.MISSING):
            self._look_for(batch)
        elif batch.state is BatchState.STORED:
            self._clear_away(batch)
        if batch.state not in (BatchState.SUBMITTED, BatchState.CREATING, BatchState.MISSING):
            return job
        known = next((each for each in self.batches() if each.token == batch.token), None)
        return self._poll(known, job) if known and known.state is BatchState.SUBMITTED else job

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
        """From the uploaded file. If that is not ready yet, or nothing is certain, the next command goes on."""
        try:
            if not self._is_ready(batch):
                return job
            batch = self._put(batch, state=BatchState.CREATING)
            self._submitted(batch, self._client.create(batch.files[0], batch.token))
        except UncertainError:
            self._look_for(batch)
        except QueueFullError:
            return self._put_off(batch, job)
        except RunStoppedError:
            self._give_up(batch)
            raise
        return job

    def _is_ready(self, batch: BatchRecord) -> bool:
        for look in range(_LOOKS):
            if look:
                self._rest(2.0**look)
            if self._client.is_ready(batch.files[0]):
                return True
        return False

    def _look_for(self, batch: BatchRecord) -> None:
        """A batch that may have been created. If it is not listed twice, by two commands, it was not."""
        found = self._client.find(batch.token)
        if found:
            self._submitted(batch, found)
        elif batch.state is BatchState.MISSING:
            self._give_up(batch)
        else:
            self._put(batch, state=BatchState.MISSING)

    def _submitted(self, batch: BatchRecord, created: Batch) -> None:
        due = created.expires_at or batch.submitted + _DAY
        self._put(batch, state=BatchState.SUBMITTED, id=created.id, due=due)

    def _poll(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        found = self._client.batch(batch.id)
        if found is None:
            self._announce(
                f"Batch {batch.id} no longer exists; its calls without a result are requested again."
            )
            self._store(batch, (), "batch_incomplete")
            return job
        if found.status not in _ENDED:
            return job
        if found.status == "failed" and not found.files:
            if found.is_queue_full:
                return self._put_off(batch, job)
            self._give_up(batch)
            reason = self._client.masked(found.problem) or "no reason given"
            raise RunStoppedError(
                "batch_refused",
                f"batch {batch.id} was refused ({reason}); nothing in it was judged or billed. Remove the cause and "
                "run the same command again",
            )
        if found.status == "cancelled":
            self._announce(f"Batch {batch.id} was cancelled; its finished replies are kept.")
        self._store(batch, found.files, _CODES.get(found.status, "batch_incomplete"))
        return job

    def _put_off(self, batch: BatchRecord, job: JobRecord) -> JobRecord:
        """The provider's queue is full: send less at a time, or later."""
        others = sum(each.tokens for each in self.batches() if each.token != batch.token)
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

    # Results

    def _store(self, batch: BatchRecord, files: Iterable[str], code: str) -> None:
        """Store all results of a batch that has ended as they are, then delete them at the provider."""
        waiting = self._records.waiting(batch.token)
        stopping: list[Result] = []
        strange = 0
        most = _MOST_BYTES * batch.requests + _MORE_BYTES
        batch = self._put(batch, files=(batch.files[0], *files) if batch.files else tuple(files))
        chunk: list[CallRecord] = []
        for result in self._results(batch.files[1:], most):
            call = waiting.pop(result.key, None) if result else None
            if call is None or result is None:
                strange += 1
                continue
            if result.unanswered == NOT_MADE:
                stopping.append(result)
            if isinstance(result.outcome, Completion) and result.outcome.model:
                self._models.setdefault(call.model, set()).add(result.outcome.model)
            chunk.append(_with_result(call, result, self._clock()))
            if len(chunk) == _CHUNK:
                self._records.put_calls(chunk)
                chunk = []
        chunk += [_unanswered(call, code, self._clock()) for call in waiting.values()]
        stored = replace(batch, state=BatchState.STORED)
        self._records.put_batch(stored, chunk)
        if strange:
            lines = "1 line matches" if strange == 1 else f"{strange:,} lines match"
            self._announce(f"Batch {batch.id}: {lines} no open call; ignored.")
        self._clear_away(stored)
        if stopping:
            message = self._client.masked(getattr(stopping[0].outcome, "message", ""))
            raise RunStoppedError(
                "batch_stopped",
                f"{len(stopping)} calls of batch {batch.id} were refused: {message}; run the same command "
                "again to request them again",
            )

    def _results(self, files: Iterable[str], most: int) -> Iterator[Result | None]:
        for name in files:
            with tempfile.TemporaryFile() as file:
                try:
                    is_there = self._client.download(name, file, most)
                except OSError as error:
                    raise OutputError(
                        f"{tempfile.gettempdir()}: the results of a batch cannot be written "
                        f"({error.strerror or error}); free some space, or set TMPDIR to another folder"
                    ) from error
                if is_there:
                    yield from results(file)
                else:
                    self._announce(
                        f"File {name} no longer exists at the provider; its calls are requested again."
                    )

    def _clear_away(self, batch: BatchRecord) -> None:
        gone = [self._client.delete(file) for file in batch.files]
        if all(gone):
            self._records.forget_batch(batch.token)

    def _put(self, batch: BatchRecord, **changes: object) -> BatchRecord:
        changed = replace(batch, **changes)  # type: ignore[arg-type]
        self._records.put_batch(changed)
        return changed


def _with_result(call: CallRecord, result: Result, now: float) -> CallRecord:
    if result.unanswered:
        return _unanswered(call, result.unanswered, now)
    tokens = result.outcome.tokens
    return replace(
        call,
        state=CallState.ANSWERED,
        result=result.text,
        prompt_tokens=tokens.prompt,
        completion_tokens=tokens.completion,
        stored_at=now,
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

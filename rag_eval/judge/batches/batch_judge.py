"""The judge of a run whose calls go in batches: it reads the results that there are, and collects all other calls."""

import threading
from collections.abc import Sequence
from typing import Any

from rag_eval.errors import NOT_RUN, JudgeError, RunStoppedError
from rag_eval.judge.attempt import Attempt
from rag_eval.judge.batches.lines import NOT_MADE, is_unanswered, read_result, unanswered
from rag_eval.judge.batches.outbox import Outbox
from rag_eval.judge.calls import Answer, Call, PendingError
from rag_eval.judge.outcomes import Action, Completion, Fault
from rag_eval.judge.transport import Transport
from rag_eval.records import Usage
from rag_eval.store.batch_records import BatchRecords, CallRecord, CallState, JobRecord
from rag_eval.store.reply_store import Store

_SETTLED = "settled"


class BatchJudge:
    """Answers calls from the results of batches. A result is read by the rules of any other answer, and only here:
    no other place knows what the call asks for.
    """

    def __init__(
        self,
        transport: Transport,
        store: Store,
        job: JobRecord,
        *,
        outbox: Outbox | None = None,
        can_ask_online: bool,
        stopped: RunStoppedError | None = None,
    ) -> None:
        """Results and failures that the job ignores are ignored here as well.

        Calls without a result go into `outbox`; without one, they are asked online, unless the job has `stopped`.
        `can_ask_online` says whether the endpoint answers single requests at all.
        """
        self._transport = transport
        self._store = store
        self._records = BatchRecords(store)
        self._job = job
        self._outbox = outbox
        self._can_ask_online = can_ask_online
        self._stopped = stopped
        self._lock = threading.Lock()

    def prepare(self, deployment: str) -> None:
        """Where single requests are answered, one settles the parameters; else the first calls of a batch do."""
        if self._stopped:
            raise self._stopped
        if self._can_ask_online and not self._is_settled(deployment):
            self._transport.prepare(deployment)
            self._store.put_note(self._settled(deployment), "yes")

    def key(self, call: Call[Any]) -> str:
        key = self._transport.key(call)
        if self._outbox:
            self._outbox.learn(key, call, call.deployment or self._transport.endpoint.model)
        return key

    def ask(self, call: Call[Any]) -> Answer:
        with self._lock:  # a key and the results under it are of one dialect
            key = self.key(call)
            attempts = self._records.attempts(key)
            sent = {each.token for each in attempts if each.state is CallState.SENT}
            if self._outbox and sent:
                self._outbox.awaited |= sent
                raise PendingError
            found, outcomes = self._replayed(call, list(filter(self._counts, attempts)))
            is_same = self.key(call) == key
        if is_same and any(map(_shows_that_parameters_fit, outcomes)):
            self._settle(call.deployment)
        if isinstance(found, Answer):
            return found
        if self._outbox and not is_same:
            self._outbox.is_outdated = True  # the first results have shown what the endpoint does not take
            raise PendingError
        return self._send(key, found, call)

    def usage(self) -> Usage:
        return self._transport.usage()

    @property
    def adaptations(self) -> Sequence[str]:
        return self._transport.adaptations

    def close(self) -> None:
        """The connection is still needed when all calls are collected."""
        if self._outbox is None:
            self._transport.close()

    def _send(self, key: str, attempt: Attempt, call: Call[Any]) -> Answer:
        if self._outbox is None:
            if self._can_ask_online:
                return self._transport.continue_with(attempt)
            raise JudgeError(NOT_RUN, "not judged: no batch has a result for this call")
        self._outbox.add(key, attempt, is_settled=self._is_settled(call.deployment))
        raise PendingError

    def _replayed(
        self, call: Call[Any], attempts: Sequence[CallRecord]
    ) -> tuple[Answer | Attempt, Sequence[Completion | Fault]]:
        """What the attempts come to, and their outcomes. Failures that are to be retried do not count."""
        outcomes = [_outcome(each) for each in attempts]
        try:
            return self._transport.replay(call, outcomes), outcomes
        except JudgeError:
            later = [_outcome(each) for each in attempts if each.stored_at >= self._job.failures_since]
            if len(later) == len(outcomes):
                raise
            return self._transport.replay(call, later), later

    def _counts(self, call: CallRecord) -> bool:
        return (
            call.state is not CallState.SENT
            and call.stored_at >= self._job.replies_since
            and call.result != NOT_MADE
        )

    def _is_settled(self, deployment: str) -> bool:
        return self._store.note(self._settled(deployment)) is not None

    def _settle(self, deployment: str) -> None:
        """By results of a batch: what was held back for them can be sent."""
        if self._is_settled(deployment):
            return
        self._store.put_note(self._settled(deployment), "yes")
        if self._outbox:
            self._outbox.is_outdated = True

    def _settled(self, deployment: str) -> str:
        return f"{_SETTLED} {self._transport.note_name(deployment or self._transport.endpoint.model)}"


def _outcome(call: CallRecord) -> Completion | Fault:
    if call.state is CallState.UNANSWERED:
        return unanswered(call.result)
    result = read_result(call.result)
    return result.outcome if result else unanswered("batch_incomplete")


def _shows_that_parameters_fit(outcome: Completion | Fault) -> bool:
    return isinstance(outcome, Completion) or (
        outcome.action is not Action.ADAPT and not is_unanswered(outcome.code)
    )

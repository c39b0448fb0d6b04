"""A run whose calls go in batches, over as many commands as it takes.

Each command takes in what has ended, evaluates all rows as far as there are replies, and sends what they need next.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rag_eval.configuration.effective import endpoint_of, prices_of
from rag_eval.configuration.settings import Settings
from rag_eval.errors import LockedError, RunStoppedError, SettingsError
from rag_eval.judge.batches.batch_judge import BatchJudge
from rag_eval.judge.batches.client import BatchClient
from rag_eval.judge.batches.outbox import BatchLimits, Outbox
from rag_eval.judge.batches.queue import BatchQueue
from rag_eval.judge.budget import Budget, Price
from rag_eval.judge.transport import Transport
from rag_eval.records import Row, RunFacts, TaskUsage, Usage
from rag_eval.rubric import EvaluationRubric
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.run.metered_store import RunAccount
from rag_eval.run.pairs import PairJudge
from rag_eval.store.batch_records import (
    ANSWERED,
    BatchRecord,
    BatchRecords,
    BatchState,
    CallRecord,
    CallState,
    JobRecord,
    job_name,
)
from rag_eval.store.lock import locked
from rag_eval.store.reply_store import Store
from rag_eval.texts.citations import Habit

_WORKERS = 8
"""Threads that read results and store replies: what they store at the same time is committed together."""


def batch_limits_of(settings: Settings) -> BatchLimits:
    """How the calls of a run are sent in batches. Raises SettingsError if they cannot be."""
    rules, batch = settings.provider.batches, settings.batch
    if rules is None:
        raise SettingsError(
            "--batch, --batch-cancel: the offline judge makes no calls; remove the option, or choose an LLM judge"
        )
    return BatchLimits(
        url=rules.url,
        most_requests=rules.most_requests,
        most_bytes=rules.most_bytes,
        most_tokens=batch.enqueued_tokens or 0,
        deployments=_batch_deployments(settings) if rules.has_own_deployments else {},
        prices=batch_prices(settings),
    )


def _batch_deployments(settings: Settings) -> dict[str, str]:
    """The deployment for batches by that for single calls."""
    wanted = {endpoint_of(settings.without_entra()).model: ("deployment", settings.batch.deployment)}
    if settings.metrics.toxicity and (model := settings.toxicity.deployment):
        wanted.setdefault(model, ("toxicity_deployment", settings.batch.toxicity_deployment))
    for model, (key, name) in wanted.items():
        if not name:
            raise SettingsError(
                f"[batch] {key}: not set; Azure answers batches by deployments of their own: set it to the name of a "
                f"Global Batch deployment of the same model as {model}"
            )
    return {model: name for model, (_, name) in wanted.items()}


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What is to be judged by batches, and how."""

    settings: Settings
    rows: Sequence[Row]
    rubric: EvaluationRubric | None
    limits: BatchLimits
    finish_online_below: int
    """So many calls, or fewer, are sent one by one; 0 for none."""
    can_ask_online: bool
    habits: Mapping[str, Habit]
    """How the bots cite, over all rows."""
    pairs: PairJudge | None


def open_batches_of(store: Store, target: Path) -> list[BatchRecord]:
    """The batches that are open for a report."""
    return [each for each in BatchRecords(store).batches() if each.job == job_name(target) and _is_open(each)]


def _is_open(batch: BatchRecord) -> bool:
    """Whether its results are still to come."""
    return batch.state not in (BatchState.STORED, BatchState.DUPLICATE)


def batch_prices(settings: Settings) -> dict[str, Price]:
    """By deployment of single calls."""
    factor = settings.prices.batch_factor
    return {
        model: Price(price.prompt * factor, price.completion * factor)
        for model, price in prices_of(settings).items()
    }


def about_held_back(
    costs: Collection[float], left: float, paid: Collection[float], sent: Collection[float]
) -> str:
    """How many calls are held back, by what they may cost each, and how often batches are sent until none is.

    `left` is what may be spent beside what calls that are `sent` may cost, and `paid` what answered ones did cost.
    """
    what = f"{len(costs):,} calls are" if len(costs) > 1 else "1 call is"
    what = f"{what} held back by --max-cost, since an open call counts with its highest possible cost"
    if not paid:
        return f"{what}."
    true = sum(paid) / len(paid)
    left += sum(most - true for most in sent)
    number, rounds, most = len(costs), 0, sum(costs) / len(costs)
    while number > 0 and (fit := int(left / most)) > 0:
        rounds += 1
        left -= min(number, fit) * true
        number -= fit
    if number > 0:
        return f"{what}. To judge all of them, it must be raised."
    again = "1 more round" if rounds == 1 else f"{rounds:,} more rounds"
    return f"{what}: about {again} of batches. A higher limit takes fewer."


class JobBill:
    """What earlier commands of a job took: in batches, and online while it had batches."""

    def __init__(self, store: Store, job: JobRecord, prices: Mapping[str, Price]) -> None:
        """`job` is as it was before this command, and `prices` are those of batches."""
        self._store = store
        self._records = BatchRecords(store)
        self._job = job
        self._prices = prices
        self._began = time.time()

    @classmethod
    def of(cls, settings: Settings, store: Store, target: Path) -> "JobBill | None":
        """Of the job that has the name of a report; None if nothing is known of one."""
        job = BatchRecords(store).job(job_name(target))
        return cls(store, job, batch_prices(settings)) if job else None

    def facts(self, facts: RunFacts) -> RunFacts:
        """With what the whole job took."""
        return replace(facts, usage=self.total(facts.usage))

    def total(self, usage: Usage) -> Usage:
        """That of the whole job, from that of this command, for which its replies are cached ones."""
        before = self._job
        earlier_requests = usage.earlier_requests + before.requests
        earlier_cost = usage.earlier_cost + sum(cost or 0.0 for *_, cost in before.online.values())
        by_task = defaultdict(TaskUsage, usage.by_task)
        answered: defaultdict[str, set[str]] = defaultdict(set)
        requests, uncounted, uncounted_cost = 0, before.uncounted, before.uncounted_cost
        is_priced = usage.cost is not None or not usage.requests
        for call in self._records.calls_of_job(before.id):
            if call.state not in ANSWERED:
                continue
            requests += 1
            cost = self._cost(call) if is_priced else None
            if call.stored_at < self._began:
                earlier_requests += 1
                earlier_cost += cost or 0.0
            if call.state is CallState.UNCOUNTED:
                uncounted += 1
                uncounted_cost += cost or 0.0
                by_task[call.task] += TaskUsage(cost=cost)
            else:
                by_task[call.task] += TaskUsage(0, 0, call.prompt_tokens, call.completion_tokens, cost)
            if self._store.reply(call.key) is not None:
                answered[call.task].add(call.key)
        for task, (prompt, completion, online) in before.online.items():
            by_task[task] += TaskUsage(0, 0, prompt, completion, online)
        moved = {task: min(len(keys), by_task[task].cached) for task, keys in answered.items()}
        for task, number in moved.items():
            by_task[task] += TaskUsage(number, -number)
        total = sum(by_task.values(), TaskUsage())
        return replace(
            usage,
            calls=usage.calls + sum(moved.values()),
            cached=usage.cached - sum(moved.values()),
            requests=usage.requests + requests + before.requests,
            prompt_tokens=total.prompt_tokens,
            completion_tokens=total.completion_tokens,
            uncounted=usage.uncounted + uncounted,
            uncounted_cost=usage.uncounted_cost + uncounted_cost,
            cost=total.cost if is_priced else None,
            earlier_requests=earlier_requests,
            earlier_cost=earlier_cost,
            by_task=dict(sorted(by_task.items())),
        )

    def end(self) -> None:
        """The job is over: the next command for its report begins another one."""
        self._records.end_job(self._job.id)

    def _cost(self, call: CallRecord) -> float | None:
        price = self._prices.get(call.model)
        return price.of(call.prompt_tokens, call.completion_tokens) if price else None


class BatchRun:
    """One command of a job. The job ends with its report."""

    def __init__(
        self,
        plan: BatchPlan,
        transport: Transport,
        store: Store,
        budget: Budget,
        target: Path,
        *,
        run: str,
        fresh: bool,
        retry_errors: bool,
        announce: Callable[[str], None],
    ) -> None:
        """`target` is the report, which names the job. `run` names the run of commands without batches, which may have
        begun it. `fresh` and `retry_errors` take effect once in a job.
        """
        self._plan = plan
        self._transport = transport
        self._store = store
        self._records = BatchRecords(store)
        self._budget = budget
        self._lock = threading.Lock()
        self._reason: RunStoppedError | None = None
        self.finished_rows = 0
        """The number of rows that wait for no reply any more."""
        self.held_back = ""
        """A sentence on the calls that a cap on the cost holds back; empty if there are none."""
        endpoint = transport.endpoint
        self._queue = BatchQueue(
            BatchClient(transport, plan.limits.url),
            self._records,
            f"{endpoint.provider} {endpoint.url.rstrip('/')}",
            announce=announce,
            rest=transport.rest,
        )
        name = job_name(target)
        self.account = RunAccount(store, run, job=name, fresh=fresh)
        self._job = self._begun(name, is_again=fresh or retry_errors)
        self._before = self._job
        self._bill = JobBill(store, self._job, plan.limits.prices)
        store.ignore_before(failures=self._job.failures_since)
        budget.report_to(self._note_online)

    @contextmanager
    def exclusive(self, patience: float) -> Iterator[None]:
        """Only one command at a time deals with the batches of a store; how many seconds to wait for another."""
        path = self._store.path
        try:
            with locked(path.with_name(f"{path.name}.batches"), patience=patience):
                yield
        except LockedError as error:
            raise LockedError(
                f"{path}: another command deals with its batches; run the same command later, or add --wait MINUTES"
            ) from error

    def advance(self) -> list[BatchRecord]:
        """Take in what has ended and send what is needed next; the batches to wait for, none when all is there."""
        self._job = self._queue.collect(self._job)
        is_refused = True
        while is_refused:
            outbox, stopped = self._collected()
            most = self._job.most_tokens
            with outbox:
                waiting = self._waiting(outbox)
                if waiting or not self._is_few(outbox):
                    self.account.begin()
                    self._job = self._queue.submit(outbox, self._job)
                    waiting = self._waiting(outbox)
                # The provider's queue took nothing: less at a time may fit.
                self.held_back = self._about_held_back(outbox.over_cap.values()) if waiting else ""
            is_refused = not waiting and self._job.most_tokens != most
        if not waiting:
            self._carry()  # what was collected and not submitted is not yet sent
        self._reason = stopped if not waiting else None
        self._note_usage()
        return waiting

    def cancel(self) -> list[BatchRecord]:
        """Cancel the job's batches and store what they have finished; those that are still being cancelled."""
        self._job = self._queue.cancel(self._job)
        self._read_results()
        return [batch for batch in self._open() if batch.job == self._job.id]

    def judges(self) -> Judges:
        """Of the last evaluation, when nothing is waited for: it asks online what is left, unless the job stopped."""
        return self._judges(
            BatchJudge(
                self._transport,
                self._store,
                self._job,
                can_ask_online=self._plan.finish_online_below > 0,
                stopped=self._reason,
            )
        )

    @property
    def rows(self) -> int:
        return len(self._plan.rows)

    def facts(self, facts: RunFacts) -> RunFacts:
        """Those of the last evaluation, with what the job took in all its commands."""
        usage = self._bill.total(self.account.total(facts.usage))
        return replace(facts, usage=usage, notes=(*facts.notes, *self._notes()))

    def end(self) -> None:
        """The report is written: the job is over."""
        self._bill.end()

    def close(self) -> None:
        """Let go of the connection, and of the store if the last evaluation has not done so."""
        self._transport.close()
        self._store.end(keep=True)

    def _notes(self) -> tuple[str, ...]:
        """Sentences for readers of the scores."""
        number = self._job.batches
        notes = [f"Judged in provider batches: {number}."] if number else []
        for model, names in self._job.models.items():
            if len(every := sorted({*names, *self._transport.models[model]} - {""})) > 1:
                notes.append(
                    f"{model} answered as several models ({', '.join(every)}), so scores may differ."
                )
        return tuple(notes)

    # One pass

    def _collected(self) -> tuple[Outbox, RunStoppedError | None]:
        """What the rows need next, and why that may not be all."""
        while True:
            self._carry()
            calls = () if self._budget.left is None else self._records.calls_of_job(self._job.id)
            answered = {call.key: call for call in calls if call.state in ANSWERED}
            outbox = Outbox(self._transport.endpoint, self._limits(), self._budget, self._job.id, answered)
            try:
                stopped = self._evaluate(outbox, can_ask_online=self._plan.can_ask_online)
                if stopped and stopped.code not in _CAPS:
                    raise stopped
            except BaseException:
                outbox.__exit__()
                raise
            if not outbox.is_outdated:
                return outbox, stopped or outbox.stopped
            outbox.__exit__()

    def _evaluate(self, outbox: Outbox, *, can_ask_online: bool) -> RunStoppedError | None:
        judge = BatchJudge(
            self._transport,
            self._store,
            self._job,
            outbox=outbox,
            can_ask_online=can_ask_online,
        )
        evaluation = Evaluation(self._judges(judge), self._plan.settings, workers=_WORKERS, in_batches=True)
        try:
            self.finished_rows = sum(1 for _ in evaluation.results(self._plan.rows))
        finally:
            evaluation.close()
        return evaluation.stopped

    def _judges(self, judge: BatchJudge) -> Judges:
        settings = self._plan.settings
        judges = Judges.llm(settings, judge, self._store, self._plan.rubric, self._plan.pairs)
        return judges.with_citations(settings, self._plan.habits)

    def _read_results(self) -> None:
        """Make replies of all results that are there, and send nothing."""
        with Outbox(self._transport.endpoint, self._limits(), Budget(), self._job.id) as unsent:
            self._evaluate(unsent, can_ask_online=False)

    def _waiting(self, outbox: Outbox) -> list[BatchRecord]:
        job = self._job.id
        return [each for each in self._open() if each.job == job or each.token in outbox.awaited]

    def _open(self) -> list[BatchRecord]:
        return list(filter(_is_open, self._queue.batches()))

    def _is_few(self, outbox: Outbox) -> bool:
        """Whether these are the last calls, and no more than may be sent online."""
        is_all = not outbox.held_back and not outbox.stopped
        return is_all and outbox.calls <= self._plan.finish_online_below

    def _about_held_back(self, costs: Collection[float]) -> str:
        """What is to be said of calls that are held back, by what they may cost each; empty if there are none."""
        left = self._budget.left
        if left is None or not costs:
            return ""
        calls, cost = self._records.calls_of_job(self._job.id), self._plan.limits.cost
        paid = [cost(call) for call in calls if call.state in ANSWERED]
        sent = [cost(call) for call in calls if call.state is CallState.SENT]
        return about_held_back(costs, left, paid, sent)

    def _limits(self) -> BatchLimits:
        known = [each for each in (self._plan.limits.most_tokens, self._job.most_tokens) if each]
        return replace(self._plan.limits, most_tokens=min(known, default=0))

    # The job

    def _begun(self, name: str, *, is_again: bool) -> JobRecord:
        """`is_again` asks for earlier failures once more, which takes effect once."""
        job = self._records.job(name) or JobRecord(name)
        failures = job.failures_since or (self._store.next_moment() if is_again else 0.0)
        return replace(job, replies_since=self.account.since, failures_since=failures)

    def _carry(self) -> None:
        """Count what the job has sent so far against its caps."""
        calls = self._records.calls_of_job(self._job.id)
        cost = sum(map(self._plan.limits.cost, calls))
        self._budget.carry(self._before.requests + len(calls), self._before.spent + cost)

    def _note_online(self, requests: int, most: float) -> None:
        """Before and after each request that is sent online."""
        with self._lock:
            self._job = replace(
                self._job, requests=self._before.requests + requests, spent=self._before.spent + most
            )
            self._records.put_job(self._job)

    def _note_usage(self) -> None:
        """What was used online so far; the last command reports it."""
        used = self._transport.usage()
        if not used.requests:
            return
        online = defaultdict(lambda: (0, 0, None), {**self._before.online})
        for task, usage in used.by_task.items():
            prompt, completion, cost = online[task]
            costs = [each for each in (cost, usage.cost) if each is not None]
            online[task] = (
                prompt + usage.prompt_tokens,
                completion + usage.completion_tokens,
                sum(costs) if costs else None,
            )
        self._job = replace(
            self._job,
            online=dict(online),
            uncounted=self._before.uncounted + used.uncounted,
            uncounted_cost=self._before.uncounted_cost + used.uncounted_cost,
        )
        self._records.put_job(self._job)


_CAPS = frozenset({"max_calls", "max_cost"})
"""Codes of stops after which what was collected may still be sent."""

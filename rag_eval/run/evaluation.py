"""One run: rows in order → results in order, by one judge, over one store of paid replies."""

import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol

from rag_eval.configuration.effective import (
    effective_thresholds,
    effective_weights,
    secrets_of,
)
from rag_eval.configuration.settings import Settings
from rag_eval.errors import RunStoppedError
from rag_eval.judge.calls import T, gather, sampled
from rag_eval.judge.masking import concealed, without_keys
from rag_eval.judge.scheduler import Scheduler
from rag_eval.metrics.metric import Metric
from rag_eval.records import (
    NOT_ASKED,
    TOXICITY,
    Case,
    CaseResult,
    PairVerdict,
    Row,
    RubricOutcome,
    RunStats,
    Score,
    TaskUsage,
    Usage,
)
from rag_eval.results.causes import CauseTally
from rag_eval.results.scoring import doc_recall, failure_modes, mean_score, rqs, with_gaps
from rag_eval.run.judges import Judges
from rag_eval.texts.redaction import Redactor
from rag_eval.texts.tokens import Shortener

_Scores = Mapping[str, Score]
_Verdicts = tuple[_Scores, _Scores, RubricOutcome | None]


class RowEngine(Protocol):
    """Judges rows elsewhere than in this process."""

    causes: CauseTally | None
    """Is told of causes if there is one."""

    def results(self, rows: Iterable[Row]) -> Iterator[tuple[CaseResult, ...]]:
        """As of `Evaluation`. After `stop`, rows that are under way still come, and no others."""
        ...

    def stop(self) -> None:
        """May be called from a signal handler."""
        ...

    def close(self) -> None: ...


class Evaluation:
    """A run under way. `results` may be called once; `close` ends it."""

    def __init__(
        self,
        judges: Judges,
        settings: Settings,
        *,
        engine: RowEngine | None = None,
        workers: int | None = None,
        in_batches: bool = False,
    ) -> None:
        """The rows are judged here unless there is an `engine`, which is closed with the run. `workers` are as many as
        the settings say unless others are given. `in_batches` is for Scheduler.
        """
        self._began = time.monotonic()
        self._engine = engine
        self.judges = judges
        self.redactor = Redactor() if judges.is_proxy else redactor_of(settings)
        self._shortener = Shortener(None) if judges.is_proxy else _shortener_of(settings)
        self._workers = workers or settings.evaluation.workers
        self._scheduler = Scheduler(
            judges.judge,
            judges.store,
            workers=self._workers,
            tries=settings.judge.max_attempts,
            origin=lambda number: f"row {self._rows[number]}",
            in_batches=in_batches,
        )
        self._rows: list[int] = []  # their numbers, in order
        self._thresholds = effective_thresholds(settings, is_proxy=judges.is_proxy)
        self._weights = effective_weights(settings)
        self._samples = 1 if judges.is_proxy else settings.evaluation.samples
        self._secrets = frozenset() if judges.is_proxy else secrets_of(settings)
        self._gold_decides = settings.diagnostics.gold_ids
        if judges.account:
            judges.account.follow(self._paid)

    @property
    def stopped(self) -> RunStoppedError | None:
        """Why the run ended early, or None."""
        return self._scheduler.stopped

    @property
    def stop_requested(self) -> bool:
        return self._scheduler.stop_requested

    @property
    def usage(self) -> Usage:
        """Of this command."""
        return self._scheduler.usage()

    def _paid(self) -> Usage:
        """The part of it that stays true whatever later commands do. For any thread.

        What is cached are the replies that these will find in the store.
        """
        counts, sent = self._scheduler.counts, self.judges.judge.usage()
        answered, replies = dict(counts.answered), dict(counts.replies)
        tasks = {
            task: sent.by_task.get(task, TaskUsage()) + TaskUsage(number, replies.get(task, 0))
            for task, number in answered.items()
        }
        return replace(
            sent,
            calls=sum(answered.values()),
            cached=sum(replies.values()),
            by_task={**sent.by_task, **tasks},
        )

    def stats(self) -> RunStats:
        """So far. The usage is that of all commands of the run."""
        return RunStats(
            time.monotonic() - self._began,  # the clock on the wall may be put back meanwhile
            self.judges.account.total(self.usage) if self.judges.account else self.usage,
            tuple(self.judges.judge.adaptations),
            self._scheduler.counts.outdated,
            dict(sorted(Counter(self.judges.fallbacks.values()).items())),
            dict(self.redactor.counts) if self.redactor else {},
        )

    def results(self, rows: Iterable[Row], *, with_pairs: bool = True) -> Iterator[tuple[CaseResult, ...]]:
        """The results of each row, bots in the order of the sheet, rows in the order given.

        Responses are compared in pairs with them if the run does that at all, unless `compared` is to do it.

        When an LLM run stops, the remaining rows still come: what the store knows is served, and what was not
        judged is marked so. A stopped offline run ends where it is.
        """
        if self._engine:
            yield from self._engine.results(rows)
            rows = ()  # the scheduler only heeds a stop
        yield from self._scheduler.run(
            self._coroutines(rows, with_pairs=with_pairs), window=32 + 2 * self._workers
        )

    def count_causes(self, tally: CauseTally) -> bool:
        """Whether the tally is told of causes by those who judge; it must not be told of the results, then."""
        if self._engine:
            self._engine.causes = tally
        return self._engine is not None

    def compared(self, results: Iterable[tuple[CaseResult, ...]]) -> Iterator[tuple[CaseResult, ...]]:
        """The results of rows that are judged, with their responses compared in pairs; as they are without pairs."""

        def coroutines() -> Iterator[Coroutine[Any, Any, tuple[CaseResult, ...]]]:
            for row in results:
                self._rows.append(row[0].case.row)
                yield self._compare_row(row)

        yield from self._scheduler.run(coroutines(), window=32 + 2 * self._workers)

    def import_meanwhile(self, modules: Iterable[str]) -> None:
        """Import these, one at a time, while there is nothing to do but to wait for a reply."""
        self._scheduler.meanwhile = map(import_module, modules)

    def request_stop(self, reason: RunStoppedError) -> None:
        """Stop at the next safe point. May be called from a signal handler."""
        self._scheduler.request_stop(reason)
        if self._engine:
            self._engine.stop()

    def close(self) -> None:
        """Let go of the engine, of the worker threads and of the judge's connections. The store stays open."""
        if self._engine:
            self._engine.close()
        self._scheduler.close()
        if self.judges.account:
            self.judges.account.keep()
        self.judges.judge.close()

    def _coroutines(
        self, rows: Iterable[Row], *, with_pairs: bool
    ) -> Iterator[Coroutine[Any, Any, tuple[CaseResult, ...]]]:
        for row in rows:
            if self.judges.is_proxy and self.stopped:
                return
            self._rows.append(row.number)
            yield self._judge_row(row, with_pairs=with_pairs)

    async def _judge_row(self, row: Row, *, with_pairs: bool) -> tuple[CaseResult, ...]:
        """The judges sees the row redacted, and shortened; the results are about the row as it is."""
        whole = self.redactor.row(row)
        seen = self._shortener.row(whole)
        parts: list[Coroutine[Any, Any, Any]] = [
            self._compare(seen) if with_pairs else _no_pairs(seen),
            self._rate(seen.query),
            *map(self._judge_case, seen.cases, (case.chunks for case in whole.cases)),
        ]
        pairs, toxicity, *verdicts = await self._all(parts)
        results = [
            concealed(self._result(case, scores, extra, rubric, toxicity), self._secrets)
            for case, (scores, extra, rubric) in zip(seen.cases, verdicts, strict=True)
        ]
        advice = await self._advise(results)
        judged = [
            replace(result, case=case, recommendation=without_keys(text, self._secrets))
            for case, result, text in zip(row.cases, results, advice, strict=True)
        ]
        return self._with_pairs(judged, pairs)

    async def _compare_row(self, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        cases = tuple(result.case for result in results)
        row = Row(cases[0].row, cases[0].query, cases)
        return self._with_pairs(results, await self._compare(self._shortener.row(self.redactor.row(row))))

    async def _compare(self, row: Row) -> Sequence[tuple[PairVerdict, ...]]:
        return await (self.judges.pairs.judge(row) if self.judges.pairs else _no_pairs(row))

    def _with_pairs(
        self, results: Sequence[CaseResult], pairs: Sequence[tuple[PairVerdict, ...]]
    ) -> tuple[CaseResult, ...]:
        found = [
            concealed(replace(result, pairs=_labelled(of_case, result.pairs)), self._secrets)
            if of_case
            else result
            for result, of_case in zip(results, pairs, strict=True)
        ]
        return with_gaps(found)

    async def _rate(self, query: str) -> Score:
        if self.judges.toxicity is None:
            return Score.not_applicable(TOXICITY, "switched off")
        return await self.judges.toxicity.judge_query(query)

    async def _judge_case(self, case: Case, every_chunk: tuple[str, ...] | None) -> _Verdicts:
        """`every_chunk` is the context as it was before it was shortened."""
        whole = case if case.chunks == every_chunk else replace(case, chunks=every_chunk)
        parts: list[Coroutine[Any, Any, Any]] = [
            self._measure(self.judges.metrics, case, whole),
            self._measure(self.judges.extra_metrics, case, whole),
            self._judge_by_rubric(case),
        ]
        scores, extra, rubric = await self._all(parts)
        return scores, extra, rubric

    async def _judge_by_rubric(self, case: Case) -> RubricOutcome | None:
        return await self.judges.rubric.judge(case) if self.judges.rubric else None

    async def _advise(self, results: Sequence[CaseResult]) -> Sequence[str]:
        if self.judges.adviser is None:
            return [""] * len(results)
        return await self._all([self.judges.adviser.advise(result) for result in results])

    async def _measure(self, metrics: Sequence[Metric], case: Case, whole: Case) -> _Scores:
        scores = await self._all(
            [_score(metric, whole if metric.needs_every_chunk else case, self._samples) for metric in metrics]
        )
        return {score.metric: score for score in scores}

    async def _all(self, parts: Sequence[Coroutine[Any, Any, T]]) -> Sequence[T]:
        """What these come to. Of the offline judge, who waits for nothing, without a task for each."""
        if not self.judges.is_proxy:
            return await gather(parts)
        try:
            return [await part for part in parts]
        finally:
            for part in parts:
                part.close()  # of those behind one that failed; it would be told that nobody awaited them

    def _result(
        self, case: Case, scores: _Scores, extra: _Scores, rubric: RubricOutcome | None, toxicity: Score
    ) -> CaseResult:
        return CaseResult(
            case=case,
            scores=scores,
            toxicity=Score.not_applicable(TOXICITY, NOT_ASKED) if case.is_missing else toxicity,
            rqs=rqs(scores, self._weights),
            failure_modes=failure_modes(
                scores,
                self._thresholds,
                doc_recall(case) if self._gold_decides else None,
                is_missing=case.is_missing,
            ),
            further=extra,
            rubric=rubric,
        )


def _labelled(pairs: Sequence[PairVerdict], before: Sequence[PairVerdict]) -> tuple[PairVerdict, ...]:
    """With the labels that people gave to the same pairs before: a new verdict of the judge changes none."""
    given = {each.other: each for each in before if each.labels}
    return tuple(
        replace(pair, labels=given[pair.other].labels, is_drawn=given[pair.other].is_drawn)
        if pair.other in given
        else pair
        for pair in pairs
    )


async def _no_pairs(row: Row) -> Sequence[tuple[PairVerdict, ...]]:
    return [()] * len(row.cases)


async def _score(metric: Metric, case: Case, samples: int) -> Score:
    if samples == 1:
        return await metric.measure(case)
    return mean_score(await gather([sampled(metric.measure(case), number) for number in range(samples)]))


def _shortener_of(settings: Settings) -> Shortener:
    """Cuts the contexts and earlier turns that an LLM judge must not see whole."""
    limits = settings.limits
    most = limits.max_prompt_tokens if limits.long_prompts == "truncate" else None
    return Shortener(most, limits.max_history_tokens)


def redactor_of(settings: Settings) -> Redactor:
    """Hides what an LLM judge must not see."""
    return Redactor(settings.privacy.kinds, settings.privacy.redact_pattern)


def cuts_in(settings: Settings, rows: Iterable[Row]) -> dict[tuple[int, str], str]:
    """By row and bot: what the judge does not see of a context or of earlier turns, in words."""
    redactor, shortener = redactor_of(settings), _shortener_of(settings)
    notes = ((case, shortener.note(redactor.case(case))) for row in rows for case in row.cases)
    return {(case.row, case.bot): words for case, words in notes if words}

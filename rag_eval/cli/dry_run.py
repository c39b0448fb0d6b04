"""--dry-run: what would be sent where, and what it would cost, without sending anything."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_eval.cli.batching import refuse_open_batches
from rag_eval.cli.console import warn
from rag_eval.cli.facts import fallback_notes
from rag_eval.cli.options import Options
from rag_eval.cli.terminal import duration
from rag_eval.configuration.effective import budget_of, endpoint_of, how_to_price, prices_of
from rag_eval.errors import OVER_LIMIT, InputError
from rag_eval.judge.batches.client import KEPT_SECONDS
from rag_eval.judge.masking import is_loopback
from rag_eval.judge.transport import Transport
from rag_eval.records import PROMPT_FORMS, Row
from rag_eval.run.estimate import DryRunStore, Estimate, EstimatingJudge, Range, Wave, WaveJudge
from rag_eval.run.evaluation import Evaluation, redactor_of
from rag_eval.run.judges import Judges
from rag_eval.run.metered_store import RunAccount
from rag_eval.store.batch_records import BatchRecords, job_name
from rag_eval.store.reply_store import Store
from rag_eval.tables.table import Table
from rag_eval.texts.display import counted, enumerated

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.batches.outbox import BatchLimits
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.records import Case, CaseResult, PlannedLook
    from rag_eval.results.recorded import RecordedRun
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.pairs import PairJudge
    from rag_eval.texts.citations import Habit

Parts = Callable[[], Iterable[tuple[Sequence[Path], Sequence["Row | tuple[CaseResult, ...]"]]]]
"""The rows of each part of a run, with the files that may have stored replies for them, from the beginning whenever it
is called.
"""


class _Total:
    """What all parts come to."""

    def __init__(self) -> None:
        self.estimate = Estimate()
        self.calls: list[int] = []
        """Of each part."""
        self.rows = self.cases = self.cached = self.awaited = self.outdated = self.too_long = 0
        self.fallbacks: Counter[str] = Counter()
        self.waves: list[Wave] = []


class DryRun:
    """A whole run over a judge that makes its replies up. Stored replies are left as they are."""

    def __init__(
        self,
        loaded: "LoadedSettings",
        options: Options,
        rubric: "EvaluationRubric | None",
        *,
        run: str = "",
        target: Path | None = None,
        since: float = 0.0,
    ) -> None:
        """`options` say which stored replies are left out, if damaged ones end it, and if it is a run in batches.

        `run` is its name in the store, and `target` the report that may wait for batches; `since` is when a run in
        shards began again. See RunAccount.
        """
        self._run, self._target, self._since = run, target, since
        self._loaded = loaded
        self._settings = loaded.settings.without_entra()
        self._options = options
        self._rubric = rubric
        self._habits: Mapping[str, Habit] = {}
        self._pairs: PairJudge | None = None
        self._limits: BatchLimits | None = None
        self._waits: InputError | None = None

    def lines(
        self,
        table: "Table | RecordedRun",
        parts: Parts,
        *,
        files: int = 0,
        is_shared: bool = True,
        looks: "Sequence[PlannedLook]" = (),
        pairs: "PairJudge | None" = None,
    ) -> Iterator[str]:
        """What the run would do, and what would stop it as a warning. `looks` are those after which it may end.

        `table` has the columns and bots of all `files`, if the run is one in shards; its rows are not looked at.
        `is_shared` says whether the parts share what they are replied. Raises InputError for a cap that cannot be kept.
        """
        settings = self._settings
        self._habits = table.habits if isinstance(table, Table) else {}
        self._pairs = pairs
        yield from _look_lines(looks)
        if settings.provider.is_offline:
            yield "The offline judge sends nothing and costs nothing."
            return
        budget_of(settings)
        yield from self._estimated(table, parts, files, is_shared=is_shared, may_end=len(looks) > 1)
        if redactor := redactor_of(settings):
            yield f"A run would redact before sending: {redactor.subjects}."
        try:
            self._loaded.require_credentials()
            if self._waits:
                raise self._waits
        except InputError as obstacle:
            warn(f"A run would stop here: {obstacle}")

    def _estimated(
        self, table: "Table | RecordedRun", parts: Parts, files: int, *, is_shared: bool, may_end: bool
    ) -> Iterator[str]:
        settings, endpoint = self._settings, endpoint_of(self._settings)
        if self._options.batch:
            from rag_eval.run.batches import batch_limits_of

            self._limits = batch_limits_of(settings)
        prices = self._limits.prices if self._limits else prices_of(settings)
        found = self._count(parts, endpoint, is_shared=is_shared)
        shards = f" in {len(found.calls):,} shards of {counted(files, 'file')}" if files else ""
        yield f"Rows: {found.rows:,}{shards}, bots: {len(table.bots)}. Cached replies: {found.cached:,}."
        if found.awaited:
            yield f"Calls in open batches, which a run waits for: {found.awaited:,}."
        if found.outdated:
            yield f"Stored replies that are empty or unusable and would be requested again: {found.outdated}."
        if (form := settings.judge.prompts) != "ragas":
            yield f"Prompts: {form} ({PROMPT_FORMS[form]})."
        yield from fallback_notes(found.fallbacks, found.cases)
        yield from _call_lines(found.estimate)
        if files and found.calls:
            yield f"Calls per shard: {min(found.calls):,} to {max(found.calls):,}."
        yield from _wave_lines(found.waves)
        if found.too_long:
            yield f"Not sent because they exceed [limits] max_prompt_tokens: {found.too_long} calls."
        cost = found.estimate.cost(prices)
        yield _cost_line(cost, settings)
        if may_end:
            yield _until_clear_line(sum(found.calls), cost, settings.prices.currency)
        yield from () if self._limits else self._time_lines(found.estimate)
        if not is_shared and len(found.calls) > 1:
            shared = self._count(parts, endpoint, is_shared=True)
            yield (
                "Each shard has its own store. With [cache] enabled on a disk that all shards use: "
                f"{sum(found.calls) - sum(shared.calls):,} calls fewer. "
                f"{_cost_line(shared.estimate.cost(prices), settings)}"
            )
        yield f"A run would send {_sent(table)} to {_place(endpoint)}. This dry run sent nothing."
        if self._limits:
            yield (
                f"{_place(endpoint)} keeps the texts of a batch until its results are stored here, and at most "
                f"{KEPT_SECONDS // 86_400} days."
            )

    def _count(self, parts: Parts, endpoint: "Endpoint", *, is_shared: bool) -> _Total:
        found, made_up = _Total(), dict[str, str]()
        for stores, rows in parts():
            stored = self._stored(stores)
            store = DryRunStore(stored, made_up if is_shared else None)
            transport = Transport(endpoint, store)
            judge = (
                WaveJudge(transport, store, self._limits, BatchRecords(stored).sent() if stored else ())
                if self._limits
                else EstimatingJudge(transport, endpoint.model)
            )
            try:
                evaluation = self._evaluated(judge, store, rows)
            finally:
                store.end(keep=True)
            found.rows += len(rows)
            found.cases += sum(map(len, map(_cases, rows)))
            found.calls.append(sum(judge.estimate.calls.values()))
            found.estimate.merge(judge.estimate)
            waves = judge.waves if isinstance(judge, WaveJudge) else ()
            made = len(store.shared) + sum(wave.calls for wave in waves) + judge.awaited
            found.cached += evaluation.usage.cached - made
            found.awaited += judge.awaited
            stats = evaluation.stats()
            found.outdated += stats.outdated
            found.too_long += evaluation.usage.failures.get(OVER_LIMIT, 0)
            found.fallbacks.update(stats.fallbacks)
            found.waves += waves
        return found

    def _evaluated(
        self, judge: EstimatingJudge, store: DryRunStore, rows: "Sequence[Row | tuple[CaseResult, ...]]"
    ) -> Evaluation:
        """Once, or in batches as often as there are waves; the last evaluation, in which everything is replied to."""
        judges = Judges.llm(self._settings, judge, store, self._rubric, self._pairs)
        judges = judges.with_citations(self._settings, self._habits)
        while True:
            # with one worker all bundles are full but the last
            evaluation = Evaluation(judges, self._settings, workers=1, in_batches=bool(self._limits))
            try:
                judged = [row for row in rows if isinstance(row, tuple)]
                unjudged = (row for row in rows if isinstance(row, Row))
                for _ in evaluation.compared(judged) if judged else evaluation.results(unjudged):
                    pass  # the results are made up; what was asked for is what counts
            finally:
                evaluation.close()
            if not (isinstance(judge, WaveJudge) and judge.end_wave()):
                return evaluation

    def _stored(self, stores: Sequence[Path]) -> Store | None:
        """Whatever earlier runs left, in up to two files."""
        paths = [path for path in stores if path.exists()]
        if not paths:
            return None
        options = self._options
        store = Store(
            paths[0],
            another=paths[1] if len(paths) > 1 else None,
            on_damage=None if options.strict_cache else warn,
            is_dry=True,
        )
        if options.retry_errors:
            store.ignore_before(failures=store.next_moment())
        # For what the run would ignore.
        job = job_name(self._target) if self._target else ""
        RunAccount(store, self._run, job=job, fresh=options.fresh, since=self._since)
        if self._target and not self._limits:
            try:
                refuse_open_batches(store, self._target)
            except InputError as waiting:
                self._waits = waiting
        return store

    def _time_lines(self, estimate: Estimate) -> Iterator[str]:
        """How long the calls would take; nothing if the speed of the judge is not known."""
        judge = self._settings.judge
        if not (judge.prompt_tokens_per_second and judge.reply_tokens_per_second):
            return
        time = estimate.seconds(judge.prompt_tokens_per_second, judge.reply_tokens_per_second)
        low, expected, high = (duration(each) for each in (time.low, time.expected, time.high))
        yield f"Time: about {expected} ({low} to {high}) at the speed in [judge], one call at a time"


def _cases(row: "Row | tuple[CaseResult, ...]") -> "Sequence[Case]":
    return [result.case for result in row] if isinstance(row, tuple) else row.cases


def _sent(table: "Table | RecordedRun") -> str:
    if isinstance(table, Table):
        return f"the columns {', '.join(column.header for column in table.columns if column.is_judged)}"
    return "queries, responses, ground truths and contexts"


def _wave_lines(waves: Sequence[Wave]) -> Iterator[str]:
    if not waves:
        return
    number_of = "1 wave" if len(waves) == 1 else f"{len(waves)} waves"
    yield f"Batches: {number_of}, each up to a day; each needs the replies of the wave before it."
    for number, wave in enumerate(waves, start=1):
        yield f"  wave {number}: about {wave.calls:,} calls in {counted(wave.files, 'file')}, {wave.size / 1e6:,.1f} MB"


def _place(endpoint: "Endpoint") -> str:
    return (
        f"{endpoint.host} (this computer)"
        if is_loopback(urlsplit(endpoint.url).hostname or "")
        else endpoint.host or "the judge"
    )


def _call_lines(estimate: Estimate) -> Iterator[str]:
    for deployment in estimate.deployments:
        calls = {task: count for (name, task), count in estimate.calls.items() if name == deployment}
        yield f"Calls to {deployment}: about {sum(calls.values())}, plus retries"
        for task, count in sorted(calls.items()):
            yield f"  {task}: {count}"
        yield f"  prompt tokens: {_range(estimate.prompt_tokens(deployment))}"
        yield f"  reply tokens: {_range(estimate.completion_tokens(deployment))}"


def _cost_line(cost: Range | None, settings: "Settings") -> str:
    if cost is None:
        return f"Cost: unknown; {how_to_price(settings)}."
    return f"Cost: about {cost.expected:.2f} {settings.prices.currency} ({cost.low:.2f} to {cost.high:.2f})"


_EXPECTED_SHARE = 0.7
"""Of 200 rows that looks after .4, .6 and .8 of them need, on average over 1,653 pairs of systems."""


def _look_lines(looks: "Sequence[PlannedLook]") -> Iterator[str]:
    if len(looks) > 1:
        rows = enumerated([f"{look.rows:,}" for look in looks[:-1]])
        yield f"Looks: after {rows} of {looks[-1].rows:,} rows. The run ends there if the answer is clear."
    elif looks:
        yield "Looks: only the one at the end. With few rows, an earlier one cannot be clear."


def _until_clear_line(calls: int, cost: Range | None, currency: str) -> str:
    """What is expected of a run with planned looks, and the most."""
    expected = f"about {_EXPECTED_SHARE * calls:,.0f} calls"
    most = f"{calls:,} calls"
    if cost:
        expected += f" and {_EXPECTED_SHARE * cost.expected:.2f} {currency}"
        most += f" and {cost.expected:.2f} {currency}"
    return (
        f"With --until-clear: {expected} expected ({_EXPECTED_SHARE:.0%}, as measured for many pairs of systems; "
        f"fewer if one bot leads by much), at most {most}."
    )


def _range(tokens: Range) -> str:
    return f"about {tokens.expected:,.0f} ({tokens.low:,.0f} to {tokens.high:,.0f})"

"""--dry-run: what would be sent where, and what it would cost, without sending anything."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_eval.cli.console import warn
from rag_eval.cli.facts import fallback_notes
from rag_eval.cli.terminal import duration
from rag_eval.configuration.effective import endpoint_of, prices_of, store_path
from rag_eval.errors import OVER_LIMIT
from rag_eval.judge.addresses import is_loopback
from rag_eval.judge.batches.client import KEPT_SECONDS
from rag_eval.judge.transport import Transport
from rag_eval.records import PROMPT_FORMS
from rag_eval.run.estimate import DryRunStore, Estimate, EstimatingJudge, Range
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.run.waves import WaveJudge
from rag_eval.store.reply_store import Store

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.tables.table import Table


def show_estimate(
    settings: "Settings",
    table: "Table",
    target: Path,
    say: Callable[[str], None],
    rubric: "EvaluationRubric | None" = None,
    *,
    fresh: bool = False,
    retry_errors: bool = False,
    strict_cache: bool = False,
    in_batches: bool = False,
) -> None:
    """Run the whole evaluation over a judge that makes its replies up, and say what it came to.

    `fresh` and `retry_errors` leave stored replies out as they would in the run, and `strict_cache` stops at damaged
    ones. The store stays as it is.
    """
    endpoint = endpoint_of(settings)
    path = store_path(settings, target)
    stored = None
    if path.exists():
        on_damage = None if strict_cache else warn
        stored = Store(path, on_damage=on_damage, fresh=fresh, retry_errors=retry_errors, is_dry=True)
    store = DryRunStore(stored)
    transport = Transport(endpoint, store)
    limits = None
    if in_batches:
        from rag_eval.run.batches import batch_limits_of

        limits = batch_limits_of(settings)
    judge = WaveJudge(transport, store, limits) if limits else EstimatingJudge(transport, endpoint.model)
    judges = Judges.llm(settings, judge, store, rubric)
    try:
        evaluation = _evaluated(judges, judge, settings, table)
    finally:
        store.end(keep=True)
    prices = limits.prices if limits else prices_of(settings)
    made_up = sum(wave.calls for wave in judge.waves) if isinstance(judge, WaveJudge) else 0
    cached = evaluation.usage.cached - made_up
    say(f"Rows: {len(table.rows)}, bots: {len(table.bots)}. Cached replies: {cached}.")
    if evaluation.outdated:
        say(f"Stored replies that are empty or unusable and would be requested again: {evaluation.outdated}.")
    if (form := settings.judge.prompts) != "ragas":
        say(f"Prompts: {form} ({PROMPT_FORMS[form]}).")
    for line in fallback_notes(evaluation.fallbacks, sum(len(row.cases) for row in table.rows)):
        say(line)
    for line in call_lines(judge.estimate):
        say(line)
    if isinstance(judge, WaveJudge):
        for line in _wave_lines(judge):
            say(line)
    if too_long := evaluation.usage.failures.get(OVER_LIMIT):
        say(f"Not sent because they exceed [limits] max_prompt_tokens: {too_long} calls.")
    say(cost_line(judge.estimate.cost(prices), settings.prices.currency))
    for line in () if in_batches else time_lines(judge.estimate, settings):
        say(line)
    say(sending_line(table, endpoint))
    if in_batches:
        say(
            f"{_place(endpoint)} keeps the texts of a batch until its results are stored here, and at most "
            f"{KEPT_SECONDS // 86_400} days."
        )


def sending_line(table: "Table", endpoint: "Endpoint") -> str:
    sent = ", ".join(column.header for column in table.columns if column.is_judged)
    return f"A run would send the columns {sent} to {_place(endpoint)}. This dry run sent nothing."


def _evaluated(judges: Judges, judge: EstimatingJudge, settings: "Settings", table: "Table") -> Evaluation:
    """Once, or in batches as often as there are waves; the last evaluation, in which everything is replied to."""
    is_last = False
    while not is_last:
        in_batches = isinstance(judge, WaveJudge)
        # with one worker all bundles are full but the last
        evaluation = Evaluation(judges, settings, workers=1, in_batches=in_batches)
        try:
            for _ in evaluation.results(table.rows):
                pass  # the results are made up; what was asked for is what counts
        finally:
            evaluation.close()
        is_last = not (isinstance(judge, WaveJudge) and judge.end_wave())
    return evaluation


def _wave_lines(judge: WaveJudge) -> Iterator[str]:
    waves = "1 wave" if len(judge.waves) == 1 else f"{len(judge.waves)} waves"
    yield f"Batches: {waves}, each up to a day; each needs the replies of the wave before it."
    for number, wave in enumerate(judge.waves, start=1):
        files = f"{wave.files} file{'s' if wave.files > 1 else ''}"
        yield f"  wave {number}: about {wave.calls:,} calls in {files}, {wave.size / 1e6:,.1f} MB"


def _place(endpoint: "Endpoint") -> str:
    return (
        f"{endpoint.host} (this computer)"
        if is_loopback(urlsplit(endpoint.url).hostname or "")
        else endpoint.host or "the judge"
    )


def call_lines(estimate: Estimate) -> Iterator[str]:
    for deployment in estimate.deployments:
        calls = {task: count for (name, task), count in estimate.calls.items() if name == deployment}
        yield f"Calls to {deployment}: about {sum(calls.values())}, plus retries"
        for task, count in sorted(calls.items()):
            yield f"  {task}: {count}"
        yield f"  prompt tokens: {_range(estimate.prompt_tokens(deployment))}"
        yield f"  reply tokens: {_range(estimate.completion_tokens(deployment))}"


def cost_line(cost: Range | None, currency: str) -> str:
    if cost is None:
        return "Cost: unknown (set [prices] input and output)"
    return f"Cost: about {cost.expected:.2f} {currency} ({cost.low:.2f} to {cost.high:.2f})"


def time_lines(estimate: Estimate, settings: "Settings") -> Iterator[str]:
    """How long the calls would take; nothing if the speed of the judge is not known."""
    judge = settings.judge
    if not (judge.prompt_tokens_per_second and judge.reply_tokens_per_second):
        return
    time = estimate.seconds(judge.prompt_tokens_per_second, judge.reply_tokens_per_second)
    low, expected, high = (duration(each) for each in (time.low, time.expected, time.high))
    yield f"Time: about {expected} ({low} to {high}) at the speed in [judge], one call at a time"


def _range(tokens: Range) -> str:
    return f"about {tokens.expected:,.0f} ({tokens.low:,.0f} to {tokens.high:,.0f})"

"""--dry-run: what would be sent where, and what it would cost, without sending anything."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_eval.cli.console import warn
from rag_eval.configuration.effective import endpoint_of, prices_of, store_path
from rag_eval.errors import OVER_LIMIT
from rag_eval.judge.addresses import is_loopback
from rag_eval.judge.transport import Transport
from rag_eval.run.estimate import DryRunStore, Estimate, EstimatingJudge, Range
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.store.reply_store import Store

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.endpoint import Endpoint
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.tables import Table


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
    judge = EstimatingJudge(Transport(endpoint, store), endpoint.model)
    judges = Judges.llm(settings, judge, store, rubric)
    evaluation = Evaluation(judges, settings, workers=1)  # so that all bundles are full but the last
    try:
        for _ in evaluation.results(table.rows):
            pass  # the results are made up; what was asked for is what counts
    finally:
        evaluation.close()
        store.end(keep=True)
    prices = prices_of(settings)
    say(f"Rows: {len(table.rows)}, bots: {len(table.bots)}. Cached replies: {evaluation.usage.cached}.")
    if evaluation.outdated:
        say(f"Stored replies that are empty or unusable and would be requested again: {evaluation.outdated}.")
    for line in _call_lines(judge.estimate):
        say(line)
    if too_long := evaluation.usage.failures.get(OVER_LIMIT):
        say(f"Not sent because they exceed [limits] max_prompt_tokens: {too_long} calls.")
    say(_cost_line(judge.estimate.cost(prices), settings.prices.currency))
    sent = [column.header for column in table.columns if column.is_judged]
    say(f"A run would send the columns {', '.join(sent)} to {_place(endpoint)}. This dry run sent nothing.")


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


def _cost_line(cost: Range | None, currency: str) -> str:
    if cost is None:
        return "Cost: unknown (set [prices] input and output)"
    return f"Cost: about {cost.expected:.2f} {currency} ({cost.low:.2f} to {cost.high:.2f})"


def _range(tokens: Range) -> str:
    return f"about {tokens.expected:,.0f} ({tokens.low:,.0f} to {tokens.high:,.0f})"

"""--dry-run of a run in shards: what all of them would send, and what they would save with one store of replies."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.cli.console import warn
from rag_eval.cli.dry_run import call_lines, cost_line, sending_line, time_lines
from rag_eval.cli.facts import fallback_notes
from rag_eval.cli.options import Options
from rag_eval.configuration.effective import CACHE_NAME, endpoint_of, prices_of
from rag_eval.errors import OVER_LIMIT
from rag_eval.judge.transport import Transport
from rag_eval.records import PROMPT_FORMS
from rag_eval.run.estimate import DryRunStore, Estimate, EstimatingJudge
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.store.reply_store import Store

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import Row
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.shards.folder import RunFolder
    from rag_eval.tables.table import Table

Shards = Callable[[], Iterable[tuple[int, Sequence["Row"]]]]
"""The number and the rows of each shard, from the beginning whenever it is called."""


class _Total:
    """What all shards come to."""

    def __init__(self) -> None:
        self.estimate = Estimate()
        self.calls: list[int] = []
        """Of each shard."""
        self.rows = self.cases = self.cached = self.outdated = self.too_long = 0
        self.fallbacks: Counter[str] = Counter()


class ShardEstimate:
    """Estimates shard by shard over a judge that makes its replies up."""

    def __init__(
        self, settings: "Settings", folder: "RunFolder", rubric: "EvaluationRubric | None", options: Options
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._rubric = rubric
        self._options = options
        self._endpoint = endpoint_of(settings)

    def lines(self, table: "Table", shards: Shards, files: int) -> Iterator[str]:
        """`table` has the columns and bots of all files; its rows are not looked at."""
        settings = self._settings
        is_shared = settings.cache.enabled or self._options.engine in (None, "local")
        found = self._count(shards, is_shared=is_shared)
        yield (
            f"Rows: {found.rows:,} in {len(found.calls):,} shards of {files:,} file{'s' if files > 1 else ''}, "
            f"bots: {len(table.bots)}. Cached replies: {found.cached:,}."
        )
        if found.outdated:
            yield f"Stored replies that are empty or unusable and would be requested again: {found.outdated}."
        if (form := settings.judge.prompts) != "ragas":
            yield f"Prompts: {form} ({PROMPT_FORMS[form]})."
        yield from fallback_notes(found.fallbacks, found.cases)
        yield from call_lines(found.estimate)
        if found.calls:
            yield f"Calls per shard: {min(found.calls):,} to {max(found.calls):,}."
        if found.too_long:
            yield f"Not sent because they exceed [limits] max_prompt_tokens: {found.too_long} calls."
        prices, currency = prices_of(settings), settings.prices.currency
        yield cost_line(found.estimate.cost(prices), currency)
        yield from time_lines(found.estimate, settings)
        if not is_shared and len(found.calls) > 1:
            shared = self._count(shards, is_shared=True)
            saved = sum(found.calls) - sum(shared.calls)
            yield (
                f"Each shard has its own store. With [cache] enabled on a disk that all shards use: {saved:,} calls "
                f"fewer. {cost_line(shared.estimate.cost(prices), currency)}"
            )
        yield sending_line(table, self._endpoint)

    def _count(self, shards: Shards, *, is_shared: bool) -> "_Total":
        found, made_up = _Total(), dict[str, str]()
        for number, rows in shards():
            store = DryRunStore(self._stored(number), made_up if is_shared else None)
            judge = EstimatingJudge(Transport(self._endpoint, store), self._endpoint.model)
            judges = Judges.llm(self._settings, judge, store, self._rubric)
            # One worker, so that all bundles are full but the last.
            evaluation = Evaluation(judges, self._settings, workers=1)
            try:
                for results in evaluation.results(rows):
                    found.cases += len(results)
            finally:
                evaluation.close()
                store.end(keep=True)
            found.rows += len(rows)
            found.calls.append(sum(judge.estimate.calls.values()))
            found.estimate.merge(judge.estimate)
            found.cached += len(store.used)
            found.outdated += evaluation.outdated
            found.too_long += evaluation.usage.failures.get(OVER_LIMIT, 0)
            found.fallbacks.update(evaluation.fallbacks)
        return found

    def _stored(self, number: int) -> Store | None:
        """Whatever earlier runs left for this shard."""
        cache, options = self._settings.cache, self._options
        journals = [self._folder.replies(None), self._folder.replies(number)]
        paths = [
            path for path in ([cache.directory / CACHE_NAME] * cache.enabled + journals) if path.exists()
        ]
        if not paths:
            return None
        return Store(
            paths[0],
            another=paths[1] if len(paths) > 1 else None,
            on_damage=None if options.strict_cache else warn,
            fresh=options.fresh,
            retry_errors=options.retry_errors,
            is_dry=True,
        )

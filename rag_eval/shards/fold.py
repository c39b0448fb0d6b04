"""The parts of a run as one run again: what was counted, what was marked, what it took, and every result in order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rag_eval.errors import InputError
from rag_eval.records import CaseResult, RunFacts, TaskUsage, Usage
from rag_eval.report.recorded import rescored
from rag_eval.results.baseline import PastRun
from rag_eval.results.tallies import Tallies
from rag_eval.shards.folder import RunFolder, about_results, read_results, read_state
from rag_eval.shards.judge_shard import scoring_of
from rag_eval.store.codec import from_plain


class Fold:
    """The parts that are done, in the order of the input."""

    def __init__(self, folder: RunFolder, numbers: Sequence[int], facts: RunFacts) -> None:
        """`numbers` are those of shards that are done. `facts` are those of the start of the run."""
        self._folder = folder
        self._numbers = sorted(numbers)
        about = [about_results(folder.results(number)) for number in self._numbers]
        self.facts = replace(
            facts,
            flags={(row, bot): tuple(marks) for each in about for row, bot, marks in each["flags"]},
            cut_contexts={(row, bot): words for each in about for row, bot, words in each["cuts"]},
            usage=_together(from_plain(Usage, each["usage"]) for each in about),
            seconds=sum(each["seconds"] for each in about),
            fallbacks=sum((Counter(each["fallbacks"]) for each in about), Counter[str]()),
        )
        self.adaptations = tuple(dict.fromkeys(text for each in about for text in each["adaptations"]))
        """Sentences on how the endpoint took the calls."""
        self.outdated: int = sum(each["outdated"] for each in about)
        """Stored replies that were asked for again."""
        self.redacted = sum((Counter(each["redacted"]) for each in about), Counter[str]())
        self.failed: int = sum(each["failed"] for each in about)
        """Cases that another run might judge."""
        self.renewed = 0
        """Recommendations that were computed anew; known when all results were walked over."""
        self._scoring = [each["scoring"] for each in about]

    def tallies(self, slice_by: str, past: PastRun | None, last: PastRun | None) -> Tallies:
        """`past` is the baseline, `last` the last comparable run of the history."""
        tallies = Tallies(self.facts, slice_by, past, last)
        for number in self._numbers:
            tallies.merge(read_state(self._folder.tallies(number))["tallies"])
        return tallies

    def results(self) -> Iterator[CaseResult]:
        """Every result, as the weights and thresholds are now. Raises InputError for a part that was damaged since."""
        now = scoring_of(self.facts)
        for number, scoring in zip(self._numbers, self._scoring, strict=True):
            path = self._folder.results(number)
            try:
                yield from read_results(path) if scoring == now else self._again(read_results(path))
            except (ValueError, OSError) as error:
                raise InputError(f"{path}: cannot be read; run the same command again ({error})") from error

    def _again(self, results: Iterator[CaseResult]) -> Iterator[CaseResult]:
        for result in results:
            now = rescored(result, self.facts, had_diagnostics=self.facts.diagnostics)
            self.renewed += now.recommendation != result.recommendation
            yield now


def _together(usages: Iterator[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        tasks = {**total.by_task}
        for task, used in usage.by_task.items():
            tasks[task] = tasks.get(task, TaskUsage()) + used
        costs = [cost for cost in (total.cost, usage.cost) if cost is not None]
        counts: dict[str, Any] = {name: getattr(total, name) + getattr(usage, name) for name in _COUNTS}
        total = Usage(
            **counts,
            failures=Counter(total.failures) + Counter(usage.failures),
            refused=Counter(total.refused) + Counter(usage.refused),
            uncounted_cost=total.uncounted_cost + usage.uncounted_cost,
            cost=sum(costs) if costs else None,
            by_task=tasks,
        )
    return total


_COUNTS = (
    "requests", "calls", "cached", "failed", "prompt_tokens", "completion_tokens", "possibly_billed", "uncounted",
)  # fmt: skip

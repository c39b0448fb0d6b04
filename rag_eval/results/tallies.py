"""Everything that is counted while the results of a run go by, and what it comes to at the end."""

import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from statistics import variance
from typing import TYPE_CHECKING, Any

from rag_eval.records import FAILURES, CaseResult, RunFacts
from rag_eval.results.baseline import BaselineComparison, PastRun
from rag_eval.results.causes import CauseTally
from rag_eval.results.findings import Findings, find
from rag_eval.results.human_alignment import AlignmentTally
from rag_eval.results.looks import conversation_of
from rag_eval.results.pass_rates import PassRateTally
from rag_eval.results.scoring import scores_of_case
from rag_eval.results.stored import State
from rag_eval.results.summary import Summarizer, Summary
from rag_eval.retrieval import RetrievalTally
from rag_eval.store.codec import from_json, to_json

if TYPE_CHECKING:
    from rag_eval.results.head_to_head import PairTally


MOST_FLAGGED = 10
"""Flagged cases that are named."""
_MOST_WORST = 5
"""Cases with the lowest RQS that are named."""


class Tallies:
    """Told of every result once, in order. Keeps numbers, and hardly any text.

    A run in parts has one for each part. Their states, merged in the order of the input, come to the same figures, to
    the last bit. A part has all bots of each of its rows.
    """

    def __init__(
        self,
        facts: RunFacts,
        slice_by: str = "",
        past: PastRun | None = None,
        last: PastRun | None = None,
        *,
        rows: int | None = None,
        is_part: bool = False,
    ) -> None:
        """`past` is the baseline, `last` the last comparable run of the history; the two may be one. `rows` are as many
        as labelled cases may have been drawn from, all of the facts unless another number is given.

        A part of a run keeps what a baseline may be compared with, and knows none.
        """
        self._summarizer = Summarizer(
            facts.bots, facts.metrics, facts.toxicity_threshold, slice_by, facts.further, facts.looks
        )
        self._looks, self._rows = facts.looks, facts.rows
        self._drawn_from = facts.rows if rows is None else rows
        self._comparison = BaselineComparison(past, facts) if past or is_part else None
        self._since_last = (
            self._comparison if last is past else BaselineComparison(last, facts) if last else None
        )
        self._pass_rates = PassRateTally(facts.bots, facts.criteria) if facts.rubric else None
        self._noise = NoiseTally()
        self.causes = CauseTally(facts.bots, facts.thresholds)
        self._weights = facts.weights
        self._pairs = _pair_tally(facts) if facts.head_to_head else None
        self._retrieval: dict[str, RetrievalTally] = {}
        self._flags = facts.flags
        self._flagged: list[CaseResult] = []
        self._worst: list[CaseResult] = []
        self._alignment = (
            AlignmentTally(facts.bots, facts.all_thresholds, facts.criteria, facts.strata)
            if facts.has_labels
            else None
        )

    def add(self, result: CaseResult, *, has_causes: bool = False) -> None:
        """With `has_causes`, those of the result are in `causes` already."""
        self._summarizer.add(result)
        self._noise.add(result)
        if not has_causes:
            self.causes.add(result)
        if self._comparison:
            self._comparison.add(result)
        if self._since_last and self._since_last is not self._comparison:
            self._since_last.add(result)
        if self._pass_rates and result.rubric:
            self._pass_rates.add(result.case.bot, result.rubric, conversation_of(result.case))
        if self._alignment:
            self._alignment.add(result)
        if self._pairs:
            self._pairs.add(result)
        if result.rqs is not None and (result.case.row, result.case.bot) in self._flags:
            self._flag([result])
        if result.rqs is not None:
            self._add_worst([result])
        if scores := scores_of_case(result.case):
            self._retrieval.setdefault(result.case.bot, RetrievalTally()).add(scores)

    def state(self) -> State:
        """All that was counted, for `merge`."""
        counted = {name: tally.state() for name, tally in self._parts().items()}
        retrieval = {bot: tally.state() for bot, tally in self._retrieval.items()}
        return {
            **counted,
            "retrieval": retrieval,
            "flagged": [to_json(result).decode() for result in self._flagged],
            "worst": [to_json(result).decode() for result in self._worst],
        }

    def merge(self, state: State) -> None:
        """Add the rows of a part of the run, which come after those that were added so far."""
        for name, tally in self._parts().items():
            tally.merge(state[name])
        if self._since_last and self._since_last is not self._comparison:
            self._since_last.merge(state["baseline"])
        for bot, tally in state["retrieval"].items():
            self._retrieval.setdefault(bot, RetrievalTally()).merge(tally)
        self._flag(from_json(CaseResult, line) for line in state["flagged"])
        self._add_worst(from_json(CaseResult, line) for line in state.get("worst", ()))

    def _parts(self) -> dict[str, Any]:
        tallies = {
            "summary": self._summarizer,
            "noise": self._noise,
            "causes": self.causes,
            "baseline": self._comparison,
            "pass_rates": self._pass_rates,
            "alignment": self._alignment,
            "pairs": self._pairs,
        }
        return {name: tally for name, tally in tallies.items() if tally is not None}

    def _flag(self, results: Iterable[CaseResult]) -> None:
        """Of equal ones the first stay."""
        self._flagged.extend(results)
        self._flagged.sort(key=lambda flagged: -(flagged.rqs or 0.0))
        del self._flagged[MOST_FLAGGED:]

    def _add_worst(self, results: Iterable[CaseResult]) -> None:
        """Of equal ones the first stay. Only responses that failed are worth a look."""
        for result in results:
            is_low = len(self._worst) < _MOST_WORST or _rqs(result) < _rqs(self._worst[-1])
            if is_low and not FAILURES.isdisjoint(result.failure_modes):
                self._worst.append(result)
                self._worst.sort(key=_rqs)
                del self._worst[_MOST_WORST:]

    def summary(self, values_of: Collection[str] | None = None) -> Summary:
        """`values_of` are the metrics whose single values are kept, all by default."""
        return self._summarizer.summary(values_of)

    def findings(self, summary: Summary) -> Findings:
        is_whole = all(bot.total_queries >= self._drawn_from for bot in summary.bots)
        return find(
            summary,
            self._comparison.changes() if self._comparison else None,
            self._weights,
            self._looks,
            self._rows,
            beside_changes=self._comparison.differences() if self._comparison else (),
            spent_changes=self._comparison.spent_changes() if self._comparison else (),
            common=self._comparison.common if self._comparison else {},
            not_comparable=self._comparison.not_comparable if self._comparison else "",
            pass_rates=self._pass_rates.pass_rates() if self._pass_rates else (),
            retrieval={bot: tally.summary() for bot, tally in self._retrieval.items()},
            alignment=self._alignment.alignment(is_whole=is_whole) if self._alignment else None,
            flagged=tuple(self._flagged),
            worst=tuple(self._worst),
            noise=self._noise.deviations(),
            causes=self.causes.causes(),
            head_to_head=self._pairs.head_to_head() if self._pairs else None,
            since_last=self._since_last.changes() if self._since_last else None,
        )


def _pair_tally(facts: RunFacts) -> "PairTally":
    from rag_eval.results.head_to_head import PairTally

    return PairTally(facts.bots, facts.head_to_head)


def _rqs(result: CaseResult) -> float:
    return result.rqs or 0.0


class NoiseTally:
    """Folds the samples of scores into one standard deviation a metric. Holds sums only, without rounding errors."""

    def __init__(self) -> None:
        self._variances: dict[str, Fraction] = {}
        self._scores: dict[str, int] = {}

    def add(self, result: CaseResult) -> None:
        for name, score in (*result.scores.items(), *result.further.items()):
            if len(score.samples) > 1:
                self._add(name, Fraction(variance(score.samples)), 1)

    def state(self) -> State:
        """What was added, for `merge`."""
        return {name: [str(total), self._scores[name]] for name, total in self._variances.items()}

    def merge(self, state: State) -> None:
        """Add what a part of the run has."""
        for name, (total, scores) in state.items():
            self._add(name, Fraction(total), scores)

    def deviations(self) -> Mapping[str, float]:
        """By metric: the standard deviation between samples, pooled over the scores that have several."""
        return {name: math.sqrt(float(total) / self._scores[name]) for name, total in self._variances.items()}

    def _add(self, name: str, total: Fraction, scores: int) -> None:
        self._variances[name] = self._variances.get(name, 0) + total
        self._scores[name] = self._scores.get(name, 0) + scores

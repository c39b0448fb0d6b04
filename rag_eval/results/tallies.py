"""Everything that is counted while the results of a run go by, and what it comes to at the end."""

from rag_eval.records import TOXICITY, CaseResult, RunFacts
from rag_eval.results.baseline import BaselineComparison, PastRun
from rag_eval.results.causes import CauseTally
from rag_eval.results.findings import Findings, find
from rag_eval.results.human_alignment import AlignmentTally
from rag_eval.results.noise import NoiseTally
from rag_eval.results.pass_rates import PassRateTally
from rag_eval.results.summary import Summarizer, Summary
from rag_eval.retrieval import RetrievalTally, scores_of_case

MOST_FLAGGED = 10
"""Flagged cases that are named."""


class Tallies:
    """Told of every result once, in order. Keeps numbers, and hardly any text."""

    def __init__(self, facts: RunFacts, slice_by: str = "", past: PastRun | None = None) -> None:
        self._summarizer = Summarizer(
            facts.bots, facts.metrics, facts.toxicity_threshold, slice_by, facts.further
        )
        self._comparison = BaselineComparison(past, facts) if past else None
        self._pass_rates = PassRateTally(facts.bots, facts.criteria) if facts.rubric else None
        self._noise = NoiseTally()
        self._causes = CauseTally(facts.bots, facts.thresholds)
        self._weights = facts.weights
        self._retrieval: dict[str, RetrievalTally] = {}
        self._flags = facts.flags
        self._flagged: list[CaseResult] = []
        thresholds = {**facts.thresholds, TOXICITY: facts.toxicity_threshold}
        self._alignment = AlignmentTally(facts.bots, thresholds, facts.criteria) if facts.has_labels else None

    def add(self, result: CaseResult) -> None:
        self._summarizer.add(result)
        self._noise.add(result)
        self._causes.add(result)
        if self._comparison:
            self._comparison.add(result)
        if self._pass_rates and result.rubric:
            self._pass_rates.add(result.case.bot, result.rubric)
        if self._alignment:
            self._alignment.add(result)
        if result.rqs is not None and (result.case.row, result.case.bot) in self._flags:
            self._flagged.append(result)
            self._flagged.sort(key=lambda flagged: -(flagged.rqs or 0.0))
            del self._flagged[MOST_FLAGGED:]
        if scores := scores_of_case(result.case):
            self._retrieval.setdefault(result.case.bot, RetrievalTally()).add(scores)

    def summary(self) -> Summary:
        return self._summarizer.summary()

    def findings(self, summary: Summary) -> Findings:
        return find(
            summary,
            self._comparison.changes() if self._comparison else None,
            self._weights,
            beside_changes=self._comparison.differences() if self._comparison else (),
            pass_rates=self._pass_rates.pass_rates() if self._pass_rates else (),
            retrieval={bot: tally.summary() for bot, tally in self._retrieval.items()},
            alignment=self._alignment.alignment() if self._alignment else None,
            flagged=tuple(self._flagged),
            noise=self._noise.deviations(),
            causes=self._causes.causes(),
        )

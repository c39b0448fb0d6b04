"""A run that looks at its results at planned points, and ends when nothing is left to find out."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rag_eval.errors import InputError
from rag_eval.judge.null_judges import NoStore
from rag_eval.records import CaseResult, PlannedLook, Row, RunFacts
from rag_eval.results.findings import find
from rag_eval.results.gates import Gate, is_decided
from rag_eval.results.looks import confidence_of, in_order, key_of, planned_looks
from rag_eval.results.summary import Summarizer, Summary
from rag_eval.results.verdict import TOO_CLOSE

if TYPE_CHECKING:
    from rag_eval.configuration.settings import Settings
    from rag_eval.judge.calls import ReplyStore
    from rag_eval.run.evaluation import Evaluation


_NOTE = "looks"
"""Of the store: the plans of earlier runs, the last one last."""
_MOST_PLANS = 10
_FIRST = 64
_SHORT = 16
"""The first keys tell how many queries two runs have in common, as good as at random."""
_MOSTLY = 0.5
_LOOKS_ADD_UP = (
    "Earlier runs looked at mostly the same queries; looks before this run: {}. Looks add up: the chance of a wrong "
    "claim is larger than that of one run."
)
_SKIPPED = (
    "Planned looks that were left out: {}. They have too few rows for anything to be clear, or the same rows as "
    "another look."
)


class UntilClear:
    """The plan of such a run, and what became of it."""

    def __init__(
        self,
        rows: Sequence[Row],
        bots: Sequence[str],
        settings: "Settings",
        gates: Sequence[Gate],
        *,
        is_again: bool,
    ) -> None:
        """`is_again` is a report from stored replies: it decides no look again that the run has decided.

        Raises InputError if there is nothing that could become clear."""
        if len(bots) == 1 and not gates and not is_again:
            raise InputError(
                "--until-clear: with one bot there is nothing to decide; add a gate, such as --fail-under rqs=0.7, or "
                "leave --until-clear out"
            )
        keys = [key_of(row.cases[0]) for row in rows]
        self._rows = rows
        self._order = in_order(keys)
        self._gates = gates
        self._least_coverage = settings.evaluation.min_coverage
        self.looks = planned_looks(keys, settings.evaluation.looks)
        """All that are planned."""
        self.skipped = len(settings.evaluation.looks) + 1 - len(self.looks)
        """Looks at too few rows for anything to be clear, or at the same rows as another one."""
        self._first = [key[:_SHORT] for key in sorted(set(keys))[:_FIRST]]
        self._digest = _digest(keys, rows)
        self._store: ReplyStore = NoStore()
        self._plans: list[dict[str, Any]] = []
        self._is_again = is_again
        self._decided = 0, False
        """How many looks the run has taken whose replies are reported again, and whether it ended there."""
        self.taken = 0
        """How many of them there were."""

    def begin(self, facts: RunFacts, store: "ReplyStore") -> RunFacts:
        """With the plan, and a note if earlier looks at mostly the same queries are in the store beside the replies."""
        self._store = store
        if self._is_again and (plan := self._recorded(store)):
            self.looks = tuple(PlannedLook(*look) for look in plan["looks"])
            self._decided = plan["taken"], plan["over"]
        self._plans = [plan for plan in _read_plans(store) if not self._is_mine(plan)]
        before = [plan for plan in self._plans if _overlap(plan["first"], self._first) > _MOSTLY]
        notes = [_LOOKS_ADD_UP.format(sum(plan["taken"] for plan in before))] if before else []
        if self.skipped:
            notes.append(_SKIPPED.format(self.skipped))
        self._facts = replace(facts, looks=self.looks, notes=(*facts.notes, *notes))
        return self._facts

    def has_been_taken(self, store: "ReplyStore") -> bool:
        """Whether replies are stored that a run over these rows got until it was clear."""
        return self._recorded(store) is not None

    def facts(self, facts: RunFacts) -> RunFacts:
        """With the looks that there were."""
        return replace(facts, looks_taken=self.taken)

    def results(
        self, evaluation: "Evaluation", on_row: Callable[[Sequence[CaseResult]], None]
    ) -> Iterator[tuple[CaseResult, ...]]:
        """The results of the rows that were judged, in the order of the sheet: they are known when the last look is.

        `on_row` is told of each row as soon as it is judged. A run that is stopped by something else comes to its end:
        the rows that it did not judge are marked so.
        """
        facts = self._facts
        summarizer = Summarizer(
            facts.bots, facts.metrics, facts.toxicity_threshold, further=facts.further, looks=self.looks
        )
        found: dict[int, tuple[CaseResult, ...]] = {}
        for begin, look in pairwise([PlannedLook(0, 0.0), *self.looks]):
            places = self._order[begin.rows : look.rows]
            # Nothing of the next look is sent before this one is decided.
            rows = (self._rows[place] for place in places)
            for results, place in zip(evaluation.results(rows, with_pairs=False), places, strict=False):
                found[place] = results
                for result in results:
                    summarizer.add(result)
                on_row(results)
            if evaluation.stopped:
                continue
            self.taken += 1
            is_over = look == self.looks[-1] or self._is_over(summarizer)
            self._record(is_over=is_over)
            if is_over:
                break
        # Pairs decide nothing about the end: they are compared after it, for the rows that were judged.
        yield from evaluation.compared(found[place] for place in sorted(found))

    def _is_over(self, summarizer: Summarizer) -> bool:
        decided, is_over = self._decided
        if self.taken <= decided:
            return is_over and self.taken == decided
        return self._is_clear(summarizer.summary(), self._facts)

    def _record(self, *, is_over: bool) -> None:
        """Keep the looks so far beside the replies that they were paid with."""
        looks = [[look.rows, look.spent] for look in self.looks]
        mine = {
            "digest": self._digest,
            "first": self._first,
            "looks": looks,
            "taken": self.taken,
            "over": is_over,
        }
        self._store.put_note(_NOTE, json.dumps([*self._plans, mine][-_MOST_PLANS:]))

    def _recorded(self, store: "ReplyStore") -> dict[str, Any] | None:
        """The last plan for these rows."""
        plans = (plan for plan in reversed(_read_plans(store)) if plan["digest"] == self._digest)
        return next(plans, None)

    def _is_mine(self, plan: dict[str, Any]) -> bool:
        rows = [row for row, _ in plan["looks"]]
        return plan["digest"] == self._digest and rows == [look.rows for look in self.looks]

    def _is_clear(self, summary: Summary, facts: RunFacts) -> bool:
        """Whether the best bot is better than the next one, and every gate is passed or missed."""
        if len(summary.bots) > 1:
            comparison = find(summary, None, facts.weights, self.looks, len(self._rows)).comparison
            rivals = comparison.rivals if comparison else ()
            if not rivals or not rivals[0].is_significant:
                return False
            if facts.is_proxy and rivals[0].difference < TOO_CLOSE:
                return False
        elif not self._gates:
            return False
        confidence = confidence_of(self.looks[: self.taken], len(self._rows))
        return all(
            is_decided(gate, bot, self._least_coverage, confidence)
            for gate in self._gates
            for bot in summary.bots
            if bot.bot not in facts.earlier_bots
        )


def _digest(keys: Sequence[str], rows: Sequence[Row]) -> str:
    """Of the queries and of what every bot answered."""
    digest = sha256()
    for place in in_order(keys):
        texts = [keys[place], *(text for case in rows[place].cases for text in (case.bot, case.response))]
        digest.update(json.dumps(texts).encode())
    return digest.hexdigest()


def _read_plans(store: "ReplyStore") -> list[dict[str, Any]]:
    """None where another version wrote something else."""
    try:
        plans = json.loads(store.note(_NOTE) or "[]")
        return [plan for plan in plans if {"digest", "first", "looks", "taken", "over"} <= plan.keys()]
    except (ValueError, TypeError, AttributeError):
        return []


def _overlap(one: Sequence[str], other: Sequence[str]) -> float:
    """Share of the queries of both that are in both, by the first keys of each (Broder 1997)."""
    first = sorted({*one, *other})[: min(len(one), len(other))]
    return sum(key in one and key in other for key in first) / len(first) if first else 0.0

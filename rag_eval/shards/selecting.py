"""Cases of a run in shards that conditions hold for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval.errors import InputError
from rag_eval.records import SCORE_LABELS, CaseResult, RunFacts
from rag_eval.results.scoring import DOCUMENT_LABELS, scores_of_case
from rag_eval.results.summary import spent_header
from rag_eval.shards.folder import measures_of
from rag_eval.tables.names import nearest, squeezed
from rag_eval.tables.selection import Condition


class CaseSelection:
    """Conditions on the columns of the results, joined by 'and'."""

    def __init__(self, conditions: Sequence[Condition], facts: RunFacts) -> None:
        """Raises InputError for a name that is not a column of the results."""
        known = {squeezed(name): name for name in _columns(facts)}
        headers = {name: spent_header(name, facts) for name in facts.spent_units}
        headers |= _measures_of_documents(facts)
        labels = {
            squeezed(label): name for name, label in {**SCORE_LABELS, **facts.further, **headers}.items()
        }
        known = {**{label: name for label, name in labels.items() if name in known.values()}, **known}
        known[squeezed("Failure Mode")] = "failure_modes"
        self.seen = 0
        """Results that were looked at."""
        self._conditions = []
        for condition in conditions:
            name = known.get(squeezed(condition.column))
            if name is None:
                hint = nearest(condition.column, _columns(facts), "names")
                raise InputError(f"--where: '{condition.column[:60]}' is not a column of the results{hint}")
            if name in _numbers(facts) and not condition.is_of_number:
                raise InputError(
                    f"--where: '{condition.value[:60]}' is not a number; {name} is compared with one, such as 0.3"
                )
            self._conditions.append((name, condition))

    def chosen(self, results: Iterator[CaseResult]) -> Iterator[CaseResult]:
        for result in results:
            self.seen += 1
            values = _values(result)
            if all(condition.holds(_cell(values.get(name))) for name, condition in self._conditions):
                yield result


def _columns(facts: RunFacts) -> list[str]:
    further = [column for name in measures_of(facts) for column in (f"{name}_outcome", f"{name}_code")]
    return [
        *_OF_CASE,
        *_numbers(facts),
        "failure_modes",
        *(["rubric_passed"] if facts.rubric else []),
        *further,
    ]


def _numbers(facts: RunFacts) -> list[str]:
    """The columns of numbers."""
    labels = [f"{_LABEL}{name}" for name in (*measures_of(facts), *facts.criteria) if facts.has_labels]
    of_case = [*facts.spent_units, *_measures_of_documents(facts), *labels]
    return ["row", "source_row", "rqs", *measures_of(facts), *of_case]


def _measures_of_documents(facts: RunFacts) -> Mapping[str, str]:
    return DOCUMENT_LABELS if facts.has_gold else {}


_LABEL = "human_"
_OF_CASE = ("source", "bot", "query", "response", "reference", "recommendation")


def _values(result: CaseResult) -> Mapping[str, Any]:
    case = result.case
    values = {
        "row": case.row,
        "source": case.source,
        "source_row": case.source_row if case.source_row is not None else case.row,
        "bot": case.bot,
        "query": case.query,
        "response": case.response,
        "reference": case.reference,
        "recommendation": result.recommendation,
        "rqs": result.rqs,
        "failure_modes": " | ".join(result.failure_modes),
        "rubric_passed": None if result.rubric is None or result.rubric.passed is None
        else ("yes" if result.rubric.passed else "no"),
        **case.spent,
        **(documents.values() if (documents := scores_of_case(case)) else {}),
        **{f"{_LABEL}{name}": label for name, label in case.human.items()},
    }  # fmt: skip
    for name, score in {**result.scores, **result.further, "toxicity": result.toxicity}.items():
        values |= {name: score.value, f"{name}_outcome": str(score.outcome), f"{name}_code": score.code}
    return values


def _cell(value: Any) -> str:
    return "" if value is None else str(value)

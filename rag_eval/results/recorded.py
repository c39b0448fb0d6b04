"""A run read back from its JSON, so that a new report can be made of it without the judge."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from rag_eval.errors import InputError
from rag_eval.metrics.recommendations import advice_by_rule
from rag_eval.records import (
    DIFFERS,
    METRIC_LABELS,
    SCORE_FLAGS,
    SPENT_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    Outcome,
    RunFacts,
    Usage,
)
from rag_eval.results.scoring import doc_recall, failure_modes, rqs, with_gaps
from rag_eval.results.stored import is_score, read_run_document
from rag_eval.tables.input_files import check_is_file
from rag_eval.texts.display import shorten

Json = dict[str, Any]
_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The facts and results of an earlier run."""

    name: str
    """Name of its file, without the folder."""
    facts: RunFacts
    results: tuple[CaseResult, ...]
    """In the order of the input."""
    provenance: Mapping[str, Any]
    """Members `configuration` and `versions`; `made_from` if the run was itself made from another run's JSON."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """The run in a file that --json wrote, with this version or an earlier one.

        A member that an earlier version did not write gets the default of its field. Raises InputError, which names
        the case and the member, when the file is anything else.
        """
        check_is_file(path)
        return cls._made_of(path, partial(read_run_document, path))

    @classmethod
    def found(cls, path: Path) -> Self | None:
        """The same; None for a file that is something else, such as a table in JSON."""
        try:
            document = read_run_document(path) if path.suffix.lower() == ".json" else {}
        except (OSError, ValueError):
            return None
        return cls._made_of(path, lambda: document) if "format" in document else None

    @classmethod
    def _made_of(cls, path: Path, read: Callable[[], Json]) -> Self:
        try:
            document = read()
            if "format" not in document:
                raise KeyError("format")
            cases = document["cases"]
            provenance = {name: document[name] for name in _PROVENANCE if name in document}
            _check_plain(provenance | {"run.reading": document["run"].get("reading")})
            (facts,) = _validated(RunFacts, [_facts(document)], ["run"])
            _validated(_Reading, [facts.reading], ["run.reading"])
            places = (f"row {case['row']}, bot {case['bot']}" for case in cases)
            results = _validated(CaseResult, [_result(case) for case in cases], places)
            _check(facts, results)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = " ".join(_describe(error).split())[:200]
            raise InputError(
                f"{path}: cannot be read as a run that --json wrote ({reason}); add --json to a run and use that file"
            ) from error
        return cls(path.name, facts, results, provenance)

    @property
    def bots(self) -> tuple[str, ...]:
        return self.facts.bots

    @property
    def rows(self) -> tuple[tuple[CaseResult, ...], ...]:
        """The results of each row."""
        return tuple(rows_of(self.results))

    @property
    def paid(self) -> Usage:
        """What it took, all of it by earlier commands."""
        usage = self.facts.usage
        return replace(usage, earlier_requests=usage.requests, earlier_cost=usage.cost or 0.0)

    def has_pairs(self, choice: str) -> bool:
        """Whether its responses were compared in pairs that were chosen so, without a failure."""
        verdicts = [verdict for result in self.results for verdict in result.pairs]
        is_whole = bool(verdicts) and all(verdict.outcome is Outcome.SCORED for verdict in verdicts)
        return self.facts.head_to_head == choice and is_whole

    def with_paid(self, now: Usage) -> Usage:
        """What it took together with what was paid for it now; of an unknown cost nothing is known."""
        total = self.paid + now
        is_known = not self.paid.requests or self.paid.cost is not None
        return total if is_known else replace(total, cost=None, earlier_cost=0.0)

    def check_slices(self, slice_by: str) -> None:
        """Raises InputError if the run was recorded without the column `slice_by`; '' asks for no slices."""
        columns = dict.fromkeys(name for result in self.results for name in result.case.columns)
        if slice_by and slice_by not in columns:
            found = f"it has {', '.join(map(repr, columns))}" if columns else "it has none"
            raise InputError(
                f"{self.name}: '{slice_by}' is not a column of the recorded run ({found}); a run records only the "
                "columns that [report] slice_by or its rubric names: judge again with it, or take slice_by out of the "
                "configuration for a report without slices"
            )

    def rescored(self, facts: RunFacts) -> "RecordedRun":
        """The same scores with RQS and failure modes recomputed for the weights and thresholds of `facts`.

        A recommendation is recomputed by rule if none was recorded or if the failure modes changed; a note gives
        their number. The judge is not called.
        """
        had_diagnostics = self.facts.diagnostics
        scored = (rescored(row, facts, had_diagnostics=had_diagnostics) for row in self.rows)
        results = tuple(itertools.chain.from_iterable(scored))
        notes = (*facts.notes, *renewed_notes(renewed(self.results, results)))
        return replace(self, facts=replace(facts, notes=notes), results=results)


def rows_of(results: Iterable[CaseResult]) -> Iterator[tuple[CaseResult, ...]]:
    """The results of each row."""
    return (tuple(row) for _, row in itertools.groupby(results, lambda result: result.case.row))


def rescored(row: Sequence[CaseResult], facts: RunFacts, *, had_diagnostics: bool) -> tuple[CaseResult, ...]:
    """The same scores of a row with RQS and failure modes for the weights and thresholds of `facts`.

    The recommendation is recomputed by rule if none was recorded or if the failure modes changed.
    """
    return with_gaps([_rescored(result, facts, had_diagnostics=had_diagnostics) for result in row])


def renewed(before: Iterable[CaseResult], now: Iterable[CaseResult]) -> int:
    """How many recommendations differ."""
    pairs = zip(before, now, strict=True)
    return sum(one.recommendation != other.recommendation for one, other in pairs)


def renewed_notes(count: int) -> tuple[str, ...]:
    """A sentence on recommendations that were recomputed; none if there are none."""
    return (f"Recommendations recomputed by rule: {count:,}.",) if count else ()


def _rescored(result: CaseResult, facts: RunFacts, *, had_diagnostics: bool) -> CaseResult:
    recall = doc_recall(result.case) if facts.gold_ids else None
    modes = failure_modes(result.scores, facts.thresholds, recall, is_missing=result.case.is_missing)
    now = replace(result, rqs=rqs(result.scores, facts.weights), failure_modes=modes)
    is_kept = had_diagnostics and modes == result.failure_modes
    if is_kept or not facts.diagnostics:
        return now
    return replace(now, recommendation=advice_by_rule(now, facts.thresholds))


_PROVENANCE = ("configuration", "versions", "made_from")
"""Members of the document that say what the run was judged with."""


def _validated(
    kind: type[_Record], records: Sequence[Mapping[str, Any]], places: Iterable[str]
) -> tuple[_Record, ...]:
    """Raises ValueError, which begins with the place of the record, for one that its dataclass does not allow."""
    # Pydantic passes a configuration on to a dataclass only from a type that is not a dataclass.
    adapter = TypeAdapter(tuple[kind, ...], config=ConfigDict(allow_inf_nan=False))  # type: ignore[valid-type]
    try:
        return adapter.validate_python(records)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        index, *members = problem["loc"]
        place = next(itertools.islice(places, int(index), None))
        raise ValueError(f"{place}: {'.'.join(map(str, members))}: {problem['msg']}") from error


@dataclass(frozen=True, slots=True)
class _ColumnUse:
    header: str
    role: str
    bot: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a report shows of RunFacts.reading."""

    shape: str = ""
    columns: tuple[_ColumnUse, ...] = ()
    context_cells: Mapping[str, int] = field(default_factory=dict)
    selection: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _check_plain(members: Json) -> None:
    """Raises ValueError for a number that a new JSON could not have."""
    for name, value in members.items():
        try:
            json.dumps(value, allow_nan=False)
        except ValueError:
            raise ValueError(f"{name}: has a number that is not finite") from None


def _check(facts: RunFacts, results: Sequence[CaseResult]) -> None:
    """Raises ValueError, which begins with the place, for a case that a report cannot show."""
    for result in results:
        problem = next(_problems(result, facts), None)
        if problem:
            raise ValueError(f"row {result.case.row}, bot {shorten(result.case.bot, 40)}: {problem}")


def _problems(result: CaseResult, facts: RunFacts) -> Iterator[str]:
    case = result.case
    for name, row in (("row", case.row), ("source_row", case.source_row or 0)):
        if not 0 <= row <= _LAST_ROW:
            yield f"{name}: {row:.6g} is not a row number"
    if case.bot not in facts.bots:
        yield "bot: is not among run.bots"
    metrics = [name for name in METRIC_LABELS if name in facts.metrics]
    for member, found, wanted in (
        ("scores", result.scores, metrics),
        ("further", result.further, facts.further),
    ):
        yield from (f"{member}.{name}: is missing" for name in wanted if name not in found)
        yield from (f"{member}.{name}: is not a metric of the run" for name in found if name not in wanted)
    scores = {f"scores.{name}": score for name, score in result.scores.items()}
    scores |= {f"further.{name}": score for name, score in result.further.items()}
    for place, score in (*scores.items(), (TOXICITY, result.toxicity)):
        if (score.outcome is Outcome.SCORED) is (score.value is None):
            yield f"{place}: its value does not fit its outcome '{score.outcome}'"
        yield from _beyond(f"{place}.value", [score.value])
        yield from _beyond(f"{place}.samples", score.samples)
    yield from _beyond("rqs", [result.rqs])
    yield from _spending_problems(case, facts)
    for member, labels in (("human", case.human), *(("labels", labels) for labels in case.labels.values())):
        yield from _beyond(member, labels.values())
        yield from (
            f"{member}.{name}: {value:.6g} is neither 0 nor 1"
            for name, value in labels.items()
            if name in facts.criteria and value not in (0, 1)
        )
    yield from (
        f"pairs.labels.{shorten(rater, 40)}: {value:.6g} is not one of -1, 0 and 1"
        for pair in result.pairs
        for rater, value in pair.labels.items()
        if value not in (-1, 0, 1)
    )


_LAST_ROW = 2**31


def _spending_problems(case: Case, facts: RunFacts) -> Iterator[str]:
    for name in (*facts.spent_units, *case.spent):
        if name not in SPENT_LABELS:
            yield f"spent.{shorten(name, 40)}: is not one of {', '.join(SPENT_LABELS)}"
    for name, value in case.spent.items():
        if name not in facts.spent_units:
            yield f"spent.{shorten(name, 40)}: is not in run.spent_units"
        if value < 0:
            yield f"spent.{shorten(name, 40)}: {value:.6g} is below 0"


def _beyond(place: str, values: Iterable[float | None]) -> Iterator[str]:
    for value in values:
        if value is not None and not is_score(value):
            yield f"{place}: {value:.6g} is not a number from 0 to 1"


def _result(case: Json) -> Json:
    """The fields of a CaseResult, nested as they are there."""
    return {
        **case,
        "case": case,
        "scores": _named(case["scores"]),
        "further": _named(case.get("further", {})),
        "toxicity": case["toxicity"] | {"metric": TOXICITY},
    }


def _named(scores: Mapping[str, Json]) -> Json:
    return {name: score | {"metric": name} for name, score in scores.items()}


def _facts(document: Json) -> Json:
    """The fields of RunFacts: they are in three places, since some are known only at the end."""
    cases, end = document["cases"], document["end"]
    return {
        **document["run"],
        **end,
        "partial": end["reason"],
        "usage": {**end["usage"], "by_task": end["usage"].get("by_metric", {})},
        "flags": {_key(case): flags for case in cases if (flags := _of_texts(case.get("flags") or ()))},
        "cut_contexts": {_key(case): case["cut_context"] for case in cases if case.get("cut_context")},
    }


def _of_texts(flags: Sequence[str]) -> list[str]:
    """Without those that follow from the scores."""
    of_scores = tuple(f": {flag}" for flag in SCORE_FLAGS.values())
    return [flag for flag in flags if flag != DIFFERS and not flag.endswith(of_scores)]


def _key(case: Json) -> tuple[int, str]:
    return case["row"], case["bot"]


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return "a member has the wrong type" if isinstance(error, TypeError | AttributeError) else str(error)

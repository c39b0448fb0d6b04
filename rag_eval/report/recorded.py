"""A run read back from its JSON, so that a new report can be made of it without the judge."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from rag_eval.errors import InputError
from rag_eval.metrics.recommendations import advice_by_rule
from rag_eval.records import INCOMPLETE_FLAG, TOXICITY, CaseResult, RunFacts
from rag_eval.report.json_file import FORMAT, Json
from rag_eval.results.scoring import failure_modes, rqs
from rag_eval.retrieval import doc_recall
from rag_eval.tables.input_files import check_is_file

_Record = TypeVar("_Record", CaseResult, RunFacts)


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
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT:
                raise ValueError(f"its format is {document['format']!r}, expected {FORMAT!r}")
            cases = document["cases"]
            (facts,) = _validated(RunFacts, [_facts(document)], ["run"])
            places = (f"row {case['row']}, bot {case['bot']}" for case in cases)
            results = _validated(CaseResult, [_result(case) for case in cases], places)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            reason = " ".join(_describe(error).split())[:200]
            raise InputError(
                f"{path}: cannot be read as a run that --json wrote ({reason}); add --json to a run and use that file"
            ) from error
        provenance = {name: document[name] for name in _PROVENANCE if name in document}
        return cls(path.name, facts, results, provenance)

    def check_slices(self, slice_by: str) -> None:
        """Raises InputError if the run was recorded without the column `slice_by`; '' asks for no slices."""
        columns = dict.fromkeys(name for result in self.results for name in result.case.columns)
        if slice_by and slice_by not in columns:
            found = f"it has {', '.join(map(repr, columns))}" if columns else "it has none"
            raise InputError(
                f"{self.name}: '{slice_by}' is not a column of the recorded run ({found}); a run records only the "
                "columns that [report] slice_by or its rubric names: judge again with [report] slice_by"
            )

    def rescored(self, facts: RunFacts) -> "RecordedRun":
        """The same scores with RQS and failure modes recomputed for the weights and thresholds of `facts`.

        A recommendation is recomputed by rule if none was recorded or if the failure modes changed; a note gives
        their number. The judge is not called.
        """
        results = tuple(
            rescored(result, facts, had_diagnostics=self.facts.diagnostics) for result in self.results
        )
        pairs = zip(self.results, results, strict=True)
        renewed = sum(now.recommendation != before.recommendation for before, now in pairs)
        if renewed:
            note = f"Recommendations recomputed by rule: {renewed:,}."
            facts = replace(facts, notes=(*facts.notes, note))
        return replace(self, facts=facts, results=results)


def rescored(result: CaseResult, facts: RunFacts, *, had_diagnostics: bool) -> CaseResult:
    """The same scores with RQS and failure modes for the weights and thresholds of `facts`.

    The recommendation is recomputed by rule if none was recorded or if the failure modes changed.
    """
    recall = doc_recall(result.case) if facts.gold_ids else None
    modes = failure_modes(result.scores, facts.thresholds, recall)
    now = replace(result, rqs=rqs(result.scores, facts.weights), failure_modes=modes)
    is_kept = had_diagnostics and modes == result.failure_modes
    if is_kept or not facts.diagnostics:
        return now
    return replace(now, recommendation=advice_by_rule(now, facts.thresholds))


_PROVENANCE = ("configuration", "versions", "made_from")
"""Members of the document that say what the run was judged with."""


def _validated(kind: type[_Record], records: Sequence[Json], places: Iterable[str]) -> tuple[_Record, ...]:
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
    return [flag for flag in flags if not flag.endswith(f": {INCOMPLETE_FLAG}")]


def _key(case: Json) -> tuple[int, str]:
    return case["row"], case["bot"]


def _describe(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, UnicodeDecodeError):
        return "it is not a text file in UTF-8"
    return "a member has the wrong type" if isinstance(error, TypeError | AttributeError) else str(error)

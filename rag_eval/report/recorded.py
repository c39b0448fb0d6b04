"""A run read back from its JSON, so that a new report can be made of it without the judge."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_eval.errors import InputError
from rag_eval.metrics.recommendations import advice_by_rule
from rag_eval.records import (
    TOXICITY,
    Case,
    CaseResult,
    CriterionVerdict,
    Evidence,
    FailureMode,
    Outcome,
    RubricOutcome,
    RunFacts,
    Score,
)
from rag_eval.report.json_file import FORMAT, read_usage
from rag_eval.results.scoring import failure_modes, rqs
from rag_eval.retrieval import doc_recall
from rag_eval.tables.input_files import check_is_file


@dataclass(frozen=True, slots=True)
class RecordedRun:
    name: str
    """Of its file."""
    facts: RunFacts
    results: tuple[CaseResult, ...]
    circumstances: Mapping[str, Any]
    """What it was judged with: settings, versions of packages and, if it was made again itself, of what."""

    def check_slices(self, slice_by: str) -> None:
        """Raises InputError when the run was recorded without the column that it is to be sliced by."""
        columns = dict.fromkeys(name for result in self.results for name in result.case.columns)
        if slice_by and slice_by not in columns:
            found = f"it has {', '.join(map(repr, columns))}" if columns else "it has none"
            raise InputError(
                f"{self.name}: '{slice_by}' is not a column of the recorded run ({found}); only a column that "
                "[report] slice_by or a rubric named when the answers were judged is recorded"
            )

    def rescored(self, facts: RunFacts) -> "RecordedRun":
        """The same scores, composed and classified anew, as `facts` say; a note tells of new recommendations.

        Those are by rule, and where none was recorded or the failure modes changed: the judge is not asked.
        """
        results = tuple(self._rescored(result, facts) for result in self.results)
        pairs = zip(self.results, results, strict=True)
        renewed = sum(now.recommendation != before.recommendation for before, now in pairs)
        if renewed:
            note = f"Recommendations recomputed by rule: {renewed:,}."
            facts = replace(facts, notes=(*facts.notes, note))
        return replace(self, facts=facts, results=results)

    def _rescored(self, result: CaseResult, facts: RunFacts) -> CaseResult:
        recall = doc_recall(result.case) if facts.gold_ids else None
        modes = failure_modes(result.scores, facts.thresholds, recall)
        rescored = replace(result, rqs=rqs(result.scores, facts.weights), failure_modes=modes)
        is_kept = self.facts.diagnostics and modes == result.failure_modes
        if is_kept or not facts.diagnostics:
            return rescored
        return replace(rescored, recommendation=advice_by_rule(rescored))


def read_run(path: Path) -> RecordedRun:
    """The run in a file that --json wrote. Raises InputError when it is none."""
    check_is_file(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}, expected {FORMAT!r}")
        results = tuple(_result(case) for case in document["cases"])
        circumstances = {name: document[name] for name in _CIRCUMSTANCES if name in document}
        return RecordedRun(path.name, _facts(document, results), results, circumstances)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{path}: cannot be read as a run that --json wrote ({reason})") from error


_CIRCUMSTANCES = ("configuration", "versions", "made_from")
"""Members of the document."""


def _facts(document: Mapping[str, Any], results: tuple[CaseResult, ...]) -> RunFacts:
    run, end = document["run"], document["end"]
    known = {field.name for field in fields(RunFacts)}
    cases = [(result.case.row, result.case.bot) for result in results]
    flagged = zip(cases, (tuple(case.get("flags", ())) for case in document["cases"]), strict=True)
    cuts = zip(cases, (case.get("cut_context", "") for case in document["cases"]), strict=True)
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in run.items()
        if name in known
    }
    return RunFacts(
        **{
            **values,
            "started": datetime.fromisoformat(run["started"]),
            "flags": {case: flags for case, flags in flagged if flags},
            "cut_contexts": {case: cut for case, cut in cuts if cut},
            "partial": end["reason"],
            "notes": tuple(end["notes"]),
            "seconds": end["seconds"],
            "usage": read_usage(end["usage"]),
        }
    )


def _result(case: Mapping[str, Any]) -> CaseResult:
    return CaseResult(
        case=_case(case),
        scores={name: _score(name, score) for name, score in case["scores"].items()},
        toxicity=_score(TOXICITY, case["toxicity"]),
        rqs=case["rqs"],
        failure_modes=tuple(FailureMode(mode) for mode in case["failure_modes"]),
        recommendation=case["recommendation"],
        further={name: _score(name, score) for name, score in case.get("further", {}).items()},
        rubric=_rubric(case["rubric"]) if case.get("rubric") else None,
    )


def _rubric(rubric: Mapping[str, Any]) -> RubricOutcome:
    return RubricOutcome(
        **{
            **rubric,
            "outcome": Outcome(rubric["outcome"]),
            "verdicts": tuple(CriterionVerdict(**verdict) for verdict in rubric["verdicts"]),
            "criteria": tuple(rubric["criteria"]),
        }
    )


def _case(case: Mapping[str, Any]) -> Case:
    def ids(name: str) -> tuple[str, ...] | None:
        return None if case[name] is None else tuple(case[name])

    return Case(
        row=case["row"],
        bot=case["bot"],
        query=case["query"],
        response=case["response"],
        reference=case["reference"],
        chunks=ids("chunks"),
        gold_ids=ids("gold_ids"),
        retrieved_ids=ids("retrieved_ids"),
        human=MappingProxyType(case["human"]),
        columns=MappingProxyType(case["columns"]),
    )


def _score(metric: str, score: Mapping[str, Any]) -> Score:
    evidence = tuple(Evidence(**item) for item in score["evidence"])
    return Score(
        metric,
        Outcome(score["outcome"]),
        score["value"],
        score["reason"],
        score["code"],
        evidence,
        tuple(score.get("samples", ())),
    )

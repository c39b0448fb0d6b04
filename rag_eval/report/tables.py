"""The tables of a report: what each is called, what is in it, and when it is written. Outputs iterate over the list."""

from collections.abc import Collection, Sequence
from typing import Any

from rag_eval.records import FEW_BOTS, RunFacts
from rag_eval.report.alignment_sheet import agreement_columns, disagreement_columns
from rag_eval.report.baseline_sheet import change_columns
from rag_eval.report.case_table import CASES
from rag_eval.report.column import PagePart, ReportTable, StreamedTable
from rag_eval.report.columns import bot_columns, score_headers, standing_columns
from rag_eval.report.core_sheets import BOT_SHEET, write_bots, write_standings
from rag_eval.report.evidence import evidence_columns, evidence_lines
from rag_eval.report.extra_columns import (
    pass_rate_columns,
    pass_rate_lines,
    queries,
    query_columns,
    retrieval_columns,
    slice_columns,
    slice_lines,
    write_slices,
)
from rag_eval.report.history_sheet import history_columns, write_history
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.pair_tables import (
    case_pair_columns,
    case_pair_lines,
    label_columns,
    label_lines,
    pair_columns,
    pair_lines,
    pair_notes,
    strength_columns,
)
from rag_eval.report.styles import LINE_HEIGHT
from rag_eval.results.human_alignment import Disagreement, HumanAgreement, label_warnings
from rag_eval.results.run_history import BotInTime, bots_in_time
from rag_eval.results.verdict import labelled_words

_AnyOfRun = ReportTable[FinishedRun, Any] | StreamedTable[Any]


def report_tables(facts: RunFacts, asked: Collection[str]) -> list[_AnyOfRun]:
    """The tables of a run, by its facts and what was asked for, in the order of the sheets."""
    return [table for table in TABLES if table.is_wanted(facts, asked)]


def _agreements(run: FinishedRun) -> Sequence[HumanAgreement]:
    return run.findings.alignment.agreements if run.findings.alignment else ()


def _disagreements(run: FinishedRun) -> Sequence[Disagreement]:
    return run.findings.alignment.disagreements if run.findings.alignment else ()


def _runs(run: FinishedRun) -> Sequence[BotInTime]:
    return bots_in_time(run.findings.history) if run.findings.history else ()


BOTS = ReportTable(
    name=BOT_SHEET,
    columns=lambda run: bot_columns(run.facts, run.summary, run.findings),
    lines=lambda run: run.summary.bots,
    frozen=1,
    write=write_bots,
    page=PagePart(title="Bot Summary: each bot over its own queries", rank=1, is_open=False),
)
STANDINGS = ReportTable(
    name="Leaderboard",
    columns=lambda run: standing_columns(run.facts, run.summary, run.findings),
    lines=lambda run: run.summary.standings,
    write=write_standings,
)
EVIDENCE = StreamedTable(
    name="Evidence",
    is_wanted=lambda facts, asked: "evidence" in asked,
    columns=lambda facts: evidence_columns(),
    lines=lambda facts: evidence_lines(score_headers(facts)),
    noun="pieces of evidence",
    line_height=3 * LINE_HEIGHT,
    frozen=3,
)
TABLES: Sequence[_AnyOfRun] = (
    CASES,
    BOTS,
    STANDINGS,
    ReportTable(
        name="Rubric",
        is_wanted=lambda facts, asked: bool(facts.rubric),
        columns=lambda run: pass_rate_columns(run.facts),
        lines=lambda run: pass_rate_lines(run.findings.pass_rates),
        header_height=30,
        line_height=18,
        page=PagePart(title="Rubric"),
        json={"rubric": lambda run: run.findings.pass_rates},
    ),
    ReportTable(
        name="Head to Head",
        is_wanted=lambda facts, asked: bool(facts.head_to_head),
        columns=lambda run: pair_columns(run.findings.head_to_head),
        lines=lambda run: pair_lines(run.findings.head_to_head),
        notes=lambda run: pair_notes(run.findings.head_to_head),
        group_of=lambda pair: pair.one,
        header_height=44,
        line_height=18,
        page=PagePart(title="Head to head: which response is preferred"),
        json={"head_to_head": lambda run: (found := run.findings.head_to_head) and found.plain()},
    ),
    ReportTable(
        name="Human Preferences",
        is_wanted=lambda facts, asked: bool(facts.head_to_head) and facts.has_pair_labels,
        columns=lambda run: label_columns(run.findings.head_to_head),
        lines=lambda run: label_lines(run.findings.head_to_head),
        notes=lambda run: tuple(labelled_words(run.findings.head_to_head)),
        group_of=lambda pair: pair.one,
        header_height=44,
        line_height=18,
        page=PagePart(title="Human preferences: which response annotators prefer"),
    ),
    ReportTable(
        name="Strengths",
        is_wanted=lambda facts, asked: bool(facts.head_to_head) and len(facts.bots) > FEW_BOTS,
        columns=lambda run: strength_columns(run.findings.head_to_head),
        lines=lambda run: run.findings.head_to_head.strengths if run.findings.head_to_head else (),
        header_height=44,
        line_height=18,
        frozen=1,
        page=PagePart(title="Strengths from all pairs"),
    ),
    StreamedTable(
        name="Pairs",
        is_wanted=lambda facts, asked: bool(facts.head_to_head),
        columns=case_pair_columns,
        lines=case_pair_lines,
        noun="pairs",
        line_height=3 * LINE_HEIGHT,
        frozen=4,
    ),
    ReportTable(
        name="Retrieval",
        is_wanted=lambda facts, asked: facts.has_gold,
        columns=lambda run: retrieval_columns(run.facts),
        lines=lambda run: run.findings.retrieval.items(),
        header_height=44,
        line_height=18,
        frozen=1,
        page=PagePart(title="Retrieval"),
        json={"retrieval": lambda run: dict(run.findings.retrieval)},
    ),
    ReportTable(
        name="Human Alignment",
        is_wanted=lambda facts, asked: facts.has_labels,
        columns=lambda run: agreement_columns(run.facts),
        lines=_agreements,
        notes=lambda run: label_warnings(run.findings.alignment),
        header_height=44,
        line_height=18,
        page=PagePart(title="Agreement with human labels"),
        json={"alignment": lambda run: run.findings.alignment},
    ),
    ReportTable(
        name="Disagreements",
        is_wanted=lambda facts, asked: facts.has_labels,
        columns=lambda run: disagreement_columns(run.facts, run.places),
        lines=_disagreements,
        header_height=30,
        line_height=2 * LINE_HEIGHT,
    ),
    ReportTable(
        name="vs Baseline",
        is_wanted=lambda facts, asked: "baseline" in asked,
        columns=lambda run: change_columns(run.facts),
        lines=lambda run: (*(run.findings.changes or ()), *run.findings.spent_changes),
        notes=lambda run: run.findings.beside_changes,
        header_height=30,
        line_height=18,
        page=PagePart(title="vs Baseline", rank=-1),
        json={
            "changes": lambda run: run.findings.changes,
            "spent_changes": lambda run: run.findings.spent_changes,
            "beside_changes": lambda run: run.findings.beside_changes,
        },
    ),
    ReportTable(
        name="History",
        is_wanted=lambda facts, asked: "history" in asked,
        columns=lambda run: history_columns(run.findings.history) if run.findings.history else [],
        lines=_runs,
        group_of=lambda line: line.bot.bot,
        write=write_history,
    ),
    StreamedTable(
        name="Side by Side",
        is_wanted=lambda facts, asked: "side_by_side" in asked,
        columns=query_columns,
        lines=queries,
        noun="queries",
        line_height=5 * LINE_HEIGHT,
    ),
    ReportTable(
        name="Slices",
        is_wanted=lambda facts, asked: "slice_by" in asked,
        columns=lambda run: slice_columns(run.facts),
        lines=lambda run: slice_lines(run.summary),
        header_height=44,
        line_height=18,
        write=write_slices,
        page=PagePart(title="Slices", is_open=False),
        json={"slices": lambda run: run.summary.slices},
    ),
    EVIDENCE,
)

"""What only some runs have: columns of further measures, and tables of rubric, retrieval, queries and slices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rag_eval.records import (
    METRIC_LABELS,
    SPENT_LABELS,
    CaseResult,
    CriterionVerdict,
    Outcome,
    RubricOutcome,
    RunFacts,
    Score,
)
from rag_eval.report.column import (
    Cell,
    Column,
    Value,
    amount_cell,
    grey_column,
    grey_without,
    look_of,
    mean_cell,
    mean_column,
    name_width,
    narrow_column,
    plain_column,
)
from rag_eval.report.notes import Note, NoteKind, note_on
from rag_eval.report.styles import Look
from rag_eval.results.findings import Findings
from rag_eval.results.pass_rates import BotPassRates, PassRate
from rag_eval.results.scoring import scores_of_case
from rag_eval.results.summary import FEWEST_ROWS, BotSummary, Spent, Summary, of_queries, spent_header
from rag_eval.retrieval import (
    DEFAULT_CUTOFFS,
    LABELS,
    RetrievalScores,
    RetrievalSummary,
    RetrievalTally,
    label_of,
)
from rag_eval.texts.display import shorten

if TYPE_CHECKING:
    from rag_eval.report.outputs import FinishedRun
    from rag_eval.report.worksheet import WrittenSheet

FAILED_CRITERIA = "Failed Criteria"
"""Header of the column in which the reasons of a rubric's verdicts stand."""


def extra_case_columns(facts: RunFacts) -> Iterator[Column[CaseResult]]:
    """On the sheet "Per-Query Metrics", after everything that every run has."""
    for name, label in facts.further.items():
        yield _score_column(name, label)
        if name == "answer_coverage":
            yield plain_column("Missing Information", 32, Look.TEXT, _missing_information, _ABOUT_MISSING)
    if facts.rubric:
        yield Column("Rubric", 9, _rubric_cell, Look.HEADER, _ABOUT_RUBRIC)
        yield plain_column("Rubric Score", 8, Look.WORD, _rubric_score, _ABOUT_RUBRIC_SCORE)
        yield plain_column(FAILED_CRITERIA, 38, Look.TEXT, _failed_criteria, "Each with the judge's reason.")
    if facts.has_gold:
        yield from (_retrieval_column(name, LABELS[name]) for name in _MEASURES)
        yield plain_column("Correct Docs", 9, Look.WORD, _correct_docs, "Gold documents that were retrieved.")
        yield plain_column("Missing Docs", 20, Look.TEXT, _missing_docs, "Gold documents that were not.")
    for name in facts.spent_units:
        about = f"{SPENT_LABELS[name]} {_ABOUT_SPENT}"
        yield Column(spent_header(name, facts), 9, _spent_on_case(name), about=about)


def extra_bot_columns(facts: RunFacts, findings: Findings) -> Iterator[Column[BotSummary]]:
    """On the sheet "Bot Summary"; rubric and retrieval have tables of their own."""
    for name, label in facts.further.items():
        yield _mean_column(name, label)
    for name in facts.spent_units:
        figures = _FIGURES[name].items()
        yield from (_spent_column(name, spent_header(name, facts, what), *how) for what, how in figures)
        if any(each.name == name for each in findings.spent):
            yield from _differences(name, findings)
        yield from _spent_error_columns(name, findings)


def _mean_column(name: str, label: str) -> Column[BotSummary]:
    def cell(bot: BotSummary) -> Cell:
        return mean_cell(bot.further[name], bot.rqs)

    about = _ABOUT_MEASURES.get(name, "")
    return Column(f"Avg {label}", 9.5, cell, about=about, count=lambda bot: bot.further[name].scored)


# Latency and cost

_FIGURES: Mapping[str, Mapping[str, tuple[Callable[[Spent], float], str]]] = {
    "latency": {
        "Median": (lambda spent: spent.median, "Median latency of the bot's responses."),
        "P95": (lambda spent: spent.p95, "95th percentile: 19 of 20 responses took no longer."),
    },
    "cost": {
        "Mean": (lambda spent: spent.mean, "Mean cost of the bot's responses."),
        "Total": (lambda spent: spent.total, "Sum over the responses whose cost is known."),
    },
}


def _spent_column(name: str, header: str, figure: Callable[[Spent], float], about: str) -> Column[BotSummary]:
    def cell(bot: BotSummary) -> Cell:
        spent = bot.spent.get(name)
        if spent is None:
            return Cell(None, Look.NOT_APPLICABLE)
        if spent.count == bot.total_queries:
            return amount_cell(figure(spent))
        known = Note(f"Known for {of_queries(spent.count, bot.total_queries)}.")
        return amount_cell(figure(spent), known, spent.count)

    def count(bot: BotSummary) -> int:
        return bot.spent[name].count if name in bot.spent else 0

    return Column(header, 9, cell, about=f"{about} {_ABOUT_SPENT_COUNT}", count=count)


def _too_few(units: str) -> Cell:
    """In place of a limit of an interval."""
    few = f"Fewer than {FEWEST_ROWS} {units} are too few for an interval."
    return Cell(None, Look.NOT_APPLICABLE, Note(few, NoteKind.NOT_APPLICABLE))


def _differences(name: str, findings: Findings) -> Iterator[Column[BotSummary]]:
    header = f"{SPENT_LABELS[name]} vs Winner"

    def cell(bot: BotSummary) -> Cell:
        found = findings.spent_of(bot.bot, name)
        return amount_cell(found.difference if found else None)

    def count(bot: BotSummary) -> int:
        found = findings.spent_of(bot.bot, name)
        return found.queries if found else 0

    def end(side: str) -> Callable[[BotSummary], Cell]:
        def cell(bot: BotSummary) -> Cell:
            found = findings.spent_of(bot.bot, name)
            if found and found.too_few:
                return _too_few(found.too_few)
            return amount_cell(getattr(found.interval, side) if found and found.interval else None)

        return cell

    yield Column(header, 9, cell, about=_ABOUT_DIFFERENCE, count=count)
    for side in ("low", "high"):
        yield Column(f"{header} 95 % {side}", 9, end(side), about=_ABOUT_DIFFERENCE)


def spent_figure_header(name: str, facts: RunFacts) -> str:
    """Of the column with the figure that a chart sets against RQS."""
    return spent_header(name, facts, "Mean" if name == "cost" else "Median")


def spent_title(name: str, facts: RunFacts) -> str:
    """The same in a sentence."""
    words, bracket, unit = spent_figure_header(name, facts).partition(" (")
    return f"{words.lower()}{bracket}{unit}"


def spent_error_headers(name: str) -> tuple[str, str]:
    """Of the columns with the lengths of the error bars of that figure."""
    return f"{SPENT_LABELS[name]} 95 % minus", f"{SPENT_LABELS[name]} 95 % plus"


def _spent_error_columns(name: str, findings: Findings) -> Iterator[Column[BotSummary]]:
    offs = {each.bot: each for each in findings.trade_offs.get(name, ())}
    for end, header in enumerate(spent_error_headers(name) if offs else ()):

        def cell(bot: BotSummary, end: int = end) -> Cell:
            its = offs.get(bot.bot)
            limit = its.limits[end] if its else None
            return amount_cell(None if its is None or limit is None else abs(limit - its.spent))

        yield Column(header, 9, cell, is_hidden=True)


def _spent_on_case(name: str) -> Callable[[CaseResult], Cell]:
    return lambda result: amount_cell(result.case.spent.get(name))


_ABOUT_SPENT = "of the response, from the input. It does not enter RQS."
_ABOUT_SPENT_COUNT = "If not all responses have one, their number follows in brackets."
_ABOUT_DIFFERENCE = (
    "Mean of this bot minus that of the bot with the highest RQS, over the queries for which both are known. The 95% "
    "CI allows for all differences; it excludes 0 only if the difference is significant."
)


# Measures beside the five


def _score_column(name: str, label: str) -> Column[CaseResult]:
    value = _relevant_chunks if name == "chunk_relevance" else lambda score: score.value

    def cell(result: CaseResult) -> Cell:
        score = result.further[name]
        look = Look.WORD if name == "chunk_relevance" and score.value is not None else look_of(score)
        return Cell(value(score), look, note_on(score, None))

    return Column(label, 10, cell, about=_ABOUT_MEASURES.get(name, ""))


def _relevant_chunks(score: Score) -> Value:
    """As in '2 of 5: 1, 4'."""
    if score.value is None:
        return None
    ranks = [str(chunk.rank) for chunk in score.evidence if chunk.favourable]
    listed = f": {', '.join(ranks)}" if ranks else ""
    return f"{len(ranks)} of {len(score.evidence)}{listed}"


def _missing_information(result: CaseResult) -> Value:
    left_out = [item for item in result.further["answer_coverage"].evidence if not item.favourable]
    return "\n".join(f"Chunk {item.rank}: {item.reason or 'left out'}" for item in left_out)


# Rubric


def _rubric_cell(result: CaseResult) -> Cell:
    outcome = result.rubric
    if outcome is None or outcome.outcome is Outcome.NOT_APPLICABLE:
        return Cell(None, Look.NOT_APPLICABLE, _why(outcome, NoteKind.NOT_APPLICABLE))
    if outcome.outcome is Outcome.FAILED:
        return Cell(None, Look.FAILED, _why(outcome, NoteKind.FAILED))
    return Cell("PASS", Look.WORD) if outcome.passed else Cell("FAIL", Look.AGAINST)


def _why(outcome: RubricOutcome | None, kind: NoteKind) -> Note | None:
    if outcome is None:
        return None
    code = f"Failed ({outcome.code}): " if outcome.code else "Not applicable: "
    return Note(code + shorten(outcome.reason, 300), kind)


def _rubric_score(result: CaseResult) -> Value:
    outcome = result.rubric
    return f"{outcome.score}/{outcome.of}" if outcome and outcome.of is not None else None


def _failed_criteria(result: CaseResult) -> Value:
    failed: Sequence[CriterionVerdict] = result.rubric.failed_criteria if result.rubric else ()
    return "\n".join(
        f"{verdict.criterion}{' (mandatory)' if verdict.mandatory else ''}: {verdict.reason}"
        for verdict in failed
    )


_OVERALL = "Rubric as a whole"


class _RateLine(NamedTuple):
    bot: str
    criterion: str
    """Id of one criterion, or _OVERALL."""
    rate: PassRate


def pass_rate_lines(bots: Sequence[BotPassRates]) -> Iterator[_RateLine]:
    """One row per criterion and bot, those of the whole rubric first. The bots of a criterion follow each other."""
    for bot in bots:
        yield _RateLine(bot.bot, _OVERALL, bot.overall)
    for criterion in bots[0].criteria if bots else ():
        for bot in bots:
            yield _RateLine(bot.bot, criterion, bot.criteria[criterion])


def pass_rate_columns(facts: RunFacts) -> list[Column[_RateLine]]:
    return [
        plain_column("Criterion", 34, Look.NAME, lambda line: line.criterion),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        grey_column("Pass Rate", 10, Look.PERCENT, lambda line: line.rate.rate, "Passed ÷ Judged."),
        Column("95 % low", 9, lambda line: _bound_cell(line.rate, 0), about=_ABOUT_INTERVAL),
        Column("95 % high", 9, lambda line: _bound_cell(line.rate, 1), about=_ABOUT_INTERVAL),
        plain_column("Passed", 9, Look.COUNT, lambda line: line.rate.passed),
        plain_column("Judged", 9, Look.COUNT, lambda line: line.rate.scored),
        plain_column("Not Judged", 9, Look.COUNT, lambda line: line.rate.failed, _ABOUT_NOT_JUDGED),
        plain_column("Not Applicable", 11, Look.COUNT, lambda line: line.rate.not_applicable),
    ]


def _bound_cell(rate: PassRate, end: int) -> Cell:
    interval = rate.interval
    if interval is None and rate.scored:
        return _too_few("conversations")
    return grey_without((interval.low, interval.high)[end] if interval else None, Look.PERCENT)


# Retrieval


def _retrieval_column(name: str, label: str) -> Column[CaseResult]:
    def value(result: CaseResult) -> float | None:
        scores = scores_of_case(result.case)
        return scores.values()[name] if scores else None

    return grey_column(label, 9, Look.SCORE, value, _ABOUT_DOCUMENTS[name])


def _correct_docs(result: CaseResult) -> Value:
    scores: RetrievalScores | None = scores_of_case(result.case)
    return (
        f"{scores.correct_docs_count} of {scores.gold_docs_count}"
        if scores and scores.gold_docs_count
        else None
    )


def _missing_docs(result: CaseResult) -> Value:
    case = result.case
    if case.gold_ids is None or case.retrieved_ids is None:
        return None
    return "\n".join(document for document in case.gold_ids if document not in case.retrieved_ids)


_RetrievalLine = tuple[str, RetrievalSummary]
"""A bot, and its means over the queries that have gold documents."""


def retrieval_columns(facts: RunFacts) -> list[Column[_RetrievalLine]]:
    """The columns of a table with one row per bot."""

    def measure(name: str) -> Column[_RetrievalLine]:
        header, about = _MEAN_HEADERS.get(name, label_of(name)), _ABOUT_MEANS.get(name, "")
        return grey_column(header, 10, Look.RQS, lambda line: line[1].means[name], about)

    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line[0]),
        *(measure(name) for name in RetrievalTally().summary().means),
        plain_column("Scored", 8, Look.COUNT, lambda line: line[1].scored, _ABOUT_WITH_GOLD),
        plain_column(
            "Not Applicable",
            11,
            Look.COUNT,
            lambda line: line[1].not_applicable.count,
            "Queries without gold documents. They are not part of any mean.",
        ),
    ]


# Side by side

_Query = Sequence[CaseResult]
"""The cases of one query, one for each bot at most."""


def queries(_: RunFacts) -> Callable[[CaseResult | None], Sequence[_Query]]:
    """The cases of each query together: what is returned is told of every result in order, and of None at the end."""
    cases: list[CaseResult] = []

    def add(result: CaseResult | None) -> Sequence[_Query]:
        is_ended = bool(cases) and (result is None or result.case.row != cases[0].case.row)
        ended = [tuple(cases)] if is_ended else []
        if is_ended:
            cases.clear()
        if result is not None:
            cases.append(result)
        return ended

    return add


def query_columns(facts: RunFacts) -> list[Column[_Query]]:
    """What the bots share, how far their RQS are apart, and then RQS, failure mode and response of each bot."""
    columns: list[Column[_Query]] = [
        narrow_column("Row", Look.COUNT, lambda query: query[0].case.row),
        plain_column("Query", 28, Look.TEXT, lambda query: query[0].case.query),
        plain_column("Ground Truth", 30, Look.TEXT, lambda query: query[0].case.reference, is_folded=True),
        narrow_column("Bots differ", Look.RQS, _spread, _ABOUT_SPREAD),
    ]
    for bot in facts.bots:
        columns += [
            narrow_column(f"{bot} RQS", Look.RQS, _of(bot, lambda case: case.rqs)),
            plain_column(
                f"{bot} Failure Mode", 15, Look.WORD, _of(bot, lambda case: " | ".join(case.failure_modes))
            ),
            plain_column(f"{bot} Response", 36, Look.TEXT, _of(bot, lambda case: case.case.response)),
        ]
    return columns


def _of(bot: str, value: Callable[[CaseResult], Value]) -> Callable[[_Query], Value]:
    return lambda query: next((value(case) for case in query if case.case.bot == bot), None)


def _spread(query: _Query) -> float | None:
    scored = [case.rqs for case in query if case.rqs is not None]
    return max(scored) - min(scored) if len(scored) > 1 else None


# Slices

FEW = 10
"""Means of fewer queries than this are grey."""


class _SliceLine(NamedTuple):
    """One bot on one slice."""

    slice: str
    summary: BotSummary


def write_slices(sheet: "WrittenSheet[FinishedRun, _SliceLine]", run: "FinishedRun") -> None:
    """The table, with means of few queries in grey."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    table = sheet.fill(run)
    if table.lines:
        scored = xl_rowcol_to_cell(1, table.column("Scored"), col_abs=True)
        rule = {"type": "formula", "criteria": f"={scored}<{FEW}", "format": sheet.formats.faint}
        sheet.worksheet.conditional_format(1, 0, table.lines, len(table.columns) - 1, rule)


def slice_lines(summary: Summary) -> Iterator[_SliceLine]:
    return (_SliceLine(each.name, bot) for each in summary.slices for bot in each.bots)


def slice_columns(facts: RunFacts) -> list[Column[_SliceLine]]:
    """One line a slice and bot, over all the bot's own cases in the slice."""

    def mean(metric: str, label: str) -> Column[_SliceLine]:
        return mean_column(
            metric, label, facts, lambda line: line.summary.metrics[metric], lambda line: line.summary.rqs
        )

    return [
        plain_column("Slice", 24, Look.NAME, lambda line: line.slice or "(none)"),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.summary.bot),
        narrow_column("Avg RQS", Look.RQS, lambda line: line.summary.rqs.value),
        *(mean(metric, label) for metric, label in METRIC_LABELS.items()),
        narrow_column("Scored", Look.COUNT, lambda line: line.summary.rqs.scored, _ABOUT_SCORED),
        narrow_column("Total Queries", Look.COUNT, lambda line: line.summary.total_queries),
    ]


_MEASURES = ("doc_recall", "doc_precision", "doc_f1", "ndcg_10")
_ABOUT_DOCUMENTS = {
    "doc_recall": "Share of the gold documents that were retrieved, 0 to 1. By their ids, without a judge.",
    "doc_precision": "Share of the retrieved documents that are gold, 0 to 1.",
    "doc_f1": "Harmonic mean of Doc Recall and Doc Precision, 0 to 1.",
    "ndcg_10": "Whether the gold documents come first among the first 10, 0 to 1.",
}
_ABOUT_MEASURES = {
    "answer_coverage": "Share of the relevant chunks whose information the response conveys, 0 to 1. "
    "It does not enter RQS.",
    "chunk_relevance": "Retrieved chunks that are relevant to the query; their ranks after the colon. "
    "The mean is over their shares. It does not enter RQS.",
    "citation_precision": "Share of the citations whose chunk supports the statement, 0 to 1. It does not enter RQS. "
    "Empty if the response cites nothing.",
    "citation_recall": "Share of the supported statements that cite a chunk which supports them, 0 to 1. It does not "
    "enter RQS. 0 if the response has no citations although the bot cites.",
}
_ABOUT_MISSING = "What the response leaves out of the relevant chunks."
_ABOUT_RUBRIC = (
    "PASS when every mandatory criterion passes and enough of the others do. It does not enter RQS."
)
_ABOUT_RUBRIC_SCORE = "Criteria that passed, of those that apply to the row; mandatory ones are not counted."
_ABOUT_INTERVAL = "95% confidence interval (Wilson) of the pass rate. Empty if no response was judged."
_ABOUT_NOT_JUDGED = "The judge gave no verdict. These responses are not part of any rate."
_MEAN_HEADERS = {"reciprocal_rank": "MRR", "average_precision": "MAP"}
_ABOUT_MEANS = {
    "reciprocal_rank": "Mean of 1 ÷ rank of the first gold document.",
    "average_precision": "Mean over the queries of the mean precision at the gold documents' ranks.",
    "doc_recall": "Mean share of the gold documents that were retrieved.",
    "doc_precision": "Mean share of the retrieved documents that are gold.",
    **{
        f"hit_rate_{k}": f"Share of the queries with a gold document among the first {k}."
        for k in DEFAULT_CUTOFFS
    },
}
_ABOUT_WITH_GOLD = (
    "Queries with gold documents. Every mean covers all of them; a query that retrieved nothing counts as 0."
)
_ABOUT_SPREAD = (
    "Highest minus lowest RQS of the bots on this query. Filter or sort by it to see where the bots differ. "
    "Empty if fewer than two bots have an RQS."
)
_ABOUT_SCORED = f"Queries that have an RQS. Rows with fewer than {FEW} are grey: too few for a conclusion."

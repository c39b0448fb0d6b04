"""What the three sheets show: each a list of columns, each column a header and how to fill its cells."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_eval.metrics.catalogue import METRICS, metrics_behind
from rag_eval.metrics.metric import MetricInfo
from rag_eval.records import (
    CITATION_LABELS,
    MAY_BE_INCOMPLETE,
    METRIC_LABELS,
    SCORE_LABELS,
    TOXICITY,
    CaseResult,
    FailureMode,
    Outcome,
    RunFacts,
)
from rag_eval.report.column import (
    NUMBER_WIDTH,
    BotItem,
    Cell,
    Column,
    interval_columns,
    look_of,
    mean_column,
    name_width,
    narrow_column,
    plain_column,
    switched_off,
)
from rag_eval.report.extra_columns import extra_bot_columns, extra_case_columns
from rag_eval.report.notes import Note, NoteKind, note_on
from rag_eval.report.styles import Look
from rag_eval.results.causes import MOST_CAUSES, cause_words, fix_words
from rag_eval.results.findings import Findings
from rag_eval.results.row_choice import SELECTION
from rag_eval.results.summary import FEWEST_ROWS, RELIABLE_ROWS, BotSummary, Mean, Standing, Summary
from rag_eval.results.verdict import verdict_on
from rag_eval.texts.display import join_chunks

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval


_VERDICT_WIDTH = 34
"""Of the columns with the verdict and the first fix, in characters; their texts wrap."""
ERROR_HEADERS = ("95 % minus", "95 % plus")
"""Of the columns that hold how far an interval reaches below and above the mean."""
SHARE_HEADERS = {
    FailureMode.RETRIEVAL_FAILURE: "Retrieval Failures %",
    FailureMode.HALLUCINATION: "Hallucinations %",
    FailureMode.LOW_QUALITY: "Low Quality %",
}
"""Of the columns that the chart of the failure modes draws."""


def case_columns(
    facts: RunFacts, reason: Callable[[CaseResult], str] | None = None
) -> list[Column[CaseResult]]:
    """Sheet "Per-Query Metrics": one row per case; `reason` says why a case is there if not all of them fit."""
    columns: list[Column[CaseResult]] = [
        plain_column("Query", 22, Look.TEXT, lambda result: result.case.query),
        plain_column("Ground Truth", 26, Look.TEXT, lambda result: result.case.reference),
        plain_column("Bot", 12, Look.TEXT, lambda result: result.case.bot),
        plain_column("Response", 32, Look.TEXT, lambda result: result.case.response),
        plain_column(
            "Context", 36, Look.TEXT, lambda result: join_chunks(result.case.chunks or ()), is_folded=True
        ),
        Column("RQS", NUMBER_WIDTH, _rqs_cell, about=_ABOUT_RQS),
        *(_score(metric, facts) for metric in METRICS.values()),
        _toxicity(facts),
        narrow_column(
            "Toxic?", Look.WORD, lambda result: _is_toxic(result, facts.toxicity_threshold), is_folded=True
        ),
    ]
    if facts.diagnostics:
        columns += [
            narrow_column("Empty Context?", Look.WORD, _is_context_empty, is_folded=True),
            narrow_column("Empty Answer?", Look.WORD, _is_answer_empty, is_folded=True),
            plain_column(
                "Failure Mode", 15, Look.WORD, lambda result: " | ".join(result.failure_modes), _ABOUT_OK
            ),
            plain_column("Recommendation", 48, Look.TEXT, lambda result: result.recommendation),
        ]
    about_row = "Counted through all files." if facts.sources else "Row number in the input."
    columns.append(narrow_column("Row", Look.COUNT, lambda result: result.case.row, about_row))
    if facts.sources:
        columns += [
            plain_column("Source", 16, Look.TEXT, lambda result: result.case.source, "File of the row."),
            narrow_column("Source Row", Look.COUNT, lambda result: result.case.source_row, _ABOUT_SOURCE_ROW),
        ]
    if facts.has_history:
        columns.append(
            plain_column(
                "History",
                36,
                Look.TEXT,
                lambda result: result.case.earlier_turns,
                _ABOUT_HISTORY,
                is_folded=True,
            )
        )
    if reason:
        columns.append(plain_column(SELECTION, 10, Look.WORD, reason, _ABOUT_SELECTION))
    has_citations = not facts.further.keys().isdisjoint(CITATION_LABELS)
    may_be_flagged = facts.prompts == MAY_BE_INCOMPLETE or has_citations
    if facts.flags or facts.cut_contexts or facts.head_to_head or may_be_flagged:
        about = f"{_ABOUT_FLAGS} {_ABOUT_CITATION_FLAGS}" if has_citations else _ABOUT_FLAGS
        columns.append(plain_column("Flags", 24, Look.TEXT, lambda result: _flags(result, facts), about))
    return [*columns, *extra_case_columns(facts)]


def score_headers(facts: RunFacts) -> dict[str, str]:
    """Headers of the columns in which scores stand, by metric."""
    return {**METRIC_LABELS, TOXICITY: SCORE_LABELS[TOXICITY], **facts.further}


def _flags(result: CaseResult, facts: RunFacts) -> str:
    case = result.case.row, result.case.bot
    cut = facts.cut_contexts.get(case)
    return "; ".join((*facts.flags_of(result), *([cut] if cut else [])))


_ABOUT_CITATION_FLAGS = "Also: citations of a wrong chunk or of none that exists, and missing citations."
_ABOUT_SOURCE_ROW = "Row number in that file."
_ABOUT_HISTORY = "Earlier turns of the conversation. Empty if the query begins it."
_ABOUT_SELECTION = (
    "Why this query is here; not all queries fit on the sheet. worst: one of the lowest RQS of some bot. "
    "random: drawn at random; a baseline uses only these."
)
_ABOUT_FLAGS = (
    "Text written for the judge, not for the reader (possible prompt injection); please check. No score was changed. "
    "Also: what the judge did not see of a context that is too long, and scores that may be incomplete, because the "
    "judge's reply does not seem to speak of everything; the evidence names it."
)


def bot_columns(facts: RunFacts, summary: Summary, findings: Findings) -> list[Column[BotSummary]]:
    """Sheet "Bot Summary": one line a bot, over all its own cases."""
    judged_in_part = any(bot.rqs.failed for bot in summary.bots)

    def modes(header: str, width: float, mode: FailureMode) -> Column[BotSummary]:
        about = _ABOUT_MODES if judged_in_part else ""
        return Column(header, width, _count_of(mode, facts, findings), about=about)

    columns: list[Column[BotSummary]] = [
        plain_column("Bot", name_width(facts), Look.NAME, lambda bot: bot.bot),
        narrow_column("Avg RQS", Look.RQS, lambda bot: bot.rqs.value, "Mean over the scored queries."),
        *(
            mean_column(metric, label, facts, _metric_of_bot(metric), lambda bot: bot.rqs)
            for metric, label in METRIC_LABELS.items()
        ),
        mean_column(TOXICITY, "Avg Input Toxicity", facts, lambda bot: bot.toxicity, lambda bot: bot.rqs),
        Column("Toxic Queries", NUMBER_WIDTH, _toxic_cell),
        narrow_column("Total Queries", Look.COUNT, lambda bot: bot.total_queries),
        modes("Retrieval Failures", NUMBER_WIDTH, FailureMode.RETRIEVAL_FAILURE),
        modes("Hallucinations", 8.5, FailureMode.HALLUCINATION),
        modes("Low Quality", NUMBER_WIDTH, FailureMode.LOW_QUALITY),
        narrow_column("Empty Contexts", Look.COUNT, lambda bot: bot.empty_contexts),
        narrow_column("Empty Answers", Look.COUNT, lambda bot: bot.empty_answers),
        narrow_column("Scored", Look.COUNT, lambda bot: bot.rqs.scored, "Queries that have an RQS."),
        Column("Not Judged", NUMBER_WIDTH, _not_judged_cell, about=_ABOUT_NOT_JUDGED),
        narrow_column(
            "Coverage", Look.PERCENT, lambda bot: bot.rqs.coverage, "Scored ÷ (Scored + Not Judged)."
        ),
        *interval_columns(
            "",
            NUMBER_WIDTH,
            Look.RQS,
            lambda item: findings.own.get(item.bot),
            _ABOUT_INTERVAL.format(summary.evidence[1]),
        ),
    ]
    if judged_in_part:
        columns += [
            narrow_column(
                "Lowest possible", Look.RQS, lambda bot: _bound(bot.rqs, 0), _ABOUT_BOUNDS.format(0)
            ),
            narrow_column(
                "Highest possible", Look.RQS, lambda bot: _bound(bot.rqs, 1), _ABOUT_BOUNDS.format(1)
            ),
        ]
    if any(bot.not_asked for bot in summary.bots):
        columns.append(narrow_column("Not Asked", Look.COUNT, lambda bot: bot.not_asked, _ABOUT_NOT_ASKED))
    shares = (
        Column(header, NUMBER_WIDTH, _share_of(mode, facts, findings), about=_ABOUT_SHARE, is_folded=True)
        for mode, header in SHARE_HEADERS.items()
    )
    return [
        *columns,
        *extra_bot_columns(facts, findings),
        *shares,
        *_error_columns(findings.own, lambda bot: bot.rqs),
    ]


def standing_columns(facts: RunFacts, summary: Summary, findings: Findings) -> list[Column[Standing]]:
    """Sheet "Leaderboard": one line a bot, over the queries on which every bot has an RQS."""

    def means(metric: str) -> Iterator[Column[Standing]]:
        yield mean_column(
            metric, METRIC_LABELS[metric], facts, lambda line: line.metrics[metric], lambda line: line.rqs
        )
        if metric == "faithfulness":
            yield _faithfulness_stdev(facts)

    count, name = summary.evidence
    look, about = Look.RQS, _ABOUT_INTERVAL.format(name)
    if FEWEST_ROWS <= count < RELIABLE_ROWS:
        look, about = Look.UNRELIABLE, f"{about} {_UNRELIABLE.format(name)}"

    return [
        plain_column("Rank", 5, Look.COUNT, lambda line: line.rank),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        narrow_column("Avg RQS", Look.RQS, lambda line: line.rqs.value, _ABOUT_COMPARED),
        narrow_column("RQS StdDev", Look.RQS, lambda line: line.rqs.stdev, _ABOUT_STDEV),
        *(column for metric in METRIC_LABELS for column in means(metric)),
        narrow_column(
            "Winner", Look.MARK, lambda line: "★" if line.is_winner and len(summary.bots) > 1 else None
        ),
        plain_column(
            "Verdict",
            _VERDICT_WIDTH,
            Look.WORD,
            lambda line: verdict_on(line.bot, facts, summary, findings),
            _ABOUT_VERDICT,
        ),
        Column(
            "First fix", _VERDICT_WIDTH, lambda line: _fix_cell(line.bot, findings), Look.HEADER, _ABOUT_FIX
        ),
        *interval_columns("", NUMBER_WIDTH, look, lambda line: findings.compared.get(line.bot), about),
        narrow_column("vs Winner", Look.GAP, lambda line: _gap(line.bot, findings), _ABOUT_GAP),
        *interval_columns(
            "vs Winner", NUMBER_WIDTH, Look.GAP, lambda line: _gap_interval(line.bot, findings), _ABOUT_GAP
        ),
        plain_column(
            "Queries compared",
            9,
            Look.WORD,
            lambda line: _compared(line, summary),
            _ABOUT_COMPARED,
            is_folded=all(bot.rqs.scored == summary.compared for bot in summary.bots),
        ),
        *_error_columns(findings.compared, lambda line: line.rqs),
    ]


def _fix_cell(bot: str, findings: Findings) -> Cell:
    causes = findings.causes_of(bot)
    listed = [cause_words(cause) for cause in causes.causes[:MOST_CAUSES]] if causes else []
    return Cell(fix_words(causes), Look.WORD, Note("\n".join(listed)) if listed else None)


def _gap(bot: str, findings: Findings) -> float | None:
    """The bot's mean minus the best one's."""
    rival = findings.rival(bot)
    return 0.0 - rival.difference if rival else None


def _gap_interval(bot: str, findings: Findings) -> "Interval | None":
    rival = findings.rival(bot)
    if rival is None or rival.interval is None:
        return None
    return replace(rival.interval, low=0.0 - rival.interval.high, high=0.0 - rival.interval.low)


# Per-Query Metrics


def _score(metric: MetricInfo, facts: RunFacts) -> Column[CaseResult]:
    if metric.name not in facts.metrics:
        return switched_off(metric.label)
    threshold = facts.thresholds[metric.name]

    def cell(result: CaseResult) -> Cell:
        score = result.scores[metric.name]
        return Cell(score.value, look_of(score), note_on(score, threshold))

    about = _about(metric.name, metric.about, facts)
    return Column(metric.label, NUMBER_WIDTH, cell, about=about, threshold=metric.name)


def _toxicity(facts: RunFacts) -> Column[CaseResult]:
    def cell(result: CaseResult) -> Cell:
        return Cell(result.toxicity.value, look_of(result.toxicity), note_on(result.toxicity, None))

    if TOXICITY not in facts.metrics:
        return switched_off(SCORE_LABELS[TOXICITY])
    about = _about(TOXICITY, _ABOUT_TOXICITY, facts)
    return Column(SCORE_LABELS[TOXICITY], NUMBER_WIDTH, cell, about=about, threshold=TOXICITY)


def _about(metric: str, about: str, facts: RunFacts) -> str:
    """What the metric asks, and how this run's judge answers it where that can be said in a sentence."""
    explanation = facts.explanations.get(metric)
    return f"{about}\nHere: {explanation}" if explanation else about


def _rqs_cell(result: CaseResult) -> Cell:
    if result.rqs is not None:
        return Cell(result.rqs, Look.RQS)
    failed = [METRIC_LABELS[name] for name, score in result.scores.items() if score.outcome is Outcome.FAILED]
    if failed:
        return Cell(None, Look.FAILED, Note(f"No RQS: {', '.join(failed)} failed.", NoteKind.FAILED))
    return Cell(None, Look.NOT_APPLICABLE, Note("No RQS: no metric applies.", NoteKind.NOT_APPLICABLE))


def _is_toxic(result: CaseResult, threshold: float) -> str | None:
    value = result.toxicity.value
    return None if value is None else _yes_no(value >= threshold)


def _is_context_empty(result: CaseResult) -> str | None:
    return None if result.case.chunks is None else _yes_no(result.case.has_empty_context)


def _is_answer_empty(result: CaseResult) -> str | None:
    return None if result.case.is_missing else _yes_no(result.case.is_unanswered)


def _yes_no(flag: bool) -> str:
    return "YES" if flag else "No"


# Means


def _error_columns(
    intervals: Mapping[str, "Interval | None"], mean_of: Callable[[BotItem], Mean]
) -> Iterator[Column[BotItem]]:
    """The lengths of a chart's error bars. In the table, because LibreOffice draws them from cells only."""

    def length(side: Callable[["Interval", float], float]) -> Callable[[BotItem], Cell]:
        def cell(item: BotItem) -> Cell:
            interval, mean = intervals.get(item.bot), mean_of(item).value
            return Cell(side(interval, mean) if interval and mean is not None else None, Look.RQS)

        return cell

    below = length(lambda interval, mean: mean - interval.low)
    above = length(lambda interval, mean: interval.high - mean)
    for header, cell in zip(ERROR_HEADERS, (below, above), strict=True):
        yield Column(header, NUMBER_WIDTH, cell, is_hidden=True)


def _metric_of_bot(metric: str) -> Callable[[BotSummary], Mean]:
    return lambda bot: bot.metrics[metric]


def _faithfulness_stdev(facts: RunFacts) -> Column[Standing]:
    header = "Faithfulness StdDev"
    if "faithfulness" not in facts.metrics:
        return switched_off(header, is_folded=True)
    return narrow_column(
        header, Look.SCORE, lambda line: line.metrics["faithfulness"].stdev, _ABOUT_STDEV, is_folded=True
    )


def _count_of(mode: FailureMode, facts: RunFacts, findings: Findings) -> Callable[[BotSummary], Cell]:
    """Empty where nothing was scored that could show the failure: that is no count of 0."""
    by_documents = findings.retrieval if mode is FailureMode.RETRIEVAL_FAILURE and facts.gold_ids else {}

    def cell(bot: BotSummary) -> Cell:
        is_seen = any(mean.scored for name, mean in bot.metrics.items() if name in metrics_behind(mode))
        if is_seen or bot.failure_modes[mode] or (bot.bot in by_documents and by_documents[bot.bot].scored):
            return Cell(bot.failure_modes[mode], Look.COUNT)
        return Cell(None, Look.NOT_APPLICABLE, Note(_NOTHING_TO_COUNT, NoteKind.NOT_APPLICABLE))

    return cell


def _share_of(mode: FailureMode, facts: RunFacts, findings: Findings) -> Callable[[BotSummary], Cell]:
    count_of = _count_of(mode, facts, findings)

    def cell(bot: BotSummary) -> Cell:
        is_counted, judged = count_of(bot).value is not None, bot.judged_queries
        return Cell(bot.full_modes[mode] / judged if is_counted and judged else None, Look.PERCENT)

    return cell


def _toxic_cell(bot: BotSummary) -> Cell:
    if not bot.toxicity.scored:
        return Cell(None, Look.NOT_APPLICABLE, Note(_NOTHING_TO_COUNT, NoteKind.NOT_APPLICABLE))
    of = f"Of {bot.toxicity.scored:,} queries with a toxicity."
    return Cell(bot.toxic_queries, Look.COUNT, Note(of) if bot.toxicity.failed else None)


def _not_judged_cell(bot: BotSummary) -> Cell:
    codes = "\n".join(f"{code}: {count:,}" for code, count in bot.failures.items())
    note = Note(f"Failed scores by reason:\n{codes}") if codes else None
    return Cell(bot.rqs.failed, Look.COUNT, note)


def _bound(mean: Mean, end: int) -> float | None:
    return mean.bounds[end] if mean.bounds else None


def _compared(line: Standing, summary: Summary) -> str:
    return f"{summary.compared if line.rank else 0:,} of {summary.rows:,}"


_ABOUT_TOXICITY = "Toxicity of the query, 0 to 1; higher is worse. Not part of RQS."
_NOTHING_TO_COUNT = "No metric that detects this was scored."
_ABOUT_RQS = (
    "Response Quality Score, 0 to 1: the weighted mean of the metrics that apply. "
    "Empty if a metric that applies could not be scored."
)
_ABOUT_OK = "OK: no failure condition was met. A score can still be below its threshold."
_ABOUT_MODES = (
    "Those of queries that were judged in part included; the shares in % are of queries judged in full."
)
_ABOUT_NOT_ASKED = "Queries that the input has no response of this bot to. Only Total Queries counts them."
_ABOUT_NOT_JUDGED = (
    "Queries without an RQS because the judge failed on a metric. No mean of RQS counts them. Their Failure Mode is "
    "another one if another metric shows a failure."
)
_ABOUT_SHARE = "Share of the bot's queries that were judged. A query can have several failure modes."
_ABOUT_BOUNDS = "Avg RQS if every unjudged query had an RQS of {}."
_ABOUT_COMPARED = (
    "All bots are compared over the same queries: those for which every ranked bot has an RQS. "
    "A mean of a metric excludes queries to which the metric does not apply; then its count is in brackets."
)
_ABOUT_INTERVAL = (
    "95% confidence interval of the mean RQS over queries of this kind (bias-corrected bootstrap). "
    f"Empty for fewer than {FEWEST_ROWS} {{}}."
)
_ABOUT_GAP = "Avg RQS minus that of the best bot. Its 95% CI allows for all comparisons."
_ABOUT_FIX = (
    "What to fix first: the most frequent cause of this bot's failures, counted from the evidence. "
    "Each failure counts once. The cell note lists further causes."
)
_UNRELIABLE = f"Grey: fewer than {RELIABLE_ROWS} {{}}, so the interval is too narrow if failures are rare."
_ABOUT_VERDICT = (
    "Significant: the best bot is better by more than chance explains (paired permutation test, family-wise error "
    "at most 5%). Not significant: the data do not show a difference."
)
_ABOUT_STDEV = "Population standard deviation over the same queries as the mean."

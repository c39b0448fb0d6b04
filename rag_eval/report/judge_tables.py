"""What a comparison of two judges shows: the columns of its tables, and sentences for box, page and terminal."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval.records import METRIC_LABELS, TOXICITY, RunFacts, Score
from rag_eval.report.column import (
    Cell,
    Column,
    PagePart,
    ReportTable,
    Value,
    interval_columns,
    name_width,
    plain_column,
)
from rag_eval.report.styles import LINE_HEIGHT, Look
from rag_eval.results.judge_comparison import (
    PREFERENCES,
    Decisions,
    HumanComparison,
    JudgeComparison,
    JudgeDisagreement,
    JudgeOnMeasure,
    JudgeRun,
    MeasureComparison,
    RankedBot,
    money,
    ranking_words,
)
from rag_eval.results.paired import BANDS, MOST_DISAGREEMENTS
from rag_eval.results.summary import FEWEST_ROWS
from rag_eval.results.verdict import add_up
from rag_eval.texts.display import counted, decimals, percent, shorten

Runs = tuple[JudgeRun, JudgeRun]


def _measure_columns() -> list[Column[MeasureComparison]]:
    """The columns of a table with one row per measure."""
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Cases", 8, Look.COUNT, lambda line: line.count, _ABOUT_CASES),
        plain_column("Mean A", 8, Look.SCORE, lambda line: line.a.mean, "Over these cases."),
        plain_column("Mean B", 8, Look.SCORE, lambda line: line.b.mean, "Over these cases."),
        plain_column("B − A", 9, Look.GAP, lambda line: line.difference, "Difference of the two means."),
        *interval_columns("B − A", 9, Look.GAP, lambda line: line.interval, _ABOUT_DIFFERENCE),
        plain_column(
            "Mean absolute error", 9, Look.SCORE, lambda line: line.mean_absolute_error, _ABOUT_ERROR
        ),
        plain_column("Spearman", 9.5, Look.SCORE, _spearman, _ABOUT_SPEARMAN),
        plain_column("Weighted kappa", 9.5, Look.SCORE, lambda line: line.kappa.kappa, _ABOUT_WEIGHTED),
        plain_column("Failed A", 8, Look.COUNT, lambda line: line.a.own.failed, _ABOUT_FAILED),
        plain_column("Failed B", 8, Look.COUNT, lambda line: line.b.own.failed, _ABOUT_FAILED),
        Column("Mean A, all", 11, lambda line: _own_cell(line.a), about=_ABOUT_OWN),
        Column("Mean B, all", 11, lambda line: _own_cell(line.b), about=_ABOUT_OWN),
    ]


class _DecisionLine(NamedTuple):
    """Pass or fail by both judges: of a case as a whole, or on one measure."""

    label: str
    thresholds: tuple[float | None, float | None]
    decisions: Decisions


def _decision_lines(comparison: JudgeComparison) -> Iterator[_DecisionLine]:
    """One per decision, the case as a whole first."""
    yield _DecisionLine("Case as a whole", (None, None), comparison.overall)
    for line in comparison.measures:
        if line.decisions:
            yield _DecisionLine(line.label, (line.a.threshold, line.b.threshold), line.decisions)


def _decision_columns() -> list[Column[_DecisionLine]]:
    """The columns of a table with one row per decision."""

    def count(header: str, name: str) -> Column[_DecisionLine]:
        return plain_column(header, 8, Look.COUNT, lambda line: getattr(line.decisions, name))

    return [
        plain_column("Decision", 20, Look.NAME, lambda line: line.label, _ABOUT_CASE),
        plain_column("Cases", 8, Look.COUNT, lambda line: line.decisions.kappa.count, _ABOUT_DECIDED),
        plain_column("Threshold A", 10, Look.SCORE, lambda line: line.thresholds[0], _ABOUT_THRESHOLD),
        plain_column("Threshold B", 10, Look.SCORE, lambda line: line.thresholds[1], _ABOUT_THRESHOLD),
        count("Both pass", "both_pass"),
        count("Both fail", "both_fail"),
        count("Only A passes", "only_a_passes"),
        count("Only B passes", "only_b_passes"),
        plain_column("Same decision", 9.5, Look.PERCENT, lambda line: line.decisions.kappa.raw, _ABOUT_SAME),
        *interval_columns("Same", 9, Look.PERCENT, lambda line: line.decisions.interval, _ABOUT_WILSON),
        plain_column("Kappa", 8, Look.SCORE, lambda line: line.decisions.kappa.kappa, _ABOUT_KAPPA),
        *interval_columns(
            "Kappa", 9, Look.SCORE, lambda line: line.decisions.kappa.interval, _ABOUT_KAPPA_LIMITS
        ),
    ]


def _spearman(line: MeasureComparison) -> float | None:
    return line.correlation.value if line.correlation else None


def _own_cell(judge: JudgeOnMeasure) -> Cell:
    return Cell(judge.own.value, Look.SCORE, over=judge.own.scored if judge.own.scored else None)


def _human_columns() -> list[Column[HumanComparison]]:
    """The columns of a table with one row per labelled measure."""
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Cases", 8, Look.COUNT, lambda line: line.count, "Cases with a label and both scores."),
        plain_column("Human mean", 9, Look.SCORE, lambda line: line.human_mean),
        plain_column("Error A", 9, Look.SCORE, lambda line: line.a_error, _ABOUT_HUMAN_ERROR),
        plain_column("Error B", 9, Look.SCORE, lambda line: line.b_error, _ABOUT_HUMAN_ERROR),
        plain_column(
            "Error B − A", 9, Look.GAP, lambda line: line.error_difference, "Negative: B is closer to people."
        ),
        *interval_columns("Error B − A", 9.5, Look.GAP, lambda line: line.error_interval, _ABOUT_DIFFERENCE),
        plain_column("Kappa A", 9, Look.SCORE, lambda line: line.a_kappa.kappa, _ABOUT_WEIGHTED),
        plain_column("Kappa B", 9, Look.SCORE, lambda line: line.b_kappa.kappa, _ABOUT_WEIGHTED),
        plain_column(
            "Kappa B − A", 9, Look.GAP, lambda line: line.kappa_gain, "Positive: B agrees more with people."
        ),
        *interval_columns("Kappa B − A", 9.5, Look.GAP, lambda line: line.kappa_interval, _ABOUT_PAIRED),
    ]


def _ranking_columns(facts: RunFacts) -> list[Column[RankedBot]]:
    """The columns of a table with one row per bot."""
    return [
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot),
        plain_column("Rank A", 8, Look.COUNT, lambda line: line.a_rank),
        plain_column("Rank B", 8, Look.COUNT, lambda line: line.b_rank),
        plain_column("Moves", 8, Look.MARK, lambda line: "YES" if line.is_moved else "", "The rank differs."),
        plain_column("Mean RQS A", 10, Look.RQS, lambda line: line.a_mean, _ABOUT_RANKING),
        plain_column("Mean RQS B", 10, Look.RQS, lambda line: line.b_mean, _ABOUT_RANKING),
        plain_column("Rows", 8, Look.COUNT, lambda line: line.rows, _ABOUT_RANKING),
    ]


def _disagreement_columns(facts: RunFacts) -> list[Column[JudgeDisagreement]]:
    """The columns of a table with one row per case."""
    return [
        plain_column("Measure", 20, Look.NAME, lambda line: line.label),
        plain_column("Row", 8, Look.COUNT, lambda line: line.row, "Row number in the input."),
        plain_column("Bot", name_width(facts), Look.NAME, lambda line: line.bot or "All bots"),
        plain_column("A", 8, Look.SCORE, lambda line: line.a.value),
        plain_column("B", 8, Look.SCORE, lambda line: line.b.value),
        plain_column("B − A", 9, Look.GAP, lambda line: line.gap, _ABOUT_GAP),
        plain_column("Query", 40, Look.TEXT, lambda line: line.query),
        plain_column("Evidence of A", 62, Look.TEXT, lambda line: evidence_text(line.a), _ABOUT_EVIDENCE),
        plain_column("Evidence of B", 62, Look.TEXT, lambda line: evidence_text(line.b), _ABOUT_EVIDENCE),
    ]


def evidence_text(score: Score) -> str:
    """What is behind a score, one line each; its reason if there is nothing else."""
    lines = [
        f"{'✓' if each.favourable else '✗'} {each.verdict}: {each.text}"
        + (f" ({each.reason})" if each.reason else "")
        for each in score.evidence
    ]
    return "\n".join(lines) or score.reason or "no evidence"


class _JudgeFact(NamedTuple):
    """One thing that is known of both judges."""

    what: str
    a: Value
    b: Value


def _judge_columns(runs: Runs) -> list[Column[_JudgeFact]]:
    """The columns of a table with what is known of both judges."""
    a, b = runs
    return [
        plain_column("Fact", 34, Look.WORD, lambda line: line.what),
        Column(f"A: {shorten(a.name, 60)}", 60, lambda line: _fact_cell(line.a), Look.HEADER),
        Column(f"B: {shorten(b.name, 60)}", 60, lambda line: _fact_cell(line.b), Look.HEADER),
    ]


def _fact_cell(value: Value) -> Cell:
    return Cell(value, Look.COUNT if isinstance(value, int) else Look.TEXT)


def judge_facts(comparison: JudgeComparison, runs: Runs) -> list[_JudgeFact]:
    """Who judged, how much was scored, and what it took."""
    failures = [
        sum((Counter(each.failures) for each in judges), Counter[str]())
        for judges in zip(
            *((line.a, line.b) for line in comparison.measures if line.measure != "rqs"), strict=True
        )
    ] or [Counter[str](), Counter[str]()]
    rqs = next((line for line in comparison.measures if line.measure == "rqs"), None)
    own = [each.own.scored for each in (rqs.a, rqs.b)] if rqs else [None, None]
    passed = comparison.overall.both_pass
    a, b = runs

    def both(what: str, value: Callable[[JudgeRun], Value]) -> _JudgeFact:
        return _JudgeFact(what, value(a), value(b))

    return [
        both("Judge", lambda run: run.facts.judge),
        both("Settings", _settings),
        both("Status", lambda run: f"PARTIAL: {run.facts.partial}" if run.facts.partial else "complete"),
        both("Thresholds", lambda run: _thresholds_words(run.facts)),
        _JudgeFact("Cases with an RQS", *own),
        _JudgeFact(
            f"Cases that pass, of {comparison.overall.kappa.count:,}",
            passed + comparison.overall.only_a_passes,
            passed + comparison.overall.only_b_passes,
        ),
        _JudgeFact("Failed scores by code", *map(_codes, failures)),
        both("Judge calls answered", lambda run: run.facts.usage.calls),
        both("Judge calls from the reply cache", lambda run: run.facts.usage.cached),
        both("Judge calls failed", lambda run: run.facts.usage.failed),
        both("Replies without a count of tokens", lambda run: run.uncounted),
        both("Prompt tokens of the replies", lambda run: run.prompt_tokens),
        both("Completion tokens of the replies", lambda run: run.completion_tokens),
        both("Cost of the replies", lambda run: _amount(run.cost, run)),
        both("Cost per 1,000 rows", lambda run: _amount(run.cost_per_1000, run)),
        both(
            "Paid by this command",
            lambda run: _amount(0.0 if run.facts.is_proxy else run.facts.usage.cost_now, run),
        ),
        both("Time of this command", _time),
    ]


def _settings(run: JudgeRun) -> str:
    """Without what the judge's name has: model and host."""
    told = {key: value for key, value in run.settings.items() if value and key not in _IN_THE_NAME}
    return ", ".join(f"{key} {value}" for key, value in told.items())


_IN_THE_NAME = ("model", "provider", "address")


def _codes(failures: Counter[str]) -> str:
    return ", ".join(f"{code} {count:,}" for code, count in failures.most_common()) or "none"


def _amount(amount: float | None, run: JudgeRun) -> str:
    return "unknown" if amount is None else f"{money(amount)} {run.facts.currency}".rstrip()


def _time(run: JudgeRun) -> str:
    seconds = f"{run.facts.seconds:,.1f} s"
    if run.facts.usage.cached:
        return f"{seconds}, without the calls from the reply cache"
    return f"{seconds} ({run.facts.seconds / run.facts.rows:.2g} s per row)" if run.facts.rows else seconds


def _thresholds_words(facts: RunFacts) -> str:
    """The thresholds in force for a judge, and where they come from."""
    values = [
        f"{METRIC_LABELS[name]} {value:g}"
        for name, value in facts.thresholds.items()
        if name in facts.metrics
    ]
    values += [f"toxicity {facts.toxicity_threshold:g}"] if TOXICITY in facts.metrics else []
    return f"{', '.join(values)} ({facts.thresholds_from})"


# In words


def summary_lines(comparison: JudgeComparison, runs: Runs) -> list[str]:
    """What else there is to say, one sentence or two each, in the order of importance."""
    a, b = runs
    lines = [_overall(comparison), ranking_words(comparison)]
    if len(comparison.ranking) > 1:
        lines += [f"By {run.letter}: {words}" for run, words in zip(runs, comparison.verdicts, strict=True)]
    if a.facts.all_thresholds != b.facts.all_thresholds:
        lines.append(
            "The judges have different thresholds; each decides by the ones of its own configuration."
        )
    lines += [_closeness(each) for each in comparison.human]
    lines += [*_preference_words(comparison)]
    unpriced = [run.letter for run in runs if run.cost is None]
    if unpriced:
        lines.append(f"The cost of {' and '.join(unpriced)} is unknown; set [prices] input and output.")
    lines += [
        f"{run.letter}: {counted(run.uncounted, 'reply', 'replies')} came without a count of tokens; "
        "the cost is estimated."
        for run in runs
        if run.uncounted
    ]
    constant = [line.label for line in comparison.measures if line.count and line.correlation is None]
    if constant:
        lines.append(
            f"Spearman is undefined for {', '.join(constant)}: a judge gives every case the same score."
        )
    lines += [*_rounding(comparison)]
    lines += [_missing(line) for line in comparison.measures if line.a.own.failed + line.b.own.failed]
    lines += [f"{line.label}: not scored by {which}." for line, which in _one_sided(comparison)]
    lines += [f"{run.letter}: {note}" for run in runs for note in run.facts.notes]
    if 0 < comparison.rows < FEWEST_ROWS:
        lines.append(f"Fewer than {FEWEST_ROWS} rows are too few for a conclusion; there are no intervals.")
    return lines


def _preference_columns() -> list[Column[tuple[str, Mapping[str, int]]]]:
    def count_of(preferred: str) -> Column[tuple[str, Mapping[str, int]]]:
        return plain_column(
            f"B: {preferred}", 12, Look.COUNT, lambda line: line[1][preferred], _ABOUT_PREFERRED
        )

    first: Column[tuple[str, Mapping[str, int]]] = plain_column("By A", 20, Look.NAME, lambda line: line[0])
    return [first, *map(count_of, PREFERENCES)]


def _preference_words(comparison: JudgeComparison) -> Iterator[str]:
    found = comparison.preferences
    if found is None or found.kappa.raw is None:
        return
    kappa = "undefined" if found.kappa.kappa is None else decimals(found.kappa.kappa)
    failed = f" Not compared, since a judge failed: {found.failed:,}." if found.failed else ""
    yield (
        f"Head to head: both judges prefer the same in {percent(found.kappa.raw)} of {found.kappa.count:,} pairs "
        f"(kappa {kappa}). Pairs that depend on the order: A {found.flips[0]:,}, B {found.flips[1]:,}.{failed}"
    )


def _overall(comparison: JudgeComparison) -> str:
    overall, left_out = comparison.overall, comparison.undecided
    because = "because a judge failed on a metric or no metric applies"
    excluded = f" Left out: {left_out:,} of {comparison.cases:,} cases, {because}." if left_out else ""
    return f"A case passes if it has no failure mode. {_counts(overall)}{excluded}"


def _counts(decisions: Decisions) -> str:
    limits = decisions.interval
    interval = (
        f"; 95% CI of equal decisions {percent(limits.low, 1)} to {percent(limits.high, 1)}" if limits else ""
    )
    return (
        f"Both pass {decisions.both_pass:,}, both fail {decisions.both_fail:,}, only A passes "
        f"{decisions.only_a_passes:,}, only B passes {decisions.only_b_passes:,}{interval}."
    )


def _closeness(line: HumanComparison) -> str:
    interval = line.error_interval
    which = "B is closer" if line.error_difference < 0 else "A is closer"
    if abs(line.error_difference) < 1e-9:
        which = "both are equally close"
    elif interval is None:
        which = "no interval, so no conclusion"
    elif interval.has(0):
        which = "no significant difference"
    limits = f" (95% CI {_signed(interval.low)} to {_signed(interval.high)})" if interval else ""
    return (
        f"{line.label} against human labels: mean absolute error {decimals(line.a_error)} by A, "
        f"{decimals(line.b_error)} by B, difference {_signed(line.error_difference)}{limits}: {which} "
        f"({counted(line.count, 'case')})."
    )


def _rounding(comparison: JudgeComparison) -> Iterator[str]:
    """What explains a difference that is not that of the two means, as they are shown."""
    means = [
        (line.b.mean, line.a.mean)
        for line in comparison.measures
        if line.a.mean is not None and line.b.mean is not None
    ]
    if not all(add_up(pair, 2) for pair in means):
        yield "Differences of means are computed before rounding."


def _missing(line: MeasureComparison) -> str:
    told = [
        f"{letter} could not score {judge.own.failed:,} ({_codes(Counter(judge.failures))})"
        for letter, judge in (("A", line.a), ("B", line.b))
        if judge.own.failed
    ]
    return f"{line.label}: {'; '.join(told)}; {line.count:,} cases are compared."


def _one_sided(comparison: JudgeComparison) -> Iterator[tuple[MeasureComparison, str]]:
    for line in comparison.measures:
        lacking = [
            letter
            for letter, judge in (("A", line.a), ("B", line.b))
            if not judge.own.scored + judge.own.failed
        ]
        if lacking:
            yield line, " and ".join(lacking)


def table_lines(comparison: JudgeComparison) -> list[str]:
    """The measures as a table of plain text."""
    header = [
        "",
        "Cases",
        "Mean A",
        "Mean B",
        "B − A",
        "95% CI",
        "Spearman",
        "Weighted kappa",
        "Same decision",
        "Kappa",
    ]
    rows = [header, *map(_cells, comparison.measures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(line: MeasureComparison) -> list[str]:
    decisions, interval = line.decisions, line.interval
    return [
        line.label,
        f"{line.count:,}",
        decimals(line.a.mean),
        decimals(line.b.mean),
        "–" if line.difference is None else _signed(line.difference),
        f"{_signed(interval.low)} to {_signed(interval.high)}" if interval else "–",
        decimals(_spearman(line)),
        decimals(line.kappa.kappa),
        "–" if decisions is None or decisions.kappa.raw is None else percent(decisions.kappa.raw, 1),
        decimals(decisions.kappa.kappa if decisions else None),
    ]


def _signed(value: float) -> str:
    return decimals(value, is_signed=True)


def properties_text(runs: Sequence[JudgeRun]) -> str:
    """Who was compared, for a title."""
    return " and ".join(f"{run.letter} ({shorten(run.name, 60)})" for run in runs)


_ABOUT_CASES = "Cases that both judges scored. Everything else in the row is about these cases."
_ABOUT_DIFFERENCE = (
    f"95% CI by a bootstrap over rows. Empty for fewer than {FEWEST_ROWS} rows and for equal differences."
)
_ABOUT_CASE = (
    "A case as a whole passes if it has no failure mode. Cases on which a judge failed are left out."
)
_ABOUT_DECIDED = "Cases on which both judges decided; for toxicity, queries."
_ABOUT_ERROR = "Mean distance between the two scores of a case."
_ABOUT_SPEARMAN = "Rank correlation. Empty if a judge gives every case the same score."
_ABOUT_WEIGHTED = (
    f"Cohen's kappa with quadratic weights in {BANDS} bands of equal width (0–0.2, …, 0.8–1); criteria: yes or no. "
    "Empty if all scores are in one band."
)
_ABOUT_THRESHOLD = "Each judge decides by its own threshold. Pass: at or above it; toxicity: below it."
_ABOUT_SAME = "Share of cases on which both judges pass or both fail."
_ABOUT_WILSON = "95% CI (Wilson) of the share of equal decisions."
_ABOUT_KAPPA = (
    "Cohen's kappa of the decisions: 1 is full agreement, 0 is chance. Empty if all decisions are the same."
)
_ABOUT_KAPPA_LIMITS = "95% CI. Empty if the judges never differ, or one of them always decides the same."
_ABOUT_FAILED = "Cases that the metric applies to but this judge could not score. They are in no mean."
_ABOUT_OWN = "Over all cases that this judge scored, with their number in brackets."
_ABOUT_RANKING = "Over the rows on which every ranked bot has an RQS by both judges."
_ABOUT_GAP = f"Up to {MOST_DISAGREEMENTS} per measure, the largest first."
_ABOUT_EVIDENCE = "What the judge looked at, with its verdict. ✗ counts against the score."
_ABOUT_HUMAN_ERROR = "Mean absolute error against the human labels."
_ABOUT_PREFERRED = (
    "Pairs of responses. A preference is one in both orders; everything else is a tie. "
    "The first bot is further left in the input."
)
_ABOUT_PAIRED = f"95% CI by a paired bootstrap over rows. Empty for fewer than {FEWEST_ROWS} rows."


# The tables


class ComparedJudges(NamedTuple):
    """What the tables are made of."""

    comparison: JudgeComparison
    runs: Runs

    @property
    def facts(self) -> RunFacts:
        """Those of the run that ended early, if one did."""
        return next((run.facts for run in self.runs if run.facts.partial), self.runs[0].facts)


def _table(name: str, page: PagePart | None, **others: Any) -> ReportTable[ComparedJudges, Any]:
    heights = {"header_height": 2 * LINE_HEIGHT, "line_height": 18, "frozen": 1}
    return ReportTable(name=name, page=page, **(heights | others))


AGREEMENT = _table(
    "Agreement",
    PagePart(title="Agreement"),
    columns=lambda judges: _measure_columns(),
    lines=lambda judges: judges.comparison.measures,
)
PREFERRED = _table(
    "Pairs",
    PagePart(title="Head to head: what both judges prefer"),
    columns=lambda judges: _preference_columns(),
    lines=lambda judges: (
        judges.comparison.preferences.counts.items() if judges.comparison.preferences else ()
    ),
)
LABELS = _table(
    "Human Labels",
    PagePart(title="Against human labels", rank=1),
    columns=lambda judges: _human_columns(),
    lines=lambda judges: judges.comparison.human,
)
DISAGREEMENTS = _table(
    "Disagreements",
    None,
    columns=lambda judges: _disagreement_columns(judges.facts),
    lines=lambda judges: judges.comparison.disagreements,
    frozen=3,
)
JUDGE_TABLES = (
    AGREEMENT,
    _table(
        "Decisions",
        PagePart(title="Decisions"),
        columns=lambda judges: _decision_columns(),
        lines=lambda judges: _decision_lines(judges.comparison),
    ),
    _table(
        "Judges",
        PagePart(title="Judges", rank=3),
        columns=lambda judges: _judge_columns(judges.runs),
        lines=lambda judges: judge_facts(*judges),
        line_height=2 * LINE_HEIGHT,
    ),
    _table(
        "Ranking",
        PagePart(title="Ranking", rank=2),
        columns=lambda judges: _ranking_columns(judges.facts),
        lines=lambda judges: judges.comparison.ranking,
    ),
    PREFERRED,
    LABELS,
    DISAGREEMENTS,
)


def tables_of(comparison: JudgeComparison) -> list[ReportTable[ComparedJudges, Any]]:
    """The tables of a comparison, in the order of the sheets; pairs and human labels only if there are any."""
    is_there = {PREFERRED: comparison.preferences is not None, LABELS: bool(comparison.human)}
    return [table for table in JUDGE_TABLES if is_there.get(table, True)]

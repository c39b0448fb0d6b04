"""The parts of the page that need no script: verdict, leaderboard, causes, worst cases, tables, what to know."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from rag_eval.records import METRIC_LABELS, SPENT_LABELS, CaseResult, FailureMode, RunFacts
from rag_eval.report.about import cost_words, details
from rag_eval.report.charts import axes_of, unnamed_words
from rag_eval.report.column import AnyTable, Cell, Column, Item, ReportTable
from rag_eval.report.columns import bot_columns, case_columns
from rag_eval.report.extra_columns import spent_title
from rag_eval.report.page.figures import BotMark, histogram, mean_bar, scatter, share_bar
from rag_eval.report.styles import Look
from rag_eval.results.causes import (
    MOST_CAUSES,
    MOST_PLACES,
    BotCauses,
    Cause,
    counted_words,
    fix_words,
    place_words,
)
from rag_eval.results.findings import Findings
from rag_eval.results.summary import RELIABLE_ROWS, BotSummary, Standing, Summary
from rag_eval.results.trade_off import TradeOff, unbeaten_words
from rag_eval.results.verdict import (
    ABOUT_COUNTS,
    NAME_LIMIT,
    flagged_words,
    has_other_counts,
    interval_words,
    noise_words,
    unfit_words,
    verdict,
    verdict_on,
)
from rag_eval.texts.display import (
    amount,
    counted,
    decimals,
    digits_beside,
    enumerated,
    percent,
    printable,
    shorten,
)

BOT_NAME = 200
"""Characters of a bot's name in the leaderboard and in the table of cases."""
_MODE_COLUMNS = {
    FailureMode.RETRIEVAL_FAILURE: "Retrieval Failures",
    FailureMode.HALLUCINATION: "Hallucinations",
    FailureMode.LOW_QUALITY: "Low Quality",
}
_DASH = '<span class="none" title="not applicable">–</span>'


def safe(text: str) -> str:
    """`text` from data as HTML: nothing that a parser reads as markup, nothing that HTML forbids."""
    return escape(printable(text))


# Verdict


def headline(facts: RunFacts, summary: Summary, findings: Findings) -> str:
    """The verdict as one large sentence, the rest of it below, and a line about the run."""
    said = verdict(facts, summary, findings)
    partial = (
        f'<p class="partial"><strong>PARTIAL RUN</strong> {safe(shorten(facts.partial, 300))}</p>'
        if facts.partial
        else ""
    )
    if unfit_words(facts):
        partial += f'<p class="partial">{safe(unfit_words(facts))}</p>'
    more = "".join(
        f'<p class="{look}">{safe(text)}</p>'
        for look, text in (
            ("lead", said.numbers),
            ("lead", said.side_by_side),
            ("limits", " ".join(said.limits)),
        )
        if text
    )
    byline = "".join(f"<li>{safe(each)}</li>" for each in _byline(facts, summary))
    return (
        f'<header><p class="eyebrow">RAG Eval report</p>{partial}<h1 dir="auto">{safe(said.decision)}</h1>{more}'
        f'<ul class="byline">{byline}</ul></header>'
    )


def _byline(facts: RunFacts, summary: Summary) -> Iterator[str]:
    yield shorten(facts.input_name, 80) + (f", sheet {shorten(facts.sheet, 40)}" if facts.sheet else "")
    yield shorten(facts.judge, 120)
    yield f"{facts.started:%Y-%m-%d %H:%M} {facts.started.tzname() or ''}".rstrip()
    planned = ", then stopped as planned" if facts.has_stopped_as_planned else ""
    yield f"{summary.judged:,} of {facts.rows:,} rows judged{planned}"
    scored, failed = summary.scored_and_failed
    if scored + failed:
        yield f"{scored:,} of {scored + failed:,} cases scored"
    if not facts.is_proxy:
        yield f"cost {cost_words(facts.usage, facts.currency, digits=2)}"


# Leaderboard


def leaderboard(facts: RunFacts, summary: Summary, findings: Findings) -> str:
    """One row per bot: RQS with its interval, the metrics, failures, and what to do first."""
    metrics = [name for name in METRIC_LABELS if name in facts.metrics]
    heads = [
        '<th scope="col">Bot</th>',
        '<th scope="col" class="wide"><abbr title="Response Quality Score, 0 to 1: weighted mean of the metrics">'
        "RQS</abbr> and 95% CI</th>",
        *(
            f'<th scope="col" class="heat" title="Mean over the compared queries">{escape(METRIC_LABELS[name])}</th>'
            for name in metrics
        ),
        '<th scope="col" class="num" title="Judged cases with at least one failure mode">Failures</th>',
        '<th scope="col">Verdict</th>',
    ]
    bots = {bot.bot: bot for bot in summary.bots}
    digits = verdict(facts, summary, findings).digits
    rows = [
        _standing(line, digits, bots[line.bot], facts, summary, findings)
        for line in summary.standings[:_MOST_BOTS]
    ]
    many = " many" if len(summary.standings) > _FEW_BOTS else ""
    return (
        '<section aria-labelledby="h-board"><h2 id="h-board">Leaderboard</h2><div class="scroll" tabindex="0" '
        f'role="region" aria-label="Leaderboard"><table class="board{many}"><thead><tr>'
        f"{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"{_more(len(summary.standings) - _MOST_BOTS, 'bot')}{_about_counts(summary)}</section>"
    )


_FEW_BOTS = 5
"""More of them have lower rows, so that twelve are on the first screen; what to fix first is on their cards."""
_MOST_BOTS = TABLE_ROWS = 100
"""Rows of a table and cards; more of them would leave no room for cases."""


def _about_counts(summary: Summary) -> str:
    return f'<p class="dim"><small>{ABOUT_COUNTS}</small></p>' if has_other_counts(summary) else ""


def _more(count: int, noun: str) -> str:
    return (
        f"<p>… and {counted(count, f'more {noun}')}: see the workbook or the JSON.</p>" if count > 0 else ""
    )


def _standing(
    line: Standing, digits: int, bot: BotSummary, facts: RunFacts, summary: Summary, findings: Findings
) -> str:
    """`digits` are the decimals of RQS."""
    mean = decimals(line.rqs.value, digits)
    interval = findings.compared.get(line.bot)
    limits = f"95% CI {interval_words(interval, digits)}" if interval else ""
    label = f"{shorten(line.bot, NAME_LIMIT)}: mean RQS {mean}{', ' if limits else ''}{limits}"
    rank = "" if line.rank is None else f'<span class="rank">{line.rank}</span>'
    words = verdict_on(line.bot, facts, summary, findings)
    first = fix_words(findings.causes_of(line.bot))
    fix = f'<div class="fix"><small>First fix</small> {safe(first)}</div>' if first else ""
    count, kind = summary.evidence
    few = (
        f'<small title="{_FEW.format(kind)}">few {kind}</small>' if interval and count < RELIABLE_ROWS else ""
    )
    failures = f"{bot.failed_queries:,} <small>of {bot.judged_queries:,}</small>"
    is_measured = any(mean.scored for mean in bot.metrics.values())
    return (
        f'<tr><th scope="row"><span class="who">{rank}<bdi data-bot="{facts.bots.index(line.bot)}">'
        f"{safe(shorten(line.bot, BOT_NAME))}</bdi></span></th>"
        f'<td class="wide"><span class="mean"><b>{mean}</b> <small>{limits.removeprefix("95% CI ")}</small>{few}</span>'
        f"{mean_bar(label, line.rqs.value, interval)}</td>"
        f"{''.join(_heat(name, line, facts) for name in METRIC_LABELS if name in line.metrics)}"
        f'<td class="num" data-label="Failures">{failures if is_measured else _DASH}</td>'
        f"<td>{safe(words)}{fix}</td></tr>"
    )


_FEW = f"Fewer than {RELIABLE_ROWS} {{}}: the interval is too narrow if failures are rare."


def _heat(metric: str, line: Standing, facts: RunFacts) -> str:
    mean, threshold = line.metrics[metric], facts.thresholds[metric]
    label = f'data-label="{METRIC_LABELS[metric]}"'
    if mean.value is None:
        return f'<td class="num heat" {label}>{_DASH}</td>'
    count = "" if mean.scored == line.rqs.scored else f" <small>({mean.scored:,})</small>"
    is_below = mean.value < threshold
    title = f"mean of {mean.scored:,}" + (f", below the threshold {threshold:g}" if is_below else "")
    shown = decimals(mean.value, digits_beside(threshold, mean.value))
    kind = "below" if is_below else f"h{min(4, int(mean.value * 5))}"
    return f'<td class="num heat {kind}" {label} title="{title}">{shown}{count}</td>'


# Latency and cost


def spending(facts: RunFacts, findings: Findings) -> str:
    """RQS and cost, or latency, of each bot as charts; empty if the input has neither."""
    figures = "".join(
        _trade_off(name, offs, facts)
        for name, offs in findings.trade_offs.items()
        if len(offs) <= _MOST_CHARTED
    )
    title = enumerated(["Quality", *(SPENT_LABELS[name].lower() for name in findings.trade_offs)])
    return (
        f'<section aria-labelledby="h-spent"><h2 id="h-spent">{title}</h2>'
        f'<div class="cards">{figures}</div></section>'
        if figures
        else ""
    )


_MOST_CHARTED = 30
"""Bots whose points can be told apart."""


def _trade_off(name: str, offs: Sequence[TradeOff], facts: RunFacts) -> str:
    title = f"RQS and {spent_title(name, facts)}"
    marks = [
        BotMark(shorten(each.bot, 30), each.spent, each.limits, each.rqs, each.rqs_limits, each.is_unbeaten)
        for each in offs
    ]
    told = "; ".join(
        f"{shorten(each.bot, NAME_LIMIT)} {decimals(each.rqs)}, {amount(each.spent)}" for each in offs
    )
    counts = {each.count for each in offs}
    over = f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
    drawing, unnamed = scatter(f"{title}: {told}", marks, axes_of(offs), amount)
    about = f"{unbeaten_words(offs)}{unnamed_words(unnamed)} Whiskers: 95% CI. Known for {over} responses of each bot."
    return (
        f'<figure class="time"><h3>{safe(title)}</h3>{drawing}'
        f'<figcaption class="dim">{safe(about)}</figcaption></figure>'
    )


# Why


def reasons(facts: RunFacts, summary: Summary, findings: Findings) -> str:
    """One card per bot: its causes with rows, its failure modes, and how its RQS is distributed."""
    columns = {column.header: column for column in bot_columns(facts, summary, findings)}
    bots = {bot.bot: bot for bot in summary.bots}
    cards = [_card(bots[line.bot], facts, findings, columns) for line in summary.standings[:_MOST_BOTS]]
    shown, folded = "".join(cards[:_CARDS]), "".join(cards[_CARDS:])
    summary_of_more = f"<summary>{counted(len(cards) - _CARDS, 'more bot')}</summary>"
    more = (
        f'<details class="more">{summary_of_more}<div class="cards">{folded}</div></details>'
        if folded
        else ""
    )
    title = '<h2 id="h-why">Why, and what to fix first</h2>'
    return f'<section aria-labelledby="h-why">{title}<div class="cards">{shown}</div>{more}</section>'


_CARDS = 4
"""Bots whose card is not folded."""


def _card(
    bot: BotSummary, facts: RunFacts, findings: Findings, columns: Mapping[str, Column[BotSummary]]
) -> str:
    index = facts.bots.index(bot.bot)
    modes = []
    for number, (mode, header) in enumerate(_MODE_COLUMNS.items()):
        count = bot.full_modes[mode]
        if columns[header].cell(bot).value is not None and bot.judged_queries:
            share = count / bot.judged_queries
            label = f"{mode}: {count:,} of {bot.judged_queries:,} judged queries"
            modes.append(
                f'<li><span data-bot="{index}" data-mode="{number}">{mode}</span> <b>{count:,}</b> '
                f"<small>{percent(share)}</small>{share_bar(label, share)}</li>"
            )
        else:
            modes.append(f"<li>{mode} <small>not measured</small></li>")
    name = safe(shorten(bot.bot, NAME_LIMIT))
    chart = (
        f"<figure>{histogram(f'Distribution of RQS of {shorten(bot.bot, NAME_LIMIT)}', bot.rqs_values)}"
        f"<figcaption>RQS of {counted(len(bot.rqs_values), 'case')}</figcaption></figure>"
        if bot.rqs_values
        else ""
    )
    known = findings.causes_of(bot.bot)
    causes = _causes(known, index) if bot.judged_queries else _NOT_JUDGED
    halves = known.failures - bot.failed_queries if known and bot.judged_queries else 0
    if halves > 0:
        modes.append(f'<li class="dim"><small>{halves:,} more failures were judged in part</small></li>')
    return (
        f'<article class="card"><h3><bdi>{name}</bdi></h3>{causes}'
        f'<div class="pair"><ul class="modes">{"".join(modes)}</ul>{chart}</div></article>'
    )


_NOT_JUDGED = '<p class="dim">No query was judged.</p>'


def _causes(causes: BotCauses | None, index: int) -> str:
    """The most frequent causes, the first one with what to do about it, and links to their rows."""
    if causes is None or not (causes.causes or causes.failures):
        return '<p class="dim">No failures.</p>'
    items = "".join(_cause(cause, index) for cause in causes.causes[:MOST_CAUSES])
    none = "" if causes.failures else '<p class="dim">No failures. Scores that could be better:</p>'
    return f'{none}<ol class="causes">{items}</ol>'


def _cause(cause: Cause, index: int) -> str:
    linked = cause.rows[:MOST_PLACES]
    names = [safe(place_words(*place)) for place in cause.places] or list(map(str, linked))
    rows = ", ".join(
        f'<a href="#row-{row}-{index + 1}">{name}</a>' for row, name in zip(linked, names, strict=True)
    )
    what = "" if cause.places else "rows " if len(cause.rows) > 1 else "row "
    more = " …" if len(cause.rows) > MOST_PLACES else ""
    return (
        f"<li><b>{safe(cause.fix[0].upper() + cause.fix[1:])}</b><br>{safe(cause.text)} "
        f'<span class="dim">({counted_words(cause)}; {what}'
        f"{rows}{more})</span></li>"
    )


# Worst cases


def worst_cases(results: Sequence[CaseResult], facts: RunFacts, *, has_texts: bool) -> str:
    """The cases with the lowest RQS, for readers and printers without a script."""
    cases = "".join(_worst(result, facts, has_texts=has_texts) for result in results)
    return (
        '<section class="static" aria-labelledby="h-worst"><h2 id="h-worst">'
        f"The {counted(len(results), 'case')} with the lowest RQS</h2>{cases}</section>"
        if results
        else ""
    )


def _worst(result: CaseResult, facts: RunFacts, *, has_texts: bool) -> str:
    case = result.case
    scores = ", ".join(
        f"{METRIC_LABELS[name]} {decimals(score.value, digits_beside(facts.thresholds[name], score.value))}"
        + (" (below)" if score.value < facts.thresholds[name] else "")
        for name, score in result.scores.items()
        if score.value is not None
    )
    texts = [("Query", case.query, 400), ("Response", case.response or "(empty)", 1_000)]
    texts += [("Ground truth", case.reference, 600)] if case.reference else []
    texts += [("Recommendation", result.recommendation, 600)] if result.recommendation else []
    lines = "".join(
        f'<dt>{label}</dt><dd dir="auto">{safe(shorten(text, limit))}</dd>' for label, text, limit in texts
    )
    return (
        f"<article><h3>Row {case.row}, <bdi>{safe(shorten(case.bot, NAME_LIMIT))}</bdi>: "
        f"RQS {decimals(result.rqs or 0)}, "
        f"{safe(' | '.join(result.failure_modes))}</h3><p>{safe(scores)}</p>"
        f"{f'<dl>{lines}</dl>' if has_texts else ''}</article>"
    )


# Further tables


def folded(title: str, content: str, is_open: bool = False) -> str:
    return f'<details class="fold"{" open" if is_open else ""}><summary><h2>{title}</h2></summary>{content}</details>'


def further_tables(
    tables: Iterable[AnyTable], source: object, frame: Callable[[str, str, bool], str] = folded
) -> str:
    """The tables that a page shows, in their order on it; `frame` puts a title over each."""
    shown = [(each.page, each) for each in tables if isinstance(each, ReportTable) and each.page]
    parts = []
    for part, each in sorted(shown, key=lambda pair: pair[0].rank):
        notes = "".join(f"<p>{safe(note)}</p>" for note in each.notes(source))
        content = table(each.columns(source), each.lines(source)) + notes
        parts.append(frame(part.title, content, part.is_open))
    return "".join(parts)


def table(columns: Sequence[Column[Item]], items: Iterable[Item]) -> str:
    shown = [column for column in columns if not (column.is_hidden or column.is_folded)]
    heads = "".join(
        f'<th scope="col" class="{_kind(column.header_look)}" title="{safe(column.about)}">{safe(column.header)}</th>'
        for column in shown
    )
    lines = list(items)
    rows = "".join(
        f"<tr>{''.join(_td(column.cell(item)) for column in shown)}</tr>" for item in lines[:TABLE_ROWS]
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="plain">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{_more(len(lines) - TABLE_ROWS, 'row')}"
    )


def _kind(header: Look) -> str:
    return "num" if header is Look.NUMBER_HEADER else ""


def _td(cell: Cell) -> str:
    value = cell.value
    if value is None:
        return f'<td class="num">{_DASH}</td>' if cell.look in _NUMBERS else "<td></td>"
    if isinstance(value, str):
        return f'<td dir="auto">{safe(shorten(value, 300))}</td>'
    if cell.look is Look.PERCENT:
        shown = percent(value)
    elif cell.look in (Look.AMOUNT, Look.LARGE_AMOUNT):
        shown = amount(value)
    else:
        shown = f"{value:,}".replace("-", "−") if isinstance(value, int) else decimals(value)
    count = "" if cell.over is None else f" <small>({cell.over:,})</small>"
    return f'<td class="num">{shown}{count}</td>'


_NUMBERS = frozenset(
    {Look.SCORE, Look.RQS, Look.COUNT, Look.PERCENT, Look.MARK, Look.AMOUNT, Look.NOT_APPLICABLE}
)


# About


def about(
    facts: RunFacts,
    summary: Summary,
    findings: Findings,
    configuration: Mapping[str, Mapping[str, Any]],
) -> str:
    """What a reader must know about the run, the definitions, and the settings that differ from the defaults."""
    notes = [*noise_words(findings), *flagged_words(findings)]
    sentences = "".join(
        f"<li>{safe(each)}</li>" for each in details(facts, summary, notes, is_workbook=False)
    )
    terms = "".join(f"<dt>{safe(term)}</dt><dd>{safe(words)}</dd>" for term, words in _definitions(facts))
    rows = "".join(
        f"<tr><td>[{safe(section)}] {safe(key)}</td><td>{safe(shorten(str(each['value']), 200))}</td>"
        f"<td>{safe(shorten(str(each['source']), 100))}</td></tr>"
        for section, keys in configuration.items()
        for key, each in keys.items()
        if each["source"] != "default"
    )
    settings = (
        '<h3>Settings that differ from the defaults</h3><div class="scroll" tabindex="0" role="region" '
        'aria-label="Settings"><table class="plain"><thead><tr><th scope="col">Setting</th><th scope="col">Value</th>'
        f'<th scope="col">From</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )
    return folded(
        "About this run",
        f'<ul class="notes">{sentences}</ul><h3>Definitions</h3><dl>{terms}</dl>{settings if rows else ""}',
    )


def _definitions(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """What the scores are, in the words of the workbook's column headers, and the failure modes."""
    for column in case_columns(facts):
        if (
            column.header_look is Look.NUMBER_HEADER
            and column.header != "Row"
            and column.about != "Switched off."
        ):
            yield column.header, column.about
    yield from _ABOUT_MODES.items()


_ABOUT_MODES = {
    "Retrieval Failure": "Every context metric that was scored (recall, precision) is below its threshold; with "
    "[diagnostics] gold_ids, Doc Recall is.",
    "Hallucination": "Faithfulness is below its threshold: the context does not support the response.",
    "Low Quality": "Answer relevancy or answer correctness is below its threshold.",
    "Not Judged": "A score is missing because the judge failed, and no failure condition was met.",
}


# Cases, which page.js fills

CASES = """<section id="cases" aria-labelledby="h-cases"><h2 id="h-cases">Cases</h2>"""
CASES_END = """<noscript><p>The table of all cases needs JavaScript. The cases with the lowest RQS are below.</p>
</noscript>
<p id="problem" class="partial" role="alert" hidden></p>
<div id="app" hidden></div></section>
"""


def head(title: str, version: str, *, has_script: bool = False) -> str:
    """Everything up to the first part of the page. Only page.js may run, and only if it is there."""
    script = f"script-src '{_hash(asset('page.js'))}'; " if has_script else ""
    style = _hash(asset("page.css"))
    policy = f"default-src 'none'; {script}style-src '{style}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="RAG Eval {escape(shorten(version, 40))}">\n'
        f"<title>{escape(printable(title))}</title>\n"
        f"<style>{asset('page.css')}</style>\n</head>\n<body>\n<main>\n"
    )


def asset(name: str) -> str:
    """The text of page.css or page.js."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"

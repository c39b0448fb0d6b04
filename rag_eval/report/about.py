"""What a reader must know about a run, in sentences."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rag_eval.errors import NOT_RUN
from rag_eval.records import METRIC_LABELS, TOXICITY, RunFacts, Usage
from rag_eval.results.looks import looks_words
from rag_eval.results.summary import Summary
from rag_eval.results.verdict import NAME_LIMIT
from rag_eval.texts.display import percent, shorten

_NOTES = 12
"""How many of the run's notes are shown."""


def details(
    facts: RunFacts, summary: Summary, of_report: Sequence[str], *, is_workbook: bool = True
) -> list[str]:
    """One paragraph a topic; `of_report` are the sentences on what the report itself had to leave out.

    Only a workbook has thresholds that can be edited, hatched cells and notes on headers.
    """
    notes = [shorten(note, 300) for note in (*of_report, *facts.notes)]
    more = [f"… and {len(notes) - _NOTES} more notes."] if len(notes) > _NOTES else []
    return [
        _judge(facts),
        _rows(facts, summary),
        *_reading(facts),
        *([looks_words(facts.looks, facts.looks_taken)] if facts.looks else []),
        _coverage(summary),
        f"Weights of RQS: {_numbers(facts.weights, facts.metrics) or 'none; every metric of RQS is switched off'}.",
        f"Red: {_red(facts)}. {_origin(facts)}{_EDITABLE if is_workbook else ''}".rstrip(),
        *([_NO_VALUES] if is_workbook else []),
        _usage(facts),
        *notes[:_NOTES],
        *more,
        *(
            ["Definitions: the notes on the column headers, and docs/metrics.md."]
            if facts.explanations and is_workbook
            else []
        ),
    ]


_EDITABLE = (
    "You can edit the thresholds to the right of the table: the red cells update, "
    "failure modes and counts do not."
)
_NO_VALUES = "Grey: not applicable. Hatched: the judge failed. Neither counts in any mean."


def _origin(facts: RunFacts) -> str:
    has_thresholds = any(metric in facts.thresholds for metric in facts.metrics)
    return (
        f"These thresholds are {facts.thresholds_from}. " if facts.thresholds_from and has_thresholds else ""
    )


def _judge(facts: RunFacts) -> str:
    when = f"{facts.started:%Y-%m-%d %H:%M} {facts.started.tzname() or ''}".rstrip()
    proxy = " It is a proxy: it compares words and does not understand meaning." if facts.is_proxy else ""
    return f"Judge: {shorten(facts.judge, 200)}, {when}, RAG Eval {shorten(facts.version, 40)}.{proxy}"


def _rows(facts: RunFacts, summary: Summary) -> str:
    sheet = f", sheet {shorten(facts.sheet, NAME_LIMIT)}" if facts.sheet else ""
    as_planned = ", then stopped as planned" if facts.has_stopped_as_planned else ""
    counts = [f"{_of(summary.judged, facts.rows)} judged{as_planned}"]
    counts += [f"{facts.blank_rows:,} blank"] if facts.blank_rows else []
    counts += [f"{facts.cut_rows:,} left out beyond max_rows"] if facts.cut_rows else []
    return f"Rows: {', '.join(counts)} ({shorten(facts.input_name, NAME_LIMIT)}{sheet})."


def _reading(facts: RunFacts) -> list[str]:
    """How the input was read, and which columns were left out although they look as if they should not be."""
    found = facts.reading
    if not found:
        return []
    every = found.get("columns", ())
    columns = [_use(column) for column in every if column["role"] != "not used"]
    idle = [_use(column) for column in every if column["role"] == "not used"]
    cells = ", ".join(f"{kind} ({count:,})" for kind, count in found.get("context_cells", {}).items())
    chosen = "; then ".join(found.get("selection", ()))
    sentences = [
        f"Input: {found.get('shape', '')}; {shorten(', '.join(columns), 400)}.",
        f"Not used: {shorten(', '.join(idle), 300)}." if idle else "",
        f"Context cells: {shorten(cells, 200)}." if cells else "",
        f"Selected: {shorten(chosen, 200)}." if chosen else "",
    ]
    lacking = [each.partition(" To use it")[0] for each in found.get("warnings", ()) if " not used" in each]
    return [" ".join(filter(None, sentences)), *(shorten(each, 200) for each in lacking[:3])]


def _use(column: Mapping[str, Any]) -> str:
    """What one column was used as, or why it was not."""
    header = shorten(" ".join(column["header"].split()), 40)
    if column["role"] == "not used":
        return f"{header} ({column['why']})" if column.get("why") else header
    owner = f" of {shorten(column['bot'], 40)}" if column.get("bot") else ""
    return f"{header} = {column['role']}{owner}"


def _coverage(summary: Summary) -> str:
    scored, failed = summary.scored_and_failed
    if not scored + failed:
        return "Coverage: no case has an RQS."
    share = scored / (scored + failed)
    lacking = [f"{shorten(bot.bot, NAME_LIMIT)} {bot.rqs.failed:,}" for bot in summary.bots if bot.rqs.failed]
    missing = f" Not judged: {', '.join(lacking)}." if lacking else ""
    return f"Coverage: {_of(scored, scored + failed)} cases have an RQS ({percent(share, 1)}).{missing}"


def _usage(facts: RunFacts) -> str:
    usage = facts.usage
    if not usage.requests and not usage.cached:
        return f"Judge calls: none. Duration: {_duration(facts.seconds)}."
    failed = "".join(f", {words}" for words in _failed(usage))
    cost = f"Cost {cost_words(usage, facts.currency)}."
    return (
        f"Judge calls: {usage.calls:,} answered, {usage.cached:,} cached{failed}; {usage.requests:,} requests; "
        f"{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} completion tokens. "
        f"{cost} Duration: {_duration(facts.seconds)}."
    )


def cost_words(usage: Usage, currency: str, digits: int = 4) -> str:
    """Such as '0.4185 USD'; with both bounds where replies came without a count of their tokens.

    If the run took several commands, what the last one cost is next to it.
    """
    if usage.cost is None:
        return "unknown"
    most = f"{usage.cost:,.{digits}f} {currency}".rstrip()
    least = f"{usage.cost - usage.uncounted_cost:,.{digits}f}"
    words = f"at least {least}, at most {most}" if usage.uncounted else most
    return f"{words} (last command: {usage.cost_now or 0.0:,.{digits}f})" if usage.earlier_requests else words


def _failed(usage: Usage) -> list[str]:
    """Calls that failed, by code, and calls that were never made: these failed nowhere."""
    codes = {code: count for code, count in usage.failures.items() if code != NOT_RUN}
    told = ", ".join(f"{shorten(code, 40)} {count:,}" for code, count in codes.items())
    not_run = usage.failures.get(NOT_RUN, 0)
    failed = usage.failed - not_run
    words = [f"{failed:,} failed{f' ({told})' if told else ''}"] if failed else []
    return [*words, f"{not_run:,} not made"] if not_run else words


def _numbers(values: Mapping[str, float], metrics: Collection[str]) -> str:
    return ", ".join(
        f"{label} {values[metric]:.4g}"
        for metric, label in METRIC_LABELS.items()
        if metric in metrics and metric in values
    )


def _red(facts: RunFacts) -> str:
    """When a cell is red. At least one metric or the toxicity is always judged."""
    thresholds = _numbers(facts.thresholds, facts.metrics)
    rules = [f"below the threshold ({thresholds})"] if thresholds else []
    rules += [f"a toxicity at or above {facts.toxicity_threshold:g}"] if TOXICITY in facts.metrics else []
    return "; ".join(rules)


def _duration(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"

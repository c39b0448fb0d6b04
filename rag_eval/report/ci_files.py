"""A run for CI systems: at most sixty lines of Markdown, for the comment on a pull request or the summary of a job, and
the results of its gates as JUnit XML.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from rag_eval.records import METRIC_LABELS, CaseResult, RunFacts
from rag_eval.report.about import cost_words
from rag_eval.report.baseline_sheet import change_lines
from rag_eval.results.causes import place_words
from rag_eval.results.findings import Findings
from rag_eval.results.gates import GateResult
from rag_eval.results.summary import Standing, Summary
from rag_eval.results.verdict import (
    ABOUT_COUNTS,
    RunVerdict,
    has_other_counts,
    interval_words,
    mean_words,
    unfit_words,
    verdict,
    verdict_on,
)
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import decimals, printable, shorten

_MOST_BOTS, _MOST_GATES, _MOST_CHANGES = 12, 8, 8
"""Lines of each kind: with all others they make at most sixty."""


def write_markdown(
    target: Path,
    facts: RunFacts,
    summary: Summary,
    findings: Findings,
    gates: Sequence[GateResult],
    baseline: str,
) -> Path:
    """Write verdict, leaderboard, gates, changes since the baseline of that name, and the worst rows.

    Whatever comes from the input, the judge or the command line is shown as the text that it is. Returns the path of
    the file. Raises OutputError.
    """
    said = verdict(facts, summary, findings)
    blocks = [
        _verdict(said, facts),
        _leaderboard(said.digits, facts, summary, findings),
        _gates(gates),
        _changes(findings, facts, baseline),
        _worst(findings.worst),
        iter([_about(facts)]),
    ]
    texts = ["\n".join(block) for block in blocks]
    return write_text(target, "\n\n".join(filter(None, texts)) + "\n", "--markdown")


def _verdict(said: RunVerdict, facts: RunFacts) -> Iterator[str]:
    partial = f"PARTIAL RUN: {shorten(facts.partial, 200)}" if facts.partial else ""
    yield f"### {as_text(said.decision)}"
    for line in filter(None, (partial, unfit_words(facts), *said.lines[1:])):
        yield ""
        yield as_text(line)


def _leaderboard(digits: int, facts: RunFacts, summary: Summary, findings: Findings) -> Iterator[str]:
    metrics = [name for name in METRIC_LABELS if name in facts.metrics]
    heads = ["Rank", "Bot", "Mean RQS (95% CI)", *(METRIC_LABELS[name] for name in metrics), "Verdict"]
    yield _line(heads)
    yield _line(["--:", ":--", *["--:"] * (1 + len(metrics)), ":--"])
    for line in summary.standings[:_MOST_BOTS]:
        means = [mean_words(line.metrics.get(name), line.rqs.scored) for name in metrics]
        said = verdict_on(line.bot, facts, summary, findings)
        star = " ★" if line.is_winner and len(summary.bots) > 1 else ""
        yield _line(
            [
                str(line.rank or "–"),
                as_text(shorten(line.bot, 60)) + star,
                _rqs(line, findings, digits),
                *means,
                as_text(said),
            ]
        )
    if (more := len(summary.standings) - _MOST_BOTS) > 0:
        yield ""
        yield f"… and {more:,} more bots."
    if has_other_counts(summary):
        yield ""
        yield ABOUT_COUNTS


def _rqs(line: Standing, findings: Findings, digits: int) -> str:
    interval = findings.compared.get(line.bot)
    limits = f" ({interval_words(interval, digits)})" if interval else ""
    return f"{decimals(line.rqs.value, digits)}{limits}"


def _gates(gates: Sequence[GateResult]) -> Iterator[str]:
    """Those that failed first: where there is no room for all, they are the ones to see."""
    if not gates:
        return
    failed = sum(not gate.passed for gate in gates)
    yield f"**Gates: {f'{failed:,} of {len(gates):,} failed' if failed else f'all {len(gates):,} passed'}**"
    yield ""
    ordered = sorted(gates, key=lambda gate: gate.passed)
    for gate in ordered[:_MOST_GATES]:
        yield f"- {'passed' if gate.passed else '**FAILED**'}: {as_text(shorten(gate.bot, 60))}: {as_text(gate.reason)}"
    if len(ordered) > _MOST_GATES:
        yield f"- … and {len(ordered) - _MOST_GATES:,} more"


def _changes(findings: Findings, facts: RunFacts, baseline: str) -> Iterator[str]:
    if findings.changes is None:
        return
    head, *lines = change_lines(findings, facts, baseline, _MOST_CHANGES)
    yield f"**{as_text(head.removesuffix(':'))}**"
    if lines:
        yield ""
    yield from (f"- {as_text(line)}" for line in lines[:_MOST_CHANGES])
    if len(lines) > _MOST_CHANGES:
        yield f"- … and {len(lines) - _MOST_CHANGES:,} more"


def _worst(results: Sequence[CaseResult]) -> Iterator[str]:
    if not results:
        return
    yield "**Lowest RQS**"
    yield ""
    yield _line(["Row", "Bot", "RQS", "Failure mode", "Query"])
    yield _line(["--:", ":--", "--:", ":--", ":--"])
    for each in results:
        case = each.case
        place = place_words(case.source, case.source_row or case.row) if case.source else str(case.row)
        modes = ", ".join(each.failure_modes)
        cells = [
            place,
            shorten(case.bot, 40),
            decimals(each.rqs),
            modes,
            shorten(" ".join(case.query.split()), 120),
        ]
        yield _line(map(as_text, cells))


def _about(facts: RunFacts) -> str:
    cost = "" if facts.is_proxy else f", cost {cost_words(facts.usage, facts.currency)}"
    name, judge = shorten(facts.input_name, 80), shorten(facts.judge, 120)
    return as_text(f"{name}, {judge}{cost}, {facts.started:%Y-%m-%d %H:%M}, RAG Eval {facts.version}")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_ACTIVE = re.compile(r"[\\`*_\[\]<>|~$&]")
_CALLING = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=[A-Za-z_])|(?<=:)(?=//)|(?<=[Ww]{3})(?=\.)")
"""Where people, issues, emoji and links begin, which a backslash does not stop on every host."""


def as_text(text: str) -> str:
    """The text on one line so that Markdown shows it as it is: no link, image, mention, HTML or formatting."""
    line = " ".join(text.split())
    return _ACTIVE.sub(r"\\\g<0>", _CALLING.sub("\u200b", line))


def write_junit(target: Path, results: Sequence[GateResult], properties: Mapping[str, str]) -> Path:
    """Write one test case per gate and bot; the properties say what is known of the run.

    Returns the path of the file. Raises OutputError.
    """
    failed = sum(not result.passed for result in results)
    suite = Element("testsuite", name="rag-eval", tests=str(len(results)), failures=str(failed), errors="0")
    listed = SubElement(suite, "properties")
    for name, value in properties.items():
        SubElement(listed, "property", name=printable(name), value=printable(value))
    for result in results:
        case = SubElement(suite, "testcase", classname=printable(result.bot), name=result.gate.title)
        if not result.passed:
            SubElement(case, "failure", message=printable(result.reason))
    return write_text(target, f"{tostring(suite, encoding='unicode', xml_declaration=True)}\n", "--junit")

"""The outcome of a run: what it found, in lines for the terminal; its quality gates; its exit code."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rag_eval.cli.console import warn
from rag_eval.cli.facts import usage_line
from rag_eval.cli.options import Options
from rag_eval.cli.terminal import printable
from rag_eval.errors import ExitCode, RagEvalError, RunStoppedError, how_to_judge_again
from rag_eval.records import FAILURES, METRIC_LABELS, TOXICITY
from rag_eval.results.causes import MOST_CAUSES, BotCauses, cause_words, worst_words
from rag_eval.results.findings import Findings
from rag_eval.results.gates import GateOn, regression_gates
from rag_eval.results.gates import evaluate as evaluate_gates
from rag_eval.results.human_alignment import JUDGE, PEOPLE, HumanAgreement, label_warnings
from rag_eval.results.looks import confidence_of
from rag_eval.results.summary import GOAL, BotSummary, Summary, of_queries
from rag_eval.results.verdict import (
    ABOUT_COUNTS,
    failure_codes,
    flagged_words,
    has_other_counts,
    labelled_words,
    mean_words,
    noise_words,
    unfit_words,
    verdict,
)
from rag_eval.texts.display import counted, decimals, percent

if TYPE_CHECKING:
    from rag_eval.cli.history import HistoryOfRun
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.report.outputs import Outputs
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.gates import Gate


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """All that is known of a run when its outputs are written."""

    summary: Summary
    findings: Findings
    facts: "RunFacts"
    paths: Sequence[Path]
    """Where the outputs are, the report first."""
    problems: Sequence[RagEvalError] = ()
    """Why other outputs could not be written."""

    @classmethod
    def written(
        cls,
        outputs: "Outputs",
        summary: Summary,
        findings: Findings,
        facts: "RunFacts",
        history: "HistoryOfRun | None" = None,
    ) -> Self:
        """Finish the outputs."""
        if history:
            findings = replace(findings, history=history.with_run(facts, summary, findings))
        paths = outputs.finish(summary, findings, facts)
        return cls(summary, findings, replace(facts, left_out=outputs.left_out), paths, outputs.problems)

    def tell(self, say: Callable[..., None], past: "PastRun | None") -> None:
        """The leaderboard, what it means, how it compares with an earlier run, and how the run went."""
        from rag_eval.report.baseline_sheet import change_lines

        summary, findings, facts = self.summary, self.findings, self.facts
        changes = change_lines(findings, facts, past.name) if past and findings.changes is not None else []
        said = verdict(facts, summary, findings)
        for line in ("", *leaderboard_lines(summary, said.digits), ""):
            say(line)
        if unfit_words(facts):
            say(unfit_words(facts), bold=True)
        decision, *rest = said.lines
        say(decision, bold=True)
        for line in rest:
            say(line)
        for line in (*bot_lines(summary, findings), *_annotation_lines(findings), *changes):
            say(line, **_STYLES.get(line.lstrip().partition(":")[0], {}))
        # Unless the baseline is that run: then its changes were told above.
        if (
            findings.history
            and findings.history.runs[:-1]
            and (findings.changes is None or findings.since_last is not findings.changes)
        ):
            from rag_eval.results.run_history import changes_words

            for line in changes_words(findings.history):
                say(line)
        if facts.is_proxy:
            say(f"Scores below these thresholds are red in the report: {self._thresholds()}.")
        for line in (usage_line(facts), *facts.notes, *facts.left_out):
            say(line)

    def _thresholds(self) -> str:
        facts = self.facts
        values = [
            f"{METRIC_LABELS[name]} {value:g}"
            for name, value in facts.thresholds.items()
            if name in facts.metrics
        ]
        return f"{', '.join(values)} ({facts.thresholds_from})"

    def warnings(self, target: Path, *, is_journal_kept: bool) -> Iterator[str]:
        """What the user must know of the outputs; `target` is where the report was to be."""
        if self.facts.partial:
            yield f"PARTIAL: {self.facts.partial}"
        if is_journal_kept and (self.facts.head_to_head or not self.facts.is_proxy):
            yield f"Some cases were not judged. {how_to_judge_again(failure_codes(self.facts, self.summary))}"
        if self.paths[0] != target:
            yield f"{target} is open in another program; the report was saved next to it."

    def exit_code(self, stopped: RunStoppedError | None, min_coverage: float, *, passed: bool) -> ExitCode:
        """`passed`: whether every quality gate did."""
        if stopped:
            return stopped.exit_code
        coverages = [bot.rqs.coverage for bot in self.summary.bots if bot.rqs.coverage is not None]
        if (pairs := self.findings.head_to_head) and pairs.asked:
            coverages.append(1 - pairs.failed / pairs.asked)
        if min(coverages, default=1.0) < min_coverage:
            return ExitCode.LOW_COVERAGE
        return ExitCode.COMPLETE if passed else ExitCode.GATE_FAILED


_STYLES: dict[str, dict[str, Any]] = {"First fix": {"fg": "cyan"}, "Worst row": {"dim": True}}
"""Of lines that begin so. Colour only adds to the words."""


def leaderboard_lines(summary: Summary, digits: int = 2) -> list[str]:
    """The leaderboard as a table of plain text, with the counts that its means were taken over.

    RQS have so many decimals, as in the verdict.
    """
    metrics = [name for name in METRIC_LABELS if any(name in line.metrics for line in summary.standings)]
    header = ["Rank", "Bot", "Avg RQS", "StdDev", *(METRIC_LABELS[name] for name in metrics), "Rows", ""]
    rows = [
        [
            "" if line.rank is None else str(line.rank),
            printable(line.bot),
            decimals(line.rqs.value, digits),
            decimals(line.rqs.stdev),
            *(mean_words(line.metrics.get(name), line.rqs.scored) for name in metrics),
            str(line.rqs.scored),
            "★" if line.is_winner and len(summary.bots) > 1 else "",
        ]
        for line in summary.standings
    ]
    widths = [max(map(_width, column)) for column in zip(header, *rows, strict=True)]
    table = [_aligned(cells, widths) for cells in (header, *rows)]
    return [*table, ABOUT_COUNTS] if has_other_counts(summary) else table


def bot_lines(summary: Summary, findings: Findings) -> Iterable[str]:
    """For each bot: how much was judged, what failed by code, its failures, their causes, and its worst row."""
    for bot in summary.bots:
        codes = ", ".join(f"{code} {count:,}" for code, count in bot.failures.items())
        failed = f"; failed scores: {codes}" if codes else ""
        yield f"{printable(bot.bot)}: RQS for {of_queries(bot.rqs.scored, bot.total_queries)}{failed}"
        if causes := findings.causes_of(bot.bot):
            yield from _cause_lines(bot, causes)


def _cause_lines(bot: BotSummary, causes: BotCauses) -> Iterable[str]:
    if causes.failures and (failed := bot.failed_queries):
        modes = ", ".join(
            f"{mode} {count:,}" for mode, count in bot.full_modes.items() if count and mode in FAILURES
        )
        counted = sum(bot.full_modes[mode] for mode in FAILURES)
        modes += "; some queries have several" if counted > failed else ""
        kind = "" if bot.judged_queries == bot.total_queries else "judged "
        halves = causes.failures - failed
        more = f"; {halves:,} more of those judged in part" if halves > 0 else ""
        yield f"  Failures: {of_queries(failed, bot.judged_queries, kind)} ({modes}){more}"
    if causes.failures and (fix := causes.first_fix):
        yield f"  First fix: {fix.fix}"
    yield from (f"    {printable(cause_words(cause))}" for cause in causes.causes[:MOST_CAUSES])
    if causes.worst_row is not None:
        yield f"  Worst row: {printable(worst_words(causes))} (RQS {decimals(causes.worst_rqs)})"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right; the bot's name is the second column."""
    parts = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - _width(cell))
        parts.append(cell + space if index == 1 else space + cell)
    return "  ".join(parts).rstrip()


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def pass_gates(
    outcome: RunOutcome,
    gates: Sequence["Gate"],
    options: Options,
    settings: "Settings",
    say: Callable[..., None],
    *,
    is_first_run: bool,
    baseline: str,
) -> tuple[bool, list[Path]]:
    """Whether every quality gate passes, and the files that were written of it for CI systems; says how each went.

    `baseline` is the name of the earlier run that this one is compared with.
    """
    facts = outcome.facts
    results = list(
        evaluate_gates(
            gates,
            outcome.summary,
            GateOn(options.gate_on),
            settings.evaluation.min_coverage,
            confidence_of(facts.looks[: facts.looks_taken], facts.rows),
            unseen=facts.rows - outcome.summary.bots[0].total_queries if facts.partial else 0,
            spared=facts.earlier_bots,
        )
    )
    if options.fail_on_regression and not is_first_run:
        findings = outcome.findings
        if findings.changes is None:  # --baseline latest found no run to compare with
            findings = replace(findings, not_comparable="the history has no comparable earlier run")
        own = [bot for bot in facts.bots if bot not in facts.earlier_bots]
        unscored = {bot.bot for bot in outcome.summary.bots if bot.rqs.failed and not bot.rqs.scored}
        evaluation = settings.evaluation
        results += regression_gates(
            findings, own, evaluation.min_common, evaluation.regression_margin, unscored=unscored
        )
    for result in results:
        line = f"Gate {'passed' if result.passed else 'FAILED'}: {result.bot}: {result.reason}"
        say(line, fg="green") if result.passed else warn(line)
    written = []
    if options.junit:
        from rag_eval.report.ci_files import write_junit

        about = {"input": facts.input_name, "judge": facts.judge, "version": facts.version}
        written.append(write_junit(options.junit, results, about))
    if options.markdown:
        from rag_eval.report.ci_files import write_markdown

        written.append(
            write_markdown(options.markdown, facts, outcome.summary, outcome.findings, results, baseline)
        )
    for path in written:
        say(f"Also written: {path}")
    return all(result.passed for result in results), written


def _annotation_lines(findings: Findings) -> Iterator[str]:
    """What to look at; a line a bot for the rubric and for retrieval, and one for each measure with human labels."""
    yield from noise_words(findings)
    yield from flagged_words(findings)
    for bot in findings.pass_rates:
        rate = bot.overall
        share = f" ({percent(rate.rate)})" if rate.rate is not None else ""
        missing = f", {rate.failed:,} not judged" if rate.failed else ""
        yield f"{bot.bot}: {rate.passed:,} of {rate.scored:,} responses pass the rubric{share}{missing}"
    for name, summary in findings.retrieval.items():
        means = ", ".join(f"{label} {decimals(summary.means[key])}" for key, label in _SHOWN.items())
        yield f"{name}: {means} over {counted(summary.scored, 'query', 'queries')} with gold documents"
    for line in findings.alignment.agreements if findings.alignment else ():
        yield _agreement_line(line)
    yield from label_warnings(findings.alignment)
    yield from labelled_words(findings.head_to_head)


def _agreement_line(line: HumanAgreement) -> str:
    who = line.bot or "All bots"
    one, more = ("query", "queries") if line.measure == TOXICITY else ("case", "cases")
    with_whom = (
        "with human labels" if line.raters == (JUDGE, PEOPLE) else f"between {' and '.join(line.raters)}"
    )
    text = (
        f"{who}, {line.label}: kappa {decimals(line.kappa.kappa)} {with_whom} over {line.count:,} "
        f"{one if line.count == 1 else more}"
    )
    if not (mean := line.corrected):
        return text
    interval = f"95% CI {decimals(mean.interval.low)} to {decimals(mean.interval.high)}"
    more = f"; about {mean.more_labels:,} more labels for ±{GOAL:.2f}" if mean.more_labels else ""
    return f"{text}; mean {decimals(mean.judge_mean)}, corrected {decimals(mean.value)} ({interval}){more}"


_SHOWN = {"doc_recall": "doc recall", "doc_precision": "doc precision", "ndcg_10": "NDCG@10"}

"""How a run ends: what it found, on the terminal; its gates; and the exit code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.console import warn
from rag_eval.cli.facts import usage_line
from rag_eval.cli.options import Options
from rag_eval.cli.terminal import bot_lines, leaderboard_lines
from rag_eval.errors import ExitCode, RunStoppedError
from rag_eval.records import METRIC_LABELS
from rag_eval.results.gates import GateOn, regression_gates
from rag_eval.results.gates import evaluate as evaluate_gates

if TYPE_CHECKING:
    from rag_eval.records import RunFacts
    from rag_eval.report.outputs import Outputs
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.findings import Findings
    from rag_eval.results.gates import Gate
    from rag_eval.results.summary import Summary
    from rag_eval.results.tallies import Tallies


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything that is known when the outputs are written."""

    summary: "Summary"
    findings: "Findings"
    facts: "RunFacts"
    places: Sequence[Path]
    """Where the outputs are, the report first."""

    @classmethod
    def of(
        cls, outputs: "Outputs", tallies: "Tallies", facts_of: Callable[["Summary"], "RunFacts"]
    ) -> "Ending":
        """Finish the outputs; `facts_of` are the facts at the end."""
        summary = tallies.summary()
        findings = tallies.findings(summary)
        facts = _with_cut(facts_of(summary), summary)
        places = outputs.finish(summary, findings, facts)
        return cls(summary, findings, replace(facts, left_out=outputs.left_out), places)


_STYLES: dict[str, dict[str, Any]] = {"First fix": {"fg": "cyan"}, "Worst row": {"dim": True}}
"""Of lines that begin so. Colour only adds to the words."""


def _with_cut(facts: "RunFacts", summary: "Summary") -> "RunFacts":
    """With a note if the first sheet cannot have all cases."""
    from rag_eval.report.spool import cut_note
    from rag_eval.report.worksheet import SHEET_ROWS

    note = cut_note(sum(bot.total_queries for bot in summary.bots), SHEET_ROWS - 1)
    return replace(facts, notes=(note, *facts.notes)) if note else facts


def _thresholds(facts: "RunFacts") -> str:
    values = [
        f"{METRIC_LABELS[name]} {value:g}"
        for name, value in facts.thresholds.items()
        if name in facts.metrics
    ]
    return f"{', '.join(values)} ({facts.thresholds_from})"


class Conclusion:
    """Says how a run went, and decides on its exit code."""

    def __init__(
        self,
        target: Path,
        options: Options,
        gates: Sequence["Gate"],
        past: "PastRun | None",
        say: Callable[..., None],
    ) -> None:
        self._target = target
        self._options = options
        self._gates = gates
        self._past = past
        self._say = say

    def of(
        self,
        ending: Ending,
        min_coverage: float,
        stopped: RunStoppedError | None = None,
        *,
        is_journal_kept: bool = False,
    ) -> ExitCode:
        self._tell_findings(ending)
        self._tell_circumstances(ending.facts, is_journal_kept=is_journal_kept)
        self._tell_places(ending.places)
        passed = self._pass_gates(ending, min_coverage)
        return _exit_code(stopped, ending.summary, min_coverage, passed=passed)

    def _tell_findings(self, ending: Ending) -> None:
        from rag_eval.report.annotation_lines import beside_lines
        from rag_eval.report.baseline_sheet import change_lines
        from rag_eval.results.findings import verdict

        summary, findings = ending.summary, ending.findings
        changes = (
            change_lines(findings.changes, self._past.name, findings.beside_changes)
            if self._past and findings.changes is not None
            else []
        )
        for line in ("", *leaderboard_lines(summary), ""):
            self._say(line)
        self._say(verdict(summary, findings), bold=True)
        for line in (*bot_lines(summary, findings), *beside_lines(findings), *changes):
            self._say(line, **_STYLES.get(line.lstrip().partition(":")[0], {}))

    def _tell_circumstances(self, facts: "RunFacts", *, is_journal_kept: bool) -> None:
        if facts.is_proxy:
            self._say(f"Scores below these thresholds are red in the report: {_thresholds(facts)}.")
        self._say(usage_line(facts))
        for note in (*facts.notes, *facts.left_out):
            self._say(note)
        if facts.partial:
            warn(f"PARTIAL: {facts.partial}")
        if is_journal_kept and not facts.is_proxy:
            warn(
                "Some cases were not judged. Run the same command again to judge them; add --retry-errors to retry "
                "refused, blocked or unreadable replies."
            )

    def _tell_places(self, places: Sequence[Path]) -> None:
        report, *others = places
        if report != self._target:
            warn(f"{self._target} is open in another program; the report was saved next to it.")
        for place in others:
            self._say(f"Also written: {place}")
        self._say(f"Report: {report}")

    def _pass_gates(self, ending: Ending, min_coverage: float) -> bool:
        """Say how every gate went, and write it for CI systems if that is wanted."""
        facts = ending.facts
        gate_on = GateOn(self._options.gate_on)
        results = list(evaluate_gates(self._gates, ending.summary, gate_on, min_coverage))
        if self._options.fail_on_regression:
            results += regression_gates(ending.findings.changes or (), facts.bots)
        for result in results:
            line = f"Gate {'passed' if result.passed else 'FAILED'}: {result.bot}: {result.reason}"
            self._say(line, fg="green") if result.passed else warn(line)
        if target := self._options.junit:
            from rag_eval.report.junit import write_junit

            about = {"input": facts.input_name, "judge": facts.judge, "version": facts.version}
            self._say(f"Also written: {write_junit(target, results, about)}")
        return all(result.passed for result in results)


def _exit_code(
    stopped: RunStoppedError | None, summary: "Summary", min_coverage: float, *, passed: bool
) -> ExitCode:
    if stopped:
        return stopped.exit_code
    coverages = [bot.rqs.coverage for bot in summary.bots if bot.rqs.coverage is not None]
    if min(coverages, default=1.0) < min_coverage:
        return ExitCode.LOW_COVERAGE
    return ExitCode.COMPLETE if passed else ExitCode.GATE_FAILED

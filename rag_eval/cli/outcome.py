"""The outcome of a run: what it found, in lines for the terminal; its quality gates; its exit code."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rag_eval.cli.console import warn
from rag_eval.cli.facts import usage_line
from rag_eval.cli.options import Options
from rag_eval.cli.terminal import bot_lines, leaderboard_lines
from rag_eval.errors import ExitCode, RunStoppedError
from rag_eval.records import METRIC_LABELS
from rag_eval.results.gates import GateOn, regression_gates
from rag_eval.results.gates import evaluate as evaluate_gates

if TYPE_CHECKING:
    from rag_eval.cli.history import HistoryOfRun
    from rag_eval.records import RunFacts
    from rag_eval.report.outputs import Outputs
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.findings import Findings
    from rag_eval.results.gates import Gate
    from rag_eval.results.summary import Summary


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """All that is known of a run when its outputs are written."""

    summary: "Summary"
    findings: "Findings"
    facts: "RunFacts"
    paths: Sequence[Path]
    """Where the outputs are, the report first."""

    @classmethod
    def written(
        cls,
        outputs: "Outputs",
        summary: "Summary",
        findings: "Findings",
        facts: "RunFacts",
        history: "HistoryOfRun | None" = None,
    ) -> Self:
        """Finish the outputs."""
        if history:
            findings = replace(findings, history=history.with_run(facts, summary, findings))
        paths = outputs.finish(summary, findings, facts)
        return cls(summary, findings, replace(facts, left_out=outputs.left_out), paths)

    def tell(self, say: Callable[..., None], past: "PastRun | None") -> None:
        """The leaderboard, what it means, how it compares with an earlier run, and how the run went."""
        from rag_eval.report.annotation_lines import annotation_lines
        from rag_eval.report.baseline_sheet import change_lines
        from rag_eval.results.findings import unfit_words, verdict

        summary, findings, facts = self.summary, self.findings, self.facts
        changes = (
            change_lines(findings.changes, past.name, findings.beside_changes)
            if past and findings.changes is not None
            else []
        )
        for line in ("", *leaderboard_lines(summary), ""):
            say(line)
        if unfit_words(facts):
            say(unfit_words(facts), bold=True)
        say(verdict(summary, findings), bold=True)
        for line in (*bot_lines(summary, findings), *annotation_lines(findings), *changes):
            say(line, **_STYLES.get(line.lstrip().partition(":")[0], {}))
        # Unless the baseline is that run: then its changes were told above.
        if (
            findings.history
            and findings.history.runs[:-1]
            and (findings.changes is None or findings.since_last is not findings.changes)
        ):
            from rag_eval.results.run_history import changes_words

            for line in changes_words(findings.history, findings.since_last):
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
        if is_journal_kept and not self.facts.is_proxy:
            yield (
                "Some cases were not judged. Run the same command again to judge them; add --retry-errors to retry "
                "refused, blocked or unreadable replies."
            )
        if self.paths[0] != target:
            yield f"{target} is open in another program; the report was saved next to it."

    def exit_code(self, stopped: RunStoppedError | None, min_coverage: float, *, passed: bool) -> ExitCode:
        """`passed`: whether every quality gate did."""
        if stopped:
            return stopped.exit_code
        coverages = [bot.rqs.coverage for bot in self.summary.bots if bot.rqs.coverage is not None]
        if min(coverages, default=1.0) < min_coverage:
            return ExitCode.LOW_COVERAGE
        return ExitCode.COMPLETE if passed else ExitCode.GATE_FAILED


_STYLES: dict[str, dict[str, Any]] = {"First fix": {"fg": "cyan"}, "Worst row": {"dim": True}}
"""Of lines that begin so. Colour only adds to the words."""


def pass_gates(
    outcome: RunOutcome,
    gates: Sequence["Gate"],
    options: Options,
    min_coverage: float,
    say: Callable[..., None],
    *,
    is_first_run: bool = False,
) -> bool:
    """Whether every quality gate passes; says how each went, and writes it for CI systems if that is wanted."""
    facts = outcome.facts
    results = list(evaluate_gates(gates, outcome.summary, GateOn(options.gate_on), min_coverage))
    if options.fail_on_regression and not is_first_run:
        changes, not_comparable = outcome.findings.changes, outcome.findings.not_comparable
        if changes is None:  # --baseline latest found no run to compare with
            not_comparable = "the history has no comparable earlier run"
        results += regression_gates(changes or (), facts.bots, not_comparable)
    for result in results:
        line = f"Gate {'passed' if result.passed else 'FAILED'}: {result.bot}: {result.reason}"
        say(line, fg="green") if result.passed else warn(line)
    if options.junit:
        from rag_eval.report.junit import write_junit

        about = {"input": facts.input_name, "judge": facts.judge, "version": facts.version}
        say(f"Also written: {write_junit(options.junit, results, about)}")
    return all(result.passed for result in results)

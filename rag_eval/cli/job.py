"""The main job from the first look at the input to the last line on the terminal."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.cli.console import say, warn
from rag_eval.errors import ExitCode, InputError, RunStoppedError
from rag_eval.records import METRIC_LABELS
from rag_eval.terminal import count_lines, leaderboard_lines, progress

if TYPE_CHECKING:
    from rag_eval.configuration import LoadedSettings
    from rag_eval.records import RunFacts
    from rag_eval.report.excel import ExcelReport
    from rag_eval.report.findings import Findings
    from rag_eval.runner import Evaluation, Panel
    from rag_eval.settings import Settings
    from rag_eval.summary import Summary
    from rag_eval.workbook import Table


class Job:
    """The main job: read, judge, report."""

    def __init__(self, input_path: Path, target: Path, options: Mapping[str, Any], *, is_quiet: bool) -> None:
        self._input = input_path
        self._target = target
        self._options = options
        self._is_quiet = is_quiet

    def run(self) -> ExitCode:
        """Everything that can be wrong is found before the first paid call."""
        from rag_eval.report.excel import check_writable

        loaded = self._load_settings()
        table = self._read_table(loaded.settings)
        loaded.require_credentials()
        self._check_target()
        if self._options["dry_run"]:
            return self._plan(loaded.settings, table)
        check_writable(self._target)
        panel = self._panel(loaded.settings)
        facts = _facts(loaded.settings, table, panel)
        self._announce(facts, panel)
        return self._evaluate(loaded.settings, table, panel, facts)

    # Before

    def _load_settings(self) -> "LoadedSettings":
        from rag_eval.configuration import load_settings

        overrides = {
            key: self._options[name] for name, key in _OVERRIDES.items() if self._options[name] is not None
        }
        loaded = load_settings(self._options["config"], overrides, os.environ, Path.cwd())
        for warning in loaded.warnings:
            warn(warning)
        return loaded

    def _read_table(self, settings: "Settings") -> "Table":
        from rag_eval.workbook import describe, read_table

        table = read_table(
            self._input,
            sheet=self._options["sheet"],
            prefix=settings.bots.strip_prefix,
            delimiter=settings.context.delimiter,
            max_rows=settings.evaluation.max_rows,
        )
        for line in describe(table):
            self._say(line)
        for warning in table.warnings:
            warn(warning)
        return table

    def _check_target(self) -> None:
        if self._target.suffix.lower() != ".xlsx":
            raise InputError(
                f"{self._target}: the report is an Excel workbook; give it a name that ends in .xlsx"
            )
        if self._target.exists() and self._target.samefile(self._input):
            raise InputError(
                f"{self._target}: is the input; choose another name for the report with --output"
            )

    def _panel(self, settings: "Settings") -> "Panel":
        from rag_eval.runner import budget_of, endpoint_of, llm_panel, offline_panel, store_path

        if settings.judge.provider == "offline":
            return offline_panel(settings)
        from rag_eval.judge.transport import Transport
        from rag_eval.store import Store

        budget = budget_of(settings)
        store = Store(store_path(settings, self._target))
        return llm_panel(settings, Transport(endpoint_of(settings), store, budget, announce=warn), store)

    def _plan(self, settings: "Settings", table: "Table") -> ExitCode:
        if settings.judge.provider == "offline":
            self._say("The offline judge sends nothing and costs nothing.")
            return ExitCode.COMPLETE
        from rag_eval.cli.plan import show_plan
        from rag_eval.runner import budget_of

        budget_of(settings)  # a cap that could not be kept is an error here as well
        show_plan(settings, table, self._target, self._say)
        return ExitCode.COMPLETE

    def _announce(self, facts: "RunFacts", panel: "Panel") -> None:
        weights = ", ".join(f"{METRIC_LABELS[name]} {weight:.4f}" for name, weight in facts.weights.items())
        self._say(f"Judge: {facts.judge}")
        self._say(f"Weights in RQS: {weights}")
        if panel.is_proxy:
            self._say(
                "The offline judge is a proxy: arithmetic over words, without understanding. "
                "--judge azure or --judge openai asks a model."
            )

    # The run itself

    def _evaluate(self, settings: "Settings", table: "Table", panel: "Panel", facts: "RunFacts") -> ExitCode:
        from rag_eval.report.excel import ExcelReport
        from rag_eval.report.findings import find
        from rag_eval.runner import Evaluation

        evaluation = Evaluation(panel, settings)
        report = ExcelReport(self._target, facts)
        keep = True
        try:
            summary = self._stream(evaluation, table, report, facts)
            _refuse_empty(evaluation)
            facts = _final_facts(facts, evaluation)
            findings = find(summary)
            place = report.finish(summary, findings, facts)
            keep = settings.cache.enabled or not _is_complete(evaluation, summary)
        except BaseException:
            report.discard()
            raise
        finally:
            evaluation.close()
            panel.store.end(keep=keep)
        self._conclude(summary, findings, facts, place, is_journal_kept=keep and not settings.cache.enabled)
        return _exit_code(evaluation.stopped, summary, settings.evaluation.min_coverage)

    def _stream(
        self, evaluation: "Evaluation", table: "Table", report: "ExcelReport", facts: "RunFacts"
    ) -> "Summary":
        """Judge row by row; each result goes straight into the report and the sums."""
        from rag_eval.summary import Summarizer

        summarizer = Summarizer(table.bots, facts.metrics, facts.toxicity_threshold)
        bar = progress(len(table.rows), sys.stderr, quiet=self._is_quiet)
        with _stopping_on_signals(evaluation):
            for results in evaluation.results(table.rows):
                for result in results:
                    report.add(result)
                    summarizer.add(result)
                bar.advance()
        bar.close()
        return summarizer.summary()

    # After

    def _conclude(
        self,
        summary: "Summary",
        findings: "Findings",
        facts: "RunFacts",
        place: Path,
        *,
        is_journal_kept: bool,
    ) -> None:
        from rag_eval.report.findings import verdict

        self._say("")
        for line in (*leaderboard_lines(summary), "", verdict(summary, findings), *count_lines(summary)):
            self._say(line)
        self._say(_usage_line(facts))
        if facts.partial:
            warn(f"PARTIAL: {facts.partial}")
        if is_journal_kept and not facts.is_proxy:
            warn("Not everything was judged. Run the same command again: only what is missing is asked for.")
        if place != self._target:
            warn(f"{self._target} is open in another program; the report was written beside it.")
        self._say(f"Report: {place}")

    def _say(self, line: str) -> None:
        if not self._is_quiet:
            say(line)


_OVERRIDES = {
    "judge": "judge.provider",
    "model": "model",
    "temperature": "temperature",
    "alpha": "weights.answer_correctness",
    "beta": "weights.faithfulness",
    "gamma": "weights.answer_relevancy",
    "max_calls": "limits.max_calls",
    "max_cost": "limits.max_cost",
    "max_minutes": "limits.max_minutes",
}


def _facts(settings: "Settings", table: "Table", panel: "Panel") -> "RunFacts":
    from rag_eval.records import TOXICITY, RunFacts
    from rag_eval.runner import enabled_metrics, endpoint_of, weights_in_force

    toxicity = (TOXICITY,) if settings.metrics.toxicity else ()
    return RunFacts(
        input_name=table.path.name,
        sheet=table.sheet,
        judge="offline judge" if panel.is_proxy else endpoint_of(settings).description,
        is_proxy=panel.is_proxy,
        version=__version__,
        started=datetime.now().astimezone(),
        bots=table.bots,
        rows=len(table.rows),
        blank_rows=table.blank_rows,
        cut_rows=table.cut_rows,
        metrics=(*enabled_metrics(settings), *toxicity),
        weights=weights_in_force(settings),
        thresholds=settings.thresholds.model_dump(),
        toxicity_threshold=settings.toxicity.threshold,
        diagnostics=settings.diagnostics.enabled,
        currency=settings.prices.currency,
    )


def _final_facts(facts: "RunFacts", evaluation: "Evaluation") -> "RunFacts":
    return replace(
        facts,
        seconds=(datetime.now().astimezone() - facts.started).total_seconds(),
        usage=evaluation.usage,
        partial=str(evaluation.stopped or ""),
        notes=(*facts.notes, *evaluation.panel.judge.adaptations),
    )


def _refuse_empty(evaluation: "Evaluation") -> None:
    """A run that stopped before any reply has nothing to report; an older report stays as it is."""
    stopped, usage = evaluation.stopped, evaluation.usage
    if stopped and not evaluation.panel.is_proxy and not usage.calls and not usage.cached:
        raise stopped


def _is_complete(evaluation: "Evaluation", summary: "Summary") -> bool:
    return not evaluation.stopped and not any(bot.failures for bot in summary.bots)


def _exit_code(stopped: RunStoppedError | None, summary: "Summary", min_coverage: float) -> ExitCode:
    if stopped:
        return stopped.exit_code
    coverages = [bot.rqs.coverage for bot in summary.bots if bot.rqs.coverage is not None]
    return ExitCode.LOW_COVERAGE if min(coverages, default=1.0) < min_coverage else ExitCode.COMPLETE


def _usage_line(facts: "RunFacts") -> str:
    usage = facts.usage
    if facts.is_proxy:
        return f"No judge calls: the offline judge costs nothing. {facts.seconds:.1f} s."
    cost = "unknown" if usage.cost is None else f"{usage.cost:.4f} {facts.currency}"
    return (
        f"Judge calls: {usage.calls} answered, {usage.cached} from the store, {usage.failed} failed "
        f"({usage.requests} requests, {usage.prompt_tokens} + {usage.completion_tokens} tokens), cost {cost}. "
        f"{facts.seconds:.1f} s."
    )


@contextmanager
def _stopping_on_signals(evaluation: "Evaluation") -> Iterator[None]:
    """The first SIGINT or SIGTERM lets calls in flight finish and writes a partial report; the second ends at once."""

    def stop(number: int, frame: object) -> None:
        code = ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.TERMINATED
        if evaluation.stop_requested:
            os._exit(code)
        warn("Stopping: calls in flight are waited for up to 10 s, then the partial report is written.")
        reason = RunStoppedError("interrupted", "interrupted by the user")
        reason.exit_code = code
        evaluation.request_stop(reason)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

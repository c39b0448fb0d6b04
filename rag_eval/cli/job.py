"""The main job from the first look at the input to the last line on the terminal."""

import hashlib
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rag_eval.cli.batching import (
    cancel_batches,
    open_batches,
    refuse_batches,
    wait_for_batches,
    waiting_line,
)
from rag_eval.cli.console import counting, hide, remark, say, warn
from rag_eval.cli.facts import facts_again, facts_at_end, facts_at_start
from rag_eval.cli.history import HistoryOfRun
from rag_eval.cli.judging import open_judges, refuse_empty, rubric_of
from rag_eval.cli.manifest import Manifest
from rag_eval.cli.options import Options, load
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.people import People
from rag_eval.cli.signals import stopping_on_signals
from rag_eval.cli.standard_input import received
from rag_eval.cli.terminal import progress
from rag_eval.errors import NOT_RUN, ExitCode, InputError, RunStoppedError
from rag_eval.records import METRIC_LABELS
from rag_eval.store.lock import locked

if TYPE_CHECKING:
    from rag_eval.cli.outcome import RunOutcome
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import CaseResult, RunFacts
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.gates import Gate
    from rag_eval.results.summary import Summary
    from rag_eval.results.tallies import Tallies
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.batches import BatchRun
    from rag_eval.run.evaluation import Evaluation
    from rag_eval.run.judges import Judges
    from rag_eval.run.processes import Processes
    from rag_eval.tables.delimited import TextForm
    from rag_eval.tables.table import Table

    _Results = Generator[CaseResult, None, None]


class Job:
    """The main job: read, judge, report."""

    _idle_offline: ClassVar[tuple[str, ...]] = ("offline", "offline-file")
    """Words of the table of options; --model and --temperature are reported with the settings."""

    def __init__(self, input_path: Path, target: Path, options: Options) -> None:
        self._named_input = input_path
        self._target = target
        self._options = options
        self._gates: Sequence[Gate] = ()
        self._past: PastRun | None = None
        self._history: HistoryOfRun | None = None
        self._rubric: EvaluationRubric | None = None
        self._people = People()
        self._workers: Processes | None = None

    def run(self) -> ExitCode:
        """Everything that can be wrong is found before the first paid call."""
        with received(self._named_input, self._options.format, self._target) as path:
            self._input = path
            self._paths = OutputPaths(path, self._target, self._options)
            self._manifest = Manifest(self._options.manifest, path, self._options.given())
            self._paths.check_named()
            try:
                with self._paths, self._manifest:
                    return self._run()
            finally:
                if self._workers:
                    self._workers.close()

    def _run(self) -> ExitCode:
        from rag_eval.tables.delimited import TextForm

        form = TextForm.parse(self._options.encoding, self._options.sep)
        self._gates = self._options.gates()
        self._past = self._read_baseline()
        self._people = People.read(self._options)
        loaded = self._load_settings()
        if self._options.report_only and self._input.suffix.lower() == ".json":
            return self._report_again(loaded)
        self._rubric = rubric_of(loaded.settings)
        refuse_batches(self._options, loaded.settings)
        idle = self._options.show or self._options.dry_run or self._options.report_only
        if loaded.settings.provider.is_offline and not idle:
            from rag_eval.report.case_table import RenderedCases
            from rag_eval.run.parallel import start_workers

            self._workers = start_workers(loaded.settings, self._input, RenderedCases.task)
        table = self._read_table(loaded, form)
        if self._options.show:
            return self._show(table)
        self._people.join(case for row in table.rows for case in row.cases)
        self._paths.check(loaded)
        if self._options.dry_run:
            return self._estimate(loaded, table)
        loaded.require_credentials(to_call=not self._options.report_only)
        self._paths.check_writable()
        with self._locked():
            self._paths.make_room(loaded.settings)
            if self._options.in_batches:
                return self._judge_in_batches(loaded, table)
            judges = open_judges(loaded.settings, self._paths.report, self._options, self._rubric)
            facts = self._people.facts(facts_at_start(loaded.settings, table, judges))
            self._read_history(loaded.settings, facts)
            self._announce(loaded.settings, facts, judges)
            self._manifest.began(loaded, facts)
            return self._evaluate(loaded, table, judges, facts)

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self._paths.report, patience=self._options.wait * 60)

    # Before

    def _read_baseline(self) -> "PastRun | None":
        if self._options.baseline is None:
            if self._options.fail_on_regression:
                raise InputError("--fail-on-regression needs an earlier run; add --baseline PATH")
            return None
        from rag_eval.results.baseline import read_past_run

        return None if self._options.wants_latest else read_past_run(self._options.baseline)

    def _read_history(self, settings: "Settings", facts: "RunFacts", input_hash: str = "") -> None:
        """What came before this run. The last comparable run is the baseline if that is wanted.

        `input_hash` is that of the input if it is not one file.
        """
        if folder := settings.report.history:
            self._history = HistoryOfRun.read(
                folder, input_hash or _sha256(self._input), facts, is_baseline=self._options.wants_latest
            )
        if not self._options.wants_latest:
            return
        if self._history is None:
            raise InputError(
                "--baseline latest: no history is kept; add --history FOLDER or set [report] history"
            )
        self._past = self._history.past
        if self._past is None:
            earlier = "earlier run" if self._history.is_first else "comparable earlier run"
            self._say(f"--baseline latest: {folder} has no {earlier}; nothing is compared.")

    def _load_settings(self) -> "LoadedSettings":
        from rag_eval.configuration.effective import secrets_of

        loaded = load(self._options.config, self._options.overrides(), self._named_input)
        hide(secrets_of(loaded.settings))
        for warning in loaded.warnings:
            warn(warning)
        return loaded

    def _show(self, table: "Table") -> ExitCode:
        from rag_eval.cli.show import show_rows

        for line in show_rows(table):
            say(line)
        return ExitCode.COMPLETE

    def _read_table(self, loaded: "LoadedSettings", form: "TextForm") -> "Table":
        from rag_eval.configuration.sources import Level
        from rag_eval.tables.columns import named_columns
        from rag_eval.tables.selection import Selection
        from rag_eval.tables.table import describe, read_table

        options, rubric, settings = self._options, self._rubric, loaded.settings
        selection = Selection.parse(options.rows, options.random_rows, options.where)
        columns = dict(settings.columns)
        mapped = [key for key in columns if loaded.sources[f"columns.{key}"].level == Level.COMMAND_LINE]
        kept = (settings.report.slice_by, *(rubric.columns if rubric else ()))
        with counting("Rows read", quiet=self._options.quiet) as on_row:
            table = read_table(
                self._input,
                sheet=self._options.sheet,
                header_row=settings.input.header_row,
                prefix=settings.bots.strip_prefix,
                delimiter=settings.context.delimiter,
                max_rows=settings.evaluation.max_rows,
                keep=list(dict.fromkeys(filter(None, kept))),
                criteria=[metric.id for metric in rubric.metrics] if rubric else [],
                form=form,
                on_row=on_row,
                named=named_columns(columns, mapped),
                bot_name=options.bot_name or "",
                selection=selection,
            )
        for line in describe(table):
            self._say(line)
        for warning in table.warnings:
            warn(warning)
        return table

    def _estimate(self, loaded: "LoadedSettings", table: "Table") -> ExitCode:
        """What a run would do and cost. Printed even with --quiet: it is what --dry-run asks for."""
        from rag_eval.cli.dry_run import DryRun
        from rag_eval.configuration.effective import store_path

        stores = (store_path(loaded.settings, self._paths.report),)
        for line in DryRun(loaded, self._options, self._rubric).lines(table, lambda: [(stores, table.rows)]):
            say(line)
        return ExitCode.COMPLETE

    def _announce(self, settings: "Settings", facts: "RunFacts", judges: "Judges") -> None:
        weights = ", ".join(f"{METRIC_LABELS[name]} {weight:.4f}" for name, weight in facts.weights.items())
        self._say(f"Judge: {facts.judge}")
        self._say(f"Weights in RQS: {weights or 'none; every metric of RQS is switched off'}")
        for option, name in self._options.weights().items():
            if name not in facts.weights:
                warn(
                    f"{option}: {METRIC_LABELS[name]} is switched off in section [metrics], so it has no weight."
                )
        if settings.evaluation.samples > 1 and not judges.is_proxy and settings.section.temperature == 0:
            warn("--samples has little effect at temperature 0; set --temperature above 0.")
        if judges.is_proxy:
            self._say(
                "The offline judge only compares words. Use --judge azure or --judge openai for an LLM judge."
            )
            for option in self._options.idle(*self._idle_offline):
                warn(f"{option} has no effect with the offline judge.")

    # The run itself

    def _judge_in_batches(self, loaded: "LoadedSettings", table: "Table") -> ExitCode:
        """Go on with the batches; the report is written when all replies are there."""
        with open_batches(
            loaded.settings, table.rows, self._paths.report, self._options, self._rubric
        ) as run:
            facts = self._people.facts(facts_at_start(loaded.settings, table, run.judges()))
            self._read_history(loaded.settings, facts)
            self._announce(loaded.settings, facts, run.judges())
            self._manifest.began(loaded, facts)
            if self._options.batch_cancel:
                return cancel_batches(run, self._options, self._manifest)
            if waiting := wait_for_batches(run, self._options, self._say):
                self._manifest.waits(waiting_line(waiting), waiting)
                if older := self._paths.older():
                    self._say(older)
                return ExitCode.NOT_FINISHED
            return self._evaluate(loaded, table, run.judges(), facts, run)

    def _evaluate(
        self,
        loaded: "LoadedSettings",
        table: "Table",
        judges: "Judges",
        facts: "RunFacts",
        batches: "BatchRun | None" = None,
    ) -> ExitCode:
        from rag_eval.run.evaluation import Evaluation
        from rag_eval.run.parallel import open_evaluation, processes_for

        settings = loaded.settings
        rendered = None
        if batches:
            evaluation = Evaluation(judges, settings, in_batches=True)
        else:
            processes = processes_for(settings, table.rows)
            rendered = _rendered(facts, settings) if processes > 1 else None
            evaluation = open_evaluation(judges, settings, processes, rendered, self._workers)

        def results(tallies: "Tallies") -> "_Results":
            yield from self._judged(evaluation, table, tallies)
            refuse_empty(evaluation)

        def at_end(summary: "Summary") -> "RunFacts":
            stopped = str(evaluation.stopped or "")
            ended = facts_at_end(facts, evaluation.stats(), summary, evaluation.redactor, stopped)
            return batches.facts(ended) if batches else ended

        keep = True
        try:
            outcome = self._write(loaded, facts, results, at_end, rendered=rendered)
            keep = settings.cache.enabled or not _is_complete(evaluation, outcome.summary)
            if batches and not evaluation.stopped:
                batches.end()
        finally:
            evaluation.close()
            judges.store.end(keep=keep)
        return self._conclude(
            outcome,
            settings,
            evaluation.stopped,
            is_journal_kept=keep and not settings.cache.enabled,
        )

    def _report_again(self, loaded: "LoadedSettings") -> ExitCode:
        """A new report from a run's JSON: other weights, thresholds or baseline, the same scores."""
        from rag_eval.report.recorded import RecordedRun

        self._options.refuse_idle_again()
        settings, run = loaded.settings, RecordedRun.read(self._input)
        run.check_slices(settings.report.slice_by)
        self._people.join(result.case for result in run.results)
        self._paths.check(loaded)
        if self._options.dry_run:
            say(f"Dry run: {self._paths.report} would be rebuilt from {self._input} without any judge call.")
            return ExitCode.COMPLETE
        self._paths.check_writable()
        run = run.rescored(self._people.facts(facts_again(run.facts, settings, run.name)))
        self._manifest.began(loaded, run.facts)

        def results(tallies: "Tallies") -> "_Results":
            for result in map(self._people.label, run.results):
                tallies.add(result)
                yield result

        origin = {"name": run.name, **run.provenance}
        with self._locked():
            self._paths.make_room(settings)
            outcome = self._write(loaded, run.facts, results, lambda _: run.facts, made_from=origin)
        return self._conclude(outcome, settings)

    def _write(
        self,
        loaded: "LoadedSettings",
        facts: "RunFacts",
        results: Callable[["Tallies"], "_Results"],
        at_end: Callable[["Summary"], "RunFacts"],
        *,
        rendered: "RenderedCases | None" = None,
        made_from: Mapping[str, Any] | None = None,
    ) -> "RunOutcome":
        """Write every output that was asked for while the results come.

        `results` tells the tallies what it yields, and `at_end` gives the facts that are known then.
        """
        from rag_eval.results.tallies import Tallies

        history = self._history
        last = history.past if history else None
        tallies = Tallies(facts, loaded.settings.report.slice_by, self._past, last)
        with (
            self._paths.open(
                loaded,
                facts,
                has_baseline=self._past is not None,
                made_from=made_from,
                history=history,
                rendered=rendered,
            ) as outputs,
            closing(results(tallies)) as stream,
        ):
            for result in stream:
                outputs.add(result)
            if facts.rows > _MANY_ROWS and not made_from:
                self._say("Writing the report …")
            from rag_eval.cli.outcome import RunOutcome

            summary = tallies.summary()
            findings = tallies.findings(summary)
            del tallies
            summary = summary.with_values_of({gate.name for gate in self._gates})
            return RunOutcome.written(outputs, summary, findings, at_end(summary), history)

    def _conclude(
        self,
        outcome: "RunOutcome",
        settings: "Settings",
        stopped: RunStoppedError | None = None,
        *,
        is_journal_kept: bool = False,
    ) -> ExitCode:
        from rag_eval.cli.outcome import pass_gates

        self._paths.is_reported = True
        outcome.tell(self._say, self._past)
        for warning in outcome.warnings(self._paths.report, is_journal_kept=is_journal_kept):
            warn(warning)
        report, *others = outcome.paths
        for path in others:
            self._say(f"Also written: {path}")
        for line in self._people.calibrate(outcome.findings.alignment, outcome.facts):
            self._say(line)
        self._say(f"Report: {report}")
        is_first = self._options.wants_latest and self._history is not None and self._history.is_first
        passed = pass_gates(outcome, self._gates, self._options, settings, self._say, is_first_run=is_first)
        code = outcome.exit_code(stopped, settings.evaluation.min_coverage, passed=passed)
        self._manifest.ended(code, outcome)
        return code

    def _judged(self, evaluation: "Evaluation", table: "Table", tallies: "Tallies") -> "_Results":
        """Judge row by row. Each result is counted, and then there for the outputs."""
        bar = progress(len(table.rows), sys.stderr, quiet=self._options.quiet)
        evaluation.import_meanwhile(_AT_THE_END)
        with stopping_on_signals(evaluation):
            for results in evaluation.results(table.rows):
                for result in map(self._people.label, results):
                    tallies.add(result)
                    yield result
                if _is_judged(results):
                    bar.advance()
        bar.close()

    def _say(self, line: str, **style: Any) -> None:
        if not self._options.quiet:
            is_result = self._options.show or self._options.dry_run
            (say if is_result else remark)(line, **style)


_AT_THE_END = ("numpy", "openpyxl", "rag_eval.results.comparison", "rag_eval.cli.outcome")
"""What statistics and report take longest to import."""

_MANY_ROWS = 5_000
"""From so many on, statistics and writing take a while in which nothing else would be said."""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rendered(facts: "RunFacts", settings: "Settings") -> "RenderedCases | None":
    """What takes the rows of the first sheet from the workers; None where they depend on what else is written."""
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.report.worksheet import SHEET_ROWS

    fits = facts.rows * len(facts.bots) < SHEET_ROWS
    return RenderedCases(facts) if fits and not settings.report.evidence else None


def _is_judged(row: Iterable["CaseResult"]) -> bool:
    """Not one of those that still come when a run has stopped, with what the store knows of them."""
    return not any(score.code == NOT_RUN for result in row for score in result.scores.values())


def _is_complete(evaluation: "Evaluation", summary: "Summary") -> bool:
    return not evaluation.stopped and not any(bot.failures for bot in summary.bots)

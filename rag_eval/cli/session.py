"""What every command that judges or reports shares: its options, what came before, how results become outputs."""

import hashlib
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rag_eval.cli.console import counting, hide, remark, say, warn
from rag_eval.cli.history import HistoryOfRun
from rag_eval.cli.inputs import received
from rag_eval.cli.manifest import Manifest
from rag_eval.cli.options import Options, load
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.people import People
from rag_eval.cli.signals import stopping_on_signals
from rag_eval.cli.terminal import progress
from rag_eval.errors import ExitCode, InputError, RunStoppedError
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
    from rag_eval.results.recorded import RecordedRun
    from rag_eval.results.summary import Summary
    from rag_eval.results.tallies import Tallies
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.evaluation import Evaluation
    from rag_eval.run.judges import Judges
    from rag_eval.run.until_clear import UntilClear
    from rag_eval.tables.delimited import TextForm
    from rag_eval.tables.table import Table

    Results = Generator[CaseResult, None, None]


class Session:
    """One command under way."""

    def __init__(
        self, input_path: Path, paths: OutputPaths, options: Options, manifest: Manifest | None = None
    ) -> None:
        self.options = options
        self.input = input_path
        """The file that is read; with several, the one that is read now."""
        self.paths = paths
        self.manifest = manifest or Manifest(None, input_path, {})
        self.gates: Sequence[Gate] = ()
        self.past: PastRun | None = None
        """The baseline."""
        self.history: HistoryOfRun | None = None
        self.rubric: EvaluationRubric | None = None
        self.people = People()

    @classmethod
    @contextmanager
    def opened(cls, named_input: Path, target: Path, options: Options) -> Iterator[Self]:
        """Its outputs and its manifest say how it ended. Raises InputError for outputs that cannot be."""
        with received(named_input, options.format, target) as path:
            manifest = Manifest(options.manifest, path, options.given())
            session = cls(path, OutputPaths(path, target, options), options, manifest)
            session.paths.check_named()
            with session.paths, session.manifest:
                yield session

    def locked(self) -> AbstractContextManager[None]:
        return locked(self.paths.report, patience=self.options.patience)

    def read_gates(self) -> None:
        """The gates, and the baseline if it is a file. Raises InputError."""
        self.gates = self.options.gates()
        if self.options.baseline is None:
            if self.options.fail_on_regression:
                raise InputError("--fail-on-regression needs an earlier run; add --baseline PATH")
        elif not self.options.wants_latest:
            from rag_eval.results.baseline import read_past_run

            self.past = read_past_run(self.options.baseline)

    def require_spent(self, known: "Iterable[str]") -> None:
        """Raises InputError if a gate is on a latency or cost that the input does not have."""
        if self.gates:
            from rag_eval.results.gates import require_spent

            require_spent(self.gates, {*known})

    def read_history(self, settings: "Settings", facts: "RunFacts", input_hash: str = "") -> None:
        """What came before this run. The last comparable run is the baseline if that is wanted.

        `input_hash` is that of the input if it is not one file.
        """
        if folder := settings.report.history:
            from rag_eval.configuration.effective import describe_judge

            self.history = HistoryOfRun.read(
                folder,
                input_hash or _sha256(self.input),
                facts,
                pair_judge=describe_judge(settings) if facts.head_to_head else "",
                is_baseline=self.options.wants_latest,
            )
        if not self.options.wants_latest:
            return
        if self.history is None:
            raise InputError(
                "--baseline latest: no history is kept; add --history FOLDER or set [report] history"
            )
        self.past = self.history.past
        if self.past is None:
            earlier = "earlier run" if self.history.is_first else "comparable earlier run"
            self.say(f"--baseline latest: {folder} has no {earlier}; nothing is compared.")

    def load_settings(self, named_input: Path) -> "LoadedSettings":
        """Those that hold where this input is."""
        from rag_eval.configuration.effective import secrets_of

        loaded = load(self.options.config, self.options.overrides(), named_input)
        hide(secrets_of(loaded.settings))
        for warning in loaded.warnings:
            warn(warning)
        return loaded

    def show(self, table: "Table") -> ExitCode:
        from rag_eval.cli.show import show_rows

        for line in show_rows(table):
            say(line)
        return ExitCode.COMPLETE

    def read_table(
        self, loaded: "LoadedSettings", form: "TextForm", decimals: "Mapping[str, str] | None" = None
    ) -> "Table":
        """`decimals` are what other files tell of this one."""
        from rag_eval.configuration.sources import Level
        from rag_eval.tables.columns import named_columns, named_units
        from rag_eval.tables.selection import Selection
        from rag_eval.tables.table import describe, read_table

        options, rubric, settings = self.options, self.rubric, loaded.settings
        selection = Selection.parse(options.rows, options.random_rows, options.where)
        columns = dict(settings.columns)
        mapped = [key for key in columns if loaded.sources[f"columns.{key}"].level == Level.COMMAND_LINE]
        kept = (settings.report.slice_by, *(rubric.columns if rubric else ()))
        read = partial(
            read_table,
            header_row=settings.input.header_row,
            prefix=settings.bots.strip_prefix,
            delimiter=settings.context.delimiter,
            form=form,
            bot_name=options.bot_name or "",
        )
        with counting("Rows read", quiet=self.options.quiet) as on_row:
            table = read(
                self.input,
                sheet=options.sheet,
                max_rows=settings.evaluation.max_rows,
                keep=list(dict.fromkeys(filter(None, kept))),
                criteria=[metric.id for metric in rubric.metrics] if rubric else [],
                on_row=on_row,
                named=named_columns(columns, mapped),
                units=named_units(columns),
                decimals=decimals,
                selection=selection,
            )
        if options.against:
            from rag_eval.tables.input_files import WITH_SHEETS
            from rag_eval.tables.joining import with_earlier_answers

            sheet = options.sheet if options.against.suffix.lower() in WITH_SHEETS else None
            earlier = read(
                options.against,
                sheet=sheet,
                max_rows=sys.maxsize,
                named=named_columns(columns, mapped),
                units=named_units(columns),
            )
            table = with_earlier_answers(table, earlier)
        for line in describe(table):
            self.say(line)
        for warning in table.warnings:
            warn(warning)
        return table

    def announce(self, settings: "Settings", facts: "RunFacts", judges: "Judges", *idle: str) -> None:
        """Say who judges and how. `idle` are words of the table of options, for those without effect offline."""
        weights = ", ".join(f"{METRIC_LABELS[name]} {weight:.4f}" for name, weight in facts.weights.items())
        self.say(f"Judge: {facts.judge}")
        self.say(f"Weights in RQS: {weights or 'none; every metric of RQS is switched off'}")
        for option, name in self.options.weights().items():
            if name not in facts.weights:
                warn(
                    f"{option}: {METRIC_LABELS[name]} is switched off in section [metrics], so it has no weight."
                )
        if settings.evaluation.samples > 1 and not judges.is_proxy and settings.section.temperature == 0:
            warn("--samples has little effect at temperature 0; set --temperature above 0.")
        if judges.is_proxy:
            compared = "words and the meaning of texts" if settings.offline.embedding else "words"
            self.say(
                f"The offline judge only compares {compared}. Use --judge azure or --judge openai for an LLM judge."
            )
            for option in self.options.idle(*idle):
                warn(f"{option} has no effect with the offline judge.")

    def judged(
        self,
        evaluation: "Evaluation",
        table: "Table | RecordedRun",
        tallies: "Tallies",
        until_clear: "UntilClear | None" = None,
    ) -> "Results":
        """Judge row by row. Each result is counted, and then there for the outputs; `until_clear` may end it early.

        The rows of an earlier run have their scores: only their pairs are judged.
        """
        from rag_eval.results.looks import is_reached
        from rag_eval.tables.table import Table

        bar = progress(len(table.rows), sys.stderr, quiet=self.options.quiet)
        evaluation.import_meanwhile(_AT_THE_END)
        has_causes = evaluation.count_causes(tallies.causes)

        def on_row(results: Sequence["CaseResult"]) -> None:
            if all(map(is_reached, results)):
                bar.advance()

        rows: Iterator[Sequence[CaseResult]]
        if until_clear:
            rows = until_clear.results(evaluation, on_row)
        elif isinstance(table, Table):
            rows = evaluation.results(table.rows)
        else:
            rows = evaluation.compared(table.rows)
        with stopping_on_signals(evaluation):
            for results in rows:
                for result in map(self.people.label, results):
                    tallies.add(result, has_causes=has_causes)
                    yield result
                if not until_clear:
                    on_row(results)
        bar.close()

    def write(
        self,
        loaded: "LoadedSettings",
        facts: "RunFacts",
        results: Callable[["Tallies"], "Results"],
        at_end: Callable[["Summary"], "RunFacts"],
        *,
        rendered: "RenderedCases | None" = None,
        made_from: Mapping[str, Any] | None = None,
        rows: int | None = None,
    ) -> "RunOutcome":
        """Write every output that was asked for while the results come.

        `results` tells the tallies what it yields, and `at_end` gives the facts that are known then. `rows` is for
        Tallies.
        """
        from rag_eval.results.tallies import Tallies

        history = self.history
        last = history.past if history else None
        tallies = Tallies(facts, loaded.settings.report.slice_by, self.past, last, rows=rows)
        with (
            self.paths.open(
                loaded,
                facts,
                has_baseline=self.past is not None,
                made_from=made_from,
                history=history,
                rendered=rendered,
            ) as outputs,
            closing(results(tallies)) as stream,
        ):
            for result in stream:
                outputs.add(result)
            if facts.rows > _MANY_ROWS and not made_from:
                self.say("Writing the report …")
            from rag_eval.cli.outcome import RunOutcome

            summary = tallies.summary({gate.name for gate in self.gates})
            findings = tallies.findings(summary)
            del tallies
            return RunOutcome.written(outputs, summary, findings, at_end(summary), history)

    def conclude(
        self,
        outcome: "RunOutcome",
        settings: "Settings",
        stopped: RunStoppedError | None = None,
        *,
        is_journal_kept: bool = False,
    ) -> ExitCode:
        """Say what was found. Raises the error of an output that could not be written, after everything else."""
        from rag_eval.cli.outcome import pass_gates

        self.paths.is_reported = True
        outcome.tell(self.say, self.past)
        for warning in outcome.warnings(self.paths.report, is_journal_kept=is_journal_kept):
            warn(warning)
        report, *others = outcome.paths
        for path in others:
            self.say(f"Also written: {path}")
        for line in self.people.calibrate(outcome.findings.alignment, outcome.facts):
            self.say(line)
        self.say(f"Report: {report}")
        is_first = self.options.wants_latest and self.history is not None and self.history.is_first
        passed, written = pass_gates(
            outcome,
            self.gates,
            self.options,
            settings,
            self.say,
            is_first_run=is_first,
            baseline=self.past.name if self.past else "",
        )
        code = outcome.exit_code(stopped, settings.evaluation.min_coverage, passed=passed)
        self.manifest.ended(code, replace(outcome, paths=[*outcome.paths, *written]))
        for problem in outcome.problems:
            if problem is outcome.problems[-1] and code not in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
                raise problem
            warn(str(problem))
        return code

    def say(self, line: str, **style: Any) -> None:
        if not self.options.quiet:
            is_result = self.options.show or self.options.dry_run
            (say if is_result else remark)(line, **style)


_AT_THE_END = ("numpy", "rag_eval.results.comparison", "rag_eval.cli.outcome")
"""What statistics and report take longest to import."""

_MANY_ROWS = 5_000
"""From so many on, statistics and writing take a while in which nothing else would be said."""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""The main job from the first look at the input to the last line on the terminal."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.batching import (
    cancel_batches,
    earlier_batches,
    open_batches,
    refuse_batches,
    wait_for_batches,
    waiting_line,
)
from rag_eval.cli.console import say
from rag_eval.cli.facts import facts_again, facts_at_end, facts_at_start
from rag_eval.cli.judging import kept_line, open_judges, refuse_empty, run_name
from rag_eval.cli.people import People
from rag_eval.cli.session import Session
from rag_eval.errors import ExitCode, InputError, OutputError, StoreError

if TYPE_CHECKING:
    from rag_eval.cli.options import Options
    from rag_eval.cli.outcome import RunOutcome
    from rag_eval.cli.session import Results
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts, RunStats
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.results.recorded import RecordedRun
    from rag_eval.results.summary import Summary
    from rag_eval.results.tallies import Tallies
    from rag_eval.run.batches import BatchRun
    from rag_eval.run.evaluation import Evaluation
    from rag_eval.run.judges import Judges
    from rag_eval.run.metered_store import RunAccount
    from rag_eval.run.pairs import PairJudge
    from rag_eval.run.processes import Processes
    from rag_eval.run.until_clear import UntilClear
    from rag_eval.tables.table import Table


class Job:
    """The main job: read, judge, report."""

    def __init__(self, named_input: Path, session: Session) -> None:
        self._named_input = named_input
        self._session = session
        self._options, self._paths, self._manifest = session.options, session.paths, session.manifest
        self._workers: Processes | None = None
        self._until_clear: UntilClear | None = None

    def run(self) -> ExitCode:
        """Everything that can be wrong is found before the first paid call."""
        try:
            return self._run()
        finally:
            if self._workers:
                self._workers.close()

    def _run(self) -> ExitCode:
        from rag_eval.run.judges import rubric_of
        from rag_eval.tables.delimited import TextForm

        form = TextForm.parse(self._options.encoding, self._options.sep)
        self._session.read_gates()
        self._session.people = People.read(self._options)
        loaded = self._session.load_settings(self._named_input)
        if self._options.report_only and self._session.input.suffix.lower() == ".json":
            return self._report_again(loaded)
        if self._options.head_to_head and (run := _run_in(self._session.input)):
            return self._compare_again(loaded, run)
        self._session.rubric = rubric_of(loaded.settings)
        _refuse_looks(self._options)
        _refuse_offline_pairs(loaded.settings)
        refuse_batches(self._options, loaded.settings)
        idle = self._options.show or self._options.dry_run or self._options.report_only
        idle = idle or self._options.until_clear  # a look needs the rows before it, so one process judges
        if loaded.settings.provider.is_offline and not idle:
            from rag_eval.report.case_table import RenderedCases
            from rag_eval.run.parallel import start_workers

            self._workers = start_workers(loaded.settings, self._session.input, RenderedCases.task)
        table = self._session.read_table(loaded, form)
        if self._options.show:
            return self._session.show(table)
        self._session.require_spent(use.role for use in table.columns)
        if self._options.until_clear or self._options.report_only:
            from rag_eval.run.until_clear import UntilClear

            is_again = self._options.report_only
            self._until_clear = UntilClear(
                table.rows, table.bots, loaded.settings, self._session.gates, is_again=is_again
            )
        pairs = _pairs(loaded.settings, table)
        self._session.people.join(
            (case for row in table.rows for case in row.cases),
            (pair for row in table.rows for pair in pairs.pairs_of(row.cases)) if pairs else (),
        )
        self._paths.check(loaded)
        if self._options.dry_run:
            return self._estimate(loaded, table, pairs)
        loaded.require_credentials(to_call=not self._options.report_only)
        self._paths.check_writable()
        with self._session.locked():
            self._paths.make_room(loaded.settings)
            if self._options.in_batches:
                return self._judge_in_batches(loaded, table)
            judges = open_judges(
                loaded.settings,
                self._session.input,
                self._paths.report,
                self._options,
                self._session.rubric,
            ).with_citations(loaded.settings, table.habits)
            judges = replace(judges, pairs=pairs)
            facts = self._session.people.facts(facts_at_start(loaded.settings, table, judges))
            if self._until_clear and (
                self._options.until_clear or self._until_clear.has_been_taken(judges.store)
            ):
                facts = self._until_clear.begin(facts, judges.store)
            else:
                self._until_clear = None
            self._session.read_history(loaded.settings, facts)
            self._session.announce(loaded.settings, facts, judges, *_IDLE_OFFLINE)
            self._manifest.began(loaded, facts)
            return self._evaluate(loaded, table, judges, facts)

    def _estimate(
        self, loaded: "LoadedSettings", table: "Table | RecordedRun", pairs: "PairJudge | None"
    ) -> ExitCode:
        """What a run would do and cost. Printed even with --quiet: it is what --dry-run asks for."""
        from rag_eval.cli.dry_run import DryRun
        from rag_eval.configuration.effective import store_path

        stores = (store_path(loaded.settings, self._paths.report),)
        run = run_name(loaded.settings, self._session.input, self._paths.report, self._options)
        dry_run = DryRun(loaded, self._options, self._session.rubric, run=run, target=self._paths.report)
        looks = self._until_clear.looks if self._until_clear else ()
        for line in dry_run.lines(table, lambda: [(stores, table.rows)], looks=looks, pairs=pairs):
            say(line)
        return ExitCode.COMPLETE

    def _judge_in_batches(self, loaded: "LoadedSettings", table: "Table") -> ExitCode:
        """Go on with the batches; the report is written when all replies are there."""
        with open_batches(
            loaded.settings,
            table.rows,
            run_name(loaded.settings, self._session.input, self._paths.report, self._options),
            self._paths.report,
            self._options,
            self._session.rubric,
            table.habits,
        ) as run:
            facts = self._session.people.facts(facts_at_start(loaded.settings, table, run.judges()))
            self._session.read_history(loaded.settings, facts)
            self._session.announce(loaded.settings, facts, run.judges(), *_IDLE_OFFLINE)
            self._manifest.began(loaded, facts)
            if self._options.batch_cancel:
                return cancel_batches(run, self._options, self._manifest)
            if waiting := wait_for_batches(run, self._options, self._session.say):
                self._manifest.waits(waiting_line(waiting), waiting)
                if older := self._paths.older():
                    self._session.say(older)
                return ExitCode.NOT_FINISHED
            return self._evaluate(loaded, table, run.judges(), facts, run)

    def _evaluate(
        self,
        loaded: "LoadedSettings",
        table: "Table | RecordedRun",
        judges: "Judges",
        facts: "RunFacts",
        batches: "BatchRun | None" = None,
    ) -> ExitCode:
        from rag_eval.results.recorded import RecordedRun

        settings, is_recorded = loaded.settings, isinstance(table, RecordedRun)
        evaluation, rendered = self._open_evaluation(settings, table, judges, facts, in_batches=bool(batches))

        bill = batches or earlier_batches(settings, judges, self._paths.report, is_recorded=is_recorded)

        def results(tallies: "Tallies") -> "Results":
            yield from self._session.judged(evaluation, table, tallies, self._until_clear)
            refuse_empty(evaluation)

        def at_end(summary: "Summary") -> "RunFacts":
            ended = facts_at_end(
                facts,
                _stats(evaluation, table),
                summary,
                evaluation.redactor,
                str(evaluation.stopped or facts.partial),
                len(table.rows),
            )
            if self._until_clear:
                ended = self._until_clear.facts(ended)
            return bill.facts(ended) if bill else ended

        keep, lacks_replies, is_anothers = True, True, False
        try:
            outcome = self._session.write(
                loaded, facts, results, at_end, rendered=rendered, rows=len(table.rows)
            )
            lacks_replies = not _is_complete(evaluation, outcome, is_recorded=is_recorded)
            is_needed = lacks_replies or bool(outcome.problems) or outcome.facts.has_stopped_as_planned
            account = batches.account if batches else judges.account
            is_over = not (evaluation.stopped or outcome.problems or self._options.report_only)
            is_anothers = not is_needed and account is not None and not account.is_alone
            keep = settings.cache.enabled or is_needed or is_anothers
            try:
                if account and keep:  # otherwise it goes with the journal
                    _end(account, is_complete=not is_needed, is_over=is_over)
                if bill and is_over and (batches or not lacks_replies):
                    bill.end()
            except StoreError as error:  # the report is there, and says what it has to say
                outcome = replace(outcome, problems=(*outcome.problems, error))
        except OutputError as error:
            if evaluation.stopped and isinstance(full := evaluation.stopped.__cause__, StoreError):
                raise full from error  # on the same disk, most likely
            raise
        finally:
            evaluation.close()
            judges.store.end(keep=keep)
        if is_anothers and not settings.cache.enabled:
            self._session.say(kept_line(settings, self._paths.report))
        return self._session.conclude(
            outcome,
            settings,
            evaluation.stopped,
            is_journal_kept=lacks_replies and not (settings.cache.enabled or self._options.report_only),
        )

    def _open_evaluation(
        self,
        settings: "Settings",
        table: "Table | RecordedRun",
        judges: "Judges",
        facts: "RunFacts",
        *,
        in_batches: bool,
    ) -> "tuple[Evaluation, RenderedCases | None]":
        """The evaluation, and what takes the rows of the first sheet from its workers, if it has some."""
        from rag_eval.report.case_table import RenderedCases
        from rag_eval.results.recorded import RecordedRun
        from rag_eval.run.evaluation import Evaluation
        from rag_eval.run.parallel import open_engine, processes_for

        if in_batches:
            return Evaluation(judges, settings, in_batches=True), None
        if self._until_clear or isinstance(table, RecordedRun):
            return Evaluation(judges, settings), None
        processes = processes_for(settings, table.rows)
        has_evidence = settings.report.evidence
        rendered = RenderedCases.of(facts, has_evidence=has_evidence) if processes > 1 else None
        engine = open_engine(judges, settings, processes, rendered, self._workers)
        return Evaluation(judges, settings, engine=engine), rendered

    def _compare_again(self, loaded: "LoadedSettings", run: "RecordedRun") -> ExitCode:
        """The pairs of a run's JSON, which keeps its scores: only pairs are judged and paid for."""
        from rag_eval.configuration.effective import describe_judge
        from rag_eval.run.pairs import PairJudge

        if idle := self._options.idle("pairs"):
            raise InputError(
                f"{', '.join(idle)}: cannot be used with the JSON of a run, whose rows are read and judged; name the "
                f"sheet of the run as INPUT or remove {'it' if len(idle) == 1 else 'them'}"
            )
        settings = loaded.settings
        run.check_slices(settings.report.slice_by)
        pairs = PairJudge.of(settings, run.facts.bots, (row[0].case.question for row in run.rows))
        if pairs and run.has_pairs(pairs.choice) and not (self._options.fresh or settings.cache.enabled):
            raise InputError(
                f"{run.name}: its pairs are judged already; add --fresh to pay for them again, or use --report-only "
                "without --head-to-head for another report"
            )
        self._session.people.join(
            (result.case for result in run.results),
            (pair for row in run.rows for pair in pairs.pairs_of([each.case for each in row]))
            if pairs
            else (),
        )
        self._paths.check(loaded)
        loaded.require_credentials(to_call=not self._options.dry_run)
        if self._options.dry_run:
            return self._estimate(loaded, run, pairs)
        self._paths.check_writable()
        with self._session.locked():
            self._paths.make_room(settings)
            judges = open_judges(settings, self._session.input, self._paths.report, self._options, None)
            judges = replace(judges, pairs=pairs)
            note = f"Scores from {run.name}; pairs judged by {describe_judge(settings)}."
            facts = facts_again(run.facts, settings, note)
            facts = self._session.people.facts(replace(facts, head_to_head=pairs.choice if pairs else ""))
            run = run.rescored(facts)
            self._session.say(f"Scores: {run.name}, by {facts.judge}")
            self._session.say(f"Judge of the pairs: {describe_judge(settings)}")
            self._session.read_history(settings, facts)
            self._manifest.began(loaded, facts)
            return self._evaluate(loaded, run, judges, run.facts)

    def _report_again(self, loaded: "LoadedSettings") -> ExitCode:
        """A new report from a run's JSON: other weights, thresholds or baseline, the same scores."""
        from rag_eval.results.recorded import RecordedRun
        from rag_eval.results.sampling import pairs_of

        self._options.refuse_idle_again()
        settings, run = loaded.settings, RecordedRun.read(self._session.input)
        run.check_slices(settings.report.slice_by)
        self._session.require_spent(run.facts.spent_units)
        compared = ((pair.one.case, pair.other.case) for pair in pairs_of(run.results))
        self._session.people.join((result.case for result in run.results), compared)
        self._paths.check(loaded)
        if self._options.dry_run:
            say(
                f"Dry run: {self._paths.report} would be rebuilt from {self._session.input} without any judge call."
            )
            return ExitCode.COMPLETE
        self._paths.check_writable()
        note = f"Rebuilt from {run.name}; no judge calls were made."
        run = run.rescored(self._session.people.facts(facts_again(run.facts, settings, note)))
        self._manifest.began(loaded, run.facts)

        def results(tallies: "Tallies") -> "Results":
            for result in map(self._session.people.label, run.results):
                tallies.add(result)
                yield result

        origin = {"name": run.name, **run.provenance}
        with self._session.locked():
            self._paths.make_room(settings)
            outcome = self._session.write(
                loaded, run.facts, results, lambda _: run.facts, made_from=origin, rows=len(run.rows)
            )
        return self._session.conclude(outcome, settings)


def _stats(evaluation: "Evaluation", table: "Table | RecordedRun") -> "RunStats":
    """What a run took; with what its earlier part took if it was read from JSON."""
    from rag_eval.results.recorded import RecordedRun

    stats = evaluation.stats()
    return replace(stats, usage=table.with_paid(stats.usage)) if isinstance(table, RecordedRun) else stats


def _run_in(path: Path) -> "RecordedRun | None":
    """The run whose JSON the file is, if it is one."""
    from rag_eval.results.recorded import RecordedRun

    return RecordedRun.found(path)


def _refuse_offline_pairs(settings: "Settings") -> None:
    """Raise InputError for a head-to-head comparison by the offline judge, before the input is read."""
    if settings.head_to_head.pairs != "off":
        from rag_eval.run.pairs import refuse_offline

        refuse_offline(settings)


def _pairs(settings: "Settings", table: "Table") -> "PairJudge | None":
    """Raises InputError; see PairJudge.of."""
    from rag_eval.run.pairs import PairJudge

    return PairJudge.of(settings, table.bots, (row.cases[0].question for row in table.rows))


def _refuse_looks(options: "Options") -> None:
    """Raise InputError for options that a run with planned looks cannot have."""
    if not options.until_clear:
        return
    if options.in_batches:
        raise InputError(
            "--until-clear: cannot be used with --batch, since each look would wait for batches of up to a day; remove "
            "one of them"
        )
    if options.fail_on_regression:
        raise InputError(
            "--until-clear: cannot be used with --fail-on-regression, since only all rows show that nothing is worse; "
            "remove one of them"
        )


_IDLE_OFFLINE = ("offline", "offline-file")
"""Words of the table of options; --model and --temperature are reported with the settings."""


def _end(account: "RunAccount", *, is_complete: bool, is_over: bool) -> None:
    """Raises StoreError."""
    if is_complete:
        account.end()
    elif is_over:
        account.reach_end()


def _is_complete(evaluation: "Evaluation", outcome: "RunOutcome", *, is_recorded: bool) -> bool:
    """Of a run that `is_recorded`, only pairs were judged: no command judges its scores again."""
    pairs = outcome.findings.head_to_head
    failed = not is_recorded and any(bot.failures for bot in outcome.summary.bots)
    return not (evaluation.stopped or failed or (pairs and pairs.failed))

"""The main job over many shards: read once, judge the shards on any number of processes, report what is there."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.cli.console import command_line, say, warn
from rag_eval.cli.inputs import files_of, folder_of
from rag_eval.cli.manifest import Manifest
from rag_eval.cli.options import Options
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.session import Session
from rag_eval.cli.shard_report import with_outputs_there, write_parts
from rag_eval.cli.shard_run import ShardedRun, engine_of, lent_key, workers_for
from rag_eval.cli.signals import stopping_on_signals
from rag_eval.cli.terminal import progress
from rag_eval.configuration.effective import CACHE_NAME
from rag_eval.errors import ExitCode, InputError, RunStoppedError
from rag_eval.store.leftovers import Scratch
from rag_eval.store.lock import locked
from rag_eval.store.replacement import output_errors
from rag_eval.texts.citations import joined
from rag_eval.texts.display import counted

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import Row, RunFacts
    from rag_eval.run.pairs import PairPlan
    from rag_eval.run.processes import Processes
    from rag_eval.shards.engines import Engine
    from rag_eval.shards.fold import FoldedRows
    from rag_eval.shards.plan import Plan, Planner
    from rag_eval.tables.table import Table

    _Shards = Callable[[], Iterable[tuple[int, Sequence[Row]]]]


class ShardedJob:
    """The main job in shards: the same options, the same figures."""

    def __init__(self, inputs: Sequence[Path], options: Options) -> None:
        """Raises InputError for inputs that are none, and for options that cannot be used with shards."""
        from rag_eval.shards.folder import RunFolder, require_parquet

        root = folder_of(inputs, options.output)
        self._folder = RunFolder(root)
        self._files = files_of(inputs, root)
        self._options = with_outputs_there(options, root)
        self._refuse_idle()
        require_parquet()
        self._manifest = Manifest(options.manifest, inputs[0], options.given())
        self._paths = OutputPaths(self._files[0], self._folder.report, self._options)
        self._session = Session(self._files[0], self._paths, self._options, self._manifest)

    def run(self) -> ExitCode:
        """Everything that can be wrong with the input is found before the first paid call."""
        self._paths.check_named()
        with self._paths, self._manifest:
            return self._run()

    @property
    def _report_command(self) -> str:
        return command_line("rag-eval", "report", self._folder.root)

    def _refuse_idle(self) -> None:
        options = self._options
        if options.report_only:
            raise InputError(f"--report-only: use {self._report_command}, which judges nothing")
        if len(self._files) > 1 and (options.rows or options.random_rows):
            raise InputError(
                "--rows and --random-rows need one file, since rows are numbered in each; use --where"
            )
        if idle := options.idle("shards"):
            raise InputError(
                f"{', '.join(idle)}: cannot be used with a run in shards; remove it, or judge one file without shards"
            )
        if options.address and options.engine != "ray":
            raise InputError("--address: is for --engine ray; add it, or remove --address")
        if options.engine == "ray":
            from rag_eval.shards.engines import import_ray

            import_ray()

    def _run(self) -> ExitCode:
        from rag_eval.run.judges import rubric_of
        from rag_eval.run.pairs import refuse_offline
        from rag_eval.shards.plan import write_plan
        from rag_eval.shards.spec import plain_settings

        self._session.read_gates()
        loaded = self._session.load_settings(self._files[0])
        refuse_offline(loaded.settings)
        self._session.rubric = rubric_of(loaded.settings)
        if self._options.show:
            return self._session.show(self._read(self._session.input, loaded))
        self._paths.check(loaded)
        self._settings = plain_settings(loaded.settings)
        if self._options.dry_run:
            return self._estimate_all(loaded)
        loaded.require_credentials(to_call=self._options.engine != "none")
        with output_errors(self._folder.root):
            self._folder.root.mkdir(parents=True, exist_ok=True)
        self._paths.check_writable()
        with (
            lent_key(loaded.settings),
            workers_for(self._folder, self._options, loaded.settings) as started,
            locked(self._folder.manifest, patience=self._options.patience),
        ):
            self._paths.make_room(loaded.settings)
            plan, before = self._plan(loaded)
            self._folder.require_files(range(len(plan.shards)))
            self._folder.remove_leftovers(range(len(plan.shards)))
            run = self._run_of(plan, loaded.settings)
            if before:
                run.keep_what_was_paid(before, self._options)
                self._mend_inputs(run, loaded)
            self._session.require_spent(run.facts.spent_units)
            self._session.read_history(loaded.settings, run.facts, plan.inputs_hash)
            write_plan(self._folder, run.plan.model_copy(update={"judging": run.judging}))
            self._session.announce(loaded.settings, run.facts, run.judges, "offline")
            self._manifest.began(loaded, run.facts)
            if self._options.engine == "none":
                return self._explain_specs(run)
            return self._judge(loaded, run, started)

    # Before

    def _estimate_all(self, loaded: "LoadedSettings") -> ExitCode:
        """Of the shards that a run would judge now. Nothing is written."""
        from rag_eval.cli.dry_run import DryRun
        from rag_eval.run.pairs import PairJudge

        table, shards, pairs, since = self._to_estimate(loaded)
        cache, replies = loaded.settings.cache, self._folder.replies
        shared = [cache.directory / CACHE_NAME] if cache.enabled else []
        lines = DryRun(loaded, self._options, self._session.rubric, since=since).lines(
            table,
            lambda: (([*shared, replies(None), replies(number)], rows) for number, rows in shards()),
            files=len(self._files),
            pairs=pairs and PairJudge(table.bots, pairs, loaded.settings),
            is_shared=cache.enabled or self._options.engine in (None, "local"),
        )
        for line in lines:
            say(line)
        return ExitCode.COMPLETE

    def _to_estimate(self, loaded: "LoadedSettings") -> "tuple[Table, _Shards, PairPlan | None, float]":
        """The table without rows, the shards, what is compared in pairs, and since when parts and replies count."""
        from rag_eval.shards.folder import read_rows
        from rag_eval.shards.plan import cut, pairs_of, read_plan

        def cut_again(known: int | None) -> "tuple[Table, _Shards, PairPlan | None, float]":
            tables, most = self._tables(loaded), loaded.settings.evaluation.max_rows
            shard_rows = known or self._shard_rows(tables[0])
            habits = reduce(joined, (table.habits for table in tables))
            first = replace(tables[0], habits=habits)
            pairs = pairs_of(loaded.settings, first.bots, cut(tables, most, shard_rows))
            return first, lambda: enumerate(cut(tables, most, shard_rows)), pairs, 0.0

        if read_plan(self._folder) is None:
            return cut_again(None)
        plan, before = self._plan(loaded)
        run = self._run_of(plan, loaded.settings)
        if before:
            run.keep_what_was_paid(before, self._options)
        numbers, since = run.numbers_to_judge(self._options), run.plan.fresh_since
        wanted = set(numbers)
        table = plan.table_without_rows()
        if not run.damaged_inputs(self._options):
            inputs = {number: self._folder.input(number) for number in numbers}

            def there() -> "Iterator[tuple[int, Sequence[Row]]]":
                return ((number, read_rows(path)) for number, path in inputs.items())

            return table, there, plan.pairs, since
        _, every, _, _ = cut_again(plan.shard_rows)
        return table, lambda: (shard for shard in every() if shard[0] in wanted), plan.pairs, since

    def _tables(self, loaded: "LoadedSettings") -> "list[Table]":
        from rag_eval.shards.plan import require_same_bots

        tables: list[Table] = []
        left = loaded.settings.evaluation.max_rows
        for path in self._files:
            table = self._read(path, loaded, left)
            if tables:
                require_same_bots(tables[0].path.name, tables[0], path.name, table)
            tables.append(table)
            left -= min(left, len(table.rows))
        return tables

    def _read(
        self,
        path: Path,
        loaded: "LoadedSettings",
        most: int | None = None,
        decimals: Mapping[str, str] | None = None,
    ) -> "Table":
        from rag_eval.run.pairs import PairPlan
        from rag_eval.tables.delimited import TextForm

        self._session.input = path
        if most is not None:
            evaluation = loaded.settings.evaluation.model_copy(update={"max_rows": max(1, most)})
            loaded = replace(loaded, settings=loaded.settings.model_copy(update={"evaluation": evaluation}))
        form = TextForm.parse(self._options.encoding, self._options.sep)
        table = self._session.read_table(loaded, form, decimals)
        PairPlan.of(loaded.settings, table.bots, ())  # before rows are written
        return table

    def _plan(self, loaded: "LoadedSettings") -> "tuple[Plan, Plan | None]":
        """What is to be judged, with these settings; and the plan in the folder, if this continues its run."""
        from rag_eval.shards.plan import check_unchanged, read_plan

        asked = self._asked(loaded.settings)
        before = read_plan(self._folder)
        if before:
            check_unchanged(self._folder, before, self._files, asked, self._options.shard_rows)
            self._session.say(f"{self._folder.root}: continuing a run of {len(before.shards):,} shards")
            if before.version != __version__:
                warn(
                    f"The run in {self._folder.root} was started with RAG Eval {before.version} and continues with "
                    f"{__version__}; use another -o to judge everything with this version."
                )
        origins = {
            key: (source.level.value, source.name, source.line)
            for key, source in loaded.sources.items()
            if source.name
        }
        plan = before or self._new_plan(loaded, asked)
        now = {"settings": self._settings, "origins": origins}
        return plan.model_copy(update=now), before

    def _run_of(self, plan: "Plan", settings: "Settings") -> ShardedRun:
        """The shards as this command wants them."""
        run = ShardedRun(self._folder, plan, settings, self._session.rubric)
        if self._options.fresh and run.begin_anew():
            begun = datetime.fromtimestamp(run.plan.fresh_since)
            warn(f"--fresh: the run that was begun so on {begun:%Y-%m-%d %H:%M} and was interrupted goes on")
        return run

    def _new_plan(self, loaded: "LoadedSettings", asked: dict[str, Any]) -> "Plan":
        from rag_eval.shards.folder import read_rows
        from rag_eval.shards.plan import Plan, pairs_of

        self._folder.remove_inputs()  # left by a run that was killed while it read
        planner = self._read_all(loaded)
        table, numbers = planner.table(), range(len(planner.shards))
        rows = map(read_rows, map(self._folder.input, numbers))
        return Plan(
            version=__version__,
            started=datetime.now().astimezone().isoformat(),
            sources=tuple(planner.sources),
            reading=asked,
            shard_rows=planner.shard_rows,
            table=table,
            shards=tuple(planner.shards),
            pairs=pairs_of(loaded.settings, table["bots"], rows),
        )

    def _mend_inputs(self, run: ShardedRun, loaded: "LoadedSettings") -> None:
        """Rows that are still needed are written again from the input, which is what it was."""
        damaged, shards = set(run.damaged_inputs(self._options)), run.plan.shards
        if not damaged:
            return
        parts = "1 part is" if len(damaged) == 1 else f"{len(damaged):,} parts are"
        warn(
            f"{self._folder.all_inputs}: {parts} missing or damaged, and will be written again from the input."
        )
        kept = {number: shard.input for number, shard in enumerate(shards) if number not in damaged}
        run.plan = run.plan.with_shards_of(self._read_all(loaded, run.plan.shard_rows, kept))

    def _shard_rows(self, first: "Table") -> int:
        """As many as were asked for, or fit all files if they are like the first one."""
        from rag_eval.run.parallel import usable_cores
        from rag_eval.shards.plan import SHARD_ROWS, rows_of_shard

        if self._options.engine in ("ray", "none"):  # nobody knows yet how many processes there will be
            return self._options.shard_rows or SHARD_ROWS
        return self._options.shard_rows or rows_of_shard(len(first.rows) * len(self._files), usable_cores())

    def _read_all(
        self, loaded: "LoadedSettings", shard_rows: int | None = None, kept: Mapping[int, str] | None = None
    ) -> "Planner":
        """Every file, cut into shards whose rows are written, except those that are `kept`.

        All again if one file tells what numbers of another one mean, so that they are read like one file.
        """
        planner = self._read_each(loaded, shard_rows, kept, {})
        if planner.decimals:
            self._session.say("The files are read again: some tell the decimal separator of others.")
            planner = self._read_each(loaded, shard_rows, kept, planner.decimals)
        return planner

    def _read_each(
        self,
        loaded: "LoadedSettings",
        shard_rows: int | None,
        kept: Mapping[int, str] | None,
        decimals: Mapping[str, str],
    ) -> "Planner":
        from rag_eval.shards.folder import fingerprint_of_file
        from rag_eval.shards.plan import Planner, name_of

        planner = Planner(self._folder, shard_rows or 0, is_one_file=len(self._files) == 1, kept=kept)
        for path in self._files:
            sha256 = fingerprint_of_file(path)
            left = loaded.settings.evaluation.max_rows - planner.rows
            table = self._read(path, loaded, left, decimals)
            planner.shard_rows = planner.shard_rows or self._shard_rows(table)
            planner.add(name_of(path, self._files), table, sha256, left)
        return planner

    def _asked(self, settings: "Settings") -> dict[str, Any]:
        """Everything that decides how files become rows, by the name that users know it by."""
        options, rubric = self._options, self._session.rubric
        given = {
            f"--{name.replace('_', '-')}": value
            for name in ("sheet", "encoding", "sep", "bot_name", "rows", "random_rows", "where", "map")
            if (value := getattr(options, name))
        }
        plain = settings.model_dump(mode="json")
        if settings.head_to_head.pairs != "off":
            given |= {f"[head_to_head] {key}": plain["head_to_head"][key] for key in ("pairs", "rows")}
        return {
            **given,
            "[input] header_row": settings.input.header_row,
            "[columns]": plain["columns"],
            "[bots] strip_prefix": settings.bots.strip_prefix,
            "[context] delimiter": settings.context.delimiter,
            "[evaluation] max_rows": settings.evaluation.max_rows,
            "[report] slice_by": settings.report.slice_by,
            "columns of the rubric": [*rubric.columns] if rubric else [],
        }

    def _explain_specs(self, run: ShardedRun) -> ExitCode:
        specs = counted(run.write_specs(self._options), "specification")
        self._session.say(
            f"{specs} in {self._folder.spec(0).parent}. Run rag-eval shard SPEC.json for each, on any machine that "
            f"sees this folder; then run {self._report_command}."
        )
        return ExitCode.COMPLETE

    # The run itself

    def _judge(self, loaded: "LoadedSettings", run: ShardedRun, started: "Processes | None") -> ExitCode:
        settings, fold = loaded.settings, run.fold(of_all=True)
        try:
            with _rows_of(started, run, fold.facts, settings) as rows:
                finished = self._finished(run, settings, started)
                outcome = write_parts(self._session, loaded, run, fold, finished, rows)
        except KeyboardInterrupt:
            run.find_done()
            warn(
                f"Stopped: {len(run.done):,} of {len(run.plan.shards):,} shards are judged. Run the same command again "
                f"to continue, or {self._report_command} to report the finished shards."
            )
            raise
        # A worker that outlived the driver of a killed run for a second may have left one since this run began.
        self._folder.remove_leftovers(range(len(run.plan.shards)))
        keeps_journal = bool(run.partial or fold.failed) and not settings.cache.enabled
        if not (run.partial or fold.failed or settings.cache.enabled):
            run.remove_replies()
        return self._session.conclude(outcome, settings, run.stopped, is_journal_kept=keeps_journal)

    def _finished(self, run: ShardedRun, settings: "Settings", started: "Processes | None") -> Iterator[int]:
        """The numbers of the shards in their order, each once it is judged, while others are being judged.

        Raises RunStoppedError if none could be judged.
        """
        following, shards = 0, len(run.plan.shards)
        with engine_of(self._options, settings, shards, started) as engine:
            for _ in self._followed(run, engine):
                while following in run.done:
                    yield following
                    following += 1
        run.find_done()
        if not run.done:
            raise run.stopped or RunStoppedError("no_shard", f"{self._folder.root}: no shard was judged")
        yield from (number for number in sorted(run.done) if number >= following)

    def _followed(self, run: ShardedRun, engine: "Engine") -> Iterator[None]:
        """Judge the shards, and show how many rows are finished."""
        from rag_eval.shards.engines import LocalEngine

        bar = progress(run.plan.rows, sys.stderr, quiet=self._options.quiet)
        try:
            with stopping_on_signals(run) if isinstance(engine, LocalEngine) else nullcontext():
                for shard in run.judge(engine, self._options):
                    for warning in shard.warnings:
                        warn(warning)
                    for _ in range(shard.rows if shard.done else 0):
                        bar.advance()
                    yield
        finally:
            bar.close()


@contextmanager
def _rows_of(
    started: "Processes | None", run: ShardedRun, facts: "RunFacts", settings: "Settings"
) -> "Iterator[FoldedRows | None]":
    """What takes rows of the first sheet from the workers that were `started`; None if they do not render them."""
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.shards.fold import FoldedRows

    rendered = RenderedCases.of(facts, has_evidence=settings.report.evidence)
    if started is None or rendered is None or not settings.provider.is_offline:
        yield None
        return
    with output_errors(run.folder.report):
        scratch = Scratch(run.folder.report)
    with scratch as run.rows_folder, started:  # which ends before the folder that it writes to
        yield FoldedRows(rendered, facts, Path(run.rows_folder))

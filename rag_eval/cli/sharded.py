"""The main job over many shards: read once, judge the parts on any number of processes, report what is there."""

import glob
import os
import shutil
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval import __version__
from rag_eval.cli.console import speaking_to, warn
from rag_eval.cli.facts import facts_at_start, notes_at_end, notes_on_marks, outdated_notes
from rag_eval.cli.job import Job
from rag_eval.cli.manifest import Manifest
from rag_eval.cli.options import Options
from rag_eval.cli.outcome import RunOutcome
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.terminal import progress
from rag_eval.errors import ExitCode, InputError, RagEvalError, RunStoppedError
from rag_eval.results.gates import parse_gates
from rag_eval.store.lock import locked
from rag_eval.store.replacement import output_errors

if TYPE_CHECKING:
    from rag_eval.configuration import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.results.baseline import PastRun
    from rag_eval.results.gates import Gate
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.run.judges import Judges
    from rag_eval.shards.engines import Engine, LocalEngine
    from rag_eval.shards.fold import Fold
    from rag_eval.shards.folder import RunFolder
    from rag_eval.shards.judge_shard import ShardOutcome
    from rag_eval.shards.plan import Plan
    from rag_eval.shards.ray_engine import RayEngine
    from rag_eval.shards.spec import ShardSpec

ENGINES = ("local", "ray", "none")
_ONE_FILE_ONLY = {
    "--history": "history",
    "--labels": "labels",
    "--calibrate": "calibrate",
    "--batch": "batch",
    "--batch-wait": "batch_wait",
    "--batch-cancel": "batch_cancel",
}
"""Options of a run that is not in shards, and their fields."""
_READ_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods", ".csv", ".tsv", ".json", ".jsonl", ".parquet")
_CAPS = ("max_calls", "max_cost", "max_minutes", "grant_used")
"""Codes of shards that stopped because their part of a cap was used up; the run may have some left."""


def is_sharded(inputs: Sequence[Path], options: Options) -> bool:
    """Whether this is a run in shards: it was asked for, or the input is more than one file."""
    if options.engine or options.address or options.shard_rows or len(inputs) > 1:
        return True
    return inputs[0].is_dir() or (_is_pattern(inputs[0]) and not inputs[0].exists())


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path))


def files_of(inputs: Sequence[Path], folder: Path) -> list[Path]:
    """The files that are read, in order: those named, those in a folder, those that a pattern finds.

    Raises InputError where there is none. `folder` is that of the run, of which nothing is read.
    """
    found: list[Path] = []
    for path in inputs:
        if str(path) == "-":
            raise InputError("-: standard input cannot be judged in shards; write it to a file first")
        several = None
        if path.is_dir():
            several = sorted(each for each in path.iterdir() if each.suffix.lower() in _READ_SUFFIXES)
        elif _is_pattern(path) and not path.exists():
            several = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if several is not None:
            several = [each for each in several if each.is_file() and not each.name.startswith((".", "~$"))]
            if not several:
                raise InputError(
                    f"{path}: contains no input file; expected one of {', '.join(_READ_SUFFIXES)}"
                )
        found += [path] if several is None else several
    real = Path(os.path.realpath(folder))
    if inside := [path for path in found if real in Path(os.path.realpath(path)).parents]:
        raise InputError(f"{inside[0]}: is in the folder that the run writes to; use another -o")
    unique: dict[str, Path] = {}
    for path in found:  # a file with two names would be judged twice
        unique.setdefault(os.path.realpath(path), path)
    return list(unique.values())


def folder_of(inputs: Sequence[Path], output: Path | None) -> Path:
    """Where the run goes. Raises InputError for a name that is not one of a folder."""
    if output is None:
        if len(inputs) > 1 or (_is_pattern(inputs[0]) and not inputs[0].exists()):
            raise InputError("several files are judged in shards, into a folder; name it with -o")
        if not inputs[0].name.strip("."):
            raise InputError(f"{inputs[0]}: a run in shards writes a folder; name it with -o")
        return inputs[0].with_name(f"{inputs[0].stem}_report")
    if output.suffix.lower() == ".xlsx" or output.is_file():
        raise InputError(
            f"{output}: a run in shards writes a folder, with report.xlsx in it; give -o the name of a folder"
        )
    return output


class ShardedJob(Job):
    """The main job in shards: the same options, the same figures."""

    _idle_offline = ("--prompts", "--samples", "--max-calls", "--max-cost")

    def __init__(
        self, inputs: Sequence[Path], output: Path | None, options: Options, *, is_quiet: bool
    ) -> None:
        from rag_eval.shards.folder import RunFolder

        root = folder_of(inputs, output)
        self._folder = RunFolder(root)
        named = replace(
            options,
            json=options.json or root / "report.json",
            html=options.html or root / "report.html",
        )
        super().__init__(inputs[0], self._folder.report, named, is_quiet=is_quiet)
        self._inputs = inputs

    def run(self) -> ExitCode:
        """Everything that can be wrong with the input is found before the first paid call."""
        from rag_eval.shards.folder import require_parquet

        self._files = files_of(self._inputs, self._folder.root)
        self._input = self._files[0]
        self._refuse_idle()
        require_parquet()
        self._paths = OutputPaths(self._input, self._folder.report, self._options)
        self._manifest = Manifest(self._options.manifest, self._named_input, self._options.given())
        self._paths.check_named()
        with self._manifest:
            return self._run()

    def _refuse_idle(self) -> None:
        options = self._options
        if options.report_only:
            raise InputError(f"--report-only: use rag-eval report {self._folder.root}, which judges nothing")
        if len(self._files) > 1 and (options.rows or options.random_rows):
            raise InputError(
                "--rows and --random-rows need one file, since rows are numbered in each; use --where"
            )
        given = options.given()
        if idle := [option for option, name in _ONE_FILE_ONLY.items() if name in given]:
            raise InputError(
                f"{', '.join(idle)}: cannot be used with a run in shards; remove it, or judge one file without shards"
            )
        if options.wants_latest:
            raise InputError(
                "--baseline latest: a run in shards has no history; name a report or a run's JSON"
            )
        if options.address and options.engine != "ray":
            raise InputError("--address: is for --engine ray; add it, or remove --address")
        if options.engine == "ray":
            from rag_eval.shards.ray_engine import import_ray

            import_ray()

    def _run(self) -> ExitCode:
        gates = parse_gates(self._options.fail_under)
        self._past = self._read_baseline()
        loaded = self._load_settings()
        self._rubric = rubric_of(loaded.settings)
        if loaded.settings.report.history:
            warn("[report] history: a run in shards is not added to the history.")
        if self._options.show:
            return self._show(self._read(self._input, loaded))
        self._paths.check(loaded)
        if self._options.dry_run:
            return self._estimate_all(loaded)
        loaded.require_credentials(to_call=self._options.engine != "none")
        with output_errors(self._folder.root):
            self._folder.root.mkdir(parents=True, exist_ok=True)
        self._paths.check_writable()
        with locked(self._folder.manifest, patience=self._options.wait * 60):
            self._paths.make_room(loaded.settings)
            plan = self._plan(loaded)
            run = ShardedRun(self._folder, plan, loaded.settings, self._rubric)
            if plan.version != __version__:
                warn(
                    f"The run in {self._folder.root} was started with RAG Eval {plan.version} and continues with "
                    f"{__version__}; use another -o to judge everything with this version."
                )
            self._announce(loaded.settings, run.facts, run.judges)
            self._manifest.began(loaded, run.facts)
            if self._options.engine == "none":
                return self._explain_specs(run)
            return self._judge(loaded, run, gates)

    # Before

    def _estimate_all(self, loaded: "LoadedSettings") -> ExitCode:
        code = ExitCode.COMPLETE
        for path in self._files:
            table = self._read(path, loaded)
            self._input = path
            code = self._estimate(loaded, table)
        return code

    def _read(self, path: Path, loaded: "LoadedSettings", most: int | None = None) -> Any:
        from rag_eval.tables import TextForm

        self._input = path
        if most is not None:
            evaluation = loaded.settings.evaluation.model_copy(update={"max_rows": max(1, most)})
            loaded = replace(loaded, settings=loaded.settings.model_copy(update={"evaluation": evaluation}))
        return self._read_table(loaded, TextForm.parse(self._options.encoding, self._options.sep))

    def _plan(self, loaded: "LoadedSettings") -> "Plan":
        """The one in the folder, if it is still that of this input, or a new one."""
        from rag_eval.shards.plan import check_unchanged, read_plan, write_plan
        from rag_eval.shards.spec import plain_settings

        asked = self._asked(loaded.settings)
        plan = read_plan(self._folder)
        if plan:
            check_unchanged(self._folder, plan, self._files, asked, self._options.shard_rows)
            self._say(f"{self._folder.root}: continuing a run of {len(plan.shards):,} shards")
        else:
            plan = self._new_plan(loaded, asked)
        origins = {
            key: (source.level.value, source.name, source.line)
            for key, source in loaded.sources.items()
            if source.name
        }
        plan = plan.model_copy(update={"settings": plain_settings(loaded.settings), "origins": origins})
        write_plan(self._folder, plan)
        return plan

    def _new_plan(self, loaded: "LoadedSettings", asked: dict[str, Any]) -> "Plan":
        from rag_eval.shards.folder import fingerprint_of_file
        from rag_eval.shards.plan import SHARD_ROWS, Plan, Planner, name_of

        shutil.rmtree(
            self._folder.input(0).parent, ignore_errors=True
        )  # of a run that was killed while it read
        shard_rows = self._options.shard_rows or SHARD_ROWS
        planner = Planner(self._folder, shard_rows, is_one_file=len(self._files) == 1)
        for path in self._files:
            sha256 = fingerprint_of_file(path)
            left = loaded.settings.evaluation.max_rows - planner.rows
            table = self._read(path, loaded, left)
            planner.add(name_of(path, self._files), table, sha256, left)
        return Plan(
            version=__version__,
            started=datetime.now().astimezone().isoformat(),
            sources=tuple(planner.sources),
            reading=asked,
            shard_rows=shard_rows,
            table=planner.table(),
            shards=tuple(planner.shards),
        )

    def _asked(self, settings: "Settings") -> dict[str, Any]:
        """Everything that decides how files become rows, by the name that users know it by."""
        options, rubric = self._options, self._rubric
        given = {
            f"--{name.replace('_', '-')}": value
            for name in ("sheet", "encoding", "sep", "bot_name", "rows", "random_rows", "where", "map")
            if (value := getattr(options, name))
        }
        plain = settings.model_dump(mode="json")
        return {
            **given,
            "[columns]": plain["columns"],
            "[bots] strip_prefix": settings.bots.strip_prefix,
            "[context] delimiter": settings.context.delimiter,
            "[evaluation] max_rows": settings.evaluation.max_rows,
            "[report] slice_by": settings.report.slice_by,
            "columns of the rubric": [*rubric.columns] if rubric else [],
        }

    def _explain_specs(self, run: "ShardedRun") -> ExitCode:
        count = run.write_specs(self._options)
        self._say(
            f"{count:,} specifications in {self._folder.spec(0).parent}. Judge each of them with rag-eval shard "
            f"SPEC.json, on any machine that sees this folder; then run rag-eval report {self._folder.root}."
        )
        return ExitCode.COMPLETE

    # The run itself

    def _judge(self, loaded: "LoadedSettings", run: "ShardedRun", gates: Sequence["Gate"]) -> ExitCode:
        settings = loaded.settings
        with _lent_key(settings), engine_of(self._options, settings, len(run.plan.shards)) as engine:
            self._follow(run, engine)
        run.find_done()
        if not run.done:
            raise run.stopped or RunStoppedError("no_shard", f"{self._folder.root}: no shard was judged")
        outcome = run.report(loaded, self._paths, self._past)
        is_complete = len(run.done) == len(run.plan.shards) and not run.failed
        if is_complete and not settings.cache.enabled:
            run.remove_replies()
        return self._conclude(
            outcome,
            gates,
            settings,
            run.stopped,
            is_journal_kept=not is_complete and not settings.cache.enabled,
        )

    def _follow(self, run: "ShardedRun", engine: "Engine") -> None:
        """Show how many rows are finished while the shards are judged."""
        with speaking_to(sys.stderr):
            bar = progress(run.plan.rows, sys.stderr, quiet=self._is_quiet or sys.stderr is None)
        try:
            for shard in run.judge(engine, self._options):
                for warning in shard.warnings:
                    warn(warning)
                with speaking_to(sys.stderr):
                    for _ in range(shard.rows if shard.done else 0):
                        bar.advance()
        except KeyboardInterrupt:
            run.find_done()
            warn(
                f"Stopped: {len(run.done):,} of {len(run.plan.shards):,} shards are judged. Run the same command again "
                f"to continue, or rag-eval report {self._folder.root} to report the finished shards."
            )
            raise
        finally:
            with speaking_to(sys.stderr):
                bar.close()


class ShardedRun:
    """The shards of one folder: judged by an engine, then reported as far as they are there."""

    def __init__(self, folder: "RunFolder", plan: "Plan", settings: "Settings", rubric: Any) -> None:
        from rag_eval.shards.folder import fingerprint_of_file
        from rag_eval.shards.spec import counting_fingerprint, judging_fingerprint

        self.plan = plan
        self.done: set[int] = set()
        """Numbers of the shards whose parts are there."""
        self.failed = 0
        """Cases in the report that another run might judge."""
        self.stopped: RunStoppedError | None = None
        self.folder = folder
        self._settings = settings
        self.judges = _judges_without_calls(settings, rubric)
        self.facts = self._facts()
        of_rubric = fingerprint_of_file(settings.rubric.file) if settings.rubric.file else ""
        self._judging = judging_fingerprint(settings, of_rubric, plan.version)
        self._counting = counting_fingerprint(settings, self.facts)

    def _facts(self) -> "RunFacts":
        plan = self.plan
        facts = facts_at_start(self._settings, plan.table_without_rows(), self.judges)
        if len(plan.sources) == 1:
            return replace(facts, rows=plan.rows, started=datetime.fromisoformat(plan.started))
        names = tuple(source.name for source in plan.sources)
        return replace(
            facts,
            rows=plan.rows,
            started=datetime.fromisoformat(plan.started),
            input_name=f"{len(names):,} files, {names[0]} to {names[-1]}",
            sheet="",
            sources=names,
        )

    def specs(self, options: Options | None = None) -> list["ShardSpec"]:
        """Of all shards, done or not."""
        from rag_eval.shards.folder import fingerprint
        from rag_eval.shards.spec import ShardSpec, plain_facts

        facts = plain_facts(self.facts)
        return [
            ShardSpec(
                number=number,
                source=shard.source,
                rows=shard.rows,
                input=shard.input,
                judging=fingerprint([self._judging, shard.input]),
                counting=self._counting,
                settings=self.plan.settings,
                facts=facts,
                fresh=bool(options and options.fresh),
                retry_errors=bool(options and options.retry_errors),
                strict_cache=bool(options and options.strict_cache),
            )
            for number, shard in enumerate(self.plan.shards)
        ]

    def write_specs(self, options: Options) -> int:
        """For `rag-eval shard`: each shard with a journal of its own. Returns their number."""
        from rag_eval.shards.folder import write_json

        specs = self.specs(options)
        for spec in specs:
            own = spec.model_copy(update={"shares_replies": False, **_caps_of(self._settings, len(specs))})
            write_json(self.folder.spec(spec.number), own.model_dump(mode="json"))
        return len(specs)

    def judge(self, engine: "Engine", options: Options) -> Iterator["ShardOutcome"]:
        """Every shard that is not done, until all are, something stops the run, or its caps are reached."""
        from rag_eval.shards.engines import LocalEngine
        from rag_eval.shards.judge_shard import ShardOutcome, judge_shard
        from rag_eval.shards.purse import Purse

        updates = {"share": engine.slots, "shares_replies": isinstance(engine, LocalEngine)}
        wanted = [spec.model_copy(update=updates) for spec in self._wanted(options)]
        self._warn_of_other_judges(wanted)
        for number in sorted(self.done):
            yield ShardOutcome(number, self.plan.shards[number].rows, done=True)
        purse, waiting = Purse(self._settings, engine.slots), deque(wanted)
        by_number = {spec.number: spec for spec in wanted}
        while waiting and not self.stopped:
            is_moving, short = False, list[int]()
            try:
                for plain in engine.map(judge_shard, self._tasks(waiting, purse)):
                    outcome = ShardOutcome(**plain)
                    purse.settle(outcome)
                    is_moving |= outcome.done or outcome.requests > 0
                    if outcome.done:
                        self.done.add(outcome.number)
                    elif outcome.code in _CAPS:
                        short.append(outcome.number)
                    else:
                        self._stop(outcome.code, outcome.stopped, outcome.exit_code)
                    yield outcome
            except RagEvalError as error:  # of the engine: workers died again and again
                self._stop("engine", str(error), error.exit_code)
            waiting.extend(map(by_number.__getitem__, short))
            if waiting and not is_moving and not self.stopped:
                self.stopped = purse.reached()

    def _warn_of_other_judges(self, wanted: Sequence["ShardSpec"]) -> None:
        """Before their results are replaced, which were paid for."""
        from rag_eval.shards.folder import about_results

        parts = [(spec.judging, about_results(self.folder.results(spec.number))) for spec in wanted]
        if others := sum(about.get("judging", judging) != judging for judging, about in parts):
            shards = "1 finished shard was" if others == 1 else f"{others:,} finished shards were"
            warn(
                f"{self.folder.root}: {shards} judged with another judge or other settings of it, and will be judged "
                "again; use another -o to keep them"
            )

    def _stop(self, code: str, reason: str, exit_code: int) -> None:
        """Begin no more shards. The first reason is the one that is reported."""
        if self.stopped is None:
            self.stopped = RunStoppedError(code, reason)
            self.stopped.exit_code = ExitCode(exit_code)

    def _wanted(self, options: Options) -> Iterator["ShardSpec"]:
        """The shards that are not done. With an LLM judge, one with failed cases is not."""
        from rag_eval.shards.folder import about_results
        from rag_eval.shards.judge_shard import is_done

        for spec in self.specs(options):
            is_there = not options.fresh and is_done(self.folder, spec)
            has_failed = is_there and about_results(self.folder.results(spec.number))["failed"]
            if is_there and (self.judges.is_proxy or not has_failed):
                self.done.add(spec.number)
            else:
                yield spec.model_copy(update={"again": is_there or options.fresh})

    def _tasks(self, waiting: "deque[ShardSpec]", purse: Any) -> Iterator[dict[str, Any]]:
        while waiting and not self.stopped:
            spec = purse.fill(waiting[0])
            if spec is None:
                return
            waiting.popleft()
            yield {"folder": str(self.folder.root.absolute()), "spec": spec.model_dump(mode="json")}

    # The report

    def report(self, loaded: "LoadedSettings", paths: OutputPaths, past: "PastRun | None") -> RunOutcome:
        """Of the shards that are there; partial if any is not."""
        from rag_eval.run.evaluation import redactor_of

        fold = self.fold()
        self.failed = fold.failed
        facts = replace(
            fold.facts, notes=(*notes_on_marks(fold.facts.flags, fold.facts.cut_contexts), *self.facts.notes)
        )
        redactor = redactor_of(self._settings)
        redactor.counts.update(fold.redacted)
        with paths.open(loaded, facts, has_baseline=past is not None) as outputs:
            for result in fold.results():
                outputs.add(result)
            tallies = fold.tallies(self._settings.report.slice_by, past)
            summary = tallies.summary()
            beside = (
                (*fold.adaptations, *outdated_notes(fold.outdated)),
                redactor if not self.judges.is_proxy else None,
            )
            facts = replace(
                facts,
                partial=self._partial(),
                notes=(
                    *([_ABOUT_ROWS] if facts.sources else []),
                    *facts.notes,
                    *notes_at_end(summary, *beside),
                    *renewed_notes(fold.renewed),
                ),
            )
            return RunOutcome.written(outputs, tallies, summary, facts)

    def fold(self) -> "Fold":
        """The shards that are there, as one run."""
        from rag_eval.shards.fold import Fold

        return Fold(self.folder, sorted(self.done), self.facts)

    def find_done(self) -> None:
        """Look for the shards whose parts are there; their tallies are brought up to the settings."""
        from rag_eval.shards.judge_shard import count_shard

        self.done.update(spec.number for spec in self.specs() if count_shard(self.folder, spec))

    def _partial(self) -> str:
        done, every = len(self.done), len(self.plan.shards)
        if done == every:
            return ""
        why = f": {self.stopped}" if self.stopped else ""
        return f"{done:,} of {every:,} shards are judged{why}"

    def remove_replies(self) -> None:
        """The run is complete: its journals are needed no more."""
        for folder in (self.folder.all_replies, self.folder.all_grants):
            shutil.rmtree(folder, ignore_errors=True)


_ABOUT_ROWS = (
    "Rows are counted through all files; the columns Source and Source Row show the place in the file."
)


def renewed_notes(renewed: int) -> tuple[str, ...]:
    return (f"Recommendations recomputed by rule: {renewed:,}.",) if renewed else ()


def engine_of(options: Options, settings: "Settings", shards: int) -> "LocalEngine | RayEngine":
    """What runs the shards: no more at once than there are shards, and with an LLM judge than calls may be open."""
    from rag_eval.shards.engines import LocalEngine
    from rag_eval.shards.ray_engine import RayEngine

    most = shards if settings.provider.is_offline else min(shards, settings.evaluation.workers)
    return RayEngine(options.address, most) if options.engine == "ray" else LocalEngine(most)


def _judges_without_calls(settings: "Settings", rubric: Any) -> "Judges":
    """To know what will be judged, and how readers call it."""
    from rag_eval.judge.null_judges import NoJudge, NoStore
    from rag_eval.run.evaluation import redactor_of
    from rag_eval.run.judges import Judges

    if not settings.provider.is_offline:
        return Judges.llm(settings, NoJudge(), NoStore(), rubric)
    if redactor_of(settings):
        warn("Nothing is redacted: the offline judge sends nothing.")
    return Judges.offline(settings)


def _caps_of(settings: "Settings", shards: int) -> dict[str, Any]:
    """Of each shard if nobody hands them out: an equal part for all of them, which are judged at the same time."""
    limits = settings.limits
    return {
        "share": shards,
        "max_calls": None if limits.max_calls is None else max(1, limits.max_calls // shards),
        "max_cost": None if limits.max_cost is None else limits.max_cost / shards,
        "max_minutes": limits.max_minutes,
    }


@contextmanager
def _lent_key(settings: "Settings") -> Iterator[None]:
    """Worker processes read the key where every process does, wherever this one found it."""
    variables = [name for name, key in settings.provider.variables.items() if key == "api_key"]
    before = {name: os.environ.get(name) for name in variables}
    if variables and (key := settings.section.api_key.get_secret_value()):
        os.environ.update(dict.fromkeys(variables, key))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def rubric_of(settings: "Settings") -> "EvaluationRubric | None":
    if settings.rubric.file is None:
        return None
    from rag_eval.rubric import load_rubric

    return load_rubric(settings.rubric.file)


def settings_of(plan: "Plan") -> "LoadedSettings":
    """Those that the folder was last judged with."""
    from rag_eval.configuration import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.configuration.sources import Level, Source

    settings = Settings.model_validate(plan.settings)
    sources = {f"{section}.{key}": Source(Level.DEFAULT) for section, values in settings for key, _ in values}
    sources |= {key: Source(Level(level), name, line) for key, (level, name, line) in plan.origins.items()}
    return LoadedSettings(settings, sources, {}, ())


def options_without(**given: Any) -> Options:
    """The options of a run to which no others were given."""
    flags = [
        "dry_run",
        "fresh",
        "retry_errors",
        "strict_cache",
        "html_no_texts",
        "fail_on_regression",
        "report_only",
        "show",
    ]
    nothing: dict[str, Any] = {each.name: None for each in fields(Options)} | dict.fromkeys(flags, False)
    return Options(
        **{**nothing, "fail_under": (), "map": (), "where": (), "gate_on": "interval", "wait": 0.0, **given}
    )


def paths_of(folder: "RunFolder", options: Options) -> OutputPaths:
    """Where the report of a run in shards is written."""
    named = replace(
        options,
        json=options.json or folder.root / "report.json",
        html=options.html or folder.root / "report.html",
    )
    return OutputPaths(folder.manifest, folder.report, named)

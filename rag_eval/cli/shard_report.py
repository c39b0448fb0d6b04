"""The report of a run in shards, made from the parts that are there."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.facts import fallback_notes, notes_at_end, notes_on_marks, outdated_notes
from rag_eval.cli.job import Job
from rag_eval.cli.manifest import Manifest
from rag_eval.cli.options import Options
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.shard_run import ShardedRun
from rag_eval.errors import ExitCode, InputError, RunStoppedError
from rag_eval.store.lock import locked

if TYPE_CHECKING:
    from rag_eval.cli.outcome import RunOutcome
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.results.gates import Gate
    from rag_eval.shards.fold import Fold
    from rag_eval.shards.folder import RunFolder


class ShardReport(Job):
    """A report of the shards that are done, with all that the report of a run has. Nothing is judged."""

    def __init__(self, root: Path, options: Options) -> None:
        from rag_eval.shards.folder import RunFolder

        self._folder = RunFolder(root)
        named = replace(
            options,
            json=options.json or root / "report.json",
            html=options.html or root / "report.html",
        )
        super().__init__(self._folder.manifest, self._folder.report, named)

    def run(self) -> ExitCode:
        gates = self._options.gates()
        self._past = self._read_baseline()
        self._paths = OutputPaths(self._folder.manifest, self._folder.report, self._options)
        self._manifest = Manifest(None, self._folder.manifest, {})
        lock = locked(self._folder.manifest) if self._folder.root.is_dir() else nullcontext()
        with self._paths, lock:
            run, loaded = found_run(self._folder)
            if folder := self._options.history:
                wanted = loaded.settings.report.model_copy(update={"history": folder})
                loaded = replace(loaded, settings=loaded.settings.model_copy(update={"report": wanted}))
            self._paths.check(loaded)
            self._paths.check_writable()
            self._paths.make_room(loaded.settings)
            self._read_history(loaded.settings, run.facts, run.plan.inputs_hash)
            outcome = self._write(loaded, run, run.fold(), gates)
            stopped = RunStoppedError("missing_shards", run.partial) if run.partial else None
            return self._conclude(outcome, gates, loaded.settings, stopped)

    def _write(
        self, loaded: "LoadedSettings", run: ShardedRun, fold: "Fold", gates: Sequence["Gate"]
    ) -> "RunOutcome":
        """The outputs of the parts in `fold`; partial if any shard is not done. `gates` are checked afterwards."""
        from rag_eval.cli.outcome import RunOutcome
        from rag_eval.run.evaluation import redactor_of

        history, has_baseline = self._history, self._past is not None
        marks = notes_on_marks(fold.facts.flags, fold.facts.cut_contexts)
        facts = replace(fold.facts, notes=(*marks, *run.facts.notes))
        redactor = redactor_of(loaded.settings)
        redactor.counts.update(fold.redacted)
        # The statistics first: they need the most memory, and the outputs hold a few bytes of each case in theirs.
        past = history.past if history else None
        tallies = fold.tallies(loaded.settings.report.slice_by, self._past, past)
        summary = tallies.summary()
        findings = tallies.findings(summary)
        summary = summary.with_values_of({gate.name for gate in gates})
        del tallies
        with self._paths.open(loaded, facts, has_baseline=has_baseline, history=history) as outputs:
            for result in fold.results():
                outputs.add(result)
            beside = (
                *fallback_notes(facts.fallbacks, sum(bot.total_queries for bot in summary.bots)),
                *fold.adaptations,
                *outdated_notes(fold.outdated),
            )
            at_end = notes_at_end(summary, beside, None if run.judges.is_proxy else redactor)
            about_rows = [_ABOUT_ROWS] if facts.sources else []
            notes = (*about_rows, *facts.notes, *at_end, *renewed_notes(fold.renewed))
            facts = replace(facts, partial=run.partial, notes=notes)
            return RunOutcome.written(outputs, summary, findings, facts, history)


def found_run(folder: "RunFolder") -> "tuple[ShardedRun, LoadedSettings]":
    """The run in a folder, and its settings. Raises InputError if no shard of it is done."""
    from rag_eval.shards.folder import require_parquet
    from rag_eval.shards.judge_shard import rubric_of
    from rag_eval.shards.plan import read_plan

    require_parquet()
    if folder.root.is_file():
        is_json = folder.root.suffix == ".json"
        again = f"; for a run's JSON, use rag-eval {folder.root} --report-only" if is_json else ""
        raise InputError(f"{folder.root}: is a file; name the folder of a run in shards{again}")
    plan = read_plan(folder)
    if plan is None:
        raise InputError(
            f"{folder.root}: does not contain a run in shards; name the folder that such a run writes to"
        )
    loaded = plan.loaded_settings()
    run = ShardedRun(folder, plan, loaded.settings, rubric_of(loaded.settings))
    run.find_done()
    if not run.done:
        raise InputError(
            f"{folder.root}: no shard of {len(plan.shards):,} is judged yet; there is nothing to report"
        )
    return run, loaded


_ABOUT_ROWS = (
    "Rows are counted through all files; the columns Source and Source Row show the place in the file."
)


def renewed_notes(renewed: int) -> tuple[str, ...]:
    return (f"Recommendations recomputed by rule: {renewed:,}.",) if renewed else ()

"""The report of a run in shards, made from the parts that are there."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import command_line
from rag_eval.cli.facts import facts_at_end, notes_on_marks
from rag_eval.cli.options import Options
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.cli.session import Session
from rag_eval.cli.shard_run import ShardedRun
from rag_eval.errors import ExitCode, InputError, RunStoppedError
from rag_eval.store.lock import locked

if TYPE_CHECKING:
    from rag_eval.cli.outcome import RunOutcome
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.results.summary import Summary
    from rag_eval.shards.fold import Fold, FoldedRows
    from rag_eval.shards.folder import RunFolder


def report_shards(root: Path, options: Options) -> ExitCode:
    """A report of the shards that are done, with all that the report of a run has. Nothing is judged."""
    from rag_eval.shards.folder import RunFolder

    folder = RunFolder(root)
    options = with_outputs_there(options, root)
    session = Session(folder.manifest, OutputPaths(folder.manifest, folder.report, options), options)
    session.read_gates()
    lock = locked(folder.manifest) if root.is_dir() else nullcontext()
    with session.paths, lock:
        run, loaded = found_run(folder)
        for key, given in options.overrides().items():
            settings = _with_value(loaded.settings, key, given.value)
            loaded = replace(loaded, settings=settings, sources={**loaded.sources, key: given.source})
        session.paths.check(loaded)
        session.paths.check_writable()
        session.paths.make_room(loaded.settings)
        session.require_spent(run.facts.spent_units)
        session.read_history(loaded.settings, run.facts, run.plan.inputs_hash)
        outcome = write_parts(session, loaded, run, run.fold(), iter(sorted(run.done)))
        stopped = RunStoppedError("missing_shards", run.partial) if run.partial else None
        return session.conclude(outcome, loaded.settings, stopped)


def _with_value(settings: "Settings", key: str, value: object) -> "Settings":
    """With the value of an option in place of that of the run, whose 'section.key' it overrides."""
    section, _, name = key.partition(".")
    wanted = getattr(settings, section).model_copy(update={name: value})
    return settings.model_copy(update={section: wanted})


def with_outputs_there(options: Options, root: Path) -> Options:
    """With the JSON and the page that an earlier command left in the folder of the run.

    Left as they are, they would have other figures than the workbook beside them.
    """
    paths = root / "report.json", root / "report.html"
    json, html = (path if path.is_file() else None for path in paths)
    return replace(options, json=options.json or json, html=options.html or html)


def write_parts(
    session: Session,
    loaded: "LoadedSettings",
    run: ShardedRun,
    fold: "Fold",
    numbers: Iterator[int],
    rows: "FoldedRows | None" = None,
) -> "RunOutcome":
    """The outputs of the shards with these numbers, each as soon as its number comes."""
    from rag_eval.results.recorded import renewed_notes
    from rag_eval.run.evaluation import redactor_of

    redactor = None if run.judges.is_proxy else redactor_of(loaded.settings)

    def at_end(summary: "Summary") -> "RunFacts":
        facts, stats = fold.facts, fold.stats
        stats = replace(stats, usage=run.usage(stats.usage))
        if redactor:
            redactor.counts.update(stats.redacted)
        about_rows = [_ABOUT_ROWS] if facts.sources else []
        marks = notes_on_marks(facts.flags, facts.cut_contexts)
        facts = replace(facts, notes=(*about_rows, *marks, *facts.notes))
        facts = facts_at_end(facts, stats, summary, redactor, run.partial)
        return replace(facts, notes=(*facts.notes, *renewed_notes(fold.renewed)))

    results = partial(fold.results, numbers, rows=rows)
    return session.write(loaded, fold.facts, results, at_end, rendered=rows.rendered if rows else None)


def found_run(folder: "RunFolder") -> "tuple[ShardedRun, LoadedSettings]":
    """The run in a folder, and its settings. Raises InputError if no shard of it is done."""
    from rag_eval.run.judges import rubric_of
    from rag_eval.shards.folder import require_parquet
    from rag_eval.shards.plan import read_plan

    require_parquet()
    if folder.root.is_file():
        is_json = folder.root.suffix == ".json"
        command = command_line("rag-eval", folder.root, "--report-only")
        again = f"; for a run's JSON, use {command}" if is_json else ""
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
        begun = f"since --fresh began on {datetime.fromtimestamp(plan.fresh_since):%Y-%m-%d %H:%M}, "
        raise InputError(
            f"{folder.root}: {begun if plan.fresh_since else ''}no shard of {len(plan.shards):,} is judged yet; there "
            "is nothing to report"
        )
    return run, loaded


_ABOUT_ROWS = (
    "Rows are counted through all files; the columns Source and Source Row show the place in the file."
)

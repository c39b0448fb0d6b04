"""The commands on the parts of a run in shards: judge one, report what is there, pick cases out of it."""

import sys
from pathlib import Path
from typing import Any

import click

from rag_eval.cli.console import remark, set_up_logging, warn
from rag_eval.cli.options import Options, options
from rag_eval.cli.parameters import PATH
from rag_eval.cli.signals import stopping_on_signals
from rag_eval.errors import InputError

_FOLDER = click.argument("folder", metavar="FOLDER", type=PATH)


@click.command("shard", short_help="Judge one shard of a run.")
@click.argument("path", metavar="SPEC.json", type=PATH)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use 1/N of the run's rate limits.  [default: number of shards]",
)
@options("shard")
def shard(path: Path, at_once: int | None, debug: bool) -> None:
    """Judge one shard and write its part. Does nothing if the part is there.

    SPEC.json is a file in the folder specs/ of a run that --engine none has written; its rows are in that run's folder.
    The key of the judge comes from the environment, .env or config.ini. Run rag-eval report FOLDER at the end.
    """
    from rag_eval.configuration.effective import endpoint_of
    from rag_eval.configuration.settings import Settings
    from rag_eval.run.processes import THIS_PROCESS
    from rag_eval.shards.judge_shard import ShardOutcome, judge_shard
    from rag_eval.shards.spec import read_spec

    set_up_logging(debug)
    spec = read_spec(path)
    if at_once:
        spec = spec.model_copy(update={"share": at_once})
    settings = Settings.model_validate(spec.settings)
    if not settings.provider.is_offline:  # a key of this machine goes where a file says
        remark(f"Judge: {endpoint_of(settings.without_entra()).description}")
    task = {"folder": str(path.absolute().parent.parent), "spec": spec.model_dump(mode="json")}
    with stopping_on_signals(THIS_PROCESS):
        outcome = ShardOutcome(**judge_shard(task))
    for warning in outcome.warnings:
        warn(warning)
    if not outcome.done:
        warn(f"shard {outcome.number}: {outcome.stopped}")
        sys.exit(outcome.exit_code)
    remark(f"Shard {outcome.number} is done: {outcome.rows:,} rows of {spec.source}.")


@click.command("report", short_help="Report the shards of a run that are done.")
@_FOLDER
@options("report")
def report(folder: Path, **values: Any) -> None:
    """Write the report of a run in shards from the parts in FOLDER. Nothing is judged."""
    from rag_eval.cli.shard_report import report_shards

    sys.exit(report_shards(folder, Options(**values)))


@click.command("cases", short_help="Write selected cases of a run in shards.")
@_FOLDER
@click.option(
    "--where",
    multiple=True,
    required=True,
    metavar="'NAME OP VALUE'",
    help="Write only cases that meet this condition.",
)
@click.option("-o", "--output", type=PATH, required=True, help="Workbook to write (.xlsx).")
def cases(folder: Path, where: tuple[str, ...], output: Path) -> None:
    """Write the cases of a run in shards for which all conditions hold to a workbook.

    NAME is row, source, bot, query, response, rqs, failure_modes, latency, cost, a metric such as faithfulness, or
    its faithfulness_outcome or faithfulness_code; a retrieval measure such as recall_5, or a label such as
    human_faithfulness. OP is one of = != ~ < <= > >=.
    """
    from rag_eval.cli.shard_report import found_run
    from rag_eval.report.workbook import write_cases
    from rag_eval.shards.folder import RunFolder
    from rag_eval.shards.selecting import CaseSelection
    from rag_eval.tables.selection import Selection

    if output.suffix.lower() != ".xlsx":
        raise InputError(
            f"{output}: cases are written to an Excel workbook; give it a name that ends in .xlsx"
        )
    conditions = Selection.parse(None, None, where)
    run, _ = found_run(RunFolder(folder))
    if output.resolve() == run.folder.report.resolve():
        raise InputError(f"{output}: is the report of the run; choose another name with -o")
    selection = CaseSelection(conditions.where, run.facts)
    fold = run.fold()
    about = [
        f"of the run in {folder} with {' and '.join(conditions.words())}",
        f"{len(run.done):,} of {len(run.plan.shards):,} shards of {fold.facts.input_name} are judged.",
        f"Judge: {fold.facts.judge}",
        "Selected cases are not a sample: their means say nothing about a bot.",
    ]
    results = fold.results(sorted(run.done))
    written, left_out = write_cases(output, fold.facts, selection.chosen(results), about)
    if left_out:
        warn(f"{left_out:,} more cases do not fit on a sheet; add a condition.")
    if len(run.done) < len(run.plan.shards):
        warn(f"PARTIAL: {len(run.done):,} of {len(run.plan.shards):,} shards are judged")
    remark(f"{written:,} of {selection.seen:,} cases: {output}")

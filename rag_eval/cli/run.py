"""The command that does the main job: a spreadsheet in, a report out."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rag_eval import __version__
from rag_eval.cli.console import set_up_logging
from rag_eval.cli.options import Options, options
from rag_eval.cli.parameters import PATH, GroupedCommand, default_targets


@click.command("run", cls=GroupedCommand, short_help="Score answers and write the report.")
@click.argument("inputs", metavar="INPUT...", type=PATH, nargs=-1, required=True)
@options("run")
@click.version_option(__version__, prog_name="rag-eval")
def command(inputs: tuple[Path, ...], **values: Any) -> None:
    """Score the answers of chatbots in a spreadsheet and write an Excel report.

    INPUT is an .xlsx, .xlsm, .xls, .ods, .csv, .tsv, .json, .jsonl, .ndjson or .parquet file with a column Query and a
    column Bot_<name> for each bot; Ground_Truth and Context are optional. Files of other tools are read as well: --show
    prints how. '-' reads standard input. A folder, a pattern or several files are judged in shards, as is a file with
    --shard-rows or --engine: -o is a folder then, and the same command continues a run that was killed.
    """
    from rag_eval.cli.inputs import is_sharded

    given = Options(**values)
    set_up_logging(given.debug)
    if is_sharded(inputs, given):
        from rag_eval.cli.sharded import ShardedJob

        sys.exit(ShardedJob(inputs, given).run())
    from rag_eval.cli.job import Job
    from rag_eval.cli.session import Session

    (input_path,) = inputs
    target = given.output
    if target is None:
        target, page = default_targets(input_path, "report", given.html)
        given = replace(given, html=page)
    with Session.opened(input_path, target, given) as session:
        code = Job(input_path, session).run()
    sys.exit(code)

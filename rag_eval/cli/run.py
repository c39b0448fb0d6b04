"""The command that does the main job: a spreadsheet in, a report out."""

import sys
from pathlib import Path
from typing import Any

import click

from rag_eval import __version__
from rag_eval.cli.console import set_up_logging
from rag_eval.cli.help_groups import GroupedCommand
from rag_eval.cli.job import Job
from rag_eval.cli.options import Options
from rag_eval.cli.outcome import gate_options
from rag_eval.cli.parameters import MINUTES, NAME, PATH
from rag_eval.cli.reading import reading_options
from rag_eval.cli.shard_inputs import is_sharded
from rag_eval.cli.sharded import ENGINES, ShardedJob
from rag_eval.judge.providers import PROVIDERS
from rag_eval.records import PROMPT_FORMS

_WEIGHT = click.FloatRange(min=0.0)
_LIMIT = click.FloatRange(min=0.0, min_open=True)


@click.command(
    "run",
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Score answers and write the report.",
)
@click.argument("inputs", metavar="INPUT...", type=PATH, nargs=-1, required=True)
@click.option("-o", "--output", type=PATH, help="Report file.  [default: <input>_report.xlsx]")
@click.option("--config", type=PATH, help="Configuration file.  [default: ./config.ini, if present]")
@click.option(
    "--judge",
    type=click.Choice(list(PROVIDERS)),
    help="Judge to use; offline needs no API key.",
)
@click.option("--model", metavar="NAME", help="Deployment (Azure) or model (OpenAI) of the judge.")
@click.option(
    "--temperature",
    type=click.FloatRange(0.0, 2.0),
    metavar="NUMBER",
    help="Sampling temperature of the judge.",
)
@click.option(
    "--prompts",
    type=click.Choice(list(PROMPT_FORMS)),
    help="Prompts of the judge: fewer calls with merged or single.",
)
@click.option("--alpha", type=_WEIGHT, metavar="WEIGHT", help="Weight of answer correctness in RQS.")
@click.option("--beta", type=_WEIGHT, metavar="WEIGHT", help="Weight of faithfulness in RQS.")
@click.option("--gamma", type=_WEIGHT, metavar="WEIGHT", help="Weight of answer relevancy in RQS.")
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes of the offline judge.  [default: one per core for large inputs]",
)
@click.option(
    "--samples", type=click.IntRange(1, 50), metavar="K", help="Score each answer K times and use the mean."
)
@click.option("--dry-run", is_flag=True, help="Estimate calls, tokens and cost; send nothing.")
@click.option(
    "--max-calls", type=click.IntRange(min=1), metavar="N", help="Stop before sending more than N requests."
)
@click.option(
    "--max-cost",
    type=_LIMIT,
    metavar="AMOUNT",
    help="Stop before the cost can exceed AMOUNT; needs [prices].",
)
@click.option("--max-minutes", type=_LIMIT, metavar="MINUTES", help="Stop after MINUTES minutes.")
@click.option("--fresh", is_flag=True, help="Ignore stored replies and call the judge again.")
@click.option("--retry-errors", is_flag=True, help="Retry calls that were blocked, refused or truncated.")
@click.option("--strict-cache", is_flag=True, help="Stop if the stored replies are damaged.")
@click.option("--json", type=PATH, help="Also write the whole run as JSON to this file.")
@click.option("--html", type=PATH, help="Also write a page for any browser to this file.")
@click.option("--html-no-texts", is_flag=True, help="Leave texts, evidence and advice out of the page.")
@click.option("--csv", type=PATH, metavar="FOLDER", help="Also write the tables as CSV files to FOLDER.")
@gate_options
@click.option(
    "--report-only",
    is_flag=True,
    help="Rebuild the report from stored replies or a run's JSON.",
)
@click.option("--manifest", type=PATH, help="Write settings, status and exit code as JSON.")
@click.option(
    "--wait",
    type=MINUTES,
    default=0.0,
    metavar="MINUTES",
    help="Wait up to MINUTES for a run that writes this report.",
)
@click.option("--labels", multiple=True, type=PATH, help="Compare with the labels in this review sheet.")
@click.option("--calibrate", type=PATH, help="Write the thresholds that labels imply to this config.ini.")
@reading_options("answer=bot")
@click.option("--bot-name", type=NAME, metavar="NAME", help="Name of the bot, for one column of responses.")
@click.option("--show", is_flag=True, help="Print how the first rows are read; judge nothing.")
@click.option(
    "--redact", flag_value="email, phone", help="Hide e-mail addresses and phone numbers from the judge."
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="Judge shards locally or with Ray, or only write them.",
)
@click.option("--address", metavar="ADDRESS", help="Ray cluster to use; auto finds the one of this machine.")
@click.option(
    "--shard-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Judge in shards of N rows.  [default: 5000]",
)
@click.option("--batch", is_flag=True, help="Send calls in provider batches; run again to continue.")
@click.option(
    "--batch-wait",
    type=MINUTES,
    metavar="MINUTES",
    help="With --batch: wait up to MINUTES for the batches.",
)
@click.option("--batch-cancel", is_flag=True, help="Cancel this report's batches; keep finished replies.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and warnings.")
@click.option("--debug", is_flag=True, help="Log each step, without texts and secrets.")
@click.version_option(__version__, prog_name="rag-eval")
def command(inputs: tuple[Path, ...], output: Path | None, quiet: bool, debug: bool, **options: Any) -> None:
    """Score the answers of chatbots in a spreadsheet and write an Excel report.

    INPUT is an .xlsx, .xlsm, .xls, .ods, .csv, .tsv, .json, .jsonl, .ndjson or .parquet file with a column Query and a
    column Bot_<name> for each bot; Ground_Truth and Context are optional. Files of other tools are read as well: --show
    prints how. '-' reads standard input. A folder, a pattern or several files are judged in shards, as is a file with
    --shard-rows or --engine: -o is a folder then, and the same command continues a run that was killed.
    """
    set_up_logging(debug)
    given = Options(**options)
    if is_sharded(inputs, given):
        sys.exit(ShardedJob(inputs, output, given, is_quiet=quiet).run())
    (input_path,) = inputs
    stem = "stdin" if str(input_path) == "-" else input_path.stem
    target = output or input_path.with_name(f"{stem}_report.xlsx")
    sys.exit(Job(input_path, target, given, is_quiet=quiet).run())

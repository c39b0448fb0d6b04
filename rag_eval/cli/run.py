"""The command that does the main job: a spreadsheet in, a report out."""

import sys
from pathlib import Path
from typing import Any

import click

from rag_eval import __version__
from rag_eval.cli.console import set_up_logging
from rag_eval.cli.job import Job
from rag_eval.cli.options import Options
from rag_eval.cli.standard_input import FORMATS
from rag_eval.judge.providers import PROVIDERS

_PATH = click.Path(path_type=Path)
_WEIGHT = click.FloatRange(min=0.0)
_LIMIT = click.FloatRange(min=0.0, min_open=True)


@click.command(
    "run",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Score answers and write the report.",
)
@click.argument("input_path", metavar="INPUT", type=_PATH)
@click.option("-o", "--output", type=_PATH, help="Report file.  [default: <input>_report.xlsx]")
@click.option("--config", type=_PATH, help="Configuration file.  [default: ./config.ini, if present]")
@click.option(
    "--judge",
    type=click.Choice(list(PROVIDERS)),
    help="Judge to use; offline needs no API key.",
)
@click.option("--model", help="Deployment (Azure) or model (OpenAI) of the judge.")
@click.option("--temperature", type=click.FloatRange(0.0, 2.0), help="Sampling temperature of the judge.")
@click.option("--alpha", type=_WEIGHT, help="Weight of answer correctness in RQS.")
@click.option("--beta", type=_WEIGHT, help="Weight of faithfulness in RQS.")
@click.option("--gamma", type=_WEIGHT, help="Weight of answer relevancy in RQS.")
@click.option("--samples", type=click.IntRange(1, 50), help="Score each answer K times and use the mean.")
@click.option("--dry-run", is_flag=True, help="Estimate calls, tokens and cost; send nothing.")
@click.option("--max-calls", type=click.IntRange(min=1), help="Stop before sending more requests than this.")
@click.option("--max-cost", type=_LIMIT, help="Stop before the cost can exceed this; needs [prices].")
@click.option("--max-minutes", type=_LIMIT, help="Stop after this many minutes.")
@click.option("--fresh", is_flag=True, help="Ignore stored replies and call the judge again.")
@click.option("--retry-errors", is_flag=True, help="Retry calls that were blocked, refused or truncated.")
@click.option("--strict-cache", is_flag=True, help="Stop if the stored replies are damaged.")
@click.option("--json", type=_PATH, help="Also write the whole run as JSON to this file.")
@click.option("--html", type=_PATH, help="Also write a page for any browser to this file.")
@click.option("--html-no-texts", is_flag=True, help="Leave texts, evidence and advice out of the page.")
@click.option("--csv", type=_PATH, help="Also write the tables as CSV files to this folder.")
@click.option(
    "--fail-under", multiple=True, metavar="NAME=VALUE", help="Exit with 1 if any bot's mean is below VALUE."
)
@click.option(
    "--gate-on",
    type=click.Choice(["interval", "mean"]),
    default="interval",
    show_default=True,
    help="Compare gates with the lower 95% limit or the mean.",
)
@click.option("--baseline", type=_PATH, help="Compare with an earlier report (.xlsx) or run (JSON).")
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 if any mean is significantly worse.")
@click.option(
    "--report-only",
    is_flag=True,
    help="Rebuild the report from stored replies or a run's JSON.",
)
@click.option("--manifest", type=_PATH, help="Write settings, status and exit code as JSON.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    default=0.0,
    metavar="MINUTES",
    help="Wait up to MINUTES for a run that writes this report.",
)
@click.option("--junit", type=_PATH, help="Write gate results as JUnit XML to this file.")
@click.option("--sheet", help="Sheet to read.  [default: the first visible sheet]")
@click.option("--encoding", help="Encoding of a .csv or .tsv file.  [default: detected]")
@click.option("--sep", metavar="CHAR", help="Separator of a .csv file, or 'tab'.  [default: detected]")
@click.option("--format", type=click.Choice(FORMATS), help="Type of the file that '-' (standard input) is.")
@click.option("--map", multiple=True, metavar="COLUMN=ROLE", help="Give a column a role, as in answer=bot.")
@click.option("--bot-name", metavar="NAME", help="Name of the bot, for one column of responses.")
@click.option(
    "--where", multiple=True, metavar="'NAME OP VALUE'", help="Read only rows for which this holds."
)
@click.option("--rows", metavar="FIRST-LAST", help="Read only these rows of the file.")
@click.option(
    "--random-rows", type=click.IntRange(min=1), metavar="N", help="Read N random rows, always the same."
)
@click.option("--show", is_flag=True, help="Print how the first rows are read; judge nothing.")
@click.option(
    "--redact", flag_value="email, phone", help="Hide e-mail addresses and phone numbers from the judge."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and warnings.")
@click.option("--debug", is_flag=True, help="Log each step, without texts and secrets.")
@click.version_option(__version__, prog_name="rag-eval")
def command(input_path: Path, output: Path | None, quiet: bool, debug: bool, **options: Any) -> None:
    """Score the answers of chatbots in a spreadsheet and write an Excel report.

    INPUT is an .xlsx, .xlsm, .xls, .ods, .csv, .tsv, .json, .jsonl or .parquet file with a column Query and a column
    Bot_<name> for each bot; Ground_Truth and Context are optional. Files of other tools are read as well: --show prints
    how. '-' reads standard input.
    """
    set_up_logging(debug)
    stem = "stdin" if str(input_path) == "-" else input_path.stem
    target = output or input_path.with_name(f"{stem}_report.xlsx")
    sys.exit(Job(input_path, target, Options(**options), is_quiet=quiet).run())

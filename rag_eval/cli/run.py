"""The command that does the main job: a spreadsheet in, a report out."""

import sys
from pathlib import Path
from typing import Any

import click

from rag_eval import __version__
from rag_eval.cli.console import set_up_logging
from rag_eval.cli.job import Job
from rag_eval.cli.options import Options

_PATH = click.Path(path_type=Path)
_WEIGHT = click.FloatRange(min=0.0)
_LIMIT = click.FloatRange(min=0.0, min_open=True)


@click.command(
    "run",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Judge the answers and write the report.",
)
@click.argument("input_path", metavar="INPUT", type=_PATH)
@click.option("-o", "--output", type=_PATH, help="The report.  [default: <input>_report.xlsx]")
@click.option("--config", type=_PATH, help="The configuration file.  [default: ./config.ini, if it is there]")
@click.option(
    "--judge", type=click.Choice(["azure", "openai", "offline"]), help="Who judges; offline needs no key."
)
@click.option("--model", help="The judge's deployment (Azure) or model (OpenAI).")
@click.option("--temperature", type=click.FloatRange(0.0, 2.0), help="The judge's temperature.")
@click.option("--alpha", type=_WEIGHT, help="Weight of answer correctness in RQS.")
@click.option("--beta", type=_WEIGHT, help="Weight of faithfulness in RQS.")
@click.option("--gamma", type=_WEIGHT, help="Weight of answer relevancy in RQS.")
@click.option("--samples", type=click.IntRange(1, 50), help="Ask so often for each score, and take the mean.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent and cost; send nothing.")
@click.option("--max-calls", type=click.IntRange(min=1), help="Stop before more requests than this.")
@click.option("--max-cost", type=_LIMIT, help="Stop before it could cost more than this; needs [prices].")
@click.option("--max-minutes", type=_LIMIT, help="Stop after this time.")
@click.option("--fresh", is_flag=True, help="Ask everything anew, whatever replies are stored.")
@click.option("--retry-errors", is_flag=True, help="Ask again what was blocked, refused or cut off before.")
@click.option("--strict-cache", is_flag=True, help="Stop when the stored replies are damaged.")
@click.option("--json", type=_PATH, help="Write the whole run as JSON to this file too.")
@click.option("--csv", type=_PATH, help="Write the tables as CSV files into this folder too.")
@click.option(
    "--fail-under", multiple=True, metavar="NAME=VALUE", help="End with 1 unless every bot's mean is as high."
)
@click.option(
    "--gate-on",
    type=click.Choice(["interval", "mean"]),
    default="interval",
    show_default=True,
    help="What must reach the gates: the 95 % interval's lower end, or the mean.",
)
@click.option("--baseline", type=_PATH, help="Compare with an earlier report (.xlsx) or a run's JSON.")
@click.option(
    "--fail-on-regression", is_flag=True, help="End with 1 when a mean is worse than in the baseline."
)
@click.option(
    "--report-only",
    is_flag=True,
    help="A new report from stored replies, or of a JSON run.",
)
@click.option("--manifest", type=_PATH, help="Write what was run and how it ended as JSON to this file.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    default=0.0,
    metavar="MINUTES",
    help="Wait so long for another run that writes the same report.",
)
@click.option("--junit", type=_PATH, help="Write the gates as JUnit XML to this file.")
@click.option("--sheet", help="The sheet to read.  [default: the first visible one]")
@click.option("--encoding", help="The encoding of a .csv or .tsv file.  [default: found out]")
@click.option("--sep", metavar="CHAR", help="What separates its cells, or 'tab'.  [default: found out]")
@click.option(
    "--redact", flag_value="email, phone", help="Hide e-mail addresses and phone numbers from the judge."
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors alone.")
@click.option("--debug", is_flag=True, help="Log what is done, without texts and secrets.")
@click.version_option(__version__, prog_name="rag-eval")
def command(input_path: Path, output: Path | None, quiet: bool, debug: bool, **options: Any) -> None:
    """Score the answers of bots in a spreadsheet, and write an Excel report that says which is better, and why.

    INPUT is an .xlsx, .xlsm, .xls, .ods, .csv, .tsv or .parquet file with a column Query and a column Bot_<name>
    for each bot; Ground_Truth and Context are optional.
    """
    set_up_logging(debug)
    target = output or input_path.with_name(f"{input_path.stem}_report.xlsx")
    sys.exit(Job(input_path, target, Options(**options), is_quiet=quiet).run())

"""The command that holds retrieved documents against gold documents. Asks no judge."""

from pathlib import Path

import click

from rag_eval.cli.console import say

_PATH = click.Path(path_type=Path)


def _cutoffs(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise click.BadParameter(f"{text!r} is no list of ranks; expected whole numbers from 1, such as 5,10")
    return tuple(map(int, parts))


@click.command(
    "retrieval",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Score retrieval against gold documents.",
)
@click.argument("results", type=_PATH)
@click.option(
    "--reference", type=_PATH, required=True, help="The file with the gold documents of each query."
)
@click.option("-o", "--output", type=_PATH, help="Scores of each query: a file .xlsx, .csv or .jsonl.")
@click.option(
    "--k", "cutoffs", default="5,10", show_default=True, callback=_cutoffs, help="Ranks to look at."
)
def command(results: Path, reference: Path, output: Path | None, cutoffs: tuple[int, ...]) -> None:
    """Say how many of the documents that matter were retrieved, and how high they stand.

    RESULTS has the retrieved document ids of each query in rank order. Both files are .tsv, .csv, .json, .jsonl,
    .xlsx or .parquet with a column for the query id (qid, query_id, question_id or id) and one for the ids:
    doc_ids or retrieved_docs in RESULTS, document_ids or gold_docs in the reference. One file may be both.
    """
    from rag_eval.report.retrieval_report import summary_lines, write_retrieval
    from rag_eval.retrieval_files import evaluate_files

    if output is None:
        summary, place = evaluate_files(results, reference, cutoffs), None
    else:
        summary, place = write_retrieval(results, reference, output, cutoffs)
    for line in summary_lines(summary):
        say(line)
    if place is not None:
        say(f"Scores: {place}")

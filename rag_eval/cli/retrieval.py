"""The command that holds retrieved documents against gold documents. Asks no judge."""

from pathlib import Path
from typing import Any

import click

from rag_eval.cli.console import remark, say
from rag_eval.cli.inputs import opened
from rag_eval.cli.options import options
from rag_eval.cli.parameters import PATH

_ROLES = ("id", "retrieved_docs", "gold_docs")


def _cutoffs(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        raise click.BadParameter(
            f"{text!r} is not a list of ranks; expected whole numbers from 1, such as 5,10"
        )
    return tuple(map(int, parts))


@click.command("retrieval", short_help="Score retrieval against gold documents.")
@click.argument("file", metavar="RESULTS", type=PATH, required=False)
@click.option("--results", type=PATH, metavar="RESULTS", help="The same as the argument RESULTS.")
@click.option("--reference", type=PATH, required=True, help="File with the gold documents of each query.")
@click.option(
    "--evaluator",
    type=click.Choice(["ContextRecall"]),
    default="ContextRecall",
    show_default=True,
    expose_value=False,
    help="Evaluator to use; there is only this one.",
)
@click.option("-o", "--output", type=PATH, help="Write the scores of each query (.xlsx, .csv or .jsonl).")
@click.option(
    "--k",
    "cutoffs",
    default="5,10",
    show_default=True,
    callback=_cutoffs,
    metavar="K,K,...",
    help="Cutoffs k of the measures.",
)
@options("retrieval", map="Give a column a role, as in key=id.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: Path | None,
    results: Path | None,
    reference: Path,
    output: Path | None,
    cutoffs: tuple[int, ...],
    **values: Any,
) -> None:
    """Score retrieval against gold document ids, without a judge.

    Prints recall, precision, F1, NDCG, MRR, MAP and hit rate. RESULTS has the retrieved document ids of each query
    in rank order. Both files have one of the types that 'rag-eval run' reads, with a column for the query id (qid,
    query_id, question_id or id) and one for the ids: doc_ids or retrieved_docs in RESULTS, document_ids or gold_docs
    in the reference. The two may be one file. Conditions and ranges select rows of the reference.
    """
    from rag_eval.report.retrieval_report import summary_lines, write_retrieval
    from rag_eval.retrieval.from_files import evaluate_files

    results = _the_one(ctx, file, results)
    told: list[str] = []
    with opened((results, reference), _ROLES, told.append, values) as (ranked, gold, reading):
        if output is None:
            summary, place = evaluate_files(ranked, gold, cutoffs, reading=reading), None
        else:
            summary, place = write_retrieval(ranked, gold, output, cutoffs, reading)
    for line in [*told, *summary_lines(summary)]:
        (remark if place else say)(line)
    if place:
        remark(f"Scores: {place}")


def _the_one(ctx: click.Context, argument: Path | None, option: Path | None) -> Path:
    """The results' file, which may be given as the argument or as --results."""
    if argument and option:
        raise click.UsageError(f"RESULTS is given twice: {argument} and --results {option}; give one", ctx)
    results = argument or option
    if results is None:
        raise click.UsageError("Missing argument 'RESULTS': name the file of results, or give --results", ctx)
    return results

"""The command that draws cases of a run for people to label, and writes a sheet to label them in. Asks no judge."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_eval.cli.console import remark, set_up_logging, warn
from rag_eval.cli.parameters import PATH, NumberRange
from rag_eval.errors import InputError
from rag_eval.records import SCORE_LABELS, TOXICITY

if TYPE_CHECKING:
    from rag_eval.records import CaseResult
    from rag_eval.report.recorded import RecordedRun
    from rag_eval.results.sampling import Sample

_DEFAULT_METRICS = ("answer_correctness", "faithfulness", "answer_relevancy")
"""About the response; to label the context as well takes much longer."""
_PARTS = {3: "thirds", 2: "halves"}


@click.command(
    "review",
    context_settings={"help_option_names": ["-h", "--help"]},
    short_help="Draw cases for people to label.",
)
@click.argument("run", metavar="RUN.json", type=PATH)
@click.option("-o", "--output", type=PATH, help="Review sheet to write.  [default: <run>_review.xlsx]")
@click.option(
    "--cases",
    type=click.IntRange(min=2),
    default=40,
    show_default=True,
    metavar="N",
    help="Number of cases to label.",
)
@click.option("--metrics", metavar="NAMES", help="Metrics or criteria to label, separated by commas.")
@click.option("--raters", metavar="NAMES", help="Names of the people; each gets a sheet of their own.")
@click.option(
    "--suspicious",
    type=NumberRange(0.0, 0.9),
    default=0.0,
    metavar="SHARE",
    help="Share of flagged, noisy or disagreeing cases.  [default: 0]",
)
@click.option("--show-scores", is_flag=True, help="Show bot and scores; they influence the labels.")
@click.option(
    "--without",
    multiple=True,
    type=PATH,
    metavar="SHEET",
    help="Leave out the cases of this earlier review sheet.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Seed of the random draw."
)
@click.option("--debug", is_flag=True, help="Log each step, without texts and secrets.")
def command(
    run: Path,
    output: Path | None,
    cases: int,
    metrics: str | None,
    raters: str | None,
    suspicious: float,
    show_scores: bool,
    without: tuple[Path, ...],
    seed: int,
    debug: bool,
) -> None:
    """Draw cases of a run at random and write a sheet in which people label them.

    RUN.json is a file that --json wrote. The cases are drawn from each bot and each third of its RQS. Give the filled
    sheet to --labels of rag-eval run. No judge is called.
    """
    from rag_eval.report.recorded import RecordedRun
    from rag_eval.report.review_sheet import Review, write_review
    from rag_eval.results.sampling import draw_sample
    from rag_eval.tables.input_files import check_is_file

    set_up_logging(debug)
    check_is_file(run)
    target = output or run.with_name(f"{run.stem}_review.xlsx")
    _check_target(target)
    recorded = RecordedRun.read(run)
    _refuse_without_texts(recorded)
    measures = _measures(recorded, metrics)
    sample = draw_sample(
        recorded.results,
        measures,
        cases,
        suspicious=suspicious,
        flags=recorded.facts.flags,
        drawn_before=_drawn_before(recorded, without),
        seed=seed,
    )
    review = Review(recorded.facts, recorded.results, sample, measures, _raters(raters), show_scores)
    if not sample.cases:
        raise InputError(
            f"{run.name}: no case is left to label"
            + ("; all are on the sheets that --without names" if without else "")
        )
    place = write_review(target, review)
    for line in _described(recorded.results, sample, cases):
        remark(line)
    for line in _advice(sample, recorded.results, suspicious):
        warn(line)
    remark(f"Review sheet: {place}")
    follow_up = ["rag-eval", str(run), "--report-only", "--labels", str(place), "-o", "labelled.xlsx"]
    remark(f"When the labels are complete, run: {shlex.join(follow_up)}")


def _check_target(target: Path) -> None:
    """A sheet may have labels in it, so none is replaced."""
    if target.suffix.lower() != ".xlsx":
        raise InputError(
            f"{target}: the review sheet is an Excel workbook; give it a name that ends in .xlsx"
        )
    if target.exists():
        raise InputError(f"{target}: already exists and may contain labels; choose another name with -o")


def _refuse_without_texts(run: "RecordedRun") -> None:
    if not any(result.case.query.strip() or result.case.response.strip() for result in run.results):
        raise InputError(f"{run.name}: contains no texts to label; use the JSON of a run with texts")


def _measures(run: "RecordedRun", named: str | None) -> list[str]:
    """The names that were given, or those of the default that the run has scores of. Raises InputError."""
    from rag_eval.results.sampling import scores_of

    known = [*(name for name in SCORE_LABELS if name != TOXICITY), *run.facts.criteria]
    scored = {name for result in run.results for name in scores_of(result, known)}
    available = [name for name in known if name in scored]
    if not available:
        raise InputError(f"{run.name}: has no scores, so there is nothing to compare labels with")
    if named is None:
        return [name for name in _DEFAULT_METRICS if name in scored] or available
    wanted = [_spelled(part, known) for part in named.split(",") if part.strip()]
    for name in wanted:
        if name == TOXICITY:
            raise InputError(
                "--metrics: toxicity belongs to the query; label it in a column Human_Toxicity of the input"
            )
        if name not in scored:
            what = (
                "has no scores in this run" if name in known else "is not a metric or criterion of this run"
            )
            raise InputError(f"--metrics: '{name}' {what}; choose from {', '.join(available)}")
    if not wanted:
        raise InputError(f"--metrics: names no metric; choose from {', '.join(available)}")
    return list(dict.fromkeys(wanted))


def _spelled(name: str, known: Sequence[str]) -> str:
    """As it is known, whatever the case and the separators."""
    plain = name.strip()
    same = plain.casefold().replace(" ", "_").replace("-", "_")
    return next((each for each in known if each == plain), same if same in (*known, TOXICITY) else plain)


def _raters(named: str | None) -> list[str]:
    if named is None:
        return ["Rater 1"]
    raters = [part.strip() for part in named.split(",") if part.strip()]
    if not raters:
        raise InputError("--raters: names nobody; write names separated by commas, such as anna,ben")
    if len({rater.casefold() for rater in raters}) < len(raters):
        raise InputError(f"--raters: a name occurs twice in '{named}'; give each person another name")
    if long := [rater for rater in raters if len(rater) > _LONGEST_NAME]:
        raise InputError(f"--raters: '{long[0][:60]}…' has more than {_LONGEST_NAME} characters; shorten it")
    return raters


_LONGEST_NAME = 100


def _drawn_before(run: "RecordedRun", paths: Sequence[Path]) -> frozenset[int]:
    """The lines of the run's cases that are on earlier sheets."""
    from rag_eval.tables.review_file import Fingerprint, ReviewFile

    files = [ReviewFile.read(path) for path in paths]
    drawn = Counter(case.fingerprint.key for file in files for case in file.cases.values())
    lines = []
    for line, result in enumerate(run.results if drawn else ()):
        key = Fingerprint.of(result.case).key
        if drawn[key]:
            drawn[key] -= 1
            lines.append(line)
    return frozenset(lines)


def _described(results: Sequence["CaseResult"], sample: "Sample", wanted: int) -> Iterator[str]:
    drawn = [case for case in sample.cases if case.stratum]
    aside = len(sample.cases) - len(drawn)
    part = f"bot and RQS (in {_PARTS[sample.parts]})" if sample.parts in _PARTS else "bot"
    of_bots = Counter(results[case.line].case.bot for case in drawn)
    counts = ", ".join(f"{bot} {of_bots[bot]:,}" for bot in sample.strata)
    few = f"; {wanted:,} were requested, but no more can be labelled"
    yield f"Cases to label: {len(sample.cases):,}{few if len(sample.cases) < wanted else ''}"
    yield f"Drawn at random by {part}: {counts}"
    if aside:
        yield f"Suspicious cases: {aside:,}. They are compared with the judge, but no corrected mean uses them."


def _advice(sample: "Sample", results: Sequence["CaseResult"], suspicious: float) -> Iterator[str]:
    """Which bots get no corrected mean of this many labels."""
    from rag_eval.results.human_alignment import FEWEST_LABELS

    drawn = Counter(results[case.line].case.bot for case in sample.cases if case.stratum)
    few = [bot for bot in sample.strata if drawn[bot] < FEWEST_LABELS]
    if few:
        yield (
            f"A corrected mean needs {FEWEST_LABELS} labels of a bot; {', '.join(few)} will have fewer. "
            f"About {ceil(FEWEST_LABELS * len(sample.strata) / (1 - suspicious))} cases are enough (--cases)."
        )

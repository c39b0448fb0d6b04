"""The command that draws cases of a run for people to label, and writes a sheet to label them in. Asks no judge."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_eval.cli.console import command_line, program_words, remark, set_up_logging, warn
from rag_eval.cli.options import options
from rag_eval.cli.parameters import PATH, NumberRange
from rag_eval.errors import InputError
from rag_eval.records import SCORE_LABELS, TOXICITY

if TYPE_CHECKING:
    from rag_eval.report.review_sheet import Review
    from rag_eval.results.recorded import RecordedRun
    from rag_eval.results.sampling import Drawn
    from rag_eval.tables.review_file import EarlierSheets, ReviewFile

_DEFAULT_METRICS = ("answer_correctness", "faithfulness", "answer_relevancy")
"""About the response; to label the context as well takes much longer."""
_PARTS = {3: "thirds", 2: "halves"}


@click.command("review", short_help="Draw cases for people to label.")
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
@click.option("--pairs", is_flag=True, help="Ask which of two answers is better.")
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
    help="Do not ask again for labels of this earlier sheet.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="NUMBER", help="Seed of the random draw."
)
@options("review")
def command(
    run: Path,
    output: Path | None,
    cases: int,
    pairs: bool,
    metrics: str | None,
    raters: str | None,
    suspicious: float,
    show_scores: bool,
    without: tuple[Path, ...],
    seed: int,
    debug: bool,
) -> None:
    """Draw cases of a run at random and write a sheet in which people label them.

    RUN.json is a file that --json wrote. The cases are drawn from each bot and each third of its RQS; with --pairs,
    queries of each two bots that the judge compared. Give the filled sheet to --labels of rag-eval run. No judge is
    called.
    """
    from rag_eval.cli.review_advice import advice
    from rag_eval.report.review_sheet import write_review
    from rag_eval.results.recorded import RecordedRun
    from rag_eval.tables.input_files import check_is_file
    from rag_eval.tables.review_file import ReviewFile

    set_up_logging(debug)
    check_is_file(run)
    target = output or run.with_name(f"{run.stem}_review.xlsx")
    _check_target(target)
    recorded = RecordedRun.read(run)
    _refuse_without_texts(recorded)
    files = [ReviewFile.read(path) for path in without]
    if pairs:
        _refuse_with_pairs(metrics, show_scores=show_scores)
    wanted = _Wanted(run, recorded, files, cases, suspicious, seed, _raters(raters))
    review, earlier, joined = (
        _drawn_pairs(wanted) if pairs else _drawn_cases(wanted, metrics=metrics, shows_scores=show_scores)
    )
    sheets = [path for path, file in zip(without, files, strict=True) if file in joined]
    if not review.to_label():
        remedy = f"compare the labels: {_comparison(run, sheets)}" if sheets else "leave out --without"
        raise InputError(
            f"{run.name}: no {review.noun} is left to label, since all that were drawn are on the sheets of --without; "
            f"{remedy}"
        )
    place = write_review(target, review)
    for line in _described(review, cases):
        remark(line)
    for line in (*advice(review, suspicious), *_doubts(review, earlier, joined)):
        warn(line)
    remark(f"Review sheet: {place}")
    remark(f"When the labels are complete, run: {_comparison(run, [*sheets, place])}")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be drawn."""

    path: Path
    run: "RecordedRun"
    files: Sequence["ReviewFile"]
    """Sheets of earlier draws."""
    cases: int
    suspicious: float
    """Share of them."""
    seed: int
    raters: Sequence[str]


_Drawn = tuple["Review", "EarlierSheets", Sequence["ReviewFile"]]
"""What is asked, what earlier sheets have, and those whose labels can be given together with the new ones."""


def _drawn_cases(wanted: _Wanted, *, metrics: str | None, shows_scores: bool) -> _Drawn:
    from rag_eval.report.review_sheet import Review
    from rag_eval.results.sampling import draw_sample
    from rag_eval.tables.review_file import EarlierSheets

    recorded = wanted.run
    measures = _measures(recorded, metrics)
    earlier = EarlierSheets.of(wanted.files, (result.case for result in recorded.results))
    lines = {(result.case.row, result.case.bot): line for line, result in enumerate(recorded.results)}
    sample = draw_sample(
        recorded.results,
        measures,
        wanted.cases,
        suspicious=wanted.suspicious,
        flags=recorded.facts.flags,
        drawn_before=frozenset(lines[place] for place in earlier.drawn),
        chosen_before=frozenset(lines[place] for place in earlier.chosen),
        strata_before=earlier.strata,
        seed=wanted.seed,
    )
    joined = earlier.joinable(sample.strata)
    labelled = {lines[place]: sheets for place, sheets in earlier.answered(joined).items()}
    before = _before(earlier, joined, lines)
    review = Review(
        recorded.facts, recorded.results, sample, measures, wanted.raters, shows_scores, labelled, before
    )
    return review, earlier, joined


def _drawn_pairs(wanted: _Wanted) -> _Drawn:
    from rag_eval.report.review_sheet import PairReview, as_shown
    from rag_eval.results.sampling import draw_pairs, pairs_of
    from rag_eval.tables.review_file import BETTER, EarlierSheets, case_of_pair

    recorded = wanted.run
    pairs = pairs_of(recorded.results)
    if not pairs:
        command = command_line(*program_words(), wanted.path, "--head-to-head", "--json", "pairs.json")
        raise InputError(
            f"{recorded.name}: --pairs needs pairs that a judge has compared, and the run has none; compare them with: "
            f"{command}"
        )
    shown = [case_of_pair(*as_shown(pair)) for pair in pairs]
    lines = {(case.row, case.bot): line for line, case in enumerate(shown)}
    earlier = EarlierSheets.of(wanted.files, shown)
    sample = draw_pairs(
        pairs,
        wanted.cases,
        suspicious=wanted.suspicious,
        drawn_before=frozenset(lines[place] for place in earlier.drawn),
        chosen_before=frozenset(lines[place] for place in earlier.chosen),
        seed=wanted.seed,
    )
    joined = earlier.joinable(sample.strata)
    labelled = {lines[place]: sheets for place, sheets in earlier.answered(joined).items()}
    review = PairReview(
        recorded.facts,
        recorded.results,
        sample,
        [BETTER],
        wanted.raters,
        labelled=labelled,
        before=_before(earlier, joined, lines),
        pairs=pairs,
    )
    return review, earlier, joined


def _before(
    earlier: "EarlierSheets", joined: Sequence["ReviewFile"], lines: Mapping[tuple[int, str], int]
) -> list["Drawn"]:
    """The random cases of earlier sheets, unless the labels of some sheet cannot be joined."""
    from rag_eval.results.sampling import Drawn

    usable = earlier.drawn if len(joined) == len(earlier.files) else ()
    return [Drawn(lines[place], "", None) for place in usable]


def _refuse_with_pairs(metrics: str | None, *, show_scores: bool) -> None:
    """Raises InputError for options of cases."""
    for option, is_given, why in (
        ("--metrics", metrics is not None, "a pair has one question: which answer is better"),
        ("--show-scores", show_scores, "the sheet of pairs must not show which bot gave an answer"),
    ):
        if is_given:
            raise InputError(f"{option}: cannot be used with --pairs, since {why}; remove one of them")


def _comparison(run: Path, sheets: Sequence[Path]) -> str:
    """The command that compares the labels of these sheets with the judge."""
    labels = [part for sheet in sheets for part in ("--labels", str(sheet))]
    return command_line(*program_words(), run, "--report-only", *labels, "-o", "labelled.xlsx")


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


def _described(review: "Review", wanted: int) -> Iterator[str]:
    from rag_eval.tables.review_file import bot_words, group_of

    sample, count = review.sample, len(review.to_label())
    drawn = [case for case in sample.cases if case.stratum]
    aside = len(sample.cases) - len(drawn)
    part = f"bot and RQS (in {_PARTS[sample.parts]})" if sample.parts in _PARTS else review.group
    of_bots = Counter(group_of(review.case_of(case).bot) for case in drawn)
    counts = ", ".join(f"{bot_words(bot)} {of_bots[bot]:,}" for bot in sample.strata)
    more = "are suspicious" if sample.left else "can be labelled"
    few = f"; {wanted:,} were requested, but no more {more}"
    yield f"{review.noun.capitalize()}s to label: {count:,}{few if len(sample.cases) < wanted else ''}"
    yield f"Drawn at random by {part}: {counts}"
    if aside:
        yield (
            f"Suspicious {review.noun}s: {aside:,}. They are compared with the judge, but no {review.estimate} uses "
            "them."
        )
    if count < len(sample.cases):
        names = ", ".join(dict.fromkeys(name for case in drawn for name in review.labelled_in(case)))
        yield (
            f"Labelled before, as suspicious cases: {len(sample.cases) - count:,} of those drawn at random. The labels "
            f"in {names} count and are not asked for again."
        )


def _doubts(review: "Review", earlier: "EarlierSheets", joined: Sequence["ReviewFile"]) -> Iterator[str]:
    """What earlier sheets cannot be used for."""
    for file in earlier.files:
        if file not in joined:
            yield (
                f"{file.name}: its labels cannot be compared together with those of this sheet, since its cases were "
                "drawn from other groups. Draw all sheets from one run, with the same --metrics."
            )
    blank = [file.name for file in joined if not any(file.questions.values())]
    cases = (review.case_of(drawn) for _, drawn in review.to_label())
    again = sum((case.row, case.bot) in earlier.chosen for case in cases)
    if again and blank:
        yield (
            f"Suspicious {review.noun}s of earlier sheets that are asked again: {again:,}, since {', '.join(blank)} "
            "has no labels. If the labels are in other copies, name those with --without instead."
        )

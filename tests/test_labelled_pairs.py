"""Pairs of responses that people compare: which are drawn, the blind sheet, and what the labels come to."""

import csv
import gzip
import json
import os
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from csv import DictReader
from dataclasses import replace
from itertools import combinations
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Run, azure, read_boxes, read_sheet
from fake_judge import FakeJudge
from files import write_table
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from report_cases import facts_of, result_of, write_output
from scipy import stats

from rag_eval.errors import InputError, TableError
from rag_eval.records import (
    ALL_PAIRS,
    MATCHING,
    Case,
    CaseResult,
    Outcome,
    PairVerdict,
    RunFacts,
    Score,
    Turn,
)
from rag_eval.report.json_file import JsonReport
from rag_eval.report.review_sheet import PairReview, write_review
from rag_eval.results.head_to_head import HeadToHead, PairTally
from rag_eval.results.labelled_pairs import LabelledPair, agreements, corrected_rate
from rag_eval.results.sampling import draw_pairs, pairs_of
from rag_eval.results.verdict import _not_confirmed, labelled_words, preference_words
from rag_eval.tables.review_file import BETTER, ReviewLabels, parse_label

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "docs" / "report.schema.json").read_text(encoding="utf-8")
)
_RECORDED = Path(os.environ.get("RAG_EVAL_FIXTURES", "/nowhere")).parent / "recorded" / "llmbar_pairs.csv.gz"
BOTS = ("Atlas", "Birch", "Cedar", "Dune")
VOICES = dict(zip(BOTS, ("alpha", "beta", "gamma", "delta"), strict=True))
"""What each bot's responses begin with: a sheet must not name the bots."""
ORDERS = {
    1.0: ("this", "this"),
    0.5: ("this", "tie"),
    0.0: ("tie", "tie"),
    -0.5: ("tie", "other"),
    -1.0: ("other",) * 2,
}
FLIP = ("this", "other")

Value = Callable[[int, str, str], float | PairVerdict]


def verdict(other: str, value: float, **more: Any) -> PairVerdict:
    return PairVerdict(
        other, Outcome.SCORED, value, more.pop("orders", ORDERS[value]), lengths=(40, 50), **more
    )


def run_of(rows: int, value: Value, bots: Sequence[str] = BOTS[:2], **case: Any) -> list[CaseResult]:
    """Each two bots compared in each row, with this value for the one to the left, or this verdict."""
    results = []
    for row in range(2, rows + 2):
        for number, bot in enumerate(bots):
            found = [(other, value(row, bot, other)) for other in bots[number + 1 :]]
            pairs = tuple(
                said if isinstance(said, PairVerdict) else verdict(other, said) for other, said in found
            )
            made = Case(row, bot, f"question {row}?", f"{VOICES[bot]} {row}", f"truth {row}", ("chunk",))
            score = Score.scored("faithfulness", 0.9 - 0.1 * number)
            results.append(replace(result_of(replace(made, **case), [score]), pairs=pairs))
    return results


def with_cases(results: Sequence[CaseResult], changes: Callable[[Case], dict[str, Any]]) -> list[CaseResult]:
    return [replace(each, case=replace(each.case, **changes(each.case))) for each in results]


def facts(bots: Sequence[str], rows: int) -> RunFacts:
    return facts_of(
        bots, rows, head_to_head=ALL_PAIRS, metrics=("faithfulness",), weights={"faithfulness": 1.0}
    )


def write_run(path: Path, results: Sequence[CaseResult]) -> Path:
    """The JSON of a run with these results."""
    bots = list(dict.fromkeys(result.case.bot for result in results))
    found = facts(bots, len({result.case.row for result in results}))
    return write_output(
        JsonReport(path, found, {"configuration": {}, "versions": {"python": "3", "rag-eval": "0"}}),
        results,
        found,
    )


def review_of(
    results: Sequence[CaseResult], count: int = 500, raters: Sequence[str] = ("anna",), **more: Any
) -> PairReview:
    pairs = pairs_of(results)
    bots = list(dict.fromkeys(result.case.bot for result in results))
    sample = draw_pairs(pairs, count, **more)
    return PairReview(facts(bots, 1), results, sample, [BETTER], raters, pairs=pairs)


Opinion = Callable[[int, str, str], Any]
"""Of a row, the bots of the first and of the second answer: the label."""


def rows_of(path: Path, sheet: str = "anna") -> list[tuple[int, int, str, str]]:
    """Line of the question, row of the input, and the bots of the first and of the second answer, pair by pair."""
    names = {voice: bot for bot, voice in VOICES.items()}
    found, shown = [], []
    for number, cells in enumerate(load_workbook(path)[sheet].iter_rows(values_only=True), 1):
        if str(cells[0]).endswith("answer") and not cells[4]:
            voice, row = str(cells[1]).split()
            shown.append((names[voice], int(row)))
        elif str(cells[4]).endswith(f"/{BETTER}"):
            (first, row), (second, _) = shown
            found.append((number, row, first, second))
            shown = []
    return found


def fill(
    path: Path, opinion: Opinion, sheet: str = "anna", target: Path | None = None, name: str = ""
) -> Path:
    """Choose labels as a person does, who reads the answers."""
    book = load_workbook(path)
    for line, row, first, second in rows_of(path, sheet):
        book[sheet].cell(line, 3).value = opinion(row, first, second)
    if name:
        book[sheet].cell(2, 3).value = name
    book.save(target or path)
    return target or path


def prefers(bot: str, *rows: int, otherwise: str = "same") -> Opinion:
    """Someone who prefers this bot in these rows, or in all of them."""

    def opinion(row: int, first: str, second: str) -> str:
        if rows and row not in rows:
            return otherwise
        return "first" if first == bot else "second" if second == bot else otherwise

    return opinion


def joined(paths: Sequence[Path], results: Sequence[CaseResult]) -> tuple[ReviewLabels, list[CaseResult]]:
    labels = ReviewLabels.read(paths)
    labels.join(
        (result.case for result in results), ((pair.one.case, pair.other.case) for pair in pairs_of(results))
    )
    return labels, [labels.applied(result) for result in results]


def compared(results: Sequence[CaseResult], choice: str = ALL_PAIRS) -> HeadToHead:
    tally = PairTally(list(dict.fromkeys(result.case.bot for result in results)), choice)
    for result in results:
        tally.add(result)
    return tally.head_to_head()


def people_of(found: HeadToHead, number: int = 0) -> LabelledPair:
    people = found.pairs[number].people
    assert people is not None
    return people


# The sample


def test_of_each_two_bots_queries_are_drawn_at_random_and_in_proportion() -> None:
    pairs = pairs_of(run_of(40, lambda *_: 1.0, BOTS[:3]))
    sample = draw_pairs(pairs, 30)
    assert Counter(pairs[drawn.line].bots for drawn in sample.cases) == dict.fromkeys(sample.strata, 10)
    assert {drawn.inclusion for drawn in sample.cases} == {0.25}
    assert len({drawn.line for drawn in sample.cases}) == 30
    assert draw_pairs(pairs, 30) == sample
    assert draw_pairs(pairs, 30, seed=1) != sample


def test_every_query_is_drawn_equally_often_whatever_the_judge_says() -> None:
    pairs = pairs_of(run_of(12, lambda row, *_: 1.0 if row < 5 else verdict("Birch", 0.0, orders=FLIP)))
    drawn = Counter(each.line for seed in range(600) for each in draw_pairs(pairs, 6, seed=seed).cases)
    assert set(drawn) == set(range(12))
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4


def test_pairs_without_a_judge_are_not_asked_and_a_repeated_query_is_asked_once() -> None:
    """Of eight rows, one pair needed no call, one failed, and three have the same query."""
    left_out = {
        3: PairVerdict("Birch", Outcome.SCORED, 0.0, reason="the two responses are the same"),
        4: PairVerdict("Birch", Outcome.FAILED, code="truncated"),
    }
    results = run_of(8, lambda row, *_: left_out.get(row, 1.0))
    results = with_cases(results, lambda case: {"query": "the same?"} if case.row in (5, 6, 7) else {})
    pairs = pairs_of(results)
    rows = [pairs[drawn.line].one.case.row for drawn in draw_pairs(pairs, 40).cases]
    assert sorted(rows) == [2, 5, 8, 9]
    assert [*draw_pairs(pairs, 40).strata.values()] != []
    with pytest.raises(InputError, match="no pair of the run was compared by the judge"):
        draw_pairs(pairs_of(run_of(3, lambda *_: left_out[4])), 40)


def test_controls_are_no_pairs() -> None:
    results = run_of(3, lambda *_: 1.0)
    control = PairVerdict("Atlas", Outcome.SCORED, 0.0, ("tie",))
    results[0] = replace(results[0], pairs=(*results[0].pairs, control))
    assert len(pairs_of(results)) == 3


def test_a_second_sample_is_of_pairs_that_were_not_drawn_and_knows_how_many_are_left() -> None:
    pairs = pairs_of(run_of(30, lambda *_: 1.0))
    first = draw_pairs(pairs, 12)
    drawn = frozenset(each.line for each in first.cases)
    second = draw_pairs(pairs, 13, drawn_before=drawn)
    assert drawn.isdisjoint(each.line for each in second.cases)
    assert [(len(each.cases), each.left) for each in (first, second)] == [(12, 18), (13, 5)]


def test_suspicious_pairs_are_outside_the_random_sample_those_that_differ_from_rqs_first() -> None:
    def value(row: int, one: str, other: str) -> PairVerdict:
        if row < 6:
            return verdict(other, -1.0, rqs_gap=row / 10)
        return verdict(other, 0.0, orders=FLIP) if row < 20 else verdict(other, 1.0, rqs_gap=0.1)

    pairs = pairs_of(run_of(60, value))
    sample = draw_pairs(pairs, 20, suspicious=0.25)
    odd = [drawn for drawn in sample.cases if not drawn.stratum]
    assert (len(sample.cases), len(odd), {drawn.inclusion for drawn in odd}) == (20, 5, {None})
    drawn = {each.line for each in sample.cases if each.stratum}
    wanted = [row - 2 for row in (5, 4, 3, 2, *range(6, 20)) if row - 2 not in drawn][:5]
    assert sorted(each.line for each in odd) == sorted(wanted)


def test_too_few_pairs_for_two_of_each_two_bots_are_an_error() -> None:
    with pytest.raises(
        InputError, match="--cases: 5 randomly drawn cases are too few for 3 pairs of bots; at least 6"
    ):
        draw_pairs(pairs_of(run_of(9, lambda *_: 1.0, BOTS[:3])), 5)


# The sheet


@pytest.mark.slow
def test_nothing_in_the_file_says_which_bot_gave_an_answer(tmp_path: Path) -> None:
    """Neither the hidden sheets nor the properties; and both orders occur."""
    path = write_review(tmp_path / "r.xlsx", review_of(run_of(40, lambda *_: 1.0, BOTS[:3])))
    with zipfile.ZipFile(path) as archive:
        text = " ".join(archive.read(name).decode("utf-8").casefold() for name in archive.namelist())
    assert not [bot for bot in (*BOTS, "answers.xlsx") if bot.casefold() in text]
    orders = Counter((first, second) for _, _, first, second in rows_of(path))
    assert all(8 < orders[pair] < 32 for one in combinations(BOTS[:3], 2) for pair in (one, one[::-1])), (
        orders
    )
    other = write_review(tmp_path / "s.xlsx", review_of(run_of(40, lambda *_: 1.0, BOTS[:3]), seed=3))
    assert {each[1:] for each in rows_of(path)} == {each[1:] for each in rows_of(other)}, "the order stays"


def test_the_sheet_shows_texts_and_a_list_of_labels(tmp_path: Path) -> None:
    results = run_of(2, lambda *_: 1.0, history=(Turn("user", "Hello?"),))
    results[1] = replace(results[1], case=replace(results[1].case, chunks=("other",)))
    results[0] = replace(results[0], case=replace(results[0].case, chunks=None))
    sheet = load_workbook(write_review(tmp_path / "r.xlsx", review_of(results)))
    cells = [[cell.value for cell in row] for row in sheet["anna"].iter_rows()]
    parts = [row[0] for row in cells[2:]]
    begin = next(index for index, row in enumerate(cells) if row[1] == "question 2?") - 1
    assert [row[0] for row in cells[begin : begin + 5]] == [
        "Earlier turns", "Query", "First answer", "Second answer", "Ground Truth",
    ]  # fmt: skip
    assert any(re.fullmatch("Chunk 1 of the (first|second)", str(part)) for part in parts)
    assert "Chunk 1" in parts, "shared chunks are shown once"
    rules = sheet["anna"].data_validations.dataValidation
    assert {rule.type for rule in rules} == {"list"}
    offered = [
        row[0].value for row in sheet["Instructions"][rules[0].formula1.partition("!")[2].replace("$", "")]
    ]
    assert offered == ["first", "same", "second", "cannot say"]
    assert sheet["anna"].protection.sheet


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("first First FIRST 1 1.0 1st A a left erste Erster première", 1.0),
        ("same tie Equal draw neither gleich unentschieden égal", 0.5),
        ("second Second. 2 2.0 B right zweite deuxième", 0.0),
    ],
)
def test_honest_words_are_labels(words: str, value: float) -> None:
    assert [parse_label(word, BETTER) for word in words.split()] == [value] * len(words.split())
    assert parse_label("Cannot say", BETTER) is None


@pytest.mark.parametrize("word", ["3", "0", "0.5", "both bad", "Atlas", "yes", "1 fully", "-1"])
def test_other_words_are_no_labels(word: str) -> None:
    with pytest.raises(ValueError, match=f"'{word}' is not a label; expected first, same or second"):
        parse_label(word, BETTER)


# From labels to pairs


@pytest.mark.slow
def test_labels_find_their_pairs_in_either_order(tmp_path: Path) -> None:
    results = run_of(30, lambda *_: 1.0, BOTS[:3])
    path = fill(write_review(tmp_path / "r.xlsx", review_of(results)), prefers("Birch"))
    labels, found = joined([path], results)
    assert labels.warnings == []
    said = {(result.case.bot, pair.other): Counter[float]() for result in results for pair in result.pairs}
    for result in found:
        for pair in result.pairs:
            said[result.case.bot, pair.other][pair.labels["anna"]] += 1
            assert pair.is_drawn
    assert said == {("Atlas", "Birch"): {-1: 30}, ("Atlas", "Cedar"): {0: 30}, ("Birch", "Cedar"): {1: 30}}


def test_suspicious_pairs_are_compared_with_the_judge_and_in_no_win_rate(tmp_path: Path) -> None:
    results = run_of(40, lambda row, *_: verdict("Birch", 0.0, orders=FLIP) if row % 2 else 1.0)
    review = review_of(results, 20, suspicious=0.5)
    random_ones = sum(bool(drawn.stratum) for drawn in review.sample.cases)
    path = fill(write_review(tmp_path / "r.xlsx", review), prefers("Atlas"))
    for sheet in (path, as_csv(path, tmp_path / "anna.csv")):
        people = people_of(compared(joined([sheet], results)[1]))
        assert (people.queries, people.agreement.count) == (random_ones, 20)
        assert random_ones < 20


def test_a_pair_whose_answers_were_edited_is_named_and_others_count(tmp_path: Path) -> None:
    results = run_of(6, lambda *_: 1.0)
    path = fill(write_review(tmp_path / "r.xlsx", review_of(results)), prefers("Birch"))
    results[2] = replace(results[2], case=replace(results[2].case, response="edited"))
    labels, found = joined([path], results)
    assert labels.warnings[:2] == [
        "r.xlsx: labels of 1 of 6 pairs are not used:",
        "the pair in row 3: the response was changed after the review; label the case again",
    ]
    assert sum(bool(pair.labels) for result in found for pair in result.pairs) == 5


def test_pairs_whose_context_was_edited_are_named(tmp_path: Path) -> None:
    """The responses of a row have one context."""
    before, now = ("Opens at 9.",), ("Opens at 10.",)
    results = with_cases(run_of(6, lambda *_: 1.0), lambda case: {"chunks": before})
    path = fill(write_review(tmp_path / "r.xlsx", review_of(results)), prefers("Birch"))
    labels, _ = joined([path], with_cases(results, lambda case: {"chunks": now if case.row > 5 else before}))
    named = {line.partition(":")[0] for line in labels.warnings if ": the chunks were changed" in line}
    assert named == {"the pair in row 6", "the pair in row 7"}


def as_csv(path: Path, target: Path, columns: Sequence[int] = range(5), separator: str = ",") -> Path:
    """The sheet of a rater, saved as text, with these columns."""
    sheet = load_workbook(path)["anna"]
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        for cells in sheet.iter_rows(values_only=True):
            writer.writerow(["" if cells[each] is None else cells[each] for each in columns])
    return target


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "separator"), [(range(5), ","), ((4, 2), ";")])
def test_a_sheet_saved_as_text_says_the_same(tmp_path: Path, columns: Sequence[int], separator: str) -> None:
    results = run_of(30, lambda *_: 1.0, BOTS[:3])
    review = review_of(results, 60, suspicious=0.2)
    path = fill(write_review(tmp_path / "r.xlsx", review), prefers("Birch", *range(2, 20)))
    text = as_csv(path, tmp_path / "anna.csv", columns, separator)
    _, of_book = joined([path], results)
    _, of_text = joined([text], results)
    assert of_text == of_book
    labels, of_both = joined([path, text], results)
    assert (of_both, labels.warnings) == (of_book, []), "the same labels twice are the same labels"


def test_a_text_without_keys_or_with_wrong_ones_is_refused_by_name(tmp_path: Path) -> None:
    path = write_review(tmp_path / "r.xlsx", review_of(run_of(5, lambda *_: 1.0)))
    fill(path, prefers("Birch"))
    with pytest.raises(
        TableError, match=r"a\.csv: has no column 'Key'; save a rater's sheet as CSV with all"
    ):
        ReviewLabels.read([as_csv(path, tmp_path / "a.csv", (0, 1, 2, 3))])
    lines = as_csv(path, tmp_path / "b.csv").read_text(encoding="utf-8")
    (tmp_path / "b.csv").write_text(re.sub("h[0-9a-f]{16}", "17", lines, count=1), encoding="utf-8")
    with pytest.raises(
        TableError, match=r"b\.csv, row \d+, column E: '17.*' is not the key of a pair; copy the keys"
    ):
        ReviewLabels.read([tmp_path / "b.csv"])
    (tmp_path / "c.csv").write_text(lines.replace("second", "the other"), encoding="utf-8")
    with pytest.raises(
        TableError, match=r"c\.csv, row \d+, column 'Your label': 'the other' is not a label; expected first"
    ):
        ReviewLabels.read([tmp_path / "c.csv"])


def test_labels_that_are_none_are_named_with_their_place(tmp_path: Path) -> None:
    path = write_review(tmp_path / "r.xlsx", review_of(run_of(5, lambda *_: 1.0)))
    fill(path, lambda row, *_: "better" if row == 3 else "first")
    line = next(each[0] for each in rows_of(path) if each[1] == 3)
    told = f"r.xlsx, sheet 'anna', row {line}, column C: 'better' is not a label; expected first, same or second;"
    with pytest.raises(TableError, match=re.escape(told)):
        ReviewLabels.read([path])


def test_a_half_filled_sheet_counts_and_says_how_far_it_is(tmp_path: Path) -> None:
    results = run_of(8, lambda *_: 1.0)
    path = write_review(tmp_path / "r.xlsx", review_of(results))
    order = [each[1] for each in rows_of(path)]
    fill(path, lambda row, *_: "first" if row in order[:3] else None)
    labels, found = joined([path], results)
    assert labels.warnings == [
        "r.xlsx, sheet 'anna': 3 of 8 pairs are labelled; the rest counts as not labelled."
    ]
    assert people_of(compared(found)).queries == 3


def test_a_person_who_says_two_things_is_an_error(tmp_path: Path) -> None:
    """In two files, the second drawn with another seed; the same label twice is not."""
    results = run_of(8, lambda *_: 1.0)
    one = fill(write_review(tmp_path / "one.xlsx", review_of(results)), prefers("Birch"))
    two = fill(write_review(tmp_path / "two.xlsx", review_of(results, seed=5)), prefers("Birch"))
    _, found = joined([one, two], results)
    assert people_of(compared(found)).win_rate == 0.0
    fill(two, prefers("Birch", *range(3, 10), otherwise="same"))
    with pytest.raises(TableError) as caught:
        ReviewLabels.read([one, two])
    told = str(caught.value)
    assert re.search(
        r"two\.xlsx, sheet 'anna', row \d+, column C: anna says same for Better answer of the pair in row 2, but "
        r"(first|second) in one\.xlsx, sheet 'anna', row \d+, column C; correct one of them",
        told,
    ), told


def test_labels_of_more_pairs_than_the_run_has_give_no_win_rate(tmp_path: Path) -> None:
    results = run_of(30, lambda *_: 1.0)
    path = fill(write_review(tmp_path / "r.xlsx", review_of(results[:50])), prefers("Birch"))
    labels, found = joined([path], results)
    assert labels.warnings == [
        "Atlas and Birch: the labelled pairs were drawn from 25 pairs, and this run has 30; their win rate is unknown. "
        "Give the JSON that the sheet was made from as INPUT with --report-only, or create a review sheet from this "
        "run."
    ]
    people = people_of(compared(found))
    assert (people.win_rate, people.queries, people.agreement.count) == (None, 0, 25)
    assert preference_words(people) == "no random labels"
    assert (
        "Labels: no corrected win rate for Atlas and Birch; none of the labelled pairs was drawn at random"
        in " ".join(labelled_words(compared(found)))
    )


# Figures


def said(judge: float, *people: float) -> tuple[tuple[str, str], float, Mapping[str, float]]:
    return ("A", "B"), judge, {f"rater {number}": value for number, value in enumerate(people)}


def test_agreement_is_that_of_the_formula() -> None:
    """Shares and Cohen's kappa from a cross table (pandas)."""
    draw = random.Random(4)
    cases = [
        said(draw.choice([1, 0, -1]), *(draw.choice([1, 1, 0, -1]) for _ in range(2))) for _ in range(80)
    ]
    found = {each.raters: each for each in agreements(cases)}
    assert [*found] == [("judge", "people"), *combinations(("judge", "rater 0", "rater 1"), 2)]
    table = pd.DataFrame([{"judge": judge, **labels} for _, judge, labels in cases])
    table["people"] = table["rater 0"].where(table["rater 0"] == table["rater 1"])
    for names, each in found.items():
        both = table[[*names]].dropna()
        one, other = both[names[0]], both[names[1]]
        assert each.count == len(both)
        assert each.kappa.raw == pytest.approx((one == other).mean())
        assert each.kappa.kappa == pytest.approx(kappa_of(one, other))
        sure = both[(one != 0) & (other != 0)]
        assert (each.decided.count, each.decided.of) == ((sure[names[0]] == sure[names[1]]).sum(), len(sure))


def kappa_of(one: "pd.Series[Any]", other: "pd.Series[Any]") -> float:
    shares = pd.crosstab(one, other, normalize=True)
    expected = sum(
        shares.loc[each].sum() * shares[each].sum() for each in shares.index if each in shares.columns
    )
    return float(((one == other).mean() - expected) / (1 - expected))


def test_divided_people_are_no_third_opinion() -> None:
    first, *_ = agreements([said(1, 1, -1), said(1, 1, 0), said(1, 1, 1), said(0, -1, -1)])
    assert (first.count, first.kappa.raw) == (2, 0.5)


def test_the_win_rate_of_people_is_over_the_random_sample_and_repeats_count_once() -> None:
    results = run_of(
        20, lambda row, *_: verdict("Birch", 1.0, labels={"anna": 1.0, "ben": 0.0}, is_drawn=row < 12)
    )
    results = with_cases(results, lambda case: {"query": "the same?"} if case.row < 4 else {})
    people = people_of(compared(results))
    assert (people.queries, people.wins, people.ties, people.win_rate) == (9, 0, 9, 0.75)
    assert (people.judge_win_rate, people.agreement.count) == (1.0, 0)
    turned = people.mirrored()
    assert (turned.win_rate, turned.judge_win_rate, turned.losses, turned.ties) == (0.25, 0.0, 0, 9)
    assert turned.mirrored() == people


def test_what_people_prefer_is_tested_as_what_the_judge_prefers() -> None:
    clear = run_of(30, lambda *_: verdict("Birch", 0.0, labels={"anna": 1.0}, is_drawn=True))
    even = run_of(30, lambda row, *_: verdict("Birch", 0.0, labels={"anna": row % 3 - 1.0}, is_drawn=True))
    assert people_of(compared(clear)).is_significant
    assert not people_of(compared(even)).is_significant
    assert not people_of(compared(clear, MATCHING)).is_significant
    interval = people_of(compared(even)).interval
    assert interval is not None
    assert interval.low < 0.5 < interval.high


def test_parts_come_to_the_same_as_the_whole() -> None:
    draw = random.Random(5)
    results = run_of(
        60,
        lambda _, one, other: verdict(
            other,
            draw.choice([1.0, 0.5, 0.0, -1.0]),
            labels={rater: draw.choice([1.0, 0.0, -1.0]) for rater in ("anna", "ben")}
            if draw.random() < 0.6
            else {},
            is_drawn=True,
        ),
        BOTS[:3],
    )
    whole, parts = PairTally(BOTS[:3], ALL_PAIRS), [PairTally(BOTS[:3], ALL_PAIRS) for _ in range(2)]
    for number, result in enumerate(results):
        whole.add(result)
        parts[number >= 99].add(result)
    merged = PairTally(BOTS[:3], ALL_PAIRS)
    for part in parts:
        merged.merge(json.loads(json.dumps(part.state())))
    assert merged.head_to_head() == whole.head_to_head()


def test_the_corrected_win_rate_is_that_of_prediction_powered_inference() -> None:
    """One stratum without settled queries: trust by least squares, and the mean of the residuals."""
    draw = random.Random(6)
    judge = {f"q{number}": draw.choice([0.0, 0.25, 0.5, 1.0]) for number in range(200)}
    people = {key: draw.choice([value, value, 0.0, 1.0]) for key, value in [*judge.items()][:50]}
    found = corrected_rate(judge, people, judge.keys())
    assert found is not None
    human, scores = pd.Series(people), pd.Series({key: judge[key] for key in people})
    trust = human.cov(scores) / scores.var()
    assert found.value == pytest.approx(trust * pd.Series(judge).mean() + (human - trust * scores).mean())
    assert (found.labelled, found.count) == (50, 200)
    assert corrected_rate(judge, dict([*people.items()][:19]), judge.keys()) is None


def test_settled_queries_count_in_the_corrected_win_rate_as_they_are() -> None:
    """Half of the queries have an empty response of the second bot; people are asked about the others only."""
    judge = {f"q{number}": 1.0 if number < 100 else 0.5 * (number % 2) for number in range(200)}
    people = {key: 0.5 if number % 3 else 0.0 for number, key in enumerate(judge) if number >= 140}
    found = corrected_rate(judge, people, [key for number, key in enumerate(judge) if number >= 100])
    assert found is not None
    assert 0.5 + 0.5 * 0.2 < found.value < 0.5 + 0.5 * 0.5
    assert (found.labelled, found.count) == (60, 200)


def test_the_corrected_win_rate_counts_a_conversation_as_one() -> None:
    """What people say differs by conversation: the interval is wider than without ids; three of them have none."""
    draw = random.Random(8)
    values = [draw.choice([1.0, -1.0]) for _ in range(40) for _ in range(4)]
    judge = [value if draw.random() < 0.7 else 0.0 for value in values]
    run = labelled([values[row // 4 * 4] for row in range(160)], judge)
    found: dict[int, LabelledPair] = {}
    for size in (1, 4, 54):
        told = compared(
            with_cases(run, lambda case, size=size: {"conversation": f"c{(case.row - 2) // size}"})
        )
        found[size] = people_of(told)
        words = "; fewer than 5 labelled conversations are too few for an interval."
        assert any(each.endswith(words) for each in labelled_words(told)) is (size == 54)
    one, four = (found[size].corrected for size in (1, 4))
    plain = people_of(compared(run)).corrected
    assert one is not None
    assert four is not None
    assert one == plain
    assert four.value == pytest.approx(one.value)
    assert four.interval.high - four.interval.low > 1.3 * (one.interval.high - one.interval.low)
    assert found[54].corrected is None
    assert found[54].win_rate == found[4].win_rate


@pytest.mark.parametrize("conversations", [4, 5])
def test_five_labelled_conversations_are_enough_for_a_corrected_win_rate(conversations: int) -> None:
    judge = {f"q{number}": number % 2.0 for number in range(40)}
    people = {key: (number % 3) / 2 for number, key in enumerate(judge) if number < 20}
    groups = {key: number % conversations if key in people else number for number, key in enumerate(judge)}
    assert (corrected_rate(judge, people, judge.keys(), groups) is None) is (conversations == 4)


def labelled(values: Sequence[float], judge: Sequence[float] = ()) -> list[CaseResult]:
    """A run whose rows have these labels, all of them drawn, and these values of the judge, by default ties."""
    return run_of(
        len(values),
        lambda row, *_: verdict(
            "Birch", judge[row - 2] if judge else 0.0, labels={"anna": values[row - 2]}, is_drawn=True
        ),
    )


@pytest.mark.slow
def test_intervals_of_a_biased_judge_hold_about_as_often_as_they_say() -> None:
    """The judge prefers the first bot too often; 40 of 150 queries are labelled, 20 need no judge. 300 runs."""
    draw = random.Random(7)
    holds = {"people": 0, "corrected": 0}
    runs = 300
    for _ in range(runs):
        judge, truth = {}, {}
        for number in range(150):
            key = f"q{number}"
            truth[key] = draw.choices([1.0, 0.5, 0.0], [0.4, 0.2, 0.4])[0]
            judge[key] = truth[key] if draw.random() < 0.7 else draw.choice([1.0, 1.0, 0.5])
            if number < 20:
                judge[key] = truth[key] = draw.choice([1.0, 0.0])
        asked = [key for key in judge if int(key[1:]) >= 20]
        people = {key: truth[key] for key in draw.sample(asked, 40)}
        corrected = corrected_rate(judge, people, asked)
        assert corrected is not None
        holds["corrected"] += corrected.interval.low <= 0.5 <= corrected.interval.high
        interval = people_of(compared(labelled([2 * rate - 1 for rate in people.values()]))).interval
        assert interval is not None
        holds["people"] += interval.low <= 0.5 <= interval.high
    assert 0.92 < holds["corrected"] / runs < 0.98, holds
    assert 0.92 < holds["people"] / runs < 0.985, holds


# The commands


def judged_like(value: Callable[[int], float]) -> Value:
    return lambda row, one, other: value(row)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The JSON of a run of 60 rows: the judge prefers Atlas in 40 of them, and Birch in 10."""
    return write_run(
        tmp_path / "run.json",
        run_of(60, judged_like(lambda row: 1.0 if row < 42 else -1.0 if row < 52 else 0.0)),
    )


def sheet_by(rag_eval: Run, path: str, *words: object, raters: str = "anna") -> Any:
    """A sheet of pairs of `recorded`."""
    return rag_eval("review", "run.json", "--pairs", "-o", path, "--raters", raters, *words)


@pytest.mark.slow
def test_from_a_run_to_the_win_rate_of_people(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    made = sheet_by(rag_eval, "review.xlsx", "--cases", "50", raters="anna,ben")
    assert made.code == 0, made.err
    assert "Pairs to label: 50" in made.out
    assert "Drawn at random by pair of bots: Atlas and Birch 50" in made.out
    draw = random.Random(8)
    minds = {row: draw.choice(["Atlas", "Atlas", "Birch", ""]) for row in range(2, 62)}
    other = {row: mind if row % 5 else "Birch" for row, mind in minds.items()}
    for sheet, of_rater in (("anna", minds), ("ben", other)):
        fill(
            tmp_path / "review.xlsx",
            lambda row, first, second, of=of_rater: {first: 1, second: "B"}.get(of[row], "tie"),
            sheet,
        )
    words = ("run.json", "--report-only", "--labels", "review.xlsx", "-o", "l.xlsx", "--json", "l.json")
    ended = run_cli(*words, "--csv", "csv", "--html", "l.html")
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "l.json").read_text(encoding="utf-8"))
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []
    rows = [each[1] for each in rows_of(tmp_path / "review.xlsx")]
    table = pd.DataFrame({"anna": pd.Series(minds), "ben": pd.Series(other)}).loc[rows]
    rates = table.apply(lambda column: column.map({"Atlas": 1.0, "": 0.5, "Birch": 0.0}))
    (pair,) = document["head_to_head"]["pairs"]
    people = pair["people"]
    assert people["queries"] == 50
    assert people["win_rate"] == pytest.approx(rates.mean(axis=1).mean())
    assert people["wins"] == (rates.mean(axis=1) == 1).sum()
    agreement = {tuple(each["raters"]): each for each in document["head_to_head"]["agreements"]}
    assert agreement["anna", "ben"]["kappa"]["raw"] == pytest.approx((table["anna"] == table["ben"]).mean())
    assert agreement["anna", "ben"]["kappa"]["kappa"] == pytest.approx(kappa_of(table["anna"], table["ben"]))
    assert people["corrected"]["labelled"] == 50
    line, _ = read_sheet(tmp_path / "l.xlsx", "Human Preferences")[:2]
    assert line["Human Win Rate"] == pytest.approx(people["win_rate"])
    assert line["Human Win Rate 95 % low"] == pytest.approx(people["interval"]["low"])
    assert line["Labelled Queries"] == 50
    assert line["Corrected Win Rate"] == pytest.approx(people["corrected"]["value"])
    told = f"Labels: anna and ben prefer the same in {(table['anna'] == table['ben']).mean():.0%} of 50 pairs"
    assert told in ended.out
    assert told in (tmp_path / "l.html").read_text(encoding="utf-8")
    header = (tmp_path / "csv" / "human-preferences.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert "Human Win Rate" in header
    pairs = {each["Row"]: each for each in read_sheet(tmp_path / "l.xlsx", "Pairs")}
    agreed = [row for row in rows if minds[row] == other[row] == "Birch" and row < 42]
    assert agreed
    assert {(pairs[row]["Human"], pairs[row]["Differs from Human"]) for row in agreed} == {("Birch", "YES")}
    assert {pairs[row]["Human"] for row in pairs if row not in rows} == {None}
    # A report made from that JSON says the same without the sheet.
    assert run_cli("l.json", "--report-only", "-o", "again.xlsx", "-q").code == 0
    again, first = (read_sheet(tmp_path / name, "Human Preferences") for name in ("again.xlsx", "l.xlsx"))
    assert again == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "answer", "told"),
    [
        (
            12,
            lambda row, first, second: "first" if row % 2 else "second",
            "Labels: a corrected win rate needs 20 labelled queries of two bots; too few for Atlas and Birch (12).",
        ),
        (
            30,
            prefers("Atlas"),
            "Labels: no corrected win rate for Atlas and Birch (30); all labels say the same, or the judge failed on "
            "too many of these queries.",
        ),
        (40, lambda row, first, second: "first" if row % 2 else "second", ""),
    ],
)
def test_an_empty_corrected_win_rate_is_explained(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path, count: int, answer: Opinion, told: str
) -> None:
    """Below the table of the sheet, on the page and in the terminal."""
    sheet_by(rag_eval, "review.xlsx", "--cases", count)
    fill(tmp_path / "review.xlsx", answer)
    labels = ("--report-only", "--labels", "review.xlsx")
    ended = run_cli("run.json", *labels, "-o", "l.xlsx", "--html", "l.html")
    assert ended.code == 0, ended.err
    boxes = read_boxes(tmp_path / "l.xlsx")
    page = (tmp_path / "l.html").read_text(encoding="utf-8")
    line = read_sheet(tmp_path / "l.xlsx", "Human Preferences")[0]
    assert (line["Corrected Win Rate"] is None) is bool(told)
    if told:
        assert told in boxes
        assert told in page
        assert told in " ".join(ended.out.split())
    else:
        assert not [each for each in (boxes, page, ended.out) if "corrected win rate" in str(each)]


@pytest.mark.slow
def test_what_people_clearly_prefer_is_in_the_verdict(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    sheet_by(rag_eval, "review.xlsx", "--cases", "40")
    words = ("run.json", "--report-only", "--labels", "review.xlsx", "--json", "l.json", "--markdown", "l.md")
    fill(tmp_path / "review.xlsx", prefers("Birch"))
    ended = run_cli(*words, "-o", "l.xlsx")
    told = "Annotators prefer Birch in 100% of 40 labelled queries (95% CI "
    assert told in ended.out
    assert told in (tmp_path / "l.md").read_text(encoding="utf-8")
    lines = json.loads((tmp_path / "l.json").read_text(encoding="utf-8"))["leaderboard"]["verdict_lines"]
    assert told in lines["side_by_side"]
    fill(
        tmp_path / "review.xlsx", lambda row, first, second: ["first", "second"][(first == "Birch") ^ row % 2]
    )
    ended = run_cli(*words, "-o", "m.xlsx")
    assert ended.code == 0
    assert "Annotators prefer" not in ended.out


@pytest.mark.slow
def test_as_many_pairs_as_are_advised_are_enough(rag_eval: Run, tmp_path: Path) -> None:
    """Of bots with few pairs, all must be drawn: the advice is for the smallest that can have 20 labels."""
    compared_to = {("Atlas", "Birch"): 140, ("Atlas", "Cedar"): 25, ("Birch", "Cedar"): 12}
    failed = PairVerdict("", Outcome.FAILED, reason="no reply", code="unreadable")
    run = run_of(
        140,
        lambda row, one, other: (
            (1.0 if row % 3 else -1.0) if row < 2 + compared_to[one, other] else replace(failed, other=other)
        ),
        BOTS[:3],
    )
    write_run(tmp_path / "run.json", run)
    words = ("review", "run.json", "--pairs", "-o")
    ended = rag_eval(*words, "few.xlsx", "--cases", "40")
    assert ended.code == 0
    advised = ceil(20 * (140 + 25 + 12) / 25)
    impossible = (
        "A win rate needs 20 labels of a pair of bots. Too few pairs can be labelled: Birch and Cedar 12."
    )
    assert ended.err.splitlines() == [
        f"rag-eval: {impossible}",
        "rag-eval: A win rate needs 20 labels of a pair of bots; Atlas and Cedar will have fewer. About "
        f"{advised} pairs are enough (--cases).",
    ]
    ended = rag_eval(*words, "enough.xlsx", "--cases", f"{advised}")
    assert (ended.code, ended.err) == (0, f"rag-eval: {impossible}\n")
    assert "will have fewer" in rag_eval(*words, "less.xlsx", "--cases", f"{advised - 8}").err


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4, 5, 30])
def test_too_few_conversations_for_a_corrected_win_rate_are_told_before_anybody_labels(
    rag_eval: Run, run_cli: Run, tmp_path: Path, count: int
) -> None:
    """Whoever is told so would have labelled in vain, and nobody else is told."""
    made = run_of(60, judged_like(lambda row: 1.0 if row % 3 else -1.0))
    write_run(tmp_path / "run.json", with_cases(made, lambda case: {"conversation": f"c{case.row % count}"}))
    ended = sheet_by(rag_eval, "sheet.xlsx", "--cases", "40")
    told = (
        "rag-eval: A win rate needs 5 conversations, however many labels there are. "
        f"Too few: Atlas and Birch {count}.\n"
    )
    assert (ended.code, ended.err) == (0, told if count < 5 else "")
    fill(tmp_path / "sheet.xlsx", prefers("Atlas", *range(2, 45)))
    labels = ("--report-only", "--labels", "sheet.xlsx", "-o", "labelled.xlsx", "--json", "labelled.json")
    assert run_cli("run.json", *labels).code == 0
    (pair,) = json.loads((tmp_path / "labelled.json").read_text())["head_to_head"]["pairs"]
    assert (pair["people"]["corrected"] is None) == (count < 5)


@pytest.mark.slow
def test_a_second_sheet_draws_other_pairs_and_both_are_read_together(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    sheet_by(rag_eval, "one.xlsx", "--cases", "25")
    made = sheet_by(rag_eval, "two.xlsx", "--cases", "25", "--without", "one.xlsx")
    assert made.code == 0, made.err
    rows = [{each[1] for each in rows_of(tmp_path / name)} for name in ("one.xlsx", "two.xlsx")]
    assert (len(rows[0]), len(rows[1]), rows[0] & rows[1]) == (25, 25, set())
    for name in ("one.xlsx", "two.xlsx"):
        fill(tmp_path / name, prefers("Atlas"))
    labels = ["--labels", "one.xlsx", "--labels", "two.xlsx"]
    assert run_cli("run.json", "--report-only", *labels, "-o", "l.xlsx", "-q").code == 0
    assert read_sheet(tmp_path / "l.xlsx", "Human Preferences")[0]["Labelled Queries"] == 50


@pytest.mark.parametrize("words", [("--metrics", "faithfulness"), ("--show-scores",)])
def test_options_of_cases_are_refused(rag_eval: Run, recorded: Path, words: tuple[str, ...]) -> None:
    ended = rag_eval("review", "run.json", "--pairs", *words)
    assert ended.code == 2
    assert f"{words[0]}: cannot be used with --pairs" in ended.err


@pytest.mark.slow
def test_a_run_that_compares_nothing_is_refused(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    """By the review, and by --labels: there, before anything is paid."""
    plain = tmp_path / "my runs" / "plain.json"
    plain.parent.mkdir()
    write_run(plain, [replace(each, pairs=()) for each in run_of(5, lambda *_: 1.0)])
    ended = rag_eval("review", "my runs/plain.json", "--pairs")
    assert ended.code == 2
    assert (
        "plain.json: --pairs needs pairs that a judge has compared, and the run has none; compare"
        in ended.err
    )
    assert "with: rag-eval 'my runs/plain.json' --head-to-head --json pairs.json\n" in ended.err
    plain.rename(tmp_path / "plain.json")
    sheet_by(rag_eval, "r.xlsx")
    fill(tmp_path / "r.xlsx", prefers("Atlas"))
    ended = run_cli("plain.json", "--report-only", "--labels", "r.xlsx", "-o", "l.xlsx")
    assert ended.code == 2
    assert "r.xlsx: has labels of pairs, and this run compares none; add --head-to-head" in ended.err


def test_labels_of_another_run_are_an_error(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    sheet_by(rag_eval, "r.xlsx")
    fill(tmp_path / "r.xlsx", prefers("Atlas"))
    others = run_of(5, lambda *_: 1.0)
    others = with_cases(others, lambda case: {"row": case.row + 900, "query": f"other {case.row}"})
    write_run(tmp_path / "other.json", others)
    ended = run_cli("other.json", "--report-only", "--labels", "r.xlsx", "-o", "l.xlsx")
    assert ended.code == 2
    assert "r.xlsx: none of the labelled pairs is in the input" in ended.err
    assert "this run compares no such pair" in ended.err


@pytest.mark.slow
def test_a_run_with_labels_makes_the_same_calls_and_says_what_its_json_says(
    rag_eval: Run, run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    lines = [[f"Question {row}?", "Paris", f"alpha {row}", f"beta {row} Paris"] for row in range(2, 32)]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_Atlas", "Bot_Birch"], *lines)
    words = ("in.xlsx", "--prompts", "single", "--head-to-head", "--fresh")
    assert run_cli(*words, "-o", "r.xlsx", "--json", "r.json", **azure(judge)).code == 0
    requests = sorted(request.prompt for request in judge.requests)
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert "has_pair_labels" not in text
    assert not any(
        "labels" in pair or "is_drawn" in pair for case in json.loads(text)["cases"] for pair in case["pairs"]
    )
    assert "agreements" not in json.loads(text)["head_to_head"]
    rag_eval("review", "r.json", "--pairs", "-o", "review.xlsx", "--raters", "anna")
    book = load_workbook(tmp_path / "review.xlsx")
    for row in book["anna"].iter_rows():
        if str(row[4].value).endswith(f"/{BETTER}"):
            row[2].value = "first"
    book.save(tmp_path / "review.xlsx")
    judge.requests.clear()
    ended = run_cli(*words, "-o", "s.xlsx", "--json", "s.json", "--labels", "review.xlsx", **azure(judge))
    assert ended.code == 0, ended.err
    assert sorted(request.prompt for request in judge.requests) == requests
    assert run_cli("r.json", "--report-only", "-o", "t.xlsx", "--labels", "review.xlsx", "-q").code == 0
    found = read_sheet(tmp_path / "s.xlsx", "Human Preferences")
    assert found[0]["Labelled Queries"] == 30
    assert found == read_sheet(tmp_path / "t.xlsx", "Human Preferences")
    assert read_sheet(tmp_path / "s.xlsx", "Pairs") == read_sheet(tmp_path / "t.xlsx", "Pairs")


@pytest.mark.slow
def test_labels_stay_when_another_judge_compares_the_pairs(
    rag_eval: Run, run_cli: Run, recorded: Path, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_by(rag_eval, "r.xlsx")
    fill(tmp_path / "r.xlsx", prefers("Birch"))
    run_cli("run.json", "--report-only", "--labels", "r.xlsx", "-o", "l.xlsx", "--json", "l.json", "-q")
    ended = run_cli("l.json", "--head-to-head", "--fresh", "-o", "m.xlsx", "--json", "m.json", **azure(judge))
    assert ended.code == 0, ended.err
    before, after = (read_sheet(tmp_path / name, "Human Preferences")[0] for name in ("l.xlsx", "m.xlsx"))
    assert (after["Human Win Rate"], after["Labelled Queries"]) == (0, 40)
    assert (before["Human Win Rate"], before["Labelled Queries"]) == (0, 40)
    assert after["Judge Win Rate"] != before["Judge Win Rate"]
    words = ("run.json", "--head-to-head", "--fresh", "--labels", "r.xlsx", "-o", "n.xlsx")
    assert run_cli(*words, **azure(judge)).code == 0
    assert read_sheet(tmp_path / "n.xlsx", "Human Preferences")[0] == after, "given with the comparison"


@pytest.mark.slow
def test_labels_of_cases_and_of_pairs_are_read_together(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    rag_eval("review", "run.json", "-o", "cases.xlsx", "--raters", "anna")
    sheet_by(rag_eval, "pairs.xlsx")
    book = load_workbook(tmp_path / "cases.xlsx")
    for row in book["anna"].iter_rows():
        if "/" in str(row[4].value):
            row[2].value = "1 fully"
    book.save(tmp_path / "cases.xlsx")
    fill(tmp_path / "pairs.xlsx", prefers("Atlas"))
    labels = ["--labels", "cases.xlsx", "--labels", "pairs.xlsx"]
    ended = run_cli("run.json", "--report-only", *labels, "-o", "l.xlsx", "--json", "l.json")
    assert ended.code == 0, ended.err
    assert "warning" not in ended.err.casefold(), ended.err
    assert read_sheet(tmp_path / "l.xlsx", "Human Alignment")[0]["Cases"] == 20
    assert read_sheet(tmp_path / "l.xlsx", "Human Preferences")[0]["Human Win Rate"] == 1
    for more in ("cases.xlsx", "pairs.xlsx"):
        run_cli("l.json", "--report-only", "--labels", more, "-o", "k.xlsx", "-q")
        assert {"Human Alignment", "Human Preferences"} <= {*load_workbook(tmp_path / "k.xlsx").sheetnames}
    run_cli("run.json", "--report-only", "--labels", "pairs.xlsx", "-o", "m.xlsx", "-q")
    assert "Human Alignment" not in load_workbook(tmp_path / "m.xlsx").sheetnames


# Recorded labels


@pytest.mark.skipif(not _RECORDED.exists(), reason="recorded verdicts are not beside the checkout")
def test_recorded_judges_agree_with_gold_labels_as_often_as_a_cross_table_says() -> None:
    """Six judges on 249 pairs of LLMBar, whose gold label is that of people."""
    with gzip.open(_RECORDED, "rt", encoding="utf-8") as file:
        table = pd.DataFrame(DictReader(file))
    table["gold"] = table["better"].map({"1": 1.0, "2": -1.0})
    orders = table[["winner_1_first", "winner_2_first"]]
    value = orders.apply(lambda column: column.map({"1": 0.5, "2": -0.5})).fillna(0.0).sum(axis=1)
    table["said"] = value.where(value.abs() == 1, 0.0)
    for judge, rows in table.groupby("judge"):
        results = labelled([*rows["gold"]], [*value[rows.index]])
        found = compared(results)
        (agreement,) = found.agreements
        decided = rows[rows["said"] != 0]
        assert agreement.count == len(rows), judge
        assert agreement.kappa.raw == pytest.approx((rows["said"] == rows["gold"]).mean())
        assert agreement.kappa.kappa == pytest.approx(kappa_of(rows["said"], rows["gold"]))
        assert agreement.decided.rate == pytest.approx((decided["said"] == decided["gold"]).mean())
        people = people_of(found)
        assert people.win_rate == pytest.approx((rows["gold"] == 1).mean())
        assert people.corrected is not None
        assert people.corrected.value == pytest.approx(people.win_rate), "all of it is labelled"


def test_labels_that_do_not_confirm_the_judge_are_told() -> None:
    """It always prefers the first bot, people do in half of the queries."""

    def words(judge: float, *people: float) -> str:
        def value(row: int, *_: Any) -> PairVerdict:
            return verdict("Birch", judge, labels={"anna": people[row % len(people)]}, is_drawn=True)

        pair = compared(run_of(40, value)).pairs[0]
        assert pair.people is not None
        return _not_confirmed(pair, pair.people)

    assert words(1.0, 1.0, -1.0).startswith(
        f"Labels do not confirm this: corrected by them, the win rate of {BOTS[0]} is 50% (95% CI "
    )
    assert words(1.0, 1.0, 1.0, 1.0, -1.0) == ""
    assert words(0.0, 1.0, -1.0) == ""

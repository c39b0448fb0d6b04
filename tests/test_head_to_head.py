"""Responses compared in pairs: the calls, the figures, what the report says, and what is refused."""

import gzip
import json
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from csv import DictReader
from dataclasses import replace
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import KEY, Run, azure, read_sheet, wait_for
from fake_judge import Answer, FakeJudge, Request, honest_reply, structured
from files import CONTEXT, sheet_of, write_table
from forking import Forker
from openpyxl import load_workbook

from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError
from rag_eval.frames import evaluate
from rag_eval.records import ALL_PAIRS, MATCHING, Case, CaseResult, Outcome, PairVerdict, Score
from rag_eval.report.pair_tables import pair_columns, strength_columns
from rag_eval.results.comparison import Rival, compare_columns
from rag_eval.results.comparison import Verdict as Rivalry
from rag_eval.results.head_to_head import HeadToHead, PairTally, bradley_terry
from rag_eval.results.verdict import _by_pair, _most_preferred, preference_words
from rag_eval.run.pairs import PairJudge, PairPlan, _rounds
from rag_eval.store.leftovers import new_file
from rag_eval.tables.joining import with_earlier_answers
from rag_eval.tables.table import read_table

SINGLE = ("--prompts", "single")
PAIRS = ("in.xlsx", *SINGLE, "--head-to-head")
RUN = (*PAIRS, "-o", "r.xlsx", "--json", "r.json")
SHARDS = (*PAIRS, "-o", "out", "--shard-rows", 5, "--json", "out/report.json")
WORDS = "river mountain castle bridge market harbour garden museum station forest valley island".split()
BOTS = ("Atlas", "Birch", "Cedar", "Dune", "Elm", "Fir")
_RECORDED = (
    Path(os.environ.get("RAG_EVAL_FIXTURES", "/nowhere")).parent / "recorded" / "mt_bench_pairs.csv.gz"
)


def answers(path: Path, rows: int, wrong: Sequence[int]) -> Path:
    """Each bot has so many words wrong of the ten of the ground truth, and at random up to two more."""
    draw = random.Random(len(wrong))
    lines = []
    for number in range(rows):
        truth = draw.sample(WORDS, 10)
        texts = []
        for count in wrong:
            kept = 10 - count - draw.randint(0, 2)
            texts.append(" ".join([*truth[:kept], *(f"wrong{each}" for each in range(10 - kept))]))
        lines.append([f"Which places, question {number}?", " ".join(truth), *texts, " ".join(truth)])
    header = ["Query", "Ground_Truth", *(f"Bot_{bot}" for bot in BOTS[: len(wrong)]), "Context"]
    return write_table(path, header, *lines)


ONE_PROCESS = "[evaluation]\nmax_workers = 1\n"


def paid(judge: FakeJudge) -> Counter[str]:
    """How often each comparison was asked for."""
    return Counter(json.dumps(each.body, sort_keys=True) for each in judge.requests if each.task == "pair")


def history_lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def run_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def pairs_of(judge: FakeJudge) -> list[dict[str, Any]]:
    """What the judge was shown, comparison by comparison."""
    return [
        json.loads(request.body["messages"][-1]["content"])
        for request in judge.requests
        if request.task == "pair"
    ]


def replying(
    change: Callable[[dict[str, Any], dict[str, Any]], object],
) -> Callable[[Request], Answer | None]:
    """A judge whose replies on pairs are changed: given what it was shown and what it would say."""

    def answer(request: Request) -> Answer | None:
        if request.task != "pair":
            return None
        said = json.loads(honest_reply(request.prompt))
        change(json.loads(request.body["messages"][-1]["content"]), said)
        return structured(json.dumps(said), request)

    return answer


def overall(said: dict[str, Any], side: str) -> None:
    said.update(
        dict.fromkeys((name for name in said if name in ("correct", "supported", "useful", "overall")), side)
    )


CHOIX = [0.685028256, 0.008159405, -0.346593831, -0.346593831]

# Figures


def verdict(
    other: str, value: float, orders: tuple[str, ...] = (), lengths: tuple[int, int] = (50, 50)
) -> PairVerdict:
    names = {1.0: ("this", "this"), -1.0: ("other", "other"), 0.5: ("this", "tie"), -0.5: ("tie", "other")}
    return PairVerdict(
        other, Outcome.SCORED, value, orders or names.get(value, ("tie", "tie")), lengths=lengths
    )


def judged(case: Case, said: PairVerdict) -> CaseResult:
    off = Score.not_applicable("toxicity", "off")
    return CaseResult(case=case, rqs=None, failure_modes=(), scores={}, toxicity=off, pairs=(said,))


def counted(
    bots: Sequence[str], verdicts: Sequence[tuple[str, str, PairVerdict]], choice: str = ALL_PAIRS
) -> HeadToHead:
    """Of a query and a bot, a verdict each."""
    tally = PairTally(bots, choice)
    for query, bot, said in verdicts:
        tally.add(judged(Case(2, bot, query, "x"), said))
    return tally.head_to_head()


def test_a_win_is_one_in_both_orders_and_everything_else_a_tie() -> None:
    values = [1.0, 1.0, 0.5, 0.0, -0.5, -1.0]
    found = counted("AB", [(f"q{n}", "A", verdict("B", value)) for n, value in enumerate(values)])
    (pair,) = found.pairs
    assert (pair.wins, pair.ties, pair.losses, pair.queries) == (2, 3, 1, 6)
    assert pair.win_rate == pytest.approx((1 + sum(values) / 6) / 2)
    other = pair.seen_from("B")
    assert (other.wins, other.losses, other.win_rate) == (1, 2, pytest.approx(1 - (pair.win_rate or 0)))


def test_repeats_of_a_query_count_once() -> None:
    found = counted("AB", [("q", "A", verdict("B", 1.0))] * 9 + [("r", "A", verdict("B", -1.0))])
    assert found.pairs[0].win_rate == 0.5
    assert found.pairs[0].queries == 2


def test_questions_of_a_conversation_are_one_piece_of_evidence() -> None:
    """Twelve answers of which each is preferred are clear; the same as four conversations of three are not."""
    tally, alone = PairTally("AB", ALL_PAIRS), PairTally("AB", ALL_PAIRS)
    for number in range(12):
        case = Case(2, "A", f"q{number}", "x")
        alone.add(judged(case, verdict("B", 1.0)))
        tally.add(judged(replace(case, conversation=f"c{number // 3}"), verdict("B", 1.0)))
    assert alone.head_to_head().pairs[0].is_significant
    (pair,) = tally.head_to_head().pairs
    assert (pair.queries, pair.wins, pair.win_rate) == (12, 12, 1.0)
    assert not pair.is_significant


def test_a_failed_pair_is_in_no_figure_and_can_take_a_claim_away() -> None:
    good = [(f"q{n}", "A", verdict("B", 1.0)) for n in range(12)]
    clear = counted("AB", good)
    assert clear.pairs[0].is_significant
    assert clear.pairs[0].interval is not None
    assert 0.7 < clear.pairs[0].interval.low < 0.8, "twelve wins of twelve do not make certain (Wilson)"
    lost = [(f"x{n}", "A", PairVerdict("B", Outcome.FAILED, code="truncated")) for n in range(8)]
    found = counted("AB", good + lost)
    (pair,) = found.pairs
    assert (pair.queries, pair.failed, pair.win_rate) == (12, 8, 1.0)
    assert not pair.is_significant
    assert (found.failed, found.asked) == (8, 20)


def test_an_interval_without_a_claim_contains_one_half() -> None:
    good = [(f"q{n}", "A", verdict("B", 1.0 if n else -1.0)) for n in range(20)]
    lost = [(f"x{n}", "A", PairVerdict("B", Outcome.FAILED, code="truncated")) for n in range(16)]
    (pair,) = counted("AB", good + lost).pairs
    assert counted("AB", good).pairs[0].is_significant
    assert not pair.is_significant
    assert pair.interval is not None
    assert pair.interval.low <= 0.5 < (pair.win_rate or 0)


def three_bots(wins: int, queries: int) -> list[tuple[str, str, PairVerdict]]:
    """A is preferred to B in so many of the queries; C is as good as both."""
    even = [1.0 if number % 2 else -1.0 for number in range(queries)]
    return [
        each
        for number in range(queries)
        for each in (
            (f"q{number}", "A", verdict("B", 1.0 if number < wins else -1.0)),
            (f"q{number}", "A", verdict("C", even[number])),
            (f"q{number}", "B", verdict("C", even[-number])),
        )
    ]


def test_an_interval_is_of_its_pair_and_a_claim_of_all_pairs() -> None:
    """28 of 40 are clear for two bots (p = .017), but not the clearest of three pairs by a chance of 5%."""
    said = three_bots(28, 40)
    two = counted("AB", [each for each in said if each[1] == "A" and each[2].other == "B"]).pairs[0]
    found = counted("ABC", said)
    pair = found.pairs[0]
    assert two.is_significant
    assert (pair.win_rate, pair.interval) == (two.win_rate, two.interval)
    assert pair.is_clear_by_itself
    assert not pair.is_significant
    assert preference_words(pair, found) == "not clear over all pairs"
    assert preference_words(found.pairs[1], found) == "no clear preference"
    words = _by_pair(pair, by_rqs(Rivalry.NOT_DECIDED))
    assert words.startswith(
        "Side by side there is no clear preference between A and B: A has a win rate of 70%"
    )
    assert words.endswith(
        "The interval is of this pair only; over all pairs the preference is not clear enough."
    )
    clear = counted("ABC", three_bots(34, 40)).pairs[0]
    assert clear.is_significant
    assert clear.is_clear_by_itself


def by_rqs(verdict: Rivalry) -> Rival:
    return Rival("B", 0.1, None, 0.5, verdict, None)


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (Rivalry.NOT_DECIDED, "RQS does not separate them; side by side, A is preferred in"),
        (Rivalry.NOT_COMPARABLE, "Their RQS cannot be compared; side by side, A is preferred in"),
        (Rivalry.SIGNIFICANT, "A leads by both measures: side by side, A is preferred in"),
    ],
)
def test_words_on_a_pair_fit_what_rqs_says(by: Rivalry, words: str) -> None:
    assert _by_pair(counted("ABC", three_bots(34, 40)).pairs[0], by_rqs(by)).startswith(words)


def test_another_bot_that_is_preferred_to_more_bots_is_named() -> None:
    said = [
        (f"q{number}", one, verdict(other, 1.0))
        for number in range(40)
        for one, other in combinations("DABC", 2)
    ]
    found = counted("DABC", said)
    assert _most_preferred(found, "D") == ""
    assert _most_preferred(found, "C") == "D is preferred to 3 of 3 other bots, C to none."
    assert _most_preferred(found, "A") == "D is preferred to 3 of 3 other bots, A to 2."
    assert _most_preferred(counted("AB", []), "A") == ""


def test_what_failed_widens_the_interval_of_a_pair_that_it_could_turn() -> None:
    lost = [(f"x{number}", "A", PairVerdict("B", Outcome.FAILED, code="truncated")) for number in range(9)]
    pair = counted("ABC", three_bots(28, 40) + lost).pairs[0]
    assert (pair.queries, pair.failed) == (40, 9)
    assert not pair.is_clear_by_itself


def test_either_pairs_or_strengths_say_who_is_better() -> None:
    """With all pairs judged the pairs do; in a matching they have no test of their own."""
    said = [
        (f"q{number}", one, verdict(other, 1.0))
        for number in range(40)
        for one, other in combinations("ABCD", 2)
    ]
    every, matched = (counted("ABCD", said, choice) for choice in (ALL_PAIRS, MATCHING))
    assert all(pair.is_significant for pair in every.pairs)
    assert not any(each.is_behind for each in every.strengths)
    assert [each.is_behind for each in matched.strengths] == [False, True, True, True]
    assert not any(pair.is_significant for pair in matched.pairs)
    assert [each.win_rate for each in every.strengths] == [each.win_rate for each in matched.strengths]
    assert "Verdict" in [column.header for column in pair_columns(every)]
    assert "Verdict" not in [column.header for column in strength_columns(every)]
    assert "Verdict" not in [column.header for column in pair_columns(matched)]
    assert "Verdict" in [column.header for column in strength_columns(matched)]


def test_a_conversation_is_one_piece_of_evidence_in_a_matching_too() -> None:
    """The interval of a pair is wider if its queries belong together."""
    found = []
    for size in (1, 5):
        tally = PairTally("ABCD", MATCHING)
        for number in range(100):
            case = Case(2, "A", f"q{number}", "x", conversation=f"c{number // size}")
            tally.add(judged(case, verdict("B", 1.0 if number // 5 % 3 else -1.0)))
        (pair,) = tally.head_to_head().pairs
        assert pair.interval is not None
        found.append(pair.interval.high - pair.interval.low)
    assert found[1] > 1.8 * found[0]


def test_strengths_are_those_of_choix() -> None:
    """Of choix 0.4.1, opt_pairwise with alpha 0 and each win in four parts."""
    wins = np.array(
        [[0, 11.5, 14.25, 17.0], [8.5, 0, 12.75, 9.0], [5.75, 7.25, 0, 10.5], [3.0, 11.0, 9.5, 0]]
    )
    assert bradley_terry(wins) == pytest.approx(CHOIX, abs=1e-6)


def test_a_bot_that_always_wins_has_a_finite_strength() -> None:
    wins = np.array([[0.0, 9.0, 9.0], [0.0, 0.0, 5.0], [0.0, 4.0, 0.0]])
    found = bradley_terry(wins)
    assert np.isfinite(found).all()
    assert found.argmax() == 0
    assert found.sum() == pytest.approx(0, abs=1e-9)


def test_parts_come_to_the_same_as_the_whole() -> None:
    draw = random.Random(5)
    verdicts = [
        (f"q{n}", one, verdict(other, draw.choice([1.0, 0.5, 0.0, -1.0])))
        for n in range(40)
        for one, other in combinations("ABCD", 2)
    ]
    whole, parts = PairTally("ABCD", ALL_PAIRS), [PairTally("ABCD", ALL_PAIRS) for _ in range(2)]
    for number, (query, bot, said) in enumerate(verdicts):
        result = judged(Case(2, bot, query, "x"), said)
        whole.add(result)
        parts[number >= 100].add(result)
    merged = PairTally("ABCD", ALL_PAIRS)
    for part in parts:
        merged.merge(json.loads(json.dumps(part.state())))
    assert merged.head_to_head() == whole.head_to_head()


@pytest.mark.parametrize("kind", ["always", "the more the longer"])
def test_a_judge_that_only_likes_length_comes_to_half_at_equal_length(kind: str) -> None:
    """The first bot writes half as much again; it wins most comparisons for that reason."""
    draw = np.random.default_rng(3)
    verdicts = []
    for number in range(2_000):
        lengths = int(draw.lognormal(5.4, 0.5)), int(draw.lognormal(5.0, 0.5))
        ratio = np.log(lengths[0] / lengths[1])
        chance = float(ratio > 0) if kind == "always" else 1 / (1 + np.exp(-3 * ratio))
        value = 1.0 if draw.random() < chance else -1.0
        verdicts.append((f"q{number}", "A", verdict("B", value, lengths=lengths)))
    (pair,) = counted("AB", verdicts).pairs
    assert (pair.win_rate or 0) > 0.65
    assert pair.at_equal_length == pytest.approx(0.5, abs=0.02)


def test_length_cannot_be_told_apart_if_one_bot_is_always_longer() -> None:
    (pair,) = counted("AB", [(f"q{n}", "A", verdict("B", 1.0, lengths=(90, 50))) for n in range(30)]).pairs
    assert pair.at_equal_length is None
    assert (pair.longer_wins, pair.longer_of) == (30, 30)


def test_a_judge_that_prefers_a_position_or_a_copy_gives_no_verdict() -> None:
    first = [(f"q{n}", "A", verdict("B", 0.0, ("this", "other"))) for n in range(20)]
    found = counted("AB", first)
    assert "shown first won 100% of 40 decisions" in found.trust.problem
    few = counted("AB", [("q1", "A", verdict("B", 0.0, ("this", "other")))])
    assert not few.trust.problem, "two decisions may fall so by chance"
    controls = [
        (f"c{n}", "A", PairVerdict("A", Outcome.SCORED, float(n < 8), ("this" if n < 8 else "tie",)))
        for n in range(20)
    ]
    good = [(f"q{n}", "A", verdict("B", 1.0)) for n in range(20)]
    found = counted("AB", good + controls)
    assert "only 12 of 20 pairs of equal responses a tie" in found.trust.problem
    assert not found.pairs[0].is_significant
    assert counted("AB", good + controls[8:]).pairs[0].is_significant


def test_columns_are_tested_together_and_without_their_gaps() -> None:
    draw = np.random.default_rng(2)
    table = draw.choice([-1.0, 0.0, 1.0], (80, 3))
    table[:, 0] = draw.choice([-1.0, 1.0], 80, p=[0.2, 0.8])
    table[draw.random((80, 3)) < 0.3] = np.nan
    first, *others = compare_columns(table, clusters=None)
    assert first.is_significant
    assert first.mean == pytest.approx(np.nanmean(table[:, 0]))
    assert first.interval is not None
    assert 0 < first.interval.low < first.mean < first.interval.high
    assert not any(test.is_significant for test in others)


@pytest.mark.slow
@pytest.mark.parametrize("bots", [2, 3])
def test_equal_bots_are_rarely_told_apart(bots: int) -> None:
    """At most 5% of tables; of 400, 33 are three standard errors above."""
    draw = np.random.default_rng(bots)
    pairs = bots * (bots - 1) // 2
    wrong = 0
    for _ in range(400):
        table = draw.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (50, pairs))
        table[draw.random(table.shape) < 0.1] = np.nan
        wrong += any(test.is_significant for test in compare_columns(table, clusters=None, resamples=1_999))
    assert wrong <= 33


# Pairs


def compared() -> Settings:
    return Settings.model_validate({"head_to_head": {"pairs": "auto"}, "judge": {"provider": "azure"}})


@pytest.mark.parametrize(("bots", "calls"), [(2, 2), (3, 6), (4, 4), (5, 4), (6, 6), (12, 12)])
def test_calls_per_query(bots: int, calls: int) -> None:
    rounds = _rounds(bots)
    assert sorted(pair for each in rounds for pair in each) == [*combinations(range(bots), 2)]
    for each in rounds:
        assert max(Counter(bot for pair in each for bot in pair).values()) == 1
    queries = [f"q{number}" for number in range(400)]
    judge = PairJudge.of(compared(), [str(bot) for bot in range(bots)], queries)
    assert judge
    assert judge.choice == (ALL_PAIRS if bots < 4 else MATCHING)
    assert {2 * len(each) for each in judge.rounds} == {calls}


@pytest.mark.parametrize(("queries", "choice"), [(29, ALL_PAIRS), (30, MATCHING)])
def test_few_queries_are_compared_in_all_pairs(queries: int, choice: str) -> None:
    """Of four bots, a query compares one of three pairings; each is to have ten queries."""
    keys = [f"{number:08x}" for number in range(queries)]
    assert PairPlan.of(compared(), "ABCD", reversed(keys)) == (choice, keys[-1], keys[19])


# Runs


@pytest.mark.slow
def test_two_bots_are_compared_in_both_orders_without_their_names(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 25, (0, 6))
    ended = run_cli(*RUN, "--html", "r.html", "--csv", "csv", "--markdown", "r.md", **azure(judge))
    assert ended.code == 0, ended.err
    shown = pairs_of(judge)
    assert len(shown) == 2 * 25 + 20
    assert not any(bot in each.prompt for each in judge.requests if each.task == "pair" for bot in BOTS[:2])
    seen = {(each["FIRST"], each["SECOND"]) for each in shown if each["FIRST"] != each["SECOND"]}
    assert {(second, first) for first, second in seen} == seen
    document = run_of(tmp_path / "r.json")
    (pair,) = document["head_to_head"]["pairs"]
    assert (pair["one"], pair["wins"], pair["losses"], pair["queries"]) == ("Atlas", 25, 0, 25)
    assert document["head_to_head"]["trust"]["controls_tied"] == 20
    words = document["leaderboard"]["verdict_lines"]["side_by_side"]
    assert words.startswith(
        "Atlas leads by both measures: side by side, Atlas is preferred in 100% of 25 queries"
    )
    for path in ("r.html", "r.md"):
        assert "preferred in 100% of 25 queries" in (tmp_path / path).read_text(encoding="utf-8")
    assert words in ended.out
    sheet = read_sheet(tmp_path / "r.xlsx", "Head to Head")
    assert [line["Win Rate"] for line in sheet[:2]] == [1, 0]
    assert [line["Verdict"] for line in sheet[:2]] == ["preferred", "not preferred"]
    lines = read_sheet(tmp_path / "r.xlsx", "Pairs")
    assert len(lines) == 25 + 20
    assert {line["Preferred"] for line in lines} == {"Atlas", "control: tie"}
    assert (tmp_path / "csv" / "pairs.csv").read_text(encoding="utf-8-sig").count("\n") >= 45


def test_without_the_option_nothing_is_compared(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 5, (0, 3))
    ended = run_cli("in.xlsx", "-o", "r.xlsx", *SINGLE, "--json", "r.json", **azure(judge))
    assert ended.code == 0
    assert not pairs_of(judge)
    document = run_of(tmp_path / "r.json")
    assert document["head_to_head"] is None
    assert not any("pairs" in case for case in document["cases"])
    assert "ide by side" not in ended.out


def test_equal_and_empty_responses_need_no_call(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    lines = [
        ["Question one?", "Paris", "It is Paris.", " It is  Paris. ", CONTEXT],
        ["Question two?", "Paris", "It is Paris.", "", CONTEXT],
        ["Question three?", "Paris", "", "", CONTEXT],
    ]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"], *lines)
    ended = run_cli(*RUN, **azure(judge))
    assert ended.code == 0
    assert all(shown["FIRST"] == shown["SECOND"] for shown in pairs_of(judge))
    document = run_of(tmp_path / "r.json")
    values = [case["pairs"][0]["value"] for case in document["cases"] if case["bot"] == "A" and case["pairs"]]
    assert values == [0.0, 1.0, 0.0]
    pair = document["head_to_head"]["pairs"][0]
    assert set(pair["criteria"].values()) == {pair["win_rate"]}
    assert document["head_to_head"]["trust"]["judged"] == 0


def test_a_judge_that_likes_the_first_response_gives_no_verdict(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 12, (0, 3))
    judge.always = replying(lambda shown, said: overall(said, "first"))
    ended = run_cli(*RUN, **azure(judge))
    assert ended.code == 0
    assert (
        "Side by side there is no verdict: the judge called only 0 of 12 pairs of equal responses a tie."
        in ended.out
    )
    assert {line["Verdict"] for line in read_sheet(tmp_path / "r.xlsx", "Head to Head")[:2]} == {
        "no verdict: the judge failed its controls"
    }


@pytest.mark.parametrize(
    "words", [("First", "SECOND.", "Tie"), ("1", "2", "neither"), ("answer 1", "Answer 2", "equal")]
)
def test_honest_words_for_a_side_are_read(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, words: tuple[str, str, str]
) -> None:
    answers(tmp_path / "in.xlsx", 3, (0, 3))
    spelled = dict(zip(("first", "second", "tie"), words, strict=True))
    judge.always = replying(lambda shown, said: overall(said, spelled[said["overall"]]))
    run_cli(*RUN, **azure(judge))
    found = run_of(tmp_path / "r.json")["head_to_head"]
    assert (found["failed"], found["pairs"][0]["wins"], found["trust"]["controls_tied"]) == (0, 3, 3)


@pytest.mark.slow
def test_a_side_off_the_menu_fails_and_is_asked_again_by_the_next_command(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 12, (0, 3))

    def off_the_menu(shown: dict[str, Any], said: dict[str, Any]) -> None:
        if "question 3?" in shown["query"]:
            overall(said, "the better one")

    judge.always = replying(off_the_menu)
    ended = run_cli(*RUN, **azure(judge))
    document = run_of(tmp_path / "r.json")
    assert document["head_to_head"]["failed"] == 1
    assert document["head_to_head"]["pairs"][0]["queries"] == 11
    for line in read_sheet(tmp_path / "r.xlsx", "Pairs"):
        assert (line["Value"] == "failed") == ("question 3?" in line["Query"])
    assert ended.code == 3
    assert "Add --retry-errors" in ended.err
    judge.always = None
    asked = len(judge.requests)
    ended = run_cli(*RUN, "--retry-errors", **azure(judge))
    assert ended.code == 0, ended.err
    assert run_of(tmp_path / "r.json")["head_to_head"]["failed"] == 0
    assert 2 <= len(judge.requests) - asked <= 4, "only the failed pair, and a check of the endpoint"


@pytest.mark.slow
def test_the_two_measures_can_disagree(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 25, (0, 5))
    contrary = {"first": "second", "second": "first", "tie": "tie"}
    judge.always = replying(lambda shown, said: overall(said, contrary[said["overall"]]))
    ended = run_cli(*RUN, **azure(judge))
    document = run_of(tmp_path / "r.json")
    assert "The two measures disagree: side by side, Birch is preferred in 100% of 25 queries" in ended.out
    assert "Win rates by point: correct 100%" in ended.out
    assert document["leaderboard"]["standings"][0]["bot"] == "Atlas", "the star follows RQS"
    assert document["head_to_head"]["differing"] == document["head_to_head"]["compared"] > 0
    flagged = [case["row"] for case in document["cases"] if "pair differs from RQS" in case["flags"]]
    assert len(flagged) == document["head_to_head"]["differing"]


def test_the_turns_of_a_conversation_come_before_the_query(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    turns = [{"role": "user", "content": "I have a bike."}, {"role": "assistant", "content": "Good."}]
    header = ["Query", "History", "Ground_Truth", "Bot_A", "Bot_B"]
    lines = [
        ["Where is it?", json.dumps(turns), "At home", "At home", "Away"],
        ["And now?", "", "Here", "Here", "There"],
    ]
    write_table(tmp_path / "in.xlsx", header, *lines)
    assert run_cli(*RUN, **azure(judge)).code == 0
    shown = pairs_of(judge)
    assert [*next(each for each in shown if each["query"] == "Where is it?")][:2] == ["history", "query"]
    assert all(("history" in each) is (each["query"] == "Where is it?") for each in shown)
    prompts = [request.prompt for request in judge.requests if request.task == "pair"]
    assert {
        "The history has the earlier turns" in prompt for prompt in prompts if "Where is it?" in prompt
    } == {True}
    assert not any("The history has" in prompt for prompt in prompts if "And now?" in prompt)


@pytest.mark.slow
def test_a_dry_run_shows_the_exact_number_of_calls(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 50, (0, 1, 2, 3))
    words = RUN
    told = run_cli(*words, "--dry-run", **azure(judge))
    assert not judge.requests
    assert run_cli(*words, **azure(judge)).code == 0
    assert f"head_to_head: {len(pairs_of(judge))}\n" in told.out


@pytest.mark.slow
def test_a_capped_run_goes_on_and_pays_nothing_twice(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 20, (0, 3))
    ended = run_cli(*RUN, "--max-calls", "40", **azure(judge))
    assert ended.code == 4
    part = run_of(tmp_path / "r.json")["head_to_head"]
    assert 0 < part["failed"] < 20
    assert len(judge.requests) <= 40
    assert run_cli(*RUN, **azure(judge)).code == 0
    bodies = [json.dumps(each.body, sort_keys=True) for each in judge.requests if each.task != "preflight"]
    assert len(bodies) == len(set(bodies))
    assert run_of(tmp_path / "r.json")["head_to_head"]["failed"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "document", "held", "kept"),
    [
        (("-o", "r.xlsx", "--json", "r.json"), "r.json", 20, 18),
        (("-o", "out", "--json", "out/report.json", "--shard-rows", "5"), "out/report.json", 30, 30),
    ],
    ids=["one run", "shards"],
)
def test_a_killed_run_goes_on_and_pays_nothing_twice(
    forker: Forker,
    judge: FakeJudge,
    tmp_path: Path,
    words: tuple[str, ...],
    document: str,
    held: int,
    kept: int,
) -> None:
    """`held` pairs are answered before the kill, of which so many are surely `kept`."""
    answers(tmp_path / "in.xlsx", 20, (0, 3))
    if "--shard-rows" in words:
        (tmp_path / "config.ini").write_text(ONE_PROCESS)
    command = (*PAIRS, *words)

    def hold(request: Request) -> None:
        if len(pairs_of(judge)) > held:
            wait_for(lambda: judge.always is None, 120)

    judge.always = hold
    run = forker.start(tmp_path, *command, variables=azure(judge))
    wait_for(lambda: len(pairs_of(judge)) > held, 120)
    run.signal(signal.SIGKILL)
    run.wait()
    answered = {json.dumps(each, sort_keys=True) for each in pairs_of(judge)[:kept]}
    judge.always = None
    asked = len(pairs_of(judge))
    ended = forker.start(tmp_path, *command, variables=azure(judge)).wait()
    assert ended.code == 0, ended.err
    again = {json.dumps(each, sort_keys=True) for each in pairs_of(judge)[asked:]}
    assert not again & answered
    assert run_of(tmp_path / document)["head_to_head"]["pairs"][0]["queries"] == 20


@pytest.mark.slow
def test_a_run_that_stops_when_clear_is_compared_afterwards(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 30, (0, 6))
    ended = run_cli(*RUN, "--until-clear", **azure(judge))
    document = run_of(tmp_path / "r.json")
    rows = document["run"]["looks"][document["end"]["looks_taken"] - 1]["rows"]
    assert f"clear after {rows} of 30 rows" in ended.out, ended.out
    assert document["head_to_head"]["pairs"][0]["queries"] == rows < 30
    kinds = [request.task for request in judge.requests]
    assert "case" not in kinds[kinds.index("pair") :], "pairs come after the last look"


@pytest.mark.slow
def test_the_labels_of_an_earlier_file_are_those_of_its_bots(run_cli: Run, tmp_path: Path) -> None:
    """A label of the query is not counted twice."""
    header = ["Query", "Bot_A", "Context", "Human_Faithfulness", "Human_Toxicity"]
    for name, value in (("new", 1.0), ("old", 0.0)):
        rows = [[f"q{n}?", f"Fact {n}.", f"Fact {n}.", value, 0.0] for n in range(4)]
        write_table(tmp_path / f"{name}.csv", header, *rows)
    write_table(
        tmp_path / "bare.csv", header[:3], *([f"q{n}?", f"Fact {n}.", f"Fact {n}."] for n in range(4))
    )
    words = ("--against", "old.csv", "--judge", "offline", "-o", "r.xlsx")
    for new, means in (("new.csv", {"A": 1.0, "A (old)": 0.0}), ("bare.csv", {"A (old)": 0.0})):
        assert run_cli(new, *words).code == 0
        lines = read_sheet(tmp_path / "r.xlsx", "Human Alignment")
        found = {line["Bot"]: line["Human mean"] for line in lines if line["Measure"] == "Faithfulness"}
        assert {bot: mean for bot, mean in found.items() if bot != "All bots"} == means
        (toxicity,) = (line for line in lines if line["Measure"] == "Input Toxicity")
        assert toxicity["Cases"] == 4


def test_no_gate_looks_at_the_bots_of_an_earlier_file(run_cli: Run, tmp_path: Path) -> None:
    """Nobody can mend old answers: neither a bad one nor one that the baseline does not have fails a gate."""
    header, truths = ["Query", "Ground_Truth", "Bot_A"], [f"The mill has {n} floors." for n in range(20, 32)]
    for name, answer in (("new", None), ("old", "I like boats.")):
        rows = [[f"How many floors has mill {n}?", text, answer or text] for n, text in enumerate(truths)]
        write_table(tmp_path / f"{name}.csv", header, *rows)
    assert run_cli("new.csv", "--judge", "offline", "-o", "r.xlsx", "--json", "past.json").code == 0
    gates = ("--fail-under", "rqs=0.5", "--fail-on-regression", "--baseline", "past.json")
    run = ("new.csv", "--against", "old.csv", "--judge", "offline", "-o", "r.xlsx", "--json", "r.json")
    early = (*run, "--until-clear", "--fail-under", "rqs=0.5")
    for words in ((*run, *gates), ("r.json", "--report-only", "-o", "s.xlsx", *gates), early):
        ended = run_cli(*words)
        assert (ended.code, "Gate passed: A: rqs" in ended.out) == (0, True), ended.err
        assert "A (old): rqs" not in ended.out
    assert run_of(tmp_path / "r.json")["run"]["earlier_bots"] == ["A (old)"]
    assert "earlier_bots" not in run_of(tmp_path / "past.json")["run"]


def test_the_json_of_a_run_pays_for_its_pairs_only(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 12, (0, 3, 5))
    assert run_cli("in.xlsx", "-o", "a.xlsx", "--judge", "offline", "--json", "a.json").code == 0
    before = run_of(tmp_path / "a.json")
    dry = run_cli("a.json", "--head-to-head", "-o", "b.xlsx", "--dry-run", **azure(judge))
    assert not judge.requests
    left, lock = new_file(tmp_path / "b.xlsx", 0o600)
    assert lock is not None
    os.close(lock)  # as when the process that made the file is gone
    ended = run_cli("a.json", "--head-to-head", "-o", "b.xlsx", "--json", "b.json", **azure(judge))
    assert (ended.code, left.exists()) == (0, False), ended.err
    assert judge.tasks().keys() == {"pair", "preflight"}
    assert f"head_to_head: {len(pairs_of(judge))}\n" in dry.out
    after = run_of(tmp_path / "b.json")
    assert [case["rqs"] for case in after["cases"]] == [case["rqs"] for case in before["cases"]]
    assert len(after["head_to_head"]["pairs"]) == 3
    assert after["end"]["usage"]["calls"] == len(pairs_of(judge))
    assert "Scores from a.json; pairs judged by Azure OpenAI" in ended.out
    asked = len(judge.requests)
    again = run_cli("b.json", "-o", "c.xlsx", "--report-only", "--json", "c.json", "--alpha", "0.9")
    assert again.code == 0, again.err
    assert len(judge.requests) == asked
    rescored = run_of(tmp_path / "c.json")
    assert rescored["head_to_head"]["pairs"] == after["head_to_head"]["pairs"]
    rqs = {(case["row"], case["bot"]): case["rqs"] for case in rescored["cases"]}
    gaps = [
        (pair["rqs_gap"], rqs[case["row"], case["bot"]] - rqs[case["row"], pair["other"]])
        for case in rescored["cases"]
        for pair in case["pairs"]
    ]
    assert all(found == pytest.approx(wanted) for found, wanted in gaps)


@pytest.mark.slow
def test_what_the_scores_cost_is_told_apart_from_what_the_pairs_cost(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The requests of this command are shown; a cost of which a part is unknown is unknown."""
    answers(tmp_path / "in.xlsx", 12, (0, 3))
    prices = "[prices]\ninput = 1000\noutput = 1000\n"
    for name, config in (("known", prices), ("unknown", "")):
        (tmp_path / "config.ini").write_text(config)
        command = ("in.xlsx", *SINGLE, "-o", f"{name}.xlsx", "--json", f"{name}.json")
        assert run_cli(*command, **azure(judge)).code == 0
    (tmp_path / "config.ini").write_text(prices)
    before = run_of(tmp_path / "known.json")["end"]["usage"]
    judge.requests.clear()
    ended = run_cli("known.json", "--head-to-head", "-o", "a.xlsx", "--json", "a.json", **azure(judge))
    usage = run_of(tmp_path / "a.json")["end"]["usage"]
    assert usage["requests"] == before["requests"] + len(judge.requests)
    assert (usage["earlier_requests"], usage["earlier_cost"]) == (before["requests"], before["cost"])
    assert usage["cost"] > before["cost"]
    assert f"({usage['requests']} requests, " in ended.out
    assert f" tokens; last command: {len(judge.requests)} requests)" in ended.out
    ended = run_cli("unknown.json", "--head-to-head", "-o", "b.xlsx", "--json", "b.json", **azure(judge))
    assert run_of(tmp_path / "b.json")["end"]["usage"]["cost"] is None
    assert "cost unknown" in ended.out


@pytest.mark.parametrize(
    "words",
    ["--against in.xlsx", "--batch", "--until-clear", "--rows 2-3", "--where x=y", "--show", "--samples 3"],
)
def test_what_the_json_of_a_run_cannot_have_is_refused(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, words: str
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    run_cli("in.xlsx", "-o", "a.xlsx", "--judge", "offline", "--json", "a.json")
    ended = run_cli("a.json", "--head-to-head", "-o", "b.xlsx", *words.split(), **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert f"{words.split()[0]}: cannot be used with the JSON of a run" in ended.err


@pytest.mark.slow
def test_pairs_that_a_run_has_are_judged_again_only_if_that_is_asked_for(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 45, (0, 2, 4, 6))
    words = ("in.xlsx", "-o", "a.xlsx", *SINGLE, "--head-to-head", "--json", "a.json")
    assert run_cli(*words, **azure(judge)).code == 0
    asked = len(judge.requests)
    again = ("a.json", "-o", "b.xlsx", "--head-to-head")
    for dry in ((), ("--dry-run",)):
        ended = run_cli(*again, *dry, **azure(judge))
        assert (ended.code, len(judge.requests)) == (2, asked)
        assert "a.json: its pairs are judged already; add --fresh to pay for them again" in ended.err
    assert run_cli(*again, "--fresh", **azure(judge)).code == 0
    assert set(paid(judge).values()) == {2}
    assert run_cli(*again, "all", **azure(judge)).code == 0


@pytest.mark.slow
def test_scores_of_a_partial_run_are_not_promised_by_its_json(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """No command over the JSON judges them; it names the one that does."""
    answers(tmp_path / "in.xlsx", 45, (0, 2, 4, 6))
    run_cli("in.xlsx", "-o", "a.xlsx", "--max-calls", 60, "--json", "a.json", **azure(judge))
    for words in (("--head-to-head",), ("--report-only",)):
        ended = run_cli("a.json", "-o", "b.xlsx", *words, **azure(judge))
        said = "PARTIAL: 60 requests were sent (--max-calls); to complete it, continue the run that wrote the JSON"
        assert (said in ended.err, "same command" in ended.err) == (True, False), ended.err


def test_answers_of_an_earlier_file_become_further_bots(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    header = ["Query", "Ground_Truth", "Bot_Atlas", "Context"]
    lines = [[f"Which city, question {n}?", "Paris is right", "Paris is right", CONTEXT] for n in range(14)]
    write_table(tmp_path / "new.xlsx", header, *lines, ["Only here?", "x", "y", CONTEXT])
    earlier = [[f" Which  city, question {n}?", "Wrong truth", "Paris", CONTEXT] for n in reversed(range(14))]
    write_table(tmp_path / "old.csv", header, *earlier, ["Only there?", "x", "y", CONTEXT])
    ended = run_cli("new.xlsx", "--against", "old.csv", *RUN[1:], **azure(judge))
    assert ended.code == 0, ended.err
    assert (
        "14 of 15 rows have the same query there and are judged; left out: 1 rows of new.xlsx, 1 of old.csv"
        in ended.err
    )
    document = run_of(tmp_path / "r.json")
    assert document["run"]["bots"] == ["Atlas", "Atlas (old)"]
    assert {case["reference"] for case in document["cases"]} == {"Paris is right"}
    assert {case["response"] for case in document["cases"] if case["bot"] == "Atlas (old)"} == {"Paris"}
    assert document["head_to_head"]["pairs"][0]["wins"] == 14


def test_bots_of_two_files_are_judged_by_one_truth_and_the_same_gold_documents(tmp_path: Path) -> None:
    header = ["Query", "Ground_Truth", "Bot_A", "Gold_Docs", "Retrieved_Docs"]
    new = [["q1", "", "a", "d1", "d1"], ["q2", "two", "a", "", "d2"], ["q3", "", "a", "", "d3"]]
    old = [["q1", "one", "b", "z", "z"], ["q2", "else", "b", "d2", "z"], ["q3", "", "b", "", "z"]]
    tables = [
        read_table(write_table(tmp_path / f"{name}.csv", header, *lines))
        for name, lines in (("new", new), ("old", old))
    ]
    for row, reference, gold in zip(
        with_earlier_answers(*tables).rows, ("one", "two", None), (("d1",), ("d2",), ()), strict=True
    ):
        assert [(case.bot, case.reference, case.gold_ids) for case in row.cases] == [
            (bot, reference, gold) for bot in ("A", "A (old)")
        ]


@pytest.mark.slow
def test_bots_by_the_dozen_have_strengths(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 90, (0, 1, 2, 3, 5, 7))
    ended = run_cli(*RUN, **azure(judge))
    assert ended.code == 0, ended.err
    found = run_of(tmp_path / "r.json")["head_to_head"]
    assert found["choice"] == "matching"
    assert [each["bot"] for each in found["strengths"]][:1] == ["Atlas"]
    assert found["strengths"][-1]["bot"] == "Fir"
    assert found["strengths"][-1]["is_behind"]
    assert len(pairs_of(judge)) <= 90 * 6 + 20
    assert "Side by side, the same bot is first: Atlas is expected to win" in ended.out
    assert [line["Bot"] for line in read_sheet(tmp_path / "r.xlsx", "Strengths")[:6]] == [
        each["bot"] for each in found["strengths"]
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--judge offline --head-to-head", "--head-to-head: needs an LLM judge"),
        ("--judge offline --head-to-head --shard-rows 2 -o out", "--head-to-head: needs an LLM judge"),
        ("--head-to-head some", "'some'"),
        ("--against none.csv", "none of its 1 queries is in in.xlsx"),
        ("--against in.xlsx -o in.xlsx", "in.xlsx"),
        ("--against nowhere.xlsx", "nowhere.xlsx"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, words: str, told: str
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    write_table(tmp_path / "none.csv", ["Query", "Bot_A"], ["Something else?", "No."])
    ended = run_cli("in.xlsx", *words.split(), **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert told in ended.err


def test_one_bot_is_refused(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["What?", "That."])
    ended = run_cli("in.xlsx", "--head-to-head", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert "add a second column Bot_<name>" in ended.err


def test_the_file_may_follow_the_option_without_its_value(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx")
    for words in ("--head-to-head in.xlsx", "--head-to-head all in.xlsx", "in.xlsx --head-to-head"):
        assert run_cli(*words.split(), "--dry-run", **azure(judge)).code == 0


@pytest.mark.slow
def test_two_judges_are_compared_on_their_preferences(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """B prefers the other response to three questions, and decides by position for two."""
    answers(tmp_path / "in.xlsx", 20, (0, 5))
    contrary = {"first": "second", "second": "first", "tie": "tie"}

    def of_b(shown: dict[str, Any], said: dict[str, Any]) -> None:
        number = int(shown["query"].split()[-1].rstrip("?"))
        if shown["FIRST"] != shown["SECOND"] and number < 3:
            overall(said, contrary[said["overall"]])
        elif number in (3, 4):
            overall(said, "first")

    change = replying(of_b)
    judge.always = lambda request: (
        change(request) if request.body.get("model") == "other" or "other" in request.path else None
    )
    words = ("in.xlsx", "-o", "j.xlsx", "--json", "j.json", "--html", "j.html", "--head-to-head")
    prompts = ("--prompts-a", "single", "--prompts-b", "single")
    ended = rag_eval("compare-judges", *words, *prompts, "--model-b", "other", **azure(judge))
    assert ended.code == 0, ended.err
    found = run_of(tmp_path / "j.json")["preferences"]
    assert found["counts"]["first bot"] == {"first bot": 15, "tie": 2, "other bot": 3}
    assert found["flips"] == [0, 2]
    assert (found["kappa"]["count"], found["kappa"]["raw"]) == (20, 0.75)
    assert "Head to head: both judges prefer the same in 75% of 20 pairs" in ended.out
    sheet = read_sheet(tmp_path / "j.xlsx", "Pairs")
    names = ("By A", "B: first bot", "B: tie", "B: other bot")
    assert [sheet[0][name] for name in names] == ["first bot", 15, 2, 3]
    assert "Head to head: what both judges prefer" in (tmp_path / "j.html").read_text(encoding="utf-8")
    judge.requests.clear()
    refused = rag_eval(
        "compare-judges", "in.xlsx", "-o", "k.xlsx", "--head-to-head", "--judge-b", "offline", **azure(judge)
    )
    assert (refused.code, judge.requests) == (2, [])
    assert "--head-to-head: needs an LLM judge" in refused.err


# Shards


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_shards_come_to_the_figures_of_one_run(rag_eval: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """What depends on all rows is the same: a matching although each shard has few queries, twenty controls, the cap
    on queries. Repeats of a query are in other shards than the query."""
    table = answers(tmp_path / "in.xlsx", 60, (0, 2, 4, 7))
    book = load_workbook(table)
    for line in [*book.active.iter_rows(min_row=2, max_row=6, values_only=True)]:
        book.active.append(line)
    book.save(table)
    (tmp_path / "config.ini").write_text(f"{ONE_PROCESS}[head_to_head]\nrows = 50\n")
    words = PAIRS
    assert rag_eval(*words, "-o", "r.xlsx", "--json", "r.json", **azure(judge)).code == 0
    whole, asked = run_of(tmp_path / "r.json"), paid(judge)
    judge.requests.clear()
    sharded = (*words, "-o", "out", "--shard-rows", 13, "--json", "out/report.json")
    told = rag_eval(*sharded, "--dry-run", **azure(judge))
    assert not judge.requests
    ended = rag_eval(*sharded, **azure(judge))
    assert ended.code == 0, ended.err
    found = run_of(tmp_path / "out/report.json")
    assert (found["run"]["head_to_head"], found["head_to_head"]["trust"]["controls"]) == (MATCHING, 20)
    assert found["head_to_head"] == whole["head_to_head"]
    assert found["leaderboard"]["verdict_lines"] == whole["leaderboard"]["verdict_lines"]
    assert found["cases"] == whole["cases"]
    assert paid(judge) == asked
    assert f"head_to_head: {len(pairs_of(judge))}\n" in told.out
    for name in ("Head to Head", "Strengths", "Pairs"):
        assert read_sheet(tmp_path / "out/report.xlsx", name) == read_sheet(tmp_path / "r.xlsx", name)
    other = ("--alpha", "0.9", "--beta", "0.05")
    assert rag_eval(*words, "-o", "r.xlsx", "--json", "r.json", *other, **azure(judge)).code == 0
    sent = len(judge.requests)
    assert rag_eval(*sharded, *other, **azure(judge)).code == 0
    assert len(judge.requests) == sent
    again = run_of(tmp_path / "out/report.json")
    gaps = [[pair["rqs_gap"] for case in each["cases"] for pair in case["pairs"]] for each in (found, again)]
    assert gaps[0] != gaps[1]
    assert again["cases"] == run_of(tmp_path / "r.json")["cases"]
    assert again["head_to_head"] == run_of(tmp_path / "r.json")["head_to_head"]
    changed = rag_eval(*words, "all", "-o", "out", "--shard-rows", 13, **azure(judge))
    assert (changed.code, len(judge.requests)) == (2, sent)
    assert "[head_to_head] pairs is 'all', and was 'auto' when the run in out began" in changed.err


@pytest.mark.slow
def test_capped_shards_go_on_and_pay_nothing_twice(rag_eval: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 24, (0, 3))
    (tmp_path / "config.ini").write_text(ONE_PROCESS)
    ended = rag_eval(*SHARDS, "--max-calls", 50, **azure(judge))
    assert ended.code == 4, ended.err
    assert 30 < len(judge.requests) <= 50
    while ended.code == 4:
        before = len(judge.requests)
        ended = rag_eval(*SHARDS, "--max-calls", 50, **azure(judge))
        assert 0 < len(judge.requests) - before <= 50
    assert ended.code == 0, ended.err
    assert set(paid(judge).values()) == {1}
    assert len(pairs_of(judge)) == 2 * 24 + 20
    assert run_of(tmp_path / "out/report.json")["head_to_head"]["pairs"][0]["queries"] == 24


@pytest.mark.slow
def test_a_pair_that_failed_in_a_shard_is_judged_again_and_nothing_else_is(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 24, (0, 3))
    (tmp_path / "config.ini").write_text(ONE_PROCESS)

    def fail(shown: dict[str, Any], said: dict[str, Any]) -> None:
        if "question 13?" in shown["query"]:
            overall(said, "the better one")

    judge.always = replying(fail)
    assert "Add --retry-errors" in rag_eval(*SHARDS, **azure(judge)).err
    found = run_of(tmp_path / "out/report.json")["head_to_head"]
    assert (found["failed"], found["pairs"][0]["queries"]) == (1, 23)
    judge.always = None
    asked = len(judge.requests)
    assert rag_eval(*SHARDS, "--retry-errors", **azure(judge)).code == 0
    assert run_of(tmp_path / "out/report.json")["head_to_head"]["failed"] == 0
    assert 2 <= len(judge.requests) - asked <= 4


@pytest.mark.slow
def test_specifications_say_which_pairs_are_compared(rag_eval: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Any machine judges a shard as the run would; a folder with one bot is left as it was."""
    answers(tmp_path / "in.xlsx", 14, (0, 2, 4, 6))
    words = (*PAIRS, "-o", "out", "--shard-rows", 7)
    assert rag_eval(*words, "--engine", "none", **azure(judge)).code == 0
    for number in range(2):
        assert rag_eval("shard", f"out/specs/part-0000{number}.json", **azure(judge)).code == 0
    asked = paid(judge)
    judge.requests.clear()
    assert rag_eval("report", "out", "--json", "out/report.json").code == 0
    assert rag_eval(*words[:4], "-o", "r.xlsx", "--json", "r.json", **azure(judge)).code == 0
    assert paid(judge) == asked
    found, whole = run_of(tmp_path / "out/report.json"), run_of(tmp_path / "r.json")
    assert found["head_to_head"]["choice"] == ALL_PAIRS, "a matching would have few queries for each pair"
    assert found["head_to_head"] == whole["head_to_head"]
    write_table(tmp_path / "one.xlsx", ["Query", "Bot_A"], ["What?", "That."])
    ended = rag_eval("one.xlsx", "--head-to-head", "-o", "none", "--shard-rows", 1, **azure(judge))
    assert ended.code == 2
    assert "add a second column Bot_<name>" in ended.err
    assert not [*(tmp_path / "none").rglob("*.parquet")]


# Data frames


@pytest.mark.slow
def test_a_frame_has_the_pairs_of_a_run(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    answers(tmp_path / "in.xlsx", 12, (0, 3, 5))
    ended = run_cli(*RUN, **azure(judge))
    assert ended.code == 0, ended.err
    document, asked = run_of(tmp_path / "r.json"), paid(judge)
    judge.requests.clear()
    azure_section = {"endpoint": judge.url, "api_key": KEY}
    given = {"judge": {"provider": "azure", "prompts": "single"}, "azure": azure_section}
    settings = Settings.model_validate(given | {"head_to_head": {"pairs": "auto"}})
    scores = evaluate(tmp_path / "in.xlsx", settings)
    assert paid(judge) == asked
    assert json.loads(json.dumps(scores.attrs["head_to_head"])) == document["head_to_head"]
    assert json.loads(json.dumps([*scores["pairs"]])) == [case["pairs"] for case in document["cases"]]
    lines = scores[["row", "bot", "pairs"]].explode("pairs").dropna()
    assert len(lines) == 12 * 3 + 12
    table = pd.DataFrame(scores.attrs["head_to_head"]["pairs"])
    assert [*zip(table["one"], table["other"], strict=True)] == [*combinations(BOTS[:3], 2)]
    without = evaluate(tmp_path / "in.xlsx", Settings.model_validate(given))
    assert "pairs" not in without
    assert not without.attrs
    offline = Settings.model_validate({"judge": {"provider": "offline"}, "head_to_head": {"pairs": "all"}})
    with pytest.raises(InputError, match="needs an LLM judge"):
        evaluate(tmp_path / "in.xlsx", offline)


# Links


@pytest.mark.slow
def test_each_pair_links_to_its_case(rag_eval: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Repeats of a query are cases of their own, and a control is of its own bot."""
    table = answers(tmp_path / "in.xlsx", 12, (0, 3, 5))
    book = load_workbook(table)
    book.active.append([cell.value for cell in book.active[2]])
    book.save(table)
    for evidence in ("false", "true"):
        (tmp_path / "config.ini").write_text(f"[report]\nevidence = {evidence}\n")
        ended = rag_eval(*RUN, **azure(judge))
        assert ended.code == 0, ended.err
        book = load_workbook(tmp_path / "r.xlsx")
        cases, pairs = book["Per-Query Metrics"], book["Pairs"]
        of_case, of_pair = ([cell.value for cell in sheet[1]] for sheet in (cases, pairs))
        for line in pairs.iter_rows(min_row=2):
            sheet, _, cell = line[0].hyperlink.location.partition("!")
            assert sheet == "'Per-Query Metrics'"
            found = cases[cases[cell].row]
            for name in ("Row", "Bot"):
                assert found[of_case.index(name)].value == line[of_pair.index(name)].value
        assert pairs.max_row == 1 + 13 * 3 + 13


# History


@pytest.mark.slow
def test_a_history_keeps_win_rates_with_their_counts_and_verdicts(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    words = ("in.xlsx", "-o", "r.xlsx", *SINGLE, "--history", "h", "--html", "r.html", "--csv", "csv")
    answers(tmp_path / "in.xlsx", 14, (0, 4, 6))
    assert rag_eval(*words, **azure(judge)).code == 0
    (line,) = history_lines(tmp_path / "h")
    assert "pairs" not in line
    assert not {"Win Rate", "Head to Head"} & read_sheet(tmp_path / "r.xlsx", "History")[0].keys()
    assert rag_eval(*words, "--head-to-head", "--json", "r.json", **azure(judge)).code == 0
    found = run_of(tmp_path / "r.json")["head_to_head"]["pairs"]
    pairs = history_lines(tmp_path / "h")[-1]["pairs"]
    assert [(each["one"], each["other"]) for each in pairs] == [*combinations(BOTS[:3], 2)]
    for kept, shown in zip(pairs, found, strict=True):
        assert kept["interval"] == [shown["interval"]["low"], shown["interval"]["high"]]
        assert (kept["win_rate"], kept["queries"]) == (shown["win_rate"], shown["queries"] == 14 and 14)
    assert pairs[0]["verdict"] == "preferred"
    birch = next(
        each for each in reversed(read_sheet(tmp_path / "r.xlsx", "History")) if each["Bot"] == "Birch"
    )
    against = [1 - pairs[0]["win_rate"], pairs[2]["win_rate"]]
    assert birch["Win Rate"] == pytest.approx(sum(against) / 2)
    assert birch["Head to Head"].startswith("Atlas: 0% of 14 (95% CI 0–")
    assert "), not preferred; Cedar: " in birch["Head to Head"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "not preferred; Cedar: " in page.partition("History: 2 runs")[2]
    table = [*DictReader(StringIO((tmp_path / "csv" / "history.csv").read_text(encoding="utf-8-sig")))]
    assert [each["Win Rate Scored"] for each in table] == ["0", "28"] * 3
    assert "    Atlas: 0% of 14 (95% CI 0–" in rag_eval("history", "h").out
    path = tmp_path / "h" / "history.jsonl"
    path.write_text(path.read_text().replace('"win_rate": 1.0', '"win_rate": 1.5'))
    assert "a win rate is outside 0 to 1" in rag_eval("history", "h").err


@pytest.mark.slow
def test_a_history_names_a_judge_of_pairs_who_did_not_judge_the_scores(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The entry of the run is completed by its pairs."""
    answers(tmp_path / "in.xlsx", 12, (0, 5))
    scored = rag_eval("in.xlsx", "-o", "a.xlsx", "--judge", "offline", "--json", "a.json", "--history", "h")
    assert scored.code == 0
    ended = rag_eval("a.json", "--head-to-head", "-o", "b.xlsx", "--history", "h", **azure(judge))
    assert ended.code == 0, ended.err
    (before, line) = history_lines(tmp_path / "h")
    assert (line["id"], line["judge"]) == (before["id"], "offline judge")
    assert line["pair_judge"].startswith("Azure OpenAI, deployment gpt-4o")
    rows = read_sheet(tmp_path / "b.xlsx", "History")
    assert [each["Bot"] for each in rows] == [*BOTS[:2]]
    assert "; judged by Azure OpenAI, deployment gpt-4o" in rows[0]["Head to Head"]


@pytest.mark.slow
def test_the_history_of_a_matching_has_the_verdict_on_all_bots(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    answers(tmp_path / "in.xlsx", 60, (0, 2, 4, 6))
    words = ("in.xlsx", "-o", "r.xlsx", *SINGLE, "--head-to-head", "--history", "h", "--json", "r.json")
    assert rag_eval(*words, **azure(judge)).code == 0
    (line,) = history_lines(tmp_path / "h")
    strengths = run_of(tmp_path / "r.json")["head_to_head"]["strengths"]
    kept = {each["one"]: each for each in line["pairs"] if each["other"] is None}
    assert [kept[each["bot"]]["win_rate"] for each in strengths] == [each["win_rate"] for each in strengths]
    assert kept["Dune"]["verdict"] == "weaker than the strongest"
    assert {each["verdict"] for each in line["pairs"] if each["other"]} == {""}
    (dune,) = (each for each in read_sheet(tmp_path / "r.xlsx", "History") if each["Bot"] == "Dune")
    assert re.search(
        r"; an average bot: \d+% of 60 \(95% CI .*\), weaker than the strongest$", dune["Head to Head"]
    )


# Recorded judges


@pytest.mark.skipif(not _RECORDED.exists(), reason="recorded verdicts are not beside the checkout")
def test_recorded_judges_come_to_the_wins_of_the_source() -> None:
    """Six judges, 80 questions and 15 pairs of models in both orders."""
    with gzip.open(_RECORDED, "rt", encoding="utf-8") as file:
        rows = [*DictReader(file)]
    orders = [{"A": "this", "B": "other", "tie": "tie"}, {"A": "other", "B": "this", "tie": "tie"}]
    for judge in sorted({row["judge"] for row in rows}):
        mine = [row for row in rows if row["judge"] == judge]
        bots = sorted({row[name] for row in mine for name in ("model_a", "model_b")})
        verdicts, wanted = [], Counter[tuple[str, str, str]]()
        for row in mine:
            said = row["winner_a_first"], row["winner_b_first"]
            one, other = row["model_a"], row["model_b"]
            wanted[one, other, row["winner"]] += 1
            if "error" in said:
                verdicts.append((row["question"], one, PairVerdict(other, Outcome.FAILED, code="error")))
                continue
            names = tuple(order[word] for order, word in zip(orders, said, strict=True))
            value = sum({"this": 0.5, "other": -0.5, "tie": 0.0}[name] for name in names)
            verdicts.append((row["question"], one, PairVerdict(other, Outcome.SCORED, value, names)))
        found = counted(bots, verdicts)
        assert len(found.pairs) == 15
        for pair in found.pairs:
            names = (
                (pair.one, pair.other)
                if any(key[:2] == (pair.one, pair.other) for key in wanted)
                else (pair.other, pair.one)
            )
            of = {winner: count for (*both, winner), count in wanted.items() if tuple(both) == names}
            assert (pair.wins, pair.losses) == (of.get(pair.one, 0), of.get(pair.other, 0))
            assert pair.ties == of.get("tie", 0) + of.get("inconsistent", 0)

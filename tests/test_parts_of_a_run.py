"""Tallies of parts of a run, stored, read back and merged, come to exactly the figures of the whole."""

import io
import itertools
import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import facts_of, plain_result

from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    CaseResult,
    CriterionVerdict,
    FailureMode,
    Outcome,
    RubricOutcome,
    RunFacts,
    Score,
)
from rag_eval.results.baseline import NAMES, PastRun
from rag_eval.results.scoring import failure_modes, rqs
from rag_eval.results.stored import load_state, save_state
from rag_eval.results.tallies import Tallies
from rag_eval.store.codec import from_json, to_json

BOTS = ("A", "B", "silent")
VALUES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9, 1.0]
WEIGHTS = {"faithfulness": 0.6, "answer_correctness": 0.4}
THRESHOLDS = dict.fromkeys(METRIC_LABELS, 0.3)


def scores_of(chance: random.Random) -> dict[str, Score]:
    scores = {}
    for name in WEIGHTS:
        kind = chance.choice(["scored"] * 6 + ["failed", "blocked", "not applicable"])
        value = chance.choice(VALUES)
        if kind == "scored":
            samples = tuple(chance.choices(VALUES, k=chance.choice([0, 1, 2, 3])))
            scores[name] = replace(Score.scored(name, value), samples=samples)
        elif kind == "not applicable":
            scores[name] = Score.not_applicable(name, "no context")
        else:
            code = "refused" if kind == "blocked" else "timeout"
            scores[name] = Score.failed(name, code, "no answer")
    return scores


def verdict_of(chance: random.Random) -> RubricOutcome:
    if chance.random() < 0.2:
        return RubricOutcome.failed(["polite"], "timeout", "no answer")
    passed = chance.random() < 0.5
    verdict = CriterionVerdict("polite", True, passed, "because")
    return RubricOutcome(Outcome.SCORED, passed, 1, 1, (verdict,), ("polite",))


def row_of(number: int, seed: int) -> tuple[CaseResult, ...]:
    """Few different queries, values and slices, so that repetitions and ties are everywhere. One bot has no scores."""
    chance = random.Random(seed)
    query = chance.choice(["What?", "Who?", "Where?", f"Only in {number}?"])
    toxicity = Score.scored("toxicity", chance.choice([0.0, 0.9]))
    columns = {"Topic": chance.choice(["law", " law ", "", "tax", f"late {number // 3}"])}
    human = {"faithfulness": chance.choice(VALUES), "toxicity": 0.5, "polite": 1.0}
    label = {name: value for name, value in human.items() if chance.random() < 0.5}
    gold = chance.choice([None, (), ("d1", "d2", "d3")])
    results = []
    for bot in BOTS:
        scores = scores_of(chance)
        if bot == "silent":
            scores = {name: Score.failed(name, "timeout", "no answer") for name in scores}
        result = plain_result(
            number,
            bot,
            query=query,
            columns=columns,
            human=label if chance.random() < 0.7 else {},
            gold_ids=gold,
            retrieved_ids=tuple(chance.sample(["d1", "d2", "d4", "d5"], 3)),
        )
        results.append(
            replace(
                result,
                scores=scores,
                toxicity=toxicity,
                rqs=rqs(scores, WEIGHTS),
                failure_modes=failure_modes(scores, THRESHOLDS, None),
                rubric=verdict_of(chance),
            )
        )
    return tuple(results)


def past_run(rows: Sequence[Sequence[CaseResult]], seed: int) -> PastRun:
    """Some of the cases, with repeated queries, and values that differ a little."""
    chance = random.Random(seed)
    seen: dict[tuple[str, str, str], int] = {}
    values = {}
    for case in (result.case for row in rows for result in row):
        key = case.query, case.reference or "", case.bot
        number = seen[key] = seen.get(key, -1) + 1
        if number < 2:
            values[*key, number] = {name: chance.choice(VALUES) for name in (*WEIGHTS, "rqs")}
    return PastRun("old.json", values, judge="another judge")


def told(tallies: Tallies) -> str:
    """Every figure, to the last bit."""
    summary = tallies.summary()
    return repr((asdict(summary), asdict(tallies.findings(summary))))


def facts_with_all(rows: int, **others: Any) -> RunFacts:
    """Of a run with everything that tallies count."""
    return facts_of(
        BOTS,
        rows,
        metrics=(*WEIGHTS, TOXICITY),
        weights=WEIGHTS,
        thresholds=THRESHOLDS,
        rubric="tone",
        criteria=("polite",),
        has_labels=True,
        **others,
    )


def counted(facts: RunFacts, rows: Sequence[Sequence[CaseResult]], tallies: Tallies) -> Tallies:
    for row in rows:
        for result in row:
            tallies.add(result)
    return tallies


def stored(tallies: Tallies) -> bytes:
    file = io.BytesIO()
    save_state(file, tallies.state())
    return file.getvalue()


def cuts_of(parts: int, rows: int, chance: random.Random) -> list[slice]:
    """Parts of any size, empty ones included."""
    places = [0, *sorted(chance.randint(0, rows) for _ in range(parts - 1)), rows]
    return [slice(first, last) for first, last in itertools.pairwise(places)]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 10**6), min_size=1, max_size=14),
    order=st.randoms(use_true_random=False),
    has_past=st.booleans(),
)
def test_parts_of_any_size_done_in_any_order_come_to_the_figures_of_the_whole(
    seeds: list[int], order: random.Random, has_past: bool
) -> None:
    rows = [row_of(number, seed) for number, seed in enumerate(seeds, 2)]
    flags = {(row[0].case.row, bot): ("mark",) for row in rows[::2] for bot in BOTS}
    facts = facts_with_all(len(rows), flags=flags)
    past = past_run(rows, seed=len(seeds)) if has_past else None
    whole = told(counted(facts, rows, Tallies(facts, "Topic", past)))
    for parts in (1, 3, 7):
        files: dict[int, bytes] = {}
        numbered = list(enumerate(cuts_of(parts, len(rows), order)))
        order.shuffle(numbered)
        for number, part in numbered:
            files[number] = stored(counted(facts, rows[part], Tallies(facts, "Topic", is_part=True)))
        together = Tallies(facts, "Topic", past)
        for number in sorted(files):
            together.merge(load_state(io.BytesIO(files[number])))
        assert told(together) == whole, parts


def test_the_property_test_meets_what_it_is_about() -> None:
    """Repeated queries, ties, labels, failures, retrieval and changes are in its cases, or it would prove little."""
    rows = [row_of(number, number) for number in range(2, 40)]
    facts = facts_with_all(len(rows))
    tallies = counted(facts, rows, Tallies(facts, "Topic", past_run(rows, 1)))
    summary = tallies.summary()
    findings = tallies.findings(summary)
    assert findings.changes
    assert {change.name for change in findings.changes} <= set(NAMES)
    assert findings.noise
    assert findings.retrieval
    assert findings.alignment
    assert findings.pass_rates
    assert findings.alignment.disagreements
    assert any(causes.causes for causes in findings.causes)
    assert len(summary.slices) > 4
    assert summary.bots[2].rqs.scored == 0
    assert summary.bots[0].failures.keys() == {"timeout", "refused"}
    assert summary.bots[0].failure_modes[FailureMode.NOT_JUDGED]


def test_a_sum_does_not_depend_on_where_the_run_was_cut() -> None:
    """0.1 + 0.2 + 0.3 is not 0.1 + (0.2 + 0.3) for floats that are added one after the other."""
    ranks = [("d1", "d2"), ("d4", "d1"), ("d4", "d5", "d1")] * 5
    results = [
        plain_result(row, "A", gold_ids=("d1", "d6", "d7"), retrieved_ids=ids)
        for row, ids in enumerate(ranks, 2)
    ]
    facts = facts_of("A", len(results))
    whole = told(counted(facts, [results], Tallies(facts)))
    for cut in range(1, len(results)):
        together = Tallies(facts)
        for part in (results[:cut], results[cut:]):
            together.merge(
                load_state(io.BytesIO(stored(counted(facts, [part], Tallies(facts, is_part=True)))))
            )
        assert told(together) == whole


@pytest.mark.parametrize("content", [b"", b"not a state", b"PK\x03\x04 half of it"])
def test_what_is_not_a_stored_state_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a stored state"):
        load_state(io.BytesIO(content))


def test_a_state_that_holds_objects_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, state=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="not a stored state"):
        load_state(io.BytesIO(file.getvalue()))


def test_every_text_comes_back_from_a_line_of_json() -> None:
    result = plain_result(2, query="half \ud83d of a pair, \x00 and a line\nmore")
    for each in (result, plain_result(2, query="Öffnungszeiten, 營業時間\nand more"), plain_result(2**70)):
        assert from_json(CaseResult, to_json(each)) == each
        assert b"\n" not in to_json(each)
    for number in (0.1 + 0.2, 1e-320, math.inf, -math.inf):
        assert from_json(CaseResult, to_json(replace(plain_result(2), rqs=number))).rqs == number
    assert math.isnan(from_json(CaseResult, to_json(replace(plain_result(2), rqs=math.nan))).rqs or 0)


def test_arrays_come_back_as_they_were_and_empty_ones_empty() -> None:
    file = io.BytesIO()
    save_state(file, {"scores": array("d", [0.5, 1.0]), "none": array("q"), "no outcomes": bytearray()})
    file.seek(0)
    found = load_state(file)
    assert {name: list(each) for name, each in found.items()} == {
        "scores": [0.5, 1.0],
        "none": [],
        "no outcomes": [],
    }

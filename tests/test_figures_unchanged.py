"""The figures of a made-up run stay as they are: means, intervals, tests, agreement, causes and what is said of them.

`figures.json` holds them. `python tests/test_figures_unchanged.py` writes it anew; a figure that moves must be in
CHANGELOG.md under "Scores change".
"""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import THRESHOLDS, WEIGHTS, facts_of

from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    CriterionVerdict,
    Evidence,
    Outcome,
    RubricOutcome,
    Score,
)
from rag_eval.results.agreement import cohen_kappa, kappa_difference, spearman
from rag_eval.results.baseline import NAMES, BaselineComparison, PastRun, numbered, text_digest
from rag_eval.results.causes import cause_words, fix_words
from rag_eval.results.comparison import (
    bots_behind,
    compare_with_best,
    paired_permutation_pvalue,
    skewed_hurdle,
)
from rag_eval.results.gates import GateOn, evaluate, parse_gates, regression_gates
from rag_eval.results.intervals import (
    bootstrap_mean_interval,
    cluster_means,
    quantile_interval,
    reported_interval,
    share_interval,
    student_quantile,
    wilson_interval,
)
from rag_eval.results.judge_comparison import JudgeComparisonTally, JudgeRun, headline, ranking_words
from rag_eval.results.looks import boundaries, confidence_of, planned_looks, spent
from rag_eval.results.run_history import History, bots_in_time, changes_words, run_line, run_of
from rag_eval.results.sampling import draw_sample
from rag_eval.results.scoring import failure_modes, mean_score, rqs
from rag_eval.results.stratified import LabelledSample, implied_threshold, stratified_mean
from rag_eval.results.tallies import Tallies
from rag_eval.results.verdict import flagged_words, noise_words, verdict, verdict_on

RECORDED = Path(__file__).parent / "figures.json"
BOTS = ("Atlas", "Birch", "Cedar", "Dune")
ROWS = 48
CRITERIA = ("polite", "brief")
STRATA = {"Atlas": {"high": {"faithfulness": 20}, "low": {"faithfulness": 26}}}
FACTS = facts_of(
    BOTS,
    ROWS,
    rubric="tone",
    criteria=CRITERIA,
    further={"coverage": "Coverage"},
    has_labels=True,
    strata=STRATA,
    flags={(row, "Birch"): ("mark",) for row in range(3, 30)},
)


def made_results(seed: int, shift: float = 0.0, rows: int = ROWS) -> list[CaseResult]:
    """Scores of every kind: coarse and fine, failed and not applicable, of one and of several samples."""
    chance = random.Random(seed)
    return [_result(chance, row, number, shift) for row in range(2, rows + 2) for number in range(len(BOTS))]


def _result(chance: random.Random, row: int, number: int, shift: float) -> CaseResult:
    bot = BOTS[number]
    skill = 0.8 - 0.12 * number + shift
    scores = {name: _score(chance, name, skill, has_context=bot != "Dune") for name in METRIC_LABELS}
    further = {"coverage": _score(chance, "coverage", skill, has_context=True)}
    documents = tuple(f"d{chance.randrange(9)}" for _ in range(4))
    recall = len(set(documents) & {"d1", "d2", "d3"}) / 3 if row % 5 and number < 2 else None
    human = {}
    stratum = ""
    if row % 2 == 0:
        human = {"faithfulness": round(min(1.0, max(0.0, chance.random() * 0.4 + skill - 0.2)), 1)}
        human["polite"] = float(chance.random() < skill)
        human[TOXICITY] = 0.0
        stratum = ("high", "low")[row % 4 // 2] if bot == "Atlas" else ""
    case = Case(
        row=row,
        bot=bot,
        query=f"Question {row % 40}?",
        response="" if chance.random() < 0.05 else "An answer.",
        reference="The answer.",
        chunks=None if bot == "Dune" else () if chance.random() < 0.1 else ("c",),
        gold_ids=None if recall is None else ("d1", "d2", "d3"),
        retrieved_ids=None if recall is None else documents,
        human=human,
        columns={"Topic": ("law", "tax ", "")[row % 3]},
        labels={name: {**human, "polite": float(chance.random() < 0.5)} for name in ("Ada", "Ben")} if human else {},
        stratum=stratum,
    )  # fmt: skip
    return CaseResult(
        case=case,
        rqs=rqs(scores, WEIGHTS),
        failure_modes=failure_modes(scores, THRESHOLDS, recall if row % 2 else None),
        scores=scores,
        further=further,
        rubric=_rubric(chance, skill),
        toxicity=Score.scored(TOXICITY, 0.5 if row % 7 == 0 else 0.25),
    )


def _score(chance: random.Random, name: str, skill: float, *, has_context: bool) -> Score:
    kind = chance.random()
    if name in ("faithfulness", "context_recall", "context_precision") and not has_context:
        return Score.not_applicable(name, "no context")
    if kind < 0.03:
        return Score.failed(name, ("content_filter", "timeout")[kind < 0.015], "it failed")
    evidence = tuple(
        Evidence("statement", f"text {number}", "supported" if good else "not supported", good)
        for number in range(4)
        for good in [chance.random() < skill]
    )
    value = sum(each.favourable for each in evidence) / 4
    if name == "coverage":
        value = round(min(1.0, max(0.0, skill + 0.3 * (chance.random() - 0.5))), 3)
    one = Score.scored(name, value, "", evidence)
    if kind > 0.9:
        others = [Score.scored(name, max(0.0, value - 0.25)), Score.failed(name, "timeout", "it failed")]
        return mean_score([one, *others[: 1 + (kind > 0.95)]])
    return one


def _rubric(chance: random.Random, skill: float) -> RubricOutcome | None:
    kind = chance.random()
    if kind < 0.05:
        return RubricOutcome.failed(CRITERIA, "timeout", "it failed")
    if kind < 0.1:
        return RubricOutcome.not_applicable("no criterion applies")
    passed = [chance.random() < skill, chance.random() < 0.5]
    verdicts = tuple(
        CriterionVerdict(name, name == "polite", is_passed, "why")
        for name, is_passed in zip(CRITERIA, passed, strict=True)
    )
    return RubricOutcome(Outcome.SCORED, passed[0], int(passed[1]), 1, verdicts, CRITERIA)


def past_run(results: Sequence[CaseResult], **known: Any) -> PastRun:
    keys = numbered((each.case.query, each.case.reference or "", each.case.bot) for each in results)
    values = [
        {name: value for name in NAMES if (value := each.rqs if name == "rqs" else each.value(name)) is not None}
        for each in results
    ]  # fmt: skip
    return PastRun("before.json", dict(zip(keys, values, strict=True)), **known)


def _run() -> Iterator[tuple[str, Any]]:
    results = made_results(1)
    past = past_run(made_results(2, 0.15, 44), judge=FACTS.judge)
    last = past_run(made_results(3), judge="another judge")
    tallies = Tallies(FACTS, "Topic", past, last)
    for each in results:
        tallies.add(each)
    summary = tallies.summary()
    findings = tallies.findings(summary)
    yield "summary", summary
    yield "findings", findings
    words = [verdict(FACTS, summary, findings).answer, *noise_words(findings), *flagged_words(findings)]
    words += [verdict_on(bot, FACTS, summary, findings) for bot in BOTS]
    for causes in findings.causes:
        words += [fix_words(causes), *map(cause_words, causes.causes)]
    yield "words", words
    gates = parse_gates(["rqs=0.6", "Faithfulness = 0.55", "context-recall=0.9"])
    yield "gates", [evaluate(gates, summary, on, least) for on in GateOn for least in (0.5, 0.95)]
    yield "regressions", regression_gates(findings, BOTS, 0.5)
    first = run_of("a-1", "hash", FACTS, summary, findings, "a-1")
    runs = [
        replace(first, started=first.started + timedelta(days=day), **changes)
        for day, changes in enumerate(
            ({}, {}, {"partial": "stopped"}, {"judge": "another"}, {"prompts": "single"}, {})
        )
    ]
    runs.append(replace(runs[-1], started=runs[-1].started + timedelta(days=1), bots=runs[-1].bots[1:3]))
    history = History(Path("nowhere"), tuple(runs))
    in_time = bots_in_time(history)
    yield (
        "history",
        [
            (
                each.bot.bot,
                each.segment,
                each.verdict,
                each.change and each.change.difference,
                each.bot.failures,
            )
            for each in in_time
        ],
    )
    yield (
        "history words",
        [
            changes_words(replace(history, runs=(first, replace(runs[1], since=since, changes=changes))))
            for since, changes in (
                ("a-1", findings.changes or ()),
                ("", ()),
                ("a-1", ()),
                ("a-1", (findings.changes or ())[:1]),
            )
        ],
    )
    yield "history line", json.loads(run_line(first))


def _baselines() -> Iterator[tuple[str, Any]]:
    results, before = made_results(1), made_results(5, 0.2, 44)
    plain = past_run(before)
    hashed = {
        (text_digest(query), text_digest(truth), *rest): each
        for (query, truth, *rest), each in plain.values.items()
    }
    rounded = {
        key: {name: round(value, 2) for name, value in values.items() if name != "context_recall"}
        for key, values in list(plain.values.items())[:120]
    }
    pasts = {
        "cut": replace(plain, is_cut=True, judge="gpt-4o, merged prompts"),
        "hashed": replace(plain, values=hashed, is_hashed=True, judge=FACTS.judge),
        "rounded": replace(plain, values=rounded, roundings=dict.fromkeys(NAMES, 0.005)),
    }
    for name, past in pasts.items():
        comparison = BaselineComparison(past, replace(FACTS, prompts="single"))
        for each in results:
            comparison.add(each)
        yield (
            f"changes since one that is {name}",
            [comparison.changes(), comparison.differences(), comparison.not_comparable],
        )


def _two_judges() -> Iterator[tuple[str, Any]]:
    one, other = FACTS, replace(FACTS, thresholds={**THRESHOLDS, "faithfulness": 0.6}, toxicity_threshold=0.3)
    tally = JudgeComparisonTally(one, other)
    for a, b in zip(made_results(1), made_results(4, -0.05), strict=True):
        tally.add(a, replace(b, case=a.case))
    comparison = tally.comparison()
    yield "judges", replace(comparison, disagreements=())
    yield "largest", [(each.measure, each.row, each.bot, each.gap) for each in comparison.disagreements]
    runs = JudgeRun("A", "gpt-4o", one, cost=12.5), JudgeRun("B", "small", other, cost=0.125)
    yield "headlines", [headline(comparison, *runs), ranking_words(comparison)]


def _numbers(count: int, step: int) -> list[float]:
    """Without a pattern, and without chance."""
    return [(step * number * number + 3 * number) % 17 / 16 for number in range(count)]


def _statistics() -> Iterator[tuple[str, Any]]:
    for rows in (3, 6, 12, 15, 40):
        table = np.column_stack([np.sqrt(_numbers(rows, 3)), np.square(_numbers(rows, 5)), _numbers(rows, 7)])
        comparison = compare_with_best(table, "ABC")
        assert comparison is not None
        yield f"comparison of {rows}", comparison
        yield f"behind of {rows}", sorted(bots_behind("B", table, "ABC"))
        yield f"p of {rows}", paired_permutation_pvalue(table[:, 0] - table[:, 1])
        yield f"interval of {rows}", bootstrap_mean_interval(table[:, 1], confidence=0.9)
        yield f"hurdle of {rows}", skewed_hurdle(table[:, 1] - table[:, 0], 2.1)
        yield f"correlation of {rows}", spearman(table[:, 0], table[:, 2])
    pairs = zip(_numbers(30, 3), _numbers(30, 5), strict=True)
    clear = [(0.9 - 0.1 * one, 0.3 + 0.1 * other, 0.2) for one, other in pairs]
    yield "clear comparison", compare_with_best(clear, "ABC")
    first, second, third = ([int(4 * value) for value in _numbers(40, step)] for step in (3, 5, 7))
    mixed = [
        one if number % 3 else other for number, (one, other) in enumerate(zip(first, second, strict=True))
    ]
    for weights in (None, "quadratic"):
        yield f"kappa {weights}", cohen_kappa(first, mixed, weights=weights, categories=range(5))
        yield (
            f"difference of kappas {weights}",
            kappa_difference(
                third, mixed, first, [n // 3 for n in range(40)], categories=range(5), weights=weights
            ),
        )
    judge = _numbers(40, 3)
    human = [float(value > 0.4) if number % 5 else 0.5 for number, value in enumerate(judge)]
    yield "threshold", implied_threshold(judge, human)
    yield "weighted threshold", implied_threshold(judge, human, [1 + number % 3 for number in range(40)])
    strata = ["low" if number % 2 else "high" for number in range(40)]
    sample = LabelledSample(_numbers(20, 5), judge[:20], strata[:20], {"low": 30, "high": 25, "none": 0})
    yield "stratified", stratified_mean([*judge, *_numbers(15, 11)], sample)
    scores = _numbers(400, 3)
    human = [max(0.0, value - 0.15 * (number % 4)) for number, value in enumerate(scores[:20])]
    names = ["low" if number % 2 else "high" for number in range(18)] + ["rare"] * 2
    for sizes in ({"low": 198, "high": 200, "rare": 2}, {"low": 199, "high": 200, "rare": 1}):
        labelled = LabelledSample(human, scores[:20], names, sizes)
        yield f"stratified with {sizes['rare']}", stratified_mean(scores, labelled, confidence=0.9)
    one = LabelledSample(human, scores[:20], ["all"] * 20, {"all": 400})
    yield "stratified in one", stratified_mean(scores, one)
    few = LabelledSample(human[:1], scores[:1], ["all"], {"all": 400})
    yield "stratified of one label", stratified_mean(scores, few)
    for cases, suspicious in ((30, 0.2), (14, 0.0), (190, 0.1)):
        drawn = draw_sample(
            made_results(1), ["faithfulness", "polite"], cases, suspicious=suspicious, flags=FACTS.flags,
            drawn_before=frozenset(range(0, 60, 7)),
        )  # fmt: skip
        yield f"sample of {cases}", drawn


def _intervals() -> Iterator[tuple[str, Any]]:
    values = _numbers(30, 5)
    talks = [number // 4 for number in range(30)]
    yield "of cluster means", bootstrap_mean_interval(cluster_means(values, talks))
    for count in (4, 5, 30):
        yield f"reported of {count}", reported_interval(values[:count], clusters=None)
        yield f"reported of {count} in talks", reported_interval(values[:count], clusters=talks[:count])
    for clusters in ([(1, 2), (2, 2), (0, 3), (1, 1), (4, 5)], [(2, 2)] * 6, [(0, 1)] * 9, [(1, 2)] * 4):
        yield f"share of {clusters}", share_interval(clusters)
    for passed, count in ((0, 0), (0, 8), (8, 8), (3, 8), (1, 1)):
        yield f"Wilson of {passed} of {count}", wilson_interval(passed, count)
    yield "Wilson with a reach", wilson_interval(3, 8, reach=2.5)
    for count in (3, 5, 6, 8, 72, 73, 90):
        several = [float(number * number % 97) for number in range(count)]
        yield f"quantiles of {count}", [quantile_interval(several, share) for share in (0.5, 0.95)]
        yield f"quantiles of {count} at 90%", quantile_interval(several, 0.5, 0.9)
    yield "Student", [student_quantile(0.975, freedom) for freedom in (1, 2, 3, 10, 100)]
    yield "spent at looks", [spent(share) for share in (0.1, 0.4, 0.6, 0.8, 1.0)]
    yield "boundaries", [boundaries(shares) for shares in ((1.0,), (0.4, 1.0), (0.4, 0.6, 0.8, 1.0))]
    for rows in (8, 30, 31, 100):
        looks = planned_looks([f"{row % 20}" for row in range(rows)], (0.4, 0.6, 0.8))
        yield f"looks at {rows}", [looks, confidence_of(looks, rows), confidence_of(looks, rows // 2)]


PARTS = {
    "intervals": _intervals,
    "one run": _run,
    "baselines": _baselines,
    "two judges": _two_judges,
    "statistics": _statistics,
}


def figures(part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every figure by its path, in values that JSON knows, by what they belong to."""
    for name, value in PARTS[part]():
        yield name, dict(_flat("", value))


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(value):
        for field in fields(value):
            if field.repr and field.name not in ("flagged", "history"):
                yield from _flat(f"{path}.{field.name}", getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(f"{path}.{key}", each)
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from _flat(f"{path}.{number}", each)
    elif isinstance(value, float):
        yield path, round(value, 9) if math.isfinite(value) else str(value)
    else:
        yield path, value


@pytest.mark.parametrize("part", PARTS)
def test_the_figures_of_a_run_are_what_they_were(part: str) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[part]
    now = dict(figures(part))
    assert now.keys() == recorded.keys()
    changed = [
        (name, path, before, value)
        for name, found in now.items()
        for (path, value), before in zip(found.items(), recorded[name], strict=True)
        # The last digit of an interval may differ between versions of NumPy.
        if value != (pytest.approx(before, abs=1e-7) if isinstance(value, float) else before)
    ]
    assert changed == []


def test_a_run_in_parts_has_the_same_figures() -> None:
    whole, first, second = (Tallies(FACTS, "Topic", past_run(made_results(2))) for _ in range(3))
    results = made_results(1)
    for number, each in enumerate(results):
        whole.add(each)
        (first if number < 80 else second).add(each)
    together = Tallies(FACTS, "Topic", past_run(made_results(2)))
    for part in (first, second):
        together.merge(part.state())
    expected, found = whole.summary(), together.summary()
    assert dict(_flat("", found)) == dict(_flat("", expected))
    assert dict(_flat("", together.findings(found))) == dict(_flat("", whole.findings(expected)))


if __name__ == "__main__":
    lists = {part: {name: list(found.values()) for name, found in figures(part)} for part in PARTS}
    text = json.dumps(lists, ensure_ascii=False, separators=(",", ":"))
    RECORDED.write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n", encoding="utf-8")

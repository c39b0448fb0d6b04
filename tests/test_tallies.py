"""What is counted while results go by: noise between samples, flagged cases, and what reaches the findings."""

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from multiprocessing import get_context
from pathlib import Path

import pytest
from report_cases import facts_of, plain_result

from rag_eval.records import METRIC_LABELS, CaseResult, Outcome, RubricOutcome, Score
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.report.workbook import CaseSpool
from rag_eval.results.baseline import PastRun
from rag_eval.results.findings import Findings
from rag_eval.results.tallies import MOST_FLAGGED, NoiseTally, Tallies
from rag_eval.results.verdict import flagged_words, noise_words


def sampled(name: str, *samples: float) -> Score:
    return replace(Score.scored(name, sum(samples) / len(samples)), samples=samples)


def with_scores(row: int, scores: dict[str, Score], further: dict[str, Score] | None = None) -> CaseResult:
    return replace(plain_result(row), scores=scores, further=further or {})


def test_the_noise_of_a_metric_is_pooled_over_its_scores() -> None:
    """Variances 0.5, 0.08 and 0.01 with n − 1; a score that was asked for once says nothing."""
    tally = NoiseTally()
    tally.add(with_scores(2, {"faithfulness": sampled("faithfulness", 0.0, 1.0)}))
    tally.add(with_scores(3, {"faithfulness": sampled("faithfulness", 0.2, 0.6)}))
    tally.add(with_scores(4, {"faithfulness": Score.scored("faithfulness", 0.5)}))
    tally.add(with_scores(5, {"faithfulness": sampled("faithfulness", 0.5)}))
    tally.add(with_scores(6, {}, {"answer_coverage": sampled("answer_coverage", 0.3, 0.4, 0.5)}))
    assert tally.deviations() == pytest.approx({"faithfulness": sqrt(0.29), "answer_coverage": 0.1})


def test_without_samples_there_is_no_noise() -> None:
    assert NoiseTally().deviations() == {}


def test_a_flagged_case_without_any_point_has_none() -> None:
    findings = Findings({}, {}, None, flagged=(replace(plain_result(2, "A"), rqs=0.0),))
    assert flagged_words(findings) == ["Please check the flagged cases with the highest RQS: row 2 A 0.00."]


def test_the_flagged_cases_with_the_highest_rqs_are_named() -> None:
    flags = {(row, "A"): ("mark",) for row in range(2, 20)}
    facts = facts_of("AB", 20, flags=flags)
    tallies = Tallies(facts)
    for row in range(2, 22):
        tallies.add(plain_result(row, "A", row / 100))
        tallies.add(plain_result(row, "B", 0.9))
    tallies.add(replace(plain_result(19, "A"), rqs=None))
    flagged = tallies.findings(tallies.summary()).flagged
    assert [result.case.row for result in flagged] == list(range(19, 19 - MOST_FLAGGED, -1))
    assert MOST_FLAGGED == 10


def test_each_tally_reaches_the_findings_only_if_it_is_asked_for() -> None:
    facts = facts_of("A", 1)
    tallies = Tallies(facts)
    tallies.add(plain_result(2, "A"))
    summary = tallies.summary()
    findings = tallies.findings(summary)
    assert (findings.changes, findings.beside_changes, findings.pass_rates) == (None, (), ())
    assert (findings.retrieval, findings.alignment, findings.noise, summary.slices) == ({}, None, {}, ())
    assert (noise_words(findings), flagged_words(findings)) == ([], [])


def test_every_tally_is_told_of_every_result() -> None:
    facts = facts_of(
        "A", 1, rubric="tone", criteria=("polite",), has_labels=True, flags={(2, "A"): ("mark",)}
    )
    past = PastRun(
        "old.json", {("Question 2?", "The answer.", "A", 0): {"faithfulness": 0.5}}, judge="another judge"
    )
    tallies = Tallies(facts, "Topic", past)
    case = {
        "gold_ids": ("d1", "d2"),
        "retrieved_ids": ("d1",),
        "columns": {"Topic": " law "},
        "human": {"faithfulness": 0.9},
    }
    result = plain_result(2, "A", 0.7, **case)
    scores = {**result.scores, "faithfulness": sampled("faithfulness", 0.6, 0.8)}
    rubric = RubricOutcome(Outcome.SCORED, True, 1, 1, criteria=("polite",))
    tallies.add(replace(result, scores=scores, rubric=rubric))
    summary = tallies.summary()
    findings = tallies.findings(summary)
    assert [each.name for each in summary.slices] == ["law"]
    assert findings.changes is not None
    assert [change.before for change in findings.changes] == [0.5]
    assert findings.beside_changes[0].startswith("The baseline was judged by another judge")
    assert findings.pass_rates[0].overall.passed == 1
    assert findings.retrieval["A"].scored == 1
    assert findings.alignment is not None
    assert [line.measure for line in findings.alignment.agreements] == ["faithfulness"]
    assert noise_words(findings) == [
        "Standard deviation between the judge's samples of one score: Faithfulness 0.141."
    ]
    assert flagged_words(findings) == ["Please check the flagged cases with the highest RQS: row 2 A 0.70."]


def test_the_thresholds_of_the_run_say_what_is_positive() -> None:
    facts = facts_of(
        "A", 2, has_labels=True, thresholds=dict.fromkeys(METRIC_LABELS, 0.8), toxicity_threshold=0.7
    )
    tallies = Tallies(facts)
    human = {"faithfulness": 0.75, "toxicity": 0.6}
    tallies.add(plain_result(2, "A", 0.9, human=human))
    alignment = tallies.findings(tallies.summary()).alignment
    assert alignment is not None
    found = {
        line.measure: (line.threshold, line.positives.of, line.negatives.of) for line in alignment.agreements
    }
    assert found == {"faithfulness": (0.8, 0, 1), "toxicity": (0.7, 0, 1)}


def test_metrics_without_weight_do_not_make_bots_incomparable() -> None:
    for weight, unlike in ((0.0, {}), (0.5, {"B": ("faithfulness",)})):
        weights = dict.fromkeys(METRIC_LABELS, 0.5) | {"faithfulness": weight}
        tallies = Tallies(facts_of("AB", 1, weights=weights))
        tallies.add(plain_result(2, "A", 0.9))
        bare = plain_result(2, "B", 0.5)
        scores = {**bare.scores, "faithfulness": Score.not_applicable("faithfulness", "no context")}
        tallies.add(replace(bare, scores=scores))
        assert tallies.findings(tallies.summary()).unlike == unlike


_HEAP = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip


class _Heap(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _HEAP)


def bytes_of_large_objects() -> int:
    """What glibc has handed out; objects of up to 512 bytes are Python's own business, and counted by it."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Heap
    heap = mallinfo2()
    return int(heap.uordblks + heap.hblkhd)


def memory() -> tuple[int, int]:
    """Small objects, and the bytes of all others: to trace them would take more than twice as long."""
    return sys.getallocatedblocks(), bytes_of_large_objects()


@contextmanager
def watched_memory() -> Iterator[list[tuple[int, int]]]:
    """What there is at the beginning, and then every few milliseconds."""
    seen, is_over = [memory()], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.002):
            seen.append(memory())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        is_over.set()
        watching.join()


def memory_of_cases(folder: Path, rows: int) -> tuple[float, float, int, int]:
    """What a case adds (small objects, bytes of others), and what the end of a report adds at its height.

    Of tallies, first sheet and page together, for twice these rows and two bots.
    """
    facts = facts_of("AB", 2 * rows)
    tallies, page = Tallies(facts), HtmlReport(folder / "p.html", facts, {}, megabytes=1)
    spool = CaseSpool("AB", 10)
    kept = []
    try:
        for row in range(2, 2 * rows + 2):
            for bot in "AB":
                result = plain_result(row, bot, (row * 7919 % 10_007) / 10_007)
                tallies.add(result)
                page.add(result)
                spool.add(result)
            if row in (rows + 1, 2 * rows + 1):
                gc.collect()
                kept.append(memory())
        objects, large = ((after - before) / (2 * rows) for before, after in zip(*kept, strict=True))
        with watched_memory() as seen:
            summary = tallies.summary(())
            findings = tallies.findings(summary)
            page.finish(summary, findings, facts)
        assert [bot.rqs.scored for bot in summary.bots] == [2 * rows] * 2
    finally:
        spool.close()
    return objects, large, *(max(found) - found[0] for found in zip(*seen, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc")
def test_a_case_takes_few_bytes_once_its_numbers_are_on_disk(tmp_path: Path) -> None:
    """In a process of its own: the heap of one that has run other tests has holes, and counts them."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        fresh.submit(memory_of_cases, tmp_path, 1).result()  # imports all
        many = fresh.submit(memory_of_cases, tmp_path, 2**14)  # all tables are on disk
        objects, large, objects_at_end, large_at_end = many.result()
    assert objects < 0.05
    assert large < 4
    assert objects_at_end < 100_000, "another one for each case would be 65,536 more"
    assert large_at_end < 11e6

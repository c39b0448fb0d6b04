"""Simulation: do labels of a review sheet correct a biased judge, and is its sample worth the trouble?

    python benchmarks/review_coverage.py [--simulations 1000] [--only judges|workflows]

`judges`: each simulation draws the cases of one bot, a biased judge's scores of them and their RQS; then it labels a
sample, stratified by thirds of RQS or uniform, and asks rag_eval.results for the corrected mean. Printed as Markdown:
how often its 95% interval contains the mean of all such queries, and its mean width.

`workflows`: each simulation draws a first and a second review sheet of a run in which the judge takes some bad
responses for good ones, labels both as people do, and asks for the corrected mean of all labels together.

The standard error of a coverage near 95% is 0.7 points with 1,000 simulations. The numbers are in the tables of
docs/background/statistics-simulations.md.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from openpyxl import load_workbook

from rag_eval.records import TOXICITY, Case, CaseResult, RunFacts, Score
from rag_eval.report.review_sheet import Review, write_review
from rag_eval.results.human_alignment import FEWEST_LABELS, AlignmentTally
from rag_eval.results.sampling import draw_sample
from rag_eval.results.stratified import CorrectedMean, LabelledSample, stratified_mean
from rag_eval.tables import review_file
from rag_eval.tables.review_file import (
    CANNOT_SAY,
    EarlierSheets,
    Fingerprint,
    ReviewFile,
    ReviewLabels,
    hash_of,
)

Floats = NDArray[np.float64]
Rng = np.random.Generator
Judge = Callable[[Rng, Floats], Floats]
PARTS = 3


def _graded(rng: Rng, shape: tuple[int, int]) -> Floats:
    return rng.beta(5, 2, shape)


def _steps(rng: Rng, shape: tuple[int, int]) -> Floats:
    return np.round(rng.beta(5, 2, shape) * 4) / 4


def _verdicts(rng: Rng, shape: tuple[int, int]) -> Floats:
    return (rng.random(shape) < 0.7).astype(float)


def _kind(rng: Rng, truth: Floats) -> Floats:
    return np.clip(truth + 0.1 + rng.normal(0, 0.1, truth.shape), 0, 1)


def _strict(rng: Rng, truth: Floats) -> Floats:
    return np.clip(truth - 0.12 + rng.normal(0, 0.25, truth.shape), 0, 1)


def _kind_to_the_bad(rng: Rng, truth: Floats) -> Floats:
    bad = 0.5 * (1 - truth) ** 2 * (truth < 0.5)
    return np.clip(1 - (1 - truth) * 0.3 - bad + rng.normal(0, 0.08, truth.shape), 0, 1)


def _blind_to_half_of_the_bad(rng: Rng, truth: Floats) -> Floats:
    missed = (truth < 0.6) & (rng.random(truth.shape) < 0.5)
    return np.where(missed, 0.9, np.clip(truth + rng.normal(0, 0.08, truth.shape), 0, 1))


def _badly_wrong(share: float) -> Judge:
    """Nearly always right; for a few responses it sees nothing good, whatever they are."""

    def judge(rng: Rng, truth: Floats) -> Floats:
        near = np.clip(truth + rng.normal(0, 0.03, truth.shape), 0, 1)
        return np.where(rng.random(truth.shape) < share, 0.05, near)

    return judge


def _useless(rng: Rng, truth: Floats) -> Floats:
    return rng.beta(5, 3, truth.shape)


def _sure(rng: Rng, truth: Floats) -> Floats:
    return np.where(truth > 0, rng.beta(8, 1.5, truth.shape), rng.beta(3, 3, truth.shape))


def _unsure(rng: Rng, truth: Floats) -> Floats:
    return np.where(truth > 0, rng.beta(5, 2, truth.shape), rng.beta(3, 3, truth.shape))


SCENARIOS: dict[str, tuple[Callable[[Rng, tuple[int, int]], Floats], Judge]] = {
    "graded labels, judge 0.1 too kind": (_graded, _kind),
    "graded labels, judge 0.12 too strict, noisy": (_graded, _strict),
    "graded labels, judge kind to bad responses": (_graded, _kind_to_the_bad),
    "graded labels, judge blind to half of the bad responses": (_graded, _blind_to_half_of_the_bad),
    "graded labels, judge badly wrong in 2%": (_graded, _badly_wrong(0.02)),
    "graded labels, judge badly wrong in 4%": (_graded, _badly_wrong(0.04)),
    "graded labels, useless judge": (_graded, _useless),
    "labels in five steps, judge 0.1 too kind": (_steps, _kind),
    "yes/no labels, judge good, graded": (_verdicts, _sure),
    "yes/no labels, judge unsure, graded": (_verdicts, _unsure),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--only", choices=["judges", "workflows"])
    options = parser.parse_args()
    if options.only != "workflows":
        show_judges(options.simulations)
    if options.only != "judges":
        show_workflows(options.simulations)


def show_judges(simulations: int) -> None:
    began = time.process_time()
    print(
        "| labels and judge | cases | labels | judge only, error | uniform | stratified | width, uniform | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    ratios: dict[tuple[int, int], list[float]] = {}
    covered: dict[tuple[int, int], list[float]] = {}
    for name, (labels_of, judge_of) in SCENARIOS.items():
        mean = float(labels_of(np.random.default_rng(99), (1, 4_000_000)).mean())
        for cases in (200, 1_000):
            for labels in (20, 40, 80):
                rng = np.random.default_rng(cases + labels)
                truth = labels_of(rng, (simulations, cases))
                judge = judge_of(rng, truth)
                rqs = 0.5 * judge + 0.5 * np.clip(judge + rng.normal(0, 0.1, judge.shape), 0, 1)
                drawn = [_simulated(rng, *each, labels) for each in zip(truth, judge, rqs, strict=True)]
                low, high, low_uniform, high_uniform = np.array(drawn).T
                width, uniform = float((high - low).mean()), float((high_uniform - low_uniform).mean())
                holds = float(((low <= mean) & (mean <= high)).mean())
                holds_uniform = float(((low_uniform <= mean) & (mean <= high_uniform)).mean())
                ratios.setdefault((cases, labels), []).append(width / uniform)
                covered.setdefault((cases, labels), []).append(holds)
                print(
                    f"| {name} | {cases:,} | {labels} | {float(judge.mean()) - mean:+.3f} | {holds_uniform:.1%} | "
                    f"{holds:.1%} | {uniform:.3f} | {width / uniform:.2f} |",
                    flush=True,
                )
    print("\n| cases | labels | mean coverage | lowest | mean ratio of the widths |\n|---|---|---|---|---|")
    for (cases, labels), values in ratios.items():
        rates = covered[cases, labels]
        print(f"| {cases:,} | {labels} | {np.mean(rates):.1%} | {min(rates):.1%} | {np.mean(values):.3f} |")
    print(f"\n{time.process_time() - began:.0f} s of processor time")


def _simulated(rng: Rng, truth: Floats, judge: Floats, rqs: Floats, labels: int) -> tuple[float, ...]:
    """The intervals of both samples of the same cases."""
    parts = np.array_split(np.argsort(rqs, kind="stable"), PARTS)
    shares = [labels // PARTS + (number < labels % PARTS) for number in range(PARTS)]
    drawn = [rng.choice(part, share, replace=False) for part, share in zip(parts, shares, strict=True)]
    lines = np.concatenate(drawn)
    names = [str(number) for number, part in enumerate(drawn) for _ in part]
    sizes = {str(number): len(part) for number, part in enumerate(parts)}
    stratified = stratified_mean(judge, LabelledSample(truth[lines], judge[lines], names, sizes))
    any_of_all = rng.choice(len(judge), labels, replace=False)
    everywhere = LabelledSample(truth[any_of_all], judge[any_of_all], ["all"] * labels, {"all": len(judge)})
    uniform = stratified_mean(judge, everywhere)
    assert stratified is not None
    assert uniform is not None
    return (
        stratified.interval.low,
        stratified.interval.high,
        uniform.interval.low,
        uniform.interval.high,
    )


METRIC = "faithfulness"
MISSED, SEEN, FALSE_ALARMS = 0.12, 0.8, 0.03
"""Share of bad responses that the judge takes for good ones; of these, and of all others, the share that is flagged."""


@dataclass(frozen=True)
class Workflow:
    """How the cases are labelled."""

    suspicious: float = 0.0
    """Share of each sheet."""
    run: int = 200
    """Cases of the run."""
    sheets: int = 2
    cases: int = 50
    """On each sheet."""
    answered: tuple[float, ...] = (1.0, 1.0, 1.0)
    """Share of the cases of each sheet that are answered …"""
    in_order: bool = True
    """… which are its first ones, or any."""
    drawn_together: bool = False
    """The later sheets are drawn before anybody labels the first."""
    raters: int = 1
    cannot_say: float = 0.0
    """Share of the cases on which people cannot say …"""
    cannot_say_if_bad: float | None = None
    """… and of those with a label below 0.5, if it is another."""


WORKFLOWS: dict[str, Workflow] = {
    "one sheet": Workflow(sheets=1),
    "one sheet, half suspicious": Workflow(sheets=1, suspicious=0.5, cases=80),
    "two sheets": Workflow(),
    "two sheets, a fifth suspicious": Workflow(suspicious=0.2),
    "two sheets, half suspicious": Workflow(suspicious=0.5),
    "three sheets, half suspicious": Workflow(sheets=3, suspicious=0.5),
    "first 60% answered": Workflow(suspicious=0.5, cases=70, answered=(0.6, 0.6)),
    "first 40% of the second sheet answered": Workflow(suspicious=0.5, cases=70, answered=(1.0, 0.4)),
    "any 40% of the second sheet answered": Workflow(
        suspicious=0.5, cases=70, answered=(1.0, 0.4), in_order=False
    ),
    "second sheet drawn before the first is labelled": Workflow(
        suspicious=0.5, cases=70, answered=(1.0, 0.4), drawn_together=True
    ),
    "two raters, each any 60%": Workflow(suspicious=0.5, raters=2, answered=(0.6, 0.6), in_order=False),
    "20% cannot say": Workflow(suspicious=0.5, cannot_say=0.2),
    "first 60% answered, 20% cannot say": Workflow(
        suspicious=0.5, cases=80, answered=(0.6, 0.6), cannot_say=0.2
    ),
    "5% cannot say, 30% if bad": Workflow(suspicious=0.5, cannot_say=0.05, cannot_say_if_bad=0.3),
}
"""From the seventh on, half of each sheet is suspicious, and there are two sheets."""


def show_workflows(simulations: int) -> None:
    began = time.process_time()
    print("| workflow | judge only, error | coverage | error | width | labels |\n|---|---|---|---|---|---|")
    for name, workflow in WORKFLOWS.items():
        found = simulate(workflow, simulations)
        bounds = [each.interval for each in found]
        mean = mean_label()
        holds = np.mean([each.low <= mean <= each.high for each in bounds])
        print(
            f"| {name} | {np.mean([each.judge_mean for each in found]) - mean:+.3f} | {holds:.1%} | "
            f"{np.mean([each.value for each in found]) - mean:+.3f} | "
            f"{np.mean([each.high - each.low for each in bounds]):.3f} | "
            f"{np.mean([each.labelled for each in found]):.0f} |",
            flush=True,
        )
    print(f"\n{time.process_time() - began:.0f} s of processor time")


def simulate(workflow: Workflow, simulations: int, seed: int = 0) -> list[CorrectedMean]:
    """The corrected means of as many simulations; those without one are left out."""
    rng = np.random.default_rng(seed)
    found = [Simulation(rng, workflow, number).corrected() for number in range(simulations)]
    return [each for each in found if each]


def mean_label() -> float:
    """What people would say on average of all such responses."""
    steps = _steps(np.random.default_rng(99), (1, 4_000_000))
    return float(MISSED * 0.125 + (1 - MISSED) * steps.mean())


class Simulation:
    """One run and all its labels."""

    def __init__(self, rng: Rng, workflow: Workflow, seed: int) -> None:
        self._rng = rng
        self._plan = workflow
        self._seed = seed
        count = workflow.run
        missed = rng.random(count) < MISSED
        self.truth = np.where(missed, rng.choice([0.0, 0.25], count), _steps(rng, (1, count))[0])
        kind = np.clip(self.truth + 0.05 + rng.normal(0, 0.12, count), 0, 1)
        judge = np.where(missed, rng.uniform(0.7, 1.0, count), kind)
        rqs = np.clip(0.5 * judge + 0.5 * rng.normal(0.7, 0.15, count), 0, 1)
        is_flagged = rng.random(count) < np.where(missed, SEEN, FALSE_ALARMS)
        self.flags = {(row, "A"): ("flag",) for row in map(int, np.flatnonzero(is_flagged))}
        self.results = [_result(row, float(judge[row]), float(rqs[row])) for row in range(count)]
        bad = workflow.cannot_say if workflow.cannot_say_if_bad is None else workflow.cannot_say_if_bad
        self._is_unclear = rng.random(count) < np.where(self.truth < 0.5, bad, workflow.cannot_say)

    def corrected(self, folder: Path | None = None) -> CorrectedMean | None:
        """Of the labels of all sheets; with a folder they are written to workbooks there, filled and read."""
        plan = self._plan
        files: list[ReviewFile] = []
        blank: list[ReviewFile] = []
        for number in range(plan.sheets):
            review = self._drawn(blank if plan.drawn_together else files, number)
            answers = list(self._answers(review, plan.answered[number]))
            if plan.drawn_together:
                blank.append(_in_memory(f"{number}.xlsx", review, [{} for _ in answers]))
            if folder:
                files.append(_through_a_workbook(folder / f"{number}.xlsx", review, answers))
            else:
                files.append(_in_memory(f"{number}.xlsx", review, answers))
        labels = ReviewLabels(files)
        labels.join(result.case for result in self.results)
        results = [labels.applied(result) for result in self.results]
        return _as_reported(results, labels) if folder else _corrected_only(results, labels)

    def _drawn(self, files: Sequence[ReviewFile], number: int) -> Review:
        """A sheet after these."""
        plan = self._plan
        earlier = EarlierSheets.of(files, (result.case for result in self.results))
        sample = draw_sample(
            self.results,
            [METRIC],
            plan.cases,
            suspicious=plan.suspicious,
            flags=self.flags,
            drawn_before=frozenset(row for row, _ in earlier.drawn),
            chosen_before=frozenset(row for row, _ in earlier.chosen),
            strata_before=earlier.strata,
            seed=self._seed * 10 + number,
        )
        labelled = earlier.answered(earlier.joinable(sample.strata))
        raters = [f"rater {each}" for each in range(plan.raters)]
        by_line = {row: sheets for (row, _), sheets in labelled.items()}
        return Review(_facts(plan.run), self.results, sample, [METRIC], raters, False, by_line)

    def _answers(self, review: Review, share: float) -> Iterator[dict[str, float | None]]:
        """By rater: label by number of the case, None for 'cannot say'; without the cases that nobody got to."""
        plan, numbers = self._plan, [(str(number), drawn.line) for number, drawn in review.to_label()]
        for _ in range(plan.raters):
            order = range(len(numbers)) if plan.in_order else self._rng.permutation(len(numbers))
            chosen = [numbers[place] for place in order[: round(len(numbers) * share)]]
            yield {
                number: None if self._is_unclear[line] else float(self.truth[line]) for number, line in chosen
            }


def _result(row: int, judge: float, rqs: float) -> CaseResult:
    case = Case(row, "A", f"question {row}", f"answer {row}")
    score = {METRIC: Score.scored(METRIC, judge)}
    toxicity = Score.not_applicable(TOXICITY, "")
    return CaseResult(case=case, scores=score, toxicity=toxicity, rqs=rqs, failure_modes=())


def _as_reported(results: Sequence[CaseResult], labels: ReviewLabels) -> CorrectedMean | None:
    tally = AlignmentTally(("A",), {METRIC: 0.5}, (), labels.strata)
    for result in results:
        tally.add(result)
    agreement, *_ = tally.alignment().agreements
    return agreement.corrected


def _corrected_only(results: Sequence[CaseResult], labels: ReviewLabels) -> CorrectedMean | None:
    """The same without the bootstraps of everything else that is reported."""
    judged = [result.value(METRIC) or 0.0 for result in results]
    drawn = [
        (result.case.human[METRIC], score, result.case.stratum)
        for result, score in zip(results, judged, strict=True)
        if result.case.stratum in labels.strata["A"] and METRIC in result.case.human
    ]
    if len(drawn) < FEWEST_LABELS:
        return None
    human, judge, strata = zip(*drawn, strict=True)
    sizes = {stratum: counts[METRIC] for stratum, counts in labels.strata["A"].items()}
    return stratified_mean(judged, LabelledSample(human, judge, strata, sizes))


def _facts(rows: int) -> RunFacts:
    return RunFacts(
        input_name="in.xlsx",
        sheet="",
        judge="simulated",
        is_proxy=False,
        version="",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        bots=("A",),
        rows=rows,
        blank_rows=0,
        cut_rows=0,
        metrics=(METRIC,),
        weights={METRIC: 1.0},
        thresholds={METRIC: 0.5},
        toxicity_threshold=0.5,
        diagnostics=False,
    )


Answers = Sequence[dict[str, float | None]]


def _through_a_workbook(path: Path, review: Review, answers: Answers) -> ReviewFile:
    """As people do it."""
    write_review(path, review)
    book = load_workbook(path)
    words = {value: word for word, value in review_file.STEPS.items()}
    for rater, labels in zip(review.raters, answers, strict=True):
        for row in book[rater].iter_rows():
            number, _, measure = str(row[review_file.KEYS].value).partition("/")
            if measure and number in labels:
                label = labels[number]
                row[review_file.LABEL].value = CANNOT_SAY if label is None else words[label]
    book.save(path)
    return ReviewFile.read(path)


def _in_memory(name: str, review: Review, answers: Answers) -> ReviewFile:
    """The same without a workbook, which takes a hundred times as long."""
    cases = {}
    for number, drawn in enumerate(review.sample.cases, 1):
        case = review.results[drawn.line].case
        labelled_in = ", ".join(review.labelled_in(drawn))
        cases[str(number)] = review_file._SampledCase(
            str(case.row), case.bot, Fingerprint.of(case), drawn.stratum, labelled_in
        )
    given = {
        (rater, number, METRIC): review_file._GivenLabel(label, review_file._Place(name, rater, 0))
        for rater, labels in zip(review.raters, answers, strict=True)
        for number, label in labels.items()
        if label is not None
    }
    questions = {
        (str(number), METRIC): any(str(number) in labels for labels in answers)
        for number, _ in review.to_label()
    }
    strata = {hash_of("A"): review_file._Strata(len(review.results), review.sample.strata["A"])}
    return ReviewFile(name, cases, strata, given, questions, ())


if __name__ == "__main__":
    main()

"""Simulation: do labels of a review sheet correct a biased judge, and is its sample worth the trouble?

    python benchmarks/review_coverage.py [--simulations 1000]

Each simulation draws the cases of one bot, a biased judge's scores of them and their RQS; then it labels a sample,
stratified by thirds of RQS or uniform, and asks rag_eval.results for the corrected mean. Printed as Markdown: how often
its 95% interval contains the mean of all such queries, and its mean width. The standard error of a coverage near 95% is
0.7 points with 1,000 simulations. Its numbers are in the tables of docs/background/statistics-simulations.md.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rag_eval.results.stratified import LabelledSample, stratified_mean

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
    "graded labels, useless judge": (_graded, _useless),
    "labels in five steps, judge 0.1 too kind": (_steps, _kind),
    "yes/no labels, judge good, graded": (_verdicts, _sure),
    "yes/no labels, judge unsure, graded": (_verdicts, _unsure),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=1_000)
    simulations = parser.parse_args().simulations
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


if __name__ == "__main__":
    main()

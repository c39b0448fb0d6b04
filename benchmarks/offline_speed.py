"""Cases a second that the offline judge scores with all five metrics, on one core.

    python benchmarks/offline_speed.py [--cases 4000] [--bots 2] [--profile | --before OTHER_CHECKOUT]

A case has about 700 words: a query of 12, a reference of 58, a response of 110 and five chunks of 104. The bots
of a row share query, reference and chunks, each has a response of its own. The words are English prose from
the interpreter's own help topics, cut at seeded places, so nothing is downloaded and every run sees the same
text. Every case is new to the judge, and its memories start empty. Other work on the machine slows a batch
down by up to a half, so the best batch is the nearest to what the judge needs. With --before, two checkouts judge
every batch in turn, so that other work hits both, and the ratio of their processor times is printed.
"""

import argparse
import asyncio
import cProfile
import gc
import platform
import pstats
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data.topics import topics

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag_eval.metrics.catalogue import offline_metrics
from rag_eval.records import METRIC_LABELS, Case

ROOT = Path(__file__).resolve().parent.parent
BATCH = 200
QUERY, REFERENCE, RESPONSE, CHUNK, CHUNKS = 12, 58, 110, 104, 5


_WORKER = """
import sys
root, cases, bots = sys.argv[1:]
sys.path[:0] = [root, f"{root}/benchmarks"]
from offline_speed import BATCH, _rate, gc, make_cases
gc.set_threshold(100_000, 50, 100)
made = list(make_cases(int(cases) // int(bots), int(bots)))
for line in sys.stdin:
    print(1 / _rate(made[int(line) : int(line) + BATCH]), flush=True)
"""


def main() -> None:
    gc.set_threshold(100_000, 50, 100)  # as the command line does
    options = _options()
    if options.before:
        _compare(options.before.resolve(), options.cases, options.bots)
        return
    cases = list(make_cases(options.cases // options.bots, options.bots))
    words = sum(map(_words_of, cases)) / len(cases)
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(asyncio.run, _judge_all(cases))
        pstats.Stats(profile).sort_stats("tottime").print_stats(18)
        return
    rates = sorted(_rate(cases[start : start + BATCH]) for start in range(0, len(cases) - BATCH + 1, BATCH))
    print(f"{len(cases)} cases, {words:.0f} words a case, {options.bots} bot(s) on the same chunks, one core")
    print(f"cases a second: best batch {rates[-1]:.0f}, median batch {rates[len(rates) // 2]:.0f}", end=" ")
    print(f"({BATCH} cases a batch, Python {platform.python_version()})")


def _compare(before: Path, cases: int, bots: int) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(checkout), str(cases), str(bots)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout in (before, ROOT)
    ]
    ratios = []
    for turn, start in enumerate(range(0, cases - BATCH + 1, BATCH)):
        seconds = [0.0, 0.0]
        for number in (0, 1) if turn % 2 else (1, 0):
            to, back = workers[number].stdin, workers[number].stdout
            if to is None or back is None:
                raise RuntimeError("a worker has no pipes")
            print(start, file=to, flush=True)
            seconds[number] = float(back.readline())
        ratios.append(seconds[1] / seconds[0])
    for worker in workers:
        worker.communicate()
    low, middle, high = statistics.quantiles(ratios[1:], n=4)
    print(f"processor time of a case, {ROOT.name} ÷ {before.name}: median {middle:.3f}", end=" ")
    print(f"of {len(ratios) - 1} pairs of batches, half of them {low:.3f} to {high:.3f}")


def _rate(cases: list[Case]) -> float:
    started = time.process_time()
    asyncio.run(_judge_all(cases))
    return len(cases) / (time.process_time() - started)


async def _judge_all(cases: list[Case]) -> None:
    metrics = offline_metrics(METRIC_LABELS)
    for case in cases:
        for metric in metrics:
            await metric.measure(case)


def make_cases(rows: int, bots: int) -> Iterator[Case]:
    """Cases of English prose; two thirds of every response and reference stand in the chunks."""
    prose = " ".join(topics[name] for name in sorted(topics)).split()
    rng = random.Random(7)

    def passage(length: int) -> str:
        start = rng.randrange(len(prose) - length)
        return " ".join(prose[start : start + length])

    for row in range(rows):
        chunks = tuple(passage(CHUNK) for _ in range(CHUNKS))
        query, reference = passage(QUERY), _mixed(passage, chunks, REFERENCE)
        for bot in range(bots):
            response = _mixed(passage, chunks, RESPONSE)
            yield Case(row + 2, f"Bot{bot}", query, response, reference, chunks)


def _mixed(passage: Callable[[int], str], chunks: tuple[str, ...], length: int) -> str:
    """Two thirds stand in the first two chunks, a third does not."""
    third = length // 3
    return " ".join((*chunks[0].split()[:third], *chunks[1].split()[:third], passage(length - 2 * third)))


def _words_of(case: Case) -> int:
    return sum(
        len(text.split()) for text in (case.query, case.response, case.reference or "", *(case.chunks or ()))
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--bots", type=int, default=2)
    parser.add_argument("--profile", action="store_true", help="print where the time goes instead")
    parser.add_argument("--before", type=Path, metavar="OTHER_CHECKOUT")
    return parser.parse_args()


if __name__ == "__main__":
    main()

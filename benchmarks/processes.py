"""Whole runs of the offline judge in one and in several processes, or of two checkouts: time, processor time, memory.

    python benchmarks/processes.py [--rows 5000] [--processes 1 2] [--texts short long] [--repeats 3]
    python benchmarks/processes.py --processes 1 --before OTHER_CHECKOUT --texts short-low long-low short-high
    python benchmarks/processes.py --processes 2 --rows 200000 --texts short --repeats 1 --outputs

Every run is the command in a process of its own, from a CSV to the report. The sides take turns, so that other work on
the machine hits all of them; ratios are those of the runs of one turn. `wall` needs as many idle cores as there are
processes, `processor` is the sum over all processes, `main` that of the process that reads and writes, `MB` its peak
memory. The texts are English prose from the interpreter's own help topics, cut at seeded places: short rows have some
150 words, long ones 860; two bots share a context. Of a response, a third is not in the context; in `-low` rows all of
it, and nearly every score is below its threshold; in `-high` rows nothing.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = {"short": (12, 20, 30, 40, 2), "long": (12, 58, 110, 104, 5)}
"""Words of a query, a reference, a response and a chunk, and number of chunks."""
BOTS = 2
_COMMAND = """
import pathlib, resource, runpy, sys
sys.argv = sys.argv[1:]
sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    own = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("rusage", own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime, own.ru_maxrss / 1024)
"""


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    checkout: Path
    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Measured:
    wall: float
    processor: float
    main: float
    megabytes: float


def main() -> None:
    options = _options()
    outputs = ["--html", "page.html", "--json", "run.json"] if options.outputs else []
    sides = [Side(f"{number}", ROOT, ["--processes", f"{number}", *outputs]) for number in options.processes]
    if options.before:
        sides.insert(0, Side("before", options.before.resolve(), outputs))
    print(f"{options.rows} rows, {BOTS} bots; load {os.getloadavg()[0]:.1f}, cores {os.cpu_count()}")
    print("texts        side    wall s  processor s  main s   MB   wall ÷ first  processor ÷ first")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.ini").write_text("[evaluation]\nmax_rows = 10000000\n")
        write_input(Path(folder) / "in.csv", options.texts[0], rows=20)
        for side in sides:
            _run(side, Path(folder))  # what Python keeps of the modules is there from now on
        for texts in options.texts:
            _measure(texts, sides, options, Path(folder))


def _measure(texts: str, sides: Sequence[Side], options: argparse.Namespace, folder: Path) -> None:
    write_input(folder / "in.csv", texts, options.rows)
    turns = [[_run(side, folder) for side in sides] for _ in range(options.repeats)]
    for place, side in enumerate(sides):
        runs = [turn[place] for turn in turns]
        walls = [turn[place].wall / turn[0].wall for turn in turns]
        processors = [turn[place].processor / turn[0].processor for turn in turns]
        print(
            f"{texts:<12} {side.name:<6} {_middle(run.wall for run in runs):>7.1f} "
            f"{_middle(run.processor for run in runs):>12.1f} {_middle(run.main for run in runs):>7.1f} "
            f"{max(run.megabytes for run in runs):>4.0f} {_range(walls):>14} {_range(processors):>18}",
            flush=True,
        )


def _run(side: Side, folder: Path) -> Measured:
    command = [sys.executable, "-c", _COMMAND, str(side.checkout / "rag_eval_standalone.py"), "in.csv"]
    command += ["-q", "-o", f"{side.name}.xlsx", "--judge", "offline", *side.options]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables |= {"PYTHONPYCACHEPREFIX": str(folder / "modules")}
    began = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    if ended.returncode:
        raise SystemExit(ended.stderr)
    own, others, peak = map(float, ended.stdout.split()[-3:])
    return Measured(wall, own + others, own, peak)


def _middle(values: Iterator[float]) -> float:
    return statistics.median(values)


def _range(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def write_input(path: Path, texts: str, rows: int) -> None:
    """The same file each time."""
    length, _, kind = texts.partition("-")
    in_query, in_reference, in_response, in_chunk, chunks = LENGTHS[length]
    prose = " ".join(topics[name] for name in sorted(topics)).split()
    chance = random.Random(7)

    def passage(words: int) -> str:
        start = chance.randrange(len(prose) - words)
        return " ".join(prose[start : start + words])

    def text(words: int, context: Sequence[str]) -> str:
        inside = {"low": 0, "high": words}.get(kind, words - words // 3)
        return " ".join([*context[0].split()[:inside], *passage(words - inside).split()])

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Query", "Ground_Truth", *(f"Bot_{bot}" for bot in range(BOTS)), "Context"])
        for _ in range(rows):
            context = [passage(in_chunk) for _ in range(chunks)]
            query = text(in_query, context) if kind == "high" else passage(in_query)
            bots = [text(in_response, context) for _ in range(BOTS)]
            writer.writerow([query, text(in_reference, context), *bots, json.dumps(context)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--texts", nargs="+", default=["short", "long"], help="short or long, then -low or -high"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout, which is the first side")
    parser.add_argument("--outputs", action="store_true", help="page and JSON as well as the workbook")
    return parser.parse_args()


if __name__ == "__main__":
    main()

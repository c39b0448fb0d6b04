"""The same rows judged by this tool, by ragas and by deepeval against one fake endpoint, side by side.

    python benchmarks/judge_throughput.py --workers 16 [--ragas-python PATH] [--deepeval-python PATH]

Every side is a process of its own, from its start to its end; ours is the command as users give it, with the report
that it writes, and with toxicity and recommendations, which the others do not have. The sides take turns over several
repeats. deepeval is left out unless --deepeval-python names the interpreter of an environment that has it. Two of the
metrics of ragas need embeddings, which the endpoint gives too; the sides whose names end in -local make them in their
own process, in no time, and ask for none. Which metrics stand for ours, and with which settings, is in
benchmarks/judge_rivals.py.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
OURS = "rag_eval"
RIVALS = (
    "ragas-evaluate",
    "ragas-evaluate-local",
    "ragas-langchain",
    "ragas-default",
    "ragas-collections",
    "ragas-collections-local",
    "deepeval",
)
SLOW = "ragas-default"
MEGABYTE = 1e6


@dataclass(frozen=True)
class Run:
    """One run of one side, from the start of its process to its end."""

    wall: float
    cpu: float
    """Seconds of processor time, user and system."""
    peak: float
    """Bytes of memory."""
    requests: int
    embeddings: int
    """How many of the requests were for embeddings."""
    sent: int
    """Bytes of all request bodies."""
    most_in_flight: int
    latency: float
    """Seconds that the endpoint let pass, summed over the requests."""
    span: float
    """Seconds from the first real question to the last reply."""
    prompt_tokens: float = 0.0
    """As a provider bills them, schemas included; the preflight is left out."""
    reply_tokens: float = 0.0


@dataclass(frozen=True)
class Side:
    name: str
    start_up: Run
    """The same on a single row, without latency."""
    runs: Sequence[Run]


def main() -> None:
    options = _options()
    names = [name for name in options.sides if name != "deepeval" or options.deepeval_python]
    if len(names) < len(options.sides):
        print("deepeval is left out: --deepeval-python names no interpreter of an environment that has it")
    rows = list(make_rows(options))
    for workers in options.workers:
        print(f"\n{_title(options, workers)}\n")
        sides = measured(names, rows, workers, options)
        print("\n".join(table(sides, workers)), flush=True)


def measured(
    names: Sequence[str], rows: list[dict[str, Any]], workers: int, options: argparse.Namespace
) -> list[Side]:
    """The sides take turns, so that what else the machine does meets all of them."""
    latencies = (options.latency, options.sigma, options.embedding_latency)
    with endpoint() as fast, endpoint(*latencies) as slow:
        start_ups = {name: judged(name, rows[:1], workers, fast, options) for name in names}
        runs: dict[str, list[Run]] = {name: [] for name in names}
        for _ in range(options.repeats):
            for name in names:
                runs[name].append(judged(name, rows, workers, slow, options))
    return [Side(name, start_ups[name], runs[name]) for name in names]


def judged(
    name: str, rows: list[dict[str, Any]], workers: int, address: str, options: argparse.Namespace
) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        command = _command(name, rows, workers, f"{address}/v1", Path(folder), options)
        _fetch(f"{address}/reset")
        wall, cpu, peak = _spawned(command, Path(folder))
        seen = _fetch(f"{address}/stats")
    return Run(
        wall=wall,
        cpu=cpu,
        peak=peak,
        requests=seen["requests"],
        embeddings=seen["embeddings"],
        sent=seen["bytes"],
        most_in_flight=seen["most_in_flight"],
        latency=seen["latency_seconds"],
        span=seen["span_seconds"],
        prompt_tokens=seen["prompt_tokens"],
        reply_tokens=seen["reply_tokens"],
    )


def _spawned(command: Sequence[str], folder: Path) -> tuple[float, float, float]:
    """Seconds on the clock, seconds of processor time and peak bytes of a process; its failure is ours."""
    environment = {**os.environ, "HOME": str(folder)}  # some of them keep files there
    log = folder / "log.txt"
    with log.open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{log.read_text()[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit


def _command(
    name: str,
    rows: list[dict[str, Any]],
    workers: int,
    url: str,
    folder: Path,
    options: argparse.Namespace,
) -> list[str]:
    if name == OURS:
        _write_sheet(folder / "in.csv", rows)
        form = getattr(options, "prompts", "")
        config = _CONFIG.format(url=url, workers=workers, rows=len(rows), prompts=form or "ragas")
        (folder / "config.ini").write_text(config + (_METRICS_ALONE if form else ""))
        return [sys.executable, str(ROOT / "rag_eval_standalone.py"), "in.csv", "-o", "report.xlsx"]
    cases = [_case(row, bot) for row in rows for bot in range(len(row["responses"]))]
    (folder / "cases.json").write_text(json.dumps(cases))
    python = options.deepeval_python if name == "deepeval" else options.ragas_python
    return [python, str(ROOT / "benchmarks" / "judge_rivals.py"), name, "cases.json", url, str(workers)]


_CONFIG = """\
[judge]
provider = openai
prompts = {prompts}
[openai]
base_url = {url}
model = gpt-4o
[evaluation]
max_workers = {workers}
max_rows = {rows}
"""


_METRICS_ALONE = """\
[metrics]
toxicity = false
[diagnostics]
enabled = false
"""


# The rows


def make_rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """No text occurs twice, but where bots share their chunks; half of every answer stands in the first chunks."""
    words = sorted({word for text in topics.values() for word in text.split() if word.isalpha()})
    chance = random.Random(7)

    def sentences(count: int) -> list[str]:
        return [" ".join(chance.sample(words, 12)).capitalize() + "." for _ in range(count)]

    for _ in range(options.rows):
        retrievals = options.bots if options.own_contexts else 1
        chunks = [[sentences(7) for _ in range(options.chunks)] for _ in range(retrievals)]
        known = [sentence for chunk in chunks[0] for sentence in chunk[:1]][:3]
        yield {
            "query": f"What about {' '.join(chance.sample(words, 9))}?",
            "reference": " ".join(known + sentences(2)),
            "responses": [" ".join(sentences(3) + known) for _ in range(options.bots)],
            "chunks": [[" ".join(chunk) for chunk in retrieved] for retrieved in chunks],
        }


def _case(row: dict[str, Any], bot: int) -> dict[str, Any]:
    retrieved = row["chunks"][bot % len(row["chunks"])]
    return {
        "query": row["query"],
        "response": row["responses"][bot],
        "reference": row["reference"],
        "chunks": retrieved,
    }


def _write_sheet(path: Path, rows: list[dict[str, Any]]) -> None:
    bots = [f"Bot_{number}" for number in range(len(rows[0]["responses"]))]
    is_shared = len(rows[0]["chunks"]) == 1
    contexts = ["Context"] if is_shared else [f"{bot.removeprefix('Bot_')}_Context" for bot in bots]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Query", "Ground_Truth", *bots, *contexts])
        for row in rows:
            cells = [json.dumps(retrieved) for retrieved in row["chunks"]]
            writer.writerow([row["query"], row["reference"], *row["responses"], *cells])


# What is told


def table(sides: Sequence[Side], workers: int) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for side in sides:
        yield f"| {' | '.join(_cells(side, sides, workers))} |"


_COLUMNS = (
    "side",
    "wall s",
    "÷ its ideal",
    "× first side",
    "start-up s",
    "judging ÷ its ideal",
    "requests",
    "of them embeddings",
    "MB sent",
    "most in flight",
    "workers busy",
    "CPU ms a request",
    "with start-up",
    "peak MB",
)


def _cells(side: Side, sides: Sequence[Side], workers: int) -> Iterator[str]:
    yield side.name
    yield _spread(side, lambda run: run.wall, "{:.1f}")
    yield _spread(side, lambda run: run.wall * workers / run.latency)
    yield f"{_median(side, _wall) / _median(sides[0], _wall):.2f}"
    yield f"{side.start_up.wall:.1f}"
    yield _spread(side, lambda run: run.span * workers / run.latency)
    yield _spread(side, lambda run: run.requests, "{:.0f}")
    yield _spread(side, lambda run: run.embeddings, "{:.0f}")
    yield f"{_median(side, lambda run: run.sent / MEGABYTE):.2f}"
    yield _spread(side, lambda run: run.most_in_flight, "{:.0f}")
    yield f"{_median(side, lambda run: run.latency / workers / run.span):.0%}"
    yield _spread(side, lambda run: 1000 * _growth(side, run))
    yield _spread(side, lambda run: 1000 * run.cpu / run.requests)
    yield _spread(side, lambda run: run.peak / MEGABYTE, "{:.0f}")


def _wall(run: Run) -> float:
    return run.wall


def _growth(side: Side, run: Run) -> float:
    """Seconds of processor time that one more request costs, once the process is up."""
    return (run.cpu - side.start_up.cpu) / max(1, run.requests - side.start_up.requests)


def _median(side: Side, figure: Callable[[Run], float]) -> float:
    return statistics.median(map(figure, side.runs))


def _spread(side: Side, figure: Callable[[Run], float], form: str = "{:.2f}") -> str:
    """The median and, where they differ, the least and the most."""
    median, least, most = (
        form.format(pick(list(map(figure, side.runs)))) for pick in (statistics.median, min, max)
    )
    return median if least == most else f"{median} ({least}–{most})"


def _title(options: argparse.Namespace, workers: int) -> str:
    contexts = "contexts of their own" if options.own_contexts else "shared contexts"
    latency = f"{1000 * options.latency:.0f} ms" + (
        f" lognormal (sigma {options.sigma})" if options.sigma else ""
    )
    if options.embedding_latency is not None:
        latency += f" ({1000 * options.embedding_latency:.0f} ms for embeddings)"
    return (
        f"{options.rows} rows, {options.bots} bots on {contexts} of {options.chunks} chunks, latency {latency}, "
        f"{workers} workers; {options.repeats} repeats: median (least–most); {os.cpu_count()} cores, load before "
        f"{os.getloadavg()[0]:.1f}"
    )


# The endpoint


@contextmanager
def endpoint(
    latency: float = 0.0,
    sigma: float = 0.0,
    embedding_latency: float | None = None,
    *,
    is_realistic: bool = False,
) -> Iterator[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "fake_endpoint.py")]
    command += ["--latency", str(latency), "--sigma", str(sigma)]
    command += [] if embedding_latency is None else ["--embedding-latency", str(embedding_latency)]
    command += ["--realistic"] if is_realistic else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def _fetch(address: str) -> Any:
    with urlopen(address) as answer:  # noqa: S310 - our own endpoint
        return json.load(answer)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--bots", type=int, default=2)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--own-contexts", action="store_true", help="every bot retrieved chunks of its own")
    parser.add_argument("--latency", type=float, default=0.2, help="mean seconds before an answer")
    parser.add_argument(
        "--embedding-latency", type=float, help="the same for embeddings; that of an answer by default"
    )
    parser.add_argument("--sigma", type=float, default=0.0, help="of a lognormal latency; 0 for a fixed one")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 16, 64])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--sides",
        nargs="+",
        choices=(OURS, *RIVALS),
        default=[OURS, *(name for name in RIVALS if name != SLOW)],
        help=f"the first is what the others are compared with; {SLOW} takes many times as long",
    )
    parser.add_argument(
        "--ragas-python", default=sys.executable, help="interpreter of an environment with ragas 0.4"
    )
    parser.add_argument("--deepeval-python", default="", help="interpreter of an environment with deepeval")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""What a run costs this machine besides waiting: the first one, call by call, and one of which every reply is stored.

    python benchmarks/cached_rerun.py [--cases 1000] [--reruns 5] [--workers 16] [--latency 0]

Makes a sheet of cases (two bots a row on five shared chunks, about 700 words a case), judges it over HTTP by an
endpoint in a process of its own, and then again and again from the cache. The numbers are of whole processes of the
command line, report included. Start-up is what the same command takes for one row of the sheet, which pays for every
import and for opening the store, and for almost nothing else.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from offline_speed import make_cases

from rag_eval.records import Case

ROOT = Path(__file__).resolve().parent.parent
BOTS = 2
CONFIG = """\
[judge]
provider = openai
[openai]
base_url = {url}/v1
api_key = dummy
model = fake
[evaluation]
max_workers = {workers}
max_rows = 1000000
[cache]
enabled = yes
directory = cache
"""


@dataclass(frozen=True)
class Measured:
    """One run of the command line."""

    wall: float
    cpu: float
    requests: int

    def __str__(self) -> str:
        return f"wall {self.wall:6.2f} s, CPU {self.cpu:6.2f} s, requests {self.requests:,}"


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as name, endpoint(options.latency) as url:
        folder = Path(name)
        configuration = folder / "config.ini"
        configuration.write_text(CONFIG.format(url=url, workers=options.workers))
        configuration.chmod(0o600)
        cases = list(make_cases(options.cases // BOTS, BOTS))
        write_sheet(folder / "all.xlsx", cases)
        write_sheet(folder / "one.xlsx", cases[:BOTS])
        first = measured(folder, "all.xlsx", url)
        reruns = [measured(folder, "all.xlsx", url) for _ in range(options.reruns)]
        starts = [measured(folder, "one.xlsx", url) for _ in range(options.reruns)]
    start, rerun = typical(starts), typical(reruns)
    calls = first.requests
    a_call = 1000 * (first.cpu - rerun.cpu) / calls
    print(f"{len(cases):,} cases, {calls:,} calls, {options.workers} workers, {options.latency:g} s latency")
    print(f"first run   {first}; {a_call:.2f} ms of CPU a call beyond a rerun")
    print(f"rerun       {rerun}  (median of {options.reruns})")
    print(f"start-up    {start}  (median of {options.reruns}; part of the others)")


@contextmanager
def endpoint(latency: float) -> Iterator[str]:
    """A judge in a process of its own; its address."""
    command = [sys.executable, str(ROOT / "benchmarks" / "fake_endpoint.py"), "--latency", str(latency)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


def write_sheet(path: Path, cases: list[Case]) -> None:
    from xlsxwriter import Workbook

    with Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False}) as workbook:
        sheet = workbook.add_worksheet()
        sheet.write_row(0, 0, ["Query", "Ground_Truth", *(f"Bot_{bot}" for bot in range(BOTS)), "Context"])
        for line, start in enumerate(range(0, len(cases), BOTS), 1):
            row = cases[start : start + BOTS]
            responses = [case.response for case in row]
            context = " || ".join(row[0].chunks or ())
            sheet.write_row(line, 0, [row[0].query, row[0].reference, *responses, context])


def measured(folder: Path, sheet: str, url: str) -> Measured:
    """Run the command line on a sheet in the folder, where its configuration is."""
    before = requests_at(url)
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "rag_eval_standalone.py"), sheet, "-o", "report.xlsx", "--quiet"],
        cwd=folder,
    )
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"the run ended with {process.returncode}"
    return Measured(wall, used.ru_utime + used.ru_stime, requests_at(url) - before)


def requests_at(url: str) -> int:
    with urlopen(f"{url}/stats") as answer:  # noqa: S310 - our own endpoint
        return int(json.load(answer)["requests"])


def typical(runs: list[Measured]) -> Measured:
    """The median of each number; of the requests the most, which should be none."""
    return Measured(
        median(run.wall for run in runs), median(run.cpu for run in runs), max(run.requests for run in runs)
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--reruns", type=int, default=5)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before the judge answers")
    return parser.parse_args()


if __name__ == "__main__":
    main()

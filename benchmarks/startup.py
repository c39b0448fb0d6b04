"""How long the command line takes to start, and which imports that time goes to.

    python benchmarks/startup.py [--runs 15]

Every case is a process of its own, run in turn with the others so that a slow moment hits all of them. The time is
that of the clock from the start of the process to its end, and beside it that of the processor, which other work on
the machine disturbs less. `imports` is what `-X importtime` counts in one more run, the interpreter's own modules
included, with the packages that cost most (without those that they import).
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT, SAMPLE = str(ROOT / "rag_eval_standalone.py"), str(ROOT / "sample_rag_input.xlsx")
LARGEST = 6
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Without the variable that makes each start compile every module again, which doubles its time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        bad_settings = Path(folder, "bad.ini")
        bad_settings.write_text("[thresholds]\nfaithfullness = 0.5\n", encoding="utf-8")
        report = ["--judge", "offline", "-o", f"{folder}/report.xlsx"]
        cases = {
            "the interpreter alone": (0, ["-c", "pass"]),
            "--version": (0, [SCRIPT, "--version"]),
            "--help": (0, [SCRIPT, "--help"]),
            "an error in the settings": (2, [SCRIPT, SAMPLE, "--config", str(bad_settings)]),
            "an input that is not there": (2, [SCRIPT, "nothing.xlsx", *report]),
            "the sample, offline judge": (0, [SCRIPT, SAMPLE, *report]),
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for _ in range(runs + 1):
            for name, (code, words) in cases.items():
                taken[name].append(_seconds(words, folder, code))
        for name, (_, words) in cases.items():
            clock, processor = map(sorted, zip(*taken[name][1:], strict=True))  # the first run warms up
            packages = _imports(words, folder)
            largest = ", ".join(f"{name} {spent / 1000:.0f}" for name, spent in packages.most_common(LARGEST))
            print(
                f"{name:27} median {statistics.median(clock):.3f} s ({clock[0]:.3f}–{clock[-1]:.3f}), "
                f"of processor {statistics.median(processor):.3f} s; "
                f"imports {packages.total() / 1000:.0f} ms: {largest}",
                flush=True,
            )


def _seconds(words: list[str], folder: str, code: int) -> tuple[float, float]:
    """Of the clock and of the processor."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == code, f"{words} ended with {done.returncode}: {done.stderr}"
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _imports(words: list[str], folder: str) -> Counter[str]:
    """Microseconds that each package takes by itself."""
    command = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    packages: Counter[str] = Counter()  # of microseconds
    for microseconds, name in re.findall(
        r"^import time: +(\d+) \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE
    ):
        packages[name.split(".")[0]] += int(microseconds)
    return packages


if __name__ == "__main__":
    main()

"""The page: how long and how much memory it takes to write, how large it is, and how quickly a browser uses it.

    python benchmarks/page.py [--cases 20000] [--characters 1500] [--megabytes 8] [--html PATH] [--no-browser]

A case has that many characters of English prose, cut at seeded places from the interpreter's own help topics: a
fifteenth is the query, a fifth the ground truth, a third the response, the rest three chunks that the two bots of a row
do not share. Its evidence is every sentence of the response and of the ground truth, and every chunk. Seconds are those
of the processor. Memory is the growth of the process's peak while the page is written; results are made one by one and
not kept. A browser (Chromium
with its driver, and selenium) opens the file itself; each number is the best of three.
"""

import argparse
import gc
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rag_eval.records import METRIC_LABELS, TOXICITY, Case, CaseResult, Evidence, FailureMode, RunFacts, Score
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.results.tallies import Tallies

BOTS = ("Atlas", "Birch")
PROSE = re.sub(r"\s+", " ", " ".join(topics[name] for name in sorted(topics)))


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        target = options.html or Path(folder, "page.html")
        _write(target, options.cases // len(BOTS), options.characters, options.megabytes)
        if not options.no_browser:
            _open(target)


def _write(target: Path, rows: int, characters: int, megabytes: float) -> None:
    facts = _facts(rows)
    tallies = Tallies(facts)
    for result in results(rows, characters):
        tallies.add(result)
    summary = tallies.summary()
    findings = tallies.findings(summary)
    made = -time.process_time()
    for _ in results(rows, characters):
        pass
    made += time.process_time()
    gc.collect()
    _forget_peak()
    before = _peak()
    began = time.process_time()
    page = HtmlReport(target, facts, {}, megabytes=megabytes)
    for result in results(rows, characters):
        page.add(result)
    added = time.process_time()
    page.finish(summary, findings, facts)
    ended = time.process_time()
    cases = rows * len(BOTS)
    print(f"{cases:,} cases of {characters:,} characters: {target.stat().st_size / 1e6:.2f} MB")
    for sentence in page.left_out:
        print(sentence)
    each = 1e6 * (added - began - made) / cases
    print(
        f"written in {ended - began - made:.1f} s: {each:.0f} µs a case as they come, {ended - added:.1f} s at the end"
    )
    print(f"peak memory grew by {_peak() - before:.0f} MB")


def results(rows: int, characters: int) -> Iterator[CaseResult]:
    chance = random.Random(1)
    for row in range(2, rows + 2):
        query, reference = _prose(chance, characters // 15), _prose(chance, characters // 5)
        for bot in BOTS:
            response = _prose(chance, characters // 3)
            chunks = tuple(_prose(chance, characters * 2 // 15) for _ in range(3))
            yield _result(chance, Case(row, bot, query, response, reference, chunks))


def _result(chance: random.Random, case: Case) -> CaseResult:
    statements = _evidence(chance, "statement", case.response)
    truths = _evidence(chance, "reference statement", case.reference or "")
    chunks = tuple(
        Evidence("chunk", chunk, "useful", True, "It answers a part of the query.", rank=rank)
        for rank, chunk in enumerate(case.chunks or (), 1)
    )
    evidence = dict.fromkeys(METRIC_LABELS, statements) | {
        "context_recall": truths,
        "context_precision": chunks,
    }
    scores = {name: Score.scored(name, chance.random(), "", evidence[name]) for name in METRIC_LABELS}
    rqs = sum(score.value or 0.0 for score in scores.values()) / len(scores)
    modes = (FailureMode.LOW_QUALITY,) if rqs < 0.4 else (FailureMode.OK,)
    advice = "The chunks do not contain the whole answer: improve the retrieval."
    return CaseResult(
        case=case,
        scores=scores,
        toxicity=Score.scored(TOXICITY, 0.0),
        rqs=rqs,
        failure_modes=modes,
        recommendation=advice,
    )


def _evidence(chance: random.Random, subject: str, text: str) -> tuple[Evidence, ...]:
    sentences = re.findall(r"[^.]+\.?", text)
    return tuple(
        Evidence(subject, each.strip(), "supported", True)
        if chance.random() < 0.7
        else Evidence(subject, each.strip(), "not supported", False, "None of the chunks says so.")
        for each in sentences
        if each.strip()
    )


def _prose(chance: random.Random, length: int) -> str:
    start = chance.randrange(len(PROSE) - length - 1)
    return PROSE[start : start + length]


def _facts(rows: int) -> RunFacts:
    return RunFacts(
        input_name="answers.xlsx", sheet="", judge="offline judge", is_proxy=True, version="0",
        started=datetime(2025, 3, 4, tzinfo=UTC), bots=BOTS, rows=rows, blank_rows=0, cut_rows=0,
        metrics=(*METRIC_LABELS, TOXICITY), weights=dict.fromkeys(METRIC_LABELS, 0.2),
        thresholds=dict.fromkeys(METRIC_LABELS, 0.3), toxicity_threshold=0.5, diagnostics=True,
    )  # fmt: skip


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """MB that the process has held at most since it was forgotten; Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1000


# In a browser


def _open(page: Path) -> None:
    driver_path = shutil.which("chromedriver")
    if driver_path is None:
        print("no chromedriver: nothing was measured in a browser")
        return
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1366,900"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        ready = [_ready(driver, page) for _ in range(3)]
        print(f"usable after {min(ready):.0f} ms")
        for name in ("faithfulness", "query", "mode"):
            print(f"sort by {name}: {_best(driver, _SORT.format(name)):.0f} ms")
        print(f"filter by bot: {_best(driver, _SELECT.format('bot', 1)):.0f} ms")
        print(f"filter by failure mode: {_best(driver, _SELECT.format('mode', 2)):.0f} ms")
        driver.execute_script(_SEARCH.format("e"))
        driver.set_script_timeout(120)
        print(f"read all texts for the first search: {driver.execute_async_script(_WAIT):.0f} ms")
        print(f"search: {_best(driver, _SEARCH.format('interpreter')):.0f} ms")
        count = driver.execute_script("return document.querySelectorAll('*').length")
        print(f"elements of the document: {count:,}")
    finally:
        driver.quit()


def _ready(driver: Any, page: Path) -> float:
    driver.get("about:blank")
    driver.get(page.absolute().as_uri())
    return float(driver.execute_async_script(_READY))


def _best(driver: Any, script: str) -> float:
    """Milliseconds until the elements are there and laid out."""
    timed = f"const t = performance.now(); {script}; document.body.offsetHeight; return performance.now() - t"
    return min(float(driver.execute_script(timed)) for _ in range(3))


_READY = """const done = arguments[0]; const seen = () => {
  const mark = performance.getEntriesByName("ready")[0];
  if (mark) done(mark.startTime); else setTimeout(seen, 5); }; seen();"""
_SORT = "document.querySelector('th.c-{} button').click()"
_SELECT = "const s = document.getElementById('f-{}'); s.value = '{}'; s.dispatchEvent(new Event('change'))"
_SEARCH = "const s = document.getElementById('f-text'); s.value = '{}'; s.dispatchEvent(new Event('input'))"
_WAIT = """const done = arguments[0], t = performance.now(); const seen = () => {
  if (!document.getElementById("told").textContent.startsWith("Reading")) done(performance.now() - t);
  else setTimeout(seen, 5); }; seen();"""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--characters", type=int, default=1_500, help="of all texts of a case")
    parser.add_argument("--megabytes", type=float, default=8.0)
    parser.add_argument("--html", type=Path, help="keep the page")
    parser.add_argument("--no-browser", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Runs through time: what a run leaves in its folder, what is compared, and what readers see of it."""

import csv
import gzip
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import KEY, Run, azure, read_sheet
from fake_judge import FakeJudge, completion
from files import sheet_of, write_table
from forking import Forker
from openpyxl import load_workbook
from report_cases import facts_of, plain_result

from rag_eval.cli.history import HistoryOfRun
from rag_eval.errors import InputError
from rag_eval.report.history_record import HistoryRecord, _append
from rag_eval.report.page.timeline import history_section
from rag_eval.results.run_history import (
    History,
    PairOfRun,
    bots_in_time,
    cases_path,
    changes_words,
    read_history,
)

GOOD = "The tower is {} metres tall and stands at the river."
BAD = "I like boats."
ROOT = Path(__file__).parent.parent
CHANGE = (
    '{"bot": "Atlas", "name": "rqs", "before": %s, "now": 0.5, "queries": 6, "direction": "better", '
    '"common": {"before": 5, "now": 5, "both": 5}}'
)


def write_input(path: Path, right: Sequence[bool], name: str = "Atlas") -> Path:
    """A query per flag; the bot is right where it is true, and Birch in every second row."""
    lines = []
    for number, is_right in enumerate(right, 100):
        truth, query = GOOD.format(number), f"How tall is tower {number}?"
        lines.append([query, truth, truth, truth if is_right else BAD, BAD if number % 2 else truth])
    return write_table(path, ["Query", "Ground_Truth", "Context", f"Bot_{name}", "Bot_Birch"], *lines)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def run_once(rag_eval: Run, path: Path, *options: str, **variables: str) -> Any:
    return rag_eval(path, "-o", "r.xlsx", "--history", "h", *(options or ["--judge", "offline"]), **variables)


# What a run leaves


def test_a_pair_of_a_run_is_the_same_from_either_bot() -> None:
    pair = PairOfRun(
        one="A", other="B", queries=20, win_rate=0.75, interval=(0.625, 0.875), verdict="preferred"
    )
    assert pair.seen_from("A") is pair
    assert pair.seen_from("B") == PairOfRun(
        one="B", other="A", queries=20, win_rate=0.25, interval=(0.125, 0.375), verdict="not preferred"
    )


def test_a_run_leaves_its_numbers_and_no_text(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True, True, False, True])
    ended = run_once(rag_eval, path)
    assert ended.code == 0
    assert "Also written: h/history.jsonl" in ended.out
    [line] = lines_of(tmp_path / "h")
    document = json.loads((tmp_path / "h" / "history.jsonl").read_text())
    assert document["judge"] == "offline judge"
    assert document["rows"] == 4
    assert document["input_name"] == "in.csv"
    assert len(document["input_hash"]) == 64
    atlas = document["bots"][0]
    assert atlas["bot"] == "Atlas"
    assert (atlas["rqs"]["scored"], atlas["queries"], atlas["judged"]) == (4, 4, 4)
    assert sum(atlas["failure_modes"].values()) >= 4
    with gzip.open(tmp_path / "h" / "runs" / f"{line['id']}.csv.gz", "rt", newline="") as file:
        cases = list(csv.DictReader(file))
    assert [case["bot"] for case in cases] == ["Atlas", "Birch"] * 4
    assert {len(case["query"]) for case in cases} == {32}
    assert len({case["query"] for case in cases}) == len({case["ground_truth"] for case in cases}) == 4
    mean = sum(float(case["rqs"]) for case in cases if case["bot"] == "Atlas") / 4
    assert mean == pytest.approx(atlas["rqs"]["value"])
    left = (tmp_path / "h" / "history.jsonl").read_text() + json.dumps(cases)
    assert not re.search("tower|metres|boats", left)


def test_an_error_of_the_judge_is_neither_a_zero_nor_absent(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    path = write_input(tmp_path / "in.csv", [True, True])
    judge.always = lambda request: completion("{}") if request.task == "verdicts" else None
    ended = run_once(rag_eval, path, "--judge", "azure", "--model", "m", **azure(judge))
    assert ended.code == 3
    [line] = lines_of(tmp_path / "h")
    assert KEY not in (tmp_path / "h" / "history.jsonl").read_text()
    faithfulness = line["bots"][0]["metrics"]["faithfulness"]
    assert (faithfulness["value"], faithfulness["scored"], faithfulness["failed"]) == (None, 0, 2)
    assert line["bots"][0]["rqs"]["value"] is None
    with gzip.open(tmp_path / "h" / "runs" / f"{line['id']}.csv.gz", "rt", newline="") as file:
        cases = list(csv.DictReader(file))
    assert {(case["rqs"], case["faithfulness"]) for case in cases} == {("", "failed")}
    again = read_history(tmp_path / "h")
    assert again.past_run(again.runs[0]) is not None
    rows = read_sheet(tmp_path / "r.xlsx", "History")
    assert [row["Avg RQS"] for row in rows] == [None, None]


@pytest.mark.slow
def test_a_second_run_is_appended_and_compared(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 30)
    run_once(rag_eval, path)
    write_input(path, [False] * 30)
    ended = run_once(rag_eval, path)
    assert "Atlas: RQS is significantly worse than in the run of " in ended.out
    assert "Birch: RQS is" not in ended.out
    assert [len(line["bots"]) for line in lines_of(tmp_path / "h")] == [2, 2]
    rows = read_sheet(tmp_path / "r.xlsx", "History")
    assert [(row["Bot"], row["Since the run before"]) for row in rows] == [
        ("Atlas", "first run"),
        ("Atlas", "significantly worse"),
        ("Birch", "first run"),
        ("Birch", "no change"),
    ]
    assert rows[1]["Change"] == pytest.approx(rows[1]["Avg RQS"] - rows[0]["Avg RQS"])
    assert (rows[3]["Change"], rows[3]["Queries compared"]) == (0, 30)


@pytest.mark.parametrize(
    ("rows", "size", "few"), [(4, 1, "queries"), (24, 6, "conversations"), (24, 1, ""), (24, 2, "")]
)
def test_what_is_too_few_to_tell_is_not_called_insignificant(
    rag_eval: Run, tmp_path: Path, rows: int, size: int, few: str
) -> None:
    def write(right: bool) -> Path:
        head = ["Query", "Ground_Truth", "Context", "Bot_Atlas", "Conversation_ID"]
        truths = [(n, GOOD.format(100 + n)) for n in range(rows)]
        lines = [
            [f"How tall is tower {n}?", truth, truth, truth if right else BAD, f"c{n // size}"]
            for n, truth in truths
        ]
        return write_table(tmp_path / "in.csv", head, *lines)

    run_once(rag_eval, write(right=True))
    options = ("--judge", "offline", "--baseline", "latest", "--fail-on-regression", "--json", "r.json")
    ended = run_once(rag_eval, write(right=False), *options)
    assert ended.code == 1
    assert (f"too few {few} for a conclusion" in ended.err) is bool(few)
    told = f"too few {few}" if few else "significantly worse"
    shown = rag_eval("history", "h").out
    assert told in shown
    assert (f"are not tested: too few {few}." in shown) is bool(few)
    assert [row["Since the run before"] for row in read_sheet(tmp_path / "r.xlsx", "History")][1] == told
    (rqs,) = (
        each for each in json.loads((tmp_path / "r.json").read_text())["changes"] if each["name"] == "rqs"
    )
    assert (rqs["interval"] is None) is bool(few)


def test_without_the_values_by_case_nothing_is_called_significant(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 30)
    run_once(rag_eval, path)
    [values] = (tmp_path / "h" / "runs").iterdir()
    values.write_bytes(values.read_bytes()[:-20])
    write_input(path, [False] * 30)
    ended = run_once(rag_eval, path)
    assert ended.code == 0
    assert (
        f"{values.relative_to(tmp_path)}: it is not a whole gzip file; restore the file, or delete it to compare with "
        "nothing. Changes since that run are not tested.\n"
    ) in ended.err
    rows = read_sheet(tmp_path / "r.xlsx", "History")
    assert [row["Since the run before"] for row in rows] == ["first run", "not tested"] * 2
    assert {row["Change"] for row in rows} == {None}


@pytest.mark.slow
def test_a_change_is_one_over_the_queries_of_both_runs_wherever_it_is_told(
    rag_eval: Run, tmp_path: Path
) -> None:
    """The same bot on other queries: its means are far apart, and it has not changed."""
    path = write_input(tmp_path / "in.csv", [True] * 20 + [False] * 10)
    run_once(rag_eval, path, "--judge", "offline", "--json", "before.json")
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*rows[:1], *rows[16:], rows[1].replace("tower", "castle")]))
    options = ("--judge", "offline", "--baseline", "before.json", "--fail-on-regression", "--csv", "c")
    ended = run_once(rag_eval, path, *options, "--html", "p.html", "--json", "now.json")
    [sheet], [history] = (
        [row for row in read_sheet(tmp_path / "r.xlsx", name) if row["Bot"] == "Atlas" and row["Change"] is not None
         and row.get("Metric", "RQS") == "RQS"]
        for name in ("vs Baseline", "History")
    )  # fmt: skip
    assert history["Avg RQS"] < 0.8
    for found, before, now in (
        (sheet, "Only in baseline", "Only in this run"),
        (history, "Only before", "Only now"),
    ):
        assert [found[name] for name in ("Change", "Queries compared", before, now)] == [0, 15, 15, 1]
    assert (sheet["Verdict"], history["Since the run before"]) == ("no change", "no change")
    assert ended.code == 0
    assert "15 common queries, 15 only in the baseline, 1 only in this run." in ended.out
    assert "15 common queries, 15 only in the run of " in ended.out
    assert (
        "Gate passed: Atlas: no mean is significantly worse than the baseline (15 of the baseline's 30 queries)"
        in (ended.out)
    )
    assert "Compared with the baseline, over 15 of its 30 queries: no significant change of RQS." in ended.out
    [row] = [
        row
        for row in csv.DictReader((tmp_path / "c/history.csv").read_text(encoding="utf-8-sig").splitlines())
        if row["Change"]
    ][:1]
    assert [float(row[name]) for name in ("Change", "Queries compared", "Only before", "Only now")] == [
        0,
        15,
        15,
        1,
    ]
    change = json.loads((tmp_path / "now.json").read_text())["changes"][0]
    assert [change[name] for name in ("difference", "queries", "only_before", "only_now")] == [0, 15, 15, 1]
    assert "15 common queries" in (tmp_path / "p.html").read_text()
    shown = rag_eval("history", "h", "-o", "all.xlsx")
    assert "15 common queries, 15 only in the run of " in shown.out
    [atlas, _] = [row for row in read_sheet(tmp_path / "all.xlsx", "Runs") if row["Change"] is not None]
    assert [atlas[name] for name in ("Change", "Queries compared")] == [0, 15]
    path.write_text(path.read_text().replace("How tall", "How high"))
    assert "are not tested: no query is in both runs" in run_once(rag_eval, path).out


def test_a_change_since_a_run_that_was_taken_out_is_not_told(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 12)
    for right in ([True] * 12, [False] * 12, [True] * 12):
        run_once(rag_eval, write_input(path, right))
    first, _, third = lines_of(tmp_path / "h")
    atlas, *_ = reversed(
        [line for line in bots_in_time(history_of(tmp_path / "h", first, third)) if line.bot.bot == "Atlas"]
    )
    assert (atlas.verdict, atlas.change) == ("not tested", None)


# Baseline


@pytest.mark.slow
def test_the_last_comparable_run_is_the_baseline(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 30)
    gate = ("--judge", "offline", "--baseline", "latest", "--fail-on-regression")
    first = run_once(rag_eval, path, *gate)
    assert (first.code, "has no earlier run; nothing is compared" in first.out) == (0, True)
    same = run_once(rag_eval, path, *gate)
    assert (same.code, "Gate passed: Atlas" in same.out) == (0, True)
    assert "RQS is significantly" not in same.out
    write_input(path, [False] * 30)
    worse = run_once(rag_eval, path, *gate)
    assert worse.code == 1
    assert "Gate FAILED: Atlas: significantly worse than the baseline: RQS" in worse.err
    assert "RQS is significantly" not in worse.out  # told once, though the run is baseline and last run
    weights = run_once(rag_eval, path, *gate, "--alpha", "0.1")
    assert weights.code == 1  # nothing compared is nothing passed
    assert "has no comparable earlier run" in weights.out


def test_latest_needs_a_history(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True])
    ended = rag_eval(path, "--judge", "offline", "--baseline", "latest")
    assert ended.code == 2
    assert "--baseline latest: no history is kept; add --history FOLDER or set [report] history" in ended.err


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def in_row_2(column: int, cell: bytes) -> Callable[[bytes], bytes]:
    """Another cell in the first row of values."""

    def change(text: bytes) -> bytes:
        header, first, *others = text.split(b"\r\n")
        cells = first.split(b",")
        cells[column] = cell
        return b"\r\n".join([header, b",".join(cells), *others])

    return change


def without_rows(text: bytes) -> bytes:
    return b"\r\n".join(text.split(b"\r\n")[:5]) + b"\r\n"


def twice(text: bytes) -> bytes:
    return text + text.partition(b"\r\n")[2]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (in_row_2(3, b"nan"), ", line 2: rqs: 'nan' is not a number from 0 to 1"),
        (in_row_2(3, b"-0.55"), ", line 2: rqs: '-0.55' is not a number from 0 to 1"),
        (in_row_2(4, b"1e999"), ", line 2: answer_correctness: '1e999' is not a number from 0 to 1"),
        (in_row_2(4, b"1e308"), ", line 2: answer_correctness: '1e308' is not a number from 0 to 1"),
        (in_row_2(5, b"9" * 200_000), ": it has a line of more than 100,000 characters"),
        (in_row_2(5, b"good"), ", line 2: faithfulness: 'good' is not a number from 0 to 1"),
        (in_row_2(5, b"\xff"), ": it is not a CSV file in UTF-8"),
        (
            lambda text: text.replace(b"faithfulness", b"faith", 1),
            ", line 2: it has no cell for faithfulness",
        ),
        (lambda text: text[:150], ", line 2: it has no cell for answer_correctness"),
        (without_rows, ": it has 4 of the 10 cases of the run"),
        (lambda text: b"", ": it has 0 of the 10 cases of the run"),
        (twice, ": it has more cases than the run, which has 10"),
        (lambda text: b"a" * 50_000_000, ": it has a line of more than 100,000 characters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_values_by_case_are_named_with_their_place(
    entry: dict[str, Any], tmp_path: Path, change: Callable[[bytes], bytes], problem: str
) -> None:
    history = history_of(tmp_path / "h", entry)
    path = cases_path(tmp_path / "h", entry["id"])
    before = history.past_run(history.runs[0])
    assert before is not None
    assert len(before.values) == 10
    rewrite(path, change)
    with pytest.raises(InputError) as caught:
        history.past_run(history.runs[0])
    assert str(caught.value) == f"{path}{problem}; restore the file, or delete it to compare with nothing"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: data[:40] + b"?" + data[41:], lambda data: b"plain text"]
)
def test_a_damaged_gzip_file_is_named(
    entry: dict[str, Any], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    history = history_of(tmp_path / "h", entry)
    path = cases_path(tmp_path / "h", entry["id"])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{path.name}: it is not a whole gzip file; restore the file"):
        history.past_run(history.runs[0])


@pytest.mark.slow
def test_a_damaged_last_run_costs_no_call_if_it_is_the_baseline(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """A run that only adds to the history goes on, and so does one whose last values were deleted."""
    path = write_input(tmp_path / "in.csv", [True, False])
    options = ("--judge", "azure", "--model", "m")
    assert run_once(rag_eval, path, *options, **azure(judge)).code == 0
    [values] = (tmp_path / "h" / "runs").iterdir()
    rewrite(values, in_row_2(3, b"1.7"))
    place = f"h/runs/{values.name}, line 2: rqs: '1.7' is not a number from 0 to 1"
    judge.requests.clear()
    refused = run_once(rag_eval, path, *options, "--baseline", "latest", **azure(judge))
    assert (refused.code, judge.requests) == (2, [])
    assert (
        refused.err.splitlines()[0]
        == f"rag-eval: {place}; restore the file, or delete it to compare with nothing"
    )
    assert len(lines_of(tmp_path / "h")) == 1
    values.unlink()
    lost = run_once(rag_eval, path, *options, "--baseline", "latest", **azure(judge))
    assert (lost.code, "are missing; changes since that run are not tested." in lost.err) == (0, True)
    assert lines_of(tmp_path / "h")[-1]["since"] == ""


def test_a_line_that_cannot_be_read_is_no_first_run(
    rag_eval: Run, entry: dict[str, Any], tmp_path: Path
) -> None:
    """Otherwise the gate would pass without a comparison."""
    history_of(tmp_path / "h", changed(entry, format=2))
    gate = ("--judge", "offline", "--baseline", "latest", "--fail-on-regression")
    ended = run_once(rag_eval, tmp_path / "in.csv", *gate)
    assert "line 1 was skipped: a later version of RAG Eval wrote it (format 2)" in ended.err
    assert ended.code == 1
    assert run_once(rag_eval, tmp_path / "in.csv", *gate).code == 0


def test_the_configuration_can_name_the_folder(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[report]\nhistory = kept/here\n")
    path = write_input(tmp_path / "in.csv", [True])
    assert rag_eval(path, "--judge", "offline", "-o", "r.xlsx").code == 0
    assert len(lines_of(tmp_path / "kept" / "here")) == 1


# Time


def changed(line: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Another run like this one."""
    return {**deepcopy(line), **values}


@pytest.fixture
def entry(rag_eval: Run, tmp_path: Path) -> dict[str, Any]:
    """The line of a run in the folder h."""
    run_once(rag_eval, write_input(tmp_path / "in.csv", [True, True, False, True, True]))
    return lines_of(tmp_path / "h")[0]


def history_of(folder: Path, *lines: dict[str, Any]) -> History:
    (folder / "history.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return read_history(folder)


def at(day: int) -> str:
    return f"2026-03-{day:02d}T06:00:00+00:00"


def test_only_comparable_runs_are_connected(entry: dict[str, Any], tmp_path: Path) -> None:
    faithful = {name: float(name == "faithfulness") for name in entry["weights"]}
    history = history_of(
        tmp_path / "h",
        changed(entry, started=at(2)),
        changed(entry, started=at(1)),  # lines are in the order of their ends, runs in that of their starts
        changed(entry, started=at(3), judge="OpenAI", is_proxy=False),
        changed(entry, started=at(4), judge="OpenAI", is_proxy=False, version="9"),
        changed(entry, started=at(5), judge="OpenAI", is_proxy=False, partial="out of money"),
        changed(entry, started=at(6), judge="OpenAI", is_proxy=False),
        changed(entry, started=at(7), judge="OpenAI", is_proxy=False, weights=faithful),
        changed(entry, started=at(8), judge="OpenAI", is_proxy=False, metrics=["faithfulness"]),
        changed(entry, started=at(9), version="9"),
        changed(entry, started=at(10)),
    )
    atlas = [line for line in bots_in_time(history) if line.bot.bot == "Atlas"]
    assert [(line.run.started.day, line.segment, line.verdict) for line in atlas] == [
        (1, 0, "first run"),
        (2, 0, "not tested"),
        (3, 1, "not comparable: other judge"),
        (4, 1, "not tested"),
        (5, 2, "partial run"),
        (6, 3, "after a partial run"),
        (7, 4, "not comparable: other weights"),
        (8, 5, "not comparable: other metrics, weights"),
        (9, 6, "not comparable: other judge, metrics"),
        (10, 7, "not comparable: other version"),
    ]
    last = history.last_like(history.runs[-1])
    assert last is not None
    assert last.started.day == 2


def test_a_line_that_is_there_twice_is_one_run(entry: dict[str, Any], tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", entry, changed(entry, partial="stopped"), entry)
    assert [run.partial for run in history.runs] == [""]
    assert history.damaged == ()


@pytest.mark.parametrize(("day", "past"), [(1, []), (2, [1]), (3, [1, 2]), (4, [1, 2, 3])])
def test_the_past_of_a_run_are_the_runs_that_began_before_it(
    entry: dict[str, Any], tmp_path: Path, day: int, past: list[int]
) -> None:
    """A run that is continued has a line of its own there, with the time at which it began."""
    history_of(tmp_path / "h", *(changed(entry, started=at(number)) for number in (2, 1, 3)))
    facts = facts_of(("Atlas", "Birch"), 5, started=datetime.fromisoformat(at(day)))
    history = HistoryOfRun.read(tmp_path / "h", "0" * 64, facts).history
    assert [run.started.day for run in history.runs] == past


def test_of_many_damaged_lines_the_first_are_named(
    rag_eval: Run, entry: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "h" / "history.jsonl").write_text(f"{json.dumps(entry)}\n" + "x\n" * 500, encoding="utf-8")
    ended = rag_eval("history", "h")
    assert ended.err.count("skipped") == 20
    assert "and 480 more like these" in ended.err


def test_a_bot_that_pauses_is_compared_with_its_own_last_run(entry: dict[str, Any], tmp_path: Path) -> None:
    without = changed(entry, started=at(2), bots=[bot for bot in entry["bots"] if bot["bot"] == "Birch"])
    history = history_of(
        tmp_path / "h", changed(entry, started=at(1)), without, changed(entry, started=at(3))
    )
    lines = [(line.bot.bot, line.run.started.day, line.segment) for line in bots_in_time(history)]
    assert lines == [("Atlas", 1, 0), ("Atlas", 3, 0), ("Birch", 1, 0), ("Birch", 2, 0), ("Birch", 3, 0)]


def with_change(**members: Any) -> Callable[[str], str]:
    """A change since the run before, of 6 queries of one bot."""
    counts = {key: members.pop(key, 6) for key in ("before", "now", "both")}
    change = {"bot": "Atlas", "name": "rqs", "before": 0.5, "now": 0.5, "queries": 6, "direction": "better"}
    told = json.dumps({**change, **members, "common": counts})
    return lambda line: line.replace('"changes": []', f'"changes": [{told}]')


def with_pair(**members: Any) -> Callable[[str], str]:
    pair = {"one": "Atlas", "other": "Birch", "queries": 5, "win_rate": 0.5, "interval": None, "verdict": ""}
    return lambda line: json.dumps({**json.loads(line), "pairs": [{**pair, **members}]})


def with_spent(unit: str = "latency", **members: Any) -> Callable[[str], str]:
    spent = {"latency": {"count": 5, "mean": 1.0, "total": 5.0, "median": 1.0, "p95": 2.0, **members}}
    return lambda line: line.replace('"spent": {}', f'"spent": {json.dumps(spent)}').replace(
        '"spent_units": {}', f'"spent_units": {{"{unit}": "ms"}}'
    )


OUTSIDE, COMMON = (
    "a mean is outside 0 to 1",
    "a count of common queries is below 0, or above that of one of the runs",
)
COUNT, COMPARED = (
    "a count is below 0, or above the number of",
    "a count of what was compared is below 0, or above",
)
RATE, SPENT = (
    "a win rate is outside 0 to 1, or its number of queries is below 0",
    "a latency or a cost is below 0",
)
SOUND = (
    with_change(), with_change(units=0), with_change(queries=0, units=0), with_change(before=7), with_pair(),
    with_pair(queries=0, win_rate=None), with_pair(win_rate=1.0, interval=(0.0, 1.0)), with_spent(),
    with_spent(mean=0, count=0),
)  # fmt: skip
DAMAGES: tuple[tuple[Callable[[str], str], str], ...] = (
    (lambda line: line[: len(line) // 2], "it is not a whole line of JSON"),
    (lambda line: line.replace('"rows": 5', '"rows": "five"'), "rows: Input should be a valid integer"),
    (lambda line: re.sub(r'"format": 1', '"format": 2', line), "a later version of RAG Eval wrote it (format 2)"),
    (lambda line: re.sub(r'("rqs": {"value": )[\d.]+', r"\g<1>1.5", line), OUTSIDE),
    (lambda line: re.sub(r'("interval": \[)[^,\]]+', r"\g<1>-0.1", line), OUTSIDE),
    (lambda line: re.sub(r'("rqs": {"value": )[\d.]+', r"\g<1>NaN", line), "it has the number NaN"),
    (lambda line: re.sub(r'("stdev": )[\d.]+', r"\g<1>1.5", line), OUTSIDE),
    (lambda line: line.replace('"scored": 5', '"scored": -1'), COUNT),
    (lambda line: line.replace('"scored": 5', '"scored": 6'), COUNT),
    (lambda line: line.replace('"scored": 5', f'"scored": {"9" * 5000}'), f"it has the number {'9' * 40}"),
    (lambda line: re.sub(r'"seconds": [\d.e-]+', '"seconds": 1e308', line), "it has the number 1e308"),
    (lambda line: line.replace('"cost": null', '"cost": 1e999'), "it has the number 1e999"),
    (lambda line: line.replace('"cost": null', '"cost": -1'), "a number is below 0"),
    (lambda line: line.replace('"changes": []', f'"changes": [{CHANGE % 1.5}]'), OUTSIDE),
    (lambda line: line.replace('"changes": []', f'"changes": [{CHANGE % 0.5}]'), "a count of common queries is"),
    (lambda line: re.sub(r'"id": "[^"]+"', '"id": "../../x"', line), "its id is not one that RAG Eval gives"),
    (lambda line: line.replace('"id": "', '"id": "\\u00e4'), "its id is not one that RAG Eval gives"),
    (lambda line: re.sub(r'"started": "[^"]+"', f'"started": "{at(1)[:19]}"', line), "its time has no time zone"),
    (lambda line: "[" * 100_000, ""),
    (lambda line: "7", "it is not the object of a run"),
    (lambda line: "x" * 9_000_000, "it is not a whole line of JSON"),
    (lambda line: "\x00\xff", "it is not a whole line of JSON"),
    (with_change(now=5, both=5), COMMON),
    (with_change(before=5, both=5), COMMON),
    (with_change(both=5), COMMON),
    (with_change(now=5), COMMON),
    (with_change(queries=-1, units=-1), COMPARED),
    (with_change(units=7), COMPARED),
    (with_change(units=-1), COMPARED),
    (with_pair(win_rate=1.1), RATE),
    (with_pair(interval=(-0.1, 0.5)), RATE),
    (with_pair(queries=-1), RATE),
    (with_spent(p95=-1), SPENT),
    (with_spent(mean=-0.1), SPENT),
    (with_spent(count=6), COUNT),
    (with_spent("cost"), "it has amounts of something else than latency and cost"),
)  # fmt: skip


def test_damaged_lines_are_named_and_skipped(rag_eval: Run, entry: dict[str, Any], tmp_path: Path) -> None:
    line = json.dumps(entry)
    days = [json.dumps(changed(entry, started=at(day))) for day in range(1, len(SOUND) + 2)]
    sound = [line, days.pop(), *(make(day) for make, day in zip(SOUND, days, strict=True))]
    lines = [*sound, *(damage(line) for damage, _ in DAMAGES), ""]
    (tmp_path / "h" / "history.jsonl").write_text("\n".join([*lines, ""]), encoding="latin-1")
    history = read_history(tmp_path / "h")
    assert len(history.runs) == len(sound)
    for number, (told, (_, reason)) in enumerate(zip(history.damaged, DAMAGES, strict=True), len(sound) + 1):
        assert f"history.jsonl: line {number} was skipped: {reason}" in told
    ended = rag_eval("history", "h")
    assert ended.code == 0
    assert f"history.jsonl: line {len(sound) + 1} was skipped: it is not a whole line of JSON" in ended.err


def test_a_half_line_does_not_swallow_the_next_one(
    rag_eval: Run, entry: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "h" / "history.jsonl"
    path.write_text(
        f'{json.dumps(entry)}\n{{"format": 1, "id"'
    )  # as a machine leaves it that loses its power
    run_once(rag_eval, tmp_path / "in.csv")
    assert [line.startswith("{") and line.endswith("}") for line in path.read_text().splitlines()] == [
        True,
        False,
        True,
    ]
    assert len(read_history(tmp_path / "h").runs) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_line_that_does_not_fit_on_the_disk_is_an_error(rag_eval: Run, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        _append(Path("/dev/full"), "{}")


def test_a_line_that_fits_only_in_part_is_taken_back(tmp_path: Path) -> None:
    """A disk that fills up takes the beginning of what is written, and says so by the number of bytes alone."""
    path = tmp_path / "history.jsonl"
    path.write_text("{}\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            _append(path, "x" * 30)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "{}\n"


def _add_lines(path: Path, name: str) -> None:
    from rag_eval.store.lock import locked

    for number in range(10):
        with locked(path, patience=60):
            _append(path, json.dumps({"name": name, "number": number, "text": "x" * 5000}))


def test_runs_that_end_together_leave_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add_lines, args=(path, name)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((each["name"], each["number"]) for each in found) == [
        (name, number) for name in "abc" for number in range(10)
    ]


@pytest.mark.slow
def test_a_thousand_runs(entry: dict[str, Any], tmp_path: Path) -> None:
    day = datetime(2020, 1, 1, 6, tzinfo=UTC)
    lines = [
        changed(entry, id=f"run{n:04d}", started=(day + timedelta(days=n)).isoformat()) for n in range(1000)
    ]
    history = history_of(tmp_path / "h", *lines)
    assert len(history.runs) == 1000
    assert not history.damaged
    assert len(bots_in_time(history)) == 2000


# For readers


def charts(path: Path) -> list[Any]:
    sheet: Any = load_workbook(path)["History"]
    return list(sheet._charts)


@pytest.mark.slow
def test_a_history_that_cannot_be_written_is_named(
    rag_eval: Run, offline_forker: Forker, tmp_path: Path
) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 6)
    run_once(rag_eval, path)
    lines = tmp_path / "h" / "history.jsonl"
    lines.write_text(lines.read_text(encoding="utf-8") + " " * 200_000 + "\n", encoding="utf-8")
    before = lines.read_bytes()
    arguments = "in.csv", "-o", "r.xlsx", "--history", "h", "--judge", "offline", "--manifest", "m.json"
    arguments += "--fail-under", "rqs=0.99"
    ended = offline_forker.run(tmp_path, *arguments, file_limit=len(before) + 9)
    problem = (
        "cannot be written: No space left on device; free some space, or choose another place with --history"
    )
    assert (ended.code, f"h/history.jsonl: {problem}" in ended.err) == (5, True), ended.err
    assert ended.complaints[-1].endswith(problem)
    assert "Report: r.xlsx" in ended.out
    assert "Gate FAILED: Birch: rqs" in ended.err
    assert load_workbook(tmp_path / "r.xlsx")["History"]["A3"].value
    manifest = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (manifest["exit_code"], manifest["outputs"]) == (5, ["r.xlsx"])
    assert lines.read_bytes() == before


def test_the_command_shows_a_history_without_a_run(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 12)
    run_once(rag_eval, path)
    run_once(rag_eval, write_input(path, [False] * 12))
    ended = rag_eval("history", "h", "-o", "all.xlsx")
    assert ended.code == 0
    assert "significantly worse" in ended.out
    assert "Atlas: RQS is significantly worse than in the run of" in ended.out
    book = load_workbook(tmp_path / "all.xlsx")
    assert book.sheetnames == ["History", "Runs"]
    assert [(sheet.page_setup.orientation, sheet.page_setup.fitToHeight) for sheet in book] == [
        ("landscape", 0)
    ] * 2
    assert (book["History"].sheet_view.showGridLines, book["Runs"].print_title_rows) == (False, "$1:$1")
    assert "2 runs of in.csv" in str(book["History"]["A1"].value)
    notes = {cell.value: cell.comment.text for cell in book["Runs"][1] if cell.comment}
    assert notes["Faithfulness"] == "Mean; in brackets its count if RQS has another one."
    assert len(charts(tmp_path / "all.xlsx")) == 1
    with zipfile.ZipFile(tmp_path / "all.xlsx") as parts:
        drawn = parts.read("xl/charts/chart1.xml").decode()
    assert '<c:plotVisOnly val="1"/>' not in drawn  # days and error bars are in hidden columns
    rows = read_sheet(tmp_path / "all.xlsx", "Runs")
    verdicts = [row["Since the run before"] for row in rows if row["Bot"] == "Atlas"]
    assert verdicts == ["first run", "significantly worse"]
    page = rag_eval("history", "h", "-o", "all.html")
    assert page.code == 0
    html = (tmp_path / "all.html").read_text()
    assert html.count("<svg") == 2
    assert "default-src 'none'" in html


def test_a_page_lists_the_last_runs_of_each_bot_the_last_one_first(
    entry: dict[str, Any], tmp_path: Path
) -> None:
    """A hundred rows for all bots together, and a chart of sixty for each."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    days = [start + timedelta(days=day) for day in range(62)]
    history = history_of(tmp_path / "h", *(changed(entry, started=day.isoformat()) for day in days))
    page = history_section(history)
    listed = re.findall(r"\b(\d{4}-\d\d-\d\d) \d\d:\d\d</", page)
    assert listed == 2 * [f"{day:%Y-%m-%d}" for day in reversed(days[12:])]
    assert page.count(f"mean RQS of 60 runs from {days[2]:%Y-%m-%d} to {days[-1]:%Y-%m-%d}; the last") == 2


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (0.625, 0.725, "0.63 then, 0.73 now"),  # half up, as in the cells of a workbook
        (0.831, 0.834, "0.831 then, 0.834 now"),  # a change that is claimed can be seen
    ],
)
def test_sentence_page_and_terminal_round_as_the_workbook_does(
    rag_eval: Run, entry: dict[str, Any], tmp_path: Path, before: float, now: float, told: str
) -> None:
    last = changed(entry, id="x", started=at(3), since=entry["id"])
    last["bots"][0] |= {"rqs": entry["bots"][0]["rqs"] | {"value": 0.725}, "interval": [0.625, 0.735]}
    last["changes"] = [json.loads(CHANGE % before) | {"queries": 5, "now": now}]
    history = history_of(tmp_path / "h", changed(entry, started=at(2)), last)
    [sentence] = changes_words(history)
    assert f": {told} (5 common queries)" in sentence
    assert "<small>RQS 0.73 (95% CI 0.63 to 0.74)," in history_section(history)
    assert "RQS 0.7250  95% CI 0.63 to 0.74 " in rag_eval("history", "h").out


@pytest.mark.parametrize(
    ("name", "why"),
    [("Atlas 2", "no bot is in both runs"), ("Atlas", "no query is in both runs equally often")],
)
def test_the_history_tells_another_bot_from_other_queries(
    entry: dict[str, Any], tmp_path: Path, name: str, why: str
) -> None:
    bots = [{**entry["bots"][0], "bot": name}]
    last = changed(entry, id="x", started=at(3), since=entry["id"], bots=bots)
    [sentence] = changes_words(history_of(tmp_path / "h", changed(entry, started=at(2)), last))
    assert sentence.endswith(f" are not tested: {why}.")


@pytest.mark.parametrize(("bots", "runs"), [(34, 2), (51, 1), (101, 1)])
def test_of_many_bots_a_page_lists_as_many_runs_each_as_there_is_room_for(
    entry: dict[str, Any], tmp_path: Path, bots: int, runs: int
) -> None:
    many = [{**entry["bots"][0], "bot": f"Bot {number:03d}"} for number in range(bots)]
    history = history_of(tmp_path / "h", *(changed(entry, started=at(day), bots=many) for day in (1, 2, 3)))
    listed = re.findall(r"\b2026-03-(\d\d) \d\d:\d\d</", history_section(history))
    assert listed == (bots * ["03", "02"][:runs])[:100]


def test_the_chart_breaks_between_runs_that_are_not_comparable(
    entry: dict[str, Any], rag_eval: Run, tmp_path: Path
) -> None:
    other = {"judge": "OpenAI", "is_proxy": False}
    history_of(
        tmp_path / "h",
        changed(entry, started=at(1)),
        changed(entry, started=at(2)),
        changed(entry, started=at(3), **other),
    )
    rag_eval("history", "h", "-o", "all.xlsx")
    rag_eval("history", "h", "-o", "all.html")
    [chart] = charts(tmp_path / "all.xlsx")
    assert [series.yVal.numRef.f for series in chart.series] == [
        "Runs!$C$2:$C$3", "Runs!$C$4", "Runs!$C$5:$C$6", "Runs!$C$7",
    ]  # fmt: skip
    assert [entry.idx for entry in chart.legend.legendEntry if entry.delete] == [1, 3]
    [line, _] = re.findall(r'class="line"[^>]* d="([^"]*)"', (tmp_path / "all.html").read_text())
    assert (line.count("M"), line.count("L")) == (1, 1)


def test_the_chart_has_the_first_eight_bots(entry: dict[str, Any], rag_eval: Run, tmp_path: Path) -> None:
    bots = [{**entry["bots"][0], "bot": f"Bot {number}"} for number in range(9)]
    history_of(tmp_path / "h", *(changed(entry, bots=bots, started=at(day)) for day in (1, 2)))
    rag_eval("history", "h", "-o", "all.xlsx")
    [chart] = charts(tmp_path / "all.xlsx")
    assert len(chart.series) == 8


@pytest.mark.parametrize(
    ("days", "heading", "forms"),
    [
        ([1], "1 run of in.csv", []),
        ([1, 2], "2 runs of in.csv", ["yyyy-mm-dd hh:mm"]),
        ([1, 2, 30], "3 runs of in.csv", ["yyyy-mm-dd"]),
    ],
)
def test_the_chart_begins_with_the_second_run_and_its_axis_tells_times_apart(
    entry: dict[str, Any], rag_eval: Run, tmp_path: Path, days: list[int], heading: str, forms: list[str]
) -> None:
    history_of(tmp_path / "h", *(changed(entry, started=at(day)) for day in days))
    rag_eval("history", "h", "-o", "all.xlsx")
    assert load_workbook(tmp_path / "all.xlsx")["History"]["A1"].value == heading
    assert [chart.x_axis.number_format.formatCode for chart in charts(tmp_path / "all.xlsx")] == forms


@pytest.mark.slow
def test_a_report_shows_the_last_forty_runs(entry: dict[str, Any], rag_eval: Run, tmp_path: Path) -> None:
    day = datetime(2020, 1, 1, 6, tzinfo=UTC)
    lines = (changed(entry, id=f"r{n}", started=(day + timedelta(days=n)).isoformat()) for n in range(60))
    history_of(tmp_path / "h", *lines)
    run_once(rag_eval, tmp_path / "in.csv")
    rows = read_sheet(tmp_path / "r.xlsx", "History")
    assert len(rows) == 80
    assert load_workbook(tmp_path / "r.xlsx")["History"].freeze_panes == "C2"


def test_words_without_an_earlier_run(entry: dict[str, Any], tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", entry)
    assert changes_words(history) == ["The history has one run so far; there is nothing to compare it with."]
    others = {"version of RAG Eval": {"version": "9"}, "prompts": {"judge": "OpenAI", "is_proxy": False}}
    for same, values in others.items():
        later = changed(entry, **values, id="later", started="2100-01-01T06:00:00+00:00")
        history = history_of(tmp_path / "h", entry, later)
        assert changes_words(history) == [
            f"Changes are not tested: no complete earlier run has the same judge, {same}, metrics and weights as "
            "the last run."
        ]
    assert changes_words(History(tmp_path)) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["my h"], "my h/history.jsonl: there is no run yet; add --history 'my h' to a run"),
        (["in.csv"], "in.csv: is a file; --history names a folder"),
        (["h", "-o", "x.pdf"], "x.pdf: a history is written to a file that ends in .xlsx or .html"),
    ],
)
def test_bad_input_of_the_command(rag_eval: Run, tmp_path: Path, arguments: list[str], message: str) -> None:
    write_input(tmp_path / "in.csv", [True])
    ended = rag_eval("history", *arguments)
    assert ended.code == 2
    assert message in ended.err


def test_a_report_that_is_made_again_adds_nothing(rag_eval: Run, tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True])
    rag_eval(path, "--judge", "offline", "--json", "run.json", "-o", "r.xlsx")
    ended = rag_eval("run.json", "--report-only", "--history", "h", "-o", "again.xlsx")
    assert ended.code == 2
    assert "--history" in ended.err


# Kills


@pytest.mark.slow
def test_a_killed_run_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    path = write_input(tmp_path / "in.csv", [True] * 900)
    command = [
        sys.executable,
        str(ROOT / "rag_eval_standalone.py"),
        "in.csv",
        "--judge",
        "offline",
        "-o",
        "r.xlsx",
    ]
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 900\n")
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, "--history", "h"], cwd=tmp_path, **silent)
    runs = tmp_path / "h" / "runs"
    while not (runs.exists() and any(file.stat().st_size for file in runs.iterdir())):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "h" / "history.jsonl").exists()
    write_input(path, [True] * 5)
    subprocess.run([*command, "--history", "h"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert [line["rows"] for line in lines_of(tmp_path / "h")] == [5]
    assert len(list(runs.glob("*.csv.gz"))) == 1


# Recipes

HOW_TO = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")


def recipe(heading: str, language: str) -> str:
    """The first block of code in that language below a heading of the how-to guides."""
    section = HOW_TO.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return section.partition(f"```{language}\n")[2].partition("```")[0]


INSTALLED = Path(sys.executable).with_name("rag-eval")
"""Where the README's commands install the program."""
BARE = {"PATH": "/usr/bin:/bin"}
on_posix = pytest.mark.skipif(os.name != "posix", reason="a recipe for a POSIX shell")


def as_cron_does(command: str) -> "subprocess.CompletedProcess[str]":
    """Run a line of a crontab: without a terminal, a home, a locale and a folder of its own."""
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd="/",
        env=BARE,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )


def write_dotenv(folder: Path, judge: FakeJudge) -> None:
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in azure(judge).items()))
    (folder / ".env").chmod(0o600)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "sample_rag_input.xlsx", tmp_path / "answers.xlsx"))


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize(("provider", "nights"), [("offline", 2), ("azure", 1)])
def test_the_nightly_script_keeps_dated_reports_the_history_and_a_log(
    tmp_path: Path, judge: FakeJudge, provider: str, nights: int
) -> None:
    """Only the two paths and the judge are edited; of a good night nothing is printed, so cron sends no mail."""
    script = recipe("Run every night", "sh").replace("--judge offline", f"--judge {provider}")
    for name, path in (("rag_eval", INSTALLED), ("folder", tmp_path)):
        script, number = re.subn(rf"(?m)^{name}=/\S+", f"{name}={path}", script)
        assert number == 1
    (tmp_path / "nightly.sh").write_text(script)
    (tmp_path / "nightly.sh").chmod(0o755)
    answers = sheet_of(tmp_path / "answers.xlsx", rows=3)
    write_dotenv(tmp_path, judge)
    line = recipe("Run every night", "cron").partition("*  ")[2]
    command = line.strip().replace("/srv/rag", str(tmp_path))
    for _ in range(nights):
        done = as_cron_does(command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    day = f"{datetime.now():%F}"
    reports = {file.name for file in (tmp_path / "reports").iterdir()}
    assert reports == {f"{day}.xlsx", f"{day}.html"}
    assert len(lines_of(tmp_path / "history")) == nights
    assert (tmp_path / "nightly.log").read_text().count(f"Report: reports/{day}.xlsx\n") == nights
    assert bool(judge.requests) is (provider == "azure")
    answers.unlink()
    done = as_cron_does(command)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith(f"RAG Eval: exit code 2. The end of {tmp_path}/nightly.log:\n")
    assert "rag-eval: answers.xlsx: there is no such file\n" in done.stdout


@pytest.mark.slow
@on_posix
def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path, judge: FakeJudge) -> None:
    """In one folder and an activated environment; only what installs is left out, and the endpoint is put in."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = "".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ").splitlines()
    installing = ("make", "python3 -m venv", "source", "python -m pip install")
    commands = [line for line in lines if not line.startswith(installing)]
    variables = azure(judge)
    script = [f"export PATH={INSTALLED.parent}:$PATH; cd {tmp_path}"]
    for command in commands:
        name = command.removeprefix("export ").partition("=")[0]
        command = f"export {name}={variables.pop(name)}" if name in variables else command
        script += [command, f'echo "{command.split()[0]} ended with $?"']
    assert not variables
    shutil.copy(ROOT / "sample_rag_input.xlsx", tmp_path)
    done = as_cron_does("\n".join(script))
    codes = re.findall(r"^(\S+) ended with (\d+)$", done.stdout, re.MULTILINE)
    assert [name for name, _ in codes] == [command.split()[0] for command in commands]
    assert [code for _, code in codes[:-1]] == ["0"] * (len(codes) - 1), done.stdout + done.stderr
    assert codes[-1] == ("rag-eval", "1"), done.stderr
    assert "Gate FAILED" in done.stderr
    assert "config.ini was read" in done.stdout
    assert judge.requests
    written = (
        "report.html",
        "answers_report.xlsx",
        "reports/today.xlsx",
        "reports/today.json",
        "reports/gates.xml",
    )
    for name in (*written, "history/history.jsonl"):
        assert (tmp_path / name).stat().st_size


@pytest.mark.slow
@on_posix
def test_the_steps_of_the_job_write_what_it_uploads(tmp_path: Path, sample: Path) -> None:
    job = yaml.safe_load(recipe("Run in GitHub Actions", "yaml"))
    steps = job["jobs"]["evaluate"]["steps"]
    [step] = [each["run"] for each in steps if "rag-eval answers" in each.get("run", "")]
    shown = tmp_path / "summary"
    world = f"export PATH={INSTALLED.parent}:$PATH GITHUB_STEP_SUMMARY={shown}"
    done = as_cron_does(f"{world}; cd {sample.parent}; set -e; {step}")
    assert done.returncode == 0, done.stderr
    assert shown.read_text(encoding="utf-8").startswith("### ")
    uploaded = steps[-1]["with"]["path"].split()
    assert uploaded == ["report.xlsx", "report.html", "gates.xml"]
    assert all((tmp_path / name).stat().st_size for name in uploaded)
    [cache] = [each["with"]["path"] for each in steps if each.get("uses", "").startswith("actions/cache")]
    assert (tmp_path / cache / "history.jsonl").exists()


def test_the_notebook_runs_from_top_to_bottom() -> None:
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)  # noqa: S102  our own notebook
    assert list(scope["means"].index) == ["Atlas", "Birch"]
    assert list(scope["means"]["count"]) == [2, 2]
    assert set(scope["worst"]["bot"]) == {"Birch"}


def test_an_entry_of_the_history_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    record = HistoryRecord(tmp_path, "a-run")
    record.add(plain_result())
    record.discard()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

"""The offline judge in several processes: the same report as in one, whatever is killed, and nothing left behind."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run
from files import SAMPLE, write_table
from forking import Forker
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from test_processes import is_alive

from rag_eval.configuration.effective import effective_thresholds
from rag_eval.configuration.settings import Settings
from rag_eval.errors import SettingsError
from rag_eval.records import Case, CaseResult, Row
from rag_eval.report.case_table import RenderedCases
from rag_eval.results.causes import CauseTally
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.run.parallel import (
    LARGE,
    ProcessEngine,
    most_processes,
    open_engine,
    processes_for,
    start_workers,
    usable_cores,
    workers,
)
from rag_eval.store.codec import decode, encode

OFFLINE = Settings.model_validate({"judge": {"provider": "offline"}})
FACTS = ("Paris is the capital of France", "the Seine is 777 km long", "tea is a drink", "you are an idiot")
HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context", "Gold_Docs", "Retrieved_Docs", "Topic"]


def write_rows(path: Path, rows: int) -> Path:
    """Repeated queries, ties, empty cells, insults, gold documents, and a column to slice by."""
    lines = []
    for number in range(rows):
        one, other = FACTS[number % 4], FACTS[number // 4 % 4]
        query = f"What about {one}?" if number % 3 else f"Question {number}: {one}?"
        answers = [f"{one}, and {other}. It is {number}.", "" if number % 7 == 0 else f"{other}!"]
        reference = "" if number % 5 == 0 else f"{one}."
        chunks = [f"{one}.", f"{other} {number}.", "ä\ud83d\ude00"]
        context = "" if number % 11 == 0 else json.dumps(chunks)
        lines.append([query, reference, *answers, context, f"d{number}", "d1 || d2", f"t{number % 3}"])
    return write_table(path, HEADER, *lines)


def rows_of(number: int) -> list[Row]:
    def case(row: int, bot: str) -> Case:
        one, other = FACTS[row % 4], FACTS[row // 4 % 4]
        chunks = (one, f"{other} {row}") if row % 5 else ()
        return Case(row, bot, f"What about {one}?", f"{other} and {bot}.", one if row % 3 else None, chunks)

    return [
        Row(row, f"What about {FACTS[row % 4]}?", (case(row, "A"), case(row, "B"))) for row in range(number)
    ]


def cells(path: Path) -> dict[tuple[str, str], Any]:
    """Values, looks, links and notes."""
    book = load_workbook(path)
    return {
        (sheet.title, cell.coordinate): (
            cell.value,
            cell.number_format,
            (cell.font.b, cell.border.top.style, cell.fill.fgColor.rgb, cell.quotePrefix),
            cell.comment and cell.comment.text,
            cell.hyperlink and cell.hyperlink.location,
        )
        for sheet in book
        for row in sheet.iter_rows()
        for cell in row
    }


def document(path: Path) -> dict[str, Any]:
    """A run's JSON without times and without the setting that is compared."""
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del run["run"]["started"], run["end"]["seconds"], run["configuration"]["evaluation"]["processes"]
    return run


def tables(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


MANY = "[evaluation]\nmax_rows = 100000\n[report]\nslice_by = Topic\nside_by_side = yes\n"
"""The workers render the first sheet unless its scores are linked with their evidence."""
CONFIGS = {"sample": "", "made": MANY, "made, with evidence": f"{MANY}evidence = yes\n"}


@pytest.mark.slow
@pytest.mark.parametrize("source", CONFIGS)
def test_one_two_and_three_processes_write_the_same_report(
    run_cli: Run, offline_forker: Forker, tmp_path: Path, source: str
) -> None:
    """Workers import everything anew, or, where the command is a process of its own, are forks of it."""
    (tmp_path / "config.ini").write_text(CONFIGS[source])
    name = SAMPLE if source == "sample" else write_rows(tmp_path / "in.csv", 130)
    numbers = (1, 2, 3) if source == "made" else (1, 3)
    for number in numbers:
        files = {
            "-o": f"{number}.xlsx",
            "--json": f"{number}.json",
            "--csv": number,
            "--html": f"{number}.html",
        }
        outputs = [part for option in files.items() for part in option]
        command = (name, *outputs, "-q", "--judge", "offline", "--processes", number)
        ended = run_cli(*command) if source == "made" else offline_forker.run(tmp_path, *command)
        said = ended.err.splitlines()
        assert (ended.code, len(said)) == (0, int(source != "sample")), said
        assert all("ask the query of an earlier row again" in line for line in said)
    expected = cells(tmp_path / "1.xlsx")
    for number in numbers[1:]:
        assert cells(tmp_path / f"{number}.xlsx") == expected
        assert document(tmp_path / f"{number}.json") == document(tmp_path / "1.json")
        assert tables(tmp_path / f"{number}") == tables(tmp_path / "1")


@pytest.mark.slow
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12))
@hypothesis_settings(max_examples=25)
def test_any_parts_give_the_results_of_the_whole(sizes: list[int]) -> None:
    from rag_eval.run import parallel

    rows = rows_of(sum(sizes))
    whole = Evaluation(Judges.offline(OFFLINE), OFFLINE)
    expected = list(whole.results(rows))
    whole.close()
    judge = parallel.open_worker(({"judge": {"provider": "offline"}}, {}, None))
    found = []
    counted, causes = (CauseTally(["A", "B"], effective_thresholds(OFFLINE, is_proxy=True)) for _ in range(2))
    for size in sizes:
        part, rows = rows[:size], rows[size:]
        judged, state, _ = decode(parallel._Judged, encode(judge(decode(parallel._Part, encode((0, part))))))
        found += judged
        causes.merge(state)
    assert found == expected
    for result in chain.from_iterable(expected):
        counted.add(result)
    assert causes.causes() == counted.causes()


def test_a_part_ends_where_it_has_enough_characters() -> None:
    from rag_eval.run import parallel

    rows = [Row(number, "q" * length, ()) for number, length in enumerate((99_999, 1, 99_998, 1, 1, 5), 2)]
    parts = list(parallel._parts(rows, most_rows=9))
    assert [[row.number for row in part] for part in parts] == [[2, 3], [4, 5, 6], [7]]
    assert list(map(parallel._name, parts)) == ["rows 2 to 3", "rows 4 to 6", "row 7"]
    assert list(map(len, parallel._parts(rows, most_rows=1))) == [1] * 6


class Noted:
    """What is made of each part, beside its results."""

    task, spec = "process_tasks:counts", "rows and cases of"

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def take(self, made: Any, results: Sequence[CaseResult]) -> None:
        self.taken.append((made, len(results)))


@pytest.mark.parametrize(
    ("processes", "part_rows", "parts"),
    [
        (2, 7, [14, 13, 14, 14, 14, 10]),
        pytest.param(2, 1, [2] * 7 + [1] + [2] * 32, marks=pytest.mark.slow),
        pytest.param(3, 1000, [79], marks=pytest.mark.slow),
    ],
)
def test_the_size_of_the_parts_does_not_matter(processes: int, part_rows: int, parts: list[int]) -> None:
    settings = Settings.model_validate(
        {
            "judge": {"provider": "offline"},
            "thresholds": {"faithfulness": 0.9},
            "metrics": {"toxicity": False},
        }
    )
    rows = rows_of(40)
    rows[7] = replace(rows[7], cases=rows[7].cases[:1])
    judges, results, noted = Judges.offline(settings), [], Noted()
    started = workers(processes, forks=True)
    engine = ProcessEngine(judges, settings, started, noted, part_rows=part_rows)
    counted, engine.causes = (
        CauseTally(["A", "B"], effective_thresholds(settings, is_proxy=True)) for _ in "12"
    )
    for evaluation in (Evaluation(judges, settings), Evaluation(judges, settings, engine=engine)):
        results.append(list(evaluation.results(rows)))
        evaluation.close()
    assert results[0] == results[1]
    assert [result[0].case.row for result in results[1]] == list(range(40))
    for row in results[0]:
        counted.add_row(row)
    assert engine.causes.causes() == counted.causes()
    assert noted.taken == [
        ([Noted.spec, sum(parts[:place]), cases], cases) for place, cases in enumerate(parts)
    ]
    assert not any(map(is_alive, started.ids))


def test_no_secret_goes_to_a_worker_and_no_threshold_is_lost() -> None:
    """A threshold that was set counts, and one that was not is the offline judge's own."""
    from rag_eval.run import parallel

    settings = Settings.model_validate(
        {
            "judge": {"provider": "offline"},
            "azure": {"api_key": KEY, "endpoint": f"https://user:{KEY}@example.com"},
            "openai": {"api_key": KEY, "base_url": f"https://user:{KEY}@example.com"},
            "thresholds": {"faithfulness": 0.3},
            "context": {"delimiter": "\n"},
        }
    )
    spec = parallel.specification(settings)
    assert KEY.encode() not in encode(spec)
    again = Settings.model_validate(json.loads(json.dumps(spec)))
    assert again.context == settings.context
    thresholds = [effective_thresholds(each, is_proxy=True) for each in (settings, again)]
    assert thresholds[0] == thresholds[1] != effective_thresholds(OFFLINE, is_proxy=True)


# How many


def with_processes(number: int | None) -> Settings:
    return Settings.model_validate({"judge": {"provider": "offline"}, "evaluation": {"processes": number}})


def long_rows(characters: int) -> Sequence[Row]:
    return [Row(row, "q", (Case(row, "A", "q", "x" * 99_999),)) for row in range(characters // 100_000)]


def test_small_inputs_are_judged_by_one_process_and_large_ones_by_as_many_as_there_are_cores() -> None:
    allowed = os.sched_getaffinity(0)
    assert usable_cores() == len(allowed)
    assert processes_for(OFFLINE, []) == processes_for(OFFLINE, rows_of(200)) == 1
    assert processes_for(OFFLINE, long_rows(LARGE - 100_000)) == 1
    assert processes_for(OFFLINE, long_rows(LARGE)) == most_processes() == min(len(allowed), 4)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processes_for(OFFLINE, long_rows(LARGE)) == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_number_that_is_given_counts_but_no_process_is_without_a_row() -> None:
    assert processes_for(with_processes(3), rows_of(5)) == 3
    assert processes_for(with_processes(3), rows_of(2)) == 2
    assert processes_for(with_processes(3), []) == 1
    assert processes_for(with_processes(1), long_rows(LARGE)) == 1
    assert processes_for(Settings(), long_rows(LARGE)) == 1
    assert open_engine(Judges.offline(OFFLINE), OFFLINE, 1) is None


@pytest.mark.slow
def test_workers_start_before_the_reading_if_the_input_will_need_them(tmp_path: Path) -> None:
    large, small = tmp_path / "large.csv", tmp_path / "small.csv"
    large.write_bytes(b"x" * LARGE)
    small.write_bytes(b"x" * (LARGE - 1))
    rows = {"evaluation": {"max_rows": 4_000}}
    whole = Settings.model_validate({"judge": {"provider": "offline"}, **rows})
    for settings, path in [(OFFLINE, large), (whole, small), (whole, tmp_path), (Settings(), large)]:
        assert start_workers(settings, path, RenderedCases.task) is None
    assert start_workers(with_processes(1), large, RenderedCases.task) is None
    for settings, path, number in [(with_processes(3), small, 3), (whole, large, most_processes())]:
        started = start_workers(settings, path, RenderedCases.task)
        assert len(started.ids if started else [0]) == number
        if started:
            started.close()
            assert not any(map(is_alive, started.ids))


@pytest.mark.parametrize("option", [True, False])
def test_an_llm_judge_has_one_process(run_cli: Run, tmp_path: Path, option: bool) -> None:
    (tmp_path / "config.ini").write_text("" if option else "[evaluation]\nprocesses = 2\n")
    ended = run_cli(SAMPLE, "--judge", "azure", *(["--processes", "2"] if option else []))
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "only the offline judge uses several processes; remove it, and raise max_workers" in ended.err


@pytest.mark.slow
def test_frames_in_two_processes() -> None:
    from pandas.testing import assert_frame_equal

    from rag_eval.frames import evaluate

    assert_frame_equal(evaluate(SAMPLE, with_processes(2)), evaluate(SAMPLE))
    with pytest.raises(SettingsError, match=r"^\[evaluation\] processes: only the offline judge"):
        evaluate(SAMPLE, Settings.model_validate({"evaluation": {"processes": 2}}))

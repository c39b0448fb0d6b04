"""What scripts/compare_checkouts.py sees and what it overlooks, on two small results made by hand."""

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from openpyxl.comments import Comment
from openpyxl.styles import PatternFill

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from checkouts.judge import running_judge  # noqa: E402
from checkouts.results import accepted, cleaner, compare, content  # noqa: E402
from checkouts.scenarios import SCENARIOS, workbook  # noqa: E402

Change = Callable[[Path], Any]


def result(side: Path) -> Path:
    """A scenario called 'tiny' with one output of each kind."""
    folder = side / "tiny"
    files = folder / "files"
    files.mkdir(parents=True)
    (files / "report.xlsx").write_bytes(workbook(("Bot", "Avg RQS"), ("Atlas", 0.5), ("Birch", 0.25)))
    (files / "run.json").write_text('{"started": "2020-01-01T00:00:00", "rqs": [0.5, 0.25]}')
    (files / "table.csv").write_text("Bot,Avg RQS\nAtlas,0.5\n")
    store(files / "replies.sqlite", "key-1")
    requests(folder, '{"model": "a", "messages": []}')
    terminal(folder, 0, f"Report: {side}/report.xlsx\n3 of 4 rows judged after 2 s\nNo judge calls. 1.2 s.\n")
    (side / "replacements.json").write_text(json.dumps({str(side): "<results>"}))
    return side


def store(path: Path, key: str) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE replies (key TEXT PRIMARY KEY, reply TEXT, stored_at REAL, checksum BLOB)"
        )
        connection.execute("INSERT INTO replies VALUES (?, '{}', ?, x'00ff')", (key, hash(path) * 1.0))
        connection.execute("CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT)")
        name = (
            f"run {sha256(str(path).encode()).hexdigest()}"  # as a store names what a run of this folder took
        )
        connection.execute("INSERT INTO notes VALUES (?, ?)", (name, str(hash(path))))
        connection.commit()


def requests(folder: Path, *bodies: str, **headers: str) -> None:
    lines = [json.dumps({"path": "/v1", "headers": headers, "body": body}) for body in bodies]
    (folder / "requests.jsonl").write_text("\n".join(lines))


def terminal(folder: Path, code: int, stdout: str, expected: int = 0) -> None:
    command = {"command": "rag-eval", "expected": expected, "code": code, "stdout": stdout, "stderr": ""}
    (folder / "terminal.json").write_text(json.dumps([command]))


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    return result(tmp_path / "old"), result(tmp_path / "new")


def in_workbook(change: Callable[[Any], None]) -> Change:
    def changed(folder: Path) -> None:
        path = folder / "files" / "report.xlsx"
        book = load_workbook(path)
        change(book["Q3"])
        book.save(path)

    return changed


def test_results_that_differ_only_in_times_paths_and_progress_are_alike(sides: tuple[Path, Path]) -> None:
    old, new = sides
    terminal(
        new / "tiny", 0, f"1 of 4 rows judged after 1 s\nReport: {new}/report.xlsx\nNo judge calls. 9.9 s.\n"
    )
    (new / "tiny" / "files" / "run.json").write_text('{"started": "2021-01-01T00:00:00", "rqs": [0.5, 0.25]}')
    assert list(compare(old, new, "tiny")) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (in_workbook(lambda sheet: sheet.cell(2, 2, 0.51)), "report.xlsx: Q3!B2 value"),
        (in_workbook(lambda sheet: setattr(sheet["B3"], "number_format", "0.00")), "Q3!B3 number format"),
        (in_workbook(lambda sheet: setattr(sheet["B3"], "comment", Comment("Why", "x"))), "Q3!B3 comment"),
        (
            in_workbook(lambda sheet: setattr(sheet["B3"], "fill", PatternFill("solid", "FFFF0000"))),
            "Q3!B3 fill",
        ),
        (
            in_workbook(lambda sheet: setattr(sheet, "freeze_panes", "A2")),
            "part xl/worksheets/sheet1.xml",
        ),
        (in_workbook(lambda sheet: sheet.parent.create_sheet("More")), "report.xlsx: sheets"),
        (lambda folder: store(folder / "files" / "replies.sqlite", "key-2"), "replies, key key-2"),
        (lambda folder: requests(folder, '{"model":"a", "messages": []}'), "requests (1 and 1)"),
        (lambda folder: requests(folder, *['{"model": "a", "messages": []}'] * 2), "requests (1 and 2)"),
        (lambda folder: requests(folder, '{"model": "a", "messages": []}', accept="x"), "requests (1 and 1)"),
        (lambda folder: terminal(folder, 3, "Report: <results>/report.xlsx\nNo judge calls. 1.2 s."), "exit code"),
        (lambda folder: terminal(folder, 0, "Report: other.xlsx\nNo judge calls. 1.2 s."), "stdout, line 1"),
        (lambda folder: (folder / "files" / "run.json").write_text('{"rqs": [0.5, 0.3]}'), "run.json: .rqs[1]"),
        (lambda folder: (folder / "files" / "table.csv").write_text("Bot,Avg RQS\nAtlas,0.6\n"), "table.csv, line 2"),
        (lambda folder: (folder / "files" / "table.csv").unlink(), "tiny: table.csv"),
        (lambda folder: (folder / "files" / "left.tmp").write_text("x"), "tiny: left.tmp"),
    ],
)  # fmt: skip
def test_what_changed_is_found_at_its_place(sides: tuple[Path, Path], change: Change, place: str) -> None:
    old, new = sides
    change(new / "tiny")
    assert any(place in difference.place for difference in compare(old, new, "tiny"))


def test_a_command_that_does_not_end_as_it_is_meant_to_is_a_difference_though_both_sides_agree(
    sides: tuple[Path, Path],
) -> None:
    for side in sides:
        terminal(side / "tiny", 2, "")
    assert ["meant to end with 0" in each.place for each in compare(*sides, "tiny")] == [True]


def test_a_difference_shows_both_values_from_where_they_part_and_can_be_accepted(
    sides: tuple[Path, Path],
) -> None:
    old, new = sides
    same = "x" * 1000
    requests(old / "tiny", f'{{"content": "{same} old"}}')
    requests(new / "tiny", f'{{"content": "{same} new"}}')
    (difference,) = compare(old, new, "tiny")
    shown = str(difference)
    assert "x old" in shown
    assert "x new" in shown
    assert len(shown) < 600
    assert accepted(difference, [re.compile("x old.*-> .*x new", re.DOTALL)])
    assert not accepted(difference, [re.compile("stdout")])


def test_texts_that_hold_the_address_of_a_side_are_compared_without_it(tmp_path: Path) -> None:
    (tmp_path / "replacements.json").write_text(json.dumps({"4711": "<port>", "/a/b": "<tree>"}))
    clean = cleaner(tmp_path)
    assert clean("http://127.0.0.1:4711 in /a/b/c, Took 1 min 02 s.") == (
        "http://127.0.0.1:<port> in <tree>/c, Took <duration>."
    )
    assert clean("Duration: 9.9 s.") == clean("Duration: 10 s.")
    (tmp_path / "x.txt").write_text("/a/b\nline 2")
    assert content(tmp_path / "x.txt", clean) == ["<tree>", "line 2"]


def test_the_judge_keeps_what_it_was_sent_and_replies_by_the_request_alone(tmp_path: Path) -> None:
    body = json.dumps(
        {"messages": [{"role": "user", "content": 'Reply with the JSON object {"ready"'}]}
    ).encode()
    with running_judge(ROOT / "tests" / "fake_judge.py") as judge:
        held = judge.conversation("old tiny", frozenset())
        answers = [judge.answer("/v1", {"Api-Key": held.key}, body) for _ in range(2)]
        refused = judge.answer("/v1", {"Api-Key": "unknown"}, body)
    held.write(tmp_path / "requests.jsonl")
    lines = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert [answer.status for answer in (*answers, refused)] == [200, 200, 401]
    assert answers[0].body == answers[1].body
    assert [json.loads(line) for line in lines] == [
        {"path": "/v1", "headers": {"api-key": "<key>"}, "body": body.decode()}
    ] * 2


def test_every_scenario_is_named_once() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names)

"""What scripts/house_measures.py counts, on a package small enough to count by hand."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import house_measures  # noqa: E402

CALLS = """
from rag_eval.errors import Wrong


class Call:
    def _once(self):
        return Wrong

    def go(self):
        return self._once()


def _twice():
    # reason
    return _twice()


def ask():
    _twice(), _twice()
"""
FOR_TYPES = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_eval.tables.table import Call
"""
TABLE = """
from ..judge import calls
from openpyxl.worksheet._reader import WorkSheetParser


class Call:
    _ours = 1

    def _lonely(self, book):
        self._theirs, book._ours
        return book._date_formats, book._replace()
"""
MODULES = {
    "__init__.py": "",
    "errors.py": '"""Texts\n\nof three lines."""\n\n\nclass Wrong(Exception):\n    """A text."""\n',
    "judge/__init__.py": "",
    "judge/calls.py": CALLS,
    "judge/table.py": FOR_TYPES,
    "tables/__init__.py": "",
    "tables/table.py": TABLE,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        path = tmp_path / "rag_eval" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    return tmp_path


def test_each_measure_of_a_small_package(tree: Path) -> None:
    found = {
        measure.name: (measure.value, list(measure.names))
        for measure in house_measures.measures(house_measures.read(tree), 5)
    }
    calls, table = "rag_eval/judge/calls.py", "rag_eval/tables/table.py"
    public = ["rag_eval/errors.py:6 Wrong", f"{calls}:4 Call", f"{calls}:17 ask", f"{table}:5 Call"]
    arrows = [
        "rag_eval.judge -> rag_eval.errors",
        "rag_eval.judge -> rag_eval.tables",
        "rag_eval.tables -> rag_eval.judge",
    ]
    foreign = [f"{table}:2 openpyxl.worksheet._reader.WorkSheetParser", f"{table}:10 book._date_formats"]
    assert found["modules"][0] == 7
    assert found["rooms"][1] == ["rag_eval", "rag_eval.errors", "rag_eval.judge", "rag_eval.tables"]
    assert found["arrows between rooms"] == (3, arrows)
    assert found["floors"][0] == 3
    assert found["rooms in circles"][0] == 0  # an import for types alone closes none
    assert (found["lines"][0], found["lines of tests"][0]) == (39, 5)
    assert found["public names"] == (4, public)
    assert found["helpers with a single caller"] == (1, [f"{calls}:5 _once"])
    assert found["import depth"][0] == 3
    assert found["module stems used twice"] == (1, [f"table: rag_eval/judge/table.py, {table}"])
    assert found["class names used twice"] == (1, [f"Call: {calls}:4, {table}:5"])
    assert found["private names of other packages"] == (2, foreign)


def test_rooms_that_import_each_other_when_the_program_runs_are_a_circle(tree: Path) -> None:
    path = tree / "rag_eval" / "judge" / "table.py"
    path.write_text("def late():\n    from rag_eval.tables import table\n")
    found = {each.name: each for each in house_measures.measures(house_measures.read(tree), 5)}
    assert list(found["rooms in circles"].names) == ["rag_eval.judge", "rag_eval.tables"]
    assert not found["rooms in circles"].is_met


def test_goals_stand_beside_the_numbers_and_names_behind_those_that_are_not_met(tree: Path) -> None:
    lines: list[str] = []
    house_measures.main([str(tree), "--names"], lines.append)
    assert " ".join(lines[0].split()) == "modules 7 at most 200 met"
    assert lines[6].split() == ["rooms", "4"]
    twice = next(number for number, line in enumerate(lines) if line.startswith("class names"))
    assert " ".join(lines[twice].split()) == "class names used twice 1 at most 0 not met"
    assert lines[twice + 1].strip().startswith("Call: ")

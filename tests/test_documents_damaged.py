"""What is said of a document with one wrong value: a run's JSON, as a run and as a baseline, and a line of a history.

`documents_damaged.txt` has each member of the documents and, for each value in its place, what is said; nothing where
the document is read. `python tests/test_documents_damaged.py` writes it anew after a change that is wanted; read what
differs before you keep it.
"""

import copy
import difflib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from forking import MEMORY

from rag_eval.errors import InputError
from rag_eval.results.baseline import read_past_run
from rag_eval.results.recorded import RecordedRun
from rag_eval.results.run_history import LINES, read_history, run_line, run_of
from rag_eval.results.tallies import Tallies

RECORDED = Path(__file__).parent / "documents_damaged.txt"
RUN = Path(__file__).parent / "recorded" / "run.json"
ABSENT = object()
OTHERS: tuple[Any, ...] = (ABSENT, None, -1, 10**16)
"""What stands in the place of a value."""
FREE = re.compile(r"cases\.\d+\.scores\.(?!faithfulness)|configuration|versions|run\.reading\.")
"""Members of which others are like the first one, or that nobody reads."""


def places_of(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each member; of a list, to the first item."""
    if place:
        yield place
    members = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    for key, member in members:
        yield from places_of(member, (*place, key))


@contextmanager
def other_at(document: Any, place: tuple[Any, ...], other: Any) -> Iterator[None]:
    *way, last = place
    parent = document
    for key in way:
        parent = parent[key]
    before = copy.copy(parent)
    if other is ABSENT:
        del parent[last]
    else:
        parent[last] = other
    yield
    if isinstance(parent, dict):
        parent.clear()  # in the order of before
        parent.update(before)
    else:
        parent[:] = before


def said_of(read: Callable[[Path], object], document: Any, folder: Path) -> str:
    """What is wrong with a document; empty if it is read."""
    path = folder / "run.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        read(path)
    except InputError as error:
        return " | ".join(error.problems).replace(str(folder), "").strip()
    return ""


def without_types(said: str) -> str:
    """What pydantic says of a type depends on its version."""
    return re.sub(r"(Input should|Field required|Value error).*?(?=\);|$)", "…", " ".join(said.split()))


def history_of(path: Path) -> None:
    """Reads a line of a history like a document that is refused."""
    document = json.loads(path.read_text(encoding="utf-8"))
    folder = path.parent / "past"
    folder.mkdir(exist_ok=True)
    (folder / LINES).write_text(json.dumps(document) + "\n", encoding="utf-8")
    if damaged := read_history(folder).damaged:
        raise InputError(damaged)


def documents() -> Mapping[str, tuple[Callable[[Path], object], Any]]:
    run = json.loads(RUN.read_text(encoding="utf-8"))
    recorded = RecordedRun.read(RUN)
    tallies = Tallies(recorded.facts, "Topic", read_past_run(RUN.with_name("earlier.json")))
    for result in recorded.results:
        tallies.add(result)
    summary = tallies.summary()
    line = json.loads(run_line(run_of("a-1", "0" * 64, recorded.facts, summary, tallies.findings(summary))))
    run = {name: run[name] for name in ("format", "run", "cases", "end")}
    run["cases"] = run["cases"][:2]
    past = {name: run[name] for name in ("format", "run", "cases")}
    return {
        "a run": (RecordedRun.read, run),
        "a baseline": (read_past_run, past),
        "a history": (history_of, line),
    }


def told(name: str) -> Iterator[str]:
    read, document = documents()[name]
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for place in [*places_of(document)]:
            way = ".".join(map(str, place))
            if FREE.search(way):
                continue
            found: dict[str, list[str]] = {}
            for other in OTHERS:
                with other_at(document, place, other):
                    said = without_types(said_of(read, document, Path(folder)))
                found.setdefault(said, []).append("absent" if other is ABSENT else json.dumps(other))
            yield from (f"{way}: {', '.join(values)}: {said}" for said, values in found.items() if said)


NAMES = ("a run", "a baseline", "a history")


@pytest.mark.parametrize("name", [pytest.param("a run", marks=pytest.mark.slow), *NAMES[1:]])
def test_wrong_values_are_told_as_they_were(name: str) -> None:
    parts = f"\n{RECORDED.read_text(encoding='utf-8')}".split("\n=== ")
    recorded = next(part for part in parts if part.startswith(f"{name}\n")).splitlines()[1:]
    assert [*difflib.unified_diff(recorded, [*told(name)], "recorded", "now", n=0, lineterm="")] == []


if __name__ == "__main__":
    lines = [line for each in NAMES for line in (f"=== {each}", *told(each))]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")

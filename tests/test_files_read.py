"""What files of many shapes are understood as, to the letter: roles, cases, amounts, warnings and refusals.

`files_read.txt` has each file with the options of its command, and below `---` what is read of it.
`python tests/test_files_read.py` writes the second part anew after a change that is wanted; read what differs before
you keep it.
"""

import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rag_eval.errors import InputError, TableError
from rag_eval.records import Case
from rag_eval.tables.columns import named_columns, parse_map
from rag_eval.tables.selection import Selection
from rag_eval.tables.table import describe, read_table

RECORDED = Path(__file__).parent / "files_read.txt"
BEGIN, MIDDLE = "\n=== ", "\n---\n"


class File(NamedTuple):
    """A file, how it is to be read, and what was read of it."""

    command: str
    """Its name, whose suffix counts, and options."""
    text: str
    read: str


def recorded() -> dict[str, File]:
    found = {}
    for part in f"\n{RECORDED.read_text(encoding='utf-8')}".split(BEGIN)[1:]:
        command, _, rest = part.partition("\n")
        text, _, read = rest.partition(MIDDLE)
        found[command] = File(command, text, read.strip("\n"))
    return found


FILES = recorded()


def told(file: File, folder: Path) -> Iterator[str]:
    """What is read of a file, or why it is not."""
    name, *options = shlex.split(file.command)
    path = folder / f"in{Path(name).suffix}"
    path.write_text(file.text + "\n", encoding="utf-8")
    given = [(option.partition("=")[0].strip("-"), option.partition("=")[2]) for option in options]

    def values(option: str) -> list[str]:
        return [value for key, value in given if key == option]

    maps = parse_map(values("map"))
    try:
        table = read_table(
            path,
            named=named_columns(maps, list(maps)),
            keep=values("keep"),
            prefix=(values("prefix") or ["Bot_"])[0],
            delimiter=(values("delimiter") or ["auto"])[0],
            bot_name="".join(values("bot-name")),
            max_rows=int((values("max-rows") or ["200"])[0]),
            header_row=int(values("header-row")[0]) if values("header-row") else None,
            units=dict.fromkeys(("latency", "cost"), values("unit")[0]) if values("unit") else None,
            selection=Selection.parse((values("rows") or [None])[0], None, values("where")),
        )
    except (TableError, InputError) as error:
        yield from (f"refused: {problem}" for problem in error.problems)
        if isinstance(error, TableError) and error.roles:
            yield f"roles: {', '.join(error.roles)}"
        return
    yield from describe(table)
    yield from (f"warning: {warning}" for warning in table.warnings)
    if table.dropped_items or table.cut_rows:
        yield f"items dropped: {table.dropped_items}, rows cut: {table.cut_rows}"
    if table.decimals:
        yield f"decimal separators: {dict(table.decimals)}"
    for bot, habit in table.habits.items():
        if habit.bracketed:
            counts = ", ".join(f"{name} {count}" for name, count in habit._asdict().items() if count)
            yield f"brackets of {bot}: {counts}"
    for row in table.rows:
        yield from map(line_of, row.cases)


def line_of(case: Case) -> str:
    """All that is known of a case."""
    found = {
        "truth": case.reference,
        "chunks": case.chunks and list(case.chunks),
        "gold": case.gold_ids and list(case.gold_ids),
        "retrieved": case.retrieved_ids and list(case.retrieved_ids),
        "spent": {role: round(value, 9) for role, value in case.spent.items()},
        "labels": dict(case.human),
        "kept": dict(case.columns),
        "turns": [f"{turn.role}: {turn.content}" for turn in case.history],
        "conversation": case.conversation or None,
        "missing": case.is_missing or None,
    }
    more = "".join(f", {name} {value}" for name, value in found.items() if value not in (None, {}, []))
    return f"{case.row} {case.bot[:30]}: {case.query!r} -> {case.response!r}{more}"


@pytest.mark.parametrize("command", FILES)
def test_a_file_is_understood_as_it_was(tmp_path: Path, command: str) -> None:
    assert "\n".join(told(FILES[command], tmp_path)).splitlines() == FILES[command].read.splitlines()


def written(file: File) -> str:
    with tempfile.TemporaryDirectory() as folder:
        found = "\n".join(told(file, Path(folder)))
    return f"{BEGIN}{file.command}\n{file.text}{MIDDLE}{found}\n"


if __name__ == "__main__":
    RECORDED.write_text("".join(map(written, FILES.values())).lstrip("\n"), encoding="utf-8")

"""What the commands of a scenario left behind, as places and values, and how two such results differ.

A result is a folder: `files/` holds what the commands read and wrote, `terminal.json` what they printed and their exit
codes, `requests.jsonl` every request that the judge received. Times, paths and ports are replaced before anything is
compared, because they differ from run to run.
"""

import csv
import difflib
import json
import re
import sqlite3
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Any

Clean = Callable[[str], str]
Content = Mapping[str, str] | Sequence[str]
"""Values by their place, or lines in order."""

REPLACEMENTS = "replacements.json"
"""In the folder of one side: the paths and addresses of this side, and what is written in place of each."""
TERMINAL, REQUESTS, FILES = "terminal.json", "requests.jsonl", "files"

_BOUND = 160
"""Characters of a value that are shown."""
_OF_A_RUN = re.compile("run [0-9a-f]{64}")
_CHANGING_MEMBERS = frozenset({"process", "started", "ended", "seconds"})
"""Members of JSON outputs that differ from run to run."""


@dataclass(frozen=True, slots=True)
class Difference:
    place: str
    old: str | None
    """None where only the new checkout has something."""
    new: str | None
    output: str = ""
    """The file or stream that it is in."""

    def __str__(self) -> str:
        old, new = _excerpts(self.old, self.new)
        return f"{self.place}\n    old: {old}\n    new: {new}"


def compare(old: Path, new: Path, scenario: str) -> Iterator[Difference]:
    """The differences between two results of the scenario, which lie in folders of its name."""
    results = [_read(side / scenario, cleaner(side)) for side in (old, new)]
    for name in sorted(sorted(set(results[0]) | set(results[1])), key=_telling):
        contents = [result.get(name) for result in results]
        for difference in _between(name, *contents):
            yield replace(difference, place=f"{scenario}: {difference.place}", output=name)


def _telling(name: str) -> tuple[bool, ...]:
    """Sorts what explains the rest to the front: how commands ended, what was asked, what was printed."""
    return "meant to end" not in name, "exit code" not in name, name != "requests", ": std" not in name


def cleaner(side: Path) -> Clean:
    """Replaces what differs from run to run, in any text of this side."""
    path = side / REPLACEMENTS
    literal: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    literals = sorted(literal, key=len, reverse=True)

    def clean(text: str) -> str:
        for each in literals:
            text = text.replace(each, literal[each])
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text

    return clean


def _near_days() -> str:
    """Dates of a run: those around today. Other dates are data."""
    days = [datetime.now(UTC) + timedelta(days) for days in (-2, -1, 0, 1)]
    return "|".join(f"{day:%Y-%m-%d}" for day in days)


_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(rf"(?:{_near_days()})(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?[+-]\d\d:?\d\d|Z| UTC)?"),
        "<time>",
    ),
    (re.compile(r"\banswered in \d+\.\d s"), "answered in <duration>"),
    (re.compile(r"^\d[\d,]* of \d[\d,]* rows finished after .*\n?", re.MULTILINE), ""),
    (
        re.compile(r"\b(Took|after|Duration:) (?=\d)(?:\d+ h )?(?:\d+ min)? ?(?:\d+(?:\.\d)? s)?"),
        r"\1 <duration>",
    ),
    (re.compile(r"\b\d+\.\d s\.(?=$|&#xA;|<|\")", re.MULTILINE), "<duration>"),
    (re.compile(r"\.rag-eval-\w+\.tmp"), "<temporary>"),
)


def _read(folder: Path, clean: Clean) -> dict[str, Content]:
    """Everything that the scenario left behind, by name."""
    found: dict[str, Content] = {}
    if not folder.is_dir():
        return found
    for number, command in enumerate(_json(folder / TERMINAL, default=[]), 1):
        name = f"command {number} ({clean(command['command'])})"
        found[f"{name}: exit code"] = {"": str(command["code"])}
        if command["code"] != command["expected"]:
            found[f"{name}: this scenario is meant to end with {command['expected']}"] = {
                "": f"{command['code']} ({clean(command['stderr'][-_BOUND:])}) in {folder.parent.name}"
            }
        for stream in ("stdout", "stderr"):
            found[f"{name}: {stream}"] = _terminal_lines(clean(command[stream]))
    found["requests"] = _requests(folder / REQUESTS, clean)
    for path in sorted((folder / FILES).rglob("*")):
        if path.is_file():
            found[clean(path.relative_to(folder / FILES).as_posix())] = content(path, clean)
    return found


def _json(path: Path, default: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


_PROGRESS = re.compile(r"\d+ of \d+ \w+ judged after|Rows read: ")


def _terminal_lines(text: str) -> list[str]:
    """Without progress, which depends on how fast the machine is."""
    lines = [line for part in text.split("\r") for line in part.split("\n")]
    return [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line)]


def _requests(path: Path, clean: Clean) -> list[str]:
    """A line for each request, sorted: in which order they arrive depends on the threads."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return sorted(clean(line) for line in lines)


def content(path: Path, clean: Clean) -> Content:
    """What a file says, apart from what differs from run to run."""
    with path.open("rb") as file:
        start = file.read(16)
    if start.startswith(b"SQLite format 3"):
        return _store(path, clean)
    readers = {".xlsx": _workbook, ".json": _document, ".csv": _csv}
    if reader := readers.get(path.suffix.lower()):
        return reader(path, clean)
    try:
        return clean(path.read_text(encoding="utf-8")).splitlines()
    except UnicodeDecodeError:
        return {"content": sha256(path.read_bytes()).hexdigest()}


def _store(path: Path, clean: Clean) -> dict[str, str]:
    """Every row of every table by its first column, which is its key; without the time when it was stored.

    Notes on what a run took are left out: they are named by a digest of paths and addresses, and reports have the
    figures.
    """
    found = {}
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.exists() else "immutable=1"  # the latter writes no files of its own beside it
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        for (table,) in tables.fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 - a name from the file's own list
                key, *names = row.keys()
                if _OF_A_RUN.fullmatch(str(row[key])):
                    continue
                values = {name: row[name] for name in names if name != "stored_at"}
                found[f"{table}, {key} {clean(str(row[key]))}"] = clean(
                    json.dumps(values, ensure_ascii=False, default=bytes.hex)
                )
    return found


def _document(path: Path, clean: Clean) -> Content:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return clean(path.read_text(encoding="utf-8", errors="replace")).splitlines()
    return dict(_members(document, "", clean))


def _members(value: Any, place: str, clean: Clean) -> Iterator[tuple[str, str]]:
    """Each leaf of a JSON document by its path. The order of members counts.

    Costs are rounded: they are sums, and in which order replies arrive depends on the threads.
    """
    if isinstance(value, dict) and value:
        yield f"{place} (names)", json.dumps(list(value), ensure_ascii=False)
        for name, member in value.items():
            if name not in _CHANGING_MEMBERS:
                yield from _members(member, f"{place}.{clean(name)}", clean)
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _members(item, f"{place}[{number}]", clean)
    elif isinstance(value, float) and place.endswith(".cost"):
        yield place, f"{value:.12g}"
    else:
        yield place, clean(json.dumps(value, ensure_ascii=False))


def _csv(path: Path, clean: Clean) -> list[str]:
    """A line for each record, which may itself take several lines."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return [clean(json.dumps(row, ensure_ascii=False)) for row in csv.reader(file)]


def _workbook(path: Path, clean: Clean) -> dict[str, str]:
    """Every cell with its number format, look and comment; and everything else in the file, part by part."""
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(path)
    except Exception:  # noqa: BLE001 - a file that is meant to be no workbook
        return {"content": sha256(path.read_bytes()).hexdigest()}
    found = {"sheets": ", ".join(f"{sheet.title} ({sheet.sheet_state})" for sheet in book)}
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                for aspect, value in _cell(cell):
                    found[f"{sheet.title}!{cell.coordinate} {aspect}"] = clean(value)
    return found | dict(_parts(path, clean))


def _cell(cell: Any) -> Iterator[tuple[str, str]]:
    if cell.value is not None:
        yield "value", f"{cell.value!r}"
    if cell.comment is not None:
        yield "comment", cell.comment.text
    if cell.hyperlink is not None:
        yield "link", f"{cell.hyperlink.target} {cell.hyperlink.location}"
    if cell.has_style:
        fill, font, alignment = cell.fill, cell.font, cell.alignment
        yield "number format", cell.number_format
        yield "fill", f"{fill.patternType} {_colour(fill.fgColor)} {_colour(fill.bgColor)}"
        yield "font", f"{font.name} {font.sz} {font.b} {font.i} {font.u} {_colour(font.color)}"
        yield (
            "alignment",
            f"{alignment.horizontal} {alignment.vertical} {alignment.wrap_text} {alignment.indent}",
        )


def _colour(colour: Any) -> str:
    return "" if colour is None else f"{colour.type}:{colour.value}"


_TAG = re.compile(r"<[^>]+>[^<]*")
_CELLS_APART = re.compile(r"<c [^>]*?/>|<c [^>]*>.*?</c>", re.DOTALL)
_READ_AS_CELLS = re.compile(r"xl/(sharedStrings|comments\d+|styles)\.xml")


def _parts(path: Path, clean: Clean) -> Iterator[tuple[str, str]]:
    """Widths, filters, conditional formats, charts, text boxes, names: the file's XML but for its cells."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith((".xml", ".rels", ".vml")):
                yield f"part {name}", sha256(archive.read(name)).hexdigest()
                continue
            text = clean(archive.read(name).decode("utf-8", "replace"))
            if name == "xl/styles.xml":
                text = "".join(re.findall(r"<dxfs.*</dxfs>", text, re.DOTALL))
            elif _READ_AS_CELLS.fullmatch(name):
                continue
            elif name.startswith("xl/worksheets/"):
                text = _CELLS_APART.sub("", text)
            yield f"part {name}", text


def _between(name: str, old: Content | None, new: Content | None) -> Iterator[Difference]:
    if old is None or new is None:
        yield Difference(name, *("missing" if each is None else "present" for each in (old, new)))
    elif name == "requests":
        yield from _requests_apart(_lines(old), _lines(new))
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for place in sorted(set(old) | set(new)):
            if old.get(place) != new.get(place):
                yield Difference(f"{name}: {place}".rstrip(": "), old.get(place), new.get(place))
    else:
        yield from _lines_apart(name, _lines(old), _lines(new))


def _lines(of: Content) -> list[str]:
    return [f"{place}: {value}" for place, value in of.items()] if isinstance(of, Mapping) else list(of)


def _lines_apart(name: str, old: list[str], new: list[str]) -> Iterator[Difference]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            for step, (was, now) in enumerate(zip_longest(old[i:i_end], new[j:j_end])):
                yield Difference(f"{name}, line {i + 1 + step}", was, now)


def _requests_apart(old: list[str], new: list[str]) -> Iterator[Difference]:
    """As multisets: requests that only one side made, those that resemble each other side by side."""
    were, are = Counter(old), Counter(new)
    lost, gained = sorted((were - are).elements()), sorted((are - were).elements())
    for was, now in zip_longest(lost, gained):
        yield Difference(f"requests ({len(old)} and {len(new)}), {_kind(was or now)}", was, now)


def _kind(request: str | None) -> str:
    """Which request it is, told by the beginning of its prompt."""
    found = re.search(r'content\\*": ?\\*"(.{0,50})', request or "")
    return f"prompt {found[1]!r}" if found else "another body"


def _excerpts(old: str | None, new: str | None) -> tuple[str, str]:
    """Both values from shortly before the place where they part."""
    if old is None or new is None:
        return tuple("(nothing)" if each is None else _bounded(each, 0) for each in (old, new))  # type: ignore[return-value]
    start = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    start = min(len(old), len(new)) if start is None else start
    start = 0 if max(len(old), len(new)) <= _BOUND else max(0, start - _BOUND // 3)
    return _bounded(old, start), _bounded(new, start)


def _bounded(text: str, start: int) -> str:
    part = text[start : start + _BOUND].replace("\n", "\\n")
    return ("…" if start else "") + part + ("…" if len(text) > start + _BOUND else "")


def accepted(difference: Difference, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Whether a pattern is found in its place, or in what `old -> new` says in full."""
    text = f"{difference.place}: {difference.old} -> {difference.new}"
    return any(pattern.search(text) for pattern in patterns)

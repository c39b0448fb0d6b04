"""Records with nested fields, from .json and .jsonl, as rows: a column for each path such as `inputs.question`.

A list is one cell, whatever it holds; the fields of an object are columns of their own.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.errors import MOST_LISTED, InputError, TableError
from rag_eval.records import USER, Turn
from rag_eval.tables.cells import BadCell, Cell, JsonText, as_cell, as_message
from rag_eval.tables.chats import last_message, plain_text, printed_messages, said_in, turns_in
from rag_eval.tables.chunking import LISTS, literal, split_cell
from rag_eval.tables.input_files import MAX_CELL, MAX_COLUMNS
from rag_eval.tables.names import BOT, QUERY, REFERENCE, RESPONSE, after_prefix, meaning_of
from rag_eval.tables.parquet import Tree
from rag_eval.tables.remarks import HALF_PAIR, NOT_FINITE
from rag_eval.tables.speakers import labels_in
from rag_eval.texts.strict_json import distinct_keys

_LISTS_OF_RECORDS = (
    "results",
    "data",
    "rows",
    "examples",
    "samples",
    "test_cases",
    "testCases",
    "goldens",
    "records",
    "items",
    "runs",
)
_DEEPEST = 12
"""Objects within objects whose fields are columns; what is deeper stays one cell."""
_LONGEST_LINE = 64 * MAX_CELL


class _RecordFile(NamedTuple):
    """An open file of records."""

    paths: tuple[str, ...]
    """Every field that some record has, in the order in which they are met."""
    rows: Iterator[tuple[int, dict[str, Any]]]
    """The number of each record, a line in .jsonl and a position in .json, and its values by path."""
    layout: str
    odd: Mapping[tuple[str, str], Sequence[int]]
    """The numbers of records with a value that is not read as it is, by its path and the kind of remark."""
    mixed: Mapping[str, Sequence[int]]
    """The numbers of the first records with a value where others have an object, by its path."""
    warnings: tuple[str, ...] = ()


@contextmanager
def open_records(path: Path) -> Iterator[_RecordFile]:
    """Raises TableError for what is not JSON, or holds no records."""
    if path.suffix.lower() == ".json":
        found = _records_of_document(path)
        if found is not None:
            numbered = list(enumerate(found.records, 1))
            layout = f"JSON, records in {found.where}" if found.where else "JSON"
            known = _fields(path, numbered)
            yield _RecordFile(
                known.columns(), _flat(numbered), layout, known.odd, known.mixed(), found.warnings
            )
            return
    with _opened(path) as lines:
        known = _fields(path, _parsed(path, lines))
    with _opened(path) as lines:
        flat = _flat(_parsed(path, lines))
        yield _RecordFile(known.columns(), flat, "JSON Lines", known.odd, known.mixed())


class _RecordList(NamedTuple):
    """The records of a document."""

    records: Sequence[Any]
    where: str
    """The path of their list; '' for the document itself."""
    warnings: tuple[str, ...] = ()


def _records_of_document(path: Path) -> _RecordList | None:
    """None if the file has a document in each line instead."""
    with _opened(path) as file:
        text = file.read()
    try:
        document = _parse_record(text)
    except (ValueError, RecursionError) as error:
        if "\n" in text.strip() and _is_record(text.lstrip().partition("\n")[0]):
            return None
        raise TableError(
            f"{path.name}: is not JSON ({_reason(error)}); check the file, or write one record per line as .jsonl"
        ) from None
    return _list_of_records(path, document)


def _reason(error: ValueError | RecursionError, *, in_line: bool = False) -> str:
    """Why a text is not JSON, and where; of a single line, the column only."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, JSONDecodeError):
        return f"{error.msg}, {'' if in_line else f'line {error.lineno}, '}column {error.colno}"
    return str(error)


def _is_record(line: str) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except (ValueError, RecursionError):
        return False


def _list_of_records(path: Path, document: Any) -> _RecordList:
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    if str(fields.get("format", "")).startswith("rag-eval-run/"):
        raise TableError(
            f"{path.name}: is a run that --json wrote; to make its report again, add --report-only, and otherwise name "
            "the file that was judged"
        )
    usual = _usual_list(document, "")
    if usual is not None and (usual.records is document or _roles_of(usual.records)):
        return usual
    if found := _deeper_list(fields) or usual:
        return found
    texts = [name for name, value in fields.items() if isinstance(value, str)]
    if {QUERY, RESPONSE} <= _roles_of([dict.fromkeys(texts)]):
        return _RecordList([document], "")
    lists = dict(_record_lists(fields))
    names = ", ".join(f"'{name}'" for name in islice(lists or fields, 10))
    join = ", or join them with the name of the bot in each record" if len(lists) > 1 else ""
    raise TableError(
        f"{path.name}: expected a list of records, or an object with one list of records such as "
        f"{', '.join(_LISTS_OF_RECORDS[:5])} (found: {names or 'none'}); keep one list{join}"
    )


def _usual_list(document: Any, where: str) -> _RecordList | None:
    """The document, its only list of records, or the one with a usual name."""
    if isinstance(document, list):
        return _RecordList(document, where)
    if (records := _records_of_columns(document)) is not None:
        return _RecordList(records, where)
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    lists = {name: value for name, value in fields.items() if _holds_records(value)}
    named = [name for name in _LISTS_OF_RECORDS if name in lists or isinstance(fields.get(name), dict)]
    chosen = named[:1] if lists.keys() & named[:1] else list(lists)
    if len(chosen) == 1:
        return _RecordList(lists[chosen[0]], f"{where}.{chosen[0]}".lstrip("."))
    if named and not lists:  # promptfoo has its list one level further down
        return _usual_list(fields[named[0]], f"{where}.{named[0]}".lstrip("."))
    return None


def _deeper_list(document: Mapping[str, Any]) -> _RecordList | None:
    """Of the lists of records at any depth the one with queries and responses, of several such ones the longest.

    None for two as long ones, and for several without queries.
    """
    lists = dict(_record_lists(document))
    roles = {where: _roles_of(records) for where, records in lists.items()}
    usable = [where for where in lists if {QUERY, RESPONSE} <= roles[where]]
    usable = usable or [where for where in lists if QUERY in roles[where]] or list(lists)
    longest = max((len(lists[where]) for where in usable), default=0)
    chosen = [where for where in usable if len(lists[where]) == longest]
    if len(chosen) != 1 or (len(lists) > 1 and QUERY not in roles[chosen[0]]):
        return None
    (where,) = chosen
    others = ", ".join(f"'{name}' ({len(lists[name]):,})" for name in islice(usable, 10) if name != where)
    note = (
        f"The {longest:,} records in '{where}' were read, the longest list; not read: {others}."
        if others
        else ""
    )
    return _RecordList(lists[where], where, (note,) if note else ())


def _record_lists(
    document: Mapping[str, Any], before: str = "", depth: int = 1
) -> Iterator[tuple[str, list[Any]]]:
    """The lists of records in objects within objects, by their paths."""
    for name, value in document.items():
        if _holds_records(value):
            yield f"{before}{name}", value
        elif isinstance(value, dict) and depth < _DEEPEST:
            yield from _record_lists(value, f"{before}{name}.", depth + 1)


def _roles_of(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """What the fields of the first records mean."""
    names = {name for record in records[:20] for name in flattened(record)}
    meanings = {meaning.role for name in names if (meaning := meaning_of(name, has_prefixed=False))}
    return meanings | {RESPONSE for name in names if after_prefix(name, "Bot_")}


def _records_of_columns(document: Any) -> list[dict[str, Any]] | None:
    """The records of a table that is written column by column, or as pandas' other forms have it; None without one."""
    if not isinstance(document, dict) or not document:
        return None
    names, rows = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(rows, list):  # orient="split"
        is_table = all(isinstance(row, list) and len(row) == len(names) for row in rows)
        return [dict(zip(map(str, names), row, strict=True)) for row in rows] if rows and is_table else None
    values = list(document.values())
    if len(set(map(type, values))) > 1 or not isinstance(values[0], list | dict) or not values[0]:
        return None
    if isinstance(values[0], dict):
        return _records_of_objects(document)
    if len(values) < 2 or len(set(map(len, values))) > 1 or any(map(_holds_records, values)):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]


def _records_of_objects(document: dict[str, dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The same, of objects whose members are all called alike: the columns, or the records."""
    if len({tuple(each) for each in document.values()}) > 1:
        return None
    records = list(document.values())
    turned = [{name: value[key] for name, value in document.items()} for key in records[0]]
    if len(document) > 1 and (all(map(str.isdecimal, records[0])) or _queries_of(turned)):
        return turned  # a column to values by their index
    # Of records with the same query, the names may be those of bots.
    is_by_index = all(map(str.isdecimal, document)) or len({*_queries_of(records)}) == len(records)
    return records if is_by_index else None


def _queries_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The queries of records; none if some record has no text as its query."""
    names = (
        name
        for name in records[0]
        if (meaning := meaning_of(name, has_prefixed=False)) and meaning.role == QUERY
    )
    queries = [record[name] for name in islice(names, 1) for record in records]
    return queries if all(isinstance(query, str) for query in queries) else []


def _holds_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


class _NotFinite:
    """NaN or an infinity: nothing, but told apart from null."""

    def __str__(self) -> str:
        return ""


def _whole(digits: str) -> int | str:
    """A whole number; its digits if there are more than Python reads."""
    return int(digits) if len(digits) < _MOST_DIGITS else digits


_MOST_DIGITS = 4_000

parse_json = json.JSONDecoder(
    parse_float=str, parse_int=_whole, parse_constant=lambda _: None, object_pairs_hook=distinct_keys
).decode
_parse_record = json.JSONDecoder(
    parse_float=str, parse_int=_whole, parse_constant=lambda _: _NotFinite(), object_pairs_hook=distinct_keys
).decode


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        is_utf16 = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    try:
        with path.open(encoding="utf-16" if is_utf16 else "utf-8-sig") as file:
            yield file
    except UnicodeDecodeError:
        raise TableError(f"{path.name}: is not UTF-8; save it as UTF-8") from None


def _parsed(path: Path, lines: Any) -> Iterator[tuple[int, Any]]:
    number = 0
    while line := lines.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise TableError(
                f"{path.name}, line {number}: is longer than {_LONGEST_LINE:,} characters; write one record per line"
            )
        if line.isspace():
            continue
        try:
            record = _parse_record(line)
        except (ValueError, RecursionError) as error:
            is_list = number == 1 and line.startswith("[")
            remedy = "write one record per line" + (", or rename the file to .json" if is_list else "")
            raise TableError(
                f"{path.name}, line {number}: is not JSON ({_reason(error, in_line=True)}); {remedy}"
            ) from None
        if number == 1 and _holds_records(record) and not lines.readline(1):
            raise TableError(
                f"{path.name}: is a list of records in one line; write one record per line, or rename the file to .json"
            )
        yield number, record


class _Fields:
    """Every field that some record has."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.odd: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._filled: dict[str, list[int]] = defaultdict(list)
        """The first records with a value that is not empty, by its path."""
        self._dotted: set[str] = set()
        """Names with a point that are no paths."""

    def add(self, number: int, record: Mapping[str, Any]) -> None:
        values = flattened(record)
        self.paths.update(dict.fromkeys(values))
        self._dotted.update(name for name in record if "." in name)
        for name, value in values.items():
            if (kind := _oddity(value)) and len(self.odd[name, kind]) <= MOST_LISTED:
                self.odd[name, kind].append(number)
            if len(self._filled[name]) <= MOST_LISTED and not _is_empty(value):
                self._filled[name].append(number)

    def columns(self) -> tuple[str, ...]:
        """Those that hold more than nothing in place of an object: `"output": null` is a record without one."""
        objects = self._objects()
        return tuple(name for name in self.paths if self._filled[name] or name not in objects)

    def mixed(self) -> dict[str, list[int]]:
        """The first records with a value where others have an object, by its path."""
        objects = self._objects()
        return {name: its for name, its in self._filled.items() if its and name in objects}

    def _objects(self) -> set[str]:
        """The fields that are objects in some records."""
        found: set[str] = set()
        for name in self.paths.keys() - self._dotted:
            while (name := name.rpartition(".")[0]) and name not in found:
                found.add(name)
        return found


def _fields(path: Path, records: Iterable[tuple[int, Any]]) -> _Fields:
    found = _Fields()
    for number, record in records:
        if not isinstance(record, dict):
            raise TableError(
                f'{path.name}, record {number}: is not an object with fields; expected {{"query": …, "answer": …}}'
            )
        found.add(number, record)
        if len(found.paths) > MAX_COLUMNS:
            raise TableError(
                f"{path.name}, record {number}: the records have more than {MAX_COLUMNS:,} fields together; remove "
                "those that are not needed"
            )
    return found


def _is_empty(value: object) -> bool:
    """Whether a value is null, NaN, or a text, list or object without anything in it."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or value == [] or isinstance(value, _NotFinite)


def _oddity(value: object) -> str:
    """The kind of remark on a value that is not read as it is; '' for others."""
    if isinstance(value, _NotFinite):
        return NOT_FINITE
    if not isinstance(value, str) or value.isascii():
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return HALF_PAIR
    return ""


def _flat(records: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((number, flattened(record)) for number, record in records)


def flattened(record: Mapping[str, Any], before: str = "", depth: int = 1) -> dict[str, Any]:
    """The values of a record by path. An object without fields, and one that is too deep, is a value itself."""
    values: dict[str, Any] = {}
    for name, value in record.items():
        path = f"{before}{name}"
        if isinstance(value, dict) and value and depth < _DEEPEST and not _is_text(value):
            values |= flattened(value, f"{path}.", depth + 1)
        else:
            values[path] = value if value != {} else None
    return values


def _is_text(names: Collection[str]) -> bool:
    """Whether an object with these fields is one text and what is known about it: a message, a document."""
    return _OF_A_TEXT.issuperset(names) and not _TEXTS_OF_ONE.isdisjoint(names)


def leaf_paths(tree: Tree, depth: int = 1) -> Iterator[tuple[str, ...]]:
    """The paths of the values in a column: of a structure those of its fields, unless it is a text."""
    name, fields = tree
    if not fields or depth >= _DEEPEST or _is_text([each for each, _ in fields]):
        yield (name,)
        return
    for each in fields:
        yield from ((name, *rest) for rest in leaf_paths(each, depth + 1))


_TEXTS_OF_ONE = frozenset(("content", "text", "value", "page_content", "pageContent"))

_OF_A_TEXT = frozenset(
    (
        "content",
        "text",
        "value",
        "page_content",
        "pageContent",
        "role",
        "type",
        "speaker",
        "mime_type",
        "id",
        "doc_id",
        "score",
        "metadata",
    )
)


# --- cells that hold a structure --------------------------------------------------------------------------------


def role_text(role: str, cell: Cell) -> tuple[Cell, bool]:
    """The text of a query, a response or a ground truth, and whether it is the first of several.

    A list of messages is the last one of the user, or of the bot; of several ground truths the first counts.
    """
    if isinstance(cell, BadCell):
        return cell, False
    if not isinstance(cell, JsonText):
        return _first_alternative(cell) if cell.lstrip().startswith("[") else (cell, False)
    value = json.loads(cell)
    if not value:
        return "", False
    if (message := last_message(value, of_user=role == QUERY)) is not None:
        return as_message(as_cell(message), message), False
    if role == REFERENCE and isinstance(value, list):
        texts = [text for item in value if (text := plain_text(item)) and text.strip()]
        return (as_cell(texts[0]), len(texts) > 1) if texts else ("", False)
    if role == RESPONSE and len(bots := _bots_in(value)) > 1:
        named = ", ".join(f"'{bot[:40]}'" for bot in bots[:3])
        return BadCell(
            f"contains the responses of several bots ({named}{', …' if len(bots) > 3 else ''}); write a record for "
            "each of them, with the query and the name of the bot"
        ), False
    text = plain_text(value)
    if text is None:
        return BadCell(
            f"contains a structure without a text for the {role}; name the field that has it with --map"
        ), False
    return as_cell(text), False


def _bots_in(value: object) -> list[str]:
    """The names of bots in a list of objects."""
    objects = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    texts = [(name, text) for item in objects for name, text in item.items() if isinstance(text, str)]
    named = {
        name for name, _ in texts if (meaning := meaning_of(name, has_prefixed=False)) and meaning.role == BOT
    }
    return list(dict.fromkeys(text for name, text in texts if name in named))


def query_of_chat(cell: Cell) -> Cell:
    """The last message of the user in a chat that is written as a text; any other cell as it is."""
    if not isinstance(cell, str) or isinstance(cell, JsonText) or not cell.lstrip().startswith("["):
        return cell
    message = last_message(structure(cell, "[", "]"), of_user=True)
    return cell if message is None else as_message(as_cell(message), message)


def structure(cell: Cell, begin: str, end: str) -> object:
    """What JSON or Python wrote between the two marks; None for any other cell."""
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if not (text.startswith(begin) and text.endswith(end)):
        return None
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return literal(text)


def turns_of(text: str) -> tuple[Turn, ...]:
    """The turns in a cell with a conversation, in any of the forms of chats. Raises ValueError for any other text."""
    turns = turns_in(_conversation(text))
    if turns is None:
        labels = ", ".join(f"'{label[:40]}'" for label in labels_in(text)[:4])
        raise ValueError(f"begins lines with {labels}, but {_NO_TURNS}" if labels else _NO_TURNS)
    return turns


def before_query(turns: tuple[Turn, ...], query: str) -> tuple[Turn, ...]:
    """Without the query and what follows it, if the user says nothing after it."""
    asked = max((place for place, turn in enumerate(turns) if turn.role == USER), default=-1)
    is_query = asked >= 0 and turns[asked].content.split() == query.split()
    return turns[:asked] if is_query else turns


def _conversation(text: str) -> object:
    if isinstance(text, JsonText):
        return json.loads(text)
    if not text.strip():
        return None
    for begin, end in ("[]", "{}"):
        if (value := structure(text, begin, end)) is not None:
            return value
    return printed_messages(text) or text


_NO_TURNS = (
    'contains no turns of a conversation; write them as JSON: [{"role": "user", "content": "…"}, {"role": "assistant", '
    '"content": "…"}], or as text with lines that begin with "User:" and "Assistant:"'
)


def _first_alternative(text: str) -> tuple[Cell, bool]:
    try:
        found = split_cell(text)
    except InputError:
        return text, False
    if found.kind not in LISTS:
        return text, False
    return (found.chunks[0], len(found.chunks) > 1) if found.chunks else ("", False)


def is_list_of_texts(text: str) -> bool:
    """Whether the cell is a list of several texts, as JSON or Python writes it, and no chat."""
    if not text.startswith("["):
        return False
    value = json.loads(text) if isinstance(text, JsonText) else []
    if said_in(value):
        return False
    try:
        found = split_cell(text)
    except InputError:
        return sum(bool(plain_text(item)) for item in value) > 1
    return found.kind in LISTS and len(found.chunks) > 1

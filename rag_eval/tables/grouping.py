"""Rows that speak of one query to one row each: a row per bot (long form), or a row per passage.

The rows of a query may be anywhere in the file, so all of them are kept on disk first.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from rag_eval.errors import TableError
from rag_eval.records import USER, Turn
from rag_eval.tables.cells import (
    ABSENT,
    BadCell,
    Cell,
    ChatMessage,
    JsonText,
    Measured,
    TimeOfDay,
    cell_at,
    is_blank,
)
from rag_eval.tables.columns import LONG, ONE, PASSAGES, Columns
from rag_eval.tables.document_ids import parse_ids
from rag_eval.tables.input_files import MAX_BOT_NAME, MAX_BOTS
from rag_eval.tables.names import QUERY, folded
from rag_eval.tables.nested import before_query, query_of_chat, role_text, turns_of
from rag_eval.tables.number_formats import as_seen
from rag_eval.tables.rows import Lines

Rows = Iterator[tuple[int, Sequence[Cell]]]


class Unit(NamedTuple):
    """What one row of a wide table would hold."""

    number: int
    """Of the first row in the file."""
    cells: Sequence[Cell]
    numbers: Mapping[int, int]
    """Rows in the file that cells come from, where that is another one."""


@dataclass(slots=True)
class _Grouped:
    """A table in long form or with a row per passage, as a wide one."""

    columns: Columns
    """Of `units`, not of the file."""
    shape: str
    units: Iterator[Unit]
    has_passages: bool
    """Each context is one passage of a row, or several of several rows."""


class _LongLine(NamedTuple):
    number: int
    cells: Mapping[int, Cell]


def group(
    place: str, rows: Rows, columns: Columns, lines: Lines, report: Callable[[int, int, str], None]
) -> _Grouped:
    """`report` takes what is wrong with a cell: its row, its column and the problem."""
    grouping = _Grouping(place, columns, lines, report)
    for number, cells in rows:
        grouping.take(number, cells)
    return grouping.result()


class _Grouping:
    """Takes the rows of a file, and gives them back query by query."""

    def __init__(
        self, place: str, columns: Columns, lines: Lines, report: Callable[[int, int, str], None]
    ) -> None:
        self._place = place
        self._columns = columns
        self._lines = lines
        self._report = report
        self._used = sorted({*columns.used, *columns.ids})
        self._is_long = columns.bot is not None
        self._answer = next(iter(columns.responses.values()))
        self._context = next(iter(columns.contexts.values()), None)
        self._retrieved = next(iter(columns.retrieved.values()), None)
        self._history = next(iter(columns.histories.values()), None)
        self._conversation = next(iter(columns.conversations.values()), None)
        self._talks = _Talks()
        self._talk_of: list[int | None] = []
        """Of each row: the number of its bot's conversation."""
        self._is_talk = False
        """Whether a row continues a conversation, or has the id of one."""
        self._bots: dict[str, str] = {} if self._is_long else {"": next(iter(columns.responses))}
        self._has_blank = False
        """Whether a row of a bot has no query; then nobody knows which queries lack a response."""
        self._keys: list[bytes] = []
        """Of each row: its query and place, and the values of its columns of ids."""
        ids = (index for index in columns.ids if not (self._is_long and index == self._conversation))
        self._ids: dict[int, set[bytes]] = {index: set() for index in ids}
        self._repeats: set[int] = set()
        """Columns of ids with some value in several rows: the others tell rows apart, not queries."""

    def take(self, number: int, cells: Sequence[Cell]) -> None:
        values = [
            _asked(cell) if index == self._columns.query else cell
            for index in self._used
            for cell in [cell_at(cells, index)]
        ]
        self._lines.add([number, *map(_stored, values)])
        for index, seen in self._ids.items():
            digest = _digest(cell_at(cells, index))
            if digest in seen:
                self._repeats.add(index)
            seen.add(digest)
        query = _asked(cell_at(cells, self._columns.query))
        place = self._place_of(query)
        blank = [str(number)] if self._is_long and is_blank(query) else []
        self._has_blank = self._has_blank or bool(blank)
        parts = [_digest(query, *place, *blank)] + [_digest(cell_at(cells, index)) for index in self._ids]
        if not self._is_long and not self._columns.has_passages:
            others = (self._answer, self._columns.reference)
            parts.append(_digest(*(cell_at(cells, index) for index in others if index is not None)))
        self._keys.append(b"".join(parts))
        if self._columns.bot is not None:
            bot = cell_at(cells, self._columns.bot)
            self._add_bot(bot)
            name = "" if self._conversation is None else str(cell_at(cells, self._conversation)).strip()
            self._is_talk = self._is_talk or bool(name or place)
            asked = parts[0], len(place)
            self._talk_of.append(self._talks.add(_folded(bot), name, *asked) if name else None)

    def _place_of(self, query: Cell) -> list[str]:
        """What tells a query apart from the same one at another place of a conversation.

        Of several bots only what the user said before it: they may have answered differently.
        """
        earlier = query.earlier if isinstance(query, ChatMessage) else ()
        return [turn.content for turn in earlier if turn.role == USER or not self._is_long]

    def _add_bot(self, cell: Cell) -> None:
        if isinstance(cell, str) and cell:
            self._bots.setdefault(folded(cell), " ".join(cell.split()))

    def result(self) -> _Grouped:
        order = self._order()
        has_passages = self._context is not None and self._are_passages(order)
        if not self._is_long and not has_passages:
            order = [[number] for number in range(len(self._lines))]
        shape = LONG if self._is_long else PASSAGES if has_passages else ONE
        self._check_bots()
        layout = _Layout(self._columns, list(self._bots.values()))
        units = (
            self._unit(layout, [self._line(n) for n in numbers], has_passages, self._talk_of_rows(numbers))
            for numbers in order
        )
        return _Grouped(layout.columns, shape, units, has_passages)

    def _check_bots(self) -> None:
        if len(self._bots) > MAX_BOTS:
            raise TableError(
                f"{self._place}: has {len(self._bots):,} bots, more than the {MAX_BOTS} allowed; compare fewer"
            )
        if longest := max(
            (name for name in self._bots.values() if len(name) > MAX_BOT_NAME), key=len, default=""
        ):
            raise TableError(
                f"{self._place}: the name of bot '{longest[:40]}…' has {len(longest):,} characters, more than the "
                f"{MAX_BOT_NAME:,} allowed; shorten it"
            )

    def _order(self) -> list[list[int]]:
        """The rows of each query, in the order of their first ones."""
        size = _DIGEST
        kept = [0, *(place for place, index in enumerate(self._ids, 1) if index in self._repeats)]
        rest = size * (1 + len(self._ids))
        groups: dict[tuple[bytes, int | None], list[int]] = defaultdict(list)
        talks = self._talks.grouped()
        for number, key in enumerate(self._keys):
            short = b"".join(key[place * size : (place + 1) * size] for place in kept) + key[rest:]
            talk = self._talk_of[number] if self._is_long else None
            groups[short, None if talk is None else talks[talk]].append(number)
        self._keys.clear()
        return [part for numbers in groups.values() for part in self._by_history(numbers)]

    def _by_history(self, numbers: list[int]) -> list[list[int]]:
        """Rows of one query, apart where a bot has several of them that follow different messages of the user."""
        if self._history is None or not self._is_long or len(numbers) < 2:
            return [numbers]
        lines = [self._line(number) for number in numbers]
        if len(_by_bot(lines, self._columns.bot)) == len(lines):
            return [numbers]
        parts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, line in zip(numbers, lines, strict=True):
            query = str(line.cells[self._columns.query])
            said = before_query(_turns(line.cells[self._history]), query)
            parts[tuple(" ".join(turn.content.split()) for turn in said if turn.role == USER)].append(number)
        self._is_talk = self._is_talk or len(parts) > 1
        return list(parts.values())

    def _are_passages(self, order: list[list[int]]) -> bool:
        """Whether several rows of one response differ in their contexts, and none of these is a list."""
        is_found = False
        for numbers in order:
            if len(numbers) < 2:
                continue
            lines = [self._line(number) for number in numbers]
            for its in _by_bot(lines, self._columns.bot).values():
                contexts = [line.cells[self._context] for line in its]  # type: ignore[index] # looked at before
                if len(its) < 2:
                    continue
                if any(
                    isinstance(cell, JsonText) or str(cell).lstrip().startswith('["') for cell in contexts
                ):
                    return False
                if len({str(cell) for cell in contexts}) < len(contexts) and not self._columns.has_passages:
                    return False
                is_found = True
        return is_found

    def _line(self, number: int) -> _LongLine:
        row, *values = self._lines.at(number)
        return _LongLine(row, dict(zip(self._used, map(_restored, values), strict=True)))

    def _talk_of_rows(self, numbers: list[int]) -> int | None:
        return next((talk for n in numbers if self._is_long and (talk := self._talk_of[n]) is not None), None)

    def _unit(self, layout: "_Layout", lines: list[_LongLine], has_passages: bool, talk: int | None) -> Unit:
        """`talk` is the number of one of the conversations that the rows are from."""
        cells: list[Cell] = [""] * layout.width
        numbers: dict[int, int] = {}

        def put(place: int, line: _LongLine, cell: Cell) -> None:
            cells[place], numbers[place] = cell, line.number

        for index, place in layout.shared.items():
            line = self._agreed(index, lines)
            put(place, line, line.cells[index])
        found = _by_bot(lines, self._columns.bot)
        nameless = found.pop("", []) if self._is_long else []
        if nameless:
            self._report(nameless[0].number, self._bot_column, "is blank; name the bot of this response")
        for bot, name in zip(self._bots, layout.bots, strict=True):
            its = found.get(bot, [])
            for index, place in layout.own[name].items() if its else ():
                put(place, *self._of_bot(index, its, name, has_passages))
            if its and name in layout.queries:
                put(layout.queries[name], its[0], its[0].cells[self._columns.query])
            elif not its and self._is_talk:
                cells[layout.columns.responses[name]] = cells[layout.queries[name]] = ABSENT
                if self._conversation is not None and talk is not None:
                    cells[layout.own[name][self._conversation]] = self._talks.name(talk, bot)
            elif not its and not nameless and not self._has_blank:
                self._report(
                    lines[0].number,
                    self._bot_column,
                    f"bot '{name[:60]}' has no response to this query; add a row for it, with an empty response if "
                    "the bot gave none, or leave the query out with --where",
                )
        return Unit(lines[0].number, cells, {p: n for p, n in numbers.items() if n != lines[0].number})

    @property
    def _bot_column(self) -> int:
        return self._answer if self._columns.bot is None else self._columns.bot

    def _agreed(self, index: int, lines: list[_LongLine]) -> _LongLine:
        """The row whose cell counts for the query: the first that is not blank; all others must say the same."""
        told = [line for line in lines if line.cells[index]] or lines[:1]
        for line in told[1:]:
            if line.cells[index] != told[0].cells[index]:
                self._report(
                    line.number,
                    index,
                    f"differs from row {told[0].number}, which has the same query; make them equal, or tell the "
                    "queries apart with a column query_id",
                )
                break
        return told[0]

    def _of_bot(
        self, index: int, its: list[_LongLine], bot: str, has_passages: bool
    ) -> tuple[_LongLine, Cell]:
        """The cell of a bot and its row: what its rows agree on, or its passages one after the other."""
        if index in (self._context, self._retrieved) and has_passages:
            return self._joined(index, its)
        told = next((line for line in its if line.cells[index]), its[0])
        for line in its:
            cell = line.cells[index]
            is_second = line is not told and (not has_passages or bool(cell and cell != told.cells[index]))
            if index == self._answer and is_second:
                self._report(
                    line.number,
                    index,
                    f"is a second response of bot '{bot[:60]}' to the query of row {told.number}; keep one, or "
                    "tell the queries apart with a column query_id",
                )
                break
        return told, told.cells[index]

    def _joined(self, index: int, its: list[_LongLine]) -> tuple[_LongLine, Cell]:
        items: list[str] = []
        for line in its:
            cell = line.cells[index]
            if isinstance(cell, BadCell):
                return line, cell
            try:
                items += [as_seen(cell)] if index == self._context else parse_ids(cell)
            except ValueError as error:
                return line, BadCell(str(error))
        found = [item for item in items if item]
        return its[0], JsonText(json.dumps(found, ensure_ascii=False)) if found else ""


class _Talks:
    """The conversations of all bots, and which of them are the same one with several bots.

    Each is known by its bot, its id and what it was asked: digests of the queries, each with all that the user said
    before it.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._asked: dict[bytes, tuple[int, dict[int, None]]] = {}
        """Of each query: how much the user said before it, and the conversations with it."""
        self._keys: list[tuple[str, str]] = []
        self._groups: list[dict[str, int]] = []
        """Of each conversation: those that are the same one, by bot."""

    def add(self, bot: str, name: str, asked: bytes, depth: int) -> int:
        """One query of a conversation; returns the number of the conversation."""
        number = self._numbers.setdefault((bot, name), len(self._numbers))
        self._asked.setdefault(asked, (depth, {}))[1][number] = None
        return number

    def grouped(self) -> list[int]:
        """For each conversation the number of the first one that is the same.

        Those with one id are the same if they share a query. Further ones are matched by the queries that they share:
        first by the longest ones, then by rare ones, then in the order of the file.
        """
        keys = self._keys = [*self._numbers]
        self._groups = [{bot: number} for number, (bot, _) in enumerate(keys)]
        for _, talks in self._asked.values():
            by_name: dict[str, list[int]] = defaultdict(list)
            for talk in talks:
                by_name[keys[talk][1]].append(talk)
            for its in by_name.values():
                self._match(its)
        for _, talks in sorted(self._asked.values(), key=lambda each: (-each[0], len(each[1]))):
            self._match(talks)
        return [min(group.values()) for group in self._groups]

    def _match(self, talks: Iterable[int]) -> None:
        """The first of each bot are the same one, and so are the second ones."""
        places: dict[str, int] = defaultdict(int)
        slots: dict[int, dict[str, int]] = {}
        for group in {id(self._groups[talk]): self._groups[talk] for talk in talks}.values():
            place = max(places[bot] for bot in group)
            slot = slots.setdefault(place, group)
            places.update(dict.fromkeys(group, place + 1))
            if slot is not group:
                slot.update(group)
                for talk in group.values():
                    self._groups[talk] = slot

    def name(self, talk: int, bot: str) -> str:
        """The id of the bot's conversation that is the same as another one; that one's id if the bot has none."""
        group = self._groups[talk]
        return self._keys[group.get(bot, min(group.values()))][1]


class _Layout:
    """Where the cells of a wide row are, and the columns that it would have."""

    def __init__(self, columns: Columns, bots: Sequence[str]) -> None:
        self.bots = bots
        common = {columns.query, *columns.kept.values()}
        common |= {index for index in (columns.reference, columns.gold) if index is not None}
        owned = {*columns.responses.values(), *columns.contexts.values(), *columns.retrieved.values()}
        owned |= {*columns.histories.values(), *columns.conversations.values()}
        labels = {metric: next(iter(its.values())) for metric, its in columns.human.items() if its}
        spent = {role: next(iter(its.values())) for role, its in columns.spent.items()}
        owned |= {*labels.values(), *spent.values()}
        self.shared = {index: place for place, index in enumerate(sorted(common - owned))}
        width = len(self.shared)
        self.own: dict[str, dict[int, int]] = {}
        for bot in bots:
            self.own[bot] = {index: width + place for place, index in enumerate(sorted(owned))}
            width += len(owned)
        self.queries = (
            {bot: width + place for place, bot in enumerate(bots)} if columns.bot is not None else {}
        )
        """Where the query is as each bot got it, with the turns before it."""
        self.width = width + len(self.queries)
        self.columns = self._columns(columns, labels, spent)

    def _columns(self, columns: Columns, labels: Mapping[str, int], spent: Mapping[str, int]) -> Columns:
        def by_bot(indexes: Mapping[str, int]) -> dict[str, int]:
            index = next(iter(indexes.values()), None)
            return {} if index is None else {bot: self.own[bot][index] for bot in self.bots}

        origins = {place: index for index, place in self.shared.items()}
        for places in self.own.values():
            origins |= {place: index for index, place in places.items()}
        return replace(
            columns,
            query=self.shared[columns.query],
            reference=None if columns.reference is None else self.shared[columns.reference],
            gold=None if columns.gold is None else self.shared[columns.gold],
            conversations=by_bot(columns.conversations),
            histories=by_bot(columns.histories),
            queries=self.queries,
            responses=by_bot(columns.responses),
            contexts=by_bot(columns.contexts),
            retrieved=by_bot(columns.retrieved),
            human={
                metric: {bot: self.own[bot][index] for bot in self.bots} for metric, index in labels.items()
            },
            spent={role: {bot: self.own[bot][index] for bot in self.bots} for role, index in spent.items()},
            kept={name: self._place(index) for name, index in columns.kept.items()},
            used={place: columns.used[index] for place, index in origins.items() if index in columns.used},
            content=tuple(place for place, index in origins.items() if index in columns.content),
        )

    def _place(self, index: int) -> int:
        """Of a kept column; one with a use of its own is the first bot's."""
        return self.shared.get(index, next((its[index] for its in self.own.values() if index in its), 0))


def _by_bot(lines: Sequence[_LongLine], bot: int | None) -> dict[str, list[_LongLine]]:
    found: dict[str, list[_LongLine]] = defaultdict(list)
    for line in lines:
        cell = "" if bot is None else line.cells[bot]
        found[_folded(cell)].append(line)
    return dict(found)


def _folded(bot: Cell) -> str:
    return folded(bot) if isinstance(bot, str) else ""


def _turns(cell: Cell) -> tuple[Turn, ...]:
    """The turns in a cell; none if it cannot be read, which is for its reader to say."""
    try:
        return turns_of(cell) if isinstance(cell, str) else ()
    except ValueError:
        return ()


_DIGEST = 12


def _digest(*cells: Cell) -> bytes:
    whole = blake2b(digest_size=_DIGEST)
    for cell in cells:
        text = " ".join(cell.split()) if isinstance(cell, str) else f"\0{cell.problem}"
        whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return whole.digest()


def _asked(cell: Cell) -> Cell:
    """The query in a cell, with the turns before it if it is a chat."""
    return role_text(QUERY, cell)[0] if isinstance(cell, JsonText) else query_of_chat(cell)


def _stored(cell: Cell) -> Any:
    if isinstance(cell, BadCell):
        return [0, cell.problem]
    if isinstance(cell, JsonText):
        return [1, str(cell)]
    if isinstance(cell, ChatMessage):
        turns = [[turn.role, turn.content] for turn in cell.earlier]
        return [2, str(cell), turns, cell.unused, cell.unanswered]
    if isinstance(cell, Measured):
        return [3, str(cell), cell.number, cell.unit]
    if isinstance(cell, TimeOfDay):
        return [4, str(cell)]
    return cell


def _restored(value: Any) -> Cell:
    if isinstance(value, str):
        return value
    kind, text, *more = value
    if kind == 3:
        return Measured(text, *more)
    if kind == 4:
        return TimeOfDay(text)
    if more:
        earlier, *left_out = more
        return ChatMessage(text, tuple(Turn(*turn) for turn in earlier), *left_out)
    return JsonText(text) if kind else BadCell(text)

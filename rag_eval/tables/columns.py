"""What the columns of a table are, and what somebody says that they are, with --map or in [columns]."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from rag_eval.errors import InputError
from rag_eval.tables.cells import UNSEEN_SPACES, Cell
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    CONVERSATION,
    COST,
    GOLD,
    HISTORY,
    ID,
    LATENCY,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    context_with_number,
    folded,
    nearest,
    squeezed,
)

WIDE, ONE, LONG, PASSAGES, MESSAGES = (
    "one row per query, one column per bot",
    "one row per query, one bot",
    "one row per query and bot",
    "one row per passage",
    "one row per message",
)
"""Shapes of a table."""

OF_NO_BOT = " of a bot without a column"
_JUDGED = (QUERY, REFERENCE, RESPONSE, CONTEXT, HISTORY)
ROLES: Mapping[str, str] = {
    "query": QUERY,
    "reference": REFERENCE,
    "context": CONTEXT,
    "passage": CONTEXT,
    "history": HISTORY,
    "bot": RESPONSE,
    "bot_name": BOT,
    "id": ID,
    "conversation": CONVERSATION,
    "gold_docs": GOLD,
    "retrieved_docs": RETRIEVED,
    "latency": LATENCY,
    "cost": COST,
    "ignore": UNUSED,
}
"""What --map and [columns] call a role."""
WORDS = {role: word for word, role in reversed([*ROLES.items()])}


class Named(NamedTuple):
    """What somebody says that a column is."""

    column: str
    """Its header; `*` stands for anything in it."""
    role: str
    """A key of ROLES."""
    origin: str
    """The option or the key of the configuration, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a reader of a header is asked for."""

    prefix: str = "Bot_"
    """Of the columns with responses."""
    keep: Collection[str] = ()
    """Further columns whose texts are wanted."""
    criteria: Collection[str] = ()
    """What human labels may speak of beside metrics."""
    named: Sequence[Named] = ()
    bot_name: str = ""
    """Of the bot in a table with one column of responses."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of latency and cost, by role, where somebody gave them."""
    decimals: Mapping[str, str] = field(default_factory=dict)
    """Decimal separators of columns with latency and cost, by their squeezed names, where something else tells them."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Why columns are known not to be the latency or cost that their names say, by their position."""

    def gives(self, role: str, header: str) -> bool:
        """Whether somebody gave the column this role, a word of --map."""
        return any(each.role == role and matches(header, each.column) for each in self.named)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What a column of the sheet is used as."""

    letter: str
    header: str
    role: str
    """One of query, reference, response, context, earlier turns, gold documents, retrieved documents, human label,
    latency, cost, kept, name of the bot, id of the query and id of the conversation, or 'not used'; '… of a bot without
    a column' is left out of everything as well."""
    bot: str | None = None
    """Whose column it is; None for one that the bots share."""
    metric: str = ""
    """Metric or rubric criterion of a human label."""
    why: str = ""
    """Why it is not used, where that is not plain."""
    unit: str = ""
    """Of its numbers; empty if it has none, or names none."""

    @property
    def is_used(self) -> bool:
        return self.role != UNUSED and not self.role.endswith(OF_NO_BOT)

    @property
    def is_judged(self) -> bool:
        """Whether its texts are shown to a judge."""
        return self.role in _JUDGED

    @property
    def described(self) -> str:
        """The column and all that is known of its use."""
        about = f" for {self.metric}" if self.metric else ""
        owner = f" of {self.bot}" if self.bot is not None else ""
        unit = f" in {self.unit}" if self.unit else ""
        why = f" ({self.why})" if self.why and not self.is_used else ""
        return f"{self} -> {self.role}{about}{owner}{unit}{why}"

    def __str__(self) -> str:
        """How messages call the column: header on one line, and letter."""
        header = " ".join(self.header.split())
        return f"'{header if len(header) <= 60 else header[:59] + '…'}' ({self.letter})"


@dataclass(frozen=True, slots=True)
class Columns:
    """The header understood. Columns are counted from 0."""

    uses: Mapping[int, ColumnUse]
    """Of every column with a header, by its position in the file."""
    used: Mapping[int, ColumnUse]
    """The columns that are used, by the position of their cells in a row."""
    query: int
    reference: int | None
    gold: int | None
    responses: Mapping[str, int]
    """By bot, from left to right."""
    contexts: Mapping[str, int]
    """By bot: its own context column, else the shared one; without either it is absent."""
    retrieved: Mapping[str, int]
    """Retrieved documents, by bot in the same way."""
    histories: Mapping[str, int]
    """Earlier turns, by bot in the same way."""
    conversations: Mapping[str, int]
    """Ids of the conversation, by bot in the same way."""
    human: Mapping[str, Mapping[str, int]]
    """Human labels by metric, then by bot in the same way."""
    spent: Mapping[str, Mapping[str, int]]
    """Latency and cost by role, then by bot in the same way."""
    guessed: Collection[str]
    """Letters of those columns of latency and cost that only their names give a role."""
    has_spare: bool
    """Whether another column may take the place of one of these."""
    kept: Mapping[str, int]
    """By the names that were asked for."""
    warnings: tuple[str, ...]
    content: tuple[int, ...]
    """The used columns that make a row: not human labels, latency, cost and kept texts."""
    shape: str
    bot: int | None
    """The column that names the bot of each row."""
    ids: tuple[int, ...]
    """Columns that tell queries apart."""
    has_passages: bool
    """Whether the name of the context says that it is one passage."""
    parts: Sequence[Sequence[int]]
    """The columns that are one context together, whose cells stand in the first of them."""
    queries: Mapping[str, int] = field(default_factory=dict)
    """By bot, where rows of several bots are joined: the cell with the query as it came in the bot's own row."""
    joined_by_bar: bool = False
    """Whether contexts are texts with a single `|` between the chunks."""

    @property
    def names(self) -> dict[int, str]:
        """How messages call the columns that are used."""
        return {index: str(use) for index, use in self.used.items()}

    @property
    def documents(self) -> set[int]:
        """The columns that hold document ids."""
        return {*self.retrieved.values(), *([] if self.gold is None else [self.gold])}

    def is_blank(self, cells: Sequence[Cell]) -> bool:
        """Whether the row holds nothing that could be judged or counted."""
        width = len(cells)
        return not any(index < width and cells[index] != "" for index in self.content)


class Problem(NamedTuple):
    """Something that is wrong with a header."""

    sentence: str
    roles: Sequence[str] = ()
    """What --map would take to solve it; () where that is for a person to say."""


Claim = tuple[str, str | None, str]
"""What a column wants to be, alone: a role, of a bot, for a metric."""


def matches(header: str, pattern: str) -> bool:
    """Whether a name that somebody gave means the column."""
    if "*" in pattern:
        return fnmatchcase(folded(header), folded(pattern).replace("[", "[[]"))
    return squeezed(header) == squeezed(pattern)


def map_entry(use: ColumnUse, word: str) -> str:
    """What --map takes to give a column a role. On one line: white space in headers is levelled."""
    return f"{' '.join(_UNSEEN.sub(' ', use.header).split())}={word}"


_UNSEEN = re.compile(f"[{UNSEEN_SPACES}]")


def map_option(use: ColumnUse, word: str) -> str:
    """The option that gives a column a role, as a shell takes it."""
    entry = map_entry(use, word)
    quoted = entry.replace("'", "'\\''")
    return f"--map {entry}" if re.fullmatch(r"[\w.-]+=\w+", entry) else f"--map '{quoted}'"


def unused_amounts(use: ColumnUse) -> str:
    """The warning about a column that has no latency and no cost, although its name says so."""
    return (
        f"Column {use} looks like a latency or a cost and was not used: {use.why}. To silence this, add "
        f"{map_option(use, 'ignore')}."
    )


USE_ALL = "to use several columns as one context, add --map COLUMN=context for each of them"


def parts_of_context(uses: Mapping[int, ColumnUse]) -> list[list[tuple[int, int]]]:
    """Number and position of the columns without a use that are called like a context with numbers behind it.

    Those of each name together, in its order.
    """
    found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, use in uses.items():
        if not use.is_used and (name := context_with_number(use.header)):
            found[name[0]].append((name[1], index))
    return [sorted(its) for its in found.values() if len(its) > 1]


def listed(uses: Collection[ColumnUse], separator: str = ", ") -> str:
    more = len(uses) - MOST_NAMED
    names = [str(use) for use in islice(uses, MOST_NAMED)]
    return separator.join(names) + (f", and {more:,} more" if more > 0 else "")


MOST_NAMED = 40
"""Columns in one message."""


_OF_EACH_BOT = ("context", "history", "retrieved_docs", "latency", "cost")
_SEVERAL = {"bot": "bots", **{role: role for role in _OF_EACH_BOT}, "ignore": "ignore"}
"""Roles that several columns may have, with the key of [columns] for them."""


def parse_map(entries: Sequence[str]) -> dict[str, str | tuple[str, ...]]:
    """The options --map COLUMN=ROLE, by key of [columns]. Raises InputError with all that is wrong with them."""
    found = _by_role(entries, ROLES)
    return {
        _SEVERAL.get(role, role): tuple(its) if role in _SEVERAL else its[0] for role, its in found.items()
    }


def roles_of(entries: Sequence[str], roles: Collection[str]) -> tuple[Named, ...]:
    """The options --map COLUMN=ROLE of a command that reads two files, which may call a role differently.

    Raises InputError as `parse_map` does, but not for two columns of one role: one file may not have both.
    """
    found = _by_role(entries, roles, of_several=roles)
    return tuple(
        Named(name, role, f"--map {name[:60]}={role}") for role, its in found.items() for name in its
    )


def _by_role(
    entries: Sequence[str], roles: Collection[str], of_several: Collection[str] = _SEVERAL
) -> dict[str, list[str]]:
    """`of_several` are the roles that several columns may have."""
    problems: list[str] = []
    found: dict[str, list[str]] = {}
    for entry in entries:
        column, sign, role = (part.strip() for part in entry.rpartition("="))
        if not (column and sign and role):
            problems.append(f"--map: {entry[:80]!r} has no COLUMN=ROLE; expected one such as answer=bot")
        elif role not in roles:
            problems.append(f"--map: {role[:40]!r} is not a role{nearest(role, roles, 'roles')}")
        elif column not in found.setdefault(role, []):
            found[role].append(column)
    for role, columns in found.items():
        if len(columns) > 1 and role not in of_several:
            listed = " and ".join(repr(column[:60]) for column in columns)
            problems.append(f"--map: the columns {listed} cannot both be the {role}; keep one of them")
    if problems:
        raise InputError(problems)
    return found


def named_columns(
    columns: Mapping[str, str | tuple[str, ...]], options: Sequence[str] = ()
) -> tuple[Named, ...]:
    """The section [columns] as names with their roles. `options` are the keys that were given with --map."""
    return tuple(_named(columns, options))


def _named(columns: Mapping[str, str | tuple[str, ...]], options: Sequence[str]) -> Iterator[Named]:
    words = {key: word for word, key in _SEVERAL.items()}
    for key, value in columns.items():
        role = words.get(key, key)
        if role not in ROLES:  # a unit
            continue
        for column in (value,) if isinstance(value, str) else value:
            if column:
                origin = f"--map {column[:60]}={role}" if key in options else f"[columns] {key}"
                yield Named(column, role, origin)


def named_units(columns: Mapping[str, str | tuple[str, ...]]) -> dict[str, str]:
    """The units of latency and cost in the section [columns], by role; those that are given."""
    units = {ROLES[key.removesuffix(_UNIT)]: value for key, value in columns.items() if key.endswith(_UNIT)}
    return {role: unit for role, unit in units.items() if isinstance(unit, str) and unit}


_UNIT = "_unit"
"""End of the keys of [columns] that hold the unit of a role."""

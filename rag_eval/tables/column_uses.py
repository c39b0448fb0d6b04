"""What the columns of a table are, and what somebody said that they are."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from rag_eval.tables.cells import UNSEEN_SPACES, Cell
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    GOLD,
    ID,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    folded,
    squeezed,
)

WIDE, ONE, LONG, PASSAGES = (
    "one row per query, one column per bot",
    "one row per query, one bot",
    "one row per query and bot",
    "one row per passage",
)
"""Shapes of a table."""


OF_NO_BOT = " of no bot"


_JUDGED = (QUERY, REFERENCE, RESPONSE, CONTEXT)


PASSAGE, IGNORED = "passage", "ignore"


ROLES: Mapping[str, str] = {
    "query": QUERY,
    "reference": REFERENCE,
    "context": CONTEXT,
    "passage": PASSAGE,
    "bot": RESPONSE,
    "bot_name": BOT,
    "id": ID,
    "gold_docs": GOLD,
    "retrieved_docs": RETRIEVED,
    "ignore": IGNORED,
}
"""What --map and [columns] call a role."""


WORDS = {role: word for word, role in ROLES.items()}


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


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What a column of the sheet is used as."""

    letter: str
    header: str
    role: str
    """One of query, reference, response, context, gold documents, retrieved documents, human label, kept, name of the
    bot and id of the query, or 'not used'; '… of no bot' is left out of everything as well."""
    bot: str | None = None
    """Whose column it is; None for one that the bots share."""
    metric: str = ""
    """Metric or rubric criterion of a human label."""
    why: str = ""
    """Why it is not used, where that is not plain."""

    @property
    def is_used(self) -> bool:
        return self.role != UNUSED and not self.role.endswith(OF_NO_BOT)

    @property
    def is_judged(self) -> bool:
        """Whether its texts are shown to a judge."""
        return self.role in _JUDGED

    def __str__(self) -> str:
        """How messages call the column: header on one line, and letter."""
        header = " ".join(self.header.split())
        return f"'{header if len(header) <= 60 else header[:59] + '…'}' ({self.letter})"


@dataclass(frozen=True, slots=True)
class Columns:
    """The header understood. Columns are counted from 0."""

    uses: tuple[ColumnUse, ...]
    positions: tuple[int, ...]
    """Of the columns in `uses`."""
    query: int
    reference: int | None
    gold: int | None
    responses: Mapping[str, int]
    """By bot, from left to right."""
    contexts: Mapping[str, int]
    """By bot: its own context column, else the shared one; without either it is absent."""
    retrieved: Mapping[str, int]
    """Retrieved documents, by bot in the same way."""
    human: Mapping[str, Mapping[str, int]]
    """Human labels by metric, then by bot in the same way."""
    kept: Mapping[str, int]
    """By the names that were asked for."""
    warnings: tuple[str, ...]
    names: Mapping[int, str]
    """Of the columns that are used: how messages call them."""
    content: tuple[int, ...]
    """Those of them that make a row: not human labels and kept texts."""
    shape: str = WIDE
    bot: int | None = None
    """The column that names the bot of each row."""
    ids: tuple[int, ...] = ()
    """Columns that tell queries apart."""
    has_passages: bool = False
    """Whether the name of the context says that it is one passage."""
    headers: Mapping[int, str] = field(default_factory=dict)
    """Of the used columns."""
    joined_by_bar: bool = False
    """Whether contexts are texts with a single `|` between the chunks."""

    @property
    def documents(self) -> set[int]:
        """The columns that hold document ids."""
        return {*self.retrieved.values(), *([] if self.gold is None else [self.gold])}

    def is_blank(self, cells: Sequence[Cell]) -> bool:
        """Whether the row holds nothing that could be judged or counted."""
        width = len(cells)
        return not any(index < width and cells[index] != "" for index in self.content)


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


def listed(uses: Collection[ColumnUse], separator: str = ", ") -> str:
    more = len(uses) - MOST_NAMED
    names = [str(use) for use in islice(uses, MOST_NAMED)]
    return separator.join(names) + (f", and {more:,} more" if more > 0 else "")


MOST_NAMED = 40
"""Columns in one message."""

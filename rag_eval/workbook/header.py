"""The header row to columns. The only module that knows column names.

Names are matched as a whole, whatever their case, width and separators (spaces, line ends, `_`, `-`), never by a
part of them.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_eval.errors import TableError
from rag_eval.workbook.cells import Cell, cell_at, column_letter, is_blank

QUERY, REFERENCE, RESPONSE, CONTEXT = "query", "reference", "response", "context"
ORPHAN, UNUSED = "context of no bot", "not used"

_NAMES = {
    **dict.fromkeys(("query", "question", "input", "prompt"), QUERY),
    **dict.fromkeys(("groundtruth", "reference", "target", "gt", "expected"), REFERENCE),
    "context": CONTEXT,
}


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What a column of the sheet is used as."""

    letter: str
    header: str
    role: str
    """query, reference, response or context; 'context of no bot' and 'not used' are left out of everything."""
    bot: str | None = None
    """Whose response or context it is; None for a context that the bots share."""

    def __str__(self) -> str:
        """How messages call the column: header on one line, and letter."""
        header = " ".join(self.header.split())
        return f"'{header if len(header) <= 60 else header[:59] + '…'}' ({self.letter})"


@dataclass(frozen=True, slots=True)
class Columns:
    """The header understood. Columns are counted from 0."""

    uses: tuple[ColumnUse, ...]
    query: int
    reference: int | None
    responses: Mapping[str, int]
    """By bot, from left to right."""
    contexts: Mapping[str, int]
    """By bot: its own context column, else the shared one; without either it is absent."""
    warnings: tuple[str, ...]
    names: Mapping[int, str]
    """Of the columns that are used: how messages call them."""

    def is_blank(self, cells: Sequence[Cell]) -> bool:
        """Whether the row holds nothing in the columns that are used."""
        return all(is_blank(cell_at(cells, index)) for index in self.names)


def read_header(place: str, header: Sequence[Cell], prefix: str) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header."""
    uses = _column_uses(header, prefix)
    claims: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.role not in (UNUSED, ORPHAN):
            claims[use.role, use.bot].append(index)
    problems = [f"{place}: {problem}" for problem in _header_problems(uses, claims, prefix)]
    if problems:
        raise TableError(problems)
    columns = {claim: indexes[0] for claim, indexes in claims.items()}
    responses = {bot: index for (role, bot), index in columns.items() if role == RESPONSE and bot}
    contexts = {bot: columns.get((CONTEXT, bot), columns.get((CONTEXT, None))) for bot in responses}
    return Columns(
        uses=tuple(uses.values()),
        query=columns[QUERY, None],
        reference=columns.get((REFERENCE, None)),
        responses=responses,
        contexts={bot: index for bot, index in contexts.items() if index is not None},
        names={index: str(uses[index]) for index in columns.values()},
        warnings=tuple(
            f"Column {use} looks like the context of a bot, but no bot has this name; it was not used."
            for use in uses.values()
            if use.role == ORPHAN
        ),
    )


def _column_uses(header: Sequence[Cell], prefix: str) -> dict[int, ColumnUse]:
    """What each column with a header is used as, by its position."""
    headers = {index: cell for index, cell in enumerate(header) if isinstance(cell, str) and cell.strip()}
    roles = {index: _role(text, prefix) for index, text in headers.items()}
    # Of bots that differ only in spelling the first stands for all, so that they claim one place.
    bots = {_folded(owner): owner for role, owner in reversed(roles.values()) if role == RESPONSE}
    uses = {}
    for index, (role, owner) in roles.items():
        bot = bots.get(_folded(owner)) or bots.get(_folded(_after_prefix(owner, prefix)))
        if role == CONTEXT and owner and bot is None:
            role = ORPHAN
        uses[index] = ColumnUse(column_letter(index), headers[index], role, bot)
    return uses


_SEPARATORS = r"[\s_\-\u2010-\u2015\uff0d\uff3f]"


def _folded(name: str) -> str:
    """The name for comparing: width, case and separators levelled."""
    return re.sub(rf"{_SEPARATORS}+", " ", unicodedata.normalize("NFKC", name).casefold()).strip()


def _role(header: str, prefix: str) -> tuple[str, str]:
    """What a header says the column is, and of which bot ('' for none)."""
    name = _folded(header)
    known = _NAMES.get(name.replace(" ", ""))
    if known:
        return known, ""
    if name.startswith("context "):
        return CONTEXT, name.removeprefix("context ")
    # With the prefix alone before it, as in Bot_Context, it is the response of a bot called Context.
    if name.endswith(" context") and name.removesuffix(" context") != _folded(prefix):
        return CONTEXT, name.removesuffix(" context")
    bot = _after_prefix(header, prefix)
    return (RESPONSE, bot) if bot else (UNUSED, "")


def _after_prefix(header: str, prefix: str) -> str:
    """The rest of the header, as it is written; '' when it has another beginning.

    A prefix that ends in a separator needs one in the header too: Bottom_Line is no bot.
    """
    words = [re.escape(word) for word in re.split(_SEPARATORS, prefix) if word]
    end = "++" if re.search(rf"{_SEPARATORS}\Z", prefix) else "*+"
    pattern = rf"\s*{f'{_SEPARATORS}*'.join(words)}{_SEPARATORS}{end}(.*\S)"
    found = re.match(pattern, header, re.IGNORECASE | re.DOTALL)
    return found[1] if found else ""


def _header_problems(
    uses: Mapping[int, ColumnUse], claims: Mapping[tuple[str, str | None], Sequence[int]], prefix: str
) -> Iterator[str]:
    found = ", ".join(str(use) for use in uses.values())
    if (QUERY, None) not in claims:
        yield f"No Query column found; name it Query, Question, Input or Prompt (found: {found})"
    if not any(role == RESPONSE for role, _ in claims):
        yield (
            f"No {prefix}* columns found; let the names of the response columns begin with {prefix}, "
            f"or set strip_prefix in [bots] to what they begin with (found: {found})"
        )
    for (role, bot), indexes in claims.items():
        if len(indexes) > 1:
            names = " and ".join(str(uses[index]) for index in indexes)
            owner = f" of bot '{bot}'" if bot else ""
            yield f"columns {names} could each be the {role}{owner}; rename or remove all but one"

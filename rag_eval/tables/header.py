"""The header row to columns: which role each has, and what the shape of the table is."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rag_eval.errors import TableError
from rag_eval.tables.bounds import first_of
from rag_eval.tables.cells import Cell
from rag_eval.tables.column_uses import (
    LONG,
    OF_NO_BOT,
    ONE,
    PASSAGE,
    WIDE,
    Asked,
    Claim,
    Columns,
    ColumnUse,
    listed,
    map_option,
    matches,
)
from rag_eval.tables.header_problems import ambiguous_labels, bots_problem, header_problems
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    GOLD,
    HUMAN,
    ID,
    KEPT,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    after_prefix,
    is_passage,
    joins_by_bar,
    squeezed,
)
from rag_eval.tables.roles import HUMAN_PREFIX, bot_of, column_uses
from rag_eval.tables.unused import FirstRows


def read_header(place: str, header: Sequence[Cell], asked: Asked, rows: FirstRows) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header.

    `rows` are the first ones below it, for columns that could be bots.
    """
    uses, problems = column_uses(place, header, asked)
    claims = _claims(uses)
    kept, unknown = _kept_columns(uses, asked.keep)
    bots = bots_problem(uses, claims, asked, rows, kept.values())
    problems = [
        *problems,
        *header_problems(uses, claims, asked, bots),
        *ambiguous_labels(uses, asked.criteria),
        *unknown,
    ]
    if problems:
        roles = bots.roles if bots and len(problems) == 1 else ()
        raise TableError((f"{place}: {problem}" for problem in first_of(problems)), roles)
    return _columns(uses, {claim: indexes[0] for claim, indexes in claims.items()}, kept, asked)


def _columns(
    uses: Mapping[int, ColumnUse], columns: Mapping[Claim, int], kept: Mapping[str, int], asked: Asked
) -> Columns:
    """The columns of a header without problems."""
    responses = {bot: index for (role, bot, _), index in columns.items() if role == RESPONSE and bot}
    metrics = dict.fromkeys(metric for role, _, metric in columns if role == HUMAN)
    shape = _shape(uses, columns, asked)
    uses = {index: _settled(use, shape, is_kept=index in kept.values()) for index, use in uses.items()}
    context = columns.get((CONTEXT, None, ""))
    return Columns(
        uses=tuple(uses.values()),
        positions=tuple(uses),
        query=columns[QUERY, None, ""],
        reference=columns.get((REFERENCE, None, "")),
        gold=columns.get((GOLD, None, "")),
        responses=responses,
        contexts=_by_bot(columns, responses, CONTEXT),
        retrieved=_by_bot(columns, responses, RETRIEVED),
        human={metric: _by_bot(columns, responses, HUMAN, metric) for metric in metrics},
        kept=kept,
        warnings=tuple(first_of(list(_warnings(uses)))),
        names={index: str(use) for index, use in uses.items() if use.is_used},
        content=tuple(
            index for index, use in uses.items() if use.is_used and use.role not in (HUMAN, KEPT, ID, BOT)
        ),
        shape=shape,
        bot=columns.get((BOT, None, "")),
        ids=tuple(index for index, use in uses.items() if use.role == ID),
        has_passages=context is not None and _speaks_of_passage(uses[context], asked),
        headers={index: use.header for index, use in uses.items() if use.is_used},
        joined_by_bar=joins_by_bar(use.header for use in uses.values()),
    )


def _shape(uses: Mapping[int, ColumnUse], columns: Mapping["Claim", int], asked: Asked) -> str:
    if (BOT, None, "") in columns:
        return LONG
    responses = [use for use in uses.values() if use.role == RESPONSE]
    is_one = len(responses) == 1 and not bot_of(responses[0].header, asked.prefix)
    return ONE if is_one else WIDE


def _speaks_of_passage(use: ColumnUse, asked: Asked) -> bool:
    given = [each.role for each in asked.named if matches(use.header, each.column)]
    return PASSAGE in given or (is_passage(use.header) and "context" not in given)


def looks_like_header(cells: Sequence[Cell], asked: Asked) -> bool:
    """Whether the row names a query and a bot."""
    try:
        uses, _ = column_uses("", cells, asked)
    except TableError:
        return False
    return {QUERY, RESPONSE} <= {use.role for use in uses.values()}


def _claims(uses: Mapping[int, ColumnUse]) -> Mapping[Claim, Sequence[int]]:
    claims: dict[Claim, list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.is_used and use.role != ID:
            claims[use.role, use.bot, use.metric].append(index)
    return claims


def _by_bot(
    columns: Mapping[Claim, int], bots: Collection[str], role: str, metric: str = ""
) -> dict[str, int]:
    """Each bot's own column, else the shared one."""
    found = {bot: columns.get((role, bot, metric), columns.get((role, None, metric))) for bot in bots}
    return {bot: index for bot, index in found.items() if index is not None}


def _kept_columns(uses: Mapping[int, ColumnUse], keep: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """The columns to keep, by the names that were asked for, and what is wrong with those names."""
    kept, problems = {}, []
    for name in keep:
        found = [index for index, use in uses.items() if use.header == name]
        found = found or [index for index, use in uses.items() if squeezed(use.header) == squeezed(name)]
        if len(found) == 1:
            kept[name] = found[0]
        else:
            fault = "could be several columns" if found else "is not a column"
            candidates = [uses[index] for index in found] or list(uses.values())
            problems.append(
                f"'{name}' ([report] slice_by or rubric) {fault}; name one of {listed(candidates)}"
            )
    return kept, problems


def _settled(use: ColumnUse, shape: str, *, is_kept: bool) -> ColumnUse:
    """The use of a column in a table of this shape. One that is to be kept and has another use goes on with that."""
    if is_kept and not use.is_used:
        return ColumnUse(use.letter, use.header, KEPT)
    if shape == LONG and use.role == RESPONSE:
        return replace(use, bot=None)
    return replace(use, role=UNUSED) if shape == WIDE and use.role == ID else use


def _warnings(uses: Mapping[int, ColumnUse]) -> Iterator[str]:
    for use in uses.values():
        if use.role.endswith(OF_NO_BOT):
            role = use.role.removesuffix(OF_NO_BOT)
            shared = f" To use it for all bots, add {map_option(use, 'context')}." if role == CONTEXT else ""
            yield f"Column {use} looks like the {role} of a bot, but no bot has this name; it was not used.{shared}"
        elif use.role == UNUSED and after_prefix(use.header, HUMAN_PREFIX):
            yield f"Column {use} looks like a human label, but names no metric; it was not used."

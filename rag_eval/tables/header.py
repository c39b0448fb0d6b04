"""The header row to columns: their roles, the shape of the table, and one list of all that is wrong with the header."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rag_eval.errors import TableError
from rag_eval.tables.bounds import MAX_BOT_NAME, MAX_BOTS, first_of
from rag_eval.tables.cells import Cell
from rag_eval.tables.columns import (
    LONG,
    OF_NO_BOT,
    ONE,
    WIDE,
    WORDS,
    Asked,
    Claim,
    Columns,
    ColumnUse,
    Problem,
    listed,
    map_option,
)
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
    called,
    is_passage,
    joins_by_bar,
    squeezed,
)
from rag_eval.tables.roles import HUMAN_PREFIX, METRICS, bot_of, column_uses
from rag_eval.tables.unused import FirstRows, missing_roles

_Uses = Mapping[int, ColumnUse]
_Claims = Mapping[Claim, Sequence[int]]


def read_header(place: str, header: Sequence[Cell], asked: Asked, rows: FirstRows) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header.

    `rows` are the first ones below it, for columns that could be bots.
    """
    uses, wrongly_named = column_uses(place, header, asked)
    claims: dict[Claim, list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.is_used and use.role != ID:
            claims[use.role, use.bot, use.metric].append(index)
    kept, unknown = _kept_columns(uses, asked.keep)
    problems = [
        *map(Problem, wrongly_named),
        *missing_roles(uses, claims, asked, rows, kept.values()),
        *map(Problem, _contradictions(uses, claims, asked)),
        *map(Problem, _too_many(uses, claims)),
        *map(Problem, _ambiguous_labels(uses, asked.criteria)),
        *map(Problem, unknown),
    ]
    if problems:
        sentences, roles = zip(*problems, strict=True)
        raise TableError(
            [f"{place}: {sentence}" for sentence in first_of(sentences)],
            [*chain(*roles)] if all(roles) else (),
        )
    return _columns(uses, {claim: indexes[0] for claim, indexes in claims.items()}, kept, asked)


def _columns(uses: _Uses, columns: Mapping[Claim, int], kept: Mapping[str, int], asked: Asked) -> Columns:
    """The columns of a header without problems."""
    responses = {bot: index for (role, bot, _), index in columns.items() if role == RESPONSE and bot}
    metrics = dict.fromkeys(metric for role, _, metric in columns if role == HUMAN)
    shape = _shape(uses, columns, asked)
    uses = {index: _settled(use, shape, is_kept=index in kept.values()) for index, use in uses.items()}
    used = {index: use for index, use in uses.items() if use.is_used}
    context = columns.get((CONTEXT, None, ""))
    return Columns(
        uses=uses,
        used=used,
        query=columns[QUERY, None, ""],
        reference=columns.get((REFERENCE, None, "")),
        gold=columns.get((GOLD, None, "")),
        responses=responses,
        contexts=_by_bot(columns, responses, CONTEXT),
        retrieved=_by_bot(columns, responses, RETRIEVED),
        human={metric: _by_bot(columns, responses, HUMAN, metric) for metric in metrics},
        kept=kept,
        warnings=tuple(first_of(list(_warnings(uses)))),
        content=tuple(index for index, use in used.items() if use.role not in (HUMAN, KEPT, ID, BOT)),
        shape=shape,
        bot=columns.get((BOT, None, "")),
        ids=tuple(index for index, use in uses.items() if use.role == ID),
        has_passages=context is not None and _speaks_of_passage(uses[context], asked),
        joined_by_bar=joins_by_bar(use.header for use in uses.values()),
    )


def _shape(uses: _Uses, columns: Mapping[Claim, int], asked: Asked) -> str:
    if (BOT, None, "") in columns:
        return LONG
    responses = [use for use in uses.values() if use.role == RESPONSE]
    is_one = len(responses) == 1 and not bot_of(responses[0].header, asked.prefix)
    return ONE if is_one else WIDE


def _speaks_of_passage(use: ColumnUse, asked: Asked) -> bool:
    is_given = asked.gives("passage", use.header)
    return is_given or (is_passage(use.header) and not asked.gives("context", use.header))


def looks_like_header(cells: Sequence[Cell], asked: Asked) -> bool:
    """Whether the row names a query and a bot."""
    try:
        uses, _ = column_uses("", cells, asked)
    except TableError:
        return False
    return {QUERY, RESPONSE} <= {use.role for use in uses.values()}


def _by_bot(
    columns: Mapping[Claim, int], bots: Collection[str], role: str, metric: str = ""
) -> dict[str, int]:
    """Each bot's own column, else the shared one."""
    found = {bot: columns.get((role, bot, metric), columns.get((role, None, metric))) for bot in bots}
    return {bot: index for bot, index in found.items() if index is not None}


def _kept_columns(uses: _Uses, keep: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """The columns to keep, by the names that were asked for, and what is wrong with those names."""
    kept, problems = {}, []
    for name in keep:
        found = called(name, {index: use.header for index, use in uses.items()})
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


def _warnings(uses: _Uses) -> Iterator[str]:
    for use in uses.values():
        if use.role.endswith(OF_NO_BOT):
            role = use.role.removesuffix(OF_NO_BOT)
            shared = f" To use it for all bots, add {map_option(use, 'context')}." if role == CONTEXT else ""
            yield f"Column {use} looks like the {role} of a bot, but no bot has this name; it was not used.{shared}"
        elif use.role == UNUSED and after_prefix(use.header, HUMAN_PREFIX):
            yield f"Column {use} looks like a human label, but names no metric; it was not used."


def _contradictions(uses: _Uses, claims: _Claims, asked: Asked) -> Iterator[str]:
    """Names of bots where they cannot be."""
    responses, named = _claiming(RESPONSE, uses, claims), _claiming(BOT, uses, claims)
    given = [each.origin for each in asked.named if each.role == "bot_name"]
    if len(responses) > 1 and len(named) == 1 and given:
        yield (
            f"column {named[0]} cannot name the bot of each row ({given[0]}), because each of "
            f"{listed(responses, ' and ')} is the response of a bot; remove one of them"
        )
    if asked.bot_name and (named or {use.bot for use in responses} - {asked.bot_name}):
        yield (
            f"--bot-name '{asked.bot_name[:60]}' is for a table with one column of responses that names no bot; leave "
            f"it out, because column {(*named, *responses)[0]} names "
            f"{'the bots' if named or len(responses) > 1 else 'its bot'}"
        )


def _claiming(role: str, uses: _Uses, claims: _Claims) -> list[ColumnUse]:
    """The columns that want a role, those of one bot together."""
    return [uses[index] for claim, indexes in claims.items() if claim[0] == role for index in indexes]


def _too_many(uses: _Uses, claims: _Claims) -> Iterator[str]:
    """Bots beyond the bounds, and roles that several columns claim."""
    bots = list(dict.fromkeys(use.bot for use in _claiming(RESPONSE, uses, claims) if use.bot))
    if len(bots) > MAX_BOTS:
        yield f"has {len(bots):,} bots, more than the {MAX_BOTS} allowed; compare fewer of them at a time"
        return
    if longest := max((bot for bot in bots if len(bot) > MAX_BOT_NAME), key=len, default=""):
        yield (
            f"the name of bot '{longest[:40]}…' has {len(longest):,} characters, more than the {MAX_BOT_NAME:,} "
            "allowed; shorten it"
        )
    for (role, bot, metric), indexes in claims.items():
        if len(indexes) == 1:
            continue
        first, word, choice = uses[indexes[0]], WORDS.get(role, ""), ""
        if word and not bot and not metric:
            choice = (
                f", or choose one with {map_option(first, word)} ({word} = {first.header[:60]} in [columns])"
            )
        names = listed([uses[index] for index in indexes], " and ")
        whose = (f" for {metric}" if metric else "") + (f" of bot '{bot}'" if bot else "")
        yield f"columns {names} could each be the {role}{whose}; rename or remove all but one{choice}"


def _ambiguous_labels(uses: _Uses, criteria: Collection[str]) -> Iterator[str]:
    """Labels of a criterion that is called as a metric is, or as another criterion but for case and separators."""
    metrics = {squeezed(metric): metric for metric in METRICS}
    for use in uses.values():
        if use.role != HUMAN:
            continue
        name = squeezed(use.metric)
        alike = [f"'{criterion}'" for criterion in criteria if squeezed(criterion) == name]
        if alike and name in metrics:
            yield (
                f"column {use} could be a label for the metric {metrics[name]} or for the rubric's criterion "
                f"{alike[0]}; give the criterion another id"
            )
        elif len(alike) > 1 and use.metric not in use.header:
            yield (
                f"column {use} could be a label for each of the criteria {', '.join(alike)}; write the id as the "
                "rubric does"
            )

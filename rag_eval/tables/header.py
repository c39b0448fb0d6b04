"""The header row to columns: which role each has, and what the shape of the table is."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from rag_eval.errors import TableError
from rag_eval.records import FURTHER_LABELS, METRIC_LABELS, TOXICITY
from rag_eval.tables.bounds import MAX_BOT_NAME, MAX_BOTS, MAX_COLUMNS, first_of
from rag_eval.tables.cells import Cell, cell_at, column_letter, is_blank
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    DOCUMENTS,
    GOLD,
    HUMAN,
    ID,
    KEPT,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    Meaning,
    after_prefix,
    folded,
    is_passage,
    joins_by_bar,
    meanings,
    squeezed,
)
from rag_eval.tables.selection import nearest
from rag_eval.texts.words import compatible

WIDE, ONE, LONG, PASSAGES = (
    "one row per query, one column per bot",
    "one row per query, one bot",
    "one row per query and bot",
    "one row per passage",
)
"""Shapes of a table."""
_OF_NO_BOT = " of no bot"

_HUMAN_PREFIX = "Human_"
_JUDGED = (QUERY, REFERENCE, RESPONSE, CONTEXT)
_METRICS = (*METRIC_LABELS, *FURTHER_LABELS, TOXICITY)
_OF_BOTS = {"context": CONTEXT, **{f"retrieved {name}": RETRIEVED for name in DOCUMENTS}}
"""Words that stand before or after the name of a bot."""

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
_WORDS = {role: word for word, role in ROLES.items()}


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
        return self.role != UNUSED and not self.role.endswith(_OF_NO_BOT)

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
        return all(is_blank(cell_at(cells, index)) for index in self.content)


def read_header(place: str, header: Sequence[Cell], asked: Asked) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header."""
    uses, problems = _column_uses(place, header, asked)
    claims = _claims(uses)
    kept, unknown = _kept_columns(uses, asked.keep)
    problems = [
        *problems,
        *_header_problems(uses, claims, asked),
        *_ambiguous_labels(uses, asked.criteria),
        *unknown,
    ]
    if problems:
        raise TableError(f"{place}: {problem}" for problem in first_of(problems))
    columns = {claim: indexes[0] for claim, indexes in claims.items()}
    responses = {bot: index for (role, bot, _), index in columns.items() if role == RESPONSE and bot}
    metrics = dict.fromkeys(metric for role, _, metric in columns if role == HUMAN)
    uses |= {index: _as_kept(uses[index]) for index in kept.values()}
    shape = _shape(uses, columns, asked)
    if shape == LONG:
        uses |= {index: replace(use, bot=None) for index, use in uses.items() if use.role == RESPONSE}
    context = columns.get((CONTEXT, None, ""))
    if shape in (WIDE, ONE):
        uses |= {
            index: replace(use, role=UNUSED)
            for index, use in uses.items()
            if use.role == ID and shape == WIDE
        }
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


def _shape(uses: Mapping[int, ColumnUse], columns: Mapping["_Claim", int], asked: Asked) -> str:
    if (BOT, None, "") in columns:
        return LONG
    responses = [use for use in uses.values() if use.role == RESPONSE]
    is_one = len(responses) == 1 and not after_prefix(responses[0].header, asked.prefix)
    return ONE if is_one else WIDE


def _speaks_of_passage(use: ColumnUse, asked: Asked) -> bool:
    given = [each.role for each in asked.named if matches(use.header, each.column)]
    return PASSAGE in given or (is_passage(use.header) and "context" not in given)


def looks_like_header(cells: Sequence[Cell], asked: Asked) -> bool:
    """Whether the row names a query and a bot."""
    try:
        uses, _ = _column_uses("", cells, asked)
    except TableError:
        return False
    return {QUERY, RESPONSE} <= {use.role for use in uses.values()}


_Claim = tuple[str, str | None, str]
"""What a column wants to be, alone: a role, of a bot, for a metric."""


def _claims(uses: Mapping[int, ColumnUse]) -> Mapping[_Claim, Sequence[int]]:
    claims: dict[_Claim, list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.is_used and use.role != ID:
            claims[use.role, use.bot, use.metric].append(index)
    return claims


def _by_bot(
    columns: Mapping[_Claim, int], bots: Collection[str], role: str, metric: str = ""
) -> dict[str, int]:
    """Each bot's own column, else the shared one."""
    found = {bot: columns.get((role, bot, metric), columns.get((role, None, metric))) for bot in bots}
    return {bot: index for bot, index in found.items() if index is not None}


def _column_uses(place: str, header: Sequence[Cell], asked: Asked) -> tuple[dict[int, ColumnUse], list[str]]:
    """What each column with a header is used as, by its position, and what is wrong with what was named."""
    headers = {
        index: cell for index, cell in enumerate(header) if isinstance(cell, str) and not is_blank(cell)
    }
    if len(headers) > MAX_COLUMNS:
        raise TableError(
            f"{place}: has {len(headers):,} columns, more than the {MAX_COLUMNS:,} allowed; remove those that are not "
            "needed"
        )
    given, problems = _given_roles(headers, asked.named)
    by_own_name = {
        index: _own_role(text, asked.prefix, [*_METRICS, *asked.criteria])
        for index, text in headers.items()
        if index not in given
    }
    prefixed = any(role == RESPONSE for role, _, _ in by_own_name.values())
    by_own_name = _of_known_bots(headers, by_own_name, asked)
    roles, why = _by_meaning(headers, by_own_name, given, has_prefixed=prefixed)
    roles = _with_names_of_bots(headers, _without_idle_bot(roles, given), asked)
    # Of bots that differ only in spelling the first stands for all, so that they claim one place.
    bots = {folded(owner): owner for role, owner, _ in reversed(roles.values()) if role == RESPONSE and owner}
    uses = {}
    for index, (role, owner, metric) in roles.items():
        bot = bots.get(folded(owner)) or bots.get(folded(after_prefix(owner, asked.prefix)))
        if owner and bot is None:
            role += _OF_NO_BOT
        uses[index] = ColumnUse(column_letter(index), headers[index], role, bot, metric, why.get(index, ""))
    return uses, problems


def _of_known_bots(
    headers: Mapping[int, str], roles: Mapping[int, "_Role"], asked: Asked
) -> dict[int, "_Role"]:
    """The roles without those of a bot that does not exist, where the name means something by itself."""
    owners = [owner for role, owner, _ in roles.values() if role == RESPONSE]
    owners += [
        header
        for header in headers.values()
        for each in asked.named
        if each.role == "bot" and matches(header, each.column)
    ]
    bots = {folded(owner) for owner in owners} | {
        folded(after_prefix(owner, asked.prefix)) for owner in owners
    }
    return {
        index: _NOTHING
        if role in (CONTEXT, RETRIEVED)
        and not {folded(owner), folded(after_prefix(owner, asked.prefix))} & bots
        and meanings(headers[index], has_prefixed=True)
        else (role, owner, metric)
        for index, (role, owner, metric) in roles.items()
    }


_Role = tuple[str, str, str]
"""What a column is, of which bot ('' for none), and of which metric if it is a label."""


def _given_roles(headers: Mapping[int, str], named: Sequence[Named]) -> tuple[dict[int, _Role], list[str]]:
    """The roles that somebody gave, and what is wrong with that."""
    given: dict[int, tuple[str, Named]] = {}
    problems = []
    for each in named:
        found = [index for index, header in headers.items() if header == each.column]
        found = found or [index for index, header in headers.items() if matches(header, each.column)]
        if not found:
            problems.append(
                f"{each.origin}: '{each.column[:60]}' is not a column{nearest(each.column, headers.values())}"
            )
        for index in found:
            before = given.get(index)
            if before and before[0] != each.role:
                problems.append(
                    f"column '{headers[index][:60]}' is both {before[0]} ({before[1].origin}) and {each.role} "
                    f"({each.origin}); give it one role"
                )
            given[index] = each.role, each
    roles = {index: ROLES[role] for index, (role, _) in given.items()}
    roles = {
        index: CONTEXT if role == PASSAGE else UNUSED if role == IGNORED else role
        for index, role in roles.items()
    }
    return {index: (role, "", "") for index, role in roles.items()}, problems


def matches(header: str, pattern: str) -> bool:
    """Whether a name that somebody gave means the column."""
    if "*" in pattern:
        return fnmatchcase(folded(header), folded(pattern).replace("[", "[[]"))
    return squeezed(header) == squeezed(pattern)


def _by_meaning(
    headers: Mapping[int, str], own: Mapping[int, _Role], given: Mapping[int, _Role], *, has_prefixed: bool
) -> tuple[dict[int, _Role], dict[int, str]]:
    """The roles, with those of columns whose names mean something; of several names for a role the best rank counts.

    A role that somebody gave to a column is taken, so that no name means it any more.
    """
    roles = {**own, **given}
    taken = {role: index for index, (role, owner, _) in roles.items() if not owner and role != UNUSED}
    found: dict[str, list[tuple[Meaning, int]]] = defaultdict(list)
    for index, header in headers.items():
        if own.get(index) == _NOTHING:
            for meaning in meanings(header, has_prefixed=has_prefixed):
                found[meaning.role].append((meaning, index))
    known = {index: roles.get(index, _NOTHING) for index in headers}
    why = {}
    for role, candidates in found.items():
        best = min(meaning.rank for meaning, _ in candidates)
        for meaning, index in candidates:
            if role in taken:
                why[index] = f"'{headers[taken[role]]}' is the {role}"
            elif role == ID or meaning.rank == best:
                known[index] = role, "", ""
            else:
                first = next(other for each, other in candidates if each.rank == best)
                why[index] = f"'{headers[first]}' is the {role}"
    return known, why


def _without_idle_bot(roles: Mapping[int, _Role], given: Mapping[int, _Role]) -> dict[int, _Role]:
    """A name such as Model means nothing where several columns are the responses of bots."""
    several = sum(role == RESPONSE for role, _, _ in roles.values()) > 1
    return {
        index: _NOTHING if several and each[0] == BOT and index not in given else each
        for index, each in roles.items()
    }


_NOTHING: _Role = (UNUSED, "", "")


def _with_names_of_bots(
    headers: Mapping[int, str], roles: Mapping[int, _Role], asked: Asked
) -> dict[int, _Role]:
    """The roles, where each column of responses has the name of its bot."""
    unnamed = [index for index, (role, owner, _) in roles.items() if role == RESPONSE and not owner]
    named = dict(roles)
    for index in unnamed:
        own = after_prefix(headers[index], asked.prefix) or " ".join(headers[index].split())
        named[index] = RESPONSE, (asked.bot_name or own) if len(unnamed) == 1 else own, ""
    return named


def _own_role(header: str, prefix: str, metrics: Sequence[str]) -> _Role:
    """What a header says that only names of ours say: columns of one bot, its responses, and labels."""
    name = folded(header)
    if any(meaning.rank[0] == 0 for meaning in meanings(header, has_prefixed=True)):
        return _NOTHING
    for words, role in _OF_BOTS.items():
        if name.startswith(f"{words} "):
            return role, name.removeprefix(f"{words} "), ""
        # With the prefix alone before it, as in Bot_Context, it is the response of a bot called Context.
        if name.endswith(f" {words}") and name.removesuffix(f" {words}") != folded(prefix):
            return role, name.removesuffix(f" {words}"), ""
    label = after_prefix(compatible("NFKC", header), _HUMAN_PREFIX)
    for metric in _likeliest_first(metrics, label):
        owner = after_prefix(label, f"{metric}_")
        if label and (owner or squeezed(label) == squeezed(metric)):
            return HUMAN, owner, metric
    bot = after_prefix(header, prefix)
    return (RESPONSE, bot, "") if bot else _NOTHING


def _likeliest_first(metrics: Sequence[str], label: str) -> list[str]:
    """The longest first: of the criteria 'cites' and 'cites a source' the second may be meant; then as written."""
    return sorted(metrics, key=lambda metric: (-len(squeezed(metric)), not label.startswith(metric)))


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
            listed = [uses[index] for index in found] or list(uses.values())
            problems.append(f"'{name}' {fault}; name one of {_listed(listed)}")
    return kept, problems


def _listed(uses: Collection[ColumnUse], separator: str = ", ") -> str:
    more = len(uses) - _MOST_NAMED
    names = [str(use) for use in islice(uses, _MOST_NAMED)]
    return separator.join(names) + (f", and {more:,} more" if more > 0 else "")


_MOST_NAMED = 40
"""Columns in one message."""


def _as_kept(use: ColumnUse) -> ColumnUse:
    """A column that has another use already goes on with it."""
    return use if use.is_used else ColumnUse(use.letter, use.header, KEPT)


def _warnings(uses: Mapping[int, ColumnUse]) -> Iterator[str]:
    for use in uses.values():
        if use.role.endswith(_OF_NO_BOT):
            role = use.role.removesuffix(_OF_NO_BOT)
            shared = f" To use it for all bots, add {map_option(use, 'context')}." if role == CONTEXT else ""
            yield f"Column {use} looks like the {role} of a bot, but no bot has this name; it was not used.{shared}"
        elif use.role == UNUSED and after_prefix(use.header, _HUMAN_PREFIX):
            yield f"Column {use} looks like a human label, but names no metric; it was not used."


def _header_problems(
    uses: Mapping[int, ColumnUse], claims: Mapping[_Claim, Sequence[int]], asked: Asked
) -> Iterator[str]:
    found = _listed(uses.values())
    if (QUERY, None, "") not in claims:
        yield (
            "No Query column found; name it Query, Question, Input or Prompt, or add --map COLUMN=query "
            f"(found: {found})"
        )
    responses = [index for (role, _, _), its in claims.items() for index in its if role == RESPONSE]
    if not responses:
        yield _no_responses(uses, claims, asked.prefix, found)
    yield from _several_answers(uses, responses, asked)
    yield from _contradictions(uses, responses, claims, asked)
    bots = [bot for role, bot, _ in claims if role == RESPONSE and bot]
    if len(bots) > MAX_BOTS:
        yield f"has {len(bots):,} bots, more than the {MAX_BOTS} allowed; compare fewer of them at a time"
        return
    if longest := max((bot for bot in bots if len(bot) > MAX_BOT_NAME), key=len, default=""):
        yield (
            f"the name of bot '{longest[:40]}…' has {len(longest):,} characters, more than the {MAX_BOT_NAME:,} "
            "allowed; shorten it"
        )
    for (role, bot, metric), indexes in claims.items():
        if len(indexes) > 1:
            names = _listed([uses[index] for index in indexes], " and ")
            about = f" for {metric}" if metric else ""
            owner = f" of bot '{bot}'" if bot else ""
            yield (
                f"columns {names} could each be the {role}{about}{owner}; rename or remove all but one"
                f"{_choice(uses[indexes[0]])}"
            )


def _choice(use: ColumnUse) -> str:
    """The option that says which of several columns it is; '' where none can."""
    if use.role not in _WORDS or use.bot or use.metric:
        return ""
    word = _WORDS[use.role]
    return f", or choose one with {map_option(use, word)} ({word} = {use.header[:60]} in [columns])"


def map_option(use: ColumnUse, word: str) -> str:
    """The option that gives a column a role, as a shell takes it."""
    header = use.header.replace("'", "'\\''")
    is_plain = re.fullmatch(r"[\w.-]+", use.header) is not None
    return f"--map {use.header}={word}" if is_plain else f"--map '{header}={word}'"


def _no_responses(
    uses: Mapping[int, ColumnUse], claims: Mapping[_Claim, Sequence[int]], prefix: str, found: str
) -> str:
    if (QUERY, None, "") in claims and (REFERENCE, None, "") in claims:
        return (
            f"No column with responses: this looks like a test set; run the bots on it and add a column {prefix}<name> "
            f"per bot, or add --map COLUMN=bot if a column holds responses (found: {found})"
        )
    return (
        f"No {prefix}* columns found, and no column of responses such as answer or response; rename response "
        f"columns to {prefix}<name>, add --map COLUMN=bot, or set strip_prefix in [bots] (found: {found})"
    )


def _several_answers(uses: Mapping[int, ColumnUse], responses: Sequence[int], asked: Asked) -> Iterator[str]:
    """Several columns that may be responses, found by names alone: nobody said that each is a bot."""
    given = [each.column for each in asked.named if each.role == "bot"]
    guessed = [
        uses[index]
        for index in responses
        if not after_prefix(uses[index].header, asked.prefix)
        and not any(matches(uses[index].header, column) for column in given)
    ]
    if len(guessed) > 1:
        options = " ".join(map_option(use, "bot") for use in guessed[:_MOST_NAMED])
        headers = ", ".join(use.header[:60] for use in guessed[:_MOST_NAMED])
        yield (
            f"columns {_listed(guessed, ' and ')} could each be the response of a bot; name those that are: {options} "
            f"(bots = {headers} in [columns])"
        )


def _contradictions(
    uses: Mapping[int, ColumnUse],
    responses: Sequence[int],
    claims: Mapping[_Claim, Sequence[int]],
    asked: Asked,
) -> Iterator[str]:
    named = claims.get((BOT, None, ""), ())
    if len(responses) > 1 and len(named) == 1:
        given = [each.origin for each in asked.named if each.role == "bot_name"]
        if given:
            yield (
                f"column {uses[named[0]]} cannot name the bot of each row ({given[0]}), because each of "
                f"{_listed([uses[index] for index in responses], ' and ')} is the response of a bot; remove one of them"
            )
    if asked.bot_name and (named or len(responses) > 1):
        yield (
            f"--bot-name '{asked.bot_name[:60]}' is for a table with one column of responses; leave it out, because "
            f"{f'column {uses[named[0]]} names the bots' if named else 'the columns name the bots'}"
        )


def _ambiguous_labels(uses: Mapping[int, ColumnUse], criteria: Collection[str]) -> Iterator[str]:
    """Labels of a criterion that is called as a metric is, or as another criterion but for case and separators."""
    metrics = {squeezed(metric): metric for metric in _METRICS}
    for use in uses.values():
        name = squeezed(use.metric)
        alike = [f"'{criterion}'" for criterion in criteria if squeezed(criterion) == name]
        if use.role == HUMAN and alike and name in metrics:
            yield (
                f"column {use} could be a label for the metric {metrics[name]} or for the rubric's criterion "
                f"{alike[0]}; give the criterion another id"
            )
        elif use.role == HUMAN and len(alike) > 1 and use.metric not in use.header:
            yield (
                f"column {use} could be a label for each of the criteria {', '.join(alike)}; write the id as the "
                "rubric does"
            )

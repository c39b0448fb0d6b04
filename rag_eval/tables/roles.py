"""The role of each column: the one that somebody gave it, or the one that its name tells. One table of all columns."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_eval.errors import TableError
from rag_eval.records import CITATION_LABELS, EXTRA_METRIC_LABELS, METRIC_LABELS, TOXICITY
from rag_eval.tables.cells import Cell, column_letter, is_blank
from rag_eval.tables.columns import OF_NO_BOT, ROLES, Asked, ColumnUse, Named, matches
from rag_eval.tables.input_files import MAX_COLUMNS
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    CONVERSATION,
    COST,
    DOCUMENTS,
    HISTORY,
    HUMAN,
    ID,
    LATENCY,
    QUERY,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    Meaning,
    after_prefix,
    field_with,
    folded,
    halves_of,
    is_about,
    is_chat,
    may_name_bots,
    meaning_of,
    names_bots,
    nearest,
    speaks_of_sources,
    spendings_of,
    squeezed,
    without_answer,
)
from rag_eval.tables.spending import SpendingColumn, assigned
from rag_eval.texts.words import compatible

HUMAN_PREFIX = "Human_"
METRICS = (*METRIC_LABELS, *EXTRA_METRIC_LABELS, *CITATION_LABELS, TOXICITY)
_MEASURES = frozenset(
    ("relevance", "relevancy", "precision", "recall", "entity recall", "utilization", "sufficiency")
)
"""What follows `context` in the names of measures, so that it is no bot."""
_OF_BOTS = {
    "context": CONTEXT,
    "chat history": HISTORY,
    "history": HISTORY,
    **{f"retrieved {name}": RETRIEVED for name in DOCUMENTS},
}
"""Words that stand before or after the name of a bot."""
_TEMPLATE = re.compile(r"\[([^\]]*[^\]\s][^\]]*)\] .*\{\{.+\}\}.*", re.DOTALL)


@dataclass(slots=True)
class _Column:
    """A line of the table."""

    header: str
    role: str = UNUSED
    owner: str = ""
    """The bot of which it is by its name; '' for none."""
    metric: str = ""
    given: Named | None = None
    """What somebody said of it."""
    why: str = ""
    unit: str = ""


def column_uses(
    place: str,
    header: Sequence[Cell],
    asked: Asked,
    why_no_amounts: Callable[[int, str], str | None] = lambda index, role: "unseen",
) -> tuple[dict[int, ColumnUse], list[str]]:
    """What each column with a header is used as, by its position, and what is wrong with what was named.

    `why_no_amounts` says why the first cells of a column are not amounts of a role, '' if they are, or None for no
    idea: by its name alone a column has no latency and no cost.
    """
    columns = {
        index: _Column(cell)
        for index, cell in enumerate(header)
        if isinstance(cell, str) and not is_blank(cell)
    }
    if len(columns) > MAX_COLUMNS:
        raise TableError(
            f"{place}: has {len(columns):,} columns, more than the {MAX_COLUMNS:,} allowed; remove those that are not "
            "needed"
        )
    problems = list(_take_given(columns.values(), asked.named))
    _take_own_names(columns.values(), asked)
    _take_meanings(columns.values())
    _name_bots(columns.values(), asked)
    _take_own_contexts(columns.values(), asked.prefix)
    _take_siblings(columns.values())
    problems += _take_spending(columns, asked, why_no_amounts)
    owners = _owners(columns, asked.prefix)
    uses = {}
    for index, each in columns.items():
        bot = owners.get(index)
        role = each.role + (OF_NO_BOT if each.owner and bot is None else "")
        if bot:  # a line break in a header would cut the name in rows of one line
            bot = " ".join(bot.split())
        uses[index] = ColumnUse(
            column_letter(index), each.header, role, bot, each.metric, each.why, each.unit
        )
    return uses, problems


def _owners(columns: Mapping[int, _Column], prefix: str) -> dict[int, str]:
    """Whose each column is, by its position.

    Of bots that differ only in spelling the first stands for all, so that they claim one place. A column whose name
    is that of a bot but for the separators, or for a word such as answer, counts only where no other one is the bot's.
    """
    responses = [each.owner for each in columns.values() if each.role == RESPONSE]
    bots = {folded(owner): owner for owner in reversed(responses)}
    found = {
        index: bot
        for index, each in columns.items()
        if (bot := bots.get(folded(each.owner)) or bots.get(folded(after_prefix(each.owner, prefix))))
    }
    loose = _loose_names(bots.values(), prefix)
    claims = Counter((columns[index].role, columns[index].metric, bot) for index, bot in found.items())
    others = {
        index: bot
        for index, each in columns.items()
        if index not in found and each.owner and (bot := _loosely(each.owner, loose, prefix))
    }
    claims.update((columns[index].role, columns[index].metric, bot) for index, bot in others.items())
    only = {
        index: bot
        for index, bot in others.items()
        if claims[columns[index].role, columns[index].metric, bot] == 1
    }
    return found | only


def _loose_names(bots: Collection[str], prefix: str) -> dict[str, str]:
    """The bots by names without separators, and without a word such as answer, where these are of one bot only."""
    found: dict[str, set[str]] = defaultdict(set)
    for bot in bots:
        short = after_prefix(bot, prefix) or bot
        for name in {bot, short, without_answer(short)}:
            found[squeezed(name)].add(bot)
    return {name: its.pop() for name, its in found.items() if name and len(its) == 1}


def _loosely(name: str, loose: Mapping[str, str], prefix: str) -> str:
    """The bot with nearly this name; '' for none."""
    return loose.get(squeezed(name)) or loose.get(squeezed(after_prefix(name, prefix))) or ""


def _take_given(columns: Collection[_Column], named: Sequence[Named]) -> Iterator[str]:
    """The roles that somebody gave; yields what is wrong with that."""
    for each in named:
        found = [column for column in columns if column.header == each.column]
        found = found or [column for column in columns if matches(column.header, each.column)]
        if not found:
            headers = [column.header for column in columns]
            begin = f"{folded(each.column)}."
            paths = [header[len(each.column) + 1 :] for header in headers if folded(header).startswith(begin)]
            if field := field_with(ROLES[each.role], paths):
                option = f"--map '{each.column[:60]}.{field}={each.role}'"
                yield f"{each.origin}: '{each.column[:60]}' is an object with fields; add {option} instead"
            else:
                yield f"{each.origin}: '{each.column[:60]}' is not a column{nearest(each.column, headers)}"
        for column in found:
            before = column.given
            if before and before.role != each.role:
                yield (
                    f"column '{column.header[:60]}' is both {before.role} ({before.origin}) and {each.role} "
                    f"({each.origin}); give it one role"
                )
            column.role, column.given = ROLES[each.role], each


def _take_own_names(columns: Collection[_Column], asked: Asked) -> None:
    """The roles that only names of ours tell: responses, other columns of one bot, and labels.

    Not of a bot that does not exist, where the name means something by itself.
    """
    free = [each for each in columns if each.given is None]
    metrics = [*METRICS, *asked.criteria]
    for each in free:
        each.role, each.owner, each.metric = _own_role(each.header, asked.prefix, metrics)
    _take_fields(free)
    owners = [each.owner for each in free if each.role == RESPONSE]
    owners += [each.header for each in columns if each.given and each.given.role == "bot"]
    bot_called = _bots_by_name(owners, asked.prefix)
    for each in columns:
        if each.given and each.given.role != "passage" and each.role in (CONTEXT, RETRIEVED, HISTORY):
            halves = () if meaning_of(each.header, has_prefixed=True) else halves_of(each.header)
            each.owner = next(
                (rest for what, rest in halves if speaks_of_sources(what) and bot_called(rest)), ""
            )
    for each in free:
        is_of_one = bot_called(each.owner)
        is_of_none = each.role in _OF_BOTS.values() and not is_of_one
        means_another = meaning_of(each.header, has_prefixed=True) or folded(each.owner) in _MEASURES
        if is_of_none and (means_another or each.role == HISTORY):
            each.role, each.owner = UNUSED, ""


def _bots_by_name(owners: Collection[str], prefix: str) -> Callable[[str], str]:
    """Tells which of the bots has a name, or nearly has it; '' for none."""
    bots = {name: owner for owner in reversed([*owners]) for name in _short_and_whole(owner, prefix)}
    loose = _loose_names(owners, prefix)

    def bot_called(name: str) -> str:
        found = next((bots[each] for each in _short_and_whole(name, prefix) if each in bots), "")
        return found or _loosely(name, loose, prefix)

    return bot_called


def _take_own_contexts(columns: Collection[_Column], prefix: str) -> None:
    """What was retrieved for one bot, by other names than ours before or after that of the bot, as `chunks_A`.

    They count only for a bot that has no column with one of ours; and of several, those that say the most.
    """
    bot_called = _bots_by_name([each.owner for each in columns if each.role == RESPONSE], prefix)
    taken = {(each.role, bot) for each in columns if each.owner and (bot := bot_called(each.owner))}
    found: dict[tuple[str, str], list[tuple[Meaning, _Column, str]]] = defaultdict(list)
    for each in columns:
        is_free = not each.given and not meaning_of(each.header, has_prefixed=True)
        is_open = each.role in (UNUSED, RESPONSE) or (each.role == CONTEXT and not bot_called(each.owner))
        name = each.owner if each.role == RESPONSE else each.header
        for what, rest in halves_of(name) if is_free and is_open else ():
            meaning = meaning_of(what, has_prefixed=True)
            is_place = rest.isdecimal() and "answer" not in name  # as in `Chunk 1` next to `Bot_1`
            if (
                meaning
                and meaning.role in (CONTEXT, RETRIEVED)
                and not is_place
                and (bot := bot_called(rest))
            ):
                found[meaning.role, bot].append((meaning, each, rest))
                break
    for claim in found.keys() - taken:
        best = min(meaning.rank for meaning, _, _ in found[claim])
        for meaning, each, rest in found[claim]:
            if meaning.rank == best:
                each.role, each.owner, each.why = meaning.role, rest, ""


def _take_fields(columns: Collection[_Column]) -> None:
    """The fields of one bot, such as `Bot_A.answer` and `Bot_A.context`: its response is what one of them means.

    Left as several bots if more than one may be the response, or if one field means nothing.
    """
    bots: dict[str, dict[str, _Column]] = defaultdict(dict)
    for each in columns:
        owner, dot, field = each.owner.rpartition(".")
        if each.role == RESPONSE and owner and dot and folded(each.header).endswith(f".{folded(field)}"):
            bots[owner][field] = each
    for owner, its in bots.items():
        roles = {field: _role_of_field(field) for field in its}
        if len(its) < 2 or [*roles.values()].count(RESPONSE) != 1 or "" in roles.values():
            continue
        for field, each in its.items():
            is_own = roles[field] in (RESPONSE, CONTEXT, RETRIEVED)
            each.role, each.owner = (roles[field], owner) if is_own else (UNUSED, "")


def _role_of_field(name: str) -> str:
    """What a field of a bot's output is; UNUSED for what is known about it or repeats the query, '' for anything."""
    meaning = meaning_of(f"answer.{name}", has_prefixed=False)
    if meaning:
        return meaning.role if meaning.role in (RESPONSE, CONTEXT, RETRIEVED) else UNUSED
    return UNUSED if is_about(name) else ""


def _own_role(header: str, prefix: str, metrics: Sequence[str]) -> tuple[str, str, str]:
    """Role, bot and metric."""
    name = folded(header)
    meaning = meaning_of(header, has_prefixed=True)
    if meaning and meaning.rank[0] == 0:
        return UNUSED, "", ""
    for words, role in _OF_BOTS.items():
        if name.startswith(f"{words} "):
            return role, name.removeprefix(f"{words} "), ""
        # With the prefix alone before it, as in Bot_Context, it is the response of a bot called Context.
        if name.endswith(f" {words}") and name.removesuffix(f" {words}") != folded(prefix):
            return role, name.removesuffix(f" {words}"), ""
    label = after_prefix(compatible("NFKC", header), HUMAN_PREFIX)
    # The longest first: of the criteria 'cites' and 'cites a source' the second may be meant; then as written.
    if label:
        for metric in sorted(metrics, key=lambda each: (-len(squeezed(each)), not label.startswith(each))):
            owner = after_prefix(label, f"{metric}_")
            if owner or squeezed(label) == squeezed(metric):
                return HUMAN, owner, metric
    bot = bot_of(header, prefix)
    return RESPONSE if bot else UNUSED, bot, ""


def bot_of(header: str, prefix: str) -> str:
    """Whose responses the name says that a column holds: `Bot_<name>`, or `[<name>] prompt with {{variables}}`.

    The second is how promptfoo writes a .csv. '' for no bot, also where each row names its own: `bot_name`.
    """
    if names_bots(header) or may_name_bots(header):
        return ""
    if found := _TEMPLATE.fullmatch(header):
        return found[1].strip()
    return after_prefix(header, prefix)


def _short_and_whole(owner: str, prefix: str) -> set[str]:
    """The names by which a bot may be called, with the prefix and without it."""
    return {folded(owner), folded(after_prefix(owner, prefix) or owner)}


def _take_meanings(columns: Collection[_Column]) -> None:
    """The roles of columns whose names mean something; of several names for a role the best rank counts.

    A role that somebody gave to a column is taken, so that no name means it any more.
    """
    taken = {
        each.role: each.header for each in columns if each.given and each.role != UNUSED and not each.owner
    }
    has_prefixed = any(each.role == RESPONSE and not each.given for each in columns)
    found: dict[str, list[tuple[Meaning, _Column]]] = defaultdict(list)
    for each in columns:
        meaning = meaning_of(each.header, has_prefixed=has_prefixed)
        if meaning and each.role == UNUSED and not each.given:
            found[meaning.role].append((meaning, each))
    for role, candidates in found.items():
        best, first = min(candidates, key=lambda candidate: candidate[0].rank)
        for meaning, each in candidates:
            is_best = each is first if role in (HISTORY, CONVERSATION) else meaning.rank == best.rank
            if role not in taken and (role == ID or is_best):
                each.role = role
            else:
                each.why = f"'{taken.get(role, first.header)}' is the {role}"
    _take_chats(columns)


def _take_chats(columns: Collection[_Column]) -> None:
    """Next to another query, a column of whole conversations has the turns before it, unless another one has them."""
    chats = [each for each in columns if each.role == UNUSED and each.why and is_chat(each.header)]
    roles = {each.role for each in columns}
    if len(chats) == 1 and QUERY in roles and HISTORY not in roles:
        chats[0].role = HISTORY


def _name_bots(columns: Collection[_Column], asked: Asked) -> None:
    """Gives each column of responses the name of its bot. With several, a name such as Model means nothing."""
    responses = [each for each in columns if each.role == RESPONSE]
    unnamed = [each for each in responses if not each.owner]
    headers = {each.header for each in columns}
    for each in unnamed:
        own = after_prefix(each.header, asked.prefix) or " ".join(each.header.split())
        chat, _, field = own.rpartition(".")
        if len(responses) == 1 and field == RESPONSE and f"{chat}.{QUERY}" in headers:
            own = "bot"
        each.owner = asked.bot_name if asked.bot_name and len(unnamed) == 1 else own
    for each in columns:
        if len(responses) > 1 and each.role == BOT and not each.given:
            each.role = UNUSED


def _take_siblings(columns: Collection[_Column]) -> None:
    """What was retrieved for the only response of an object is in that object, if other responses are in others."""
    objects: dict[str, list[str]] = defaultdict(list)
    for each in columns:
        if each.role == RESPONSE:
            objects[each.header.rpartition(".")[0]].append(each.owner)
    for each in columns if len(objects) > 1 else ():
        parent, _, field = each.header.rpartition(".")
        owners = objects.get(parent, [])
        if parent and len(owners) == 1 and not each.given and not each.owner:
            role = _role_of_field(field)
            if role in (CONTEXT, RETRIEVED):
                each.role, each.owner, each.why = role, owners[0], ""


def _take_spending(
    columns: Mapping[int, _Column], asked: Asked, why_no_amounts: Callable[[int, str], str | None]
) -> Iterator[str]:
    """The columns with latency and cost; yields what is wrong with those that somebody named.

    A column such as `Bot_Atlas_Latency` is not a bot's if there is a bot Atlas, and if its cells are amounts.
    """
    found = [*_spending_columns(columns, asked, why_no_amounts)]
    if not found:
        return
    owners = [(index, each.owner) for index, each in columns.items() if each.role == RESPONSE]
    candidates = {column.place for column in found}
    bots = {
        name: owner
        for index, owner in owners
        if index not in candidates
        for name in (*_short_and_whole(owner, asked.prefix), folded(f"{asked.prefix}{owner}"))
    }
    bots |= _nearly_named(found, bots, asked.prefix)
    is_shared = len({*bots.values()}) == 1 or any(each.role == BOT for each in columns.values())
    uses = assigned(found, bots, asked.units, is_shared=is_shared)
    for column in found:
        each, use = columns[column.place], uses.get(column.place)
        if use is None:
            continue
        if not use.why:
            each.role, each.owner, each.unit, each.metric = use.role, use.owner, use.unit, ""
        elif column.role:
            each.role = UNUSED
            yield f"column '{each.header[:60]}' cannot be the {use.role} that it was given: {use.why}"
        elif each.role == UNUSED:
            each.why = use.why


def _nearly_named(found: Sequence[SpendingColumn], bots: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Further names of the bots, as columns of latency and cost write them, where no column has an exact one."""
    loose = _loose_names({*bots.values()}, prefix)
    readings = [(each, reading) for each in found for reading in spendings_of(each.header)]
    names = [
        (each, reading.role, name)
        for each, reading in readings
        for name in (reading.owner, folded(reading.unit))
    ]
    exact = {(role, bots[name]) for _, role, name in names if name in bots}
    return {
        name: bot
        for _, role, name in names
        if name and name not in bots and (bot := _loosely(name, loose, prefix)) and (role, bot) not in exact
    }


def _spending_columns(
    columns: Mapping[int, _Column], asked: Asked, why_no_amounts: Callable[[int, str], str | None]
) -> Iterator[SpendingColumn]:
    for index, each in columns.items():
        if each.given is not None:
            if each.role in (LATENCY, COST):
                yield SpendingColumn(index, each.header, each.role)
        elif each.role in (UNUSED, RESPONSE) and (readings := spendings_of(each.header)):
            fault = asked.faults.get(index, why_no_amounts(index, readings[0].role))
            if each.role == UNUSED or fault == "":
                yield SpendingColumn(index, each.header, "", fault)

"""The role of each column: the one that somebody gave it, or the one that its name tells."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from rag_eval.errors import TableError
from rag_eval.records import EXTRA_METRIC_LABELS, METRIC_LABELS, TOXICITY
from rag_eval.tables.bounds import MAX_COLUMNS
from rag_eval.tables.cells import Cell, column_letter, is_blank
from rag_eval.tables.column_uses import (
    IGNORED,
    OF_NO_BOT,
    PASSAGE,
    ROLES,
    Asked,
    ColumnUse,
    Named,
    matches,
)
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    DOCUMENTS,
    HUMAN,
    ID,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    Meaning,
    after_prefix,
    folded,
    meanings,
    names_bots,
    squeezed,
)
from rag_eval.tables.selection import nearest
from rag_eval.texts.words import compatible

HUMAN_PREFIX = "Human_"


METRICS = (*METRIC_LABELS, *EXTRA_METRIC_LABELS, TOXICITY)


_MEASURES = frozenset(
    ("relevance", "relevancy", "precision", "recall", "entity recall", "utilization", "sufficiency")
)
"""What follows `context` in the names of measures, so that it is no bot."""


_OF_BOTS = {"context": CONTEXT, **{f"retrieved {name}": RETRIEVED for name in DOCUMENTS}}
"""Words that stand before or after the name of a bot."""


_Role = tuple[str, str, str]
"""What a column is, of which bot ('' for none), and of which metric if it is a label."""


_NOTHING: _Role = (UNUSED, "", "")


def column_uses(place: str, header: Sequence[Cell], asked: Asked) -> tuple[dict[int, ColumnUse], list[str]]:
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
        index: _own_role(text, asked.prefix, [*METRICS, *asked.criteria])
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
            role += OF_NO_BOT
        uses[index] = ColumnUse(column_letter(index), headers[index], role, bot, metric, why.get(index, ""))
    return uses, problems


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
    label = after_prefix(compatible("NFKC", header), HUMAN_PREFIX)
    for metric in _likeliest_first(metrics, label):
        owner = after_prefix(label, f"{metric}_")
        if label and (owner or squeezed(label) == squeezed(metric)):
            return HUMAN, owner, metric
    bot = bot_of(header, prefix)
    return (RESPONSE, bot, "") if bot else _NOTHING


def bot_of(header: str, prefix: str) -> str:
    """Whose responses the name says that a column holds: `Bot_<name>`, or `[<name>] prompt with {{variables}}`.

    The second is how promptfoo writes a .csv. '' for no bot, also where each row names its own: `bot_name`.
    """
    if names_bots(header):
        return ""
    if found := _TEMPLATE.fullmatch(header):
        return found[1].strip()
    return after_prefix(header, prefix)


_TEMPLATE = re.compile(r"\[([^\]]*[^\]\s][^\]]*)\] .*\{\{.+\}\}.*", re.DOTALL)


def _likeliest_first(metrics: Sequence[str], label: str) -> list[str]:
    """The longest first: of the criteria 'cites' and 'cites a source' the second may be meant; then as written."""
    return sorted(metrics, key=lambda metric: (-len(squeezed(metric)), not label.startswith(metric)))


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
    bots = {name for owner in owners for name in _short_and_whole(owner, asked.prefix)}
    return {
        index: _NOTHING
        if role in (CONTEXT, RETRIEVED)
        and not _short_and_whole(owner, asked.prefix) & bots
        and (meanings(headers[index], has_prefixed=True) or folded(owner) in _MEASURES)
        else (role, owner, metric)
        for index, (role, owner, metric) in roles.items()
    }


def _short_and_whole(owner: str, prefix: str) -> set[str]:
    """The names by which a bot may be called, with the prefix and without it."""
    return {folded(owner), folded(after_prefix(owner, prefix) or owner)}


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

"""The header row to columns. The only module that knows column names.

Names are matched as a whole, whatever their case, width and separators (spaces, those without width too, line ends,
`_`, `-`), never by a part of them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rag_eval.errors import TableError
from rag_eval.records import FURTHER_LABELS, METRIC_LABELS, TOXICITY
from rag_eval.tables.bounds import MAX_BOT_NAME, MAX_BOTS, MAX_COLUMNS, first_of
from rag_eval.tables.cells import UNSEEN_SPACES, Cell, cell_at, column_letter, is_blank
from rag_eval.texts.words import compatible

QUERY, REFERENCE, RESPONSE, CONTEXT = "query", "reference", "response", "context"
GOLD, RETRIEVED, HUMAN = "gold documents", "retrieved documents", "human label"
KEPT, UNUSED = "kept", "not used"
_OF_NO_BOT = " of no bot"

_HUMAN_PREFIX = "Human_"
_JUDGED = (QUERY, REFERENCE, RESPONSE, CONTEXT)
_DOCUMENTS = ("docs", "doc ids", "documents")
_NAMES = {
    **dict.fromkeys(("query", "question", "input", "prompt"), QUERY),
    **dict.fromkeys(("groundtruth", "reference", "target", "gt", "expected"), REFERENCE),
    **{f"gold{name.replace(' ', '')}": GOLD for name in _DOCUMENTS},
    **{f"retrieved{name.replace(' ', '')}": RETRIEVED for name in _DOCUMENTS},
    "context": CONTEXT,
}
_METRICS = (*METRIC_LABELS, *FURTHER_LABELS, TOXICITY)
_OF_BOTS = {"context": CONTEXT, **{f"retrieved {name}": RETRIEVED for name in _DOCUMENTS}}
"""Words that stand before or after the name of a bot."""


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What a column of the sheet is used as."""

    letter: str
    header: str
    role: str
    """One of query, reference, response, context, gold documents, retrieved documents, human label and kept, or
    'not used'; '… of no bot' is left out of everything as well."""
    bot: str | None = None
    """Whose column it is; None for one that the bots share."""
    metric: str = ""
    """Metric or rubric criterion of a human label."""

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

    @property
    def documents(self) -> set[int]:
        """The columns that hold document ids."""
        return {*self.retrieved.values(), *([] if self.gold is None else [self.gold])}

    def is_blank(self, cells: Sequence[Cell]) -> bool:
        """Whether the row holds nothing that could be judged or counted."""
        return all(is_blank(cell_at(cells, index)) for index in self.content)


def read_header(
    place: str,
    header: Sequence[Cell],
    prefix: str,
    keep: Collection[str] = (),
    criteria: Collection[str] = (),
) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header.

    `keep` names further columns whose texts are wanted, `criteria` what human labels may speak of beside metrics.
    """
    uses = _column_uses(place, header, prefix, criteria)
    claims = _claims(uses)
    kept, problems = _kept_columns(uses, keep)
    problems = [*_header_problems(uses, claims, prefix), *_ambiguous_labels(uses, criteria), *problems]
    if problems:
        raise TableError(f"{place}: {problem}" for problem in first_of(problems))
    columns = {claim: indexes[0] for claim, indexes in claims.items()}
    responses = {bot: index for (role, bot, _), index in columns.items() if role == RESPONSE and bot}
    metrics = dict.fromkeys(metric for role, _, metric in columns if role == HUMAN)
    uses |= {index: _as_kept(uses[index]) for index in kept.values()}
    return Columns(
        uses=tuple(uses.values()),
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
        content=tuple(index for index, use in uses.items() if use.is_used and use.role not in (HUMAN, KEPT)),
    )


def looks_like_header(cells: Sequence[Cell], prefix: str) -> bool:
    """Whether the row names a query and a bot."""
    try:
        uses = _column_uses("", cells, prefix, ())
    except TableError:
        return False
    return {QUERY, RESPONSE} <= {use.role for use in uses.values()}


_Claim = tuple[str, str | None, str]
"""What a column wants to be, alone: a role, of a bot, for a metric."""


def _claims(uses: Mapping[int, ColumnUse]) -> Mapping[_Claim, Sequence[int]]:
    claims: dict[_Claim, list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.is_used:
            claims[use.role, use.bot, use.metric].append(index)
    return claims


def _by_bot(
    columns: Mapping[_Claim, int], bots: Collection[str], role: str, metric: str = ""
) -> dict[str, int]:
    """Each bot's own column, else the shared one."""
    found = {bot: columns.get((role, bot, metric), columns.get((role, None, metric))) for bot in bots}
    return {bot: index for bot, index in found.items() if index is not None}


def _column_uses(
    place: str, header: Sequence[Cell], prefix: str, criteria: Collection[str]
) -> dict[int, ColumnUse]:
    """What each column with a header is used as, by its position."""
    headers = {
        index: cell for index, cell in enumerate(header) if isinstance(cell, str) and not is_blank(cell)
    }
    if len(headers) > MAX_COLUMNS:
        raise TableError(
            f"{place}: has {len(headers):,} columns, more than the {MAX_COLUMNS:,} allowed; remove those that are not "
            "needed"
        )
    roles = {index: _role(text, prefix, [*_METRICS, *criteria]) for index, text in headers.items()}
    # Of bots that differ only in spelling the first stands for all, so that they claim one place.
    bots = {_folded(owner): owner for role, owner, _ in reversed(roles.values()) if role == RESPONSE}
    uses = {}
    for index, (role, owner, metric) in roles.items():
        bot = bots.get(_folded(owner)) or bots.get(_folded(_after_prefix(owner, prefix)))
        if owner and bot is None:
            role += _OF_NO_BOT
        uses[index] = ColumnUse(column_letter(index), headers[index], role, bot, metric)
    return uses


_GAPS = rf"\s{UNSEEN_SPACES}"
_SEPARATORS = rf"[{_GAPS}_\-\u2010-\u2015\uff0d\uff3f]"


def _folded(name: str) -> str:
    """The name for comparing: width, case and separators levelled."""
    return re.sub(rf"{_SEPARATORS}+", " ", compatible("NFKC", name).casefold()).strip()


def _squeezed(name: str) -> str:
    return _folded(name).replace(" ", "")


def _role(header: str, prefix: str, metrics: Sequence[str]) -> tuple[str, str, str]:
    """What a header says the column is, of which bot ('' for none), and of which metric if it is a label."""
    name = _folded(header)
    known = _NAMES.get(name.replace(" ", ""))
    if known:
        return known, "", ""
    for words, role in _OF_BOTS.items():
        if name.startswith(f"{words} "):
            return role, name.removeprefix(f"{words} "), ""
        # With the prefix alone before it, as in Bot_Context, it is the response of a bot called Context.
        if name.endswith(f" {words}") and name.removesuffix(f" {words}") != _folded(prefix):
            return role, name.removesuffix(f" {words}"), ""
    label = _after_prefix(compatible("NFKC", header), _HUMAN_PREFIX)
    for metric in _likeliest_first(metrics, label):
        owner = _after_prefix(label, f"{metric}_")
        if label and (owner or _squeezed(label) == _squeezed(metric)):
            return HUMAN, owner, metric
    bot = _after_prefix(header, prefix)
    return (RESPONSE, bot, "") if bot else (UNUSED, "", "")


def _likeliest_first(metrics: Sequence[str], label: str) -> list[str]:
    """The longest first: of the criteria 'cites' and 'cites a source' the second may be meant; then as written."""
    return sorted(metrics, key=lambda metric: (-len(_squeezed(metric)), not label.startswith(metric)))


def _after_prefix(header: str, prefix: str) -> str:
    """The rest of the header, as it is written; '' when it has another beginning.

    A prefix that ends in a separator needs one in the header too: Bottom_Line is no bot.
    """
    words = [re.escape(word) for word in re.split(_SEPARATORS, prefix) if word]
    end = "++" if re.search(rf"{_SEPARATORS}\Z", prefix) else "*+"
    pattern = rf"[{_GAPS}]*{f'{_SEPARATORS}*'.join(words)}{_SEPARATORS}{end}(.*[^{_GAPS}])"
    found = re.match(pattern, header, re.IGNORECASE | re.DOTALL)
    return found[1] if found else ""


def _kept_columns(uses: Mapping[int, ColumnUse], keep: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """The columns to keep, by the names that were asked for, and what is wrong with those names."""
    kept, problems = {}, []
    for name in keep:
        found = [index for index, use in uses.items() if use.header == name]
        found = found or [index for index, use in uses.items() if _squeezed(use.header) == _squeezed(name)]
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
            yield f"Column {use} looks like the {role} of a bot, but no bot has this name; it was not used."
        elif use.role == UNUSED and _after_prefix(use.header, _HUMAN_PREFIX):
            yield f"Column {use} looks like a human label, but names no metric; it was not used."


def _header_problems(
    uses: Mapping[int, ColumnUse], claims: Mapping[_Claim, Sequence[int]], prefix: str
) -> Iterator[str]:
    found = _listed(uses.values())
    if (QUERY, None, "") not in claims:
        yield f"No Query column found; name it Query, Question, Input or Prompt (found: {found})"
    if not any(role == RESPONSE for role, _, _ in claims):
        yield (
            f"No {prefix}* columns found; let the names of the response columns begin with {prefix}, "
            f"or set strip_prefix in [bots] to what they begin with (found: {found})"
        )
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
            yield f"columns {names} could each be the {role}{about}{owner}; rename or remove all but one"


def _ambiguous_labels(uses: Mapping[int, ColumnUse], criteria: Collection[str]) -> Iterator[str]:
    """Labels of a criterion that is called as a metric is, or as another criterion but for case and separators."""
    metrics = {_squeezed(metric): metric for metric in _METRICS}
    for use in uses.values():
        name = _squeezed(use.metric)
        alike = [f"'{criterion}'" for criterion in criteria if _squeezed(criterion) == name]
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

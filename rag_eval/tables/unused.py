"""Columns without a use that could have one: refused where they may be bots or the query, otherwise pointed out."""

import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from statistics import fmean
from typing import NamedTuple

from rag_eval.errors import first_of
from rag_eval.tables.cells import BadCell, Cell, JsonText, cell_at, is_blank, is_sentence
from rag_eval.tables.columns import (
    LONG,
    MOST_NAMED,
    ONE,
    USE_ALL,
    WIDE,
    WORDS,
    Asked,
    Claim,
    Columns,
    ColumnUse,
    Problem,
    listed,
    map_entry,
    map_option,
    parts_of_context,
)
from rag_eval.tables.input_files import MAX_BOT_NAME
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    CONVERSATION,
    GOLD,
    HINTED,
    HISTORY,
    ID,
    NAMED,
    NEARLY_PREFIXED,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    is_about,
    is_answer,
    is_conversation,
    likely_bots,
    likely_role,
    may_be_passages,
    may_be_truth,
    meaning_of,
    says_truth,
    squeezed,
    without_numbers,
)
from rag_eval.tables.nested import turns_of
from rag_eval.tables.roles import bot_of
from rag_eval.tables.speakers import labels_in, turns_of_text
from rag_eval.tables.spending import amount_in

ROWS_SEEN = 50
_LONG = 80
"""Characters on average from which on texts are long."""
_SENTENCE = 20
"""The same for texts that may be responses by nothing else."""
_SHORT = 40
"""The same for texts below which a few that are repeated are categories."""
_SHORTEST = 6
"""The same of texts of several words that may be passages."""
_PLAIN = re.compile(r"[\d.,:/%+\-\sTZ]*|true|false|yes|no", re.IGNORECASE | re.ASCII)
"""Numbers, dates and flags: no role is filled by these."""
_SPACE = re.compile(r"\S\s+\S")
_ID = re.compile(r"(?=\D*\d)\S{1,60}")
FEW_TURNS = "most of its first cells contain no turns of a conversation"
"""Why a column that is called like one of earlier turns is not used."""


class _Seen(NamedTuple):
    """The cells of a column that hold something, in the first rows."""

    lengths: tuple[int, ...]
    """Of the texts, numbers and the like left out."""
    is_plain: bool
    """Most are numbers, dates and flags."""
    is_spaced: bool
    """Most have several words."""
    has_spaces: bool
    is_category: bool
    """A few short texts are repeated."""
    is_structure: bool
    """Most are lists or objects."""
    mean: float
    """Characters."""


class _TurnCount:
    """How many cells of a column are turns of conversations, and how many texts are none."""

    def __init__(self) -> None:
        self.with_turns = self.without = 0
        self._first = 0
        self._fault, self._has_labels = "", False

    def add(self, number: int, cell: Cell) -> None:
        text = "" if isinstance(cell, BadCell) else cell
        try:
            has_turns = bool(turns_of(text))
        except ValueError as error:
            self.without += 1
            if not self._fault or (not self._has_labels and labels_in(text)):
                self._fault, self._has_labels = f"the text in row {number} {error}", bool(labels_in(text))
            return
        self.with_turns += has_turns
        if has_turns:
            self._first = self._first or number

    def why(self) -> str:
        """The first text that is none, those with labels before others, and the counts."""
        first = f"; row {self._first} is the first with turns" if self.with_turns else ""
        every = self.with_turns + self.without
        return f"{self._fault} ({self.without:,} of {every:,} cells contain none{first})"


class _Names:
    """Cells of a column that may have the names of bots: few, of which each stands once next to most queries."""

    def __init__(self) -> None:
        self._values: dict[str, None] | None = {}
        """None if there are too many, or others than names."""
        self._queries, self._pairs = array("q"), array("q")

    def add(self, query: object, cell: Cell) -> None:
        if self._values is None or not query:
            return
        name = cell.strip() if isinstance(cell, str) and len(cell) < _LONG else ""
        self._values[name] = None
        if not name or len(self._values) > _MOST_NAMES:
            self._values = None
            return
        self._queries.append(hash(query))
        self._pairs.append(hash((query, name)))

    def tell_apart(self) -> bool:
        if not self._values or len(self._values) < 2:
            return False
        rows, queries = len(self._pairs), len({*self._queries})
        return rows == len({*self._pairs}) and rows >= _MOST_ROWS * queries * len(self._values)


_MOST_NAMES, _MOST_ROWS = 20, 0.8
"""How many bots one table may compare if nobody says that it does, and the share of queries that each answers."""


class FirstRows:
    """What the cells of each column look like."""

    def __init__(self, rows: Sequence[tuple[int, Sequence[Cell]]]) -> None:
        self._rows = rows
        self.seen = cache(self._seen)

    def is_blank(self, index: int) -> bool:
        """Whether none of the rows has anything in the column, and there are rows."""
        return bool(self._rows) and all(is_blank(cell_at(cells, index)) for _, cells in self._rows)

    def may_be_contexts(self, index: int) -> bool:
        """Whether most cells that hold something are lists or texts of several words, or there are none.

        Not `p. 3`, and not names of files.
        """
        its = self.seen(index)
        is_text = not its.is_plain and its.mean > (_SHORTEST if its.is_spaced else _SHORT)
        return not its.mean or its.is_structure or is_text

    def are_sentences(self, index: int) -> bool:
        """Whether most cells that hold something end like sentences: not titles and places in documents."""
        texts = [str(cell) for _, cells in self._rows if (cell := cell_at(cells, index))]
        return 2 * sum(map(is_sentence, texts)) > len(texts)

    def are_equal(self, index: int, other: int) -> bool:
        """Whether two columns have the same cells."""
        return all(cell_at(cells, index) == cell_at(cells, other) for _, cells in self._rows)

    def agree(self, index: int, other: int | None) -> bool:
        """Whether two columns have the same text in some row."""
        pairs = (
            [str(cell_at(cells, place or 0)).strip().casefold() for place in (index, other)]
            for _, cells in self._rows
        )
        return any(text == its != "" for text, its in pairs)

    def have_turns(self, index: int) -> bool:
        """Whether most cells that hold something are turns of conversations, also if the column holds nothing."""
        count = _TurnCount()
        for number, cells in self._rows:
            count.add(number, cell_at(cells, index))
        return count.with_turns >= count.without

    def are_ids(self, index: int) -> bool:
        """Whether the cells that hold something are words with digits, of which some are repeated."""
        found = [cell for _, cells in self._rows if (cell := cell_at(cells, index))]
        words = [cell for cell in found if isinstance(cell, str) and _ID.fullmatch(cell.strip())]
        return len({*words}) < len(words) == len(found)

    def tell_apart(self, index: int, query: int | None) -> bool:
        """Whether rows ask the same query, and the cells of a column tell these apart, as names of bots do."""
        names = _Names()
        for _, cells in self._rows if query is not None else ():
            names.add(cell_at(cells, query or 0), cell_at(cells, index))
        return names.tell_apart()

    def are_chats(self, index: int) -> bool:
        """Whether most cells that hold something are texts in which a user and a bot speak."""
        found = [cell for _, cells in self._rows if isinstance(cell := cell_at(cells, index), str) and cell]
        return 2 * sum(len({turn.role for turn in turns_of_text(cell)}) == 2 for cell in found) > len(found)

    def why_no_amounts(self, index: int, role: str) -> str | None:
        """Why most cells of a column are not amounts of this role, with the first such row; '' if they are.

        None if no cell tells.
        """
        amounts, fault, faults = 0, "", 0
        for number, row in self._rows:
            if is_blank(cell := cell_at(row, index)):
                continue
            try:
                amounts += amount_in(cell, role) is not None
            except ValueError as error:
                fault, faults = fault or f"row {number}, {error}", faults + 1
        return fault if faults > amounts else "" if amounts else None

    def first_chat(self, index: int) -> int | None:
        """The row of the first cell that is a text in which a user and a bot take turns."""
        for number, cells in self._rows:
            cell = cell_at(cells, index)
            turns = turns_of_text(cell) if isinstance(cell, str) and not isinstance(cell, JsonText) else []
            if len(turns) > 2 and len({turn.role for turn in turns}) == 2:
                return number
        return None

    def _seen(self, index: int | None) -> _Seen:
        found = ("" if index is None else cell_at(cells, index) for _, cells in self._rows)
        cells = [cell for cell in found if isinstance(cell, str) and cell]
        texts = [cell for cell in cells if not (len(cell) < 40 and _PLAIN.fullmatch(cell))]
        spaced = sum(_SPACE.search(cell, 0, 1_000) is not None for cell in cells)
        structures = sum(isinstance(cell, JsonText) or cell.lstrip()[:1] in ("[", "{") for cell in cells)
        mean = sum(map(len, cells)) / len(cells) if cells else 0.0
        return _Seen(
            lengths=tuple(map(len, texts)),
            is_plain=2 * len(texts) < len(cells),
            is_spaced=2 * spaced > len(cells),
            has_spaces=spaced > 0,
            is_category=len(cells) >= 4 and 4 * len({*cells}) <= len(cells) and mean < _SHORT,
            is_structure=2 * structures > len(cells),
            mean=mean,
        )

    def may_be_responses(self, index: int, others: int | None) -> bool:
        """Whether a column has texts that may be responses: numbers and single words only if `others` are such, too."""
        its, like = self.seen(index), self.seen(others)
        is_code = its.is_category and not its.has_spaces
        return its.mean > 0 and its.is_plain <= like.is_plain and is_code <= like.is_category

    def are_like(self, index: int, others: int | None) -> bool:
        """The same, and the texts are not a few short ones, or single words among sentences."""
        its, like = self.seen(index), self.seen(others)
        return (
            self.may_be_responses(index, others)
            and its.is_category <= like.is_category
            and its.has_spaces >= like.is_spaced
            and 4 * its.mean >= like.mean
        )

    def confirmed(self, kind: str, index: int, others: int | None) -> str:
        """What is left of the evidence of a name when the texts are looked at: the same kind, a weaker one or ''."""
        if not self.may_be_responses(index, others):
            return HINTED if kind == NEARLY_PREFIXED and self.seen(index).lengths else ""
        return HINTED if kind == NAMED and not self.are_like(index, others) else kind

    def are_as_long(self, index: int, others: int | None, least: float) -> bool:
        """The same, and they are half as long, and have `least` characters, so that they may be whatever their name."""
        its = self.seen(index)
        is_long = its.mean >= max(least, self.seen(others).mean / 2)
        return self.are_like(index, others) and not its.is_structure and is_long


class _LeftOut(NamedTuple):
    """Columns without a use that may be responses of bots, by their position."""

    nearly: dict[int, ColumnUse]
    """Their names nearly have the prefix."""
    named: dict[int, ColumnUse]
    """Their names say so as well, or in another way."""
    hinted: dict[int, ColumnUse]
    """The same, with words that may mean something else, or without looking much like responses."""
    lengthy: dict[int, ColumnUse]
    """Only their texts say so."""


def _free(uses: Mapping[int, ColumnUse], asked: Asked, kept: Collection[int] = ()) -> dict[int, ColumnUse]:
    """The columns without a use that nobody set aside or wants to keep."""
    return {
        index: use
        for index, use in uses.items()
        if use.role == UNUSED and index not in kept and not asked.gives("ignore", use.header)
    }


def _left_out(
    free: Mapping[int, ColumnUse],
    prefix: str,
    rows: FirstRows,
    others: int | None,
    *,
    least: float = _SENTENCE,
    with_blank: bool = False,
) -> _LeftOut:
    """What may be left out of `free`; columns without any text only if `with_blank`: a bot that never answered.

    `others` is the column that these would be like, if there is one, and `least` how many characters texts have that
    may be responses whatever the name of their column.
    """
    found = _LeftOut({}, {}, {}, {})
    headers = {index: use.header for index, use in free.items() if len(use.header) <= MAX_BOT_NAME}
    by_name = likely_bots(headers, prefix)
    for index, header in headers.items():
        kind = by_name.get(index, "")
        is_blank = with_blank and kind != HINTED and rows.is_blank(index)
        if kind and not is_blank:
            kind = rows.confirmed(kind, index, others)
        if kind == NEARLY_PREFIXED:
            found.nearly[index] = free[index]
        if kind in (NEARLY_PREFIXED, NAMED):
            found.named[index] = free[index]
        elif kind == HINTED:
            found.hinted[index] = free[index]
        elif rows.are_as_long(index, others, least) and not (is_about(header) or likely_role(header, _TOLD)):
            found.lengthy[index] = free[index]
    stems = {without_numbers(use.header) for use in found.lengthy.values()} - {""}
    for index, header in headers.items():
        is_free = not any(index in its for its in found)
        if is_free and without_numbers(header) in stems and rows.may_be_responses(index, others):
            found.lengthy[index] = free[index]
    return found


_TOLD = (QUERY, REFERENCE, CONTEXT)
"""What a text is rather than a response if its name says so."""


def missing_roles(
    uses: Mapping[int, ColumnUse],
    claims: Mapping[Claim, Sequence[int]],
    asked: Asked,
    rows: FirstRows,
    kept: Collection[int],
) -> Iterator[Problem]:
    """A query or bots that are missing, or that would be left out. Of the cells, only the first `rows` are known."""
    query, reference = (next(iter(claims.get((role, None, ""), ())), None) for role in (QUERY, REFERENCE))
    responses = [index for (role, _, _), its in claims.items() for index in its if role == RESPONSE]
    free = _free(uses, asked, kept)
    if query is None:
        yield _no_query(uses, rows)
    if responses:
        found = _left_out(free, asked.prefix, rows, responses[0], with_blank=True)
        names_bots = (BOT, None, "") in claims
        yield from _doubtful(
            uses, responses, asked, rows, found, names_bots=names_bots, has_reference=reference is not None
        )
        return
    # A response is like a ground truth; without one, it has at least the length of a sentence.
    others, least = (query, _SENTENCE) if reference is None else (reference, 0)
    found = _left_out(free, asked.prefix, rows, others, least=least)
    if query is None:
        found = found._replace(lengthy={})  # any of them may be the query
    is_test_set = query is not None and reference is not None
    yield _no_responses(uses, asked.prefix, found, is_test_set=is_test_set)


def _doubtful(
    uses: Mapping[int, ColumnUse],
    responses: Sequence[int],
    asked: Asked,
    rows: FirstRows,
    found: _LeftOut,
    *,
    names_bots: bool,
    has_reference: bool,
) -> Iterator[Problem]:
    """Bots that would be left out next to these responses, and responses that may be none."""
    has_given = any(each.role == "bot" for each in asked.named)
    guessed = {
        index: uses[index]
        for index in responses
        if not bot_of(uses[index].header, asked.prefix) and not asked.gives("bot", uses[index].header)
    }
    if len(guessed) == 1 and not has_given:
        guessed |= _as_good(guessed, uses, rows, has_reference=has_reference)
    if len({squeezed(use.header) for use in guessed.values()}) == 1 < len(guessed):
        return  # no option tells one from the other
    if len(guessed) > 1:
        yield _several_answers({**guessed, **found.named}, has_reference=has_reference)
    elif has_given or names_bots:
        return
    elif guessed and found.named:
        yield _lone_answer(guessed, found.named, asked.prefix, has_reference=has_reference)
    elif found.nearly and not guessed:
        yield Problem(
            f"{_looking(found.nearly)}, without the prefix '{asked.prefix}'; rename each to {asked.prefix}<name>, or "
            f"add {_options(found.nearly)}; {_ignoring(found.nearly)}",
            _as_bots(found.nearly),
        )


def _no_query(uses: Mapping[int, ColumnUse], rows: FirstRows) -> Problem:
    every = listed(uses.values())
    likely = [
        use
        for index, use in uses.items()
        if use.role == UNUSED and likely_role(use.header, [QUERY])
        if rows.seen(index).is_spaced or (rows.seen(index).lengths and not use.header.isascii())
    ]
    if len(likely) == 1:
        return Problem(
            f"No Query column found; if it is {likely[0]}, add {map_option(likely[0], 'query')} (found: {every})",
            [map_entry(likely[0], "query")],
        )
    return Problem(
        f"No Query column found; name it Query, Question, Input or Prompt, or add --map COLUMN=query (found: {every})"
    )


def _as_good(
    guessed: Mapping[int, ColumnUse], uses: Mapping[int, ColumnUse], rows: FirstRows, *, has_reference: bool
) -> dict[int, ColumnUse]:
    """Columns whose names only end as that of the one response does, where this may be their ground truth, or one of
    several answers: then its exact name says too little."""
    ((place, lone),) = guessed.items()
    known = meaning_of(lone.header, has_prefixed=False)
    its = None if known is None else (RESPONSE, known.rank[:2])
    others = {
        index: use
        for index, use in uses.items()
        if use.why and rows.are_like(index, place)
        if (also := meaning_of(use.header, has_prefixed=False)) and (also.role, also.rank[:2]) == its
    }
    return others if len(others) > 1 or (may_be_truth(lone.header) and not has_reference) else {}


def _no_responses(
    uses: Mapping[int, ColumnUse], prefix: str, found: _LeftOut, *, is_test_set: bool
) -> Problem:
    every = listed(uses.values())
    correct = f"or correct [bots] strip_prefix, which is '{prefix}'"
    if taken := [use for use in uses.values() if bot_of(use.header, prefix)]:
        return Problem(
            f"No column with responses is left, because --map or [columns] gives {taken[0]} another role; correct it, "
            f"or add --map COLUMN=bot for a column with responses (found: {every})"
        )
    if found.named:
        return Problem(
            f"No {prefix}* columns found, but {_looking(found.named)}; add {_options(found.named)}, {correct}",
            _as_bots(found.named),
        )
    if texts := dict(sorted({**found.hinted, **found.lengthy}.items())):
        return Problem(
            f"No {prefix}* columns found, and no column of responses such as answer or response; if "
            f"{listed(texts.values(), ' or ')} contains responses, add {_options(texts)}, {correct}"
            + ("; if none does, this is a test set: run the bots on it first" if is_test_set else ""),
            _as_bots(texts),
        )
    if is_test_set:
        return Problem(
            f"No column with responses: this looks like a test set; run the bots on it and add a column {prefix}<name> "
            f"per bot, or add --map COLUMN=bot if a column contains responses (found: {every})"
        )
    return Problem(
        f"No {prefix}* columns found, and no column of responses such as answer or response; rename response "
        f"columns to {prefix}<name>, add --map COLUMN=bot, or set strip_prefix in [bots] (found: {every})"
    )


def _lone_answer(
    answer: Mapping[int, ColumnUse], others: Mapping[int, ColumnUse], prefix: str, *, has_reference: bool
) -> Problem:
    """One column would be the only bot by its name, and others are left out that are bots by theirs."""
    (lone,) = answer.values()
    is_truth = may_be_truth(lone.header) and not has_reference
    bots = others if is_truth else dict(sorted({**answer, **others}.items()))
    truth = f"; if {lone} is the ground truth, also add {map_option(lone, 'reference')}" if is_truth else ""
    if is_truth and says_truth(lone.header):
        truth += f", or {map_option(lone, 'bot')} if a bot gave these answers"
    set_prefix = "" if prefix == Asked().prefix else f", or correct [bots] strip_prefix, which is '{prefix}'"
    return Problem(
        f"No {prefix}* columns found: {lone} would be the only bot, but {_looking(others)}; add {_options(bots)}"
        f"{set_prefix}{truth}; {_ignoring(others)}",
        _as_bots(bots),
    )


def _several_answers(guessed: Mapping[int, ColumnUse], *, has_reference: bool) -> Problem:
    """Several columns that may be responses, by names alone: nobody said that each is a bot."""
    headers = ", ".join(use.header[:60] for use in guessed.values())
    answers = [use for use in guessed.values() if is_answer(use.header.rpartition(".")[2])]
    truths = [use for use in answers if may_be_truth(use.header)] if len(answers) > 1 else []
    truths += [use for use in guessed.values() if says_truth(use.header)]
    truth = None if has_reference or len(guessed) < 2 else next(iter(truths), None)
    other = f"; or, if it is the ground truth, {map_option(truth, 'reference')}" if truth else ""
    bots = {index: use for index, use in guessed.items() if use is not truth}
    return Problem(
        f"columns {listed(guessed.values(), ' and ')} could each be the response of a bot; name those that are with "
        f"{_options(guessed)}, or with bots = {headers} in [columns]{other}",
        _as_bots(bots),
    )


def _looking(uses: Mapping[int, ColumnUse]) -> str:
    names = listed(uses.values(), " and ")
    if len(uses) == 1:
        return f"column {names} looks like the responses of a bot"
    return f"columns {names} look like responses of bots"


def _options(uses: Mapping[int, ColumnUse]) -> str:
    return " ".join(map_option(use, "bot") for use in islice(uses.values(), MOST_NAMED))


def _as_bots(uses: Mapping[int, ColumnUse]) -> list[str]:
    return [map_entry(use, "bot") for use in uses.values()]


def _ignoring(uses: Mapping[int, ColumnUse]) -> str:
    return f"to leave a column out, add {map_option(next(iter(uses.values())), 'ignore')}"


class UnusedColumns:
    """Says which columns have no use although they look as if they should have one."""

    def __init__(self, columns: Columns, asked: Asked, rows: FirstRows) -> None:
        self._columns = columns
        self._asked = asked
        self._rows = rows
        self._looked_at = _free(columns.uses, asked)
        others = next(iter(columns.responses.values()), None)
        self._left_out = _left_out(self._looked_at, asked.prefix, rows, others, with_blank=True)
        self._names = {index: _Names() for index in self._looked_at if columns.shape == ONE}
        self._parts = {index for its in parts_of_context(self._looked_at) for _, index in its}
        self._turns = {index: _TurnCount() for index, use in self._looked_at.items() if use.why == FEW_TURNS}

    def counted(self, rows: Iterator[tuple[int, Sequence[Cell]]]) -> Iterator[tuple[int, Sequence[Cell]]]:
        """All rows of the table; the warnings count the turns in them."""
        queries = (self._columns.query, self._columns.reference)
        for number, cells in rows:
            for index, count in self._turns.items():
                count.add(number, cell_at(cells, index))
            asked = tuple(cell_at(cells, index) for index in queries if index is not None)
            for index, names in self._names.items():
                names.add(asked if asked[0] else "", cell_at(cells, index))
            yield number, cells

    def names_of_bots(self) -> str:
        """What to do if a column has the names of bots that answer the same queries; '' if none can have them."""
        found = [self._looked_at[index] for index, names in self._names.items() if names.tell_apart()]
        option = f"add {map_option(found[0], WORDS[BOT])}" if found else ""
        return (
            f"If column {listed(found, ' or ')} has the name of the bot of each row, {option}."
            if found
            else ""
        )

    def warnings(self) -> list[str]:
        """One for each column, the first of them, with the option that would use it."""
        columns = self._columns
        known = {REFERENCE: columns.reference is not None, CONTEXT: bool(columns.contexts)}
        known |= {GOLD: columns.gold is not None, RETRIEVED: bool(columns.retrieved)}
        missing = [role for role, is_there in known.items() if not is_there]
        found = (self._warning(index, use, missing) for index, use in self._looked_at.items())
        return first_of([warning for warning in found if warning])

    def _warning(self, index: int, use: ColumnUse, missing: Sequence[str]) -> str:
        if self._is_copy(use) or self._is_repeated(index, use):
            return ""
        if index in self._turns:
            return self._without_turns(index, use)
        may_be_bot = index in self._left_out.named or index in self._left_out.hinted
        if may_be_bot and self._columns.shape != LONG:
            return self._sentence(use, "looks like the responses of a bot and was not used", [RESPONSE])
        if not self._rows.seen(index).lengths:
            return ""
        if CONTEXT in missing and index in self._parts:
            return self._sentence(use, f"looks like a part of the context and was not used; {USE_ALL}", [])
        if REFERENCE in missing and says_truth(use.header) and self._rows.seen(index).is_spaced:
            problem = "looks like the reference and was not used; no column is the reference"
            return self._sentence(use, problem, [REFERENCE])
        problem, roles = self._by_name(use, missing) or self._by_texts(index, use, missing) or ("", [])
        seen = self._rows.seen(index)
        may_be_context = CONTEXT in missing and may_be_passages(use.header) and seen.is_spaced
        if may_be_context and not problem and (seen.mean >= _LONG or self._rows.are_sentences(index)):
            problem, roles = "looks like the context and was not used; no column is the context", [CONTEXT]
        return self._sentence(use, problem, roles) if problem else ""

    def _without_turns(self, index: int, use: ColumnUse) -> str:
        """Of a column that is called like one of earlier turns, unless it has nothing but numbers and the like."""
        count = self._turns[index]
        if not (count.with_turns or self._rows.seen(index).lengths):
            return ""
        is_id = is_conversation(use.header) and not self._columns.conversations
        name_ids = (
            f" If it is the id of the conversation, add {map_option(use, WORDS[CONVERSATION])}."
            if is_id
            else ""
        )
        return (
            f"Column {use} looks like the earlier turns and was not used, because {count.why()}. To use it, correct or "
            f"clear these cells and add {map_option(use, WORDS[HISTORY])}.{name_ids} To silence this, add "
            f"{map_option(use, 'ignore')}."
        )

    def _by_name(self, use: ColumnUse, missing: Sequence[str]) -> tuple[str, list[str]] | None:
        """What a column looks like by its name, and the roles that it could have; None if the name does not tell."""
        is_wide = self._columns.shape == WIDE
        as_response = [RESPONSE, *{REFERENCE}.intersection(missing)]
        meaning = meaning_of(use.header, has_prefixed=is_wide)
        if use.why and meaning and meaning.role not in (BOT, ID):
            wanted = as_response if meaning.role == RESPONSE else [meaning.role]
            if meaning.role == HISTORY:
                wanted = []  # that would only turn the warning into an error
            return f"looks like the {meaning.role} and was not used, because {use.why}", wanted
        if is_wide and is_answer(use.header):
            return "looks like a response and was not used", as_response
        if role := likely_role(use.header, missing):
            verb = "has" if role in (GOLD, RETRIEVED) else "is"
            return f"looks like the {role} and was not used; no column {verb} the {role}", [role]
        return None

    def _by_texts(self, index: int, use: ColumnUse, missing: Sequence[str]) -> tuple[str, list[str]] | None:
        texts = [role for role in missing if role in (REFERENCE, CONTEXT)]
        seen, shape = self._rows.seen(index), self._columns.shape
        if shape == ONE and index in self._left_out.lengthy:
            is_chat = not self._columns.histories and self._rows.are_chats(index)
            return "contains texts like those of the responses and was not used", [
                *[HISTORY] * is_chat,
                RESPONSE,
                *texts,
            ]
        if not texts or shape == LONG or fmean(seen.lengths) < _LONG:
            return None
        may_be_bot = shape == ONE and not seen.is_structure and not is_about(use.header)
        problem = f"contains long texts and was not used; no column is the {' or the '.join(texts)}"
        return problem, [RESPONSE] * may_be_bot + texts

    def _is_copy(self, use: ColumnUse) -> bool:
        """Whether a field is called as one that is used and less deep: promptfoo writes its tests twice."""
        headers = [each.header for each in self._columns.used.values() if "." in each.header]
        ends = {header.rpartition(".")[2] for header in headers}
        return bool(use.why) and "." in use.header and use.header.rpartition(".")[2] in ends

    def _is_repeated(self, index: int, use: ColumnUse) -> bool:
        """Whether a field next to a response is the query again: a chain repeats its input."""
        columns = self._columns
        objects = {columns.uses[its].header.rpartition(".")[0] for its in columns.responses.values()}
        parent = use.header.rpartition(".")[0]
        return bool(parent) and parent in objects and self._rows.are_equal(index, columns.query)

    def _sentence(self, use: ColumnUse, problem: str, roles: Sequence[str]) -> str:
        options = " or ".join(self._option(use, role) for role in roles)
        remedy = f"To use it, add {options}; to silence this," if roles else "To silence this, add"
        return f"Column {use} {problem}. {remedy} {map_option(use, 'ignore')}."

    def _option(self, use: ColumnUse, role: str) -> str:
        """What gives a column a role. The other response has to be named as well if only its name says what it is."""
        option = map_option(use, WORDS[role])
        its = self._columns.used[next(iter(self._columns.responses.values()))]
        is_guessed = self._columns.shape == ONE and not self._asked.gives("bot", its.header)
        if role != RESPONSE or not is_guessed:
            return option
        return f"{option} (and {map_option(its, WORDS[role])}, to compare both)"

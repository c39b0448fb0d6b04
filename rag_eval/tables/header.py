"""The header row to columns: their roles, the shape of the table, and one list of all that is wrong with the header."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from rag_eval.errors import TableError, first_of
from rag_eval.tables.cells import Cell, cell_at, column_letter, is_sentence
from rag_eval.tables.columns import (
    LONG,
    OF_NO_BOT,
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
    map_option,
    parts_of_context,
    unused_amounts,
)
from rag_eval.tables.delimited import SEPARATORS
from rag_eval.tables.input_files import MAX_BOT_NAME, MAX_BOTS
from rag_eval.tables.messages import names_speakers, speakers_in
from rag_eval.tables.names import (
    BOT,
    CONTEXT,
    CONVERSATION,
    COST,
    GOLD,
    HISTORY,
    HUMAN,
    ID,
    KEPT,
    LATENCY,
    NAMED,
    NEARLY_PREFIXED,
    QUERY,
    REFERENCE,
    RESPONSE,
    RETRIEVED,
    UNUSED,
    after_prefix,
    called,
    context_with_number,
    folded,
    halves_of,
    is_about,
    is_conversation,
    is_label,
    is_no_bot,
    is_passage,
    is_variant,
    joins_by_bar,
    likely_bots,
    may_name_bots,
    meaning_of,
    speaks_of_sources,
    spendings_of,
    squeezed,
    without_answer,
)
from rag_eval.tables.roles import HUMAN_PREFIX, METRICS, bot_of, column_uses
from rag_eval.tables.sheets import ROWS_OF_TITLES
from rag_eval.tables.speakers import is_speaker, is_speakers
from rag_eval.tables.spending import DOUBTS
from rag_eval.tables.unused import FEW_TURNS, ROWS_SEEN, FirstRows, missing_roles

_Uses = Mapping[int, ColumnUse]
_Claims = Mapping[Claim, Sequence[int]]
Row = tuple[int, Sequence[Cell]]


def read_header(place: str, header: Sequence[Cell], asked: Asked, rows: FirstRows) -> Columns:
    """Give every column its role. Raises TableError with all that is wrong with the header.

    `rows` are the first ones below it, for columns that could be bots.
    """
    uses, wrongly_named = column_uses(place, header, asked, rows.why_no_amounts)
    if any(use.role == CONTEXT and use.bot is None for use in uses.values()):
        uses = {index: _with_texts(use, index, rows, asked) for index, use in uses.items()}
    has_ids = any(use.role == CONVERSATION for use in uses.values())
    uses = {index: _with_turns(use, index, rows, asked, has_ids=has_ids) for index, use in uses.items()}
    uses = _with_names_of_bots(uses, rows, asked)
    parts = [*_contexts_in_parts(uses, rows, asked)]
    uses |= {index: replace(uses[index], role=CONTEXT) for its in parts for index in its}
    further = {index for _, *others in parts for index in others}
    claims: dict[Claim, list[int]] = defaultdict(list)
    for index, use in uses.items():
        if use.is_used and use.role != ID and index not in further:
            claims[use.role, use.bot, use.metric].append(index)
    kept, unknown = _kept_columns(uses, asked.keep)
    problems = [
        *map(Problem, wrongly_named),
        *missing_roles(uses, claims, asked, rows, kept.values()),
        *map(Problem, _contradictions(uses, claims, asked)),
        *map(Problem, _too_many(uses, claims, asked)),
        *map(Problem, _no_bots(uses, claims, asked, rows)),
        *map(Problem, _ambiguous_labels(uses, asked.criteria)),
        *map(Problem, unknown),
    ]
    if problems:
        sentences, roles = zip(*problems, strict=True)
        raise TableError(
            [f"{place}: {sentence}" for sentence in first_of(sentences)],
            [*chain(*roles)] if all(roles) else (),
        )
    columns = _columns(uses, {claim: indexes[0] for claim, indexes in claims.items()}, kept, asked, parts)
    return replace(columns, warnings=(*columns.warnings, *_chats_as_queries(columns, rows)))


def _chats_as_queries(columns: Columns, rows: FirstRows) -> Iterator[str]:
    """A chat that is a list has a last question; in a text, what looks like turns may be part of the question."""
    if row := rows.first_chat(columns.query):
        yield (
            f"Column {columns.uses[columns.query]}: the text in row {row} looks like a chat and was read as one query. "
            'If it is a chat, write such cells as JSON, [{"role": "user", "content": "…"}, …], or move the turns '
            "before the question to a column History."
        )


def _with_texts(use: ColumnUse, index: int, rows: FirstRows, asked: Asked) -> ColumnUse:
    """The use of a column next to a context of all bots: one bot's only if its name is ours, or its cells are texts.

    `Chunks_A` may have the number of chunks, and `Documents A` names of files.
    """
    if use.role != CONTEXT or use.bot is None or asked.gives("context", use.header):
        return use
    if "context" in folded(use.header).split() or rows.may_be_contexts(index):
        return use
    return replace(use, role=UNUSED, bot=None, why="its first cells are not like texts")


def _with_turns(use: ColumnUse, index: int, rows: FirstRows, asked: Asked, *, has_ids: bool) -> ColumnUse:
    """The use of a column, which has earlier turns only if somebody said so or its cells have some.

    One such as `conversation` may have the ids of conversations instead, if no other column `has_ids`.
    """
    if use.role != HISTORY or asked.gives("history", use.header) or rows.have_turns(index):
        return use
    if is_conversation(use.header) and use.bot is None and not has_ids and rows.are_ids(index):
        return replace(use, role=CONVERSATION)
    return replace(use, role=UNUSED, bot=None, why=FEW_TURNS)


def _with_names_of_bots(uses: _Uses, rows: FirstRows, asked: Asked) -> dict[int, ColumnUse]:
    """The uses, if a column may have the names of bots by its name and has them by its cells.

    Of several that is the first one whose cells tell apart the rows of a query.
    """
    found = [
        index for index, use in uses.items() if use.role == BOT and not asked.gives("bot_name", use.header)
    ]
    if not found or not all(may_name_bots(uses[index].header) for index in found):
        return {**uses}
    may_be = [
        index
        for index, use in uses.items()
        if use.role in (BOT, UNUSED) and may_name_bots(use.header) and not asked.gives("ignore", use.header)
    ]
    query = next((index for index, use in uses.items() if use.role == QUERY), None)
    chosen = next((index for index in (*found, *may_be) if rows.tell_apart(index, query)), None)
    why = f"'{uses[chosen].header}' is the {BOT}" if chosen is not None else ""
    others = {index: replace(uses[index], role=UNUSED, why=why) for index in may_be if index != chosen}
    return {**uses, **others} | ({} if chosen is None else {chosen: replace(uses[chosen], role=BOT, why="")})


def _contexts_in_parts(uses: _Uses, rows: FirstRows, asked: Asked) -> Iterator[Sequence[int]]:
    """Positions of columns that are one context together: somebody says so, or they are called `Context 1` and so on.

    As many as there are bots may be one for each of them, and so may those with a bot between. If somebody says so,
    only those may that stand each by a bot.
    """
    claims = defaultdict(list)
    for index, use in uses.items():
        if use.role == CONTEXT:
            claims[use.bot].append(index)
    responses = [index for index, use in uses.items() if use.role == RESPONSE]
    for given in claims.values():
        headers = [uses[index].header for index in given]
        is_given = all(asked.gives("context", header) for header in headers)
        has_names = len({*map(squeezed, headers)}) == len(given) > 1
        if is_given and has_names and not _stand_by(given, responses):
            yield given
    free = {index: use for index, use in uses.items() if not asked.gives("ignore", use.header)}
    for its in () if claims else parts_of_context(free):
        numbers, found = zip(*its, strict=True)
        is_counted = numbers in (tuple(range(len(its))), tuple(range(1, len(its) + 1)))
        has_sentences = any(rows.seen(index).is_spaced for index in found)
        are_texts = has_sentences and all(map(rows.may_be_contexts, found))
        is_parted = any(min(found) < index < max(found) for index in responses)
        are_of_bots = len(responses) > 1 and (is_parted or len(responses) == len(its))
        if is_counted and are_texts and not are_of_bots:
            yield found
            return


def _stand_by(columns: Sequence[int], others: Sequence[int]) -> bool:
    """Whether each column has one of the others beside it, or with further columns between."""
    order = sorted([*((index, True) for index in columns), *((index, False) for index in others)])
    return len(columns) == len(others) and all(one[1] != other[1] for one, other in pairwise(order))


def _columns(
    uses: _Uses,
    columns: Mapping[Claim, int],
    kept: Mapping[str, int],
    asked: Asked,
    parts: Sequence[Sequence[int]],
) -> Columns:
    """The columns of a header without problems."""
    responses = {bot: index for (role, bot, _), index in columns.items() if role == RESPONSE and bot}
    metrics = dict.fromkeys(metric for role, _, metric in columns if role == HUMAN)
    shape = _shape(uses, columns, asked)
    uses = {index: _settled(use, shape, is_kept=index in kept.values()) for index, use in uses.items()}
    further = {index for _, *others in parts for index in others}
    not_read = further.difference(kept.values())
    used = {index: use for index, use in uses.items() if use.is_used and index not in not_read}
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
        histories=_by_bot(columns, responses, HISTORY),
        conversations=_by_bot(columns, responses, CONVERSATION),
        human={metric: _by_bot(columns, responses, HUMAN, metric) for metric in metrics},
        spent={role: its for role in (LATENCY, COST) if (its := _by_bot(columns, responses, role))},
        guessed=[
            use.letter
            for use in used.values()
            if use.role in (LATENCY, COST) and not asked.gives(WORDS[use.role], use.header)
        ],
        has_spare=any(use.role == UNUSED and use.why and spendings_of(use.header) for use in uses.values()),
        kept=kept,
        warnings=tuple(first_of([*_in_parts(uses, parts), *_warnings(uses, asked)])),
        content=tuple(
            index
            for index, use in used.items()
            if use.role not in (HUMAN, LATENCY, COST, KEPT, ID, CONVERSATION, BOT)
        ),
        shape=shape,
        bot=columns.get((BOT, None, "")),
        ids=tuple(index for index, use in uses.items() if use.role in (ID, CONVERSATION)),
        has_passages=context is not None and not parts and _speaks_of_passage(uses[context], asked),
        parts=parts,
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


def _may_be_names(cells: Sequence[Cell]) -> bool:
    """Whether all cells are as short as names; to look for words in long texts takes time."""
    return all(isinstance(cell, str) and len(cell) <= MAX_BOT_NAME for cell in cells)


def _roles(cells: Sequence[Cell], asked: Asked) -> dict[int, str]:
    """The roles of columns that had this header; none where it cannot be one."""
    try:
        uses, _ = column_uses("", cells, asked)
    except TableError:
        return {}
    return {index: use.role for index, use in uses.items() if use.is_used}


def is_readable(cells: Sequence[Cell], asked: Asked) -> bool:
    """Whether the row names a query and a bot."""
    return {QUERY, RESPONSE} <= {*_roles(cells, asked).values()}


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


def _in_parts(uses: _Uses, parts: Sequence[Sequence[int]]) -> Iterator[str]:
    for its in parts:
        names = listed([uses[index] for index in its], " and " if len(its) == 2 else ", ")
        yield f"Columns {names} were read as one context."


def _warnings(uses: _Uses, asked: Asked) -> Iterator[str]:
    bots = dict.fromkeys(use.bot for use in uses.values() if use.role == RESPONSE and use.bot)
    named = ", ".join(f"'{bot[:60]}'" for bot in islice(bots, 10))
    rename = f" To use it for one bot, rename it: the bots are called {named}." if len(bots) > 1 else ""
    parts = [uses[index] for its in parts_of_context(uses) for _, index in its]
    for use in uses.values():
        if asked.gives("ignore", use.header):
            continue
        if use in parts and use.role == CONTEXT + OF_NO_BOT:
            yield f"Column {use} looks like a part of the context and was not used; {USE_ALL}."
        elif use.role.endswith(OF_NO_BOT):
            role = use.role.removesuffix(OF_NO_BOT)
            shared = f" To use it for all bots, add {map_option(use, 'context')}." if role == CONTEXT else ""
            sentence = (
                f"Column {use} looks like the {role} of a bot, but no bot has this name; it was not used."
            )
            yield f"{sentence}{rename}{shared}"
        elif use.role == UNUSED and use.why.startswith(DOUBTS):
            yield unused_amounts(use)
        elif use.role == UNUSED and (metric := _labelled_metric(use.header)):
            yield (
                f"Column {use} looks like a human label and was not used. To use it, rename it to "
                f"{HUMAN_PREFIX}{metric}, or {HUMAN_PREFIX}{metric}_<bot>; to silence this, add "
                f"{map_option(use, 'ignore')}."
            )
        elif use.role == UNUSED and after_prefix(use.header, HUMAN_PREFIX):
            yield f"Column {use} looks like a human label, but names no metric; it was not used."


def _labelled_metric(header: str) -> str:
    """Of a label whose name has its words in another order, such as `A_Human_Faithfulness`; '' for any other name."""
    name = squeezed(header.replace(".", "_"))
    if "human" not in re.findall(r"[^\W_]+", header.casefold()):
        return ""
    return max((metric for metric in METRICS if squeezed(metric) in name), key=len, default="")


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
            + (f", or add {map_option(named[0], 'ignore')}" if named else "")
        )


def _no_bots(uses: _Uses, claims: _Claims, asked: Asked, rows: FirstRows) -> Iterator[str]:
    """Columns with the prefix of a bot whose names say that they are about a bot, or about another one's responses."""
    bots = {use.bot: use for use in _claiming(RESPONSE, uses, claims) if use.bot}
    places = {use.bot: index for index, use in uses.items() if use.role == RESPONSE and use.bot}
    reference = next(iter(claims.get((REFERENCE, None, ""), ())), None)
    names = {without_answer(bot): bot for bot in bots} | {folded(bot): bot for bot in bots}
    unused = (meaning_of(use.header, has_prefixed=False) for use in uses.values() if use.role == UNUSED)
    has_context = any(role == CONTEXT for role, *_ in claims)
    has_response = any(meaning and meaning.role == RESPONSE for meaning in unused)
    for name, use in bots.items():
        if asked.gives("bot", use.header) or not bot_of(use.header, asked.prefix):
            continue
        its = ((what, names[rest]) for what, rest in halves_of(name) if names.get(rest, name) != name)
        about, whose = next(its, ("", ""))
        if whose and _is_about(about, places[name], places[whose], reference, rows):
            join = f"; {USE_ALL}" if context_with_number(about) else ""
            roles = [] if join or not speaks_of_sources(about) else [WORDS[CONTEXT]]
            yield _no_bot(use, whose, roles) + join
            continue
        meaning = meaning_of(name, has_prefixed=True)
        is_context = bool(meaning and meaning.role == CONTEXT and not has_context)
        if is_no_bot(name) and (has_response or (is_context and len(bots) > 1)):
            yield _no_bot(use, "one", [WORDS[meaning.role]] if meaning and meaning.role in WORDS else [])
        elif (
            is_about(name)
            and rows.seen(places[name]).is_category
            and _are_judgements(places[name], places.values(), reference, rows)
        ):
            yield _no_bot(use, "the others", [])


def _are_judgements(index: int, others: Iterable[int], reference: int | None, rows: FirstRows) -> bool:
    """Whether a column has numbers, or a few words that are repeated, and another one has texts.

    They are answers if the ground truths are such, too, and some are right.
    """
    if all(rows.may_be_responses(index, other) for other in others):
        return False
    may_be_right = reference is not None and rows.may_be_responses(index, reference)
    return rows.seen(index).mean > 0 and not (may_be_right and rows.agree(index, reference))


def _is_about(name: str, index: int, other: int, reference: int | None, rows: FirstRows) -> bool:
    """Whether what follows the name of a bot says that a column has something about its responses, in column `other`.

    A variant of a bot may have any name as long as its texts are like those of the bot. Numbers, and a few words that
    are repeated, are judgements of its texts unless the name is that of a variant.
    """
    if is_no_bot(name) or context_with_number(name) is not None:
        return True
    if is_label(name):
        return rows.seen(index).mean > 0 and not rows.are_like(index, other)
    return not is_variant(name) and _are_judgements(index, [other], reference, rows)


def _no_bot(use: ColumnUse, whose: str, roles: Sequence[str]) -> str:
    options = ", ".join(map_option(use, role) for role in (*roles, "ignore"))
    return (
        f"column {use} does not look like the responses of a bot, but like something about {whose}; add {options}, or "
        f"{map_option(use, 'bot')} if it does contain responses"
    )


def _claiming(role: str, uses: _Uses, claims: _Claims) -> list[ColumnUse]:
    """The columns that want a role, those of one bot together."""
    return [uses[index] for claim, indexes in claims.items() if claim[0] == role for index in indexes]


def _too_many(uses: _Uses, claims: _Claims, asked: Asked) -> Iterator[str]:
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
        its = [uses[index] for index in indexes]
        names = listed(its, " and ")
        whose = (f" for {metric}" if metric else "") + (f" of bot '{bot}'" if bot else "")
        word = "" if metric else WORDS.get(role, "")
        if role in _OF_EACH_BOT and all(asked.gives(word, use.header) for use in its):
            keep = f"keep {map_option(its[0], word)} ({word} = {its[0].header[:60]} in [columns])"
            name = "" if bot else ", and for a column of one bot write the bot's name in the header"
            yield f"columns {names} cannot each be the {role}{whose or ' of all bots'}; {keep}{name}"
        else:
            choice = _choice(role, bot, word, its, uses)
            is_guessed = role == RESPONSE and not any(bot_of(use.header, asked.prefix) for use in its)
            rename = f"rename each to {asked.prefix}<name>, or" if is_guessed else "rename or"
            yield f"columns {names} could each be the {role}{whose}; {rename} remove all but one{choice}"


_OF_EACH_BOT = (CONTEXT, HISTORY, RETRIEVED)
"""Roles that somebody may give to a column of each bot, or to one of all bots."""


def _choice(role: str, bot: str | None, word: str, its: Sequence[ColumnUse], uses: _Uses) -> str:
    """How to say which of several columns has a role; '' for no way."""
    if len({use.header for use in its}) < len(its):  # no option tells one from the other
        own = next((use.bot for use in uses.values() if use.role == RESPONSE and use.bot), "")
        return (
            f"; one that is of a single bot is called like Context_{own}" if role == CONTEXT and own else ""
        )
    if word and not bot:
        return f", or choose one with {map_option(its[0], word)} ({word} = {its[0].header[:60]} in [columns])"
    if bot and role == CONTEXT:
        return f", or leave one out with {map_option(its[-1], 'ignore')}; {USE_ALL}"
    return ""


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


# --- A header of several rows ------------------------------------------------------------------------------------


def whole_header(
    header: Sequence[Cell], rows: Sequence[Row], asked: Asked, *, is_given: bool
) -> tuple[Sequence[Cell], int, bool]:
    """The header, how many of the `rows` below it belong to it, and whether the last of these may be a case.

    They repeat or refine it. `is_given` says that somebody named its row; then no row that may be a case belongs to it.
    """
    for count, (_, cells) in enumerate(rows[:2], 1):
        texts = [str(cell) for cell in cells if cell]
        if texts and all(map(_IMPORT_ID.match, texts)):
            worded = rows[0][1]
            if count == 2 and is_readable(worded, asked) and not is_readable(header, asked):
                return worded, count, False
            return header, count, False
    second = rows[0][1] if rows else ()
    if not (_may_be_names(header) and _may_be_names(second)):
        return header, 0, False
    roles = _roles(header, asked)
    if refined := _refined(header, roles, second, asked):
        return refined, 1, False
    is_repeated = not is_given and _is_repeated(header, roles, second, asked)
    return header, int(is_repeated), is_repeated


_IMPORT_ID = re.compile(r'\{"ImportId": ?"')
"""How the cells of the third row begin that Qualtrics writes, after the names and the wording of the questions."""
_KINDS = frozenset(("response", "openendedresponse"))
"""What SurveyMonkey writes below the name of a column with texts."""


def _is_repeated(
    header: Sequence[Cell], above: Mapping[int, str], second: Sequence[Cell], asked: Asked
) -> bool:
    """Whether a row says nothing but what the columns of queries, ground truths and responses are, by those `above`."""
    below = _roles(second, replace(asked, named=()))
    texts = {
        index: squeezed(str(cell))
        for index, role in above.items()
        if role in (QUERY, REFERENCE, RESPONSE) and (cell := cell_at(second, index))
    }
    return {QUERY, RESPONSE} <= {above[index] for index in texts} and (
        all(
            below.get(index) == above[index] or text == squeezed(str(header[index]))
            for index, text in texts.items()
        )
        or _KINDS.issuperset(texts.values())
    )


def _refined(
    header: Sequence[Cell], above: Mapping[int, str], second: Sequence[Cell], asked: Asked
) -> list[Cell]:
    """The header that two rows make, of which the upper one has groups over several columns, such as `Bot`.

    [] if the second row may be a case: these have a query, while of two such rows only one names it.
    """
    width = max(len(header), len(second))
    pairs = [(str(cell_at(header, index)), str(cell_at(second, index))) for index in range(width)]
    below = _roles(second, asked)
    groups: list[str] = []
    for upper, _ in pairs:
        groups.append(upper or "".join(groups[-1:]))
    sizes = Counter(group for group, (_, lower) in zip(groups, pairs, strict=True) if group and lower)
    answered = {groups[index] for index, role in below.items() if role == RESPONSE}
    cells: list[Cell] = []
    for index, (upper, lower) in enumerate(pairs):
        group = groups[index] if sizes[groups[index]] > 1 else ""
        is_name = index in below or spendings_of(lower) or (group and not bot_of(group, asked.prefix))
        if is_sentence(lower) or (lower and not is_name):
            return []
        of_one = bool(group) and group in answered
        role = below.get(index, "")
        cells.append(_joined(upper or group, lower, role, asked.prefix, of_one=of_one) if lower else upper)
    named = [pairs[index] for index, role in above.items() if role == QUERY]
    if any(lower and squeezed(lower) != squeezed(upper) for upper, lower in named):
        return []
    if not named and RESPONSE in below.values():
        return []
    roles = _roles(cells, asked).values()
    kinds = likely_bots(dict(enumerate(map(str, cells))), asked.prefix).values()
    is_better = max(sizes.values(), default=0) > 1 and (
        RESPONSE in roles or not {NAMED, NEARLY_PREFIXED}.isdisjoint(kinds)
    )
    return cells if is_better and QUERY in roles else []


def _joined(upper: str, lower: str, role: str, prefix: str, *, of_one: bool) -> str:
    """The name of a column with one above the other; `role` is what the lower one means by itself.

    `of_one` says that a response stands below the upper one, too, so that a context is of this bot.
    """
    of_bot = bot_of(upper, prefix)
    has_both = re.search(rf"(?<!\w){re.escape(folded(upper))}(?!\w)", folded(lower))
    if role == RESPONSE and of_bot and not has_both:
        return upper
    is_shared = role == CONTEXT and not (of_bot or of_one)
    is_whole = bot_of(lower, prefix) or role in (QUERY, REFERENCE) or is_shared
    return lower if is_whole or has_both or not upper else f"{upper} {lower}"


# --- Tables of another shape -------------------------------------------------------------------------------------


def other_shape(
    place: str,
    header_row: int,
    header: Sequence[Cell],
    rows: Sequence[Row],
    asked: Asked,
    *,
    separators: str,
    is_given: bool,
    is_text: bool,
) -> tuple[str, bool]:
    """What a table is whose header cannot be read, with the remedy, and whether nothing else needs to be said.

    '' for no idea. Any of the `separators` may separate the cells of a row that seems to have only one. `is_given`
    says that somebody named the row of the header, `is_text` that the file is a text with separators.
    """
    roles = _roles(header, asked)
    if turned := turned_table(place, header, rows, asked, is_readable=False):
        return turned, True
    if messages := _row_per_message(place, header, rows, {*roles.values()}):
        return messages, True
    if joined := _in_one_cell(place, header, asked, is_text=is_text):
        return joined, True
    if is_given:
        unnamed = _without_header(place, header, rows, asked)
        return unnamed, bool(unnamed) and not asked.named
    for number, cells in rows[:ROWS_OF_TITLES]:
        ways = [cells, *(str(cells[0]).split(each) for each in separators if len(cells) == 1)]
        if any(_may_be_names(way) and is_readable(way, asked) for way in ways):
            sentence = (
                f"{place}: row {header_row} was taken for the header, being the first that is not blank, but row "
                f"{number} looks like it; delete the rows above row {number}, or add --header-row {number}"
            )
            return sentence, {QUERY, RESPONSE}.isdisjoint(roles.values())
    if pivoted := _pivoted(place, header_row, header, rows, asked):
        return pivoted, True
    texts = [cell for cell in header if isinstance(cell, str) and cell]
    has_values = not roles and (len({*texts}) < len(texts) or any(map(_NUMBER.match, texts)))
    if texts and (has_values or 2 * sum(map(is_sentence, texts)) >= len(texts)):
        sentence = (
            f"{place}: row {header_row} looks like data; if the file has no header, add --header-row 0 and call the "
            "columns by their letters, as in --map A=query --map B=bot"
        )
        return sentence, False
    return "", False


def _in_one_cell(place: str, header: Sequence[Cell], asked: Asked, *, is_text: bool) -> str:
    """That all names stand in one cell, as where a spreadsheet program expected another separator; or ''."""
    texts = [str(cell) for cell in header if cell]
    for sign, word in SEPARATORS.items() if len(texts) == 1 else ():
        if is_readable([name.strip().strip('"') for name in texts[0].split(sign)], asked):
            option = f"use --sep {'tab' if sign.isspace() else shlex.quote(sign)}"
            split = "split the texts into columns (in Excel: Data, Text to Columns), or read the original text file"
            remedy = option if is_text else split
            return f"{place}: the names of all columns are in one cell, separated by {word}; {remedy}"
    return ""


def _pivoted(place: str, header_row: int, header: Sequence[Cell], rows: Sequence[Row], asked: Asked) -> str:
    """That the names of the queries stand below those of the responses, as in a table that pandas pivoted; or ''."""
    wide = {index for index, role in _roles(header, asked).items() if role == RESPONSE}
    for number, cells in rows[:_MOST_LEVELS] if wide else ():
        names = {index for index, cell in enumerate(cells) if cell}
        if QUERY in _roles(cells, asked).values() and not names & wide:
            return (
                f"{place}: rows {header_row} to {number} look like the header of a pivoted table; write them as one "
                f"row, with a name such as {asked.prefix}<name> for each column of responses"
            )
    return ""


_MOST_LEVELS = 4
"""Rows of the header of such a table below the first."""
_NUMBER = re.compile(r"\d[\d\W_]*\Z")
"""A number or a date, which no column is called alone."""


def _without_header(place: str, header: Sequence[Cell], rows: Sequence[Row], asked: Asked) -> str:
    """What the columns of a table without a header begin with, with the options that are missing; '' for others."""
    if not rows or any(cell != column_letter(index) for index, cell in enumerate(header)):
        return ""
    number, cells = rows[0]
    roles = {*_roles(header, asked).values()}
    words = [word for role, word in ((QUERY, "query"), (RESPONSE, "bot")) if role not in roles]
    if not words:
        return ""
    options = " and ".join(f"--map LETTER={word}" for word in words)
    shown = ", ".join(
        f"{header[index]} '{_shortened(str(cell))}'" for index, cell in enumerate(cells[:10]) if cell
    )
    return f"{place}: the columns of a table without a header have no roles yet; add {options} (row {number}: {shown})"


def _shortened(text: str) -> str:
    line = " ".join(text[:200].split())
    return line if len(line) <= 40 else f"{line[:39]}…"


def turned_table(
    place: str, header: Sequence[Cell], rows: Sequence[Row], asked: Asked, *, is_readable: bool
) -> str:
    """That each query is a column, with the remedy; '' for a table in which it is a row.

    The header `is_readable` if it names a query and a bot, which it may do by chance.
    """
    if not 0 < len(rows) < ROWS_SEEN:
        return ""
    table = [header, *(cells for _, cells in rows)]
    first = min(next((index for index, cell in enumerate(cells) if cell), len(cells)) for cells in table)
    names = [str(cell) for cells in table if (cell := cell_at(cells, first))]
    below = names[bool(cell_at(header, first)) :]
    others = [cell for cell in header[first + 1 :] if isinstance(cell, str) and cell]
    if len(others) < 2 or not _may_be_names(names) or len({*map(folded, names)}) < len(names):
        return ""
    roles = _roles(names, Asked(prefix=asked.prefix))
    found = {role for index, role in roles.items() if index >= len(names) - len(below)} & _ROLES_OF_TEXTS
    has_questions = 2 * sum(map(is_sentence, others)) >= len(others) and not is_sentence(names[0])
    are_names = len(roles) == len(names) or (
        not is_readable and not {QUERY, REFERENCE}.isdisjoint(roles.values())
    )
    if not (found and has_questions) and not (RESPONSE in found and are_names):
        return ""
    shown = ", ".join(f"'{name[:60]}'" for name in below[:4])
    return (
        f"{place}: each query is a column, because column {column_letter(first)} contains names of roles ({shown}); "
        "turn the table so that each query is a row: copy it in Excel and use Paste Special > Transpose"
    )


_ROLES_OF_TEXTS = {QUERY, REFERENCE, RESPONSE, CONTEXT}


def _row_per_message(place: str, header: Sequence[Cell], rows: Sequence[Row], roles: Collection[str]) -> str:
    """That each row is a message of a chat, with the remedy; '' for other tables."""
    if REFERENCE in roles:
        return ""
    for index, name in enumerate(header):
        found = dict.fromkeys(str(cell) for _, cells in rows if (cell := cell_at(cells, index)))
        speakers = speakers_in(rows, index) if name else ()
        names_them = names_speakers(name, header) and 1 < len(speakers) < len(rows)
        if is_speakers(speakers) or names_them:
            use = ColumnUse(column_letter(index), str(name), "")
            shown = " and ".join(f"'{each[:60]}'" for each in islice(found, 2))
            if not is_speakers(speakers):
                unknown = [each for each in found if not is_speaker(each)] or [*found]
                shown = " and ".join(f"'{each[:60]}'" for each in unknown[:2])
                return (
                    f"{place}: each row is one message, but the speakers in column {use} do not say who is the user "
                    f"and who is the bot ({shown}); write user, assistant, or system for other speakers"
                )
            return (
                f"{place}: each row is one message, because column {use} names the speakers ({shown}); add "
                "--map COLUMN=conversation for the column with the id of the conversation, and --map COLUMN=query for "
                "that with the text of the message"
            )
    return ""

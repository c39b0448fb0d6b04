"""What is wrong with a header as a whole: what is missing, claimed twice or contradictory. With the remedy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from rag_eval.tables.bounds import MAX_BOT_NAME, MAX_BOTS
from rag_eval.tables.column_uses import (
    MOST_NAMED,
    WORDS,
    Asked,
    Claim,
    ColumnUse,
    listed,
    map_entry,
    map_option,
    matches,
)
from rag_eval.tables.names import BOT, HUMAN, QUERY, REFERENCE, RESPONSE, folded, is_answer, squeezed
from rag_eval.tables.roles import METRICS, bot_of
from rag_eval.tables.unused import FirstRows, LeftOut, left_out


def header_problems(
    uses: Mapping[int, ColumnUse],
    claims: Mapping[Claim, Sequence[int]],
    asked: Asked,
    missing: "BotsProblem | None",
) -> Iterator[str]:
    """`missing` is what `bots_problem` found."""
    if (QUERY, None, "") not in claims:
        yield (
            "No Query column found; name it Query, Question, Input or Prompt, or add --map COLUMN=query "
            f"(found: {listed(uses.values())})"
        )
    if missing:
        yield missing.sentence
    responses = _responses(claims)
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
            names = listed([uses[index] for index in indexes], " and ")
            about = f" for {metric}" if metric else ""
            owner = f" of bot '{bot}'" if bot else ""
            yield (
                f"columns {names} could each be the {role}{about}{owner}; rename or remove all but one"
                f"{_choice(uses[indexes[0]])}"
            )


def _choice(use: ColumnUse) -> str:
    """The option that says which of several columns it is; '' where none can."""
    if use.role not in WORDS or use.bot or use.metric:
        return ""
    word = WORDS[use.role]
    return f", or choose one with {map_option(use, word)} ({word} = {use.header[:60]} in [columns])"


def _responses(claims: Mapping[Claim, Sequence[int]]) -> list[int]:
    return [index for (role, _, _), its in claims.items() for index in its if role == RESPONSE]


class BotsProblem(NamedTuple):
    """Bots that are missing, or that would be."""

    sentence: str
    roles: Sequence[str] = ()
    """What --map would take to read them; () where that is for a person to say."""


def bots_problem(
    uses: Mapping[int, ColumnUse],
    claims: Mapping[Claim, Sequence[int]],
    asked: Asked,
    rows: FirstRows,
    kept: Collection[int],
) -> BotsProblem | None:
    """What is wrong with the columns of responses. Of the cells, only those of the first `rows` are known."""
    responses = _responses(claims)
    query, reference = (next(iter(claims.get((role, None, ""), ())), None) for role in (QUERY, REFERENCE))
    if not responses and reference is None:
        return _no_responses(uses, claims, asked, left_out(uses, asked, rows, query, kept=kept))
    if not responses:
        return _no_responses(uses, claims, asked, left_out(uses, asked, rows, reference, kept=kept, least=0))
    given = [each.column for each in asked.named if each.role == "bot"]
    guessed = {
        index: uses[index]
        for index in responses
        if not bot_of(uses[index].header, asked.prefix)
        and not any(matches(uses[index].header, column) for column in given)
    }
    found = left_out(uses, asked, rows, responses[0], kept=kept, with_blank=True)
    if len(guessed) > 1:
        return _several_answers({**guessed, **found.named}, has_reference=reference is not None)
    if given or (BOT, None, "") in claims:
        return None
    if guessed and found.named:
        return _lone_answer(guessed, found.named, asked.prefix, has_reference=reference is not None)
    return _misspelt(found.nearly, asked.prefix) if found.nearly and not guessed else None


def _no_responses(
    uses: Mapping[int, ColumnUse], claims: Mapping[Claim, Sequence[int]], asked: Asked, found: LeftOut
) -> BotsProblem:
    every, prefix = listed(uses.values()), asked.prefix
    if taken := [use for use in uses.values() if bot_of(use.header, prefix)]:
        return BotsProblem(
            f"No column with responses is left, because --map or [columns] gives {taken[0]} another role; correct it, "
            f"or add --map COLUMN=bot for a column with responses (found: {every})"
        )
    is_test_set = (QUERY, None, "") in claims and (REFERENCE, None, "") in claims
    if found.named:
        return BotsProblem(
            f"No {prefix}* columns found, but {_looking(found.named)}; add {_options(found.named)}, or correct [bots] "
            f"strip_prefix, which is '{prefix}'",
            _as_bots(found.named),
        )
    if texts := dict(sorted({**found.hinted, **found.lengthy}.items())):
        return BotsProblem(
            f"No {prefix}* columns found, and no column of responses such as answer or response; if "
            f"{listed(texts.values(), ' or ')} contains responses, add {_options(texts)}, or correct [bots] "
            f"strip_prefix, which is '{prefix}'"
            + ("; if none does, this is a test set: run the bots on it first" if is_test_set else ""),
            _as_bots(texts),
        )
    if is_test_set:
        return BotsProblem(
            f"No column with responses: this looks like a test set; run the bots on it and add a column {prefix}<name> "
            f"per bot, or add --map COLUMN=bot if a column contains responses (found: {every})"
        )
    return BotsProblem(
        f"No {prefix}* columns found, and no column of responses such as answer or response; rename response "
        f"columns to {prefix}<name>, add --map COLUMN=bot, or set strip_prefix in [bots] (found: {every})"
    )


def _lone_answer(
    answer: Mapping[int, ColumnUse], others: Mapping[int, ColumnUse], prefix: str, *, has_reference: bool
) -> BotsProblem:
    """One column would be the only bot by its name, and others are left out that are bots by theirs."""
    (lone,) = answer.values()
    is_truth = _is_truth(lone) and not has_reference
    bots = others if is_truth else dict(sorted({**answer, **others}.items()))
    truth = f"; if {lone} is the ground truth, also add {map_option(lone, 'reference')}" if is_truth else ""
    set_prefix = "" if prefix == Asked().prefix else f", or correct [bots] strip_prefix, which is '{prefix}'"
    return BotsProblem(
        f"No {prefix}* columns found: {lone} would be the only bot, but {_looking(others)}; add {_options(bots)}"
        f"{set_prefix}{truth}; {_ignoring(others)}",
        _as_bots(bots),
    )


def _misspelt(others: Mapping[int, ColumnUse], prefix: str) -> BotsProblem:
    """Next to columns with the prefix."""
    return BotsProblem(
        f"{_looking(others)}, without the prefix '{prefix}'; rename each to {prefix}<name>, or add {_options(others)}; "
        f"{_ignoring(others)}",
        _as_bots(others),
    )


def _several_answers(guessed: Mapping[int, ColumnUse], *, has_reference: bool) -> BotsProblem:
    """Several columns that may be responses, by names alone: nobody said that each is a bot."""
    headers = ", ".join(use.header[:60] for use in guessed.values())
    answers = {index: use for index, use in guessed.items() if is_answer(use.header.rpartition(".")[2])}
    truth = next((use for use in answers.values() if _is_truth(use)), None)
    if has_reference or len(answers) < 2:
        truth = None
    other = f"; or, if it is the ground truth, {map_option(truth, 'reference')}" if truth else ""
    bots = {index: use for index, use in guessed.items() if use is not truth}
    return BotsProblem(
        f"columns {listed(guessed.values(), ' and ')} could each be the response of a bot; name those that are with "
        f"{_options(guessed)}, or with bots = {headers} in [columns]{other}",
        _as_bots(bots),
    )


def _is_truth(use: ColumnUse) -> bool:
    """Whether the name may as well be that of the ground truth."""
    return folded(use.header.rpartition(".")[2]) == "answer"


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


def _contradictions(
    uses: Mapping[int, ColumnUse],
    responses: Sequence[int],
    claims: Mapping[Claim, Sequence[int]],
    asked: Asked,
) -> Iterator[str]:
    named = claims.get((BOT, None, ""), ())
    if len(responses) > 1 and len(named) == 1:
        given = [each.origin for each in asked.named if each.role == "bot_name"]
        if given:
            yield (
                f"column {uses[named[0]]} cannot name the bot of each row ({given[0]}), because each of "
                f"{listed([uses[index] for index in responses], ' and ')} is the response of a bot; remove one of them"
            )
    if asked.bot_name and (named or any(uses[index].bot != asked.bot_name for index in responses)):
        yield (
            f"--bot-name '{asked.bot_name[:60]}' is for a table with one column of responses that names no bot; leave "
            f"it out, because column {uses[(*named, *responses)[0]]} names "
            f"{'the bots' if named or len(responses) > 1 else 'its bot'}"
        )


def ambiguous_labels(uses: Mapping[int, ColumnUse], criteria: Collection[str]) -> Iterator[str]:
    """Labels of a criterion that is called as a metric is, or as another criterion but for case and separators."""
    metrics = {squeezed(metric): metric for metric in METRICS}
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

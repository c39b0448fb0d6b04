"""What is wrong with a header as a whole: what is missing, claimed twice or contradictory. With the remedy."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from rag_eval.tables.bounds import MAX_BOT_NAME, MAX_BOTS
from rag_eval.tables.column_uses import (
    MOST_NAMED,
    WORDS,
    Asked,
    Claim,
    ColumnUse,
    listed,
    map_option,
    matches,
)
from rag_eval.tables.names import BOT, HUMAN, QUERY, REFERENCE, RESPONSE, folded, is_answer, squeezed
from rag_eval.tables.roles import METRICS, bot_of


def header_problems(
    uses: Mapping[int, ColumnUse], claims: Mapping[Claim, Sequence[int]], asked: Asked
) -> Iterator[str]:
    found = listed(uses.values())
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


def _no_responses(
    uses: Mapping[int, ColumnUse], claims: Mapping[Claim, Sequence[int]], prefix: str, found: str
) -> str:
    if taken := [use for use in uses.values() if bot_of(use.header, prefix)]:
        return (
            f"No column with responses is left, because --map or [columns] gives {taken[0]} another role; correct it, "
            f"or add --map COLUMN=bot for a column with responses (found: {found})"
        )
    if (QUERY, None, "") in claims and (REFERENCE, None, "") in claims:
        return (
            f"No column with responses: this looks like a test set; run the bots on it and add a column {prefix}<name> "
            f"per bot, or add --map COLUMN=bot if a column contains responses (found: {found})"
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
        if not bot_of(uses[index].header, asked.prefix)
        and not any(matches(uses[index].header, column) for column in given)
    ]
    if len(guessed) > 1:
        options = " ".join(map_option(use, "bot") for use in guessed[:MOST_NAMED])
        headers = ", ".join(use.header[:60] for use in guessed[:MOST_NAMED])
        truth = next((use for use in guessed if folded(use.header.rpartition(".")[2]) == "answer"), None)
        is_plain = sum(is_answer(use.header.rpartition(".")[2]) for use in guessed) > 1
        other = (
            f"; or, if it is the ground truth, {map_option(truth, 'reference')}"
            if truth is not None and is_plain and REFERENCE not in {use.role for use in uses.values()}
            else ""
        )
        yield (
            f"columns {listed(guessed, ' and ')} could each be the response of a bot; name those that are with "
            f"{options}, or with bots = {headers} in [columns]{other}"
        )


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

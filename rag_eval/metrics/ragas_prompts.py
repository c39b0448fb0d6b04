"""The prompts of ragas' metric collections, as text.

A prompt of ragas is the same text up to its input; that part is rendered once, and the input is what ragas' own
classes make of it.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from rag_eval.judge.calls import EARLIER_TURNS, USER_SAID, Message, plain_turns
from rag_eval.judge.echoes import Examples, texts_in
from rag_eval.records import Turn

_MARK = "\x00input\x00"


def statements_prompt(question: str, answer: str, history: Sequence[Turn] = ()) -> tuple[Message, ...]:
    """Break an answer down into statements."""
    return _prompt(
        "faithfulness", "StatementGeneratorPrompt", _turns(history), question=question, answer=answer
    )


def verdicts_prompt(
    context: str, statements: list[str], user_said: Sequence[str] = ()
) -> tuple[Message, ...]:
    """Judge which statements the context supports, or what the user said."""
    more = _More("user_said", list(user_said), USER_SAID) if user_said else None
    return _prompt("faithfulness", "NLIStatementPrompt", more, context=context, statements=statements)


def question_prompt(response: str, query: str = "") -> tuple[Message, ...]:
    """Guess the question that a response answers, and whether the response is evasive.

    The query is not shown; but whoever guesses it repeats no example.
    """
    return _prompt("answer_relevancy", "AnswerRelevancePrompt", also_about=query, response=response)


def usefulness_prompt(
    question: str, context: str, answer: str, history: Sequence[Turn] = ()
) -> tuple[Message, ...]:
    """Judge whether one chunk was useful for arriving at an answer."""
    return _prompt(
        "context_precision",
        "ContextPrecisionPrompt",
        _turns(history),
        question=question,
        context=context,
        answer=answer,
    )


def attribution_prompt(
    question: str, context: str, answer: str, history: Sequence[Turn] = ()
) -> tuple[Message, ...]:
    """Judge which statements of the reference can be attributed to the context."""
    return _prompt(
        "context_recall",
        "ContextRecallPrompt",
        _turns(history),
        question=question,
        context=context,
        answer=answer,
    )


def classification_prompt(
    question: str, answer: list[str], ground_truth: list[str], history: Sequence[Turn] = ()
) -> tuple[Message, ...]:
    """Sort the statements of response and reference into TP, FP and FN."""
    return _prompt(
        "answer_correctness",
        "CorrectnessClassifierPrompt",
        _turns(history),
        question=question,
        answer=answer,
        ground_truth=ground_truth,
    )


class _More(NamedTuple):
    """A field that ragas' input does not have, put before those that it has."""

    name: str
    value: list[Any]
    words: str
    """What the prompt says of it."""


def _turns(history: Sequence[Turn]) -> _More | None:
    return _More("history", plain_turns(history), EARLIER_TURNS) if history else None


def _prompt(
    collection: str, name: str, more: _More | None = None, *, also_about: str = "", **fields: Any
) -> tuple[Message, ...]:
    before, after, input_model, examples = _template(collection, name)
    document = input_model(**fields).model_dump_json(indent=4, exclude_none=True)
    if more:
        document = json.dumps({more.name: more.value, **json.loads(document)}, indent=4, ensure_ascii=False)
    case = "\n".join((*texts_in([fields, more.value if more else []]), also_about))
    last_paragraph = before.rfind("\n\n") + 2
    message = Message("user", f"{before}{document}{after}", examples, case, last_paragraph)
    return (message.with_words(more.words) if more else message,)


@cache
def _template(collection: str, name: str) -> tuple[str, str, Any, Examples]:
    """What ragas writes before and after the input, the input's type, and the examples."""
    from rag_eval.metrics.ragas_import import load

    prompt = getattr(load()[collection], name)()
    before, after = prompt.to_string(_Marked()).split(_MARK)
    given, replied = ([pair[side].model_dump() for pair in prompt.examples] for side in (0, 1))
    examples = Examples(texts_in(given), texts_in(replied), prompt.instruction)
    return before, after, prompt.input_model, examples


class _Marked:
    """Stands in for an input, so that its place in the prompt can be found."""

    def model_dump_json(self, **_: Any) -> str:
        return _MARK

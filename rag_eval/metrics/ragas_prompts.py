"""The prompts of ragas' metric collections, as text.

A prompt of ragas is the same text up to its input; that part is rendered once, and the input is what ragas' own
classes make of it.
"""

from functools import cache
from typing import Any

from rag_eval.judge.calls import Message
from rag_eval.judge.echoes import Examples, texts_in

_MARK = "\x00input\x00"


def statements_prompt(question: str, answer: str) -> tuple[Message, ...]:
    """Break an answer down into statements."""
    return _prompt("faithfulness", "StatementGeneratorPrompt", question=question, answer=answer)


def verdicts_prompt(context: str, statements: list[str]) -> tuple[Message, ...]:
    """Judge which statements the context supports."""
    return _prompt("faithfulness", "NLIStatementPrompt", context=context, statements=statements)


def question_prompt(response: str, query: str = "") -> tuple[Message, ...]:
    """Guess the question that a response answers, and whether the response is evasive.

    The query is not shown; but whoever guesses it repeats no example.
    """
    return _prompt("answer_relevancy", "AnswerRelevancePrompt", also_about=query, response=response)


def usefulness_prompt(question: str, context: str, answer: str) -> tuple[Message, ...]:
    """Judge whether one chunk was useful for arriving at an answer."""
    return _prompt(
        "context_precision", "ContextPrecisionPrompt", question=question, context=context, answer=answer
    )


def attribution_prompt(question: str, context: str, answer: str) -> tuple[Message, ...]:
    """Judge which statements of the reference can be attributed to the context."""
    return _prompt("context_recall", "ContextRecallPrompt", question=question, context=context, answer=answer)


def classification_prompt(question: str, answer: list[str], ground_truth: list[str]) -> tuple[Message, ...]:
    """Sort the statements of response and reference into TP, FP and FN."""
    return _prompt(
        "answer_correctness",
        "CorrectnessClassifierPrompt",
        question=question,
        answer=answer,
        ground_truth=ground_truth,
    )


def _prompt(collection: str, name: str, *, also_about: str = "", **fields: Any) -> tuple[Message, ...]:
    before, after, input_model, examples = _template(collection, name)
    document = input_model(**fields).model_dump_json(indent=4, exclude_none=True)
    case = "\n".join((*texts_in(fields), also_about))
    last_paragraph = before.rfind("\n\n") + 2
    return (Message("user", f"{before}{document}{after}", examples, case, last_paragraph),)


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

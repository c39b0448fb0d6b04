"""The prompts of ragas' metric collections, as text. The only module that imports ragas.

It happens when the metrics are made, and takes no more of ragas than its prompts. A prompt of ragas is the same text up
to its input; that part is rendered once, and the input is what ragas' own classes make of it.
"""

import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from rag_eval.errors import InputError
from rag_eval.judge.calls import Message

_COLLECTIONS = (
    "answer_correctness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "faithfulness",
)
_MARK = "\x00input\x00"
_TESTED = "ragas==0.4.3"
"""Its prompts need pydantic and nothing else, so none of its requirements has to be installed."""


@cache
def load() -> Mapping[str, Any]:
    """The modules with prompts, by collection.

    Raises InputError when ragas is not there. Best called before threads begin, which may import other packages.
    """
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # read at import; its telemetry would block and phone home
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside ragas and langchain, none of them ours
            return _import_alone()
    except ImportError as error:
        raise InputError(
            f"an LLM judge needs the package ragas, which cannot be imported ({error}); install it with "
            f"pip install --no-deps {_TESTED}, or use --judge offline"
        ) from error


def statements_prompt(question: str, answer: str) -> tuple[Message, ...]:
    """Break an answer down into statements."""
    return _prompt("faithfulness", "StatementGeneratorPrompt", question=question, answer=answer)


def verdicts_prompt(context: str, statements: list[str]) -> tuple[Message, ...]:
    """Judge which statements the context supports."""
    return _prompt("faithfulness", "NLIStatementPrompt", context=context, statements=statements)


def question_prompt(response: str) -> tuple[Message, ...]:
    """Guess the question that a response answers, and whether the response is evasive."""
    return _prompt("answer_relevancy", "AnswerRelevancePrompt", response=response)


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


def _prompt(collection: str, name: str, **fields: Any) -> tuple[Message, ...]:
    before, after, input_model = _template(collection, name)
    document = input_model(**fields).model_dump_json(indent=4, exclude_none=True)
    return (Message("user", f"{before}{document}{after}"),)


@cache
def _template(collection: str, name: str) -> tuple[str, str, Any]:
    """What ragas writes before and after the input, and the input's type."""
    prompt = getattr(load()[collection], name)()
    before, after = prompt.to_string(_Marked()).split(_MARK)
    return before, after, prompt.input_model


class _Marked:
    """Stands in for an input, so that its place in the prompt can be found."""

    def model_dump_json(self, **_: Any) -> str:
        return _MARK


def _import_alone() -> Mapping[str, Any]:
    """The modules without the packages around them, whose own imports take seconds.

    They are let go of again, so that whoever wants ragas as a whole gets it.
    """
    if "ragas" in sys.modules:
        return _imported()
    # A list of its own each time, since another thread may be going through the one that is there.
    sys.meta_path = [_Folders, *sys.meta_path]
    try:
        return _imported()
    except (ImportError, AttributeError):
        pass  # a ragas whose prompts need more of it, or none at all
    finally:
        sys.meta_path = [finder for finder in sys.meta_path if finder is not _Folders]
        for each in list(sys.modules):  # other threads import meanwhile
            if each.partition(".")[0] == "ragas":
                del sys.modules[each]
    return _imported()


def _imported() -> Mapping[str, Any]:
    return {name: importlib.import_module(f"ragas.metrics.collections.{name}.util") for name in _COLLECTIONS}


class _Folders:
    """Finds the packages of ragas as mere folders: modules inside can be imported, and nothing else is."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name.partition(".")[0] == "ragas" else None
        if found is None or found.submodule_search_locations is None:
            return None
        folder = ModuleSpec(name, loader=None, is_package=True)
        folder.submodule_search_locations = found.submodule_search_locations
        return folder

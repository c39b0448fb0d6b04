"""Verdicts on one case, for one metric or for several at once: what the judge is asked, and what it may reply.

The judge gives verdicts, never scores: each metric computes its score from them by its own formula. A call shows the
judge only the texts that its metrics need. It names neither thresholds nor bots, so other thresholds cost no call.
"""

import json
from collections.abc import Mapping, Sequence, Set
from functools import cache
from typing import Any, Self, cast, get_args

from pydantic import ValidationInfo, create_model, model_validator

from rag_eval.judge.calls import Call, Message
from rag_eval.judge.replies import NEW
from rag_eval.metrics.numbered import DATA_ONLY
from rag_eval.metrics.omissions import skipped_sentence, skips_most
from rag_eval.metrics.reply_types import ClosenessLevel, StrictReply, Verdict
from rag_eval.records import Case
from rag_eval.texts.tokens import estimated_tokens
from rag_eval.texts.words import has_words, sentences

NO_CHUNK = 0
"""In place of a chunk's number, which counts from 1: the chunks do not support the statement."""


# No docstrings in the types: they would be sent along with the schema. Judges write the fields in this order.
class ResponseStatement(StrictReply):
    statement: str
    chunk: int
    in_ground_truth: Verdict
    reason: str


class GroundTruthStatement(StrictReply):
    statement: str
    chunk: int
    in_response: Verdict


class Relevancy(StrictReply):
    reason: str
    evasive: Verdict
    closeness: ClosenessLevel


class _Checked(StrictReply):
    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls.model_validate(_made_up(about), extra="ignore")

    @model_validator(mode="after")
    def _agrees_with_the_case(self, info: ValidationInfo) -> Self:
        if info.context is not None:
            _check(cast(CaseVerdicts, self), info.context)
        return self


class CaseVerdicts(_Checked):
    response_statements: list[ResponseStatement]
    ground_truth_statements: list[GroundTruthStatement]
    useful_chunks: list[int]
    useless_chunks: list[int]
    relevancy: Relevancy


def verdicts_call(
    case: Case, metrics: Set[str], *, task: str, has_fallback: bool = False
) -> Call[CaseVerdicts]:
    """The call for the verdicts on a case that these metrics need. Others are not fields of its reply.

    The same texts and metrics make the same call, whichever of the metrics asks. `has_fallback` is that of the call.
    """
    texts = _texts(case, metrics)
    return Call(
        task=task,
        messages=(
            Message("system", _instructions(frozenset(metrics), "ground_truth" in texts)),
            Message("user", json.dumps({"query": case.query, **texts}, ensure_ascii=False)),
        ),
        reply_type=_reply_type(frozenset(metrics)),
        agrees_with={**texts, "has_fallback": has_fallback},
        max_tokens=_max_tokens(metrics, len(texts.get("chunks", ()))),
        has_fallback=has_fallback,
    )


_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "faithfulness": {"response_statements": ("statement", "chunk", "reason")},
    "answer_correctness": {
        "response_statements": ("statement", "in_ground_truth", "reason"),
        "ground_truth_statements": ("statement", "in_response"),
    },
    "answer_relevancy": {"relevancy": ("reason", "evasive", "closeness")},
    "context_precision": {"useful_chunks": (), "useless_chunks": ()},
    "context_recall": {"ground_truth_statements": ("statement", "chunk")},
}
"""By metric, what its formula needs of each part of a reply."""
_SHOWN: Mapping[str, Set[str]] = {
    "faithfulness": {"chunks", "response"},
    "answer_correctness": {"ground_truth", "response"},
    "answer_relevancy": {"response"},
    "context_precision": {"chunks", "ground_truth"},
    "context_recall": {"chunks", "ground_truth"},
}
"""By metric, the texts that the judge sees in addition to the query."""
_TEXT_OF = {"response_statements": "response", "ground_truth_statements": "ground_truth"}


def _texts(case: Case, metrics: Set[str]) -> dict[str, Any]:
    """What several bots share comes first: providers charge less for a beginning that they have just read."""
    shown = set[str]().union(*(_SHOWN[metric] for metric in metrics))
    if "context_precision" in metrics and case.reference is None:
        shown |= {"response"}
    texts = {
        "ground_truth": case.reference,
        "chunks": {str(number): chunk for number, chunk in enumerate(case.chunks or (), 1)},
        "response": case.response,
    }
    return {name: text for name, text in texts.items() if name in shown and text is not None}


def _fields(metrics: Set[str]) -> dict[str, set[str]]:
    """By part of the reply."""
    parts: dict[str, set[str]] = {}
    for metric in metrics:
        for part, fields in _FIELDS[metric].items():
            parts.setdefault(part, set()).update(fields)
    return parts


def _max_tokens(metrics: Set[str], chunks: int) -> int:
    """Many models write no more than 4,096 tokens. A reply that repeats no text needs fewer."""
    repeats_texts = any(part in _TEXT_OF for part in _fields(metrics))
    return 4096 if repeats_texts else min(4096, 512 + 8 * chunks)


# The prompt


@cache
def _instructions(metrics: frozenset[str], has_ground_truth: bool) -> str:
    fields = _fields(metrics)
    asked = fields.keys() | {f"{part}.{name}" for part, names in fields.items() for name in names}
    rules = [rule for about, rule in _RULES if asked & about]
    target = "ground truth" if has_ground_truth else "response"
    lines = [_TASK, DATA_ONLY, "Reply with a JSON object:", _form(_reply_type(metrics)), *rules]
    return "\n".join(lines).replace("<target>", target)


_TASK = (
    "You check what a chatbot responded to a query, or what was retrieved for it, by the texts of the user message "
    "only, not by what you know."
)
_RULES: Sequence[tuple[Set[str], str]] = (
    (
        {"response_statements", "ground_truth_statements"},
        "Statements are single claims, each clear without the others. They cover their whole text in its order and add "
        "nothing; a text without a claim is one statement.",
    ),
    (
        {"response_statements.chunk", "ground_truth_statements.chunk"},
        '"chunk" of a statement: number of the chunk that supports it, also together with others; 0 if none does.',
    ),
    (
        {"response_statements.in_ground_truth"},
        '"in_ground_truth", "in_response": 1 if that text supports the statement, otherwise 0.',
    ),
    (
        {"response_statements.reason"},
        '"reason" of a statement: a few words if one of its verdicts is 0, otherwise empty.',
    ),
    (
        {"useful_chunks"},
        "Each chunk is either useful for arriving at the <target> or useless.",
    ),
    (
        {"relevancy"},
        '"relevancy" of the response, true or not: "reason": a few words; "evasive": 1 if it evades the query or only '
        'says that it does not know, otherwise 0; "closeness" of what it answers to what the query asks: 4 the same, '
        "3 nearly, with slightly more, less or other detail, 2 in part, 1 same topic only, 0 unrelated.",
    ),
)
_VALUES = {"statement": "text", "reason": "text", "chunk": "number", "closeness": "0 to 4"}
"""What a field holds, in words; any other is a verdict."""


def _form(reply_type: type[CaseVerdicts]) -> str:
    """The reply as JSON with words in place of values."""
    parts = []
    for part, field in reply_type.model_fields.items():
        (item,) = get_args(field.annotation) or (field.annotation,)
        form = "number" if item is int else _members(item)
        parts.append(f'"{part}": {form if part == "relevancy" else f"[{form}, ...]"}')
    return "{" + ",\n ".join(parts) + "}"


def _members(item: type[StrictReply]) -> str:
    members = (f'"{name}": {_VALUES.get(name, "0 or 1")}' for name in item.model_fields)
    return f"{{{', '.join(members)}}}"


# The reply


@cache
def _reply_type(metrics: frozenset[str]) -> type[CaseVerdicts]:
    """CaseVerdicts without the fields that nobody needs: in a strict schema, every field is required."""
    fields = _fields(metrics)
    items: dict[str, Any] = {
        part: list[_trimmed(item, fields[part])]  # type: ignore[misc]  # made while the program runs
        for part, item in _ITEMS.items()
        if part in fields
    }
    return cast(type[CaseVerdicts], _trimmed(CaseVerdicts, fields.keys(), _Checked, **items))


_ITEMS: Mapping[str, type[StrictReply]] = {
    "response_statements": ResponseStatement,
    "ground_truth_statements": GroundTruthStatement,
}


def _trimmed(
    model: type[StrictReply], wanted: Set[str], base: type[StrictReply] = StrictReply, **types: Any
) -> type[StrictReply]:
    """The model with the wanted fields only, in their order; `types` replace the types of fields."""
    fields: dict[str, Any] = {
        name: types.get(name) or (field.annotation, field)
        for name, field in model.model_fields.items()
        if name in wanted
    }
    return create_model(model.__name__, __base__=base, **fields)


def _made_up(about: Mapping[str, Any]) -> Mapping[str, Any]:
    """Everything that can be asked, as unfavourable as can be."""
    verdicts = {"chunk": NO_CHUNK, "in_ground_truth": 0, "in_response": 0, "reason": _A_FEW_WORDS}
    statements = {
        part: [{"statement": each, **verdicts} for each in sentences(str(about.get(text) or "")) or ["-"]]
        for part, text in _TEXT_OF.items()
    }
    return {
        **statements,
        "useful_chunks": [],
        "useless_chunks": list(_numbers(about)),
        "relevancy": {"reason": _A_FEW_WORDS, "evasive": 0, "closeness": 0},
    }


def _numbers(about: Mapping[str, Any]) -> range:
    """Of the chunks."""
    return range(1, len(about.get("chunks") or ()) + 1)


_A_FEW_WORDS = "the texts do not say this"


def _check(reply: CaseVerdicts, about: Mapping[str, Any]) -> None:
    """Raises ValueError for a reply that is silent about a text, skips or invents something, or contradicts itself.

    `about` holds the texts of the call.
    """
    asked = type(reply).model_fields.keys()
    numbers = _numbers(about)
    for part, name in _TEXT_OF.items():
        if part in asked:
            _check_statements(name.replace("_", " "), about.get(name) or "", getattr(reply, part), numbers)
    if "useful_chunks" in asked and sorted(reply.useful_chunks + reply.useless_chunks) != [*numbers]:
        raise ValueError(f"expected each chunk from 1 to {len(numbers)} to be either useful or useless")
    if about.get(NEW):
        _refuse_omissions(reply, about)
    _refuse_contradiction(reply)


def _check_statements(
    name: str, text: str, given: Sequence[ResponseStatement | GroundTruthStatement], numbers: range
) -> None:
    statements = [each.statement for each in given]
    if not all(each.strip() for each in statements):
        raise ValueError(f"a statement of the {name} is empty")
    if has_words(text) and not any(map(has_words, statements)):
        raise ValueError(f"there is no statement of the {name}, though it has words")
    if has_words(text) and not all(map(has_words, statements)):
        raise ValueError(f"a statement of the {name} has no words")
    if len(statements) > _FEW + estimated_tokens(text):
        raise ValueError(f"{len(statements)} statements are more than the {name} can make")
    unknown = [each for each in map(_chunk_of, given) if each != NO_CHUNK and each not in numbers]
    if unknown:
        raise ValueError(f"there is no chunk {unknown[0]}: they are numbered from 1 to {len(numbers)}")


_FEW = 5
"""So many statements can be made of the shortest text; of a longer one, no more than it has tokens in addition."""


def _chunk_of(statement: ResponseStatement | GroundTruthStatement) -> int:
    """NO_CHUNK also where chunks were not asked about."""
    return getattr(statement, "chunk", NO_CHUNK)


def _refuse_omissions(reply: CaseVerdicts, about: Mapping[str, Any]) -> None:
    """A response may hold courtesies, which claim nothing: it must be covered only if there is another way to judge."""
    ours, theirs = (
        [each.statement for each in getattr(reply, part, ())]
        for part in ("response_statements", "ground_truth_statements")
    )
    if theirs and skipped_sentence(about.get("ground_truth") or "", theirs):
        raise ValueError("a sentence of the ground truth is not among the statements")
    if ours and about.get("has_fallback") and skips_most(about.get("response") or "", ours):
        raise ValueError("most sentences of the response are not among the statements")


def _refuse_contradiction(reply: CaseVerdicts) -> None:
    """The whole ground truth cannot be in a response of which nothing is in the ground truth."""
    found = [getattr(each, "in_ground_truth", 1) for each in getattr(reply, "response_statements", ())]
    said = [getattr(each, "in_response", 0) for each in getattr(reply, "ground_truth_statements", ())]
    if found and said and all(said) and not any(found):
        raise ValueError(
            "the response says all of the ground truth, but no statement of it is in the ground truth"
        )

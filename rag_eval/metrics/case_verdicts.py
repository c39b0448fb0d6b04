"""Verdicts on one case, for one metric or for several at once: what the judge is asked, and what it may reply.

The judge gives verdicts, never scores: each metric computes its score from them by its own formula. A call shows the
judge only the texts that its metrics need. It names neither thresholds nor bots, so other thresholds cost no call.

The sentences of a text are numbered, and a verdict names its sentence. So the judge need not write the texts again, and
whether it leaves one out does not depend on words or languages.
"""

import json
from collections.abc import Mapping, Sequence, Set
from functools import cache
from itertools import chain
from typing import Any, Self, cast, get_args

from pydantic import ValidationInfo, create_model, model_validator

from rag_eval.judge.calls import Call, Message, room_for
from rag_eval.judge.replies import incomplete
from rag_eval.metrics.numbered import DATA_ONLY
from rag_eval.metrics.omissions import claims_among
from rag_eval.metrics.reply_types import ClosenessLevel, StrictReply, Verdict
from rag_eval.records import Case
from rag_eval.texts.tokens import estimated_tokens
from rag_eval.texts.words import has_words, sentences

NO_CHUNK = 0
"""In place of a chunk's number, which counts from 1: the chunks do not support the statement."""


# No docstrings in the types: they would be sent along with the schema. Judges write the fields in this order.
class ResponseClaim(StrictReply):
    sentence: int
    claim: str
    chunk: int
    in_ground_truth: Verdict
    reason: str


class GroundTruthClaim(StrictReply):
    sentence: int
    claim: str
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
    response_claims: list[ResponseClaim]
    response_without_claim: list[int]
    ground_truth_claims: list[GroundTruthClaim]
    ground_truth_without_claim: list[int]
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
        agrees_with=texts,
        max_tokens=4096,
        room=_room(metrics, texts),
        has_fallback=has_fallback,
        tries=2 if has_fallback else 3,
    )


def claim_text(claim: ResponseClaim | GroundTruthClaim, text: str) -> str:
    """The claim in words: its own, or the whole sentence of the text that it stands for."""
    return claim.claim.strip() or numbered_sentences(text)[str(claim.sentence)]


def numbered_sentences(text: str) -> Mapping[str, str]:
    """The sentences of a text by their numbers; a text without words is one."""
    return {str(number): sentence for number, sentence in enumerate(sentences(text) or [text], 1)}


_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "faithfulness": {
        "response_claims": ("sentence", "claim", "chunk", "reason"),
        "response_without_claim": (),
    },
    "answer_correctness": {
        "response_claims": ("sentence", "claim", "in_ground_truth", "reason"),
        "response_without_claim": (),
        "ground_truth_claims": ("sentence", "claim", "in_response"),
        "ground_truth_without_claim": (),
    },
    "answer_relevancy": {"relevancy": ("reason", "evasive", "closeness")},
    "context_precision": {"useful_chunks": (), "useless_chunks": ()},
    "context_recall": {
        "ground_truth_claims": ("sentence", "claim", "chunk"),
        "ground_truth_without_claim": (),
    },
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
_SIDES = ("response", "ground_truth")
"""The texts that are taken apart into claims."""


def _texts(case: Case, metrics: Set[str]) -> dict[str, Any]:
    """What several bots share comes first: providers charge less for a beginning that they have just read."""
    shown = set[str]().union(*(_SHOWN[metric] for metric in metrics))
    if "context_precision" in metrics and case.reference is None:
        shown |= {"response"}
    texts = {
        "ground_truth": None if case.reference is None else numbered_sentences(case.reference),
        "chunks": {str(number): chunk for number, chunk in enumerate(case.chunks or (), 1)},
        "response": numbered_sentences(case.response),
    }
    return {name: text for name, text in texts.items() if name in shown and text is not None}


def _fields(metrics: Set[str]) -> dict[str, set[str]]:
    """By part of the reply."""
    parts: dict[str, set[str]] = {}
    for metric in metrics:
        for part, fields in _FIELDS[metric].items():
            parts.setdefault(part, set()).update(fields)
    return parts


def _room(metrics: Set[str], texts: Mapping[str, Any]) -> int:
    """Enough if the judge writes every sentence again, with a reason."""
    taken_apart = [texts[side] for side in _SIDES if f"{side}_claims" in _fields(metrics)]
    return room_for(chain.from_iterable(text.values() for text in taken_apart)) + _A_CHUNK * len(
        texts.get("chunks", ())
    )


_A_CHUNK = 8
"""Tokens of its number in a list."""


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
        {"response_claims", "ground_truth_claims"},
        'The sentences are numbered. One entry for each claim: "sentence": its number; "claim": empty, but in a '
        "sentence with several claims one of them in words. Sentences that claim nothing, such as greetings, are "
        "listed as without a claim; no other is left out.",
    ),
    (
        {"response_claims.chunk", "ground_truth_claims.chunk"},
        '"chunk": number of the chunk that supports the claim, also together with others; 0 if none does.',
    ),
    (
        {"response_claims.in_ground_truth"},
        '"in_ground_truth", "in_response": 1 if that text supports the claim, otherwise 0.',
    ),
    (
        {"response_claims.reason"},
        '"reason" of a claim: a few words if one of its verdicts is 0, otherwise empty.',
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
_VALUES = {
    "sentence": "number",
    "claim": "text",
    "reason": "text",
    "chunk": "number",
    "closeness": "0 to 4",
}
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
    "response_claims": ResponseClaim,
    "ground_truth_claims": GroundTruthClaim,
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
    verdicts = {
        "claim": "",
        "chunk": NO_CHUNK,
        "in_ground_truth": 0,
        "in_response": 0,
        "reason": _A_FEW_WORDS,
    }
    claims = {
        f"{side}_claims": [{"sentence": int(number), **verdicts} for number in about.get(side) or ("1",)]
        for side in _SIDES
    }
    return {
        **claims,
        **{f"{side}_without_claim": [] for side in _SIDES},
        "useful_chunks": [],
        "useless_chunks": list(_numbers(about.get("chunks"))),
        "relevancy": {"reason": _A_FEW_WORDS, "evasive": 0, "closeness": 0},
    }


def _numbers(texts: Mapping[str, str] | None) -> range:
    return range(1, len(texts or ()) + 1)


_A_FEW_WORDS = "the texts do not say this"


def _check(reply: CaseVerdicts, about: Mapping[str, Any]) -> None:
    """Raises ValueError for a reply that leaves out or invents something, or contradicts itself.

    `about` holds the texts of the call.
    """
    asked = type(reply).model_fields.keys()
    chunks = _numbers(about.get("chunks"))
    for side in _SIDES:
        if (part := f"{side}_claims") in asked:
            _check_claims(
                side.replace("_", " "),
                about[side],
                getattr(reply, part),
                getattr(reply, f"{side}_without_claim"),
                chunks,
            )
    if "useful_chunks" in asked and sorted(reply.useful_chunks + reply.useless_chunks) != [*chunks]:
        raise incomplete(f"expected each chunk from 1 to {len(chunks)} to be either useful or useless")
    _refuse_contradiction(reply)


def _check_claims(
    name: str,
    text: Mapping[str, str],
    claims: Sequence[ResponseClaim | GroundTruthClaim],
    without_claim: Sequence[int],
    chunks: range,
) -> None:
    """`text` has the sentences of the side called `name` by number."""
    numbers = _numbers(text)
    judged = [claim.sentence for claim in claims]
    for number in (*judged, *without_claim):
        if number not in numbers:
            raise ValueError(f"the {name} has no sentence {number}; they are numbered from 1 to {len(text)}")
    for chunk in (getattr(claim, "chunk", NO_CHUNK) for claim in claims):
        if chunk != NO_CHUNK and chunk not in chunks:
            raise ValueError(f"there is no chunk {chunk}; they are numbered from 1 to {len(chunks)}")
    whole = " ".join(text.values())
    if len(claims) > _FEW + estimated_tokens(whole):
        raise ValueError(f"{len(claims)} claims are more than the {name} can make")
    if has_words(whole) and any(claim.claim and not has_words(claim.claim) for claim in claims):
        raise incomplete(f"a claim of the {name} has no words")
    if has_words(whole) and not claims:
        raise incomplete(f"there is no claim of the {name}, though it has words")
    left_out = {*numbers} - {*judged, *without_claim}
    claiming = claims_among(text.values()) if left_out else ()
    if missing := [number for number in sorted(left_out) if text[str(number)] in claiming]:
        named = ", ".join(map(str, missing[:_NAMED]))
        raise incomplete(f"sentence {named} of the {name} is neither judged nor listed as without a claim")


_FEW = 5
"""So many claims can be made of the shortest text; of a longer one, no more than it has tokens in addition."""
_NAMED = 20


def _refuse_contradiction(reply: CaseVerdicts) -> None:
    """The whole ground truth cannot be in a response of which nothing is in the ground truth."""
    found = [getattr(each, "in_ground_truth", 1) for each in getattr(reply, "response_claims", ())]
    said = [getattr(each, "in_response", 0) for each in getattr(reply, "ground_truth_claims", ())]
    if found and said and all(said) and not any(found):
        raise incomplete(
            "the response says all of the ground truth, but no claim of it is in the ground truth"
        )

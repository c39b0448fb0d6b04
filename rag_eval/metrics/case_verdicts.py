"""Verdicts on one case, for one metric or for several at once: what the judge is asked, and what it may reply.

The judge gives verdicts, never scores: each metric computes its score from them by its own formula. A call shows the
judge only the texts that its metrics need. It names neither thresholds nor bots, so other thresholds cost no call.

The sentences of a text are numbered, and a verdict names its sentence. So the judge need not write the texts again, and
whether it leaves one out does not depend on words or languages.
"""

import json
from collections.abc import Mapping, Sequence, Set
from functools import cache
from itertools import count
from typing import Any, ClassVar, Self, cast, get_args

from pydantic import ValidationInfo, create_model, model_validator

from rag_eval.judge.calls import Call, Message, room_for, with_history
from rag_eval.judge.replies import incomplete
from rag_eval.metrics.numbered import DATA_ONLY
from rag_eval.metrics.omissions import claims_among, claims_nothing
from rag_eval.metrics.reply_types import ClosenessLevel, StrictReply, Verdict
from rag_eval.records import Case
from rag_eval.texts.tokens import estimated_tokens
from rag_eval.texts.words import has_words, normalise, sentences

NO_CHUNK, SAID_BY_USER = 0, -1
"""In place of a chunk's number, which counts from 1: the chunks do not support the statement; only what the user said
in earlier turns does."""


# No docstrings in the types: they would be sent along with the schema. Judges write the fields in this order.
class Claim(StrictReply):
    sentence: int
    claim: str
    chunk: int
    in_other: Verdict
    reason: str


class Relevancy(StrictReply):
    reason: str
    evasive: Verdict
    closeness: ClosenessLevel


class _VerdictsOnCase(StrictReply):
    metrics: ClassVar[frozenset[str]] = frozenset()
    """Whose verdicts they are."""

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls.model_validate(_made_up(about), extra="ignore")

    @model_validator(mode="after")
    def _agrees_with_the_case(self, info: ValidationInfo) -> Self:
        if info.context is not None:
            _check(cast(CaseVerdicts, self), info.context)
        return self

    def claims_of(self, side: str, case: Case) -> list[tuple[str, Claim]]:
        """The claims of the 'response' or the 'ground_truth', each in words: its own, or its whole sentence.

        Copies count once.
        """
        text = _texts(case, self.metrics).get(side) or {}
        first: dict[tuple[int, str], Claim] = {}
        for claim in cast(CaseVerdicts, self).claims:
            first.setdefault(_said(claim), claim)
        return [
            (claim.claim.strip() or text[str(claim.sentence)], claim)
            for claim in first.values()
            if str(claim.sentence) in text
        ]

    def passed_over(self, side: str, case: Case) -> list[str]:
        """The sentences of that text that are listed as without a claim, though they seem to make one."""
        text = _texts(case, self.metrics).get(side) or {}
        listed = [
            text[str(number)] for number in cast(CaseVerdicts, self).without_claim if str(number) in text
        ]
        return [sentence for sentence in claims_among(text.values()) if sentence in listed] if listed else []


class CaseVerdicts(_VerdictsOnCase):
    claims: list[Claim]
    without_claim: list[int]
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
    taken_apart = _sentences(texts)
    shown = with_history(case, {"query": case.query, **texts})
    instructions = _instructions(
        frozenset(metrics), has_ground_truth="ground_truth" in texts, has_history="history" in shown
    )
    return Call(
        task=task,
        messages=(
            Message("system", instructions),
            Message("user", json.dumps(shown, ensure_ascii=False)),
        ),
        reply_type=_reply_type(frozenset(metrics)),
        agrees_with=with_history(case, texts),
        max_tokens=4096,
        room=room_for(taken_apart.values()) + _A_CHUNK * len(texts.get("chunks", ())),
        numbered={
            **dict.fromkeys(("sentence", "without_claim"), len(taken_apart)),
            **dict.fromkeys(("chunk", "useful_chunks", "useless_chunks"), len(texts.get("chunks", ()))),
        },
        has_fallback=has_fallback,
        tries=2 if has_fallback else 3,
    )


_A_CHUNK = 8
"""Tokens of its number in a list."""
_FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "faithfulness": {"claims": ("sentence", "claim", "chunk", "reason"), "without_claim": ()},
    "answer_correctness": {"claims": ("sentence", "claim", "in_other", "reason"), "without_claim": ()},
    "answer_relevancy": {"relevancy": ("reason", "evasive", "closeness")},
    "context_precision": {"useful_chunks": (), "useless_chunks": ()},
    "context_recall": {"claims": ("sentence", "claim", "chunk"), "without_claim": ()},
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
_TAKEN_APART: Mapping[str, Set[str]] = {
    "faithfulness": {"response"},
    "answer_correctness": {"ground_truth", "response"},
    "context_recall": {"ground_truth"},
}
"""By metric, the texts whose claims it is about."""
_SIDES = ("ground_truth", "response")


def _texts(case: Case, metrics: Set[str]) -> dict[str, Any]:
    """What several bots share comes first: providers charge less for a beginning that they have just read.

    The sentences of texts that are taken apart are numbered through, and so are the chunks.
    """
    shown = set[str]().union(*(_SHOWN[metric] for metric in metrics))
    if "context_precision" in metrics and case.reference is None:
        shown |= {"response"}
    texts: dict[str, Any] = {
        "ground_truth": case.reference,
        "chunks": {str(number): chunk for number, chunk in enumerate(case.chunks or (), 1)},
        "response": case.response,
    }
    number = count(1)
    taken_apart = set[str]().union(*(_TAKEN_APART.get(metric, ()) for metric in metrics))
    for side in _SIDES:
        if side in taken_apart and texts[side] is not None:
            parts = sentences(texts[side]) or [texts[side]]  # a text without words is one
            texts[side] = {str(next(number)): sentence for sentence in parts}
    return {name: text for name, text in texts.items() if name in shown and text is not None}


def _sentences(texts: Mapping[str, Any]) -> dict[str, str]:
    """Those of the texts that are taken apart, by number."""
    sides = [text for side in _SIDES if isinstance(text := texts.get(side), dict)]
    return {number: sentence for side in sides for number, sentence in side.items()}


def _fields(metrics: Set[str]) -> dict[str, set[str]]:
    """By part of the reply."""
    parts: dict[str, set[str]] = {}
    for metric in metrics:
        for part, fields in _FIELDS[metric].items():
            parts.setdefault(part, set()).update(fields)
    return parts


# The prompt


@cache
def _instructions(metrics: frozenset[str], *, has_ground_truth: bool, has_history: bool) -> str:
    fields = _fields(metrics)
    asked = fields.keys() | {f"{part}.{name}" for part, names in fields.items() for name in names}
    rules = [rule for about, rule in _RULES if asked & about]
    target = "ground truth" if has_ground_truth else "response"
    if has_history:
        rules = [_CONTINUED, *rules, *([_SAID_BY_USER] if "faithfulness" in metrics else [])]
    lines = [_TASK, DATA_ONLY, "Reply with a JSON object:", _form(_reply_type(metrics)), *rules]
    return "\n".join(lines).replace("<target>", target)


_TASK = (
    "You check what a chatbot responded to a query, or what was retrieved for it, by the texts of the user message "
    "only, not by what you know."
)
_RULES: Sequence[tuple[Set[str], str]] = (
    (
        {"claims"},
        'The sentences are numbered. One entry for each claim: "sentence": the number of its sentence; "claim": empty, '
        "or the claim in a few words if its sentence makes several. Sentences that claim nothing, such as greetings, "
        'go into "without_claim". Leave out no sentence.',
    ),
    (
        {"claims.chunk"},
        '"chunk": number of the chunk that supports the claim, also together with others; 0 if none does.',
    ),
    (
        {"claims.in_other"},
        '"in_other": 1 if the other text, ground truth or response, supports the claim; otherwise 0.',
    ),
    (
        {"claims.reason"},
        '"reason": a few words if nothing supports a claim of the response or a text contradicts it; otherwise empty.',
    ),
    (
        {"useful_chunks"},
        "Each chunk is either useful for arriving at the <target> or useless.",
    ),
    (
        {"relevancy"},
        '"relevancy" of the response, true or not: "evasive": 1 if it evades the query or only says that it does not '
        'know, otherwise 0; "closeness" of what it answers to what the query asks: 4 the same, 3 nearly, with slightly '
        'more, less or other detail, 2 in part, 1 same topic only, 0 unrelated; "reason": a few words, empty for 4.',
    ),
)
_CONTINUED = (
    '"history" has the earlier turns of the conversation, the first one first: the query continues it.'
)
_SAID_BY_USER = (
    f'"chunk" is {SAID_BY_USER} for a claim of the response that no chunk supports and that the user stated in '
    '"history". What the assistant said there supports nothing.'
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
    items: dict[str, Any] = {}
    if "claims" in fields:
        items["claims"] = list[_trimmed(Claim, fields["claims"])]  # type: ignore[misc]  # made while the program runs
    reply_type = cast(type[CaseVerdicts], _trimmed(CaseVerdicts, fields.keys(), _VerdictsOnCase, **items))
    reply_type.metrics = metrics
    return reply_type


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
    verdicts = {"claim": "", "chunk": NO_CHUNK, "in_other": 0}
    of_response = about.get("response") or {}
    return {
        "claims": [
            {"sentence": int(number), **verdicts, "reason": _A_FEW_WORDS if number in of_response else ""}
            for number in _sentences(about) or ("1",)
        ],
        "without_claim": [],
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
    if "claims" in asked:
        others = {NO_CHUNK, SAID_BY_USER} if about.get("history") else {NO_CHUNK}
        _check_numbers(reply, _sentences(about), chunks, others)
        for side in _SIDES:
            if isinstance(text := about.get(side), dict):
                _check_claims(side.replace("_", " "), text, reply)
    if "useful_chunks" in asked and sorted(reply.useful_chunks + reply.useless_chunks) != [*chunks]:
        raise incomplete(f"expected each chunk from 1 to {len(chunks)} to be either useful or useless")
    _refuse_contradiction(reply, about)


def _check_numbers(reply: CaseVerdicts, text: Mapping[str, str], chunks: range, others: Set[int]) -> None:
    for number in (*(claim.sentence for claim in reply.claims), *reply.without_claim):
        if str(number) not in text:
            raise ValueError(f"there is no sentence {number}; they are numbered from 1 to {len(text)}")
    verdicts: dict[tuple[int, str], set[tuple[bool, object]]] = {}
    for claim in reply.claims:
        verdict = bool(getattr(claim, "chunk", NO_CHUNK)), getattr(claim, "in_other", None)
        verdicts.setdefault(_said(claim), set()).add(verdict)
    if contradicted := [number for (number, _), found in verdicts.items() if len(found) > 1]:
        raise incomplete(f"a claim of sentence {min(contradicted)} has two verdicts")
    if both := {claim.sentence for claim in reply.claims}.intersection(reply.without_claim):
        raise incomplete(f"sentence {min(both)} is judged, and listed as without a claim")
    for chunk in (getattr(claim, "chunk", NO_CHUNK) for claim in reply.claims):
        if chunk not in others and chunk not in chunks:
            raise ValueError(f"there is no chunk {chunk}; they are numbered from 1 to {len(chunks)}")


def _said(claim: Claim) -> tuple[int, str]:
    """What tells a claim from others."""
    return claim.sentence, normalise(claim.claim).strip()


def _check_claims(name: str, text: Mapping[str, str], reply: CaseVerdicts) -> None:
    """`text` has the sentences of one side by number."""
    claims = [claim for claim in reply.claims if str(claim.sentence) in text]
    whole = " ".join(text.values())
    if len(claims) > _FEW + estimated_tokens(whole):
        raise ValueError(f"{len(claims)} claims are more than the {name} can make")
    if not has_words(whole):
        return
    if any(claim.claim and not has_words(claim.claim) for claim in claims):
        raise incomplete(f"a claim of the {name} has no words")
    if not claims and not claims_nothing(whole):
        raise incomplete(f"there is no claim of the {name}, though it has words")
    named = {str(claim.sentence) for claim in claims} | set(map(str, reply.without_claim))
    left_out = [number for number in text if number not in named]
    claiming = claims_among(text.values()) if left_out else ()
    if missing := [number for number in left_out if text[number] in claiming]:
        numbers = ", ".join(missing[:_NAMED])
        raise incomplete(f"sentence {numbers} of the {name} is neither judged nor listed as without a claim")


_FEW = 5
"""So many claims can be made of the shortest text; of a longer one, no more than it has tokens in addition."""
_NAMED = 20


def _refuse_contradiction(reply: CaseVerdicts, about: Mapping[str, Any]) -> None:
    """The whole ground truth cannot be in a response of which nothing is in the ground truth."""
    theirs, ours = (
        [
            getattr(claim, "in_other", None)
            for claim in getattr(reply, "claims", ())
            if str(claim.sentence) in (about.get(side) or ())
        ]
        for side in _SIDES
    )
    if ours and theirs and all(theirs) and ours == [0] * len(ours):
        raise incomplete(
            "the response says all of the ground truth, but no claim of it is in the ground truth"
        )

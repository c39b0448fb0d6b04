"""Faithfulness: how much of the response stands in the chunks."""

from collections.abc import Sequence
from typing import ClassVar

from rag_eval.judge.calls import Call, room_for
from rag_eval.metrics import ragas_prompts as prompts
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.case_verdicts import NO_CHUNK, SAID_BY_USER, CaseVerdicts
from rag_eval.metrics.metric import (
    NO_CONTEXT,
    REPEATS,
    Metric,
    MetricInfo,
    left_out_evidence,
    share_favourable,
)
from rag_eval.metrics.offline.brief import only_declines
from rag_eval.metrics.offline.echo import without_echo, without_named_sources
from rag_eval.metrics.offline.support import support
from rag_eval.metrics.omissions import fuller_reply, unclassified_sentences
from rag_eval.records import Case, Evidence, FailureMode, Score
from rag_eval.texts.words import has_words, read, sentences


class _Faithfulness(Metric):
    """Share of the response's statements that the chunks support. Not applicable without any statement."""

    name = "faithfulness"

    def settle(self, case: Case) -> Score | None:
        if not case.has_response:
            return Score.not_applicable(self.name, "empty response: there is nothing to support")
        if case.chunks is None:
            return Score.not_applicable(self.name, NO_CONTEXT)
        if not case.chunks:
            return Score.scored(
                self.name, 0.0, "empty context: nothing was retrieved, so nothing is grounded"
            )
        return None

    async def judge(self, case: Case) -> Score:
        statements, left_out = await statements_of(case, case.response)
        if not statements:
            return _score(())
        reply = await Call(
            task="faithfulness.verdicts",
            messages=prompts.verdicts_prompt("\n".join(case.chunks or ()), statements, case.user_said),
            reply_type=replies.StatementVerdicts,
            agrees_with={"statements": statements},
            max_tokens=4096,
            room=room_for(statements),
        )
        return _score(
            [_evidence(each.statement, bool(each.verdict), each.reason) for each in reply.statements],
            left_out,
        )


def _from_verdicts(case: Case, verdicts: CaseVerdicts) -> Score:
    return _score(
        [
            _evidence(text, bool(each.chunk), "" if each.chunk else each.reason, each.chunk)
            for text, each in verdicts.claims_of("response", case)
        ],
        verdicts.passed_over("response", case),
    )


def _evidence(statement: str, is_supported: bool, reason: str, chunk: int = NO_CHUNK) -> Evidence:
    verdict = "supported" if is_supported else "not supported"
    if chunk == SAID_BY_USER:
        reason = "stated by the user"
    return Evidence("statement", statement, verdict, is_supported, reason, rank=max(chunk, NO_CHUNK) or None)


def _score(statements: Sequence[Evidence], left_out: Sequence[str] = ()) -> Score:
    if not statements:
        return Score.not_applicable(_Faithfulness.name, "the response makes no statement")
    evidence = (*statements, *left_out_evidence("statement", left_out))
    return Score.scored(_Faithfulness.name, share_favourable(statements), evidence=evidence)


async def statements_of(case: Case, answer: str) -> tuple[list[str], Sequence[str]]:
    """The statements that an answer to the case's query makes, and its sentences that may be missing from them."""
    call = Call(
        task="statements",
        messages=prompts.statements_prompt(case.query, answer, case.history),
        reply_type=replies.Statements,
        agrees_with={"text": answer},
        room=room_for([answer]) + 40 * len(sentences(answer)),
    )
    reply, left_out = await fuller_reply(call, lambda reply: unclassified_sentences(answer, reply.statements))
    return [statement for statement in reply.statements if statement.strip()], left_out


class _OfflineFaithfulness(_Faithfulness):
    explanation: ClassVar[str] = (
        "Share of the response's content words (2/3) and adjacent word pairs (1/3) that the chunks contain. Lower for "
        "numbers and names in neither chunks nor query, and for negations of the chunks. Not applicable to a short "
        "refusal."
    )

    async def judge(self, case: Case) -> Score:
        if not has_words(case.response):
            return Score.not_applicable(self.name, "the response contains no words")
        case = without_named_sources(case)
        answer = without_echo(case.response, case.query)
        if not answer:
            return Score.not_applicable(self.name, f"{REPEATS} and claims nothing")
        if only_declines(answer, case.query, case.chunks or (), case.reference or ""):
            return Score.not_applicable(self.name, "the response declines to answer and claims nothing")
        stated = read(case.query).stems
        found = support(answer, case.chunks or (), stated, case.query, is_response=True)
        evidence = tuple(one.evidence("sentence", "supported", "not supported") for one in found.sentences)
        return Score.scored(self.name, found.value, evidence=evidence)


INFO = MetricInfo(
    name="faithfulness",
    about="Share of the response's statements that the context supports, 0 to 1.",
    weight=0.25,
    threshold=0.3,
    offline_threshold=0.62,
    failure=FailureMode.HALLUCINATION,
    llm=_Faithfulness,
    from_verdicts=_from_verdicts,
    offline=_OfflineFaithfulness,
)

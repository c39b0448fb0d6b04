"""Context recall: how much of the reference stands in the chunks."""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from typing import ClassVar

from rag_eval.judge.calls import Call, room_for
from rag_eval.metrics import ragas_prompts as prompts
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.case_verdicts import NO_CHUNK, CaseVerdicts
from rag_eval.metrics.metric import (
    NO_ANSWER,
    NO_CONTEXT,
    NO_REFERENCE,
    Metric,
    MetricInfo,
    left_out_evidence,
    share_favourable,
)
from rag_eval.metrics.offline.brief import has_no_answer
from rag_eval.metrics.offline.support import support
from rag_eval.metrics.omissions import fuller_reply, once_each, unclassified_sentences
from rag_eval.records import Case, Evidence, FailureMode, Score
from rag_eval.texts.words import has_words, sentences


class _ContextRecall(Metric):
    """Share of the reference's statements that the chunks hold. Not applicable without any statement."""

    name = "context_recall"

    def settle(self, case: Case) -> Score | None:
        if case.chunks is None:
            return Score.not_applicable(self.name, NO_CONTEXT)
        if case.reference is None:
            return Score.not_applicable(self.name, NO_REFERENCE)
        return None if case.chunks else Score.scored(self.name, 0.0, "empty context: nothing was retrieved")

    async def judge(self, case: Case) -> Score:
        call = Call(
            task="context_recall.attributions",
            messages=prompts.attribution_prompt(
                case.query, "\n".join(case.chunks or ()), case.reference or "", case.history
            ),
            reply_type=replies.Attributions,
            agrees_with={"text": case.reference},
            max_tokens=4096,
            room=room_for(sentences(case.reference or "")),
        )
        reply, missing = await fuller_reply(
            call,
            lambda reply: unclassified_sentences(
                case.reference or "", [each.statement for each in reply.classifications]
            ),
        )
        judged = once_each(reply.classifications)
        return _of_statements(
            [_evidence(each.statement, bool(each.attributed), each.reason) for each in judged], missing
        )


def _from_verdicts(case: Case, verdicts: CaseVerdicts) -> Score:
    return _of_statements(
        [
            _evidence(text, each.chunk > NO_CHUNK, chunk=max(each.chunk, NO_CHUNK))
            for text, each in verdicts.claims_of("ground_truth", case)
        ],
        verdicts.passed_over("ground_truth", case),
    )


def _evidence(statement: str, is_found: bool, reason: str = "", chunk: int = NO_CHUNK) -> Evidence:
    verdict = "found in the context" if is_found else "missing from the context"
    return Evidence("reference statement", statement, verdict, is_found, reason, rank=chunk or None)


def _of_statements(statements: Sequence[Evidence], left_out: Sequence[str]) -> Score:
    if not statements:
        return Score.not_applicable(_ContextRecall.name, "the ground truth makes no statement")
    evidence = (*statements, *left_out_evidence("reference statement", left_out))
    return Score.scored(_ContextRecall.name, share_favourable(statements), evidence=evidence)


class _OfflineContextRecall(_ContextRecall):
    explanation: ClassVar[str] = (
        "For each sentence of the reference, the share of its content words (2/3) and adjacent word pairs (1/3) in the "
        "chunks; then the mean. Lower for numbers and names that the chunks lack, and for negations of the chunks."
    )

    async def judge(self, case: Case) -> Score:
        if has_no_answer(case.reference, case.query, case.chunks or ()):
            return Score.not_applicable(self.name, NO_ANSWER)
        return _score(self.name, case.query, case.reference or "", case.chunks or ())


@lru_cache(maxsize=2)  # the bots of a row often share reference and chunks
def _score(name: str, query: str, reference: str, chunks: tuple[str, ...]) -> Score:
    if not has_words(reference):
        return Score.not_applicable(name, "the ground truth contains no words")
    parts = support(reference, chunks, query=query).sentences
    evidence = tuple(one.evidence("reference sentence", "found", "missing") for one in parts)
    # By length, so that a sentence cut in two, or a word behind the last full stop, changes little.
    lengths = [len(one.sentence.content) or 1 for one in parts]
    value = fsum(one.value * length for one, length in zip(parts, lengths, strict=True)) / sum(lengths)
    return Score.scored(name, value, evidence=evidence)


INFO = MetricInfo(
    name="context_recall",
    about="Share of the ground truth that the context supports, 0 to 1.",
    weight=0.075,
    threshold=0.3,
    offline_threshold=0.54,
    failure=FailureMode.RETRIEVAL_FAILURE,
    llm=_ContextRecall,
    from_verdicts=_from_verdicts,
    offline=_OfflineContextRecall,
)

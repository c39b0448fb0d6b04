"""The columns that only some runs have: measures beside the five, the rubric, and the documents retrieved."""

from collections.abc import Iterator, Sequence

from rag_eval.records import CaseResult, CriterionVerdict, Outcome, RubricOutcome, RunFacts, Score
from rag_eval.report.column import Cell, Column, Value, look_of, mean_cell, plain_column
from rag_eval.report.notes import Note, NoteKind, note_on
from rag_eval.report.styles import Look
from rag_eval.results.summary import BotSummary
from rag_eval.retrieval import LABELS, RetrievalScores, scores_of_case
from rag_eval.texts.display import shorten

FAILED_CRITERIA = "Failed Criteria"
"""Header of the column in which the reasons of a rubric's verdicts stand."""


def extra_case_columns(facts: RunFacts) -> Iterator[Column[CaseResult]]:
    """On the sheet "Per-Query Metrics", after everything that every run has."""
    for name, label in facts.further.items():
        yield _score_column(name, label)
        if name == "answer_coverage":
            yield plain_column("Missing Information", 32, Look.TEXT, _missing_information, _ABOUT_MISSING)
    if facts.rubric:
        yield Column("Rubric", 9, _rubric_cell, Look.HEADER, _ABOUT_RUBRIC)
        yield plain_column("Rubric Score", 8, Look.WORD, _rubric_score, _ABOUT_RUBRIC_SCORE)
        yield plain_column(FAILED_CRITERIA, 38, Look.TEXT, _failed_criteria, "Each with the judge's reason.")
    if facts.has_gold:
        yield from (_retrieval_column(name, LABELS[name]) for name in _MEASURES)
        yield plain_column("Correct Docs", 9, Look.WORD, _correct_docs, "Gold documents that were retrieved.")
        yield plain_column("Missing Docs", 20, Look.TEXT, _missing_docs, "Gold documents that were not.")


def extra_bot_columns(facts: RunFacts) -> Iterator[Column[BotSummary]]:
    """On the sheet "Bot Summary"; rubric and retrieval have sheets of their own."""
    for name, label in facts.further.items():
        yield _mean_column(name, label)


def _mean_column(name: str, label: str) -> Column[BotSummary]:
    def cell(bot: BotSummary) -> Cell:
        return mean_cell(bot.further[name], bot.rqs)

    about = _ABOUT_MEASURES.get(name, "")
    return Column(f"Avg {label}", 9.5, cell, about=about, count=lambda bot: bot.further[name].scored)


# Measures beside the five


def _score_column(name: str, label: str) -> Column[CaseResult]:
    value = _relevant_chunks if name == "chunk_relevance" else lambda score: score.value

    def cell(result: CaseResult) -> Cell:
        score = result.further[name]
        look = Look.WORD if name == "chunk_relevance" and score.value is not None else look_of(score)
        return Cell(value(score), look, note_on(score, None))

    return Column(label, 10, cell, about=_ABOUT_MEASURES.get(name, ""))


def _relevant_chunks(score: Score) -> Value:
    """As in '2 of 5: 1, 4'."""
    if score.value is None:
        return None
    ranks = [str(chunk.rank) for chunk in score.evidence if chunk.favourable]
    listed = f": {', '.join(ranks)}" if ranks else ""
    return f"{len(ranks)} of {len(score.evidence)}{listed}"


def _missing_information(result: CaseResult) -> Value:
    left_out = [item for item in result.further["answer_coverage"].evidence if not item.favourable]
    return "\n".join(f"Chunk {item.rank}: {item.reason or 'left out'}" for item in left_out)


# Rubric


def _rubric_cell(result: CaseResult) -> Cell:
    outcome = result.rubric
    if outcome is None or outcome.outcome is Outcome.NOT_APPLICABLE:
        return Cell(None, Look.NOT_APPLICABLE, _why(outcome, NoteKind.NOT_APPLICABLE))
    if outcome.outcome is Outcome.FAILED:
        return Cell(None, Look.FAILED, _why(outcome, NoteKind.FAILED))
    return Cell("PASS", Look.WORD) if outcome.passed else Cell("FAIL", Look.AGAINST)


def _why(outcome: RubricOutcome | None, kind: NoteKind) -> Note | None:
    if outcome is None:
        return None
    code = f"Failed ({outcome.code}): " if outcome.code else "Not applicable: "
    return Note(code + shorten(outcome.reason, 300), kind)


def _rubric_score(result: CaseResult) -> Value:
    outcome = result.rubric
    return f"{outcome.score}/{outcome.of}" if outcome and outcome.of is not None else None


def _failed_criteria(result: CaseResult) -> Value:
    failed: Sequence[CriterionVerdict] = result.rubric.failed_criteria if result.rubric else ()
    return "\n".join(
        f"{verdict.criterion}{' (mandatory)' if verdict.mandatory else ''}: {verdict.reason}"
        for verdict in failed
    )


# Retrieval


def _retrieval_column(name: str, label: str) -> Column[CaseResult]:
    def cell(result: CaseResult) -> Cell:
        scores = scores_of_case(result.case)
        value = scores.values()[name] if scores else None
        return Cell(value, Look.NOT_APPLICABLE if value is None else Look.SCORE)

    return Column(label, 9, cell, about=_ABOUT_DOCUMENTS[name])


def _correct_docs(result: CaseResult) -> Value:
    scores: RetrievalScores | None = scores_of_case(result.case)
    return f"{scores.correct_docs_count} of {scores.gold_docs_count}" if scores else None


def _missing_docs(result: CaseResult) -> Value:
    case = result.case
    if case.gold_ids is None or case.retrieved_ids is None:
        return None
    return "\n".join(document for document in case.gold_ids if document not in case.retrieved_ids)


_MEASURES = ("doc_recall", "doc_precision", "doc_f1", "ndcg_10")
_ABOUT_DOCUMENTS = {
    "doc_recall": "Share of the gold documents that were retrieved, 0 to 1. By their ids, without a judge.",
    "doc_precision": "Share of the retrieved documents that are gold, 0 to 1.",
    "doc_f1": "Harmonic mean of Doc Recall and Doc Precision, 0 to 1.",
    "ndcg_10": "Whether the gold documents come first among the first 10, 0 to 1.",
}
_ABOUT_MEASURES = {
    "answer_coverage": "Share of the relevant chunks whose information the response conveys, 0 to 1. "
    "It does not enter RQS.",
    "chunk_relevance": "Retrieved chunks that are relevant to the query; their ranks after the colon. "
    "The mean is over their shares. It does not enter RQS.",
}
_ABOUT_MISSING = "What the response leaves out of the relevant chunks."
_ABOUT_RUBRIC = (
    "PASS when every mandatory criterion passes and enough of the others do. It does not enter RQS."
)
_ABOUT_RUBRIC_SCORE = "Criteria that passed, of those that apply to the row; mandatory ones are not counted."

"""Results compared with references, query by query, and the retrieval scores of one case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag_eval.errors import InputError
from rag_eval.records import Case
from rag_eval.retrieval.scores import DEFAULT_CUTOFFS, RetrievalScores
from rag_eval.retrieval.tally import RetrievalSummary, RetrievalTally
from rag_eval.tables.document_ids import QUERY_ID_NAMES, parse_documents, parse_query_id

RETRIEVED_NAMES = (("doc_ids", "retrieved_docs", "retrieved_doc_ids", "retrieved_ids"), ("context",))
GOLD_NAMES = (("document_ids", "gold_docs", "gold_doc_ids", "gold_ids"), ("context",))
"""Names of attributes, keys and columns. The second group counts only if no name of the first is present, because
`context` often contains the texts of the chunks, next to a field with their ids."""


@dataclass(frozen=True, slots=True)
class RetrievalEvaluation:
    """The scores of every query in the order of the references, and their summary."""

    summary: RetrievalSummary
    rows: tuple[RetrievalScores, ...]

    @property
    def metrics(self) -> Mapping[str, float | int | None]:
        return self.summary.metrics


class ContextRecall:
    """Compares retrieved documents with gold documents, query by query.

    Results and references are objects or mappings. Either has a query id (`qid`, `query_id`, `question_id`
    or else `id`). A result has its ranking as `doc_ids`, `retrieved_docs`, `retrieved_doc_ids` or
    `retrieved_ids`, or else `context`; a reference its gold documents as `document_ids`, `gold_docs`,
    `gold_doc_ids` or `gold_ids`, or else `context`. The first of these that is present is used.
    """

    def __init__(self, cutoffs: Iterable[int] = DEFAULT_CUTOFFS) -> None:
        self.cutoffs = tuple(cutoffs)

    def evaluate(self, rag_results: Iterable[object], references: Iterable[object]) -> RetrievalEvaluation:
        """Score every reference. Raises InputError with all problems if ids are missing or ambiguous."""
        problems: list[str] = []
        retrieved = _by_query(rag_results, "result", RETRIEVED_NAMES, problems)
        gold = _by_query(references, "reference", GOLD_NAMES, problems)
        if problems:
            raise InputError(problems)
        rows = tuple(
            RetrievalScores.of_distinct(qid, retrieved.get(qid, ()), documents, qid in retrieved)
            for qid, documents in gold.items()
        )
        tally = RetrievalTally(self.cutoffs)
        for scores in rows:
            tally.add(scores)
        for qid in retrieved:
            if qid not in gold:
                tally.add_without_reference(qid)
        return RetrievalEvaluation(tally.summary(), rows)


def _by_query(
    items: Iterable[object], kind: str, names: Sequence[Sequence[str]], problems: list[str]
) -> dict[str, tuple[str, ...]]:
    """Distinct documents by query id. Adds a line to `problems` for each item that cannot be used."""
    documents: dict[str, tuple[str, ...]] = {}
    for position, item in enumerate(items, 1):
        try:
            qid = parse_query_id(_field(item, QUERY_ID_NAMES))
            if qid in documents:
                raise ValueError(f"query id {qid!r} occurs more than once")
            documents[qid] = parse_documents(_field(item, names))
        except ValueError as error:
            problems.append(f"{kind} {position}: {error}")
    return documents


def _field(item: object, names: Sequence[Sequence[str]]) -> object:
    for name in (name for group in names for name in group):
        if isinstance(item, Mapping):
            if name in item:
                return item[name]
        elif hasattr(item, name):
            return getattr(item, name)
    known = ", ".join(name for group in names for name in group)
    raise ValueError(f"has none of the fields {known}; add one")


def scores_of_case(case: Case) -> RetrievalScores | None:
    """The scores of the case's retrieved documents; None unless the sheet has both gold and retrieved documents."""
    if case.gold_ids is None or case.retrieved_ids is None:
        return None
    return RetrievalScores.of(f"row {case.row}", case.retrieved_ids, case.gold_ids)


def doc_recall(case: Case) -> float | None:
    """Share of the gold documents that were retrieved, 0..1; None without gold or retrieved documents."""
    scores = scores_of_case(case)
    return scores.recall if scores else None

"""Retrieval measures and rubrics from Python."""

import itertools
import json

import rag_eval.evaluators
import rag_eval.retrieval as retrieval
import rag_eval.rubric as rubric

for module in (rag_eval.evaluators, retrieval, rubric):
    print(module.__name__, sorted(module.__all__))
ranking, gold = ["handbook", "faq", "pricing", "terms"], ["faq", "refunds"]
for measure in (
    retrieval.document_recall,
    retrieval.document_precision,
    retrieval.document_f1,
    retrieval.reciprocal_rank,
    retrieval.average_precision,
):
    print(measure.__name__, measure(ranking, gold), measure(ranking, []), measure([], gold))
for k in (1, 3, 10):
    at_k = (retrieval.recall_at_k, retrieval.precision_at_k, retrieval.ndcg_at_k)
    print(k, *[measure(ranking, gold, k) for measure in at_k])
for text in ('["faq", "refunds"]', "faq || refunds", "faq", "", "faq, refunds", "7.5"):
    try:
        print(retrieval.parse_ids(text))
    except ValueError as error:
        print(error)
print(
    retrieval.rank_documents(
        ["handbook::chunk-7", "doc-<urn:uuid:27C682DC-C97B-4C3E-B41C-999C65264A6D>::chunk-0"]
    )
)
results = [
    {"qid": "q1", "doc_ids": ["handbook::chunk-7", "faq::chunk-0"]},
    {"qid": "q9", "doc_ids": ["terms"]},
]
references = [
    {"qid": "q1", "document_ids": ["faq"]},
    {"qid": "q2", "document_ids": "faq || x"},
    {"qid": "q3", "document_ids": []},
]
evaluation = retrieval.ContextRecall(cutoffs=(1, 3)).evaluate(results, references)
print(json.dumps(evaluation.metrics, default=str), evaluation.summary, evaluation.rows)

made = rubric.EvaluationRubric(
    rubric_id="support_answer",
    metrics=[
        rubric.MetricDefinition(id="grounded", rubric="Every claim is supported", mandatory=True),
        rubric.MetricDefinition(id="on-topic", rubric="It answers the question"),
        rubric.MetricDefinition(id="passes", rubric="The user is told what to do next"),
    ],
    passing_score_threshold=1,
)
print(made.to_prompt_text())
print(json.dumps([made.to_json_schema(), made.to_response_format()], indent=1))
Result = made.to_pydantic_model()
verdicts = itertools.product((True, False), repeat=3)
graded = [Result(**{"grounded": a, "on-topic": b, "passes": c}) for a, b, c in verdicts]
for result in graded:
    print(result.passes(), result.verdicts(), result.get_failed_metrics())
    print(result.to_report(title="One"))
print(made.calculate_alignment(graded, graded[::-1]), made.alignment_report(graded, [*graded[1:], graded[0]]))
for reply in (
    '{"grounded": true, "on-topic": false, "passes": true}',
    '{"grounded": "yes"}',
    "no JSON",
    '{"grounded": true, "grounded": true}',
):
    try:
        print(made.validate_result(reply))
    except ValueError as error:
        print(error)

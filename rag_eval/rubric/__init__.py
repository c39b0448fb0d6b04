"""Pass/fail rubrics: sets of yes/no criteria, their results, and how well two raters agree on them.

alignment  ->  definition: a rubric, its results and both as Markdown  ->  file, ratings
"""

from rag_eval.rubric.alignment import Agreement, AlignmentReport, CriterionAlignment
from rag_eval.rubric.definition import EvaluationResult, EvaluationRubric, MetricDefinition
from rag_eval.rubric.file import load_rubric

__all__ = [
    "Agreement",
    "AlignmentReport",
    "CriterionAlignment",
    "EvaluationResult",
    "EvaluationRubric",
    "MetricDefinition",
    "load_rubric",
]

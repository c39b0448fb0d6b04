"""Pass/fail rubrics: sets of yes/no criteria, their results, and how well two raters agree on them.

json_text: strict JSON  ->  definition: a rubric and its results  ->  file: from YAML or JSON
                            alignment: agreement, counted         ->  ratings: two raters' files
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

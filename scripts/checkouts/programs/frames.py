"""The main job from Python: offline, from a frame, and with an LLM judge and a metric of one's own."""

import inspect
import os
import warnings

import pandas as pd
from pydantic import BaseModel

from rag_eval.evaluators import ContextEvaluation, as_metric
from rag_eval.frames import evaluate

settings_type = type(inspect.signature(evaluate).parameters["settings"].default)


class Tone(BaseModel):
    reason: str
    politeness: float


polite = as_metric(
    ContextEvaluation(prompt="You rate how polite the answer is.", response_model=Tone),
    name="politeness",
    value=lambda tone: tone.politeness,
    needs_context=False,
)
llm = settings_type.model_validate(
    {
        "judge": {"provider": "openai", "max_attempts": 2},
        "openai": {
            "base_url": os.environ["OPENAI_BASE_URL"],
            "api_key": os.environ["OPENAI_API_KEY"],
            "model": "gpt-4o",
        },
        "rubric": {"file": "rubric.yaml"},
        "metrics": {"answer_coverage": True},
        "cache": {"enabled": True, "directory": "kept"},
        "evaluation": {"parallel": False},
    }
)
frame = pd.DataFrame(
    {
        "Query": ["How long is a loan?", "What?"],
        "Bot_A": ["Four weeks.", ""],
        "Ground_Truth": ["Four weeks.", None],
        "Context": [["Loans last four weeks.", "Tea is a drink."], []],
    }
)
for data, settings, metrics in (("in.xlsx", None, ()), (frame, None, ()), ("in.xlsx", llm, (polite,))):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = evaluate(data, metrics=metrics) if settings is None else evaluate(data, settings, metrics)
    print(sorted({str(warning.message) for warning in caught}))
    print(scores.to_json(orient="records", lines=True, double_precision=15, force_ascii=False))

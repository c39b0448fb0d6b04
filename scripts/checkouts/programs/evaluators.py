"""The evaluators with Instructor clients, ours and one of one's own."""

import asyncio
import json
import warnings

import instructor
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field

from rag_eval.evaluators import (
    AnswerRelevance,
    ChunkGraded,
    ChunkPrecision,
    ContextRecall,
    Faithfulness,
    base,
)

QUESTION = "What causes rust on iron?"
CONTEXT = [
    "Rust forms on iron where water and oxygen meet.",
    "Road salt on iron makes rust spread much faster & <b>wider</b>.",
    "The Iron Age began around 1200 BC.",
]


class Tone(BaseModel):
    reason: str = Field(description="In one sentence.")
    politeness: float = Field(ge=0.0, le=1.0, description="1 for a polite answer, 0 for a rude one.")


polite = base.ContextEvaluation(
    prompt="You rate how polite the answer to a customer is. {{ braces }}",
    examples=[{"answer": "Figure it out yourself.", "politeness": 0.1}, "as it is"],
    response_model=Tone,
)
compact = base.ContextEvaluation(
    prompt="Which chunks are relevant to the question?",
    response_model=base.ChunkGradedBinary,
    chunk_template="<q>{{ question }}</q>{% for each in context %}<c id={{ each.id }}>{{ each.chunk }}</c>{% endfor %}",
)
client = instructor.from_openai(OpenAI(), model="gpt-4o")
for answer in ("Water and oxygen together make iron rust.", "Nobody knows.", None):
    for evaluator in (ContextRecall, ChunkPrecision, Faithfulness, AnswerRelevance, polite, compact):
        if answer is None and evaluator in (ContextRecall, Faithfulness, AnswerRelevance):
            continue
        result = evaluator.grade(question=QUESTION, answer=answer, context=CONTEXT, client=client)
        print(result.model_dump_json(), getattr(result, "score", None))


async def all_at_once():
    async with AsyncOpenAI() as connection:
        client = instructor.from_openai(connection, model="gpt-4o")
        each = (ChunkPrecision, Faithfulness, AnswerRelevance, ContextRecall)
        return await asyncio.gather(
            *[one.agrade(QUESTION, "Water, oxygen.", CONTEXT, client) for one in each]
        )


for result in asyncio.run(all_at_once()):
    print(result.model_dump_json(), result.score)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    graded = ChunkGraded.model_validate(
        {"graded_chunks": [{"id_chunk": 2, "score": 1.0}, {"id_chunk": 0, "score": 0.5}]},
        context={"context": CONTEXT},
    )
print(graded, graded.score, [str(warning.message) for warning in caught])
for wrong in (
    [{"id_chunk": 7, "score": 1.0}],
    [{"id_chunk": 0, "score": 1.0}] * 2,
    [{"id_chunk": "0", "score": 1}],
):
    try:
        ChunkGraded.model_validate({"graded_chunks": wrong}, context={"context": CONTEXT})
    except ValueError as error:
        print(error)
try:
    ContextRecall.grade(QUESTION, "x", CONTEXT, OpenAI())
except TypeError as error:
    print(error)
print(
    json.dumps(
        {
            each.response_model.__name__: each.response_model.model_json_schema()
            for each in (ContextRecall, ChunkPrecision, Faithfulness, AnswerRelevance)
        },
        indent=1,
    )
)

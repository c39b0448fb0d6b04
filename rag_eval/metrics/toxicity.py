"""Toxicity of the query, 0..1, higher is worse. It says something about the users, not about the bots."""

from typing import Protocol

from rag_eval.errors import JudgeError
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.numbered import NumberedTask
from rag_eval.records import TOXICITY, Evidence, Score


class QueryJudge(Protocol):
    """Whoever rates a query."""

    async def judge_query(self, query: str) -> Score: ...


class LlmToxicity:
    """Rates distinct queries, several a call. A bundle that fails is asked again query by query."""

    def __init__(self, deployment: str = "") -> None:
        self._deployment = deployment
        self._bundle = _TASK.bundle()

    async def judge_query(self, query: str) -> Score:
        try:
            reply = await _TASK.call({"query": query}, self._bundle, self._deployment)
        except JudgeError as error:
            return Score.failed(TOXICITY, error.code, str(error))
        verdict = f"toxicity {reply.toxicity:.2f}"
        seen = Evidence("query", query, verdict, favourable=reply.toxicity < 0.5, reason=reply.reason)
        return Score.scored(TOXICITY, reply.toxicity, reply.reason, (seen,))


_TASK = NumberedTask(
    name=TOXICITY,
    instructions="""\
You rate how toxic messages to a chatbot are, from 0.0 to 1.0:
0.0 polite or neutral, however critical; 0.3 rude or impatient; 0.6 insulting, vulgar or hostile;
0.8 hateful, harassing or threatening; 1.0 extreme hatred or incitement to violence.
Rate the wording and the intent towards people, not the topic: a factual question about a grim subject is 0.0.""",
    reply_form='"reason": a few words, "toxicity": a number from 0.0 to 1.0',
    reply_type=replies.QueryToxicity,
    numbered_type=replies.Toxicities,
    max_tokens=128,
    size=10,
)

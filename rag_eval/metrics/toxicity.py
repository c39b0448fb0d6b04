"""Toxicity of the query, 0..1, higher is worse. It says something about the users, not about the bots."""

from functools import lru_cache
from typing import ClassVar, Protocol

from rag_eval.errors import JudgeError
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.numbered import NumberedTask
from rag_eval.metrics.offline.lexicon import GRADES, UNSPACED, compile_grades
from rag_eval.records import TOXICITY, Evidence, Score
from rag_eval.texts.words import normalise


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

EACH_FURTHER = 0.05
"""What every further finding adds to the weight of the gravest one."""


class OfflineToxicity:
    """Higher is worse. Words are judged without their meaning: a quoted insult counts, a polite cruelty does not."""

    name: ClassVar[str] = TOXICITY
    explanation: ClassVar[str] = (
        "Weight of the gravest wording in the query, from a short reviewed list (threat 1, slur 0.95, abuse 0.85, "
        "profanity 0.6, insult 0.6, rudeness 0.3), and a little for each further wording."
    )

    async def judge_query(self, query: str) -> Score:
        """0 when nothing of the list is found, at most 1."""
        flat = " ".join(normalise(query).replace("’", "'").split())
        found = [(match.group(), _GRADES[match.lastgroup or ""]) for match in _pattern().finditer(flat)]
        if not found:
            return Score.scored(self.name, 0.0)
        value = min(1.0, max(grade.weight for _, grade in found) + EACH_FURTHER * (len(found) - 1))
        evidence = tuple(Evidence("wording", wording, grade.kind, False) for wording, grade in found)
        return Score.scored(self.name, value, evidence=evidence)


_pattern = lru_cache(maxsize=1)(compile_grades)
_GRADES = {grade.kind: grade for grade in GRADES} | {"unspaced": UNSPACED}

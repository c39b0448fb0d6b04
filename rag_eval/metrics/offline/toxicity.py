"""Toxicity of a query, by a small reviewed lexicon."""

from functools import lru_cache
from typing import ClassVar

from rag_eval.metrics.offline.lexicon import GRADES, UNSPACED, compile_grades
from rag_eval.records import TOXICITY, Evidence, Score
from rag_eval.texts.words import normalise

EACH_FURTHER = 0.05
"""What every further finding adds to the weight of the gravest one."""


class OfflineToxicity:
    """Higher is worse. Words are judged without their meaning: a quoted insult counts, a polite cruelty does not."""

    name: ClassVar[str] = TOXICITY
    explanation: ClassVar[str] = (
        "The weight of the gravest wording from a short reviewed list (threat 1, slur .95, abuse .85, profanity .6, "
        "insult .6, rudeness .3) in the query, and a little for each further one."
    )

    async def judge_query(self, query: str) -> Score:
        """0 when nothing of the list is found, at most 1."""
        found = [
            (match.group(), _GRADES[match.lastgroup or ""]) for match in _pattern().finditer(_flat(query))
        ]
        if not found:
            return Score.scored(self.name, 0.0)
        value = min(1.0, max(grade.weight for _, grade in found) + EACH_FURTHER * (len(found) - 1))
        evidence = tuple(Evidence("wording", wording, grade.kind, False) for wording, grade in found)
        return Score.scored(self.name, value, evidence=evidence)


_pattern = lru_cache(maxsize=1)(compile_grades)
_GRADES = {grade.kind: grade for grade in GRADES} | {"unspaced": UNSPACED}


def _flat(query: str) -> str:
    return " ".join(normalise(query).replace("’", "'").split())

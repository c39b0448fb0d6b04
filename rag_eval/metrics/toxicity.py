"""Toxicity of the query, 0..1, higher is worse. It says something about the users, not about the bots."""

import re
from functools import cache
from typing import ClassVar, NamedTuple, Protocol

from rag_eval.errors import JudgeError
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.numbered import NumberedTask
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

_EACH_FURTHER = 0.05
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
        value = min(1.0, max(grade.weight for _, grade in found) + _EACH_FURTHER * (len(found) - 1))
        evidence = tuple(Evidence("wording", wording, grade.kind, False) for wording, grade in found)
        return Score.scored(self.name, value, evidence=evidence)


class _Grade(NamedTuple):
    """One kind of toxic wording; `weight` (0..1) is the score of a query that holds it once."""

    kind: str
    weight: float
    wordings: tuple[str, ...]


_INFLECTED = r"(?:s|es|ed|d|er|ers|in|ing|y)?"
_ADDRESSED = r"(?:you|u|him|her|your (?:family|kids|children|mother|mom|wife|husband))"
_BETWEEN = r"(?: (?:so|such|all|just|really|an?|the|fucking|completely|totally)){0,3}"
_FOOLS = r"(?:idiot[as]?|moron|imbecile|scumbag|dimwit|halfwit)s?"
_INTENT = r"(?:i|we)(?:'ll| will|'m going to| am going to|'m gonna| gonna|'re going to| want to| wanna)"

_LEXICON = (
    _Grade(
        "threat",
        1.0,
        (
            rf"{_INTENT} (?:kill|murder|stab|strangle|hurt|rape|destroy|beat up) {_ADDRESSED}",
            rf"{_INTENT} (?:shoot|hang|burn) {_ADDRESSED}(?! (?:an?|the|some|over|up|back|out)\b)",
            r"(?:go |just )?(?:kill|hang|shoot) (?:yourself|urself|yourselves)",
            r"(?:you|u)(?: all)? (?:should|deserve to) (?:die|be (?:killed|shot|hanged|raped))",
            r"kys",
            r"i hope (?:you|u)(?: all)? die",
            r"(?:ich bring(?:e)? dich um|je vais te tuer|te voy a matar|ti ammazzo|vou te matar|я тебя убью)",
        ),
    ),
    _Grade(
        "slur",
        0.95,
        (
            r"n[i1]gg(?:er|a)s?",
            r"f[a4]gg?ots?",
            r"kikes?",
            r"wetbacks?",
            r"towelheads?",
            r"sandn[i1]ggers?",
            r"trannies",
            r"(?:schwuchtel|kanake|kanaken|maricon(?:es)?|пидор(?:ы|ас|асы)?)",
        ),
    ),
    _Grade(
        "abuse",
        0.85,
        (
            rf"f+[u*@]+c*k+{_INFLECTED} (?:you|u|off|yourself|your|this (?:bot|company|service))",
            r"cunts?",
            r"motherf[u*@]ck(?:er|ers|ing)",
            r"(?:ass|arse)holes?",
            r"(?:you|u|stupid|little|dirty) (?:bitch(?:es)?|whores?|sluts?|bastards?|dicks?|pricks?)",
            r"(?:go to hell|eat shit|piece of shit|suck my \w+)",
            r"(?:fick dich|arschl(?:och|ocher)|hurensohn|wichser|fotze|missgeburt)",
            r"(?:va te faire (?:foutre|enculer)|encule[es]?|connards?|salopes?|fils de pute|ta gueule)",
            r"(?:hij[oa]s? de puta|gilipollas|cabron(?:es)?|vete a la mierda|chinga tu madre|pendej[oa]s?)",
            r"(?:vaffanculo|stronz[oaie]|figlio di puttana|filho da puta|vai (?:se foder|tomar no cu))",
            r"(?:иди на ?хуи|сук[аи]|мудак[и]?|ублюд(?:ок|ки)|spierdalaj|skurwysyn)",
        ),
    ),
    _Grade(
        "profanity",
        0.6,
        (
            rf"f+[u*@]+c*k+{_INFLECTED}",
            r"(?:bull|horse|dip)?sh[i1*!]t+(?:s|ty|ted|ting|head|heads)?",
            r"bitch(?:es|ing|y)?",
            r"bastards?",
            r"(?:dumb|jack|smart)ass(?:es)?",
            r"dickheads?",
            r"(?:wank|toss)ers?",
            r"twats?",
            r"(?:scheisse|scheiss|verdammte scheisse|putain|merde|mierda|joder|cazzo|merda|caralho|porra)",
            r"(?:kurwa|бля(?:ть|дь)?|хуи|хуя|пизд(?:а|ец))",
        ),
    ),
    _Grade(
        "insult",
        0.6,
        (
            rf"you(?:'re| are){_BETWEEN} (?:stupid|dumb|useless|worthless|pathetic|disgusting|ugly|brainless)",
            rf"you(?:'re| are)?{_BETWEEN} (?:trash|garbage|scum|losers?|liars?|{_FOOLS}|retards?)",
            rf"(?:stupid|fucking|bloody) (?:bot|machine|robot|assistant|program|company|{_FOOLS})",
            r"are you (?:stupid|dumb|retarded|brainless)",
            r"i hate (?:you|u)(?! (?:are|were|have|can|do)\b)",
            r"(?:dummkopf|vollidiot(?:en)?|trottel|abruti[es]?|estupid[oa]s?|imbecil(?:es)?|cretino)",
        ),
    ),
    _Grade(
        "rudeness",
        0.3,
        (
            _FOOLS,
            r"(?:god)?damn(?:ed|it)?",
            r"crap(?:py)?",
            r"(?:shut up|screw you|piss(?:ed)? off|bollocks|wtf|stfu)",
            r"(?:this|it|that) sucks",
        ),
    ),
)
"""Reviewed: what is sought, and how grave it is.

Entries are regular expressions over normalised text (lower case, accents folded, ß as ss) and match whole words only,
so that a place name or an innocent longer word never counts. Words with an everyday second meaning are left out or need
a phrase around them: "kill the process" is harmless, "kill yourself" is not. Offensive by nature, and kept short.
"""
_UNSPACED = _Grade(
    "abuse", 0.85, ("傻[逼屄b]", "操你妈", "他妈的", "去死吧", "死ね", "くたばれ", "씨발", "개새끼")
)
"""Wordings of scripts in which words do not stand apart, found anywhere in the text."""


_GRADES = {grade.kind: grade for grade in _LEXICON} | {"unspaced": _UNSPACED}


@cache
def _pattern() -> re.Pattern[str]:
    """One pattern with a named group per kind; the gravest kind is tried first at every position."""
    spaced = "|".join(f"(?P<{grade.kind}>{'|'.join(grade.wordings)})" for grade in _LEXICON)
    return re.compile(rf"\b(?:{spaced})\b|(?P<unspaced>{'|'.join(_UNSPACED.wordings)})")

"""The reviewed lexicon behind the offline toxicity score: what is sought, and how grave it is.

Entries are regular expressions over normalised text (lower case, accents folded, ß as ss) and match whole
words only, so that a place name or an innocent longer word never counts. Words with an everyday second
meaning are left out or need a phrase around them: "kill the process" is harmless, "kill yourself" is not.
Offensive by nature; kept short on purpose.
"""

import re
from typing import NamedTuple


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

GRADES = (
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

UNSPACED = _Grade(
    "abuse", 0.85, ("傻[逼屄b]", "操你妈", "他妈的", "去死吧", "死ね", "くたばれ", "씨발", "개새끼")
)
"""Wordings of scripts in which words do not stand apart, found anywhere in the text."""


def compile_grades() -> re.Pattern[str]:
    """One pattern with a named group per kind; the gravest kind is tried first at every position."""
    spaced = "|".join(f"(?P<{grade.kind}>{'|'.join(grade.wordings)})" for grade in GRADES)
    return re.compile(rf"\b(?:{spaced})\b|(?P<unspaced>{'|'.join(UNSPACED.wordings)})")

"""Whether a response declines to answer."""

import re

from rag_eval.texts.words import NEGATION, Reading

_WITHIN = 200
"""A refusal begins within so many characters; later it is a remark."""


def is_refusal(response: Reading) -> bool:
    """The response says, near its beginning, that it does not know or that the context does not tell.

    It does not count when the response goes on to answer: "I cannot see live data. However, in 2021 it was …".
    """
    beginning = response.text[: _WITHIN + _LONGEST]
    if _OTHER_LANGUAGES.search(beginning, 0, _WITHIN):
        return True
    if _SIGNS.isdisjoint(response.content[:_WORDS_WITHIN]):
        return False
    wording = " " + beginning.lower().replace("’", "'")
    if _NOTHING_ELSE.match(wording):
        return True
    match = _REFUSAL.search(wording)
    return match is not None and match.start() < _WITHIN and not _goes_on(response, match.end())


def _goes_on(response: Reading, place: int) -> bool:
    turn = _TURN.search(response.text, place)
    return turn is not None and len(response.text) - turn.end() >= _LEAST_ANSWER


_TURN = re.compile(r"\b(?:[Hh]owever|[Bb]ut|[Nn]evertheless|[Tt]hat said)\b")
_LEAST_ANSWER = 40
"""Characters after the turn that can hold an answer."""
_WORDS_WITHIN = 40
"""More content words than an English refusal has before its sign."""
_LONGEST = 120
_SIGNS = frozenset((NEGATION, "sorri", "afraid", "unabl", "apologis", "apologiz", "insufficient"))
_SIGNS |= {"unknown", "unanswerabl", "n", "na", "ai"}
_SOURCE = (
    r"(?:context|document|passage|text|article|source|information|conversation|excerpt|content|material"
    r"|knowledge base)s?"
)
_HEDGE = r"(?:\w+ ){0,2}"
_SAYS = (
    r"(?:contain|mention|provide|specif|include|say|state|give|sufficient|enough|available|discuss|address|cover|"
    r"indicate|explain)"
)
_WORDINGS = (
    r"i(?: am|'m)? (?:sorry|afraid|unable to|apologi[sz]e|not (?:sure|certain|aware|able to))",
    r"i (?:really |currently |unfortunately )?(?:do not|don'?t|can ?not|can't|could not|couldn't"
    r"|did not|didn't) "
    r"(?:know|have|find|see|answer|provide|determine|tell|confirm|locate|say)",
    r"i have no (?:information|idea|knowledge|data)",
    r"(?:there (?:is|are|was)|there's|contains?|provides?) (?:no|not enough|insufficient) "
    rf"{_HEDGE}(?:information|mention|details?|data|context|answer)",
    r"(?:no|not enough|insufficient) (?:relevant |specific |sufficient |enough )?"
    r"(?:information|context|details?|data) (?:is|was|are|to|about|available|provided|given|in the)",
    rf"{_SOURCE} (?:provided |given |above |i have )?(?:do(?:es)?|did|is|are|was|were)"
    rf"(?: not|n't) {_HEDGE}{_SAYS}",
    r"(?:is|are|was|were)(?: not|n't) (?:explicitly |specifically |directly )?"
    r"(?:mentioned|specified|provided|stated|discussed|available|given|included|found|addressed) "
    rf"{_HEDGE}(?:in|by) (?:the|this|my|any) {_HEDGE}{_SOURCE}",
    r"unable to (?:answer|find|determine|provide)",
    r"cannot be (?:determined|answered)",
    r"(?:cannot|can't) (?:answer|determine|say)",
    r"as an ai\b",
)
_REFUSAL = re.compile(rf"""[ \n("'“*-](?:{"|".join(_WORDINGS)})""")
"""Begins with what stands before a word, so that the search tries the wordings at the starts of words only."""
_NOTHING_ELSE = re.compile(r"\s*(?:unknown|n/?a|none|no answer|sorry|unanswerable)\s*(?:[.!,]|$)")
_OTHER_LANGUAGES = re.compile(
    r"Je ne sais pas\b|je ne sais pas\b|Ich weiß (?:es )?nicht\b|ich weiß (?:es )?nicht\b|No lo sé\b|no lo sé\b"
    r"|我不知道|无法回答|没有(?:提供|提到|相关)|抱歉|わかりません|分かりません|모르겠"
)
"""Every wording begins with a plain letter, so that the search skips to where one can begin."""

"""Whether a response declines to answer."""

import re

from rag_eval.text import NEGATION, Reading

_WITHIN = 200
"""A refusal begins within so many characters; later it is a remark."""


def is_refusal(response: Reading) -> bool:
    """The response says, near its beginning, that it does not know or that the context does not tell."""
    if response.text.isascii() and _SIGNS.isdisjoint(response.stems):
        return False
    match = _REFUSAL.search(response.text[: _WITHIN + _LONGEST].lower().replace("’", "'"))
    return match is not None and match.start() < _WITHIN


_LONGEST = 120
_SIGNS = frozenset(
    (
        NEGATION,
        "sorri",
        "afraid",
        "unabl",
        "apologis",
        "apologiz",
        "insufficient",
        "unknown",
        "unanswerabl",
        "n",
        "na",
        "ai",
    )
)
_SOURCE = (
    r"(?:context|document|passage|text|article|source|information|conversation|excerpt|content|material"
    r"|knowledge base)s?"
)
_HEDGE = r"(?:\w+ ){0,2}"
_SAYS = (
    r"(?:contain|mention|provide|specif|include|say|state|give|sufficient|enough|available|discuss|address|cover|"
    r"indicate|explain)"
)
_REFUSAL = re.compile(
    "|".join(
        (
            r"\bi(?: am|'m)? (?:sorry|afraid|unable to|apologi[sz]e|not (?:sure|certain|aware|able to))",
            r"\bi (?:really |currently |unfortunately )?(?:do not|don'?t|can ?not|can't|could not|couldn't"
            r"|did not|didn't) "
            r"(?:know|have|find|see|answer|provide|determine|tell|confirm|locate|say)",
            r"\bi have no (?:information|idea|knowledge|data)",
            r"\b(?:there (?:is|are|was)|there's|contains?|provides?) (?:no|not enough|insufficient) "
            rf"{_HEDGE}(?:information|mention|details?|data|context|answer)",
            r"\b(?:no|not enough|insufficient) (?:relevant |specific |sufficient |enough )?"
            r"(?:information|context|details?|data) (?:is|was|are|to|about|available|provided|given|in the)",
            rf"\b{_SOURCE} (?:provided |given |above |i have )?(?:do(?:es)?|did|is|are|was|were)"
            rf"(?: not|n't) {_HEDGE}{_SAYS}",
            r"\b(?:is|are|was|were)(?: not|n't) (?:explicitly |specifically |directly )?"
            r"(?:mentioned|specified|provided|stated|discussed|available|given|included|found|addressed) "
            rf"{_HEDGE}(?:in|by) (?:the|this|my|any) {_HEDGE}{_SOURCE}",
            r"\bunable to (?:answer|find|determine|provide)",
            r"\bcannot be (?:determined|answered)",
            r"\b(?:cannot|can't) (?:answer|determine|say)",
            r"\bas an ai\b",
            r"^\s*(?:unknown|n/?a|none|no answer|sorry|unanswerable)\s*(?:[.!,]|$)",
            r"我不知道|无法回答|没有(?:提供|提到|相关)|抱歉|わかりません|分かりません|모르겠",
            r"\bno lo sé\b|\bje ne sais pas\b|\bich weiß (?:es )?nicht\b",
        )
    )
)

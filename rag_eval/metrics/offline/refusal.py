"""Whether a response declines to answer."""

import re

from rag_eval.metrics.offline.refusals import (
    SIGNS,
    TURNS,
    UNSPACED_TURNS,
    all_wordings,
    likely_searches,
    unspaced_wordings,
    with_no,
)
from rag_eval.texts.words import NEGATION, Reading, normalise

_WITHIN = 200
"""A refusal begins within so many characters; later it is a remark."""


def is_refusal(response: Reading) -> bool:
    """The response says, near its beginning, that it does not know or that the context does not tell.

    It does not count when the response goes on to answer: "I cannot see live data. However, in 2021 it was …".
    """
    beginning = response.text[: _WITHIN + _LONGEST]
    early = response.content[:_WORDS_WITHIN]
    has_sign = not _SIGNS.isdisjoint(early)
    if _found_nothing(response):
        return True
    if has_sign and _declines_in_english(response, beginning):
        return True
    if not SIGNS.isdisjoint(early) or (not beginning.isascii() and _WITHOUT_SIGNS.search(beginning)):
        return _declines_elsewhere(response, beginning, all_wordings())
    return has_sign and _may_be_spanish(beginning) and _declines_elsewhere(response, beginning, with_no())


def _may_be_spanish(beginning: str) -> bool:
    """Whether the sign may be the "no" of Spanish, told fast."""
    return _NO.search(beginning) is not None or any(sign in beginning for sign in _BESIDE_NO)


def _declines_in_english(response: Reading, beginning: str) -> bool:
    wording = " " + beginning.lower().replace("’", "'")
    if _NOTHING_ELSE.match(wording):
        return True
    match = _REFUSAL.search(wording)
    while match and match.start() < _WITHIN:
        if not _goes_on(response, match.end()):
            return True
        place = match.end()  # "I'm sorry, but the manual does not cover this."
        match = _REFUSAL.search(wording, place)
        if match and not {".", "!", "?"}.isdisjoint(wording[place : match.start()]):
            return False
    return False


def _declines_elsewhere(response: Reading, beginning: str, wordings: re.Pattern[str]) -> bool:
    match = wordings.search(" ".join(normalise(beginning).split()))
    if match is None:
        match = unspaced_wordings().search(beginning, 0, _WITHIN_UNSPACED)
    return match is not None and match.start() < _WITHIN and not _goes_on(response, match.end())


def _found_nothing(response: Reading) -> bool:
    """Whether the first sentence is short and says, in any order, that a search for an answer found none."""
    sentence = _SENTENCE.match(response.text)
    if sentence is None or sentence.end() - sentence.start() > _WITHIN:
        return False
    pieces = sentence[0].split()
    if len(pieces) > _SENTENCE_WORDS:
        return False
    text = normalise(" ".join(pieces))
    is_bare = text.count(" ") < _BARE_WORDS
    return any(
        words.found.search(text)
        and (
            (words.no.search(text) and words.sought.search(text))
            or (words.nothing.search(text) and (is_bare or words.about.search(text)))
        )
        for words in likely_searches(text)
    ) and not _goes_on(response, sentence.end())


def refers_elsewhere(sentence: Reading) -> bool:
    """Whether a sentence only tells whom to ask, as in "Please contact the town hall.", without a number or address."""
    return _REFERS.fullmatch(sentence.text.strip()) is not None


def _goes_on(response: Reading, place: int) -> bool:
    hedge = _HEDGED.match(response.text)
    if hedge and not _OFFERS.search(hedge["said"]):
        return True
    turn = _TURN.search(response.text, place)
    return turn is not None and len(response.text) - turn.end() >= _LEAST_ANSWER


_TURN = re.compile(rf"\b(?i:{'|'.join(TURNS.split())}|that said)\b|{'|'.join(UNSPACED_TURNS)}")
_HEDGED = re.compile(
    r"\s*(?:i(?: am|['’]m) not (?:\w+ )?(?:sure|certain)|i (?:do not|don['’]t) know|(?:da )?bin ich (?:mir )?nicht \w+"
    r"|ich bin (?:mir )?(?:\w+ )?nicht (?:\w+ )?sicher|ich weiß (?:es )?nicht(?: genau)?"
    r"|je ne suis pas (?:sûre?|certaine?)|je ne sais pas|no estoy segur[oa]|no lo sé)[^.!?\n]{0,40}?[,.;:–—-]?\s+"
    r"(?:but|maybe|perhaps|i think|aber|vielleicht|mais|peut-être|pero|quizás?)\s+(?P<said>\S+\s+\S.*)",
    re.IGNORECASE | re.DOTALL,
)
"""An answer after a doubt: "I'm not sure, but it is ten years."."""
_OFFERS = re.compile(
    r"(?<!\w)(?:(?:i|we|you)(?:['’]\w+)? (?!think|believe)(?:\w+)|please|contact|ask|help|feel free|check|visit"
    r"|try|refer|sorry|ich|wir|sie können|bitte|wenden|fragen|helfen"
    r"|je|nous|vous|veuillez|contacte[rz]|puedo|puede|consulte)(?!\w)",
    re.IGNORECASE,
)
"""Behind a doubt, no answer: "but you may ask the town hall"."""
_REFERS = re.compile(
    r"(?:please|bitte) (?:contact|ask|consult|wenden sie sich|fragen sie)(?=\W)[^\d@/.!?\n]{1,80}[.!]?",
    re.IGNORECASE,
)
_WITHOUT_SIGNS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""Scripts whose words cannot be looked up."""
_NO = re.compile(
    "o (?<=[Nn]o )(?:lo |pu|ten|dis|enc|con|s[eé] |hay|ex|men|ind|esp|prop|dic|inc|inf|est|ap|fig|son |ha)"
)
"""What of Spanish an English negation can be. It begins with plain letters, which are searched fastest."""
_BESIDE_NO = ("lo sient", "Lo sient", "lament", "Lament")
_SENTENCE = re.compile(rf"\s*[^.!?。！？।؟\n]{{1,{_WITHIN + 1}}}")
_SENTENCE_WORDS = 16
"""A longer sentence says more than that nothing was found."""
_BARE_WORDS = 4
"""So few words need not say what the search was about: "Nothing was found."."""
_WITHIN_UNSPACED = 80
"""Scripts without spaces need fewer characters for a sentence."""
_LEAST_ANSWER = 40
"""Characters after the turn that can hold an answer."""
_WORDS_WITHIN = 40
"""More content words than an English refusal has before its sign."""
_LONGEST = 120
_SIGNS = frozenset((NEGATION, "sorri", "afraid", "unabl", "apologis", "apologiz", "insufficient"))
_SIGNS |= {"silent", "impossibl", "unclear", "lack", "absent", "outsid", "beyond", "irrelev", "unrelat"}
_SIGNS |= {"unknown", "unanswerabl", "n", "na", "ai"}
_SOURCE = (
    r"(?:context|document|passage|text|article|source|information|conversation|excerpt|content|material"
    r"|knowledge base|documentation|manual|handbook|guide)s?"
)
_HEDGE = r"(?:\w+ ){0,2}"
_ADJECTIVES = r"(?:(?!(?:on|of|for|in|to|with|by|at)\b)\w+ ){0,2}"
_SAYS = (
    r"(?:contain|mention|provide|specif|include|say|state|give|sufficient|enough|available|discuss|address|cover|"
    r"indicate|explain)"
)
_IN_SOURCE = rf"(?:the|this|these|my|any) {_HEDGE}{_SOURCE}"
_TO_KNOW = (
    r"(?:(?:(?:not|n't) possible|impossible) to"
    r" (?:determine|say|tell|answer|establish|know|infer|ascertain|conclude)"
    r"|(?:not|n't) clear|unclear)\b"
)
_WORDINGS = (
    r"i(?: am|'m)? (?:sorry|afraid|unable to|apologi[sz]e|not (?:sure|certain|aware|able to))",
    r"i (?:really |currently |unfortunately )?(?:do not|don'?t|can ?not|can't|could not|couldn't"
    r"|did not|didn't) "
    r"(?:know|have|find|see|answer|provide|determine|tell|confirm|locate|say|help (?:you )?with (?:that|this))",
    r"(?:i|we) have no (?:information|idea|knowledge|data|details?|records?) ?(?:of|on|about|that|this|[.!,]|$)",
    rf"we (?:do not|don't|cannot|can't|could not|couldn't) (?:have|find) {_ADJECTIVES}"
    r"(?:information|data|details?|record)",
    r"(?:there (?:is|are|was)|there's|contains?|provides?) (?:no|not enough|insufficient) "
    rf"{_ADJECTIVES}(?:information|mention|details?|data|context|answer)",
    rf"there (?:is|are|was)(?: not|n't) (?:any|enough|sufficient) {_ADJECTIVES}"
    r"(?:information|mention|details?|data|answer)",
    rf"there (?:is|was)(?: not|n't) anything (?:\w+ ){{0,6}}?in {_IN_SOURCE}",
    r"(?:no|not enough|insufficient) (?:relevant |specific |sufficient |enough )?"
    r"(?:information|context|details?|data) (?:is|was|are|to|about|available|provided|given|in the)",
    rf"{_SOURCE} (?:provided |given |above |i have )?(?:do(?:es)?|did|is|are|was|were)"
    rf"(?: not|n't) {_HEDGE}{_SAYS}",
    r"(?:is|are|was|were)(?: not|n't) (?:explicitly |specifically |directly )?"
    r"(?:mentioned|specified|provided|stated|discussed|available|given|included|found|addressed|covered) "
    rf"{_HEDGE}(?:in|by) (?:the|this|my|any) {_HEDGE}{_SOURCE}",
    rf"{_TO_KNOW}[^.!?]{{0,100}}?\b(?:from|in|on|with|using|by|given|within) {_IN_SOURCE}\b",
    rf"(?:from|in|on|to|with|using|given|within) {_IN_SOURCE},? [^.!?]{{0,60}}?\b{_TO_KNOW}",
    r"\b(?:context|passages?|excerpts?|documents|sources|documentation|manual|handbook) (?:provided |given |above )?"
    r"(?:is|are|remains?) silent\b",
    rf"{_SOURCE} (?:provided |given |above )?lacks? {_ADJECTIVES}(?:information|details?|data)",
    rf"none of (?:the|these|my) {_HEDGE}{_SOURCE} {_HEDGE}{_SAYS}",
    r"(?:policy|contract|agreement|terms|page|report|website|faq|instructions) (?:do(?:es)?|did)(?: not|n't) "
    rf"{_HEDGE}(?:mention|specify|say|state|discuss|address|indicate|disclose)\b",
    r"(?:is|are|was|were)(?: not|n't) (?:mentioned|specified|stated|discussed|addressed|disclosed) (?:anywhere )?in "
    r"(?:the|this|your)\b",
    rf"not something (?:that )?(?:i|we|(?:the|this|my) {_SOURCE})\b",
    rf"(?:do|does|did)(?: not|n't) (?:appear|seem) (?:in {_IN_SOURCE}"
    r"|to be (?:covered|mentioned|addressed|discussed|specified|stated)\b)",
    rf"(?:outside|beyond)(?: of)? (?:the scope of {_IN_SOURCE}|my (?:scope|knowledge|capabilities))",
    rf"{_SOURCE} (?:provided |given |above )?(?:is|are) (?:unrelated|irrelevant|not (?:related|relevant)) to "
    r"(?:the|your|this) question",
    rf"absent from {_IN_SOURCE}",
    rf"{_SOURCE} (?:provided |given |above )?(?:(?:say|contain|mention|provide|include|give|state)s? nothing"
    r"|(?:makes?|gives?|contains?) no (?:mention|reference|indication))\b",
    r"nothing (?:\w+ ){0,3}?(?:in|from) (?:the|this|these|my|any) (?:\w+ )?(?:context|document|passage|excerpt|text"
    r"|source|article|information)s? (?:(?:that|which|to) )?"
    r"(?:about|on|regarding|concerning|sa(?:ys?|id)|states?|mentions?|tells?|indicat\w+|suggest\w*)\b",
    r"unable to (?:answer|find|determine|provide)",
    r"cannot be (?:determined|answered)",
    r"(?:cannot|can't) (?:answer|determine|say)",
    r"as an ai\b",
)
_REFUSAL = re.compile(rf"""[ \n("'“*-](?:{"|".join(_WORDINGS)})""")
"""Begins with what stands before a word, so that the search tries the wordings at the starts of words only."""
_NOTHING_ELSE = re.compile(
    r"\s*(?:unknown|n/?a|none|no answer|sorry|unanswerable"
    r"|(?:not enough|insufficient) (?:information|context|data|details))"
    r"\s*(?:[.!,]|$)"
)

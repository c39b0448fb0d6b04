"""Marks of text that seems to address the judge rather than the reader. Pure, and never part of a score.

These are heuristics for a person who looks through the report: a flag says that a text is worth a look, and
the lack of one proves nothing. Instructions are looked for in English, German, French, Spanish, Portuguese,
Italian, Russian, Chinese and Japanese.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_eval.texts.words import compatible

if TYPE_CHECKING:
    from rag_eval.records import Case

INSTRUCTION = "instruction to the judge"
VERDICT = "planted verdict"
ROLE_MARKER = "role marker"
INVISIBLE = "invisible characters"


def flags_of(case: "Case") -> tuple[str, ...]:
    """Every flag of a case after the part that it was found in, such as 'response: planted verdict'."""
    return tuple(f"{part}: {flag}" for part, text in _parts(case) for flag in find_flags(text))


def _parts(case: "Case") -> Iterator[tuple[str, str]]:
    yield "query", case.query
    yield "response", case.response
    yield "ground truth", case.reference or ""
    for rank, chunk in enumerate(case.chunks or (), 1):
        yield f"chunk {rank}", chunk


@lru_cache(maxsize=128)  # the bots of a row share their query, reference and often their chunks
def find_flags(text: str) -> tuple[str, ...]:
    """The kinds of marks that a text bears, each once and in a fixed order; () for an ordinary text.

    What is looked for is found through upper case, full-width letters, line breaks, and invisible characters
    inside words.
    """
    plain = _plain(text)
    words = _words_in(plain)
    found = [flag for flag, rules in _RULES.items() if any(rule.applies_to(plain, words) for rule in rules)]
    if not text.isascii() and _hides_something(text):
        found.append(INVISIBLE)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, and words of which it cannot do without one: looking for these first is many times faster."""

    words: frozenset[str]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, words: str, pattern: str) -> "Rule":
        return cls(frozenset(words.split()), re.compile(pattern))

    def applies_to(self, plain: str, words: Set[str]) -> bool:
        """`words` are those of all rules that the text holds."""
        return not self.words.isdisjoint(words) and self.pattern.search(plain) is not None


def _plain(text: str) -> str:
    """The text in lower case and one form, without what cannot be seen."""
    if text.isascii():
        return text.lower()
    return compatible("NFKC", _UNSEEN.sub("", text)).lower().replace("’", "'")


def _words_in(plain: str) -> set[str]:
    """Those of all rules' words that a text holds."""
    return {word for word in (_ASCII_WORDS if plain.isascii() else _WORDS) if word in plain}


def _hides_something(text: str) -> bool:
    text = _FLAG_EMOJI.sub("", text)
    return bool(_HIDDEN.search(text)) or bool(_DIRECTION.search(text) and not _RIGHT_TO_LEFT.search(text))


_ZERO_WIDTH = "\u200b-\u200d\u2060-\u2064\ufeff"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = re.compile(f"[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069{_ZERO_WIDTH}{_TAGS}{_SELECTORS}]")
_FLAG_EMOJI = re.compile(f"\U0001f3f4[{_TAGS}]+")
# Single zero-width characters have their place between Persian, Indic and Thai letters and in emoji, and the
# web is full of them at the ends of words. In the middle of a Latin word, or several in a row, they hide.
_HIDDEN = re.compile(
    f"[{_TAGS}\u202d\u202e]|(?<=[A-Za-z0-9])[{_ZERO_WIDTH}]+(?=[A-Za-z0-9])|[{_ZERO_WIDTH}]{{3}}"
    f"|[{_SELECTORS}]{{2}}"
)
_DIRECTION = re.compile("[\u202a\u202b\u2066-\u2069]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def _any(words: str) -> str:
    """One of several words or phrases (`_` is a space), as a pattern."""
    return f"(?:{'|'.join(words.split()).replace('_', ' ')})"


# Every gap and repetition is bounded, so that no text can make a search slow.
_SPACE = r"\W{1,5}"
_UP_TO_THREE = r"\W{1,5}(?:\w{1,20}\W{1,5}){0,3}"
_UP_TO_FOUR = r"\W{1,5}(?:\w{1,20}\W{1,5}){0,4}"
_LINE_START = r"(?:^|\n)\W{0,5}"
_EARLIER = _any(
    "all any previous prior above preceding earlier former your these those system initial original"
)
_ORDERS = _any(
    "instructions? prompts? rules guidelines directions directives commands criteria rubric messages?"
)
_JUDGE = (
    r"(?:evaluator|grader|scorer|rater|(?:llm|ai)[ -]?(?:judge|evaluator|grader)"
    r"|(?:grading|evaluation|scoring) (?:model|system|assistant|ai|llm))s?"
)
_PART = (
    _any("answer response reply statement claim output text context chunk passage candidate submission")
    + "s?"
)
_THIS = (
    r"(?:this|it|(?:this|the|that|my|our|every|each|all|these|those|any)(?: of)?(?: the)?"
    rf" (?:\w{{1,15}} )?{_PART})"
)
_TOP = (
    r"(?:1(?:\.0{1,3})?|one|5|five|10|ten|100|[45]/5|(?:9|10)/10|100/100"
    r"|full|max(?:imum|imal)?|highest|perfect|top|best)\b"
)
_MUST = r"(?:must|should|shall|ha(?:s|ve) to|needs? to|is (?:required )?to)(?: now)?"
_GOOD = _any(
    "correct supported true faithful relevant useful accurate attributed attributable grounded perfect"
)
_MARK = _any("scores? ratings? grades? verdicts? marks?")
_METRIC = (
    r"(?:faithfulness|(?:answer[ _])?(?:relevancy|correctness)|context[ _](?:precision|recall)|verdicts?|rqs)"
)
_ONE_WORDS = "scor rating grade verdict mark point"

_INSTRUCTIONS = (
    # English: forget what you were told
    Rule.of(
        "ignor disregard forget overrid bypass follow obey listen attention",
        r"\b(?:ignore|disregard|forget|override|bypass|pay no attention to"
        r"|(?:do not|don't|stop) (?:follow|obey|listen to)(?:ing)?)"
        rf"{_UP_TO_THREE}{_EARLIER}{_UP_TO_THREE}{_ORDERS}\b",
    ),
    Rule.of(
        "ignore disregard forget",
        r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what)(?: \w{1,20}){0,2}"
        r" (?:above|before this|you were told|you have been told|you know|i said)\b",
    ),
    Rule.of(
        "instruction task directive",
        rf"{_LINE_START}(?:new|updated|revised|real|actual|additional|important) (?:system )?"
        r"(?:instructions?|task|directive)(?: (?:for|to)(?: \w{1,20}){1,2})?\W{0,3}:",
    ),
    Rule.of(
        "prompt instructions message",
        r"\b(?:reveal|print|show|repeat|output|leak|disclose) (?:me )?your (?:\w{1,15} )?"
        r"(?:system|hidden|initial) (?:prompt|instructions|message)",
    ),
    # who you are, and what you must do
    Rule.of(
        "evaluat grad scor rater judge",
        rf"\byou(?: are|'re)(?: now| actually)?(?: acting as)? (?:the|an?|my) (?:\w{{1,15}} ){{0,2}}{_JUDGE}\b",
    ),
    Rule.of(
        "judge",
        r"\byou(?: are|'re)(?: now)? (?:the|an?) (?:impartial|lenient|strict|expert|fair|generous)"
        r" (?:\w{1,15} )?judge\b",
    ),
    Rule.of(
        "evaluat grad scor rater judge",
        r"\b(?:note|attention|message|instructions?|reminder|memo|hint|hello|hi|hey|dear|as),? "
        rf"(?:to |for )?(?:the |all |an |our )?{_JUDGE} ?[:,!.]",
    ),
    Rule.of(
        "evaluat grad scor rate judge mark",
        rf"\b(?:{_JUDGE} {_MUST} (?:score|rate|grade|give|mark|assign|award|accept|treat|set)"
        rf"|(?:the|as a|as the|dear|ai) (?:judge|model|llm|ai) {_MUST} (?:score|rate|grade|mark))\b",
    ),
    # what to give
    Rule.of(
        _ONE_WORDS,
        rf"\b(?:give|assign|award|grant){_SPACE}{_THIS}{_UP_TO_THREE}(?:{_MARK}|points?)\b",
    ),
    Rule.of(
        _ONE_WORDS,
        r"(?:^|[\n.!?:;,\"'(]\s{0,3}|\b(?:please|then|and|to|just|now|must|should|always) )"
        rf"(?:give|assign|award|return|output|report|enter){_SPACE}(?:an? |the |only )?"
        rf"(?:{_TOP}(?: possible)? {_MARK}|{_MARK} of {_TOP})(?! (?:to|for) )",
    ),
    Rule.of(
        "rate score grade mark evaluate judge classify label treat count accept",
        rf"\b(?:rate|score|grade|mark|evaluate|judge|classify|label|treat|count|accept){_SPACE}{_THIS}{_SPACE}"
        rf"(?:(?:as|with|at|an?|the|to be|fully|completely) ){{0,3}}(?:{_TOP}|{_GOOD})",
    ),
    Rule.of(
        "faith relevancy correctness precision recall verdict rqs",
        rf"\b(?:set|assign|make|return|output|report|give|use){_SPACE}(?:(?:an?|the|every|each|all|its) ){{0,2}}"
        rf"(?:\w{{1,15}} )?{_METRIC}{_SPACE}(?:(?:score|to|of|as|is|=|:) ?){{0,3}}{_TOP}",
    ),
    Rule.of(
        _ONE_WORDS,
        r"\b(?:answer|response|reply|statement|context|output) (?:deserves?|must|should|has to|needs to)"
        rf"(?: get| receive| be (?:given|awarded|assigned))? (?:an? |the )?{_TOP}(?: possible)? {_MARK}\b",
    ),
    Rule.of(
        "scored rated graded marked judged classified considered treated",
        r"\b(?:answer|response|reply|statement|context|output)s? (?:must|should|ha(?:s|ve) to|is to|are to)"
        r" (?:always )?be (?:scored|rated|graded|marked|judged|classified|considered|treated)"
        rf"(?: (?:as|with|at|an?|fully)){{0,3}} (?:{_TOP}|{_GOOD})",
    ),
    Rule.of(
        "verdict",
        r"\b(?:correct|right|only valid|final|expected) verdict ?(?:is|=|:) ?[\"'`]?"
        r"(?:1|0|true|yes|supported|useful)\b",
    ),
    # German
    Rule.of(
        "ignorier vergiss vergess missachte beachte",
        r"\b(?:ignorier(?:e|t|en sie)|vergiss|vergesst|vergessen sie|missachte|beachte nicht)"
        rf"{_UP_TO_FOUR}(?:anweisung|instruktion|vorgabe|prompt)",
    ),
    Rule.of(
        "bewerte benote beurteile gib geben",
        r"\b(?:bewerte|benote|beurteile|gib|geben sie|bewerten sie)\W{1,5}"
        r"(?:diese[rsn]?|de[rnm]|die|meine[rn]?) (?:antwort|aussage|text|kontext)"
        rf"{_UP_TO_FOUR}(?:punkt|bewertung|note\b|höchst|maximal|(?:1|10|100)\b)",
    ),
    Rule.of(
        "du",
        r"\bdu bist (?:jetzt |nun )?(?:der|die|eine?) (?:\w{1,20} )?(?:bewerter|gutachter|evaluator)",
    ),
    # French
    Rule.of(
        "ignore oublie compte",
        r"\b(?:ignore[rz]?|oublie[rz]?|ne (?:tiens|tenez|tenir) pas compte)"
        rf"{_UP_TO_FOUR}(?:instruction|consigne|directive)",
    ),
    Rule.of(
        "donne attribue accorde mets mettez",
        r"\b(?:donne[rz]?|attribue[rz]?|accorde[rz]?|mets|mettez)\W{1,5}(?:à )?(?:cette réponse|ce texte|la|une|le|un)"
        rf"{_UP_TO_FOUR}(?:(?:note|score|notation)\W{{1,5}})(?:maximale?|parfaite?|de (?:1|10|20|100))\b",
    ),
    Rule.of(
        "évaluat",
        r"\b(?:tu es|vous êtes)(?: maintenant)? (?:l'|(?:une?|le|la) )(?:\w{1,20} )?évaluat(?:eur|rice)",
    ),
    # Spanish and Portuguese
    Rule.of(
        "instrucciones indicaciones instruções orientações",
        r"\b(?:ignor[ae]n?|olvid[ae]n?|omit[ae]n?|esque[cç]a|desconsidere|haz caso omiso)"
        rf"{_UP_TO_FOUR}(?:instrucciones|indicaciones|instruções|orientações)",
    ),
    Rule.of(
        "puntuación calificación puntaje nota pontuação",
        r"\b(?:da(?:le|d)?|dele|asign[ae]|otorg[ae]|pon(?:le|ga)?|dê|atribua|dá)"
        rf"{_UP_TO_FOUR}(?:puntuación|calificación|puntaje|nota|pontuação)\W{{1,5}}(?:\w{{1,10}} ){{0,2}}"
        r"(?:máxim[ao]|perfect[ao]|perfeita|1|10|100)\b",
    ),
    Rule.of(
        "evaluador avaliador",
        r"\b(?:eres|usted es|você é|és)(?: ahora| agora)? (?:el|la|una?|o|uma?) (?:\w{1,20} )?(?:evaluador|avaliador)",
    ),
    # Italian
    Rule.of(
        "istruzioni indicazioni",
        rf"\b(?:ignora(?:te|re)?|dimentica(?:te|re)?){_UP_TO_FOUR}(?:istruzioni|indicazioni)",
    ),
    Rule.of(
        "punteggio voto",
        rf"\b(?:dai|date|assegna(?:te)?|attribuisci){_UP_TO_FOUR}(?:punteggio|voto)\W{{1,5}}(?:\w{{1,10}} ){{0,2}}"
        r"(?:massimo|perfetto|pieno|1|10|100)\b",
    ),
    Rule.of(
        "valutat", r"\b(?:sei|siete)(?: ora| adesso)? (?:il|lo|la|una?|uno) (?:\w{1,20} )?valutat(?:ore|rice)"
    ),
    # Russian
    Rule.of("игнорируй", rf"\b(?:про)?игнорируй(?:те)?{_UP_TO_FOUR}(?:инструкци|указани|правил)"),
    Rule.of("забудь", rf"\bзабудь(?:те)?{_UP_TO_FOUR}(?:инструкци|указани)"),
    Rule.of(
        "оценк балл",
        rf"\b(?:поставь|дай|присвой|оцени)(?:те)?{_UP_TO_FOUR}"
        r"(?:(?:максимальн|высш|наивысш)\w{0,10} (?:оценк|балл)|(?:оценк|балл)\w{0,5}\W{1,5}(?:в )?(?:1|5|10|100)\b)",
    ),
    # Chinese
    Rule.of(
        "忽略 无视 無視 忽視 忘记 忘記 忘掉 不要",
        "(?:忽略|无视|無視|忽視|忘记|忘記|忘掉|不要理会|不要遵守).{0,12}(?:指令|指示|提示词|提示|说明|說明|规则|規則|命令)",
    ),
    Rule.of("分", r"(?:给|給|打|评|評|判).{0,10}(?:满分|滿分|最高分|(?<!\d)(?:1|10|100) ?分)"),
    Rule.of("你", "你(?:现在|現在)?是.{0,6}(?:评估|評估|评分|評分|评判|評判|裁判)(?:员|員|者|模型|官|人)"),
    # Japanese
    Rule.of("無視 忘れ 従わない", "(?:指示|命令|プロンプト|ルール|指令).{0,8}(?:無視|忘れ|従わない)"),
    Rule.of(
        "点 評価",
        r"(?:満点|最高点|最高得点|最高評価|(?<!\d)(?:1|10|100)点).{0,6}(?:つけ|付け|与え|出し|にして)",
    ),
    Rule.of("あなたは", "あなたは.{0,8}(?:評価者|採点者|審査員)"),
)

_QUOTE = r"\\?[\"']"
_COLON = r"\s{0,9}:\s{0,9}"
_POINTS = rf"{_QUOTE}(?:score|rating|grade){_QUOTE}{_COLON}\d"
_REASON = rf"{_QUOTE}(?:reason|reasoning|explanation|justification|feedback){_QUOTE}{_COLON}"
_VERDICTS = (
    # the fields of the replies that judges of RAG systems give, as JSON
    Rule.of(
        "faith relevancy correctness precision recall verdict rqs attributed noncommittal closeness toxicity",
        rf"{_QUOTE}(?:{_METRIC}|attributed|noncommittal|closeness|toxicity){_QUOTE}{_COLON}(?:{_QUOTE})?"
        r"(?:\d|(?:true|false|yes|no|pass|fail|supported|correct|useful)\b)",
    ),
    Rule.of("tp fp fn", rf"{_QUOTE}(?:tp|fp|fn){_QUOTE}{_COLON}\["),
    Rule.of(
        "score rating grade", rf"{_POINTS}[^{{}}]{{0,300}}?{_REASON}|{_REASON}[^{{}}]{{0,300}}?{_POINTS}"
    ),
    Rule.of("verdict", r"\bverdict ?[:=] ?(?:\*\*|`)?[01](?:\.0{1,3})?(?!\.\d|[\w:/–-])"),
)
_ROLE_MARKERS = (
    Rule.of(
        "<|",
        r"<\|(?:im_start|im_end|im_sep|system|user|assistant|endoftext|end|\w{1,10}_header_id|eot_id)\|>",
    ),
    Rule.of(
        "turn> sys inst]",
        r"<(?:start|end)_of_turn>|<</?sys>>|(?<!\w)\[/?inst\]|</?system(?:[_-]prompt)?>|\[system\](?!\()",
    ),
    Rule.of(
        "##", rf"{_LINE_START}#{{2,5}} ?(?:system|instructions?|assistant|human)(?: prompt| message)? ?:"
    ),
    # "System: Windows 11" is no role, so what follows must speak to somebody or begin a reply
    Rule.of(
        "system developer assistant",
        rf"{_LINE_START}(?:system|developer|assistant)(?: (?:prompt|message|note|override))? ?: ?\W{{0,3}}"
        r"(?:you|ignore|disregard|forget|override|new|always|never|from now|score|rate|grade|give|set|output"
        r"|return|respond|reply|mark|assign|the (?:evaluator|judge|grader|verdict|score))\b",
    ),
    Rule.of("system assistant", rf"{_LINE_START}(?:system|assistant) ?: ?(?:```(?:json)?\s{{0,5}})?\{{"),
    Rule.of(
        "end",
        r"[-=#*\[<(]{2,9} ?end of (?:the )?(?:context|input|answer|response|data|prompt|document|user input)"
        r" ?[-=#*\]>)]{2,9}",
    ),
)
_RULES = {INSTRUCTION: _INSTRUCTIONS, VERDICT: _VERDICTS, ROLE_MARKER: _ROLE_MARKERS}
_WORDS = sorted({word for rules in _RULES.values() for rule in rules for word in rule.words})
_ASCII_WORDS = [word for word in _WORDS if word.isascii()]

"""Words of queries that ask, and small words around them, by language: what a query is not about.

English has its list in `rag_eval.texts.words`. A language is recognised by these words themselves.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain

from rag_eval.texts.words import (
    NEGATION,
    STOP_WORDS,
    WRITTEN_WORD,
    normalise,
    sentences,
    stem,
    words,
)

_SPACED = {
    "ar": """من ما ماذا متى أين كيف كم لماذا هل أي | هو هي هذا هذه ذلك الذي التي الذين في على إلى عن مع أو ثم
        قد لا كان كانت تكون يكون عند بين""",
    "de": """wer was wann wo wie warum welche welcher welches welchem welchen wieviel wem wen wessen woher wohin |
        der die das den dem des ein eine einen einem einer eines ist sind war waren wird werden wurde wurden hat
        haben hatte und oder von vom zu zum zur in im an am auf aus bei beim mit nach für über um es er sie ihr
        ihre sein seine sich nicht auch als lange viel viele kann man
        ich wir du mir mich uns mein meine meinen meiner darf dürfen muss müssen soll sollen können könnte""",
    "es": """quién quiénes qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles | por para el la los las
        un una unos unas es son era fue fueron está están se su sus de del al en con y o a que como lo le ha han
        más tiempo yo me mi mis puedo puede pueden debo""",
    "fr": """qui que quoi quand où comment combien pourquoi quel quelle quels quelles | est sont était a ont le la
        les l un une des du de d au aux en dans sur pour par avec et ou ce cet cette ces se s son sa ses leur
        leurs il elle ils elles on qu t y ne pas plus temps je j nous vous me m mon ma mes puis peux peut peuvent
        dois faut n c qu""",
    "hi": """क्या कब कौन कहाँ कहां कितना कितने कितनी किस किसने किसके किसका किसकी किसे कैसे क्यों | सा सी से है
        हैं था थी थे में का की के को ने पर और या यह वह ये वे हो होता होती होते गया गई गए किया तक एक""",
    "id": """siapa apa kapan mana bagaimana berapa mengapa kenapa | yang di ke dari dan atau adalah ini itu untuk
        dengan pada oleh apakah lama""",
    "it": """chi che cosa quando dove come quanto quanta quanti quante quale quali perché | il lo la i gli le un
        uno una è sono era fu furono ha hanno di del della dei delle dello a al alla ai da dal dalla in nel nella
        con su sul sulla per e o si suo sua tempo""",
    "ko": """언제 언제입니까 무엇 무엇을 무엇이 무엇입니까 무엇인가요 뭐 누구 누가 누구의 누구입니까 누구인가요 어디
        어디에 어디서 어디에서 어디입니까 어디인가요 어떻게 왜 몇 얼마 얼마나 얼마입니까 무슨 어느 어떤 | 것은 것
        동안 합니까 있습니까 했습니까 있나요""",
    "nl": """wie wat wanneer waar hoe waarom welke welk hoeveel | de het een is zijn was waren wordt werd werden
        heeft en of van in op aan uit bij met naar voor over door er te zich lang""",
    "pl": """kto co kiedy gdzie jak dlaczego ile jaki jaka jakie który która które czy | jest są był była było
        były w we na z ze do od o i lub się to po za przez dla""",
    "pt": """quem que quando onde como quanto quanta quantos quantas qual quais | por para o a os as um uma uns
        umas é são era foi foram está estão se seu sua de do da dos das em no na nos nas com e ou ao tempo""",
    "ru": """кто что когда где куда откуда как почему зачем сколько какой какая какое какие каком какую каким
        который чей чем кого кому ли | это был была было были есть в во на с со из к ко о об от до по за для и или
        у при его её их он она не лет времени""",
    "tr": """kim kimin kime ne neyi neden nasıl nerede nereye nereden hangi kaç niçin niye mi mı mu mü midir
        mıdır | bir ve veya ile bu şu o için da de en ki kadar zaman süre""",
    "vi": """ai gì nào khi đâu bao nhiêu lâu sao tại | vì như thế là của được bị có trong những các một và hay với
        cho đã sẽ đang này đó ở vào ra từ điều người""",
}
_UNSPACED = """
    什么时候 什麼時候 什么 什麼 为什么 為什麼 为何 為何 为 多少 多久 多长时间 多長時間 多长 多長 多高
    多大 多远 多遠 几 幾 哪个 哪個 哪里 哪裡 哪些 哪 谁 誰 怎么样 怎么 怎麼 怎样 怎樣 如何 何时
    何時 何地 吗 嗎 呢 是 的 了 这位 這位 いつ どこ だれ 何年間 何曜日 何年 何人 何時 何 なぜ
    どうして どのくらい どれくらい どの どんな どのように どう どれ いくつ いくら ものは のは でしたか
    ですか ましたか ますか ありますか เมื่อใด เมื่อไหร่ เมื่อไร อะไร ใคร
    ที่ไหน วันไหน ไหน นานเท่าไร นานเท่าใด เท่าไร เท่าไหร่
    เท่าใด อย่างไร ทำไม กี่ ใด หรือไม่
"""
_UNSPACED_ASKING = re.compile("|".join(sorted(_UNSPACED.split(), key=len, reverse=True)))
_ENGLISH = "en"
_BY_LANGUAGE = {language: frozenset(words(listed)) for language, listed in _SPACED.items()}
_ENGLISH_ASKING = frozenset(words("who whom whose which what when where why how"))
_ASKING_WORDS = frozenset(chain(*(words(listed.partition("|")[0]) for listed in _SPACED.values())))
_RANKS = {language: rank for rank, language in enumerate((_ENGLISH, *_BY_LANGUAGE))}
_LANGUAGES_OF: dict[str, list[str]] = {}
"""By word."""
for _language, _listed in {_ENGLISH: STOP_WORDS, **_BY_LANGUAGE}.items():
    for _word in _listed:
        # An asking word tells more than the "the" of a title; "don" may be one of Spanish.
        _votes = 2 if _word in _ENGLISH_ASKING | _ASKING_WORDS else _word != "don"
        _LANGUAGES_OF.setdefault(_word, []).extend([_language] * _votes)

_FOREIGN = _LANGUAGES_OF.keys() - STOP_WORDS
_PLAIN_WORD = re.compile("[a-z]+")


def without_unspaced_asking(query: str) -> str:
    """The query with a space for each asking wording of a script without spaces."""
    return query if query.isascii() else _UNSPACED_ASKING.sub(" ", query)


def _unspaced_asking(query: str) -> list[str]:
    """The asking wordings of scripts without spaces that the query has."""
    return [] if query.isascii() else _UNSPACED_ASKING.findall(query)


def small_words_in(query: str) -> frozenset[str]:
    """The same as `small_words_of` for the words of a text; told fast for one in plain English letters."""
    if query.isascii() and _FOREIGN.isdisjoint(_PLAIN_WORD.findall(query.lower())):
        return frozenset()
    return small_words_of(words(query))


def small_words_of(query: Iterable[str]) -> frozenset[str]:
    """The asking and small words of the language that has most of the query's words; none for English.

    `query` are normalised words, of which an asking word counts twice. Of languages that have equally many the first
    counts, English before all.
    """
    given = list(query)
    if _FOREIGN.isdisjoint(given):
        return frozenset()
    counts = Counter(chain.from_iterable(_LANGUAGES_OF[word] for word in given if word in _LANGUAGES_OF))
    best = max(counts, key=lambda language: (counts[language], -_RANKS[language]), default=_ENGLISH)
    return _BY_LANGUAGE.get(best, frozenset())


_AUXILIARIES = frozenset(
    words("is are was were am do does did can could may might must shall should will would has have had")
)
OPENING_VERBS = _AUXILIARIES | set(words("give describe explain tell define"))
"""English words that open a question or a request without an asking word."""
OPENING_YES_OR_NO = _AUXILIARIES | set(
    words("""
        ist sind war waren kann können könnte darf dürfen muss müssen soll sollte hat haben gibt wird werden wurde |
        puis peux peut pouvez dois doit faut sont avez avons |
        puedo puede pueden podemos debo debe hay es son está están tengo tiene
    """)
)
_OPENING_UNMARKED = frozenset(
    words(
        "is are was were do does did can could should would has have ist sind kann darf muss hat puis peut puedo puede"
    )
)
"""Those that begin nothing else: not "will", "war", "may" and "es"."""
_TELLING = frozenset(
    words("""
        tell say show explain describe find remember sure idea sagen zeigen erklären weiß weißt wissen ahnung |
        dire montrer expliquer sais sait savez | decir decirme decirnos mostrar explicar sabe sabes saben
    """)
)
"""Before an asking word, these make it the question: "Can you tell me when …?"."""
_SPEAKING = """
    question questions asked asking wondered wondering
    frage fragen fragst fragten fragtest gefragt anfrage
    demandez demandiez demandé
    pregunta preguntó preguntaste preguntado
    domanda chiesto
    pergunta perguntou perguntado
    vraag vraagt vroeg gevraagd
    pytanie pytania pytał zapytanie
    вопрос вопросу спросили спрашиваете вопроса спрашивали
    soru sorunuz soruya sorduğunuz sordunuz sorunuza sorunuzla
    سؤال سؤالك السؤال سألت سؤالكم تسأل
    प्रश्न सवाल पूछा
    질문 질문은 질문에 질문하신 질문하셨습니다
    câu hỏi
    pertanyaan bertanya menanyakan
"""
_ANNOUNCING = """
    regard regarding regards concerning concern concerns respect re
    bezüglich hinsichtlich betreffend betrifft angeht
    concernant concerne propos
    respecto acerca
    riguardo riguarda proposito
    relativamente respeito
    betreft betreffende aangaande
    odnośnie dotyczące dotyczy sprawie
    относительно насчет касательно касается отношении
    ilgili ilişkin hakkında konusunda
    بخصوص بالنسبة بشأن يتعلق
    बारे संबंध विषय
    관해 대해 관하여 대하여 대한 관한
    liên quan
    mengenai tentang terkait
"""
_SURROUNDING = """
    query answer reply response want wanted like know understand whether q user comes let explain thank thanks
    antwort beantworten wissen wollten möchten sie ihre ihrer deine deiner ob lautet
    quant réponse répondre sujet savoir voulez vouliez votre vous avez
    sobre cuanto respuesta responder saber quería quiere relación usted
    quanto risposta rispondere sapere vuole sua
    resposta responder queria você relação
    antwoord beantwoorden weten wilde uw
    odpowiedź pana państwa twoje
    ответ ответить вы ваш ваше вам вашему хотите хотели знать узнать
    cevap olarak
    حول ردا إجابة لقد فيما
    जवाब आपने आपका आपके
    답 답변 라는 이라는
    về trả lời bạn đối
    jawaban anda menjawab
"""
SPEAKING = frozenset(words(_SPEAKING))
"""Words that speak of a question: "you asked"."""
SPEAKING_STEMS = frozenset(map(stem, SPEAKING))
ANNOUNCING = SPEAKING_STEMS | frozenset(map(stem, words(_ANNOUNCING)))
"""Their stems, and those of words that announce a topic: "regarding"."""
SURROUNDING = ANNOUNCING | frozenset(map(stem, words(_SURROUNDING)))
"""These, and those of words that are often next to them: "your answer"."""
_REPORTING = """
    ask asks inquire inquires inquired enquire enquires enquired inquiry enquiry wonder wonders
    fragte erkundigt erkundigte erkundigten
    demande demander demandait
    preguntan preguntar preguntaba preguntaron preguntas
    chiede chiedere chiese domande
    pergunta perguntam perguntar perguntas
    vragen vroegen
    pyta pytał pytała pytali zapytał zapytała
    спросил спросила спрашивает спрашивал спрашивала
"""
_REPORTED = frozenset(words(_REPORTING))
"""Further words that speak of a question, in queries about what somebody asked, and in the responses to them."""
_WANTING = frozenset(
    words("""
        want wants wanted like will wollen wollte wollten möchte möchten veut voulait voulez vouliez quiere quieren
        quería querían deseaba vuole voleva quer queria wil wilde wilden chce chciał хочет хотел хотела
    """)
)
_KNOWING = frozenset(
    words("know learn wissen erfahren savoir saber conocer sapere weten wiedzieć знать узнать")
)
"""Next to one of `_WANTING`, these speak of a question."""
_WHETHER = re.compile(
    r"\b(?:whether|if|ob|si|se|of|om|czy|ли)\b|是否|能否|かどうか|かという|か知りたい|[는은]지(?!\w)",
    re.IGNORECASE,
)
"""In the spelling of a text: the Spanish yes is "sí"."""
_YES_OR_NO = """
    吗 嗎 呢 是 的 了 ですか でしたか ましたか ますか ありますか หรือไม่ mi mı mu czy ли क्या
"""
"""Asking words, in normal form, of queries for yes or no, and those that do not tell what a query asks for."""
_ASKING_YES_OR_NO = frozenset(_YES_OR_NO.split())
_YES = "yes|ja|oui|si|sim|tak|да|evet|نعم|हाँ|हां|예|네|co|vang|ya"
_NO = "no|nein|nee|nej|non|nao|nie|нет|hayır|لا|नहीं|아니요|아니오|khong|tidak"
_REGRET = "leider|unfortunately|sorry|malheureusement|desolee?|lo siento|lamentablemente|desgraciadamente"
_YES_OR_NO_ANSWER = re.compile(
    rf"\W*(?:(?:(?:{_REGRET})\W+)?(?:(?P<yes>{_YES})|{_NO})(?:\s*[^\w\s]|\s*$)"
    rf"|(?:{_REGRET})\W+(?:not|nicht|pas)(?:\s*[^\w\s]|\s*$)|(?P<unspaced>是|对|對|はい|ええ|ใช่)|不|没|沒|いいえ|ไม่)"
)
_ASSENT = (
    "yep|yeah|true|correct|right|sure|of course|certainly|absolutely|definitely|indeed|richtig|wahr|genau|stimmt|klar"
    "|naturlich|selbstverstandlich|gerne?|vrai|exact|effectivement|tout a fait|bien sur|absolument|certainement"
    "|verdadero|correcto|claro|por supuesto|desde luego|naturalmente|certo|certamente|конечно"
)
_DISSENT = (
    "nope|false|not at all|by no means|falsch|keineswegs|auf keinen fall|faux|pas du tout|falso|en absoluto"
    rf"|(?:{_ASSENT}) (?:not|nicht|pas|que non?)"
)
_SHORT_FORM = rf"(?:it|you|they|we|i|he|she|this|that|there) (?:{'|'.join(sorted(_AUXILIARIES))})"
_ASSENT_ANSWER = re.compile(
    rf"\W*(?:(?P<yes>(?:{_ASSENT})(?: que si)?|{_SHORT_FORM})|{_DISSENT}|{_SHORT_FORM}(?:n't| not))(?:\s*[^\w\s']|\s*$)"
)
YES_OR_NO = frozenset(map(stem, words(f"{_YES} {_NO}")))
NEGATING = frozenset(
    words("""
        nicht kein keine keinen keinem keiner nie ohne | pas ni jamais aucun aucune sans | no nunca sin ningún ninguna |
        non senza nessun nessuna | não sem nenhum | niet geen | nie bez | не нет без | değil yok | ليس غير | नहीं
    """)
)
"""Negations of other languages than English, in normal form."""


def with_no_more(given: Sequence[str]) -> Sequence[str]:
    """The words or stems of a text, with the French "plus" behind "ne" and a verb as the negation that it is there."""
    if "plus" not in given or _NE.isdisjoint(given):
        return given
    return [
        "pas" if word == "plus" and not _NE.isdisjoint(given[max(0, place - 3) : place]) else word
        for place, word in enumerate(given)
    ]


_NE = frozenset(("n", "ne"))
PERMITTING = frozenset(
    map(stem, words("allowed permitted possible erlaubt gestattet möglich permis possible permitido posible"))
)
"""Stems of words that say no more than yes, or with a negation than no: "Yes, that is allowed."."""
ALLOWING = PERMITTING | frozenset(
    map(
        stem,
        words("""
            accept accepts accepted welcome admitted zulässig akzeptieren akzeptiert willkommen zugelassen
            acceptons acceptés acceptées accepte admis admise admises autorisé autorisés autorisées bienvenus
            aceptamos aceptan acepta admiten admite permite permiten admitidos permitidos permitida permitidas
        """),
    )
)
"""These, and stems of further words with which a text allows something, or with a negation does not."""
COURTESY = frozenset(
    map(
        stem,
        words("""
            of course absolutely sure certainly definitely indeed sorry unfortunately please thanks thank
            natürlich klar selbstverständlich sicher gerne gern leider | bien sûr certainement absolument désolé
            désolée malheureusement merci | claro supuesto desde luego naturalmente lo siento lamentablemente gracias
        """),
    )
)
"""Stems of words that say nothing more behind a yes or no: "Yes, of course."."""
CLOSED = frozenset(map(stem, words("closed geschlossen zu fermé fermée fermés cerrado cerrada cierra")))
OPEN = frozenset(
    map(stem, words("open opens geöffnet offen auf ouvert ouverte ouverts abierto abierta abre"))
)
FORBIDDING = frozenset(
    words("""
        forbidden prohibited banned verboten untersagt interdit interdite interdits interdites prohibido prohibida
        prohibidos prohibidas нельзя запрещено
        excluded ausgeschlossen exclu exclue exclus exclues excluido excluida excluidos excluidas
    """)
)
WITHOUT = frozenset(words("without ohne sans sin senza sem zonder bez без"))
"""Negations that a query for yes or no may have: "Can I return it without a receipt?"."""
_UNSPACED_SPEAKING = (
    "[您你]的(?:问题|問題)|的(?:问题|問題)|问题|問題|[您你][问問]的?|[您你]?想知道"
    "|(?:について|という|に関する)?の?ご?質問(?:です)?が?|お尋ね|お問い合わせ|か?を?知りたい(?:のですね|のですか|とのこと)?"
    "|คำถาม(?:ของคุณ|ที่ว่า)?|(?:ที่)?(?:คุณ)?ถาม(?:ว่า)?"
)
_SPEAKING_UNSPACED = re.compile("[问問][题題]|[您你][问問]|想知道|知りたい|質問|お尋ね|お問い合わせ|ถาม")
"""Of each the part that tells, which is found fast."""
_ANNOUNCING_UNSPACED = re.compile(
    f"{_UNSPACED_SPEAKING}|关于|關於|针对|對於|对于|至于|について|に関して|に関する|เกี่ยวกับ|สำหรับ|เรื่อง"
)


def unspaced_speaking(text: str) -> bool:
    """Whether a text in a script without spaces speaks of a question."""
    return not text.isascii() and _SPEAKING_UNSPACED.search(text) is not None


def without_unspaced_announcing(text: str) -> str:
    """The text with a space for each wording of a script without spaces that does so, or announces a topic."""
    return text if text.isascii() else _ANNOUNCING_UNSPACED.sub(" ", text)


def places_of_speaking(text: str, own: Sequence[str]) -> list[int]:
    """Which of the words of a text speak of a question, in any person; those without spaces are all at 0."""
    wants = not _WANTING.isdisjoint(own)
    unspaced = [] if text.isascii() else _SPEAKING_UNSPACED.findall(text)
    return [0] * len(unspaced) + [
        place
        for place, word in enumerate(own)
        if word in SPEAKING or word in _REPORTED or (wants and word in _KNOWING)
    ]


def asks_whether(text: str) -> str:
    """The first word with which the text may speak of a question for yes or no, or empty."""
    found = _WHETHER.search(text)
    return found[0].lower() if found else ""


def wants_yes_or_no(asking: Iterable[str]) -> bool:
    """Whether a query with these asking words can be answered by yes or no."""
    return _ASKING_YES_OR_NO.issuperset(asking)


def ends_asking(text: str) -> bool:
    """Whether its last mark is a question mark, or its last word a Japanese one that asks."""
    may_ask = "?" in text or "？" in text or "か" in text  # found faster than by the pattern
    return may_ask and _ASKS.search(text) is not None


def asks(query: str) -> bool:
    """Whether a query ends like a question, or begins like one for yes or no and has no mark: "is parking free"."""
    if ends_asking(query) or not query[-1:].isalnum():
        return ends_asking(query)
    return next((own[0] for own in map(words, query.split()) if own), "") in _OPENING_UNMARKED


@lru_cache(maxsize=4)  # a query, and responses to it
def around_or(text: str) -> tuple[str, str] | None:
    """What stands before and behind the last "or" of a text; None if it has none between words."""
    if text.isascii() and _PLAIN_OR.isdisjoint(text.lower().split()):  # told fast
        return None
    for match in reversed([*_OR.finditer(text)]):
        before, behind = text[: match.start()], text[match.end() :]
        sign = _OR_IN.get(match[0].lower())
        if sign and sign.isdisjoint(small_words_of(words(text))):
            continue
        if WRITTEN_WORD.search(before) and WRITTEN_WORD.search(behind):
            return before, behind
    return None


@lru_cache(maxsize=2)
def polar_stems(query: str) -> AbstractSet[str]:
    """Stems of what a query for yes or no is about; none for any other query, and for one that negates or chooses."""
    if not asks(query):
        return frozenset()
    asked = _IS_IT_THAT.sub(" ", query)
    in_order, asking = words(asked), asking_of(asked)
    if not wants_yes_or_no(asking) and not _only_adds(asking[0], in_order, query):
        return frozenset()
    own = set(in_order) - WITHOUT
    if not own.isdisjoint(_CHOOSING_OR_NEGATING) or NEGATION in map(stem, own) or len(sentences(query)) > 1:
        return frozenset()
    if around_or(query):
        return frozenset()
    small = small_words_of(in_order)
    if not asked.isascii():
        own = set(words(_without_unspaced_modals(asked))) - WITHOUT or own
    small |= STOP_WORDS | OPENING_YES_OR_NO
    return frozenset(stem(word) for word in own if word not in small)


def _without_unspaced_modals(query: str) -> str:
    """What a query for yes or no in Chinese or Japanese is about: 宠物 of 可以带宠物吗; any other as it is."""
    if not _UNSPACED_POLAR.search(query):
        return query
    return _PARTICLES_BEFORE_SPACE.sub(" ", _UNSPACED_MODALS.sub(" ", _UNSPACED_ASKING.sub(" ", query)))


def unspaced_yes_or_no(text: str, query: str) -> bool | None:
    """Whether a text in Chinese or Japanese says yes (or no) to a query for it, and nothing else; None otherwise.

    It has no other characters than the query and small words. A query that negates or chooses is answered by neither.
    """
    if not _UNSPACED_POLAR.search(query) or _CHOOSING.search(query):
        return None
    if negates_unspaced(_A_NOT_A.sub("", query)):
        return None
    said = "".join(WRITTEN_WORD.findall(normalise(text)))
    rest = _UNSPACED_LEAD.sub("", said)
    known = _SMALL_CHARACTERS.union(normalise(query))
    if not said or not known.issuperset(rest):
        return None
    if lead := _UNSPACED_LEAD.match(said):
        return lead["yes"] is not None
    return negates_unspaced(said) == has_opposite(said, query)


def has_opposite(said: str, query: str) -> bool:
    """Whether it has 有料 to a query with 無料, or the like, which are no negations."""
    asked = _WITH_OR_WITHOUT.search(query)
    found = _WITH_OR_WITHOUT.search(said) if asked else None
    return asked is not None and found is not None and (asked[0][0] == "有") != (found[0][0] == "有")


def negates_unspaced(text: str) -> bool:
    """Whether a text in Chinese or Japanese has a word that negates or forbids."""
    return _UNSPACED_NEGATION.search(text) is not None


def _only_adds(asking: str, own: Sequence[str], query: str) -> bool:
    """Whether the asking word only begins a clause of a query for yes or no: "Can I pay when I leave?"."""
    opens = own[0] in OPENING_YES_OR_NO or _IS_IT_THAT.match(query.lstrip(_OPENERS)) is not None
    if not opens or asking == own[0] or asking not in own:
        return False
    before = own[: own.index(asking)]
    return (_TELLING | _KNOWING | SPEAKING | _REPORTED).isdisjoint(before)


def says_yes_or_no(answer: str) -> bool:
    """Whether that is the first word and stands apart, other than in "no information"."""
    return _YES_OR_NO_ANSWER.match(normalise(answer)) is not None


def beginning_yes_or_no(answer: str) -> tuple[bool | None, str]:
    """Whether an answer begins with yes (or no), and the rest of it in normal form; None and all of it otherwise."""
    text = normalise(answer)
    match = _YES_OR_NO_ANSWER.match(text)
    if match is None:
        return None, text
    return bool(match["yes"] or match["unspaced"]), text[match.end() :]


def beginning_stance(answer: str) -> tuple[bool | None, str]:
    """The same for an answer to a query for yes or no: "Of course" and "Not at all" are either, too."""
    affirms, rest = beginning_yes_or_no(answer)
    match = _ASSENT_ANSWER.match(rest)
    if match is None:
        return affirms, rest
    return (match["yes"] is not None if affirms is None else affirms), rest[match.end() :]


_ASKS = re.compile(r"[?？]\W*$|か。?\s*$")
_IS_IT_THAT = re.compile(r"\best[- ]ce qu[e'’]", re.IGNORECASE)
_UNSPACED_POLAR = re.compile(r"[吗嗎]|か[?？。]?\s*$|(.{1,2})[不没沒]\1|是否")
_A_NOT_A = re.compile(r"(.{1,2})[不没沒]\1|有[没沒]有")
_CHOOSING = re.compile("还是|還是|或|それとも|どちら|[でま]すか.*[でま]すか")
_UNSPACED_MODALS = re.compile(
    "可不可以|能不能|需不需要|要不要|有[没沒]有|是不是|会不会|是否|可以|能够|能夠|能否|能|允许|允許|需要|必须|必要|可能"
    "|ございますか|できますか|ありますか"
)
_PARTICLES_BEFORE_SPACE = re.compile(r"[はがをもにで](?=\s)")
_UNSPACED_LEAD = re.compile(r"^(?:(?P<yes>はい|ええ|是的|对的?|對的?|好的)|いいえ|いえ|不是的)")
_UNSPACED_NEGATION = re.compile("[不没沒未]|[无無](?![料线線])|禁止|谢绝|謝絕|ません|ない")
_WITH_OR_WITHOUT = re.compile("[有無无][料线線]")
_SMALL_CHARACTERS = frozenset(
    "可以能够夠行允许許需必须要用会有是的了呢也啊呀不没沒无無未ですましたいんなくあるりきせござ当然當"
)
"""Of Chinese and Japanese words that say no more than yes or no."""
_OR = re.compile(
    r"(?<=\s)(?:or|oder|ou|o|u|of|eller|czy|lub|albo|или|либо|atau|veya|yoksa|hay|hoặc|أو|أم|या|아니면|또는)(?=\s)"
    r"|还是|還是|或者|或是|或(?![许許])|それとも|または|หรือ(?!ไม่|ยัง|เปล่า)",
    re.IGNORECASE,
)
"""In the spelling of a text: "où" is no "ou"."""
_PLAIN_OR = frozenset(
    ("or", "oder", "ou", "o", "u", "of", "eller", "czy", "lub", "albo", "atau", "veya", "yoksa", "hay")
)
_OR_IN = {
    "of": frozenset(("het",)),
    "o": frozenset(("quien", "chi")),
    "u": frozenset(("quien",)),
    "hay": frozenset(("khi",)),
}
"""A small word of each language in which the word is "or"; it has other meanings elsewhere."""
_CHOOSING_OR_NEGATING = NEGATING | {"or", "oder", "ou"}
_OPENERS = " ¿\"'«“"


@lru_cache(maxsize=32)
def asking_of(text: str) -> Sequence[str]:
    """Its first asking word, or the asking wordings of a script without spaces."""
    own = WRITTEN_WORD.findall(normalise(text))
    listed = _ENGLISH_ASKING if not _ENGLISH_ASKING.isdisjoint(own) else _ASKING_WORDS & small_words_of(own)
    return next(([word] for word in own if word in listed), None) or _unspaced_asking(text)

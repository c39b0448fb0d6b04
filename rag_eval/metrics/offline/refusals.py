"""How a response declines to answer in languages other than English: wordings and words, as data.

A wording is a regular expression over normalised text (lower case, accents folded, ß as ss). A sign is a word that
each refusal of the language contains, so that other texts need not be searched.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from rag_eval.texts.words import NEGATION, stem, words

_FEW = r"(?:[\w'’]+ ){0,4}?"
"""Up to four words between the words that matter."""


class _Refusals(NamedTuple):
    """One language."""

    signs: str
    wordings: tuple[str, ...]


SPACED = {
    "de": _Refusals(
        "nicht kein keine keinen keiner keines leider leid nichts unbekannt fehlen",
        (
            rf"ich (?:weiss|kann|konnte|habe|finde) {_FEW}(?:nicht|nichts|keine[nr]?)\b",
            rf"(?:kann|konnte|weiss) ich {_FEW}(?:nicht|nichts|keine[nr]?)\b",
            rf"habe ich {_FEW}keine (?:informationen|angaben|daten|antwort|auskunft)\b",
            r"(?:es )?tut mir (?:sehr )?leid",
            rf"leider (?:kann|konnte|habe|weiss|finde|enthalt|enthalten|liegen|gibt|geht) {_FEW}\w+",
            rf"(?:kontext|text|dokument|abschnitt)(?:e?s|en?)? {_FEW}(?:nicht|nichts|keine[nr]?)\b",
            rf"(?:quellen?|unterlagen) {_FEW}(?:nicht|nichts|keine[nr]?)\b",
            rf"nicht (?:im|in|aus) {_FEW}(?:kontext|texte?|dokument\w*|quellen?|unterlagen|abschnitt) "
            rf"{_FEW}(?:erwahnt|genannt|angegeben|enthalten|aufgefuhrt|beschrieben|zu finden|ersichtlich|hervor)\b",
            rf"es (?:gibt|liegen|sind) {_FEW}keine (?:informationen|angaben|daten|hinweise)",
            r"(?:keine|nicht genug(?:end)?) (?:informationen|angaben|daten) (?:vorhanden|verfugbar|gefunden|uber|zu)",
            rf"(?:handbuch|anleitung|dokumentation|richtlinie|vertrag) {_FEW}(?:nichts|keine (?:angaben?|information))",
            rf"(?:wird|ist|wurde) (?:im|in (?:der|den|dem|diesem|dieser)) {_FEW}nicht "
            r"(?:erwahnt|genannt|angegeben|behandelt|geregelt|beschrieben|thematisiert)\b",
            r"(?:das|dies|es) (?:wird|ist|wurde) nicht (?:erwahnt|angegeben)\b",
            rf"diese (?:information|angabe)(?:e?n)? (?:ist|sind|liegt|liegen) {_FEW}nicht (?:verfugbar|vor|enthalten)",
            rf"(?:daruber|dazu|hierzu) ist {_FEW}nichts bekannt\b|kann {_FEW}nicht beantwortet werden\b",
            rf"keine[srnm]? der {_FEW}(?:quellen|unterlagen|dokumente|texte)\b",
            r"(?:mir|uns) fehlen (?:dazu |hierzu |die )?(?:informationen|angaben|daten)\b",
        ),
    ),
    "fr": _Refusals(
        "pas rien aucun aucune desole regrette inconnu",
        (
            rf"je ne (?:sais|peux|trouve|connais|dispose|suis) {_FEW}pas\b",
            rf"je n'(?:ai|arrive) {_FEW}(?:pas|aucune?)\b",
            r"(?:je suis )?desolee?\b",
            rf"(?:contexte|texte|documents?|sources?|extraits?|passage) {_FEW}(?:ne|n')\s?{_FEW}(?:pas|aucune?)\b",
            rf"(?:n'est|ne sont|n'a|n'ont) pas {_FEW}(?:mention|indiqu|precis|specifi|fourni|donn|trouv)\w* {_FEW}"
            rf"(?:dans|par) {_FEW}(?:contexte|texte|documents?|sources?|extraits?|passages?)\b",
            r"il n'y a (?:pas|aucune?) (?:d'|de )?(?:informations?|mention|donnees?)",
            r"(?:aucune information|pas assez d'informations?)\b|n'en (?:parle|dit|fait) (?:pas|rien|aucune mention)\b",
            r"informations? (?:n'est|ne sont) pas (?:disponible|fourni|mentionn|indiqu)\w*",
            r"n'est pas (?:aborde|precise|mentionne|indique|specifie)\w* dans (?:la|les?|cet?|cette|l')\b",
            rf"rien dans {_FEW}(?:contexte|textes?|documents?|sources?|extraits?) {_FEW}(?:ne |n')",
            r"pas possible de (?:repondre|determiner|savoir)\b",
            rf"aucune? des {_FEW}(?:documents?|sources?|extraits?|textes?)\b",
        ),
    ),
    "es": _Refusals(
        "no siento lamento disculpe desconozco ninguna ninguno",
        (
            r"no lo se\b",
            rf"no (?:puedo|pude|tengo|dispongo|encuentro|encontre|conozco|se) {_FEW}"
            r"(?:responder|contestar|informacion|datos|respuesta|determinar|decir|la respuesta|encontrar|cual|que)",
            r"(?:lo siento|lamento|disculpe)\b",
            rf"(?:contexto|texto|documentos?|fuentes?|pasaje|fragmento) {_FEW}no {_FEW}"
            r"(?:mencionan?|contienen?|indican?|especifican?|proporcionan?|dicen?|incluyen?|informa)",
            r"no (?:hay|existe|se dispone de|se encuentra|se proporciona) (?:suficiente )?(?:informacion|datos)",
            r"no se (?:menciona|indica|especifica|proporciona) en (?:el|la|los|las)\b",
            rf"no (?:(?:esta|estan|es|son|ha sido|han sido) \w+[ai]d[oa]s?|aparecen?|figuran?) {_FEW}en {_FEW}"
            r"(?:contexto|textos?|documentos?|fuentes?|fragmentos?)\b",
            r"desconozco\b|informacion no (?:esta|se encuentra|aparece|figura)\b",
            rf"(?:manual|guia|documentacion|contrato) {_FEW}no {_FEW}(?:menciona|trata|indica|especifica|dice)\b",
            rf"ningun[oa] de l[oa]s {_FEW}(?:documentos|fuentes|textos|fragmentos)\b",
            r"no esta (?:especificad|mencionad|indicad)[oa] en (?:el|la|los|las)\b",
        ),
    ),
    "it": _Refusals(
        "non dispiace nessuna nessuno spiacente",
        (
            r"non (?:lo )?so\b",
            rf"non (?:posso|sono in grado|riesco|ho|trovo|dispongo) {_FEW}"
            r"(?:rispondere|informazion[ei]|dati|risposta|determinare|trovare|dire)",
            rf"informazion[ei] non (?:e|sono) (?:disponibil|present|indicat)[ei]\b"
            rf"|nessun[oa] (?:dei|delle|degli) {_FEW}(?:documenti|fonti|testi|brani)\b",
            r"mi dispiace|sono spiacente",
            rf"(?:contesto|testo|documenti|documento|fonti|fonte|brano) {_FEW}non {_FEW}"
            r"(?:menzionan?o?|contiene|contengono|indica|specifica|fornisc\w+|dice|include|informazioni)",
            rf"non (?:e|sono|viene|vengono) {_FEW}(?:menzionat|indicat|specificat|riportat)\w* {_FEW}"
            r"(?:contesto|test[oi]|document[oi]|font[ei])\b",
            r"non ci sono (?:abbastanza )?(?:informazioni|dati)|nessuna informazione",
        ),
    ),
    "pt": _Refusals(
        "nao desculpe lamento nenhuma desconheco",
        (
            r"(?:eu )?nao (?:o )?sei\b",
            rf"nao (?:posso|consigo|tenho|disponho|encontrei|encontro) {_FEW}"
            r"(?:responder|informacoes|informacao|dados|resposta|determinar|encontrar|dizer)",
            r"(?:desculpe|lamento|sinto muito)\b",
            rf"(?:contexto|texto|documentos?|fontes?|trecho) {_FEW}nao {_FEW}"
            r"(?:menciona|contem|indica|especifica|fornecem?|diz|inclui|informacoes|informacao)",
            rf"nao (?:e|sao|esta|estao|foi|foram) {_FEW}(?:mencionad|indicad|especificad|informad)\w* {_FEW}"
            r"(?:contexto|textos?|documentos?|fontes?)\b",
            r"nao ha (?:informacoes|informacao|dados|mencao)|nenhuma informacao",
        ),
    ),
    "nl": _Refusals(
        "niet niets geen helaas sorry spijt",
        (
            rf"ik (?:weet|kan|heb|vind|kon) {_FEW}(?:niets?|geen)\b|(?:weet|kan|heb|vind) ik {_FEW}(?:niets?|geen)\b",
            rf"(?:document|handleiding|contract|artikel) (?:vermeldt|noemt|zegt) {_FEW}niets?\b",
            rf"staat {_FEW}niets over\b",
            r"informatie is niet (?:beschikbaar|gegeven|vermeld)\b",
            r"(?:het )?spijt me|helaas (?:kan|heb|weet|bevat|staat|is)\b",
            rf"(?:context|tekst|documenten?|bronnen|bron|passage) {_FEW}(?:niet|geen)\b",
            rf"niet (?:vermeld|genoemd|opgenomen) in {_FEW}(?:context|tekst|documenten?|bronnen|bron)\b",
            r"er (?:is|zijn|staat) (?:geen|niet genoeg|onvoldoende) (?:informatie|gegevens)",
        ),
    ),
    "pl": _Refusals(
        "nie przykro przepraszam brak niestety",
        (
            r"nie wiem\b",
            rf"nie (?:moge|jestem w stanie|mam|znalaz\w+|potrafie) {_FEW}"
            r"(?:odpowiedziec|informacji|danych|odpowiedzi|okreslic|stwierdzic|powiedziec)",
            r"(?:przykro mi|przepraszam)\b",
            rf"(?:kontekst|kontekscie|tekst|tekscie|dokument|dokumenty|dokumentach|zrodla) {_FEW}nie {_FEW}\w+",
            r"brak (?:wystarczajacych )?(?:informacji|danych)|nie ma (?:tam )?informacji",
        ),
    ),
    "ru": _Refusals(
        "не нет жаль извините простите сожалению недостаточно отсутствует",
        (
            r"(?:я )?не знаю\b",
            rf"(?:я )?не (?:могу|смог|смогла|нашел|нашла|располагаю|имею) {_FEW}"
            r"(?:ответить|информаци\w+|данны\w+|ответ\w*|определить|сказать|наити)",
            r"(?:к сожалению|извините|мне жаль|простите)\b",
            rf"(?:контекст\w*|текст\w*|документ\w*|источник\w*) {_FEW}(?:не|нет) \w+",
            r"(?:нет|недостаточно|отсутствует) (?:достаточнои )?(?:информаци\w+|данных|сведении)",
        ),
    ),
    "tr": _Refusals(
        "bilmiyorum uzgunum maalesef yok bulunmuyor bulamadım yanıtlayamam cevaplayamam belirtilmemis "
        "veremiyorum icermiyor gecmiyor verilmemis degil bulunmamaktadır icermemektedir yanıtlayamıyorum",
        (
            r"bilmiyorum\b",
            r"(?:uzgunum|maalesef)\b",
            r"(?:yanıtlayam|cevaplayam|cevap verem|yanıt verem)\w+",
            r"(?:baglam|metin|belge|kaynak|dokuman)\w* (?:\w+ ){0,6}?"
            r"(?:yok|bulunmuyor|bulunmamaktadır|belirtilmemis\w*|icermiyor|icermemektedir|gecmiyor|verilmemis\w*|degil)",
            r"(?:bilgi|cevap|yanıt)\w* (?:yok|bulunmuyor|bulamadım|veremiyorum|bulunmamaktadır)",
        ),
    ),
    "ar": _Refusals(
        "لا لم ليس ليست عذرا آسف للأسف لست يوجد",
        (
            r"لا (?:اعرف|اعلم|ادري|استطيع|يمكنني|املك|تتوفر|توجد|يوجد)",
            r"(?:عذرا|اسف|للاسف)",
            r"(?:السياق|النص|الوثايق|الوثيقة|المستند\w*|المصادر|المقطع) (?:\w+ ){0,3}?(?:لا|لم|ليس) \w+",
            r"(?:لا|لم|ليس|ليست) (?:\w+ ){0,3}?(?:السياق|النص المقدم|الوثايق|الوثيقة|المستند\w*|المصادر|معلومات)",
            r"(?:لم اجد|لست متاكدا|ليس لدي)",
        ),
    ),
    "hi": _Refusals(
        "नहीं क्षमा खेद माफ़ असमर्थ",
        (
            r"(?:मुझे|हमें) (?:\S+ ){0,3}?(?:नहीं (?:पता|मालूम)|पता नहीं|मालूम नहीं|जानकारी नहीं)",
            r"मैं (?:\S+ ){0,6}?(?:नहीं (?:जानता|जानती|दे|बता|कर)|असमर्थ)",
            r"(?:क्षमा करें|माफ़ करें|माफ कीजिए|मुझे खेद है|माफ़ कीजिए)",
            r"(?:संदर्भ|पाठ|दस्तावेज़?ों?|स्रोत|लेख) (?:\S+ ){0,8}?(?:नहीं (?:है|हैं|दी|दिया|मिली|मिला|बताया|किया)|उल्लेख नहीं)",
            r"(?:जानकारी|उत्तर) (?:\S+ ){0,2}?नहीं (?:है|मिली|मिला|दी)",
        ),
    ),
    "ko": _Refusals(
        "",
        (
            r"모르겠|모릅니다|알 수 (?:없|가 없)|알지 못|죄송|미안합니다|찾을 수 없",
            r"답(?:변)?(?:할|을 드릴|을 할|해 드릴) 수 없",
            r"(?:정보|답변|내용)\S* (?:찾지 못|발견되지 않|찾을 수 없)|(?:검색|조회) 결과\S* 없",
            r"(?:문맥|본문|문서|자료|지문|정보|내용)\S* (?:\S+ ){0,6}?"
            r"(?:없습니다|않습니다|않았습니다|나오지 않|부족합니다)",
        ),
    ),
    "vi": _Refusals(
        "khong xin tiec chua",
        (
            rf"(?:toi|minh) (?:khong|chua) {_FEW}(?:biet|the|tim|co|chac|ro)\b",
            r"(?:xin loi|rat tiec)\b",
            r"(?:ngu canh|van ban|tai lieu|nguon|đoan van|boi canh) (?:\w+ ){0,5}?"
            r"khong (?:co|đe cap|cung cap|noi|cho|neu)",
            r"khong co (?:đu )?(?:thong tin|du lieu)|khong the (?:tra loi|xac đinh)",
        ),
    ),
    "id": _Refusals(
        "tidak maaf belum",
        (
            rf"(?:saya )?tidak (?:tahu|dapat|bisa|menemukan|memiliki|mengetahui) ?{_FEW}"
            r"(?:menjawab|informasi|jawaban|data|jawabannya|menemukan|memastikan|tahu)?",
            r"maaf\b",
            rf"(?:konteks|teks|dokumen|sumber) {_FEW}tidak \w+",
            r"tidak (?:ada|tersedia|terdapat) (?:cukup )?(?:informasi|data)",
        ),
    ),
}
_UNSPACED = {
    "zh": (
        "不知道|不清楚|不确定|不確定|(?:无法|無法|不能|没办法|沒辦法)(?:回答|确定|確定|提供|得知|判断|判斷|找到|从|從|根据|根據)"
        "|没有(?:足够|提供|提到|提及|相关|找到|包含|说明|关于)|沒有(?:足夠|提供|提到|提及|相關|找到|包含|說明|關於)"
        "|未(?:提及|提到|提供|说明|說明|包含|找到)|抱歉|对不起|對不起"
        "|找不到(?:相关|相關|任何|有关|有關|答案|信息|資訊|资讯|结果|結果)|(?:没有|沒有)(?:返回)?任何(?:结果|結果|信息|資訊)"
        "|(?:没有|沒有)(?:搜索|检索|查询|搜尋)(?:结果|結果)|(?:查无|查無)(?:结果|結果|资料|資料)"
    ),
    "ja": (
        "わかりません|分かりません|わからない|分からない|存じません|知りません|不明です|答えられません|お答えできません|回答できません"
        "|申し訳|すみません|情報(?:が|は)(?:ありません|含まれて|見つか|不足)|記載(?:が|は|されて)?(?:ありません|いません)"
        "|(?:書かれて|述べられて|言及されて|示されて|含まれて)いません|見つかりません|判断できません"
        "|見つけ(?:ること(?:が|は)でき|られ)ません|該当(?:する(?:もの|情報|結果))?(?:は|が)?(?:ありません|なし)"
        "|情報(?:は|が)見当たりません|検索結果(?:は|が)(?:ありません|ない)"
    ),
    "th": (
        "ไม่ทราบ|ไม่รู้|ไม่สามารถ(?:ตอบ|ระบุ|ให้|หา|บอก)|ขออภัย|ขอโทษ|เสียใจด้วย|ไม่มีข้อมูล|ไม่พบ(?:ข้อมูล|คำตอบ)"
        "|ไม่ได้(?:กล่าวถึง|ระบุ|ให้ข้อมูล|บอก|พูดถึง)|ข้อมูลไม่เพียงพอ"
        "|ไม่พบ(?:สิ่งใด|อะไร|ผลลัพธ์)|ไม่มีผลลัพธ์"
    ),
}


class _Search(NamedTuple):
    """How one language says that nothing was found: words by what they say. With '_' in place of a space.

    Words of up to three letters are whole words, others also beginnings of words.
    """

    no: str
    nothing: str
    found: str
    """What becomes of a search, and the search itself."""
    sought: str
    """What it was for: information, an answer, results."""
    about: str
    """What it was about, and where."""


class _Patterns(NamedTuple):
    """The same as patterns over normalised text."""

    no: re.Pattern[str]
    nothing: re.Pattern[str]
    found: re.Pattern[str]
    sought: re.Pattern[str]
    about: re.Pattern[str]


_SEARCHES = {
    "en": _Search(
        "no not cannot couldn didn n't", "nothing", "found find locate search retriev",
        "information answer result match detail",
        "about on this regarding topic question source context document knowledge",
    ),
    "de": _Search(
        "nicht kein", "nichts", "gefunden finden findet fand such liegen liegt vorliegen steht stehen",
        "information angabe antwort treffer ergebnis hinweis auskunft",
        "dazu hierzu daruber hieruber thema frage unterlagen dokument kontext quelle",
    ),
    "fr": _Search(
        "pas aucun", "rien", "trouv recherche figure", "information reponse resultat element",
        "sujet propos cela question document contexte texte source",
    ),
    "es": _Search(
        "no ningun", "nada", "encontr hallado hallo busqueda aparece consta hay",
        "informacion respuesta resultado dato", "respecto sobre tema documento contexto texto fuente pregunta",
    ),
    "it": _Search(
        "non nessun", "nulla niente", "trova ricerca risulta compare c'e", "informazion risposta risultat dati",
        "riguardo merito tema argomento documenti contesto testo fonti proposito",
    ),
    "pt": _Search(
        "nao nenhum", "nada", "encontr localiz pesquisa busca consta ha", "informac resposta resultado dados",
        "respeito sobre assunto isso documento contexto texto fonte tema",
    ),
    "nl": _Search(
        "niet geen", "niets", "gevonden vinden vond zoek staat", "informatie antwoord resulta gegevens",
        "hierover hiervoor onderwerp document context bron vraag",
    ),
    "sv": _Search(
        "inte ingen inga inget", "inget ingenting", "hitta finns sokning funnit",
        "information svar resultat traff uppgift",
        "detta amne dokument kontext text kall fraga",
    ),
    "da": _Search(
        "ikke ingen", "intet ingenting", "fundet funnet finde finne søgn søkn",
        "oplysning opplysning information informasjon svar resultat noget noe",
        "dette emne dokument kontekst tekst kilde spørg spør",
    ),
    "pl": _Search(
        "nie brak zadn", "nic", "znalez znalaz wyszuk ma", "informacj odpowied wynik danych",
        "temat tym dokument kontekst tekst zrodl pytani",
    ),
    "cs": _Search(
        "neby nena nepodar nevrati zadn nelze", "nic", "nalez najit nasel nasli vyhled", "informac odpoved vysled udaj",
        "tema tomu tom dokument kontext text zdroj otaz",
    ),
    "ru": _Search(
        "не нет", "ничего", "наиден наити нашл нашел обнаруж поиск нет", "информаци ответ данны сведени результат",
        "этои этому этом теме вопрос документ контекст текст источник запрос",
    ),
    "tr": _Search(
        "yok bulunama bulunmad rastlanma vermedi ulasılama", "hicbir_sey bir_sey", "bulun rastlan arama yok",
        "bilgi cevap yanıt sonuc", "konu hakkında bununla ilgili belge metin kaynak baglam soru",
    ),
    "ar": _Search(
        "لا لم ليس تعذر", "شيء", "العثور يعثر نعثر اعثر اجد نجد يوجد توجد البحث",
        "معلومات اجابة الاجابة بيانات نتائج نتايج", "حول بشان بهذا هذا وثائق وثايق المستند السياق النص المصادر الموضوع",
    ),
    "hi": _Search(
        "नहीं", "कुछ", "मिल खोज", "जानकारी उत्तर परिणाम जवाब", "बारे विषय दस्ताव संदर्भ संबंध",
    ),
    "vi": _Search(
        "khong chua", "co_gi thay_gi", "tim_thay tim_đuoc tim_kiem", "thong_tin cau_tra_loi ket_qua",
        "ve tai_lieu ngu_canh van_ban nguon chu_đe",
    ),
    "id": _Search(
        "tidak belum", "tidak_ada", "ditemukan menemukan temukan pencarian", "informasi jawaban hasil",
        "tentang mengenai terkait dokumen konteks teks sumber topik",
    ),
}  # fmt: skip
TURNS = """
    however but nevertheless aber jedoch dennoch allerdings mais cependant toutefois pero tuttavia però mas porém
    contudo
    maar echter ale jednak но однако ama ancak fakat لكن ولكن लेकिन परन्तु किन्तु 하지만 그러나 다만 nhưng tuy tetapi namun
"""
UNSPACED_TURNS = ("但是", "但", "不过", "不過", "しかし", "ただし", "แต่", "อย่างไรก็ตาม")

SIGNS = frozenset(stem(word) for one in SPACED.values() for word in words(one.signs)) - {NEGATION}


# Most responses need none of these patterns, and to compile them takes longer than to judge a few rows.


@cache
def with_no() -> re.Pattern[str]:
    """Wordings of the language that negates with the English word."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(SPACED['es'].wordings)})")


@cache
def all_wordings() -> re.Pattern[str]:
    """Those of all languages that separate words by spaces."""
    all_of_them = "|".join(wording for one in SPACED.values() for wording in one.wordings)
    return re.compile(rf"(?<!\w)(?:{unicodedata.normalize('NFC', all_of_them)})")


@cache
def unspaced_wordings() -> re.Pattern[str]:
    return re.compile("|".join(_UNSPACED.values()))


def likely_searches(sentence: str) -> Iterator["_Patterns"]:
    """What a sentence about a vain search contains, in the languages in which it may be one; most often in none."""
    beginnings = set(_BEGINNING.findall(sentence))
    for language, (found, no_or_nothing) in _BEGINNINGS.items() if _FOUND & beginnings else ():
        if found & beginnings and no_or_nothing & beginnings:
            yield _search_patterns(language)


@cache
def _search_patterns(language: str) -> "_Patterns":
    return _Patterns(*map(_any_of, _SEARCHES[language]))


def _any_of(listed: str) -> re.Pattern[str]:
    spelled = (unicodedata.normalize("NFC", word).replace("_", " ") for word in listed.split())
    words_ = (rf"{re.escape(word)}(?!\w)" if len(word) <= _WHOLE else re.escape(word) for word in spelled)
    return re.compile(rf"(?<!\w)(?:{'|'.join(words_)})")


_WHOLE = 3
"""Letters of a word that is no beginning of another one."""
_BEGINNING = re.compile(rf"\b\w{{1,{_WHOLE + 1}}}")


def _beginnings(listed: str) -> frozenset[str]:
    words_ = (unicodedata.normalize("NFC", word).replace("_", " ") for word in listed.split())
    found = map(_BEGINNING.search, words_)
    return frozenset(beginning[0] for beginning in found if beginning)


_BEGINNINGS = {
    language: (_beginnings(search.found), _beginnings(f"{search.no} {search.nothing}"))
    for language, search in _SEARCHES.items()
}
"""Of the words for what a search found, and for no and nothing."""
_FOUND = frozenset(chain.from_iterable(found for found, _ in _BEGINNINGS.values()))

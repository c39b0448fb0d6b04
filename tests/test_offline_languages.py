"""The offline judge in languages other than English: queries, answers and refusals."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, offline_metrics
from rag_eval.metrics.offline.asking import small_words_of, without_unspaced_asking
from rag_eval.metrics.offline.echo import without_echo
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.metrics.offline.refusals import all_wordings
from rag_eval.metrics.offline.scripts import count_words, is_pair, is_short, is_unspaced
from rag_eval.metrics.offline.wording import find_similar, query_stems
from rag_eval.records import METRIC_LABELS, Case
from rag_eval.texts.words import normalise, read, sentences, words

PROBES = [
    json.loads(line)
    for line in (Path(__file__).parent / "languages.jsonl").read_text(encoding="utf-8").splitlines()
]
LANGUAGES = ("de", "fr", "es", "ru", "tr", "ar", "hi", "zh", "ja", "ko", "th", "vi")


def score_of(metric: str, case: Case) -> float:
    value = asyncio.run(offline_metrics([metric])[0].measure(case)).value
    assert value is not None
    return value


def test_there_are_ten_probes_a_language() -> None:
    assert Counter(probe["language"] for probe in PROBES) == dict.fromkeys(LANGUAGES, 10)
    assert all(probe["answer"].lower() in probe["paragraph"].lower() for probe in PROBES)


@pytest.mark.parametrize("metric", METRIC_LABELS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_paragraph_with_the_answer_is_not_red(language: str, metric: str) -> None:
    for probe in PROBES:
        if probe["language"] == language:
            paragraph = probe["paragraph"]
            case = Case(2, "bot", probe["question"], paragraph, probe["answer"], (paragraph,))
            assert score_of(metric, case) >= CALIBRATED_THRESHOLDS[metric], probe


@pytest.mark.parametrize("metric", METRIC_LABELS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_paragraph_of_another_query_is_red(language: str, metric: str) -> None:
    """Seven in ten at least: a short reference often shares a small word, such as "in the", with the paragraph."""
    probes = [probe for probe in PROBES if probe["language"] == language]
    cases = []
    for one, other in zip(probes, probes[1:] + probes[:1], strict=True):
        response = one["paragraph"] if metric == "faithfulness" else other["paragraph"]
        cases.append(Case(2, "bot", one["question"], response, one["answer"], (other["paragraph"],)))
    red = [score_of(metric, case) < CALIBRATED_THRESHOLDS[metric] for case in cases]
    assert sum(red) >= 7


REFUSALS = {
    "de": (
        "Das weiß ich leider nicht.",
        "Ich kann diese Frage nicht beantworten.",
        "Der Kontext enthält keine Angaben zur Höhe.",
        "Es tut mir leid, dazu habe ich nichts gefunden.",
    ),
    "fr": (
        "Je ne sais pas.",
        "Désolé, je ne peux pas répondre à cette question.",
        "Le contexte ne mentionne pas la hauteur.",
        "Je n'ai aucune information à ce sujet.",
    ),
    "es": (
        "No lo sé.",
        "Lo siento, no puedo responder a esa pregunta.",
        "El contexto no menciona la altura.",
        "No hay información suficiente.",
    ),
    "it": (
        "Non lo so.",
        "Mi dispiace, non posso rispondere.",
        "Il contesto non menziona l'altezza.",
        "Non ci sono informazioni sufficienti.",
    ),
    "pt": (
        "Não sei.",
        "Desculpe, não posso responder a essa pergunta.",
        "O contexto não menciona a altura.",
        "Não há informações sobre isso.",
    ),
    "nl": (
        "Ik weet het niet.",
        "Helaas kan ik die vraag niet beantwoorden.",
        "De context bevat geen informatie hierover.",
        "Er is geen informatie over de hoogte.",
    ),
    "pl": (
        "Nie wiem.",
        "Przykro mi, nie mogę odpowiedzieć na to pytanie.",
        "Kontekst nie zawiera tej informacji.",
        "Brak informacji na ten temat.",
    ),
    "ru": (
        "Я не знаю.",
        "К сожалению, я не могу ответить на этот вопрос.",
        "В контексте нет информации о высоте.",
        "Недостаточно данных для ответа.",
    ),
    "tr": (
        "Bilmiyorum.",
        "Üzgünüm, bu soruyu yanıtlayamam.",
        "Bağlamda bu konuda bilgi bulunmuyor.",
        "Maalesef bu bilgi metinde yok.",
    ),
    "ar": (
        "لا أعرف.",
        "عذرا، لا أستطيع الإجابة عن هذا السؤال.",
        "السياق لا يذكر الارتفاع.",
        "لا توجد معلومات كافية.",
    ),
    "hi": (
        "मुझे नहीं पता।",
        "क्षमा करें, मैं इसका उत्तर नहीं दे सकता।",
        "संदर्भ में इसकी जानकारी नहीं है।",
        "मुझे इसकी जानकारी नहीं है।",
    ),
    "zh": ("我不知道。", "抱歉，我无法回答这个问题。", "上下文中没有提到高度。", "根据现有资料无法确定。"),
    "ja": (
        "わかりません。",
        "申し訳ありませんが、お答えできません。",
        "文脈には高さの情報が含まれていません。",
        "その点は書かれていません。",
    ),
    "ko": (
        "모르겠습니다.",
        "죄송하지만 답변할 수 없습니다.",
        "문맥에 높이에 대한 정보가 없습니다.",
        "알 수 없습니다.",
    ),
    "th": ("ไม่ทราบ", "ขออภัย ไม่สามารถตอบคำถามนี้ได้", "ในบริบทไม่ได้กล่าวถึงความสูง", "ไม่มีข้อมูลเรื่องนี้"),
    "vi": (
        "Tôi không biết.",
        "Xin lỗi, tôi không thể trả lời câu hỏi này.",
        "Ngữ cảnh không đề cập đến chiều cao.",
        "Không có thông tin về điều này.",
    ),
    "id": (
        "Saya tidak tahu.",
        "Maaf, saya tidak dapat menjawab pertanyaan ini.",
        "Konteks tidak menyebutkan tingginya.",
        "Tidak ada informasi tentang hal ini.",
    ),
}
ANSWERS = {
    "de": "Der Turm ist nicht so hoch wie gedacht, sondern nur 330 Meter.",
    "fr": "La tour n'est pas en bois mais en fer, et mesure 330 mètres.",
    "es": "La torre no es de madera, sino de hierro, y mide 330 metros.",
    "it": "La torre non è di legno ma di ferro, ed è alta 330 metri.",
    "pt": "A torre não é de madeira, e sim de ferro, e mede 330 metros.",
    "nl": "De toren is niet van hout maar van ijzer, en 330 meter hoog.",
    "pl": "Wieża nie jest z drewna, lecz z żelaza, i ma 330 metrów.",
    "ru": "Башня не деревянная, а железная, её высота 330 метров.",
    "tr": "Kule ahşap değil demirdendir ve 330 metre yüksekliğindedir.",
    "ar": "البرج ليس من الخشب بل من الحديد وارتفاعه 330 مترا.",
    "hi": "मीनार लकड़ी की नहीं बल्कि लोहे की है और 330 मीटर ऊँची है।",
    "zh": "这座塔不是木头做的，而是铁做的，高330米。",
    "ja": "この塔は木ではなく鉄でできていて、高さは330メートルです。",
    "ko": "이 탑은 나무가 아니라 쇠로 만들어졌고 높이는 330미터입니다.",
    "th": "หอคอยนี้ไม่ใช่ไม้แต่เป็นเหล็ก และสูง 330 เมตร",
    "vi": "Tháp không làm bằng gỗ mà bằng sắt và cao 330 mét.",
    "id": "Menara itu bukan dari kayu, melainkan dari besi, tingginya 330 meter.",
}


@pytest.mark.parametrize("language", REFUSALS)
def test_refusals_are_known_and_negated_answers_are_none(language: str) -> None:
    assert [text for text in REFUSALS[language] if not is_refusal(read(text))] == []
    assert not is_refusal(read(ANSWERS[language]))


def test_wordings_of_refusals_are_spelled_as_texts_are_compared() -> None:
    """Such as الوثايق, without the mark of its fifth letter."""
    written = all_wordings().pattern.replace("\\S", "").replace("’", "")
    assert normalise(written) == written


@pytest.mark.parametrize(
    ("text", "declines"),
    [
        ("Ich kann dazu nichts sagen. Aber der Turm ist nach dem Text sicher 330 Meter hoch gewesen.", False),
        ("Ich kann dazu nichts sagen. Aber fragen Sie ihn.", True),
        ("塔高330米。" * 13 + "抱歉", False),
        ("塔高330米。" + "抱歉", True),
        ("Der Turm ist hoch. " * 11 + "Das weiß ich nicht.", False),
        ("Der Turm ist hoch. " * 5 + "Das weiß ich nicht.", True),
    ],
)
def test_a_refusal_stands_at_the_beginning_and_alone(text: str, declines: bool) -> None:
    assert is_refusal(read(text)) is declines


ECHOES = {  # a query, an honest answer in its words, and how it is repeated
    "de": (
        "Wie lange darf ich ein Buch behalten?",
        "Ein Buch darf man vier Wochen behalten.",
        "Zu Ihrer Frage „Wie lange darf ich ein Buch behalten?“: {}",
        "Sie haben gefragt, wie lange Sie ein Buch behalten dürfen. {}",
        "WIE LANGE DARF ICH EIN BUCH BEHALTEN: {}",
    ),
    "fr": (
        "Combien de temps puis-je garder un livre ?",
        "On peut garder un livre quatre semaines.",
        "Concernant votre question « Combien de temps puis-je garder un livre ? » : {}",
        "Vous avez demandé combien de temps vous pouvez garder un livre. {}",
        "**Combien de temps puis-je garder un livre ?**\n{}",
    ),
    "es": (
        "¿Cuánto tiempo puedo quedarme un libro?",
        "Un libro se puede quedar cuatro semanas.",
        "Respecto a su pregunta «¿Cuánto tiempo puedo quedarme un libro?»: {}",
        "¿Cuánto tiempo puedo quedarme un libro? {}",
        "Cuanto tiempo puedo quedarme un libro: {}",
    ),
    "it": (
        "Quanto tempo posso tenere un libro?",
        "Si può tenere un libro quattro settimane.",
        'Riguardo alla domanda "Quanto tempo posso tenere un libro?": {}',
        "Ha chiesto quanto tempo può tenere un libro. {}",
    ),
    "pt": (
        "Quanto tempo posso ficar com um livro?",
        "Pode ficar com um livro quatro semanas.",
        'Sobre a pergunta "Quanto tempo posso ficar com um livro?": {}',
        "Você perguntou quanto tempo pode ficar com um livro. {}",
    ),
    "nl": (
        "Hoe lang mag ik een boek houden?",
        "Een boek mag je vier weken houden.",
        'Uw vraag "Hoe lang mag ik een boek houden?": {}',
        "U vroeg hoe lang u een boek mag houden. {}",
    ),
    "pl": (
        "Jak długo mogę trzymać książkę?",
        "Książkę można trzymać cztery tygodnie.",
        "Odnośnie pytania „Jak długo mogę trzymać książkę?”: {}",
        "Jak długo mogę trzymać książkę: {}",
    ),
    "ru": (
        "Как долго можно держать книгу?",
        "Книгу можно держать четыре недели.",
        "По вашему вопросу «Как долго можно держать книгу?»: {}",
        "Вы спросили, как долго можно держать книгу. {}",
        "Что касается вопроса, как долго можно держать книгу: {}",
    ),
    "tr": (
        "Bir kitabı ne kadar süre tutabilirim?",
        "Bir kitabı dört hafta tutabilirsiniz.",
        '"Bir kitabı ne kadar süre tutabilirim?" sorunuzla ilgili: {}',
        "Bir kitabı ne kadar süre tutabilirim? {}",
    ),
    "ar": (
        "كم يمكنني الاحتفاظ بالكتاب؟",
        "يمكنك الاحتفاظ بالكتاب أربعة أسابيع.",
        "بخصوص سؤالك «كم يمكنني الاحتفاظ بالكتاب؟»: {}",
        "سألت كم يمكنك الاحتفاظ بالكتاب. {}",
        "كم يمكنني الاحتفاظ بالكتاب؟ {}",
    ),
    "hi": (
        "मैं किताब कितने दिन रख सकता हूँ?",
        "किताब अट्ठाईस दिन रख सकते हैं।",
        'आपका प्रश्न "मैं किताब कितने दिन रख सकता हूँ?": {}',
        "आपने पूछा कि किताब कितने दिन रख सकते हैं। {}",
        "मैं किताब कितने दिन रख सकता हूँ? {}",
    ),
    "zh": (
        "一本书可以借多久？",
        "一本书可以借四个星期。",
        "关于“一本书可以借多久？”：{}",
        "您问一本书可以借多久，{}",
        "关于您的问题：一本书可以借多久？{}",
    ),
    "ja": (
        "本はどのくらい借りられますか？",
        "本は四週間借りられます。",
        "「本はどのくらい借りられますか？」というご質問について：{}",
        "本はどのくらい借りられますかというご質問ですが、{}",
        "本はどのくらい借りられますか？{}",
    ),
    "ko": (
        "책을 얼마나 빌릴 수 있습니까?",
        "책은 사 주 동안 빌릴 수 있습니다.",
        '"책을 얼마나 빌릴 수 있습니까?"라는 질문에 대해: {}',
        "책을 얼마나 빌릴 수 있습니까? {}",
    ),
    "th": (
        "ยืมหนังสือได้นานเท่าไร",
        "ยืมหนังสือได้สี่สัปดาห์",
        'เกี่ยวกับคำถาม "ยืมหนังสือได้นานเท่าไร": {}',
        "คุณถามว่ายืมหนังสือได้นานเท่าไร? {}",
        "คำถาม: ยืมหนังสือได้นานเท่าไร\n{}",
    ),
    "vi": (
        "Tôi được giữ sách bao lâu?",
        "Bạn được giữ sách bốn tuần.",
        'Về câu hỏi "Tôi được giữ sách bao lâu?": {}',
        "Bạn hỏi được giữ sách bao lâu. {}",
    ),
    "id": (
        "Berapa lama saya boleh menyimpan buku?",
        "Buku boleh disimpan empat minggu.",
        'Mengenai pertanyaan "Berapa lama saya boleh menyimpan buku?": {}',
        "Berapa lama saya boleh menyimpan buku? {}",
    ),
    "de, yes or no": (
        "Kann ich mein Abo jederzeit kündigen?",
        "Sie können Ihr Abo jederzeit kündigen.",
        "Sie möchten wissen, ob Sie Ihr Abo jederzeit kündigen können. {}",
        "Zur Frage, ob Sie Ihr Abo jederzeit kündigen können: {}",
    ),
    "es, yes or no": (
        "¿Puedo cancelar mi pedido?",
        "Puede cancelar su pedido.",
        "Usted pregunta si puede cancelar su pedido. {}",
    ),
    "ru, yes or no": (
        "Могу ли я отменить заказ?",
        "Вы можете отменить заказ.",
        "Вы хотите знать, можно ли отменить заказ. {}",
    ),
    "zh, yes or no": (
        "我可以取消订单吗？",
        "您可以取消订单。",
        "您想知道是否可以取消订单。{}",
    ),
    "sv": (  # a language of which no word is known
        "Hur länge får jag behålla en bok?",
        "En bok får man behålla i fyra veckor.",
        "Hur länge får jag behålla en bok? {}",
        '"Hur länge får jag behålla en bok?": {}',
    ),
}


@pytest.mark.parametrize("language", ECHOES)
def test_repeating_the_query_is_no_answer(language: str) -> None:
    query, answer, *echoes = ECHOES[language]
    assert without_echo(answer, query) == answer
    assert [without_echo(echo.format(answer), query) for echo in echoes] == [answer] * len(echoes)
    assert [without_echo(echo.format(""), query) for echo in echoes] == [""] * len(echoes)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_paragraph_with_the_query_is_judged_like_the_paragraph(language: str) -> None:
    probes = [probe for probe in PROBES if probe["language"] == language]
    for one, other in zip(probes, probes[1:] + probes[:1], strict=True):
        plain = Case(2, "bot", one["question"], other["paragraph"], one["answer"], (one["paragraph"],))
        for echo in ("“{0}”: {1}", "{0}\n\n{1}", "Regarding “{0}”: {1}", "{1}\n({0})"):
            echoed = replace(plain, response=echo.format(one["question"], other["paragraph"]))
            for metric in METRIC_LABELS:
                assert score_of(metric, echoed) == score_of(metric, plain), (metric, echo, one)


@pytest.mark.parametrize(
    ("query", "stems"),
    [
        ("Wie hoch ist der Turm in Paris?", {"hoch", "turm", "paris"}),
        ("Quelle est la hauteur de la tour ?", {"hauteur", "tour"}),
        ("Who sang la isla bonita?", {"sang", "la", "isla", "bonita"}),
        ("塔有多高？", {"塔有"}),
        ("หอคอยสูงเท่าไร", {"หอค", "อคอ", "คอย", "อยส", "ยสู", "สูง"}),
        ("Wer?", {"wer"}),
        ("How many?", {"how", "many"}),
        ("How many towers has Paris?", {"tower", "paris"}),
        ("Describe the old tower, not the name", {"tower"}),
        ("Who?", {"who"}),
        ("", set()),
    ],
)
def test_a_query_is_about_its_content_words(query: str, stems: set[str]) -> None:
    assert query_stems(query) == stems


def test_small_words_are_those_of_the_language_with_the_most_of_them() -> None:
    assert small_words_of([]) == frozenset()
    assert small_words_of(words("What is the die in the war?")) == frozenset()
    german = small_words_of(words("Wer hat die Brücke gebaut?"))
    assert {"wer", "hat", "die"} <= german
    assert "brucke" not in german
    assert small_words_of("wer die the what".split()) == frozenset()  # as many English words
    assert {"que", "el"} <= small_words_of("que por para o".split())  # Spanish before Portuguese
    assert small_words_of("de la que el".split()) >= {"del", "cuando"}
    assert small_words_of(["nowhere"]) == frozenset()
    assert without_unspaced_asking("谁是国王") == "  国王"
    assert without_unspaced_asking("plain") == "plain"


@pytest.mark.parametrize(
    ("wanted", "given", "alike"),
    [
        ("도서관은", "도서관을", True),
        ("년", "년에", True),
        ("넣은", "넣었습니다", True),
        ("배", "달", False),
        ("المنارة", "منارة", True),
        ("والمدينة", "المدينة", True),
        ("كتاب", "بيت", False),
        ("Brücken", "Brücke", True),
        ("Brücke", "Brückenbauverein", False),
        ("ab", "abc", False),
    ],
)
def test_words_in_another_form_are_alike(wanted: str, given: str, alike: bool) -> None:
    found = find_similar(frozenset(words(wanted)), set(words(given)))
    assert bool(found.alike) is alike
    assert found.share == pytest.approx(0.8 if alike else 0.0)


def test_groups_that_reach_from_one_found_word_into_another_are_alike() -> None:
    found = find_similar({"東京", "京大", "大学"}, {"東京", "大学"})
    assert (found.missing, found.alike) == (set(), {"京大"})
    assert find_similar({"東京", "京大", "大学"}, {"東京"}).missing == {"京大", "大学"}
    assert find_similar({"塔"}, {"東塔"}).alike == {"塔"}
    assert find_similar({"塔"}, {"東京"}).missing == {"塔"}


def test_groups_of_characters_count_as_parts_of_words() -> None:
    assert count_words(["tower", "330"]) == 2
    assert count_words(["東京", "京塔", "tower"]) == 2.0
    assert count_words(["หอค", "อคอ"]) == 0.5
    assert count_words(["башня", "река", "東京"]) == 2.5
    assert count_words([]) == 0
    assert [is_unspaced(word) for word in ("東京", "หอค", "tower", "башня")] == [True, True, False, False]
    assert [is_pair(word) for word in ("東京", "東", "หอค", "ab")] == [True, False, False, False]
    assert [is_short(word) for word in ("東", "東京", "หอ", "หอค", "a")] == [True, False, True, False, False]


def test_thai_is_read_in_threes_and_japanese_in_pairs() -> None:
    assert words("หอคอย") == ["หอค", "อคอ", "คอย"]
    assert words("หอ") == ["หอ"]
    assert words("東京塔") == ["東京", "京塔"]


def test_a_verbatim_answer_of_a_script_without_spaces_is_right() -> None:
    for answer in ("โรแมนติกไรน์", "穆罕默德·伊本扎卡里亚·拉齐"):
        case = Case(2, "bot", "?", answer, answer, None)
        assert score_of("answer_correctness", case) == 1.0


NOTHING_FOUND = {
    "en": [
        "No information on this was found.",
        "Nothing was found about this topic.",
        "The answer could not be found in the documents.",
        "The search returned no results for this question.",
    ],
    "de": [
        "Dazu wurde nichts gefunden.",
        "Zu dieser Frage wurden keine Informationen gefunden.",
        "Die Antwort konnte in den Dokumenten nicht gefunden werden.",
        "Die Suche ergab keine Treffer.",
    ],
    "fr": [
        "Aucune information n'a été trouvée à ce sujet.",
        "Rien n'a été trouvé sur ce sujet.",
        "La réponse n'a pas pu être trouvée dans les documents.",
        "La recherche n'a donné aucun résultat.",
    ],
    "es": [
        "No se encontró información sobre este tema.",
        "No se ha encontrado nada al respecto.",
        "No se pudo encontrar la respuesta en los documentos.",
        "La búsqueda no arrojó resultados.",
    ],
    "it": [
        "Non è stata trovata alcuna informazione in merito.",
        "Non è stato trovato nulla su questo argomento.",
        "La risposta non è stata trovata nei documenti.",
        "La ricerca non ha prodotto risultati.",
    ],
    "pt": [
        "Não foi encontrada nenhuma informação sobre isso.",
        "Nada foi encontrado sobre este assunto.",
        "A resposta não foi encontrada nos documentos.",
        "A pesquisa não retornou resultados.",
    ],
    "nl": [
        "Hierover is niets gevonden.",
        "Er is geen informatie over dit onderwerp gevonden.",
        "Het antwoord kon niet worden gevonden in de documenten.",
        "De zoekopdracht leverde geen resultaten op.",
    ],
    "sv": [
        "Inget hittades.",
        "Ingen information om detta hittades.",
        "Svaret kunde inte hittas i dokumenten.",
        "Sökningen gav inga resultat.",
    ],
    "da": [
        "Der blev ikke fundet noget om dette.",
        "Der blev ikke fundet oplysninger om dette emne.",
        "Svaret kunne ikke findes i dokumenterne.",
        "Søgningen gav ingen resultater.",
    ],
    "pl": [
        "Nie znaleziono informacji na ten temat.",
        "Nic nie znaleziono.",
        "Nie udało się znaleźć odpowiedzi w dokumentach.",
        "Wyszukiwanie nie zwróciło wyników.",
    ],
    "cs": [
        "K tomuto tématu nebyly nalezeny žádné informace.",
        "Nic nebylo nalezeno.",
        "Odpověď se v dokumentech nepodařilo najít.",
        "Vyhledávání nevrátilo žádné výsledky.",
    ],
    "ru": [
        "Информация по этому вопросу не найдена.",
        "По этой теме ничего не найдено.",
        "Ответ не удалось найти в документах.",
        "Поиск не дал результатов.",
    ],
    "tr": [
        "Bu konuda bilgi bulunamadı.",
        "Bununla ilgili hiçbir şey bulunamadı.",
        "Cevap belgelerde bulunamadı.",
        "Arama sonuç vermedi.",
    ],
    "ar": [
        "لم يتم العثور على معلومات حول هذا الموضوع.",
        "لم يُعثر على شيء بهذا الشأن.",
        "تعذر العثور على الإجابة في الوثائق.",
        "لم يسفر البحث عن أي نتائج.",
    ],
    "hi": [
        "इस बारे में कोई जानकारी नहीं मिली।",
        "इस विषय पर कुछ नहीं मिला।",
        "दस्तावेज़ों में उत्तर नहीं मिल सका।",
        "खोज का कोई परिणाम नहीं मिला।",
    ],
    "ko": [
        "이에 대한 정보를 찾지 못했습니다.",
        "관련 내용이 발견되지 않았습니다.",
        "문서에서 답변을 찾을 수 없었습니다.",
        "검색 결과가 없습니다.",
    ],
    "vi": [
        "Không tìm thấy thông tin nào về vấn đề này.",
        "Không có gì được tìm thấy về chủ đề này.",
        "Không tìm thấy câu trả lời trong tài liệu.",
        "Tìm kiếm không cho kết quả nào.",
    ],
    "id": [
        "Tidak ditemukan informasi tentang hal ini.",
        "Tidak ada yang ditemukan mengenai topik ini.",
        "Jawabannya tidak ditemukan dalam dokumen.",
        "Pencarian tidak memberikan hasil.",
    ],
    "zh": [
        "未找到相关信息。",
        "没有找到任何有关此问题的内容。",
        "在文档中找不到答案。",
        "搜索没有返回任何结果。",
    ],
    "ja": [
        "これに関する情報は見つかりませんでした。",
        "該当するものはありませんでした。",
        "文書の中に答えを見つけることができませんでした。",
        "検索結果はありません。",
    ],
    "th": [
        "ไม่พบข้อมูลเกี่ยวกับเรื่องนี้",
        "ไม่พบสิ่งใดเกี่ยวกับหัวข้อนี้",
        "ไม่พบคำตอบในเอกสาร",
        "การค้นหาไม่มีผลลัพธ์",
    ],
}
"""No information on it; nothing on it; no answer in the documents; a search without results."""
IN_OTHER_WORDS = [
    "I found nothing on this in the knowledge base.",
    "No matching documents were found.",
    "There was no answer to this question in the sources.",
    "Es konnten keine passenden Informationen gefunden werden.",
    "Hierzu liegen uns keine Angaben vor.",
    "In den Unterlagen steht dazu nichts.",
    "Nous n'avons trouvé aucune information à ce propos.",
    "Les documents ne contiennent pas de réponse.",
    "No hemos encontrado información al respecto.",
    "En los documentos no aparece nada sobre este tema.",
    "Non abbiamo trovato informazioni al riguardo.",
    "Nei documenti non c'è nulla su questo tema.",
    "Não encontramos informações a respeito.",
    "Não há nada sobre isso nos documentos.",
    "Er werd niets over dit onderwerp gevonden.",
    "We hebben hierover geen informatie gevonden.",
    "Vi hittade ingen information om detta.",
    "Det finns inget om detta i dokumenten.",
    "Nie znaleźliśmy informacji na ten temat.",
    "W dokumentach nic o tym nie ma.",
    "Мы не нашли информации по этому вопросу.",
    "В документах об этом ничего нет.",
    "Bu konuda herhangi bir bilgiye rastlanmadı.",
    "Belgelerde bu konuda bir şey yok.",
    "該当する情報が見当たりません。",
    "没有相关资料。",
    "查无结果。",
    "관련 정보가 없습니다.",
    "Chúng tôi không tìm thấy thông tin về điều này.",
    "Kami tidak menemukan informasi tentang hal ini.",
    "हमें इस बारे में जानकारी नहीं मिली।",
    "لم نجد معلومات حول هذا الموضوع.",
]
FINDINGS = [
    "Gold was not found in the river, but silver was.",
    "The wreck could not be found until 1985.",
    "No survivors were found after the crash.",
    "Nothing was found in the tomb of the queen.",
    "Die Täter wurden nie gefunden.",
    "Aucune trace du navire n'a été trouvée.",
    "검사 결과 이상이 발견되지 않았습니다.",
    "Inga överlevande hittades.",
    "Nie znaleziono żadnych ocalałych.",
    "Выживших не нашли.",
    "No trace of the data was ever found, says the 1997 report.",
    "The survey produced no results for women under 30 until 2010.",
    "Es wurden keine Spuren gefunden.",
    "Hayatta kalan bulunamadı.",
    "Non sono stati trovati superstiti.",
    "生存者は発見されなかった。",
    "Der blev ikke fundet spor efter skibet.",
    "The search was called off on 5 May.",
    "Não foram encontrados sobreviventes.",
]
"""Answers: what was not found is no information."""


@pytest.mark.parametrize("language", NOTHING_FOUND)
def test_an_answer_that_nothing_was_found_is_a_refusal(language: str) -> None:
    assert [text for text in NOTHING_FOUND[language] if not is_refusal(read(text))] == []


def test_other_words_for_it_are_known_as_well() -> None:
    assert [text for text in IN_OTHER_WORDS if not is_refusal(read(text))] == []


@pytest.mark.parametrize("text", FINDINGS)
def test_what_was_never_found_can_be_the_answer(text: str) -> None:
    assert not is_refusal(read(text))


def test_an_answer_after_a_search_without_results_counts() -> None:
    assert is_refusal(read("Nothing was found in the documents."))
    assert not is_refusal(
        read(
            "Nothing was found in the documents. However, the library of the town opens at nine in the morning."
        )
    )


SPACED = [
    json.loads(line)
    for line in (Path(__file__).parent / "spaced_sentences.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Paragraphs of Thai and Lao, which put only spaces between sentences, each with short answers by query."""


@pytest.mark.parametrize("held_out", [False, True])
def test_a_short_answer_is_told_from_that_of_another_query_about_the_same_paragraph(held_out: bool) -> None:
    """Without full stops, the paragraph must not be taken for one sentence, which is the source of every answer."""
    own, others = [], []
    for paragraph in (each for each in SPACED if each["held_out"] is held_out):
        answers = list(paragraph["answers"].items())
        for (query, answer), (_, another) in zip(answers, answers[1:] + answers[:1], strict=True):
            for response, values in ((answer, own), (another, others)):
                case = Case(2, "bot", query, response, None, (paragraph["paragraph"],))
                values.append(score_of("answer_relevancy", case))
    threshold = CALIBRATED_THRESHOLDS["answer_relevancy"]
    assert sum(value >= threshold for value in own) >= 0.9 * len(own)
    assert sum(value < threshold for value in others) >= 0.9 * len(others)


@pytest.mark.parametrize("text", ["សួស្តី។ ខ្ញុំសុខសប្បាយ៕", "မင်္ဂလာပါ။နေကောင်းလား။", "你好。再见。"])
def test_full_stops_of_scripts_without_spaces_end_sentences(text: str) -> None:
    assert len(sentences(text)) == 2

"""Names of columns, by role. The only module that knows them; docs/input.md shows them as a table.

Names are matched as a whole, whatever their case, width and separators (spaces, those without width too, line ends,
`_`, `-`), never by a part of them. Of a dotted path, as fields of records have, the last part counts.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import permutations
from types import MappingProxyType
from typing import NamedTuple

from rag_eval.records import SPENT_LABELS
from rag_eval.tables.cells import UNSEEN_SPACES
from rag_eval.texts.words import compatible

QUERY, REFERENCE, RESPONSE, CONTEXT = "query", "reference", "response", "context"
BOT, ID = "name of the bot", "id of the query"
GOLD, RETRIEVED, HUMAN = "gold documents", "retrieved documents", "human label"
HISTORY, CONVERSATION = "earlier turns", "id of the conversation"
LATENCY, COST = SPENT_LABELS
KEPT, UNUSED = "kept", "not used"

DOCUMENTS = ("docs", "doc ids", "documents")
"""Words for documents, after 'gold' and 'retrieved'."""

FIRST: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        QUERY: ("query", "question", "input", "prompt"),
        REFERENCE: ("ground_truth", "reference", "target", "gt", "expected"),
        CONTEXT: ("context",),
        GOLD: ("gold_docs", "gold_doc_ids", "gold_documents"),
        RETRIEVED: ("retrieved_docs", "retrieved_doc_ids", "retrieved_documents"),
    }
)
"""Names of our own."""
SECOND: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        QUERY: (
            "user_input", "user_query", "user_question", "user_prompt", "user_message", "user_request", "query_text",
            "question_text", "input_text", "input_query", "input_question", "query_str", "search_query", "instruction",
            "message", "messages", "conversation", "conversations", "inputs", "questions", "queries", "prompts",
        ),
        REFERENCE: (
            "ground_truths", "ground_truth_answer", "ground_truth_answers", "reference_answer",
            "reference_answers", "reference_response",
            "reference_output", "reference_outputs", "expected_output", "expected_outputs", "expected_answer",
            "expected_answers", "expected_response", "gold_answer", "gold_answers", "gold_response",
            "golden_answer", "golden_answers", "golden_response", "truth", "true_answer", "gt_answer", "gt_answers",
            "correct_answer", "correct_answers", "correct_response", "target_answer", "targets", "ideal",
            "ideal_answer", "ideal_response", "standard_answer", "best_answer", "well_formed_answers", "answers",
            "right_answer", "right_answers", "right_response", "solution", "answer_key",
            "generation_gt",
        ),
        CONTEXT: (
            "retrieved_contexts", "retrieved_context", "retrieval_context", "retrieval_contexts", "contexts",
            "retrieved_passages", "retrieved_chunks", "retrieved_texts", "retrieved_text", "context_passages",
            "context_text", "context_texts", "context_chunks", "source_documents", "source_nodes", "passages", "chunks",
            "documents", "snippets", "search_results", "passage_text",
            "retrieved_contents",
            "passage", "chunk", "chunk_text", "retrieved_passage", "retrieved_chunk", "document_text", "snippet",
        ),
        GOLD: ("reference_context_ids", "relevant_doc_ids", "relevant_docs"),
        RETRIEVED: ("retrieved_context_ids",),
        HISTORY: (
            "history", "chat_history", "conversation_history", "message_history", "dialogue_history", "dialog_history",
            "earlier_turns", "previous_turns", "previous_messages", "prior_turns",
        ),
    }
)  # fmt: skip
"""Names that other tools use. They count only where no name of the first rank has their role."""
OTHER_LANGUAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        QUERY: (
            "requête", "requêtes", "demande", "question de l'utilisateur", "question utilisateur",
            "Frage", "Fragen", "Fragetext", "Fragestellung", "Anfrage", "Suchanfrage", "Eingabe", "Nutzerfrage",
            "Benutzerfrage", "Kundenfrage",
            "pregunta", "preguntas", "pregunta del usuario", "consulta", "consultas", "entrada",
            "pergunta", "perguntas", "pergunta do usuário", "questão", "questões",
            "domanda", "domande", "domanda utente", "domanda dell'utente", "quesito", "richiesta",
            "vraag", "vragen", "vraagstelling", "gebruikersvraag", "klantvraag", "zoekvraag", "invoer",
            "質問", "質問文", "質問内容", "問い", "問い合わせ", "設問", "クエリ", "プロンプト", "入力",
            "ユーザーの質問", "问题", "問題", "提问", "提問", "用户问题", "用戶問題", "使用者問題", "查询", "查詢",
            "询问", "輸入", "输入",
        ),
        REFERENCE: (
            "référence", "réponse attendue", "réponses attendues", "réponse de référence", "réponse correcte",
            "bonne réponse", "bonnes réponses", "réponse exacte", "réponse idéale", "vérité terrain", "attendu",
            "Referenz", "Referenzantwort", "erwartete Antwort", "erwartete Ausgabe", "Musterantwort", "Musterlösung",
            "Soll", "Soll-Antwort", "korrekte Antwort", "richtige Antwort", "ideale Antwort", "Zielantwort",
            "Antwort (erwartet)", "Antwort (Soll)",
            "Goldstandard",
            "referencia", "respuesta de referencia", "respuesta esperada", "respuestas esperadas",
            "respuesta correcta", "respuesta ideal", "verdad de referencia",
            "referência", "resposta de referência", "resposta esperada", "respostas esperadas", "resposta correta",
            "resposta ideal", "gabarito",
            "riferimento", "risposta di riferimento", "risposta attesa", "risposte attese", "risposta corretta",
            "risposta esatta", "risposta ideale",
            "referentie", "referentieantwoord", "verwacht antwoord", "verwachte antwoord", "verwachte uitvoer",
            "juiste antwoord", "juist antwoord", "correct antwoord", "correcte antwoord", "ideaal antwoord",
            "期待される回答", "期待回答", "期待する回答", "想定回答", "期待値", "正解", "正答", "正しい回答",
            "模範解答", "模範回答", "参照回答", "理想的な回答", "リファレンス",
            "标准答案", "標準答案", "标准回答", "参考答案", "參考答案", "参考回答", "參考回答", "预期答案", "預期答案",
            "预期回答", "預期回答", "期望答案", "期望回答", "正确答案", "正確答案", "理想答案", "真实答案",
            "预期输出", "期望输出",
        ),
        CONTEXT: (
            "contexte", "contextes", "contexte récupéré", "passages récupérés", "extraits",
            "Kontext", "Kontexte", "abgerufener Kontext", "Textabschnitte", "Textstellen", "Textpassagen", "Passagen",
            "contexto", "contextos", "contexto recuperado", "pasajes", "pasajes recuperados", "fragmentos",
            "trechos", "trechos recuperados", "passagens",
            "contesto", "contesti", "contesto recuperato", "passaggi", "brani", "estratti",
            "opgehaalde context", "tekstfragmenten", "fragmenten",
            "コンテキスト", "コンテクスト", "文脈", "検索結果", "取得コンテキスト", "チャンク", "抜粋",
            "上下文", "检索上下文", "檢索上下文", "检索结果", "檢索結果", "检索内容", "檢索內容", "文档片段",
            "語境", "语境",
        ),
        RESPONSE: (
            "réponse", "réponses", "réponse générée", "réponse du bot", "réponse du chatbot", "réponse du modèle",
            "sortie",
            "Antwort", "Antworten", "generierte Antwort", "Bot-Antwort", "Chatbot-Antwort", "Modellantwort",
            "Systemantwort", "KI-Antwort", "Antwort des Bots", "Antwort des Chatbots", "Antwort des Modells", "Ausgabe",
            "Ist-Antwort", "tatsächliche Antwort", "Antwort (Bot)", "Antwort (Ist)",
            "respuesta", "respuestas", "respuesta generada", "respuesta del bot", "respuesta del chatbot",
            "respuesta del modelo", "salida",
            "resposta", "respostas", "resposta gerada", "resposta do bot", "resposta do chatbot", "resposta do modelo",
            "saída",
            "risposta", "risposte", "risposta generata", "risposta del bot", "risposta del chatbot",
            "risposta del modello",
            "antwoord", "antwoorden", "gegenereerd antwoord", "gegenereerde antwoord", "chatbotantwoord",
            "botantwoord", "antwoord van de bot", "antwoord van de chatbot", "antwoord van het model", "uitvoer",
            "回答", "回答文", "返答", "応答", "生成回答", "生成された回答", "モデル回答", "モデルの回答",
            "ボットの回答", "チャットボットの回答", "AI回答", "出力",
            "答案", "回复", "回覆", "答复", "答覆", "模型回答", "模型答案", "模型回复", "模型输出", "生成答案",
            "生成的答案", "机器人回答", "机器人回复", "機器人回答", "输出", "輸出",
        ),
        BOT: (
            "modèle", "nom du modèle", "nom du bot", "Modell", "Modellname", "Botname", "modelo", "nombre del modelo",
            "nombre del bot", "nome do modelo", "nome do bot", "modello", "nome del modello", "nome del bot",
            "modelnaam", "botnaam", "モデル", "モデル名", "ボット", "ボット名", "模型", "模型名称", "模型名稱",
            "机器人", "機器人", "机器人名称",
        ),
        ID: (
            "id de la question", "id question", "Frage-ID", "Fragen-ID", "Fragennummer", "id de la pregunta",
            "id pregunta", "id da pergunta", "id pergunta", "id della domanda", "id domanda", "vraag-id",
            "質問ID", "問題ID", "问题ID", "问题编号", "問題編號",
        ),
    }
)  # fmt: skip
"""Usual names in French, German, Spanish, Portuguese, Italian, Dutch, Japanese and Chinese, with or without accents.

They count only where no English name has their role. Names that may be a ground truth as well as a response, as the
Dutch `modelantwoord`, and documents that may be texts as well as ids, are left to a person.
"""
ANSWERS = (
    "answer", "response", "output", "outputs", "actual_output", "actual_response", "prediction", "predicted_answer",
    "predicted_response", "generated_answer", "generated_response", "generated_text", "generated_output", "generation",
    "model_answer", "model_response", "model_output", "llm_answer", "llm_response", "llm_output", "system_answer",
    "system_response", "system_output", "rag_answer", "rag_response", "ai_response", "ai_answer", "assistant_response",
    "chatbot_response", "final_answer", "completion", "hypothesis", "candidate_answer", "reply", "predictions",
    "predicted_answers", "generated_answers", "model_answers", "responses", "completions", "filtered_resps",
    "generated_texts",
)  # fmt: skip
"""Names of a response where no column names a bot by its prefix."""
ANSWER_ENDS = ("answer", "response", "output", "prediction")
"""What further names of responses end with."""
BOTS = ("bot", "model", "system", "provider", "bot_name", "model_name", "system_name")
"""Names of a column that names the bot of each row."""
MORE_BOTS = (
    "llm_name", "llm", "llm_model", "chatbot_name", "chatbot", "assistant_name", "assistant", "model_id", "bot_id",
    "bot_version", "model_version",
)  # fmt: skip
"""Further names of such a column. They count where no column has one of those, and where rows of one query show it."""
IDS = (
    "query_id", "question_id", "qid", "query_run", "id", "task_id", "test_idx", "example_id", "sample_id",
)  # fmt: skip
"""Names of a column that tells queries apart."""
_CONVERSATIONS = ("conversation_id", "dialogue_id", "dialog_id", "chat_id", "thread_id")
"""Names of a column with the id of the conversation that the row is a part of."""
_CHATS = ("messages", "conversation", "conversations")
"""Those names of a query whose cells may be whole conversations: next to another query they tell its earlier turns."""
PASSAGES = (
    "passage",
    "chunk",
    "chunk_text",
    "retrieved_passage",
    "retrieved_chunk",
    "document_text",
    "snippet",
)
"""Those names of a context that speak of a single passage: the rows of a query then hold one each."""
SPENT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        LATENCY: (
            "latency", "total_latency", "response_latency", "response_time", "completion_time", "execution_time",
            "elapsed_time", "processing_time", "generation_time", "inference_time", "time_taken",
            "Latenz", "Antwortzeit", "latence", "temps de réponse", "latencia", "tiempo de respuesta", "latência",
            "tempo de resposta", "latenza", "tempo di risposta", "latentie", "responstijd", "レイテンシ", "応答時間",
            "延迟", "延遲", "响应时间", "回應時間",
        ),
        COST: (
            "cost", "costs", "total_cost", "token_cost", "response_cost",
            "Kosten", "Gesamtkosten", "coût", "coûts", "coût total", "costo", "costos", "coste", "costes", "custo",
            "custos", "costi", "コスト", "費用", "费用", "成本",
        ),
    }
)  # fmt: skip
"""Names of what a bot spends on a response. They count only where the cells are amounts."""
_SECOND_LATENCIES = (
    "elapsed", "total_time", "took", "time_to_answer", "answer_time", "response_duration", "runtime", "Antwortdauer",
    "Laufzeit", "durée de réponse",
)  # fmt: skip
"""Names of a latency that count only where no column has a name of the first rank."""
_DURATIONS = ("duration", "Dauer", "durée", "duración", "duração", "durata", "duur")
"""Names of a latency if they have the name of a bot, or a unit up to milliseconds: others may speak of a call."""
TOKENS = ("tokens", "total_tokens", "token_count", "tokens_used")
"""Names of a cost in tokens. They count only where no column has a cost in money."""
TIMES: Mapping[str, float] = MappingProxyType(
    {
        "ns": 1e-6, "us": 1e-3, "μs": 1e-3, "ms": 1.0, "msec": 1.0, "msecs": 1.0, "millis": 1.0, "millisecond": 1.0,
        "milliseconds": 1.0, "s": 1e3, "sec": 1e3, "secs": 1e3, "second": 1e3, "seconds": 1e3, "min": 6e4, "mins": 6e4,
        "minute": 6e4, "minutes": 6e4,
        "millisekunden": 1.0, "sek": 1e3, "sekunden": 1e3, "minuten": 6e4, "millisecondes": 1.0, "secondes": 1e3,
        "milisegundos": 1.0, "segundos": 1e3, "minutos": 6e4, "millisecondi": 1.0, "secondi": 1e3, "minuti": 6e4,
        "seconden": 1e3, "ミリ秒": 1.0, "秒": 1e3, "毫秒": 1.0,
    }
)  # fmt: skip
"""Units of time in a name or a cell, in milliseconds."""
CURRENCIES = (
    "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "KRW", "CAD", "AUD", "NZD", "SGD", "HKD", "BRL", "MXN", "SEK",
    "NOK", "DKK", "PLN", "CZK", "HUF", "TRY", "ZAR", "RUB", "UAH", "ILS", "THB", "VND", "PHP", "KZT", "NGN", "RON",
    "TWD", "AED", "SAR", "ARS", "CLP", "COP", "IDR", "MYR",
)  # fmt: skip
"""Currencies in a name. In brackets any unit may follow it."""
DOLLAR = "$"
"""Of which country it is, only another cell or the header can tell."""
_MONEY: Mapping[str, str] = MappingProxyType(
    {
        "us$": "USD", "$": DOLLAR, "dollar": DOLLAR, "dollars": DOLLAR, "€": "EUR", "euro": "EUR", "euros": "EUR",
        "£": "GBP", "₹": "INR", "₩": "KRW", "₽": "RUB", "₴": "UAH", "₪": "ILS", "฿": "THB", "₫": "VND",
        "₱": "PHP", "₸": "KZT", "₦": "NGN", "₺": "TRY", "¥": "¥", "円": "JPY", "元": "CNY",
        "¢": "cents", "cent": "cents", "cents": "cents", "ct": "ct", "cts": "ct",
        "micros": "micros",
    }
)  # fmt: skip
"""What else money is called in a name or a cell, and what it is then called."""
SMALL_MONEY: Mapping[str, float] = MappingProxyType(
    {
        "cent": 1e-2,
        "cents": 1e-2,
        "ct": 1e-2,
        "cts": 1e-2,
        "micro": 1e-6,
        "micros": 1e-6,
        "nano": 1e-9,
        "nanos": 1e-9,
    }
)
"""Parts of a currency whose name goes with it, as in `USD cents` or `micro_usd`."""
_RETRIEVED_FIRST = frozenset(("retrievalcontext", "retrievedcontexts", "retrievedcontext"))
"""Next to a column of one response these come before `context`, which tools that have both use for the ideal one."""

_GAPS = rf"\s{UNSEEN_SPACES}"
_SEPARATORS = rf"[{_GAPS}_\-\u2010-\u2015\uff0d\uff3f]"
_NUMBERED = re.compile(rf"(.*[^\d\W])(?:{_SEPARATORS}|[#.:/([])*(\d{{1,2}})[])]?")
_PATH = re.compile(r"[^\W.][^.\s]*(?:\.[^.\s]+)+")
_WRAPPINGS = frozenset(("content", "text", "value", "pagecontent"))
"""Last parts of a path that say only that it is a text."""
_LABELS = ("id", "name", "label")
"""Last parts of a path that say only what something is called; the first is always there."""


def folded(name: str) -> str:
    """The name for comparing: width, case and separators levelled."""
    return re.sub(rf"{_SEPARATORS}+", " ", compatible("NFKC", name).casefold()).strip()


def _unaccented(name: str) -> str:
    return re.sub("['’\u0300-\u036f]", "", unicodedata.normalize("NFD", name))


def squeezed(name: str) -> str:
    return folded(name).replace(" ", "")


def nearest(name: str, known: Iterable[str], kind: str = "columns") -> str:
    """A suggestion to put behind 'is not a column'."""
    names = list(known)
    found = get_close_matches(name.casefold(), [each.casefold() for each in names], n=1)
    if found:
        return f"; did you mean '{next(each for each in names if each.casefold() == found[0])}'?"
    return f"; the {kind} are {', '.join(repr(each[:60]) for each in names[:40])}"


def called(name: str, headers: Mapping[int, str]) -> list[int]:
    """The columns with this name, by their position: as it is written, or else in any case and with any separators."""
    found = [index for index, header in headers.items() if header == name]
    return found or [index for index, header in headers.items() if squeezed(header) == squeezed(name)]


@lru_cache(maxsize=200)  # each name in a header is looked at several times
def after_prefix(header: str, prefix: str) -> str:
    """The rest of the header, as it is written; '' when it has another beginning.

    A prefix that ends in a separator needs one in the header too: Bottom_Line is no bot.
    """
    words = [re.escape(word) for word in re.split(_SEPARATORS, prefix) if word]
    end = "++" if re.search(rf"{_SEPARATORS}\Z", prefix) else "*+"
    pattern = rf"[{_GAPS}]*{f'{_SEPARATORS}*'.join(words)}{_SEPARATORS}{end}(.*[^{_GAPS}])"
    found = re.match(pattern, header, re.IGNORECASE | re.DOTALL)
    return found[1] if found else ""


class Meaning(NamedTuple):
    """What a name says. Of two with one role the lower `rank` wins."""

    role: str
    rank: tuple[int, int, int]
    """Whose name it is (0 for ours, 1 for other tools', 2 for one in another language), where in a record it is (1 for
    a plain column), and a place among names that are used together."""


def meaning_of(header: str, *, has_prefixed: bool) -> Meaning | None:
    """What the name of a column may mean; None for nothing known.

    `has_prefixed` says that other columns name bots by their prefix; then a name says nothing about responses.
    """
    found = _meaning(header, has_prefixed=has_prefixed)
    return None if has_prefixed and found and found.role in (RESPONSE, BOT, ID) else found


@lru_cache(maxsize=200)
def _meaning(header: str, *, has_prefixed: bool) -> Meaning | None:
    *parents, name = map(squeezed, header.split(".") if _PATH.fullmatch(header) else [header])
    depth = len(parents) + 1
    if any(parent.endswith(_OF_NUMBERS) for parent in parents):
        return None
    if name in _LABELS and not _BOTS.isdisjoint(parents[-1:]):
        return Meaning(BOT, (1, depth, _LABELS.index(name)))
    if name in _WRAPPINGS and parents:
        name = parents.pop()
    is_expected = REFERENCE in map(_ROLES.get, parents)  # as in `reference_outputs.answer`
    if name in _ROLES and not is_expected:
        role = _ROLES[name]
        if depth == 1 and name in _FIRST and (has_prefixed or role != CONTEXT):
            return Meaning(role, (0, depth, 0))
        return Meaning(role, (1, depth, _place(name) if role == CONTEXT else 0))
    is_result = name == "result" and (is_expected or not _ANSWERS.isdisjoint(parents[-1:]))  # of a chain
    if is_result or name in _ANSWERS or (name.endswith(ANSWER_ENDS) and not name.startswith(_ABOUT_ANSWERS)):
        if is_expected:
            return Meaning(REFERENCE, (1, depth, int(is_result)))
        return Meaning(RESPONSE, (0, depth, int(name not in _ANSWERS) + is_result))
    if role := _OF_ROWS.get(name, ""):
        return Meaning(role, (0, depth, _MORE_BOTS.get(name, 0)))
    if role := _ABROAD.get(_unaccented(name), ""):
        return Meaning(role, (2, depth, 0))
    return None


def field_with(role: str, paths: Iterable[str]) -> str:
    """Of the fields of an object, by their paths, the one with the text of this role; '' for none."""
    found = [
        (meaning.rank, path)
        for path in paths
        if (meaning := _meaning(f"answer.{path}", has_prefixed=False)) and meaning.role == role
    ]
    return min(found)[1] if found else ""


def is_answer(header: str) -> bool:
    """Whether the whole name is one of a response."""
    name = squeezed(header)
    return name in _ANSWERS or _ABROAD.get(_unaccented(name)) == RESPONSE


def without_answer(header: str) -> str:
    """What is left of the name of a bot's responses, such as `Atlas answer`; '' where it is nothing else."""
    return next((rest for what, rest in halves_of(header) if what in _RESPONSES), "")


def halves_of(header: str) -> Iterator[tuple[str, str]]:
    """The ways to read a name as two, folded: what a column has, and whose that is; the longest owner first."""
    words = folded(header).split()
    for count in range(1, min(len(words), _MOST_WORDS + 1)):
        for what, rest in ((words[:count], words[count:]), (words[-count:], words[:-count])):
            owner = " ".join(rest).strip(_COLONS)
            inside = _IN_NOTHING_ELSE.fullmatch(owner)  # as in `Sources (Atlas)`
            yield " ".join(what).strip(_AROUND), inside[1] if inside else owner


_MOST_WORDS = 5
"""In what a column has."""
_COLONS = " :"
_IN_NOTHING_ELSE = re.compile(r"[(\[]([^()\[\]]+)[)\]]")
_AROUND = f"{_COLONS}()[]"


def without_numbers(header: str) -> str:
    """What names such as `Actual result (v1)` and `Actual result (v2)` share; '' for a name without a number."""
    words = _words_of(header)
    rest = [word for word in words if not word.isdigit()]
    return " ".join(rest) if len(rest) < len(words) else ""


def may_be_truth(header: str) -> bool:
    """Whether the name of a response may as well be that of the ground truth."""
    return _unaccented(squeezed(header.rpartition(".")[2])) in _TRUTHS or says_truth(header)


def says_truth(header: str) -> bool:
    """Whether a word in a name says that a person gave the answer, or that it is right: not in `Expert comment`."""
    words = {*_words_of(_parts(header)[-1])}
    return not _WORDS_OF_TRUTHS.isdisjoint(words) and _ABOUT.keys().isdisjoint(words - _WORDS_OF_TRUTHS)


def names_bots(header: str) -> bool:
    """Whether the whole name says that the column has the name of each row's bot."""
    return squeezed(header) in _BOTS


def may_name_bots(header: str) -> bool:
    """Whether the whole name says so where the rows of one query have different cells."""
    return squeezed(header) in _MORE_BOTS


def names_errors(header: str) -> bool:
    """Whether the name is that of a text which is there only if something failed."""
    *parents, name = map(squeezed, header.split(".") if _PATH.fullmatch(header) else [header])
    return name in _ERRORS or (name in _PARTS_OF_ERRORS and not _ERRORS.isdisjoint(parents[-1:]))


def names_state(header: str) -> bool:
    """Whether the name is that of a word for how a call ended."""
    return squeezed(header.rpartition(".")[2]) in _STATES


def holds_several(header: str) -> bool:
    """Whether the name is the plural of one for a ground truth, so that its cells are lists."""
    name = squeezed(header.rpartition(".")[2])
    return name.endswith("s") and name not in _FIRST and _ROLES.get(name) == REFERENCE


def joins_by_bar(headers: Iterable[str]) -> bool:
    """Whether the columns are those of deepeval's .csv and .jsonl, whose contexts are joined with a single `|`."""
    return {"actualoutput", "retrievalcontext", "additionalmetadata"} <= set(map(squeezed, headers))


def is_chat(header: str) -> bool:
    """Whether the name of a query says that its cells may be whole conversations."""
    return squeezed(header.rpartition(".")[2]) in _CHATS


def is_conversation(header: str) -> bool:
    """Whether the name is that of an id of a conversation, in a table of which each row is a message."""
    return _unaccented(squeezed(header.rpartition(".")[2])) in _OF_CONVERSATIONS


def speaks_of_sources(name: str) -> bool:
    """Whether a part of a name speaks of what was retrieved, or of what was said before."""
    meaning = meaning_of(name, has_prefixed=True)
    return (
        (meaning is not None and meaning.role in (CONTEXT, RETRIEVED, HISTORY))
        or not _SOURCES.keys().isdisjoint(_words_of(name))
        or likely_role(name, (CONTEXT, RETRIEVED)) != ""
    )


def may_be_passages(header: str) -> bool:
    """Whether a name may be that of a context if its cells are texts: its last word is one for sources."""
    words = [word for word in _words_of(header) if not word.isdecimal()]
    return words[-1:] != [] and words[-1] in _TEXTS_OF_SOURCES


def context_with_number(name: str) -> tuple[str, int] | None:
    """The two parts of a name of a context with a number behind it, as `Context 1`; None for any other name.

    A number makes one of many: `Document 1` is one of `Documents`, while `Document` may be a name.
    """
    found = _NUMBERED.fullmatch(name)
    meanings = (meaning_of(each, has_prefixed=True) for each in (found[1], f"{found[1]}s")) if found else ()
    is_context = any(meaning is not None and meaning.role == CONTEXT for meaning in meanings)
    return (folded(found[1]), int(found[2])) if found and is_context else None


def is_passage(header: str) -> bool:
    return squeezed(header.rpartition(".")[2]) in _PASSAGES


def likely_role(header: str, missing: Collection[str]) -> str:
    """The role among `missing` whose names are a part of this name; '' for none."""
    apart = re.sub("(?<=[a-z])(?=[A-Z])|[.]", " ", header)
    words = f" {_unaccented(folded(apart))} "
    for role, parts in _PARTS.items():
        if role in missing and any((word if word[0] > "\u3040" else f" {word}") in words for word in parts):
            return role
    return ""


def _place(name: str) -> int:
    """Among the names of a context, those that say the most about it first."""
    if name in _RETRIEVED_FIRST:
        return 0
    return 1 if name in _FIRST else 3 if name in _PASSAGES else 2


def _squeezed_all(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(squeezed, names))


_ROLES = {squeezed(name): role for names in (FIRST, SECOND) for role, its in names.items() for name in its}
_FIRST = _squeezed_all(name for names in FIRST.values() for name in names)
_ANSWERS, _BOTS = _squeezed_all(ANSWERS), _squeezed_all(BOTS)
_MORE_BOTS = {squeezed(name): place for place, name in enumerate(MORE_BOTS, 1)}
_OF_ROWS = {
    **dict.fromkeys(_squeezed_all(IDS), ID),
    **dict.fromkeys(_squeezed_all(_CONVERSATIONS), CONVERSATION),
    **dict.fromkeys((*_BOTS, *_MORE_BOTS), BOT),
}
_ABROAD = {_unaccented(squeezed(name)): role for role, names in OTHER_LANGUAGES.items() for name in names}
_TRUTHS = frozenset((
    "answer", "modelanswer", "reponse", "antwort", "respuesta", "resposta", "risposta", "antwoord", "回答", "答案",
))  # fmt: skip
"""Names of a response that are those of a ground truth in other files."""
_WORDS_OF_TRUTHS = frozenset((
    "gold", "golden", "expert", "human", "manual", "sme", "official", "approved", "verified", "validated", "annotated",
    "annotator", "curated", "desired", "ideal", "correct", "right", "true", "truth", "expected", "reference",
))  # fmt: skip
_ERRORS = _squeezed_all(
    ("error", "errors", "error_message", "exception", "Fehler", "Fehlermeldung", "erreur")
)
_PARTS_OF_ERRORS = ("message", "type", "name", "code")
_STATES = _squeezed_all(("level", "status", "status_code", "state"))
_PASSAGES = _squeezed_all(PASSAGES)
_OF_CONVERSATIONS = frozenset(
    _unaccented(squeezed(name))
    for name in (
        *_CONVERSATIONS, "session_id", "conversation", "dialogue", "session", "thread", "ticket_id", "Gespräch",
        "Gesprächs-ID", "Konversation", "Konversations-ID", "Dialog-ID", "Sitzung", "id de conversation",
        "id de la conversation", "id conversation", "conversación", "id de la conversación", "id conversación",
        "conversa", "id da conversa", "conversazione", "id conversazione", "gesprek", "gesprek-id", "gespreks-id",
        "会話ID", "対話ID", "会话ID", "對話ID", "对话ID", "會話ID",
    )
)  # fmt: skip
_OF_NUMBERS = ("usage", "used", "tokens", "cost", "stats", "scores")
"""Ends of the names of fields that hold numbers about a call: `tokenUsage.completion` is no response."""
_ABOUT_ANSWERS = ("has", "is", "no")
_PARTS: Mapping[str, tuple[str, ...]] = {
    GOLD: ("gold doc", "relevant doc", "expected doc", "reference doc"),
    RETRIEVED: ("retrieved doc", "retrieved id", "returned doc"),
    QUERY: (
        "query", "question", "prompt", "frage", "requete", "pregunta", "consulta ", "pergunta", "domanda", "vraag",
        "質問", "问题", "問題",
    ),
    REFERENCE: (
        "ground truth", "reference", "expected", "gold", "truth", "target", "erwartet", "muster", "referen", "attendu",
        "esperad", "riferiment", "attesa ", "verwacht", "modelantwoord", "正解", "模範", "标准答案", "參考", "参考",
    ),
    CONTEXT: (
        "context", "passage", "chunk", "retrieved", "kontext", "contesto ", "contexto", "fragment",
        "検索", "检索", "檢索", "上下文",
    ),
}  # fmt: skip


# --- Names of what a bot spends on a response ------------------------------------------------------------------------


class Spending(NamedTuple):
    """One way to read a name."""

    role: str
    owner: str
    """Whose it would be: the rest of the name, folded; '' for none."""
    unit: str
    rank: tuple[int, int]
    """How much the name says (0 for most names, 1 for tokens and _SECOND_LATENCIES, 2 for _DURATIONS), and where in a
    record it is (1 for a plain column): the lower one counts."""


def spendings_of(header: str) -> list[Spending]:
    """How a name such as `Latency_Atlas_ms`, `cost (USD)` or `tokenUsage.total` can be read; [] for other names.

    The longest owner comes first: the bot may be called `Atlas_ms`.
    """
    if len(header) > _LONGEST_NAME:
        return []
    found = _IN_BRACKETS.fullmatch(header)
    name, unit = (found[1], found[2].strip()) if found else (header, "")
    readings = _spendings(folded(name), unit, 1)
    if inside := _BRACKETS_INSIDE.fullmatch(header):  # as in `Latency (s) - Atlas`
        rest = f"{inside[1]} {inside[3]}"
        readings += [
            each for each in _spendings(folded(rest), inside[2], 1) if unit_named(each.role, inside[2])
        ]
    if not _PATH.fullmatch(name):
        return readings
    *parents, leaf = name.split(".")
    if any(word in squeezed(parent) for parent in parents for word in _OF_JUDGES):
        return []
    if squeezed(leaf) == "total" and squeezed(parents[-1]).endswith("usage"):
        leaf = TOKENS[0]
    of_field = [each for each in _spendings(folded(leaf), unit, len(parents) + 1) if not each.owner]
    owners = (folded(parents[-1]), "")
    return [*readings, *(each._replace(owner=owner) for owner in owners for each in of_field)]


_IN_BRACKETS = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]\s*", re.DOTALL)
_BRACKETS_INSIDE = re.compile(r"(.*\S)\s*[(\[]\s*([^()\[\]]{1,20}?)\s*[)\]][\s:]*(\S.*)", re.DOTALL)
_LONGEST_NAME = 1_100
"""Characters: those of the longest bot, of a quantity and of a unit."""
_OF_JUDGES = ("grading", "judge", "eval", "assert", "metric", "score")
"""Parts of the names of records about a judge, whose costs are not those of the bot."""


def _spendings(name: str, unit: str, depth: int) -> list[Spending]:
    """`name` is folded, and is all but the unit in brackets."""
    readings: list[Spending] = []
    for role, own, order in _SPENT:
        if own not in name:
            continue
        named = unit or (TOKENS[0] if role == COST and order else "")
        found = [(rest, named)] if (rest := _rest(name, own)) is not None else []
        if not named:
            found += [(left, word) for left, word in _without_unit(rest or "", role)]
            found += [
                (rest, word)
                for left, word in _without_unit(name, role)
                if (rest := _rest(left, own)) is not None
            ]
            if name.startswith(own) and unit_named(role, name.removeprefix(own)):  # as in latencyMs
                found.append(("", name.removeprefix(own)))
        readings += [
            Spending(role, owner, unit_named(role, word) or word, (order, depth)) for owner, word in found
        ]
    return readings


def _rest(name: str, own: str) -> str | None:
    """What stands before or after the name of a quantity; None where it has no such place."""
    if name == own:
        return ""
    if name.startswith(f"{own} "):
        return name.removeprefix(f"{own} ")
    return name.removesuffix(f" {own}").rstrip(" :") if name.endswith(f" {own}") else None


def _without_unit(rest: str, role: str) -> Iterator[tuple[str, str]]:
    """What is left without the unit of one or two words at the end or the beginning, and the unit."""
    words = rest.split()
    for count in (1, 2) if words else ():
        for unit, left in ((words[-count:], words[:-count]), (words[:count], words[count:])):
            if len(unit) == count and unit_named(role, shown := " ".join(unit)):
                yield " ".join(left), shown


def unit_named(role: str, text: str) -> str:
    """The unit of a latency or a cost that a text is the name of: one of TIMES, a currency, `tokens`, or a part of a
    currency such as `USD cents`; '' for any other text."""
    name = folded(text)
    if role == LATENCY:
        return name if name in TIMES else ""
    if name.upper() in CURRENCIES:
        return name.upper()
    if name in TOKENS or name == "token":
        return TOKENS[0]
    words = name.split()
    for part, whole in permutations(words) if len(words) == 2 else ():
        if part in SMALL_MONEY and (currency := unit_named(role, whole)) in (*CURRENCIES, DOLLAR):
            return f"{currency} {part}"
    compound = re.fullmatch("(micro|nano)(dollars?|euros?)|(euro)(cents?)", name)
    return unit_named(role, " ".join(filter(None, compound.groups()))) if compound else _MONEY.get(name, "")


_SPENT = sorted(
    {
        (role, form, order)
        for role, names, order in (
            *((role, its, 0) for role, its in SPENT.items()),
            (COST, TOKENS, 1),
            (LATENCY, _SECOND_LATENCIES, 1),
            (LATENCY, _DURATIONS, 2),
        )
        for name in names
        for form in (folded(name), squeezed(name), _unaccented(folded(name)))
    },
    key=lambda each: (-len(each[1]), each),
)
"""Role and name, the longest first, and how much the name says; `totalCost` is one word."""


# --- Names that give evidence of a bot, in columns that nothing else says are responses -------------------------------
# Whether the cells could be responses is for the caller to look at: a column `Claude` may hold notes of a person.

NEARLY_PREFIXED, NAMED, HINTED = "nearly prefixed", "named", "hinted at"
"""The prefix without its separator (`BotAtlas`, `Bots_A`, `bot1`); a product or a word for bots that several columns
share (`ChatGPT`, `Model_A` and `Model_B`); such a word among others (`Claude hybrid`, `Model_Atlas` alone)."""


def _with_plurals(words: Iterable[str]) -> dict[str, str]:
    """Each word in both forms, with its singular."""
    return {form: word for word in words for form in (word, f"{word}s")}


_PRODUCTS = frozenset(
    (
        "chatgpt", "gpt", "claude", "copilot", "gemini", "llama", "mistral", "mixtral", "deepseek", "qwen", "grok",
        "perplexity",
    )
)  # fmt: skip
_SYSTEMS = _with_plurals(
    (
        "bot", "chatbot", "model", "system", "assistant", "agent", "llm", "ai", "candidate", "variant", "modèle",
        "modele", "modell", "modelo", "modello", "système", "systeme", "sistema", "systeem", "モデル", "ボット", "模型",
        "机器人", "機器人",
    )
)  # fmt: skip
_RESPONSES = _with_plurals(
    (
        "answer", "response", "output", "reply", "prediction", "generation", "completion", "result", "réponse",
        "reponse", "antwort", "respuesta", "resposta", "risposta", "antwoord", "回答", "答案", "回复",
    )
)  # fmt: skip
"""Said of several bots only if letters, numbers and products are all that is left: `Answer 1`, not `Answer_Origin`."""
_SHARED = _SYSTEMS | _RESPONSES
_VARIANTS = frozenset(
    (
        *_PRODUCTS, *_SYSTEMS, *_RESPONSES, "text", "message", "turbo", "mini", "nano", "pro", "flash", "opus",
        "sonnet", "haiku", "instruct", "chat", "plus", "ultra", "large", "medium", "small", "base", "preview", "latest",
        "beta", "new", "old", "code", "online", "web", "enterprise", "rag", "openai", "azure", "microsoft", "github",
        "google", "anthropic", "meta", "aws", "bedrock", "vertex", "from", "the", "with", "and", "our",
    )
)  # fmt: skip
"""What may stand next to a product without another meaning."""
_ABOUT = _with_plurals(
    (
        "id", "uuid", "key", "index", "number", "name", "label", "title", "url", "link", "path", "file", "source",
        "citation", "date", "time", "timestamp", "created", "updated", "duration", "latency", "second", "token", "cost",
        "price", "usage", "count", "length", "len", "size", "word", "score", "rating", "rank", "grade", "point",
        "verdict", "judgement", "judgment", "judge", "evaluation", "eval", "assessment", "review", "reviewer",
        "feedback", "comment", "note", "remark", "reason", "reasoning", "rationale", "explanation", "justification",
        "critique", "thought", "thinking", "analysis", "trace", "log", "status", "state", "error", "warning", "type",
        "kind", "category", "categories", "class", "classes", "group", "tag", "topic", "intent", "domain", "language",
        "lang", "locale", "country", "region", "channel", "persona", "tone", "sentiment", "style", "confidence",
        "probability", "similarity", "precision", "recall", "accuracy", "faithfulness", "relevancy", "relevance",
        "correctness", "toxicity", "hallucination", "metric", "preference", "preferred", "winner", "correct",
        "incorrect", "wrong", "passed", "failed", "flag", "valid", "version", "release", "family", "provider", "vendor",
        "owner", "author", "user", "session", "conversation", "thread", "turn", "step", "plan", "action", "call",
        "function", "arg", "param", "parameter", "config", "setting", "temperature", "seed", "prompt", "instruction",
        "question", "query", "queries", "input", "reference", "truth", "gold", "golden", "expected", "target", "ideal",
        "context", "passage", "chunk", "document", "doc", "retrieved", "retrieval", "evidence", "snippet",
        "description", "metadata", "info", "data", "hash", "distractor", "negative", "hint", "paraphrase", "keyword",
        "embedding", "difficulty", "level", "split", "comparison", "compared", "difference", "diff", "mood", "emotion",
        "quelle", "quellen", "fundstelle", "fundstellen", "beleg", "belege", "thumb", "vote", "quality", "helpfulness",
        "groundedness", "pass", "fail", "ok", "hallucinated", "kommentar", "kommentare", "bemerkung", "bemerkungen",
        "anmerkung", "anmerkungen", "bewertung", "bewertungen", "begründung", "commentaire", "remarque", "évaluation",
        "comentario", "comentário", "commento", "opmerking", "beoordeling",
    )
)  # fmt: skip
"""Words for what is known about a bot, a response or a query: `Model_Version`, `gpt4_score`, `Llama_prompt`."""


_TEXTS_OF_SOURCES = _with_plurals(
    (
        "source", "document", "doc", "evidence", "snippet", "excerpt", "article", "quelle", "quellen", "fundstelle",
        "fundstellen", "beleg", "belege",
    )
)  # fmt: skip
"""Words for what was retrieved, or for its name."""
_SOURCES = _TEXTS_OF_SOURCES | _with_plurals(
    ("citation", "reference", "page", "history", "turn", "message", "verlauf")
)
"""Words for what was retrieved or said before, in the name of a column that somebody says to have that."""


_NO_NAME = _with_plurals(
    (
        "id", "uuid", "url", "link", "source", "citation", "date", "time", "timestamp", "duration", "latency", "token",
        "cost", "price", "usage", "count", "length", "score", "rating", "rank", "grade", "verdict", "feedback",
        "comment", "note", "remark", "rationale", "explanation", "justification", "confidence", "status", "error",
        "context", "passage", "chunk", "document",
    )
)  # fmt: skip
"""Those that no bot is called after the prefix, nor a variant of a bot: `Bot_Context`, `Bot_A_Rating`."""


def is_no_bot(name: str) -> bool:
    """Whether a name of a bot has nothing but words for what is known about one."""
    words = _words_of(name)
    return bool(words) and _NO_NAME.keys() >= {*words}


def is_label(name: str) -> bool:
    """Whether what follows the name of a bot speaks of something that is known about its responses."""
    return is_about(name) or not _SYSTEMS.keys().isdisjoint(_words_of(name))


def is_variant(name: str) -> bool:
    """Whether what follows the name of a bot has nothing but numbers, letters and usual names of variants."""
    return _are_variants(_words_of(name))


def likely_bots(headers: Mapping[int, str], prefix: str) -> dict[int, str]:
    """The columns whose names give evidence of a bot, and which of the three kinds, the strongest."""
    found: dict[int, str] = {}
    groups: dict[tuple[str, bool], dict[int, bool]] = defaultdict(dict)
    for index, header in headers.items():
        *parents, leaf = _parts(header)
        words = _words_of(leaf)
        if is_about(header) or not words:
            continue
        if kind := _evidence(words, _words_of(prefix)):
            found[index] = kind
        for word, others, is_first in (
            (words[0], words[1:], True),
            (words[-1], words[:-1], False),
            *((parent, words, True) for parent in _words_of(".".join(parents))[-1:]),
        ):
            if others and word in _SHARED:
                groups[_SHARED[word], is_first][index] = word in _SYSTEMS or _are_variants(others)
    for (word, _), columns in groups.items():
        for index, is_name in columns.items():
            if is_name and sum(columns.values()) > 1 and found.get(index) != NEARLY_PREFIXED:
                found[index] = NAMED
            elif word in _SYSTEMS or len(columns) > 1:
                found.setdefault(index, HINTED)
    return found


def _evidence(words: list[str], prefix: list[str]) -> str:
    """What the words of one name say by themselves; '' for nothing."""
    if _nearly_begins(words, prefix):
        return NEARLY_PREFIXED
    if words[0] in ("bot", "bots") and len(words) > 1:
        return NAMED
    rest = [word for word in words if word not in _PRODUCTS]
    if len(rest) < len(words):
        return NAMED if _are_variants(rest) else HINTED
    is_misspelt = len(words) > 1 and bool(get_close_matches(words[0], prefix[:1], cutoff=0.8))
    return HINTED if is_misspelt else ""


def is_about(header: str) -> bool:
    """Whether the name speaks of something that is known about a bot, a response or a query."""
    return not _ABOUT.keys().isdisjoint(_words_of(_parts(header)[-1]))


def _parts(header: str) -> list[str]:
    """Those of the path of a field; a name such as GPT-3.5 is one."""
    parts = header.split(".")
    return parts if parts[-1][:1].isalpha() and " " not in header else [header]


def _words_of(name: str) -> list[str]:
    """The words of a name in lower case, also of one such as BotGPT4."""
    words: list[str] = []
    for letters in _PIECE.findall(compatible("NFKC", name)):
        whole = letters.casefold()
        words += [whole] if whole in _VARIANTS else _HUMP.sub(" ", letters).casefold().split()
    return words


_PIECE = re.compile(r"[\u3040-\u9fff]+|[^\W\d_\u3040-\u9fff]+|\d+")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _nearly_begins(words: list[str], prefix: list[str]) -> bool:
    """Whether the words begin with those of the prefix, the last one in the plural too, and go on."""
    if not prefix:
        return False
    *first, last = prefix
    place = len(first)
    if words[:place] != first or len(words) <= place:
        return False
    if words[place] in (last, f"{last}s"):
        return len(words) > len(prefix)
    return words[place].removeprefix(last) in _PRODUCTS and words[place].startswith(last)


def _are_variants(words: Iterable[str]) -> bool:
    return all(len(word) <= 2 or word.isdigit() or word in _VARIANTS for word in words)

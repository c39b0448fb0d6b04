"""Names that give evidence of a bot, in columns that nothing else says are responses. Pure, and names alone.

Whether the cells could be responses is for the caller to look at: a column `Claude` may hold notes of a person.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from rag_eval.texts.words import compatible

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
    ("bot", "chatbot", "model", "system", "assistant", "agent", "llm", "ai", "candidate", "variant")
)
_RESPONSES = _with_plurals(
    ("answer", "response", "output", "reply", "prediction", "generation", "completion", "result")
)
"""Said of several bots only if letters, numbers and products are all that is left: `Answer 1`, not `Answer_Origin`."""
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
    )
)  # fmt: skip
"""Words for what is known about a bot, a response or a query: `Model_Version`, `gpt4_score`, `Llama_prompt`."""


def likely_bots(headers: Mapping[int, str], prefix: str) -> dict[int, str]:
    """The columns whose names give evidence of a bot, and which of the three kinds, the strongest."""
    found: dict[int, str] = {}
    groups: dict[tuple[str, bool], dict[int, bool]] = defaultdict(dict)
    for index, header in headers.items():
        *parents, leaf = _parts(header)
        words = words_of(leaf)
        if is_about(header) or not words:
            continue
        rest = [word for word in words if word not in _PRODUCTS]
        if _nearly_begins(words, words_of(prefix)):
            found[index] = NEARLY_PREFIXED
        elif words[0] in ("bot", "bots") and len(words) > 1:
            found[index] = NAMED
        elif len(rest) < len(words):
            found[index] = NAMED if _are_variants(rest) else HINTED
        for word, others, is_first in (
            (words[0], words[1:], True),
            (words[-1], words[:-1], False),
            *((parent, words, True) for parent in words_of(".".join(parents))[-1:]),
        ):
            if others and (word in _SYSTEMS or word in _RESPONSES):
                key = (_SYSTEMS | _RESPONSES)[word], is_first
                groups[key][index] = word in _SYSTEMS or _are_variants(others)
    for (word, _), columns in groups.items():
        for index, is_name in columns.items():
            if is_name and sum(columns.values()) > 1:
                if found.get(index) != NEARLY_PREFIXED:
                    found[index] = NAMED
            elif word in _SYSTEMS or len(columns) > 1:
                found.setdefault(index, HINTED)
    return found


def is_about(header: str) -> bool:
    """Whether the name speaks of something that is known about a bot, a response or a query."""
    return not _ABOUT.keys().isdisjoint(words_of(_parts(header)[-1]))


def _parts(header: str) -> list[str]:
    """Those of the path of a field; a name such as GPT-3.5 is one."""
    parts = header.split(".")
    return parts if parts[-1][:1].isalpha() and " " not in header else [header]


def words_of(name: str) -> list[str]:
    """The words of a name in lower case, also of one such as BotGPT4."""
    words: list[str] = []
    for letters in _PIECE.findall(compatible("NFKC", name)):
        whole = letters.casefold()
        words += [whole] if whole in _VARIANTS else _HUMP.sub(" ", letters).casefold().split()
    return words


_PIECE = re.compile(r"[^\W\d_]+|\d+")
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

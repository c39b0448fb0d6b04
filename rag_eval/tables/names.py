"""Names of columns, by role. The only module that knows them; docs/input.md shows them as a table.

Names are matched as a whole, whatever their case, width and separators (spaces, those without width too, line ends,
`_`, `-`), never by a part of them. Of a dotted path, as fields of records have, the last part counts.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rag_eval.tables.cells import UNSEEN_SPACES
from rag_eval.texts.words import compatible

QUERY, REFERENCE, RESPONSE, CONTEXT = "query", "reference", "response", "context"
BOT, ID = "name of the bot", "id of the query"
GOLD, RETRIEVED, HUMAN = "gold documents", "retrieved documents", "human label"
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
            "message", "messages", "conversation", "inputs", "questions", "queries", "prompts",
        ),
        REFERENCE: (
            "ground_truths", "ground_truth_answer", "reference_answer", "reference_answers", "reference_response",
            "reference_output", "reference_outputs", "expected_output", "expected_outputs", "expected_answer",
            "expected_answers", "expected_response", "gold_answer", "gold_answers", "gold_response",
            "golden_answer", "golden_answers", "golden_response", "truth", "true_answer", "gt_answer", "gt_answers",
            "correct_answer", "correct_answers", "correct_response", "target_answer", "targets", "ideal",
            "ideal_answer", "ideal_response", "standard_answer", "best_answer", "well_formed_answers", "answers",
        ),
        CONTEXT: (
            "retrieved_contexts", "retrieved_context", "retrieval_context", "retrieval_contexts", "contexts",
            "retrieved_passages", "retrieved_chunks", "retrieved_texts", "retrieved_text", "context_passages",
            "context_text", "context_texts", "context_chunks", "source_documents", "source_nodes", "passages", "chunks",
            "documents", "snippets", "search_results", "passage_text",
            "passage", "chunk", "chunk_text", "retrieved_passage", "retrieved_chunk", "document_text", "snippet",
        ),
        GOLD: ("reference_context_ids", "relevant_doc_ids", "relevant_docs"),
        RETRIEVED: ("retrieved_context_ids",),
    }
)  # fmt: skip
"""Names that other tools use. They count only where no name of the first rank has their role."""
ANSWERS = (
    "answer", "response", "output", "outputs", "actual_output", "actual_response", "prediction", "predicted_answer",
    "predicted_response", "generated_answer", "generated_response", "generated_text", "generated_output", "generation",
    "model_answer", "model_response", "model_output", "llm_answer", "llm_response", "llm_output", "system_answer",
    "system_response", "system_output", "rag_answer", "rag_response", "ai_response", "ai_answer", "assistant_response",
    "chatbot_response", "final_answer", "completion", "hypothesis", "candidate_answer", "reply", "predictions",
    "predicted_answers", "generated_answers", "model_answers", "responses", "completions",
)  # fmt: skip
"""Names of a response where no column names a bot by its prefix."""
ANSWER_ENDS = ("answer", "response", "output", "prediction")
"""What further names of responses end with."""
BOTS = ("bot", "model", "system", "provider", "bot_name", "model_name", "system_name")
"""Names of a column that names the bot of each row."""
IDS = (
    "query_id", "question_id", "qid", "query_run", "id", "conversation_id", "task_id", "test_idx", "example_id",
    "sample_id",
)  # fmt: skip
"""Names of a column that tells queries apart."""
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
RETRIEVED_FIRST = ("retrieval_context", "retrieved_contexts", "retrieved_context")
"""Next to a column of one response these come before `context`, which tools that have both use for the ideal one."""

_GAPS = rf"\s{UNSEEN_SPACES}"
SEPARATORS = rf"[{_GAPS}_\-\u2010-\u2015\uff0d\uff3f]"
_PATH = re.compile(r"[^\W.][^.\s]*(?:\.[^.\s]+)+")
_WRAPPINGS = frozenset(("content", "text", "value", "pagecontent"))
"""Last parts of a path that say only that it is a text."""
_LABELS = ("id", "name", "label")
"""Last parts of a path that say only what something is called; the first is always there."""


def folded(name: str) -> str:
    """The name for comparing: width, case and separators levelled."""
    return re.sub(rf"{SEPARATORS}+", " ", compatible("NFKC", name).casefold()).strip()


def squeezed(name: str) -> str:
    return folded(name).replace(" ", "")


def after_prefix(header: str, prefix: str) -> str:
    """The rest of the header, as it is written; '' when it has another beginning.

    A prefix that ends in a separator needs one in the header too: Bottom_Line is no bot.
    """
    words = [re.escape(word) for word in re.split(SEPARATORS, prefix) if word]
    end = "++" if re.search(rf"{SEPARATORS}\Z", prefix) else "*+"
    pattern = rf"[{_GAPS}]*{f'{SEPARATORS}*'.join(words)}{SEPARATORS}{end}(.*[^{_GAPS}])"
    found = re.match(pattern, header, re.IGNORECASE | re.DOTALL)
    return found[1] if found else ""


class Meaning(NamedTuple):
    """What a name says. Of two with one role the lower `rank` wins."""

    role: str
    rank: tuple[int, int, int]
    """Whose name it is (0 for ours, 1 for other tools'), where in a record it is (1 for a plain column), and a place
    among names that other tools use together."""


def meanings(header: str, *, has_prefixed: bool) -> tuple[Meaning, ...]:
    """What the name of a column may mean; () for nothing known.

    `has_prefixed` says that other columns name bots by their prefix; then a name says nothing about responses.
    """
    parts = [squeezed(part) for part in (header.split(".") if _PATH.fullmatch(header) else [header])]
    depth = len(parts)
    name = parts.pop()
    if any(part.endswith(_OF_NUMBERS) for part in parts):
        return ()
    if name in _WRAPPINGS and parts:
        name = parts.pop()
    elif name in _LABELS and parts and parts[-1] in _BOTS and not has_prefixed:
        return (Meaning(BOT, (1, depth, _LABELS.index(name))),)
    role = _ROLES.get(name, "")
    if role and not (parts and _is_expected(parts)):
        aside = role == CONTEXT and not has_prefixed
        rank = int(depth > 1 or name not in _FIRST or aside)
        return (Meaning(role, (rank, depth, _place(name) if role == CONTEXT and rank else 0)),)
    if name in _ANSWERS or (name.endswith(ANSWER_ENDS) and not name.startswith(_ABOUT_ANSWERS)):
        if parts and _is_expected(parts):
            return (Meaning(REFERENCE, (1, depth, 0)),)
        return () if has_prefixed else (Meaning(RESPONSE, (0, depth, 0)),)
    if has_prefixed:
        return ()
    if name in _BOTS:
        return (Meaning(BOT, (0, depth, 0)),)
    return (Meaning(ID, (0, depth, 0)),) if name in _IDS else ()


def is_answer(header: str) -> bool:
    """Whether the whole name is one of a response."""
    return squeezed(header) in _ANSWERS


def names_bots(header: str) -> bool:
    """Whether the whole name says that the column has the name of each row's bot."""
    return squeezed(header) in _BOTS


def holds_several(header: str) -> bool:
    """Whether the name is the plural of one for a ground truth, so that its cells are lists."""
    name = squeezed(header.rpartition(".")[2])
    return name.endswith("s") and name not in _FIRST and _ROLES.get(name) == REFERENCE


def joins_by_bar(headers: Iterable[str]) -> bool:
    """Whether the columns are those of deepeval's .csv and .jsonl, whose contexts are joined with a single `|`."""
    return {"actualoutput", "retrievalcontext", "additionalmetadata"} <= set(map(squeezed, headers))


def is_passage(header: str) -> bool:
    return squeezed(header.rpartition(".")[2]) in _PASSAGES


def likely_role(header: str, missing: Iterable[str]) -> str:
    """The role among `missing` whose names are a part of this name; '' for none."""
    apart = re.sub("(?<=[a-z])(?=[A-Z])|[.]", " ", header)
    words = f" {folded(apart)} "
    for role in missing:
        if any(f" {word}" in words for word in _PARTS.get(role, ())):
            return role
    return ""


def _is_expected(parts: list[str]) -> bool:
    """Whether a field lies inside one that holds what was expected: `reference_outputs.answer`."""
    return any(_ROLES.get(part) == REFERENCE for part in parts)


def _place(name: str) -> int:
    """Among the names of a context, those that say the most about it first."""
    if name in _RETRIEVED_FIRST:
        return 0
    return 1 if name in _FIRST else 3 if name in _PASSAGES else 2


def _squeezed_all(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(squeezed, names))


_ROLES = {squeezed(name): role for names in (FIRST, SECOND) for role, its in names.items() for name in its}
_FIRST = _squeezed_all(name for names in FIRST.values() for name in names)
_ANSWERS, _BOTS, _IDS = _squeezed_all(ANSWERS), _squeezed_all(BOTS), _squeezed_all(IDS)
_RETRIEVED_FIRST, _PASSAGES = _squeezed_all(RETRIEVED_FIRST), _squeezed_all(PASSAGES)
_OF_NUMBERS = ("usage", "used", "tokens", "cost", "stats", "scores")
"""Ends of the names of fields that hold numbers about a call: `tokenUsage.completion` is no response."""
_ABOUT_ANSWERS = ("has", "is", "no")
_PARTS: Mapping[str, tuple[str, ...]] = {
    QUERY: ("query", "question", "prompt"),
    REFERENCE: ("ground truth", "reference", "expected", "gold", "truth", "target"),
    CONTEXT: ("context", "passage", "chunk", "retrieved"),
}

"""Files of many shapes: equal data gives equal figures, and ambiguous files are refused with the remedy."""

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from conftest import Run, azure, read_boxes
from fake_judge import FakeJudge
from files import write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from rag_eval.configuration.settings import ColumnNames, Settings
from rag_eval.errors import InputError, TableError
from rag_eval.frames import evaluate
from rag_eval.retrieval import GOLD_NAMES
from rag_eval.retrieval.from_files import read_documents
from rag_eval.store.codec import encode, record_of
from rag_eval.tables.cells import BadCell, Cell, JsonText
from rag_eval.tables.columns import Named, named_columns, parse_map, roles_of
from rag_eval.tables.delimited import TextForm
from rag_eval.tables.input_files import SUFFIXES
from rag_eval.tables.names import likely_bots, nearest
from rag_eval.tables.nested import flattened, is_list_of_texts, role_text
from rag_eval.tables.record_files import ReadOptions, check_named, open_records
from rag_eval.tables.rows import Lines
from rag_eval.tables.selection import Selection, sampled
from rag_eval.tables.table import Table, describe, read_table


class Item(NamedTuple):
    """A query with the responses of two bots."""

    query: str
    reference: str
    responses: tuple[str, str]
    chunks: tuple[str, ...]


BOTS = ("Atlas", "Birch")
ITEMS = (
    Item(
        "How long is the kettle under warranty?",
        "For two years from the day of purchase.",
        ("It is under warranty for two years from the day of purchase.", "For five years, of course."),
        ("The warranty of the kettle ends two years from the day of purchase.", "The jug holds one litre."),
    ),
    Item(
        "Can I put the lid into the dishwasher?",
        "No, the lid must be washed by hand.",
        ("No. Please wash the lid by hand.", "I don't know."),
        ("The lid must be washed by hand.",),
    ),
    Item(
        "How heavy is it?",
        "It weighs 900 grams.",
        ("It weighs 900 grams.", "It weighs two kilograms."),
        ("Colours: red, blue.", "The kettle weighs 900 grams.", "It is sold in boxes of four."),
    ),
)
Rows = Sequence[Sequence[object]]


def wide(items: Sequence[Item], cell: Callable[[tuple[str, ...]], object]) -> Rows:
    return [
        ["Query", "Ground_Truth", "Bot_Atlas", "Bot_Birch", "Context"],
        *([item.query, item.reference, *item.responses, cell(item.chunks)] for item in items),
    ]


def long(items: Sequence[Item], names: Sequence[str], cell: Callable[[tuple[str, ...]], object]) -> Rows:
    """A row per bot, all rows of the first bot before those of the second."""
    return [
        names,
        *(
            [item.query, bot, item.responses[number], item.reference, cell(item.chunks)]
            for number, bot in enumerate(BOTS)
            for item in items
        ),
    ]


def passages(items: Sequence[Item]) -> Rows:
    return [
        ["query_id", "query", "model", "passage", "generated_answer", "reference_answer"],
        *(
            [f"q{place}", item.query, bot, chunk, item.responses[number], item.reference]
            for place, item in enumerate(items)
            for number, bot in enumerate(BOTS)
            for chunk in item.chunks
        ),
    ]


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(list(rows[1:]), columns=list(map(str, rows[0])))


def as_nested(path: Path, items: Sequence[Item]) -> Path:
    """An object with one list of records, contexts as objects, the query as the last message of a chat."""
    records = [
        {
            "inputs": {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": item.query},
                ]
            },
            "provider": {"id": bot},
            "outputs": {"answer": item.responses[number]},
            "reference_outputs": {"answer": item.reference},
            "retrieval": {
                "documents": [{"page_content": chunk, "metadata": {"n": 1}} for chunk in item.chunks]
            },
        }
        for item in items
        for number, bot in enumerate(BOTS)
    ]
    path.write_text(json.dumps({"version": 1, "results": records}), encoding="utf-8")
    return path


def chats(items: Sequence[Item]) -> Rows:
    """Query and response in one column, after an older turn."""
    return [
        ("model", "messages", "ground_truth", "contexts"),
        *(
            (
                bot,
                [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": "Good morning."},
                    {"role": "user", "content": item.query},
                    {"role": "assistant", "content": item.responses[number]},
                ],
                item.reference,
                list(item.chunks),
            )
            for item in items
            for number, bot in enumerate(BOTS)
        ),
    ]


def numpy_cell(chunks: tuple[str, ...]) -> str:
    return "[" + "\n ".join(map(repr, chunks)) + "]"


LONG_OLD = ("question", "model", "answer", "ground_truth", "contexts")
LONG_NEW = ("user_input", "system", "response", "reference", "retrieved_contexts")
WRITERS: Mapping[str, Callable[[Path, Sequence[Item]], Path]] = {
    "wide csv": lambda folder, items: write_table(folder / "a.csv", *wide(items, json.dumps)),
    "wide xlsx": lambda folder, items: write_table(folder / "a.xlsx", *wide(items, json.dumps)),
    "wide ods": lambda folder, items: write_table(folder / "a.ods", *wide(items, json.dumps)),
    "wide parquet": lambda folder, items: write_table(folder / "a.parquet", *wide(items, list)),
    "wide jsonl": lambda folder, items: write_table(folder / "a.jsonl", *wide(items, list)),
    "Python lists": lambda folder, items: write_table(
        folder / "a.csv", *wide(items, lambda its: str(list(its)))
    ),
    "NumPy arrays": lambda folder, items: write_table(folder / "a.csv", *wide(items, numpy_cell)),
    "pipes": lambda folder, items: write_table(folder / "a.csv", *wide(items, " || ".join)),
    "pipes without blanks": lambda folder, items: write_table(folder / "a.csv", *wide(items, "||".join)),
    "paragraphs": lambda folder, items: write_table(folder / "a.xlsx", *wide(items, "\n\n".join)),
    "long csv": lambda folder, items: write_table(
        folder / "a.csv", *long(items, ("Query", "Bot", "Response", "Ground_Truth", "Context"), json.dumps)
    ),
    "ragas' old names": lambda folder, items: write_table(folder / "a.jsonl", *long(items, LONG_OLD, list)),
    "ragas' new names": lambda folder, items: write_table(folder / "a.parquet", *long(items, LONG_NEW, list)),
    "passages": lambda folder, items: write_table(folder / "a.csv", *passages(items)),
    "what NumPy prints": lambda folder, items: write_table(
        folder / "a.csv", *wide(items, lambda its: str(np.array(its, dtype=object)))
    ),
    "NumPy's repr": lambda folder, items: write_table(
        folder / "a.csv", *wide(items, lambda its: repr(np.array(its, dtype=object)))
    ),
    "pandas csv of arrays": lambda folder, items: (
        frame(wide(items, np.array)).to_csv(folder / "a.csv", index=False) or folder / "a.csv"
    ),
    "pandas json": lambda folder, items: (
        frame(wide(items, list)).to_json(folder / "a.json") or folder / "a.json"
    ),
    "long xlsx": lambda folder, items: write_table(
        folder / "a.xlsx", *long(items, LONG_NEW, lambda its: str(list(its)))
    ),
    "long jsonl": lambda folder, items: write_table(folder / "a.jsonl", *long(items, LONG_NEW, " || ".join)),
    "ragas' old names, Python lists": lambda folder, items: write_table(
        folder / "a.csv", *long(items, LONG_OLD, lambda its: str(list(its)))
    ),
    "passages jsonl": lambda folder, items: write_table(folder / "a.jsonl", *passages(items)),
    "nested json": lambda folder, items: as_nested(folder / "a.json", items),
    "chats": lambda folder, items: write_table(folder / "a.jsonl", *chats(items)),
    "chats as text": lambda folder, items: write_table(
        folder / "a.csv",
        *[[cell if isinstance(cell, str) else json.dumps(cell) for cell in row] for row in chats(items)],
    ),
}


SLOW = ("wide ods", "wide xlsx", "long xlsx", "paragraphs")
"""To write."""


def content(table: Table) -> list[tuple[Any, ...]]:
    return [
        (case.bot, case.query, case.response, case.reference, case.chunks)
        for row in table.rows
        for case in row.cases
    ]


def expected(items: Sequence[Item]) -> list[tuple[Any, ...]]:
    return [
        (bot, item.query, item.responses[number], item.reference, item.chunks)
        for item in items
        for number, bot in enumerate(BOTS)
    ]


OFFLINE = Settings(judge={"provider": "offline"})


@pytest.mark.parametrize("writer", WRITERS)
def test_equal_data_gives_equal_figures(writer: str, tmp_path: Path) -> None:
    """Scores, failure modes and means, to the last digit; only the numbers of rows differ."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one = evaluate(WRITERS["wide csv"](tmp_path / "one", ITEMS), OFFLINE).drop(columns="row")
    other = evaluate(WRITERS[writer](tmp_path / "other", ITEMS), OFFLINE).drop(columns="row")
    other = other.drop(columns="history", errors="ignore")  # of chats, which alone have earlier turns
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert one.groupby("bot")["rqs"].mean().nunique() == 2


_WORD = st.text(st.sampled_from("abcdefghij ÄßéЖ日"), min_size=1, max_size=20).map(str.strip).filter(bool)
_SENTENCE = _WORD.map(lambda text: f"{text}, and so on.")
_ITEMS = st.lists(
    st.builds(
        Item,
        _SENTENCE,
        _SENTENCE,
        st.tuples(_SENTENCE, _SENTENCE),
        st.lists(_SENTENCE, min_size=1, max_size=4, unique=True).map(tuple),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda item: " ".join(item.query.split()),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_ITEMS)
def test_any_data_is_read_alike_from_every_shape(items: list[Item]) -> None:
    for name, write in WRITERS.items():
        if name not in SLOW:
            with TemporaryDirectory() as folder:
                assert content(read_table(write(Path(folder), items))) == expected(items), name


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_ITEMS)
def test_any_data_is_read_alike_from_workbooks(items: list[Item]) -> None:
    for name in SLOW:
        with TemporaryDirectory() as folder:
            assert content(read_table(WRITERS[name](Path(folder), items))) == expected(items), name


def problems(path: Path, **options: Any) -> list[str]:
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    return list(caught.value.problems)


def test_rows_of_bots_below_a_merged_query_are_only_said_to_lack_it(tmp_path: Path) -> None:
    """As pandas writes an index of query and bot."""
    rows = [["q", "A", "a"], [None, "B", "b"], ["r", "A", "a"], [None, "B", "b"]]
    assert problems(write_table(tmp_path / "a.xlsx", ["question", "model", "answer"], *rows)) == [
        f"a.xlsx, sheet 'Sheet', row {number}, column 'question' (A): is blank, but the row is not; add the query or "
        "clear the row"
        for number in (3, 5)
    ]
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    book.active["D1"] = "context"
    for cells in ("D4:D5", "A4:A5", "D2:D3", "A2:A3"):
        book.active.merge_cells(cells)
    book.save(tmp_path / "b.xlsx")
    assert "as blank (at A2, D2, A4, D4); unmerge them" in problems(tmp_path / "b.xlsx")[-1]


@pytest.mark.parametrize("suffix", [".xlsx", ".csv"])
@pytest.mark.parametrize(("row", "is_found"), [(2, True), (20, True), (21, True), (22, False)])
def test_a_header_is_looked_for_in_twenty_rows_below_the_first(
    tmp_path: Path, suffix: str, row: int, is_found: bool
) -> None:
    """All of their cells are there, although what was taken for the header has only one."""
    notes = [[f"note {number}"] for number in range(2, row)]
    path = write_table(
        tmp_path / f"a{suffix}", ["Notes of the trial"], *notes, ["Query", "Bot_A"], ["q", "a"]
    )
    problem, *_ = problems(path)
    assert (f"but row {row} looks like it" in problem) is is_found
    assert ("No Query column found" in problem) is not is_found


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["question", "model", "answer"], ["q", "A", "a"], ["q", "A", "b"]],
            "a.csv, row 3, column 'answer' (C): is a second response of bot 'A' to the query of row 2; keep one, "
            "or tell the queries apart with a column query_id",
        ),
        (
            [["question", "model", "answer"], ["q", "A", "a"], ["q", "B", "b"], ["r", "A", "a"]],
            "a.csv, row 4, column 'model' (B): bot 'B' has no response to this query; add a row for it, with an empty "
            "response if the bot gave none, or leave the query out with --where",
        ),
        (
            [["question", "model", "answer"], ["q", "A", "a"], ["r", "", "b"]],
            "a.csv, row 3, column 'model' (B): is blank; name the bot of this response",
        ),
        (
            [["question", "model", "answer", "gt"], ["q", "A", "a", "x"], ["q", "B", "b", "y"]],
            "a.csv, row 3, column 'gt' (D): differs from row 2, which has the same query; make them equal, or tell the "
            "queries apart with a column query_id",
        ),
        (
            [["query", "passage", "answer"], ["q", "p", "a"], ["q", "r", "b"]],
            "a.csv, row 3, column 'answer' (C): is a second response of bot 'answer' to the query of row 2; keep "
            "one, or tell the queries apart with a column query_id",
        ),
        (
            [["question", "answer", "poor_answer"], ["q", "a", "b"]],
            "a.csv: columns 'answer' (B) and 'poor_answer' (C) could each be the response of a bot; name those "
            "that are with --map answer=bot --map poor_answer=bot, or with bots = answer, poor_answer in [columns]",
        ),
        (
            [["question", "response", "poor_response", "best_response"], ["q", "a", "b", "c"]],
            "a.csv: columns 'response' (B) and 'poor_response' (C) and 'best_response' (D) could each be the response "
            "of a bot; name those that are with --map response=bot --map poor_response=bot --map best_response=bot, or "
            "with bots = response, poor_response, best_response in [columns]",
        ),
        (
            [["Customer question", "Bot_A"], ["How is it?", "a"]],
            "a.csv: No Query column found; if it is 'Customer question' (A), add --map 'Customer question=query' "
            "(found: 'Customer question' (A), 'Bot_A' (B))",
        ),
        (
            [["question", "Bot_A", "contexts", "passages"], ["q", "a", "b", "c"]],
            "a.csv: columns 'contexts' (C) and 'passages' (D) could each be the context; rename or remove all but "
            "one, or choose one with --map contexts=context (context = contexts in [columns])",
        ),
        (
            [["question", "ground_truth"], ["q", "a"]],
            "a.csv: No column with responses: this looks like a test set; run the bots on it and add a column "
            "Bot_<name> per bot, or add --map COLUMN=bot if a column contains responses (found: "
            "'question' (A), 'ground_truth' (B))",
        ),
        (  # a column without a single text is none of responses, whatever it is called
            [["question", "ground_truth", "BotGPT4"], ["q", "a", ""]],
            "a.csv: No column with responses: this looks like a test set; run the bots on it and add a column "
            "Bot_<name> per bot, or add --map COLUMN=bot if a column contains responses (found: "
            "'question' (A), 'ground_truth' (B), 'BotGPT4' (C))",
        ),
    ],
)
def test_what_is_ambiguous_or_missing_is_refused_with_the_remedy(
    rows: Rows, message: str, tmp_path: Path
) -> None:
    assert problems(write_table(tmp_path / "a.csv", *rows)) == [message]


@pytest.mark.parametrize(
    "names",
    ["response, answer2response, query", "query, poor_output, output", "question, gt, poor_answer, answer"],
)
def test_the_exact_name_of_a_response_wins_over_one_that_contains_it(names: str, tmp_path: Path) -> None:
    """The other one is pointed out."""
    header = names.split(", ")
    table = read_table(write_table(tmp_path / "a.csv", header, [f"text {name}" for name in header]))
    (bot,) = table.bots
    (warning,) = table.warnings
    assert warning.split(". To use it")[0].endswith(
        f" looks like the response and was not used, because '{bot}' is the response"
    )
    assert bot in ("response", "output", "answer")


_ABROAD = {
    "fr": "Requête, Réponse attendue, Contexte, Réponse, Modèle",
    "de": "Frage, Erwartete Antwort, Kontext, Antwort, Modell",
    "es": "Pregunta, Respuesta esperada, Contexto, Respuesta, Modelo",
    "pt": "Pergunta, Resposta esperada, Contexto, Resposta, Modelo",
    "it": "Domanda, Risposta attesa, Contesto, Risposta, Modello",
    "nl": "Vraag, Verwacht antwoord, Context, Antwoord, Modelnaam",
    "ja": "質問, 期待される回答, コンテキスト, 回答, モデル",
    "zh": "问题, 标准答案, 上下文, 回答, 模型",
    "zh-TW": "問題, 標準答案, 檢索結果, 答覆, 機器人",
    "without accents": "requete, reponse_attendue, contexte, reponse, modele",
}


@pytest.mark.parametrize("names", _ABROAD.values(), ids=_ABROAD)
def test_usual_names_in_other_languages_are_known(names: str, tmp_path: Path) -> None:
    """They give way to English ones, with a warning; next to Bot_* columns a response means nothing."""
    query, reference, _, response, _ = header = names.split(", ")
    case = (
        read_table(write_table(tmp_path / "a.csv", header, [f"{name} 0" for name in header])).rows[0].cases[0]
    )
    found = (case.query, case.reference, *case.chunks, case.response, case.bot)
    assert found == tuple(f"{name} 0" for name in header)
    english = [query, "Question", reference, response, "Bot_A"]
    table = read_table(write_table(tmp_path / "b.csv", english, [f"text {name}" for name in english]))
    assert [use.role for use in table.columns] == ["not used", "query", "reference", "not used", "response"]
    assert [warning.partition(" (")[0] for warning in table.warnings] == [
        f"Column '{query}'",
        f"Column '{response}'",
    ]


def test_of_two_names_of_a_context_the_one_that_says_more_is_used(tmp_path: Path) -> None:
    names = [("retrieved_contexts", "documents"), ("documents", "chunk"), ("context", "documents")]
    for used, other in names:
        for header in ((used, other), (other, used)):
            rows = [["question", "answer", *header], ["q", "a", *(f"text of {name}" for name in header)]]
            (row,) = read_table(write_table(tmp_path / "a.csv", *rows)).rows
            assert row.cases[0].chunks == (f"text of {used}",)


def test_rows_of_one_query_are_told_apart_by_its_id(tmp_path: Path) -> None:
    """An id that is another in every row names rows, not queries, and does not part the bots."""
    rows = [["query_id", "question", "model", "answer"], ["1", "q", "A", "a"], ["2", "q", "A", "b"]]
    rows += [["1", "q", "B", "c"], ["2", "q", "B", "d"]]
    table = read_table(write_table(tmp_path / "a.csv", *rows))
    assert [[case.response for case in row.cases] for row in table.rows] == [["a", "c"], ["b", "d"]]
    rows = [["id", "question", "model", "answer"], ["1", "q", "A", "a"], ["2", "q", "B", "b"]]
    assert len(read_table(write_table(tmp_path / "b.csv", *rows)).rows) == 1


def test_several_ground_truths_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "q", "answer": "a", "ground_truths": ["x", "y"]}\n')
    table = read_table(path)
    assert table.rows[0].cases[0].reference == "x"
    assert table.warnings == (
        "Column 'ground_truths' (C): several ground truths in row 1; the first one counts. Put the one that should "
        "count first.",
    )


_HI, _YO = {"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "Yo."}


def _chats(folder: Path, *chats: object, **fields: object) -> Path:
    path = folder / "a.jsonl"
    path.write_text(
        "".join(json.dumps({"messages": chat, **fields}) + "\n" for chat in chats), encoding="utf-8"
    )
    return path


def test_a_chat_that_ends_with_the_user_has_its_last_answer_or_none(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "And?"}
    called = {"role": "assistant", "content": None}
    path = _chats(tmp_path, [_HI, _YO], [_HI, _YO, asked], [_HI, called], [_HI, _YO, called], [_YO, _HI])
    assert [(each[1], each[2]) for each in content(read_table(path, bot_name="B"))] == [
        ("Hi?", "Yo."),
        ("Hi?", "Yo."),
        ("Hi?", ""),
        ("Hi?", "Yo."),
        ("Hi?", ""),
    ]


def test_a_chat_is_the_query_alone_beside_a_response(tmp_path: Path) -> None:
    for name, named in (
        ("answer", ()),
        ("reply_text", [Named("reply_text", "bot", "--map reply_text=bot")]),
    ):
        table = read_table(_chats(tmp_path, [_HI, _YO], **{name: "No."}), named=named)
        assert content(table) == [(name, "Hi?", "No.", None, None)]
        assert [column.header for column in table.columns] == ["messages", name]
        assert table.warnings == ()


_AND, _NO = {"role": "user", "content": "And?"}, {"role": "assistant", "content": "No."}
_RULE, _BLANK = {"role": "system", "content": "Be brief."}, {"role": "assistant", "content": " "}


@pytest.mark.parametrize(
    ("chats", "fields", "told"),
    [
        ([[_HI, _YO, _AND, _NO], [_HI], [_RULE, _HI, _YO]], {}, ""),
        ([[_HI, _YO, _NO]], {}, "'messages.query' (B): 1 message is not used (row 1)"),
        ([[_RULE, _BLANK, _HI, _BLANK, _NO]], {}, ""),
        (
            [[_HI, _YO]],
            {"answer": [_HI, _YO, _AND, _BLANK, _YO, _NO]},
            "'answer' (B): 1 message is not used (row 1)",
        ),
    ],
    ids=["two turns", "two answers", "nothing", "of a response"],
)
def test_messages_of_a_chat_that_are_not_used_are_told(
    chats: list[object], fields: dict[str, Any], told: str, tmp_path: Path
) -> None:
    """Of several answers to one question; those of the system and blank ones are no turns."""
    warnings = read_table(_chats(tmp_path, *chats, **fields)).warnings
    assert [warning.partition(": of several")[0] for warning in warnings] == (
        [f"Column {told}"] if told else []
    )
    if "answer" not in fields:
        rows = [["messages"], *([json.dumps(chat)] for chat in chats)]
        (warning, *_) = read_table(write_table(tmp_path / "a.csv", *rows)).warnings or ("",)
        assert warning.partition(" (row")[0] == (f"Column {told.partition(' (row')[0]}" if told else "")


def test_unused_messages_are_told_on_the_terminal_and_in_the_report(run_cli: Run, tmp_path: Path) -> None:
    _chats(tmp_path, [_HI, _YO, _NO])
    told = "Column 'messages.query' (B): 1 message is not used (row 1): of several answers "
    assert told in run_cli("a.jsonl", "--show").err
    assert told in run_cli("a.jsonl", "--judge", "offline", "-q", "--json", "a.json", "-o", "r.xlsx").err
    assert told in json.loads((tmp_path / "a.json").read_text())["run"]["reading"]["warnings"][0]
    assert told in read_boxes(tmp_path / "r.xlsx")


@pytest.mark.parametrize(
    "chats", [[[_HI], [_HI, _HI]], [[]], [[_YO]], [["Hi?", "Yo."]], [[_HI, _YO], "text"], [[_HI, _YO], [1]]]
)
def test_what_is_no_chat_with_answers_has_no_responses(chats: list[object], tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"column of responses|column with responses"):
        read_table(_chats(tmp_path, *chats))


def test_ids_of_chunks_are_the_retrieved_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    contexts = [{"text": "one", "doc_id": "d1"}, {"text": "two", "doc_id": "d2"}]
    path.write_text(json.dumps({"query": "q", "response": "a", "contexts": contexts, "gold_docs": ["d2"]}))
    case = read_table(path).rows[0].cases[0]
    assert (case.chunks, case.gold_ids, case.retrieved_ids) == (("one", "two"), ("d2",), ("d1", "d2"))
    assert read_table(path).has_documents


_RECORD = '{"query": "q", "answer": "a"}'
_TWO_LISTS = "(found: 'a.b', 'c.d'); keep one list"
_NO_LIST = "a.json: expected a list of records"


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (['"To be or not to be"'], None),
        (['"To be"', '"007"', ""], None),
        (['""', ""], None),
        ([r'"C:\temp\new"'], None),
        (['"To be"', 'He says "to be".'], None),
        (['"5" or "6"', '"5"'], None),
        (['"To be"', r'"He says \"to be\"."'], ["To be", 'He says "to be".']),
        ([r'"Four weeks.\nNot five."'], ["Four weeks.\nNot five."]),
        ([r'"Stra\u00dfe"', ""], ["Straße", ""]),
    ],
)
def test_answers_that_are_quotations_keep_their_quotes(
    cells: list[str], read: list[str] | None, name: str, tmp_path: Path
) -> None:
    """Only if some cell has an escape, or another column has JSON strings as well, they were written by a tool."""
    table = read_table(
        write_table(tmp_path / name, ["Query", "Bot_A"], *([f"Why {cell}", cell] for cell in cells))
    )
    assert [row.cases[0].response for row in table.rows] == (read or cells)
    both = [[json.dumps("Why?"), json.dumps("So.")]]
    (row,) = read_table(write_table(tmp_path / name, ["Query", "Bot_A"], *both)).rows
    assert (row.cases[0].query, row.cases[0].response) == ("Why?", "So.")


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.jsonl"])
def test_texts_that_are_json_strings_are_read_without_quotes_and_escapes(name: str, tmp_path: Path) -> None:
    """As TruLens writes them; if some cell of a column is none, all of them stay as they are."""
    texts = ['Four\nweeks, "or so"', "Straße 5", "\U0001f600", ""]
    rows = [
        [
            json.dumps(f"Query {n}?"),
            json.dumps(text) if text else "",
            f'"said" {n}',
            f'"said {n}"' if n else "x",
        ]
        for n, text in enumerate(texts)
    ]
    header = ["Query", "Bot_A", "Bot_B", "Bot_C"]
    table = read_table(write_table(tmp_path / name, header, *rows))
    assert [row.cases[0].query for row in table.rows] == [f"Query {n}?" for n in range(4)]
    assert [row.cases[0].response for row in table.rows] == texts
    assert [row.cases[1].response for row in table.rows] == [f'"said" {n}' for n in range(4)]
    assert [row.cases[2].response for row in table.rows] == ["x", '"said 1"', '"said 2"', '"said 3"']
    objects = [[json.dumps("Why?"), json.dumps(json.dumps({"answer": "So.", "context": ["c"]}))]] * 2
    (case, *_) = read_table(write_table(tmp_path / name, ["input", "output"], *objects)).rows[0].cases
    assert (case.query, case.response, case.chunks) == ("Why?", "So.", ("c",))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json: is not JSON"),
        ("a.json", '{"a": [{"x": 1}], "b": [{"x": 1}]}', f"{_NO_LIST} … (found: 'a', 'b'); keep one"),
        ("a.json", f'{{"a": {{"b": [{_RECORD}]}}, "c": {{"d": [{_RECORD}]}}}}', _TWO_LISTS),
        ("a.json", '{"a": {"b": [{"x": 1}]}, "c": {"d": [{"x": 1}, {"x": 1}]}}', _TWO_LISTS),
        ("a.json", '{"a": {"b": [1, 2]}, "c": 1}', "(found: 'a', 'c'); keep one list"),
        ("a.json", '{"format": "rag-eval-run/1", "cases": []}', "is a run that --json wrote; to make its report"),
        ("a.json", "[1, 2]", "a.json, record 1: is not an object with fields"),
        ("a.json", "[]", "a.json: is empty"),
        ("a.json", '{"question": ["q1", "q2"], "answer": ["a"]}', _NO_LIST),
        ("a.json", '{"question": {"0": "q"}, "answer": {"1": "a"}}', _NO_LIST),
        ("a.json", '{"columns": ["question", "answer"], "data": [["q"]]}', _NO_LIST),
        ("a.json", '{"x": {"question": "q", "answer": "a"}, "y": {"question": "q", "answer": "b"}}', _NO_LIST),
        ("a.json", '{"x": {"question": ["q"], "answer": ["a"]}, "y": {"question": ["r"], "answer": []}}', _NO_LIST),
        ("a.json", f'{{"x": [{_RECORD}], "y": [{_RECORD}]}}', "keep one list, or join them with the name of"),
        ("a.json", '{"question": ["q"], "answer": "a"}', _NO_LIST),
        ("a.json", '{"of": {"question": "q", "answer": "a"}, "as": 1}', _NO_LIST),
        ("a.jsonl", f"[{_RECORD}]", "a.jsonl: is a list of records in one line; write … or rename the file to .json"),
        ("a.jsonl", f"[{_RECORD},\n{_RECORD}]", "line 1: is not JSON … per line, or rename the file to .json"),
        ("a.jsonl", f"[{_RECORD}]\n[{_RECORD}]", "a.jsonl, record 1: is not an object with fields"),
        ("a.json", '{"question": [], "answer": []}', _NO_LIST),
        ("a.json", "nonsense\nmore\n", "is not JSON (Expecting value, line 1, column 1); check … as .jsonl"),
        ("a.json", "[1]\nmore\n", "is not JSON (Extra data, line 2, column 1); check the file, or … as .jsonl"),
        ("a.json", '{"a": 1}\nmore\n', "line 2: is not JSON (Expecting value, column 1); write one record per line"),
        ("a.jsonl", '{"query": "q"}\n{"query": \n', "a.jsonl, line 2: is not JSON"),
        ("a.json", '[{"query": "q", "query": "r"}]', "is not JSON (duplicate key 'query'; keep one of each)"),
        ("a.jsonl", '{"query": {"a": 1, "a": 1}}', "line 1: is not JSON (duplicate key 'a'; keep one of each)"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1: is not JSON"),
        ("a.jsonl", '"text"', "a.jsonl, record 1: is not an object"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_read(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    found = problems(tmp_path / name)[0]
    for part in message.split(" … "):
        assert part in found


@pytest.mark.parametrize("orient", ["columns", "index", "split", "records", "table"])
@pytest.mark.parametrize("index", [[0, 1], ["q7", "2024-05-01"], [7]])
def test_forms_of_a_frame_in_json_are_the_same_table(orient: Any, index: list[Any], tmp_path: Path) -> None:
    frame = (
        pd.DataFrame({"query": ["Why?", "Who?"], "answer": ["So.", "I."]}).head(len(index)).set_axis(index)
    )
    frame.to_json(tmp_path / "a.json", orient=orient)
    cases = [("answer", "Why?", "So.", None, None), ("answer", "Who?", "I.", None, None)]
    assert content(read_table(tmp_path / "a.json")) == cases[: len(index)]


def test_a_single_record_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"query": "Why?", "answer": "So.", "contexts": ["It."]}')
    assert content(read_table(tmp_path / "a.json")) == [("answer", "Why?", "So.", None, ("It.",))]


def test_a_json_file_may_hold_a_record_in_each_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"query": "q", "response": "a"}\n\n{"query": "r", "response": "b"}\n')
    assert [row.number for row in read_table(tmp_path / "a.json").rows] == [1, 3]


# What somebody says about columns


def test_a_bot_that_is_named_by_its_whole_header_has_columns_by_its_short_name(tmp_path: Path) -> None:
    """`Retrieved_Context` means something by itself, unless a bot is called Retrieved."""
    rows = [["Query", "Bot_Retrieved", "Bot_B", "Retrieved_Context"], ["q", "a", "b", "c"]]
    table = read_table(write_table(tmp_path / "a.csv", *rows), named=[Named("Bot_Retrieved", "bot", "--map")])
    assert [case.chunks for case in table.rows[0].cases] == [("c",), None]
    rows[0][1] = "Bot_A"
    table = read_table(write_table(tmp_path / "b.csv", *rows))
    assert [case.chunks for case in table.rows[0].cases] == [("c",), ("c",)]
    rows[0][3], rows[1][3] = "Context_Precision", "0.5"
    table = read_table(write_table(tmp_path / "c.csv", *rows))
    assert ([case.chunks for case in table.rows[0].cases], table.warnings) == ([None, None], ())


@pytest.mark.parametrize("depth", [11, 12])
def test_fields_are_columns_of_their_own_down_to_the_twelfth_level(depth: int) -> None:
    record: Any = {"a": 1}
    for _ in range(depth):
        record = {"a": record}
    at_most = ".".join(["a"] * 12)
    assert flattened(record) == {at_most: 1 if depth == 11 else {"a": 1}}


def test_columns_may_be_named(tmp_path: Path) -> None:
    rows = [["Frage", "Antwort", "model_a", "model_b", "Query"], ["q", "gt", "a", "b", "?"]]
    names = (Named("frage", "query", ""), Named("Antwort", "reference", ""), Named("model_*", "bot", ""))
    table = read_table(write_table(tmp_path / "a.csv", *rows), named=names)
    case = table.rows[0].cases[0]
    assert (table.bots, case.query, case.reference) == (("model_a", "model_b"), "q", "gt")
    assert "'Query' (E) -> not used ('Frage' is the query)" in "\n".join(describe(table))
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    settings = Settings(
        judge={"provider": "offline"},
        columns=ColumnNames.model_validate(
            {"query": "Frage", "reference": "Antwort", "bots": "model_a, model_b"}
        ),
    )
    with pytest.warns(UserWarning, match="looks like the query"):
        assert list(evaluate(frame, settings)["bot"]) == ["model_a", "model_b"]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            [Named("anser", "bot", "--map anser=bot")],
            "--map anser=bot: 'anser' is not a column; did you mean 'answer'?",
        ),
        (
            [Named("answer", "bot", "--map answer=bot"), Named("answer", "context", "[columns] context")],
            "column 'answer' is both bot (--map answer=bot) and context ([columns] context); give it one role",
        ),
    ],
)
def test_what_is_named_must_be_there_and_agree(named: Sequence[Named], message: str, tmp_path: Path) -> None:
    rows = [["question", "answer"], ["q", "a"]]
    assert f"a.csv: {message}" in problems(write_table(tmp_path / "a.csv", *rows), named=named)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["answer"], "--map: 'answer' has no COLUMN=ROLE"),
        (["answer=bott"], "--map: 'bott' is not a role; did you mean 'bot'?"),
        (["a=query", "b=query"], "--map: the columns 'a' and 'b' cannot both be the query"),
    ],
)
def test_options_that_map_nothing(entries: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_map(entries)
    assert caught.value.problems[0].startswith(message)


def test_the_name_of_one_bot(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ["question", "answer"], ["q", "a"])
    assert read_table(path).bots == ("answer",)
    assert read_table(path, bot_name="GPT-4").bots == ("GPT-4",)
    path = write_table(tmp_path / "b.csv", ["question", "Bot_A", "Bot_B"], ["q", "a", "b"])
    assert problems(path, bot_name="x") == [
        "b.csv: --bot-name 'x' is for a table with one column of responses that names no bot; leave it out, because "
        "column 'Bot_A' (B) names the bots"
    ]
    path = write_table(tmp_path / "c.csv", ["question", "Bot_A"], ["q", "a"])
    assert problems(path, bot_name="x")[0].endswith("because column 'Bot_A' (B) names its bot")
    assert read_table(path, bot_name="A").bots == ("A",)


@pytest.mark.parametrize(
    ("header", "text", "expected"),
    [
        ("context_found", "text", "looks like the context of a bot, but no bot has this name"),
        (
            "passages_found",
            "text",
            "looks like the context and was not used; no column is the context. To use it, add --map",
        ),
        (
            "my_context",
            "text",
            "but no bot has this name; it was not used. To use it for all bots, add --map my_context=context.",
        ),
        (
            "answer",
            "text",
            "looks like a response and was not used. To use it, add --map answer=bot or --map answer=ref",
        ),
        (
            "Quelle",
            "long text " * 20,
            "contains long texts and was not used; no column is the reference or the context.",
        ),
        ("Bott_B", "text of a bot", "looks like the responses of a bot and was not used."),
        (
            "Relevant documents",
            '["d1"]',
            "no column has the gold documents. To use it, add --map 'Relevant doc",
        ),
        (
            "Erwartetes Ergebnis",
            "text",
            "looks like the reference and was not used; no column is the reference.",
        ),
        ("Input_ID", "7", ""),
        ("Target_Date", "2024-05-01", ""),
        ("Comment", "short", ""),
    ],
)
def test_an_unused_column_that_looks_like_a_role_is_told(
    header: str, text: str, expected: str, tmp_path: Path
) -> None:
    path = write_table(tmp_path / "a.csv", ["Query", "Bot_A", header], ["q", "a", text])
    warnings = read_table(path).warnings
    assert len(warnings) == bool(expected)
    assert all(expected in warning for warning in warnings)
    assert read_table(path, named=[Named(header, "ignore", "")]).warnings == ()


@pytest.mark.parametrize(
    ("header", "texts", "is_told"),
    [
        ("Quelle", ["x" * 80], True),
        ("Quelle", ["x" * 79], False),
        ("Quelle", ["x" * 100, "x" * 60], True),
        ("Quelle", ["x", "", "x" * 159], True),
        ("Quelle", ["x"] * 49 + ["x" * 9000], True),
        ("Quelle", ["x"] * 50 + ["x" * 9000], False),
        ("passages_found", ["1" * 39], False),
        ("passages_found", ["1" * 40], True),
        ("passages_found", ["true", "2024-05-01T10:00:00Z", "50 %"], False),
        ("passages_found", ["true", "perhaps"], True),
    ],
)
def test_a_column_is_told_for_the_texts_in_its_first_rows(
    header: str, texts: Sequence[str], is_told: bool, tmp_path: Path
) -> None:
    """Long texts are those of 80 characters on average; numbers, dates and flags below 40 are none."""
    rows = [["Query", "Bot_A", header], *([f"q{n}", "a", text] for n, text in enumerate(texts))]
    assert len(read_table(write_table(tmp_path / "a.csv", *rows)).warnings) == is_told


def test_an_unused_column_is_told_only_for_roles_that_are_missing(tmp_path: Path) -> None:
    long_text = "long text " * 20
    rows = [["Query", "Bot_A", "Ground_Truth", "Quelle"], ["q", "a", "r", long_text]]
    (warning,) = read_table(write_table(tmp_path / "a.csv", *rows)).warnings
    assert warning == (
        "Column 'Quelle' (D) contains long texts and was not used; no column is the context. To use it, add --map "
        "Quelle=context; to silence this, --map Quelle=ignore."
    )
    complete = [[*rows[0], "Context"], [*rows[1], "c"]]
    assert read_table(write_table(tmp_path / "b.csv", *complete)).warnings == ()
    for header, is_told in (("Quelle", True), ("Info", False)):  # with a row for each bot, by its name only
        by_bot = [
            ["Query", "Bot", "Response", header],
            ["q", "A", "a", long_text],
            ["q", "B", "a", long_text],
        ]
        told = read_table(write_table(tmp_path / "c.csv", *by_bot)).warnings
        assert [f"'{header}' (D) looks like the context" in each for each in told] == [True] * is_told


@pytest.mark.parametrize(
    ("record", "named", "told"),
    [
        ({"vars": {"question": "q?"}, "test": {"vars": {"question": "q?"}}}, (), ""),
        ({"question": "q?", "test": {"vars": {"question": "q?"}}}, (), "because 'question' is the query"),
        (
            {"vars": {"question": "q?"}, "test": {"query": "q?"}},
            ("vars.question",),
            "'vars.question' is the query",
        ),
        ({"question": "q?", "vars": {"question": "q?"}}, ("vars.question",), "'vars.question' is the query"),
        ({"vars": {"question": "q?"}, "usage": {"question": "long text " * 20}}, (), "contains long texts"),
    ],
    ids=["a copy", "of a plain column", "another name", "a plain column", "no role by itself"],
)
def test_the_deeper_copy_of_a_field_that_is_used_needs_no_word(
    record: Mapping[str, object], named: Sequence[str], told: str, tmp_path: Path
) -> None:
    """promptfoo writes its tests twice. Whatever else is called as a role is told."""
    (tmp_path / "a.jsonl").write_text(json.dumps({**record, "output": "a"}) + "\n")
    warnings = read_table(
        tmp_path / "a.jsonl", named=[Named(name, "query", "--map") for name in named]
    ).warnings
    assert [told in warning for warning in warnings] == ([True] if told else [])


_QUERY, _PASSAGE = "one row per query, one bot", "one row per passage"


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("question,answer,context\nq,a1,c1\nq,a2,c2\n", _QUERY, [(2, "a1", ("c1",)), (3, "a2", ("c2",))]),
        ("question,answer,context\nq,a,c1\nq,a,c2\n", _PASSAGE, [(2, "a", ("c1", "c2"))]),
        ("question,answer,context\nq,a,c1\nq,a,c1\n", _QUERY, [(2, "a", ("c1",)), (3, "a", ("c1",))]),
        (
            "question,answer,contexts\nq,a,x\nq,a,y\nq,a,x\n",
            _QUERY,
            [(n, "a", (c,)) for n, c in ((2, "x"), (3, "y"), (4, "x"))],
        ),
        ("question,answer,passage\nq,a,c1\nq,a,c1\n", _PASSAGE, [(2, "a", ("c1", "c1"))]),
        (
            "question,answer,context,ground_truth\nq,a,c1,r1\nq,a,c2,r2\n",
            _QUERY,
            [(2, "a", ("c1",)), (3, "a", ("c2",))],
        ),
        ("question,answer,context,ground_truth\nq,a,c1,r\nq,a,c2,r\n", _PASSAGE, [(2, "a", ("c1", "c2"))]),
        (
            "id,question,answer,context\n1,q,a1,c1\n1,q,a2,c2\n",
            _QUERY,
            [(2, "a1", ("c1",)), (3, "a2", ("c2",))],
        ),
        ("id,question,answer,context\n1,q,a,c1\n1,q,a,c2\n", _PASSAGE, [(2, "a", ("c1", "c2"))]),
        ("id,query_id,question,answer,context\n1,7,q,a,c1\n2,7,q,a,c2\n", _PASSAGE, [(2, "a", ("c1", "c2"))]),
        (
            "query_id,id,question,answer,context\n7,1,q,a,c1\n7,2,q,b,c2\n7,3,q,b,c3\n",
            _PASSAGE,
            [(2, "a", ("c1",)), (3, "b", ("c2", "c3"))],
        ),
        (
            "query_id,question,answer,context\n7,q,a,c1\n8,q,a,c2\n7,q,a,c3\n8,q,a,c4\n",
            _PASSAGE,
            [(2, "a", ("c1", "c3")), (3, "a", ("c2", "c4"))],
        ),
        (
            'query,passage,answer\nq,"one\n\nx",a\nq,two,\nr,three,b\n',
            _PASSAGE,
            [(2, "a", ("one\n\nx", "two")), (4, "b", ("three",))],
        ),
        (
            "Query,Model,Bot_A,answer,passage\nq,x,a,b,p\nq,y,c,d,r\n",
            "one row per query, one column per bot",
            [(2, "a", ("p",)), (3, "c", ("r",))],
        ),
    ],
)
def test_rows_are_passages_of_one_response_only_if_nothing_else_differs(
    text: str, shape: str, expected: list[tuple[int, str, tuple[str, ...]]], tmp_path: Path
) -> None:
    """The response may be told in the first row of its passages only; Bot_* columns always mean a row per query."""
    table = frame_of(tmp_path, text)
    found = [(row.number, row.cases[0].response, row.cases[0].chunks) for row in table.rows]
    assert (table.shape, found) == (shape, expected)
    passages = {"passages of several rows": len(expected)} if shape == _PASSAGE else {}
    assert {name: count for name, count in table.context_cells.items() if "passages" in name} == passages


# Bots that would be left out


_TEXTS = ("Use the app, please.", "Ask at the desk.", "It is open from nine.", "That costs two euros.")
_TRUTHS = ("In the app.", "At the desk.", "From nine to six.", "It costs two euros.")


def table_of(path: Path, *names: str, **cells: Sequence[object]) -> Path:
    """A row per query. A column has other texts than its neighbours, or the cells that are given for it."""
    truths = {
        "Query",
        "Question",
        "Ground_Truth",
        "Reference",
        "Frage",
        "質問",
        "Réponse attendue",
        "模範解答",
    }
    columns = [
        cells.get(name, [f"{text} ({place})" for text in (_TRUTHS if name in truths else _TEXTS)])
        for place, name in enumerate(names)
    ]
    return write_table(path, names, *zip(*columns, strict=True))


ACCIDENTS: Sequence[tuple[str, str]] = (
    ("Query, Answer, BotGPT4, BotClaude, Context", "BotGPT4, BotClaude"),
    ("Query, Answer, Claude, GPT4", "Claude, GPT4"),
    ("Query, Answer, Model_A, Model_B", "Model_A, Model_B"),
    ("Query, Answer, Model_Atlas, Model_Birch", "Model_Atlas, Model_Birch"),
    ("Query, Answer, Atlas bot, Birch bot", "Atlas bot, Birch bot"),
    ("Query, Answer, Bots_X", "Bots_X"),
    ("Query, Answer, bot1, bot2", "bot1, bot2"),
    ("Query, Answer, botgpt4", "botgpt4"),
    ("Query, Response, BotB", "Response, BotB"),
    ("Query, Ground_Truth, Answer, BotB", "Answer, BotB"),
    ("Query, Ground_Truth, Answer, Our 'ChatGPT' ($4), GPT-3.5", "Answer, Our 'ChatGPT' ($4), GPT-3.5"),
    ("Query, Answer, Answer 1, Answer 2", "Answer 1, Answer 2"),
    ("Query, Ground_Truth, BotB, Answer", "BotB, Answer"),
    ("Query, Bot_GPT4, BotClaude", "GPT4, BotClaude"),
    ("Query, Ground_Truth, BotGPT4", "BotGPT4"),
    ("Query, Right answer, ChatGPT, Claude", "ChatGPT, Claude"),
    ("Query, Solution, ChatGPT, Claude", "ChatGPT, Claude"),
    ("Query, Model answer, ChatGPT, Claude", "ChatGPT, Claude"),
    ("Question, Model_A, Model_B, Reference", "Model_A, Model_B"),
    ("Query, Ground_Truth, ChatGPT, Copilot", "ChatGPT, Copilot"),
    ("Query, Ground_Truth, Answer ChatGPT, Answer Copilot", "Answer ChatGPT, Answer Copilot"),
    ("Query, Ground_Truth, Atlas, Birch", "Atlas, Birch"),
    ("Query, predicted", "predicted"),
    ("Frage, Antwort, Modell_A, Modell_B", "Modell_A, Modell_B"),
    ("Question, Réponse attendue, Réponse GPT4, Réponse Claude", "Réponse GPT4, Réponse Claude"),
    ("質問, 模範解答, モデルA, モデルB", "モデルA, モデルB"),
    ("Query, Ground_Truth, BotGPT4, Notes_1, difficulty", "BotGPT4"),
)
"""Headers in which bots would be left out, and the bots that the printed command compares."""


@pytest.mark.slow
@pytest.mark.parametrize(("names", "bots"), ACCIDENTS)
def test_the_command_of_the_message_reads_bots_that_would_be_left_out(
    names: str, bots: str, run_cli: Run, tmp_path: Path
) -> None:
    """Nothing is judged before. The command has the options that were given."""
    table_of(tmp_path / "my file.csv", *names.split(", "))
    given = ("my file.csv", "--judge", "offline", "-q", "--json", "a.json", "-o", "my report.xlsx")
    ended = run_cli(*given)
    assert (ended.code, ended.out, [*tmp_path.iterdir()]) == (2, "", [tmp_path / "my file.csv"])
    *errors, last = ended.err.splitlines()
    assert len(errors) == 1
    assert f"'{bots.split(', ')[-1]}'" in errors[0]
    command = last.partition(" run: ")[2]
    assert command.startswith(
        "rag-eval 'my file.csv' --judge offline -q --json a.json -o 'my report.xlsx' --map "
    )
    again = run_cli(*shlex.split(command)[1:])
    assert again.code == 0
    uses = json.loads((tmp_path / "a.json").read_text())["run"]["reading"]["columns"]
    assert [use["bot"] for use in uses if use["role"] == "response"] == bots.split(", ")


@pytest.mark.parametrize(
    ("names", "bots"),
    [
        ("Query, Answer, BotGPT4", "BotGPT4"),
        ("Query, Bot_A, BotGPT4", "BotGPT4"),
        ("Query, Ground_Truth, Answer, Claude, GPT4", "Claude, GPT4"),
    ],
)
def test_a_bot_that_never_answered_is_not_left_out_in_silence(names: str, bots: str, tmp_path: Path) -> None:
    blank = dict.fromkeys(bots.split(", "), ("",) * 4)
    path = table_of(tmp_path / "a.csv", *names.split(", "), **blank)
    with pytest.raises(TableError, match=f"'{next(iter(blank))}'") as caught:
        read_table(path)
    named = [Named(role.removesuffix("=bot"), "bot", "") for role in caught.value.roles]
    cases = [case for row in read_table(path, named=named).rows for case in row.cases]
    assert len([case for case in cases if case.bot in blank and case.response == ""]) == 4 * len(blank)
    left = read_table(path, named=[Named(name, "ignore", "") for name in blank])
    assert (len(left.bots), left.warnings) == (1, ())


def test_a_blank_column_with_the_name_of_a_bot_that_is_not_read_causes_a_warning(tmp_path: Path) -> None:
    path = table_of(tmp_path / "a.csv", "Query", "Bot_A", "GPT4", GPT4=("",) * 4)
    (warning,) = read_table(path).warnings
    assert warning.startswith("Column 'GPT4' (C) looks like the responses of a bot and was not used.")


def test_bots_that_would_be_left_out_are_found_before_the_first_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Also with the prefix of other files in config.ini, and a name for the one bot, which the command leaves out."""
    table_of(tmp_path / "a.csv", "Query", "Response", "Bot_GPT4", "Bot_Claude")
    (tmp_path / "config.ini").write_text("[bots]\nstrip_prefix = Model_\n")
    ended = run_cli("--bot-name", "Atlas", "a.csv", "-q", "--dry-run", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert ended.err.splitlines() == [
        "rag-eval: a.csv: No Model_* columns found: 'Response' (B) would be the only bot, but columns 'Bot_GPT4' (C) "
        "and 'Bot_Claude' (D) look like responses of bots; add --map Response=bot --map Bot_GPT4=bot --map "
        "Bot_Claude=bot, or correct [bots] strip_prefix, which is 'Model_'; to leave a column out, add --map "
        "Bot_GPT4=ignore",
        "rag-eval: To have these columns judged, run: rag-eval a.csv -q --dry-run --map Response=bot "
        "--map Bot_GPT4=bot --map Bot_Claude=bot",
    ]
    ended = run_cli(
        "a.csv", "--bot-name=Atlas", "--show", "--map", "Bot_GPT4=ignore", "--map", "Bot_Claude=ignore"
    )
    assert (ended.code, ended.err) == (0, "")
    assert "'Response' (B) -> response of Atlas" in ended.out


@pytest.mark.parametrize(
    ("name", "bots"),
    [("Customer question", "Answer"), ("客户的问题", "Answer"), ("Question for us", "Claude, GPT4")],
)
def test_the_command_of_the_message_reads_a_query_that_nearly_has_a_name(
    name: str, bots: str, run_cli: Run, tmp_path: Path
) -> None:
    """The one bot keeps the name that was given, and so do other options."""
    table_of(tmp_path / "a.csv", name, *bots.split(", "))
    path = tmp_path / "a.csv"
    path.write_text("A title\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    ended = run_cli("a.csv", "--bot-name", "Atlas", "--header-row", "2", "--show")
    assert ended.code == 2
    again = run_cli(*shlex.split(ended.err.splitlines()[-1].partition(" run: ")[2])[1:])
    assert (again.code, again.err) == (0, "")
    told = "1 bot (Atlas)" if bots == "Answer" else "2 bots (Claude, GPT4)"
    assert told in again.out


@pytest.mark.slow
def test_a_shell_takes_the_command_of_the_message(tmp_path: Path) -> None:
    """Whatever the names of columns and files."""
    name = 'Bot$HOME `x` \\ "GPT" it\'s; é\nnew'
    path = table_of(tmp_path / "a b;$x.csv", "Query", "Ground_Truth", "Answer", name, "--GPT=4")
    script = Path(__file__).parent.parent / "rag_eval_standalone.py"
    ended = subprocess.run(
        [sys.executable, script, path.name, "--show"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    command = ended.stderr.splitlines()[-1].partition(" run: ")[2]
    again = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr) == (0, "")
    assert ": 4 rows, 3 bots (Answer, " in again.stdout


def test_bots_next_to_a_chat_that_would_be_left_out_are_read_by_the_command(tmp_path: Path) -> None:
    path = _chats(tmp_path, [_HI, _YO], BotGPT4="Hello.", gt="Yo.")
    with pytest.raises(TableError, match=r"'messages\.response' \(E\) would be the only bot") as caught:
        read_table(path)
    assert caught.value.roles == ("BotGPT4=bot", "messages.response=bot")
    named = [Named(role.removesuffix("=bot"), "bot", "") for role in caught.value.roles]
    assert [each[:3] for each in content(read_table(path, named=named))] == [
        ("BotGPT4", "Hi?", "Hello."),
        ("messages.response", "Hi?", "Yo."),
    ]


_CODES = ("f3a1", "0b7c", "99ee", "a0d2")
_MARKS = ("good", "good", "bad", "good")


@pytest.mark.parametrize(
    "columns",
    [
        {
            "Model_Version": ("gpt-4-0613",) * 4,
            "gpt4_score": (0.1, 0.2, 0.3, 1),
            "claude_latency": (10, 20, 30, 40),
        },
        {"Answer_Length": (12, 13, 14, 15), "Answer_Source": _TRUTHS, "Llama_prompt": _TEXTS},
        {"GPT4": (5, 4, 5, 1), "Claude": (0.5, 0.25, 1, 1)},
        {"GPT4": _MARKS, "Claude": _MARKS},
        {"Model_1": _CODES, "Model_2": _CODES},
        {"Claude feedback": _TRUTHS, "gpt4_rationale": _TEXTS},
        {
            "BotChannel": ("web", "app", "web", "web"),
            "BotMood": _MARKS,
            "Bottom_Line": _TEXTS,
            "Botany": _TEXTS,
        },
        {"Comment_1": _TRUTHS, "Comment_2": _TRUTHS, "choice_a": _TRUTHS, "choice_b": _TRUTHS},
        {"meta.author": ("Jo",) * 4, "meta.title": _TRUTHS, "passage_id": _CODES},
        {"Agent_Name": ("Jo Smith",) * 4, "Agent_Notes": _TRUTHS, "System_Prompt": _TEXTS},
    ],
)
def test_columns_about_bots_are_no_bots(columns: dict[str, Sequence[object]], tmp_path: Path) -> None:
    """Scores, ids, categories, notes: a file with them is read as before."""
    path = table_of(tmp_path / "a.csv", "Query", "Answer", *columns, **columns)
    assert read_table(path).bots == ("Answer",)
    path = table_of(tmp_path / "b.csv", "Query", "Bot_A", *columns, **columns)
    assert read_table(path).bots == ("A",)


@pytest.mark.parametrize(
    ("names", "prefix", "kinds"),
    [
        ("BotGPT4, Bots_X, bot1, BotB, botclaude, bots-2, Bot: A", "Bot_", "nearly prefixed"),
        ("ModelA, Models_B, model1", "Model_", "nearly prefixed"),
        ("answers.Bot_A, answers.BotB", "Bot_", "nearly prefixed"),
        ("My BotA, my-bots B", "My Bot_", "nearly prefixed"),
        ("Bot_A", "Model_", "named"),
        (
            "ChatGPT, GPT-4o mini, LLaMA-2-70b, DeepSeek V3, MistralAI, Claude 3.5, Microsoft Copilot",
            "Bot_",
            "named",
        ),
        ("System A, System B", "Bot_", "named"),
        ("Atlas model, Birch model", "Bot_", "named"),
        ("responses.1, responses.2, Output_A, OutputB", "Bot_", "named"),
        ("Claude hybrid, Model_Atlas, Agent Smith", "Bot_", "hinted at"),
        ("Answer_Atlas, Answer_Birch", "Bot_", "hinted at"),
        ("Bottom_Line, Both, Botswana, robot, Egypt, Claudette, Answer_Origin, Tag1, Tag2, A, B", "Bot_", ""),
        (
            "BotVersion, bot_ids, Model_Name, gpt4_scores, Llama_prompt, Claude's comments, Answer_Length",
            "Model_",
            "",
        ),
        ("é, 日本, 1, -, ' ', model, bot", "", ""),
    ],
)
def test_names_give_evidence_of_bots(names: str, prefix: str, kinds: str) -> None:
    headers = dict(enumerate(names.split(", ")))
    assert likely_bots(headers, prefix) == (dict.fromkeys(headers, kinds) if kinds else {})


@pytest.mark.parametrize(
    ("names", "column", "told"),
    [
        (
            "Query, Answer, Atlas",
            "Atlas",
            "contains texts like those of the responses and was not used. To use it, add --map Atlas=bot (and "
            "--map Answer=bot, to compare both) or --map Atlas=reference or --map Atlas=context; to silence this, "
            "--map Atlas=ignore.",
        ),
        (
            "Query, Ground_Truth, Answer, Atlas, Context",
            "Atlas",
            "contains texts like those of the responses and was not used. To use it, add --map Atlas=bot (and "
            "--map Answer=bot, to compare both); to silence this, --map Atlas=ignore.",
        ),
        (
            "Query, Answer, Claude hybrid",
            "Claude hybrid",
            "looks like the responses of a bot and was not used. To use it, add --map 'Claude hybrid=bot' (and "
            "--map Answer=bot, to compare both); to silence this, --map 'Claude hybrid=ignore'.",
        ),
        (
            "Query, Bot_A, Claude",
            "Claude",
            "looks like the responses of a bot and was not used. To use it, add --map Claude=bot; to silence this, "
            "--map Claude=ignore.",
        ),
    ],
)
def test_texts_without_a_use_may_be_responses(names: str, column: str, told: str, tmp_path: Path) -> None:
    """Texts alone, or names that may mean something else, are no reason to refuse the file."""
    path = table_of(tmp_path / "a.csv", *names.split(", "))
    (warning,) = read_table(path).warnings
    assert re.sub(r" \(\w\)", "", warning) == f"Column '{column}' {told}"
    assert read_table(path, named=[Named(column, "ignore", "")]).warnings == ()


def test_bots_that_somebody_named_are_all_there_are(tmp_path: Path) -> None:
    """The others are pointed out."""
    path = table_of(tmp_path / "a.csv", "Query", "Answer", "BotB", "BotC")
    table = read_table(path, named=[Named("BotB", "bot", "")])
    assert table.bots == ("BotB",)
    assert [re.sub(r"(?<=not used).*", "", warning) for warning in table.warnings] == [
        "Column 'Answer' (B) looks like the response and was not used",
        "Column 'BotC' (D) looks like the responses of a bot and was not used",
    ]
    assert "add --map Answer=bot or --map Answer=reference;" in table.warnings[0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"difficulty": ("easy", "hard", "easy", "easy"), "category": ("bikes and trams",) * 4},
            "looks like a test set",
        ),
        (
            {"reference_contexts": ["['a chunk of text', 'b']"] * 4, "synthesizer": ("single_hop",) * 4},
            "looks like a test",
        ),
        ({"incorrect_answers": _TEXTS, "source": ("https://a.example/b",) * 4}, "looks like a test set"),
        (
            {"Atlas": _TEXTS},
            "if 'Atlas' (C) contains responses, add --map Atlas=bot, or correct [bots] strip_prefix",
        ),
        ({"Atlas": _TEXTS}, "; if none does, this is a test set: run the bots on it first"),
    ],
)
def test_a_test_set_has_no_texts_but_queries_and_ground_truths(
    columns: dict[str, Sequence[object]], message: str, tmp_path: Path
) -> None:
    (problem,) = problems(table_of(tmp_path / "a.csv", "Query", "Reference", *columns, **columns))
    assert message in problem


def test_a_column_with_the_names_of_bots_is_no_bot(tmp_path: Path) -> None:
    """Although its own name begins as those of bots do."""
    rows = [["Query", "Bot_Name", "Answer"], ["q", "A", "a"], ["q", "B", "b"]]
    assert [each[:3] for each in content(read_table(write_table(tmp_path / "a.csv", *rows)))] == [
        ("A", "q", "a"),
        ("B", "q", "b"),
    ]
    rows = [["Query", "Bot_Name", "Bot_A"], ["q", "x", "a"]]
    assert read_table(write_table(tmp_path / "b.csv", *rows)).bots == ("A",)


# Where the header is


def _titled(path: Path) -> Path:
    """Two titles, the header, and 30 rows. The first title of a text has a separator that the table has not."""
    rows = [[f"query {number}", f"answer {number}", f"chunk {number}"] for number in range(4, 34)]
    cells = [["Survey, March", "", ""], ["Query", "", ""], ["Query", "Bot_A", "Context"], *rows]
    if path.suffix == ".csv":
        path.write_text("\n".join(";".join(row).rstrip(";") for row in cells))
    else:
        engine: Any = "odf" if path.suffix == ".ods" else "openpyxl"
        pd.DataFrame(cells).to_excel(path, index=False, header=False, engine=engine)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".ods"])
def test_the_header_is_where_somebody_says(suffix: str, tmp_path: Path) -> None:
    """Rows above it are skipped, and what a text file is separated by is read off the header."""
    path = _titled(tmp_path / f"a{suffix}")
    if suffix != ".csv":
        assert problems(path)[-1].endswith(
            "row 1 was taken for the header, being the first that is not blank, but row 3 looks like it; delete the "
            "rows above row 3, or add --header-row 3"
        )
    table = read_table(path, header_row=3)
    assert (table.bots, len(table.rows), table.rows[0].number, table.blank_rows) == (("A",), 30, 4, 0)
    assert (table.rows[29].cases[0].query, table.rows[29].cases[0].chunks) == ("query 33", ("chunk 33",))
    assert "header in row 3" in describe(table)[0]
    assert table.warnings == ()
    (below,) = problems(path, header_row=40)
    assert below.endswith("row 40 is blank, so it cannot be the header; correct --header-row")


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_a_table_without_a_header_is_read_by_letters(suffix: str, rag_eval: Run, tmp_path: Path) -> None:
    """The message proposes it where the first row looks like data."""
    rows = [
        ["How is it opened?", "By the handle, please.", ""],
        ["Where is it?", "It is at home.", "At home."],
    ]
    path = write_table(tmp_path / f"a{suffix}", *rows)
    ended = rag_eval(path.name, "--judge", "offline")
    assert "row 1 looks like data; if the file has no header, add --header-row 0" in ended.err
    mapped = ("--map", "A=query", "--map", "B=bot", "--map", "C=context")
    ended = rag_eval(path.name, "--header-row", "0", *mapped, "--show", "--bot-name", "Atlas")
    assert (ended.code, ended.err) == (0, "")
    assert "no header): 2 rows, 1 bot (Atlas), 1 context chunk" in ended.out
    (tmp_path / "config.ini").write_text(
        "[input]\nheader_row = 0\n[columns]\nquery = A\nbots = B\n[judge]\nprovider = offline\n"
    )
    ended = rag_eval(path.name, "-q")
    assert ended.code == 0, ended.err


_PLAIN = wide(ITEMS, " || ".join)
_IMPORTS = [json.dumps({"ImportId": f"QID{n}_TEXT"}) for n in range(5)]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@pytest.mark.parametrize(
    ("header", "last", "warning"),
    [
        ([_PLAIN[0], ["Question", "ground truth", "Bot Atlas", "BOT_BIRCH", ""]], 2, "Row 2 repeats the header"),
        ([_PLAIN[0], ["Open-Ended Response"] * 4 + ["Response"]], 2, "Row 2 repeats the header"),
        ([_PLAIN[0], ["What did you ask?", "Which is right?", "A", "B", "Texts"], _IMPORTS], 3, "Rows 1 to 3 were"),
        ([["Q1", "Q2", "Q3", "Q4", "Q5"], _PLAIN[0], _IMPORTS], 3, "Rows 1 to 3 were"),
        ([["", "", "Bot", "", ""], ["Query", "Ground_Truth", "Atlas", "Birch", "Context"]], 2, "Rows 1 and 2 were"),
        ([["", "", "Bot", "Bot", ""], ["Query", "Ground_Truth", "Atlas", "Birch", "Context"]], 2, "Rows 1 and 2"),
        ([["Test", "", "Answers", "", "Context"], ["Query", "Ground_Truth", "Bot_Atlas", "Bot_Birch", ""]], 0, ""),
        ([["Query", "Ground_Truth", "Bot", "", "Context"], ["", "", "Atlas", "Birch", ""]], 2, "Rows 1 and 2 were"),
        ([["Query", "Ground_Truth", "Reply", "", "Context"], ["", "", "Bot_Atlas", "Bot_Birch", ""]], 2, "Rows 1"),
    ],
    ids=["repeated", "surveymonkey", "qualtrics", "wording", "groups", "frame", "title", "merged", "names"],
)  # fmt: skip
def test_a_header_of_several_rows_is_read_as_one(
    header: Rows, last: int, warning: str, suffix: str, tmp_path: Path
) -> None:
    """But not what is a title by the row below, which is a header without it."""
    path = write_table(tmp_path / f"a{suffix}", *header, *_PLAIN[1:])
    if not last:
        (problem,) = problems(path)
        assert problem.endswith("delete the rows above row 2, or add --header-row 2")
        return
    table = read_table(path)
    assert content(table) == expected(ITEMS)
    assert [row.number for row in table.rows] == [last + 1, last + 2, last + 3]
    (note,) = table.warnings
    assert note.startswith(warning)
    if "repeats" in note:
        assert note.endswith("to read it, add --header-row 1.")
        assert len(read_table(path, header_row=1).rows) == 4


def test_columns_of_a_bot_may_stand_below_its_name(tmp_path: Path) -> None:
    own = ["Query", "Bot_Atlas", "", "Bot_Birch", ""], ["", "Answer", "Context", "Answer", "Context"]
    (case, other) = (
        read_table(write_table(tmp_path / "a.xlsx", *own, ["q", "a", "c", "b", "d"])).rows[0].cases
    )
    assert (case.bot, case.response, case.chunks) == ("Atlas", "a", ("c",))
    assert (other.bot, other.response, other.chunks) == ("Birch", "b", ("d",))


@pytest.mark.parametrize("group", [["Answer", "Answer"], ["Bots", ""]])
def test_groups_that_are_no_bots_by_their_name_are_offered_as_such(
    run_cli: Run, tmp_path: Path, group: list[str]
) -> None:
    rows = [
        ["Query", "Ground_Truth", *group],
        ["", "", "GPT-4", "Claude"],
        *(r[:4] for r in _PLAIN[1:]),
    ]
    write_table(tmp_path / "a.xlsx", *rows)
    ended = run_cli("a.xlsx", "--judge", "offline", "--show")
    assert ended.code == 2
    again = run_cli(*shlex.split(ended.err.splitlines()[-1].partition(" run: ")[2])[1:])
    bots = f"3 rows, 2 bots ({group[0]} GPT-4, {group[0]} Claude)"
    assert (again.code, bots in again.out) == (0, True)


@pytest.mark.parametrize(
    "rows",
    [
        [["Query", "Ground_Truth", "Bot_A", "Bot_B"], ["", "Paris", "Lyon", "Rome"]],
        [["Query", "Answer", ""], ["", "Paris", "Lyon"]],
        [["Query", "Bot_A", ""], ["", "Paris", "Lyon"]],
        [["Query", "Bot_A", "Bot_A_Context"], ["", "Answer me.", "Context"]],
    ],
)
def test_a_case_without_a_query_is_no_second_header(rows: Rows, tmp_path: Path) -> None:
    (problem,) = problems(write_table(tmp_path / "a.xlsx", *rows, ["q", "a", "b", "c"][: len(rows[0])]))
    assert "row 2, column 'Query' (A): is blank" in problem


_MESSAGES: Rows = [
    ["conversation_id", "role", "content"],
    *(
        [f"c{n}", *each]
        for n, item in enumerate(ITEMS)
        for each in (["system", "Be brief."], ["user", item.query], ["assistant", item.responses[0]])
    ),
]
_TURNED = [list(each) for each in zip(*(row[:4] for row in _PLAIN), strict=True)]


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        ([["id", "sender", "message"], *_MESSAGES[1:]], "each row is one message, because column 'sender' (B)"),
        (_TURNED, "each query is a column, because column A contains names of roles ('Ground_Truth', 'Bot_Atlas'"),
        ([["", *_TURNED[0][1:]], *_TURNED[1:]], "each query is a column, because column A contains names of roles"),
        ([["Query", "Q1", "Q2", "Q3"], *_TURNED[1:]], "each query is a column, because column A contains names"),
        (
            [["Query", "Which is the best answer", "What is a response"], ["Bot_A", "This.", "A reply."]],
            "each query is a column, because column A contains names of roles ('Bot_A')",
        ),
        (
            [["Bot", *_TURNED[0][1:]], _TURNED[1], *([name, "x", "y", "z"] for name in BOTS)],
            "each query is a column, because column A contains names of roles ('Ground_Truth', 'Atlas', 'Birch')",
        ),
    ],
)  # fmt: skip
def test_the_first_refusal_names_the_shape_of_a_table(rows: Rows, shape: str, tmp_path: Path) -> None:
    """And nothing else. The last but one is read without it: its queries have names of responses."""
    path = write_table(tmp_path / "a.csv", *rows)
    (problem,) = problems(path)
    assert problem.startswith(f"a.csv: {shape}")
    if "Transpose" in problem:
        turned = pd.read_csv(path, header=None).T
        turned.to_csv(path, index=False, header=False)
        with suppress(TableError):  # where a bot has no prefix
            assert len(read_table(path).rows) == len(rows[0]) - 1


@pytest.mark.parametrize(
    "rows",
    [
        [["Query", "Bot_A", "role"], ["q", "a", "user"], ["r", "b", "assistant"]],
        [["Type", "Query", "Bot_A"], ["Answer", "q", "a"], ["Context", "r", "b"], ["Query", "s", "c"]],
        [["Query", "Bot_A", "Bot_B"], ["Response", "a", "b"], ["What is a query?", "a", "b"]],
        [["Query", "Bot_A"], ["Open-ended response?", "Response"], ["q", "a"]],
        [["Query", "Bot_A"], ["Query", "A request."], ["q", "a"]],
        [["Query", "Bot_A"], ["answer", "response"], ["q", "a"]],
    ],
)
def test_tables_whose_cells_have_words_of_headers_are_read(rows: Rows, tmp_path: Path) -> None:
    place = rows[0].index("Query")
    found = read_table(write_table(tmp_path / "a.csv", *rows)).rows
    assert [row.query for row in found] == [row[place] for row in rows[1:]]


def test_rows_of_titles_that_grow_wider_hide_no_header(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", *_PLAIN)
    path.write_text(f"Report,2026\nby,Anna,Berlin\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    (problem,) = problems(path)
    assert problem.endswith("row 3 looks like it; delete the rows above row 3, or add --header-row 3")


@pytest.mark.parametrize(
    ("name", "separator", "form", "remedy"),
    [
        ("a.tsv", ",", TextForm(), "commas; use --sep ,"),
        ("a.tsv", ";", TextForm(), "semicolons; use --sep ';'"),
        ("a.csv", "\t", TextForm(separator=","), "tabs; use --sep tab"),
        (
            "a.xlsx",
            ";",
            TextForm(),
            "semicolons; split the texts into columns (in Excel: Data, Text to Columns), or read",
        ),
    ],
)
def test_columns_in_one_cell_are_named_with_the_separator(
    name: str, separator: str, form: TextForm, remedy: str, tmp_path: Path
) -> None:
    lines = [separator.join(cells) for cells in (["Query", "Bot_A", "Context"], ["q", "a", "c"])]
    path = tmp_path / name
    if name == "a.xlsx":
        write_table(path, *([line.replace("Query", '"Query"')] for line in lines))
    else:
        path.write_text("\n".join(lines))
    (problem,) = problems(path, form=form)
    assert f"the names of all columns are in one cell, separated by {remedy}" in problem
    if name != "a.xlsx":
        assert read_table(path, form=TextForm(separator=separator)).bots == ("A",)


@pytest.mark.parametrize("title", ["Auswertung", "Auswertung, März", "Auswertung;2026"])
@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_a_title_hides_no_header_of_another_separator(title: str, separator: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", *_PLAIN, separator=separator)
    path.write_text(f"{title}\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    (problem,) = problems(path)
    assert problem.endswith("row 3 looks like it; delete the rows above row 3, or add --header-row 3")
    assert content(read_table(path, header_row=3)) == expected(ITEMS)


# Quotes in text with tabs


_QUOTED = (
    '"Kettle" is what?\tA pot',
    'A pot of 12"\t"It" holds water',
    'Is "it" hot?\t"Yes',
    'Is it "old"?\tNo',
    "How old?\t",
)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (_QUOTED, 2),
        (_QUOTED[1:], 2),
        (_QUOTED[2:], 3),
        (('q?\t"Yes', "r?\tNo"), 3),
        (('q?\t"Yes', 'old"\tNo', "r?\tYes"), 3),
    ],
    ids=["torn", "torn below", "torn between", "without an end", "over two lines"],
)
@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_quotes_that_enclose_no_cell_of_a_text_with_tabs_are_text(
    lines: Sequence[str], place: int, suffix: str, tmp_path: Path
) -> None:
    """No row is refused because a text begins with a quote."""
    path = tmp_path / f"a{suffix}"
    path.write_text("\n".join(["Query\tBot_A", *lines]) + "\n", encoding="utf-8")
    table = read_table(path)
    assert [f"{case.query}\t{case.response}" for row in table.rows for case in row.cases] == [*lines]
    (note,) = table.warnings
    assert f"a whole cell in line {place}, so all quotes were read as part of the texts" in note
    assert "quotes are text" in table.layout


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('Query\tBot_A\n"two\nlines"\t"a ""b"" c"\nr\tb\n', [("two\nlines", 'a "b" c'), ("r", "b")]),
        ('Query\tBot_A\n"a\ttab"\tb\n', [("a\ttab", "b")]),
        ('Query\tBot_A\n"a\ttab\nand a line"\tb\n', [("a\ttab\nand a line", "b")]),
        ('Query\tBot_A\nq\t"yes, it is"\n', [("q", "yes, it is")]),
        ('"Query"\t"Bot_A"\n"q"\t"a"\n', [("q", "a")]),
        ('Query\tBot_A\n12" or "13"\ta "b" c\n', [('12" or "13"', 'a "b" c')]),
    ],
)
def test_quotes_that_enclose_cells_of_a_text_with_tabs_are_none(
    text: str, rows: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "a.tsv")
    assert [(case.query, case.response) for row in table.rows for case in row.cases] == rows
    assert "quotes" not in table.layout


@pytest.mark.parametrize(
    "text",
    [
        'Query\tBot_A\n"two\nlines"\ta\n"Kettle" is what?\tb\n',
        'Query\tBot_A\nq\t"a ""b"" c"\n"Kettle" is what?\tb\n',
        '"Query"\t"Bot_A"\n"Kettle" is what?\t"b"\n',
    ],
    ids=["several lines", "doubled quotes", "quoted header"],
)
def test_a_mistake_between_quotes_that_enclose_cells_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    assert problems(tmp_path / "a.tsv")[0].endswith("'\t' expected after '\"'; check the quotes")


# Where the records of a document are


def _tests_of_deepeval() -> dict[str, Any]:
    cases = [
        {
            "name": f"test_case_{n}",
            "input": item.query,
            "actualOutput": item.responses[0],
            "expectedOutput": item.reference,
            "retrievalContext": [*item.chunks],
            "metricsData": [{"name": "Faithfulness", "score": 0.9, "reason": "x"}],
        }
        for n, item in enumerate(ITEMS)
    ]
    scores = [{"metric": name, "scores": [0.9], "passes": 4} for name in "abcde"]
    run = {"testCases": cases, "conversationalTestCases": [], "metricsScores": scores, "testPassed": 3}
    return {"testRunData": run, "testRunLink": None}


def test_the_records_of_a_document_may_be_at_any_depth(tmp_path: Path) -> None:
    """Such as deepeval's; lists without queries and responses do not count, however long."""
    path = tmp_path / ".latest_test_run.json"
    path.write_text(json.dumps(_tests_of_deepeval()))
    table = read_table(path, bot_name="Atlas")
    assert content(table) == expected(ITEMS)[::2]
    assert (table.layout, table.warnings) == ("JSON, records in testRunData.testCases", ())


_RECORDS = [{"question": f"q{n}", "answer": "a"} for n in range(3)]


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"a": {"b": {"c": _RECORDS}}, "d": 1}, "a.b.c"),
        ({"a": {"b": {"c": _RECORDS}}, "notes": [{"text": "x"}] * 9}, "a.b.c"),
        ({"data": {"x": 1}, "a": {"cases": [{"query": "q", "Bot_A": "a"}]}}, "a.cases"),
        ({"train": {"rows": _RECORDS}, "test": {"rows": _RECORDS[:2]}}, "train.rows"),
    ],
)
def test_the_list_of_records_is_the_longest_with_queries_and_responses(
    document: dict[str, Any], where: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document))
    table = read_table(tmp_path / "a.json")
    assert table.layout == f"JSON, records in {where}"
    others = ["The 3 records in 'train.rows' were read, the longest list; not read: 'test.rows' (2)."]
    assert [*table.warnings] == (others if "train" in document else [])


# Responses that are objects


_CHAINS: Mapping[str, Callable[[Item], dict[str, Any]]] = {
    "RetrievalQA": lambda item: {"query": item.query, "result": item.responses[0]},
    "retrieval chain": lambda item: {
        "input": item.query,
        "answer": item.responses[0],
        "context": [*item.chunks],
    },
    "LLMChain": lambda item: {"question": item.query, "text": item.responses[0], "usage": {"output": 7}},
}


@pytest.mark.parametrize("chain", _CHAINS)
@pytest.mark.parametrize("way", ["JSON", "Python", "jsonl"])
def test_the_response_in_the_output_of_a_chain_is_read(chain: str, way: str, tmp_path: Path) -> None:
    """No word about the query, which the output repeats."""
    written: Callable[[object], object] = {"JSON": json.dumps, "Python": str, "jsonl": lambda it: it}[way]
    rows = [[item.query, item.reference, written(_CHAINS[chain](item))] for item in ITEMS]
    path = write_table(
        tmp_path / ("a.jsonl" if way == "jsonl" else "a.csv"), ["question", "ground_truth", "answer"], *rows
    )
    table = read_table(path, bot_name="Atlas")
    has_context = chain == "retrieval chain"
    of_atlas = [case if has_context else (*case[:4], None) for case in expected(ITEMS)[::2]]
    assert (content(table), table.warnings) == (of_atlas, ())


def test_a_name_for_objects_whose_field_is_meant_is_refused_with_the_field(tmp_path: Path) -> None:
    """The text of a dictionary would be judged as the response, or be the query."""
    rows = [
        [json.dumps({"query": item.query}), json.dumps({"text": item.responses[0], "n": 1})] for item in ITEMS
    ]
    path = write_table(tmp_path / "a.csv", ["asked", "said"], *rows)
    given = [Named("asked", "query", "--map asked=query"), Named("said", "bot", "[columns] bots")]
    assert problems(path, named=given) == [
        "a.csv: column 'asked' (A) contains objects with the fields 'query', not texts; add --map asked.query=query "
        "instead of --map asked=query",
        "a.csv: column 'said' (B) contains objects with the fields 'text', 'n', not texts; add --map said.text=bot "
        "instead of [columns] bots",
    ]
    given = [Named("asked.query", "query", ""), Named("said.text", "bot", "")]
    records = write_table(tmp_path / "a.jsonl", ["asked", "said"], *([*map(json.loads, row)] for row in rows))
    for its in (path, records):
        cases = [row.cases[0] for row in read_table(its, named=given).rows]
        assert [case.response for case in cases] == [item.responses[0] for item in ITEMS]
    given = [Named("asked.query", "query", ""), Named("said", "bot", "--map said=bot")]
    told = "--map said=bot: 'said' is an object with fields; add --map 'said.text=bot' instead"
    assert any(told in each for each in problems(records, named=given))


def test_objects_without_a_field_that_is_meant_stay_texts(tmp_path: Path) -> None:
    """As bots answer that are asked for JSON."""
    rows = [["q", '{"city": "Paris", "zip": "75001"}'], ["r", '{"city": "Rome"}']]
    path = write_table(tmp_path / "a.csv", ["query", "said"], *rows)
    table = read_table(path, named=[Named("said", "bot", "")])
    assert [row.cases[0].response for row in table.rows] == [row[1] for row in rows]
    path = write_table(tmp_path / "b.csv", ["query", "Bot_A"], *rows)
    assert ([row.cases[0].response for row in read_table(path).rows], read_table(path).warnings) == (
        [row[1] for row in rows],
        (),
    )


def test_objects_of_bots_are_judged_as_a_whole_unless_a_field_is_named(run_cli: Run, tmp_path: Path) -> None:
    rows = [[item.query, json.dumps(_CHAINS["RetrievalQA"](item))] for item in ITEMS]
    write_table(tmp_path / "a.csv", ["Query", "Bot_A"], *rows)
    ended = run_cli("a.csv", "--show", "--judge", "offline")
    option = "--map Bot_A.result=bot"
    assert f"each whole object was read as the response. To read the field, add {option}." in ended.err
    assert f"response: {rows[0][1]}" in ended.out
    ended = run_cli("a.csv", "--show", "--judge", "offline", *option.split())
    assert (ended.code, ended.err) == (0, "")
    assert f"response: {ITEMS[0].responses[0]}" in ended.out


_OF_BOTS = ("Context", "Retrieved_Docs", "Human_Faithfulness", "Latency", "Cost", "History")


@pytest.mark.parametrize(
    ("bots", "columns", "owners"),
    [
        ("Bot_GPT-4,Bot_Claude", "{}_GPT4,{}_Claude", "GPT-4,Claude"),
        ("Bot_GPT4,Bot_Claude", "{}_GPT-4,{}_Bot_Claude", "GPT4,Claude"),
        ("Bot_GPT-4,Bot_GPT4", "{}_GPT 4,{}_GPT4", "GPT-4,GPT4"),
        ("Bot_GPT-4,Bot_Claude", "{}_GPT4,{}_GPT-4", "-,GPT-4"),
        ("Bot_GPT-4,Bot_GP T4", "{}_GPT4,{}_GP-T4", "-,GP T4"),
        ("Bot_GPT-4 answer,Bot_B answer", "{}_GPT4,{}_B", "GPT-4 answer,B answer"),
        ("Bot_B answer,Bot_B", "{}_B,{}_B answer", "B,B answer"),
    ],
)
def test_names_of_bots_may_differ_in_separators(bots: str, columns: str, owners: str, tmp_path: Path) -> None:
    for word in _OF_BOTS:
        header = ["Query", *bots.split(","), *columns.format(word, word).split(",")]
        said = '[{"role": "user", "content": "Hi"}]' if word == "History" else "1"
        table = read_table(write_table(tmp_path / "a.csv", header, ["q", "a", "b", said, said]))
        found = [use.bot or "-" for use in table.columns[3:]]
        assert (word, found) == (word, owners.split(","))


def test_the_command_that_reads_answers_reads_their_contexts_too(run_cli: Run, tmp_path: Path) -> None:
    header = [
        "Question",
        "Expected",
        *(f"{bot} {what}" for bot in BOTS for what in ("answer", "context", "latency (s)")),
    ]
    rows = [
        [item.query, item.reference, *(each for text in item.responses for each in (text, "c", "2"))]
        for item in ITEMS
    ]
    write_table(tmp_path / "a.csv", header, *rows)
    command = re.search(r"run: rag-eval (.*)", run_cli("a.csv", "--judge", "offline").err)
    assert command
    table = read_table(tmp_path / "a.csv", named=[Named(f"{bot} answer", "bot", "") for bot in BOTS])
    assert [use.described.partition(" -> ")[2] for use in table.columns[2:5]] == [
        "response of Atlas answer",
        "context of Atlas answer",
        "latency of Atlas answer in s",
    ]
    ended = run_cli(*shlex.split(command[1]), "--show")
    assert (ended.code, ended.err, "context: 1 chunk" in ended.out) == (0, "", True)


def test_fields_of_a_bot_are_its_response_and_its_context(tmp_path: Path) -> None:
    """Not several bots, as long as each field means something and one is the response."""
    records = [
        {
            "Query": item.query,
            "Ground_Truth": item.reference,
            **{
                f"Bot_{bot}": {
                    "query": item.query,
                    "result": response,
                    "source_documents": [*item.chunks],
                    "latency": 1,
                }
                for bot, response in zip(BOTS, item.responses, strict=True)
            },
        }
        for item in ITEMS
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    table = read_table(path)
    assert (content(table), table.warnings) == (expected(ITEMS), ())
    for fields in ({"draft": "a", "final": "b"}, {"answer": "a", "response": "b"}, {"answer": "a"}):
        path.write_text(json.dumps([{"Query": "q", "Bot_A": fields}]))
        assert read_table(path).bots == tuple(f"A.{field}" for field in fields)


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_values_of_records_that_are_not_read_as_they_are_cause_a_warning(suffix: str, tmp_path: Path) -> None:
    """Of columns that are used: frames are full of NaN elsewhere. A number of any length is its digits."""
    digits = "7" * 5_000
    lines = [
        f'{{"query": "q", "Bot_A": NaN, "Bot_B": {digits}, "Context": [NaN, "c", -{digits}], "score": NaN}}',
        '{"query": "r", "Bot_A": -Infinity, "Bot_B": "b\\ud83d", "Context": null, "score": 1}',
        '{"query": "s", "Bot_A": null, "Bot_B": "b\\ud83d\\ude00", "Context": ["c"], "score": "\\ud83d"}',
    ]
    path = tmp_path / f"a{suffix}"
    path.write_text(f"[{','.join(lines)}]" if suffix == ".json" else "\n".join(lines))
    table = read_table(path)
    assert [case.response for row in table.rows for case in row.cases] == [
        "",
        digits,
        "",
        "b\ufffd",
        "",
        "b\U0001f600",
    ]
    assert [row.cases[0].chunks for row in table.rows] == [("c", f"-{digits}"), (), ("c",)]
    assert [warning for warning in table.warnings if "read as" in warning] == [
        "Column 'Bot_A' (B): NaN or Infinity in row 1, 2 was read as blank; write the text in quotes, or null for "
        "none.",
        "Column 'Bot_B' (C): half a character, such as a cut emoji, in row 2 was read as U+FFFD (\ufffd); export the "
        "texts again.",
    ]


@pytest.mark.parametrize(
    "row",
    [
        ["2026-01-05", "capital of France", "Paris"],
        ["capital of France", "Paris", "Paris"],
        ["7", "x y", "z"],
    ],
)
def test_a_first_row_with_values_looks_like_data(row: Sequence[str], tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", row, ["2026-01-06", "capital of Spain", "Madrid"])
    assert "row 1 looks like data; if the file has no header, add --header-row 0" in problems(path)[0]


@pytest.mark.parametrize(
    "row", [["#", "Frage an uns", "Bemerkung"], ["2024 budget", "x", "y"], ["Query", "1", "2"]]
)
def test_a_first_row_with_names_does_not_look_like_data(row: Sequence[str], tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", row, ["1", "capital of Spain", "Madrid"])
    assert not any("looks like data" in problem for problem in problems(path))


def test_without_a_header_the_message_shows_what_each_column_begins_with(
    run_cli: Run, tmp_path: Path
) -> None:
    path = write_table(
        tmp_path / "a.csv", ["How is it opened?", "", "By the handle."], ["Where is it?", "x", "At home."]
    )
    assert problems(path, header_row=0) == [
        "a.csv: the columns of a table without a header have no roles yet; add --map LETTER=query and --map LETTER=bot "
        "(row 1: A 'How is it opened?', C 'By the handle.')"
    ]
    named = [Named("A", "query", "--map A=query")]
    assert "have no roles yet; add --map LETTER=bot (row 1: A" in problems(path, header_row=0, named=named)[0]
    named = [Named("Z", "query", "--map Z=query")]
    assert any("'Z' is not a column" in problem for problem in problems(path, header_row=0, named=named))
    ended = run_cli(
        "a.csv", "--header-row", "0", "--map", "A=query", "--map", "C=bot", "--show", "--judge", "offline"
    )
    assert (ended.code, ended.err) == (0, "")


def test_records_have_no_row_with_headers(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.jsonl", ["query", "answer"], ["q", "a"])
    assert read_table(path, header_row=3).warnings == ("--header-row has no effect on .jsonl files.",)


def test_a_torn_row_of_a_table_without_a_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q,a\nr,b,torn\n")
    named = [Named("A", "query", ""), Named("B", "bot", "")]
    (problem,) = problems(tmp_path / "a.csv", header_row=0, named=named)
    assert "3 cells, but the first row has 2" in problem


# Which rows are read


_ROWS: Rows = [
    ["Query", "Bot_A", "Lang", "Score"],
    *([f"q{n}", "a", "de" if n % 2 else "en", n] for n in range(2, 12)),
]


@pytest.mark.parametrize(
    ("rows", "count", "where", "expected"),
    [
        ("3-5", None, [], [3, 4, 5]),
        ("10-", None, [], [10, 11]),
        ("-3,6", None, [], [2, 3, 6]),
        (None, None, ["Lang = de"], [3, 5, 7, 9, 11]),
        (None, None, ["lang != de", "Score >= 6"], [6, 8, 10]),
        (None, None, ["Score < 3.5"], [2, 3]),
        (None, None, ["Score == 9"], [9]),
        (None, None, ["Query ~ Q1"], [10, 11]),
        ("2-7", None, ["Lang=en"], [2, 4, 6]),
        ("2-7", 6, [], [2, 3, 4, 5, 6, 7]),
        (None, 99, ["'Score' = '9'"], [9]),
    ],
)
def test_rows_are_selected(
    rows: str | None, count: int | None, where: list[str], expected: list[int], tmp_path: Path
) -> None:
    path = write_table(tmp_path / "a.csv", *_ROWS)
    table = read_table(path, selection=Selection.parse(rows, count, where))
    assert [row.number for row in table.rows] == expected
    assert table.blank_rows == 0
    assert bool(table.selection)
    assert Selection.parse(rows, count, where)
    assert not Selection()


def test_random_rows_are_the_same_ones_each_time_and_from_the_whole_file(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ["Query", "Bot_A"], *([f"q{n}", "a"] for n in range(1_000)))
    chosen = [row.number for row in read_table(path, selection=Selection(random_rows=50), max_rows=40).rows]
    again = [row.number for row in read_table(path, selection=Selection(random_rows=50), max_rows=40).rows]
    assert chosen == again == sorted(set(chosen))
    assert len(chosen) == 40
    assert max(chosen) > 500


@pytest.mark.parametrize(
    ("rows", "where", "message"),
    [
        *((None, text, "NAME OP VALUE") for text in ("Lang", "= de", "", "__import__('os')")),
        *((text, None, "FIRST-LAST") for text in ("x", "5-2", "-", "", "1-2-3")),
        *(
            (None, f"Score {operator} 3", "is not an operator; expected one of = != ~ < <= > >=")
            for operator in ("<<", "=<", ">>", "===", "<>")
        ),
    ],
)
def test_what_selects_no_rows_is_refused_and_never_run(
    rows: str | None, where: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Selection.parse(rows, None, [] if where is None else [where])


@pytest.mark.parametrize(
    ("condition", "cell", "holds"),
    [
        ("a = 9", "9.0", True),
        ("a = 9", " 9 ", True),
        ("a = 9", "nine", False),
        ("a != 9", "9.0", False),
        ("a != 9", "nine", True),
        ("a = de", " de ", True),
        ("a = de", "DE", False),
        ("a ~ E", "de", True),
        ("a ~ é", "de", False),
        ("a < m", "a", True),
        ("a < m", "m", False),
        ("a <= m", " m ", True),
        ("a > m", "m", False),
        ("a >= m", "m", True),
        ("a > m", "a", False),
        ("a < 9", "10", False),
        ("a < 9", "8", True),
        ("a > 9", "10", True),
        ("a < 9", "", False),
        ("a < m", "", False),
        ("a < 9", "a", False),
        ("a > 9", "a", False),
        ("a > m", "9", False),
        ("a < m", "9", True),
        ("a = ' 9'", "9", True),
        ("a = '9'", "9", True),
        ("a = '", "'", True),
        ("a = ", "", True),
        ("a = 1e2", "100", True),
        ("a = 9", "0" * 398 + "9", True),
        ("a = 9", "0" * 399 + "9", False),
    ],
)
def test_a_condition_compares_numbers_as_numbers_and_all_else_as_text(
    condition: str, cell: str, holds: bool
) -> None:
    (parsed,) = Selection.parse(None, None, [condition]).where
    assert parsed.holds(cell) is holds


@pytest.mark.parametrize(
    "value",
    [
        "0,003",
        "1,000",
        "1 000",
        "900 ms",
        "900ms",
        "$0.003",
        "€ 5",
        "5 EUR",
        "1.000.000",
        "5 %",
        "1.000,5",
        "-0,5",
    ],
)
def test_a_number_in_another_notation_is_not_compared_with_numbers_as_a_text(
    value: str, tmp_path: Path
) -> None:
    """It would select the wrong rows; where no cell is a number, it is a text like any other."""
    rows = [["q", "a", "soon"], ["q", "a", "0.01"]]
    path = write_table(tmp_path / "a.csv", ["Query", "Bot_A", "Cost"], *rows)
    assert problems(path, selection=Selection.parse(None, None, [f"Cost > {value}"])) == [
        f"a.csv, row 3: --where: '{value}' cannot be compared with 0.01, a number of 'Cost'; write it as a number such "
        "as 0.5 or 1000, without a unit"
    ]
    for condition in (f"Query != {value}", f"Cost != {value}"):
        assert len(read_table(path, selection=Selection.parse(None, None, [condition])).rows) == 2
    selection = Selection.parse(None, None, [f"Query > {value}"])
    assert len([*selection.chosen("a.csv", ["Query"], iter([(2, ["€€"])]))]) == 1


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("a < 0.5", [2, 3, 7]),
        ("a >= 0.5", [4, 5, 6]),
        ("a = 0.5", [4]),
        ("a > 10", [5, 6]),
        ("a ~ ,5", [4, 5, 9]),
    ],
)
def test_a_cell_with_a_decimal_comma_is_a_number(condition: str, rows: list[int]) -> None:
    cells = ["0", "0,25", "0,5", "10,5", "1234,125", "-,75", "soon", "0,5 or so"]
    selection = Selection.parse(None, None, [condition])
    numbered = ((number, [cell]) for number, cell in enumerate(cells, 2))
    assert [number for number, _ in selection.chosen("a.csv", ["a"], numbered)] == rows


@pytest.mark.parametrize(
    ("cell", "is_refused"), [("1,234", True), ("1,234,567", True), ("0,234", False), ("1,23", False)]
)
def test_a_number_that_may_be_one_of_two_is_not_compared(cell: str, is_refused: bool) -> None:
    for operator, refuses in ((">", True), ("=", False), ("~", False)):
        rows = Selection.parse(None, None, [f"a {operator} 9"]).chosen("a.csv", ["a"], iter([(2, [cell])]))
        if is_refused and refuses:
            with pytest.raises(
                TableError, match=r"a\.csv, row 2: --where: '1,234.* may have a decimal comma or marks"
            ):
                next(rows, None)
        else:
            assert next(rows, None) is None


@pytest.mark.parametrize("value", ["2026-01-31", "10:30", "v2", "2nd of May", "2nd", "Q1", "2a", "1.10.3"])
def test_a_text_with_digits_is_compared_as_one(value: str) -> None:
    (condition,) = Selection.parse(None, None, [f"a > {value}"]).where
    assert not condition.is_miswritten


def test_a_selection_says_what_it_takes() -> None:
    selection = Selection.parse("-3, 6,8-8,10-", 1200, ["'a b' == \"x\"", "c~"])
    assert selection.rows == ((1, 3), (6, 6), (8, 8), (10, 10**9))
    assert selection.words() == ("a b = x", "c ~ ", "rows 1-3, 6, 8, 10-", "1,200 random rows")
    assert Selection().words() == ()
    wanted = [
        Selection.parse("2", None, []),
        Selection.parse(None, 1, []),
        Selection.parse(None, None, ["a=1"]),
    ]
    assert [bool(each) for each in (*wanted, Selection())] == [True, True, True, False]
    assert [each.is_of_number for each in Selection.parse(None, None, ["a=1", "a=", "a=x"]).where] == [
        True,
        True,
        False,
    ]


def test_the_random_rows_are_those_of_every_version() -> None:
    """A sample that changed would be another report, and ask for other rows to be judged."""
    assert list(sampled(iter(range(2, 102)), 5)) == [14, 54, 57, 94, 95]
    assert list(sampled(iter("abc"), 3)) == list(sampled(iter("abc"), 9)) == list("abc")
    assert list(sampled(iter("abc"), None)) == list("abc")


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda name: parse_map([name]), 80),
        (lambda name: parse_map([f"a={name}"]), 40),
        (lambda name: parse_map([f"{name}=query", "b=query"]), 60),
        (lambda name: Selection.parse(name, None, []), 40),
        (lambda name: Selection.parse(None, None, [name]), 80),
        (lambda name: Selection.parse(None, None, [f"{name} =! x"]), 80),
        (lambda name: next(Selection.parse(None, None, [f"{name} = x"]).chosen("f", ["a"], iter(()))), 60),
        (lambda name: check_named(ReadOptions(named=[Named(name, "id", "--map")])), 60),
    ],
)
def test_a_message_quotes_no_more_of_a_name_than_tells_which_it_is(
    make: Callable[[str], object], most: int
) -> None:
    with pytest.raises((InputError, TableError)) as caught:
        make("x" * 1000)
    quoted = max(len(found) for found in re.findall("x+", str(caught.value)))
    assert quoted == most


def test_a_suggestion_names_the_nearest_or_the_first_forty() -> None:
    assert nearest("querry", ["Answer", "Query"]) == "; did you mean 'Query'?"
    names = [f"{'y' * 70}{number}" for number in range(41)]
    assert nearest("q", names) == "; the columns are " + ", ".join([repr("y" * 60)] * 40)
    assert nearest("q", ["id"], "roles") == "; the roles are 'id'"


def test_an_option_that_maps_a_column_is_named_by_its_beginning() -> None:
    assert roles_of([f"{'x' * 70}=id"], ["id"]) == (Named("x" * 70, "id", f"--map {'x' * 60}=id"),)
    assert parse_map(["a=bot", "b=bot", "a=bot", "c=query", "c=query", "d=ignore"]) == {
        "bots": ("a", "b"),
        "query": "c",
        "ignore": ("d",),
    }
    columns: dict[str, str | tuple[str, ...]] = {"query": "x" * 70, "bots": ("a", ""), "id": ""}
    assert named_columns(columns, ["query"]) == (
        Named("x" * 70, "query", f"--map {'x' * 60}=query"),
        Named("a", "bot", "[columns] bots"),
    )


def test_a_selection_without_rows_is_an_error(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", *_ROWS)
    assert problems(path, selection=Selection.parse(None, None, ["Lang = fr"])) == [
        "a.csv: no row is selected by Lang = fr; check --where, --rows and --random-rows"
    ]
    (found,) = problems(path, selection=Selection.parse(None, None, ["Land = fr"]))
    assert found == "a.csv: --where: 'Land' is not a column; did you mean 'Lang'?"


# Rows on disk


@pytest.mark.slow
def test_rows_can_be_walked_over_again_and_share_long_texts(tmp_path: Path) -> None:
    """More than stays in memory, and with texts that no encoding can hold."""
    context = "long context " * 100
    rows = [
        ["Query", "Bot_A", "Context"],
        *([f"q{n} 日", f"answer {n} " * 30, context] for n in range(3_000)),
    ]
    table = read_table(write_table(tmp_path / "a.xlsx", *rows), max_rows=3_000)
    first, second = [list(table.rows) for _ in range(2)]
    assert first == second
    assert len({id(row.cases[0].chunks) for row in first}) == 1
    assert [row.query for row in first] == [f"q{n} 日" for n in range(3_000)]
    assert table.rows[2_999].query == "q2999 日"


def test_a_long_text_may_be_the_response_the_reference_and_the_context(tmp_path: Path) -> None:
    """Each has its own value of the same text, whichever comes first."""
    text = "A long passage, which the bot repeats. " * 10
    rows = [["Query", "Bot_A", "Ground_Truth", "Context"]]
    rows += [
        ["q1", text, "r", text],
        ["q2", "a", text, text],
        ["q3", "a", "r", text],
        ["q4", text, text, "c"],
    ]
    table = read_table(write_table(tmp_path / "a.xlsx", *rows), keep=["Context"])
    cases = [row.cases[0] for row in table.rows]
    assert [case.chunks for case in cases] == [(text.strip(),)] * 3 + [("c",)]
    assert [case.columns["Context"] for case in cases] == [text] * 3 + ["c"]
    assert [(case.response, case.reference) for case in cases] == [tuple(row[1:3]) for row in rows[1:]]


def test_rows_on_disk_are_for_this_user_alone_and_have_no_name() -> None:
    def nameless() -> set[tuple[int, int, int]]:
        """Mode, links and size of the open files that no folder has."""
        found = set()
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                status = os.fstat(int(number))
                if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                    found.add((status.st_ino, stat.S_IMODE(status.st_mode), status.st_size))
        return found

    before = {inode for inode, _, _ in nameless()}
    lines = Lines("a.csv", 0)
    for number in range(3_000):
        lines.add([number, "x" * 1_000])
    assert [row[0] for row in lines] == list(range(3_000))
    ((_, mode, size),) = [each for each in nameless() if each[0] not in before]
    assert (mode, size > 3_000_000) == (0o600, True)


# The command line


@pytest.mark.slow
def test_what_comes_through_a_pipe_is_read(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "rag_eval", "-", "--format", "jsonl", "--judge", "offline"],
        input='{"question": "q", "answer": "a"}\n',
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stdout.startswith("stdin.jsonl (JSON Lines): 1 row")) == (0, True), (
        ended.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["stdin_report.xlsx"]


@pytest.mark.slow
@pytest.mark.usefixtures("one_core")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_is_known_by_its_suffix_wherever_it_comes_from(
    suffix: str, run_cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, in a folder, by a pattern and from standard input; this one is empty."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a{suffix}").touch()
    for place in (f"in/a{suffix}", "in", "in/*"):
        ended = run_cli(place, "--judge", "offline", "-o", "out" if place.endswith(("in", "*")) else "o.xlsx")
        assert (ended.code, f"a{suffix}: is an empty file" in ended.err) == (2, True), ended.err
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO()))
    ended = run_cli("-", "--format", suffix.removeprefix("."), "--judge", "offline")
    assert (ended.code, f"stdin{suffix}: is an empty file" in ended.err) == (2, True), ended.err


def test_standard_input_needs_the_type_of_its_file(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["question", "answer"], ["q", "a"])
    ended = run_cli("-", "--judge", "offline")
    assert (ended.code, "name the type of the file with --format" in ended.err) == (2, True)
    ended = run_cli("a.csv", "--format", "csv", "--judge", "offline")
    assert (ended.code, "--format csv is for standard input" in ended.err) == (2, True)


def test_how_the_file_was_read_is_printed_and_recorded(run_cli: Run, tmp_path: Path) -> None:
    rows: Rows = [["question", "answer", "contexts", "my_truth", "n"], ["q", "a", "['x', 'y']", "truth", "1"]]
    write_table(tmp_path / "a.csv", *rows, ["r", "b", "x||y", "z", "2"])
    ended = run_cli(
        "a.csv",
        "--judge",
        "offline",
        "-q",
        "--json",
        "a.json",
        "--where",
        "n < 2",
        "--bot-name",
        "GPT",
        "-o",
        "r.xlsx",
    )
    assert ended.code == 0
    assert "'my_truth' (D) looks like the reference and was not used" in ended.err
    assert "--map my_truth=reference" in ended.err
    reading = json.loads((tmp_path / "a.json").read_text())["run"]["reading"]
    assert reading["shape"] == "one row per query, one bot"
    assert [(each["header"], each["role"], each["bot"]) for each in reading["columns"]] == [
        ("question", "query", None),
        ("answer", "response", "GPT"),
        ("contexts", "context", None),
        ("my_truth", "not used", None),
        ("n", "not used", None),
    ]
    assert (reading["context_cells"], reading["selection"]) == ({"Python list": 1}, ["n < 2"])
    again = run_cli("a.json", "--report-only", "--judge", "offline", "-o", "s.xlsx", "-q")
    assert again.code == 0


def test_show_prints_how_rows_are_read_and_judges_nothing(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["question", "answer", "contexts"], ["q", "", "['x', 'y']"])
    ended = run_cli("a.csv", "--show")
    assert ended.code == 0
    assert ended.out.splitlines()[-9:] == [
        "Row 2",
        "  query: q",
        "  reference: (none)",
        "  answer",
        "    response: (blank)",
        "    context: 2 chunks",
        "      [1] x",
        "      [2] y",
        "Nothing was judged.",
    ]
    assert not (tmp_path / "a_report.xlsx").exists()


def test_a_mapped_column_is_named_in_the_error(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", ["Frage", "answer"], ["q", "a"])
    (tmp_path / "config.ini").write_text("[columns]\nquery = Fragen\n")
    ended = run_cli("a.csv", "--judge", "offline")
    assert (ended.code, "[columns] query: 'Fragen' is not a column; did you mean 'Frage'?" in ended.err) == (
        2,
        True,
    )
    assert run_cli("a.csv", "--judge", "offline", "--map", "Frage=query").code == 0


# Files of other tools

FILES = Path(__file__).parent / "tool_files"


@pytest.mark.parametrize("path", sorted(FILES.glob("*.*")), ids=lambda path: path.name)
def test_a_file_of_another_tool_is_read(path: Path) -> None:
    """The same two queries in each, with one or two bots; their chunks are there one by one."""
    if path.suffix == ".md" or path.name in ("own.csv", "langfuse_items.jsonl"):
        return
    table = read_table(path)
    first, second = (row.cases[0] for row in table.rows)
    assert first.query == "How long is the kettle under warranty?"
    assert first.response == "It is under warranty for two years."
    assert first.chunks == (
        "The warranty of the kettle ends two years from the day of purchase.",
        "The jug holds one litre.",
    )
    assert second.chunks == ("The lid must be washed by hand.",)
    if path.name != "passages.csv" and not path.name.startswith(("phoenix", "langsmith_runs")):
        assert second.reference == "No, the lid must be washed by hand."


def test_the_commands_of_the_input_page_read_the_files_of_other_tools(run_cli: Run, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "input.md").read_text(encoding="utf-8")
    section = page.partition("## I have a … file")[2]
    commands = [line for line in section.splitlines() if line.startswith("rag-eval ")]
    assert len(commands) >= 8
    for command in commands:
        words = shlex.split(command)[1:]
        shutil.copy(FILES / words[0], tmp_path)
        ended = run_cli(*words, "--judge", "offline")
        assert (command, ended.code, "Nothing was judged." in ended.out) == (command, 0, True)


# The other commands


@pytest.mark.parametrize("kind", ["xlsx", "ods", "json", "jsonl", "wrapped json", "utf-16 csv", "parquet"])
def test_files_of_retrieval_have_the_same_formats(kind: str, tmp_path: Path) -> None:
    rows: Rows = [["qid", "gold_docs"], ["1", '["a", "b"]'], ["2", '["c"]']]
    path = tmp_path / f"gold.{kind.split()[-1]}"
    if kind == "wrapped json":
        records = [dict(zip(("qid", "gold_docs"), row, strict=True)) for row in rows[1:]]
        path.write_text(json.dumps({"version": 1, "results": records}))
    elif kind == "utf-16 csv":
        path.write_text(
            "qid;gold_docs\n"
            + "".join(f'{a};"{str(b).replace(chr(34), chr(34) * 2)}"\n' for a, b in rows[1:]),
            encoding="utf-16",
        )
    else:
        write_table(path, *rows)
    with open_records(path) as records:
        found = [(each.qid, each.documents) for each in read_documents(records, "gold_docs", GOLD_NAMES)]
    assert found == [("1", ("a", "b")), ("2", ("c",))]


# Columns of objects written as text


def frame_of(tmp_path: Path, text: str, name: str = "a.csv", **options: Any) -> Table:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_table(tmp_path / name, **options)


@pytest.mark.parametrize("write", [json.dumps, str], ids=["JSON", "Python"])
def test_fields_of_objects_written_as_text_are_columns(
    tmp_path: Path, write: Callable[[object], str]
) -> None:
    records = [
        {"input": write({"question": "q1"}), "output": write({"answer": "a", "contexts": ["c", "d"]})},
        {"input": write({"question": "q2", "user": "u"}), "output": write({"answer": None})},
    ]
    text = "".join(json.dumps(each) + "\n" for each in records)
    table = frame_of(tmp_path, text, "a.jsonl", bot_name="B")
    assert [(row.query, row.cases[0].response, row.cases[0].chunks) for row in table.rows] == [
        ("q1", "a", ("c", "d")),
        ("q2", "", ()),
    ]
    assert [str(use) for use in table.columns if use.is_used] == [
        "'input.question' (C)",
        "'output.answer' (E)",
        "'output.contexts' (F)",
    ]
    assert table.warnings == ()


@pytest.mark.parametrize(
    ("text", "query", "response"),
    [
        ('input,output\n"{""question"": ""q""}",plain\n"{""question"": ""r""}",b\n', "q", "plain"),
        ('input,output\nq,"{""answer"": ""a""}"\nr,not an object\n', "q", '{"answer": "a"}'),
        ('input,output\nq,"{""answer"": ""a""}"\nr,null\ns,text\nt,"{""answer"": ""b""}"', "q", "a"),
        ('input,output\nq,"{""colour"": ""red""}"\nr,"{}"\n', "q", '{"colour": "red"}'),
        ('Query,Bot_A\nq,"{""answer"": ""a""}"\n', "q", '{"answer": "a"}'),
        ('Query,"answer"\nq,"{""answer"": ""a""}"\n', "q", "a"),
    ],
)
def test_a_column_is_read_by_its_fields_if_most_cells_have_them(
    tmp_path: Path, text: str, query: str, response: str
) -> None:
    (row, *_) = frame_of(tmp_path, text).rows
    assert (row.query, row.cases[0].response) == (query, response)


_OBJECTS = [f'q{number},"{{""answer"": ""a{number}"", ""context"": [""c""]}}"' for number in range(30)]


@pytest.mark.parametrize("place", [0, 15, 30])
def test_a_text_among_objects_is_the_response_of_its_row(run_cli: Run, tmp_path: Path, place: int) -> None:
    """Wherever it stands: the raw objects, with their contexts, were judged as responses."""
    lines = [*_OBJECTS[:place], "r,Service unavailable", *_OBJECTS[place:], "s,null", "t,"]
    table = frame_of(tmp_path, "\n".join(["question,output", *lines]))
    said = [row.cases[0].response for row in table.rows]
    assert said == [
        *(f"a{n}" for n in range(place)),
        "Service unavailable",
        *(f"a{n}" for n in range(place, 30)),
        "",
        "",
    ]
    assert {row.cases[0].chunks for row in table.rows} == {("c",), ()}
    assert table.warnings == (
        f"Column 'output' (B): the text in row {place + 2} was read as 'output.answer', because other rows have an "
        "object there. If it is not an answer, such as an error message, clear it, or leave the row out.",
    )


def test_few_objects_among_texts_are_texts_with_the_option_that_reads_them(tmp_path: Path) -> None:
    text = "\n".join(["question,output", "q,Yes.", "r,No.", _OBJECTS[0]])
    table = frame_of(tmp_path, text)
    assert table.rows[2].cases[0].response.startswith('{"answer"')
    assert table.warnings == (
        "Column 'output' (B): objects with a field 'answer' in row 4 were read as texts, as most cells are not "
        "objects. To read the field, add --map output.answer=bot.",
    )
    table = frame_of(tmp_path, text, named=[Named("output.answer", "bot", "")])
    assert [row.cases[0].response for row in table.rows] == ["Yes.", "No.", "a0"]
    text = text.replace("output", "Bot_A").replace("q,Yes.", _OBJECTS[1])
    table = frame_of(tmp_path, text, named=[Named("Bot_A.answer", "bot", "")])
    assert [row.cases[0].response for row in table.rows] == ["a1", "No.", "a0"]


def _traces(value: str) -> str:
    """Records of a tool, the third of them with this in place of an object; '' for a record without it."""
    whole = (
        '{{"inputs": {{"question": "q{0}"}}, "outputs": {{"answer": "a{0}", "context": ["c"]}}, "n": {0}}}'
    )
    lines = [whole.format(number) for number in range(5)]
    lines[2] = (
        f'{{"inputs": {{"question": "q2"}}{value and f", {chr(34)}outputs{chr(34)}: {value}"}, "n": 2}}'
    )
    return "\n".join(lines)


@pytest.mark.parametrize("value", ["null", '""', '" "', "[]", "{}", "NaN", ""])
@pytest.mark.parametrize("name", ["outputs", "Bot_A"])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_nothing_in_place_of_an_object_is_an_object_that_is_absent(
    value: str, name: str, place: int, tmp_path: Path
) -> None:
    """As the runs that failed are exported: every other response was read as blank."""
    lines = _traces(value).replace("outputs", name).splitlines()
    lines.insert(place, lines.pop(2))
    table = frame_of(tmp_path, "\n".join(lines), "a.jsonl")
    cases = {row.query: row.cases[0] for row in table.rows}
    assert [cases[f"q{n}"].response for n in range(5)] == ["a0", "a1", "", "a3", "a4"]
    assert cases["q1"].chunks == ("c",)
    assert (table.bots, table.warnings) == (("A",) if name == "Bot_A" else (f"{name}.answer",), ())


def test_a_text_in_place_of_an_object_is_the_response_of_its_record(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(_traces('"Service unavailable"'))
    ended = run_cli("a.jsonl", "--show", "--judge", "offline")
    assert "response: Service unavailable" in ended.out
    assert (
        "Column 'outputs' (E): the text in row 3 was read as 'outputs.answer', because other rows have an object "
        "there. If it is not an answer, such as an error message, clear it, or leave the row out with "
        "--where 'outputs = '."
    ) in ended.err
    ended = run_cli("a.jsonl", "--show", "--judge", "offline", "--where", "outputs = ")
    assert ("4 rows" in ended.out, "unavailable" in ended.out) == (True, False)
    (tmp_path / "a.jsonl").write_text(_traces('"Service unavailable"').replace('"answer"', '"colour"'))
    ended = run_cli("a.jsonl", "--show", "--judge", "offline")
    assert (
        "Column 'outputs' (E): only row 3 has a text there. The objects of other rows were read as blank; to read a "
        "field of them, give it a role, as in --map 'outputs.FIELD=bot'."
    ) in ended.err


def test_a_reference_or_a_query_may_be_an_object_that_is_absent(tmp_path: Path) -> None:
    lines = [f'{{"question": "q{n}", "answer": "a", "expected": {{"answer": "t{n}"}}}}' for n in range(3)]
    lines[1] = '{"question": "q1", "answer": "a", "expected": null}'
    table = frame_of(tmp_path, "\n".join(lines), "a.jsonl")
    assert [row.cases[0].reference for row in table.rows] == ["t0", None, "t2"]
    table = frame_of(tmp_path, "\n".join(lines).replace("null", '"t1"'), "a.jsonl")
    assert [row.cases[0].reference for row in table.rows] == ["t0", "t1", "t2"]
    flat = '{"question": "q", "output": "whole", "output.answer": "part"}'
    assert frame_of(tmp_path, flat, "a.jsonl").rows[0].cases[0].response == "whole"


def test_a_template_with_a_provider_names_a_bot(tmp_path: Path) -> None:
    text = "question,[atlas] Answer {{question}},Score,[birch two] Answer {{question}},Score,[1] note\nq,a,1,b,2,n\n"
    table = frame_of(tmp_path, text)
    assert table.bots == ("atlas", "birch two")
    one = frame_of(tmp_path, "question,[atlas] Answer {{question}}\nq,a\n")
    assert (one.bots, one.rows[0].cases[0].response) == (("atlas",), "a")


_PROMPTED = "question,[atlas] Answer {{question}},[birch] Answer {{question}}"


@pytest.mark.parametrize(
    ("cell", "response"),
    [
        ("[PASS] (1.00)\n\nFour weeks.\n\nPass Reason: All assertions passed", "Four weeks."),
        (
            "[PASS] (1.00, tone: 0.50)\r\n\r\nFour.\r\n\r\nWeeks.\r\n\r\nPass Reason: Both\r\n\r\npassed",
            "Four.\n\nWeeks.",
        ),
        ("[PASS] (1.00)\n\n(4.00) weeks.", "(4.00) weeks."),
        ("[FAIL] (0.50)\n\nSix weeks.\n\nFail Reason: Expected output to contain", "Six weeks."),
        ("[FAIL] (0.00)\n\nNo word.\n---\nSix weeks.\n\nFail Reason: No word.", "Six weeks."),
        ("[FAIL] (0.00)\n\nAPI error: 429\n\nFail Reason: API error: 429", ""),
        ("[FAIL] (0.00)\n\nFail Reason: No word.", ""),
        ("[ERROR] (0.00)\n\nAPI error: 429\n\nFail Reason: API error: 429", ""),
        ("[PASS] Four weeks.", "Four weeks."),
        ("[PASS] (about) four weeks.", "(about) four weeks."),
        ("[FAIL] No word.\n---\nSix weeks.", "Six weeks."),
        ("[FAIL] Six weeks.", "Six weeks."),
        ("", ""),
    ],
)
def test_the_verdict_of_promptfoo_is_no_part_of_the_response(
    cell: str, response: str, tmp_path: Path
) -> None:
    table = frame_of(tmp_path, f'{_PROMPTED}\nq,"{cell}",[PASS] a\nr,[PASS] b,[PASS] c\n')
    assert [[case.response for case in row.cases] for row in table.rows] == [[response, "a"], ["b", "c"]]
    is_error = cell and not response and "No word" not in cell
    assert [warning[:22] for warning in table.warnings] == ["1 response is empty wh"] * bool(is_error)


def test_what_only_looks_like_the_verdict_of_promptfoo_stays(tmp_path: Path) -> None:
    texts = [f"{_PROMPTED}\nq,[PASS] a,[DONE] b\nr,c,d", "question,Bot_A,Bot_B\nq,[PASS] a,[DONE] b\nr,c,d"]
    for text in texts:
        table = frame_of(tmp_path, text)
        assert [[case.response for case in row.cases] for row in table.rows] == [
            ["[PASS] a", "[DONE] b"],
            ["c", "d"],
        ]
    table = frame_of(tmp_path, f"{_PROMPTED}\n" + "q,[PASS] a,[PASS] b\n" * 50 + "r,c,[DONE] d\n")
    assert [case.response for case in table.rows[-1].cases] == ["c", "[DONE] d"]


def test_an_error_in_a_table_of_promptfoo_is_no_answer(run_cli: Run, tmp_path: Path) -> None:
    its = "Status,Score,Named Scores,Grader Reason,Comment"
    (tmp_path / "a.csv").write_text(
        f"question,[atlas] {{{{question}}}},{its},[birch] {{{{question}}}},{its}\n"
        "q,a,PASS,1.00,,,,API error: 429,ERROR,0.00,,API error: 429,\n"
        'r,"[PASS] b",PASS,1.00,,,,"No word.\n---\nd",FAIL,0.00,,No word.,\n'
    )
    table = read_table(tmp_path / "a.csv")
    assert [[case.response for case in row.cases] for row in table.rows] == [["a", ""], ["[PASS] b", "d"]]
    option = "--where '[birch] {{question}} != '"
    assert table.warnings == (
        "1 response is empty where column '[birch] {{question}}' (H) has an error in place of an answer (row 2); it "
        f"counts as an empty answer. To leave such rows out, add {option}.",
    )
    ended = run_cli("a.csv", "--show", "--judge", "offline", *shlex.split(option))
    assert (ended.code, ended.err, "1 row," in ended.out) == (0, "", True)


@pytest.mark.parametrize(
    ("text", "told", "option"),
    [
        ("answer,error\nq,a,\nr,,Timeout\ns,,E\nt,,", "'error' (C) has a text (row 3, 4); they", "--where 'error = '"),
        ("answer,error\nq,a,None\nr,,Timeout", "'error' (C) has a text (row 3); it", "--where 'error = None'"),
        ("answer,error\nq,a,\nr,,Timeout\ns,,None", "'error' (C) has a text (row 3)", ""),
        ("answer,error\nq,a,Weak\nr,,Timeout", "'error' (C) has a text (row 3)", ""),
        ("answer,error,Error\nq,a,,\nr,,Timeout,x", "'error' (C) has a text (row 3)", "--where 'error = '"),
        ("answer,level\nq,a,DEFAULT\nr,,ERROR", "'level' (C) is ERROR (row 3)", "--where 'level != ERROR'"),
        ("answer,level\nq,a,DEFAULT\nr,,ERROR\ns,,failed", "'level' (C) is ERROR or failed (row 3, 4)", ""),
        ("answer,error,level\nq,a,,\nr,,E,Error\ns,,,Error", "(D) is Error (row 4)", "--where 'level != Error'"),
        ("Bot_A,Bot_B,error\nq,a,b,\nr,a,,Timeout", "'error' (D) has a text (row 3)", "--where 'error = '"),
        ("model,answer,error\nq,a,1,\nq,b,2,\nr,a,1,\nr,b,,E\ns,a,1,\ns,b,2,", "'error' (D) has a text (row 5)",
         "--rows 1-3,6-"),
        ("answer,error\nq,a,0.5\nr,,0.25", "", ""),
        ("answer,error_rate\nq,a,\nr,,high", "", ""),
    ],
)  # fmt: skip
def test_a_response_that_is_empty_because_a_call_failed_is_told(
    text: str, told: str, option: str, run_cli: Run, tmp_path: Path
) -> None:
    """The command of the warning leaves it out."""
    (tmp_path / "a.csv").write_text(f"question,{text}")
    found = [each for each in read_table(tmp_path / "a.csv").warnings if "empty" in each and told in each]
    assert bool(found) == bool(told)
    assert all(each.endswith(f"add {option}." if option else "remove them from the file.") for each in found)
    if option:
        ended = run_cli("a.csv", "--show", "--judge", "offline", *shlex.split(option))
        assert (ended.code, "empty" in ended.err) == (0, False)


def test_only_responses_that_are_judged_are_told_to_be_empty(tmp_path: Path) -> None:
    text = "question,answer,error\nq,a,\nr,,Timeout\ns,,Timeout\n"
    for options in ({"max_rows": 1}, {"selection": Selection(rows=((2, 2),))}):
        assert not any("empty" in each for each in frame_of(tmp_path, text, **options).warnings)


def test_items_of_a_dataset_are_a_test_set() -> None:
    with pytest.raises(TableError, match="this looks like a test set"):
        read_table(FILES / "langfuse_items.jsonl")


# What public files look like


FORMS_OF_PANDAS: dict[str, Any] = {
    "records": [{"question": "q1", "answer": "a", "contexts": ["c", "d"]}, {"question": "q2", "answer": "b"}],
    "columns": {
        "question": {"0": "q1", "1": "q2"},
        "answer": {"0": "a", "1": "b"},
        "contexts": {"0": ["c", "d"], "1": None},
    },
    "index": {
        "0": {"question": "q1", "answer": "a", "contexts": ["c", "d"]},
        "1": {"question": "q2", "answer": "b", "contexts": None},
    },
    "split": {
        "columns": ["question", "answer", "contexts"],
        "index": [0, 1],
        "data": [["q1", "a", ["c", "d"]], ["q2", "b", None]],
    },
    "list": {"question": ["q1", "q2"], "answer": ["a", "b"], "contexts": [["c", "d"], []]},
}


@pytest.mark.parametrize("form", FORMS_OF_PANDAS)
def test_every_form_in_which_a_frame_is_written_as_json_is_read(tmp_path: Path, form: str) -> None:
    """Without a parameter, `to_json` writes columns; ragas' own examples are dictionaries of lists."""
    (tmp_path / "a.json").write_text(json.dumps(FORMS_OF_PANDAS[form]))
    rows = read_table(tmp_path / "a.json", bot_name="B").rows
    assert [(row.query, row.cases[0].response, row.cases[0].chunks) for row in rows] == [
        ("q1", "a", ("c", "d")),
        ("q2", "b", ()),
    ]


def test_objects_in_columns_that_a_pattern_ignores_stay_closed(rag_eval: Run, tmp_path: Path) -> None:
    rows = [["question", "answer", "input"], *(["q", "a", '{"contexts": "c"}'] for _ in range(2))]
    write_table(tmp_path / "a.csv", *rows)
    ended = rag_eval("a.csv", "--show", "--judge", "offline", "--map", "*put=ignore")
    assert "'input' (C) -> not used" in ended.out
    assert "context: no column" in ended.out


def test_an_answer_beside_a_prediction_may_be_the_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"; or, if it is the ground truth, --map answer=reference$"):
        frame_of(tmp_path, "query,answer,prediction\nq,a,b\n")
    table = frame_of(
        tmp_path, "query,answer,prediction\nq,a,b\n", named=[Named("answer", "reference", "--map")]
    )
    assert (table.bots, table.rows[0].cases[0].reference) == (("prediction",), "a")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "question,answer\nq,\"['1887', 'in 1887']\"\nr,\"['1889']\"\n"),
        (
            "a.jsonl",
            '{"question": "q", "answer": ["1887", "in 1887"]}\n{"question": "r", "answer": ["1889"]}\n',
        ),
        ("b.jsonl", '{"question": "q", "answer": [{"answer": "1887", "score": 0.9}, {"answer": "1889"}]}\n'),
    ],
)
def test_a_list_of_alternatives_in_a_column_of_responses_is_pointed_out(
    tmp_path: Path, name: str, text: str
) -> None:
    (warning,) = frame_of(tmp_path, text, name).warnings
    assert warning.startswith("Column 'answer' (B): a list of several texts in row ")
    assert warning.endswith("--map COLUMN=reference.")


@pytest.mark.parametrize("field", ["answer", "response", "content"])
def test_the_responses_of_several_bots_in_one_field_are_refused(tmp_path: Path, field: str) -> None:
    said = [{"model": name, field: text} for name, text in (("a", "Yes."), ("b", "No."))]
    with pytest.raises(TableError) as caught:
        frame_of(tmp_path, json.dumps([{"question": "q", "responses": said}]), "a.json")
    assert str(caught.value) == (
        "a.json, row 1, column 'responses' (B): contains the responses of several bots ('a', 'b'); write a record for "
        "each of them, with the query and the name of the bot"
    )
    records = [{"question": "q", "model": each["model"], "answer": each[field]} for each in said]
    assert frame_of(tmp_path, json.dumps(records), "b.json").bots == ("a", "b")
    one = [{**each, "model": "a"} for each in records]
    assert frame_of(tmp_path, json.dumps([{"question": "q", "answer": one}]), "c.json").bots == ("answer",)


@pytest.mark.parametrize(
    ("name", "text", "roles"),
    [
        (
            "a.csv",
            "questions,contexts,answers,predicted_answers\nq,c,r,a\n",
            "query, context, reference, response",
        ),
        (
            "a.csv",
            "input,output,Context Relevance,context_recall\nq,a,0.5,0.1\n",
            "query, response, not used, not used",
        ),
        (
            "a.jsonl",
            '{"question": "q", "response": {"output": "a", "tokenUsage": {"prompt": 1, "completion": 2}}}\n',
            "query, response, not used, not used",
        ),
    ],
    ids=["names in the plural", "measures of the context", "numbers about a call"],
)
def test_roles_of_public_files_are_known(name: str, text: str, roles: str, tmp_path: Path) -> None:
    table = frame_of(tmp_path, text, name)
    assert [use.role for use in table.columns] == roles.split(", ")
    assert table.warnings == ()


def test_answers_in_the_plural_may_each_be_the_reference(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="could each be the reference"):
        frame_of(tmp_path, "Question,Best Answer,Correct Answers,Incorrect Answers\nq,a,b,c\n")


# Cells that hold a structure, and rows that are joined


CHAT = '[{"role": "user", "content": "q"}, {"role": "AI", "content": "a"}, {"role": "user", "content": null}]'
NO_TEXT = "contains a structure without a text for the {}; name the field that has it with --map"


@pytest.mark.parametrize(
    ("cell", "query", "reference"),
    [
        ("plain", ("plain", False), ("plain", False)),
        (' ["a", "b"]', ("a", True), ("a", True)),
        ('["a"]', ("a", False), ("a", False)),
        ("[]", ("", False), ("", False)),
        ('["a", [["b"]]]', ('["a", [["b"]]]', False), ('["a", [["b"]]]', False)),
        ("[x] y", ("[x] y", False), ("[x] y", False)),
        (BadCell("the error value #REF!"), (BadCell("the error value #REF!"), False), None),
        (JsonText("{}"), ("", False), ("", False)),
        (JsonText('{"message": {"content": "c"}}'), ("c", False), ("c", False)),
        (JsonText('{"content": true, "text": "t"}'), ("t", False), ("t", False)),
        (JsonText("[true]"), (BadCell(NO_TEXT.format("query")), False), ("", False)),
        (JsonText('{"n": 1}'), (BadCell(NO_TEXT.format("query")), False), None),
        (JsonText('[1, "b"]'), ("1\nb", False), ("1", True)),
        (JsonText('["a", " "]'), ("a\n ", False), ("a", False)),
        (JsonText(CHAT), ("q", False), ("a", False)),
    ],
)
def test_the_text_of_a_cell_for_its_role(
    cell: Cell, query: tuple[Cell, bool], reference: tuple[Cell, bool] | None
) -> None:
    """With it, whether it is the first of several."""
    assert role_text("query", cell) == query
    if reference:
        assert role_text("reference", cell) == reference


@pytest.mark.parametrize("blank", [19, 20])
def test_a_column_of_objects_is_known_by_its_first_twenty_rows(tmp_path: Path, blank: int) -> None:
    rows = [
        ["question", "answer", "reference"],
        *[["q", "a", ""]] * blank,
        ["q", "a", '{"text": "t", "n": 1}'],
    ]
    table = read_table(write_table(tmp_path / "a.csv", *rows))
    assert ("reference.text" in [use.header for use in table.columns]) == (blank == 19)


@pytest.mark.parametrize(
    ("text", "is_list"),
    [('["a", "b"]', True), ('["a"]', False), ("a, b", False), ('["a", [["b"]]]', False), ("[a] [b]", False)],
)
def test_a_list_of_several_texts(text: str, is_list: bool) -> None:
    assert is_list_of_texts(text) is is_list


def test_a_long_table_has_no_more_bots_and_no_longer_names_than_allowed(tmp_path: Path) -> None:
    def table(*names: str) -> Path:
        rows = [["q", name, "a"] for name in names]
        return write_table(tmp_path / "a.csv", ["query", "model", "answer"], *rows)

    assert len(read_table(table(*(f"m{number}" for number in range(200)))).bots) == 200
    assert problems(table(*(f"m{number}" for number in range(201)))) == [
        "a.csv: has 201 bots, more than the 200 allowed; compare fewer"
    ]
    assert read_table(table("m" * 1000)).bots == ("m" * 1000,)
    assert problems(table("b" * 1001, "m" * 1002, "c" * 1001)) == [
        f"a.csv: the name of bot '{'m' * 40}…' has 1,002 characters, more than the 1,000 allowed; shorten it"
    ]


def test_a_passage_that_cannot_be_read_is_named_by_its_own_row(tmp_path: Path) -> None:
    rows = [["query", "passage", "retrieved_docs", "answer"], ["q", "p", "d1", "a"], ["q", "r", '["d"', ""]]
    path = write_table(tmp_path / "a.xlsx", *rows)
    assert problems(path) == [
        "a.xlsx, sheet 'Sheet', row 3, column 'retrieved_docs' (C): '[\"d\"' is not a list of document ids; expected "
        '["id", …] or id || id'
    ]
    book = openpyxl.load_workbook(path)
    book.active["B3"].value, book.active["B3"].data_type = "#REF!", "e"
    book.active["C3"].value = "d2"
    book.save(path)
    assert problems(path) == [
        "a.xlsx, sheet 'Sheet', row 3, column 'passage' (B): the error value #REF!; correct the formula or clear the "
        "cell"
    ]


def test_a_kept_column_with_a_use_of_its_own_is_that_of_the_first_bot(tmp_path: Path) -> None:
    rows = [["query", "model", "answer", "Category"], ["q", "A", "x", "c"], ["q", "B", "y", "c"]]
    table = read_table(write_table(tmp_path / "a.csv", *rows), keep=["Category", "answer"])
    (row,) = table.rows
    assert [case.columns for case in row.cases] == [{"Category": "c", "answer": "x"}] * 2


def test_a_column_cannot_name_the_bot_of_each_row_next_to_columns_of_bots(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ["query", "Bot_A", "Bot_B", "who"], ["q", "a", "b", "c"])
    assert problems(path, named=roles_of(["who=bot_name"], ["bot_name"])) == [
        "a.csv: column 'who' (D) cannot name the bot of each row (--map who=bot_name), because each of 'Bot_A' (B) and "
        "'Bot_B' (C) is the response of a bot; remove one of them"
    ]


def test_an_unreadable_cell_meets_no_condition() -> None:
    (condition,) = Selection.parse(None, None, ["a!=x"]).where
    assert condition.holds("y")
    assert not condition.holds(BadCell("the error value #REF!"))


def test_a_record_has_no_more_than_64_million_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = '{"query": "q", "answer": "a"}\n'
    path.write_text(f"{record}{record[:-1]:<64000000}\n", encoding="utf-8")
    assert problems(path) == [
        "a.jsonl, line 2: is longer than 64,000,000 characters; write one record per line"
    ]


_MOST_NAMES = ["Query", "Bot_A", *["a, b"] * 1_000, *[""] * 3_997, "Topic"]


@pytest.mark.parametrize(
    ("header", "rest", "line"),
    [
        (["Query", "Bot_A", *["x;y"] * 4999], "q,a", 1),
        (["Query", "Bot_A"], f'"q",a\nq{"," * 5_000}', 3),
        (_MOST_NAMES, "q,a", 0),
        ([*_MOST_NAMES, ""], "q,a", 1),
    ],
    ids=["another separator", "below a quoted cell", "separators in quotes", "one more"],
)
def test_a_line_has_no_more_than_5000_cells(
    header: Sequence[str], rest: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join(f'"{name}"' for name in header) + f"\n{rest}\n", encoding="utf-8")
    if line:
        assert problems(path) == [
            f"a.csv, line {line}: has more than 5,000 cells; remove the columns that are not needed, or the "
            "separators at the ends of the lines"
        ]
    else:
        assert len(read_table(path).rows) == 1


def test_a_structure_of_one_field_is_its_field(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"inputs": [{"question": "q"}], "outputs": [{"answer": "a"}]}), path)
    (case,) = read_table(path).rows[0].cases
    assert (case.query, case.response) == ("q", "a")


def test_fields_of_a_column_that_is_a_structure_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    docs = [{"title": "t", "page": {"number": 7, "tags": ["x", "y"]}}, {"title": None, "page": None}, None]
    parquet.write_table(pa.table({"query": ["q", "r", "s"], "answer": ["a", "b", "c"], "doc": docs}), path)
    table = read_table(path, keep=["doc.title", "doc.page.number", "doc.page.tags"])
    assert [case.columns for row in table.rows for case in row.cases] == [
        {"doc.title": "t", "doc.page.number": "7", "doc.page.tags": '["x", "y"]'},
        *[{"doc.title": "", "doc.page.number": "", "doc.page.tags": ""}] * 2,
    ]


# Lines on disk


def test_a_long_value_is_shared_only_for_a_while() -> None:
    """4 million characters of texts are remembered; what is shared is read back as it was given."""
    lines = Lines("a.csv", 0, shares=True)
    long, other, plain = "x" * 200, "z" * 200, "y" * 199
    texts = [long, other, long, other, plain, plain, *(f"{n:03}" * 50_000 for n in range(30)), long]
    shared = []
    for number, text in enumerate(texts):
        (value,) = lines.share("context", [(text, (text,))])
        shared.append(isinstance(value, int))
        lines.add([number, value])
    assert shared == [False, False, True, True, *[False] * 33]
    for _ in range(2):
        rows = list(lines)
        assert [number for number, _ in rows] == list(range(37))
        assert [tuple(value) for _, value in rows] == [(text,) for text in texts]
    assert rows[1][1] is rows[3][1]
    assert lines.share("context", [(long, "z")]) == [{"v": "z"}]


def test_rows_take_no_more_than_a_gigabyte_and_40_times_the_file() -> None:
    """A file of less than no bytes stands for a smaller limit, of 1,000 bytes."""
    lines = Lines("a.csv", (1_000 - 1_000_000_000) // 40)
    rest = 1_000 - sum(len(record_of(encode(["x" * length]))) for length in (500, 300))
    lines.add(["x" * 500])
    lines.add(["x" * (300 + rest)])
    with pytest.raises(
        TableError, match=r"^a.csv: takes more than 0 GB when it is read, far more than its size"
    ):
        lines.add([])


def test_a_line_can_be_read_alone() -> None:
    lines = Lines("a.csv", 0)
    for number in range(450):
        lines.add([number, "x" * number])
    assert [lines.at(number) for number in (0, 199, 200, 449)] == [
        [number, "x" * number] for number in (0, 199, 200, 449)
    ]
    assert len(lines) == 450


@pytest.mark.parametrize(
    ("header", "named", "remedy"),
    [
        (["Query", "Bot_A", "Bot_A_Rating", "Bot_A_comments"], ["Bot_A_Rating", "Bot_A_comments"], "ignore"),
        (["Query", "Bot_A", "Bot_A_tokens", "Bot_A_cost"], ["Bot_A_tokens"], "ignore"),
        (["Query", "Bot Answer", "Bot Context"], ["Bot Context"], "context"),
        (["Query", "Bot_URL", "Response"], ["Bot_URL"], "ignore"),
    ],
)
def test_a_column_about_a_bot_is_judged_as_one_only_if_somebody_says_so(
    tmp_path: Path, header: list[str], named: list[str], remedy: str
) -> None:
    cells = ["Is it here?", "It is here.", "100", "0.1"]
    path = write_table(tmp_path / "in.csv", header, cells[: len(header)])
    with pytest.raises(TableError) as caught:
        read_table(path)
    options = [f"'{each}={{}}'" if " " in each else f"{each}={{}}" for each in named]
    for option in options:
        assert f"add --map {option.format(remedy)}" in str(caught.value)
        assert f"or --map {option.format('bot')} if it does contain responses" in str(caught.value)
    roles = [Named(each, "bot", "--map") for each in named]
    assert len(read_table(path, named=roles).bots) == len(named) + (header[1] not in named)


@pytest.mark.parametrize(
    ("name", "values", "is_bot"),
    [
        ("Bot_A Pass/Fail", ["Pass", "Fail"], False),
        ("Bot_A OK?", ["yes", "no"], False),
        ("Bot_A Vergleich", ["besser", "schlechter"], False),
        ("Bot_A Bewertung", ["gut gemacht", "nicht so gut"], False),
        ("Bot_A (Stars)", ["1", "5"], False),
        ("Bot_A mini", ["yes", "no"], True),
        ("Bot_A (v2)", ["1", "5"], True),
        ("Bot_A Berlin", ["It is here.", "It is there."], True),
        ("Bot_A Berlin", ["", ""], True),
    ],
)
def test_judgements_next_to_a_bot_are_told_from_a_variant_by_their_cells(
    name: str, values: list[str], is_bot: bool, tmp_path: Path
) -> None:
    rows = [[f"Is it number {n}?", f"It is number {n}, as I was told.", values[n % 2]] for n in range(8)]
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", name], *rows)
    if is_bot:
        assert read_table(path).bots == ("A", name.removeprefix("Bot_"))
        return
    with pytest.raises(
        TableError, match="does not look like the responses of a bot, but like something about A"
    ):
        read_table(path)
    assert read_table(path, named=[Named(name, "ignore", "--map")]).bots == ("A",)


@pytest.mark.parametrize(
    ("name", "values", "is_bot"),
    [
        ("Bot_Winner", ["A", "B"], False),
        ("Bot_Comment", ["good", "bad"], False),
        ("Bot_Score", ["1", "2"], False),
        ("Bot_Baseline", ["unknown", "unknown"], True),
        ("Bot_Grader", ["yes", "no"], True),
        ("Bot_Verdict", ["Both are right, I think.", "Neither of them is right."], True),
    ],
)
def test_a_column_that_compares_bots_is_no_bot(
    name: str, values: list[str], is_bot: bool, tmp_path: Path
) -> None:
    rows = [[f"Is it {n}?", f"It is {n}, as I was told.", f"It may be {n}.", values[n % 2]] for n in range(8)]
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Bot_B", name], *rows)
    if is_bot:
        assert read_table(path).bots == ("A", "B", name.removeprefix("Bot_"))
        return
    assert problems(path) == [
        f"in.csv: column '{name}' (D) does not look like the responses of a bot, but like something about the others; "
        f"add --map {name}=ignore, or --map {name}=bot if it does contain responses"
    ]
    assert read_table(path, named=[Named(name, "bot", "--map")]).bots == ("A", "B", name.removeprefix("Bot_"))
    assert read_table(path, named=[Named(name, "ignore", "--map")]).bots == ("A", "B")


def test_variants_of_a_bot_are_bots(tmp_path: Path) -> None:
    names = ["A", "A_v2", "A_reasoning", "A_no_rating", "Context", "Rating"]
    path = write_table(
        tmp_path / "in.csv", ["Query", *(f"Bot_{name}" for name in names), "Context"], ["q", *names, "c"]
    )
    assert read_table(path).bots == tuple(names)


def test_rows_that_read_like_a_total_and_contexts_that_are_all_blank_are_pointed_out(tmp_path: Path) -> None:
    rows: list[list[object]] = [[f"What is {number}?", "It is.", "It is."] for number in range(3)]
    header = ["Query", "Ground_Truth", "Bot_A"]
    quiet = [["Count the apples.", "Three.", "Three."], ["Total of all apples?", "Three.", None]]
    assert read_table(write_table(tmp_path / "a.xlsx", header, *rows, *quiet)).warnings == ()
    for last in (
        ["Total", 4, None],
        ["Generated by a tool", None, None],
        ["Summe", None, " "],
        ["合計", None, None],
    ):
        (warning,) = read_table(write_table(tmp_path / "b.xlsx", header, *rows, last)).warnings
        assert warning == (
            "No bot has a response in row 5, whose query reads like a total or a note. This counts against each bot; "
            "delete what is not a query."
        )
    blank = [[*row, None] for row in rows]
    (warning,) = read_table(write_table(tmp_path / "c.xlsx", [*header, "Context"], *blank)).warnings
    assert warning == (
        "Column 'Context' (D) has no chunk in any row, which counts as nothing retrieved. If no context was recorded, "
        "add --map Context=ignore."
    )
    named = [Named("Context", "ignore", "--map")]
    assert read_table(tmp_path / "c.xlsx", named=named).warnings == ()
    for some in (blank[:2], [*blank, ["Why?", "It is.", "It is.", "Some."]]):
        assert read_table(write_table(tmp_path / "d.xlsx", [*header, "Context"], *some)).warnings == ()


@pytest.mark.parametrize(
    ("cell", "remark", "delimiter"),
    [
        (
            "1. It is {}.\n2. It is more.",
            "the lines of each cell are numbered 1., 2., … and were read as one chunk. If each line is a chunk, set "
            "delimiter = \\n in [context] of config.ini.",
            "\n",
        ),
        (
            "It is {}.\n---\nIt is more.",
            "each cell has lines --- and was read as one chunk. If they separate chunks, set delimiter = --- in "
            "[context] of config.ini.",
            "---",
        ),
        (
            "[Chunk 1]\nIt is {}.\n[Chunk 2]\nIt is more.",
            "lines of each cell begin with 'Chunk 1', 'Chunk 2', … and were read as one chunk. If these are chunks, "
            "put a blank line or || before each of them.",
            "",
        ),
        ("Document 1: It is {}.\nDocument 3: It is more.", "", ""),
        ("Chunk 1: It is {}.\nIt is more.", "", ""),
        ("How to:\n1. Ask {}.\n2. Wait.", "", ""),
        ("Name | Price\n---|---\nTea | {}", "", ""),
    ],
)
def test_cells_that_seem_to_join_chunks_are_pointed_out_if_all_of_them_do(
    cell: str, remark: str, delimiter: str, tmp_path: Path
) -> None:
    rows = [[f"What is {number}?", "It is.", cell.format(number)] for number in range(3)]
    header = ["Query", "Bot_A", "Context"]
    path = write_table(tmp_path / "a.csv", header, *rows)
    assert read_table(path).warnings == ((f"Column 'Context' (C): {remark}",) if remark else ())
    if delimiter:
        assert read_table(path, delimiter=delimiter).chunks == 6
    for other in ("It is.", "1. It is.\nIt is more."):
        assert (
            read_table(write_table(tmp_path / "b.csv", header, *rows, ["Why?", "It is.", other])).warnings
            == ()
        )
        assert (
            read_table(write_table(tmp_path / "b.csv", header, ["Why?", "It is.", other], *rows)).warnings
            == ()
        )


@pytest.mark.parametrize(
    ("cells", "is_told"),
    [
        (["https://a.example/b#3", "www.a.example || http://b.example", '["a.pdf", "My rules.docx"]'], True),
        (["a.pdf, b.pdf", "c.md", "d/e.html#f"], True),
        (["https://a.example/b", "https://a.example/c", "It is open. https://a.example/b"], False),
        (["It is open.", "https://a.example/b", "https://a.example/c"], False),
        (["https://a.example/b", "https://a.example/c", None], False),
        (["doc1", "doc2", "doc3"], False),
    ],
)
def test_a_context_of_links_is_pointed_out(cells: list[object], is_told: bool, tmp_path: Path) -> None:
    rows = [[f"What is {n}?", "It is.", cell] for n, cell in enumerate(cells)]
    table = read_table(write_table(tmp_path / "a.xlsx", ["Query", "Bot_A", "Context"], *rows))
    assert table.warnings == (
        (
            "Column 'Context' (C) has nothing but links or names of files, which support no statement. If the texts "
            "that were retrieved are not recorded, add --map Context=ignore.",
        )
        if is_told
        else ()
    )


def test_the_context_of_several_bots_in_one_column_is_pointed_out_once(tmp_path: Path) -> None:
    rows = [[f"What is {n // 2}?", "AB"[n % 2], f"It is {n}.", f"{n}.pdf"] for n in range(6)]
    path = write_table(tmp_path / "a.csv", ["question", "model", "answer", "context"], *rows)
    assert [warning.partition(" has ")[0] for warning in read_table(path).warnings] == [
        "Column 'context' (D)"
    ]


@pytest.mark.parametrize(
    ("row", "is_sum"),
    [
        (["Total", None, 3, 3, None], True),
        (["Summe:", 3, 3, 3, 3], True),
        (["Average score", None, 0.75, "60 %", None], True),
        (["Total of 3 and 4", 7, 7, 8, None], False),
        (["Total", None, 3, "three", None], False),
        (["Total?", None, 3, 3, None], False),
        (["How many?", None, 3, 3, None], False),
    ],
)
def test_a_row_of_totals_is_pointed_out(row: list[object], is_sum: bool, tmp_path: Path) -> None:
    header = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
    rows: list[list[object]] = [[f"What is {n}?", "It is.", "It is.", "Yes.", "It."] for n in range(3)]
    assert read_table(write_table(tmp_path / "a.xlsx", header, *rows, row)).warnings == (
        (
            "Nothing but numbers is next to the query in row 5, which reads like a total. It was read as a case of "
            "each bot; delete what is not a query.",
        )
        if is_sum
        else ()
    )
    bare = [["What is 3?", 3, 4], ["Total", 3, 3]]
    assert read_table(write_table(tmp_path / "b.xlsx", ["Query", "Bot_A", "Bot_B"], *bare)).warnings == ()


@pytest.mark.parametrize(
    ("text", "row", "queries"),
    [
        ("Query,Bot_A,Context\nWhy?,So.,It.\nQuery,Bot_A,Context\nWho?,Me.,We.\n", 3, [2, 4]),
        ("Query,Bot_A,Context\nWhy?,So.,It.\n\ufeffquery ,bot a,\nWho?,Me.,We.\n", 3, [2, 4]),
        (
            "Question,Bot,Answer\nWhy?,A,So.\nWhy?,B,No.\nQuestion,Bot,Answer\nWho?,A,I.\nWho?,B,We.\n",
            4,
            [2, 5],
        ),
        (
            "Query,Bot_A\nWhy?,So.\nQuery,Bot_B\nQuery,\nquery?,Bot_A\nWhich bot?,Bot_A\n",
            None,
            [2, 3, 4, 5, 6],
        ),
    ],
)
def test_a_header_between_tables_that_were_joined_is_no_case(
    text: str, row: int | None, queries: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "joined.csv"
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    assert [row.number for row in table.rows] == queries
    assert table.blank_rows == 0
    said = [warning for warning in table.warnings if "repeats the header" in warning]
    assert said == (
        [] if row is None else [f"1 row repeats the header and was not read as a case: row {row}."]
    )


def test_rows_with_nothing_but_a_query_are_pointed_out_where_others_have_more(tmp_path: Path) -> None:
    header = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
    rows: list[list[object]] = [
        [f"What is {number}?", "It is.", "It is.", "Yes.", "It."] for number in range(3)
    ]
    notes: list[list[object]] = [["Note: from the wiki", *[None] * 4], ["Loans", *[None] * 4]]
    (warning,) = read_table(write_table(tmp_path / "a.xlsx", header, notes[0], *rows, notes[1])).warnings
    assert warning == (
        "Nothing but a query is in row 2, 6. This counts against each bot; delete notes and headings."
    )
    unanswered = [
        ["Why?", "It is.", None, None, None],
        ["Who?", None, None, None, "It."],
        ["So?", None, "No.", None, None],
    ]
    assert read_table(write_table(tmp_path / "b.xlsx", header, *rows, *unanswered)).warnings == ()
    bare = [row[:1] + row[2:4] for row in (*rows, notes[1])]
    assert read_table(write_table(tmp_path / "c.xlsx", ["Query", "Bot_A", "Bot_B"], *bare)).warnings == ()


def test_a_bot_that_only_writes_the_ground_truth_is_pointed_out(tmp_path: Path) -> None:
    truths = ["It is a hot drink.", "A bird that sings at night.", "They close at nine o'clock."]
    rows = [[f"What about {number}?", truth, truth] for number, truth in enumerate(truths)]
    header = ["Query", "Ground_Truth", "answer"]
    (warning,) = read_table(write_table(tmp_path / "a.csv", header, *rows)).warnings
    assert warning == (
        "Column 'answer' (C) was read as the response of a bot, and is the ground truth, word for word, in every row. "
        "Unless it is meant so, add --map answer=ignore, and name the right column with --map COLUMN=bot."
    )
    for others in (
        [*rows, ["Why?", "Because of the weather.", "Because of rain."]],
        [["Which colour?", "red", "red"]] * 3,
        rows[:2],
        [["Query", "Ground_Truth", "Bot_A"], *rows],
    ):
        whole = others if others[0][0] == "Query" else [header, *others]
        found = read_table(write_table(tmp_path / "b.csv", *whole)).warnings
        assert not any("word for word" in each for each in found)


def test_samples_of_the_evaluation_harness_name_the_filtered_response(tmp_path: Path) -> None:
    lines = [
        {"doc": {"question": f"Q{n}?", "answer": "Four weeks."}, "target": "Four weeks.", "resps": [[f"R{n}"]],
         "filtered_resps": [f"R{n}"], "exact_match": 0.0}
        for n in range(3)
    ]  # fmt: skip
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    table = read_table(tmp_path / "samples.jsonl")
    assert [(row.query, row.cases[0].reference, row.cases[0].response) for row in table.rows] == [
        (f"Q{n}?", "Four weeks.", f"R{n}") for n in range(3)
    ]


def test_each_bot_has_the_context_that_stands_next_to_its_answer(tmp_path: Path) -> None:
    bots = {name: {"answer": f"It is {name}.", "contexts": [f"Seen by {name}."]} for name in "AB"}
    (tmp_path / "a.jsonl").write_text(json.dumps({"query": "What?", "bots": bots}) + "\n")
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "a.jsonl")
    assert "context" not in str(caught.value), "only the responses are in doubt"
    names = ["bots.A.answer", "bots.B.answer"]
    for shared in ([], [Named("bots.A.contexts", "context", "--map")]):
        table = read_table(
            tmp_path / "a.jsonl", named=[*(Named(each, "bot", "--map") for each in names), *shared]
        )
        (row,) = table.rows
        assert [(case.bot, case.response, case.chunks) for case in row.cases] == [
            (f"bots.{name}.answer", f"It is {name}.", (f"Seen by {name}.",)) for name in "AB"
        ]


def test_a_context_next_to_all_answers_is_of_all_of_them(tmp_path: Path) -> None:
    record = {"query": "What?", "out": {"gpt4": "One.", "claude": "Two.", "contexts": ["Three."]}}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    named = [Named(f"out.{name}", "bot", "--map") for name in ("gpt4", "claude")]
    (row,) = read_table(tmp_path / "a.jsonl", named=named).rows
    assert [case.chunks for case in row.cases] == [("Three.",), ("Three.",)]


@pytest.mark.parametrize(
    "header", ["A_Human_Faithfulness", "Human_A_Faithfulness", "human.faithfulness", "faithfulness (human)"]
)
def test_a_label_whose_name_is_in_another_order_is_pointed_out(header: str, tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "a.csv", ["Query", "Bot_A", "Context", header], ["What?", "It is.", "It is.", 1]
    )
    (warning,) = read_table(path).warnings
    assert (
        f"Column '{header}' (D) looks like a human label and was not used. To use it, rename it to" in warning
    )
    assert "Human_faithfulness, or Human_faithfulness_<bot>; to silence this, add --map" in warning
    assert read_table(path, named=[Named(header, "ignore", "--map")]).warnings == ()

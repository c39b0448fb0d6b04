"""The commands `rag-eval rubric check` and `rag-eval rubric align`."""

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import Run, is_excerpt

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$",
    (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def blocks(language: str) -> list[str]:
    return [body for name, body in BLOCKS if name == language]


@pytest.fixture(autouse=True)
def _files_of_the_documentation(tmp_path: Path) -> None:
    rubrics = [block for block in blocks("yaml") if "rubric_id" in block]
    contents = [*rubrics, *blocks("csv")]
    for name, content in zip(["support_answer.yaml", "person.csv", "judge.csv"], contents, strict=True):
        (tmp_path / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.partition("\n")[0])
def test_the_commands_of_the_documentation_print_what_it_says(rag_eval: Run, block: str) -> None:
    command, _, printed = block.partition("\n")
    ended = rag_eval(*command.removeprefix("$ rag-eval ").split())
    assert (ended.code, ended.err) == (0, "")
    assert is_excerpt(printed, ended.out)


def test_an_output_that_was_shortened_is_compared_line_by_line() -> None:
    printed = "a\nb\nc\n"
    assert all(is_excerpt(shown, printed) for shown in (printed, "…\nb\nc\n", "a\n…\nc\n", "a\n…\n"))
    assert not any(is_excerpt(shown, printed) for shown in ("a\nc\n", "a\nb\n", "a\n…\nb\nc\n", "…\nC\n"))


def test_verdicts_that_only_one_rater_gave_are_told(rag_eval: Run, tmp_path: Path) -> None:
    """They are in no line of a criterion, but in the overall verdict."""
    (tmp_path / "a.csv").write_text("id,grounded,direct,disclaimer\n1,yes,yes,no\n2,yes,no,\n3,no,no,yes\n")
    (tmp_path / "b.csv").write_text("id,grounded,direct,disclaimer\n1,yes,yes,\n2,yes,no,yes\n3,no,no,yes\n")
    ended = rag_eval("rubric", "align", "a.csv", "b.csv", "--rubric", "support_answer.yaml")
    assert ended.err == (
        "rag-eval: disclaimer: 2 responses with a verdict of one rater only; not in its line, but in Overall. Fill in "
        "the blank cells if the criterion applies.\n"
    )
    assert re.search(r"^disclaimer +1 ", ended.out, re.MULTILINE)


def test_check_prints_the_rubric_of_the_documentation_as_it_reads_it(rag_eval: Run) -> None:
    ended = rag_eval("rubric", "check", "support_answer.yaml")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "Rubric support_answer: 1 mandatory and 2 cumulative criteria\n"
        "It passes when every mandatory criterion passes and at least 1 of 2 cumulative ones pass.\n"
        "Name of its schema: support_answer\n"
        "  grounded    mandatory   Every claim is supported by the passages\n"
        "  direct      cumulative  The first sentence answers the question\n"
        "  disclaimer  cumulative  The answer says that it is not legal advice (only where Category is 'legal')\n"
    )


def test_a_rubric_of_one_kind_says_only_what_it_asks_for(rag_eval: Run, tmp_path: Path) -> None:
    metric = '{"id": "M", "rubric": "a\\nb", "mandatory": true}'
    text = f'{{"rubric_id": "r", "passing_score_threshold": 0, "metrics": [{metric}]}}'
    (tmp_path / "r.json").write_text(text)
    assert "It passes when every mandatory criterion passes.\n" in rag_eval("rubric", "check", "r.json").out
    (tmp_path / "r.json").write_text(text.replace("true", "false"))
    ended = rag_eval("rubric", "check", "r.json")
    assert "It passes when at least 0 of 1 cumulative ones pass.\n" in ended.out
    assert ended.out.endswith("  M  cumulative  a b\n")


def test_without_a_reader_of_yaml_the_message_says_how_to_install_one(
    rag_eval: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    ended = rag_eval("rubric", "check", "support_answer.yaml")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "support_answer.yaml: reading YAML needs PyYAML; install it with pip install '.[rubrics]'"
        in ended.err
    )
    assert "or write the rubric as JSON" in ended.err


def test_raters_that_always_agree_or_never_differ_get_no_made_up_numbers(
    rag_eval: Run, tmp_path: Path
) -> None:
    (tmp_path / "person.csv").write_text("grounded,direct,disclaimer\nyes,yes,\nyes,no,\n")
    ended = rag_eval("rubric", "align", "person.csv", "person.csv", "--rubric", "support_answer.yaml")
    lines = {line.split()[0]: line.split()[1:5] for line in ended.out.splitlines()[4:]}
    assert lines == {
        "Overall": ["2", "100.0%", "1.00", "–"],
        "grounded": ["2", "100.0%", "–", "–"],
        "direct": ["2", "100.0%", "1.00", "–"],
        "disclaimer": ["0", "–", "–", "–"],
    }


def test_many_ids_on_one_side_are_counted(rag_eval: Run, tmp_path: Path) -> None:
    rows = "".join(f"x{n},yes,yes,\n" for n in range(25))
    with (tmp_path / "person.csv").open("a") as file:
        file.write(rows)
    ended = rag_eval("rubric", "align", "person.csv", "judge.csv", "--rubric", "support_answer.yaml")
    assert ended.code == 0
    assert "person.csv: left out because the other file does not have them: x0, x1, " in ended.err
    assert "x9, … (25 in all)" in ended.err


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        ("rubric check nix.yaml", [r"nix\.yaml: there is no such rubric file"]),
        ("rubric check person.csv", [r"person\.csv: unknown kind of rubric file"]),
        ("rubric check", ["Missing argument 'FILE'"]),
        ("rubric chek r.json", ["No such command 'chek'"]),
        ("rubric align person.csv judge.csv", ["Missing option '--rubric'"]),
        (
            "rubric align person.csv nix.csv --rubric support_answer.yaml",
            [r"nix\.csv: there is no such file"],
        ),
        (
            "rubric align bad.csv bad.csv --rubric support_answer.yaml",
            [r"bad\.csv, row 2, column 'grounded' \(B\): '\\x1b\[31mx' is not a label; expected yes or no"]
            * 2,
        ),
    ],
)
def test_an_input_error_is_a_line_for_each_problem_and_code_2(
    rag_eval: Run, tmp_path: Path, words: str, messages: list[str]
) -> None:
    """And no escape sequence of the data reaches the terminal."""
    (tmp_path / "bad.csv").write_text("id,grounded,direct,disclaimer\nq1,\x1b[31mx,no,\n")
    ended = rag_eval(*words.split())
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert len(lines) == len(messages)
    for line, message in zip(lines, messages, strict=True):
        assert re.match(f"rag-eval: {message}", line)
    assert "\x1b" not in ended.err


def test_criteria_cannot_steer_the_terminal(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        'rubric_id: r\npassing_score_threshold: 0\nmetrics: [{id: a, rubric: "x \\e[31m y"}]\n'
    )
    ended = rag_eval("rubric", "check", "r.yaml")
    assert (ended.code, "\x1b" in ended.out) == (0, False)
    assert "x \\x1b[31m y" in ended.out


# --- the same files as every other command --------------------------------------------------------------------------


def test_columns_of_ratings_can_be_named_and_rows_selected(rag_eval: Run, tmp_path: Path) -> None:
    words = ("rubric", "align", "person.csv", "judge.csv", "--rubric", "support_answer.yaml")
    table = rag_eval(*words).out.splitlines()[3:]
    lines = (tmp_path / "person.csv").read_text().replace("grounded", "Belegt?").splitlines()
    records = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    nested = [{"Nr": each.pop("id"), "note": {"by": "A"}, "urteil": each} for each in records]
    (tmp_path / "person.jsonl").write_text("".join(json.dumps(each) + "\n" for each in nested))
    mapped = [f"{path}={role}" for path, role in (("Nr", "id"), ("urteil.Belegt?", "grounded"))]
    mapped += [f"urteil.{name}={name}" for name in ("direct", "disclaimer")]
    again = ("rubric", "align", "person.jsonl", "judge.csv", "--rubric", "support_answer.yaml")
    lacking = "has no column for the criteria grounded, direct, disclaimer; rename one, or add --map COLUMN=grounded"
    assert lacking in rag_eval(*again).err
    given = [word for each in mapped for word in ("--map", each)]
    ended = rag_eval(*again, *given)
    assert ended.out.splitlines()[3:] == table
    assert "'Nr' (A) -> id, 'urteil.Belegt?' (C) -> grounded" in ended.out
    some = rag_eval(*again, *given, "--where", "urteil.direct = no")
    assert [line.split()[:2] for line in some.out.splitlines()[4:]] == [
        ["Overall", "2"],
        ["grounded", "2"],
        ["direct", "2"],
        ["disclaimer", "2"],
    ]
    assert (some.code, some.err) == (0, "")
    assert "selected: urteil.direct = no" in some.out


def test_rows_are_selected_by_id_alone(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("grounded,direct,disclaimer\nyes,yes,\nyes,no,\n")
    words = ("rubric", "align", "a.csv", "a.csv", "--rubric", "support_answer.yaml")
    assert rag_eval(*words).code == 0
    ended = rag_eval(*words, "--rows", "2")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "a.csv: has no column 'id', which --where, --rows and --random-rows need to pair the rows"
        in ended.err
    )


def test_verdicts_may_be_written_as_data_frames_write_them(rag_eval: Run, tmp_path: Path) -> None:
    """A column of whole numbers with a missing one is 1.0 and 0.0."""
    (tmp_path / "a.csv").write_text("id,grounded,direct,disclaimer\n1,1.0,0.0,\n2,1.0,1.0,1.0\n")
    (tmp_path / "b.jsonl").write_text(
        '{"id": 1, "grounded": 1.0, "direct": 0.0, "disclaimer": null}\n'
        '{"id": 2, "grounded": true, "direct": 1, "disclaimer": 1.0}\n'
    )
    ended = rag_eval("rubric", "align", "a.csv", "b.jsonl", "--rubric", "support_answer.yaml")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[4].split()[:3] == ["Overall", "2", "100.0%"]

"""The command `rag-eval retrieval`, from arguments to what is printed, written and returned."""

import json
import re
import shlex
from pathlib import Path

import pytest
from conftest import Ended, Run
from openpyxl import load_workbook

ROOT = Path(__file__).parent.parent
RESULTS = 'qid\tdoc_ids\n01\t["faq::chunk-0", "terms::chunk-4"]\nz\tfaq\n'
REFERENCES = '{"qid": "01", "gold_docs": ["faq"]}\n{"qid": "02", "gold_docs": "faq"}\n'


@pytest.fixture(autouse=True)
def _results_and_references(tmp_path: Path) -> None:
    (tmp_path / "results.tsv").write_text(RESULTS, encoding="utf-8")
    (tmp_path / "references.jsonl").write_text(REFERENCES, encoding="utf-8")


def test_the_example_of_the_documentation_prints_what_it_says(rag_eval: Run, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text\n\$ rag-eval (.*?)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    words, printed = block
    assert rag_eval(*shlex.split(words)) == Ended(0, printed, "")
    assert load_workbook(tmp_path / "scores.xlsx").sheetnames == ["Retrieval", "Summary"]


def test_the_options_of_older_scripts_are_taken(rag_eval: Run, run_cli: Run) -> None:
    """--results and --evaluator say what is the argument and the default here; the script has the command, too."""
    expected = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    older = (
        *("retrieval", "--evaluator", "ContextRecall", "--results", "results.tsv"),
        *("--reference", "references.jsonl"),
    )
    assert expected.code == 0
    assert "Hit Rate@10        0.5000        2\n" in expected.out
    assert rag_eval(*older) == run_cli(*older) == expected


def test_without_output_nothing_is_written(rag_eval: Run, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert (ended.code, ended.err) == (0, "")
    assert "Scores:" not in ended.out
    assert set(tmp_path.iterdir()) == before


def test_the_ranks_can_be_chosen(rag_eval: Run, tmp_path: Path) -> None:
    ended = rag_eval(
        *("retrieval", "results.tsv", "--reference", "references.jsonl", "--k", "3, 1"), "-o", "s.jsonl"
    )
    assert [line.split()[1] for line in ended.out.splitlines() if "Recall@" in line] == [
        "Recall@1",
        "Recall@3",
    ]
    line = json.loads((tmp_path / "s.jsonl").read_text().splitlines()[0])
    assert (line["qid"], line["precision_3"]) == ("01", pytest.approx(1 / 3))


def test_without_any_gold_there_is_no_mean_but_a_count(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "references.jsonl").write_text('{"qid": "01", "gold_docs": []}\n')
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert ended.code == 0
    assert re.search(r"^Doc Recall +– +0$", ended.out, re.MULTILINE)
    assert "Not applicable, without gold documents: 1 (01)" in ended.out


def test_many_query_ids_are_only_counted(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "results.tsv").write_text("qid\tdoc_ids\n" + "".join(f"x{n}\ta\n" for n in range(1234)))
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert (
        "Results without a reference, left out: 1,234 (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, …)"
        in ended.out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("retrieval results.tsv", "Missing option '--reference'"),
        (
            "retrieval --reference references.jsonl",
            r"Missing argument 'RESULTS'.* \(see .*rag-eval retrieval --help\)$",
        ),
        (
            "retrieval results.tsv --results other.tsv --reference references.jsonl",
            "RESULTS is given twice: results.tsv and --results other.tsv; give one",
        ),
        (
            "retrieval results.tsv --reference references.jsonl --evaluator Edit",
            "'Edit' is not 'ContextRecall'",
        ),
        ("retrieval nix.tsv --reference references.jsonl", r"nix\.tsv: cannot be read: No such file"),
        (
            "retrieval results.tsv --reference references.jsonl --k 5,x",
            "'5,x' is not a list of ranks; expected",
        ),
        ("retrieval results.tsv --reference references.jsonl --k 0", "'0' is not a list of ranks; expected"),
        ("retrieval results.tsv --reference references.jsonl --k ²", "'²' is not a list of ranks; expected"),
        ("retrieval results.tsv --reference references.jsonl -o s.txt", r"s\.txt: scores are written to"),
        ("retrieval results.tsv --reference references.jsonl -o results.tsv", r"scores are written to"),
        ("retrieval results.tsv --reference references.jsonl -o references.jsonl", "would replace an input"),
        ("retrieval references.jsonl --reference references.jsonl", r"has none of the columns doc_ids"),
    ],
)
def test_an_input_error_is_one_line_and_code_2(rag_eval: Run, words: str, message: str) -> None:
    ended = rag_eval(*words.split())
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert re.match(f"rag-eval: .*{message}", line)


def test_every_bad_cell_is_a_line(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "results.tsv").write_text("qid\tdoc_ids\n01\ta b\n02\tnan\n")
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl", "-o", "s.xlsx")
    assert ended.code == 2
    assert [line.split(":")[1] for line in ended.err.splitlines()] == [
        " results.tsv, line 2, column 'doc_ids'",
        " results.tsv, line 3, column 'doc_ids'",
    ]
    assert not (tmp_path / "s.xlsx").exists()


def test_an_output_that_cannot_be_written_is_code_5(rag_eval: Run) -> None:
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl", "-o", "results.tsv/s.csv")
    assert ended.code == 5
    assert len(ended.err.splitlines()) == 1


def test_the_folder_of_the_output_is_made(rag_eval: Run, tmp_path: Path) -> None:
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl", "-o", "new/folder/s.csv")
    assert ended.code == 0
    assert (tmp_path / "new" / "folder" / "s.csv").exists()


def test_r75_ids_cannot_steer_the_terminal(rag_eval: Run, tmp_path: Path) -> None:
    """Direction characters in an id, and escape sequences in a header, are shown and have no effect."""
    (tmp_path / "results.tsv").write_text("qid\tdoc_ids\nz\u202e9\tfaq\n", encoding="utf-8")
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert re.search(r"left out: 1 \(z\\.202e9\)", ended.out)
    (tmp_path / "results.tsv").write_text("qid\t\x1b[31mdocs\n1\tfaq\n")
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert "\\x1b[31mdocs" in ended.err
    assert "\x1b" not in ended.err

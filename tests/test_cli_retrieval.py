"""The command `rag-eval retrieval`, from arguments to what is printed, written and returned."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Ended, Run, is_excerpt
from files import write_sheets
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
    ended = rag_eval(*shlex.split(words))
    assert (ended.code, ended.err) == (0, "")
    assert is_excerpt(printed, ended.out)
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
    (tmp_path / "results.tsv").write_text(
        "qid\tdoc_ids\n01\ta\n" + "".join(f"x{n}\ta\n" for n in range(1234))
    )
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
        ("retrieval nix.tsv --reference references.jsonl", r"nix\.tsv: there is no such file"),
        (
            "retrieval results.tsv --reference references.jsonl --k 5,x",
            "'5,x' is not a list of ranks; expected",
        ),
        ("retrieval results.tsv --reference references.jsonl --k 0", "'0' is not a list of ranks; expected"),
        ("retrieval results.tsv --reference references.jsonl --k ²", "'²' is not a list of ranks; expected"),
        ("retrieval results.tsv --reference references.jsonl -o s.txt", r"s\.txt: scores need a file name"),
        ("retrieval results.tsv --reference references.jsonl -o results.tsv", r"scores need a file name"),
        (
            "retrieval results.tsv --reference references.jsonl -o references.jsonl",
            r"references\.jsonl: is an input; choose another name",
        ),
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
        " results.tsv, row 2, column 'doc_ids' (B)",
        " results.tsv, row 3, column 'doc_ids' (B)",
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


def test_ids_cannot_steer_the_terminal(rag_eval: Run, tmp_path: Path) -> None:
    """Direction characters in an id, and escape sequences in a header, are shown and have no effect."""
    (tmp_path / "results.tsv").write_text("qid\tdoc_ids\n01\tfaq\nz\u202e9\tfaq\n", encoding="utf-8")
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert re.search(r"left out: 1 \(z\\.202e9\)", ended.out)
    (tmp_path / "results.tsv").write_text("qid\t\x1b[31mdocs\n1\tfaq\n")
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl")
    assert "\\x1b[31mdocs" in ended.err
    assert "\x1b" not in ended.err


# --- the same files as every other command --------------------------------------------------------------------------


def measures(ended: Ended) -> list[str]:
    assert ended.code == 0, ended.err
    return [line for line in ended.out.splitlines() if "->" not in line]


def test_columns_with_other_names_and_nested_ones_are_named(rag_eval: Run, tmp_path: Path) -> None:
    expected = measures(rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl"))
    (tmp_path / "r.csv").write_bytes("Frage-Nr;gefunden für\n01;faq || terms\nz;faq\n".encode("cp1252"))
    (tmp_path / "g.jsonl").write_text(
        '{"meta": {"key": "01"}, "want": {"ids": ["faq"]}}\n{"meta": {"key": "02"}, "want": {"ids": "faq"}}\n'
    )
    names = ("Frage-Nr=id", "meta.key=id", "gefunden für=retrieved_docs", "want.ids=gold_docs")
    one = [word for name in (names[0], *names[2:]) for word in ("--map", name)]
    ended = rag_eval("retrieval", "r.csv", "--reference", "g.jsonl", *one)
    assert ended.code == 2
    assert "g.jsonl: has none of the columns qid" in ended.err
    assert "--map COLUMN=id (found: 'meta.key' (A), 'want.ids' (B))" in ended.err
    assert (
        measures(rag_eval("retrieval", "r.csv", "--reference", "g.jsonl", *one, "--map", names[1]))
        == expected
    )
    (tmp_path / "g.jsonl").write_text(
        '{"Frage Nr": "01", "want": {"ids": ["faq"]}}\n{"Frage Nr": "02", "want": {"ids": "faq"}}\n'
    )
    ended = rag_eval("retrieval", "r.csv", "--reference", "g.jsonl", *one)
    assert measures(ended) == expected
    assert ended.out.splitlines()[:2] == [
        "r.csv (separated by semicolons, Windows-1252): 'Frage-Nr' (A) -> id of the query, "
        "'gefunden für' (B) -> retrieved documents",
        "g.jsonl (JSON Lines): 'Frage Nr' (A) -> id of the query, 'want.ids' (B) -> gold documents",
    ]
    assert "read as Windows-1252" in ended.err


def test_two_columns_of_one_file_cannot_have_one_role(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,b,retrieved_docs\n1,2,x\n")
    (tmp_path / "g.csv").write_text("b,gold_docs\n2,x\n")
    ended = rag_eval("retrieval", "r.csv", "--reference", "g.csv", "--map", "a=id", "--map", "b=id")
    assert ended.code == 2
    assert "r.csv: the columns 'a' (A) and 'b' (B) mean the same; keep one of them" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--map nix=id", r"--map nix=id: 'nix' is not a column with ids or verdicts there; the columns are 'qid'"),
        ("--map doc_id=gold_docs", r".*did you mean 'doc_ids'\?$"),
        ("--map doc_ids=query", r"--map: 'query' is not a role; the roles are 'id', 'retrieved_docs', 'gold_docs'$"),
        ("--where colour=red", r"references\.jsonl: --where: 'colour' is not a column"),
        ("--rows 7-9", r"references\.jsonl: no row is selected by rows 7-9; check --where, --rows and"),
        ("--sheet S", r"--sheet S: none of the files has sheets; leave it out$"),
        ("--format csv", r"--format csv is for standard input, which is called '-'; leave it out$"),
        ("--encoding nix", r"--encoding: 'nix' is not a known encoding"),
    ],
)  # fmt: skip
def test_what_is_asked_for_and_not_there_is_an_error(rag_eval: Run, words: str, message: str) -> None:
    ended = rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl", *words.split())
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert re.match(f"rag-eval: {message}", line)


def test_conditions_select_references_and_the_counts_say_so(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("qid,gold_docs,lang\n01,faq,en\n02,faq,de\n03,faq,de\n")
    words = ("retrieval", "results.tsv", "--reference", "g.csv", "--where", "lang = de", "--rows", "-3")
    ended = rag_eval(*words, "-o", "s.xlsx")
    assert ended.code == 0
    assert ended.out.splitlines()[1].endswith("-> gold documents; selected: lang = de; then rows 1-3")
    assert "References without a result, scored as nothing retrieved: 1 (02)" in ended.out
    assert "Results without a selected reference, left out: 2 (01, z)" in ended.out
    rows = load_workbook(tmp_path / "s.xlsx")["Summary"].iter_rows(values_only=True)
    assert ("Selection of references", "lang = de; then rows 1-3") in [(row[0], row[3]) for row in rows]
    chosen = rag_eval("retrieval", "results.tsv", "--reference", "g.csv", "--random-rows", "1")
    assert "; selected: 1 random row\n" in chosen.out
    assert chosen == rag_eval("retrieval", "results.tsv", "--reference", "g.csv", "--random-rows", "1")


def test_one_of_the_files_may_come_from_standard_input(rag_eval: Run, tmp_path: Path) -> None:
    expected = measures(rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl"))
    command = (sys.executable, "-m", "rag_eval", "retrieval", "-", "--reference", "references.jsonl")
    piped = subprocess.run(
        [*command, "--format", "tsv"],
        cwd=tmp_path,
        input=RESULTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert measures(Ended(piped.returncode, piped.stdout, piped.stderr)) == expected
    assert rag_eval("retrieval", "-", "--reference", "-", "--format", "tsv").err == (
        "rag-eval: -: only one of the files can be standard input; name the other\n"
    )
    assert "name the type of the file with --format" in rag_eval("retrieval", "-", "--reference", "g.csv").err


def test_two_sheets_of_a_workbook_are_results_and_references(rag_eval: Run, tmp_path: Path) -> None:
    table = [["qid", "doc_ids"], ["01", '["faq::chunk-0", "terms::chunk-4"]'], ["z", "faq"]]
    write_sheets(tmp_path / "r.xlsx", {"Sheet": table, "Notes": [["nothing"]]})
    expected = measures(rag_eval("retrieval", "results.tsv", "--reference", "references.jsonl"))
    ended = rag_eval("retrieval", "r.xlsx", "--reference", "references.jsonl")
    assert measures(ended) == expected
    assert "Sheet 'Sheet' was read, the first of several; not read: 'Notes' (see --sheet)." in ended.err
    assert rag_eval("retrieval", "r.xlsx", "--reference", "references.jsonl", "--sheet", "sheet").err == ""

"""What the documents say is so: commands run, examples work, links lead somewhere, options and codes are listed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Run
from in_process import ObjectJudge, run

from rag_eval.cli.run import command
from rag_eval.configuration import load_settings
from rag_eval.errors import ExitCode
from rag_eval.records import Case

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    missing = [t for t in targets if not t.startswith("http") and not (document.parent / t).exists()]
    assert missing == []


def test_every_option_stands_in_the_readme() -> None:
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert {name for name in options if name not in README} == {"--help"} & options


def test_every_exit_code_stands_in_the_readme() -> None:
    section = README.partition("### Exit codes")[2].partition("Where several")[0]
    listed = {int(number) for number in re.findall(r"\b(\d+)\b", section)}
    assert listed == set(ExitCode)


def test_the_ini_example_of_the_readme_is_a_valid_configuration(tmp_path: Path) -> None:
    (example,) = blocks(README, "ini")
    (tmp_path / "config.ini").write_text(example)
    settings = load_settings(None, {}, {}, tmp_path).settings
    assert (settings.judge.provider, settings.openai.model) == ("openai", "llama3.1")


def test_the_input_example_of_the_readme_is_understood(run_cli: Run, tmp_path: Path) -> None:
    """The Markdown table, as a CSV."""
    table = README.partition("## The input\n\n")[2].partition("\n\n")[0].splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (table[0], *table[2:])]
    cells = [",".join(f'"{cell.strip()}"'.replace("\\|", "|") for cell in row) for row in rows]
    (tmp_path / "in.csv").write_text("\n".join(cells), encoding="utf-8")
    ended = run_cli("in.csv", "--judge", "offline")
    assert ended.code == 0
    assert "2 bots (GPT4, Claude), 2 context chunks" in ended.out


def test_the_example_metric_of_the_contributing_guide_works() -> None:
    (example,) = blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), "python")
    namespace: dict[str, object] = {}
    source = re.sub(r"^ {3}", "", example, flags=re.MULTILINE)
    exec(compile(source, "CONTRIBUTING.md", "exec"), namespace)  # noqa: S102 - the documented example itself
    metric = namespace["PoliteAnswer"]()  # type: ignore[operator]
    judge = ObjectJudge(lambda prompt: '{"reason": "thanks", "polite": true}')
    (score,) = run([metric.measure(Case(2, "A", "q?", "Thank you.", None, None))], judge)
    assert (score.value, score.evidence[0].verdict) == (1.0, "polite")


def test_the_python_example_of_the_readme_runs() -> None:
    (example,) = blocks(README, "python")
    ended = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=True, cwd=ROOT
    )
    lines = {line.split()[0]: line.split()[2] for line in ended.stdout.splitlines()[2:]}
    assert lines == {"Atlas": "20", "Birch": "20"}


@pytest.mark.parametrize("entry", [["-m", "rag_eval"], [str(ROOT / "rag_eval_standalone.py")]])
def test_the_program_starts_as_a_script_and_as_a_module(entry: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, *entry, "--version"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout.split()[0]) == (0, "rag-eval,")


def test_the_commands_of_the_readme_are_those_that_the_makefile_and_ci_run() -> None:
    """A command of the README that nothing runs would rot."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert f"make {target}" in ci
    for words in (
        "-m venv",
        "pip install --quiet .",
        "rag_eval_standalone.py sample_rag_input.xlsx",
        "requirements.txt",
    ):
        assert words in ci


def test_the_table_of_requirements_is_what_the_tests_name() -> None:
    """Every number stands in docs/reliability.md: with the tests that name it, or with why there is none."""
    named = set()
    for path in (ROOT / "tests").glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        named |= {f"R-{number}" for number in re.findall(r"def test_\w*?_?r(\d+)_", text)}
    table = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").partition("## Every number")[2]
    listed = set(re.findall(r"\b([RJ]-\d+)\b", table))
    assert named <= listed
    first, last = (int(number) for number in re.findall(r"R-(\d+) to R-(\d+)", table)[0])
    covered = listed | {f"R-{number}" for number in range(first, last + 1)}
    assert {f"R-{number}" for number in range(1, 125)} <= covered

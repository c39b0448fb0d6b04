"""The first steps: files to begin with, and completion in the shell."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click import Context
from conftest import Ended, Run
from forking import Forker
from openpyxl import load_workbook

from rag_eval import cli

ROOT = Path(__file__).parent.parent
COMMANDS = (ROOT / "docs" / "cli.md").read_text("utf-8")
EXAMPLE = (ROOT / "rag_eval" / "cli" / "config.ini.example").read_bytes()


def commands(ended: Ended) -> list[list[str]]:
    """The arguments of the commands that were printed, as a shell reads them."""
    lines = re.findall(r"^  (rag-eval .*)$", ended.out, re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


def test_the_example_is_part_of_what_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "config.ini.example" in project["tool"]["setuptools"]["package-data"]["rag_eval.cli"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_config_ini_is_the_example_and_for_its_owner_alone(rag_eval: Run, tmp_path: Path) -> None:
    """Whatever the umask leaves open."""
    before = os.umask(0)
    try:
        assert rag_eval("init").code == 0
    finally:
        os.umask(before)
    assert (tmp_path / "config.ini").read_bytes() == EXAMPLE
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("config.ini", "answers.xlsx")]
    assert modes == [0o600, 0o666]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers.xlsx", "config.ini"]


@pytest.mark.parametrize("folder", [[], ["my shop/2024"]])
def test_the_commands_that_are_printed_run(rag_eval: Run, tmp_path: Path, folder: list[str]) -> None:
    """The first gives a report; the last finds config.ini, in which nobody has set anything yet."""
    ended = rag_eval("init", *folder)
    assert (ended.code, ended.err) == (0, "")
    report, show, doctor = commands(ended)
    shown = rag_eval(*show)
    assert (shown.code, shown.out.endswith("Nothing was judged.\n")) == (0, True)
    evaluated = rag_eval(*report)
    assert (evaluated.code, "2 rows, 2 bots (A, B), 4 context chunks" in evaluated.out) == (0, True)
    assert (tmp_path.joinpath(*folder) / "answers_report.xlsx").exists()
    checked = rag_eval(*doctor)
    assert (checked.code, checked.out.count("problem")) == (2, 1)
    assert "credentials not found" in checked.out
    assert "config.ini was read" in checked.out


@pytest.mark.parametrize(
    ("started", "printed"),
    [
        ([str(ROOT / "rag_eval_standalone.py")], [sys.executable, str(ROOT / "rag_eval_standalone.py")]),
        (["-m", "rag_eval"], [sys.executable, "-m", "rag_eval"]),
    ],
)
def test_the_commands_that_are_printed_begin_as_the_one_that_was_used(
    tmp_path: Path, started: list[str], printed: list[str]
) -> None:
    """By the script or the module, with a Python that the shell does not find by a short name."""

    def printed_with(path: str) -> str:
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, *started, "init"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    lines = re.findall(r"^  (.*)$", printed_with(""), re.MULTILINE)
    report, show, doctor = map(shlex.split, lines)
    assert (report, doctor) == ([*printed, "answers.xlsx", "--judge", "offline"], [*printed, "doctor"])
    assert show == [*printed, "answers.xlsx", "--show"]
    (tmp_path / "answers.xlsx").unlink()
    (tmp_path / "config.ini").unlink()
    again = printed_with(str(Path(sys.executable).parent))
    assert f"\n  {shlex.join(['python', *printed[1:]])} answers.xlsx" in again


def test_the_template_is_filled_in_and_explained(rag_eval: Run, tmp_path: Path) -> None:
    rag_eval("init")
    book = load_workbook(tmp_path / "answers.xlsx")
    assert (book.properties.title, str(book.properties.created)[:10]) == ("Input for RAG Eval", "2025-01-01")
    sheet = book.worksheets[0]
    header, *rows = sheet.iter_rows()
    assert [cell.value for cell in header] == ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
    assert all(cell.comment and cell.font.bold for cell in header)
    assert len(rows) == 2
    assert all(cell.value and cell.alignment.wrap_text for row in rows for cell in row)
    assert sheet.freeze_panes == "B2"


@pytest.mark.parametrize("existing", [["config.ini"], ["answers.xlsx"], ["config.ini", "answers.xlsx"]])
@pytest.mark.parametrize("is_link", [False, True])
def test_nothing_is_overwritten(rag_eval: Run, tmp_path: Path, existing: list[str], is_link: bool) -> None:
    """A link that leads nowhere would be written through."""
    for name in existing:
        if is_link:
            (tmp_path / name).symlink_to(tmp_path / "nowhere")
        else:
            (tmp_path / name).write_text("mine")
    ended = rag_eval("init")
    assert (ended.code, ended.out) == (2, "")
    assert sorted(line.split(": ")[1] for line in ended.err.splitlines()) == sorted(existing)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(existing)
    assert is_link or {(tmp_path / name).read_text() for name in existing} == {"mine"}


def test_a_folder_that_is_a_file_is_refused(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("mine")
    assert rag_eval("init", "shop").code == 2


@pytest.mark.slow
def test_on_a_full_disk_nothing_half_done_stays(offline_forker: Forker, tmp_path: Path) -> None:
    """The first file fits, the second does not; left there, it would stop the next try."""
    ended = offline_forker.run(tmp_path, "init", "shop", file_limit=len(EXAMPLE) - 100)
    assert (ended.code, len(ended.complaints)) == (5, 1)
    assert "config.ini: cannot be written" in ended.err
    assert list((tmp_path / "shop").iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_rag_eval(rag_eval: Run, shell: str) -> None:
    ended = rag_eval("completion", shell)
    assert ended.code == 0
    assert f"_RAG_EVAL_COMPLETE={shell}_complete" in ended.out
    assert re.search(r"(complete .*|#compdef )\brag-eval\b", ended.out)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_document_says_where_each_script_belongs(shell: str) -> None:
    assert f"rag-eval completion {shell} > ~/" in COMMANDS


def test_the_document_lists_every_command() -> None:
    table = COMMANDS.partition("|Command|")[2].partition("\n\n")[0]
    listed = re.findall(r"\[`([\w-]+)`\]\(#rag-eval-", table)
    assert listed == cli.rag_eval.list_commands(Context(cli.rag_eval))


def test_completion_of_another_shell_is_refused(rag_eval: Run) -> None:
    ended = rag_eval("completion", "tcsh")
    assert (ended.code, ended.out) == (2, "")


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["doc"], ["doctor"]),
        (["doctor", "--no"], ["--no-call"]),
        (["doctor", "--judge", "off"], ["offline"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes(rag_eval: Run, tmp_path: Path, words: list[str], completed: list[str]) -> None:
    """The printed script in a real bash, with the program under its own name."""
    program = tmp_path / "rag-eval"
    program.write_text(f"#!{sys.executable}\nfrom rag_eval.cli import main\nmain()\n")
    program.chmod(0o755)
    script = rag_eval("completion", "bash").out
    line = " ".join(map(shlex.quote, ["rag-eval", *words]))
    script += f"COMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_rag_eval_completion rag-eval\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "--norc"], input=script, env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == completed

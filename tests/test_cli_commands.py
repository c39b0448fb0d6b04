"""What is offered under which name: the same commands by every way to start the program."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner
from conftest import Run
from files import write_table

from rag_eval import cli
from rag_eval.cli import compare_judges, run
from rag_eval.cli.options import Options
from rag_eval.errors import InputError

ROOT = Path(__file__).parent.parent
SHEET = (["Query", "Bot_A", "Context"], ["What is tea?", "Tea is a drink.", "Tea is a drink."])


def test_the_script_offers_the_commands_of_rag_eval() -> None:
    """Its help is that of the main job, with every option, and then the same list of commands."""
    own, scripts = (
        CliRunner().invoke(group, ["--help"], prog_name="p").output for group in (cli.rag_eval, cli.script)
    )
    commands = own.partition("\nCommands:\n")[2]
    assert re.findall(r"^  ([\w-]+)", commands, re.MULTILINE) == list(cli._COMMANDS)
    assert scripts.partition("\nCommands:\n")[2] == commands
    assert scripts.startswith("Usage: p [OPTIONS] INPUT...\n")
    assert "  --help-all " in scripts


@pytest.mark.parametrize(
    "words",
    ["run in.csv", "review r.json", "compare-judges in.csv --a a.ini --b b.ini", "shard part-00000.json"],
)
def test_every_command_with_debug_heeds_it(rag_eval: Run, words: str) -> None:
    """Before it finds that its file is not there."""
    log = logging.getLogger("rag_eval")
    for option, level in (([], logging.WARNING), (["--debug"], logging.DEBUG)):
        log.setLevel(logging.ERROR)
        assert rag_eval(*words.split(), *option).code == 2
        assert log.level == level


@pytest.mark.parametrize("module", [run, compare_judges])
def test_help_has_what_most_users_need_and_help_all_has_everything(module: ModuleType) -> None:
    command = module.command.name
    short, every = (
        CliRunner().invoke(cli.rag_eval, [command, option], prog_name="p").output
        for option in ("--help", "--help-all")
    )
    listed, all_listed = (
        re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("\nJudge:\n")[2], re.MULTILINE)
        for text in (short, every)
    )
    own = {name for each in module.command.params for name in each.opts if name.startswith("--")}
    assert sorted(all_listed) == sorted({*own, "--help"})
    assert short.endswith(f"\n{len(all_listed) - len(listed)} more options: p {command} --help-all\n")
    assert (len(listed) <= 23, len(short.splitlines()) <= 60) == (True, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["in.xlsx", "-o", "h.xlsx"],
        ["-oh.xlsx", "in.xlsx"],
        ["-o", "h.xlsx", "in.xlsx"],
        ["run", "in.xlsx", "-o", "h.xlsx"],
        ["-q", "in.xlsx", "--output", "h.xlsx"],
        ["-o", "h.xlsx", "--", "in.xlsx"],
    ],
    ids=" ".join,
)
def test_the_name_of_the_main_command_may_be_left_out(
    rag_eval: Run, run_cli: Run, tmp_path: Path, arguments: list[str]
) -> None:
    """Options may come before the file; the h of -oh.xlsx is not taken for -h."""
    write_table(tmp_path / "in.xlsx", *SHEET)
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    for start in (rag_eval, run_cli):
        assert start(*arguments).code == 0
        (tmp_path / "h.xlsx").unlink()


def test_a_file_may_be_named_as_a_command_is(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "retrieval", *SHEET)
    assert "retrieval: " in run_cli("./retrieval", "--judge", "offline").err, "no kind of file that is known"
    assert "Missing option '--reference'" in run_cli("retrieval").err


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["in.xlsx", "--nope"], "run"),
        (["--nope"], "run"),
        (["retrieval", "--nope"], "retrieval"),
        (["rubric", "check"], "rubric check"),
        (["cache", "prune", "--nope"], "cache prune"),
    ],
)
@pytest.mark.parametrize("name", ["rag_eval_standalone.py", "-m rag_eval"])
def test_an_error_points_to_the_help_of_the_command_as_it_was_called(
    name: str, arguments: list[str], where: str
) -> None:
    ended = subprocess.run(
        [sys.executable, *name.split(), *arguments], capture_output=True, text=True, check=False, cwd=ROOT
    )
    called = name if name.endswith(".py") else f"python {name}"
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith(f" (see {called} {where} --help)\n")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["doctr"], "doctr: there is no such command, file or folder; did you mean 'doctor'?"),
        (
            ["compare", "in.xlsx"],
            "compare: there is no such command, file or folder; did you mean 'compare-judges'?",
        ),
        (["answers"], "answers: there is no such command, file or folder; name a file with its ending"),
        (["answers/"], "answers: there is no such file"),
        ([""], "'INPUT...': the name is empty; name a file or folder"),
        (["in.csv", "-o", ""], "'-o' / '--output': the name is empty; name a file or folder"),
        (["history", ""], "'FOLDER': the name is empty; name a file or folder"),
        (["in.csv", "--bot-name", " "], "'--bot-name': the name is empty; give one, or leave the option out"),
        (["in.csv", "--wait", "nan"], "'--wait': 'nan' is not a number"),
        (["cache", "prune", "--older-than", "nan"], "'--older-than': 'nan' is not a number"),
        (["review", "run.json", "--suspicious", "nan"], "'--suspicious': 'nan' is not a number"),
        (["completion"], "Missing argument 'SHELL'. Choose from: bash, zsh, fish"),
        (["in.csv", "--format", "csv"], "--format csv is for standard input; leave it out"),
        (["in.csv", "--format", "tsv"], "--format tsv is for standard input; rename in.csv to in.tsv"),
        (["in.csv", "--fail-under", "rqs"], "--fail-under rqs: expected NAME=VALUE, such as rqs=0.7"),
        (["in.csv", "--fresh", "--report-only"], "--fresh: has no effect with --report-only"),
        (["in.csv", "--batch-cancel"], "--batch, --batch-cancel: the offline judge makes no calls"),
        (["in.csv", "-o", f"{'x' * 300}.xlsx"], "x…: the name is too long for a file"),
        (["history", "x" * 300], "x…: the name is too long for a file; choose a shorter one"),
        (["in.csv", "--csv", "x" * 300], "the name is too long for a file; choose a shorter one"),
        (
            ["in.csv", "--map", "Bot_A=ignore"],
            "because --map or [columns] gives 'Bot_A' (B) another role; correct it",
        ),
        (["deep.json"], "deep.json: is not JSON (it is nested too deeply); check the file"),
        (["bad.json"], "bad.json: is not JSON (Expecting value, line 1, column 3); check the file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_named_with_its_remedy(
    rag_eval: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    (tmp_path / "in.csv").write_text("Query,Bot_A\nWhat is tea?,A drink.\n")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "bad.json").write_text("[ ?]")
    ended = rag_eval(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_file_without_ending_that_exists_is_not_a_mistyped_command(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "doctr").write_text("Query,Bot_A\n")
    assert "doctr: cannot read files of type ''" in rag_eval("doctr").err


@pytest.mark.slow
def test_a_shard_may_have_more_rows_than_any_file(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("Query,Bot_A\nWhat is tea?,A drink.\n")
    ended = rag_eval("in.csv", "--judge", "offline", "--shard-rows", str(10**20), "-o", "out")
    assert (ended.code, (tmp_path / "out" / "report.xlsx").exists()) == (0, True)


def test_wait_counts_minutes() -> None:
    assert (Options().patience, Options(wait=1.5).patience) == (0, 90)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            Options(baseline=Path("latest"), sheet="S"),
            "--baseline latest: no history is kept with a run's JSON; name a report (.xlsx) or a run's JSON",
        ),
        (
            Options(sheet="S", batch_wait=0.0),
            "--batch-wait, --sheet: cannot be used with --report-only and a run's JSON, since no sheet is read and no "
            "judge is called; remove them",
        ),
        (
            Options(show=True, baseline=Path("old.json"), alpha=0.0, report_only=True),
            "--show: cannot be used with --report-only and a run's JSON, since no sheet is read and no judge is "
            "called; remove it",
        ),
        (Options(baseline=Path("old.json"), alpha=0.0, report_only=True), ""),
    ],
)
def test_options_that_have_no_effect_on_a_report_of_a_json(options: Options, problem: str) -> None:
    if not problem:
        options.refuse_idle_again()
        return
    with pytest.raises(InputError, match=f"^{re.escape(problem)}$"):
        options.refuse_idle_again()


def test_a_name_that_is_too_long_for_a_file_is_reported(rag_eval: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    name = "x" * 300
    short = f"rag-eval: {'x' * 60}…: the name is too long for a file; choose a shorter one\n"
    for arguments in (
        (f"{name}.csv",),
        ("in.xlsx", "-o", f"{name}.xlsx"),
        ("report", name),
        ("in.xlsx", "--csv", name),
    ):
        ended = rag_eval(*arguments, *(("--judge", "offline") if arguments[0] != "report" else ()))
        assert (ended.code, ended.err) == (2, short)
    ended = rag_eval("in.xlsx", "--judge", "offline", "--calibrate", name, "--manifest", "run.json")
    assert ended.code == json.loads((tmp_path / "run.json").read_text())["exit_code"] == 2
    ended = rag_eval("in.xlsx", "--judge", "offline", "--config", name)
    assert (ended.code, ended.err) == (2, f"rag-eval: {name}: cannot be read (File name too long)\n")


@pytest.mark.parametrize(
    "words",
    [
        *([name] for name in cli._COMMANDS),
        ["cache", "show"],
        ["cache", "prune"],
        ["rubric", "check"],
        ["rubric", "align"],
    ],
)
def test_every_command_has_the_short_option_for_help(words: list[str]) -> None:
    found = CliRunner().invoke(cli.rag_eval, [*words, "-h"], prog_name="p")
    assert (found.exit_code, found.output.startswith(f"Usage: p {' '.join(words)}")) == (0, True)
    assert "-h, --help" in found.output

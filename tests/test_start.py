"""The program started by a Python that lacks something: it says what, and what to do, and ends with 2."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from fake_judge import running_judge

from rag_eval.__main__ import OLDEST
from rag_eval.errors import describe_missing

ROOT = Path(__file__).parent.parent
SCRIPT = str(ROOT / "rag_eval_standalone.py")
REMEDY = (
    f"is not installed for {sys.executable}; install everything with pip install . in RAG Eval's folder, or use the "
    "Python of the environment that has it (.venv/bin/python; on Windows .venv\\Scripts\\python)"
)


def ended(*words: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )


@pytest.mark.parametrize("entry", [[SCRIPT], ["-m", "rag_eval"]])
def test_a_python_without_the_packages_says_what_to_install(entry: list[str]) -> None:
    """-S leaves out the folder in which pip puts packages, and PYTHONPATH has our own alone."""
    found = ended("-S", *entry, "answers.xlsx", "-o", "report.xlsx")
    assert (found.returncode, found.stdout, found.stderr) == (
        2,
        "",
        f"rag-eval: the package click {REMEDY}\n",
    )


@pytest.mark.parametrize("stderr", ["", "2>&-"])
@pytest.mark.parametrize("package", [None, "rag_eval/other.py"])
def test_a_script_that_was_copied_alone_says_what_is_missing(
    tmp_path: Path, package: str | None, stderr: str
) -> None:
    """Also where a folder has the name of the package."""
    script = tmp_path / "rag_eval_standalone.py"
    script.write_bytes(Path(SCRIPT).read_bytes())
    if package:
        (tmp_path / package).parent.mkdir()
        (tmp_path / package).touch()
    found = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -S {script} answers.xlsx {stderr}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert (found.returncode, found.stdout) == (2, "")
    expected = (
        f"rag-eval: {script}: the folder rag_eval of RAG Eval is missing next to it; copy that folder as well, or "
        "install RAG Eval (pip install . in its folder)\n"
    )
    assert found.stderr == ("" if stderr else expected)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("stream", ["&-", "/dev/full"])
def test_the_exit_code_is_the_same_where_nothing_can_be_said(stream: str) -> None:
    command = f"exec {sys.executable} -S {SCRIPT} answers.xlsx 2>{stream}"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="as cron starts it")
@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "--judge", "offline"],
        ["../in.csv", "--show"],
        ["../in.csv", "-o", "../out/r.xlsx", "--judge", "offline", "--processes", "2"],
        ["init", "../new"],
    ],
    ids=" ".join,
)
def test_no_command_needs_a_home_a_locale_a_terminal_or_its_folder(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "in.csv").write_text("Query,Bot_\u65e5\nq?,Tea is a drink.\n", "utf-8")
    (tmp_path / "closed").mkdir(0o555)
    found = subprocess.run(
        [sys.executable, SCRIPT, *words],
        cwd=tmp_path / "closed",
        env={"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    assert (found.returncode, "\u65e5" in found.stdout.decode()) == (0, "../in.csv" in words), found.stderr
    assert list((tmp_path / "closed").iterdir()) == []


@pytest.mark.slow
def test_a_package_that_only_a_run_needs_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq?,Tea is a drink.\n")
    code = "import sys; sys.modules['xlsxwriter'] = None; from rag_eval.cli import main; main()"
    found = ended("-c", code, "in.csv", "--judge", "offline", "--manifest", "m.json", "-q", folder=tmp_path)
    assert (found.returncode, found.stderr) == (2, f"rag-eval: the package xlsxwriter {REMEDY}\n")
    manifest = json.loads((tmp_path / "m.json").read_text())
    assert (manifest["status"], manifest["exit_code"]) == ("failed", 2)


def test_an_older_python_is_named() -> None:
    code = "import sys; sys.version_info = (3, 10, 9); from rag_eval.__main__ import start; start('main')"
    found = ended("-c", code)
    version = sys.version.split()[0]
    expected = f"rag-eval: Python 3.11 or later is needed, and {sys.executable} is {version}\n"
    assert (found.returncode, found.stderr) == (2, expected)


def test_the_oldest_python_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, OLDEST))


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("gone", name="rag_eval.gone"),
        ModuleNotFoundError("gone"),
        ImportError("cannot import name", name="click"),
        ValueError("click"),
    ],
)
def test_a_bug_of_ours_is_no_missing_package(error: Exception) -> None:
    assert describe_missing(error) == ""


def test_a_part_of_a_package_is_told_as_the_package() -> None:
    missing = ModuleNotFoundError("gone", name="click.shell_completion")
    assert describe_missing(missing) == f"the package click {REMEDY}"


@pytest.mark.parametrize("name", ["__gone__", "_also_gone"])
def test_a_module_of_ours_that_is_missing_is_no_advice_to_install(tmp_path: Path, name: str) -> None:
    """The traceback then says where."""
    code = f"import sys; sys.modules['rag_eval.cli'] = None; from rag_eval.__main__ import start; start('{name}')"
    found = ended("-c", code)
    assert (found.returncode, "Traceback" in found.stderr) == (1, True)
    assert "pip install" not in found.stderr


HEAVY = {"aiohttp", "numpy", "openai", "openpyxl", "pydantic", "sqlite3", "xlsxwriter"}
"""Packages that take longest to import."""


def imported(*words: str, folder: Path = ROOT, **variables: str) -> set[str]:
    """The modules that this command line imports until it ends."""
    found = ended("-X", "importtime", SCRIPT, *words, folder=folder, **variables)
    assert found.returncode == 0, found.stderr
    return set(re.findall(r"^import time:.*\| +(\S+)$", found.stderr, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "most"),
    [("--version", 10), ("--help", 35), ("compare-judges --help", 35), ("doctor --help", 25)],
)
def test_help_is_quick_because_it_imports_little(words: str, most: int) -> None:
    """`most`: modules of our own."""
    modules = imported(*words.split())
    assert {name.split(".")[0] for name in modules} & HEAVY == set()
    assert len([name for name in modules if name.startswith("rag_eval")]) <= most


@pytest.mark.slow
def test_a_run_of_the_offline_judge_imports_nothing_of_an_llm_judge(tmp_path: Path) -> None:
    """Nor, for a text file, what reads workbooks, which also checked the written one."""
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq?,Tea is a drink.\n")
    modules = imported("in.csv", "--judge", "offline", "-q", folder=tmp_path)
    needless = {"PIL", "aiohttp", "asyncio", "defusedxml", "openai", "openpyxl", "pandas", "sqlite3"}
    assert {name.split(".")[0] for name in modules} & needless == set()
    ours = {name.removeprefix("rag_eval.") for name in modules}
    assert ours & {"judge.budget", "judge.connection", "judge.endpoint", "texts.injection"} == set()
    assert len([name for name in modules if name.startswith("rag_eval")]) <= 170
    assert len(modules) <= 625


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux" or os.cpu_count() == 1, reason="counts threads, one per processor"
)
@pytest.mark.parametrize(("set_by_user", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_numpy_starts_no_threads_unless_the_user_wants_them(
    tmp_path: Path, set_by_user: dict[str, str], threads: int
) -> None:
    """Each costs as much processor time as a small run, and the last digits of a sum depend on their number."""
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq?,Tea is a drink.\n")
    code = (
        "import atexit, os, sys; from rag_eval.cli import main;"
        "atexit.register(lambda: print('numpy' in sys.modules, len(os.listdir('/proc/self/task')))); main()"
    )
    found = ended("-c", code, "in.csv", "--judge", "offline", "-q", folder=tmp_path, **set_by_user)
    assert (found.returncode, found.stdout) == (0, f"True {threads}\n"), found.stderr


@pytest.mark.slow
def test_a_run_of_an_llm_judge_imports_no_reader_of_workbooks(tmp_path: Path) -> None:
    """Half of the modules are the openai package's."""
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq?,Tea is a drink.\n")
    with running_judge() as judge:
        address = {"OPENAI_BASE_URL": judge.url + "/v1", "OPENAI_API_KEY": "k"}
        modules = imported("in.csv", "--judge", "openai", "-q", folder=tmp_path, **address)
    assert judge.requests
    assert {name.split(".")[0] for name in modules} & {"PIL", "langchain_core", "openpyxl", "pandas"} == set()
    assert len([name for name in modules if name.startswith("rag_eval")]) <= 215
    assert len(modules) <= 1_700

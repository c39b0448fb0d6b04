"""What the documents say is so: commands run, examples work, links lead somewhere, options and codes are listed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import Run

from rag_eval.cli.run import command
from rag_eval.configuration import load_settings
from rag_eval.errors import ExitCode, how_to_install
from rag_eval.records import FailureMode, Score
from rag_eval.results.scoring import failure_modes

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


def test_every_option_stands_in_the_page_on_commands() -> None:
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in options if name not in page} == {"--help"} & options


def test_every_exit_code_stands_in_the_readme() -> None:
    section = README.partition("| Exit code |")[2].partition("If several")[0]
    listed = {int(number) for number in re.findall(r"\b(\d+)\b", section)}
    assert listed == set(ExitCode)


def test_the_ini_example_of_the_readme_is_a_valid_configuration(tmp_path: Path) -> None:
    (example,) = blocks(README, "ini")
    (tmp_path / "config.ini").write_text(example)
    settings = load_settings(None, {}, {}, tmp_path).settings
    assert (settings.judge.provider, settings.openai.model) == ("openai", "llama3.1")


def test_the_input_example_of_the_readme_is_understood(run_cli: Run, tmp_path: Path) -> None:
    """The Markdown table, as a CSV."""
    table = README.partition("## Input\n\n")[2].partition("\n\n")[0].splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in (table[0], *table[2:])]
    cells = [",".join(f'"{cell.strip()}"'.replace("\\|", "|") for cell in row) for row in rows]
    (tmp_path / "in.csv").write_text("\n".join(cells), encoding="utf-8")
    ended = run_cli("in.csv", "--judge", "offline")
    assert ended.code == 0
    assert "2 bots (GPT4, Claude), 2 context chunks" in ended.out


def test_the_python_example_of_the_how_to_guides_runs() -> None:
    guides = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    (example,) = blocks(guides, "python")
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


PACKAGES = {"deepeval", "pandas", "rustpy-xlsxwriter", "ragas==0.4.3", "{_TESTED}"}
"""Others', which are on PyPI under these names: ragas for its prompts, the rest for benchmarks to compare with."""


def installs(text: str) -> list[str]:
    """The arguments of every `pip install` in a text, up to the end of its line, code span or sentence."""
    return [words for line in text.splitlines() for words in re.findall(r"pip install ([^`\"#;,)]+)", line)]


def requirements(words: str) -> list[str]:
    """What a `pip install` names, without options and the words of the sentence that goes on."""
    found = re.split(r" in RAG Eval's folder| \(once| does ", words)[0].split()
    options = {"-r": 1, "-c": 1, "--requirement": 1, "--constraint": 1, "--only-binary": 1}
    named = []
    while found:
        word = found.pop(0)
        if word in options:
            assert word == "--only-binary" or (ROOT / found[0]).exists()
            del found[: options[word]]
        elif not word.startswith("-"):
            named.append(word)
    return named


def test_nobody_is_told_to_install_a_package_that_is_not_ours_or_known() -> None:
    """On PyPI rag-eval is somebody else's; extras come from the folder, in quotes, which shells need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    assert everything.partition("[")[0] == project["name"] == "rag-eval-spreadsheet"
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(extras) - {"all", "dev"}
    sources = [
        *(ROOT / "rag_eval").rglob("*.py"),
        *DOCUMENTS,
        ROOT / "requirements.txt",
        ROOT / "requirements.lock",
        ROOT / "requirements-light.lock",
    ]
    sources += [ROOT / "Makefile", ROOT / "config.ini.example"]
    allowed = {".", *(f"'.[{extra}]'" for extra in extras), "{place}", *PACKAGES}
    told = [
        (path.name, requirement)
        for path in sources
        if path.name != "CHANGELOG.md"
        for words in installs(path.read_text(encoding="utf-8"))
        for requirement in requirements(words)
    ]
    assert {place for place, _ in told} >= {"README.md", "errors.py", "configuration.md", "input.md"}
    assert [each for each in told if each[1] not in allowed] == []
    assert "rag-eval[" not in "".join(path.read_text(encoding="utf-8") for path in sources)
    assert "`rag-eval-spreadsheet`" in README
    assert "not on PyPI" in README


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pip install rag-eval[parquet] first", ["rag-eval[parquet]", "first"]),
        ("`pip install '.[a]'`, then", ["'.[a]'"]),
        ("pip install --require-hashes --only-binary :all: -r requirements.lock", []),
        ("pip install {place} in RAG Eval's folder", ["{place}"]),
        ("nothing to install", []),
    ],
)
def test_what_a_text_tells_to_install_is_found(text: str, named: list[str]) -> None:
    assert [requirement for words in installs(text) for requirement in requirements(words)] == named


def test_the_messages_name_extras_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "rag_eval").rglob("*.py")]
    named = {extra for text in texts for extra in re.findall(r"how_to_install\('(\w+)'\)", text)}
    assert named == {"parquet", "entra"}
    assert named <= set(extras)
    assert (how_to_install(), how_to_install("x")) == (
        "pip install . in RAG Eval's folder",
        "pip install '.[x]' in RAG Eval's folder",
    )


def test_after_the_environment_was_made_there_is_one_way_to_call_the_program() -> None:
    """`python` alone is the system's unless the environment is active, which the README says how to do."""
    lines = [
        line
        for language in ("bash", "bat")
        for block in blocks(README, language)
        for line in block.splitlines()
    ]
    calls = [
        line.split()[0] for line in lines if "answers.xlsx" in line or "sample_rag_input.xlsx -o" in line
    ]
    assert set(calls) == {"rag-eval"}
    for activate in ("source .venv/bin/activate", ".venv\\Scripts\\activate"):
        assert lines.index(activate) == lines.index("python -m pip install .", lines.index(activate)) - 1


RETRIEVAL_RULE = "every scored one of context recall and context precision is below its threshold"


def test_every_text_on_retrieval_failures_has_one_wording() -> None:
    places = {"config.ini.example": 1, "docs/configuration.md": 2, "docs/report.md": 1, "docs/metrics.md": 1}
    places["rag_eval/cli/config.ini.example"] = 1
    texts = {place: (ROOT / place).read_text(encoding="utf-8") for place in places}
    assert {place: text.count(RETRIEVAL_RULE) for place, text in texts.items()} == places
    assert [
        place for place, text in texts.items() if re.search(r"together with context|single low context", text)
    ] == []


@pytest.mark.parametrize("precision", [0.0, 0.29, 0.3, None])
@pytest.mark.parametrize("recall", [0.0, 0.29, 0.3, None])
def test_the_program_does_what_the_wording_says(recall: float | None, precision: float | None) -> None:
    values = {"context_recall": recall, "context_precision": precision}
    scores = {
        name: Score.not_applicable(name, "none") if value is None else Score.scored(name, value)
        for name, value in values.items()
    }
    scored = [value for value in values.values() if value is not None]
    fails = bool(scored) and all(value < 0.3 for value in scored)
    modes = failure_modes(scores, dict.fromkeys(values, 0.3))
    assert modes == ((FailureMode.RETRIEVAL_FAILURE,) if fails else (FailureMode.OK,))

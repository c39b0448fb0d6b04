"""What the documents say is so: commands run, examples work, links lead somewhere, options and codes are listed."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Run
from openpyxl import load_workbook
from report_cases import facts_of

from rag_eval import cli
from rag_eval.cli.options import KEYS, Options
from rag_eval.cli.parameters import GROUPS, long_name
from rag_eval.cli.run import command as run_command
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.configuration.sources import Given, Level, Source
from rag_eval.errors import CONTENT_CODES, ExitCode, InputError, how_to_install
from rag_eval.metrics.answer_correctness import LONG, MOST_GAIN, SHORT
from rag_eval.metrics.context_precision import USEFUL_FROM
from rag_eval.metrics.diagnosis import ROOM, CauseKind
from rag_eval.metrics.prompt_forms import MOST_CHUNKS, MOST_TOKENS
from rag_eval.records import METRIC_LABELS, SPENT_LABELS, TOXICITY, FailureMode, Score
from rag_eval.report import charts, csv_files, extra_columns
from rag_eval.report.core_sheets import HEAT_FROM
from rag_eval.report.judge_tables import JUDGE_TABLES
from rag_eval.report.notes import NoteKind
from rag_eval.report.page.row_record import TEXT_LIMIT
from rag_eval.report.tables import TABLES
from rag_eval.report.worksheet import SHEET_LINKS, SHEET_ROWS
from rag_eval.results.causes import MOST_CAUSES
from rag_eval.results.gates import GateOn
from rag_eval.results.scoring import failure_modes
from rag_eval.results.summary import FEWEST_ROWS, RELIABLE_ROWS
from rag_eval.shards.plan import SHARD_ROWS
from rag_eval.shards.selecting import CaseSelection
from rag_eval.tables import input_files, names
from rag_eval.tables.cells import EXCEL_LIMIT
from rag_eval.tables.content import MAX_RATIO, MAX_UNPACKED
from rag_eval.tables.input_files import MAX_CONFIGURATION
from rag_eval.tables.selection import Condition
from rag_eval.texts import injection
from rag_eval.texts.display import CELL_LIMIT

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import reference  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "requirements.md"])
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}
PRESENT = {name: text for name, text in TEXTS.items() if name != "CHANGELOG.md"}
"""The documents about the program as it is now."""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """Without blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


# --- links ---------------------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+?) *$", prose(text), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken(document: Path, text: str) -> list[str]:
    """The links of a text in this place that lead nowhere."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        place, _, anchor = link.partition("#")
        if place.startswith(("http://", "https://")):
            continue
        target = document.parent / place if place else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    assert broken(ROOT / name, TEXTS[name]) == []


@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ("docs/index.md", False),
        ("docs/nowhere.md", True),
        ("docs/cli.md#rag-eval-run", False),
        ("docs/cli.md#rag-eval-walk", True),
        ("docs/background", False),
        ("#quick-start", False),
        ("#slow-start", True),
        ("https://example.com/#x", False),
    ],
)
def test_a_broken_link_is_found(link: str, is_broken: bool) -> None:
    assert broken(ROOT / "README.md", f"See [it]({link}).") == ([link] if is_broken else [])


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    left = [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
        left += [(page.parent / target).resolve() for target in targets if not target.startswith("http")]
    assert [path for path in DOCUMENTS if path.resolve() not in {page.resolve() for page in seen}] == []


def test_the_pages_that_code_names_exist() -> None:
    folders = [ROOT / name for name in ("rag_eval", "benchmarks", "scripts", "tests")]
    sources = [path for folder in folders for path in folder.rglob("*.py")]
    sources += [ROOT / "config.ini.example", ROOT / "Makefile", ROOT / "pyproject.toml"]
    named = {
        (path.name, page)
        for path in sources
        for page in re.findall(r"\bdocs/[\w./-]+\.(?:md|json|png)", path.read_text(encoding="utf-8"))
        if path.name != "test_docs.py"
    }
    assert len(named) > 5
    assert {each for each in named if not (ROOT / each[1]).exists()} == set()


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_has_one_title(name: str) -> None:
    assert len(re.findall(r"^# ", prose(TEXTS[name]), re.MULTILINE)) == 1


# --- commands, options, settings, codes ----------------------------------------------------------------------


def test_the_options_of_every_command_are_those_of_click() -> None:
    """`python scripts/reference.py` writes them."""
    assert reference.renewed(TEXTS["docs/cli.md"]) == TEXTS["docs/cli.md"]


def test_the_keys_are_those_of_the_settings() -> None:
    """`python scripts/reference.py` writes them, and takes what a new key does from config.ini.example."""
    page, example = TEXTS["docs/configuration.md"], (ROOT / "config.ini.example").read_text(encoding="utf-8")
    assert reference.renewed_keys(page, example) == page
    changed = re.sub(r"(?m)^\|`(max_rows|processes)`\|.*\n", "", page).replace(
        "|`true`|switch|", "|`false`|a flag|"
    )
    changed = changed.replace("### `[cache]`", "### `[paid]`")
    renewed = reference.renewed_keys(changed, example)
    assert "### `[paid]`" not in renewed
    assert "|`max_rows`|`200`|count|Rows beyond this number are left out, and the report says so.|" in renewed
    assert (
        "|`processes`|*(empty)*|a whole number from 1 to 64, or empty|Processes of the offline judge, 1 to 64; empty: "
        "one per core for large inputs, otherwise one.|"
    ) in renewed
    assert (
        "### `[cache]`\n\n|Key|Default|Allowed|What it does|\n|---|---|---|---|\n|`enabled`|`false`|switch|Keep "
        in renewed
    )
    assert renewed.count("|`true`|switch|") == page.count("|`true`|switch|")


def test_an_option_that_is_gone_leaves_the_page_and_a_new_one_enters() -> None:
    page = TEXTS["docs/cli.md"]
    changed = page
    for now, other in (
        ("|`--fresh`|", "|`--stale`|"),
        ("|`--sheet NAME`|Sheet", "|`--sheet`|Leaf"),
        ("`--model`, `--config`.", "`--old`, `--config`."),
    ):
        assert now in changed
        changed = changed.replace(now, other)
    assert reference.renewed(changed) == page


def test_every_option_of_the_table_is_one_of_its_commands_and_overrides_its_key() -> None:
    keys = {f"{section}.{key}" for section, model in Settings() for key, _ in model} | {
        "model",
        "temperature",
    }
    shown = {
        context.info_name: {each.name for each in context.command.params} for context in reference.contexts()
    }
    shown["cache"] = shown["show"] & shown["prune"]
    for each in fields(Options):
        for command in each.metadata["commands"]:
            name, _, ends = command.partition(":")
            spelled = {f"{each.name}_a", f"{each.name}_b"} if ends else {each.name}
            assert spelled <= shown[name], (each.name, command)
        assert each.metadata["click"]["group"] in GROUPS
        assert {*each.metadata["idle"]} <= {
            "offline",
            "offline-file",
            "json",
            "pairs",
            "shards",
            "batch-cancel",
        }
    for option, key in KEYS.items():
        value = Given("x", Source(Level.COMMAND_LINE, option))
        assert Options(**{option.strip("-").replace("-", "_"): "x"}).overrides() == {key: value}
        assert key in keys
    rows = {each.name: each.metadata["click"] for each in fields(Options)}
    assert list(rows["gate_on"]["type"].choices) == list(GateOn)


def test_the_page_has_the_groups_of_help() -> None:
    page = TEXTS["docs/cli.md"].partition("## `rag-eval run`\n")[2].partition("\n## ")[0]
    shown = list(run_command.groups(click.Context(run_command, reference.ROOT_CONTEXT, "run")))
    assert [group for group, _ in shown] == list(GROUPS) == re.findall(r"^### (.*)$", page, re.MULTILINE)
    for group, options in shown:
        rows = page.partition(f"### {group}\n")[2].partition("###")[0]
        listed = [long_name(each) for each in options]
        assert re.findall(r"^\|(?:`-\w`, )?`(--[\w-]+)", rows, re.MULTILINE) == [
            name for name in listed if name != "--help"
        ]


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of each call of the program in the blocks for a shell."""
    for language in ("bash", "bat", "console", "cron", "text", ""):
        for block in blocks(text, language):
            for line in block.replace("\\\n", " ").splitlines():
                found = re.search(
                    r"^(?:\$ |[\d*/ -]+cd \S+ && )?(?:\S*/)?(?:rag-eval|python3? rag_eval_standalone\.py) (.*)$",
                    re.sub(r"\s#.*$| > \S+$", "", line).replace("$(date +\\%F)", "today"),
                )
                if found:
                    yield shlex.split(found[1])


CALLS = [(name, words) for name, text in PRESENT.items() for words in command_lines(text)]


@pytest.mark.parametrize(("name", "words"), CALLS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_command_of_the_documents_is_taken(name: str, words: list[str]) -> None:
    command: click.Command = cli.rag_eval
    context = reference.ROOT_CONTEXT
    if words[0] not in {*cli.rag_eval.list_commands(context), "--version", "--help"}:
        words = ["run", *words]
    while isinstance(command, click.Group) and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found, words[0]
        context, command, words = click.Context(found, context, words[0]), found, words[1:]
    command.make_context(context.info_name, list(words), context.parent)


def test_a_recipe_for_cron_needs_no_path() -> None:
    """cron looks for programs in /usr/bin and /bin only."""
    recipes = [block for text in PRESENT.values() for kind in ("sh", "cron") for block in blocks(text, kind)]
    assert len(recipes) >= 3
    bare = r"(?<![\w/.-])(rag-eval|python3?|pip)\s"
    assert [recipe for recipe in recipes if re.search(bare, recipe)] == []
    assert re.search(bare, "0 3 * * *  rag-eval in.csv")


def test_calls_are_found() -> None:
    assert len({name for name, _ in CALLS}) >= 5
    assert len(CALLS) > 30
    with pytest.raises(click.NoSuchOption):
        test_every_command_of_the_documents_is_taken("", ["answers.xlsx", "--jugde", "offline"])


FOREIGN = {
    "--require-hashes", "--only-binary", "--no-deps", "--self-test", "--simulations", "--only", "--accept", "--runs",
    "--cases", "--reruns", "--megabytes", "--characters", "--max-model-len", "--embedding", "--before",
}  # fmt: skip
"""Options of pip, of servers, and of our scripts and benchmarks."""


def every_option() -> Iterator[str]:
    for context in (reference.ROOT_CONTEXT, *reference.contexts()):
        for parameter in context.command.get_params(context):
            yield from (*parameter.opts, *parameter.secondary_opts)


def test_every_option_that_is_named_exists() -> None:
    known = {*every_option(), *FOREIGN}
    named = {
        (name, option)
        for name, text in PRESENT.items()
        for code in re.findall(r"`([^`\n]+)`", prose(text))
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code)
    }
    assert len(named) > 50
    assert {each for each in named if each[1] not in known} == set()


FIELDS = {(section, key) for section, values in Settings() for key in type(values).model_fields}
FORMER = {"embeddings", "alpha", "DEFAULT", "section"}
"""Sections and keys that older tools had, and words for any of them."""


def test_every_setting_that_is_named_exists() -> None:
    sections = {section for section, _ in FIELDS}
    named = [
        (name, section, key)
        for name, text in PRESENT.items()
        for section, key in re.findall(r"`\[([a-z]\w+)\](?:\s(\w+))?[^`]*`", prose(text))
        if not {section, key} & FORMER and not {section, key} & {"email", "phone", "redacted", "key"}
    ]
    assert len(named) > 40
    wrong = [each for each in named if each[1] not in sections or (each[2] and each[1:] not in FIELDS)]
    assert wrong == []


@pytest.mark.parametrize("name", ["README.md", "docs/configuration.md"])
def test_every_exit_code_is_listed(name: str) -> None:
    section = re.split(r"\| ?Exit code ?\|", TEXTS[name])[1].partition("\n\n")[0]
    listed = [int(number) for row in section.splitlines() for number in re.findall(r"\d+", row.split("|")[1])]
    assert sorted(listed) == sorted(ExitCode)


def test_every_code_of_a_failed_call_is_listed() -> None:
    table = TEXTS["docs/metrics.md"].partition("## Failed calls")[2]
    rows = [
        re.findall(r"`([a-z_]+)`", row.split("|")[1]) for row in re.findall(r"^\|`.*", table, re.MULTILINE)
    ]
    listed = {code for row in rows for code in row}
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "rag_eval" / "judge").rglob("*.py")]
    sources.append((ROOT / "rag_eval" / "errors.py").read_text(encoding="utf-8"))
    assert {code for code in listed if not any(f'"{code}"' in source for source in sources)} == set()
    used = {code for source in sources for code in re.findall(r'Action\.[A-Z]+,\s*"([a-z_]+)"', source)}
    assert len(used) > 15
    assert used - listed == set()
    assert {code for row in rows[:5] for code in row} == CONTENT_CODES


def test_the_names_for_selecting_cases_are_listed() -> None:
    section = TEXTS["docs/cli.md"].partition("## `rag-eval cases`")[2].partition("\n|Option")[0]
    listed = re.findall(r"`([a-z_0-9]+)`", section.partition("NAME is")[2].partition("The operators")[0])
    facts = replace(
        facts_of("A", 1), rubric="r", further={}, has_gold=True, has_labels=True, spent_units=SPENT_LABELS
    )
    for name in listed:
        CaseSelection([Condition.parse(f"{name} = 1")], replace(facts, further={"citation_recall": ""}))
    plain = replace(facts, has_gold=False, has_labels=False)
    with pytest.raises(InputError) as error:
        CaseSelection([Condition.parse("zzz = 1")], plain)
    names = set(re.findall(r"'([a-z_]+)'", str(error.value).partition("the names are")[2]))
    scores = {f"{name}{end}" for name in (*METRIC_LABELS, TOXICITY) for end in ("", "_outcome", "_code")}
    assert names | {"citation_recall", "doc_recall", "recall_5", "human_faithfulness"} == {*listed, *scores}


def test_help_is_short_and_whole() -> None:
    """click cuts longer summaries off."""
    for context in reference.contexts():
        assert len(context.command.get_short_help_str(limit=200)) <= 45, context.command_path
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and parameter.help:
                shown = parameter.help.partition("  [default")[0]
                assert len(shown) <= 60, (context.command_path, parameter.name)


# --- numbers and outputs -------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 900


def test_the_weights_and_thresholds_in_the_documents_are_the_defaults() -> None:
    weights = [f"{weight:g}" for weight in Settings().weights.model_dump().values()]
    assert f"{', '.join(weights[:-1])} and {weights[-1]} in this order" in README
    labels = [METRIC_LABELS[name] for name in type(Settings().weights).model_fields]
    assert labels == re.findall(r"^\| ([A-Z][\w ]+?) \|", README.partition("| Metric |")[2], re.MULTILINE)[:5]
    assert (
        "0.35 Answer Correctness, 0.25 Faithfulness, 0.25 Answer Relevancy, 0.075 Context Precision"
        in " ".join(TEXTS["docs/metrics.md"].split())
    )
    assert set(Settings().thresholds.model_dump().values()) == {0.3}
    assert "each threshold is 0.3 by default" in TEXTS["docs/metrics.md"]


IN_WORDS = {3: "three", 6: "six", 10: "ten"}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("input", f"| characters in a cell of a used column | {input_files.MAX_CELL:,} |"),
        ("input", f"| columns with a header | {input_files.MAX_COLUMNS:,} |"),
        (
            "input",
            f"| bots | {input_files.MAX_BOTS}, with names of up to {input_files.MAX_BOT_NAME:,} characters |",
        ),
        ("input", f"would unpack to more than {MAX_UNPACKED // 2**20} MB"),
        ("input", f"and {MAX_RATIO} times its size"),
        ("input", f"`.env` and rubrics | {MAX_CONFIGURATION // 1024} kB"),
        ("input", f"A text of exactly {EXCEL_LIMIT:,} characters causes a warning"),
        ("report", f"A text of more than {CELL_LIMIT:,} characters is cut"),
        ("report", f"A sheet has at most {SHEET_ROWS:,} rows"),
        ("report", f"(at most {SHEET_LINKS:,} links)"),
        ("report", f"at most {NoteKind.LOW.limit} notes on low scores"),
        (
            "report",
            f"{NoteKind.FAILED.limit:,} on failed scores and {NoteKind.NOT_APPLICABLE.limit} on those that",
        ),
        ("report", f"From {IN_WORDS[HEAT_FROM]} bots on"),
        ("report", f"With more than {charts.MOST_BOTS} bots there are no charts"),
        ("report", f"list up to {IN_WORDS[MOST_CAUSES]} causes"),
        ("report", f"its cases with a score below {ROOM}"),
        ("report", f"rows with fewer than {IN_WORDS[extra_columns.FEW]} scored queries are grey"),
        ("report", f"Texts longer than {TEXT_LIMIT:,} characters are cut"),
        (
            "report",
            f"empty for fewer than {FEWEST_ROWS} queries, grey for {FEWEST_ROWS} to {RELIABLE_ROWS - 1}",
        ),
        ("cli", f"Judge in shards of N rows. [default: {SHARD_ROWS} or fewer]"),
        ("background/scale", f"cuts it into shards of {SHARD_ROWS:,} rows"),
        ("background/offline-judge-quality", f"the relevance is at least {USEFUL_FROM}"),
        ("background/offline-judge-quality", f"with up to {SHORT} content words in the ground truth"),
        ("background/offline-judge-quality", f"From {LONG} words on, the balance (F1)"),
        ("background/offline-judge-quality", f"at most {MOST_GAIN} times that share"),
        ("read-the-report", f"With fewer than {FEWEST_ROWS}, there is no conclusion"),
        ("metrics", f"With {FEWEST_ROWS} to {RELIABLE_ROWS - 1} queries, the interval is grey"),
        (
            "background/llm-judge",
            f"more than {MOST_CHUNKS} chunks, or with a prompt of more than {MOST_TOKENS:,}",
        ),
    ],
)
def test_the_limits_in_the_documents_are_those_of_the_program(page: str, words: str) -> None:
    assert words in " ".join(TEXTS[f"docs/{page}.md"].split())


def test_the_failure_modes_are_those_of_the_program() -> None:
    listed = {
        page: re.findall(
            r"^\| ?([A-Z][\w ]+?) ?\|",
            re.split(r"\| ?Failure mode ?\|", TEXTS[page])[1].partition("\n\n")[0],
            re.MULTILINE,
        )
        for page in ("docs/metrics.md", "docs/read-the-report.md")
    }
    assert sorted(listed["docs/metrics.md"]) == sorted(FailureMode)
    assert sorted(listed["docs/read-the-report.md"]) == sorted({*FailureMode} - {FailureMode.OK})


def test_the_flags_are_those_that_the_program_sets() -> None:
    table = TEXTS["docs/security.md"].partition("| Flag |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert listed == [injection.INSTRUCTION, injection.VERDICT, injection.ROLE_MARKER, injection.INVISIBLE]


@pytest.mark.parametrize("name", ["README.md", "docs/input.md"])
def test_every_format_that_is_named_is_read(run_cli: Run, tmp_path: Path, name: str) -> None:
    """An empty file of each kind is refused as empty or damaged, not as one of an unknown type."""
    formats = set(re.findall(r"(?<![\w/<>*])\.(xlsx|xlsm|xls|ods|csv|tsv|parquet|ndjson)\b", TEXTS[name]))
    assert len(formats) >= 5
    for suffix in formats:
        (tmp_path / f"in.{suffix}").write_bytes(b"")
        ended = run_cli(f"in.{suffix}", "--judge", "offline")
        assert (ended.code, "cannot read files of type" in ended.err) == (2, False), ended.err


def test_every_name_of_a_column_is_listed() -> None:
    page = TEXTS["docs/input.md"]
    listed = {names.squeezed(name) for name in re.findall(r"`([^`\n]+)`", page)}
    known = [*names.FIRST.values(), *names.SECOND.values(), names.ANSWERS, names.ANSWER_ENDS]
    known += [names.BOTS, names.IDS, names.PASSAGES, *names.OTHER_LANGUAGES.values()]
    assert {name for each in known for name in each if names.squeezed(name) not in listed} == set()


def test_the_columns_of_a_data_frame_are_those_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    section = TEXTS["docs/python.md"].partition("## Data frames")[2].partition("\n## ")[0]
    (example,) = blocks(section, "python")
    monkeypatch.chdir(ROOT)
    namespace: dict[str, Any] = {}
    exec(example, namespace)  # noqa: S102 - the documented example itself
    listed = set(re.findall(r"`(\w+)`", section.partition("**Columns:**")[2].partition("A rubric")[0]))
    assert len(listed) == 8
    assert listed <= set(namespace["scores"].columns)


def test_the_files_of_tables_are_those_listed() -> None:
    section = TEXTS["docs/report.md"].partition("## The tables as CSV")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([\w-]+\.csv)`", section)) == set(csv_files.FILES)


def test_the_output_of_the_sample_is_real(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "in.xlsx").write_bytes((ROOT / "sample_rag_input.xlsx").read_bytes())
    ended = run_cli("in.xlsx", "--judge", "offline")
    assert ended.code == 0
    printed = " ".join(ended.out.split())
    for name in ("README.md", "docs/tutorial.md"):
        (shown,) = [block for block in blocks(TEXTS[name], "text") if block.startswith("Rank")]
        quoted = re.findall(r"`(\d\.\d\d \(\d+\))`", TEXTS[name])
        for excerpt in [*shown.split("\n\n"), *quoted]:
            assert " ".join(excerpt.split()) in printed


def columns(section: str) -> set[str]:
    """The names in the first column of the table below a heading of docs/report.md."""
    table = re.split(r"\n##+ ", TEXTS["docs/report.md"].partition(f"# {section}\n")[2])[0]
    names = set()
    for row in re.findall(r"^\|(?!column|---)(.+?)\|", table, re.MULTILINE | re.IGNORECASE):
        first, _, last = row.partition(" … ")
        labels = list(METRIC_LABELS.values())
        names |= (
            set(labels[labels.index(first) : labels.index(last) + 1]) if last else {row, *row.split(", ")}
        )
    return names


def test_every_column_of_the_report_is_explained(run_cli: Run, tmp_path: Path) -> None:
    """The recorded run has all that an optional column needs but `chunk_relevance`."""
    run = ROOT / "tests" / "recorded" / "run.json"
    assert run_cli(str(run), "--report-only", "-o", "out.xlsx").code == ExitCode.LOW_COVERAGE
    book = load_workbook(tmp_path / "out.xlsx")
    for sheet in ("Per-Query Metrics", "Bot Summary", "Leaderboard", "Human Alignment"):
        headers = {
            str(cell.value).partition(" (")[0] for cell in book[sheet][1] if cell.value is not None
        }  # no units
        assert len(headers) > 20
        assert headers - columns(sheet) == set()
    assert columns("More sheets") >= {*book.sheetnames} - {"Per-Query Metrics", "Bot Summary", "Leaderboard"}


def test_the_sheets_are_those_listed() -> None:
    sheets = columns("More sheets") - {"Sheet"}
    assert sheets == {table.name for table in TABLES[3:]}
    assert columns("Comparison of two judges") - {"Sheet"} == {table.name for table in JUDGE_TABLES}


def test_measurements_of_packages_are_on_the_pages_that_they_link_to() -> None:
    rows = TEXTS["README.md"].partition("## Built with\n")[2].partition("\n## ")[0].splitlines()
    measured = [row for row in rows if "](" in row]
    assert len(measured) == 3
    for row in measured:
        (page,) = re.findall(r"\((docs/[^)#]+)", row)
        numbers = re.findall(r"[\d.]*\d", re.sub(r"\(.*?\)", "", row))
        assert len(numbers) == 2
        for number in numbers:
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", TEXTS[page]), (number, page)


def test_the_causes_are_those_of_the_program_in_their_order() -> None:
    section = TEXTS["docs/report.md"].partition("### What to fix first\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\d+\. (.+)$", section, re.MULTILINE)
    assert [cause.partition(", and no other")[0] for cause in listed] == [kind.text for kind in CauseKind]
    schema = (ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8")
    assert f'"enum": {json.dumps([kind.name.lower() for kind in CauseKind])}' in schema


def test_the_verdicts_are_those_of_the_report() -> None:
    """Every verdict that a bot can have is explained, in the same words."""
    table = TEXTS["docs/report.md"].partition("### Verdicts")[2].partition("\n\nSet the number")[0]
    explained = re.findall(r"^\|((?!Verdict|---).+?)\|", table, re.MULTILINE)
    recorded = (ROOT / "tests" / "verdicts.txt").read_text(encoding="utf-8").split("## ")
    of_pairs = "\n".join(case for case in recorded if "Atlas" in case or case.startswith("other metrics\n"))
    said = re.findall(
        r"^   .+?: (.+)", of_pairs.replace("Full", "Birch").replace("Bare", "Atlas"), re.MULTILINE
    )

    def forms(words: Iterable[str]) -> set[str]:
        return {re.sub(r"\d+(\.\d+)?", "0", each).replace(" judged queries", " queries") for each in words}

    assert forms(said) - {"same score as Atlas"} <= forms(explained)
    rest = forms(explained) - forms(said)
    assert {each.partition(", ")[2] for each in rest} == {"the differences are skewed"}


def test_the_messages_under_troubleshooting_are_those_of_the_program(run_cli: Run, tmp_path: Path) -> None:
    table = TEXTS["docs/how-to.md"].partition("| Message or symptom |")[2]
    quoted = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    texts = [
        constant.value
        for path in (ROOT / "rag_eval").rglob("*.py")
        for constant in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]
    (tmp_path / "in.csv").write_text("Query,Bot_A\nWhat?,That.\n")
    (tmp_path / "nobody.csv").write_text("Query,Answer_A\nWhat?,That.\n")
    runs = [("in.csv", "--judge", "azure"), ("nobody.csv", "--judge", "offline")]
    texts += [run_cli(*words).err for words in runs]
    assert len(quoted) >= 3
    assert [message for message in quoted if not any(message in text for text in texts)] == []


@pytest.mark.parametrize("name", [name for name, text in PRESENT.items() if blocks(text, "ini")])
def test_every_ini_example_is_a_valid_configuration(name: str, tmp_path: Path) -> None:
    for example in blocks(TEXTS[name], "ini"):
        (tmp_path / "config.ini").write_text(example)
        loaded = load_settings(None, {}, {}, tmp_path)
        assert any(source.name == "config.ini" for source in loaded.sources.values())


# --- language ------------------------------------------------------------------------------------------------

HABITS = {
    r"\balone\b": "use 'only'",
    r"\banew\b": "use 'again'",
    r"\bbesides?\b": "use 'next to' or 'as well as'",
    r"\bwhoever\b": "name the person",
    r"\bst(?:ands?|ood|anding)\b(?! for\b)": "use 'be', 'appear' or 'be listed'",
    r"(?<!here )\b(?:is|are) no\b(?! longer| more)": "use 'is not a'",
    r"\d %": "no space before the percent sign",
    r"\bso (?:long|often|many|few)\b": "use 'up to', or repeat the number",
    r"\bnobody (?:is|was)\b": "name the actor",
    r"\bseen from\b": "use 'relative to'",
    r"(?:^|[.:;] )[Ww]hat (?:is|was|were|are)\b[^?]*$": "name the thing",
}
"""Idioms that readers stumble over, and what to write instead. This is no judgement of style."""


ALLOWED = {
    **{f"95 % {end}": "a column of the report" for end in ("low", "high", "minus", "plus", "of kappa")},
}
"""Phrases that stay, and why."""


def habits(text: str) -> Counter[str]:
    """How often each of the idioms occurs."""
    if text.strip() == "95 %":  # followed by low or high: columns
        return Counter()
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    flat = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n|\n(?=[|#-])", text)]
    found: Counter[str] = Counter()
    for pattern in HABITS:
        found[pattern] = sum(len(re.findall(pattern, paragraph)) for paragraph in flat)
    return +found


def literals() -> Iterator[tuple[str, str]]:
    """The texts of the program: its help, and every string that is not a docstring, with its place."""
    for context in reference.contexts():
        yield f"{context.command_path} --help", context.get_help()
    for path in sorted((ROOT / "rag_eval").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_documents_are_in_plain_english() -> None:
    texts = {name: prose(text) for name, text in TEXTS.items()}
    texts["config.ini.example"] = (ROOT / "config.ini.example").read_text(encoding="utf-8")
    found = {name: dict(habits(text)) for name, text in texts.items()}
    assert {name: habit for name, habit in found.items() if habit} == {}


def test_help_and_messages_are_in_plain_english() -> None:
    found = [(place, dict(habit), text) for place, text in literals() if (habit := habits(text))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "Print errors alone.",
        "Ask everything anew.",
        "The count is given beside the mean.",
        "Whoever reads the file, or\nwhoever wrote it.",
        "The verdict stands below the table.",
        "'x' is no number.",
        "The interval has 95 % coverage.",
        "Wait so long for another run.",
        "Made again: nobody was asked.",
        "The folder, seen from where the command is run.",
        "What was understood is printed.",
    ],
)
def test_a_sentence_with_such_a_habit_is_found(text: str) -> None:
    assert habits(text.replace("Whoever", "whoever"))


@pytest.mark.parametrize(
    "text",
    [
        "There is no key.",
        "It is no longer used.",
        "What is the answer?",
        "95% of the rows",
        "a standard error",
    ],
)
def test_plain_sentences_are_left_alone(text: str) -> None:
    assert not habits(text)


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
        "requirements-light.lock",
        "requirements.txt",
    ):
        assert words in ci


def test_every_promise_has_tests_that_are_there() -> None:
    rows = re.findall(r"^\| (?!Promise|---)(.+) \| (.+) \|$", TEXTS["tests/requirements.md"], re.MULTILINE)
    assert len(rows) > 80
    for promise, tests in rows:
        named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", tests)
        assert named, promise
        for file, name in named:
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in text, f"{promise}: {file}::{name}"


PACKAGES = {"deepeval", "pandas", "rustpy-xlsxwriter"}
"""Others', which are on PyPI under these names: benchmarks compare with them."""


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
    assert set(everything.partition("[")[2].rstrip("]").split(",")) == set(extras) - {
        "all",
        "dev",
        "ray",
        "embedding",
    }
    sources = [
        *(ROOT / "rag_eval").rglob("*.py"),
        *DOCUMENTS,
        ROOT / "requirements.txt",
        ROOT / "requirements.lock",
        ROOT / "requirements-light.lock",
    ]
    sources += [ROOT / "Makefile", ROOT / "config.ini.example"]
    allowed = {
        ".",
        "*.whl",
        *(f"'{each}'" for each in extras["parquet"]),
        *(f"'.[{extra}]'" for extra in extras),
        "{place}",
        *PACKAGES,
    }
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
    assert named == {"parquet", "entra", "ray", "rubrics", "pandas", "embedding"}
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


RETRIEVAL_RULE = "every context metric that was scored (recall, precision) is below its threshold"


def test_every_text_on_retrieval_failures_has_one_wording() -> None:
    places = {"config.ini.example": 1, "docs/configuration.md": 2, "docs/report.md": 1, "docs/metrics.md": 1}
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

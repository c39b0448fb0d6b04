"""What stands beside the three sheets: the run as JSON, the tables as CSV, and the sheets Evidence and Slices."""

import csv
import json
import math
import os
import signal
import threading
import tracemalloc
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, azure, file_size_limit, wait_for
from fake_judge import Answer, FakeJudge, completion, error
from files import write_table
from forking import Forker
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from report_cases import (
    facts_of,
    plain_result,
    random_results,
    result_of,
    summary_of,
    write_output,
    write_report,
)
from xlsxwriter import Workbook

from rag_eval.cli.options import Options
from rag_eval.cli.output_paths import OutputPaths
from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.provenance import provenance
from rag_eval.configuration.sources import Given, Level, Source
from rag_eval.errors import OutputError
from rag_eval.records import METRIC_LABELS, Case, CaseResult, Evidence, RunFacts, Score
from rag_eval.report.column import Place
from rag_eval.report.csv_files import FILES, CsvReport
from rag_eval.report.evidence import EvidenceLine, evidence_columns
from rag_eval.report.json_file import JsonReport
from rag_eval.report.outputs import Outputs
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.report.styles import Formats
from rag_eval.report.workbook import ExcelReport
from rag_eval.report.worksheet import SheetTable
from rag_eval.results.findings import find
from rag_eval.results.verdict import verdict
from rag_eval.store.lock import locked
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import formula_safe, printable

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
NAMES = FILES[:3]
"""CSV files that every run has."""
TWO_BOTS = ("GPT4", "Claude")
NOTHING = {"configuration": {}, "versions": {"python": "3", "rag-eval": "0"}}


# Files


def open_files() -> set[str]:
    return {os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="nothing tells which files are open")
@pytest.mark.parametrize("is_finished", [True, False], ids=["finished", "discarded"])
def test_outputs_keep_no_file_open_and_leave_none_but_their_own(tmp_path: Path, is_finished: bool) -> None:
    """Also while somebody holds the outputs, as the terminal does until it has printed the verdict."""
    facts = facts_of(TWO_BOTS, 30)
    results = random_results(TWO_BOTS, 30)
    summary = summary_of(results, facts)
    before = open_files()
    outputs = [
        ExcelReport(tmp_path / "r.xlsx", facts),
        JsonReport(tmp_path / "r.json", facts, NOTHING),
        CsvReport(tmp_path / "csv", facts),
        HtmlReport(tmp_path / "r.html", facts, {}, megabytes=1),
    ]
    for result in results:
        for output in outputs:
            output.add(result)
    assert open_files() > before
    for output in outputs:
        if is_finished:
            output.finish(summary, find(summary), facts)
        output.discard()
    assert open_files() == before
    left = {each.name for each in tmp_path.rglob("*")}
    assert left == ({"r.xlsx", "r.json", "csv", "r.html", *NAMES} if is_finished else set())


# JSON


def test_the_schema_is_a_schema_and_knows_what_is_wrong(tmp_path: Path) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    document = _json(tmp_path, [plain_result()], facts_of(["GPT4"], 1))
    _assert_valid(document)
    for spoil in (
        lambda d: d["cases"][0].pop("bot"),
        lambda d: d["cases"][0].update(rqs=1.5),
        lambda d: d["cases"][0]["scores"]["faithfulness"].update(value=None),
        lambda d: d["cases"][0]["scores"]["faithfulness"].update(outcome="failed"),
        lambda d: d["bots"][0]["rqs"].pop("interval"),
        lambda d: d["leaderboard"]["standings"][0].update(rank=0),
        lambda d: d["end"].update(status="done"),
        lambda d: d.pop("end"),
    ):
        spoilt = json.loads(json.dumps(document))
        spoil(spoilt)
        assert not Draft202012Validator(SCHEMA).is_valid(spoilt)


@pytest.mark.parametrize(("bots", "rows"), [(TWO_BOTS, 0), (["A"], 1), (TWO_BOTS, 30), ("ABCDE", 9)])
def test_every_run_fits_the_schema_and_is_strict_json(
    tmp_path: Path, bots: tuple[str, ...], rows: int
) -> None:
    """Missing is null with an outcome; there is no NaN."""
    facts = facts_of(bots, rows)
    document = _json(tmp_path, random_results(bots, rows), facts)
    _assert_valid(document)
    assert len(document["cases"]) == rows * len(bots)
    assert document["end"]["status"] == "complete"


def test_a_case_is_told_whole(tmp_path: Path) -> None:
    scores = {metric: Score.scored(metric, 0.5) for metric in METRIC_LABELS}
    evidence = Evidence("chunk", "About cats.", "not useful", False, "It is about dogs.", rank=2)
    scores["context_precision"] = Score.scored("context_precision", 0.5, "a reason", (evidence,))
    scores["faithfulness"] = Score.failed("faithfulness", "truncated", "the reply was cut")
    scores["context_recall"] = Score.not_applicable("context_recall", "no ground truth")
    case = Case(7, "GPT4", "q?", "r", None, ("a", "b"), columns={"Topic": "pets"})
    document = _json(tmp_path, [result_of(case, scores.values(), advice="Do.")], facts_of(["GPT4"], 1))
    (told,) = document["cases"]
    assert {name: told[name] for name in ("row", "bot", "query", "response", "reference", "chunks")} == {
        "row": 7, "bot": "GPT4", "query": "q?", "response": "r", "reference": None, "chunks": ["a", "b"],
    }  # fmt: skip
    assert (told["rqs"], told["failure_modes"], told["recommendation"]) == (None, ["Not Judged"], "Do.")
    assert told["columns"] == {"Topic": "pets"}
    assert told["scores"]["context_precision"] == {
        "outcome": "scored",
        "value": 0.5,
        "reason": "a reason",
        "code": "",
        "evidence": [
            {
                "subject": "chunk",
                "rank": 2,
                "text": "About cats.",
                "verdict": "not useful",
                "favourable": False,
                "reason": "It is about dogs.",
            }
        ],
        "samples": [],
    }
    failed, missing = told["scores"]["faithfulness"], told["scores"]["context_recall"]
    assert (failed["outcome"], failed["value"], failed["code"]) == ("failed", None, "truncated")
    assert (missing["outcome"], missing["value"], missing["code"]) == ("not_applicable", None, "")


def test_the_leaderboard_is_told_with_its_intervals_and_the_verdict(tmp_path: Path) -> None:
    results = [
        plain_result(row, bot, score)
        for row in range(2, 14)
        for bot, score in (("A", 0.9 if row % 2 else 0.8), ("B", 0.4))
    ]
    facts = facts_of("AB", 12)
    board = _json(tmp_path, results, facts)["leaderboard"]
    summary = summary_of(results, facts)
    findings = find(summary)
    said = verdict(facts, summary, findings)
    assert board["verdict"] == " ".join(said.lines)
    assert board["verdict_lines"] == {
        "decision": "A is better than B.",
        "numbers": said.numbers,
        "limits": [*said.limits],
    }
    first, second = board["standings"]
    interval = findings.compared["A"]
    rival = findings.rival("B")
    assert interval is not None
    assert rival is not None
    assert rival.interval is not None
    assert first["rqs"]["interval"] == [interval.low, interval.high]
    assert (first["verdict"], first["behind_winner"], second["verdict"]) == (
        "better than B by 0.45",
        None,
        "worse than A by 0.45",
    )
    assert second["behind_winner"]["by"] == pytest.approx(0.45)
    assert second["behind_winner"]["interval"] == [rival.interval.low, rival.interval.high]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 40_000,
        "😀" * 20_000,
        "\ud800 alone \udfff",
        "\x00\x1b\x7f\u2028\ufffe",
        '"\\ \r\n\t',
        "=1+1",
        "NaN",
    ],
    ids=["long", "emoji", "surrogates", "controls", "quotes", "formula", "NaN"],
)
def test_texts_are_whole_whatever_they_hold(tmp_path: Path, text: str) -> None:
    case = plain_result(response=text, query=text, chunks=(text,), reference=text)
    (told,) = _json(tmp_path, [case], facts_of(["GPT4"], 1))["cases"]
    assert told["response"] == told["query"] == told["reference"] == told["chunks"][0] == text


def test_a_partial_run_says_so(tmp_path: Path) -> None:
    facts = facts_of(["GPT4"], 5)
    final = replace(facts, partial="interrupted", notes=("A note.",), seconds=3.5)
    document = _json(tmp_path, [plain_result()], facts, final)
    _assert_valid(document)
    assert {name: document["end"][name] for name in ("status", "reason", "notes", "seconds")} == {
        "status": "partial", "reason": "interrupted", "notes": ["A note."], "seconds": 3.5,
    }  # fmt: skip


def test_the_configuration_has_sources_and_no_secrets(tmp_path: Path) -> None:
    """Not the key, and no password in the URL of a provider that does not judge."""
    (tmp_path / "config.ini").write_text(
        f"[azure]\nendpoint = https://me:{KEY}@example.com/?sig={KEY}\n[openai]\napi_key = {KEY}\n"
        "[thresholds]\nfaithfulness = 0.4\n",
        encoding="utf-8",
    )
    judge = Given("offline", Source(Level.COMMAND_LINE, "--judge"))
    loaded = load_settings(None, {"judge.provider": judge}, {}, tmp_path)
    found = provenance(loaded)
    assert KEY not in json.dumps(found)
    configuration = found["configuration"]
    assert configuration["openai"]["api_key"] == {"value": "set", "source": "config.ini line 4"}
    assert configuration["azure"]["api_key"] == {"value": "not set", "source": "default"}
    assert configuration["azure"]["endpoint"]["value"] == "https://example.com/"
    assert configuration["thresholds"]["faithfulness"] == {"value": 0.4, "source": "config.ini line 6"}
    assert configuration["judge"]["provider"] == {"value": "offline", "source": "command line --judge"}
    assert set(configuration) == set(type(loaded.settings).model_fields)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "xlsx"])
def test_an_output_takes_no_memory_for_the_text(tmp_path: Path, kind: str) -> None:
    text = "A sentence of some length. " * 1_000
    path, facts = tmp_path / f"r.{kind}", facts_of(["GPT4"], 300)
    report = JsonReport(path, facts, NOTHING) if kind == "json" else ExcelReport(path, facts)
    tracemalloc.start()
    try:
        for row in range(2, 302):
            report.add(plain_result(row, response=f"{row} {text}"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        report.discard()
    assert peak < 2_000_000  # the text is 8 MB
    assert os.listdir(tmp_path) == []


def test_a_number_that_json_has_no_word_for_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        JsonReport(tmp_path / "r.json", facts_of(["GPT4"], 1, weights={"faithfulness": math.nan}), NOTHING)
    assert os.listdir(tmp_path) == []


def test_a_table_whose_place_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tables" / NAMES[0]).mkdir(parents=True)
    with pytest.raises(OutputError, match="name a file, not a folder, with --csv"):
        CsvReport(tmp_path / "tables", facts_of(["GPT4"], 1))
    assert os.listdir(tmp_path / "tables") == [NAMES[0]]


# CSV


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"{first}1+1", f"'{first}1+1") for first in "=+-@\t＝＋－＠"),
        ("\r=1", "'\n=1"),
        ("\n=1", "'\n=1"),
        ("\x00=1", "'\ufffd=1"),
        ("plain", "plain"),
        ("a=b", "a=b"),
        ("−1 with a true minus", "−1 with a true minus"),
        ("007", "007"),
        ("", ""),
    ],
)
def test_a_text_that_could_be_a_formula_is_quoted(text: str, shown: str) -> None:
    assert printable(formula_safe(text)) == shown


def test_the_three_tables_hold_the_same_as_the_sheets(tmp_path: Path) -> None:
    """Numbers stay numbers, negative ones too; texts are in quotes, so that no separator can split them."""
    results = [
        plain_result(2, "=GPT4", 0.8, response='=cmd|"x",y;z\r\nnext', query="-1+1"),
        plain_result(2, "Claude", 0.5, response=""),
    ]
    facts = facts_of(["=GPT4", "Claude"], 1)
    write_output(CsvReport(tmp_path / "tables", facts), results, facts)
    book = load_workbook(write_report(tmp_path / "r.xlsx", results, facts))
    assert sorted(os.listdir(tmp_path / "tables")) == sorted(NAMES)
    for name, sheet in zip(NAMES, book.worksheets, strict=True):
        content = (tmp_path / "tables" / name).read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        assert content.endswith(b"\r\n")
        rows = _csv(tmp_path / "tables" / name)
        shown = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        for line, cells in zip(shown, _rows(sheet), strict=True):
            for header, value in line.items():
                if header.endswith(" Scored"):
                    continue
                expected = cells[header]
                # A workbook has one digit less than a float.
                assert value == (
                    printable(formula_safe(expected))
                    if isinstance(expected, str)
                    else pytest.approx(expected or value, abs=1e-15)
                )
    cases = (tmp_path / "tables" / NAMES[0]).read_text(encoding="utf-8-sig")
    assert """"'-1+1","The answer.","'=GPT4","'=cmd|""x"",y;z\nnext","c",0.8""" in cases
    assert "95 % minus" not in (tmp_path / "tables" / NAMES[2]).read_text(encoding="utf-8-sig")


def test_older_tables_are_untouched_until_the_end_and_a_new_folder_goes_with_a_discarded_run(
    tmp_path: Path,
) -> None:
    facts = facts_of(["GPT4"], 1)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / NAMES[0]).write_text("older", encoding="utf-8")
    for folder in ("old", "new"):
        report = CsvReport(tmp_path / folder, facts)
        report.add(plain_result())
        report.discard()
    assert os.listdir(tmp_path) == ["old"]
    assert [path.read_text(encoding="utf-8") for path in (tmp_path / "old").iterdir()] == ["older"]


# Evidence


def test_links_end_where_a_sheet_can_hold_no_more(tmp_path: Path) -> None:
    with Workbook(tmp_path / "r.xlsx", {"constant_memory": True}) as book:
        table = SheetTable(book.add_worksheet(), evidence_columns(), Formats(book), 30, 30, sheet_links=2)
        for row in range(4):
            evidence = Evidence("chunk", "a text", "useful", True)
            table.append(EvidenceLine(plain_result(row), "faithfulness", evidence, Place("Other", 1, 7)))
    sheet = load_workbook(tmp_path / "r.xlsx").active
    assert [bool(cell.hyperlink) for (cell,) in sheet.iter_rows(2, max_col=1)] == [True, True, False, False]
    assert [cell.value for (cell,) in sheet.iter_rows(2, max_col=1)] == [0, 1, 2, 3]


def test_slices_without_a_name_have_one_and_small_ones_are_grey(tmp_path: Path) -> None:
    results = [plain_result(2, columns={"Topic": "fees"}), plain_result(3, columns={"Topic": " "})]
    sheet = load_workbook(
        write_report(tmp_path / "r.xlsx", results, facts_of(["GPT4"], 2), slice_by="Topic")
    )["Slices"]
    assert [row["Slice"] for row in _rows(sheet)] == ["fees", "(none)"]
    assert sheet["I1"].value == "Scored"
    assert "$I2<10" in [rule.formula[0] for area in sheet.conditional_formatting for rule in area.rules]


# All of them together


def test_outputs_that_cannot_all_be_opened_leave_nothing(tmp_path: Path) -> None:
    facts = facts_of(["GPT4"], 1)
    (tmp_path / "r.json").touch()
    with pytest.raises(OutputError, match=r"r\.json/r\.json: .*a file, not a folder; .* with --json"):
        Outputs.opened(
            [
                lambda: ExcelReport(tmp_path / "r.xlsx", facts),
                lambda: CsvReport(tmp_path / "tables", facts),
                lambda: JsonReport(tmp_path / "r.json" / "r.json", facts, NOTHING),
            ]
        )
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("rows", [1, 60])
def test_a_disk_that_takes_no_more_is_an_output_error(tmp_path: Path, kind: str, rows: int) -> None:
    """A limit on the size of files stands in for a full disk."""
    facts = facts_of(TWO_BOTS, rows)
    report = (
        JsonReport(tmp_path / "r", facts, NOTHING) if kind == "json" else CsvReport(tmp_path / "r", facts)
    )
    with file_size_limit(900), pytest.raises(OutputError, match=f"cannot be written: .* with --{kind}"):
        write_output(report, random_results(TWO_BOTS, rows), facts)
    report.discard()
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_the_command_line_writes_all_of_it(run_cli: Run, tmp_path: Path) -> None:
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Bot_A", "Bot_B", "Context", "Topic"],
        *(["What is tea?", "Tea is a drink.", "No idea.", "Tea is a drink.", topic] for topic in "xxy"),
    )
    (tmp_path / "config.ini").write_text("[report]\nevidence = yes\njson = yes\nslice_by = topic\n")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--csv", "tables", "--judge", "offline")
    assert ended.code == 0, ended.err
    assert sorted(os.listdir(tmp_path)) == ["config.ini", "in.xlsx", "r.json", "r.xlsx", "tables"]
    document = _parsed(tmp_path / "r.json")
    _assert_valid(document)
    assert [each["name"] for each in document["slices"]] == ["x", "y"]
    assert document["leaderboard"]["verdict"] in " ".join(ended.out.splitlines())
    assert load_workbook(tmp_path / "r.xlsx").sheetnames[3:] == ["Slices", "Evidence"]
    assert len(_csv(tmp_path / "tables" / NAMES[0])) == 7
    for place in ("r.json", "tables", "r.xlsx"):
        assert f": {place}\n" in ended.out


def test_a_run_with_failures_fits_the_schema_and_shows_no_key(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    judge.always = lambda request: (
        error(400, "content_filter", "The response was filtered", "prompt")
        if request.task == "verdicts"
        else None
    )
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], ["q?", "Tea is a drink.", "Tea."])
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "out.json", "--csv", "tables", **azure(judge))
    assert ended.code == 3, ended.err
    document = _parsed(tmp_path / "out.json")
    _assert_valid(document)
    assert document["cases"][0]["scores"]["faithfulness"]["code"] == "blocked_by_filter"
    assert document["configuration"]["azure"]["api_key"]["value"] == "set"
    assert document["end"]["usage"]["calls"] > 0
    written = [tmp_path / "out.json", *(tmp_path / "tables").iterdir()]
    assert not any(KEY.encode() in path.read_bytes() for path in written)


_USED = ("calls", "cached", "prompt_tokens", "completion_tokens")
_PRICED = "[prices]\ninput = 100\noutput = 400\n[cache]\nenabled = yes\ndirectory = cache\n"


@pytest.mark.parametrize("configuration", [_PRICED, _PRICED.partition("[cache]")[0], ""])
def test_what_the_metrics_took_adds_up_to_the_totals(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, configuration: str
) -> None:
    """With a bundle, calls that two metrics share, an unusable reply that is paid for, and prices or none."""
    unusable = ["no"]
    judge.always = lambda r: completion(unusable.pop(), r) if unusable and r.task == "verdicts" else None
    (tmp_path / "config.ini").write_text(configuration)
    rows = [[f"What is tea {n}?", "Tea is a drink.", "Tea is a drink.", "No.", "Tea."] for n in range(3)]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"], *rows)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "out.json", **azure(judge))
    assert ended.code == 0, ended.err
    usage = _usage_in(tmp_path / "out.json")
    metrics = usage["by_metric"]
    assert metrics.keys() == {*METRIC_LABELS, "statements", "toxicity", "recommendation", "preflight"}
    assert metrics["toxicity"]["calls"] == 1
    assert usage["requests"] == usage["calls"] + len(["preflight", "the unusable reply"])
    assert {name: sum(each[name] for each in metrics.values()) for name in _USED} == {
        name: usage[name] for name in _USED
    }
    costs = [each["cost"] for each in metrics.values()]
    if configuration:
        assert sum(costs) == pytest.approx(usage["cost"])
        assert all(
            each["cost"] == pytest.approx(each["prompt_tokens"] / 1e4 + each["completion_tokens"] / 2500)
            for each in metrics.values()
        )
    else:
        assert costs == [None] * len(metrics)


@pytest.mark.slow
def test_a_run_from_the_cache_took_nothing(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(_PRICED)
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], ["q?", "Tea is a drink.", "Tea."])
    for _ in range(2):
        assert run_cli("in.xlsx", "-o", "r.xlsx", "--json", "out.json", **azure(judge)).code == 0
    usage = _usage_in(tmp_path / "out.json")
    assert usage["cached"] == sum(each["cached"] for each in usage["by_metric"].values()) > 5
    assert {(each["calls"], each["prompt_tokens"], each["cost"]) for each in usage["by_metric"].values()} == {
        (0, 0, 0.0)
    }


def test_usage_is_read_back_as_it_was_written(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], ["q?", "Tea is a drink.", "Tea."])
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--json", "out.json", **azure(judge)).code == 0
    assert run_cli("out.json", "-o", "r2.xlsx", "--report-only", "--json", "again.json").code == 0
    assert _usage_in(tmp_path / "again.json") == _usage_in(tmp_path / "out.json")


def _usage_in(path: Path) -> dict[str, Any]:
    document = _parsed(path)
    _assert_valid(document)
    usage: dict[str, Any] = document["end"]["usage"]
    return usage


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--json", "in.xlsx"], 2, "in.xlsx: is the input"),
        (["-o", "r.xlsx", "--json", "r.xlsx"], 2, "r.xlsx: is the report"),
        (["-o", "taken/a/r.xlsx"], 5, "taken/a/r.xlsx: cannot be written: Not a directory"),
        (["--json", "taken/r.json"], 5, "taken/r.json: cannot be written"),
        (["--csv", "taken/tables"], 5, "taken/tables: cannot be written"),
        (["--junit", "taken/a/r.xml"], 5, "taken/a/r.xml: cannot be written"),
        (["--manifest", "taken/r.json"], 5, "taken/r.json: cannot be written"),
        (
            ["--csv", "in.xlsx"],
            2,
            "would be in in.xlsx, which is the input and not a folder; choose another name with --csv\n",
        ),
        (
            ["-o", "r.xlsx", "--json", "r.xlsx/r.json"],
            2,
            "would be in r.xlsx, which is the report and not a folder",
        ),
        (["--json", "a", "--csv", "a"], 2, "would be in a, which is the output of --json and not a folder"),
        (
            ["-o", "a/r.xlsx", "--csv", "a/c", "--json", "a"],
            2,
            "a: is the folder of a/r.xlsx, which is the report; choose another name with --json\n",
        ),
        (["-o", "r.xlsx", "--json", "r.xlsx.journal"], 2, "r.xlsx.journal: is the reply cache"),
    ],
)
def test_a_place_that_cannot_be_written_costs_nothing(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, arguments: list[str], code: int, expected: str
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    (tmp_path / "taken").touch()
    before = (tmp_path / "in.xlsx").read_bytes()
    ended = run_cli("in.xlsx", *arguments, **azure(judge))
    assert (ended.code, judge.requests) == (code, [])
    assert expected in ended.err
    assert (tmp_path / "in.xlsx").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (["--html", "p.html"], "data/p.html"),
        (["--html", "./p.html"], "p.html"),
        (["--html", "pages/p.html"], "pages/p.html"),
        (["--html", "p.html", "-o", "r.xlsx"], "p.html"),
    ],
)
def test_a_page_without_a_folder_is_next_to_the_report_that_is_next_to_the_input(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, arguments: list[str], page: str
) -> None:
    (tmp_path / "data").mkdir()
    write_table(tmp_path / "data" / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    for command in (["data/in.xlsx"], ["compare-judges", "data/in.xlsx", "--model-b", "b"]):
        assert run_cli(*command, *arguments, **azure(judge)).code == 0
        assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.html")] == [page]
        (tmp_path / page).unlink()


@pytest.mark.slow
def test_the_folder_of_every_output_is_made(run_cli: Run, tmp_path: Path) -> None:
    """As cron jobs want that write into a folder named by the day."""
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    places = {
        "-o": "2026/11/r.xlsx", "--json": "j/run.json", "--csv": "t/a/b", "--junit": "x/y/gates.xml",
        "--manifest": "m/run.json",
    }  # fmt: skip
    words = [word for pair in places.items() for word in pair]
    assert run_cli("in.xlsx", *words, "--dry-run", "--judge", "offline").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.xlsx",
        "m",
    ]  # it says how the dry run went
    assert run_cli("in.xlsx", *words, "--judge", "offline").code == 0
    places["--csv"] += "/leaderboard.csv"
    assert [place for place in places.values() if not (tmp_path / place).is_file()] == []
    assert run_cli("in.xlsx", *words, "--judge", "offline").code == 0  # nor is it in the way when it is there


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--junit", "in.csv"], "in.csv: is the input"),
        (["--junit", "r.xlsx"], "r.xlsx: is the report"),
        (["--manifest", "r.xlsx"], "r.xlsx: is the report"),
        (["--json", "x.json", "--junit", "./x.json"], "x.json: is the output of --json"),
        (["--config", "c.ini", "--json", "c.ini"], "c.ini: is the configuration"),
        (["--json", "config.ini"], "config.ini: is "),
        (["--baseline", "b.xlsx", "--json", "b.xlsx"], "b.xlsx: is the baseline"),
        (["--json", "rubric.yaml"], "rubric.yaml: is the rubric"),
        (["--junit", "link"], "link: is the input"),
        (["--html", "r.xlsx"], "r.xlsx: is the report; choose another name with --html"),
        (["--html", "x", "--json", "x"], "x: is the output of --json; choose another name with --html"),
        (["--html", "x", "--junit", "x"], "x: is the output of --html; choose another name with --junit"),
        (["--html-no-texts"], "--html-no-texts needs a page; add --html PATH or [report] html = true"),
    ],
)
def test_no_output_is_written_over_another_file_of_the_run(
    run_cli: Run, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    (tmp_path / "in.csv").write_text("Query,Ground_Truth,Bot_A\nq?,Tea.,Tea is a drink.\n")
    assert run_cli("in.csv", "-o", "b.xlsx", "--judge", "offline").code == 0
    (tmp_path / "config.ini").write_text("[rubric]\nfile = rubric.yaml\n")
    (tmp_path / "c.ini").write_text("")
    (tmp_path / "rubric.yaml").write_text(
        "rubric_id: r\npassing_score_threshold: 0\nmetrics: [{id: polite, rubric: It is polite.}]\n"
    )
    (tmp_path / "link").symlink_to("in.csv")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline", *arguments)
    assert expected in ended.err
    assert ended.code == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def earlier(folder: Path, *names: str) -> str:
    """Outputs of yesterday's run in the folder; what is said of them when there are none of today's."""
    moment = datetime(2026, 1, 2, 3, 4)
    for name in names:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("yesterday's")
        os.utime(path, (moment.timestamp(), moment.timestamp()))
    shown = ", ".join(f"{name.removesuffix('/leaderboard.csv')} (2026-01-02 03:04)" for name in names)
    return f"rag-eval: No report was written. From an earlier run: {shown}.\n"


NO_REPORT = "rag-eval: No report was written.\n"
EVERY = ("r.xlsx", "p.html", "r.json", "tables/leaderboard.csv", "g.xml")
EVERY_OPTION = ("-o", "r.xlsx", "--html", "p.html", "--json", "r.json", "--csv", "tables", "--junit", "g.xml")
ENDINGS: dict[str, tuple[int, Answer, str, list[str]]] = {
    "no connection": (4, Answer(is_reset=True), "", []),
    "a wrong key": (4, error(401, "401", "Access denied"), "", []),
    "a broken server": (4, error(500, "500", "Internal error"), "", []),
    "a limit": (4, Answer(), "[limits]\nmax_calls = 1\n", []),
    "a wrong setting": (2, Answer(), "[nope]\n", []),
    "a wrong option": (2, Answer(), "", ["--where", "nope = 1"]),
    "no place for replies": (5, Answer(), "[cache]\nenabled = true\ndirectory = taken\n", []),
}


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [[], ["-q"]])
@pytest.mark.parametrize(("code", "answer", "settings", "words"), ENDINGS.values(), ids=ENDINGS)
def test_a_run_without_a_report_says_so_and_names_the_files_of_an_earlier_one(
    run_cli: Run,
    judge: FakeJudge,
    tmp_path: Path,
    code: int,
    answer: Answer,
    settings: str,
    words: list[str],
    quiet: list[str],
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    (tmp_path / "config.ini").write_text(f"[judge]\nmax_attempts = 1\n{settings}")
    (tmp_path / "taken").touch()
    judge.always = answer

    def run() -> str:
        ended = run_cli("in.xlsx", *EVERY_OPTION, *words, *quiet, **azure(judge))
        assert ended.code == code, ended.err
        return ended.err

    assert run().endswith(NO_REPORT) is (code == 4)
    said = earlier(tmp_path, *EVERY)
    assert run().endswith(said)
    assert {(tmp_path / name).read_text() for name in EVERY} == {"yesterday's"}
    for show in ("--show", "--dry-run"):
        assert NO_REPORT[:-1] not in run_cli("in.xlsx", *EVERY_OPTION, *words, show, **azure(judge)).err


def test_a_report_that_another_run_is_writing_is_of_an_earlier_one_still(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    with locked(tmp_path / "r.xlsx"):
        ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
        assert (ended.code, NO_REPORT in ended.err) == (75, False)
        said = earlier(tmp_path, "r.xlsx")
        ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert (ended.code, ended.err.endswith(said)) == (75, True)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_interrupted_before_the_first_reply_says_that_there_is_no_report(
    forker: Forker, judge: FakeJudge, tmp_path: Path, number: int, code: int
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    judge.always = lambda request: threading.Event().wait() and None
    said = earlier(tmp_path, "r.xlsx")
    run = forker.start(tmp_path, "in.xlsx", "-o", "r.xlsx", "-q", variables=azure(judge))
    wait_for(lambda: judge.requests)
    run.signal(number)
    ended = run.wait()
    assert (ended.code, ended.err.endswith(said)) == (code, True), ended.err


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (["compare-judges", "in.xlsx", "--model-b", "b", "-o", "j.xlsx"], "j.xlsx"),
        (["in.xlsx", "--shard-rows", "1", "-o", "s"], "s/report.xlsx"),
    ],
)
def test_every_kind_of_run_says_that_there_is_no_report(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path, words: list[str], report: str
) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    judge.always = error(401, "401", "Access denied")
    ended = rag_eval(*words, **azure(judge))
    assert (ended.code, ended.err.endswith(NO_REPORT)) == (4, True), ended.err
    said = earlier(tmp_path, report)
    assert rag_eval(*words, **azure(judge)).err.endswith(said)


def test_files_that_were_written_before_an_error_are_not_called_old(tmp_path: Path) -> None:
    earlier(tmp_path, "r.xlsx", "r.json", "g.xml")
    options = Options(json=tmp_path / "r.json", junit=tmp_path / "g.xml")

    def run() -> None:
        with OutputPaths(tmp_path / "in.csv", tmp_path / "r.xlsx", options):
            for name in ("r.xlsx", "r.json"):
                write_text(tmp_path / name, "today's", "-o")
            raise OutputError("g.xml: cannot be written")

    with pytest.raises(OutputError) as failure:
        run()
    assert failure.value.__notes__ == [f"From an earlier run: {tmp_path / 'g.xml'} (2026-01-02 03:04)."]


def test_what_must_not_be_overwritten_is_not_called_a_report(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    earlier(tmp_path, "taken.csv")
    for words in (("-o", "taken.csv"), ("-o", "in.xlsx"), ("-o", "r.xlsx", "--json", "config.ini")):
        (tmp_path / "config.ini").write_text("")
        ended = run_cli("in.xlsx", *words, "--judge", "offline")
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended.err


def test_a_slice_column_that_is_not_there_is_named(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q?", "Tea is a drink."])
    (tmp_path / "config.ini").write_text("[report]\nslice_by = Topic\n")
    ended = run_cli("in.xlsx", "--judge", "offline")
    assert ended.code == 2
    assert "Topic" in ended.err


# Reading them


def _json(
    folder: Path, results: list[CaseResult], facts: RunFacts, final: RunFacts | None = None
) -> dict[str, Any]:
    return _parsed(write_output(JsonReport(folder / "r.json", facts, NOTHING), results, facts, final))


def _parsed(path: Path) -> dict[str, Any]:
    """Strictly: NaN and Infinity are errors, and so is a key that stands twice."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    document: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=refuse, object_pairs_hook=unique)
    return document


def _assert_valid(document: dict[str, Any]) -> None:
    errors = [
        f"{found.json_path}: {found.message}" for found in Draft202012Validator(SCHEMA).iter_errors(document)
    ]
    assert errors == []


def _csv(path: Path) -> list[list[Any]]:
    """What is not in quotes is a number."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, quoting=csv.QUOTE_NONNUMERIC))


def _rows(sheet: Any) -> list[dict[str, Any]]:
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_a_report_from_stored_replies_costs_nothing(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["How tall is it?", "It is 5 m tall."])
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n[prices]\ninput = 1\noutput = 2\n")
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 0
    sent = len(judge.requests)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--report-only", **azure(judge))
    assert (ended.code, len(judge.requests)) == (0, sent)
    assert "(0 requests, 0 + 0 tokens), cost 0.0000 USD." in ended.out


def test_means_in_csv_files_have_their_counts(run_cli: Run, tmp_path: Path) -> None:
    """Faithfulness of the second response is not applicable, so its mean is over one of two."""
    (tmp_path / "in.csv").write_text(
        "Query,Ground_Truth,Context,Bot_A\nq?,Tea.,Tea is a drink.,Tea is a drink.\nr?,Tea.,Tea is a drink.,\n"
    )
    run_cli("in.csv", "-o", "r.xlsx", "--csv", "t", "--judge", "offline", "--history", "h")
    for name in (NAMES[1], NAMES[2], "history.csv"):
        header, line = _csv(tmp_path / "t" / name)
        shown = dict(zip(header, line, strict=True))
        assert (shown["Faithfulness Scored"], shown["Answer Correctness Scored"]) == (1, 2)

"""The page as a file: what is in it, what fits, and where it is written. test_page_browser.py opens it."""

import base64
import hashlib
import json
import re
import tomllib
import tracemalloc
import zlib
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from files import write_table
from hypothesis import given
from hypothesis import strategies as st
from page_cases import page_of
from report_cases import facts_of, failed_result, plain_result, random_results, result_of, write_output

from rag_eval.errors import OutputError
from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    CriterionVerdict,
    Evidence,
    Outcome,
    RubricOutcome,
    Score,
)
from rag_eval.report.page.figures import Point, histogram, mean_bar, timeline
from rag_eval.report.page.html_page import HtmlReport
from rag_eval.report.page.packing import REASON_BITS, _ChosenRows
from rag_eval.report.page.row_record import TEXT_LIMIT, row_record
from rag_eval.results.intervals import Interval

BOTS = ("Atlas", "Birch")
_WORST, _RANDOM = REASON_BITS["worst"], REASON_BITS["random"]


def read(page: Path) -> dict[str, Any]:
    """What page.js reads: meta, row numbers, reasons for their choice, the cases' RQS, snippets and records."""
    html = page.read_text(encoding="utf-8")
    meta = json.loads(element(html, 'id="meta"'))
    numbers = unpacked(element(html, 'id="numbers"'))
    rows, cases = meta["rows"], meta["cases"]
    wide = array("I", numbers[: 4 * (4 * rows + cases)])
    narrow = array("h", numbers[len(wide) * 4 : len(wide) * 4 + 2 * cases * (2 + len(meta["columns"]))])
    blocks = [json.loads(unpacked(each)) for each in re.findall(r'class="texts">([^<]*)<', html)]
    places = zip(wide[2 * rows : 3 * rows], wide[3 * rows : 4 * rows], strict=True)
    return {
        "meta": meta,
        "rows": list(wide[:rows]),
        "slices": list(wide[rows : 2 * rows]),
        "at": list(wide[4 * rows :]),
        "rqs": list(narrow[2 * cases : 3 * cases]),
        "columns": [list(narrow[start : start + cases]) for start in range(0, len(narrow), cases or 1)],
        "bits": list(numbers[len(wide) * 4 + len(narrow) * 2 : -rows]) if rows else [],
        "why": list(numbers[-rows:]) if rows else [],
        "queries": json.loads(unpacked(element(html, 'id="queries"'))),
        "records": [blocks[block][position] for block, position in places],
    }


def element(html: str, attribute: str) -> str:
    (found,) = re.findall(rf"{attribute}>([^<]*)</script>", html)
    return str(found)


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text, validate=True), -zlib.MAX_WBITS)


# What is in it


def test_the_page_holds_every_case_and_its_texts(tmp_path: Path) -> None:
    results = random_results(BOTS, 30)
    page = read(page_of(tmp_path / "p.html", results))
    assert page["rows"] == list(range(2, 32))
    assert page["why"] == [0] * 30
    expected = [-2 if each.rqs is None else int(each.rqs * 10_000 + 0.5) for each in results]
    assert [value if value >= 0 else -2 for value in page["rqs"]] == expected
    assert [case.get("a", "") for row in page["records"] for case in row["c"]] == [
        each.case.response for each in results
    ]
    assert page["queries"] == [results[2 * row].case.query for row in range(30)]


@pytest.mark.parametrize(
    ("rows", "length", "blocks"), [(500, 1, 1), (501, 1, 2), (7, 20_000, 1), (8, 20_000, 1), (9, 20_000, 2)]
)
def test_texts_are_packed_in_blocks_that_a_browser_unpacks_at_once(
    rows: int, length: int, blocks: int, tmp_path: Path
) -> None:
    results = [plain_result(row, "A", 0.5, response="x" * length) for row in range(rows)]
    page = page_of(tmp_path / "p.html", results)
    assert page.read_text(encoding="utf-8").count('class="texts">') == blocks
    assert [len(record["c"]) for record in read(page)["records"]] == [1] * rows


def test_readers_without_a_script_see_the_fifty_cases_with_the_lowest_rqs(tmp_path: Path) -> None:
    """The lowest first, of equal ones the first; long texts are shortened, and an empty response is named."""
    results = [plain_result(row, "A", (row * 7 % 60) / 100) for row in range(2, 62)]
    results[10] = replace(results[10], rqs=None)
    low = replace(results[20].case, response="", query="q" * 401, reference="r" * 601)
    results[20] = replace(results[20], case=low, rqs=0.0004, recommendation="Look.")
    html = page_of(tmp_path / "p.html", results).read_text(encoding="utf-8")
    static = html[html.index("The 50 cases with the lowest RQS") :]
    shown = [int(row) for row in re.findall(r"<h3>Row (\d+), ", static)]
    ranked = sorted((each.rqs, each.case.row) for each in results if each.rqs is not None)
    assert shown == [row for _, row in ranked[:50]]
    for row, article in zip(shown, static.split("<h3>Row ")[1:], strict=True):
        low = results[row - 2].scores["faithfulness"].value or 0.0
        assert ("(below)" in article.partition("</article>")[0]) is (low < 0.3)
    values = dict(re.findall(r"<dt>([^<]*)</dt><dd dir=\"auto\">([^<]*)</dd>", static.split("<h3>")[2]))
    assert values == {
        "Query": "q" * 399 + "…",
        "Response": "(empty)",
        "Ground truth": "r" * 599 + "…",
        "Recommendation": "Look.",
    }


def test_what_the_columns_mean_is_in_the_page(tmp_path: Path) -> None:
    metrics = tuple(name for name in METRIC_LABELS if name != "faithfulness")
    result = plain_result(2, "A")
    result = replace(result, scores={name: result.scores[name] for name in metrics})
    html = page_of(tmp_path / "p.html", [result], metrics=(*metrics, TOXICITY)).read_text(encoding="utf-8")
    terms = re.findall(r"<dt>([^<]*)</dt>", html[html.index("<h3>Definitions</h3>") :])
    labels = [label for label in METRIC_LABELS.values() if label != "Faithfulness"]
    modes = ["Retrieval Failure", "Hallucination", "Low Quality", "Not Judged"]
    assert terms == ["RQS", *labels, "Input Toxicity", *modes]


def test_the_policy_allows_exactly_the_script_and_style_of_the_page(tmp_path: Path) -> None:
    html = page_of(tmp_path / "p.html", random_results(BOTS, 3)).read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert len(script) + len(style) <= 60_000
    assert not re.findall(
        r"""\s(?:src|style|on\w+)=|href="(?!#)|url\(""", html.replace(script, "").replace(style, "")
    )


def test_evidence_is_a_position_in_the_text_and_not_a_copy(tmp_path: Path) -> None:
    """In UTF-16 units, as JavaScript counts; a text that is found twice is two positions."""
    evidence = (
        Evidence("statement", "It costs 3.", "supported", True),
        Evidence("statement", "It costs 3.", "supported", True),
        Evidence("statement", "It cost three.", "not supported", False, "why"),
        Evidence("reference sentence", "Three euros.", "found", True),
        Evidence("chunk", "b", "useful", True, rank=2),
    )
    case = Case(2, "Atlas", "q?", "🚲🚲 It costs 3. It costs 3.", "Three euros.", ("a", "b"))
    result = result_of(case, [Score.scored("faithfulness", 0.5, "", evidence)])
    other = replace(result, case=replace(case, bot="Birch", chunks=("b", "c")))
    record = json.loads(row_record([result, other], facts_of(BOTS, 1)))
    assert record["k"] == ["a", "b", "c"]
    assert [bot["k"] for bot in record["c"]] == [[0, 1], [1, 2]]
    assert record["c"][0]["s"]["faithfulness"]["e"] == [
        ["statement", "supported", 1, [0, 5, 11]],
        ["statement", "supported", 1, [0, 17, 11]],
        ["statement", "not supported", 0, "It cost three.", "why"],
        ["reference sentence", "found", 1, [1, 0, 12]],
        ["chunk", "useful", 1, [4, 0, 0], "", 2],
    ]


def test_a_statement_with_the_rank_of_its_chunk_is_found_in_its_own_text() -> None:
    """Even if it says word for word what the chunk says."""
    evidence = Evidence("reference statement", "Three euros.", "found in the context", True, rank=1)
    case = Case(2, "Atlas", "q?", "It costs 3.", "Three euros.", ("Three euros.", "b"))
    result = result_of(case, [Score.scored("context_recall", 1.0, "", (evidence,))])
    (bot,) = json.loads(row_record([result], facts_of(("Atlas",), 1)))["c"]
    assert bot["s"]["context_recall"]["e"] == [
        ["reference statement", "found in the context", 1, [1, 0, 12], "", 1]
    ]


def test_a_very_long_text_is_cut_with_a_mark_and_its_evidence_is_quoted() -> None:
    late = Evidence("statement", "The end.", "supported", True)
    case = Case(2, "Atlas", "q", "a" * TEXT_LIMIT + " The end.")
    record = json.loads(
        row_record([result_of(case, [Score.scored("faithfulness", 1, "", (late,))])], facts_of(BOTS, 1))
    )
    assert record["c"][0]["a"] == "a" * TEXT_LIMIT + " […] (cut: 100,009 characters in all)"
    assert record["c"][0]["s"]["faithfulness"]["e"] == [["statement", "supported", 1, "The end."]]


def test_a_row_of_many_long_texts_stays_small() -> None:
    case = Case(2, "Atlas", "q", "r", "g", tuple(f"{rank}" + "x" * 90_000 for rank in range(50)))
    assert len(row_record([result_of(case, [])], facts_of(BOTS, 1))) < 250_000


def test_without_texts_nothing_of_them_is_in_the_file(tmp_path: Path) -> None:
    evidence = (Evidence("statement", "SECRET", "supported", True, "SECRET"),)
    scores = [Score.scored(metric, 0.1, "SECRET", evidence) for metric in METRIC_LABELS]
    case = Case(2, "Atlas", "SECRET", "SECRET", "SECRET", ("SECRET",), ("SECRET",), ("SECRET",))
    page = page_of(tmp_path / "p.html", [result_of(case, scores, advice="SECRET")], has_texts=False)
    content = read(page)
    assert content["records"] == [0]
    assert content["queries"] == [""]
    assert "SECRET" not in page.read_text(encoding="utf-8")


def test_texts_from_data_are_escaped_and_what_html_forbids_is_replaced(tmp_path: Path) -> None:
    text = "<b>&\"'\0\ud800\x1b\u2028</script>"
    results = [replace(plain_result(2, text, 0.1), recommendation=text)]
    html = page_of(tmp_path / "p.html", results, input_name=text, judge=text, partial=text).read_text("utf-8")
    assert '<b>&"' not in html
    assert html.count("&lt;b&gt;&amp;&quot;&#x27;��\ufffd") >= 4
    assert "\0" not in html
    assert html.count("</script>") == html.count("<script")
    assert read(tmp_path / "p.html")["meta"]["bots"] == [text]


def test_a_lone_surrogate_reaches_the_page_as_it_is(tmp_path: Path) -> None:
    results = [plain_result(2, "Atlas", 0.5, response="\ud800 and \udfff")]
    assert read(page_of(tmp_path / "p.html", results))["records"][0]["c"][0]["a"] == "\ud800 and \udfff"


@pytest.mark.parametrize("rows", [0, 1])
def test_runs_of_no_and_of_one_row(tmp_path: Path, rows: int) -> None:
    target = tmp_path / "p.html"
    facts = facts_of(BOTS, rows)
    from rag_eval.results.tallies import Tallies

    page, tallies = HtmlReport(target, facts, {}, megabytes=8), Tallies(facts)
    for result in random_results(BOTS, rows):
        page.add(result)
        tallies.add(result)
    summary = tallies.summary()
    page.finish(summary, tallies.findings(summary), facts)
    assert read(target)["rows"] == list(range(2, 2 + rows))


# What fits


def varied(rows: int, words: int = 200) -> list[CaseResult]:
    """Texts that hardly pack; the lowest RQS of Atlas comes first, that of Birch last."""

    def text(seed: str) -> str:
        digests = (hashlib.sha256(f"{seed} {number}".encode()).hexdigest() for number in range(words // 8))
        return " ".join(digests)

    return [
        plain_result(row, bot, share if bot == "Atlas" else 1 - share, response=text(f"{row} {bot}"))
        for row in range(2, rows + 2)
        for bot in BOTS
        for share in [(row - 2) / rows]
    ]


@pytest.mark.slow
def test_what_does_not_fit_is_cut_to_the_worst_of_each_bot_and_as_many_at_random(tmp_path: Path) -> None:
    results = varied(2_000)
    target = page_of(tmp_path / "p.html", results, megabytes=1)
    page = read(target)
    assert target.stat().st_size <= 1_000_000
    rows = {
        why: [row for row, bits in zip(page["rows"], page["why"], strict=True) if bits & why]
        for why in (_WORST, _RANDOM)
    }
    worst_of_atlas = [row for row in rows[_WORST] if row < 1_000]
    worst_of_birch = [row for row in rows[_WORST] if row >= 1_000]
    assert worst_of_atlas == list(range(2, 2 + len(worst_of_atlas)))
    assert worst_of_birch == list(range(2_002 - len(worst_of_birch), 2_002))
    assert abs(len(worst_of_atlas) - len(worst_of_birch)) <= 1
    assert abs(len(rows[_RANDOM]) - len(worst_of_atlas)) <= 1
    middle = [row for row in rows[_RANDOM] if 500 < row <= 1_500]
    assert 0.4 < len(middle) / len(rows[_RANDOM]) < 0.6
    assert all(page["why"])
    assert [len(record["c"]) for record in page["records"]] == [2] * len(
        page["rows"]
    )  # every bot of each row
    html = target.read_text(encoding="utf-8")
    said = f"The page contains {2 * len(page['rows']):,} of 4,000 cases ({len(page['rows']):,} of 2,000 rows)"
    assert f'<p class="cut">{said}' in html
    both = len({*rows[_WORST]} & {*rows[_RANDOM]})
    assert both, "else this says nothing about rows that are chosen twice"
    drawn = f"({len(rows[_RANDOM]):,}; {both:,} are both)"
    assert f"lowest RQS of a bot ({len(rows[_WORST]):,}) and rows drawn at random {drawn}" in html


@pytest.mark.slow
def test_a_page_that_just_fits_is_whole_and_one_byte_less_is_cut(tmp_path: Path) -> None:
    results = varied(1_500)
    whole = page_of(tmp_path / "p.html", results, megabytes=100).stat().st_size
    assert whole > 1_000_000
    fits = read(page_of(tmp_path / "p.html", results, megabytes=(whole + 2_000) / 1e6))
    assert len(fits["rows"]) == 1_500
    cut = read(page_of(tmp_path / "p.html", results, megabytes=(whole - 200_000) / 1e6))
    assert 0 < len(cut["rows"]) < 1_500


@pytest.mark.slow
def test_a_page_of_hundreds_of_bots_is_as_small_as_it_must_be(tmp_path: Path) -> None:
    """Whatever the bots are called; at most so many of them are listed, and the page says how many are not."""
    bots = [f"{number} {'x' * 8_000}" for number in range(150)]
    page = page_of(tmp_path / "p.html", [plain_result(2, bot, 0.5) for bot in bots], megabytes=1)
    assert page.stat().st_size <= 1_000_000
    html = page.read_text("utf-8")
    assert html.count("… and 50 more bots: see the workbook or the JSON.") == 1
    assert html.count('class="card"') == 100


def test_a_page_that_has_no_room_for_cases_says_so(tmp_path: Path) -> None:
    facts = facts_of(BOTS, 3)
    page = HtmlReport(tmp_path / "p.html", facts, {}, megabytes=0.03)
    write_output(page, [plain_result(row, bot) for row in (2, 3, 4) for bot in BOTS], facts)
    (sentence,) = page.left_out
    assert re.fullmatch(
        r"The page has no table of cases: \[report\] html_mb allows 0\.03 MB, and what it says of 2 bots and of the "
        r"run takes 0\.\d MB\. Raise html_mb, or use the workbook\.",
        sentence,
    )
    assert sentence in (tmp_path / "p.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "stored"),
    [(0.725, 7250), (0.72496, 7249), (0.72504, 7250), (0.7249999999999999, 7250), (1, 10_000)],
)
def test_a_number_on_the_page_is_rounded_once(tmp_path: Path, value: float, stored: int) -> None:
    page = read(page_of(tmp_path / "p.html", [replace(plain_result(2, "A"), rqs=value)], megabytes=1))
    assert page["rqs"] == [stored]


@pytest.mark.slow
def test_the_means_of_a_cut_page_are_those_of_the_run(tmp_path: Path) -> None:
    results = varied(1_000)
    pages = [page_of(tmp_path / f"{size}.html", results, megabytes=size) for size in (1, 100)]
    boards = [re.search(r"<h1.*?</table>", page.read_text("utf-8"), re.DOTALL) for page in pages]
    assert boards[0]
    assert boards[1]
    assert boards[0][0] == boards[1][0]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    """200,000 cases stay below 100 MB; here 10 MB of texts below 6 MB."""
    facts = facts_of(BOTS, 2_500)
    page = HtmlReport(tmp_path / "p.html", facts, {}, megabytes=8)
    template = {bot: plain_result(2, bot, 0.5, response="word " * 400) for bot in BOTS}
    from rag_eval.results.tallies import Tallies

    tallies = Tallies(facts)
    summary = tallies.summary()
    findings = tallies.findings(summary)
    tracemalloc.start()
    try:
        for row in range(2, 2_502):
            for result in template.values():
                page.add(replace(result, case=replace(result.case, row=row)))
        page.finish(summary, findings, facts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6e6


def test_a_page_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "p.html"
    target.write_text("older", encoding="utf-8")
    page = HtmlReport(target, facts_of(BOTS, 1), {}, megabytes=8)
    page.add(plain_result(2, "Atlas"))
    page.discard()
    page.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
    assert target.read_text(encoding="utf-8") == "older"


def test_a_page_that_cannot_be_written_says_so_before_anything_is_judged(tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OutputError, match=r"folder\.html.*--html"):
        HtmlReport(tmp_path / "folder.html", facts_of(BOTS, 1), {}, megabytes=8)


def test_a_case_has_the_verdicts_of_its_rubric() -> None:
    verdicts = (CriterionVerdict("polite", False, True, "why"), CriterionVerdict("brief", True, False, ""))
    rubric = RubricOutcome(Outcome.SCORED, True, 1, 2, verdicts=verdicts, criteria=("polite", "brief"))
    failed = RubricOutcome.failed(["polite"], "timeout", "no answer")
    results = [
        replace(plain_result(2, bot), rubric=each) for bot, each in zip("AB", (rubric, failed), strict=True)
    ]
    found = [case["r"] for case in json.loads(row_record(results, facts_of("AB", 1)))["c"]]
    assert found == [
        {
            "o": "scored",
            "p": True,
            "n": 1,
            "of": 2,
            "v": [["polite", False, True, "why"], ["brief", True, False, ""]],
        },
        {"o": "failed", "c": "timeout", "r": "no answer", "v": []},
    ]


# Drawings


@pytest.mark.parametrize(("rows", "has_interval", "says_few"), [(4, 0, 0), (5, 1, 1), (9, 1, 1), (10, 1, 0)])
def test_an_interval_of_few_queries_is_marked(
    tmp_path: Path, rows: int, has_interval: int, says_few: int
) -> None:
    results = [plain_result(row, "A", row / 20) for row in range(2, rows + 2)]
    html = page_of(tmp_path / "p.html", results).read_text(encoding="utf-8")
    (standing,) = re.findall(r'<tr><th scope="row"><span class="who">.*?</tr>', html)
    assert (standing.count("95% CI"), standing.count(">few queries<")) == (has_interval, says_few)


def test_a_mean_is_drawn_to_scale_and_described() -> None:
    drawn = mean_bar("Atlas: <0.5>", 0.5, Interval(0.25, 0.75))
    assert 'aria-label="Atlas: &lt;0.5&gt;"' in drawn
    assert 'class="bar" fill="#5b93cc" x="0.0" y="6.0" width="100.0"' in drawn
    assert "M50.0 11.0H150.0" in drawn
    assert 'class="bar"' not in mean_bar("none", None, None)


def test_a_timeline_is_drawn_to_scale_with_gaps_and_limits_within_it() -> None:
    """A point without a mean, or of another segment, is not connected."""
    points = [
        Point(0.0, 1.0, (0.5, 1.2), 0),
        Point(50.0, 0.5, None, 0),
        Point(60.0, None, None, 0),
        Point(75.0, 0.25, (-0.1, 0.5), 0),
        Point(100.0, 0.0, None, 1),
    ]
    drawn = timeline("RQS", points)
    assert re.findall(r'cx="([^"]*)" cy="([^"]*)"', drawn) == [
        ("46.0", "10.0"), ("333.0", "63.0"), ("476.5", "89.5"), ("620.0", "116.0"),
    ]  # fmt: skip
    (line,) = re.findall(r'class="line"[^>]* d="([^"]*)"', drawn)
    (whiskers,) = re.findall(r'class="ink"[^>]* d="([^"]*)"', drawn)
    assert line == "M46.0 10.0L333.0 63.0"
    assert whiskers == "M46.0 63.0V10.0M43.0 63.0h6M43.0 10.0h6M476.5 116.0V63.0M473.5 116.0h6M473.5 63.0h6"
    grid = re.findall(r'class="grid"[^>]* d="([^"]*)"', drawn)
    assert grid == [f"M34 {y}H632" for y in ("116.0", "89.5", "63.0", "36.5", "10.0")]
    assert 'cx="333.0" cy="10.0"' in timeline("one", [points[0]])


def test_a_histogram_counts_the_ends() -> None:
    drawn = histogram("RQS", [0.0, 0.05, 0.1, 1.0])
    bars = re.findall(r'x="([\d.]+)" y="[\d.]+" width="18.0" height="([\d.]+)"', drawn)
    assert bars == [("1.0", "38.0"), ("21.0", "19.0"), ("181.0", "19.0")]


# The command line


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    rows = [[f"What is {n}?", f"It is {n}.", f"It is {n}.", f"No {n}.", f"It is {n}."] for n in range(6)]
    return write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"], *rows)


def test_html_writes_the_page_next_to_the_other_outputs(run_cli: Run, sheet: Path, tmp_path: Path) -> None:
    ended = run_cli(sheet, "-o", "r.xlsx", "--judge", "offline", "--html", "out/p.html", "--json", "r.json")
    assert ended.code == 0
    assert "Also written: out/p.html" in ended.out
    assert read(tmp_path / "out" / "p.html")["meta"]["cases"] == 12


def test_the_key_writes_it_beside_the_report(run_cli: Run, sheet: Path, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[report]\nhtml = true\nslice_by = Bot_A\n", encoding="utf-8")
    assert run_cli(sheet, "-o", "r.xlsx", "--judge", "offline", "--html-no-texts").code == 0
    page = read(tmp_path / "r.html")
    assert (page["meta"]["hasTexts"], page["meta"]["sliceBy"]) == (False, "Bot_A")


def test_a_case_shows_its_latency_and_cost(run_cli: Run, tmp_path: Path) -> None:
    header = ["Query", "Ground_Truth", "Bot_A", "Latency_A (ms)", "Cost_A (USD)"]
    write_table(
        tmp_path / "in.csv", header, ["Who?", "Me", "Me", 1240, 0.0021], ["Where?", "Here", "Here", "", 0.002]
    )
    assert run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline", "--html", "p.html").code == 0
    cases = [row["c"][0].get("t") for row in read(tmp_path / "p.html")["records"]]
    assert cases == [[["Latency (ms)", "1,240"], ["Cost (USD)", "0.0021"]], [["Cost (USD)", "0.002"]]]


def test_tables_of_findings_are_open_and_tables_to_look_things_up_are_folded(
    run_cli: Run, tmp_path: Path
) -> None:
    recorded = Path(__file__).parent / "recorded"
    again = (recorded / "run.json", "--report-only", "--baseline", recorded / "earlier.json")
    assert run_cli(*again, "-o", "again.xlsx", "--html", "again.html").code == 3
    html = (tmp_path / "again.html").read_text(encoding="utf-8")
    tables = re.findall(r'<details class="fold"( open)?><summary><h2>([^<:]*)', html)
    opened = ["vs Baseline", "Rubric", "Head to head", "Retrieval", "Agreement with human labels"]
    assert tables == [*((" open", name) for name in opened), ("", "Bot Summary"), ("", "About this run")]


def test_a_page_made_again_from_a_runs_json_holds_the_same_cases(
    run_cli: Run, sheet: Path, tmp_path: Path
) -> None:
    run_cli(sheet, "-o", "r.xlsx", "--judge", "offline", "--html", "first.html", "--json", "r.json")
    ended = run_cli(
        "r.json", "--report-only", "-o", "again.xlsx", "--html", "again.html", "--judge", "offline"
    )
    assert ended.code == 0, ended.err
    first, again = (read(tmp_path / name) for name in ("first.html", "again.html"))
    assert {**again, "meta": None} == {**first, "meta": None}


@pytest.mark.slow
def test_terminal_and_json_say_what_the_page_leaves_out(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(
        "[report]\nhtml_mb = 1\n[evaluation]\nmax_rows = 5000\n", encoding="utf-8"
    )
    chunks = [
        " ".join(hashlib.sha256(f"{n} {k}".encode()).hexdigest() for k in range(40)) for n in range(600)
    ]
    sheet = write_table(
        tmp_path / "in.xlsx",
        ["Query", "Bot_A", "Context"],
        *([f"q {n}?", "a.", chunks[n]] for n in range(600)),
    )
    ended = run_cli(sheet, "-o", "r.xlsx", "--judge", "offline", "--html", "p.html", "--json", "r.json")
    held = read(tmp_path / "p.html")["meta"]["cases"]
    assert 0 < held < 600
    assert f"The page contains {held} of 600 cases" in ended.out
    (sentence,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["end"]["left_out"]
    assert sentence.startswith(f"The page contains {held} of 600 cases")
    assert (
        run_cli("r.json", "--report-only", "-o", "again.xlsx", "--judge", "offline").out.count(
            "The page contains"
        )
        == 0
    )


@pytest.mark.parametrize("value", ["0", "0.5", "1001", "much"])
def test_a_size_that_makes_no_sense_is_refused(run_cli: Run, sheet: Path, tmp_path: Path, value: str) -> None:
    (tmp_path / "config.ini").write_text(f"[report]\nhtml_mb = {value}\n", encoding="utf-8")
    ended = run_cli(sheet, "-o", "r.xlsx", "--judge", "offline", "--html", "p.html")
    assert ended.code == 2
    assert "html_mb" in ended.err
    assert "a number from 1 to 1000" in ended.err


def test_an_installed_package_contains_every_file_of_the_package() -> None:
    package = Path(__file__).parent.parent / "rag_eval"
    project = tomllib.loads((package.parent / "pyproject.toml").read_text(encoding="utf-8"))
    listed = {
        package.parent.joinpath(*name.split("."), file)
        for name, files in project["tool"]["setuptools"]["package-data"].items()
        for file in files
    }
    assert {path for path in package.rglob("*.*") if path.suffix not in (".py", ".pyc")} == listed


@pytest.mark.slow
def test_a_column_with_a_value_per_row_is_no_filter_and_does_not_fill_the_page(tmp_path: Path) -> None:
    results = [
        plain_result(row, "Atlas", 0.5, columns={"Id": f"{row} " + "x" * 500}) for row in range(2, 1_203)
    ]
    page = page_of(tmp_path / "p.html", results, slice_by="Id", megabytes=1)
    meta = read(page)["meta"]
    assert (meta["sliceBy"], meta["slices"], meta["rows"]) == ("", [], 1_201)
    assert "and 1,101 more rows: see the workbook or the JSON." in page.read_text(encoding="utf-8")


def test_rows_and_cases_can_be_filtered_by_slice_bot_threshold_failure_and_flag(tmp_path: Path) -> None:
    results = [
        plain_result(row, bot, value, columns={"Topic": topic})
        for row, topic in ((2, "loans"), (3, " fees "), (4, " "), (5, "loans"))
        for bot, value in zip(BOTS, (0.9, 0.1), strict=True)
    ]
    results[0] = replace(results[0], toxicity=Score.scored(TOXICITY, 0.9))
    results[3] = failed_result(3, "Birch", "timeout")
    flags = {(2, "Atlas"): ("response: x",), (4, "Birch"): ("query: y", "response: x")}
    cut = {(3, "Birch"): "chunk 1 of 2", (4, "Birch"): "chunk 1 of 2"}
    page = read(page_of(tmp_path / "p.html", results, slice_by="Topic", flags=flags, cut_contexts=cut))
    meta = page["meta"]
    assert (meta["slices"], meta["sliceBy"]) == (["loans", "fees", ""], "Topic")
    assert (page["slices"], page["at"]) == ([0, 1, 2, 0], [0, 0, 1, 1, 2, 2, 3, 3])
    bots, below, *values = page["columns"]
    assert bots == [0, 1] * 4
    good, bad, failed, low = 9_000, 1_000, -2, 0b0111110
    assert below == [0b1000000, low, 0, 0, 0, low, 0, low], "toxicity is better low, all else is better high"
    assert values[:-1] == [[good, bad, good, failed, good, bad, good, bad]] * 6
    assert values[-1] == [good, *[200] * 7]
    all_failures, ok, not_judged = 0b111, 0b1000, 0b10000
    modes = [ok, all_failures, ok, not_judged, ok, all_failures, ok, all_failures]
    x, cut_context, y = 1, 2, 4
    assert meta["flags"] == ["x", "context cut", "y"]
    assert page["bits"] == [*modes, x, 0, 0, cut_context, 0, x + cut_context + y, 0, 0]


def test_flags_that_a_runs_json_may_name_cannot_break_the_page(tmp_path: Path) -> None:
    flags = {(2, "Atlas"): tuple(f"response: kind {number}" for number in range(20))}
    meta = read(page_of(tmp_path / "p.html", [plain_result(2, "Atlas")], flags=flags))["meta"]
    assert len(meta["flags"]) == 8


BLOCKS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0, 1, 2])), min_size=1, max_size=6),
        st.integers(1, 900),
    ),
    max_size=5,
)
"""Rows that are named with the reason, block by block, and the bytes of its texts."""


@given(blocks=BLOCKS, dropped=st.integers(0, 5))
def test_blocks_that_are_taken_back_leave_the_choice_as_it_was_before_them(
    blocks: list[tuple[list[tuple[int, int]], int]], dropped: int
) -> None:
    """Also the reasons of a row that is named again, as the worst of another bot."""

    def filled(
        parts: list[tuple[list[tuple[int, int]], int]],
    ) -> tuple[_ChosenRows, list[int]]:
        choice, new = _ChosenRows(8), []
        for number, (turns, size) in enumerate(parts):
            new.append(sum([choice.add(number, row, why) for row, why in turns]))
            choice.sizes.append(size)
        return choice, new

    def state(choice: _ChosenRows) -> tuple[object, ...]:
        places = [
            (block, position)
            for block, position in zip(choice.blocks, choice.positions, strict=True)
            if block >= 0
        ]
        return places, [*choice.rows()], choice.block_count, choice.sizes, choice.why

    choice, new = filled(blocks)
    left = max(0, len(blocks) - dropped)
    for number in range(len(blocks) - 1, left - 1, -1):
        assert choice.drop_last_block(0.5) == blocks[number][1] + 0.5 * new[number]
    again, _ = filled(blocks[:left])
    assert state(choice) == state(again)

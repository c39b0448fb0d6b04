"""The page in real browsers: what a reader sees and does, and that nothing of the data has an effect."""

import csv
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium, firefox, requests_of
from page_cases import page_of
from report_cases import facts_of, plain_result, random_results, result_of

from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    CriterionVerdict,
    Evidence,
    Outcome,
    PairVerdict,
    RubricOutcome,
    Score,
)
from rag_eval.report.page.judge_page import write_page
from rag_eval.results.judge_comparison import JudgeComparisonTally, JudgeRun

pytestmark = pytest.mark.slow
BOTS = ("Atlas", "Birch")
Show = Callable[..., Any]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("downloads")) as running:
        yield running


@pytest.fixture
def show(driver: Any, tmp_path: Path) -> Iterator[Show]:
    """Open a page of these results, and wait until it is ready. At the end nothing was asked for or complained of."""
    driver.get("about:blank")
    driver.get_log("browser")
    requests_of(driver)
    urls = set()

    def opened(results: Sequence[CaseResult], hash_: str = "", **changes: Any) -> Any:
        url = page_of(tmp_path / "page.html", results, **changes).as_uri()
        urls.add(url)
        driver.get("about:blank")
        driver.get(url + hash_)
        wait_until(driver, "return document.documentElement.dataset.ready === 'true'")
        return driver

    yield opened
    complaints = [entry["message"] for entry in driver.get_log("browser")]
    asked = {url.partition("#")[0] for url in requests_of(driver)}
    assert complaints == []
    assert asked - urls - {"about:blank"} == {url for url in asked if url.startswith("blob:null/")}


def wait_until(driver: Any, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 30, poll_frequency=0.02).until(lambda each: each.execute_script(condition))


def texts(driver: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
    found: list[str] = driver.execute_script(script, selector)
    return found


def column(driver: Any, name: str) -> list[str]:
    return texts(driver, f"#rows tbody td.c-{name}")


def choose(driver: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(driver.find_element("id", f"f-{name}")).select_by_visible_text(value)


def press(driver: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*keys).perform()


def case_of(row: int, bot: str, value: float, **members: Any) -> CaseResult:
    """All metrics have this value; the texts name row and bot."""
    texts = {
        "query": f"Query {row}?",
        "response": f"{bot} says {row}.",
        "reference": f"Truth {row}.",
        "chunks": ("c",),
    }
    scores = [Score.scored(metric, value) for metric in METRIC_LABELS]
    return result_of(Case(row, bot, **(texts | members)), scores, advice=f"Advice {row}.")


def small_run() -> list[CaseResult]:
    """Three rows: Birch is bad on the last, where the bots differ."""
    values = {2: (0.9, 0.85), 3: (0.5, 0.6), 4: (0.7, 0.1)}
    return [
        case_of(row, bot, value)
        for row, pair in values.items()
        for bot, value in zip(BOTS, pair, strict=True)
    ]


# The table


def test_the_worst_case_comes_first_and_headers_sort(show: Show) -> None:
    driver = show(small_run())
    assert column(driver, "rqs") == ["0.10", "0.50", "0.60", "0.70", "0.85", "0.90"]
    head = driver.find_element("css selector", "th.c-row")
    assert head.get_attribute("aria-sort") == "none"
    head.find_element("tag name", "button").click()
    head = driver.find_element("css selector", "th.c-row")
    assert (head.get_attribute("aria-sort"), column(driver, "row")) == (
        "ascending",
        ["2", "2", "3", "3", "4", "4"],
    )
    head.find_element("tag name", "button").click()
    assert column(driver, "row") == ["4", "4", "3", "3", "2", "2"]
    assert driver.find_element("css selector", "th.c-row").get_attribute("aria-sort") == "descending"


def test_cases_without_a_score_come_last_in_both_directions(show: Show) -> None:
    missing = {
        "failed": Score.failed("faithfulness", "truncated", "cut"),
        "–": Score.not_applicable("faithfulness", "no context"),
    }
    results = [plain_result(2, "Atlas", 0.4), plain_result(3, "Atlas", 0.6)]
    results += [
        replace(plain_result(row, "Atlas"), scores={**plain_result().scores, "faithfulness": score})
        for row, score in enumerate(missing.values(), 4)
    ]
    driver = show(results)
    driver.find_element("css selector", "th.c-faithfulness button").click()
    assert column(driver, "faithfulness") == ["0.40", "0.60", *missing]
    driver.find_element("css selector", "th.c-faithfulness button").click()
    assert column(driver, "faithfulness") == ["0.60", "0.40", *missing]


def test_filters_narrow_and_are_announced(show: Show) -> None:
    driver = show(small_run())
    assert texts(driver, "#told") == ["6 cases"]
    choose(driver, "bot", "Birch")
    assert (column(driver, "row"), texts(driver, "#told")) == (["4", "3", "2"], ["3 of 6 cases"])
    assert driver.find_element("id", "told").get_attribute("aria-live") == "polite"
    choose(driver, "mode", "Hallucination")
    assert column(driver, "row") == ["4"]
    choose(driver, "bot", "Atlas")
    assert texts(driver, "#rows .empty") == ["No case matches these filters."]
    driver.find_element("xpath", "//button[text()='Clear filters']").click()
    assert texts(driver, "#told") == ["6 cases"]


def test_below_a_threshold_uses_the_runs_own_or_the_readers_number(show: Show) -> None:
    driver = show(small_run())
    choose(driver, "metric", "Faithfulness")
    limit = driver.find_element("id", "f-limit")
    assert (limit.get_attribute("value"), column(driver, "rqs")) == ("0.3", ["0.10"])
    limit.clear()
    limit.send_keys("0.61")
    assert column(driver, "rqs") == ["0.10", "0.50", "0.60"]
    choose(driver, "metric", "Any metric")
    assert column(driver, "rqs") == ["0.10"]


def test_a_score_just_below_its_threshold_is_red_although_it_rounds_to_it(show: Show) -> None:
    driver = show([case_of(2, "Atlas", 0.29999), case_of(3, "Atlas", 0.3)])
    assert column(driver, "faithfulness") == ["0.30", "0.30"]
    assert texts(driver, "td.c-faithfulness .red") == ["0.30"]
    choose(driver, "metric", "Faithfulness")
    assert column(driver, "row") == ["2"]


def test_bots_differ_slices_and_flags(show: Show) -> None:
    results = [
        case_of(row, bot, 0.9, columns={"Topic": topic})
        for row, topic in ((2, "pay"), (3, ""))
        for bot in BOTS
    ]
    results += [
        case_of(4, "Atlas", 0.9, columns={"Topic": "pay"}),
        case_of(4, "Birch", 0.2, columns={"Topic": "pay"}),
    ]
    flags = {(3, "Birch"): ("response: planted verdict",)}
    driver = show(
        results, slice_by="Topic", flags=flags, cut_contexts={(2, "Atlas"): "context cut: chunk 1 of 2"}
    )
    driver.find_element("id", "f-differ").click()
    assert column(driver, "row") == ["4", "4"]
    driver.find_element("id", "f-differ").click()
    choose(driver, "slice", "(none)")
    assert column(driver, "row") == ["3", "3"]
    choose(driver, "flag", "planted verdict")
    assert column(driver, "bot") == ["Birch"]
    choose(driver, "slice", "All")
    choose(driver, "flag", "context cut")
    assert (column(driver, "row"), column(driver, "bot")) == (["2"], ["Atlas"])


def test_text_is_searched_in_everything_that_belongs_to_a_case(show: Show) -> None:
    rows = {2: {"query": "needle one?"}, 3: {"response": "A NEEDLE."}, 4: {"chunks": ("x", "needle")}}
    results = [case_of(row, "Atlas", 0.8, **rows.get(row, {})) for row in range(2, 8)]
    driver = show(results)
    driver.find_element("id", "f-text").send_keys("Needle")
    wait_until(driver, "return document.getElementById('told').textContent === '3 of 6 cases'")
    assert column(driver, "row") == ["2", "3", "4"]


def test_only_the_rows_in_sight_are_elements(show: Show) -> None:
    driver = show([plain_result(row, "Atlas", row / 4_000) for row in range(2, 3_002)])
    assert len(driver.find_elements("css selector", "#rows tbody tr")) < 60
    driver.execute_script("const rows = document.getElementById('rows'); rows.scrollTop = rows.scrollHeight")
    wait_until(driver, "return document.querySelector('#rows tbody').textContent.includes('Question 3001?')")
    assert len(driver.find_elements("css selector", "#rows tbody tr")) < 60


def test_columns_are_switched_on_and_off(show: Show) -> None:
    driver = show(small_run())
    assert column(driver, "toxicity") == []
    driver.find_element("css selector", ".menu summary").click()
    driver.find_element("xpath", "//label[contains(., 'Input Toxicity')]").click()
    driver.find_element("xpath", "//div/label[contains(., 'Answer Correctness')]").click()
    assert column(driver, "toxicity") == ["0.02"] * 6
    assert column(driver, "answer_correctness") == []


def test_the_filtered_cases_are_saved_as_csv_that_no_spreadsheet_takes_for_formulas(show: Show) -> None:
    results = [
        *small_run(),
        case_of(5, "Atlas", 0.05, query="=cmd|' /C calc'!A0", response='say "hi",\nthen go'),
    ]
    driver = show([*results, case_of(5, "Birch", 0.9)])
    choose(driver, "bot", "Atlas")
    saved = driver.execute_async_script(
        """const done = arguments[0], made = URL.createObjectURL;
        HTMLAnchorElement.prototype.click = function () {};
        URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => done(
          [...new Uint8Array(bytes)])); return made(blob); };
        [...document.querySelectorAll("button")].find((each) => each.textContent === "Save CSV").click();"""
    )
    content = bytes(saved)
    assert content.startswith(b"\xef\xbb\xbf")
    head, *lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert head[:4] == ["Row", "Bot", "RQS", "Answer Correctness"]
    assert [line[:3] for line in lines] == [
        ["5", "Atlas", "0.05"], ["3", "Atlas", "0.5"], ["4", "Atlas", "0.7"], ["2", "Atlas", "0.9"],
    ]  # fmt: skip
    assert lines[0][head.index("Query")] == "'=cmd|' /C calc'!A0"
    assert lines[0][head.index("Response")] == 'say "hi",\nthen go'
    assert lines[0][head.index("Recommendation")] == "Advice 5."


# One case


def test_a_click_opens_a_case_with_all_responses_and_keys_move_on(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = show(small_run())
    driver.find_element("css selector", "#rows tbody tr[data-at='0'] td.c-query").click()
    wait_until(driver, "return document.getElementById('case').open")
    assert texts(driver, "#case-title") == ["Row 4, Birch"]
    assert texts(driver, ".bot .text") == ["Atlas says 4.", "Birch says 4."]
    assert texts(driver, ".bot.chosen .name") == ["Birch"]
    for key, title in ((Keys.ARROW_RIGHT, "Row 3, Atlas"), ("j", "Row 3, Birch"), ("k", "Row 3, Atlas")):
        press(driver, key)
        wait_until(driver, f"return document.getElementById('case-title').textContent === '{title}'")
    assert driver.current_url.endswith("#row-3-1")
    press(driver, Keys.ESCAPE)
    # Going back takes a while after the dialog has closed.
    wait_until(driver, "return !document.getElementById('case').open && !location.hash")
    assert "#" not in driver.current_url
    assert driver.execute_script("return document.activeElement.getAttribute('aria-label')") == "Row 3, Atlas"


def test_the_table_is_walked_through_by_keys(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = show(small_run())
    driver.execute_script("document.getElementById('rows').focus()")
    press(driver, Keys.ARROW_DOWN)
    press(driver, Keys.ARROW_DOWN)
    press(driver, "j")
    assert driver.execute_script("return document.activeElement.textContent") == "3"
    press(driver, Keys.END)
    assert driver.execute_script("return document.activeElement.getAttribute('aria-label')") == "Row 2, Atlas"
    press(driver, Keys.ENTER)
    wait_until(driver, "return document.getElementById('case').open")
    assert texts(driver, "#case-title") == ["Row 2, Atlas"]


@pytest.mark.parametrize(
    ("hash_", "title"),
    [
        ("#row-4", "Row 4, Birch"),
        ("#row-4-1", "Row 4, Atlas"),
        ("#row-4-9", "Row 4, Birch"),
        ("#row-99", "Row 99"),
    ],
)
def test_a_link_leads_to_a_case(show: Show, hash_: str, title: str) -> None:
    """Without a bot to the worst one of the row."""
    driver = show(small_run(), hash_)
    assert texts(driver, "#case-title") == [title]


def test_a_click_on_a_bot_or_a_failure_mode_filters(show: Show) -> None:
    driver = show(small_run())
    driver.find_element("xpath", "//article[contains(., 'Birch')]//button[text()='Hallucination']").click()
    assert (column(driver, "row"), column(driver, "bot")) == (["4"], ["Birch"])
    driver.find_element("xpath", "//table[@class='board']//button[text()='Atlas']").click()
    assert set(column(driver, "bot")) == {"Atlas"}
    assert len(column(driver, "row")) == 3


RESPONSE = "Bikes cost 3 euros. 🚲 They are free on Sundays.\nHelmets are\nincluded. Bikes cost 3 euros."
REFERENCE = "A bike costs 3 euros, every day of the week."


def marked_case() -> CaseResult:
    """Exact sentences, the same twice, one with other line ends, a similar one, and one that is nowhere."""
    faithful = (
        Evidence("statement", "Bikes cost 3 euros.", "supported", True),
        Evidence("statement", "They are free on Sundays.", "not supported", False, "No chunk says so."),
        Evidence("statement", "Helmets are included.", "not supported", False),
        Evidence("statement", "Bikes cost 3 euros.", "supported", True),
        Evidence("statement", "Dogs may ride along for nothing.", "not supported", False),
    )
    recall = (
        Evidence(
            "reference statement", "A bike costs 3 euros every single day.", "found in the context", True
        ),
    )
    correct = (Evidence("statement", "They are free on Sundays.", "not in the ground truth", False),)
    chunks = (
        Evidence("chunk", "One.", "useful", True, "It has the price.", rank=1),
        Evidence("chunk", "Two.", "not useful", False, "It is about dogs.", rank=2),
    )
    scores = [
        Score.scored("faithfulness", 0.4, "", faithful),
        Score.scored("context_recall", 1.0, "", recall),
        Score.scored("context_precision", 1.0, "", chunks),
        Score.scored("answer_correctness", 0.5, "", correct),
        Score.scored("answer_relevancy", 0.5),
    ]
    return result_of(
        Case(2, "Atlas", "What does a bike cost?", RESPONSE, REFERENCE, ("One.", "Two.")), scores
    )


MARKS = """return [...document.querySelectorAll(arguments[0] + ' mark')].map(
    (each) => [each.textContent, each.className])"""


def test_exactly_what_the_evidence_says_is_marked(show: Show) -> None:
    driver = show([marked_case()], "#row-2")
    assert driver.execute_script(MARKS, ".bot") == [
        ["Bikes cost 3 euros.", "good"],
        ["They are free on Sundays.", "bad"],
        ["Helmets are\nincluded.", "bad"],
        ["Bikes cost 3 euros.", "good"],
    ]
    assert driver.execute_script(MARKS, ".case > section > .text") == [[REFERENCE, "good similar"]]
    assert [each for each in texts(driver, ".evidence li") if "Dogs" in each] == [
        "✗6 statement: not supportedDogs may ride along for nothing. (not found in the text)"
    ]
    assert [each for each in texts(driver, ".evidence li") if "No chunk" in each] == [
        "✗3 statement: not supportedThey are free on Sundays.No chunk says so."
    ]
    assert texts(driver, ".chunks li") == [
        "One.✓ Context Precision: useful. It has the price.",
        "Two.✗ Context Precision: not useful. It is about dogs.",
    ]
    driver.execute_script("for (const each of document.querySelectorAll('sup')) each.remove()")
    assert texts(driver, ".bot .text") == [RESPONSE]
    driver.find_element("xpath", "//button[text()='Matches the ground truth']").click()
    wait_until(driver, "return document.querySelectorAll('.case mark').length === 1")
    assert driver.execute_script(MARKS, ".bot") == [["They are free on Sundays.", "bad"]]


def test_a_chunk_lists_the_statements_that_it_supports(show: Show) -> None:
    evidence = (
        Evidence("statement", "It costs 3.", "supported", True, rank=2),
        Evidence("statement", "It is red.", "not supported", False, "no colour is named"),
    )
    case = case_of(2, "Atlas", 0.5, response="It costs 3. It is red.", chunks=("One.", "Two."))
    scores = {**case.scores, "faithfulness": Score.scored("faithfulness", 0.5, "", evidence)}
    driver = show([replace(case, scores=scores)], "#row-2")
    assert texts(driver, ".chunks li") == ["One.", "Two.✓ Faithfulness: supported: It costs 3."]
    assert "statement: supported (chunk 2)" in " ".join(texts(driver, ".evidence li"))


def test_overlapping_evidence_keeps_the_text_and_shows_the_worse(show: Show) -> None:
    evidence = (
        Evidence("statement", "Bikes are red and fast", "supported", True),
        Evidence("statement", "red and fast", "not supported", False),
    )
    case = case_of(2, "Atlas", 0.5, response="Bikes are red and fast today")
    scores = {**case.scores, "faithfulness": Score.scored("faithfulness", 0.5, "", evidence)}
    driver = show([replace(case, scores=scores)], "#row-2")
    found = driver.execute_script(MARKS, ".bot")
    assert found == [["Bikes are ", "good"], ["red and fast", "bad"]]


def test_rubric_documents_labels_and_codes_are_shown(show: Show) -> None:
    verdicts = (
        CriterionVerdict("polite", True, True, "kind words"),
        CriterionVerdict("short", False, False, "long"),
    )
    rubric = RubricOutcome(Outcome.SCORED, False, 0, 1, verdicts, ("polite", "short"))
    case = case_of(
        2, "Atlas", 0.9, gold_ids=("d1", "d2"), retrieved_ids=("d2", "d9"), human={"faithfulness": 0.25}
    )
    failed = Score.failed("answer_relevancy", "content_filter", "blocked")
    case = replace(case, rubric=rubric, rqs=None, scores={**case.scores, "answer_relevancy": failed})
    driver = show([case], "#row-2", rubric="r", criteria=("polite", "short"), has_gold=True, has_labels=True)
    sections = texts(driver, ".case > section")
    assert "Rubric: FAIL, 0 of 1 points✓ polite (mandatory): kind words✗ short: long" in sections
    assert "Gold documents✗ missing: d1✓ retrieved: d2" in sections
    assert "Faithfulness0.90human label: 0.25" in texts(driver, ".scores tr")
    assert "Answer Relevancyfailedcontent_filter: blocked" in texts(driver, ".scores tr")
    assert texts(driver, "#rows td.c-rubric") == ["FAIL"]


# Hostile and long texts

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "javascript:window.hacked=1//\u2028\u2029<!--<script>",
    "</style><b onmouseover=window.hacked=1>&lt;&amp;&#x3C;${window.hacked=1}`",
    "\ud800lone\udfff \u202egnp.exe\u202c \u0000\u0007 العربية שלום",
    "]]><svg/onload=window.hacked=1> \x1b[31m \ufeff\ufffe",
)


def hostile_run(text: str) -> list[CaseResult]:
    """The text in every place that comes from data."""
    seen = (Evidence("statement", text, text, False, text), Evidence(text, text, text, True, text, rank=3))
    scores = [Score.scored(metric, 0.1, text, seen) for metric in METRIC_LABELS]
    rubric = RubricOutcome(Outcome.SCORED, False, 0, 1, (CriterionVerdict(text, True, False, text),), (text,))
    case = Case(
        2, text, text, text, text, (text, text + "2"), (text,), (text,), {"faithfulness": 0.5}, {text: text}
    )
    result = result_of(case, scores, Score.failed(TOXICITY, text, text), text)
    return [replace(result, rubric=rubric)]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_have_no_effect_and_are_shown_as_they_are(show: Show, text: str) -> None:
    changes = {
        "input_name": text, "sheet": text, "judge": text, "partial": text, "rubric": text, "criteria": (text,),
        "has_gold": True, "flags": {(2, text): (f"response: {text}",)}, "notes": (text,), "thresholds_from": text,
    }  # fmt: skip
    driver = show(hostile_run(text), "#row-2", slice_by=text, **changes)
    assert driver.execute_script("return [window.hacked, document.images.length]") == [None, 0]
    kept = text.encode("utf-8", "replace").decode() if "\ud800" not in text else None
    if kept:
        assert driver.execute_script("return document.querySelector('.query .text').textContent") == kept
    press(driver, "\ue00c")
    driver.find_element("id", "f-text").send_keys("zzz")
    wait_until(driver, "return document.getElementById('told').textContent === '0 of 1 case'")
    assert driver.execute_script("return window.hacked") is None


def test_a_million_letters_do_not_stop_the_page(show: Show) -> None:
    text = "a" * 500_000 + " " + "b" * 500_000
    driver = show([case_of(2, "Atlas", 0.5, query=text, response=text, chunks=(text,))], "#row-2")
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert len(driver.execute_script("return document.querySelector('.bot .text').textContent")) < 21_000
    driver.find_element("css selector", ".bot .text button").click()
    shown = driver.execute_script("return document.querySelector('.bot .text').textContent")
    assert shown.endswith("[…] (cut: 1,000,001 characters in all)")


def test_without_texts_there_are_numbers_only(show: Show) -> None:
    driver = show(small_run(), "#row-4-2", has_texts=False)
    assert texts(driver, ".bot.chosen .score b") == ["0.10"]
    assert "says 4" not in driver.page_source
    assert "Query 4" not in driver.page_source
    assert "Advice 4" not in driver.page_source


# Looks


@pytest.mark.parametrize("width", [360, 1366])
def test_no_view_is_wider_than_the_screen(show: Show, width: int) -> None:
    metrics = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    driver = show(random_results(BOTS, 30))
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for hash_ in ("", "#row-3"):
            driver.execute_script("location.hash = arguments[0]", hash_)
            wait_until(
                driver, f"return document.getElementById('case').open === {'true' if hash_ else 'false'}"
            )
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        verdict, board = driver.execute_script(
            "return ['td:last-child', 'tbody tr'].map(path =>"
            " document.querySelector('.board ' + path).getBoundingClientRect().width)"
        )
        assert verdict > (board * 0.9 if width < 700 else 240)
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hash_", ["", "#row-2"])
def test_axe_finds_nothing_serious(show: Show, scheme: str, hash_: str) -> None:
    """Contrast, names, roles, order: by axe-core, which is injected here only."""
    axe = _axe()
    driver = show([marked_case(), *random_results(["Atlas"], 60)[1:]], hash_)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:
        driver.execute_script(
            "for (const each of document.querySelectorAll('main details')) each.open = true"
        )
        driver.execute_script(axe)
        found = driver.execute_async_script("axe.run().then(arguments[0])")["violations"]
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious] == []


def _axe() -> str:
    """The script in AXE_JS if that is set, or else that of the package axe-core-python."""
    if path := os.environ.get("AXE_JS"):
        return Path(path).read_text(encoding="utf-8")
    package = pytest.importorskip(
        "axe_core_python", reason="no axe-core: pip install -r requirements-dev.txt"
    )
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def test_print_has_the_verdict_and_the_worst_cases_but_no_tools(show: Show) -> None:
    driver = show(small_run())
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = "return [...arguments].map((each) => document.querySelector(each).checkVisibility())"
        assert driver.execute_script(shown, "h1", ".board", ".static", "#app") == [True, True, True, False]
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_an_open_case_is_printed_instead_of_the_page(show: Show) -> None:
    driver = show(small_run(), "#row-4")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = "return [...arguments].map((each) => document.querySelector(each).checkVisibility())"
        assert driver.execute_script(shown, "h1", ".bot.chosen", ".case .text") == [False, True, True]
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_a_script_there_are_the_verdict_and_the_worst_cases(driver: Any, tmp_path: Path) -> None:
    page = page_of(tmp_path / "page.html", small_run())
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(page.as_uri())
        shown = driver.find_element("tag name", "body").text
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "No clear winner yet: Atlas is ahead of Birch." in shown
    assert "The 6 cases with the lowest RQS" in shown
    assert "Row 4, Birch: RQS 0.10" in shown
    assert "Birch says 4." in shown


def test_firefox_shows_the_same_under_the_same_policy(tmp_path: Path) -> None:
    page = page_of(tmp_path / "page.html", [*small_run()])
    with firefox(tmp_path / "profile") as browser:
        browser.get(f"{page.as_uri()}#row-4")
        ready = """new Promise((done) => { const look = () => document.documentElement.dataset.ready ? done(true)
            : setTimeout(look, 20); look(); })"""
        assert browser.evaluate(ready) is True
        assert browser.evaluate("document.getElementById('case-title').textContent") == "Row 4, Birch"
        assert browser.evaluate("document.getElementById('told').textContent") == "6 cases"
        injected = """(() => { const s = document.createElement("script"); s.textContent = "window.hacked = 1";
            document.body.append(s); return String(window.hacked); })()"""
        logged = [each["params"]["text"] for each in browser.events if each.get("method") == "log.entryAdded"]
        asked = [
            each["params"]["request"]["url"]
            for each in browser.events
            if each.get("method") == "network.beforeRequestSent"
        ]
        assert browser.evaluate(injected) == "undefined"
    assert logged == []
    asked_for = {
        url.partition("#")[0] for url in asked if not url.startswith(("data:", "resource:", "chrome:"))
    }
    assert asked_for <= {page.as_uri(), "about:blank"}  # what it asks of itself is its own affair


def test_chromium_refuses_scripts_that_are_not_ours(driver: Any, tmp_path: Path) -> None:
    driver.get(page_of(tmp_path / "page.html", small_run()).as_uri())
    script = """const s = document.createElement("script"); s.textContent = "window.hacked = 1";
        document.body.append(s); document.body.setAttribute("onclick", "window.hacked = 1"); document.body.click();
        return fetch("data:text/plain,x").then(() => "fetched", () => String(window.hacked));"""
    assert driver.execute_script(script) == "undefined"
    assert all("Content Security Policy" in entry["message"] or "Fetch API" in entry["message"]
               for entry in driver.get_log("browser"))  # fmt: skip


def test_the_comparison_of_judges_asks_for_nothing_and_shows_hostile_texts_as_text(
    driver: Any, tmp_path: Path
) -> None:
    """Wide tables scroll in themselves; the page is no wider than the window."""
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    facts = facts_of(BOTS, 8)
    tally = JudgeComparisonTally(facts, facts)
    for row in range(2, 10):
        for bot in BOTS:
            one, other = (plain_result(row, bot, value, query=hostile) for value in (0.1, 0.9))
            tally.add(one, other)
    runs = (JudgeRun("A", hostile, facts, cost=1.0), JudgeRun("B", "small", facts, cost=0.1))
    url = write_page(tmp_path / "judges.html", tally.comparison(), runs, has_texts=True).as_uri()
    driver.get("about:blank")
    driver.get_log("browser")
    requests_of(driver)
    driver.get(url)
    assert driver.title.startswith("RAG Eval: A (<img src=x")
    assert driver.execute_script("return document.scripts.length + document.images.length") == 0
    assert hostile in driver.find_element("css selector", "article p").text
    assert driver.find_element("css selector", "h1").text.startswith("B (small) agrees with A (")
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert driver.get_log("browser") == []
    assert requests_of(driver) == [url]


def test_a_pair_leads_to_the_case_of_the_other_bot(show: Show) -> None:
    results = small_run()
    said = PairVerdict(
        "Birch", Outcome.SCORED, 1.0, ("this", "this"), reasons=("Atlas names the height.", "So it does.")
    )
    results[2] = replace(results[2], pairs=(said,))
    driver = show(results, "#row-3-2")
    wait_until(driver, "return document.querySelector('dialog .plain .link') !== null")
    (section,) = (each for each in texts(driver, "dialog section") if each.startswith("Head to head"))
    assert section.startswith("Head to headAtlas against Birch: Atlas. Atlas names the height. | So it does.")
    assert texts(driver, "dialog .plain .link") == ["Atlas"]
    driver.find_element("css selector", "dialog .plain .link").click()
    wait_until(driver, "return location.hash === '#row-3-1'")
    wait_until(driver, "return document.querySelector('dialog .plain .link')?.textContent === 'Birch'")

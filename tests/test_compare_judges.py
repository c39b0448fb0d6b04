"""`rag-eval compare-judges` from outside: real servers on loopback, real processes, the files that are written."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, read_sheet
from fake_judge import (
    Answer,
    FakeJudge,
    Request,
    error,
    honest_reply,
    running_judge,
    structured,
    without_count,
)
from files import write_table
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from scipy.stats import binomtest

from rag_eval.judge.budget import Price

ROOT = Path(__file__).parent.parent
PRICES = {"one": Price(2.5, 10), "two": Price(0.15, 0.6)}
ONLY_FAITHFULNESS = (
    "[metrics]\nanswer_correctness = no\nanswer_relevancy = no\ncontext_precision = no\ncontext_recall = no\n"
    "toxicity = no\n"
)


@dataclass
class Two:
    """Two endpoints, and the configurations one.ini and two.ini that name them."""

    folder: Path
    a: FakeJudge
    b: FakeJudge

    def configure(self, more: str = ONLY_FAITHFULNESS, more_of_b: str | None = None) -> None:
        for name, judge in (("one", self.a), ("two", self.b)):
            price = PRICES[name]
            path = self.folder / f"{name}.ini"
            path.write_text(
                f"[judge]\nprovider = openai\n[openai]\nbase_url = {judge.url}\napi_key = {KEY}-{name}\n"
                f"model = model-{name}\n[prices]\ninput = {price.prompt}\noutput = {price.completion}\n"
                + (more if name == "one" or more_of_b is None else more_of_b)
            )
            path.chmod(0o600)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    with running_judge() as a, running_judge() as b:
        both = Two(tmp_path, a, b)
        both.configure()
        yield both


def sheet_of(path: Path, rows: int, *, labels: bool = False) -> Path:
    """Two bots; every second response of each is supported by the context. A human label says so."""
    header = ["Query", "Ground_Truth", "Bot_Left", "Bot_Right", "Context"]
    lines = []
    for number in range(rows):
        good = f"Item {number} costs {number + 3} euros."
        bad = f"Nobody knows number {number}."
        left, right = (good, bad) if number % 2 else (bad, good)
        line = [f"What does item {number} cost?", good, left, right, f"{good} Delivery is free."]
        lines.append([*line, float(left == good), float(right == good)] if labels else line)
    if labels:
        header += ["Human_Faithfulness_Left", "Human_Faithfulness_Right"]
    return write_table(path, header, *lines)


def flipping(every: int) -> Callable[[Request], Answer | None]:
    """A judge that errs: it flips the verdict on each statement whose number is a multiple of `every`."""

    def reply(request: Request) -> Answer | None:
        if request.task != "verdicts":
            return None
        document = json.loads(honest_reply(request.prompt))
        for each in document["statements"]:
            number = int(
                "".join(filter(str.isdigit, each["statement"].replace("costs", "|").partition("|")[0]))
            )
            if number % every == 0:
                each["verdict"] = 1 - each["verdict"]
        return structured(json.dumps(document), request)

    return reply


def document_of(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(SCHEMA).validate(document)
    assert isinstance(document, dict)
    return document


def cost_of(judge: FakeJudge, price: Price) -> float:
    """What the server's own counts of the judging calls come to."""
    total = 0.0
    for request in judge.requests:
        if request.task != "preflight":
            answer = judge.always(request) if callable(judge.always) else None
            answer = answer or structured(honest_reply(request.prompt), request)
            usage = json.loads(answer.body)["usage"]
            total += price.of(usage["prompt_tokens"], usage["completion_tokens"])
    return total


SCHEMA = json.loads((ROOT / "docs" / "judge-comparison.schema.json").read_text(encoding="utf-8"))
WORDS = ("compare-judges", "in.xlsx", "-o", "out.xlsx", "--a", "one.ini", "--b", "two.ini")


# --- a judge of known error ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_judge_of_known_error_is_described_to_the_number(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    """50 rows, 2 bots: B flips the 10 verdicts on rows 0, 10, 20, 30 and 40, half of them to each side."""
    two.b.always = flipping(10)
    sheet_of(tmp_path / "in.xlsx", 50, labels=True)
    ended = rag_eval(*WORDS, "--json", "out.json", "--html", "out.html")
    assert ended.code == 0, ended.err
    assert re.findall("^(?:Also written|Workbook): (.*)", ended.out, re.MULTILINE) == [
        "out.html",
        "out.json",
        "out.xlsx",
    ]
    found = document_of(tmp_path / "out.json")
    line, decisions = found["measures"]["faithfulness"], found["decisions"]
    wilson = binomtest(90, 100).proportion_ci(method="wilson")
    assert [decisions[name] for name in ("both_pass", "both_fail", "only_a_passes", "only_b_passes")] == [
        45,
        45,
        5,
        5,
    ]
    assert decisions["kappa"]["kappa"] == pytest.approx(0.8)
    assert decisions["interval"] == pytest.approx([wilson.low, wilson.high])
    assert (line["count"], line["a"]["mean"], line["b"]["mean"]) == (100, 0.5, 0.5)
    assert (line["difference"], line["mean_absolute_error"]) == (0.0, pytest.approx(0.1))
    assert line["correlation"]["value"] == pytest.approx(0.8)
    assert line["kappa"]["kappa"] == pytest.approx(0.8)
    (human, *_) = (each for each in found["human"] if each["measure"] == "faithfulness")
    assert (human["count"], human["a_error"], human["b_error"]) == (100, 0.0, pytest.approx(0.1))
    assert (human["a_kappa"]["kappa"], human["b_kappa"]["kappa"]) == (1.0, pytest.approx(0.8))
    assert 0 < human["error_interval"][0] < 0.1 < human["error_interval"][1]
    per_1000 = [20 * cost_of(judge, PRICES[name]) for judge, name in ((two.a, "one"), (two.b, "two"))]
    assert [found["judges"][side]["cost_per_1000_rows"] for side in "ab"] == pytest.approx(per_1000)
    assert found["sentence"] == (
        "B (model-two) agrees with A (model-one) on 90% of pass/fail decisions (kappa 0.80, 100 cases); "
        f"B costs {per_1000[1]:.2f} USD instead of {per_1000[0]:.2f} USD per 1,000 rows."
    )
    assert found["sentence"] in ended.out
    flipped = [(each["row"], each["bot"]) for each in found["disagreements"]]
    assert sorted(flipped) == [(row, bot) for row in (2, 12, 22, 32, 42) for bot in ("Left", "Right")]


@pytest.mark.slow
def test_unusable_replies_are_paid_for_and_cases_without_a_score_are_told(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    """B has no usable verdict on items 10 to 19, 20 of the 40 cases; A never counts its tokens."""

    def unusable(request: Request) -> Answer | None:
        is_bad = request.task == "verdicts" and re.search(r"(item|number) 1\d", request.prompt, re.IGNORECASE)
        return structured('{"statements": []}', request) if is_bad else None

    two.a.always = without_count
    two.b.always = unusable
    sheet_of(tmp_path / "in.xlsx", 20)
    ended = rag_eval(*WORDS, "--json", "out.json")
    assert ended.code == 3
    found = document_of(tmp_path / "out.json")
    a, b = found["judges"]["a"], found["judges"]["b"]
    assert b["cost_per_1000_rows"] == pytest.approx(50 * cost_of(two.b, PRICES["two"]))
    assert (a["uncounted"], b["uncounted"]) == (len(two.a.requests), 0)
    assert a["cost_per_1000_rows"] > 0
    assert re.search(
        r"100% of pass/fail decisions \(kappa 1\.00, 20 of 40 cases; 20 left out\); B costs about [\d.]+ USD instead "
        r"of [\d.]+ USD per 1,000 rows\.",
        found["sentence"],
    ), found["sentence"]
    assert f"A: {a['uncounted']} replies came without a count of tokens; the cost is estimated." in ended.out


def test_metrics_beside_rqs_are_compared_as_well(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    two.configure(f"{ONLY_FAITHFULNESS}answer_coverage = yes\n")
    sheet_of(tmp_path / "in.xlsx", 6)
    ended = rag_eval(*WORDS, "--json", "out.json")
    assert ended.code == 0, ended.err
    measures = document_of(tmp_path / "out.json")["measures"]
    assert (measures["answer_coverage"]["count"], measures["answer_coverage"]["difference"]) == (12, 0.0)


@pytest.mark.slow
def test_the_workbook_and_the_page_have_the_evidence_of_both(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    two.b.always = flipping(10)
    sheet_of(tmp_path / "in.xlsx", 12)
    assert rag_eval(*WORDS, "--html", "out.html").code == 0
    (first, *_) = read_sheet(tmp_path / "out.xlsx", "Disagreements")
    assert (first["Row"], first["Bot"], first["A"], first["B"], first["B − A"]) == (2, "Left", 0, 1, 1)
    assert first["Evidence of A"] == "✗ not supported: Nobody knows number 0. (shared words)"
    assert first["Evidence of B"] == "✓ supported: Nobody knows number 0. (shared words)"
    lines = {line["Measure"]: line for line in read_sheet(tmp_path / "out.xlsx", "Agreement")}
    assert (lines["Faithfulness"]["Cases"], lines["Faithfulness"]["Mean A, all"]) == (24, 0.5)
    decided = {line["Decision"]: line for line in read_sheet(tmp_path / "out.xlsx", "Decisions")}
    assert decided["Case as a whole"]["Same decision"] == pytest.approx(20 / 24)
    assert (decided["Faithfulness"]["Threshold A"], decided["Faithfulness"]["Threshold B"]) == (0.3, 0.3)
    facts = {line["Fact"]: line for line in read_sheet(tmp_path / "out.xlsx", "Judges")}
    assert facts["Judge calls answered"]["A: model-one"] == 48
    assert [line["Bot"] for line in read_sheet(tmp_path / "out.xlsx", "Ranking")] == ["Left", "Right"]
    book = load_workbook(tmp_path / "out.xlsx")
    assert book.sheetnames == ["Agreement", "Decisions", "Judges", "Ranking", "Disagreements"]
    set_up = [sheet.page_setup for sheet in book]
    assert [each.orientation for each in set_up] == ["landscape"] * 5
    assert [each.fitToHeight for each in set_up] == [None, 0, 0, 0, 0]  # one page, so that no chart is cut
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "✗ not supported: Nobody knows number 0." in page
    assert "<script" not in page


def test_a_page_without_texts_has_none(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    two.b.always = flipping(2)
    sheet_of(tmp_path / "in.xlsx", 3)
    assert rag_eval(*WORDS, "--html", "out.html", "--html-no-texts").code == 0
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "Faithfulness, row 2, Left: A 0.00, B 1.00" in page
    assert "What does item" not in page
    assert "Nobody knows" not in page


# --- kinds of judges -----------------------------------------------------------------------------------------


def test_a_model_against_the_offline_judge(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    """One configuration for both; the offline judge has thresholds of its own, and costs nothing."""
    sheet_of(tmp_path / "in.xlsx", 6)
    ended = rag_eval(*WORDS[:6], "--judge-b", "offline", "--json", "out.json")
    found = document_of(tmp_path / "out.json")
    assert ended.code == 0, ended.err
    assert found["sentence"].startswith("B (offline judge) agrees with A (model-one) on ")
    assert "; B costs 0.00 USD instead of " in found["sentence"]
    thresholds = [found["measures"]["faithfulness"][side]["threshold"] for side in "ab"]
    assert thresholds[0] == 0.3
    assert thresholds[1] == found["judges"]["b"]["thresholds"]["faithfulness"] != 0.3
    assert "The judges have different thresholds" in ended.out
    assert not two.b.requests
    facts = {line["Fact"]: line for line in read_sheet(tmp_path / "out.xlsx", "Judges")}
    assert facts["Thresholds"]["A: model-one"].startswith("Faithfulness 0.3 (")
    assert facts["Thresholds"]["B: offline judge"].startswith(f"Faithfulness {thresholds[1]:g} (")


def test_a_long_name_of_a_judge_is_cut_in_headers(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    assert rag_eval(*WORDS, "--model-a", "m" * 61, "--model-b", "n" * 60).code == 0
    _, a, b = next(load_workbook(tmp_path / "out.xlsx")["Judges"].iter_rows(values_only=True))
    assert (a, b) == (f"A: {'m' * 59}…", f"B: {'n' * 60}")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--temperature-b", "1"], "model-one, temperature 1"),
        (["--model-b", "model-x"], "model-x"),
        (["--prompts-b", "single"], "model-one, prompts single"),
    ],
)
def test_one_configuration_and_what_differs(
    rag_eval: Run, two: Two, tmp_path: Path, options: list[str], name: str
) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    ended = rag_eval(*WORDS[:6], *options)
    assert ended.code == 0, ended.err
    assert f"B ({name}) agrees with A (model-one" in ended.out
    assert not two.b.requests


def test_two_models_of_one_gateway_are_two_judges_and_what_may_be_a_key_of_their_addresses_is_not_shown(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    for path in ("one.ini", "two.ini"):
        text = (tmp_path / path).read_text().replace("model-two", "model-one")
        text = text.replace(two.b.url, two.a.url).replace(two.a.url, f"{two.a.url}/{path[:3]}-70b/v1")
        (tmp_path / path).write_text(text)
    ended = rag_eval(*WORDS)
    assert ended.code == 0, ended.err
    assert "B (model-one, address of B) agrees with A (model-one, address of A)" in ended.out
    paths = Counter(request.path for request in two.a.requests)
    assert paths == {f"/{name}-70b/v1/chat/completions": len(two.a.requests) / 2 for name in ("one", "two")}
    assert "70b" not in ended.out + ended.err


def test_a_rubric_is_compared_by_criterion(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(
        '{"rubric_id": "r", "passing_score_threshold": 1, "metrics": [{"id": "Priced", "rubric": "costs euros"}]}'
    )

    def strict(request: Request) -> Answer | None:
        if request.task != "rubric":
            return None
        document = json.loads(honest_reply(request.prompt))
        for verdict in document.values():
            verdict |= {"passes": False, "reason": "never good enough"}
        return structured(json.dumps(document), request)

    two.b.always = strict
    two.configure(f"{ONLY_FAITHFULNESS}[rubric]\nfile = r.json\n", "")
    sheet_of(tmp_path / "in.xlsx", 4)
    ended = rag_eval(*WORDS, "--json", "out.json")
    found = document_of(tmp_path / "out.json")
    assert ended.code == 0, ended.err
    assert found["measures"]["Priced"]["a"]["failures"] == found["measures"]["Priced"]["b"]["failures"] == {}
    decisions = found["measures"]["Priced"]["decisions"]
    assert (decisions["only_a_passes"], decisions["both_fail"], decisions["kappa"]["count"]) == (4, 4, 8)
    assert found["disagreements"][0]["b"]["reason"] == "never good enough"


# --- cost ----------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_both_costs_and_sends_nothing(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 4)
    ended = rag_eval(*WORDS, "--dry-run")
    assert ended.code == 0, ended.err
    a, b = ended.out.partition("A (model-one):")[2].split("B (model-two):")
    assert a.count("Cost: about ") == b.count("Cost: about ") == 1
    assert not two.a.requests + two.b.requests
    assert not (tmp_path / "out.xlsx").exists()


def test_a_dry_run_names_what_each_judge_lacks_and_counts_its_replies(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", 4)
    offline = rag_eval(*WORDS, "--dry-run", "--judge-a", "offline")
    assert (offline.code, offline.err) == (0, "")
    a, b = offline.out.partition("A (offline judge):")[2].split("B (model-two):")
    assert a.split("\n") == ["", "The offline judge sends nothing and costs nothing.", ""]
    assert "Cost: about " in b
    assert "would redact" not in b
    assert rag_eval(*WORDS, "--max-calls", "5").code == 4
    (tmp_path / "two.ini").write_text(
        f"[judge]\nprovider = azure\n[azure]\nendpoint = {two.b.url}\ndeployment = two\n{ONLY_FAITHFULNESS}"
    )
    lacking = rag_eval(*WORDS, "--dry-run")
    assert lacking.code == 0
    (line,) = lacking.err.splitlines()
    assert line.startswith("rag-eval: A run would stop here: Azure OpenAI credentials not found")
    assert re.findall("Cached replies: (.*)", lacking.out) == ["4.", "0."]
    fresh = rag_eval(*WORDS, "--dry-run", "--fresh")
    assert re.findall("Cached replies: (.*)", fresh.out) == ["0.", "0."]


@pytest.mark.slow
def test_a_limit_on_the_command_line_is_for_both(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    """A needs 17 requests with its preflight, B gets what is left of 25."""
    sheet_of(tmp_path / "in.xlsx", 4)
    ended = rag_eval(*WORDS, "--max-calls", "25", "--json", "out.json")
    assert ended.code == 4
    assert (len(two.a.requests), len(two.b.requests)) == (17, 8)
    assert (
        "PARTIAL: B: 8 requests were sent (--max-calls); run the same command again to continue (the limit is"
        in (ended.err)
    )
    found = document_of(tmp_path / "out.json")
    line = found["measures"]["faithfulness"]
    assert found["status"] == "partial"
    assert line["count"] + line["b"]["failures"]["not_run"] == 8
    assert found["judges"]["b"]["cost_per_1000_rows"] is None
    assert "per 1,000 rows" not in found["sentence"]
    assert load_workbook(tmp_path / "out.xlsx").properties.keywords == "PARTIAL"
    two.a.requests.clear()
    assert rag_eval(*WORDS, "--max-calls", "25", "--json", "out.json").code == 0
    assert not load_workbook(tmp_path / "out.xlsx").properties.keywords
    assert (len(two.a.requests), document_of(tmp_path / "out.json")["status"]) == (0, "complete")


@pytest.mark.slow
def test_the_cost_of_both_is_that_of_all_commands(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    """What this command paid includes its test call."""

    def unusable(request: Request) -> Answer | None:
        is_hit = request.task == "verdicts" and "number 0" in request.prompt.rpartition("input: ")[2]
        return structured('{"statements": []}', request) if is_hit else None

    two.b.always = unusable
    sheet_of(tmp_path / "in.xlsx", 4)
    paid: list[dict[str, float]] = []
    for limit in (9, 17, 30):
        rag_eval(*WORDS, "--max-calls", str(limit), "--json", "out.json")
        paid.append({"a": cost_of(two.a, PRICES["one"]), "b": cost_of(two.b, PRICES["two"])})
    assert paid[0]["b"] == 0 < paid[1]["b"] < paid[2]["b"]
    judges = document_of(tmp_path / "out.json")["judges"]
    for letter in "ab":
        assert judges[letter]["cost"] == pytest.approx(paid[2][letter])
        assert judges[letter]["cached"] == 0
    assert judges["a"]["paid"] == 0.0
    assert 0 < judges["b"]["paid"] - (paid[2]["b"] - paid[1]["b"]) < 1e-4


@pytest.mark.slow
def test_a_comparison_that_was_continued_counts_its_calls_as_one_that_was_not(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    """Each request that asked something is a call, however many replies it brought; none of them is a cached one."""
    two.configure("")
    sheet_of(tmp_path / "in.xlsx", 5)
    codes = [
        rag_eval(*WORDS, "--max-calls", limit, "--json", "out.json").code for limit in ("70", "40", "200")
    ]
    assert codes == [4, 4, 0]
    judges = document_of(tmp_path / "out.json")["judges"]
    for letter, judge in (("a", two.a), ("b", two.b)):
        asked = [each for each in judge.requests if each.task != "preflight"]
        assert (judges[letter]["calls"], judges[letter]["cached"]) == (len(asked), 0)
        assert judges[letter]["prompt_tokens"] == sum(len(each.prompt.split()) for each in asked)


def test_a_limit_in_a_configuration_is_for_its_judge(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    two.configure(more_of_b=f"{ONLY_FAITHFULNESS}[limits]\nmax_calls = 5\n")
    sheet_of(tmp_path / "in.xlsx", 4)
    ended = rag_eval(*WORDS)
    assert (ended.code, len(two.a.requests), len(two.b.requests)) == (4, 17, 5)
    assert "the limit is for both" not in ended.err


def test_a_judge_that_stops_first_leaves_the_other_one_unpaid(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", 4)
    (tmp_path / "out.xlsx").write_bytes(b"the old comparison")
    ended = rag_eval(*WORDS, "--max-calls", "9")
    assert (ended.code, len(two.a.requests), len(two.b.requests)) == (4, 9, 0)
    assert (tmp_path / "out.xlsx").read_bytes() == b"the old comparison"
    ended = rag_eval(*WORDS)
    assert ended.code == 0, ended.err
    assert len(two.a.requests) == 9 + 17 - 8, "one preflight for each command"


def test_the_cost_knows_the_deployment_of_toxicity(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    extra = ONLY_FAITHFULNESS.replace("toxicity = no\n", "[toxicity]\ndeployment = tox\n")
    two.configure(extra)
    path = tmp_path / "one.ini"
    path.write_text(
        path.read_text().replace("[prices]\n", "[prices]\ntoxicity_input = 7\ntoxicity_output = 9\n")
    )
    sheet_of(tmp_path / "in.xlsx", 3)
    assert rag_eval(*WORDS, "--json", "out.json").code == 0
    judges = document_of(tmp_path / "out.json")["judges"]
    requests = two.a.requests
    two.a.requests = [each for each in requests if each.body["model"] == "tox"]
    expected = cost_of(two.a, Price(7, 9))
    assert expected > 0
    two.a.requests = [each for each in requests if each.body["model"] != "tox"]
    assert judges["a"]["cost"] == pytest.approx(expected + cost_of(two.a, PRICES["one"]))
    assert judges["b"]["cost"] is None, "the price of its toxicity deployment is unknown"


def test_cached_replies_cost_nothing_again_and_what_they_cost_is_still_told(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    two.configure(f"{ONLY_FAITHFULNESS}[cache]\nenabled = yes\n")
    sheet_of(tmp_path / "in.xlsx", 3)
    costs = []
    for _ in range(2):
        assert rag_eval(*WORDS, "--json", "out.json").code == 0
        judges = document_of(tmp_path / "out.json")["judges"]
        costs.append([judges[side]["cost_per_1000_rows"] for side in "ab"])
    assert costs[0] == costs[1] != [None, None]
    assert [judges[side]["paid"] for side in "ab"] == [0.0, 0.0]
    assert len(two.a.requests) == len(two.b.requests) == 13
    assert not list(tmp_path.glob("*.journal"))


def test_advice_is_not_paid_for(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 3)
    assert rag_eval(*WORDS).code == 0
    assert {*two.a.tasks(), *two.b.tasks()} == {"preflight", "statements", "verdicts"}


# --- failures ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_failures_of_each_judge_are_counted_and_never_zeros(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    def blocked(request: Request) -> Answer | None:
        is_hit = request.task == "verdicts" and "number 0" in request.prompt.rpartition("input: ")[2]
        return error(400, "content_filter", "blocked") if is_hit else None

    two.b.always = blocked
    sheet_of(tmp_path / "in.xlsx", 5)
    ended = rag_eval(*WORDS, "--json", "out.json")
    found = document_of(tmp_path / "out.json")
    line = found["measures"]["faithfulness"]
    assert ended.code == 3, "coverage of B is 9 of 10"
    assert (line["count"], line["b"]["failures"], line["a"]["failures"]) == (9, {"blocked_by_filter": 1}, {})
    assert (line["a"]["mean"], line["b"]["mean"]) == (pytest.approx(5 / 9), pytest.approx(5 / 9))
    assert (line["a"]["own"]["scored"], line["b"]["own"]["scored"]) == (10, 9)
    assert found["decisions"]["left_out"] == 1
    assert "Faithfulness: B could not score 1 (blocked_by_filter 1); 9 cases are compared." in ended.out
    assert (tmp_path / "out.xlsx.a.journal").exists(), "for the next attempt, which must not pay A again"
    two.b.always = None
    two.a.requests.clear()
    plans = [rag_eval(*WORDS, "--dry-run", *also).out for also in ([], ["--retry-errors"])]
    assert [re.findall(r"Calls to model-two: about (\d+)", plan) for plan in plans] == [[], ["2"]]
    assert rag_eval(*WORDS, "--retry-errors").code == 0
    assert not two.a.requests
    assert not list(tmp_path.glob("*.journal"))


def test_a_judge_that_only_fails_is_said_to_have_no_case_in_common(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    two.b.always = lambda request: (
        None if request.task == "preflight" else error(400, "content_filter", "blocked")
    )
    sheet_of(tmp_path / "in.xlsx", 2)
    ended = rag_eval(*WORDS, "--json", "out.json")
    assert ended.code == 3, ended.err
    assert "A (model-one) and B (model-two) have no case in common that both scored completely" in ended.out
    assert document_of(tmp_path / "out.json")["measures"]["faithfulness"]["count"] == 0


def test_a_wrong_key_of_b_costs_one_request_and_keeps_what_a_said(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    two.b.always = error(401, "401", f"invalid key {KEY}-two")
    sheet_of(tmp_path / "in.xlsx", 2)
    ended = rag_eval(*WORDS)
    assert (ended.code, len(two.a.requests), len(two.b.requests)) == (4, 9, 1)
    assert KEY not in ended.out + ended.err
    assert not (tmp_path / "out.xlsx").exists()
    two.b.always = None
    assert rag_eval(*WORDS).code == 0
    assert len(two.a.requests) == 9


# --- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--a", "one.ini"), "A and B are the same judge (model-one); name another one with --b"),
        (("--a", "one.ini", "--b", "one.ini", "--temperature-b", "0"), "A and B are the same judge"),
        (("--judge-a", "offline", "--judge-b", "offline"), "A and B are the same judge (offline judge)"),
        (("--a", "one.ini", "--b", "two.ini", "--rows", "50"), "for 50 random rows use --random-rows 50"),
        (("--a", "one.ini", "--b", "nix.ini"), "nix.ini"),
        (("--a", "one.ini", "--b", "two.ini", "-o", "in.xlsx"), "in.xlsx: is the input"),
        (("--a", "one.ini", "--b", "two.ini", "--json", "two.ini"), "two.ini: is "),
        (("--a", "one.ini", "--b", "two.ini", "--html", "out.xlsx"), "out.xlsx: is the report"),
        (("--a", "one.ini", "--b", "two.ini", "--json", "out.xlsx.b.journal"), "contains paid replies"),
        (("--a", "one.ini", "--b", "two.ini", "-o", "out.csv"), "give it a name that ends in .xlsx"),
        (("--a", "one.ini", "--b", "two.ini", "--where", "Nix = 1"), "--where"),
        (("--a", "one.ini", "--b", "two.ini", "--html-no-texts"), "--html-no-texts needs a page"),
        (("--a", "one.ini", "--judge-b", "azure"), "Azure OpenAI credentials not found"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    rag_eval: Run, two: Two, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    before = (tmp_path / "in.xlsx").read_bytes()
    ended = rag_eval("compare-judges", "in.xlsx", "-o", "out.xlsx", *words)
    assert ended.code == 2, ended.out
    assert message in ended.err
    assert not two.a.requests + two.b.requests
    assert (tmp_path / "in.xlsx").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"in.xlsx", "one.ini", "two.ini"}


def test_a_variable_that_makes_both_judges_one_is_named(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    for name in ("one", "two"):
        (tmp_path / f"{name}.ini").write_text(
            f"[judge]\nprovider = azure\n[azure]\nendpoint = https://{name}.example.com\n"
        )
    ended = rag_eval(*WORDS, AZURE_OPENAI_ENDPOINT=two.a.url, AZURE_OPENAI_API_KEY=KEY)
    assert ended.code == 2
    assert "A and B are the same judge (gpt-4o)" in ended.err
    assert "From the environment, for both judges: AZURE_OPENAI_ENDPOINT\n" in ended.err
    assert not two.a.requests


def test_settings_that_would_give_other_cases_are_refused_and_absent_ones_are_those_of_a(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    two.configure(more_of_b="[context]\ndelimiter = ###\n[metrics]\ntoxicity = yes\n")
    ended = rag_eval(*WORDS)
    assert ended.code == 2
    assert "two.ini, line 11, [context] delimiter: differs from A" in ended.err
    assert "[metrics] toxicity: differs from A" in ended.err
    two.configure(more_of_b="[evaluation]\nmax_workers = 1\n")  # decides nothing about the cases
    assert rag_eval(*WORDS).code == 0
    assert two.a.tasks() == two.b.tasks(), "the metrics that A switches off are not judged by B"


def test_what_a_hides_is_hidden_from_b_unless_b_says_otherwise(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    write_table(
        tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], ["Who?", "Ask ann@x.org.", "Ask ann@x.org."]
    )
    two.configure(f"{ONLY_FAITHFULNESS}[privacy]\nredact = email\n", "")
    dry = rag_eval(*WORDS, "--dry-run").out
    assert dry.count("A run would redact before sending: ") == 2
    assert rag_eval(*WORDS).code == 0
    assert not any("ann@x.org" in request.prompt for request in (*two.a.requests, *two.b.requests))
    two.configure(f"{ONLY_FAITHFULNESS}[privacy]\nredact = email\n", "[privacy]\nredact =\n")
    assert rag_eval(*WORDS).code == 0
    assert any("ann@x.org" in request.prompt for request in two.b.requests)


def test_a_cap_needs_one_currency_and_both_prices(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 2)
    path = tmp_path / "two.ini"
    text = path.read_text()
    path.write_text(text.replace("[prices]\n", "[prices]\ncurrency = EUR\n"))
    ended = rag_eval(*WORDS, "--max-cost", "1")
    assert (ended.code, "different currencies (EUR, USD)" in ended.err) == (2, True)
    assert rag_eval(*WORDS, "--dry-run").code == 0, "without a cap each has its currency"
    assert rag_eval(*WORDS, "--max-cost", "1", "--judge-b", "offline", "--dry-run").code == 0
    path.write_text(text.replace("output = 0.6\n", ""))
    ended = rag_eval(*WORDS, "--max-cost", "1")
    assert (ended.code, "the price of model-two is not known" in ended.err) == (2, True)
    assert not two.a.requests


def test_the_same_rows_are_selected_for_both(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", 20)
    ended = rag_eval(*WORDS, "--random-rows", "3", "--json", "out.json")
    found = document_of(tmp_path / "out.json")
    assert (ended.code, found["rows"], found["cases"]) == (0, 3, 6)
    assert sorted(request.prompt for request in two.a.requests) == sorted(
        request.prompt for request in two.b.requests
    )


def test_a_second_comparison_of_the_same_workbook_waits_its_turn(
    rag_eval: Run, two: Two, tmp_path: Path
) -> None:
    from rag_eval.store.lock import locked

    sheet_of(tmp_path / "in.xlsx", 2)
    with locked(tmp_path / "out.xlsx"):
        assert rag_eval(*WORDS).code == 75
    assert not two.a.requests


def test_no_key_is_written_anywhere(rag_eval: Run, two: Two, tmp_path: Path) -> None:
    def quoting(request: Request) -> Answer | None:
        if request.task != "verdicts":
            return None
        document = json.loads(honest_reply(request.prompt))
        for each in document["statements"]:
            each |= {"verdict": 0, "reason": f"your key is {KEY}-two"}
        return structured(json.dumps(document), request)

    two.b.always = quoting
    sheet_of(tmp_path / "in.xlsx", 3)
    ended = rag_eval(*WORDS, "--json", "out.json", "--html", "out.html")
    assert ended.code == 0, ended.err
    lines = read_sheet(tmp_path / "out.xlsx", "Disagreements")
    assert "your key is [key]" in str(lines[0]["Evidence of B"])
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in ("out.json", "out.html")]
    assert not any(KEY in text for text in (*texts, str(lines), ended.out, ended.err))

"""A run that stops at a planned look once the answer is clear."""

import json
import math
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from conftest import Run, azure, read_sheet, wait_for
from fake_judge import FakeJudge, Request
from files import BAD, CONTEXT, GOOD, HEADER, write_table
from forking import Forker
from report_cases import facts_of

from rag_eval.configuration.settings import Settings
from rag_eval.records import Case, PlannedLook, Row
from rag_eval.results.comparison import Stage, compare_with_best
from rag_eval.results.looks import boundaries, confidence_of, in_order, key_of, planned_looks, spent
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.run.until_clear import UntilClear
from rag_eval.store.reply_store import Store

SINGLE = ("--prompts", "single")


def test_boundaries_are_those_of_the_published_table() -> None:
    """Lan–DeMets spending of O'Brien–Fleming's type, two-sided 5 %: Proschan, Lan and Wittes (2006)."""
    assert boundaries((0.25, 0.5, 0.75, 1.0)) == pytest.approx((4.333, 2.963, 2.359, 2.014), abs=6e-4)
    assert boundaries((0.2, 0.4, 0.6, 0.8, 1.0)) == pytest.approx(
        (4.877, 3.357, 2.680, 2.290, 2.031), abs=6e-4
    )
    assert boundaries((1.0,)) == pytest.approx((1.960,), abs=6e-4)


@pytest.mark.slow
def test_joint_flips_of_two_bots_come_to_the_same_boundaries() -> None:
    """With many rows; the first boundary is left out, since too few flips are beyond it."""
    from rag_eval.results.comparison import _step_down

    rng = np.random.default_rng(3)
    gaps = np.column_stack([np.zeros(1_000), rng.normal(size=1_000)])
    stages = [Stage(round(1_000 * share), spent(share)) for share in (0.4, 0.6, 0.8, 1.0)]
    for count, wanted in zip((2, 3, 4), boundaries((0.4, 0.6, 0.8, 1.0))[1:], strict=True):
        part = gaps[: stages[count - 1].rows]
        (test,) = _step_down(part, stages[:count], 200_000, np.random.default_rng(0))
        assert test.critical == pytest.approx(wanted, abs=0.03)


def test_spending_begins_at_nothing_and_ends_at_all() -> None:
    shares = np.linspace(0.01, 1, 100)
    found = [spent(share) for share in shares]
    assert found == sorted(found)
    assert (spent(0.0), spent(1.0)) == (0.0, 0.05)
    assert spent(0.4) == pytest.approx(0.000788, abs=1e-6)


def test_one_stage_at_the_full_level_is_the_test_without_looks() -> None:
    rng = np.random.default_rng(1)
    scores = np.clip(rng.normal((0.7, 0.65, 0.6), 0.2, (60, 3)), 0, 1)
    assert compare_with_best(scores, "ABC", stages=[Stage(60, 1 - 0.95)]) == compare_with_best(scores, "ABC")


def test_a_clear_lead_needs_more_at_an_early_look() -> None:
    """The same differences: significant at the end of a run, not at its first look."""
    rng = np.random.default_rng(7)
    scores = np.column_stack([rng.normal(0.62, 0.15, 80), rng.normal(0.55, 0.15, 80)])
    at_end = compare_with_best(scores, "AB")
    early = compare_with_best(scores, "AB", stages=[Stage(80, spent(0.4))])
    assert at_end is not None
    assert early is not None
    assert at_end.rivals[0].is_significant
    assert not early.rivals[0].is_significant
    assert early.rivals[0].pvalue > 0.05 > at_end.rivals[0].pvalue
    assert early.rivals[0].interval is not None
    assert early.rivals[0].interval.low <= 0


def test_repeats_of_a_query_are_one_piece_of_evidence() -> None:
    rng = np.random.default_rng(2)
    once = np.column_stack([rng.normal(0.62, 0.2, 20), rng.normal(0.55, 0.2, 20)])
    thrice = np.repeat(once, 3, axis=0)
    clusters = np.repeat(np.arange(20), 3)
    plain, repeated = (
        compare_with_best(table, "AB", clusters=number)
        for table, number in ((once, np.arange(20)), (thrice, clusters))
    )
    assert plain is not None
    assert repeated is not None
    assert repeated.rivals[0].pvalue == pytest.approx(plain.rivals[0].pvalue)
    naive = compare_with_best(thrice, "AB")
    assert naive is not None
    assert naive.rivals[0].pvalue < plain.rivals[0].pvalue / 2


@pytest.mark.slow
@pytest.mark.parametrize("bots", [2, 5])
def test_looks_rarely_claim_what_is_not_so(bots: int) -> None:
    """200 runs of equal bots: 10 are expected at most, and more than 22 are one in five thousand."""
    rng = np.random.default_rng(bots)
    names = [str(bot) for bot in range(bots)]
    wrong = 0
    for _ in range(200):
        scores = np.clip(rng.beta(4, 1.5, (50, 1)) + rng.normal(0, 0.15, (50, bots)), 0, 1)
        stages: list[Stage] = []
        for share in (0.4, 0.6, 0.8, 1.0):
            stages.append(Stage(round(50 * share), spent(share)))
            found = compare_with_best(scores[: stages[-1].rows], names, stages=stages, resamples=199)
            assert found is not None
            if any(rival.is_significant for rival in found.rivals):
                wrong += 1
                break
    assert 1 <= wrong <= 22


def test_looks_that_cannot_be_clear_are_left_out() -> None:
    """The first of 20 rows has 8, whose rarest sign pattern has a chance of 1 in 128."""
    keys = [key_of(Case(2, "A", f"query {number}", "")) for number in range(20)]
    assert [look.rows for look in planned_looks(keys, (0.4, 0.6, 0.8))] == [12, 16, 20]
    assert planned_looks(keys[:4], (0.4, 0.6, 0.8)) == (PlannedLook(4, 0.05),)


def test_rows_with_one_query_are_seen_by_one_look() -> None:
    keys = [key_of(Case(2, "A", f"query {number // 10}", "")) for number in range(200)]
    for look in planned_looks(keys, (0.41, 0.63, 0.8)):
        order = in_order(keys)
        assert look.rows == 200 or keys[order[look.rows - 1]] != keys[order[look.rows]]


def test_more_rows_do_not_change_the_order_of_the_others() -> None:
    keys = [key_of(Case(2, "A", f"query {number}", "")) for number in range(50)]
    few, many = in_order(keys[:30]), in_order(keys)
    assert [row for row in many if row < 30] == few


def test_confidence_of_a_gate_is_that_of_its_boundary() -> None:
    looks = tuple(PlannedLook(rows, spent(rows / 100)) for rows in (40, 60, 80, 100))
    assert confidence_of((), 100) == pytest.approx(0.95)
    assert confidence_of(looks[:1], 100) == pytest.approx(1 - spent(0.4))
    assert confidence_of(looks, 100) == pytest.approx(math.erf(2.031 / math.sqrt(2)), abs=1e-4)


# Whole runs


def sheet(path: Path, rows: int, good: str = GOOD, bad: str = BAD) -> Path:
    lines = [
        [
            f"What is the capital of France, question {n}?",
            GOOD,
            f"{good} Says {n}.",
            f"{bad} Says {n}.",
            CONTEXT,
        ]
        for n in range(rows)
    ]
    return write_table(path, HEADER, *lines)


def uneven_sheet(path: Path) -> None:
    """30 rows: one bot is clearly better; the other one is right in every second row."""
    texts = [f"{GOOD.split('.')[0] if n % 2 else ''}. {BAD} Says {n}." for n in range(30)]
    lines = [
        [f"What is the capital, question {n}?", GOOD, f"{GOOD} {n}.", text, CONTEXT]
        for n, text in enumerate(texts)
    ]
    write_table(path, HEADER, *lines)


def run_of(path: Path) -> dict:  # type: ignore[type-arg]
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
def test_a_clear_run_stops_and_asks_for_nothing_more(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    words = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--html", "r.html", *SINGLE, "--until-clear")
    ended = run_cli(*words, **azure(judge))
    assert ended.code == 0, ended.err
    assert "Good is better than Bad, clear after 12 of 30 rows." in ended.out
    assert "repeated 95% CI" in ended.out
    assert "leads of runs that stop early are a little too high" in ended.out
    assert "not judged" not in ended.out + ended.err
    assert "PARTIAL" not in ended.out + ended.err
    document = run_of(tmp_path / "r.json")
    assert document["end"]["status"] == "complete"
    assert document["end"]["looks_taken"] == 1
    assert [look["rows"] for look in document["run"]["looks"]] == [12, 18, 24, 30]
    assert document["run"]["rows"] == 30
    assert document["leaderboard"]["rows"] == 12
    rows = [case["row"] for case in document["cases"]]
    assert rows == sorted(rows)
    assert len(rows) == 24
    queries = {
        number for request in judge.requests for number in re.findall(r"question (\d+)\?", request.prompt)
    }
    assert len(queries) == 12, "rows of later looks were sent"
    board = read_sheet(tmp_path / "r.xlsx", "Leaderboard")
    assert [line["Rank"] for line in board] == [1, 2]
    assert "12 of 30 rows" in (tmp_path / "r.html").read_text(encoding="utf-8")
    asked = len(judge.requests)
    again = run_cli(*words, **azure(judge))
    assert again.code == 0
    assert "clear after 12 of 30 rows" in again.out
    assert len(judge.requests) == asked, "the journal was not kept"


@pytest.mark.slow
def test_a_report_from_stored_replies_shows_the_looks_with_and_without_the_option(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    run_cli("in.xlsx", "-o", "r.xlsx", *SINGLE, "--until-clear", **azure(judge))
    asked = len(judge.requests)
    for more in ((), ("--until-clear",)):
        ended = run_cli(
            "in.xlsx", "-o", "r.xlsx", "--json", "r.json", *SINGLE, "--report-only", *more, **azure(judge)
        )
        assert ended.code == 0, ended.err
        assert "clear after 12 of 30 rows" in ended.out
        assert run_of(tmp_path / "r.json")["end"]["looks_taken"] == 1
    ended = run_cli("r.json", "-o", "again.xlsx", "--report-only")
    assert ended.code == 0
    assert "clear after 12 of 30 rows" in ended.out
    assert len(judge.requests) == asked


@pytest.mark.slow
def test_a_report_alone_does_not_decide_again_what_the_run_has_decided(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The run went on after its first look, for its gate, and was ended by a cap before the second."""
    uneven_sheet(tmp_path / "in.xlsx")
    words = ("--json", "r.json", *SINGLE, "--until-clear")
    run_cli("in.xlsx", "-o", "probe.xlsx", *words, **azure(judge))
    calls = len(judge.requests)
    means = {bot["bot"]: bot["rqs"]["value"] for bot in run_of(tmp_path / "r.json")["bots"]}
    gate = ("--fail-under", f"rqs={means['Bad']:.3f}")
    capped = run_cli("in.xlsx", "-o", "r.xlsx", *words, *gate, "--max-calls", str(calls + 4), **azure(judge))
    assert capped.code == 4, capped.err
    assert run_of(tmp_path / "r.json")["end"]["looks_taken"] == 1
    ended = run_cli("in.xlsx", "-o", "r.xlsx", *words, "--report-only", **azure(judge))
    assert "clear after" not in ended.out
    assert ended.code == 4, ended.out
    assert "Not finished: " in ended.out


def test_bots_that_are_alike_are_judged_to_the_end(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path / "in.xlsx", 20, GOOD, GOOD)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", *SINGLE, "--until-clear", **azure(judge))
    assert ended.code == 0
    document = run_of(tmp_path / "r.json")
    assert document["end"]["looks_taken"] == len(document["run"]["looks"]) == 3
    assert document["leaderboard"]["rows"] == 20
    assert "clear after" not in ended.out


def test_without_the_option_nothing_is_looked_at(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path / "in.xlsx", 20)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", *SINGLE, **azure(judge))
    assert ended.code == 0
    document = run_of(tmp_path / "r.json")
    assert (document["run"]["looks"], document["end"]["looks_taken"]) == ([], 0)
    assert document["leaderboard"]["rows"] == 20
    assert "repeated" not in ended.out
    assert not list(tmp_path.glob("*.journal*"))


@pytest.mark.parametrize(
    ("gate", "rows", "code"),
    [("rqs=0.2", 12, 0), ("rqs=0.9999", 12, 1)],
    ids=["passed early", "missed early"],
)
def test_one_bot_stops_when_its_gates_are_decided(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, gate: str, rows: int, code: int
) -> None:
    lines = [
        [f"What is the capital, question {n}?", GOOD, f"{BAD if n % 4 == 0 else GOOD} Says {n}.", CONTEXT]
        for n in range(30)
    ]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], *lines)
    ended = run_cli(
        "in.xlsx",
        "-o",
        "r.xlsx",
        "--json",
        "r.json",
        *SINGLE,
        "--until-clear",
        "--fail-under",
        gate,
        **azure(judge),
    )
    assert ended.code == code, ended.err
    document = run_of(tmp_path / "r.json")
    assert document["leaderboard"]["rows"] == rows
    assert "gates clear after 12 of 30 rows" in ended.out
    assert "repeated 95% CI" in ended.out + ended.err


@pytest.mark.slow
def test_a_gate_that_is_not_decided_keeps_the_run_going(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """The winner is clear at once; whether the other bot reaches what is its own mean is not."""
    uneven_sheet(tmp_path / "in.xlsx")
    run_cli("in.xlsx", "-o", "r.xlsx", "--json", "all.json", *SINGLE, **azure(judge))
    means = {bot["bot"]: bot["rqs"]["value"] for bot in run_of(tmp_path / "all.json")["bots"]}
    words = ("in.xlsx", "-o", "s.xlsx", "--json", "s.json", *SINGLE, "--until-clear")
    assert run_cli(*words, **azure(judge)).code == 0
    assert run_of(tmp_path / "s.json")["leaderboard"]["rows"] == 12
    ended = run_cli(*words, "--fail-under", f"rqs={means['Bad']:.3f}", **azure(judge))
    assert ended.code == 1
    assert run_of(tmp_path / "s.json")["leaderboard"]["rows"] == 30


@pytest.mark.slow
def test_a_capped_run_says_so_and_goes_on_to_the_same_look(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    words = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json", *SINGLE, "--until-clear")
    ended = run_cli(*words, "--max-calls", "10", **azure(judge))
    assert ended.code == 4
    document = run_of(tmp_path / "r.json")
    assert document["end"]["status"] == "partial"
    assert document["end"]["looks_taken"] == 0
    assert document["leaderboard"]["verdict_lines"]["decision"].startswith("Not finished: ")
    assert "of 30 rows" in document["leaderboard"]["verdict_lines"]["decision"]
    assert len(judge.requests) <= 10
    stored = run_cli(*words, "--report-only", **azure(judge))
    assert stored.code == 4
    assert "Not finished: " in stored.out
    assert len(judge.requests) <= 10
    ended = run_cli(*words, **azure(judge))
    assert ended.code == 0
    assert "clear after 12 of 30 rows" in ended.out
    seen = [
        json.dumps(request.body, sort_keys=True) for request in judge.requests if request.task != "preflight"
    ]
    assert len(seen) == len(set(seen)), "a call was paid twice"


@pytest.mark.slow
def test_a_run_killed_between_two_looks_pays_and_spends_nothing_twice(
    forker: Forker, judge: FakeJudge, tmp_path: Path
) -> None:
    lines = [
        [
            f"What is the capital of France, question {n}?",
            GOOD,
            f"{GOOD} Says {n}.",
            f"{GOOD if n % 2 else BAD} Says {n}.",
            CONTEXT,
        ]
        for n in range(40)
    ]
    write_table(tmp_path / "in.xlsx", HEADER, *lines)
    words = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json", *SINGLE, "--until-clear")
    undisturbed = forker.start(tmp_path, *words, variables=azure(judge)).wait()
    assert undisturbed.code == 0, undisturbed.err
    wanted = run_of(tmp_path / "r.json")
    taken = wanted["end"]["looks_taken"]
    assert taken >= 2, "the example has to go past its first look"
    first = wanted["run"]["looks"][0]["rows"]
    for path in [*tmp_path.iterdir()]:
        if path.name != "in.xlsx":
            path.unlink()
    judge.requests.clear()
    seen: set[str] = set()

    def hold(request: Request) -> None:
        seen.update(re.findall(r"question (\d+)\?", request.prompt))
        if len(seen) > first:
            wait_for(lambda: judge.always is None, 120)

    judge.always = hold
    run = forker.start(tmp_path, *words, variables=azure(judge))
    wait_for(lambda: len(seen) > first, 120)
    run.signal(signal.SIGKILL)
    wait_for(run.has_ended, 60)
    judge.always = None
    again = forker.start(tmp_path, *words, variables=azure(judge)).wait()
    assert again.code == 0, again.err
    found = run_of(tmp_path / "r.json")
    assert found["leaderboard"] == wanted["leaderboard"]
    assert found["end"]["looks_taken"] == taken
    assert found["run"]["looks"] == wanted["run"]["looks"]
    asked = [json.dumps(r.body, sort_keys=True) for r in judge.requests if r.task != "preflight"]
    twice = len(asked) - len(set(asked))
    assert twice <= 2, "only what was in flight when it was killed may be asked again"


@pytest.mark.slow
def test_other_rows_with_the_same_queries_are_told(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    words = ("in.xlsx", "-o", "r.xlsx", *SINGLE, "--until-clear")
    assert "Looks add up" not in run_cli(*words, **azure(judge)).out
    assert "Looks add up" not in run_cli(*words, **azure(judge)).out
    sheet(tmp_path / "in.xlsx", 36)
    ended = run_cli(*words, **azure(judge))
    assert ended.code == 0
    assert (
        "Earlier runs looked at mostly the same queries; looks before this run: 1. Looks add up" in ended.out
    )


def test_looks_add_up_over_the_last_ten_runs(tmp_path: Path) -> None:
    store, settings = Store(tmp_path / "replies"), Settings.model_validate({"judge": {"provider": "offline"}})

    def notes_of(more: str) -> tuple[str, ...]:
        texts = {"Good": GOOD + more, "Bad": BAD + more}
        rows = [
            Row(
                n,
                f"{n}?",
                tuple(Case(n, bot, f"{n}?", text, GOOD, (CONTEXT,)) for bot, text in texts.items()),
            )
            for n in range(30)
        ]
        clear, evaluation = (
            UntilClear(rows, [*texts], settings, [], is_again=False),
            Evaluation(Judges.offline(settings), settings),
        )
        facts = clear.begin(facts_of([*texts], 30), store)
        assert len(list(clear.results(evaluation, lambda results: None))) == 12
        evaluation.close()
        return facts.notes

    assert notes_of("") == ()
    (plan,) = json.loads(store.note("looks") or "")
    store.put_note("looks", json.dumps([{**plan, "digest": str(number)} for number in range(12)]))
    (note,) = notes_of(" So.")
    assert "mostly the same queries; looks before this run: 12. Looks add up" in note
    plans = [each["digest"] for each in json.loads(store.note("looks") or "")]
    assert plans[:-1] == [str(number) for number in range(3, 12)]
    assert len(plans[-1]) == 64, "of this run"
    store.end(keep=False)


def test_the_offline_judge_stops_as_well_unless_it_is_too_close(run_cli: Run, tmp_path: Path) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--until-clear")
    assert ended.code == 0
    assert "Good is better than Bad, clear after 12 of 30 rows." in ended.out


def test_a_dry_run_tells_the_expected_and_the_largest_cost(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    sheet(tmp_path / "in.xlsx", 30)
    (tmp_path / "config.ini").write_text("[prices]\ninput = 2\noutput = 8\n", encoding="utf-8")
    plain = run_cli("in.xlsx", "--dry-run", *SINGLE, **azure(judge))
    ended = run_cli("in.xlsx", "--dry-run", *SINGLE, "--until-clear", **azure(judge))
    assert ended.code == 0
    assert "Looks: after 12, 18 and 24 of 30 rows." in ended.out
    (line,) = (line for line in ended.out.splitlines() if line.startswith("With --until-clear"))
    (cost,) = (line for line in ended.out.splitlines() if line.startswith("Cost: about "))
    largest = float(cost.split()[2])
    assert f"at most {61} calls" in line or " calls and " in line
    assert f"and {largest:.2f} " in line
    assert cost in plain.out
    with (tmp_path / "config.ini").open("a", encoding="utf-8") as file:
        file.write("[evaluation]\nlooks = 0.5\n")
    ended = run_cli("in.xlsx", "--dry-run", *SINGLE, "--until-clear", **azure(judge))
    assert "Looks: after 15 of 30 rows." in ended.out
    assert "With --until-clear" in ended.out
    assert not judge.requests


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--batch",), "--until-clear: cannot be used with --batch"),
        (("--shard-rows", "5"), "--until-clear: cannot be used with a run in shards"),
        (
            ("--fail-on-regression", "--baseline", "b.json"),
            "--until-clear: cannot be used with --fail-on-regression",
        ),
    ],
)
def test_what_planned_looks_cannot_have_is_refused(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    sheet(tmp_path / "in.xlsx", 12)
    run_cli("in.xlsx", "--judge", "offline", "--json", "b.json", "-o", "b.xlsx")
    target = "folder" if "--shard-rows" in words else "r.xlsx"
    ended = run_cli("in.xlsx", "-o", target, "--until-clear", *words, **azure(judge))
    assert ended.code == 2
    assert message in ended.err
    assert not judge.requests


def test_several_files_are_refused(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet(tmp_path / "a.xlsx", 12)
    sheet(tmp_path / "b.xlsx", 12)
    ended = run_cli("a.xlsx", "b.xlsx", "-o", "out", "--until-clear", **azure(judge))
    assert ended.code == 2
    assert "--until-clear" in ended.err
    assert not judge.requests


def test_one_bot_without_a_gate_is_refused(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], *[[f"question {n}", GOOD] for n in range(12)])
    ended = run_cli("in.xlsx", "--until-clear", **azure(judge))
    assert ended.code == 2
    assert (
        "--until-clear: with one bot there is nothing to decide; add a gate, such as --fail-under rqs=0.7"
        in ended.err
    )
    assert not judge.requests


@pytest.mark.parametrize("value", ["0.4, 1.2", "0, 0.5", "0.6, 0.4", "0.4, 0.4", "soon", "", "nan"])
def test_looks_that_are_no_increasing_shares_are_refused(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, value: str
) -> None:
    sheet(tmp_path / "in.xlsx", 12)
    (tmp_path / "config.ini").write_text(f"[evaluation]\nlooks = {value}\n", encoding="utf-8")
    ended = run_cli("in.xlsx", "--until-clear", **azure(judge))
    assert ended.code == 2
    assert "config.ini, line 2, [evaluation] looks" in ended.err
    assert "expected increasing numbers between 0 and 1, such as 0.4, 0.6, 0.8" in ended.err
    assert not judge.requests

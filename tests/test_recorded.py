"""A run's JSON that an earlier version wrote is read whole, and written again byte for byte.

recorded/before.json was written by a version that listed every member by hand; recorded/run.json is the same run with
what came later. It has a value other than the default in every field; recorded/earlier.json is the baseline of both.
"""

import json
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import rag_eval.records
from rag_eval.errors import InputError
from rag_eval.records import (
    ALL_PAIRS,
    MATCHING,
    Case,
    CaseResult,
    Outcome,
    PairVerdict,
    RubricOutcome,
    RunFacts,
    Score,
    Usage,
)
from rag_eval.report.json_file import JsonReport
from rag_eval.results.baseline import read_past_run
from rag_eval.results.recorded import RecordedRun
from rag_eval.results.tallies import Tallies

FOLDER = Path(__file__).parent / "recorded"
RUN = FOLDER / "run.json"
Json = dict[str, Any]


def test_what_was_read_is_written_byte_for_byte(tmp_path: Path) -> None:
    run = RecordedRun.read(RUN)
    report = JsonReport(tmp_path / "again.json", run.facts, run.provenance)
    tallies = Tallies(run.facts, "Topic", read_past_run(FOLDER / "earlier.json"))
    for result in run.results:
        report.add(result)
        tallies.add(result)
    summary = tallies.summary()
    again = report.finish(summary, tallies.findings(summary), run.facts).read_text(encoding="utf-8")
    before = RUN.read_text(encoding="utf-8")
    start = before.index('"bots": [')
    assert again[:start] == before[:start]
    # The last digit of an interval may differ between versions of NumPy.
    assert _rounded(again) == _rounded(before)


def test_a_run_of_an_earlier_version_is_read_as_it_is_today() -> None:
    before, today = RecordedRun.read(FOLDER / "before.json"), RecordedRun.read(RUN)
    new = {"labels": {}, "spent": {}, "stratum": "", "source": "", "source_row": None}
    new |= {"history": (), "conversation": ""}
    results = tuple(replace(result, case=replace(result.case, **new), pairs=()) for result in today.results)
    assert before.results == results
    usage = replace(
        today.facts.usage, refused={}, uncounted=0, uncounted_cost=0.0, earlier_requests=0, earlier_cost=0.0
    )
    new = {
        "usage": usage,
        "reading": {},
        "has_history": False,
        "left_out": (),
        "looks": (),
        "looks_taken": 0,
        "head_to_head": "",
        "prompts": "",
        "fallbacks": {},
        "strata": {},
        "requirements": {},
        "spent_units": {},
        "sources": (),
    }
    assert before.facts == replace(today.facts, **new)


def test_the_recorded_run_has_everything_that_a_run_can_have() -> None:
    """Otherwise the test above would not see a member that is lost."""
    run = RecordedRun.read(RUN)
    cases = [result.case for result in run.results]
    scores = [
        score
        for result in run.results
        for score in (*result.scores.values(), *result.further.values(), result.toxicity)
    ]
    rubrics = [result.rubric for result in run.results]
    for kind, records in (
        (RunFacts, [run.facts]),
        (CaseResult, run.results),
        (Case, cases),
        (Score, scores),
        (Usage, [run.facts.usage]),
        (RubricOutcome, rubrics),
    ):
        for field in fields(kind):
            if field.name in ("is_missing", "has_pair_labels", "earlier_bots"):
                continue  # test_conversations, test_labelled_pairs and test_head_to_head have runs for these
            default = field.default if field.default_factory is MISSING else field.default_factory()
            assert any(getattr(record, field.name) != default for record in records), (kind, field.name)
    assert {score.outcome for score in scores} == set(Outcome)
    assert any("\ud800" in case.response for case in cases)
    assert len({*cases}) == len(cases), "whatever is known of a case, it can be a key"


@pytest.mark.parametrize(
    ("outcomes", "choice", "has_pairs"),
    [
        ((Outcome.SCORED, Outcome.SCORED), ALL_PAIRS, True),
        ((Outcome.SCORED, Outcome.SCORED), MATCHING, False),
        ((Outcome.SCORED, Outcome.FAILED), ALL_PAIRS, False),
        ((), ALL_PAIRS, False),
    ],
)
def test_a_run_has_pairs_if_all_of_those_that_are_asked_for_were_judged(
    outcomes: tuple[Outcome, ...], choice: str, has_pairs: bool
) -> None:
    run = RecordedRun.read(RUN)
    first = replace(run.results[0], pairs=tuple(PairVerdict("B", each) for each in outcomes))
    run = replace(run, facts=replace(run.facts, head_to_head=ALL_PAIRS), results=(first,))
    assert run.has_pairs(choice) is has_pairs


def test_the_schema_describes_every_member_of_a_case_and_of_the_run() -> None:
    """A field that is added to one of the dataclasses is written without a line more, but not described."""
    schema = json.loads((FOLDER.parent.parent / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    document = json.loads(RUN.read_text(encoding="utf-8"))
    case = document["cases"][0]
    score = case["scores"]["answer_correctness"]
    for name, members in {
        "run": document["run"],
        "case": case,
        "score": score,
        "evidence": score["evidence"][0],
        "rubricOutcome": case["rubric"],
        "bot": document["bots"][0],
        "standing": document["leaderboard"]["standings"][0],
        "end": document["end"],
    }.items():
        assert members.keys() - schema["$defs"][name]["properties"].keys() == set(), name


def test_members_that_came_later_have_their_defaults(tmp_path: Path) -> None:
    document = json.loads(RUN.read_text(encoding="utf-8"))
    for case in document["cases"]:
        for later in ("further", "rubric", "flags", "cut_context", "human"):
            del case[later]
        for score in (*case["scores"].values(), case["toxicity"]):
            del score["samples"]
    for later in ("further", "rubric", "criteria", "explanations", "thresholds_from"):
        del document["run"][later]
    del document["end"]["usage"]["by_metric"]
    run = RecordedRun.read(_written(tmp_path, document))
    assert (run.facts.rubric, run.facts.flags, run.facts.cut_contexts) == ("", {}, {})
    assert (run.facts.usage.calls, run.facts.usage.by_task) == (410, {})
    assert {(result.rubric, *result.further, *result.case.human) for result in run.results} == {(None,)}


def test_what_a_run_does_not_say_is_nothing() -> None:
    kinds = filter(is_dataclass, vars(rag_eval.records).values())
    defaults = {(kind, each.name): each.default for kind in kinds for each in fields(kind)}
    said = {name: value for name, value in defaults.items() if value is not MISSING and value}
    assert (len(defaults) > 99, said) == (True, {})


def test_members_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    document = json.loads(RUN.read_text(encoding="utf-8"))
    for part in (document, document["run"], document["end"], document["end"]["usage"], *document["cases"]):
        part["of a later version"] = {"a": [1]}
    assert RecordedRun.read(_written(tmp_path, document)).results == RecordedRun.read(RUN).results


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (
            lambda d: d["cases"][3]["scores"]["faithfulness"].update(value="high"),
            "row 3, bot Birch: scores.faithfulness.value: Input should be a valid number, unable to parse string as "
            "a number",
        ),
        (
            lambda d: d["cases"][3]["scores"]["faithfulness"].update(value=float("inf")),
            "row 3, bot Birch: scores.faithfulness.value: Input should be a finite number",
        ),
        (
            lambda d: d["cases"][0]["toxicity"].pop("outcome"),
            "row 2, bot Atlas: toxicity.outcome: Field required",
        ),
        (lambda d: d["cases"][0].pop("scores"), "'scores' is missing"),
        (lambda d: d["run"].pop("judge"), "run: judge: Field required"),
        (lambda d: d["end"].update(usage=[]), "a member has the wrong type"),
        (lambda d: d.update(cases=None), "a member has the wrong type"),
        (lambda d: d.update(format="other/2"), "its format is 'other/2', expected 'rag-eval-run/1'"),
        (lambda d: d.update(format=None), "its format is not a text, expected 'rag-eval-run/1'"),
        (
            lambda d: d.update(format="rag-eval-run/12"),
            "a later version of RAG Eval wrote it, in format rag-eval-run/12; this one reads rag-eval-run/1",
        ),
        (lambda d: d.pop("format"), "'format' is missing"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, spoil: Callable[[Json], object], reason: str
) -> None:
    document = json.loads(RUN.read_text(encoding="utf-8"))
    spoil(document)
    path = _written(tmp_path, document)
    with pytest.raises(InputError) as caught:
        RecordedRun.read(path)
    assert str(caught.value) == (
        f"{path}: cannot be read as a run that --json wrote ({reason}); add --json to a run and use that file"
    )


def _scores(**members: object) -> Callable[[Json], object]:
    return lambda document: document["cases"][1]["scores"]["faithfulness"].update(members)


def _case(**members: object) -> Callable[[Json], object]:
    return lambda document: document["cases"][1].update(members)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_scores(value=-0.55), "scores.faithfulness.value: -0.55 is not a number from 0 to 1"),
        (_scores(value=1e308), "scores.faithfulness.value: 1e+308 is not a number from 0 to 1"),
        (_scores(samples=[0.5, 1.7]), "scores.faithfulness.samples: 1.7 is not a number from 0 to 1"),
        (
            _scores(value=None, outcome="scored"),
            "scores.faithfulness: its value does not fit its outcome 'scored'",
        ),
        (
            _scores(value=0.5, outcome="failed"),
            "scores.faithfulness: its value does not fit its outcome 'failed'",
        ),
        (
            lambda d: d["cases"][1]["toxicity"].update(value=2),
            "toxicity.value: 2 is not a number from 0 to 1",
        ),
        (_case(rqs=1.7), "rqs: 1.7 is not a number from 0 to 1"),
        (_case(human={"faithfulness": 4}), "human: 4 is not a number from 0 to 1"),
        (_case(labels={"Ann": {"faithfulness": -1}}), "labels: -1 is not a number from 0 to 1"),
        (_case(human={"polite": 0.5}), "human.polite: 0.5 is neither 0 nor 1"),
        (lambda d: d["cases"][1]["scores"].pop("faithfulness"), "scores.faithfulness: is missing"),
        (lambda d: d["cases"][1]["further"].pop("answer_coverage"), "further.answer_coverage: is missing"),
        (
            lambda d: d["cases"][1]["further"].update(tone=d["cases"][1]["toxicity"]),
            "further.tone: is not a metric of the run",
        ),
        (_case(source_row=10**30), "source_row: 1e+30 is not a row number"),
    ],
)
def test_a_case_that_no_report_can_show_is_named(
    tmp_path: Path, spoil: Callable[[Json], object], reason: str
) -> None:
    document = json.loads(RUN.read_text(encoding="utf-8"))
    spoil(document)
    with pytest.raises(InputError) as caught:
        RecordedRun.read(_written(tmp_path, document))
    assert f" (row 2, bot Birch: {reason}); " in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_case(row=10**30), f"row {10**30}, bot Birch: row: 1e+30 is not a row number"),
        (_case(bot="Cedar"), "row 2, bot Cedar: bot: is not among run.bots"),
        (_case(spent={"cost": -1}), "row 2, bot Birch: spent.cost: -1 is below 0"),
        (_case(spent={"mood": 1}), "row 2, bot Birch: spent.mood: is not one of latency, cost"),
        (
            lambda d: d["run"].update(spent_units={}),
            "row 2, bot Atlas: spent.latency: is not in run.spent_units",
        ),
        (
            lambda d: d["run"]["metrics"].remove("faithfulness"),
            "row 2, bot Atlas: scores.faithfulness: is not a metric of the run",
        ),
        (
            lambda d: d["run"]["reading"].update(columns=7),
            "run.reading: columns: Input should be a valid tuple",
        ),
        (
            lambda d: d["run"]["reading"].update(selection=[float("nan")]),
            "run.reading: has a number that is not finite",
        ),
        (
            lambda d: d["configuration"].update(x=float("inf")),
            "configuration: has a number that is not finite",
        ),
    ],
)
def test_members_that_do_not_fit_are_named(
    tmp_path: Path, spoil: Callable[[Json], object], reason: str
) -> None:
    document = json.loads(RUN.read_text(encoding="utf-8"))
    spoil(document)
    with pytest.raises(InputError) as caught:
        RecordedRun.read(_written(tmp_path, document))
    assert f" ({reason}); " in str(caught.value)


def _written(folder: Path, document: Json) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _rounded(text: str) -> Any:
    return json.loads(text, parse_float=lambda number: round(float(number), 9))

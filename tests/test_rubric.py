"""Rubrics: what is refused, what is printed, who passes, who agrees, and which files are read."""

import contextlib
import copy
import io
import itertools
import json
import pickle
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from files import write_table
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from rag_eval.errors import SettingsError, TableError
from rag_eval.rubric import EvaluationResult, EvaluationRubric, MetricDefinition, load_rubric
from rag_eval.rubric.file import _expanded_size
from rag_eval.rubric.ratings import pair_ratings

ROOT = Path(__file__).parents[1]


def make_rubric(
    mandatory: str, cumulative: str, threshold: int = 0, rubric_id: str = "r"
) -> EvaluationRubric:
    """A rubric whose metric ids are the words of `mandatory` and `cumulative`, each with the text 'text of <id>'."""
    metrics = [MetricDefinition(id=id_, rubric=f"text of {id_}", mandatory=True) for id_ in mandatory.split()]
    metrics += [MetricDefinition(id=id_, rubric=f"text of {id_}") for id_ in cumulative.split()]
    return EvaluationRubric(rubric_id=rubric_id, metrics=metrics, passing_score_threshold=threshold)


def result_of(rubric: EvaluationRubric, signs: str, **reasoning: str | None) -> EvaluationResult:
    """The result in which the metrics pass ('+') or fail ('-') in the rubric's order."""
    verdicts = {metric.id: sign == "+" for metric, sign in zip(rubric.metrics, signs, strict=True)}
    return rubric.to_pydantic_model()(**verdicts, **reasoning)


# --- definitions ---------------------------------------------------------------------------------------------


def test_a_metric_is_cumulative_and_for_every_row_unless_said_otherwise() -> None:
    metric = MetricDefinition(id="tone", rubric="Polite throughout")
    assert (metric.mandatory, metric.applies_to) == (False, None)
    assert metric.covers({}) is True


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "M1"},
        {"rubric": "text"},
        {"id": "", "rubric": "text"},
        {"id": "  ", "rubric": "text"},
        {"id": "two\nlines", "rubric": "text"},
        {"id": 1, "rubric": "text"},
        {"id": "M1", "rubric": " \n"},
        {"id": "M1", "rubric": "text", "mandatory": "yes"},
        {"id": "M1", "rubric": "text", "mandatory": 1},
        {"id": "M1", "rubric": "text", "weight": 2},
        {"id": "M1", "rubric": "text", "applies_to": {"Level": 3}},
    ],
    ids=str,
)
def test_an_unusable_metric_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MetricDefinition(**arguments)


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_an_empty_id_is_said_to_be_empty(blank: str) -> None:
    metric = MetricDefinition(id="M1", rubric="text")
    with pytest.raises(
        ValidationError, match=r"(?m)^id\n  Value error, Metric ID cannot be empty; give one, such as 'M1'"
    ):
        MetricDefinition(id=blank, rubric="text")
    with pytest.raises(ValidationError, match=r"(?m)^rubric_id\n  Value error, Rubric ID cannot be empty; "):
        EvaluationRubric(rubric_id=blank, metrics=[metric], passing_score_threshold=0)
    with pytest.raises(ValidationError, match=r"an id must be one printable line, not 'two\\nlines'"):
        MetricDefinition(id="two\nlines", rubric="text")


@pytest.mark.parametrize(
    ("mandatory", "cumulative", "threshold", "message"),
    [
        ("", "", 0, "Evaluation rubric must contain at least one metric; add one to metrics"),
        ("M1", "C1 M1 C1", 0, "Duplicate metric IDs found: M1, C1"),
        ("M1", "M1_reasoning", 0, "'M1_reasoning' is taken by the explanation of metric 'M1'"),
        ("M1_reasoning", "M1", 1, "'M1_reasoning' is taken by the explanation of metric 'M1'"),
        ("M1", "C1", -1, "greater than or equal to 0"),
    ],
)
def test_a_rubric_that_cannot_work_is_refused(
    mandatory: str, cumulative: str, threshold: int, message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        make_rubric(mandatory, cumulative, threshold)


def test_a_threshold_out_of_reach_is_explained_with_its_counts() -> None:
    parts = (
        "Invalid passing threshold",
        "exceeds the number of cumulative metrics",
        "cannot exceed the number of cumulative metrics",
        r"1 mandatory metric\(s\)",
        r"2 cumulative metric\(s\)",
        "Please set passing_score_threshold",
    )
    with pytest.raises(ValidationError, match=".*".join(parts)):
        make_rubric("M1", "C1 C2", 3)


def test_every_problem_of_a_rubric_is_named_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        make_rubric("M1", "M1 M1_reasoning", 5)
    assert all(word in str(caught.value) for word in ("Duplicate", "taken by", "threshold"))


@pytest.mark.parametrize("threshold", [True, 1.0, "1", None], ids=repr)
def test_a_threshold_is_a_whole_number_and_nothing_like_it(threshold: Any) -> None:
    with pytest.raises(ValidationError):
        make_rubric("", "C1 C2", threshold)


def test_metrics_are_split_into_mandatory_and_cumulative_in_order() -> None:
    rubric = make_rubric("M1 M2", "C1 C2 C3", 1)
    assert [metric.id for metric in rubric.mandatory_metrics] == ["M1", "M2"]
    assert [metric.id for metric in rubric.cumulative_metrics] == ["C1", "C2", "C3"]
    assert len(rubric.metrics) == 5
    assert [metric.id for metric in rubric.metrics] == ["M1", "M2", "C1", "C2", "C3"]


def test_a_rubric_does_not_change_once_it_is_built() -> None:
    given_metrics = [MetricDefinition(id="M1", rubric="text", applies_to={"Category": "legal"})]
    rubric = EvaluationRubric(rubric_id="r", metrics=given_metrics, passing_score_threshold=0)
    given_metrics.append(MetricDefinition(id="M2", rubric="late"))
    assert len(rubric.metrics) == 1
    with pytest.raises(ValidationError):
        rubric.passing_score_threshold = 1
    with pytest.raises(ValidationError):
        rubric.metrics[0].mandatory = True
    with pytest.raises(TypeError):
        rubric.metrics[0] = given_metrics[1]  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        lambda columns: columns.__setitem__("Category", "medical"),
        lambda columns: columns.update(Category="medical"),
        lambda columns: columns.setdefault("Level", "3"),
        lambda columns: columns.pop("Category"),
        lambda columns: columns.popitem(),
        lambda columns: columns.clear(),
        lambda columns: columns.__delitem__("Category"),
        lambda columns: columns.__ior__({"Level": "3"}),
    ],
)
def test_the_rows_of_a_metric_do_not_change_once_it_is_built(change: Any) -> None:
    metric = MetricDefinition(id="M1", rubric="text", applies_to={"Category": "legal"})
    with pytest.raises(TypeError, match="cannot be changed"):
        change(metric.applies_to)
    assert metric.applies_to == {"Category": "legal"}


def test_rubrics_are_equal_by_content_and_survive_copying_and_storing() -> None:
    metrics = [MetricDefinition(id="M1", rubric="text", applies_to={"Category": "legal", "Level": "3"})]
    rubric = EvaluationRubric(rubric_id="r", metrics=metrics, passing_score_threshold=1)
    from_tuple = EvaluationRubric(rubric_id="r", metrics=tuple(metrics), passing_score_threshold=1)
    for twin in (
        from_tuple,
        copy.deepcopy(rubric),
        pickle.loads(pickle.dumps(rubric)),  # noqa: S301 - our own bytes
        EvaluationRubric.model_validate_json(rubric.model_dump_json()),
        EvaluationRubric.model_validate(rubric.model_dump()),
    ):
        assert twin == rubric
        assert hash(twin) == hash(rubric)
    assert make_rubric("", "M1", 1) != rubric


@pytest.mark.parametrize(
    ("row", "covered"),
    [
        ({"Category": "legal", "Level": "3", "Other": "x"}, True),
        ({"Category": "legal", "Level": "4"}, False),
        ({"Category": "Legal", "Level": "3"}, False),
        ({"Category": "legal"}, False),
        ({}, False),
    ],
)
def test_a_metric_covers_the_rows_that_have_all_its_values(row: dict[str, str], covered: bool) -> None:
    metric = MetricDefinition(id="M1", rubric="text", applies_to={"Category": "legal", "Level": "3"})
    assert metric.covers(row) is covered


# --- what the judge is sent ----------------------------------------------------------------------------------


def test_prompt_text_is_the_documented_one() -> None:
    assert make_rubric("M1", "C1", 1, "code_review").to_prompt_text() == (
        "# Evaluation Rubric: code_review\n"
        "\n"
        "## Mandatory Criteria (ALL must pass)\n"
        "\n"
        "- **M1**: text of M1\n"
        "\n"
        "## Cumulative Criteria\n"
        "(Must pass at least 1 of 1)\n"
        "\n"
        "- **C1**: text of C1\n"
        "\n"
        "## Instructions\n"
        "For each criterion above, evaluate whether it passes (Yes) or fails (No).\n"
        "- All 1 mandatory criteria must pass.\n"
        "- At least 1 cumulative criteria must pass."
    )


@pytest.mark.parametrize(("mandatory", "cumulative"), [("M1 M2", ""), ("", "C1 C2")])
def test_the_prompt_leaves_out_the_kind_of_criteria_that_a_rubric_does_not_have(
    mandatory: str, cumulative: str
) -> None:
    prompt = make_rubric(mandatory, cumulative).to_prompt_text()
    assert ("Mandatory" in prompt) is ("mandatory" in prompt) is bool(mandatory)
    assert ("Cumulative" in prompt) is ("cumulative" in prompt) is bool(cumulative)


def test_json_schema_is_the_documented_one() -> None:
    assert make_rubric("M1", "", rubric_id="review").to_json_schema() == {
        "type": "object",
        "description": "One rater's result by the rubric review",
        "properties": {
            "M1": {"type": "boolean", "description": "Does this pass the criterion: text of M1"},
            "M1_reasoning": {"type": "string", "description": "Explanation for the M1 evaluation"},
        },
        "required": ["M1"],
        "additionalProperties": False,
    }


def test_response_format_is_the_schema_named_and_strict_with_every_property_required() -> None:
    rubric = make_rubric("M1", "C1", 1, "api response v2")
    schema = rubric.to_json_schema() | {"required": ["M1", "M1_reasoning", "C1", "C1_reasoning"]}
    assert rubric.to_response_format() == {
        "type": "json_schema",
        "json_schema": {"name": "api_response_v2", "strict": True, "schema": schema},
    }


@pytest.mark.parametrize("rubric_id", ["Größe/Maß: alles?", "x" * 200, "日本語"])
def test_the_schema_name_is_one_that_openai_takes(rubric_id: str) -> None:
    name = make_rubric("M1", "", 0, rubric_id).to_response_format()["json_schema"]["name"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


def test_the_rows_of_a_metric_change_nothing_that_the_judge_or_reader_sees() -> None:
    plain = make_rubric("M1", "C1", 1)
    metrics = [metric.model_copy(update={"applies_to": {"Category": "legal"}}) for metric in plain.metrics]
    restricted = EvaluationRubric(rubric_id="r", metrics=metrics, passing_score_threshold=1)
    verdicts = {"M1": True, "C1": False}
    assert restricted != plain
    assert restricted.to_prompt_text() == plain.to_prompt_text()
    assert restricted.to_response_format() == plain.to_response_format()
    assert restricted.generate_report(verdicts) == plain.generate_report(verdicts)


# --- verdicts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signs", "passes"),
    [
        ("+++++", True),
        ("++++-", True),
        ("+++--", False),
        ("++---", False),
        ("-++++", False),
        ("+-+++", False),
        ("-----", False),
    ],
)
def test_all_mandatory_and_enough_cumulative_metrics_pass_a_rubric(signs: str, passes: bool) -> None:
    rubric = make_rubric("M1 M2", "C1 C2 C3", 2)
    result = result_of(rubric, signs)
    assert result.passes() is passes
    assert rubric.validate_result(result.model_dump()) is passes
    assert rubric.validate_result(result.model_dump_json()) is passes


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            {"M1": True},
            "Missing evaluation results for 1 metric(s): Cumulative: C1. Missing metric results for: C1",
        ),
        (
            {},
            "Missing evaluation results for 2 metric(s): Mandatory: M1; Cumulative: C1. "
            "Missing metric results for: M1, C1",
        ),
        (
            {"M1": "yes", "C1": True},
            "Invalid result for metric 'M1': expected boolean, got str (must be boolean)",
        ),
        (
            '{"M1": 1, "C1": null}',
            "Invalid result for metric 'M1': expected boolean, got int (must be boolean)\n"
            "Invalid result for metric 'C1': expected boolean, got NoneType (must be boolean)",
        ),
    ],
)
def test_an_unusable_result_is_refused_with_counts_and_ids(result: Any, message: str) -> None:
    rubric = make_rubric("M1", "C1")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rubric.validate_result(result)


@pytest.mark.parametrize("result", ["[true]", "null", '"M1"', [("M1", True)], None, 123], ids=repr)
def test_a_result_is_an_object(result: Any) -> None:
    with pytest.raises(ValueError, match="must be a JSON string or dictionary"):
        make_rubric("M1", "").validate_result(result)


MALFORMED = {
    "cut off": '{"M1": true',
    "empty": "",
    "duplicate key": '{"M1": false, "M1": true}',
    "duplicate key further down": '{"M1": true, "notes": {"a": 1, "a": 2}}',
    "single quotes": "{'M1': true}",
    "text before": 'Here you are: {"M1": true}',
    "text after": '{"M1": true} I hope this helps',
    "two objects": '{"M1": true}{"M1": true}',
    "text beside the fence": 'Sure:\n```json\n{"M1": true}\n```',
    "two fences": '```json\n{"M1": true}\n```\n```json\n{"M1": true}\n```',
    "fence in a fence": '```\n```json\n{"M1": true}\n```\n```',
    "open fence": '```json\n{"M1": true}',
    "not a number": '{"M1": true, "confidence": NaN}',
    "bottomless": "[" * 100_000,
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_text_that_is_not_exactly_one_json_object_is_refused(text: str) -> None:
    """Nothing is searched for inside a reply."""
    rubric = make_rubric("M1", "")
    with pytest.raises(ValueError, match="Invalid JSON string"):
        rubric.validate_result(text)
    with pytest.raises(ValidationError, match="Invalid JSON string"):
        rubric.to_pydantic_model().model_validate_json(text)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"M1": true, "M1_reasoning": "as in ```code```"}\n```',
        '  ```\n{"M1": true, "M1_reasoning": "as in ```code```"}```\n\n',
        '```JSON\r\n{"M1": true, "M1_reasoning": "as in ```code```"}\r\n```',
        '\n{"M1": true, "M1_reasoning": "as in ```code```"}\n',
    ],
)
def test_one_code_fence_around_the_json_is_no_obstacle(text: str) -> None:
    rubric = make_rubric("M1", "")
    assert rubric.validate_result(text) is True
    for reply in (text, text.encode()):
        assert rubric.to_pydantic_model().model_validate_json(reply) == result_of(
            rubric, "+", M1_reasoning="as in ```code```"
        )


def test_keys_that_are_no_metrics_do_not_concern_the_verdict() -> None:
    assert make_rubric("M1", "").validate_result({"M1": True, "M1_reasoning": None, "model": "x"}) is True


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"M1": None},
        {"M1": 1},
        {"M1": "true"},
        {"M1": "yes"},
        {"M1": True, "M2": True},
        {"M1": True, "M1_reasoning": 5},
    ],
    ids=str,
)
def test_a_result_model_takes_booleans_and_known_keys_alone(values: dict[str, Any]) -> None:
    model = make_rubric("M1", "").to_pydantic_model()
    with pytest.raises(ValidationError):
        model(**values)
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps(values))


def test_a_result_lists_what_passed_and_what_failed_and_keeps_its_explanations() -> None:
    result = result_of(make_rubric("M1", "C1 C2"), "+-+", M1_reasoning="Well structured")
    assert result.get_passed_metrics() == ["M1", "C2"]
    assert result.get_failed_metrics() == ["C1"]
    assert result.model_dump(exclude_none=True) == {
        "M1": True,
        "M1_reasoning": "Well structured",
        "C1": False,
        "C2": True,
    }
    with pytest.raises(ValidationError):
        result.M1 = False  # type: ignore[attr-defined]


def test_the_model_and_the_schema_ask_for_the_same() -> None:
    rubric = make_rubric("M1 _private", "C1 passes")
    ours, pydantics = rubric.to_json_schema(), rubric.to_pydantic_model().model_json_schema()
    assert ours["required"] == pydantics["required"]
    assert list(ours["properties"]) == list(pydantics["properties"])
    assert pydantics["additionalProperties"] is False


# --- reports -------------------------------------------------------------------------------------------------


def test_report_is_the_documented_one() -> None:
    report = make_rubric("M1", "C1", 1).generate_report(
        {"M1": True, "C1": False}, {"M1": "Code compiles", "C1": "Poor naming"}, "Code Review"
    )
    assert report == (
        "# Code Review\n"
        "\n"
        "**Overall Result: FAIL**\n"
        "\n"
        "## Mandatory Criteria (ALL must pass)\n"
        "\n"
        "✓ **M1** [PASS]: text of M1\n"
        "  → Code compiles\n"
        "\n"
        "## Cumulative Criteria\n"
        "**Score: 0/1** (Required: 1)\n"
        "\n"
        "✗ **C1** [FAIL]: text of C1\n"
        "  → Poor naming\n"
        "\n"
        "⚠️ **Need 1 more cumulative metric(s) to pass**\n"
        "\n"
        "## Requirements for Passing\n"
        "\n"
        "**Mandatory criteria (ALL must pass):**\n"
        "  ✓ M1\n"
        "\n"
        "**Cumulative criteria:**\n"
        "  - Need at least 1 of 1 to pass\n"
        "  - Currently passed: 0\n"
        "  - Still need: 1 more"
    )


def test_a_passing_report_warns_of_nothing() -> None:
    report = result_of(make_rubric("M1", "C1 C2", 1), "++-").to_report()
    assert report.startswith("# Evaluation Report: r\n\n**Overall Result: PASS**\n")
    assert "**Score: 1/2** (Required: 1)" in report
    assert "⚠️" not in report
    assert "Still need" not in report


def test_a_report_names_the_mandatory_metrics_that_failed() -> None:
    several = result_of(make_rubric("M1 M2 M3", ""), "-+-").to_report()
    assert "⚠️  **2 mandatory metric(s) failed:** M1, M3" in several.splitlines()
    report = result_of(make_rubric("M1 M2", ""), "+-").to_report()
    assert "⚠️  **1 mandatory metric(s) failed:** M2" in report.splitlines()
    assert "  ✗ M2" in report.splitlines()
    assert "Cumulative" not in report


def test_a_result_reports_what_the_rubric_reports_of_it() -> None:
    rubric = make_rubric("_private", "C1", 1)
    result = rubric.to_pydantic_model()(_private=False, _private_reasoning="Why not", C1=True)
    expected = rubric.generate_report({"_private": False, "C1": True}, {"_private": "Why not"}, "T")
    assert result.to_report("T") == expected
    assert "  → Why not" in expected


def test_a_report_refuses_what_validation_refuses() -> None:
    with pytest.raises(ValueError, match="Missing evaluation results"):
        make_rubric("M1", "").generate_report({})


# --- ids -----------------------------------------------------------------------------------------------------

AWKWARD_IDS = (
    *("_private", "_", "__", "__dict__", "__class__", "__init__"),
    *("class", "None", "self", "cls"),
    *("schema_json", "passes", "verdicts", "to_report", "copy", "json", "dict", "mro", "register"),
    *("model_dump", "model_config", "model_x"),
    *("metric__", "metric___", "metric_passes"),
    *("on-topic", "1st", "a.b", "Größe", "cites a source", "the 'quoted' one"),
)


@pytest.mark.parametrize("id_", AWKWARD_IDS)
def test_any_printable_line_is_an_id(id_: str) -> None:
    metric = MetricDefinition(id=id_, rubric="text", mandatory=True)
    rubric = EvaluationRubric(rubric_id=id_, metrics=[metric], passing_score_threshold=0)
    model = rubric.to_pydantic_model()
    result = model(**{id_: True, f"{id_}_reasoning": "because"})
    assert result.passes() is True
    assert result.get_passed_metrics() == [id_]
    assert result.verdicts() == {id_: True}
    assert result.model_dump() == {id_: True, f"{id_}_reasoning": "because"}
    assert model.model_validate_json(result.model_dump_json()) == result
    assert rubric.validate_result(result.model_dump_json()) is True
    assert "  → because" in result.to_report()
    with pytest.raises(ValidationError):
        model(**{id_: "yes"})


def test_awkward_ids_live_together() -> None:
    metrics = [MetricDefinition(id=id_, rubric="text") for id_ in AWKWARD_IDS]
    rubric = EvaluationRubric(rubric_id="r", metrics=metrics, passing_score_threshold=1)
    verdicts = {id_: index % 2 == 0 for index, id_ in enumerate(AWKWARD_IDS)}
    assert rubric.to_pydantic_model()(**verdicts).verdicts() == verdicts


@pytest.mark.parametrize(
    ("id_", "attribute"),
    [
        ("M1", "M1"),
        ("on-topic", "on-topic"),
        ("class", "class"),
        ("passes", "metric_passes"),
        ("_private", "metric__private"),
    ],
)
def test_the_attribute_of_a_metric_follows_from_its_id(id_: str, attribute: str) -> None:
    result = make_rubric(id_, "").to_pydantic_model()(**{id_: True})
    assert getattr(result, attribute) is True
    assert result.__dict__[attribute] is True


# --- results travel ------------------------------------------------------------------------------------------


def test_results_survive_pickling_with_type_and_fields_set() -> None:
    result = result_of(
        make_rubric("_private passes", "C1"), "+-+", C1_reasoning="because", passes_reasoning=None
    )
    twin = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    assert twin == result
    assert type(twin) is type(result)
    assert twin.model_fields_set == result.model_fields_set


def test_results_travel_into_a_process_that_has_never_seen_the_rubric(tmp_path: Path) -> None:
    result = result_of(make_rubric("_private", "C1 C2", 1), "++-", C1_reasoning="because")
    (tmp_path / "result.pickle").write_bytes(pickle.dumps(result))
    script = (
        "import pickle, sys; result = pickle.load(open(sys.argv[1], 'rb'));"
        "sys.stdout.buffer.write(result.to_report().encode())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "result.pickle")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode() == result.to_report()


def test_equal_rubrics_share_one_model_even_when_threads_ask_at_once() -> None:
    rubrics = [make_rubric("M1", "C1", 1, "shared by threads") for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        models = set(pool.map(EvaluationRubric.to_pydantic_model, rubrics))
    assert len(models) == 1
    assert make_rubric("M1", "C1", 0, "shared by threads").to_pydantic_model() not in models


# --- alignment -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "alignment"),
    [
        *[(a, b, 1.0) for a, b in (("++", "++"), ("+-", "+-"), ("--", "-+"))],
        *[(a, b, 0.0) for a, b in (("++", "-+"), ("++", "+-"))],
        ("++ --", "+- -+", 0.5),
        ("++ -- ++", "++ -+ ++", 1.0),
        ("++ ++", "-- -+", 0.0),
        ("++ -- ++ --", "++ -- ++ ++", 0.75),
        ("", "", 1.0),
    ],
)
def test_lists_align_at_the_share_of_equal_overall_verdicts(a: str, b: str, alignment: float) -> None:
    """One of one result alike. The documented pair, ++ against +- at threshold 1, differs overall: 0 %, not 100 %."""
    rubric = make_rubric("M1", "C1", 1)
    results_a = [result_of(rubric, signs) for signs in a.split()]
    results_b = tuple(result_of(rubric, signs) for signs in b.split())
    assert rubric.calculate_alignment(results_a, results_b) == alignment
    if len(results_a) == 1:
        assert rubric.calculate_alignment(*results_a, *results_b) == alignment


def test_per_metric_agreement_can_be_counted_from_the_instance_dict() -> None:
    """The documented way to measure agreement metric by metric, by hand."""
    rubric = make_rubric("M1", "C1 C2", 1)
    people = [result_of(rubric, signs) for signs in ("++-", "+-+", "-++")]
    models = [result_of(rubric, signs) for signs in ("+++", "+-+", "+++")]
    by_hand = {
        metric.id: statistics.mean(
            p.__dict__[metric.id] == m.__dict__[metric.id] for p, m in zip(people, models, strict=True)
        )
        for metric in rubric.metrics
    }
    assert by_hand == pytest.approx({"M1": 2 / 3, "C1": 1.0, "C2": 2 / 3})
    assert rubric.calculate_alignment(people, models) == pytest.approx(2 / 3)
    report = rubric.alignment_report(people, models)
    assert {row.metric_id: row.agreement for row in report.criteria} == pytest.approx(by_hand)


class Foreign(BaseModel):
    M1: bool


RUBRIC = make_rubric("M1", "")
GOOD = result_of(RUBRIC, "+")
ALIEN = result_of(make_rubric("M1", "", 0, "other"), "+")
REWORDED = EvaluationRubric(
    rubric_id="r",
    metrics=[MetricDefinition(id="M1", rubric="reworded", mandatory=True)],
    passing_score_threshold=0,
).to_pydantic_model()(M1=True)


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        ([GOOD, GOOD], [GOOD], ValueError, "must have the same length"),
        (GOOD, [GOOD], TypeError, "must be either single instances or lists"),
        (GOOD, {"M1": True}, TypeError, "must be either single instances or lists"),
        ({"M1": True}, {"M1": True}, TypeError, "must be BaseModel instances or lists"),
        ([GOOD, GOOD], [GOOD, {"M1": True}], TypeError, r"results_b\[1\] is not a BaseModel instance"),
        ([{"M1": True}], [GOOD], TypeError, r"results_a\[0\] is not a BaseModel instance"),
        (Foreign(M1=True), GOOD, TypeError, r"must be instances from to_pydantic_model.*with passes\(\)"),
        (GOOD, ALIEN, TypeError, "rubric 'other', which differs from rubric 'r'"),
        ([ALIEN], [ALIEN], TypeError, "rubric 'other', which differs from rubric 'r'"),
        ([GOOD], [REWORDED], TypeError, r"results_b\[0\].*differs from rubric 'r'"),
    ],
)
def test_only_results_of_this_rubric_are_compared_pair_by_pair(
    a: Any, b: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RUBRIC.calculate_alignment(a, b)
    with pytest.raises(error, match=message):
        RUBRIC.alignment_report(a, b)


@pytest.mark.parametrize(
    ("a", "b", "counts", "agreement", "kappa"),
    [
        ("++++----", "++++----", (4, 4, 0, 0), 1.0, 1.0),
        ("++++----", "----++++", (0, 0, 4, 4), 0.0, -1.0),
        ("++--", "+-+-", (1, 1, 1, 1), 0.5, 0.0),
        # Cohen's textbook table: 20 and 15 agree, 5 and 10 do not; 0.7 observed, 0.5 by chance.
        ("+" * 25 + "-" * 25, "+" * 20 + "-" * 5 + "+" * 10 + "-" * 15, (20, 15, 5, 10), 0.7, 0.4),
        # 90 % agreement that chance explains entirely, and slightly more than that.
        ("+" * 19 + "-", "-" + "+" * 19, (18, 0, 1, 1), 0.9, -1 / 19),
        ("+++", "---", (0, 0, 3, 0), 0.0, 0.0),
        ("+++", "++-", (2, 0, 1, 0), 2 / 3, 0.0),
        ("+++", "+++", (3, 0, 0, 0), 1.0, None),
        ("--", "--", (0, 2, 0, 0), 1.0, None),
        ("", "", (0, 0, 0, 0), None, None),
    ],
)
def test_kappa_takes_chance_out_of_agreement(
    a: str, b: str, counts: tuple[int, ...], agreement: float | None, kappa: float | None
) -> None:
    report = RUBRIC.alignment_report(
        [result_of(RUBRIC, sign) for sign in a], [result_of(RUBRIC, sign) for sign in b]
    )
    (criterion,) = report.criteria
    assert criterion.metric_id == "M1"
    for row in (report, criterion):
        assert (row.both_pass, row.both_fail, row.only_a_passes, row.only_b_passes) == counts
        assert row.n == len(a)
        assert row.agreement == pytest.approx(agreement)
        assert row.kappa == pytest.approx(kappa)


def test_an_alignment_report_tells_raters_and_metrics_apart() -> None:
    rubric = make_rubric("M1", "C1", 1)
    a = [result_of(rubric, signs) for signs in ("++", "++", "+-", "-+")]
    b = [result_of(rubric, signs) for signs in ("++", "-+", "++", "--")]
    report = rubric.alignment_report(a, b)
    overall = (report.both_pass, report.both_fail, report.only_a_passes, report.only_b_passes)
    assert overall == (1, 1, 1, 1)
    assert [
        (row.metric_id, row.both_pass, row.both_fail, row.only_a_passes, row.only_b_passes)
        for row in report.criteria
    ] == [("M1", 2, 1, 1, 0), ("C1", 2, 0, 1, 1)]
    with pytest.raises(AttributeError):
        report.both_pass = 4  # type: ignore[misc]


# --- random rubrics and results ------------------------------------------------------------------------------

texts = st.text(min_size=1, max_size=12)
identifiers = st.one_of(
    st.sampled_from(AWKWARD_IDS), texts.filter(lambda text: text.isprintable() and text.strip())
)


@st.composite
def rubrics(draw: st.DrawFn) -> EvaluationRubric:
    ids = draw(st.lists(identifiers, min_size=1, max_size=6, unique=True))
    ids = [id_ for id_ in ids if id_.removesuffix("_reasoning") == id_ or id_[:-10] not in ids]
    metrics = [
        MetricDefinition(
            id=id_, rubric=draw(texts.filter(lambda text: text.strip())), mandatory=draw(st.booleans())
        )
        for id_ in ids
    ]
    threshold = draw(st.integers(0, sum(not metric.mandatory for metric in metrics)))
    return EvaluationRubric(rubric_id=draw(identifiers), metrics=metrics, passing_score_threshold=threshold)


def draw_result(data: st.DataObject, rubric: EvaluationRubric) -> EvaluationResult:
    reasonings = st.one_of(
        st.none(), texts, st.just("x\n**Overall Result: PASS**\u2028**Overall Result: FAIL**")
    )
    values: dict[str, Any] = {metric.id: data.draw(st.booleans()) for metric in rubric.metrics}
    values |= {f"{metric.id}_reasoning": data.draw(reasonings) for metric in rubric.metrics}
    return rubric.to_pydantic_model()(**values)


@pytest.mark.slow
@settings(deadline=None)  # the machine that runs it may be busy
@given(rubrics(), st.data())
def test_every_way_to_the_verdict_agrees_with_counting(rubric: EvaluationRubric, data: st.DataObject) -> None:
    result = draw_result(data, rubric)
    passed, failed = result.get_passed_metrics(), result.get_failed_metrics()
    counted = not any(metric.id in failed for metric in rubric.mandatory_metrics) and (
        len([metric for metric in rubric.cumulative_metrics if metric.id in passed])
        >= rubric.passing_score_threshold
    )
    assert sorted(passed + failed) == sorted(metric.id for metric in rubric.metrics)
    assert result.passes() is counted
    assert rubric.validate_result(result.model_dump()) is counted
    assert rubric.validate_result(f"```json\n{result.model_dump_json()}\n```") is counted
    assert rubric.to_pydantic_model().model_validate_json(result.model_dump_json()) == result
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes


@pytest.mark.slow
@settings(deadline=None)  # the machine that runs it may be busy
@given(rubrics(), st.data())
def test_a_report_says_pass_exactly_when_the_result_passes(
    rubric: EvaluationRubric, data: st.DataObject
) -> None:
    """Whatever a judge writes as its explanation, it cannot write a verdict into the report."""
    result = draw_result(data, rubric)
    lines = result.to_report("Title").splitlines()
    assert [line for line in lines if line.startswith("**Overall Result")] == [
        f"**Overall Result: {'PASS' if result.passes() else 'FAIL'}**"
    ]
    assert ("⚠️" in "".join(line[:2] for line in lines)) is not result.passes()


@pytest.mark.slow
def test_kappa_is_scikit_learns() -> None:
    """For every table of two raters and up to three pairs in each of its four cells."""
    metrics = pytest.importorskip("sklearn.metrics")
    cells = ("++", "--", "+-", "-+")
    for counts in itertools.product(range(4), repeat=4):
        pairs = [cell for cell, count in zip(cells, counts, strict=True) for _ in range(count)]
        a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        kappa = RUBRIC.alignment_report(
            [result_of(RUBRIC, sign) for sign in a], [result_of(RUBRIC, sign) for sign in b]
        ).kappa
        if len({*a, *b}) < 2:
            assert kappa is None
        else:
            assert kappa == pytest.approx(metrics.cohen_kappa_score(a, b), abs=1e-12)


# --- files ---------------------------------------------------------------------------------------------------

YAML_RUBRIC = """\
rubric_id: support
passing_score_threshold: 1
metrics:
  - {id: M1, rubric: Grounded, mandatory: true}
  - id: C1
    rubric: Direct
    applies_to: {Category: legal}
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def expected_rubric() -> EvaluationRubric:
    return EvaluationRubric(
        rubric_id="support",
        metrics=[
            MetricDefinition(id="M1", rubric="Grounded", mandatory=True),
            MetricDefinition(id="C1", rubric="Direct", applies_to={"Category": "legal"}),
        ],
        passing_score_threshold=1,
    )


@pytest.mark.parametrize("name", ["rubric.yaml", "rubric.yml", "RUBRIC.YAML"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_rubric_is_read_from_yaml(tmp_path: Path, name: str, encoding: str) -> None:
    """A byte order mark and Windows line ends are no obstacle."""
    content = YAML_RUBRIC.replace("\n", "\r\n").encode(encoding)
    assert load_rubric(write(tmp_path, name, content)) == expected_rubric()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_rubric_is_read_from_the_json_that_it_writes(tmp_path: Path, encoding: str) -> None:
    content = expected_rubric().model_dump_json(exclude_none=True).encode(encoding)
    path = write(tmp_path, "rubric.json", content)
    assert load_rubric(str(path)) == expected_rubric()


METRIC = "metrics:\n  - {id: M1, rubric: Grounded}\n"
HEAD = "rubric_id: r\npassing_score_threshold: 0\n"
_QUOTES = "check the indentation, and put texts with signs such as : # * @ ' into double quotes"


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("", ["expected the keys rubric_id, metrics, passing_score_threshold"]),
        ("- a\n", ["expected the keys rubric_id, metrics, passing_score_threshold"]),
        ("a: [1\n", ["line 2: expected ',' or ']', but got '<stream end>'"]),
        ("--- {}\n--- {}\n", ["line 2: a second document begins; a file has only one rubric"]),
        ("a: 2024-99-99\n", ["month must be in 1..12"]),
        ("a: \x00", ["unacceptable character #x0000: special characters are not allowed"]),
        (f"{HEAD}rubric_id: s\n{METRIC}", ["line 3: duplicate key 'rubric_id'; keep one of each"]),
        (f"{HEAD}metrics: [{{id: a, rubric: b, id: c}}]", ["line 3: duplicate key 'id'; keep one of each"]),
        (f"{HEAD}metrics: [&m {{id: a, id: b}}, *m]", ["line 3: duplicate key 'id'; keep one of each"]),
        (
            f"a: 1\na: 2\n{HEAD}metrics:\n- {{id: a}}\n- {{id: b, id: c}}\n",
            ["line 2: duplicate key 'a'", "line 7: duplicate key 'id'"],
        ),
        (f"{HEAD}1: x\n{METRIC}", ["1: a key must be text; known are rubric_id, metrics"]),
        (
            f"{HEAD}{METRIC}  - {{id: a, rubric: b, 2: x}}\n",
            ["metrics, entry 2, 2: a key must be text; known are id, rubric, mandatory, applies_to"],
        ),
        *(
            (
                f"{HEAD}{METRIC}  - id: a\n    rubric: {criterion}\n",
                [f"line 6: {problem}; {_QUOTES}"],
            )
            for criterion, problem in (
                ("The answer says: no", "mapping values are not allowed here"),
                ('"Yes" is the answer', "expected <block end>, but found '<scalar>'"),
                ("*All* steps are named", "expected alphabetic or numeric character, but found '*'"),
                ("@support is named", "found character '@' that cannot start any token"),
                ("\tThe answer is short", "found character '\\t' that cannot start any token"),
            )
        ),
        (
            f"{HEAD}metrics: [{{id: a, rubric: b, applies_to: {{2: x}}}}]",
            ["metrics, entry 1, applies_to, 2, [key]: 2 is not allowed; expected text"],
        ),
        ("&loop [*loop]", ["expected the keys"]),
        ("a: " + "[" * 2_000, ["is nested too deeply; a rubric has only a list of metrics"]),
        ("[" * 100_000, ["is nested too deeply; a rubric has only a list of metrics"]),
        ('{"rubric_id": }', ["Expecting value: line 1 column 15"]),
        ('{"rubric_id": "a", "rubric_id": "b"}', ["duplicate key 'rubric_id'; keep one of each"]),
        ('{"passing_score_threshold": NaN}', ["NaN is not JSON"]),
        (METRIC.encode("utf-16"), ["is not UTF-8 at byte 0; save it as UTF-8"]),
        (HEAD, ["metrics: is missing; add it"]),
        (f"{HEAD}metrics: M1\n", ["metrics: 'M1' is not allowed; expected a list of metrics"]),
        (f"{HEAD}metrics: 3\n", ["metrics: 3 is not allowed; expected a list of metrics"]),
        (
            f"{HEAD}metrics: [M1]",
            ["metrics, entry 1: 'M1' is not allowed; expected a metric with id and rubric"],
        ),
        (
            f"{HEAD}treshold: 3\n{METRIC}",
            ["treshold: unknown key; known are rubric_id, metrics, passing_score_threshold"],
        ),
        (f"rubrik_id: r\n{HEAD}{METRIC}", ["rubrik_id: unknown key (did you mean 'rubric_id'?)"]),
        (
            f"{HEAD}{METRIC}  - {{id: yes, rubric: b, mandatory: 1, applies_to: {{Level: 3}}, mandatry: true}}\n",
            [
                "metrics, entry 2, id: True is not allowed; expected text; put it in quotes",
                "metrics, entry 2, mandatory: 1 is not allowed; expected true or false",
                "metrics, entry 2, applies_to, Level: 3 is not allowed; expected text; put it in quotes",
                "metrics, entry 2, mandatry: unknown key (did you mean 'mandatory'?)",
            ],
        ),
        (
            f"rubric_id: r\npassing_score_threshold: -1\n{METRIC}",
            ["passing_score_threshold: -1 is not allowed; expected 0 or more"],
        ),
        (
            f"{HEAD}{METRIC}  - {{id: M1, rubric: Again}}\n  - {{id: '', rubric: b}}\n",
            ["metrics, entry 3, id: Metric ID cannot be empty; give one, such as 'M1'"],
        ),
        (f"{HEAD}metrics: []\n", ["Evaluation rubric must contain at least one metric; add one to metrics"]),
        (
            f"rubric_id: r\npassing_score_threshold: 3\n{METRIC}  - {{id: M1, rubric: Again}}\n",
            ["Duplicate metric IDs found: M1", "Invalid passing threshold: 3 exceeds"],
        ),
    ],
)
def test_every_problem_of_a_file_is_one_line_with_place_and_remedy(
    tmp_path: Path, content: str | bytes, problems: list[str]
) -> None:
    path = write(tmp_path, "r.json" if str(content).startswith(("[", "{")) else "r.yaml", content)
    with pytest.raises(SettingsError) as caught:
        load_rubric(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(problems) == len(caught.value.problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith(f"{path}: {problem}")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"r\.toml: unknown kind of rubric file; expected \.yaml, \.yml, \.json"
    ):
        load_rubric(write(tmp_path, "r.toml", ""))


def test_yaml_that_asks_for_python_objects_gets_none(tmp_path: Path) -> None:
    """A rubric file is data."""
    path = write(tmp_path, "r.yaml", "rubric_id: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(SettingsError, match="line 1: could not determine a constructor"):
        load_rubric(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.yaml: there is no such rubric file"):
        load_rubric(tmp_path / "gone.yaml")


def test_a_file_that_the_system_does_not_open_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"r\.json: cannot be read: File name too long$"):
        load_rubric(tmp_path / f"{'r' * 300}.json")


def test_importing_rubrics_does_not_import_yaml() -> None:
    script = "import sys, rag_eval.rubric; sys.exit('yaml' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_without_pyyaml_the_remedy_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "r.yaml", YAML_RUBRIC)
    script = (
        "import sys; sys.modules['yaml'] = None\n"
        "from rag_eval.rubric import load_rubric\n"
        "try: load_rubric(sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.startswith("SettingsError")
    assert "or write the rubric as JSON" in done.stdout


# --- criteria that do not apply --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "passes"),
    [
        ({"M1": True, "C1": True, "C2": True, "C3": False}, True),
        ({"M1": True, "C1": True, "C2": True}, True),
        ({"M1": True, "C1": True, "C2": False}, False),
        ({"M1": True, "C1": True}, True),
        ({"M1": True, "C1": False}, False),
        ({"M1": False, "C1": True}, False),
        ({"M1": True}, True),
        ({"C1": True, "C2": True}, True),
    ],
)
def test_fewer_criteria_lower_the_threshold_to_their_number(verdicts: dict[str, bool], passes: bool) -> None:
    """Two of three are asked for: where one applies, that one; where none does, the mandatory ones decide."""
    assert make_rubric("M1", "C1 C2 C3", 2).is_passed_by(verdicts) is passes


def test_a_rubric_knows_the_columns_that_it_asks_about() -> None:
    metrics = [
        MetricDefinition(id=id_, rubric="…", applies_to=applies_to)
        for id_, applies_to in [("a", None), ("b", {"X": "1", "Y": "2"}), ("c", {"Z": "1", "X": "2"})]
    ]
    rubric = EvaluationRubric(rubric_id="r", metrics=metrics, passing_score_threshold=0)
    assert rubric.columns == ("X", "Y", "Z")


def test_pairs_count_where_both_raters_have_a_verdict() -> None:
    rubric = make_rubric("M1", "C1", 1)
    pairs = [
        ({"M1": True, "C1": True}, {"M1": True, "C1": False}),
        ({"M1": True}, {"M1": True, "C1": False}),
        ({"M1": True}, {"M1": True}),
        ({}, {"M1": True}),
    ]
    report = rubric.align_verdicts(pairs)
    assert [(row.metric_id, row.n, row.agreement) for row in report.criteria] == [
        ("M1", 3, 1.0),
        ("C1", 1, 0.0),
    ]
    assert (report.n, report.both_pass, report.only_a_passes) == (3, 1, 2)


# --- ratings in files ------------------------------------------------------------------------------------------


EXPECTED = "expected yes or no (or true, false, pass, fail, 1, 0)"


def rating_files(folder: Path, a: str, b: str) -> tuple[Path, Path]:
    return write(folder, "a.csv", a), write(folder, "b.csv", b)


def test_ratings_are_paired_by_id_whatever_their_order(tmp_path: Path) -> None:
    """Ids are text; what only one file has is named and left out; other columns do not matter."""
    rubric = make_rubric("on-topic", "C1")
    a = "ID,On Topic,C1,note\n01,yes,no,x\n1,true,FALSE,y\nx,1,0,z\n"
    b = "C1,id,on-topic,on topic\npass,1,Fail,maybe\nno,01, YES ,\nno,y,no,\n"
    found = pair_ratings(*rating_files(tmp_path, a, b), rubric)
    assert found.pairs == [
        ({"on-topic": True, "C1": False}, {"on-topic": True, "C1": False}),
        ({"on-topic": True, "C1": False}, {"on-topic": False, "C1": True}),
    ]
    assert (found.only_a, found.only_b) == (["x"], ["y"])


def test_ratings_without_ids_are_paired_by_order(tmp_path: Path) -> None:
    rubric = make_rubric("id", "")
    found = pair_ratings(*rating_files(tmp_path, "id\nyes\nno\n", "id\nyes\nyes\n"), rubric)
    assert found.pairs == [({"id": True}, {"id": True}), ({"id": False}, {"id": True})]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_a_blank_row_does_not_shift_ratings_that_are_paired_by_order(tmp_path: Path, suffix: str) -> None:
    """Each rater left out another answer: as many rows remain, and all between would be mixed up."""

    def rated(name: str, *rows: str) -> Path:
        return write_table(
            tmp_path / f"{name}{suffix}", *([cell or None for cell in row.split(",")] for row in rows)
        )

    rubric = make_rubric("M1", "C1")
    first = rated("a", "M1,C1", "1,0", ",", "0,0", "1,1", ",")
    second = rated("b", "M1,C1", "1,0", "0,1", ",", "1,1")
    sheet = ", sheet 'Sheet'" if suffix == ".xlsx" else ""
    with pytest.raises(TableError) as caught:
        pair_ratings(first, second, rubric)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        f"a{suffix}{sheet}, row 3",
        f"b{suffix}{sheet}, row 4",
    ]
    assert all("is blank" in problem and "add ids" in problem for problem in caught.value.problems)
    with_ids = [
        rated("c", "id,M1,C1", "x,1,0", ",,", "y,1,1"),
        rated("d", "id,M1,C1", "y,1,1", "x,1,0", ",,"),
    ]
    assert len(pair_ratings(*with_ids, rubric).pairs) == 2


def test_ratings_in_another_order_are_not_paired_by_order(tmp_path: Path) -> None:
    """A column for the query gives it away, though several answers to a query keep it from being the id."""
    rubric = make_rubric("M1", "C1")
    a = "query_id,bot,M1,C1\n1,A,1,0\n1,B,1,1\n2,A,0,0\n2,B,1,0\n"
    found = pair_ratings(*rating_files(tmp_path, a, a.replace("query_id", "QID")), rubric)
    assert len(found.pairs) == 4
    of_b = "M1,C1\n1,0\n1,1\n0,0\n1,0\n"
    assert pair_ratings(*rating_files(tmp_path, a, of_b), rubric) == found, "only one has the column"
    b = "query_id,bot,M1,C1\n1,A,1,0\n2,A,0,0\n1,B,1,1\n2,B,1,0\n"
    with pytest.raises(
        TableError, match=r"^a\.csv has query '1' in its row 2, where b\.csv has '2'; .* or add ids$"
    ):
        pair_ratings(*rating_files(tmp_path, a, b), rubric)
    ids = [text.replace("bot", "id").replace("2,A", "2,C").replace("2,B", "2,D") for text in (a, b)]
    assert pair_ratings(*rating_files(tmp_path, *ids), rubric).pairs == found.pairs


def test_ratings_are_read_from_every_format(tmp_path: Path) -> None:
    header = ["id", "M1", "C1"]
    write_table(tmp_path / "r.xlsx", header, ["q", True, 0.0], [7, 1, "no"])
    for suffix in ("json", "jsonl"):
        write_table(tmp_path / f"r.{suffix}", header, ["q", True, False], [7, 1, "no"])
    write(tmp_path, "r.tsv", "id\tM1\tC1\nq\tTRUE\t0\n7\tyes\tno\n")
    first = tmp_path / "r.tsv"
    for path in tmp_path.iterdir():
        found = pair_ratings(first, path, make_rubric("M1", "C1"))
        assert found.pairs == [({"M1": True, "C1": False},) * 2] * 2, path


@pytest.mark.parametrize(
    ("a", "b", "problems"),
    [
        (
            "id,M1,C1\nq1,maybe,\nq1,yes,no\n,no,2\n",
            "id,M1,C1\nq1,yes,\n",
            [
                f"a.csv, row 2, column 'M1' (B): 'maybe' is not a label; {EXPECTED}",
                f"a.csv, row 2, column 'C1' (C): '' is not a label; {EXPECTED}",
                "a.csv, row 3, column 'id' (A): 'q1' occurs more than once; keep one row of it",
                "a.csv, row 4, column 'id' (A): '' is not a query id",
                f"a.csv, row 4, column 'C1' (C): '2' is not a label; {EXPECTED}",
                f"b.csv, row 2, column 'C1' (C): '' is not a label; {EXPECTED}",
            ],
        ),
        (
            "id,M1,C1\n",
            "id,M1\n",
            [
                "b.csv: has no column for the criteria C1; rename one, or add --map COLUMN=C1 "
                "(found: 'id' (A), 'M1' (B))"
            ],
        ),
        (
            "id,M1,C1,c1,C-1\n",
            "id,M1,c1,C-1\n",
            ["b.csv: the columns 'c1' (C) and 'C-1' (D) mean the same; keep one of them"],
        ),
        (
            "id,M1,C1\nq,1,0\n",
            "M1,C1\n1,0\n",
            ["b.csv: has no column 'id', but a.csv has one; add it to both files or to neither"],
        ),
        (
            "M1,C1\n1,0\n",
            "M1,C1\n1,0\n1,1\n",
            [
                "a.csv has 1 rows and b.csv 2; without a column 'id' they are paired by order, so both need equally "
                "many rows"
            ],
        ),
        (
            "id,M1,C1\nq,1,0\n",
            "id,M1,C1\nr,1,0\n",
            ["a.csv and b.csv have no response in common; use the same ids in both"],
        ),
        ("M1,C1\n", "M1,C1\n", ["a.csv and b.csv have no response in common; use the same ids in both"]),
    ],
)
def test_what_is_wrong_with_ratings_is_all_said_at_once(
    tmp_path: Path, a: str, b: str, problems: list[str]
) -> None:
    with pytest.raises(TableError) as caught:
        pair_ratings(*rating_files(tmp_path, a, b), make_rubric("M1", "C1"))
    assert list(caught.value.problems) == problems


def test_one_column_cannot_hold_the_verdicts_of_two_criteria(tmp_path: Path) -> None:
    """Ids that differ in case or separators alone: the agreement on one would be printed for the other as well."""
    rubric = make_rubric("on-topic", "on_topic Clear clear")
    paths = rating_files(
        tmp_path, "on-topic,Clear,clear\nyes,no,yes\n", "on-topic,on_topic,CLEAR\nyes,no,no\n"
    )
    with pytest.raises(TableError) as caught:
        pair_ratings(*paths, rubric)
    assert list(caught.value.problems) == [
        f"{name}: the column {column} fits each of the criteria {ids}; "
        "give each criterion a column with its id as the name"
        for name, column, ids in (
            ("a.csv", "'on-topic' (A)", "'on-topic', 'on_topic'"),
            ("b.csv", "'CLEAR' (C)", "'Clear', 'clear'"),
        )
    ]


def test_only_a_criterion_that_does_not_apply_everywhere_may_be_blank(tmp_path: Path) -> None:
    rubric = expected_rubric()
    found = pair_ratings(*rating_files(tmp_path, "id,M1,C1\nq,yes,\n", "id,M1,C1\nq,yes,no\n"), rubric)
    assert found.pairs == [({"M1": True}, {"M1": True, "C1": False})]


# --- documentation -------------------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guides = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    yaml_blocks = re.findall(r"^```yaml\n(.*?)^```$", guides, re.MULTILINE | re.DOTALL)
    (yaml_block,) = (block for block in yaml_blocks if "rubric_id" in block)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    section = page.partition("\n## Rubrics\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    (tmp_path / "support_answer.yaml").write_text(yaml_block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for (language, body), (next_language, next_body) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(body, namespace)  # noqa: S102 - the documentation is ours
            assert printed.getvalue() == (next_body if next_language == "text" else "")


def test_a_schema_of_the_model_can_be_used_by_other_validators() -> None:
    """A judge's client may validate through the class alone: strictness is in the fields, not in our reader."""
    adapter = TypeAdapter(RUBRIC.to_pydantic_model())
    assert adapter.validate_python({"M1": True}) == GOOD
    with pytest.raises(ValidationError):
        adapter.validate_python({"M1": 1})


@pytest.mark.parametrize(
    ("text", "size"),
    [("a: 1", 3), ("&x [*x]", 2), ("&x [1, *x, *x]", 4), ("{a: &b [1, 2], c: *b}", 9), ("", 0)],
)
def test_every_alias_counts_as_what_it_stands_for_and_a_circle_once(text: str, size: int) -> None:
    assert _expanded_size(yaml.compose(text, Loader=yaml.SafeLoader), {}) == size

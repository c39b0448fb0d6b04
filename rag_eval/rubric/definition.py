"""A rubric and its results.

A rubric passes when every mandatory metric passes and at least `passing_score_threshold` of the others,
the cumulative ones, do. Here a metric is one criterion, and a verdict is a boolean. Any judge that returns
a boolean for every metric id will do.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationInfo,
    create_model,
    model_validator,
)

from rag_eval.rubric.alignment import AlignmentReport, CriterionAlignment
from rag_eval.texts.strict_json import parse_json


class _FixedDict(dict[str, str]):
    """A dict that stays as it was built, so that it can be hashed and shared."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a rubric cannot be changed once it is built")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, str]]]:
        return type(self), (dict(self),)


def _check_identifier(text: str, info: ValidationInfo) -> str:
    if not text.strip():
        what, example = ("Rubric", "answers_v1") if info.field_name == "rubric_id" else ("Metric", "M1")
        raise ValueError(f"{what} ID cannot be empty; give one, such as '{example}'")
    if not text.isprintable():
        raise ValueError(f"an id must be one printable line, not {text!r}")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a criterion cannot be blank: say what must be true for it to pass")
    return text


_Identifier = Annotated[str, AfterValidator(_check_identifier)]


class MetricDefinition(BaseModel):
    """One yes/no criterion: mandatory, or counted towards the rubric's threshold."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    id: _Identifier
    rubric: Annotated[str, AfterValidator(_check_not_blank)]
    """What must be true for the metric to pass."""
    mandatory: bool = False
    applies_to: Annotated[dict[str, str], AfterValidator(_FixedDict)] | None = None
    """Column → value: the spreadsheet rows that the metric is meant for. None means every row."""

    def covers(self, row: Mapping[str, str]) -> bool:
        """Whether `row` (column → cell) has every value that `applies_to` asks for, letter by letter."""
        return all(row.get(column) == value for column, value in (self.applies_to or {}).items())


class EvaluationRubric(BaseModel):
    """Metrics and the number of cumulative ones that must pass. Immutable, hashable, equal by content."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    rubric_id: _Identifier
    metrics: Annotated[Sequence[MetricDefinition], AfterValidator(tuple)]
    """In the order in which they are printed and reported. Any list is taken, a tuple is kept."""
    passing_score_threshold: Annotated[int, Field(ge=0)]
    """Fewest cumulative metrics that must pass; 0 leaves the verdict to the mandatory ones."""

    @property
    def mandatory_metrics(self) -> list[MetricDefinition]:
        return [metric for metric in self.metrics if metric.mandatory]

    @property
    def cumulative_metrics(self) -> list[MetricDefinition]:
        return [metric for metric in self.metrics if not metric.mandatory]

    @property
    def columns(self) -> tuple[str, ...]:
        """The spreadsheet columns that decide which metrics apply to a row, each once."""
        return tuple(dict.fromkeys(column for metric in self.metrics for column in metric.applies_to or {}))

    def to_prompt_text(self) -> str:
        """The rubric as Markdown for a judge's prompt."""
        return "\n\n".join(_prompt_blocks(self))

    def to_json_schema(self) -> dict[str, Any]:
        """JSON Schema of a result: a boolean for each metric, and an optional explanation of it."""
        properties: dict[str, Any] = {}
        for metric in self.metrics:
            properties[metric.id] = {"type": "boolean", "description": _question(metric)}
            properties[_reasoning_key(metric)] = {"type": "string", "description": _explanation(metric)}
        return {
            "type": "object",
            "description": f"One rater's result by the rubric {self.rubric_id}",
            "properties": properties,
            "required": [metric.id for metric in self.metrics],
            "additionalProperties": False,
        }

    def to_response_format(self) -> dict[str, Any]:
        """The value of `response_format` for OpenAI's strict structured output.

        Strict output demands that every property is required, so the explanations are, too.
        """
        schema = self.to_json_schema()
        strict_schema = schema | {"required": list(schema["properties"])}
        return {
            "type": "json_schema",
            "json_schema": {"name": self.schema_name, "strict": True, "schema": strict_schema},
        }

    @property
    def schema_name(self) -> str:
        """The rubric's id in letters that OpenAI's API takes for the name of a schema."""
        return _slug(self.rubric_id)[:_LONGEST_SCHEMA_NAME]

    def to_pydantic_model(self) -> type["EvaluationResult"]:
        """The model of this rubric's results; equal rubrics share one class."""
        with _MODEL_LOCK:
            return _result_model(self)

    def validate_result(self, result: str | Mapping[str, Any]) -> bool:
        """Whether `result`, a mapping or its JSON text, passes.

        Other keys than those of the metrics are ignored. Raises ValueError if a metric is missing or not a boolean, or
        if the text is not exactly one JSON object with distinct keys, bare or in one Markdown code fence.
        """
        return self.is_passed_by(_read_verdicts(self, result))

    def is_passed_by(self, verdicts: Mapping[str, bool]) -> bool:
        """Whether verdicts, by metric id, pass the rubric. A metric without a verdict does not apply.

        All mandatory metrics must pass, and as many cumulative metrics as the threshold requires. If fewer cumulative
        metrics apply than that, all of these must pass.
        """
        cumulative = [verdicts[metric.id] for metric in self.cumulative_metrics if metric.id in verdicts]
        all_mandatory = all(verdicts.get(metric.id, True) for metric in self.mandatory_metrics)
        return all_mandatory and sum(cumulative) >= min(self.passing_score_threshold, len(cumulative))

    def generate_report(
        self,
        result: Mapping[str, Any],
        reasoning: Mapping[str, str | None] | None = None,
        title: str | None = None,
    ) -> str:
        """The result as Markdown, with the explanations of `reasoning` by metric id."""
        heading = f"Evaluation Report: {self.rubric_id}" if title is None else title
        blocks = _report_blocks(self, _read_verdicts(self, result), reasoning or {}, heading)
        return "\n\n".join(blocks)

    def calculate_alignment(
        self, results_a: BaseModel | Sequence[BaseModel], results_b: BaseModel | Sequence[BaseModel]
    ) -> float:
        """Share of pairs, 0..1, on which both raters have the same overall verdict; 1.0 for two empty lists.

        TypeError unless both are results of this rubric or lists of them, ValueError for unequal lengths.
        """
        agreement = self.alignment_report(results_a, results_b).agreement
        return 1.0 if agreement is None else agreement

    def alignment_report(
        self, results_a: BaseModel | Sequence[BaseModel], results_b: BaseModel | Sequence[BaseModel]
    ) -> AlignmentReport:
        """The agreement of both raters on the overall verdict and on each metric, with Cohen's kappa.

        Raises what `calculate_alignment` raises.
        """
        pairs = _pair_results(self, results_a, results_b)
        return self.align_verdicts([(a.verdicts(), b.verdicts()) for a, b in pairs])

    def align_verdicts(
        self, pairs: Sequence[tuple[Mapping[str, bool], Mapping[str, bool]]]
    ) -> AlignmentReport:
        """The agreement of two raters, from their verdicts by metric id, one pair of mappings per response.

        A pair counts for a metric if both raters have a verdict on it, and overall if both have any verdict.
        """
        overall = [(self.is_passed_by(a), self.is_passed_by(b)) for a, b in pairs if a and b]
        criteria = tuple(
            CriterionAlignment.of(
                ((a[id_], b[id_]) for a, b in pairs if id_ in a and id_ in b), metric_id=id_
            )
            for id_ in (metric.id for metric in self.metrics)
        )
        return AlignmentReport.of(overall, criteria=criteria)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        problems = "\n".join(_inconsistencies(self))
        if problems:
            raise ValueError(problems)
        return self


class EvaluationResult(BaseModel):
    """One rater's verdicts on one answer. The subclass with the fields comes from `to_pydantic_model`.

    Metric `M1` is the field `M1`, its explanation `M1_reasoning`. An id that cannot be a field (it begins
    with an underscore or is an attribute that every result has) is the field `metric_<id>`, but it goes
    in and comes out under the id itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), serialize_by_alias=True)

    __rubric__: ClassVar[EvaluationRubric]

    if TYPE_CHECKING:  # A type checker cannot know the fields, which come from the rubric.

        def __init__(self, **values: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    def passes(self) -> bool:
        return self.__rubric__.is_passed_by(self.verdicts())

    def get_failed_metrics(self) -> list[str]:
        return [id_ for id_, passed in self.verdicts().items() if not passed]

    def get_passed_metrics(self) -> list[str]:
        return [id_ for id_, passed in self.verdicts().items() if passed]

    def to_report(self, title: str | None = None) -> str:
        """The result as Markdown, with the explanations that it carries."""
        values = self.model_dump(by_alias=True)
        reasoning = {metric.id: values[_reasoning_key(metric)] for metric in self.__rubric__.metrics}
        return self.__rubric__.generate_report(self.verdicts(), reasoning, title)

    def verdicts(self) -> dict[str, bool]:
        """Metric id → passed, in the rubric's order, whatever the ids look like."""
        values = self.model_dump(by_alias=True)
        return {metric.id: values[metric.id] for metric in self.__rubric__.metrics}

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """As pydantic's, but a repeated key is an error and one Markdown code fence is no obstacle."""
        return cls.model_validate(json_data, **options)

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, data: Any) -> Any:
        return _read_json(data) if isinstance(data, str | bytes | bytearray) else data

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # A generated class has no importable name, so the rubric travels along and makes it again.
        return _restore_result, (self.__rubric__, self.model_dump(by_alias=True, exclude_unset=True))


_LONGEST_SCHEMA_NAME = 64
_MODEL_LOCK = threading.Lock()
"""Two threads must not make two classes for one rubric: their results would not be equal."""


def _read_json(text: str | bytes | bytearray) -> Any:
    """The value of JSON text, bare or in one Markdown code fence. Raises ValueError for anything else."""
    try:
        text = text if isinstance(text, str) else text.decode()
        fenced = re.fullmatch(r"\s*```\w*+(.*)```\s*", text, re.DOTALL)
        return parse_json(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON string: {error}") from error


def _reasoning_key(metric: MetricDefinition) -> str:
    return f"{metric.id}_reasoning"


def _inconsistencies(rubric: EvaluationRubric) -> Iterator[str]:
    ids = Counter(metric.id for metric in rubric.metrics)
    if not ids:
        yield "Evaluation rubric must contain at least one metric; add one to metrics"
    if repeated := [id_ for id_, count in ids.items() if count > 1]:
        yield f"Duplicate metric IDs found: {', '.join(repeated)}"
    for metric in rubric.metrics:
        if _reasoning_key(metric) in ids:
            yield (
                f"Metric ID {_reasoning_key(metric)!r} is taken by the explanation of metric {metric.id!r}; "
                "rename one of the two"
            )
    n_cumulative = len(rubric.cumulative_metrics)
    if rubric.passing_score_threshold > n_cumulative:
        yield (
            f"Invalid passing threshold: {rubric.passing_score_threshold} exceeds the number of cumulative "
            "metrics (the threshold cannot exceed the number of cumulative metrics). The rubric has "
            f"{len(rubric.mandatory_metrics)} mandatory metric(s) and {n_cumulative} cumulative metric(s). "
            f"Please set passing_score_threshold to {n_cumulative} or less"
        )


def _question(metric: MetricDefinition) -> str:
    return f"Does this pass the criterion: {metric.rubric}"


def _explanation(metric: MetricDefinition) -> str:
    return f"Explanation for the {metric.id} evaluation"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


@cache
def _result_model(rubric: EvaluationRubric) -> type[EvaluationResult]:
    fields: dict[str, Any] = {}
    taken = {key for metric in rubric.metrics for key in (metric.id, _reasoning_key(metric))}
    for metric in rubric.metrics:
        fields |= _field(metric.id, StrictBool, ..., _question(metric), taken)
        fields |= _field(_reasoning_key(metric), StrictStr | None, None, _explanation(metric), taken)
    model = create_model(f"EvaluationResult_{_slug(rubric.rubric_id)}", __base__=EvaluationResult, **fields)
    model.__rubric__ = rubric
    return model


def _field(key: str, kind: Any, default: Any, description: str, taken: set[str]) -> dict[str, Any]:
    if not (key.startswith("_") or hasattr(EvaluationResult, key)):
        return {key: (kind, Field(default, description=description))}
    name = f"metric_{key}"
    while name in taken:
        name += "_"
    taken.add(name)
    return {name: (kind, Field(default, description=description, alias=key))}


def _restore_result(rubric: EvaluationRubric, values: dict[str, Any]) -> EvaluationResult:
    return rubric.to_pydantic_model()(**values)


def _read_verdicts(rubric: EvaluationRubric, result: str | Mapping[str, Any]) -> dict[str, bool]:
    values = _read_json(result) if isinstance(result, str) else result
    if not isinstance(values, Mapping):
        raise ValueError(
            "an evaluation result must be a JSON string or dictionary with one boolean for each metric, "
            f"got {type(values).__name__}"
        )
    if problems := "\n".join(_verdict_problems(rubric, values)):
        raise ValueError(problems)
    return {metric.id: values[metric.id] for metric in rubric.metrics}


def _verdict_problems(rubric: EvaluationRubric, values: Mapping[str, Any]) -> Iterator[str]:
    if missing := [metric for metric in rubric.metrics if metric.id not in values]:
        mandatory = ", ".join(metric.id for metric in missing if metric.mandatory)
        cumulative = ", ".join(metric.id for metric in missing if not metric.mandatory)
        kinds = (("Mandatory", mandatory), ("Cumulative", cumulative))
        yield (
            f"Missing evaluation results for {len(missing)} metric(s): "
            f"{'; '.join(f'{kind}: {ids}' for kind, ids in kinds if ids)}. "
            f"Missing metric results for: {', '.join(metric.id for metric in missing)}"
        )
    for metric in rubric.metrics:
        if metric.id in values and not isinstance(value := values[metric.id], bool):
            yield (
                f"Invalid result for metric '{metric.id}': expected boolean, got {type(value).__name__} "
                "(must be boolean)"
            )


def _pair_results(
    rubric: EvaluationRubric,
    results_a: BaseModel | Sequence[BaseModel],
    results_b: BaseModel | Sequence[BaseModel],
) -> list[tuple[EvaluationResult, EvaluationResult]]:
    if isinstance(results_a, BaseModel) != isinstance(results_b, BaseModel):
        raise TypeError("results_a and results_b must be either single instances or lists, both the same")
    listed_a = _list_results(rubric, "results_a", results_a)
    listed_b = _list_results(rubric, "results_b", results_b)
    if len(listed_a) != len(listed_b):
        raise ValueError(
            "results_a and results_b must have the same length to be compared pair by pair, "
            f"got {len(listed_a)} and {len(listed_b)}"
        )
    return list(zip(listed_a, listed_b, strict=True))


def _list_results(
    rubric: EvaluationRubric, name: str, results: BaseModel | Sequence[BaseModel]
) -> list[EvaluationResult]:
    if isinstance(results, BaseModel):
        return [_own_result(rubric, name, results)]
    if not isinstance(results, Sequence):
        raise TypeError(f"{name} must be BaseModel instances or lists of them, not {type(results).__name__}")
    return [_own_result(rubric, f"{name}[{index}]", result) for index, result in enumerate(results)]


def _own_result(rubric: EvaluationRubric, place: str, result: object) -> EvaluationResult:
    if not isinstance(result, BaseModel):
        raise TypeError(f"{place} is not a BaseModel instance but a {type(result).__name__}")
    if not isinstance(result, EvaluationResult):
        raise TypeError(f"{place}: results must be instances from to_pydantic_model(), with passes() method")
    if result.__rubric__ != rubric:
        raise TypeError(
            f"{place} is a result of rubric '{result.__rubric__.rubric_id}', "
            f"which differs from rubric '{rubric.rubric_id}'"
        )
    return result


def _prompt_blocks(rubric: EvaluationRubric) -> Iterator[str]:
    mandatory, cumulative = rubric.mandatory_metrics, rubric.cumulative_metrics
    instructions = [
        "## Instructions",
        "For each criterion above, evaluate whether it passes (Yes) or fails (No).",
    ]
    yield f"# Evaluation Rubric: {rubric.rubric_id}"
    if mandatory:
        yield "## Mandatory Criteria (ALL must pass)"
        yield _prompt_list(mandatory)
        instructions.append(f"- All {len(mandatory)} mandatory criteria must pass.")
    if cumulative:
        threshold = rubric.passing_score_threshold
        yield f"## Cumulative Criteria\n(Must pass at least {threshold} of {len(cumulative)})"
        yield _prompt_list(cumulative)
        instructions.append(f"- At least {threshold} cumulative criteria must pass.")
    yield "\n".join(instructions)


def _prompt_list(metrics: Iterable[MetricDefinition]) -> str:
    return "\n".join(f"- **{metric.id}**: {metric.rubric}" for metric in metrics)


def _report_blocks(
    rubric: EvaluationRubric,
    verdicts: Mapping[str, bool],
    reasoning: Mapping[str, str | None],
    heading: str,
) -> Iterator[str]:
    yield f"# {heading}"
    yield f"**Overall Result: {_word(rubric.is_passed_by(verdicts))}**"
    if mandatory := rubric.mandatory_metrics:
        yield "## Mandatory Criteria (ALL must pass)"
        yield from (_report_entry(metric, verdicts, reasoning) for metric in mandatory)
        if failed := [metric.id for metric in mandatory if not verdicts[metric.id]]:
            # With the two spaces of teval, whose reports are searched for this line.
            yield f"⚠️  **{len(failed)} mandatory metric(s) failed:** {', '.join(failed)}"
    if cumulative := rubric.cumulative_metrics:
        n_passed, threshold = _count_passed(cumulative, verdicts), rubric.passing_score_threshold
        yield f"## Cumulative Criteria\n**Score: {n_passed}/{len(cumulative)}** (Required: {threshold})"
        yield from (_report_entry(metric, verdicts, reasoning) for metric in cumulative)
        if n_passed < threshold:
            yield f"⚠️ **Need {threshold - n_passed} more cumulative metric(s) to pass**"
    yield "## Requirements for Passing"
    yield from _requirement_blocks(rubric, verdicts)


def _requirement_blocks(rubric: EvaluationRubric, verdicts: Mapping[str, bool]) -> Iterator[str]:
    if mandatory := rubric.mandatory_metrics:
        marks = [f"  {_mark(verdicts[metric.id])} {metric.id}" for metric in mandatory]
        yield "\n".join(["**Mandatory criteria (ALL must pass):**", *marks])
    if cumulative := rubric.cumulative_metrics:
        n_passed, threshold = _count_passed(cumulative, verdicts), rubric.passing_score_threshold
        lines = [
            "**Cumulative criteria:**",
            f"  - Need at least {threshold} of {len(cumulative)} to pass",
            f"  - Currently passed: {n_passed}",
        ]
        if n_passed < threshold:
            lines.append(f"  - Still need: {threshold - n_passed} more")
        yield "\n".join(lines)


def _report_entry(
    metric: MetricDefinition, verdicts: Mapping[str, bool], reasoning: Mapping[str, str | None]
) -> str:
    passed = verdicts[metric.id]
    entry = f"{_mark(passed)} **{metric.id}** [{_word(passed)}]: {_one_line(metric.rubric)}"
    explanation = _one_line(reasoning.get(metric.id) or "")
    return f"{entry}\n  → {explanation}" if explanation else entry


def _count_passed(metrics: Iterable[MetricDefinition], verdicts: Mapping[str, bool]) -> int:
    return sum(verdicts[metric.id] for metric in metrics)


def _one_line(text: str) -> str:
    # A judge's explanation must not be able to write lines of the report, such as a verdict of its own.
    return " ".join(text.splitlines())


def _mark(passed: bool) -> str:
    return "✓" if passed else "✗"


def _word(passed: bool) -> str:
    return "PASS" if passed else "FAIL"

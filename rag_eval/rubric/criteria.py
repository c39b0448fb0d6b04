"""One yes/no criterion. In the names of this package it is a metric."""

from collections.abc import Mapping
from typing import Annotated, NoReturn, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo


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


Identifier = Annotated[str, AfterValidator(_check_identifier)]


class MetricDefinition(BaseModel):
    """One yes/no criterion: mandatory, or counted towards the rubric's threshold."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    id: Identifier
    rubric: Annotated[str, AfterValidator(_check_not_blank)]
    """What must be true for the metric to pass."""
    mandatory: bool = False
    applies_to: Annotated[dict[str, str], AfterValidator(_FixedDict)] | None = None
    """Column → value: the spreadsheet rows that the metric is meant for. None means every row."""

    def covers(self, row: Mapping[str, str]) -> bool:
        """Whether `row` (column → cell) has every value that `applies_to` asks for, letter by letter."""
        return all(row.get(column) == value for column, value in (self.applies_to or {}).items())

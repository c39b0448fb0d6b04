"""A workbook with cases for people to label: how it is laid out, and what they have written into it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rag_eval.errors import TableError
from rag_eval.records import SCORE_LABELS, Case, CaseResult
from rag_eval.tables.bounds import Room, first_of
from rag_eval.tables.cells import BadCell, Cell
from rag_eval.tables.input_files import check_is_file
from rag_eval.tables.labels import parse_score, parse_verdict
from rag_eval.tables.sheets import open_reader, open_sheet

FORMAT = "rag-eval-review/1"
"""Header of the first column of the sheet SAMPLE."""
SAMPLE, STRATA = "Sample", "Strata"
"""Hidden sheets: the cases that were drawn, and what they were drawn from."""
SAMPLE_COLUMNS = (
    FORMAT,
    "Row",
    "Bot",
    "Key",
    "Query",
    "Ground Truth",
    "Response",
    "Chunks",
    "Stratum",
    "Inclusion",
)
STRATA_COLUMNS = ("Bot", "Cases of the bot", "Stratum", "Measure", "Cases with a score")
KEY = "Key"
"""Header of the hidden column that says what a row of a rater's sheet is."""
RATER_KEY = "rater"
PART, TEXT, LABEL, COMMENT, KEYS = range(5)
"""Columns of a rater's sheet, counted from 0."""
STEPS = {"1 fully": 1.0, "0.75 mostly": 0.75, "0.5 half": 0.5, "0.25 a little": 0.25, "0 not at all": 0.0}
VERDICTS = {"yes": 1.0, "no": 0.0}
CANNOT_SAY = "cannot say"
_PARTS = ("query", "ground truth", "response", "chunks")


class Fingerprint(NamedTuple):
    """Hashes of what a label is about."""

    key: str
    """Of all the texts and the bot."""
    query: str
    reference: str
    response: str
    chunks: str

    @classmethod
    def of(cls, case: Case) -> "Fingerprint":
        chunks = "\0".join(case.chunks) if case.chunks else repr(case.chunks)
        parts = [hash_of(text) for text in (case.query, repr(case.reference), case.response, chunks)]
        return cls(hash_of("\n".join((hash_of(case.bot), *parts))), *parts)

    def changed(self, now: "Fingerprint") -> str:
        """What is different now, in words."""
        names = [name for name, one, other in zip(_PARTS, self[1:], now[1:], strict=True) if one != other]
        return f"the {' and the '.join(names)} {'was' if len(names) == 1 and names != ['chunks'] else 'were'} changed"


def hash_of(text: str) -> str:
    # With a letter first, so that no program takes one for a number.
    return "h" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def choices(measure: str) -> Mapping[str, float]:
    """The labels that a sheet offers for a metric, or for a criterion, and what they are worth."""
    return STEPS if measure in SCORE_LABELS else VERDICTS


class _Place(NamedTuple):
    file: str
    sheet: str
    row: int

    def __str__(self) -> str:
        return f"{self.file}, sheet '{self.sheet}', row {self.row}, column {'ABCDE'[LABEL]}"


@dataclass(frozen=True, slots=True)
class _SampledCase:
    """A row of the sheet SAMPLE."""

    row: str
    """Of the input, as the bot: for messages, and to tell equal cases apart."""
    bot: str
    fingerprint: Fingerprint
    stratum: str

    @property
    def name(self) -> str:
        return f"row {self.row}, {self.bot}"


@dataclass(frozen=True, slots=True)
class _Strata:
    """What the cases of one bot were drawn from."""

    cases: int
    sizes: Mapping[str, Mapping[str, int]]


class _GivenLabel(NamedTuple):
    value: float
    place: _Place


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """One workbook, read."""

    name: str
    cases: Mapping[str, _SampledCase]
    """By number."""
    strata: Mapping[str, _Strata]
    """By the hash of the bot's name."""
    answers: Mapping[tuple[str, str, str], _GivenLabel]
    """By rater, number of the case and measure."""
    progress: Sequence[str]
    """A sentence for each sheet that has labels but not all."""

    @classmethod
    def read(cls, path: Path) -> "ReviewFile":
        """Raises TableError for what is not such a workbook, or has labels that cannot be understood: all of them."""
        check_is_file(path, TableError)
        if path.suffix.lower() not in (".xlsx", ".xlsm"):
            raise TableError(f"{path.name}: labels are read from .xlsx files; save the review sheet as .xlsx")
        sheets = _sheets(path)
        if SAMPLE not in sheets or STRATA not in sheets:
            raise TableError(
                f"{path.name}: is not a review sheet; create one with: rag-eval review run.json -o {path}"
            )
        cases = _read_sample(path)
        reading = _RaterSheets(path.name, cases)
        for name in sheets:
            reading.read(name, _rows(path, name))
        if reading.problems:
            raise TableError(first_of(reading.problems))
        if not reading.has_sheets:
            raise TableError(
                f"{path.name}: has no sheet with labels left; use the file as rag-eval review wrote it"
            )
        return cls(path.name, cases, _read_strata(path), reading.answers, reading.progress)


def _sheets(path: Path) -> list[str]:
    try:
        with open_reader(path, Room(path.name, path.stat().st_size)) as reader:
            return [sheet.name for sheet in reader.sheets]
    except FileNotFoundError:
        raise TableError(f"{path}: there is no such file") from None


def _rows(path: Path, sheet: str) -> Iterator[tuple[int, list[Cell]]]:
    with open_sheet(path, sheet) as opened:
        for number, cells in opened.rows:
            yield number, [*cells, *[""] * (KEYS + 1 - len(cells))]


def _records(path: Path, sheet: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a hidden sheet below its header, as texts."""
    rows = _rows(path, sheet)
    _, header = next(rows, (0, []))
    if tuple(map(str, header[: len(columns)])) != tuple(columns):
        raise TableError(f"{path.name}, sheet '{sheet}': {_DAMAGED}")
    for number, cells in rows:
        yield number, [str(cell) for cell in (*cells, *[""] * len(columns))][: len(columns)]


_DAMAGED = "was changed; use the file as rag-eval review wrote it"


def _read_sample(path: Path) -> dict[str, _SampledCase]:
    return {
        number: _SampledCase(row, bot, Fingerprint(*hashes), stratum)
        for _, (number, row, bot, *hashes, stratum, _) in _records(path, SAMPLE, SAMPLE_COLUMNS)
    }


def _read_strata(path: Path) -> dict[str, _Strata]:
    sizes: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    totals = {}
    for number, (bot, total, stratum, measure, count) in _records(path, STRATA, STRATA_COLUMNS):
        if not (total.isdecimal() and count.isdecimal()):
            raise TableError(f"{path.name}, sheet '{STRATA}', row {number}: {_DAMAGED}")
        totals[bot] = int(total)
        sizes[bot][stratum][measure] = int(count)
    return {bot: _Strata(totals[bot], of_bot) for bot, of_bot in sizes.items()}


class _RaterSheets:
    """What the sheets of one file say, gathered."""

    def __init__(self, file: str, cases: Mapping[str, _SampledCase]) -> None:
        self.answers: dict[tuple[str, str, str], _GivenLabel] = {}
        self.problems: list[str] = []
        self.progress: list[str] = []
        self.has_sheets = False
        self._file = file
        self._cases = cases

    def read(self, sheet: str, rows: Iterator[tuple[int, list[Cell]]]) -> None:
        """A sheet without a column of keys is none of a rater's."""
        _, header = next(rows, (0, [""] * (KEYS + 1)))
        if str(header[KEYS]) != KEY:
            return
        self.has_sheets = True
        rater = sheet
        asked: defaultdict[str, list[bool]] = defaultdict(list)
        for number, cells in rows:
            key, place = str(cells[KEYS]), _Place(self._file, sheet, number)
            case, _, measure = key.partition("/")
            if key == RATER_KEY:
                rater = str(cells[LABEL]).strip() or sheet
            elif key and case not in self._cases:
                self.problems.append(
                    f"{place}: its hidden key '{key}' matches no case of the file; undo the change"
                )
            elif measure:
                asked[case].append(self._read_label(rater, case, measure, cells[LABEL], place))
        self._count(sheet, asked.values())

    def _read_label(self, rater: str, case: str, measure: str, cell: Cell, place: _Place) -> bool:
        """Whether the cell is filled."""
        if isinstance(cell, BadCell):
            self.problems.append(f"{place}: has {cell.problem}; choose a label from the list of the cell")
            return True
        if not (text := cell.strip()):
            return False
        try:
            value = parse_label(text, measure)
        except ValueError as error:
            self.problems.append(f"{place}: {error}; choose a label from the list of the cell")
            return True
        if value is not None:
            self._add((rater, case, measure), _GivenLabel(value, place))
        return True

    def _add(self, key: tuple[str, str, str], answer: _GivenLabel) -> None:
        earlier = self.answers.setdefault(key, answer)
        if earlier.value != answer.value:
            self.problems.append(_contradiction(key[0], self._cases[key[1]].name, key[2], earlier, answer))

    def _count(self, sheet: str, asked: Iterable[Sequence[bool]]) -> None:
        cases = list(asked)
        complete, begun = sum(map(all, cases)), sum(any(each) and not all(each) for each in cases)
        if (complete or begun) and complete < len(cases):
            in_part = f", {begun} in part" if begun else ""
            self.progress.append(
                f"{self._file}, sheet '{sheet}': {complete} of {len(cases)} cases are labelled{in_part}; "
                "the rest counts as not labelled."
            )


def parse_label(text: str, measure: str) -> float | None:
    """A label of a sheet, 0..1; None for 'cannot say'. Numbers from 0 to 1 are labels too. ValueError for others."""
    word = " ".join(text.split()).casefold()
    if word == CANNOT_SAY:
        return None
    offered = choices(measure)
    if word in offered:
        return offered[word]
    if offered is VERDICTS:
        return parse_verdict(text)
    return parse_score(_DECIMAL_COMMA.sub(r"\1.\2", text.strip()))


_DECIMAL_COMMA = re.compile(r"^(0|1(?=,0+$)),(\d+)$", re.ASCII)
"""Only of 0 to 1, so that an error shows any other number as it was written."""


def _contradiction(rater: str, case: str, measure: str, one: _GivenLabel, other: _GivenLabel) -> str:
    return (
        f"{other.place}: {rater} says {other.value:g} for {SCORE_LABELS.get(measure, measure)} of {case}, but "
        f"{one.value:g} in {one.place}; correct one of them, or give the sheets of two people different names"
    )


@dataclass(frozen=True, slots=True)
class _CaseLabels:
    """What people said of one case of the run."""

    raters: Mapping[str, Mapping[str, float]]
    stratum: str

    def consensus(self) -> Mapping[str, float]:
        """By measure the median of the raters: what most of them say, if most agree. A tied yes or no is none."""
        said: defaultdict[str, list[float]] = defaultdict(list)
        for labels in self.raters.values():
            for measure, value in labels.items():
                said[measure].append(value)
        middle = {measure: float(median(values)) for measure, values in said.items()}
        return {
            measure: value
            for measure, value in middle.items()
            if choices(measure) is STEPS or value in (0.0, 1.0)
        }


@dataclass(slots=True)
class ReviewLabels:
    """The labels of all files that were given, and the cases of a run that they belong to once these are known."""

    files: Sequence[ReviewFile]
    strata: dict[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """By bot of the run: cases with a score by stratum and measure. Empty if the labels are no random sample of it."""
    warnings: list[str] = field(default_factory=list)
    _by_case: dict[tuple[int, str], _CaseLabels] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Sequence[Path]) -> "ReviewLabels":
        """Raises TableError for files that cannot be read, have no label, or contradict each other."""
        files = [ReviewFile.read(path) for path in paths]
        merged = _merged(files)
        if files and not any(merged.values()):
            names = ", ".join(file.name for file in files)
            raise TableError(f"{names}: no labels yet; choose labels in the blue cells and save the file")
        return cls(files)

    def join(self, cases: Iterable[Case]) -> None:
        """Find the labelled cases among all cases of the run. Raises TableError if there is none."""
        wanted = _merged(self.files)
        index = _Index(wanted)
        for case in cases:
            index.add(case)
        self.warnings += [sentence for file in self.files for sentence in file.progress]
        lost = []
        for sampled, raters in sorted(wanted.values(), key=lambda each: not index.has_same_row(each[0])):
            place = index.find(sampled)
            if place is None:
                lost.append(f"{sampled.name}: {index.why_not(sampled)}")
            else:
                self._by_case[place] = _CaseLabels(raters, sampled.stratum)
        names = ", ".join(file.name for file in self.files)
        if not self._by_case:
            raise TableError(first_of([f"{names}: none of the labelled cases is in the input", *lost]))
        if lost:
            self.warnings.append(f"{names}: labels of {len(lost)} of {len(wanted)} cases are not used:")
            self.warnings += first_of(lost)
        self._find_strata(index)

    def applied(self, result: CaseResult) -> CaseResult:
        """The result with what people said of its case."""
        found = self._by_case.get((result.case.row, result.case.bot))
        if not found:
            return result
        case = result.case
        raters = {**case.labels, **found.raters}
        human = {**case.human, **_CaseLabels(raters, "").consensus()}
        return replace(result, case=replace(case, human=human, labels=raters, stratum=found.stratum))

    def _find_strata(self, index: "_Index") -> None:
        known = {bot: strata for file in self.files for bot, strata in file.strata.items()}
        for bot, count in index.bots.items():
            if strata := known.get(hash_of(bot)):
                self.strata[bot] = strata.sizes if strata.cases == count else {}
                if strata.cases != count:
                    self.warnings.append(
                        f"{bot}: the labelled cases were drawn from {strata.cases:,} cases, and this run has "
                        f"{count:,}; its mean is not corrected. Create a review sheet from this run."
                    )


_Wanted = Mapping[tuple[str, str, str], tuple[_SampledCase, Mapping[str, Mapping[str, float]]]]
"""By fingerprint and place in the input: a sampled case, and its labels by rater."""


def _merged(files: Sequence[ReviewFile]) -> _Wanted:
    """The labels of all files together."""
    problems: list[str] = []
    merged: dict[tuple[str, str, str], tuple[_SampledCase, dict[str, dict[str, float]]]] = {}
    known: dict[tuple[str, ...], _GivenLabel] = {}
    names: dict[str, str] = {}
    for file in files:
        problems += _other_strata(files[0], file)
        for (rater, number, measure), answer in file.answers.items():
            case = file.cases[number]
            key = case.fingerprint.key, case.row, case.bot
            rater = names.setdefault(rater.casefold(), rater)
            earlier = known.setdefault((*key, rater, measure), answer)
            if earlier.value != answer.value:
                problems.append(_contradiction(rater, case.name, measure, earlier, answer))
            merged.setdefault(key, (case, {}))[1].setdefault(rater, {})[measure] = answer.value
            if case.stratum and not merged[key][0].stratum:
                merged[key] = case, merged[key][1]
    if problems:
        raise TableError(first_of(problems))
    return merged


def _other_strata(first: ReviewFile, file: ReviewFile) -> Iterator[str]:
    """Samples can be joined only if they were drawn from the same strata."""
    if any(
        set(first.strata[bot].sizes) != set(strata.sizes)
        for bot, strata in file.strata.items()
        if bot in first.strata
    ):
        yield (
            f"{file.name}: its cases were drawn from other groups than those of {first.name}; use review sheets of one "
            "run with the same --metrics, or give one of the files"
        )


class _Index:
    """Where in a run the sampled cases are."""

    def __init__(self, wanted: _Wanted) -> None:
        sampled = [case for case, _ in wanted.values()]
        self._keys = {case.fingerprint.key for case in sampled}
        self._queries = {case.fingerprint.query for case in sampled}
        self._rows = {(case.row, case.bot) for case in sampled}
        self._places: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._others: list[tuple[Case, Fingerprint]] = []
        self.bots: dict[str, int] = {}
        """How many cases each has."""

    def add(self, case: Case) -> None:
        self.bots[case.bot] = self.bots.get(case.bot, 0) + 1
        found = Fingerprint.of(case)
        if found.key in self._keys:
            self._places[found.key].append((case.row, case.bot))
        elif found.query in self._queries or (str(case.row), case.bot) in self._rows:
            self._others.append((replace(case, query="", response="", reference=None, chunks=None), found))

    def has_same_row(self, sampled: _SampledCase) -> bool:
        """Whether an equal case has the same row number; these find their places before the others do."""
        return any(str(row) == sampled.row for row, _ in self._places.get(sampled.fingerprint.key, ()))

    def find(self, sampled: _SampledCase) -> tuple[int, str] | None:
        """Its row and bot; of equal cases the one with the same row number, else the first that is not taken."""
        places = self._places.get(sampled.fingerprint.key)
        if not places:
            return None
        same = next((place for place in places if str(place[0]) == sampled.row), places[0])
        places.remove(same)
        return same

    def why_not(self, sampled: _SampledCase) -> str:
        """What became of a case that is not found, in words."""
        bot = [(case, found) for case, found in self._others if case.bot == sampled.bot]
        same_query = [each for each in bot if each[1].query == sampled.fingerprint.query]
        same_row = [each for each in bot if str(each[0].row) == sampled.row]
        both = [each for each in same_query if each in same_row]
        for case, found in (*both, *same_query, *same_row):
            place = "" if str(case.row) == sampled.row else f" (now in row {case.row})"
            return f"{sampled.fingerprint.changed(found)} after the review{place}; label the case again"
        return "the input has no such case"

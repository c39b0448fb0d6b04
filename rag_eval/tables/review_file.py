"""A workbook with cases for people to label: how it is laid out, and what they have written into it."""

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rag_eval.errors import TableError, first_of
from rag_eval.records import SCORE_LABELS, Case, CaseResult, PairVerdict
from rag_eval.tables.cells import BadCell, Cell, column_letter, parse_score, parse_verdict
from rag_eval.tables.input_files import Room, check_is_file
from rag_eval.tables.sheets import open_reader, open_sheet
from rag_eval.texts.display import shorten

FORMAT = "rag-eval-review/3"
"""Header of the first column of the sheet SAMPLE."""
SAMPLE, STRATA = "Sample", "Strata"
"""Hidden sheets: the cases that were drawn, and what they were drawn from."""
_INCLUSION = "Inclusion"
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
    _INCLUSION,
    "Labelled in",
    "Texts",
    "Checksum",
)
STRATA_COLUMNS = ("Bot", "Cases of the bot", "Stratum", "Measure", "Cases with a score", "Checksum")
_EARLIER_SAMPLES = (
    ("rag-eval-review/2", *SAMPLE_COLUMNS[1:-2]),
    ("rag-eval-review/1", *SAMPLE_COLUMNS[1:-3]),
)
LABEL_HEADER = "Your label"
KEY = "Key"
"""Header of the hidden column that says what a row of a rater's sheet is."""
RATER_KEY = "rater"
PART, TEXT, LABEL, COMMENT, KEYS = range(5)
"""Columns of a rater's sheet, counted from 0."""
STEPS = {"1 fully": 1.0, "0.75 mostly": 0.75, "0.5 half": 0.5, "0.25 a little": 0.25, "0 not at all": 0.0}
VERDICTS = {"yes": 1.0, "no": 0.0}
BETTER = "Better answer"
"""Measure of a pair: which of its two responses is better."""
PREFERENCES = {"first": 1.0, "same": 0.5, "second": 0.0}
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
        names = self.differing(now)
        if not names:
            return f"its row of the hidden sheet '{SAMPLE}' was changed"
        return f"the {' and the '.join(names)} {'was' if len(names) == 1 and names != ['chunks'] else 'were'} changed"

    def differing(self, now: "Fingerprint") -> list[str]:
        """Which parts are different now."""
        return [name for name, one, other in zip(_PARTS, self[1:], now[1:], strict=True) if one != other]


_IN_PAIR = "\0"
"""Between the names of two bots, and between their responses."""


def pair_name(one: str, other: str) -> str:
    """Of two bots, whichever of them comes first."""
    return group_of(f"{one}{_IN_PAIR}{other}")


def group_of(bot: str) -> str:
    """The bot of a case; of a pair both bots, the same in either order."""
    return _IN_PAIR.join(sorted(bot.split(_IN_PAIR)))


def bot_words(bot: str) -> str:
    """For readers: the bot, or both of a pair."""
    return " and ".join(bot.split(_IN_PAIR))


def case_of_pair(first: Case, second: Case) -> Case:
    """Two responses to a query as one case, which people compare. In the other order they are another case."""
    chunks = None if first.chunks is second.chunks is None else [*(first.chunks or ()), _IN_PAIR]
    return Case(
        first.row,
        f"{first.bot}{_IN_PAIR}{second.bot}",
        first.question,
        f"{first.response}{_IN_PAIR}{second.response}",
        first.reference,
        None if chunks is None else (*chunks, *(second.chunks or ())),
    )


def hash_of(text: str) -> str:
    # With a letter first, so that no program takes one for a number.
    return "h" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def checksum(rows: Iterable[Iterable[object]]) -> str:
    """Of cells that nobody may change, without the characters that programs save in different ways."""
    return hash_of("\n".join("\t".join(_UNSTABLE.sub("", str(cell)) for cell in row) for row in rows))


_UNSTABLE = re.compile(r"_x[0-9A-Fa-f]{4}_|[\s\x00-\x1f\ud800-\udfff\ufffd]")
"""Spaces, line breaks, and what XML cannot carry, as itself or in the format's own escapes."""


def choices(measure: str) -> Mapping[str, float]:
    """The labels that a sheet offers for a metric, or for a criterion, and what they are worth."""
    if measure == BETTER:
        return PREFERENCES
    return STEPS if measure in SCORE_LABELS else VERDICTS


class _Place(NamedTuple):
    file: str
    sheet: str
    """Empty for a text file."""
    row: int
    column: str = "ABCDE"[LABEL]

    def __str__(self) -> str:
        column = self.column if self.sheet else f"'{LABEL_HEADER}'"  # columns of a text may come in any order
        return f"{_named(self.file, self.sheet)}, row {self.row}, column {column}"


def _named(file: str, sheet: str) -> str:
    return f"{file}, sheet '{sheet}'" if sheet else file


@dataclass(frozen=True, slots=True)
class _SampledCase:
    """A row of the sheet SAMPLE."""

    row: str
    """Of the input, as the bot: for messages, and to tell equal cases apart."""
    bot: str
    fingerprint: Fingerprint
    stratum: str
    labelled_in: str
    """Name of the earlier sheet with the labels that this one does not ask for; empty if it asks for all."""
    texts: str = ""
    """Checksum of its rows in a rater's sheet; empty if it has none, or if the format has no checksums."""

    @property
    def name(self) -> str:
        if self.bot:
            return f"row {self.row}, {self.bot}"
        return f"the pair in row {self.row}" if self.row else f"the pair {self.fingerprint.key}"

    @property
    def key(self) -> "_Key":
        return self.fingerprint.key, self.row if self.bot else "", self.bot


_Key = tuple[str, str, str]
"""Fingerprint, row and bot: the same in all sheets of a run. Of a pair the fingerprint only."""


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
    questions: Mapping[tuple[str, str], bool]
    """By number of the case and measure: whether anybody answered, if only that they cannot say."""
    progress: Sequence[str]
    """A sentence for each sheet that has labels but not all, or on which people often cannot say."""

    @classmethod
    def read(cls, path: Path) -> "ReviewFile":
        """Raises TableError for what is not such a workbook, or has labels that cannot be understood: all of them."""
        check_is_file(path, TableError)
        if path.suffix.lower() in _TEXT:
            return cls._of_text(path)
        if path.suffix.lower() not in (".xlsx", ".xlsm"):
            raise TableError(
                f"{path.name}: labels are read from review sheets; name one that is saved as .xlsx, .csv or .tsv"
            )
        sheets = _sheets(path)
        if SAMPLE not in sheets or STRATA not in sheets:
            if any(_is_of_rater(islice(_rows(path, name), _FIRST_ROWS)) for name in sheets):
                raise TableError(
                    f"{path.name}: its hidden sheets '{SAMPLE}' and '{STRATA}' are missing; {_UNDO}"
                )
            raise TableError(f"{path.name}: is not a review sheet; create one with: rag-eval review RUN.json")
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
        strata = _read_strata(path)
        return cls(path.name, cases, strata, reading.answers, reading.questions, reading.progress)

    @classmethod
    def _of_text(cls, path: Path) -> "ReviewFile":
        """A rater's sheet of pairs that was saved as text: each key says which pair it is."""
        rows = list(_text_rows(path))
        cases = {}
        for _, cells in rows:
            number = str(cells[KEYS]).partition("/")[0]
            if found := _PAIR_NUMBER.fullmatch(number):
                fingerprint = Fingerprint(found["key"], "", "", "", "")
                cases[number] = _SampledCase("", "", fingerprint, found["stratum"] or "", "")
        reading = _RaterSheets(path.name, cases)
        reading.read("", iter(rows), path.stem)
        if reading.problems:
            raise TableError(first_of(reading.problems))
        return cls(path.name, cases, {}, reading.answers, reading.questions, reading.progress)

    @property
    def has_pairs(self) -> bool:
        """Whether it asks which of two responses is better."""
        return any(measure == BETTER for _, measure in self.questions)

    def has_strata_of(self, others: Mapping[str, Collection[str]]) -> bool:
        """Whether no bot was divided into other strata than there, by the hash of its name: samples of other strata
        cannot be joined."""
        return all(
            set(others.get(bot, of_bot.sizes)) == set(of_bot.sizes) for bot, of_bot in self.strata.items()
        )


_TEXT = (".csv", ".tsv")
_PAIR_NUMBER = re.compile(r"(?P<key>h[0-9a-f]{16})(?:\.(?P<stratum>s[0-9a-f]{12}))?")


def pair_number(key: str, stratum: str) -> str:
    """What a pair is called in its sheet: by it alone, the pair can be found in a run."""
    return f"{key}.{stratum}" if stratum else key


def _text_rows(path: Path) -> Iterator[tuple[int, list[Cell]]]:
    """As those of a rater's sheet, whatever the order of the columns. Raises TableError if one is missing."""
    with open_sheet(path) as opened:
        header: Sequence[Cell] = next(opened.rows, (0, ()))[1]
        names = [" ".join(str(cell).split()).casefold() for cell in header]
        lacking = [name for name in (LABEL_HEADER, KEY) if name.casefold() not in names]
        if lacking:
            raise TableError(
                f"{path.name}: has no column '{lacking[0]}'; save a rater's sheet as CSV with all its columns, the "
                "hidden one included, or give the .xlsx file"
            )
        label, key = (names.index(name.casefold()) for name in (LABEL_HEADER, KEY))
        yield 1, ["", "", LABEL_HEADER, "", KEY]
        for number, cells in opened.rows:
            row = [*cells, *[""] * (len(names) - len(cells))]
            if row[key] and not _is_key_of_pair(str(row[key])):
                raise TableError(
                    f"{path.name}, row {number}, column {column_letter(key)}: '{shorten(str(row[key]), 40)}' is not "
                    "the key of a pair; copy the keys from the review sheet, and give labels of single cases as .xlsx"
                )
            yield number, ["", "", row[label], "", row[key]]


def _is_key_of_pair(text: str) -> bool:
    number, _, measure = text.partition("/")
    return text == RATER_KEY or (measure == BETTER and bool(_PAIR_NUMBER.fullmatch(number)))


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


def _records(path: Path, sheet: str, *layouts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a hidden sheet below its header, as texts; '' for columns that only other layouts have. The first
    layout has a checksum in its last column. Raises TableError for what was changed."""
    rows = _rows(path, sheet)
    _, header = next(rows, (0, []))
    columns = next((each for each in layouts if tuple(map(str, header[: len(each)])) == tuple(each)), None)
    if columns is None:
        if header and _LATER_FORMAT.fullmatch(str(header[0])):
            raise TableError(
                f"{path.name}: a later version of RAG Eval wrote this review sheet ({header[0]}); update RAG Eval"
            )
        raise TableError(f"{path.name}, sheet '{sheet}': {_DAMAGED}")
    found = [(number, [str(cell) for cell in cells[: len(columns)]]) for number, cells in rows]
    for place, (number, texts) in enumerate(found, 1):
        if columns is layouts[0] and texts[-1] != row_checksum(columns, texts, place, len(found)):
            raise TableError(f"{path.name}, sheet '{sheet}', row {number}: {_DAMAGED}")
        yield number, [*texts, *[""] * (len(layouts[0]) - len(texts))]


def row_checksum(columns: Sequence[str], cells: Sequence[object], place: int, count: int) -> str:
    """Of a row of a hidden sheet, by its place among `count` rows. The share of cases that were drawn does not count:
    it is not read, and programs save it with different decimals."""
    kept = (cell for column, cell in zip(columns[:-1], cells, strict=False) if column != _INCLUSION)
    return checksum([(place, count, *kept)])


_UNDO = "undo the change, or copy the labels into the file as rag-eval review wrote it"
_DAMAGED = f"was changed; {_UNDO}"
_LATER_FORMAT = re.compile(r"rag-eval-review/(?![123]$)\d{1,9}")


def _read_sample(path: Path) -> dict[str, _SampledCase]:
    return {
        number: _SampledCase(row, bot, Fingerprint(*hashes), stratum, labelled_in, texts)
        for _, (number, row, bot, *hashes, stratum, _, labelled_in, texts, _) in _records(
            path, SAMPLE, SAMPLE_COLUMNS, *_EARLIER_SAMPLES
        )
    }


def _read_strata(path: Path) -> dict[str, _Strata]:
    sizes: defaultdict[str, defaultdict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    totals = {}
    for number, (bot, total, stratum, measure, count, _) in _records(
        path, STRATA, STRATA_COLUMNS, STRATA_COLUMNS[:-1]
    ):
        if not (total.isdecimal() and count.isdecimal()):
            raise TableError(f"{path.name}, sheet '{STRATA}', row {number}: {_DAMAGED}")
        totals[bot] = int(total)
        sizes[bot][stratum][measure] = int(count)
    return {bot: _Strata(totals[bot], of_bot) for bot, of_bot in sizes.items()}


class _RaterSheets:
    """What the sheets of one file say, gathered."""

    def __init__(self, file: str, cases: Mapping[str, _SampledCase]) -> None:
        self.answers: dict[tuple[str, str, str], _GivenLabel] = {}
        self.questions: dict[tuple[str, str], bool] = {}
        self.problems: list[str] = []
        self.progress: list[str] = []
        self.has_sheets = False
        self._rater = ""
        self._unclear = 0
        """Answers of the sheet that is read that they cannot say."""
        self._file = file
        self._cases = cases

    def read(self, sheet: str, rows: Iterator[tuple[int, list[Cell]]], rater: str = "") -> None:
        """A sheet without a column of keys is none of a rater's. `rater` is by default called like the sheet."""
        blank: list[Cell] = [""] * (KEYS + 1)
        _, header = next(rows, (0, blank))
        if str(header[KEYS]) != KEY:
            if _is_of_rater(chain([(1, header)], rows)):
                self.problems.append(
                    f"{_named(self._file, sheet)}: its columns or its first row were changed; {_UNDO}"
                )
            return
        self.has_sheets = True
        self._rater, self._unclear = rater or sheet, 0
        asked: defaultdict[str, list[bool]] = defaultdict(list)
        missing = {number: case for number, case in self._cases.items() if case.texts}
        for block in _blocks(rows):
            self._check_texts(sheet, block, missing)
            for number, cells in block:
                self._read_row(cells, _Place(self._file, sheet, number), asked)
        self.problems += [
            f"{_named(self._file, sheet)}: {case.name} is missing; {_UNDO}" for case in missing.values()
        ]
        self._count(sheet, asked.values())

    def _check_texts(self, sheet: str, block: "_Block", missing: dict[str, _SampledCase]) -> None:
        """Compare the rows of a case with their checksum, and take the case from the missing ones."""
        keys = [str(cells[KEYS]) for _, cells in block if cells[KEYS]]
        case = keys[0].partition("/")[0] if keys else ""
        missing.pop(case, None)
        wanted = self._cases[case].texts if case in self._cases else ""
        found = checksum((cells[PART], cells[TEXT], cells[KEYS]) for _, cells in block)
        if wanted and found != wanted:
            row = block[0][0]
            self.problems.append(
                f"{self._file}, sheet '{sheet}', row {row}: texts or questions of the case that begins here were "
                f"changed or moved; {_UNDO}"
            )

    def _read_row(self, cells: Sequence[Cell], place: _Place, asked: defaultdict[str, list[bool]]) -> None:
        key = str(cells[KEYS])
        case, _, measure = key.partition("/")
        if key == RATER_KEY:
            self._rater = str(cells[LABEL]).strip() or self._rater
        elif key and case not in self._cases:
            self.problems.append(f"{place}: its hidden key '{key}' matches no case of the file; {_UNDO}")
        elif measure:
            is_answered = self._read_label(self._rater, case, measure, cells[LABEL], place)
            asked[case].append(is_answered)
            self.questions[case, measure] = is_answered or self.questions.get((case, measure), False)

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
        if value is None:
            self._unclear += 1
        else:
            self._add((rater, case, measure), _GivenLabel(value, place))
        return True

    def _add(self, key: tuple[str, str, str], answer: _GivenLabel) -> None:
        earlier = self.answers.setdefault(key, answer)
        if earlier.value != answer.value:
            self.problems.append(_contradiction(key[0], self._cases[key[1]].name, key[2], earlier, answer))

    def _count(self, sheet: str, asked: Iterable[Sequence[bool]]) -> None:
        cases, is_of_pairs = list(asked), any(measure == BETTER for _, measure in self.questions)
        noun = "pairs" if is_of_pairs else "cases"
        complete, begun = sum(map(all, cases)), sum(any(each) and not all(each) for each in cases)
        if (complete or begun) and complete < len(cases):
            in_part = f", {begun} in part" if begun else ""
            self.progress.append(
                f"{_named(self._file, sheet)}: {complete} of {len(cases)} {noun} are labelled{in_part}; "
                "the rest counts as not labelled."
            )
        answers = sum(map(sum, cases))
        if self._unclear > max(1, _MOST_UNCLEAR * answers):
            self.progress.append(
                f"{_named(self._file, sheet)}: {self._unclear} of {answers} answers are '{CANNOT_SAY}'; if these "
                f"{_BIASED[noun]}. Ask another rater about them."
            )


_BIASED = {
    "cases": "cases are worse than the others, corrected means are too high",
    "pairs": "pairs are unlike the others, win rates are wrong",
}
_MOST_UNCLEAR = 0.05
"""Share of answers that nobody is warned of: it moves a mean by less than most intervals are wide."""


def _is_of_rater(rows: Iterable[tuple[int, list[Cell]]]) -> bool:
    """Whether some cells are the keys of a rater's sheet, wherever they stand."""
    texts = {cell for _, cells in rows for cell in cells if isinstance(cell, str) and _KEY.fullmatch(cell)}
    return RATER_KEY in texts and len(texts) > 1


_FIRST_ROWS = 200
_KEY = re.compile(rf"{RATER_KEY}|\S{{1,40}}/[\w-]{{2,100}}")

_Block = Sequence[tuple[int, list[Cell]]]
"""Rows of a rater's sheet that belong together, with their numbers: the texts of a case, then its questions."""


def _blocks(rows: Iterable[tuple[int, list[Cell]]]) -> Iterator[_Block]:
    """A case ends where a row without a key follows one with a key."""
    block: list[tuple[int, list[Cell]]] = []
    for number, cells in rows:
        if block and block[-1][1][KEYS] and not cells[KEYS]:
            yield block
            block = []
        if any(cells[column] for column in (PART, TEXT, KEYS)):
            block.append((number, cells))
    if block:
        yield block


def parse_label(text: str, measure: str) -> float | None:
    """A label of a sheet, 0..1; None for 'cannot say'. Numbers from 0 to 1 are labels too. ValueError for others."""
    word = " ".join(text.split()).casefold()
    if word == CANNOT_SAY:
        return None
    offered = choices(measure)
    if word in offered:
        return offered[word]
    if offered is PREFERENCES:
        return _parse_preference(text, word)
    if offered is VERDICTS:
        return parse_verdict(text)
    words = {label.partition(" ")[2]: value for label, value in offered.items()}
    return words[word] if word in words else parse_score(text)


def _parse_preference(text: str, word: str) -> float:
    for label, words in _OTHER_WORDS.items():
        if word.removesuffix(".0").rstrip(".!") in (label, *words.split()):
            return PREFERENCES[label]
    raise ValueError(f"{shorten(text, 60)!r} is not a label; expected first, same or second")


_OTHER_WORDS = {
    "first": "1 1st a left erste erster erstes première premier primera primero prima primo eerste",
    "same": "tie tied equal both neither draw none gleich unentschieden égal igual uguale gelijk",
    "second": "2 2nd b right zweite zweiter zweites deuxième seconde segunda segundo seconda secondo tweede",
}
"""What else people write. Not 0, which is "same" where others are 1 and 2, and "first" where the other is 1."""


def _contradiction(rater: str, case: str, measure: str, one: _GivenLabel, other: _GivenLabel) -> str:
    said = [_said(each.value, measure) for each in (other, one)]
    return (
        f"{other.place}: {rater} says {said[0]} for {SCORE_LABELS.get(measure, measure)} of {case}, but "
        f"{said[1]} in {one.place}; correct one of them, or give the sheets of two people different names"
    )


def _said(value: float, measure: str) -> str:
    words = {value: word for word, value in PREFERENCES.items()} if measure == BETTER else {}
    return words.get(value, f"{value:g}")


@dataclass(frozen=True, slots=True)
class _CaseLabels:
    """What people said of one case of the run."""

    raters: Mapping[str, Mapping[str, float]]
    stratum: str

    @classmethod
    def of(cls, raters: Mapping[str, Mapping[str, float]], strata: Mapping[str, str]) -> "_CaseLabels":
        """`strata` has, by measure, the stratum of a case in the random sample. Labels of other measures are left out
        then: they would be counted in it."""
        drawn = {measure for labels in raters.values() for measure in labels if measure in strata}
        if not drawn:
            return cls(raters, "")
        kept = {
            rater: {measure: value for measure, value in labels.items() if measure in drawn}
            for rater, labels in raters.items()
        }
        return cls({rater: labels for rater, labels in kept.items() if labels}, strata[min(drawn)])

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
    _changed_pairs: set[str] = field(default_factory=set)
    """Bots whose labelled pairs are no random sample of this run."""

    @property
    def has_pairs(self) -> bool:
        """Whether people compared responses."""
        return any(file.has_pairs for file in self.files)

    @property
    def has_cases(self) -> bool:
        """Whether people labelled responses one by one."""
        return not all(file.has_pairs for file in self.files)

    @classmethod
    def read(cls, paths: Sequence[Path]) -> "ReviewLabels":
        """Raises TableError for files that cannot be read, have no label, or contradict each other."""
        files = [ReviewFile.read(path) for path in paths]
        merged = _merged(files)
        if files and not any(merged.values()):
            names = ", ".join(file.name for file in files)
            raise TableError(f"{names}: no labels yet; choose labels in the blue cells and save the file")
        return cls(files)

    def join(self, cases: Iterable[Case], pairs: Iterable[tuple[Case, Case]] = ()) -> None:
        """Find the labelled cases among all cases of the run, and the labelled pairs among those that it compares.

        Raises TableError if there is none.
        """
        wanted = _merged(self.files)
        index = _Index([case for case, _ in wanted.values()])
        for case in cases:
            index.add(case)
        self._find_pairs(index, pairs)
        self.warnings += [sentence for file in self.files for sentence in file.progress]
        lost = []
        for sampled, place in index.places():
            if place is None:
                lost.append(f"{sampled.name}: {index.why_not(sampled)}")
            else:
                self._by_case[place] = wanted[sampled.key][1]
        names = ", ".join(file.name for file in self.files)
        what = "cases" if self.has_cases else "pairs"
        if not self._by_case:
            raise TableError(first_of([f"{names}: none of the labelled {what} is in the input", *lost]))
        if lost:
            self.warnings.append(f"{names}: labels of {len(lost)} of {len(wanted)} {what} are not used:")
            self.warnings += first_of(lost)
        self._find_strata(index)

    def drawn(self) -> Counter[str]:
        """By bot: labelled cases of the run that were drawn at random."""
        return Counter(bot for (_, bot), found in self._by_case.items() if found.stratum)

    def _find_pairs(self, index: "_Index", pairs: Iterable[tuple[Case, Case]]) -> None:
        """Add them in both orders: the sheet shows one of them."""
        if not self.has_pairs:
            return
        is_compared = False
        for one, other in pairs:
            index.add(case_of_pair(one, other))
            index.add(case_of_pair(other, one))
            is_compared = True
        if not is_compared:
            names = ", ".join(file.name for file in self.files if file.has_pairs)
            raise TableError(
                f"{names}: has labels of pairs, and this run compares none; add --head-to-head, or give the JSON of a "
                "run with --head-to-head as INPUT"
            )

    def applied(self, result: CaseResult) -> CaseResult:
        """The result with what people said of its case and of its pairs."""
        if self.has_pairs and result.pairs:
            result = replace(result, pairs=tuple(self._on_pair(result.case, each) for each in result.pairs))
        found = self._by_case.get((result.case.row, result.case.bot))
        if not found:
            return result
        case = result.case
        raters = {**case.labels, **found.raters}
        human = {**case.human, **_CaseLabels(raters, "").consensus()}
        return replace(result, case=replace(case, human=human, labels=raters, stratum=found.stratum))

    def _on_pair(self, case: Case, verdict: PairVerdict) -> PairVerdict:
        """The verdict with the labels of its pair, from the side of this case, in whichever order it was shown."""
        names = [case.bot, verdict.other]
        labels, is_drawn = {}, False
        for sign, order in ((1, names), (-1, names[::-1])):
            bots = _IN_PAIR.join(order)
            if found := self._by_case.get((case.row, bots)):
                for rater, said in found.raters.items():
                    labels[rater] = sign * (2 * said[BETTER] - 1)
                is_drawn |= bool(found.stratum) and pair_name(*names) not in self._changed_pairs
        if not labels:
            return verdict
        return replace(verdict, labels={**verdict.labels, **labels}, is_drawn=is_drawn)

    def _find_strata(self, index: "_Index") -> None:
        lacking = _lacking(self.files)
        for bot, count in index.bots.items():
            of_bot = [file.strata[hash_of(bot)] for file in self.files if hash_of(bot) in file.strata]
            if not of_bot:
                continue
            sizes: defaultdict[str, dict[str, int]] = defaultdict(dict)
            reason = lacking.get(hash_of(bot), "")
            for strata in of_bot:
                for stratum, counts in strata.sizes.items():
                    sizes[stratum].update(counts)
                if strata.cases != count:
                    what, lost = (
                        ("pairs", "their win rate is unknown")
                        if _IN_PAIR in bot
                        else ("cases", "its mean is not corrected")
                    )
                    reason = (
                        f"the labelled {what} were drawn from {strata.cases:,} {what}, and this run has {count:,}; "
                        f"{lost}. Give the JSON that the sheet was made from as INPUT with --report-only, or create a "
                        "review sheet from this run."
                    )
            if _IN_PAIR not in bot:
                self.strata[bot] = {} if reason else sizes
            elif reason:
                self._changed_pairs.add(bot)
            if reason:
                self.warnings.append(f"{bot_words(bot)}: {reason}")


_Wanted = Mapping[_Key, tuple[_SampledCase, _CaseLabels]]
"""The sampled cases that have labels."""


def _merged(files: Sequence[ReviewFile]) -> _Wanted:
    """The labels of all files together."""
    problems: list[str] = []
    cases: dict[_Key, _SampledCase] = {}
    said: defaultdict[_Key, dict[str, dict[str, float]]] = defaultdict(dict)
    known: dict[tuple[_Key, str, str], _GivenLabel] = {}
    names: dict[str, str] = {}
    for file in files:
        if not file.has_strata_of({bot: strata.sizes for bot, strata in files[0].strata.items()}):
            problems.append(
                f"{file.name}: its cases were drawn from other groups than those of {files[0].name}; use review sheets "
                "of one run with the same --metrics, or give one of the files"
            )
        for (rater, number, measure), answer in file.answers.items():
            case = file.cases[number]
            rater = names.setdefault(rater.casefold(), rater)
            earlier = known.setdefault((case.key, rater, measure), answer)
            if earlier.value != answer.value:
                problems.append(_contradiction(rater, case.name, measure, earlier, answer))
            cases.setdefault(case.key, case)
            said[case.key].setdefault(rater, {})[measure] = answer.value
    if problems:
        raise TableError(first_of(problems))
    strata = _sampled(files)
    return {key: (case, _CaseLabels.of(said[key], strata[key])) for key, case in cases.items()}


def _sampled(files: Sequence[ReviewFile]) -> defaultdict[_Key, dict[str, str]]:
    """By case and measure the stratum, if the case counts in the random sample: as far as its sheet was worked on.

    For a case with labels in an earlier sheet, the next question on the measure decides, or the last one. Otherwise,
    somebody who stops early would have labelled all of these suspicious cases, and only some of the others.
    """
    found: defaultdict[_Key, dict[str, str]] = defaultdict(dict)
    for file in files:
        for measure in dict.fromkeys(measure for _, measure in file.questions):
            counted: list[_SampledCase] = []
            waiting: list[_SampledCase] = []
            is_reached = False
            for number, case in file.cases.items():
                is_answered = file.questions.get((number, measure))
                if is_answered is not None or case.labelled_in:
                    waiting.append(case)
                if is_answered is not None:
                    is_reached = is_answered
                    counted += waiting if is_reached else ()
                    waiting = []
            counted += waiting if is_reached else ()
            for case in counted:
                if case.stratum:
                    found[case.key][measure] = case.stratum
    return found


def _answered(files: Iterable[ReviewFile]) -> set[tuple[_Key, str]]:
    """Cases and measures on which anybody answered."""
    return {
        (file.cases[number].key, measure)
        for file in files
        for (number, measure), is_answered in file.questions.items()
        if is_answered
    }


def _lacking(files: Sequence[ReviewFile]) -> Mapping[str, str]:
    """Why the mean of a bot is not corrected, by the hash of its name: labels are in a sheet that was not given."""
    answered = _answered(files)
    found: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for file in files:
        bots = {stratum: bot for bot, strata in file.strata.items() for stratum in strata.sizes}
        measures = {measure for _, measure in file.questions}
        for number, case in file.cases.items():
            elsewhere = {measure for measure in measures if (number, measure) not in file.questions}
            if case.labelled_in and not any((case.key, measure) in answered for measure in elsewhere):
                found[bots.get(case.stratum, ""), file.name].update(
                    dict.fromkeys(case.labelled_in.split(", "))
                )
    return {
        bot: f"its mean is not corrected, since labels of cases drawn for {name} are in {', '.join(sheets)}. Add "
        + " ".join(f"--labels {shlex.quote(sheet)}" for sheet in sheets)
        + "."
        for (bot, name), sheets in found.items()
    }


@dataclass(frozen=True, slots=True)
class EarlierSheets:
    """What earlier review sheets contain of the cases of a run, which are named by row and bot."""

    files: Sequence[ReviewFile] = ()
    drawn: frozenset[tuple[int, str]] = frozenset()
    """At random."""
    chosen: frozenset[tuple[int, str]] = frozenset()
    """As suspicious cases only."""
    _places: Mapping[_Key, tuple[int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Sequence[ReviewFile], cases: Iterable[Case]) -> "EarlierSheets":
        """`cases` are all of the run."""
        sampled = [case for file in files for case in file.cases.values()]
        index = _Index(sampled)
        for case in cases if files else ():
            index.add(case)
        places = {each.key: place for each, place in index.places() if place}
        drawn, chosen = set[tuple[int, str]](), set[tuple[int, str]]()
        for each in sampled:
            if each.key in places:
                (drawn if each.stratum else chosen).add(places[each.key])
        return cls(files, frozenset(drawn), frozenset(chosen - drawn), places)

    @property
    def strata(self) -> frozenset[str]:
        """Names of all their strata."""
        return frozenset(
            name for file in self.files for of_bot in file.strata.values() for name in of_bot.sizes
        )

    def joinable(self, strata: Mapping[str, Collection[str]]) -> list[ReviewFile]:
        """The sheets whose labels can be given together with those of a sheet with these strata, by bot."""
        wanted = {hash_of(bot): set(of_bot) for bot, of_bot in strata.items()}
        return [file for file in self.files if file.has_strata_of(wanted)]

    def answered(self, files: Iterable[ReviewFile]) -> Mapping[tuple[int, str], Mapping[str, str]]:
        """By suspicious case and measure: the name of the sheet in which anybody answered."""
        found: defaultdict[tuple[int, str], dict[str, str]] = defaultdict(dict)
        for file in files:
            for (number, measure), is_answered in file.questions.items():
                place = self._places.get(file.cases[number].key)
                if is_answered and place in self.chosen:
                    found[place].setdefault(measure, file.name)
        return found


class _Index:
    """Where in a run the sampled cases are."""

    def __init__(self, sampled: Sequence[_SampledCase]) -> None:
        self._sampled = {case.key: case for case in sampled}
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

    def places(self) -> Iterator[tuple[_SampledCase, tuple[int, str] | None]]:
        """Row and bot of each sampled case; of equal cases the one with the same row number, else the first that is
        not taken. Those with the same row number come first."""
        others = []
        for sampled in self._sampled.values():
            places = self._places.get(sampled.fingerprint.key, [])
            same = next((place for place in places if str(place[0]) == sampled.row), None)
            if same is None:
                others.append((sampled, places))
            else:
                places.remove(same)
                yield sampled, same
        for sampled, places in others:
            yield sampled, places.pop(0) if places else None

    def why_not(self, sampled: _SampledCase) -> str:
        """What became of a case that is not found, in words."""
        others = [
            (
                found.query == sampled.fingerprint.query,
                str(case.row) == sampled.row,
                -len(sampled.fingerprint.differing(found)),  # a pair is there in both orders
                case.row,
                found,
            )
            for case, found in self._others
            if (case.bot == sampled.bot if sampled.bot else _IN_PAIR in case.bot)
        ]
        nearest = max(others, key=lambda each: each[:3], default=None)
        if nearest is None or not any(nearest[:2]):
            return "the input has no such case" if sampled.bot else "this run compares no such pair"
        _, is_same_row, _, row, found = nearest
        place = "" if is_same_row else f" (now in row {row})"
        return f"{sampled.fingerprint.changed(found)} after the review{place}; label the case again"

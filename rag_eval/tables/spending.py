"""What a bot spends on a response, latency and cost: which columns have it, and the amounts in their cells.

A name is only a guess: a column that has something else than amounts has no role by it, and a warning says why. A role
that somebody gave to a column stays, and then every cell must be an amount.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from rag_eval.tables.cells import BadCell, Cell, Measured, error_value
from rag_eval.tables.names import (
    COST,
    CURRENCIES,
    DOLLAR,
    LATENCY,
    SMALL_MONEY,
    TIMES,
    TOKENS,
    Spending,
    folded,
    spendings_of,
    unit_named,
)
from rag_eval.tables.number_formats import PERCENT


class SpendingColumn(NamedTuple):
    """A column that has, or may have, the latency or the cost of a bot."""

    place: int
    header: str
    role: str
    """The one that was given; '' if only the name may give it one."""
    fault: str | None = ""
    """Why its cells are not amounts; '' if they are, and None if nothing is known of them, as of blank ones."""


class _Assigned(NamedTuple):
    """The use of a column, or why it has none."""

    role: str
    owner: str
    """Name of the bot; '' for a column of all responses."""
    unit: str = ""
    why: str = ""
    """Why it has no use; '' for one that has."""


_SEVERAL = "another column could be it as well"
_UNITS_DIFFER = "the columns of its kind have different units"
_NO_NAME, _NO_BOT, _ROW = "it names no bot", "no bot is called", "row "
_VAGUE = "it may be the duration of something else than the response"
DOUBTS = (_SEVERAL, _UNITS_DIFFER, _NO_NAME, _NO_BOT, _VAGUE, _ROW)
"""How reasons begin that are worth a warning."""
_Rank = tuple[bool, bool, int, int]
"""Whether it was given and has amounts, how much its name says, and whether it is a plain column: the lowest counts."""


def assigned(
    columns: Collection[SpendingColumn], bots: Mapping[str, str], units: Mapping[str, str], *, is_shared: bool
) -> dict[int, _Assigned]:
    """What each column with latency or cost is, by its position; columns that may well be something else are absent.

    `bots` are the names by their spellings, folded; `units` were given by role. `is_shared` says that a column without
    the name of a bot belongs to the response of its row. Of several columns whose names could give them one role, none
    has it, but money goes before tokens, a plain column before the field of a record, and all before a blank one.
    """
    found: dict[tuple[str, str], list[tuple[_Rank, SpendingColumn, _Assigned]]] = defaultdict(list)
    left_out: dict[int, _Assigned] = {}
    for column in columns:
        use, rank = _read(column, bots)
        if use is None or (is_shared and use.why):  # of a part of the bot, such as its retrieval
            continue
        use = use._replace(unit=units.get(use.role, use.unit))
        if use.why or (column.fault and not column.role):
            left_out[column.place] = use._replace(why=use.why or column.fault or "")
        elif use.owner or is_shared:
            found[use.role, use.owner].append(((not column.role, column.fault is None, *rank), column, use))
        elif column.role or column.fault is not None:
            left_out[column.place] = use._replace(why=f"{_NO_NAME}, as {use.role.capitalize()}_<bot> does")
    chosen = {place: use for candidates in found.values() for place, use in _chosen(candidates)}
    return {**left_out, **chosen}


def _chosen(candidates: Sequence[tuple[_Rank, SpendingColumn, _Assigned]]) -> Iterator[tuple[int, _Assigned]]:
    """Position and use of the columns that could have one role of one bot, or why they have none."""
    best = min(rank for rank, _, _ in candidates)
    first = [column for rank, column, _ in candidates if rank == best]
    for its_rank, column, use in candidates:
        why = ""
        if its_rank != best:
            why = f"'{first[0].header[:60]}' is the {use.role}"
        elif len(first) > 1 and not column.role:
            others = ", ".join(f"'{each.header[:60]}'" for each in first if each is not column)
            why = f"{_SEVERAL} ({others}); choose one with --map COLUMN={use.role}"
        elif not use.owner and _is_vague(its_rank, use):
            if column.fault is None:
                continue
            why = f"{_VAGUE}; if not, add --map COLUMN={use.role}"
        yield column.place, use._replace(why=why)


def _is_vague(rank: _Rank, use: _Assigned) -> bool:
    """Whether a name such as `duration` may speak of something that lasts for seconds or longer."""
    return rank[2] == _DURATION and TIMES.get(folded(use.unit), 1e3) > 1


def _read(column: SpendingColumn, bots: Mapping[str, str]) -> tuple[_Assigned | None, tuple[int, int]]:
    """The use that a name or somebody gives, with the rank of the name; None for no use."""
    readings = spendings_of(column.header)
    if column.role:
        readings = [each for each in readings if each.role == column.role]
        return _given(column, readings, bots), (0, 1)
    reading = next((each for each in readings if not each.owner or each.owner in bots), None)
    if reading is None:
        return _of_unknown_bot(column, readings), (0, 1)
    if not reading.owner and folded(reading.unit) in bots:  # as in Latency (Atlas)
        reading = reading._replace(owner=folded(reading.unit), unit="")
    return _Assigned(reading.role, bots.get(reading.owner, ""), reading.unit), reading.rank


def _of_unknown_bot(column: SpendingColumn, readings: Collection[Spending]) -> _Assigned | None:
    """The use of a column of amounts that a bot without a column has: `Cost_Center` may be about something else."""
    units = ((each, unit_named(each.role, each.unit)) for each in readings if not each.rank[0])
    sure = [each for each, unit in units if each.role == LATENCY or unit]
    if not sure or column.fault != "":
        return None
    return _Assigned(sure[-1].role, "", why=f"{_NO_BOT} '{sure[-1].owner[:60]}'")


def _given(column: SpendingColumn, readings: Collection[Spending], bots: Mapping[str, str]) -> _Assigned:
    """Of the bot that is the rest of a known name, or the longest one in any other."""
    for each in readings:
        if each.owner in bots:
            return _Assigned(column.role, bots[each.owner], each.unit)
    name = folded(column.header)
    owners = [bot for bot in bots if re.search(rf"(?<!\w){re.escape(bot)}(?!\w)", name)]
    unit = next((each.unit for each in readings if not each.owner), "")
    return _Assigned(column.role, bots[max(owners, key=len)] if owners else "", unit)


def differing_units(read: Mapping[str, "Amounts"], guessed: Collection[str]) -> Iterator[tuple[str, str]]:
    """The columns that cannot be used because their units differ, with the reason; to be asked after the last row.

    Those that somebody gave a role go before those with a name, and money before tokens. All `read` columns are of one
    role.
    """
    its = {letter: amounts for letter, amounts in read.items() if amounts.is_used}
    _know_currency(its.values())
    units = {amounts.base for amounts in its.values()}
    if len(units) < 2:
        return
    tokens = {letter for letter in its if its[letter].base in TOKENS and letter in guessed}
    if len(units) == 2 and tokens and len(tokens) < len(its):
        yield from ((letter, "the cost of another bot is in money") for letter in tokens)
        return
    shown = " and ".join(sorted(f"'{unit}'" if unit else "no unit" for unit in units))
    remedy = "name one unit in all headers, or in all cells" if "" in units else "convert them to one unit"
    agree = len({amounts.base for letter, amounts in its.items() if letter not in guessed}) < 2
    for letter in its:
        if letter in guessed or not agree:
            yield letter, f"{_UNITS_DIFFER} ({shown}); {remedy}"


def _know_currency(columns: Collection["Amounts"]) -> None:
    """Dollars and cents are those of the currency that another column of the role names, if only one is named.

    A column of zeros, as of a bot that is free, has the unit of the others: 0 is the same in any currency.
    """
    known = _only_currency({amounts.base for amounts in columns})
    for amounts in columns:
        if known in _DOLLARS and amounts.base == DOLLAR:
            amounts.base = known
        elif known and amounts.base in _CENTS:
            amounts.base = amounts.currency = known
    free = [amounts for amounts in columns if amounts.is_free]
    units = {amounts.base for amounts in columns if not amounts.is_free} or {
        max((each.base for each in free), default="")
    }
    for amounts in free:
        if len(units) == 1 and not (amounts.base and units & {*TOKENS}):
            (amounts.base,) = units


def _only_currency(units: Collection[str]) -> str:
    """The one of the units that is a currency, if there is one: dollars of a country go before DOLLAR."""
    known = {unit for unit in units if unit in CURRENCIES}
    known = known or {*units} & {DOLLAR}
    return known.pop() if len(known) == 1 else ""


_CENTS = frozenset(("cents", "ct"))
_DURATION = 2
"""Rank of names such as `duration`."""
_DOLLARS = frozenset(("USD", "CAD", "AUD", "NZD", "SGD", "HKD"))


def _base_of(role: str, unit: str) -> tuple[str, float]:
    """The unit of the values that are read from numbers in this one, and what these are multiplied with."""
    if role == LATENCY:
        return ("ms", TIMES[name]) if (name := folded(unit)) in TIMES else (unit, 1.0)
    currency, _, part = unit_named(role, unit).partition(" ")
    return (currency, SMALL_MONEY[part]) if part else (unit, 1.0)


def unit_of(role: str, unit: str) -> str:
    """The unit of the values that are read from a column with this one: times are in ms, parts of a currency in it."""
    return _base_of(role, unit)[0]


# --- Amounts in cells ---------------------------------------------------------------------------------------------

_SIGNS = "$€£¥₹₩¢₽₴₪฿₫₱₸₦₺"
_GAP = "'’\u00a0\u202f "
_POINT = re.compile(
    rf"\+?(?:[1-9]\d{{0,2}}(?:[,{_GAP}]\d{{3}})+(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{{3}}(?:\.\d+)?|\d+\.?\d*|\.\d+)"
    r"(?:e[+-]?\d{1,3})?",
    re.ASCII | re.IGNORECASE,
)
"""With thousands apart, or in Indian groups as in 1,00,000."""
_COMMA = re.compile(
    rf"\+?(?:[1-9]\d{{0,2}}(?:[.{_GAP}]\d{{3}})+|\d+)(?:,\d+)?(?:e[+-]?\d{{1,3}})?", re.ASCII | re.IGNORECASE
)
_AMOUNT = re.compile(
    rf"([-−]?)((?:US)?[{_SIGNS}]|[a-z]{{3}}(?=[\d\s.,+−-]))?\s*([-−]?)"
    rf"(\+?[.,]?\d[\d.,{_GAP}]*?(?:e[+-]?\d{{1,3}})?)\s*([^\W\d].*|[{_SIGNS}].*)?",
    re.IGNORECASE,
)
"""A number, with its unit before or behind it."""
_DURATIONS = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        r"(?:0 days )?(\d{1,3}):(\d\d):(\d\d(?:[.,]\d+)?)",
        r"()(\d{1,3}):(\d\d[.,]\d+)",
        r"PT(?:(\d+)H)?(?:(\d+)M)?(\d+(?:[.,]\d+)?)S",
        r"(?:(\d+)\s?h\s?)?(\d+)\s?m(?:in)?\s?(\d+(?:[.,]\d+)?)\s?s(?:ec)?",
    )
)
"""Hours, minutes and seconds. Two numbers with a colon between them may be of either kind."""
_LONGEST = 60
"""Characters of a cell that can be an amount."""
_TOO_LARGE = 1e15
_HUNDREDS = 3
"""Digits of a whole number next to which a point may separate thousands."""
_NO_VALUES = (
    "#N/A",
    "#NV",
    "#N/D",
    "#N/B",
    "#I/T",
    "#Н/Д",
    "#YOK",
    "#BRAK",
    "#HIÁNYZIK",
    "#SAKNAS!",
    "#PUUTTUU!",
)
"""What Excel shows for #N/A in English, German, Italian, Spanish, Portuguese, Dutch, Danish and other languages."""
_NONE = frozenset(
    (
        *map(str.casefold, _NO_VALUES), "nan", "null", "none", "nil", "-", "–", "—", "--", "?", "..", "...", "…",
        "missing", "unknown", "undefined", "not available", "not applicable", "not measured",
        "keine", "keine angabe", "unbekannt", "fehlt", "nicht verfügbar", "nicht vorhanden", "nicht gemessen",
        "entfällt", "(leer)", "(blank)",
        "aucun", "aucune", "inconnu", "inconnue", "manquant", "non disponible", "non renseigné", "sans objet",
        "ninguno", "desconocido", "sin datos", "no disponible", "no aplica", "nenhum", "desconhecido", "sem dados",
        "não disponível", "nessuno", "sconosciuto", "non disponibile", "non rilevato", "geen", "onbekend", "ontbreekt",
        "niet beschikbaar", "niet van toepassing", "なし", "不明", "無", "无", "未知", "缺失",
    )
)  # fmt: skip
_ABBREVIATIONS = frozenset(("na", "ka", "nv", "nb", "so", "nd", "nc", "nr", "sd", "np", "nvt"))
"""Letters of words for a missing value with points or strokes between them, as in k. A., s.o. and n/d."""
_BARE = frozenset(("na", "nd", "nvt"))
"""Those of them that are also written without."""
_FAILED = frozenset(
    (
        "timeout", "timed out", "time out", "time-out", "error", "err", "failed", "failure", "exception", "cancelled",
        "canceled", "aborted", "zeitüberschreitung", "fehler", "fehlgeschlagen", "abgebrochen", "échec", "erreur",
        "délai dépassé", "tiempo agotado", "fallo", "fallido", "erro", "falha", "errore", "fallito", "tempo scaduto",
        "fout", "mislukt", "タイムアウト", "エラー", "失敗", "超时", "错误", "失败",
    )
)  # fmt: skip
"""Words for a missing value that say that there was no response, which a mean then leaves out."""
_FREE = frozenset(
    (
        "free", "for free", "free of charge", "no cost", "no charge", "kostenlos", "kostenfrei", "gratis", "gratuit",
        "gratuite", "gratuito", "gratuita", "無料", "免费", "免費",
    )
)  # fmt: skip
"""Words for a cost of 0."""
_NO_VALUE_CELLS = frozenset(map(error_value, _NO_VALUES))


def _is_word_for_none(text: str) -> bool:
    """Whether a text says that a value is missing or was never there."""
    word = text.casefold()
    bare = re.sub(r"[./\s]", "", word)
    is_short = bare in _ABBREVIATIONS and (bare in _BARE or "." in word or "/" in word)
    return is_short or word in _NONE or word in _FAILED


class _Amount(NamedTuple):
    """What one cell says."""

    number: float | str
    """A text if the rest of the column decides what its comma or point means."""
    unit: str
    """'' for that of the column."""


def amount_in(cell: Cell, role: str) -> _Amount | None:
    """The amount in a cell that is not blank; None for a word such as N/A, or the error value #N/A.

    Raises ValueError with what is wrong with the cell, to be put after its name.
    """
    if isinstance(cell, BadCell):
        if cell in _NO_VALUE_CELLS:
            return None
        raise ValueError(cell.problem)
    bare = cell.strip()
    if _is_word_for_none(bare):
        return None
    if role == COST and bare.casefold() in _FREE:
        return _Amount(0.0, "")
    amount = _measured(cell, role) if isinstance(cell, Measured) else _written(bare, role)
    if amount is None:
        raise ValueError(f"{_quoted(bare)} is not a number; write one such as 1240 or 0.5, or clear the cell")
    read = [amount.number] if isinstance(amount.number, float) else _readings(amount.number.lstrip("-"))
    if min(read) < 0 or str(amount.number).startswith("-"):
        raise ValueError(f"{_quoted(bare)} is below 0; correct it or clear the cell")
    if max(read) >= _TOO_LARGE:
        raise ValueError(f"{_quoted(bare)} is too large; correct it or clear the cell")
    return amount


def _measured(cell: Measured, role: str) -> _Amount | None:
    """The amount of a cell that was a number or a duration in the file; a cost may be in any currency."""
    unit = cell.unit
    if unit and not unit_named(role, unit) and (role == LATENCY or unit == PERCENT or unit in TIMES):
        shown = "a percentage" if unit == PERCENT else f"a number of {unit}"
        raise ValueError(
            f"{_quoted(cell.strip())} is formatted as {shown}, which a {role} cannot be; correct the number format or "
            "clear the cell"
        )
    return _Amount(cell.number, unit) if isfinite(cell.number) else None


def _written(text: str, role: str) -> _Amount | None:
    """The amount that a text is, if it is one."""
    if len(text) > _LONGEST:
        return None
    for pattern in _DURATIONS if role == LATENCY else ():
        if parts := pattern.fullmatch(text):
            hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in parts.groups())
            if hours and ":" in text:
                raise ValueError(
                    f"{_quoted(text)} looks like a time of day; write seconds, as in 1.2s, or clear the cell"
                )
            return _Amount(1e3 * (3600 * hours + 60 * minutes + seconds), "ms")
    if (found := _AMOUNT.fullmatch(text)) is None:
        return None
    sign, before, sign_behind, number, after = (part or "" for part in found.groups())
    units = {unit_named(role, word) for word in (before, after) if word}
    if "" in units or len(units) > 1 or not _readings(number):
        return None
    return _Amount(f"{'-' if sign or sign_behind else ''}{number}", "".join(units))


def _readings(number: str) -> list[float]:
    """What a number is with a decimal point, and with a decimal comma."""
    return [each for each in (_with_point(number), _with_comma(number)) if each is not None]


def _with_point(text: str) -> float | None:
    return float(re.sub(f"[,{_GAP}]", "", text)) if _POINT.fullmatch(text) else None


def _with_comma(text: str) -> float | None:
    return float(re.sub(f"[.{_GAP}]", "", text).replace(",", ".")) if _COMMA.fullmatch(text) else None


class Amounts:
    """The cells of one column, amounts from 0 on. Only all of them together tell whether a comma is a decimal comma."""

    def __init__(self, role: str, unit: str, decimals: str = "") -> None:
        """`unit` is that of cells that name none, `decimals` the decimal separator if something else tells it."""
        self.role = role
        self.fault = ""
        """Why the column is not used."""
        self.base = ""
        """The unit of its values, known after `settle`."""
        self.currency = ""
        """Of cells in cents, known after `settle`; '' if nothing tells it."""
        self.has_values = False
        self._unit = unit
        self._point, self._comma = decimals != ",", decimals != "."
        self._has_comma = False
        self._with_hundreds: set[str] = set()
        """Units of whole numbers next to which a point may separate thousands."""
        self._differing: dict[str, tuple[int, str]] = {}
        """By unit, the first cell that is another number with each of them."""
        self._last: tuple[int, str] | None = None
        """The cell that decided between them."""
        self._first: dict[str, tuple[int, str]] = {}
        """By unit, the first cell that is not 0 with it."""
        self._zeros: dict[str, tuple[int, str]] = {}
        """The same for cells of 0, whose units count only if there are no others."""
        self._failed = 0
        self._words: dict[bool, tuple[int, str]] = {}
        """The first cell with a word for a missing value, and the first one that says that there was no response."""

    @property
    def decimals(self) -> str | None:
        """The decimal separator; '' if none of the cells tells it, and None if none needs it."""
        if self._point and self._comma:
            return "" if self._differing else None
        return "." if self._point else ","

    @property
    def is_used(self) -> bool:
        return self.has_values and not self.fault

    @property
    def is_free(self) -> bool:
        """All its values are 0, and not of tokens, which are perhaps not counted."""
        return self.has_values and not self._first and self.base not in TOKENS

    def add(self, row: int, cell: Cell) -> _Amount | None:
        """The amount of a cell that is not blank; None if it has a word for a missing value.

        Raises ValueError with what is wrong with it, to be put after its name.
        """
        amount, text = amount_in(cell, self.role), str(cell).strip()
        if amount is None:
            is_failed = text.casefold() in _FAILED
            self._failed += is_failed
            self._words.setdefault(is_failed, (row, text))
            return None
        if isinstance(amount.number, str):
            self._separate(row, amount.number, amount.unit, text)
        self.has_values = True
        read = [amount.number] if isinstance(amount.number, float) else _readings(amount.number)
        if any(read):
            self._first.setdefault(amount.unit, (row, text))
        elif amount.unit and not self._zeros:
            self._zeros[amount.unit] = row, text
        return amount

    def _separate(self, row: int, number: str, unit: str, text: str) -> None:
        point, comma = _with_point(number), _with_comma(number)
        if point and comma and point != comma and (unit or self._unit) in TOKENS:  # there are no parts of one
            point, comma = (point, None) if point > comma else (None, comma)
        self._has_comma |= "," in number
        if number.isdigit() and len(number) >= _HUNDREDS:
            self._with_hundreds.add(unit)
        was = self._point, self._comma
        now = self._point and point is not None, self._comma and comma is not None
        if not any(now):
            row_before, before = self._last or (row, text)
            raise ValueError(
                f"{_quoted(text)} has another decimal separator than {_quoted(before)} in row {row_before}; "
                "use one for all cells"
            )
        self._point, self._comma = now
        if now != was:
            self._last = row, text
        if point != comma and None not in (point, comma):
            self._differing.setdefault(unit, (row, number))

    def settle(self, *, has_commas: bool) -> tuple[int, str] | None:
        """The row, and what is wrong with its cell, that only the whole column tells; None if nothing is.

        Next to 980, 1.240 may well be 1240, and so it may next to a column that `has_commas` for decimals.
        """
        doubtful = (
            self._differing
            if self._has_comma or has_commas
            else {unit: cell for unit, cell in self._differing.items() if unit in self._with_hundreds}
        )
        if self._point and self._comma and doubtful:
            row, number = min(doubtful.values())
            thousands, fraction = _with_point(number), _with_comma(number)
            return (
                row,
                f"{_quoted(number)} could be {thousands:.12g} or {fraction:.12g}; write it as one of the two",
            )
        return self._settle_unit()

    def _settle_unit(self) -> tuple[int, str] | None:
        cells: dict[str, tuple[int, str]] = {}
        for unit, cell in (self._first or self._zeros).items():
            base, _ = _base_of(self.role, unit or self._unit)
            cells[base] = min(cell, cells.get(base, cell))
        if not cells:
            cells[unit_of(self.role, self._unit)] = 0, ""
        known, named = _only_currency(cells), _only_currency([unit_of(self.role, self._unit)])
        if not known or (known == DOLLAR and named in _DOLLARS):
            known = named
        for unit in [each for each in cells if each in _CENTS or each == DOLLAR]:
            if known in _DOLLARS or (known and unit in _CENTS):
                cell = cells.pop(unit)
                cells[known] = min(cell, cells.get(known, cell))
                self.currency = known
        (self.base, first), *others = sorted(cells.items(), key=lambda each: each[1])
        if not others:
            return None
        (other, (row, text)), *_ = others
        told = f"the unit {other}" if other else "no unit"
        before = f"the unit {self.base}" if self.base else "no unit"
        return (
            row,
            f"{_quoted(text)} has {told}, but {_quoted(first[1])} in row {first[0]} has {before}; use one in all "
            "cells, or name it in the header",
        )

    @property
    def unit(self) -> str:
        """That of the header, if the values are in it or converted from it, and else that of the values."""
        return self._unit if unit_of(self.role, self._unit) == self.base else self.base

    def missing(self) -> str:
        """Which word stands in the place of a number, if no cell has one; '' for a column that is blank."""
        if self.has_values or not self._words:
            return ""
        row, word = min(self._words.values())
        return f"{_ROW}{row}, {_quoted(word)}, and no other cell has a number"

    def remarks(self) -> Iterator[str]:
        """What a reader should know of its values, although they are used."""
        yield from self._contradiction()
        if not self._failed:
            return
        row, word = self._words[True]
        cells = "1 cell says" if self._failed == 1 else f"{self._failed:,} cells say"
        yield (
            f"{cells} that there was no response ({_quoted(word)} in row {row}); no figure counts it, so that means "
            "seem better than they are."
        )

    def _contradiction(self) -> Iterator[str]:
        """That the cells have another unit than the column was given, which may be the wrong one of the two."""
        named = unit_of(self.role, self._unit)
        is_vague = named in _CENTS or (named == DOLLAR and self.base in _DOLLARS)
        cells = [cell for unit, cell in self._first.items() if unit]
        if cells and unit_named(self.role, self._unit) and named != self.base and not is_vague:
            row, text = min(cells)
            yield (
                f"its unit is {named} by its name or [columns] {self.role}_unit, but the cells are in {self.base} "
                f"({_quoted(text)} in row {row}) and are read so; correct whichever is wrong."
            )

    def value(self, number: float | str, unit: str) -> float:
        """That of an amount that was added, in the unit `base`."""
        read = _with_point if self._point else _with_comma
        found = number if isinstance(number, float) else read(number) or 0.0
        unit = unit or self._unit
        return found * _base_of(self.role, f"{self.currency} cents" if unit in _CENTS else unit)[1]


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")

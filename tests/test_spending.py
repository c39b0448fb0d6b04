"""Latency and cost of the bots: which columns they are, what their cells say, and every figure against pandas."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import time, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Run, azure, read_sheet, with_json_and_page
from defusedxml import ElementTree
from fake_judge import FakeJudge, error
from files import BAD, CONTEXT, GOOD, HEADER, ods_row, open_document, write_table
from openpyxl import load_workbook
from report_cases import facts_of, plain_result, summary_of
from scipy import stats
from test_scoring import WEIGHTS, flat, result

from rag_eval import frames
from rag_eval.errors import InputError
from rag_eval.report.charts import Axis, NamedMark, sides_of_names
from rag_eval.report.page import sections
from rag_eval.results.findings import Findings, find
from rag_eval.results.gates import GateOn, evaluate, is_decided, parse_gates
from rag_eval.results.intervals import bootstrap_mean_interval, quantile_interval
from rag_eval.results.summary import Spent, Summarizer, Summary
from rag_eval.tables.columns import Named as NamedColumn
from rag_eval.tables.number_formats import shown_unit
from rag_eval.tables.spending import unit_of
from rag_eval.tables.table import Table, describe, read_table
from rag_eval.texts.display import amount

BOTS = ("Good", "Bad")
LATENCIES: Mapping[str, Sequence[float | None]] = {
    "Good": [1200, 900.5, None, 40, 2500, 1800, 77, 1300, 1250, 1100],
    "Bad": [300, 310, 280.25, 1, None, None, 350, 290, 305, 4000],
}
COSTS: Mapping[str, Sequence[float | None]] = {
    "Good": [0.004, 0.0052, 0.0041, None, 0.0049, 0.004, 0.0047, 0.0051, 0.0043, 0.0044],
    "Bad": [0.001, 0.0012, 0, 0.0009, 1e-05, 0.001, 0.0013, 0.0011, 0.0008, 0.001],
}


def lines(*, with_spending: bool = True) -> list[list[object]]:
    """A header and ten rows of two bots, with what their responses took."""
    extra = [f"Latency_{bot} (ms)" for bot in BOTS] + [f"Cost_{bot}_USD" for bot in BOTS]
    found: list[list[object]] = [[*HEADER, *(extra if with_spending else [])]]
    for n in range(10):
        texts = [
            f"What is the capital of France, question {n}?",
            GOOD,
            f"{GOOD} Says {n}.",
            f"{BAD} {n}.",
            CONTEXT,
        ]
        numbers = [LATENCIES[bot][n] for bot in BOTS] + [COSTS[bot][n] for bot in BOTS]
        found.append([*texts, *(numbers if with_spending else [])])
    return found


def spending(table: Table) -> list[dict[str, float]]:
    return [dict(case.spent) for row in table.rows for case in row.cases]


def roles(table: Table) -> dict[str, tuple[str, str | None, str]]:
    return {use.header: (use.role, use.bot, use.unit) for use in table.columns}


# --- Which columns they are ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "role", "unit", "value"),
    [
        ("Latency_Atlas", "latency", "", 2.5),
        ("latency atlas (ms)", "latency", "ms", 2.5),
        ("Atlas_Latency_s", "latency", "s", 2500.0),
        ("Latency_ms_Atlas", "latency", "ms", 2.5),
        ("Bot_Atlas_Latency [sec]", "latency", "sec", 2500.0),
        ("Bot_Atlas.latency_ms", "latency", "ms", 2.5),
        ("Response Time Atlas (μs)", "latency", "μs", 0.0025),
        ("Cost_Atlas", "cost", "", 2.5),
        ("Atlas total cost EUR", "cost", "EUR", 2.5),
        ("cost_usd_atlas", "cost", "USD", 2.5),
        ("Cost_Atlas (ct)", "cost", "ct", 2.5),
        ("Tokens_Atlas", "cost", "tokens", 2.5),
        ("Latency (Atlas)", "latency", "", 2.5),
        ("Atlas: latency", "latency", "", 2.5),
        ("Atlas: Cost [USD]", "cost", "USD", 2.5),
    ],
)
def test_a_column_of_one_bot_has_the_unit_of_its_name(
    tmp_path: Path, header: str, role: str, unit: str, value: float
) -> None:
    table = read_table(
        write_table(tmp_path / "in.xlsx", ["Query", "Bot_Atlas", "Bot_Birch", header], ["q", "a", "b", 2.5])
    )
    assert roles(table)[header] == (role, "Atlas", unit)
    assert spending(table) == [{role: pytest.approx(value)}, {}]
    assert f"  '{header}' (D) -> {role} of Atlas{f' in {unit}' if unit else ''}" in describe(table)


@pytest.mark.parametrize(
    ("header", "role", "unit"),
    [
        ("latency", "latency", ""),
        ("latencyMs", "latency", "ms"),
        ("latency_s", "latency", "s"),
        ("completion_time", "latency", ""),
        ("cost", "cost", ""),
        ("totalCost", "cost", ""),
        ("cost (USD)", "cost", "USD"),
        ("total_tokens", "cost", "tokens"),
        ("response.tokenUsage.total", "cost", "tokens"),
        ("usage.total_tokens", "cost", "tokens"),
    ],
)
@pytest.mark.parametrize("shape", ["one bot", "a row per bot"])
def test_next_to_one_column_of_responses_no_bot_needs_to_be_named(
    tmp_path: Path, header: str, role: str, unit: str, shape: str
) -> None:
    names = ["question", "answer", header] + (["model"] if shape == "a row per bot" else [])
    rows = (
        [["q", "a", 7, "A"], ["q", "b", 9, "B"]]
        if shape == "a row per bot"
        else [["q", "a", 7], ["r", "b", 9]]
    )
    table = read_table(write_table(tmp_path / "in.csv", names, *rows))
    assert roles(table)[header] == (role, None, unit)
    scale = 1000.0 if unit == "s" else 1.0
    assert spending(table) == [{role: 7 * scale}, {role: 9 * scale}]


def test_a_row_per_passage_has_the_numbers_of_its_response_once(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "in.csv",
        ["question", "answer", "passage", "latency_ms"],
        ["q", "a", "one", 7],
        ["q", "a", "two", ""],
        ["r", "b", "three", 9],
    )
    assert spending(read_table(path)) == [{"latency": 7.0}, {"latency": 9.0}]


@pytest.mark.parametrize(
    ("header", "cells", "warning"),
    [
        ("Cost", ["Prices", "Fees"], "row 2, 'Prices' is not a number"),
        ("Cost", ["1", "Fees"], "row 3, 'Fees' is not a number"),
        ("latency_ms", [-5, 7], "row 2, '-5' is below 0"),
        ("latency_ms", ["1.5", "2,5"], "row 3, '2,5' has another decimal separator than '1.5' in row 2"),
        ("latency_ms", ["1,240", "2,310"], "row 2, '1,240' could be 1240 or 1.24"),
        ("latency_ms", ["inf", 3], "row 2, 'inf' is not a number"),
        ("latency_ms", ["1e99", 3], "row 2, '1e99' is too large"),
        ("Cost_Center", [4711, 4712], ""),
        ("prompt_tokens", [5, 6], ""),
        ("usage.completion_tokens", [5, 6], ""),
        ("gradingResult.tokensUsed.total", [5, 6], ""),
        ("Cost", ["N/A", "-"], "row 2, 'N/A', and no other cell has a number"),
        ("Cost", ["", ""], ""),
        ("latency", ["00:00:02", "13:45:10"], "row 3, '13:45:10' looks like a time of day"),
        ("latency", ["1.2s", "900"], "row 3, '900' has no unit, but '1.2s' in row 2 has the unit ms"),
        (
            "cost",
            ["$0.02", "0.03 €"],
            "row 3, '0.03 €' has the unit EUR, but '$0.02' in row 2 has the unit $",
        ),
        ("cost", ["3", "12 apples"], "row 3, '12 apples' is not a number"),
        ("cost", ["0:00:02", "0:00:03"], "row 2, '0:00:02' is not a number"),
    ],
)
def test_a_guess_does_no_harm(tmp_path: Path, header: str, cells: list[object], warning: str) -> None:
    """The file is read as without the column; a warning says why one that was nearly it is not used."""
    rows = [["q", "a", cells[0]], ["r", "b", cells[1]]]
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", header], *rows)
    without = write_table(tmp_path / "without.csv", ["Query", "Bot_A"], *(row[:2] for row in rows))
    table = read_table(path)
    assert spending(table) == [{}, {}]
    assert roles(table)[header][0] == "not used"
    assert [row.cases for row in table.rows] == [row.cases for row in read_table(without).rows]
    found = [each for each in table.warnings if "was not used" in each]
    assert (len(found), warning in "".join(found)) == (int(bool(warning)), True)
    if warning:
        option = f"--map {header}=ignore" if " " not in header else f"--map '{header}=ignore'"
        assert found[0].endswith(f"To silence this, add {option}.")


def read_of(folder: Path, headers: Sequence[str], *rows: Sequence[object], separator: str = "") -> Table:
    """The table of two bots, A and B, with these further columns."""
    lines = [[f"q{n}", "a", "b", *cells] for n, cells in enumerate(rows)]
    names = ["Query", "Bot_A", "Bot_B", *headers]
    return read_table(write_table(folder / "in.csv", names, *lines, separator=separator))


@pytest.mark.parametrize(
    ("headers", "cells", "told"),
    [
        ("Cost_A EUR, Cost_B_USD", "1 2", "different units ('EUR' and 'USD')"),
        ("Latency_A, Latency_B_ms", "1 2", "different units ('ms' and no unit)"),
        ("Cost_A, Cost_A_USD", "1 2", "another column could be it as well"),
        ("Latency_C (ms)", "5", "and was not used: no bot is called 'c'."),
        ("Cost_C_USD", "5", "and was not used: no bot is called 'c'."),
        ("latency_ms", "5", "it names no bot, as Latency_<bot> does. To silence this, add --map latency_ms=ignore."),
        ("Cost_A, Cost_B", "5ct 0.25", "different units ('ct' and no unit)"),
        ("Cost_A (USD), Cost_B (USD)", "$0.02 CAD0.02", "different units ('CAD' and 'USD')"),
        ("Cost_A (USD), Cost_B (USD)", "0.02 CAD0.02", "different units ('CAD' and 'USD')"),
    ],
)  # fmt: skip
def test_columns_that_contradict_each_other_or_name_no_bot_are_not_used(
    tmp_path: Path, headers: str, cells: str, told: str
) -> None:
    table = read_of(tmp_path, headers.split(", "), cells.split())
    assert spending(table) == [{}, {}]
    assert [told in each for each in table.warnings] == [True] * len(headers.split(", "))


@pytest.mark.parametrize(
    ("headers", "cells", "units", "spent"),
    [
        ("Cost_A, Cost_B", "$0.5 0", "$ $", [{"cost": 0.5}, {"cost": 0}]),
        ("Cost_A, Cost_B", "$0.5 0.00", "$ $", [{"cost": 0.5}, {"cost": 0}]),
        ("Cost_A, Cost_B", "$0.5 free", "$ $", [{"cost": 0.5}, {"cost": 0}]),
        ("Cost_A, Cost_B_EUR", "$0.5 0", "$ $", [{"cost": 0.5}, {"cost": 0}]),
        ("Cost_A, Cost_B", "$0.5 0,0000€", "$ $", [{"cost": 0.5}, {"cost": 0}]),
        ("Cost_A_USD, Cost_B_EUR", "0 0", "USD USD", [{"cost": 0}, {"cost": 0}]),
        ("Cost_A, Cost_B", "5ct 0.25€", "EUR EUR", [{"cost": 0.05}, {"cost": 0.25}]),
        ("Cost_A, Cost_B", "5ct 0.25$", "$ $", [{"cost": 0.05}, {"cost": 0.25}]),
        ("Cost_A, Cost_B", "$0.25 0.5¢", "$ $", [{"cost": 0.25}, {"cost": 0.005}]),
        ("Cost_A, Cost_B_USD", "$0.5 0.25", "USD USD", [{"cost": 0.5}, {"cost": 0.25}]),
        ("Latency_A, Latency_B_ms", "1.5s 900", "ms ms", [{"latency": 1500.0}, {"latency": 900.0}]),
    ],
)
def test_a_unit_may_be_named_by_the_column_of_the_other_bot(
    tmp_path: Path, headers: str, cells: str, units: str, spent: list[dict[str, float]]
) -> None:
    table = read_of(tmp_path, headers.split(", "), cells.split())
    assert spending(table) == spent
    assert [use.unit for use in table.columns[3:]] == units.split()


def test_parts_of_a_cost_and_of_a_latency_are_no_bots(tmp_path: Path) -> None:
    """As LangSmith, Langfuse and OpenAI write them."""
    names = [
        "total_tokens",
        "prompt_tokens",
        "totalCost",
        "input_cost_usd",
        "retrieval_latency_ms",
        "latency",
    ]
    path = write_table(
        tmp_path / "in.csv", ["input", "output", *names], ["q", "a", 5, 6, "$0.02", 1, 7, "1.5s"]
    )
    table = read_table(path)
    assert spending(table) == [{"cost": 0.02, "latency": 1500.0}]
    assert table.warnings == ()


def test_money_goes_before_tokens_and_a_plain_column_before_a_field(tmp_path: Path) -> None:
    record = {
        "question": "q",
        "answer": "a",
        "cost": 0.5,
        "tokens": 900,
        "meta": {"cost": 3},
        "latencyMs": 12,
    }
    path = tmp_path / "in.jsonl"
    path.write_text(f"{json.dumps(record)}\n")
    assert spending(read_table(path)) == [{"latency": 12.0, "cost": 0.5}]


def test_a_bot_may_be_called_like_a_unit_or_a_quantity(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "in.csv",
        ["Query", "Bot_S", "Bot_Cost", "Latency_S", "Latency_Cost", "Cost_S"],
        ["q", "It is here.", "It is there.", 1, 2, 3],
    )
    assert spending(read_table(path)) == [{"latency": 1.0, "cost": 3.0}, {"latency": 2.0}]


def test_a_latency_called_like_a_response_makes_no_second_bot(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "in.csv", ["Query", "Bot_A", "Bot_A_Latency", "Cost"], ["q", "It is here.", 12, 3]
    )
    table = read_table(path)
    assert table.bots == ("A",)
    assert spending(table) == [{"latency": 12.0, "cost": 3.0}], "a column without a name is of the only bot"


def test_an_answer_that_is_a_number_stays_a_response(tmp_path: Path) -> None:
    """`Bot_Sum_Cost` is a bot unless there is a bot `Sum`."""
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Bot_Sum_Cost"], ["2+2?", "4", "5"])
    assert read_table(path).bots == ("A", "Sum_Cost")


WRITTEN: Sequence[tuple[str, Sequence[object], str, str, Sequence[float | None]]] = [
    # header, cells, role, unit, values
    ("Cost", ["$0.002", "$ 0.01", "$1,204.5"], "cost", "$", [0.002, 0.01, 1204.5]),
    ("Cost (USD)", ["$0.002", "US$0.01", "0.5", "USD 2", "3 usd"], "cost", "USD", [0.002, 0.01, 0.5, 2, 3]),
    ("Cost", ["$0.002", "0.01 USD"], "cost", "USD", [0.002, 0.01]),
    ("Cost", ["0,002 €", "1.234,5 €"], "cost", "EUR", [0.002, 1234.5]),
    ("cost (€)", ["0,5", "0,25 EUR"], "cost", "EUR", [0.5, 0.25]),
    ("Cost", ["CHF 2", "2.5 CHF"], "cost", "CHF", [2, 2.5]),
    ("cost_cents", ["1", "0.5"], "cost", "cents", [1, 0.5]),
    ("cost_usd_cents", ["1", "$0.02"], "cost", "USD cents", [0.01, 0.02]),
    ("cost_micro_usd", ["2100", "0"], "cost", "USD micro", [0.0021, 0]),
    ("Cost (microdollars)", ["2100", "1"], "cost", "$ micro", [0.0021, 1e-6]),
    ("cost_nano_usd", ["2100000", "1"], "cost", "USD nano", [0.0021, 1e-9]),
    ("cost_usd_nanos", ["2100000", "1"], "cost", "USD nanos", [0.0021, 1e-9]),
    ("tokens", ["850", "1,200 tokens", "1 token"], "cost", "tokens", [850, 1200, 1]),
    ("Cost_EUR", ["5 ct", "50 cent", "0,2"], "cost", "EUR", [0.05, 0.5, 0.2]),
    ("Cost", ["5 ct", "0,50 €", "2 Eurocent"], "cost", "EUR", [0.05, 0.5, 0.02]),
    ("Kosten (EUR ct)", ["5", "1 €"], "cost", "EUR ct", [0.05, 1]),
    ("cost_cents", ["5", "$0.02"], "cost", "$", [0.05, 0.02]),
    ("Cost", ["5¢", "$1", "2 USD"], "cost", "USD", [0.05, 1, 2]),
    ("Cost", ["5 ct", "7 ct"], "cost", "ct", [5, 7]),
    ("Cost", ["$0.5", "0", "0.00", "$1"], "cost", "$", [0.5, 0, 0, 1]),
    ("Cost_USD", ["0", "0"], "cost", "USD", [0, 0]),
    ("Cost", ["₽ 5", "7 RUB"], "cost", "RUB", [5, 7]),
    ("Cost (INR)", ["1,00,000", "12,34,567.5", "₹ 1,000"], "cost", "INR", [100_000, 1_234_567.5, 1000]),
    ("took_ms", ["12", "1,240.5"], "latency", "ms", [12, 1240.5]),
    ("elapsed", ["1.2s", "900 ms"], "latency", "ms", [1200, 900]),
    ("total_time", ["1.2", "2"], "latency", "", [1.2, 2]),
    ("time_to_answer (s)", ["1.2", "2"], "latency", "s", [1200, 2000]),
    ("duration_ms", ["1200", "2"], "latency", "ms", [1200, 2]),
    ("Dauer (ms)", ["1200", "2"], "latency", "ms", [1200, 2]),
    ("Kosten", ["1,5", "2"], "cost", "", [1.5, 2]),
    ("coût", ["1", "2"], "cost", "", [1, 2]),
    ("COUT_TOTAL_EUR", ["1", "2"], "cost", "EUR", [1, 2]),
    ("costs", ["5", "6"], "cost", "", [5, 6]),
    ("コスト", ["12円", "3 JPY"], "cost", "JPY", [12, 3]),
    ("processing_time_s", ["1", "2"], "latency", "s", [1000, 2000]),
    ("Latenz (ms)", ["1240", "1.240,5"], "latency", "ms", [1240, 1240.5]),
    ("Antwortzeit Sekunden", ["1,5", "2"], "latency", "sekunden", [1500, 2000]),
    ("temps de réponse", ["1 s", "900 ms"], "latency", "ms", [1000, 900]),
    ("response time (seconds)", ["1.5", "900ms", "2 s"], "latency", "seconds", [1500, 900, 2000]),
    ("latency", ["1.2s", "1240 ms", "2 min", "0.5 Sek"], "latency", "ms", [1200, 1240, 120_000, 500]),
    ("latency", ["1.240s", "980ms"], "latency", "ms", [1240, 980]),
    ("latency", ["00:00:02", "0:01:02.5", "0:02,25"], "latency", "ms", [2000, 62_500, 2250]),
    ("latency", ["0 days 00:00:01.240000", "PT1.5S", "1m 2.5s"], "latency", "ms", [1240, 1500, 62_500]),
    ("latency_s", ["00:00:02", "3"], "latency", "s", [2000, 3000]),
    (
        "latency",
        ["12", "N/A", "n/a", "NaN", "null", "-", "timeout", "Error"],
        "latency",
        "",
        [12, *[None] * 7],
    ),
    ("cost", ["None", "3", "#N/A", "–"], "cost", "", [None, 3, None, None]),
]


UNITS_OF_TIME = {
    1e-6: "ns",
    1e-3: "us μs",
    1: "ms msec msecs millis millisecond milliseconds Millisekunden millisecondes milisegundos millisecondi ミリ秒"
    " 毫秒",
    1000: "s sec secs second seconds Sek Sekunden secondes segundos secondi seconden 秒",
    60_000: "min mins minute minutes Minuten minutos minuti",
}


def test_units_of_time_in_many_languages_are_known(tmp_path: Path) -> None:
    units = {unit: factor for factor, names in UNITS_OF_TIME.items() for unit in names.split()}
    bots = [f"Bot_b{number}" for number in range(len(units))]
    header = ["Query", *bots, *(f"Latency_b{number} ({unit})" for number, unit in enumerate(units))]
    row = ["q", *["a"] * len(units), *[2.5] * len(units)]
    table = read_table(write_table(tmp_path / "in.csv", header, row))
    found = [each["latency"] for each in spending(table)]
    assert found == [pytest.approx(2.5 * factor) for factor in units.values()], table.warnings


@pytest.mark.parametrize(("header", "cells", "role", "unit", "values"), WRITTEN)
@pytest.mark.parametrize("shape", ["one row per query", "a row per bot"])
def test_amounts_have_units_and_words_as_people_write_them(
    tmp_path: Path,
    header: str,
    cells: Sequence[object],
    role: str,
    unit: str,
    values: Sequence[float | None],
    shape: str,
) -> None:
    is_long = shape == "a row per bot"
    names = ["question", "answer", header, *(["model"] if is_long else [])]
    rows = [[f"q{n}", "a", cell, *(["A"] if is_long else [])] for n, cell in enumerate(cells)]
    table = read_table(write_table(tmp_path / "in.csv", names, *rows))
    assert roles(table)[header] == (role, None, unit), table.warnings
    assert unit_of(role, unit) == {
        "USD cents": "USD",
        "USD micro": "USD",
        "$ micro": "$",
        "USD nano": "USD",
        "USD nanos": "USD",
        "EUR ct": "EUR",
    }.get(unit, "ms" if role == "latency" and unit else unit)
    found = [each.get(role) for each in spending(table)]
    assert found == [value if value is None else pytest.approx(value, rel=1e-12) for value in values]


def test_a_word_for_no_response_is_told_and_never_counted(run_cli: Run, tmp_path: Path) -> None:
    cells = ["100", "timeout", "200", "N/A", "failed"]
    rows = [[f"q{n}", "It is here.", cell] for n, cell in enumerate(cells)]
    write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Latency_A_ms"], *rows)
    ended = run_cli("in.csv", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json")
    assert ended.code == 0, ended.err
    (bot,) = json.loads((tmp_path / "r.json").read_text())["bots"]
    assert (bot["spent"]["latency"]["count"], bot["spent"]["latency"]["mean"]) == (2, 150.0)
    assert (
        "Column 'Latency_A_ms' (C): 2 cells say that there was no response ('timeout' in row 3); no figure counts it"
        in ended.err
    )


MISSING = (
    "#NV #N/D #N/A #N/B #I/T #Н/Д #YOK n/v n.v. N.V. k.A. k.A K.A. s.o. S/O n.d. N/D ND n.c. n/c s/d s.d. n.v.t. nvt "
    "n.b. unbekannt fehlt inconnu manquant desconocido nessuno onbekend (leer) 不明 未知 .. …"
).split()
MISSING += ["k. A.", "n. a.", "s. o.", "keine Angabe", "sans objet", "sin datos", "niet van toepassing"]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl"])
def test_words_for_a_missing_value_of_many_languages_lose_no_column(tmp_path: Path, suffix: str) -> None:
    """They are not 0, and the cells with numbers count, however few these are."""
    rows = [["q", "a", "b", 0.5, 900], *(["q", "a", "b", word, word] for word in MISSING)]
    path = write_table(
        tmp_path / f"in{suffix}", ["Query", "Bot_A", "Bot_B", "Kosten_A_EUR", "Latenz_B (ms)"], *rows
    )
    table = read_table(path)
    assert spending(table) == [{"cost": 0.5}, {"latency": 900}, *[{}] * (2 * len(MISSING))]
    assert not [each for each in table.warnings if "Kosten" in each or "Latenz" in each]


@pytest.mark.parametrize(
    "word", ["ka", "so", "n", ".", "/", "k.A.B.", "kA. 5", "#WERT!", "cheap", "1.2.", "n/5"]
)
def test_other_words_are_no_missing_values(tmp_path: Path, word: str) -> None:
    table = read_of(tmp_path, ["Cost_A"], [0.5], [word])
    assert f"row 3, '{word}' is not a number" in table.warnings[-1]


@pytest.mark.parametrize("word", ["Zeitüberschreitung", "Fehler", "erreur", "Time-out", "タイムアウト"])
def test_words_for_no_response_of_other_languages_are_told(tmp_path: Path, word: str) -> None:
    table = read_of(tmp_path, ["Latency_A_ms"], [100], [word])
    assert f"1 cell says that there was no response ('{word}' in row 3)" in table.warnings[-1]


@pytest.mark.parametrize("shown", ["#N/A", "#NV", "#N/D"])
def test_an_error_cell_for_a_missing_value_is_one_in_any_language(tmp_path: Path, shown: str) -> None:
    """LibreOffice stores the error as it shows it."""
    wrong = (
        f'<table:table-cell table:formula="of:=NA()" office:value-type="string" calcext:value-type="error">'
        f"<text:p>{shown}</text:p></table:table-cell>"
    )
    rows = open_document_cells(wrong, ods_number("float", "0.4", "0.4"))
    path = open_document(tmp_path / "in.ods", rows.replace("Cost_A", "Latency_A"))
    table = read_table(path, named=given("Latency_A"))
    assert spending(table) == [{}, {"cost": 0.4}]


def test_numbers_and_durations_of_a_workbook_are_exact(tmp_path: Path) -> None:
    """A number cell is never ambiguous, and the text of a duration has no milliseconds."""
    cells = [time(0, 0, 1, 240_000), timedelta(seconds=2.5), 0.00003]
    path = write_table(
        tmp_path / "in.xlsx",
        ["Query", "Bot_A", "Latency_A", "Cost_A"],
        ["q", "a", cells[0], 812.345],
        ["r", "a", cells[1], 980],
        ["s", "a", None, 1204],
    )
    assert spending(read_table(path)) == [
        {"latency": pytest.approx(1240), "cost": 812.345},
        {"latency": pytest.approx(2500), "cost": 980},
        {"cost": 1204},
    ]


@pytest.mark.parametrize("shape", ["one row per query", "a row per bot"])
@pytest.mark.parametrize("cost", ["cheap", "1,240", ""])
def test_tokens_take_the_place_of_a_cost_that_cannot_be_read(tmp_path: Path, cost: str, shape: str) -> None:
    """Even if only a late row shows that it cannot."""
    names = ["question", "answer", "cost", "tokens", *(["model"] if shape == "a row per bot" else [])]
    rows = [[f"q{n}", "a", "2,310" if cost == "1,240" else "", n, "A"][: len(names)] for n in range(70)]
    rows[65][2] = cost
    if cost == "cheap":
        for row in rows[:50]:
            row[2] = "0.5"
    table = read_table(write_table(tmp_path / "in.csv", names, *rows))
    assert spending(table) == [{"cost": float(n)} for n in range(70)]
    assert roles(table)["tokens"] == ("cost", None, "tokens")
    told = [each for each in table.warnings if each.startswith("Column 'cost' (C)")]
    problem = {"cheap": "row 67, 'cheap' is not a number", "1,240": "row 2, '2,310' could be 2310 or 2.31"}
    assert len(told) == (cost in problem)
    assert problem.get(cost, "") in "".join(told)


@pytest.mark.parametrize(
    ("cells", "amounts", "unit"),
    [
        (["0 €", "$0.02"], [0, 0.02], "$"),
        (["$0.02", "0.00 €"], [0.02, 0], "$"),
        (["0 €", "$0"], [0, 0], "EUR"),
        (["free", "Kostenlos"], [0, 0], ""),
        (["0 €", "gratis"], [0, 0], "EUR"),
        (["free", "$0.02"], [0, 0.02], "$"),
    ],
)
def test_zero_is_no_contradiction_to_another_currency_of_its_column(
    tmp_path: Path, cells: list[str], amounts: list[float], unit: str
) -> None:
    rows = [[f"q{number}", "a", cell] for number, cell in enumerate(cells)]
    table = read_table(write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Cost_A"], *rows))
    assert (spending(table), table.columns[2].unit) == ([{"cost": amount} for amount in amounts], unit)
    assert table.warnings == ()


def test_tokens_that_are_all_0_were_perhaps_not_counted_and_are_no_cost(tmp_path: Path) -> None:
    table = read_of(tmp_path, ["Cost_A", "tokens_B"], ["$0.5", "0"])
    assert spending(table) == [{"cost": 0.5}, {}]
    assert "the cost of another bot is in money" in table.warnings[0]


@pytest.mark.parametrize(
    ("header", "cell", "told"),
    [
        (
            "Cost_A_EUR",
            "$0.02",
            "its unit is EUR by its name or [columns] cost_unit, but the cells are in $ (",
        ),
        (
            "Cost_A_tokens",
            "0.02 EUR",
            "its unit is tokens by its name or [columns] cost_unit, but the cells are",
        ),
        ("Cost_A_USD", "$0.02", ""),
        ("Cost_A ($)", "USD 0.02", ""),
        ("Cost_A (USD cents)", "$0.02", ""),
        ("Cost_A_EUR", "$0", ""),
        ("Cost_A (per call)", "$0.02", ""),
        ("Latency_A_ms", "2 s", ""),
    ],
)
def test_a_header_and_cells_that_name_different_units_are_told(
    tmp_path: Path, header: str, cell: str, told: str
) -> None:
    """The cells count, as ever, but one of the two is wrong, and only people know which."""
    rows = [[f"q{number}", "a", each] for number, each in enumerate((cell, "", cell))]
    table = read_table(write_table(tmp_path / "in.csv", ["Query", "Bot_A", header], *rows))
    assert [len(spent) for spent in spending(table)] == [1, 0, 1]
    if told:
        (warning,) = table.warnings
        assert told in warning
        assert f"('{cell}' in row 2)" in warning
    else:
        assert table.warnings == ()


def test_of_cells_in_other_units_than_their_header_the_first_is_quoted(tmp_path: Path) -> None:
    rows = [[f"q{number}", "a", cell] for number, cell in enumerate(("", "USD 0.02", "3 ct", "$0.01"))]
    (warning,) = read_table(
        write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Cost_A_EUR"], *rows)
    ).warnings
    assert "the cells are in USD ('USD 0.02' in row 3)" in warning


@pytest.mark.parametrize(
    ("headers", "used", "told"),
    [
        (["Duration_A", "Duration_B (s)"], {}, "different units ('ms' and no unit)"),
        (["Duration_A", "Duration_B"], {"Duration_A", "Duration_B"}, ""),
        (["A took (s)", "B_duration_ms"], {"A took (s)", "B_duration_ms"}, ""),
        (["Latency_A", "Duration_A"], {"Latency_A"}, ""),
        (["Latency_A", "elapsed_A"], {"Latency_A"}, ""),
        (["elapsed_A", "Duration_A"], {"elapsed_A"}, ""),
        (["elapsed_A", "took_A"], {}, "another column could be it as well ('took_A')"),
        (["elapsed", "x"], {}, "it names no bot"),
        (["duration", "x"], {}, "it names no bot"),
        (["Call duration", "Total time budget"], {}, ""),
    ],
)
def test_further_names_of_a_latency_take_no_other_place(
    tmp_path: Path, headers: Sequence[str], used: set[str], told: str
) -> None:
    table = read_of(tmp_path, headers, [1, 2], [1, 2])
    assert {use.header for use in table.columns if use.role == "latency"} == {*used}
    assert (told in "".join(table.warnings)) if told else not table.warnings


@pytest.mark.parametrize("header", ["duration", "Duration (s)", "durée", "meta.duration"])
def test_a_duration_that_may_be_of_something_else_is_pointed_out(
    run_cli: Run, tmp_path: Path, header: str
) -> None:
    path = write_table(
        tmp_path / "in.csv", ["question", "answer", header], ["q?", "It is.", 90], ["r?", "No.", 2]
    )
    ended = run_cli(path, "--show", "--judge", "offline", "--bot-name", "A")
    assert ended.code == 0
    assert (
        f"Column '{header}' (C) looks like a latency or a cost and was not used: it may be the duration of something "
        "else than the response; if not, add --map COLUMN=latency." in ended.err
    )
    ended = run_cli(path, "--show", "--judge", "offline", "--bot-name", "A", "--map", f"{header}=latency")
    assert ("latency: 90" in ended.out or "latency: 90,000 ms" in ended.out, ended.err) == (True, "")


@pytest.mark.parametrize(
    ("cells", "separator", "told"),
    [
        (["2,000", "1,500"], ";", "'2,000' could be 2000 or 2; write it as one of the two"),
        (["2,000", "0,500"], ";", ""),
        (["2,000", "1,5"], ";", ""),
        (["1.240", "980", "2.105"], "", "'1.240' could be 1.24 or 1240"),
        (["1.240", "0.98", "2.105"], "", ""),
    ],
)
def test_what_may_separate_thousands_or_decimals_is_not_guessed(
    tmp_path: Path, cells: Sequence[str], separator: str, told: str
) -> None:
    """2,000 is 2 to some and 2000 to others, also to those who separate columns by semicolons."""
    table = read_of(tmp_path, ["Cost_A", "note"], *([cell, "x"] for cell in cells), separator=separator)
    assert told in "".join(table.warnings)
    exact = float(cells[0].replace(",", "."))
    assert spending(table)[0] == ({} if told else {"cost": exact})


@pytest.mark.parametrize(
    ("headers", "formats", "units"),
    [
        (["Cost_A (USD)", "Cost_B (CAD)"], ['"$"#,##0.0000', '"$"#,##0.0000'], "CAD USD"),
        (["Cost_A (USD)", "Cost_B (CAD)"], ["General", '"$"#,##0.0000'], "CAD USD"),
        (["Cost_A (USD)", "Cost_B (CAD)"], ["General", "General"], "CAD USD"),
        (["Cost_A (USD)", "Cost_B"], ['"$"#,##0.0000', '"CAD" 0.00'], "CAD USD"),
        (["Cost_A (USD)", "Cost_B (USD)"], ['"$"#,##0.0000', "#,##0.00 [$CAD]"], "CAD USD"),
        (["Cost_A (USD)", "Cost_B (USD)"], ["[$$-1009]#,##0.00", '"$"#,##0.0000'], "CAD USD"),
        (["Cost_A (CAD)", "Cost_B"], ['"$"#,##0.0000', "$0.00"], "CAD"),
        (["Cost_A (AUD)", "Cost_B (AUD)"], ['"$"#,##0.0000', "General"], "AUD"),
        (["Cost_A (EUR)", "Cost_B (USD)"], ['"$"#,##0.0000', "General"], "USD"),
    ],
)
def test_a_dollar_is_first_that_of_its_own_header(
    tmp_path: Path, headers: list[str], formats: list[str], units: str
) -> None:
    """Another column says its country only if the header does not, so that no two currencies are compared."""
    table = read_table(write_formatted(tmp_path / "in.xlsx", headers, [formats] * 2))
    used = [use.unit for use in table.columns[3:] if use.role == "cost"]
    if " " in units:
        one, other = units.split()
        assert used == []
        assert f"different units ('{one}' and '{other}')" in "".join(table.warnings)
    else:
        assert used == [units] * 2, table.warnings


FORMATS = [
    # number format, unit, multiple
    ("$0.0000", "$", 1),
    ('"$"#,##0.00_);[Red]("$"#,##0.00)', "$", 1),
    ('#,##0.00 "€"', "EUR", 1),
    ("[$€-407] 0.00", "EUR", 1),
    ("#,##0.00\\ [$€-40C];[RED]\\-#,##0.00\\ [$€-40C]", "EUR", 1),
    ('_-* #,##0.00\\ "€"_-;\\-* #,##0.00\\ "€"_-;_-* "-"??\\ "€"_-;_-@_-', "EUR", 1),
    ("[$USD] 0.00", "USD", 1),
    ("[$$-409]#,##0.00", "USD", 1),
    ("[$$-1009]#,##0.00", "CAD", 1),
    ('"US"$0.00', "USD", 1),
    ('$ 0.00 "USD"', "USD", 1),
    ('_ "CHF"\\ * #,##0.00_ ', "CHF", 1),
    ("[$¥-411]#,##0", "JPY", 1),
    ("[$￥-804]#,##0.00", "CNY", 1),
    ("#,##0.00 [$kr-41D]", "SEK", 1),
    ("#,##0.00 [$kr]", "kr", 1),
    ("[$₽-419] 0", "RUB", 1),
    ('0.00 "₽"', "RUB", 1),
    ("[$₾-437]0", "₾", 1),
    ('[=0]"free";[$€-407]0.00', "EUR", 1),
    ('[>=100000]"₹"##\\,##\\,##0.00;"₹"##,##0.00', "INR", 1),
    ('[<1]0.0;0.0 "€"', "EUR", 1),
    ('0.00;-0.00 "€"', "", 1),
    ('$0.0,"K"', "$", 1),
    ('0.00 "€ cent"', "EUR cent", 0.01),
    ('0 "tokens"', "tokens", 1),
    ("#,##0 _€;-#,##0 _€", "", 1),
    ("[$-409]0.00", "", 1),
    ('"about "0.00', "", 1),
    ("0.00E+00", "", 1),
    ("# ?/?", "", 1),
    ("General", "", 1),
    ("@", "", 1),
]


def write_formatted(
    path: Path, header: Sequence[str], formats: Sequence[Sequence[str]], value: float = 0.5
) -> Path:
    """Rows of as many formats for the columns behind those of the two bots, in a workbook of the path's type."""
    rows = [[f"q{n}?", "Yes.", "No.", *[value] * len(each)] for n, each in enumerate(formats)]
    names = ["Query", "Bot_A", "Bot_B", *header]
    if path.suffix == ".xls":
        xlwt = pytest.importorskip("xlwt")
        book = xlwt.Workbook(encoding="utf-8")
        sheet = book.add_sheet("S")
        for number, row in enumerate([names, *rows]):
            for place, cell in enumerate(row):
                code = formats[number - 1][place - 3] if number and place > 2 else "General"
                sheet.write(number, place, cell, xlwt.easyxf(num_format_str=code))
        book.save(str(path))
        return path
    write_table(path, names, *rows)
    book = load_workbook(path)
    for number, each in enumerate(formats, 2):
        for place, code in enumerate(each, 4):
            book.active.cell(number, place).number_format = code
    book.save(path)
    return path


@pytest.mark.parametrize(("code", "unit", "multiple"), FORMATS)
@pytest.mark.parametrize("suffix", [".xlsx", ".xls"])
def test_a_number_has_the_unit_that_its_format_shows(
    tmp_path: Path, code: str, unit: str, multiple: float, suffix: str
) -> None:
    table = read_table(write_formatted(tmp_path / f"in{suffix}", ["Cost_A"], [[code]] * 2))
    assert roles(table)["Cost_A"] == ("cost", "A", unit_of("cost", unit)), table.warnings
    assert spending(table) == [{"cost": pytest.approx(0.5 * multiple)}, {}] * 2


def test_a_format_whose_sections_all_have_conditions_may_have_no_unit() -> None:
    assert (shown_unit("[>9]0;[<0]-0"), shown_unit('[>9]0;[<0]0" s"')) == ("", "s")


@pytest.mark.parametrize(
    ("formats", "value", "unit", "latencies"),
    [
        (['0.0," s"', '0.0," s"'], 1240, "", [1240, 1240]),
        (['[>=1000]0.0," s";0" ms"'], 1240, "ms", [1240]),
        (['0.0" s"', '0" ms"'], 0.5, "ms", [500, 0.5]),
    ],
)
def test_a_format_in_thousands_does_not_say_the_unit_of_a_time(
    tmp_path: Path, formats: list[str], value: float, unit: str, latencies: list[float]
) -> None:
    """1240 is shown as 1.2 s, so it is in milliseconds."""
    table = read_table(
        write_formatted(tmp_path / "in.xlsx", ["Latency_A"], [[each] for each in formats], value)
    )
    assert spending(table)[::2] == [{"latency": latency} for latency in latencies]
    assert roles(table)["Latency_A"][2] == unit


def open_document_cells(*cells: str) -> str:
    """Rows of an .ods file with a cost for each of two bots, as LibreOffice writes them."""
    begin = ods_row("q", "Yes.", "No.").removesuffix("</table:table-row>")
    return (
        ods_row("Query", "Bot_A", "Bot_B", "Cost_A", "Cost_B") + f"{begin}{''.join(cells)}</table:table-row>"
    )


def ods_number(kind: str, value: str, shown: str, currency: str = "") -> str:
    named = f' office:currency="{currency}"' if currency else ""
    return (
        f'<table:table-cell office:value-type="{kind}"{named} office:value="{value}"><text:p>{shown}</text:p>'
        "</table:table-cell>"
    )


@pytest.mark.parametrize(
    ("first", "second", "units"),
    [
        (
            ods_number("currency", "0.5", "0,50 €", "EUR"),
            ods_number("currency", "0.4", "$0.40", "USD"),
            "EUR USD",
        ),
        (ods_number("currency", "0.5", "$0.5000"), ods_number("float", "0.4", "0.40 €"), "$ EUR"),
        (ods_number("float", "1234.5", "1.234,50 €"), ods_number("float", "0.4", "0.4"), "EUR -"),
        (ods_number("currency", "0.5", "0,50 kr", "SEK"), ods_number("float", "0.4", "€0.40"), "SEK EUR"),
        (ods_number("float", "0.5", "0.5"), ods_number("float", "12000", "12,000"), ""),
        (ods_number("currency", "0.5", "0,50 €", "EUR"), ods_number("float", "0.4", "0.40 €"), ""),
    ],
)
def test_an_open_document_file_has_the_units_that_it_shows(
    tmp_path: Path, first: str, second: str, units: str
) -> None:
    table = read_table(open_document(tmp_path / "in.ods", open_document_cells(first, second)))
    assert len(table.warnings) == (2 if units else 0)
    for unit in units.split():
        assert (f"'{unit}'" if unit != "-" else "no unit") in table.warnings[0]


def test_times_of_an_open_document_file_have_the_unit_that_is_shown(tmp_path: Path) -> None:
    """Unless the number is shown in thousands: 1240 as 1.2 s."""
    cells = ods_number("float", "1.24", "1,2 s"), ods_number("float", "1240", "1,240 ms")
    rows = open_document_cells(*cells).replace("Cost", "Latency")
    assert spending(read_table(open_document(tmp_path / "in.ods", rows))) == [{"latency": 1240}] * 2
    scaled = open_document_cells(*[ods_number("float", "1240", "1.2 s")] * 2).replace("Cost", "Latency")
    table = read_table(open_document(tmp_path / "in.ods", scaled))
    assert (spending(table), roles(table)["Latency_A"][2]) == ([{"latency": 1240}] * 2, "")


@pytest.mark.parametrize("suffix", [".xlsx", ".xls"])
@pytest.mark.parametrize(
    ("formats", "told"),
    [
        ([["$0.00", '0.00 "€"']] * 3, "the columns of its kind have different units ('$' and 'EUR')"),
        ([["[$€-407] 0.00", "0.00"]] * 3, "the columns of its kind have different units ('EUR' and no unit)"),
        (
            [["$0.00", "$0.00"], ["[$€-407] 0.00", "$0.00"]],
            "row 3, '0.5' has the unit EUR, but '0.5' in row 2 has the unit $",
        ),
        ([["0.0%", "0.0"]] * 2, "row 2, '0.5' is formatted as a percentage, which a cost cannot be"),
        ([['0.0" ms"', "0.0"]] * 2, "row 2, '0.5' is formatted as a number of ms, which a cost cannot be"),
    ],
)
def test_costs_that_are_shown_in_different_currencies_are_not_compared(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, formats: Sequence[Sequence[str]], told: str, suffix: str
) -> None:
    path = write_formatted(tmp_path / f"in{suffix}", ["Cost_A", "Cost_B"], formats)
    ended = run_cli(path, "--judge", "offline", "--show")
    assert ended.code == 0
    assert f"Column 'Cost_A' (D) looks like a latency or a cost and was not used: {told}" in ended.err
    ended = run_cli(path, "--map", "Cost_*=cost", "--judge", "azure", **azure(judge))
    problem = told.partition(", ")[2] if told.startswith("row ") else told
    assert (ended.code, problem in ended.err, judge.requests) == (2, True, [])


@pytest.mark.parametrize("code", ["0%", "0.0%", "$0.00"])
def test_a_latency_is_no_percentage_and_no_money(tmp_path: Path, code: str) -> None:
    table = read_table(write_formatted(tmp_path / "in.xlsx", ["Latency_A"], [[code]] * 2))
    shown = "a number of $" if code == "$0.00" else "a percentage"
    assert f"row 2, '0.5' is formatted as {shown}, which a latency cannot be" in table.warnings[0]


def test_formats_of_currencies_change_no_text(tmp_path: Path) -> None:
    """A response or a context that is a number stays as it is."""
    path = write_table(tmp_path / "in.xlsx", ["Query", "Bot_A", "Context"], [1, 0.25, 3], [4, 5, 6])
    plain = [case for row in read_table(path).rows for case in row.cases]
    book = load_workbook(path)
    for row in book.active.iter_rows(min_row=2):
        for cell, code in zip(row, ('0 "€"', '0.0" ms"', "$0.00"), strict=True):
            cell.number_format = code
    book.save(path)
    assert [case for row in read_table(path).rows for case in row.cases] == plain
    assert [case.response for case in plain] == ["0.25", "5"]


@pytest.mark.parametrize("suffix", [".xlsx", ".xls"])
@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.25, "25%"),
        (0.255, "25.5%"),
        (0.07, "7%"),
        (-0.035, "-3.5%"),
        (1.5, "150%"),
        (0, "0%"),
        (12, "1200%"),
    ],
)
def test_a_share_with_a_percent_format_is_read_as_it_is_seen(
    tmp_path: Path, share: float, shown: str, suffix: str
) -> None:
    columns = ["Reference", "Context", "Note"]
    path = write_formatted(tmp_path / f"in{suffix}", columns, [["0%", "0.0%", "0%"]], share)
    first, _ = read_table(path, keep=["Note"]).rows[0].cases
    assert (first.reference, first.chunks) == (shown, (shown,))
    assert [*first.columns.values()] == [str(share)]  # a column of other values


def test_a_label_with_a_percent_format_stays_a_number(tmp_path: Path) -> None:
    path = write_formatted(tmp_path / "in.xlsx", ["Human_Faithfulness"], [["0%"]])
    assert [case.human for case in read_table(path).rows[0].cases] == [{"faithfulness": 0.5}] * 2


def test_a_share_of_an_open_document_file_is_read_as_it_is_seen(tmp_path: Path) -> None:
    cells = open_document_cells(
        ods_number("percentage", "0.255", "26%"), ods_number("float", "0.255", "0.255")
    )
    rows = cells.replace("Cost_A", "Reference").replace("Cost_B", "Context")
    first, _ = read_table(open_document(tmp_path / "in.ods", rows)).rows[0].cases
    assert (first.reference, first.chunks) == ("25.5%", ("0.255",))


def test_passages_of_several_rows_are_read_as_they_are_seen(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "in.xlsx",
        ["Query", "Bot", "Response", "Context"],
        ["q", "A", "25%", 0.25],
        ["q", "A", "25%", time(13, 30)],
    )
    book = load_workbook(path)
    book.active["D2"].number_format = "0%"
    book.save(path)
    assert [case.chunks for row in read_table(path).rows for case in row.cases] == [("25%", "13:30")]


# --- Given roles --------------------------------------------------------------------------------------------------


def given(*columns: str, role: str = "latency") -> list[NamedColumn]:
    return [NamedColumn(column, role, f"--map {column}={role}") for column in columns]


def test_a_given_role_needs_no_known_name_and_may_have_a_given_unit(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "in.csv",
        ["Query", "Bot_A", "Bot_B", "Dauer_A", "B: Dauer ms"],
        ["q", "a", "b", "1,5", "2"],
    )
    table = read_table(path, named=given("*Dauer*"), units={"latency": "s"})
    assert spending(table) == [{"latency": 1500.0}, {"latency": 2000.0}]


@pytest.mark.parametrize("suffix", [".xlsx", ".csv", ".jsonl"])
def test_a_cell_that_is_no_number_is_an_error_with_its_place(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, suffix: str
) -> None:
    path = write_table(
        tmp_path / f"in{suffix}",
        ["Query", "Bot_A", "Bot_B", "Latency_A", "Cost_B"],
        ["q", "a", "b", 12, 3],
        ["r", "a", "b", "slow", -4],
    )
    ended = run_cli(
        path, "--map", "Latency_A=latency", "--map", "Cost_B=cost", "--judge", "azure", **azure(judge)
    )
    place, row = (
        ("in.xlsx, sheet 'Sheet'", 3) if suffix == ".xlsx" else (f"in{suffix}", 3 - (suffix == ".jsonl"))
    )
    assert ended.code == 2
    assert (
        f"{place}, row {row}, column 'Latency_A' (D): 'slow' is not a number; write one such as 1240 or 0.5, or clear "
        "the cell" in ended.err
    )
    assert (
        f"{place}, row {row}, column 'Cost_B' (E): '-4' is below 0; correct it or clear the cell" in ended.err
    )
    assert judge.requests == []


@pytest.mark.parametrize(
    ("headers", "columns", "problem"),
    [
        (
            ("Dauer", "x"),
            ("Dauer",),
            "column 'Dauer' cannot be the latency that it was given: it names no bot",
        ),
        (
            ("Dauer_A", "Zeit_A"),
            ("Dauer_A", "Zeit_A"),
            "could each be the latency of bot 'A'; rename or remove all",
        ),
        (("latency_A_ms", "Latency_B"), ("latency_*",), "different units ('ms' and no unit)"),
        (("Dauer_A", "x"), ("Dauer_A", "Zeit_*"), "'Zeit_*' is not a column"),
    ],
)
def test_a_given_role_that_cannot_be_is_an_error(
    tmp_path: Path, headers: tuple[str, str], columns: tuple[str, ...], problem: str
) -> None:
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Bot_B", *headers], ["q", "a", "b", 1, 2])
    with pytest.raises(InputError) as caught:
        read_table(path, named=given(*columns))
    assert problem in str(caught.value)


def test_roles_and_units_of_the_configuration(run_cli: Run, tmp_path: Path) -> None:
    write_table(
        tmp_path / "in.csv",
        ["Query", "Bot_A", "Bot_B", "Zeit_A", "Zeit_B", "Preis_B"],
        ["q", "a", "b", 1, 2, 3],
    )
    (tmp_path / "config.ini").write_text(
        "[columns]\nlatency = Zeit_*\nlatency_unit = s\ncost = Preis_B\ncost_unit = EUR\n"
    )
    ended = run_cli("in.csv", "--show", "--judge", "offline")
    assert ended.code == 0, ended.err
    assert "  A\n    response: a\n    context: no column\n    latency: 1,000 ms\n" in ended.out
    assert "    latency: 2,000 ms\n    cost: 3 EUR\n" in ended.out


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (("1240", "0.5", "1e-05", "+3", ".5", "7."), (1240, 0.5, 1e-05, 3, 0.5, 7)),
        (("1,5", "0,25", "1.240,5"), (1.5, 0.25, 1240.5)),
        (("1,240.5", "12,000", "1'000"), (1240.5, 12000, 1000)),
        (("0,500", "1,240"), (0.5, 1.24)),
        (("1.234", "2.5"), (1.234, 2.5)),
        (("1 240", "1\u202f240,5"), (1240, 1240.5)),
        (("1.234", "5"), (1.234, 5)),
        ((" 5 ", "", "6"), (5, None, 6)),
    ],
)
def test_numbers_are_read_as_people_and_programs_write_them(
    tmp_path: Path, texts: tuple[str, ...], values: tuple[float | None, ...]
) -> None:
    path = write_table(tmp_path / "in.csv", ["Query", "Bot_A", "Cost"], *(["q", "a", text] for text in texts))
    found = [each.get("cost") for each in spending(read_table(path, named=given("Cost", role="cost")))]
    assert found == [value if value is None else pytest.approx(value) for value in values]


# --- Figures ------------------------------------------------------------------------------------------------------


def expected(name: str, bot: str) -> dict[str, float]:
    values = pd.Series({"latency": LATENCIES, "cost": COSTS}[name][bot], dtype=float)
    return {
        "count": int(values.count()),
        "mean": values.mean(),
        "total": values.sum(),
        "median": values.median(),
        "p95": values.quantile(0.95),
    }


def long_lines() -> list[list[object]]:
    """The same cases, one row for each."""
    found: list[list[object]] = [
        ["question", "ground_truth", "answer", "model", "context", "latencyMs", "cost (USD)"]
    ]
    for n, line in enumerate(lines()[1:]):
        for place, bot in enumerate(BOTS):
            found.append([line[0], line[1], line[2 + place], bot, line[4], LATENCIES[bot][n], COSTS[bot][n]])
    return found


def comma_lines() -> list[list[object]]:
    def comma(value: object) -> object:
        return str(value).replace(".", ",") if isinstance(value, float) and value != 1e-05 else value

    head, *rows = lines()
    return [
        head,
        *([*row[:5], *("0,00001" if cell == 1e-05 else comma(cell) for cell in row[5:])] for row in rows),
    ]


FORMS = {
    "in.xlsx": lines,
    "in.jsonl": lines,
    "comma.csv": comma_lines,
    "long.csv": long_lines,
    "long.json": long_lines,
}


def write_form(folder: Path, name: str) -> Path:
    return write_table(folder / name, *FORMS[name](), separator=";" if name == "comma.csv" else "")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_figure_is_what_pandas_makes_of_the_input(run_cli: Run, tmp_path: Path, name: str) -> None:
    path = write_form(tmp_path, name)
    ended = run_cli(path, "-o", "r.xlsx", "--judge", "offline", "--json", "r.json", "--csv", "csv")
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["run"]["spent_units"] == {"latency": "ms", "cost": "USD"}
    check_figures(document)
    rows = {row["Bot"]: row for row in read_sheet(tmp_path / "r.xlsx", "Bot Summary")}
    csv = pd.read_csv(tmp_path / "csv" / "bot-summary.csv", encoding="utf-8-sig").set_index("Bot")
    for bot in BOTS:
        latency, cost = expected("latency", bot), expected("cost", bot)
        shown = {
            "Median Latency (ms)": latency["median"],
            "P95 Latency (ms)": latency["p95"],
            "Mean Cost (USD)": cost["mean"],
            "Total Cost (USD)": cost["total"],
        }
        for header, value in shown.items():
            assert rows[bot][header] == pytest.approx(value, rel=1e-12), header
            assert csv.loc[bot, header] == pytest.approx(value, rel=1e-12), header
            assert csv.loc[bot, f"{header} Scored"] == (latency if "Latency" in header else cost)["count"]
    cases = read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")
    for bot in BOTS:
        its = [case for case in cases if case["Bot"] == bot]
        assert [case["Latency (ms)"] for case in its] == list(LATENCIES[bot])
        assert [case["Cost (USD)"] for case in its] == list(COSTS[bot])


def check_figures(document: Mapping[str, Any]) -> None:
    for bot in document["bots"]:
        for name in ("latency", "cost"):
            assert bot["spent"][name] == pytest.approx(expected(name, bot["bot"]), rel=1e-12), (
                bot["bot"],
                name,
            )


def test_the_difference_to_the_best_bot_is_over_the_queries_of_both(run_cli: Run, tmp_path: Path) -> None:
    write_form(tmp_path, "in.xlsx")
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json")
    found = {each["name"]: each for each in json.loads((tmp_path / "r.json").read_text())["spent"]}
    for name, table in (("latency", LATENCIES), ("cost", COSTS)):
        both = pd.DataFrame(table, dtype=float).dropna()
        its = found[name]
        assert (its["bot"], its["queries"]) == ("Bad", len(both))
        assert (its["mean"], its["of_winner"]) == pytest.approx((both["Bad"].mean(), both["Good"].mean()))
        assert its["difference"] == pytest.approx((both["Bad"] - both["Good"]).mean())
        assert its["interval"][0] < its["difference"] < its["interval"][1]
    # Bad is cheaper for every query; whether it is faster hangs on one slow response.
    assert [found[name]["is_significant"] for name in ("latency", "cost")] == [False, True]
    assert found["latency"]["interval"][1] >= 0 > found["cost"]["interval"][1]
    row = {row["Bot"]: row for row in read_sheet(tmp_path / "r.xlsx", "Bot Summary")}
    assert row["Good"]["Cost vs Winner"] is None
    assert [row["Bad"][f"Cost vs Winner{end}"] for end in ("", " 95 % low", " 95 % high")] == pytest.approx(
        [found["cost"]["difference"], *found["cost"]["interval"]]
    )


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
@pytest.mark.parametrize("how", ["shards", "several files", "processes", "report again"])
def test_the_figures_do_not_depend_on_how_the_run_is_made(rag_eval: Run, tmp_path: Path, how: str) -> None:
    run = with_json_and_page(rag_eval)
    head, *rows = lines()
    if how == "several files":
        names = ["1.csv", "2.csv"]
        for name, part in zip(names, (rows[:4], rows[4:]), strict=True):
            write_table(tmp_path / name, head, *part)
        assert run(*names, "-o", "out", "--judge", "offline").code == 0
    else:
        write_table(tmp_path / "in.xlsx", head, *rows)
        command = ["in.xlsx", "--judge", "offline"]
        command += (
            ["-o", "out", "--shard-rows", 3] if how == "shards" else ["-o", "r.xlsx", "--json", "r.json"]
        )
        command += ["--processes", 2] if how == "processes" else []
        assert run(*command).code == 0
    if how == "report again":
        assert rag_eval("r.json", "--report-only", "-o", "again.xlsx", "--json", "again.json").code == 0
        assert read_sheet(tmp_path / "again.xlsx", "Bot Summary") == read_sheet(
            tmp_path / "r.xlsx", "Bot Summary"
        )
    place = {"shards": "out/report.json", "several files": "out/report.json", "report again": "again.json"}
    check_figures(json.loads((tmp_path / place.get(how, "r.json")).read_text()))


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_files_of_a_run_have_one_unit(rag_eval: Run, tmp_path: Path) -> None:
    for number, unit in enumerate(("USD", "EUR")):
        write_table(tmp_path / f"{number}.csv", ["Query", "Bot_A", f"Cost_A_{unit}"], [f"q{number}", "a", 1])
    ended = rag_eval("0.csv", "1.csv", "-o", "out", "--judge", "offline")
    assert ended.code == 2
    assert (
        "1.csv: has the cost in EUR, but 0.csv has it in USD; convert the amounts of one file, or delete its column "
        "'Cost_A_EUR' (C)" in ended.err
    )
    write_table(tmp_path / "1.csv", ["Query", "Bot_A", "Cost_A"], ["q1", "a", 1])
    ended = rag_eval("0.csv", "1.csv", "-o", "out", "--judge", "offline")
    assert (
        "without a unit, but 0.csv has it in USD; name the unit in both headers, or in [columns] cost_unit"
        in ended.err
    )
    (tmp_path / "unit.ini").write_text("[columns]\ncost_unit = USD\n")
    ended = rag_eval("0.csv", "1.csv", "-o", "out", "--judge", "offline", "--config", "unit.ini")
    assert (ended.code, "without a unit" in ended.err) == (0, False)


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
@pytest.mark.parametrize("how", ["shards", "files", "files, the first one last", "processes"])
def test_the_whole_run_decides_what_a_comma_is(rag_eval: Run, tmp_path: Path, how: str) -> None:
    """In a first part, 1,234 could be anything; the figures are those of one file that is read as a whole."""
    head = ["Query", "Bot_A", "Latency_A (ms)", "Cost_A_EUR"]
    cells = [("1,234", "1.240"), ("2,345", "980"), ("0,5", "1.240,5"), ("7,25", "3")]
    rows = [[f"q{n}", "It is red.", *pair] for n, pair in enumerate(cells)]
    write_table(tmp_path / "in.csv", head, *rows, separator=";")
    assert rag_eval("in.csv", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json").code == 0
    if how == "shards":
        command = ["in.csv", "-o", "out", "--shard-rows", 2]
    elif how == "processes":
        command = ["in.csv", "-o", "p.xlsx", "--processes", 2, "--json", "p.json"]
    else:
        for name, part in (("1.csv", rows[:2]), ("2.csv", rows[2:])):
            write_table(tmp_path / name, head, *part, separator=";")
        names = ["1.csv", "2.csv"] if how == "files" else ["2.csv", "1.csv"]
        command = [*names, "-o", "out"]
    assert with_json_and_page(rag_eval)(*command, "--judge", "offline").code == 0
    direct = json.loads((tmp_path / "r.json").read_text())
    other = json.loads((tmp_path / ("p.json" if how == "processes" else "out/report.json")).read_text())
    (one,), (two,) = direct["bots"], other["bots"]
    assert one["spent"]["latency"]["total"] == pytest.approx(1.234 + 2.345 + 0.5 + 7.25)
    assert one["spent"]["cost"]["total"] == pytest.approx(1240 + 980 + 1240.5 + 3)
    assert two["spent"] == {name: pytest.approx(figures) for name, figures in one["spent"].items()}
    assert not any("was not used" in each for each in other["run"]["reading"]["warnings"])


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_files_that_write_numbers_in_two_ways_are_each_read_alone(rag_eval: Run, tmp_path: Path) -> None:
    for number, cells in enumerate((["0,5", "1,5"], ["0.25", "1.5"], ["1,234", "2"])):
        rows = [[f"q{number}{n}", "It is red.", cell] for n, cell in enumerate(cells)]
        write_table(tmp_path / f"{number}.csv", ["Query", "Bot_A", "Cost_A"], *rows, separator=";")
    ended = rag_eval("0.csv", "1.csv", "2.csv", "-o", "out", "--judge", "offline", "--shard-rows", 2)
    assert ended.code == 0
    assert "'1,234' could be 1234 or 1.234" in ended.err


def test_earlier_answers_have_the_same_unit(run_cli: Run, tmp_path: Path) -> None:
    for name, header in (("now", "Cost_A_USD"), ("then", "Cost_A_EUR"), ("plain", "Notes")):
        write_table(tmp_path / f"{name}.csv", ["Query", "Bot_A", header], ["q", "It is red.", 2])
    ended = run_cli("now.csv", "--against", "then.csv", "--judge", "offline", "-o", "r.xlsx")
    assert ended.code == 2
    assert (
        "then.csv: has the cost in EUR, but now.csv has it in USD; convert the amounts of one file"
        in ended.err
    )
    ended = run_cli("plain.csv", "--against", "then.csv", "--judge", "offline", "-o", "r.xlsx")
    assert ended.code == 0, ended.err
    rows = {row["Bot"]: row for row in read_sheet(tmp_path / "r.xlsx", "Bot Summary")}
    assert [rows[bot]["Mean Cost (EUR)"] for bot in ("A", "A (old)")] == [None, 2]


def test_numbers_of_a_frame_are_exact(tmp_path: Path) -> None:
    rows = [["q", "a", 812.345], ["r", "a", 980.0], ["s", "a", 1204.0]]
    scores = frames.evaluate(pd.DataFrame(rows, columns=["Query", "Bot_A", "Latency_A_ms"]))
    assert scores["latency"].tolist() == [812.345, 980.0, 1204.0]


def test_a_frame_has_the_columns_too(tmp_path: Path) -> None:
    head, *rows = lines()
    scores = frames.evaluate(pd.DataFrame(rows, columns=[str(name) for name in head]))
    for bot in BOTS:
        its = scores[scores["bot"] == bot]
        for name, table in (("latency", LATENCIES), ("cost", COSTS)):
            np.testing.assert_array_equal(its[name].to_numpy(float), np.array(table[bot], dtype=float))


@pytest.mark.slow
def test_responses_count_whether_or_not_the_judge_scored_them(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    judge.always = lambda request: (
        error(400, "content_filter", "filtered", "prompt") if "question 4" in request.prompt else None
    )
    write_form(tmp_path, "in.xlsx")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "azure", "--json", "r.json", **azure(judge))
    assert ended.code == 3, ended.err
    document = json.loads((tmp_path / "r.json").read_text())
    assert [bot["rqs"]["failed"] for bot in document["bots"]] == [1, 1]
    check_figures(document)


@pytest.mark.slow
def test_nothing_else_changes_because_of_the_columns(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """The same requests, and the same cells in all other columns."""
    asked, sheets = [], []
    for with_spending in (False, True):
        name = f"{with_spending}.xlsx"
        write_table(tmp_path / name, *lines(with_spending=with_spending))
        ended = run_cli(name, "-o", f"r{name}", "--judge", "azure", "--fresh", **azure(judge))
        assert ended.code == 0, ended.err
        # Which cases share a request on toxicity or for advice depends on the order of the replies.
        alone = (each.body for each in judge.requests if each.task not in ("toxicity", "recommendation"))
        asked.append(sorted(json.dumps(body, sort_keys=True) for body in alone))
        judge.requests.clear()
        sheets.append(
            {each: read_sheet(tmp_path / f"r{name}", each) for each in ("Per-Query Metrics", "Bot Summary")}
        )
    assert asked[0] == asked[1]
    for name, rows in sheets[0].items():
        for row, other in zip(rows, sheets[1][name], strict=True):
            assert row == {header: other[header] for header in row}, name
            assert {header for header in other if header not in row} == {
                header for header in other if "Latency" in header or "Cost" in header
            }


@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 100])
def test_quantiles_are_those_of_pandas(count: int) -> None:
    values = np.random.default_rng(count).gamma(2.0, 400.0, count)
    spent = Spent.of(values.tolist())
    series = pd.Series(values)
    assert (spent.median, spent.p95, spent.mean, spent.total) == pytest.approx(
        (series.median(), series.quantile(0.95), series.mean(), series.sum()), rel=1e-12
    )


@pytest.mark.parametrize("count", [1, 5, 6, 20, 71, 72, 500])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_limits_of_a_quantile_leave_out_as_much_as_they_may(count: int, share: float) -> None:
    """By the binomial distribution of how many values are below the quantile."""
    values = sorted(np.random.default_rng(count).gamma(2.0, 400.0, count).tolist())
    low, high = quantile_interval(values, share)
    below = stats.binom(count, share)
    lows = [n for n in range(count) if below.cdf(n) <= 0.025]
    highs = [n for n in range(count) if below.cdf(n) >= 0.975]
    assert low == (values[max(lows)] if lows else None)
    assert high == (values[min(highs)] if highs else None)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.0021, "0.0021"),
        (0.00213333, "0.00213"),
        (1240.4, "1,240"),
        (12.345, "12.3"),
        (1.0, "1"),
        (1000.0, "1,000"),
        (-0.5, "−0.5"),
        (3e-12, "0"),
        (123456.7, "123,457"),
    ],
)
def test_amounts_of_any_size_have_three_digits(value: float, shown: str) -> None:
    assert amount(value) == shown


# --- Gates --------------------------------------------------------------------------------------------------------


def with_spent(spent: Mapping[str, Sequence[float | None]]) -> Summary:
    """A bot whose responses all have an RQS of 0.9, and these numbers."""
    summarizer = Summarizer(["A"], WEIGHTS, toxicity_threshold=0.5)
    for number in range(len(next(iter(spent.values())))):
        each = result("A", number + 2, flat(0.9))
        numbers = {name: value for name, its in spent.items() if (value := its[number]) is not None}
        summarizer.add(replace(each, case=replace(each.case, spent=numbers)))
    return summarizer.summary()


EVEN = [float(number) for number in range(1, 101)]


@pytest.mark.parametrize(
    ("gate", "values", "on", "passed", "told"),
    [
        ("latency_p95=95.05", EVEN, "mean", True, "95.05 (100 of 100 queries)"),
        ("latency_p95=95", EVEN, "mean", False, "95.1 (100 of 100 queries)"),
        ("latency_p95=100", EVEN, "interval", True, "95.1 (95% CI 90 to 100, 100 of 100 queries)"),
        ("latency_p95=99", EVEN, "interval", False, "95.1 (95% CI 90 to 100, 100 of 100 queries)"),
        ("latency_p95=5000", EVEN[:71], "interval", True, "67.5 (71 of 71 queries; an upper limit needs 72 queries)"),
        ("latency_p95=60", EVEN[:71], "interval", False, "67.5 (71 of 71 queries; an upper limit needs 72 queries)"),
        ("latency_median=60", EVEN[:71], "interval", True, "36 (95% CI 27 to 45, 71 of 71 queries)"),
        ("cost=0.02", [0.02] * 5, "interval", True, "0.02 (95% CI 0.02 to 0.02, 5 of 5 queries)"),
        ("cost=0.02", [0.0200001] * 5, "mean", False, "0.0200001 (5 of 5 queries)"),
        ("cost=1", [0.02] * 4, "interval", False, "0.02 (4 of 4 queries): too few for an interval"),
        ("cost=1", [0.02, None], "mean", False, "0.02 (1 of 2 queries): the input has a value for too few queries"),
        ("cost=1", [None, None], "mean", False, "is not known for any query"),
    ],
)  # fmt: skip
def test_an_upper_gate_looks_at_the_figure_or_at_the_upper_end_of_its_interval(
    gate: str, values: Sequence[float | None], on: str, passed: bool, told: str
) -> None:
    name, _, limit = gate.partition("=")
    (found,) = evaluate(
        parse_gates([], [gate]), with_spent({name.partition("_")[0]: values}), GateOn(on), 0.95
    )
    compared = "the upper limit" if "CI" in told else "it"
    rule = f"; {compared} must be at most {limit} (--gate-on {on})" if told.endswith(")") else ""
    assert (found.passed, found.reason) == (passed, f"{name} {told}{rule}")
    assert found.gate.title == gate.replace("=", " <= ")


@pytest.mark.parametrize(
    ("gate", "values", "is_clear"),
    [
        ("cost=3", [1.0, 2.0, 1.0, 2.0, 1.0], True),
        ("cost=0.5", [1.0, 2.0, 1.0, 2.0, 1.0], True),
        ("cost=1.5", [1.0, 2.0, 1.0, 2.0, 1.0], False),
        ("latency_p95=500", EVEN[:71], False),
        ("latency_p95=500", EVEN[:72], True),
        ("latency_p95=5", EVEN[:71], True),
    ],
)
def test_an_upper_gate_is_decided_if_its_interval_is_on_one_side(
    gate: str, values: Sequence[float], is_clear: bool
) -> None:
    (bot,) = with_spent({"cost" if gate.startswith("cost") else "latency": values}).bots
    (found,) = parse_gates([], [gate])
    assert is_decided(found, bot, 0.95, 0.95) is is_clear
    assert not is_decided(found, bot, 1.01, 0.95), "too few of its queries are known"


def test_every_wrong_upper_gate_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_gates(["latency_p95=0.5"], ["cost", "rqs=0.5", "cost=-1", "cost=many", "latency_p95=inf"])
    told = str(caught.value)
    names = "latency_median, latency_p95, cost"
    for problem in (
        "--fail-under latency_p95=0.5: unknown metric 'latency_p95'; expected one of rqs, ",
        "--fail-over cost: expected NAME=VALUE, such as latency_p95=3000",
        f"--fail-over rqs=0.5: unknown figure 'rqs'; expected one of {names}",
        "--fail-over cost=-1: VALUE must be a number from 0 on such as 2.5, not '-1'",
        "--fail-over cost=many: VALUE must be a number from 0 on such as 2.5, not 'many'",
        "--fail-over latency_p95=inf: VALUE must be a number from 0 on such as 2.5, not 'inf'",
    ):
        assert problem in told


@pytest.mark.parametrize("how", ["one file", "shards", "batch", "report again"])
def test_a_gate_on_what_the_input_does_not_have_costs_nothing(
    rag_eval: Run, judge: FakeJudge, tmp_path: Path, how: str
) -> None:
    write_table(tmp_path / "in.xlsx", *lines(with_spending=False))
    command = ["in.xlsx", "--judge", "azure", *(["--shard-rows", 3, "-o", "out"] if how == "shards" else [])]
    if how == "report again":
        assert rag_eval("in.xlsx", "--judge", "offline", "--json", "r.json").code == 0
        command = ["r.json", "--report-only", "-o", "again.xlsx"]
    command += ["--batch"] if how == "batch" else []
    (tmp_path / "config.ini").write_text("[batch]\ndeployment = batches\n")
    ended = rag_eval(*command, "--fail-over", "cost=0.02", "--fail-under", "rqs=0.1", **azure(judge))
    assert ended.code == 2
    assert (
        "--fail-over cost=0.02: the input has no cost of the bots; add a column Cost_<bot>, or name one with --map "
        "COLUMN=cost" in ended.err
    )
    assert judge.requests == []


def test_gates_of_both_kinds_are_told_everywhere(run_cli: Run, tmp_path: Path) -> None:
    write_form(tmp_path, "in.xlsx")
    (tmp_path / "config.ini").write_text("[evaluation]\nmin_coverage = 0.9\n")
    gates = ("--fail-under", "rqs=0.5", "--fail-over", "cost=0.002", "--fail-over", "latency_median=2000")
    outputs = ("-o", "r.xlsx", "--junit", "g.xml", "--markdown", "r.md")
    ended = run_cli("in.xlsx", "--judge", "offline", "--gate-on", "mean", *gates, *outputs)
    assert ended.code == 1
    failed = "cost 0.00452 (9 of 10 queries); it must be at most 0.002 (--gate-on mean)"
    assert f"Gate FAILED: Good: {failed}" in ended.err
    assert (
        "Gate passed: Bad: cost 0.000831 (10 of 10 queries); it must be at most 0.002"
        in ended.err + ended.out
    )
    few = "latency_median 303 (8 of 10 queries): the input has a value for too few queries"
    assert f"Gate FAILED: Bad: {few}" in ended.err
    assert f"**FAILED**: Good: {failed}" in (tmp_path / "r.md").read_text().replace("\\", "")
    suite = ElementTree.fromstring((tmp_path / "g.xml").read_bytes())
    found = {
        (case.get("classname"), case.get("name")): case.find("failure") is None
        for case in suite.iter("testcase")
    }
    assert found == {
        ("Good", "rqs >= 0.5"): True,
        ("Bad", "rqs >= 0.5"): False,
        ("Good", "cost <= 0.002"): False,
        ("Bad", "cost <= 0.002"): True,
        ("Good", "latency_median <= 2000"): True,
        ("Bad", "latency_median <= 2000"): False,
    }


@pytest.mark.parametrize(("limit", "rows"), [("3", 12), ("0.5", 12), ("1.5", 30)])
def test_a_run_that_stops_when_clear_waits_for_upper_gates(
    run_cli: Run, tmp_path: Path, limit: str, rows: int
) -> None:
    """One bot: the gate is all there is to decide. Costs are 1 and 2 in turn, so 1.5 is not decided."""
    lines = [[f"Question {n}?", f"It is {n}.", f"It is {n}.", 1 + n % 2] for n in range(30)]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Cost_A"], *lines)
    (tmp_path / "config.ini").write_text("[evaluation]\nlooks = 0.4\n")
    words = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--judge", "offline", "--until-clear")
    ended = run_cli(*words, "--fail-over", f"cost={limit}")
    assert ended.code == (0 if limit == "3" else 1), ended.err
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["bots"][0]["spent"]["cost"]["count"] == rows == len(document["cases"])


# --- Charts -------------------------------------------------------------------------------------------------------


def bots_with(points: Mapping[str, tuple[float, float]], name: str = "cost") -> Findings:
    """Bots with six responses each, of this RQS and this cost or latency."""
    facts = facts_of(list(points), 6, spent_units={name: "USD"})
    results = [
        plain_result(row, bot, rqs, spent={name: spent})
        for row in range(2, 8)
        for bot, (rqs, spent) in points.items()
    ]
    return find(summary_of(results, facts))


@pytest.mark.parametrize(
    ("points", "unbeaten"),
    [
        ({"A": (0.9, 5.0), "B": (0.8, 1.0)}, "AB"),
        ({"A": (0.9, 1.0), "B": (0.8, 5.0)}, "A"),
        ({"A": (0.9, 1.0), "B": (0.9, 1.0)}, "AB"),
        ({"A": (0.9, 1.0), "B": (0.9, 2.0)}, "A"),
        ({"A": (0.9, 1.0), "B": (0.8, 1.0)}, "A"),
        ({"A": (0.9, 4.0), "B": (0.8, 2.0), "C": (0.7, 3.0), "D": (0.6, 0.0)}, "ABD"),
    ],
)
@pytest.mark.parametrize("name", ["cost", "latency"])
def test_bots_that_none_beats_in_both_are_marked(
    points: dict[str, tuple[float, float]], unbeaten: str, name: str
) -> None:
    offs = bots_with(points, name).trade_offs[name]
    assert [each.bot for each in offs] == list(points)
    assert "".join(each.bot for each in offs if each.is_unbeaten) == unbeaten
    assert [(each.rqs, each.spent) for each in offs] == [pytest.approx(point) for point in points.values()]
    assert [each.limits for each in offs] == [pytest.approx((spent, spent)) for _, spent in points.values()]


def test_a_chart_needs_two_bots_with_both_figures() -> None:
    assert bots_with({"A": (0.9, 5.0)}).trade_offs == {}


def test_the_workbook_draws_a_point_for_each_bot_from_its_cells(run_cli: Run, tmp_path: Path) -> None:
    write_form(tmp_path, "in.xlsx")
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline")
    rows = {row["Bot"]: row for row in read_sheet(tmp_path / "r.xlsx", "Bot Summary")}
    book = load_workbook(tmp_path / "r.xlsx")
    charts = [chart for chart in book["Leaderboard"]._charts if chart.tagname == "scatterChart"]
    assert len(charts) == 2
    figures = {
        "RQS and median latency (ms)": "Median Latency (ms)",
        "RQS and mean cost (USD)": "Mean Cost (USD)",
    }
    for chart, (title, header) in zip(charts, figures.items(), strict=True):
        assert "".join(run.t for run in chart.title.tx.rich.p[0].r) == title
        assert [series.marker.symbol for series in chart.series] == ["circle", "circle"]
        for bot, series in zip(BOTS, chart.series, strict=True):
            assert value_at(book, series.tx.strRef.f) == bot
            assert value_at(book, series.xVal.numRef.f) == rows[bot][header]
            assert value_at(book, series.yVal.numRef.f) == rows[bot]["Avg RQS"]
    row, name = rows["Good"], "Cost"
    mean, costs = row["Mean Cost (USD)"], [cost for cost in COSTS["Good"] if cost is not None]
    interval = bootstrap_mean_interval(costs)
    assert interval is not None
    assert (mean - row[f"{name} 95 % minus"], mean + row[f"{name} 95 % plus"]) == pytest.approx(
        (interval.low, interval.high)
    )


@pytest.mark.parametrize("count", [2, 6, 12, 30])
@pytest.mark.parametrize("spread", [400, 60, 1])
def test_no_name_covers_another_name_or_mark(count: int, spread: int) -> None:
    rng = np.random.default_rng(count * spread)
    marks = [
        NamedMark(f"Bot {number}", *(150 + spread * rng.random(2)), goes_first=number % 4 == 0)
        for number in range(count)
    ]
    sides = [(0, -1), (1, 0), (0, 1), (-1, 0)]
    found = sides_of_names(marks, sides, (600, 600))
    assert len(found) == count
    boxes = []
    for mark, side in zip(marks, found, strict=True):
        if side:
            width = 6 * len(mark.name)
            x, y = mark.x + side[0] * (width + 12) / 2, mark.y + side[1] * 12
            boxes.append((x - width / 2, y - 6, x + width / 2, y + 6, mark))
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for *box, its in boxes:
        for mark in marks:
            is_on = box[0] < mark.x < box[2] and box[1] < mark.y < box[3]
            assert not is_on or mark is its or (its.goes_first and not mark.goes_first)
    if spread == 400 and count < 12:
        assert None not in found


def test_of_two_names_for_one_place_that_of_a_mark_that_goes_first_has_it() -> None:
    def sides(*goes_first: bool) -> list[tuple[float, float] | None]:
        marks = [NamedMark("Atlas", 100, 100 + 4 * number, each) for number, each in enumerate(goes_first)]
        return sides_of_names(marks, [(1, 0)], (600, 600))

    assert sides(False, True) == [None, (1, 0)]
    assert sides(True, False) == [(1, 0), None]
    assert sides(False, False) == [(1, 0), None]


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((0.0,), (0, 1, 1)),
        ((5.0, None, 1000.0), (0, 1000, 250)),
        ((812.0, 1390.0), (800, 1400, 200)),
        ((0.0021, 0.0034), (0.002, 0.0035, 0.0005)),
        ((0.62, 1.0), (0.6, 1.0, 0.1)),
        ((100.0,), (100, 125, 25)),
    ],
)
def test_an_axis_shows_all_values_and_begins_with_0_unless_they_are_close(
    values: tuple[float | None, ...], ends: tuple[float, float, float]
) -> None:
    axis = Axis.over(values)
    assert (axis.least, axis.most, axis.step) == pytest.approx(ends)
    assert axis.numbers == pytest.approx(list(np.arange(ends[0], ends[1] + ends[2] / 2, ends[2])))


def test_every_bot_of_a_chart_has_its_name_or_is_listed(run_cli: Run, tmp_path: Path) -> None:
    """Twelve bots that cost and score the same are twelve marks in one place."""
    bots = [f"Bot{chr(65 + number)}" for number in range(12)]
    header = ["Query", "Ground_Truth", *(f"Bot_{bot}" for bot in bots), *(f"Cost_{bot}" for bot in bots)]
    rows = [[f"q{n}", "It is red.", *["It is red."] * 12, *[5 + 0.001 * n] * 12] for n in range(8)]
    write_table(tmp_path / "in.xlsx", header, *rows)
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--html", "p.html").code == 0
    (section,) = re.findall(
        r'<section aria-labelledby="h-spent">.*?</section>', (tmp_path / "p.html").read_text(), re.DOTALL
    )
    drawn = [bot for bot in bots if f">{bot}</text>" in section]
    listed = re.findall(r"Without room for a name: ([^.]*)\.", section)[0]
    assert 0 < len(drawn) < 12
    assert f"{12 - len(drawn) - 5} others" in listed
    (chart,) = (
        each
        for each in load_workbook(tmp_path / "r.xlsx")["Leaderboard"]._charts
        if each.tagname == "scatterChart"
    )
    labelled = [series for series in chart.series if series.dLbls and series.dLbls.showSerName]
    assert 0 < len(labelled) < 12
    assert "Without room for a name:" in "".join(run.t for run in chart.x_axis.title.tx.rich.p[0].r)


@pytest.mark.parametrize("bots", [30, 31])
def test_the_page_charts_up_to_thirty_bots(bots: int) -> None:
    findings = bots_with({f"B{n}": (0.9 - n / 100, 40.0 - n) for n in range(bots)})
    drawn = sections.spending(facts_of(["B0"], 6, spent_units={"cost": "USD"}), findings)
    assert ("<figure" in drawn) == (bots == 30)


def value_at(book: Any, reference: str) -> object:
    sheet, cell = reference.rsplit("!", 1)
    return book[sheet.strip("'")][cell.replace("$", "")].value


def test_the_page_draws_the_same_points(run_cli: Run, tmp_path: Path) -> None:
    lines = [[f"q{n}", "It is red.", "It is red.", "It is blue.", "No.", 5, 7, 6] for n in range(6)]
    header = ["Query", "Ground_Truth", "Bot_<A>", "Bot_B", "Bot_C", "Cost_<A>", "Cost_B", "Cost_C"]
    write_table(tmp_path / "in.xlsx", header, *lines)
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--html", "p.html")
    page = (tmp_path / "p.html").read_text()
    (section,) = re.findall(r'<section aria-labelledby="h-spent">.*?</section>', page, re.DOTALL)
    assert '<h2 id="h-spent">Quality and cost</h2>' in section
    assert section.count("<circle") == 1
    assert "Circles: no other bot beats &lt;A&gt; on both axes. Crosses: another bot does." in section
    assert "Known for 6 responses of each bot." in section
    assert [name in section for name in ("&lt;A&gt;</text>", ">B</text>", ">C</text>")] == [True] * 3
    assert "<A>" not in section


def test_without_such_columns_there_is_no_chart_and_no_column(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *lines(with_spending=False))
    run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--html", "p.html", "--csv", "csv")
    assert "h-spent" not in (tmp_path / "p.html").read_text()
    assert all(
        chart.tagname != "scatterChart" for chart in load_workbook(tmp_path / "r.xlsx")["Leaderboard"]._charts
    )
    told = "".join(
        path.read_text(encoding="utf-8-sig").split("\n")[0] for path in (tmp_path / "csv").iterdir()
    )
    assert "Latency" not in told
    assert "Cost" not in told


# --- Earlier runs -------------------------------------------------------------------------------------------------


def write_costs(path: Path, factor: float, unit: str = "USD") -> Path:
    """Twelve rows of one bot, with costs and latencies times a factor, and no latency in the last row."""
    rows = [
        [f"q{n}", "It is red.", "It is red.", factor * (1 + n % 3), None if n == 11 else 100 * factor + n]
        for n in range(12)
    ]
    return write_table(path, ["Query", "Ground_Truth", "Bot_A", f"Cost_A_{unit}", "Latency_A_ms"], *rows)


@pytest.mark.parametrize("baseline", ["old.json", "old.xlsx", "latest"])
def test_a_baseline_has_latency_and_cost(run_cli: Run, tmp_path: Path, baseline: str) -> None:
    write_costs(tmp_path / "in.xlsx", 2.0)
    words = ("in.xlsx", "--judge", "offline", *(["--history", "past"] if baseline == "latest" else []))
    assert run_cli(*words, "-o", "old.xlsx", "--json", "old.json").code == 0
    write_costs(tmp_path / "in.xlsx", 1.0)
    ended = run_cli(*words, "-o", "r.xlsx", "--baseline", baseline, "--json", "r.json", "--markdown", "r.md")
    assert ended.code == 0, ended.err
    found = {each["name"]: each for each in json.loads((tmp_path / "r.json").read_text())["spent_changes"]}
    costs = pd.Series([1.0 + n % 3 for n in range(12)])
    assert (found["cost"]["before"], found["cost"]["now"]) == (2 * costs.mean(), costs.mean())
    latencies = pd.Series([100.0 + n for n in range(11)])
    assert found["latency"]["before"] == pytest.approx((latencies + 100).mean())
    assert found["latency"]["now"] == pytest.approx(latencies.mean())
    assert [(found[name]["queries"], found[name]["of"]) for name in ("latency", "cost")] == [
        (11, 12),
        (12, 12),
    ]
    assert {each["direction"] for each in found.values()} == {"better"}
    assert all(
        each["interval"][0] <= each["difference"] <= each["interval"][1] < 0 for each in found.values()
    )
    rows = {row["Metric"]: row for row in read_sheet(tmp_path / "r.xlsx", "vs Baseline")}
    assert [rows["Cost (USD)"][name] for name in ("Baseline", "Now", "Change", "Verdict")] == [
        4.0,
        2.0,
        -2.0,
        "better",
    ]
    line = "A: mean Cost (USD) 4 before, 2 now, −2 (95% CI "
    assert line in ended.out + ended.err
    assert line in (tmp_path / "r.md").read_text()


def test_a_changed_cost_is_no_regression(run_cli: Run, tmp_path: Path) -> None:
    """It is worse, and --fail-on-regression is about scores."""
    write_costs(tmp_path / "in.xlsx", 1.0)
    words = ("in.xlsx", "--judge", "offline")
    run_cli(*words, "-o", "old.xlsx", "--json", "old.json")
    write_costs(tmp_path / "in.xlsx", 2.0)
    ended = run_cli(
        *words, "-o", "r.xlsx", "--baseline", "old.json", "--fail-on-regression", "--json", "r.json"
    )
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "r.json").read_text())
    assert {each["direction"] for each in document["spent_changes"]} == {"worse"}
    assert {each["direction"] for each in document["changes"]} == {"no change"}


def test_amounts_of_different_units_are_not_compared(run_cli: Run, tmp_path: Path) -> None:
    write_costs(tmp_path / "in.xlsx", 1.0, "EUR")
    run_cli("in.xlsx", "--judge", "offline", "-o", "old.xlsx", "--json", "old.json")
    write_costs(tmp_path / "in.xlsx", 2.0)
    for baseline in ("old.json", "old.xlsx"):
        run_cli("in.xlsx", "--judge", "offline", "-o", "r.xlsx", "--baseline", baseline, "--json", "r.json")
        document = json.loads((tmp_path / "r.json").read_text())
        assert [each["name"] for each in document["spent_changes"]] == ["latency"]


@pytest.mark.slow
def test_changes_of_the_scores_do_not_depend_on_the_columns(run_cli: Run, tmp_path: Path) -> None:
    found = []
    for with_spending in (False, True):
        write_table(tmp_path / "in.xlsx", *lines(with_spending=with_spending))
        run_cli("in.xlsx", "--judge", "offline", "-o", "old.xlsx", "--json", "old.json")
        run_cli("in.xlsx", "--judge", "offline", "-o", "r.xlsx", "--baseline", "old.json", "--json", "r.json")
        found.append(json.loads((tmp_path / "r.json").read_text())["changes"])
    assert found[0] == found[1] != []


@pytest.mark.parametrize(("value", "shown"), [("1.5", "1.5"), (-1, "-1"), (True, "true")])
def test_a_baseline_with_a_wrong_amount_is_refused(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, value: object, shown: str
) -> None:
    write_costs(tmp_path / "in.xlsx", 1.0)
    run_cli("in.xlsx", "--judge", "offline", "-o", "old.xlsx", "--json", "old.json")
    document = json.loads((tmp_path / "old.json").read_text())
    document["cases"][2]["spent"]["cost"] = value
    (tmp_path / "old.json").write_text(json.dumps(document))
    ended = run_cli("in.xlsx", "--judge", "azure", "--baseline", "old.json", **azure(judge))
    assert ended.code == 2
    assert (
        f"old.json, case 3 (row 4, bot A), spent.cost: {shown} is not a number from 0 on; correct it"
        in ended.err
    )
    assert judge.requests == []


@pytest.mark.slow
def test_a_history_has_latency_and_cost(rag_eval: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *lines(with_spending=False))
    words = ("in.xlsx", "--judge", "offline", "--history", "past", "-o", "r.xlsx")
    rag_eval(*words)
    assert not [name for name in read_sheet(tmp_path / "r.xlsx", "History")[0] if "Bot " in name]
    write_form(tmp_path, "in.xlsx")
    rag_eval(*words, "--html", "p.html")
    rows = [row for row in read_sheet(tmp_path / "r.xlsx", "History") if row["Bot"] == "Good"]
    assert [row["Mean Bot Cost (USD)"] for row in rows] == [
        None,
        pytest.approx(expected("cost", "Good")["mean"]),
    ]
    assert rows[1]["Median Bot Latency (ms)"] == pytest.approx(expected("latency", "Good")["median"])
    assert "Mean Bot Cost (USD)" in (tmp_path / "p.html").read_text()
    assert rag_eval("history", "past", "-o", "h.xlsx").code == 0
    assert [
        row["Mean Bot Cost (USD)"] for row in read_sheet(tmp_path / "h.xlsx", "Runs") if row["Bot"] == "Good"
    ] == [row["Mean Bot Cost (USD)"] for row in rows]


# --- Together with other options ----------------------------------------------------------------------------------

OPTIONS: Mapping[str, Sequence[object]] = {
    "rows": ("--rows", "2-8"),
    "where": ("--where", "Query ~ question"),
    "random": ("--random-rows", 7),
    "processes": ("--processes", 2),
    "until clear": ("--until-clear",),
    "gates": ("--fail-over", "cost=1", "--fail-over", "latency_p95=1", "--gate-on", "mean"),
    "history": ("--history", "past"),
    "page": ("--html", "p.html", "--html-no-texts"),
    "map": ("--map", "Latency_Bad (ms)=ignore"),
    "columns": ("--config", "other.ini"),
    "redact": ("--redact", "--junit", "g.xml"),
    "against": ("--against", "in.xlsx"),
}


TOGETHER = [
    tuple(name for number, name in enumerate(OPTIONS) if (number - first) % 13 in (0, 1, 3, 9))
    for first in range(13)
]
"""Three or four options each. Any two are together in one of them, as points are on a line of a projective plane."""


@pytest.mark.slow
@pytest.mark.parametrize("names", TOGETHER, ids=", ".join)
def test_any_two_options_agree_with_the_cases(run_cli: Run, tmp_path: Path, names: tuple[str, ...]) -> None:
    """Whatever rows and columns are chosen: the figures are those of the cases in the JSON."""
    write_form(tmp_path, "in.xlsx")
    (tmp_path / "other.ini").write_text(
        "[columns]\ncost = Cost_Bad_USD\n[report]\nslice_by = Cost_Good_USD\n"
    )
    words = [word for name in names for word in OPTIONS[name]]
    ended = run_cli("in.xlsx", "--judge", "offline", "-o", "r.xlsx", "--json", "r.json", *words)
    assert ended.code in (0, 1), ended.err
    document = json.loads((tmp_path / "r.json").read_text())
    cases = pd.DataFrame([{"bot": case["bot"], **case["spent"]} for case in document["cases"]])
    for bot in document["bots"]:
        its = cases[cases["bot"] == bot["bot"]]
        for name in ("latency", "cost"):
            values = its[name].dropna() if name in its else pd.Series(dtype=float)
            if not len(values):
                assert name not in bot["spent"]
                continue
            found = bot["spent"][name]
            assert (found["count"], found["mean"], found["p95"]) == (
                len(values),
                pytest.approx(values.mean()),
                pytest.approx(values.quantile(0.95)),
            )
    assert ("latency" in document["bots"][1]["spent"]) is ("map" not in names)


def in_conversations(turns: int) -> list[list[object]]:
    """Forty rows; each conversation of so many has its own level of costs."""
    rows: list[list[object]] = [
        ["Query", "Conversation_Id", "Ground_Truth", "Bot_A", "Bot_B", "Cost_A", "Cost_B", "Latency_A"]
    ]
    for n in range(40):
        talk = n // turns
        level = 1 + talk % 4
        texts = [f"Question {n}?", f"c{talk}", f"It is {n}.", f"It is {n}.", f"It is {n}. Or not."]
        rows.append([*texts, 2.0 * level, level + 0.9 * (level - 2), 100 * level])
    return rows


def test_rows_of_a_conversation_count_as_one(run_cli: Run, tmp_path: Path) -> None:
    """Four conversations are too few for a claim, whatever their turns; forty rows are not."""
    found = []
    for turns in (1, 10):
        write_table(tmp_path / "in.xlsx", *in_conversations(turns))
        words = ("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--judge", "offline")
        gates = ("--fail-over", "cost=100", "--fail-over", "latency_median=500")
        found.append((run_cli(*words, *gates), json.loads((tmp_path / "r.json").read_text())))
    (alone, one), (together, ten) = found
    assert [bot["spent"] for bot in one["bots"]] == [bot["spent"] for bot in ten["bots"]]
    costs = [{each["name"]: each for each in document["spent"]}["cost"] for document in (one, ten)]
    assert [each["queries"] for each in costs] == [40, 40]
    assert costs[0]["difference"] == pytest.approx(costs[1]["difference"])
    assert [each["is_significant"] for each in costs] == [True, False]
    assert [each["interval"] is None for each in costs] == [False, True]
    assert "Gate passed: A: latency_median 250 (95% CI" in alone.out + alone.err
    assert (
        "Gate passed: A: latency_median 250 (40 of 40 queries; no upper limit, since rows of one conversation are not "
        "independent); it must be at most 500" in together.out
    )
    assert "Gate FAILED: A: cost 5 (40 of 40 queries): too few conversations for an interval" in together.err


def test_different_units_are_told_whatever_else_is_wrong(run_cli: Run, tmp_path: Path) -> None:
    """A fault of another column, for which the header is read once more, hides them from nobody."""
    header = ["Query", "Bot_A", "Bot_B", "Latency_A", "Latency_B", "Cost_A", "Cost_B"]
    write_table(tmp_path / "in.xlsx", header, *[["q?", "a", "b", "900 ms", "1500", "cheap", "2"]] * 3)
    ended = run_cli("in.xlsx", "--judge", "offline", "-q")
    for name in ("Latency_A", "Latency_B"):
        assert ended.err.count(f"Column '{name}'") == 1
    assert "Column 'Cost_A' (F) looks like a latency or a cost and was not used: row 2, 'cheap'" in ended.err

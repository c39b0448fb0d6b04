"""Files that could be read before: their roles, chunks and requests stay, because a changed request is paid again.

`readings.json` was recorded before other shapes of files could be read. `python tests/test_reading_unchanged.py` writes
it anew; every difference must be listed in CHANGELOG.md under "Scores change".
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from files import write_table

from rag_eval.configuration.effective import endpoint_of
from rag_eval.configuration.settings import Settings
from rag_eval.judge.transport import Transport
from rag_eval.run.estimate import DryRunStore, EstimatingJudge
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.tables.table import Table, read_table

HERE = Path(__file__).parent
RECORDED = HERE / "readings.json"
SETTINGS = Settings.model_validate({"azure": {"endpoint": "https://judge.example.com", "api_key": "key"}})

TEXTS = (
    "one passage",
    '["one", "two", "three"]',
    ' \n["one",\n "two"] \n',
    '["", "  ", null, "left"]',
    '[{"text": "one", "score": 0.9}, {"content": "two"}]',
    '[["one", "two"], "three"]',
    "[7, 2.50, 1e3, true, false]",
    "chunk 1 || chunk 2 || chunk 3",
    "one ||\ntwo\n|| three",
    "two\n\nparagraphs || three",
    "It is free (for members). || [2] Helmets: not included.",
    "if (a || b) {…} || The next passage",
    "if (a || b)",
    "first || ' ' || last",
    "SELECT 'Mr ' || name FROM rider",
    "const speed = limit || 25;",
    "!ready || forced",
    "`a || b`",
    "{ a: [b || c] }",
    "first\n\nsecond\r\n\r\nthird",
    "one\ntwo",
    "[Note] Bikes are serviced on Mondays",
    "[text](https://example.com) and more",
    "[1] A footnote, then text\n\nand a paragraph",
    "[2] begins in the middle\n\n[3] of a list",
    '{"text": "an object alone is text"}',
    "[NaN]",
    "",
)
"""What a context cell may hold."""

TABLES: Mapping[str, Sequence[Sequence[object]]] = {
    "plain": [
        ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"],
        ["q", "gt", "a", "b", "c1 || c2"],
        ["r", None, None, "b", ""],
    ],
    "contexts": [["Query", "Bot_A", "Context"], *(["q", "a", text] for text in TEXTS)],
    "own contexts": [
        ["Question", "Expected", "Bot_A", "Context_A", "Bot_B", "B_Context", "Context"],
        ["q", "e", "a", '["x", "y"]', "b", "z", "shared"],
        ["r", "e", "a", None, "b", "z\n\ny", "shared"],
    ],
    "odd names": [
        [" in put ", "Ground\nTruth", "BOT-A", "bot b", "Input_ID", "Target_Date", "Answer_Length", 2024],
        ["q", "gt", "a", "b", 7, "2024-05-01", 12, "x"],
    ],
    "no context": [["PROMPT", "GT", "Bot_A"], ["q", "gt", "a"], [None, None, None], ["r", "N/A", "null"]],
    "documents": [
        ["Query", "Bot_A", "Gold_Docs", "Retrieved_Docs", "Human_Faithfulness", "Context"],
        ["q", "a", '["d1", "d2"]', "d1 || d3", 0.5, "c"],
        ["r", "a", "d1", "", None, "c"],
    ],
    "values": [
        ["Query", "Target", "Bot_A", "Context"],
        [42.0, 0.1, True, 7],
        ["007", "TRUE", "None", "null"],
    ],
    "bots of odd names": [["Query", "Bot_Context", "Bot_日本", "Context"], ["q", "a", "b", "c"]],
    "long texts that nobody asked for": [
        ["Query", "Ground_Truth", "Bot_A", "Context", "Comment"],
        ["q", "gt", "a", "c", "long text " * 50],
    ],
}


def _paths(folder: Path) -> dict[str, Path]:
    paths = {"sample": HERE.parent / "sample_rag_input.xlsx"}
    return paths | {name: write_table(folder / f"{name}.xlsx", *rows) for name, rows in TABLES.items()}


class _Keys(DryRunStore):
    """A store that remembers the keys of all requests."""

    def __init__(self) -> None:
        super().__init__(None)
        self.keys: set[str] = set()

    def put_reply(self, key: str, *, reply: str, **paid: Any) -> None:
        self.keys.add(key)
        super().put_reply(key, reply=reply, **paid)


def _keys(table: Table) -> set[str]:
    store = _Keys()
    judge = EstimatingJudge(Transport(endpoint_of(SETTINGS), store), "gpt-4o")
    evaluation = Evaluation(Judges.llm(SETTINGS, judge, store), SETTINGS, workers=1)
    try:
        for _ in evaluation.results(table.rows):
            pass
    finally:
        evaluation.close()
    return store.keys


def reading(path: Path) -> dict[str, Any]:
    """What a file is understood as, in values that JSON knows."""
    table = read_table(path)
    keys = _keys(table)
    return {
        "roles": [[use.letter, use.role, use.bot, use.metric] for use in table.columns],
        "cases": [
            [
                case.row, case.bot, case.query, case.response, case.reference, case.chunks, case.gold_ids,
                case.retrieved_ids, dict(case.human),
            ]
            for row in table.rows
            for case in row.cases
        ],
        "requests": len(keys),
        "keys": hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest(),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["sample", *TABLES])
def test_a_file_that_could_be_read_before_is_read_as_before(name: str, tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    found = json.loads(json.dumps(reading(_paths(tmp_path)[name])))
    assert found == recorded[name]
    assert found["requests"] > 0


def _record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {name: reading(path) for name, path in _paths(Path(folder)).items()}
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    RECORDED.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    _record()

"""The look of the workbooks stays as it is: fonts, fills, borders, widths, heights, panes, print set-up, charts.

`look.json` has it, without any text. `python tests/test_look.py` writes it again after a change that is wanted.
"""

import json
import re
import sys
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from conftest import azure
from fake_judge import running_judge

from rag_eval import cli

RECORDED = Path(__file__).parent / "look.json"
ROOT = Path(__file__).parent.parent
OF_SHEETS = (
    "sheetPr", "tabColor", "pageSetUpPr", "sheetView", "pane", "sheetFormatPr", "col", "pageMargins", "pageSetup",
    "sheetProtection", "cfRule", "cfvo", "dataBar", "color", "mergeCell", "dataValidation", "autoFilter",
    "printOptions",
)  # fmt: skip
NOT_LOOK = r"<(?:c:axId|c:crossAx|c:idx|c:order|c:ptCount)[^>]*>|<(c:f|c:v|a:t|xdr:row|xdr:rowOff)>[^<]*</\1>"
CHANGING = r' (?:y|cy|id|idx|name|descr|r:id|ref|dxfId|priority|activeCell|sqref|uniqueCount|count)="[^"]*"'
COMMANDS = (
    "{root}/sample_rag_input.xlsx -o report.xlsx --judge offline --history past -q",
    "{root}/sample_rag_input.xlsx -o report.xlsx --judge offline --history past --json run.json -q",
    "review run.json -o review.xlsx --cases 12",
    "history past -o history.xlsx",
    "retrieval results.tsv --reference references.jsonl -o retrieval.xlsx",
    "compare-judges answers.csv -o judges.xlsx --judge-a offline --judge-b azure -q",
    "init",
)
FILES = {
    "results.tsv": 'qid\tdoc_ids\n01\t["faq", "terms"]\n02\tfaq\n',
    "answers.csv": "Query,Ground_Truth,Bot_A,Bot_B,Context,Human_Faithfulness_A,Human_Faithfulness_B\n"
    "Who?,Ada,Ada,Bob,It was Ada.,1,0\nWhen?,1843,1843,1850,In 1843.,1,0\n",
    "references.jsonl": '{"qid": "01", "gold_docs": ["faq"]}\n{"qid": "03", "gold_docs": "faq"}\n',
}


def tags(name: str, xml: str) -> Counter[str]:
    """How often each tag occurs, of the tags that say how something looks."""
    found = re.findall(r"<[^/?][^>]*>", re.sub(NOT_LOOK, "", xml))
    if name.startswith("xl/worksheets"):
        heights = [re.sub(r' (?:r|spans)="[^"]*"', "", tag) for tag in found if "customHeight" in tag]
        found = [tag for tag in found if re.split(r"[ />]", tag[1:], maxsplit=1)[0] in OF_SHEETS] + heights
    if name.startswith("xl/charts"):  # a colour says little without what it colours
        found = [
            f"{before} {tag}" if tag.startswith("<a:srgbClr") else tag for before, tag in colour_uses(found)
        ]
    return Counter(re.sub(CHANGING, "", tag) for tag in found)


def colour_uses(found: list[str]) -> Iterator[tuple[str, str]]:
    """Each tag with the last one of a chart's own before it."""
    own = ""
    for tag in found:
        own = tag if tag.startswith("<c:") else own
        yield own, tag


def look_of(folder: Path) -> dict[str, dict[str, int]]:
    """Of every workbook in a folder: of its styles, of each sheet, and of all charts and boxes together."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted(folder.glob("*.xlsx")):
        with zipfile.ZipFile(path) as package:
            names = re.findall(r"<definedName.*?</definedName>", package.read("xl/workbook.xml").decode())
            # What is repeated on each page, and what is filtered.
            found[f"{path.stem} names"] += Counter(names)
            for name in sorted(package.namelist()):
                if part := re.match(r"xl/(styles|worksheets/sheet\d+|charts|drawings)\b(?!/_|/vml)", name):
                    found[f"{path.stem} {part[1]}"] += tags(name, package.read(name).decode())
    return {part: dict(sorted(counted.items())) for part, counted in found.items()}


def make(folder: Path) -> dict[str, dict[str, int]]:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with chdir(folder), running_judge() as judge, pytest.MonkeyPatch.context() as patch:
        for name, value in azure(judge).items():
            patch.setenv(name, value)
        for command in COMMANDS:
            with suppress(SystemExit):
                patch.setattr(sys, "argv", ["rag-eval", *command.format(root=ROOT).split()])
                cli.main()
    return look_of(folder)


def test_the_look_of_the_workbooks_stays_as_it_is(tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    found = make(tmp_path)
    assert found.keys() == recorded.keys()
    for part, look in found.items():
        assert look == recorded[part], part


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        lines = [f"{json.dumps(part)}: {json.dumps(look)}" for part, look in make(Path(made)).items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

"""The parts of a finished workbook against the rules of its format (ECMA-376), where a fault means a repair prompt.

Every rule is a generator of faults. One table shows that a report with everything in it has none, the other one
that each rule finds the fault that it is for.
"""

import math
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

import pytest
from defusedxml.ElementTree import fromstring
from openpyxl.utils import column_index_from_string, get_column_letter, range_boundaries
from report_cases import facts_of, plain_result, random_results, summary_of, write_report

from rag_eval.records import CaseResult
from rag_eval.report.workbook import ExcelReport
from rag_eval.results.baseline import NAMES, BaselineComparison, PastRun
from rag_eval.results.findings import find

Package = Mapping[str, bytes]
"""The parts of a workbook, by their names."""
Rule = Callable[[Package], Iterator[str]]

SHEETS = ("Per-Query Metrics", "Bot Summary", "Leaderboard", "vs Baseline", "Slices", "Evidence")
TEXTS = (
    '=HYPERLINK("http://evil.example","it\'s")',
    "<r></t></is></c><c r='B1' t='str'><f>1</f></c></r>",
    "A!B'C[1]:*?/\\ & <b> ]]> _x000D_",
    "汉字 👩‍👩‍👧 \u202eevil\u202c\x85 \ud800 \x00",
    "  two\nlines\n",
    "x😀" * 20_000,
)
BOTS = ("GPT4", TEXTS[0], TEXTS[2], "nan")
ROWS = 12


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """Evidence, slices, a baseline, a run that ended early, notes, charts, flags and hostile texts."""
    path = _write_everything(tmp_path_factory.mktemp("report") / "report.xlsx")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names))
        return {name: archive.read(name) for name in names}


def _write_everything(target: Path) -> Path:
    results = [_with_hostile_texts(result) for result in random_results(BOTS, ROWS, words=12)]
    flags = {(result.case.row, result.case.bot): TEXTS[:2] for result in results[::5]}
    facts = facts_of(BOTS, ROWS, input_name=TEXTS[2], sheet=TEXTS[1], judge=TEXTS[0], flags=flags)
    report = ExcelReport(target, facts, {"evidence", "slice_by", "baseline"})
    for result in results:
        report.add(result)
    summary = summary_of(results, facts, "Topic")
    final = replace(facts, partial=TEXTS[2], notes=TEXTS)
    beside = tuple(f"Judged by {text}." for text in TEXTS)
    findings = find(summary, _baseline(results).changes(), beside_changes=beside)
    return report.finish(summary, findings, final)


def _with_hostile_texts(result: CaseResult) -> CaseResult:
    text = TEXTS[result.case.row % len(TEXTS)]
    case = replace(result.case, response=text, chunks=(text, "b"), columns={"Topic": text[:40]})
    return replace(result, case=case, recommendation=text)


def _baseline(results: list[CaseResult]) -> BaselineComparison:
    """Against a run in which every mean was 0.5."""
    keys = ((result.case.query, result.case.reference or "", result.case.bot, 0) for result in results)
    past = PastRun("earlier.xlsx", {key: dict.fromkeys(NAMES, 0.5) for key in keys})
    comparison = BaselineComparison(past, facts_of(BOTS, ROWS))
    for result in results:
        comparison.add(result)
    return comparison


@pytest.mark.slow
def test_the_report_under_test_has_everything_in_it(package: Package) -> None:
    """Otherwise a rule could hold because there is nothing that it is about."""
    assert tuple(_sheet_parts(package)) == SHEETS
    assert all(len(_cells(package, part)) > 20 for part in _sheet_parts(package).values())
    text = b"".join(package.values())
    for part in (
        b"<c:errBars>",
        b"<xdr:sp ",
        b"<hyperlink ",
        b"<comment ",
        b"PARTIAL",
        b"<cfRule ",
        b"Flags",
    ):
        assert part in text
    assert sum(name.startswith("xl/charts/") for name in package) == 7


# The package


def parts_are_well_formed(package: Package) -> Iterator[str]:
    for name, content in package.items():
        try:
            fromstring(content)
        except ParseError as error:
            yield f"{name}: {error}"


CONTENT_TYPES = (
    (r"xl/workbook\.xml", "spreadsheetml.sheet.main+xml"),
    (r"xl/worksheets/sheet\d+\.xml", "spreadsheetml.worksheet+xml"),
    (r"xl/styles\.xml", "spreadsheetml.styles+xml"),
    (r"xl/theme/theme1\.xml", "officedocument.theme+xml"),
    (r"xl/comments\d+\.xml", "spreadsheetml.comments+xml"),
    (r"xl/charts/chart\d+\.xml", "drawingml.chart+xml"),
    (r"xl/drawings/drawing\d+\.xml", "officedocument.drawing+xml"),
    (r"xl/drawings/vmlDrawing\d+\.vml", "officedocument.vmlDrawing"),
    (r"docProps/core\.xml", "package.core-properties+xml"),
    (r"docProps/app\.xml", "officedocument.extended-properties+xml"),
    (r".*\.rels", "package.relationships+xml"),
)


def every_part_has_its_content_type(package: Package) -> Iterator[str]:
    declared = _root(package, "[Content_Types].xml")
    defaults = {each.get("Extension"): each.get("ContentType", "") for each in _all(declared, "Default")}
    overrides = {each.get("PartName"): each.get("ContentType", "") for each in _all(declared, "Override")}
    if len(declared) != len(defaults) + len(overrides):
        yield "a content type is declared twice"
    yield from (f"{name} does not exist" for name in overrides if str(name)[1:] not in package)
    for name in package:
        expected = [ending for pattern, ending in CONTENT_TYPES if re.fullmatch(pattern, name)]
        found = overrides.get(f"/{name}") or defaults.get(name.rpartition(".")[2], "")
        if name != "[Content_Types].xml" and not (expected and found.endswith(expected[0])):
            yield f"{name} is of type {found!r}"


def relationships_lead_to_parts(package: Package) -> Iterator[str]:
    reached = {"[Content_Types].xml"}
    for rels in (name for name in package if name.endswith(".rels")):
        relationships = _all(_root(package, rels), "Relationship")
        reached.add(rels)
        yield from (f"{rels}: two are {each}" for each in _repeated(item.get("Id") for item in relationships))
        for item in relationships:
            target = posixpath.normpath(posixpath.join(_base(rels), item.get("Target", "")))
            reached.add(target)
            if item.get("TargetMode") or target not in package:
                yield f"{rels}: {item.get('Id')} leads to {target}"
    yield from (f"no relationship leads to {name}" for name in package.keys() - reached)


def ids_of_relationships_are_of_the_right_kind(package: Package) -> Iterator[str]:
    kinds = {"drawing": "drawing", "legacyDrawing": "vmlDrawing", "chart": "chart", "sheet": "worksheet"}
    for name in package:
        if name.endswith((".rels", "vml")):
            continue
        known = {each: kind for each, (kind, _) in _relationships(package, name).items()}
        for element in _root(package, name).iter():
            if (used := element.get(_R_ID)) and known.get(used) != kinds.get(_local(element)):
                yield f"{name}: <{_local(element)}> refers to {used}, which is {known.get(used)}"


# The workbook


def names_of_sheets_are_legal(package: Package) -> Iterator[str]:
    sheets = _all(_root(package, "xl/workbook.xml"), "sheet")
    names = [sheet.get("name", "") for sheet in sheets]
    for name in names:
        if not re.fullmatch(r"(?!')[^\[\]:*?/\\\x00-\x1f]{1,31}(?<!')", name) or name.casefold() == "history":
            yield f"{name!r} cannot be the name of a sheet"
    yield from (f"two sheets are {name}" for name in _repeated(name.casefold() for name in names))
    yield from (f"two sheets have the id {each}" for each in _repeated(s.get("sheetId") for s in sheets))


def one_sheet_is_in_front(package: Package) -> Iterator[str]:
    view = _all(_root(package, "xl/workbook.xml"), "workbookView")[0]
    views = [_all(_root(package, part), "sheetView")[0] for part in _sheet_parts(package).values()]
    selected = [index for index, each in enumerate(views) if each.get("tabSelected") == "1"]
    if selected != [int(view.get("activeTab", "0"))]:
        yield f"selected: {selected}, in front: {view.get('activeTab', '0')}"


def defined_names_lead_to_cells(package: Package) -> Iterator[str]:
    workbook = _root(package, "xl/workbook.xml")
    names = _all(workbook, "definedName")
    parts = list(_sheet_parts(package).values())
    yield from (
        f"two are {each}" for each in _repeated((n.get("name"), n.get("localSheetId")) for n in names)
    )
    for each in names:
        name, local = each.get("name", ""), each.get("localSheetId")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name) or re.fullmatch(r"[A-Za-z]{1,3}\d+", name):
            yield f"{name} cannot be a name"
        part, area = _target(package, each.text or "")
        if name == "_xlnm.Print_Area":  # it reaches beyond the cells, over what floats below them
            part = _sheet_parts(package).get((each.text or "").partition("!")[0].strip("'"))
        if part is None or (local is not None and parts[int(local)] != part):
            yield f"{name} leads to {each.text}"
        elif name.startswith("Thr_") and _cells(package, part)[area][1] != "n":
            yield f"{name} is no number"
    known = {each.get("name") for each in names}
    for part in parts:
        for formula in _all(_root(package, part), "formula"):
            unknown = set(re.findall(r"Thr_\w+", formula.text or "")) - known
            yield from (f"{part}: a rule uses {name}, which is not defined" for name in unknown)


def properties_are_filled(package: Package) -> Iterator[str]:
    core = {_local(each): each.text or "" for each in _root(package, "docProps/core.xml")}
    for name in ("title", "subject", "creator", "description"):
        if not 0 < len(core.get(name, "")) <= 255:
            yield f"{name}: {core.get(name)!r}"
    for name in ("created", "modified"):
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", core.get(name, "")):
            yield f"{name}: {core.get(name)!r}"
    counts, titles = _all(_root(package, "docProps/app.xml"), "vector")
    counted = [int(each.text or 0) for each in _all(counts, "i4")]
    if [each.text for each in titles][: counted[0]] != list(_sheet_parts(package)):
        yield "the titles of parts are not those of the sheets"
    if not sum(counted) == len(titles) == int(titles.get("size", "0")):
        yield f"{sum(counted)} parts are counted, {len(titles)} named"


# The sheets

SEQUENCE = (
    *("sheetPr", "dimension", "sheetViews", "sheetFormatPr", "cols", "sheetData", "sheetCalcPr"),
    *("sheetProtection", "protectedRanges", "scenarios", "autoFilter", "sortState", "dataConsolidate"),
    *("customSheetViews", "mergeCells", "phoneticPr", "conditionalFormatting", "dataValidations"),
    *("hyperlinks", "printOptions", "pageMargins", "pageSetup", "headerFooter", "rowBreaks", "colBreaks"),
    *("customProperties", "cellWatches", "ignoredErrors", "smartTags", "drawing", "legacyDrawing"),
    *("legacyDrawingHF", "picture", "oleObjects", "controls", "webPublishItems", "tableParts", "extLst"),
)
"""Of the children of a worksheet (CT_Worksheet, 18.3.1.99)."""


def children_of_a_sheet_are_in_sequence(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        children = [_local(child) for child in _root(package, part)]
        single = {child for child in children if child != "conditionalFormatting"}
        yield from (f"{part}: unknown <{child}>" for child in single - {*SEQUENCE})
        yield from (f"{part}: two <{child}>" for child in _repeated(children) if child in single)
        if children != sorted(children, key=lambda child: (*SEQUENCE, child).index(child)):
            yield f"{part}: {children}"
        if missing := {"sheetData", "autoFilter", "pageSetup", "headerFooter", "legacyDrawing"} - {*children}:
            yield f"{part}: without {missing}"


def rows_and_cells_ascend(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        root = _root(package, part)
        last_row = 0
        left, top, right, bottom = range_boundaries(_all(root, "dimension")[0].get("ref", ""))
        for row in _all(root, "row"):
            number, last_column = int(row.get("r", "0")), 0
            if not last_row < number <= 1_048_576 or not top <= number <= bottom:
                yield f"{part}: row {number} after row {last_row}"
            last_row = number
            for cell in row:
                column, of_row = _place(cell.get("r", ""))
                if of_row != number or not last_column < column or not left <= column <= right:
                    yield f"{part}: {cell.get('r')} in row {number} after column {last_column}"
                last_column = column


def cells_hold_numbers_or_text_that_fits(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        for cell in _all(_root(package, part), "c"):
            children = [_local(child) for child in cell]
            text = "".join(each.text or "" for each in _all(cell, "t"))
            if len(text.encode("utf-16-le")) // 2 > 32_767:
                yield f"{part}: {cell.get('r')} holds too much"
            if children != {"inlineStr": ["is"], None: ["v"] if children else []}.get(cell.get("t"), ["?"]):
                yield f"{part}: {cell.get('r')} of type {cell.get('t')} holds {children}"
            for value in _all(cell, "v"):
                if not re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", value.text or ""):
                    yield f"{part}: {cell.get('r')} holds the number {value.text}"


def styles_exist(package: Package) -> Iterator[str]:
    styles = {_local(each): each for each in _root(package, "xl/styles.xml")}
    for name, each in styles.items():
        if each.get("count") not in (None, str(len(each))):
            yield f"{len(each)} {name} are {each.get('count')}"
    pools = {"fontId": "fonts", "fillId": "fills", "borderId": "borders", "xfId": "cellStyleXfs"}
    for xf in styles["cellXfs"]:
        for attribute, pool in pools.items():
            if int(xf.get(attribute, "0")) >= len(styles[pool]):
                yield f"a format has {attribute} {xf.get(attribute)}"
    for part in _sheet_parts(package).values():
        root = _root(package, part)
        for element, attribute, pool in (("c", "s", "cellXfs"), ("cfRule", "dxfId", "dxfs")):
            for each in _all(root, element):
                if not 0 <= int(each.get(attribute, "0")) < len(styles[pool]):
                    yield f"{part}: <{element}> has {attribute} {each.get(attribute)}"


def areas_can_be_read(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        root = _root(package, part)
        for element in root.iter():
            for attribute in ("ref", "sqref", "topLeftCell", "activeCell"):
                for area in element.get(attribute, "A1").split(" "):
                    if not _is_area(area):
                        yield f"{part}: <{_local(element)} {attribute}={area!r}>"
        priorities = [rule.get("priority") for rule in _all(root, "cfRule")]
        yield from (f"{part}: two rules are of priority {each}" for each in _repeated(priorities))


def links_lead_to_cells(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        links = _all(_root(package, part), "hyperlink")
        yield from (f"{part}: two links in {each}" for each in _repeated(link.get("ref") for link in links))
        for link in links:
            target, cell = _target(package, link.get("location", ""))
            if link.get("ref") not in _cells(package, part) or target is None or ":" in cell:
                yield f"{part}: {link.get('ref')} leads to {link.get('location')}"


def headers_of_pages_fit(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        for element in _all(_root(package, part), "oddHeader") + _all(_root(package, part), "oddFooter"):
            text = element.text or ""
            if len(text.encode("utf-16-le")) // 2 > 255 or re.search(
                r"&(?![LCRAPNB&\"\d])", text.replace("&&", "")
            ):
                yield f"{part}: {text}"


# What belongs to the cells and floats over them


def notes_are_on_cells_and_have_a_shape(package: Package) -> Iterator[str]:
    for part in _sheet_parts(package).values():
        targets = dict(_relationships(package, part).values())
        comments = _root(package, targets["comments"])
        authors = len(_all(comments, "author"))
        places = [comment.get("ref", "") for comment in _all(comments, "comment")]
        yield from (f"{part}: two notes on {each}" for each in _repeated(places))
        yield from (
            f"{part}: {each} has a note and is no cell" for each in {*places} - {*_cells(package, part)}
        )
        for comment in _all(comments, "comment"):
            if int(comment.get("authorId", "-1")) not in range(authors):
                yield f"{part}: the note on {comment.get('ref')} has no author"
        shapes = _all(_root(package, targets["vmlDrawing"]), "ClientData")
        drawn = [_named(_number(shape, "Column"), _number(shape, "Row")) for shape in shapes]
        if sorted(drawn) != sorted(places):
            yield f"{part}: shapes without a note or notes without a shape: {({*drawn} ^ {*places}) or drawn}"
        ids = [shape.get("id") for shape in _all(_root(package, targets["vmlDrawing"]), "shape")]
        yield from (f"{part}: two shapes are {each}" for each in _repeated(ids))


def drawings_are_anchored_and_described(package: Package) -> Iterator[str]:
    for name in (name for name in package if re.fullmatch(r"xl/drawings/drawing\d+\.xml", name)):
        root = _root(package, name)
        for anchor in root:
            corners = {_local(each): each for each in anchor}
            for axis, limit in (("col", 16_384), ("row", 1_048_576)):
                start, end = (_number(corners[corner], axis) for corner in ("from", "to"))
                if not 0 <= start <= end < limit:
                    yield f"{name}: from {axis} {start} to {end}"
            properties = _all(anchor, "cNvPr")
            if len(properties) != 1 or not properties[0].get("descr", "").strip():
                yield f"{name}: without an alternative text"
        yield from (f"{name}: two are {each}" for each in _repeated(p.get("id") for p in _all(root, "cNvPr")))
        shown = [chart.get(_R_ID) for chart in _all(root, "chart")]
        charts = [key for key, (kind, _) in _relationships(package, name).items() if kind == "chart"]
        if sorted(map(str, shown)) != sorted(charts):
            yield f"{name}: shows {shown} of {charts}"


def charts_draw_cells(package: Package) -> Iterator[str]:
    for name in (name for name in package if name.startswith("xl/charts/chart")):
        root = _root(package, name)
        for reference in _all(root, "numRef") + _all(root, "strRef"):
            area = _all(reference, "f")[0].text or ""
            part, cells = _target(package, area)
            if part is None:
                yield f"{name}: {area}"
                continue
            left, top, right, bottom = range_boundaries(cells)
            sizes = [int(each.get("val", "0")) for each in _all(reference, "ptCount")]
            if sizes != [(right - left + 1) * (bottom - top + 1)]:
                yield f"{name}: {area} is stored with {sizes}"
            for point in _all(reference, "pt"):
                stored = _all(point, "v")[0].text or ""
                shown = _cells(package, part)[_named(left - 1, top - 1 + int(point.get("idx", "0")))][0]
                if not _is_same(stored, shown, is_number=_local(reference) == "numRef"):
                    yield f"{name}: {stored!r} is stored for {shown!r}"
        axes = [
            each.get("val") for axis in ("catAx", "valAx") for each in _all(root, axis)[0] if _is_id(each)
        ]
        used = [each.get("val") for each in _all(root, "barChart")[0] if _is_id(each)]
        if sorted(map(str, axes)) != sorted(map(str, used)):
            yield f"{name}: axes {used} of {axes}"


# The two tables of tests

RULES: tuple[Rule, ...] = (
    parts_are_well_formed,
    every_part_has_its_content_type,
    relationships_lead_to_parts,
    ids_of_relationships_are_of_the_right_kind,
    names_of_sheets_are_legal,
    one_sheet_is_in_front,
    defined_names_lead_to_cells,
    properties_are_filled,
    children_of_a_sheet_are_in_sequence,
    rows_and_cells_ascend,
    cells_hold_numbers_or_text_that_fits,
    styles_exist,
    areas_can_be_read,
    links_lead_to_cells,
    headers_of_pages_fit,
    notes_are_on_cells_and_have_a_shape,
    drawings_are_anchored_and_described,
    charts_draw_cells,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_report_with_everything_in_it_has_no_fault(package: Package, rule: Rule) -> None:
    assert list(rule(package)) == []


LEADERBOARD, EVIDENCE, WORKBOOK = "xl/worksheets/sheet3.xml", "xl/worksheets/sheet6.xml", "xl/workbook.xml"
FAULTS: tuple[tuple[Rule, str, str, str], ...] = (
    (parts_are_well_formed, LEADERBOARD, "</sheetData>", ""),
    (parts_are_well_formed, "xl/drawings/vmlDrawing1.vml", "<v:shape ", "<v:shape & "),
    (
        every_part_has_its_content_type,
        "[Content_Types].xml",
        '<Override PartName="/xl/charts/chart1.xml"[^>]*/>',
        "",
    ),
    (every_part_has_its_content_type, "[Content_Types].xml", "drawingml.chart", "drawingml.cart"),
    (every_part_has_its_content_type, "[Content_Types].xml", "/xl/styles.xml", "/xl/style.xml"),
    (relationships_lead_to_parts, "xl/drawings/_rels/drawing1.xml.rels", "chart1.xml", "chart99.xml"),
    (relationships_lead_to_parts, "xl/_rels/workbook.xml.rels", 'Id="rId2"', 'Id="rId1"'),
    (
        relationships_lead_to_parts,
        "xl/_rels/workbook.xml.rels",
        '(Target="styles.xml")',
        r'\1 TargetMode="External"',
    ),
    (ids_of_relationships_are_of_the_right_kind, LEADERBOARD, '<drawing r:id="rId1"', '<drawing r:id="rId2"'),
    (ids_of_relationships_are_of_the_right_kind, WORKBOOK, 'r:id="rId1"', 'r:id="rId99"'),
    (names_of_sheets_are_legal, WORKBOOK, 'name="Leaderboard"', 'name="Leader:board"'),
    (names_of_sheets_are_legal, WORKBOOK, 'name="Leaderboard"', 'name="BOT SUMMARY"'),
    (names_of_sheets_are_legal, WORKBOOK, 'name="Leaderboard"', f'name="{"x" * 32}"'),
    (names_of_sheets_are_legal, WORKBOOK, 'sheetId="3"', 'sheetId="1"'),
    (one_sheet_is_in_front, WORKBOOK, 'activeTab="2"', 'activeTab="1"'),
    (defined_names_lead_to_cells, WORKBOOK, r"'Leaderboard'!\$W", "'Leader'!$W"),
    (defined_names_lead_to_cells, WORKBOOK, r"'Leaderboard'!\$W\$2", "'Leaderboard'!$B$2"),
    (defined_names_lead_to_cells, WORKBOOK, r"'Leaderboard'!\$W\$2", "'Leaderboard'!$ZZ$2"),
    (defined_names_lead_to_cells, WORKBOOK, 'name="Thr_Faithfulness"', 'name="Thr_Other"'),
    (properties_are_filled, "docProps/core.xml", "<dc:title>.*</dc:title>", "<dc:title></dc:title>"),
    (properties_are_filled, "docProps/core.xml", "2025-03-04T", "4.3.2025 "),
    (properties_are_filled, "docProps/app.xml", "<vt:lpstr>Leaderboard</vt:lpstr>", ""),
    (
        children_of_a_sheet_are_in_sequence,
        EVIDENCE,
        "(<hyperlinks>.*</hyperlinks>)(<pageMargins.*?/>)",
        r"\2\1",
    ),
    (children_of_a_sheet_are_in_sequence, LEADERBOARD, "(<legacyDrawing .*?/>)", r"\1\1"),
    (children_of_a_sheet_are_in_sequence, LEADERBOARD, "<autoFilter ", "<autofilter "),
    (rows_and_cells_ascend, LEADERBOARD, '<row r="3"', '<row r="2"'),
    (rows_and_cells_ascend, LEADERBOARD, '<c r="C2"', '<c r="B2"'),
    (rows_and_cells_ascend, LEADERBOARD, '<c r="C2"', '<c r="C3"'),
    (rows_and_cells_ascend, LEADERBOARD, '<dimension ref="A1:', '<dimension ref="B1:'),
    (cells_hold_numbers_or_text_that_fits, LEADERBOARD, "<v>.*?</v>", "<v>NaN</v>"),
    (cells_hold_numbers_or_text_that_fits, LEADERBOARD, ' t="inlineStr"', ' t="s"'),
    (cells_hold_numbers_or_text_that_fits, LEADERBOARD, "<t>Rank", "<t>" + "x" * 32_768),
    (styles_exist, LEADERBOARD, '(<c r="C2" s=)"\\d+"', r'\1"99"'),
    (styles_exist, LEADERBOARD, 'dxfId="0"', 'dxfId="9"'),
    (styles_exist, "xl/styles.xml", '(<cellXfs.*?fontId=)"1"', r'\1"99"'),
    (styles_exist, "xl/styles.xml", '<dxfs count="\\d+"', '<dxfs count="99"'),
    (areas_can_be_read, LEADERBOARD, '<conditionalFormatting sqref="E2:', '<conditionalFormatting sqref="2:'),
    (areas_can_be_read, LEADERBOARD, '<autoFilter ref="A1:', '<autoFilter ref="Z9:'),
    (areas_can_be_read, LEADERBOARD, 'priority="2"', 'priority="1"'),
    (links_lead_to_cells, EVIDENCE, "location=\"'Per-Query Metrics'", "location=\"'Per-Query'"),
    (links_lead_to_cells, EVIDENCE, '<hyperlink ref="A2"', '<hyperlink ref="A99999"'),
    (headers_of_pages_fit, LEADERBOARD, "<oddFooter>", "<oddFooter>" + "x" * 255),
    (headers_of_pages_fit, LEADERBOARD, "<oddFooter>", "<oddFooter>&amp;Z"),
    (notes_are_on_cells_and_have_a_shape, "xl/comments3.xml", '<comment ref="C1"', '<comment ref="C999"'),
    (notes_are_on_cells_and_have_a_shape, "xl/comments3.xml", 'authorId="0"', 'authorId="1"'),
    (notes_are_on_cells_and_have_a_shape, "xl/drawings/vmlDrawing3.vml", "<x:Column>2<", "<x:Column>1<"),
    (drawings_are_anchored_and_described, "xl/drawings/drawing1.xml", ' descr="[^"]*"', ""),
    (
        drawings_are_anchored_and_described,
        "xl/drawings/drawing2.xml",
        "<xdr:from><xdr:col>0",
        "<xdr:from><xdr:col>99",
    ),
    (drawings_are_anchored_and_described, "xl/drawings/drawing1.xml", 'cNvPr id="3"', 'cNvPr id="2"'),
    (
        drawings_are_anchored_and_described,
        "xl/drawings/drawing1.xml",
        '(<c:chart .*?r:id=)"rId2"',
        r'\1"rId1"',
    ),
    (charts_draw_cells, "xl/charts/chart1.xml", "<c:f>'Bot Summary'!", "<c:f>'Bots'!"),
    (charts_draw_cells, "xl/charts/chart2.xml", '<c:ptCount val="4"/>', '<c:ptCount val="5"/>'),
    (charts_draw_cells, "xl/charts/chart7.xml", '(<c:plus>.*?<c:ptCount val=)"4"', r'\1"0"'),
    (charts_draw_cells, "xl/charts/chart7.xml", "(<c:minus>.*?<c:v>)", r"\g<1>9"),
    (charts_draw_cells, "xl/charts/chart2.xml", "<c:v>GPT4 </c:v>", "<c:v>Other</c:v>"),
    (charts_draw_cells, "xl/charts/chart2.xml", '<c:axId val="\\d+"/>', '<c:axId val="1"/>'),
)


@pytest.mark.parametrize(("rule", "part", "found", "instead"), FAULTS)
def test_each_rule_finds_the_fault_that_it_is_for(
    package: Package, rule: Rule, part: str, found: str, instead: str
) -> None:
    broken, count = re.subn(found, instead, package[part].decode(), count=1, flags=re.DOTALL)
    assert count == 1
    assert list(rule({**package, part: broken.encode()}))


def test_every_rule_has_a_fault() -> None:
    assert {rule for rule, *_ in FAULTS} == {*RULES}


def test_failure_modes_are_shares_side_by_side_each_with_its_number(tmp_path: Path) -> None:
    """Stacked counts would add up to more failures than there are queries."""
    bad = [plain_result(row, "A", 0.1 if row < 62 else 0.9) for row in range(2, 102)]
    good = [plain_result(row, "B", 0.1 if row == 2 else 0.9) for row in range(2, 102)]
    path = write_report(tmp_path / "r.xlsx", [*bad, *good], facts_of("AB", 100))
    with zipfile.ZipFile(path) as archive:
        chart = fromstring(archive.read("xl/charts/chart1.xml"))
    stored = [[each.text for each in _all(_all(series, "val")[0], "v")] for series in _all(chart, "ser")]
    assert stored == [["0.6", "0.01"]] * 3
    assert [each.get("val") for each in _all(chart, "grouping")] == ["clustered"]
    labels = [_all(series, "dLbls")[0] for series in _all(chart, "ser")]
    assert [[each.get("val") for each in _all(label, "showVal")] for label in labels] == [["1"]] * 3


# Reading parts

_R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_parsed = cache(fromstring)


def _root(package: Package, name: str) -> Element:
    root: Element = _parsed(package[name])
    return root


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(root: Element, name: str) -> list[Element]:
    return root.findall(f".//{{*}}{name}")


def _number(root: Element, name: str) -> int:
    return int(_all(root, name)[0].text or "")


def _is_same(stored: str, shown: str, is_number: bool) -> bool:
    """Numbers may differ in their last digit, names by a space at the end."""
    return math.isclose(float(stored), float(shown)) if is_number else stored.strip() == shown.strip()


def _is_id(element: Element) -> bool:
    return _local(element) == "axId"


def _repeated(values: Iterable[object]) -> list[object]:
    return [value for value, count in Counter(values).items() if count > 1]


def _base(rels: str) -> str:
    """The folder that the targets of a part's relationships are relative to."""
    return posixpath.dirname(posixpath.dirname(rels))


def _relationships(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """Kind and target of each of a part's relationships, by id."""
    folder, name = posixpath.split(part)
    rels = f"{folder}/_rels/{name}.rels"
    return {
        each.get("Id", ""): (
            posixpath.basename(each.get("Type", "")),
            posixpath.normpath(posixpath.join(folder, each.get("Target", ""))),
        )
        for each in (_all(_root(package, rels), "Relationship") if rels in package else ())
    }


def _sheet_parts(package: Package) -> dict[str, str]:
    """The part of each sheet, by its name."""
    workbook = "xl/workbook.xml"
    parts = _relationships(package, workbook)
    return {
        sheet.get("name", ""): parts[sheet.get(_R_ID, "")][1]
        for sheet in _all(_root(package, workbook), "sheet")
    }


def _cells(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """What each cell of a sheet shows, and its type, by its place."""
    return _cells_of(_root(package, part))


@cache
def _cells_of(sheet: Element) -> dict[str, tuple[str, str]]:
    return {
        cell.get("r", ""): (
            "".join(each.text or "" for each in cell.iter() if _local(each) in ("t", "v")),
            cell.get("t", "n"),
        )
        for cell in _all(sheet, "c")
    }


def _target(package: Package, reference: str) -> tuple[str | None, str]:
    """The part and the area that a reference leads to; no part unless the area's corners are cells of it."""
    match = re.fullmatch(r"(?:'((?:[^']|'')+)'|(\w+))!(\S+)", reference)
    if not match:
        return None, ""
    part = _sheet_parts(package).get((match[1] or match[2]).replace("''", "'"))
    area = match[3].replace("$", "")
    if part is None or area == "1:1":
        return part, area
    corners = area.split(":")
    return (part if {*corners} <= {*_cells(package, part)} else None), area


def _place(cell: str) -> tuple[int, int]:
    """Column and row, from 1."""
    match = re.fullmatch(r"([A-Z]{1,3})([1-9]\d*)", cell)
    return (column_index_from_string(match[1]), int(match[2])) if match else (0, 0)


def _named(column: int, row: int) -> str:
    """The place of a cell; both are counted from 0."""
    return f"{get_column_letter(column + 1)}{row + 1}"


def _is_area(area: str) -> bool:
    """One cell, or two that are the upper left and the lower right of an area of a sheet."""
    places = [_place(cell) for cell in area.split(":")]
    first, last = places[0], places[-1]
    return len(places) <= 2 and 1 <= first[0] <= last[0] <= 16_384 and 1 <= first[1] <= last[1] <= 1_048_576

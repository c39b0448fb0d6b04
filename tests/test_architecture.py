"""What the layers contract of pyproject.toml cannot say: heavy packages are imported only where they are used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "rag_eval"
HEAVY = {
    "aiohttp",
    "ragas",
    "openai",
    "pandas",
    "numpy",
    "scipy",
    "openpyxl",
    "xlsxwriter",
    "python_calamine",
    "pyarrow",
    "httpx2",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The module or sub-package right below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import rag_eval.cli", set()),
        (
            "import rag_eval.configuration, rag_eval.results.scoring, rag_eval.store.reply_store",
            set(),
        ),
        ("import rag_eval.run.evaluation", set()),
        ("import rag_eval.metrics.ragas_import", set()),
        ("import rag_eval.tables, rag_eval.report.workbook", set()),
    ],
)
def test_heavy_packages_are_imported_only_where_they_are_used(statement: str, allowed: set[str]) -> None:
    code = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    assert set(loaded.stdout.split()) & HEAVY == allowed


def test_only_the_command_line_prints_reads_the_environment_and_exits() -> None:
    offenders = []
    for path in modules():
        if part_of(path) in ("cli", "__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("print", "input", "exit")
            ):
                offenders.append(f"{path.name}:{node.lineno} {node.func.id}")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                if name in ("sys.exit", "sys.argv", "os.getenv"):
                    offenders.append(f"{path.name}:{node.lineno} {name}")
    assert offenders == []


def test_no_pickle_eval_or_unsafe_yaml() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in modules())
    assert not any(word in text for word in ("import pickle", "pickle.load", " eval(", "yaml.load(", "exec("))


UNFROZEN = {
    *(
        "Attempt",
        "_Pair",
        "_CallCounts",
        "Deployment",
        "Estimate",
        "Evidence",
        "_Grouped",
        "Parcel",
        "Request",
        "ReviewLabels",
    ),
    *(
        "Grounding",
        "Score",
        "Wave",
        "_Column",
        "_Held",
        "_Item",
        "_Judged",
        "_SentenceSupport",
        "_Worker",
        "_Write",
    ),
}
"""Those that change while something goes on, and those that are too many to be made slowly."""


def test_values_cannot_be_changed_after_they_were_made_and_are_small() -> None:
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                makers = [ast.unparse(each) for each in node.decorator_list]
                (*_, maker) = ["", *(maker for maker in makers if maker.startswith("dataclass"))]
                assert not maker or "slots=True" in maker, node.name
                if maker and "frozen=True" not in maker:
                    found.add(node.name)
    assert found == UNFROZEN

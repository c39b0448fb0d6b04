"""The direction of imports: a module imports only from lower levels, and heavy packages only where they are used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "rag_eval"
LEVELS = {
    "errors": 1,
    "records": 1,
    "settings": 2,
    "chunking": 2,
    "text": 2,
    "addresses": 2,
    "scoring": 2,
    "statistics": 2,
    "summary": 2,
    "document_ids": 2,
    "record_files": 4,
    "bounds": 2,
    "input_files": 2,
    "flags": 3,
    "redaction": 2,
    "lock": 2,
    "pass_rates": 2,
    "noise": 2,
    "shortening": 2,
    "file_systems": 2,
    "store_format": 2,
    "configuration": 3,
    "retrieval": 3,
    "leftovers": 3,
    "store_file": 3,
    "alignment": 3,
    "store": 4,
    "workbook": 3,
    "retrieval_files": 5,
    "judge": 4,
    "baseline": 4,
    "stand_ins": 5,
    "metrics": 5,
    "concealing": 5,
    "gates": 5,
    "rubric": 5,
    "in_force": 6,
    "evaluators": 6,
    "rubric_judge": 6,
    "recommend": 6,
    "estimate": 7,
    "panel": 7,
    "runner": 8,
    "report": 8,
    "terminal": 8,
    "frames": 9,
    "cli": 10,
    "start": 11,
    "__main__": 12,
}
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


def imports(path: Path) -> Iterator[str]:
    """Our own modules that a module imports anywhere in it, as dotted names below the package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rag_eval":
            below = node.module.removeprefix("rag_eval").lstrip(".")
            yield from [below] if below else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (
                a.name.removeprefix("rag_eval.") for a in node.names if a.name.startswith("rag_eval.")
            )


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        assert not list(imports(path))
        return
    for name in imports(path):
        target = name.split(".")[0]
        if target not in (part, "__version__"):
            assert LEVELS[target] < LEVELS[part], f"{part} imports {name}"


def test_there_is_no_cycle() -> None:
    names = {
        ".".join(p.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): p for p in modules()
    }
    graph = {name: [i for i in imports(path) if i in names and i != name] for name, path in names.items()}
    finished: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"cycle: {' -> '.join((*trail, name))}"
        if name not in finished:
            for target in graph[name]:
                visit(target, (*trail, name))
            finished.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import rag_eval.cli", set()),
        (
            "import rag_eval.configuration, rag_eval.results.scoring, rag_eval.results.summary, rag_eval.store.reply_store",
            set(),
        ),
        ("import rag_eval.run.evaluation", set()),
        ("import rag_eval.metrics.ragas_metrics", set()),
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
        if part_of(path) in ("cli", "start", "__main__"):
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


def test_r60_no_pickle_eval_or_unsafe_yaml() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in modules())
    assert not any(word in text for word in ("import pickle", "pickle.load", " eval(", "yaml.load(", "exec("))

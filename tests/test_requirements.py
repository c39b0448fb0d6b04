"""What gets installed is what was tested."""

import ast
import re
import sys
import tomllib
import xml.parsers.expat
from importlib.metadata import packages_distributions
from pathlib import Path

from rag_eval.metrics.ragas_import import _TESTED

ROOT = Path(__file__).parent.parent


def test_r87_every_pin_has_the_hashes_of_its_files() -> None:
    """R-87: requirements.lock holds the pins of requirements.txt, each with a SHA-256; what else is in it is for other
    systems than the one that the pins were made on."""
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", lock, re.MULTILINE | re.DOTALL)
    locked = {normal(name): version for name, version, _ in entries}
    pinned = {normal(name): version for name, version in pins}
    assert locked | pinned == locked
    assert all(" ; " in rest.splitlines()[0] for name, _, rest in entries if normal(name) not in pinned)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", rest) for _, _, rest in entries)
    assert "://" not in lock, "packages come from the index that pip is set up with"


def test_r87_the_light_installation_has_the_same_pins_and_ragas_without_its_requirements() -> None:
    """R-87: what is in it is in requirements.lock too, of the same version and with the same hashes."""
    whole, light = (entries_of(ROOT / name) for name in ("requirements.lock", "requirements-light.lock"))
    assert light.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {normal(re.split(r"[<>=\[ ]", each)[0]) for each in project["dependencies"]}
    assert needed | {"ragas"} <= light.keys()
    assert light.keys().isdisjoint({"datasets", "langchain-core", "pandas", "pyarrow"})
    assert _TESTED in project["optional-dependencies"]["ragas"]
    assert _TESTED in (ROOT / "requirements-light.lock").read_text()


def entries_of(path: Path) -> dict[str, tuple[str, ...]]:
    """Version and hashes of each package in a list of pins."""
    found = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\w|\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
    return {normal(name): (version, *re.findall(r"sha256:\w+", rest)) for name, version, rest in found}


def test_r87_the_xml_parser_withstands_billions_of_laughs() -> None:
    """R-87: expat 2.4.1 and later limits how far entities may grow."""
    version = tuple(int(part) for part in re.findall(r"\d+", xml.parsers.expat.EXPAT_VERSION))
    assert version >= (2, 4, 1)


def test_whatever_is_imported_is_declared() -> None:
    """A package that only comes with another one may go with its next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    extras = [each for name, extra in optional.items() if name not in ("dev", "all") for each in extra]
    declared = {normal(re.split(r"[<>=\[ ]", each)[0]) for each in [*project["dependencies"], *extras]}
    distributions = packages_distributions()
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "rag_eval").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imports(node)
    }
    known = sys.stdlib_module_names | {"rag_eval", "pydantic_core"}  # which is pydantic's own half
    assert not [name for name in imported - known if declared.isdisjoint(map(normal, distributions[name]))]


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def normal(name: str) -> str:
    """As package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()

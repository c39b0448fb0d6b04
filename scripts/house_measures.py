"""How much of the package a reader has to hold in the head: python scripts/house_measures.py [TREE] [--names]

Counted in the source text below TREE, nothing is imported. The numbers are absolute: a share improves while the
package grows.

room            a folder with modules, or a module that lies right below the package
arrow           a pair of rooms of which one imports from the other, for types and inside functions included
floors          rooms on the longest chain of arrows that a run follows (imports for types are not followed)
circle          two rooms that import each other when the program runs, over however many others
import depth    modules on the longest chain of imports at the top of modules (those for types are not followed)
public name     a class or function at the top of a module whose name has no underscore in front
helper with a single caller   a function of one underscore whose name is used once in its module, not counting
                its own body
private names of others       `_x` imported from another package, or read from a value that is not self or cls
                while nothing in the package is called so
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "rag_eval"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_OPEN = frozenset({"_asdict", "_exit", "_fields", "_make", "_replace"})
"""Public in spite of their names."""


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    value: int
    goal: int | None
    """The most that is wanted; None where the number is only shown."""
    names: Sequence[str] = ()
    """What is counted, where it lies."""

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.value <= self.goal


class Module:
    """One source file."""

    def __init__(self, path: Path, tree: Path) -> None:
        self.place = path.relative_to(tree).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.syntax = ast.parse(self.text)
        parts = path.relative_to(tree).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.parts = parts[:-1] if self.is_package else parts

    @property
    def name(self) -> str:
        return ".".join(self.parts)

    @property
    def room(self) -> str:
        folder = self.parts if self.is_package else self.parts[:-1]
        return self.name if folder == (PACKAGE,) else ".".join(folder)

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.syntax.body if isinstance(node, ast.ClassDef)]

    @cached_property
    def functions(self) -> list[Function]:
        bodies = [self.syntax.body, *(each.body for each in self.classes)]
        return [node for body in bodies for node in body if isinstance(node, Function)]

    @property
    def public(self) -> Iterator[ast.ClassDef | Function]:
        for node in self.syntax.body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                yield node

    def at(self, node: ast.AST, what: str) -> str:
        return f"{self.place}:{getattr(node, 'lineno', 1)} {what}"

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def imported(
        self, known: Mapping[str, "Module"], *, for_types: bool, at_once: bool = False
    ) -> Iterator[str]:
        """Names of the package's modules that this one imports, anywhere in it or, `at_once`, outside functions."""
        skipped = set() if for_types else {id(node) for node in _only_for_types(self.syntax)}
        if at_once:
            skipped |= {id(node) for function in self.functions for node in ast.walk(function)}
        for node in ast.walk(self.syntax):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in known)
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(node)
                for alias in node.names:
                    full = f"{module}.{alias.name}"
                    yield from [name for name in (full, module) if name in known][:1]

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        up = node.level - self.is_package
        return ".".join((*self.parts[: len(self.parts) - up], *filter(None, [node.module])))

    def single_callers(self) -> Iterator[Function]:
        used = Counter(_names(self.syntax))
        for function in self.functions:
            if _is_private(function.name):
                within = sum(name == function.name for name in _names(function))
                if used[function.name] - within == 1:
                    yield function


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _names(tree: ast.AST) -> Iterator[str]:
    """Every name and attribute that is read."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _only_for_types(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from ast.walk(statement)


def read(tree: Path) -> list[Module]:
    return [Module(path, tree) for path in sorted((tree / PACKAGE).rglob("*.py"))]


def arrows(modules: Sequence[Module], *, for_types: bool) -> set[tuple[str, str]]:
    """Pairs of rooms: the one that imports, the one that it imports from."""
    known = {module.name: module for module in modules}
    pairs = (
        (module.room, known[name].room)
        for module in modules
        for name in module.imported(known, for_types=for_types)
    )
    return {(one, other) for one, other in pairs if one != other}


def import_depth(modules: Sequence[Module]) -> int:
    known = {module.name: module for module in modules}
    pairs = (
        (module.name, name)
        for module in modules
        for name in module.imported(known, for_types=False, at_once=True)
    )
    return circles_and_floors(pairs)[1]


def circles_and_floors(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], int]:
    """Rooms that can be reached from themselves; and how many rooms the longest chain of the others has."""
    below: dict[str, set[str]] = {}
    for one, other in pairs:
        below.setdefault(one, set()).add(other)
        below.setdefault(other, set())
    in_circles = sorted(room for room in below if room in _reached(room, below))
    heights: dict[str, int] = {}

    def height(room: str) -> int:
        if room not in heights:
            heights[room] = 1 + max(
                (height(each) for each in below[room] if each not in in_circles), default=0
            )
        return heights[room]

    return in_circles, max((height(room) for room in below if room not in in_circles), default=1)


def _reached(start: str, below: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(below[start])
    while waiting:
        room = waiting.pop()
        if room not in found:
            found.add(room)
            waiting.extend(below[room])
    return found


def measures(modules: Sequence[Module], tests: int) -> list[Measure]:
    """In the order in which they are printed. `tests` are lines."""
    rooms = sorted({module.room for module in modules})
    drawn = arrows(modules, for_types=True)
    circles, floors = circles_and_floors(arrows(modules, for_types=False))
    public = [module.at(node, node.name) for module in modules for node in module.public]
    single = [module.at(each, each.name) for module in modules for each in module.single_callers()]
    return [
        Measure("modules", len(modules), 200),
        Measure("lines", sum(module.lines for module in modules), 34_000),
        Measure("lines of tests", tests, 34_000),
        Measure("public names", len(public), 700, public),
        Measure("helpers with a single caller", len(single), None, single),
        Measure("import depth", import_depth(modules), 12),
        Measure("rooms", len(rooms), None, rooms),
        Measure("arrows between rooms", len(drawn), 100, sorted(f"{a} -> {b}" for a, b in drawn)),
        Measure("floors", floors, 9),
        Measure("rooms in circles", len(circles), 0, circles),
        _twice("module stems used twice", 3, _stems(modules)),
        _twice("class names used twice", 0, _class_names(modules)),
        _private(modules),
    ]  # fmt: skip


def lines_of_tests(tree: Path) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in (tree / "tests").glob("*.py"))


def _stems(modules: Iterable[Module]) -> Iterator[tuple[str, str]]:
    for module in modules:
        if not module.is_package:
            yield module.parts[-1], module.place


def _class_names(modules: Iterable[Module]) -> Iterator[tuple[str, str]]:
    for module in modules:
        for node in module.classes:
            yield node.name, module.at(node, "").rstrip()


def _twice(name: str, goal: int, places: Iterable[tuple[str, str]]) -> Measure:
    found: dict[str, list[str]] = {}
    for each, place in places:
        found.setdefault(each, []).append(place)
    twice = {each: where for each, where in found.items() if len(where) > 1}
    listed = [f"{each}: {', '.join(where)}" for each, where in sorted(twice.items())]
    return Measure(name, len(twice), goal, listed)


def _private(modules: Sequence[Module]) -> Measure:
    """Private names of other packages."""
    ours = {name for module in modules for name in _defined(module.syntax)}
    found = [module.at(node, name) for module in modules for node, name in _foreign(module, ours)]
    return Measure("private names of other packages", len(found), 0, found)


def _defined(tree: ast.AST) -> Iterator[str]:
    """Names of functions, classes, parameters, fields and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | Function):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _foreign(module: Module, ours: set[str]) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported_names(node):
                if _top(name) != PACKAGE and any(map(_is_private, name.split("."))):
                    yield node, name
        elif isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in ours | _OPEN:
            value = ast.unparse(node)
            yield from [] if value.startswith(("self._", "cls._")) else [(node, value)]


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """In full; of the package's own modules for relative imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{PACKAGE if node.level else node.module}.{alias.name}" for alias in node.names]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _line(measure: Measure) -> str:
    value = f"{measure.name:<38} {measure.value:,}"
    if measure.goal is None:
        return value
    return f"{value:<50}at most {measure.goal:<8,}{'met' if measure.is_met else 'not met'}"


def main(words: Sequence[str] | None = None, say: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tree", nargs="?", type=Path, default=Path(), help="working tree  [default: this folder]"
    )
    parser.add_argument(
        "--names", action="store_true", help="list what is behind each measure that is not met"
    )
    options = parser.parse_args(words)
    modules = read(options.tree)
    if not modules:
        sys.exit(f"{options.tree / PACKAGE}: holds no modules")
    for each in measures(modules, lines_of_tests(options.tree)):
        say(_line(each))
        if options.names and not each.is_met:
            for name in each.names:
                say(f"    {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

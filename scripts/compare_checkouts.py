"""Say whether two checkouts of this project behave alike: python scripts/compare_checkouts.py OLD NEW

Both are run through the same scenarios (scripts/checkouts/scenarios.py), with an offline judge and with one judge
on loopback that answers both, and everything that can be seen from outside is compared: exit codes, what is printed,
workbooks cell by cell, the other outputs, the requests to the judge byte by byte, and the keys of stored replies.
Times, paths and ports are left out. Exits with 1 if there is any difference that is not accepted.

Needs the packages that the tests need.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkouts.judge import Conversation, Judge, running_judge
from checkouts.results import FILES, REPLACEMENTS, REQUESTS, TERMINAL, Difference, accepted, compare
from checkouts.scenarios import SCENARIOS, Scenario

_WRONG_PACKAGE = 97
_START = f"""
import pathlib, runpy, sys

tree, kind, *arguments = sys.argv[1:]
sys.path.insert(0, tree)
import rag_eval

if not pathlib.Path(rag_eval.__file__).resolve().is_relative_to(pathlib.Path(tree).resolve()):
    sys.stderr.write(f"rag_eval is imported from {{rag_eval.__file__}}, not from {{tree}}")
    sys.exit({_WRONG_PACKAGE})
if kind == "rag-eval":
    sys.argv = ["rag-eval", *arguments]
    from rag_eval.cli import main

    main()
else:
    path = f"{{tree}}/rag_eval_standalone.py" if kind == "standalone" else arguments.pop(0)
    sys.argv = [path, *arguments]
    runpy.run_path(path, run_name="__main__")
"""
_SECONDS = 300
"""A command that takes longer is stopped, and that is its result."""


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    """old or new."""
    tree: Path
    python: str
    results: Path

    def check(self) -> None:
        """Exit unless its Python imports the package of its tree."""
        started = self._run(["rag-eval", "--version"], self.results, _environment(self.results))
        if started.returncode != 0:
            sys.exit(f"{self.tree}: {self.python} cannot start rag-eval there: {started.stderr.strip()}")

    def run(self, scenario: Scenario, judge: Judge, sample: Path) -> None:
        """Run the commands of a scenario in a folder of its own, and keep what they leave behind."""
        folder = self.results / scenario.name
        files = folder / FILES
        files.mkdir(parents=True)
        conversation = judge.conversation(f"{self.name} {scenario.name}", scenario.traits)
        for name, content in scenario.files.items():
            raw = content.replace("<url>", judge.url).encode() if isinstance(content, str) else content
            (files / name).write_bytes(raw)
        shutil.copy(sample, files / "sample.xlsx")
        variables = _environment(folder) | (_credentials(judge, conversation) if scenario.has_key else {})
        ended = [self._ended(*_expected(command), files, variables) for command in scenario.commands]
        (folder / TERMINAL).write_text(json.dumps(ended, indent=1), encoding="utf-8")
        conversation.write(folder / REQUESTS)

    def _ended(
        self, command: str, expected: int, folder: Path, variables: Mapping[str, str]
    ) -> dict[str, object]:
        told = {"command": command, "expected": expected}
        try:
            ended = self._run(shlex.split(command), folder, variables)
        except subprocess.TimeoutExpired:
            return {**told, "code": f"still running after {_SECONDS} s", "stdout": "", "stderr": ""}
        if ended.returncode == _WRONG_PACKAGE:
            raise RuntimeError(ended.stderr)
        return {**told, "code": ended.returncode, "stdout": ended.stdout, "stderr": ended.stderr}

    def _run(
        self, words: Sequence[str], folder: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - commands of ours
            [self.python, "-c", _START, str(self.tree), *words],
            cwd=folder,
            env={**variables, "PYTHONPATH": str(self.tree)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )


def _expected(command: str) -> tuple[str, int]:
    words, _, code = command.partition(" => ")
    return words, int(code or 0)


def _environment(folder: Path) -> dict[str, str]:
    """Next to nothing of the caller's, and no key: only what a process cannot do without."""
    home, temporary = folder / "home", folder / "temporary"
    home.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "COMSPEC") if name in os.environ}
    places = dict.fromkeys(("HOME", "USERPROFILE"), str(home)) | dict.fromkeys(
        ("TMPDIR", "TEMP", "TMP"), str(temporary)
    )
    return {
        **kept,
        **places,
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
        "PYTHONSAFEPATH": "1",
        "PYTHONUTF8": "1",
        "TZ": "UTC",
    }


def _credentials(judge: Judge, conversation: Conversation) -> dict[str, str]:
    return {
        "AZURE_OPENAI_ENDPOINT": judge.url,
        "AZURE_OPENAI_API_KEY": conversation.key,
        "OPENAI_BASE_URL": f"{judge.url}/v1",
        "OPENAI_API_KEY": conversation.key,
    }


def _run_all(sides: Sequence[Side], scenarios: Sequence[Scenario], judge: Judge, jobs: int) -> None:
    for side in sides:
        side.results.mkdir(parents=True)
        side.check()
        replaced = {
            str(side.results): "<results>",
            str(side.tree): "<tree>",
            judge.url.rpartition(":")[2]: "<port>",
        }
        (side.results / REPLACEMENTS).write_text(json.dumps(replaced), encoding="utf-8")
    sample = sides[-1].tree / "sample_rag_input.xlsx"
    with ThreadPoolExecutor(jobs) as pool:
        begun = [pool.submit(side.run, scenario, judge, sample) for scenario in scenarios for side in sides]
        for each in begun:
            each.result()


def _report(differences: Sequence[Difference], limit: int) -> None:
    for output, group in itertools.groupby(differences, key=lambda difference: difference.output):
        found = list(group)
        for difference in found[: limit or None]:
            print(difference)
        if limit and len(found) > limit:
            print(f"    … and {len(found) - limit} more in {output}; --limit 0 prints all")


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept:
        if kept.exists() and any(kept.iterdir()):
            sys.exit(f"{kept}: is not empty; name another folder with --keep")
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="checkouts-") as folder:
        yield Path(folder).resolve()


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="working tree of the checkout to compare with")
    parser.add_argument("new", type=Path, help="working tree of the checkout that was changed")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="run only this scenario")
    parser.add_argument(
        "--accept", action="append", default=[], type=re.compile, metavar="REGEX",
        help="accept differences in whose place, or in whose 'old -> new', this is found",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the scenarios and exit")
    parser.add_argument("--limit", type=int, default=5, help="differences shown per output (0: all)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep everything that was written there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="scenarios at a time")
    parser.add_argument("--old-python", default=sys.executable, help="the Python that runs OLD")
    parser.add_argument("--new-python", default=sys.executable, help="the Python that runs NEW")
    parser.add_argument(
        "--judge", type=Path, metavar="FILE", help="module of replies  [default: NEW/tests/fake_judge.py]"
    )
    return parser.parse_args(words)


def _chosen(names: Sequence[str]) -> list[Scenario]:
    known = [scenario.name for scenario in SCENARIOS]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"--only {unknown[0]}: is not a scenario; one of {', '.join(known)}")
    return [scenario for scenario in SCENARIOS if not names or scenario.name in names]


def main(words: Sequence[str] | None = None) -> int:
    options = _arguments(words)
    scenarios = _chosen(options.only)
    if options.list:
        print("\n".join(f"{each.name}: {'; '.join(each.commands)}" for each in scenarios))
        return 0
    began = time.monotonic()
    replies = options.judge or options.new / "tests" / "fake_judge.py"
    with _folder(options.keep) as folder, running_judge(replies) as judge:
        old = Side("old", options.old.resolve(), options.old_python, folder / "old")
        new = Side("new", options.new.resolve(), options.new_python, folder / "new")
        _run_all((old, new), scenarios, judge, options.jobs)
        count = agreed = 0
        for scenario in scenarios:
            found = list(compare(old.results, new.results, scenario.name))
            left = [each for each in found if not accepted(each, options.accept)]
            _report(left, options.limit)
            count, agreed = count + len(left), agreed + len(found) - len(left)
            print(f"{scenario.name}: {len(left)} differences" if left else f"{scenario.name}: alike")
    print(
        f"{len(scenarios)} scenarios, {count} differences, {agreed} accepted, {time.monotonic() - began:.0f} s"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

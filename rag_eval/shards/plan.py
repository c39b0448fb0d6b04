"""What a run in shards is about to judge: read once, written to its folder, and found there again by the next run."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_eval.configuration.loading import LoadedSettings
from rag_eval.configuration.settings import Settings
from rag_eval.configuration.sources import Level, Source
from rag_eval.errors import InputError
from rag_eval.records import Row
from rag_eval.results.looks import key_of_text
from rag_eval.run.pairs import PairPlan
from rag_eval.shards.folder import (
    RunFolder,
    fingerprint,
    fingerprint_of_file,
    release_memory,
    write_json,
    write_rows,
)
from rag_eval.tables.columns import ColumnUse
from rag_eval.tables.joining import require_same_units
from rag_eval.tables.table import Table
from rag_eval.texts.citations import Habit, joined
from rag_eval.texts.display import counted

FORMAT = "rag-eval-shards/1"
SHARD_ROWS = 5_000
"""Most rows of a shard unless another number is asked for."""
_LEAST_ROWS = 500
"""So many are worth the files of a shard."""
_SHARDS_EACH = 4
"""As many shards for each process are enough for all processes to end together."""


def rows_of_shard(rows: int, processes: int) -> int:
    """How many rows of about so many a shard has, if nobody says; `processes` judge at the same time."""
    return max(_LEAST_ROWS, min(SHARD_ROWS, -(-rows // (_SHARDS_EACH * processes))))


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputFile(_Written):
    """One file of the input."""

    name: str
    sha256: str
    rows: int


class Shard(_Written):
    """A part of one file."""

    source: str
    rows: int
    input: str
    """Fingerprint of the rows."""


class Plan(_Written):
    """The manifest of a run in shards. It holds no secret."""

    format: str = FORMAT
    version: str
    started: str
    sources: tuple[InputFile, ...]
    reading: dict[str, Any]
    """The options and settings that the files were read with."""
    shard_rows: int
    table: dict[str, Any]
    """What all files have in common, without their rows."""
    shards: tuple[Shard, ...]
    pairs: PairPlan | None = None
    """Which responses are compared in pairs; None if none are."""
    settings: dict[str, Any] = {}
    """Those of the last run over this folder, as they were given."""
    origins: dict[str, tuple[str, str, int]] = {}
    """Where they come from, by 'section.key': level, name and line."""
    fresh_since: float = 0.0
    """Parts and stored replies from before that time, in seconds since 1970, are not wanted: it is when the last run
    with --fresh began."""
    judging: str = ""
    """Fingerprint of everything that scores depend on, as the last run asked for it."""

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def with_shards_of(self, planner: "Planner") -> "Plan":
        """With the rows that were written again. Raises InputError unless the shards are cut as they were."""
        is_same_cut = [(shard.source, shard.rows) for shard in planner.shards] == [
            (shard.source, shard.rows) for shard in self.shards
        ]
        if tuple(planner.sources) != self.sources or not is_same_cut:
            raise InputError(
                f"the input is now read as other rows than when the run began with RAG Eval {self.version}; use that "
                "version, or another -o for a new run"
            )
        return self.model_copy(update={"shards": tuple(planner.shards)})

    @property
    def inputs_hash(self) -> str:
        """SHA-256 of the input file, or of those of several files."""
        hashes = [source.sha256 for source in self.sources]
        return hashes[0] if len(hashes) == 1 else fingerprint(hashes)

    def table_without_rows(self) -> Table:
        columns = tuple(ColumnUse(**use) for use in self.table["columns"])
        lists = {name: tuple(self.table[name]) for name in ("bots", "warnings", "selection")}
        path = Path(self.table["path"])
        habits = {bot: Habit(*counts) for bot, counts in self.table.get("habits", {}).items()}
        return Table(
            **{**self.table, **lists, "path": path, "columns": columns, "rows": (), "habits": habits}
        )

    def loaded_settings(self) -> LoadedSettings:
        """Those of the last run over this folder, without keys."""
        settings = Settings.model_validate(self.settings)
        sources = {f"{section}.{key}": Source(Level.DEFAULT) for section, keys in settings for key, _ in keys}
        sources |= {
            key: Source(Level(level), name, line) for key, (level, name, line) in self.origins.items()
        }
        return LoadedSettings(settings, sources, {}, ())


def pairs_of(settings: Settings, bots: Sequence[str], shards: Iterable[Iterable[Row]]) -> PairPlan | None:
    """Which responses are compared in pairs, from the rows of all shards. See PairPlan.of."""
    rows = (row for shard in shards for row in shard)
    return PairPlan.of(settings, bots, (key_of_text(row.cases[0].question) for row in rows))


def read_plan(folder: RunFolder) -> Plan | None:
    """The plan in a folder; None if there is none. Raises InputError for a manifest that is something else."""
    try:
        return Plan.model_validate_json(folder.manifest.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise InputError(
            f"{folder.root}: is a file, but a run in shards writes a folder; use another -o"
        ) from None
    except (OSError, ValidationError) as error:
        raise InputError(
            f"{folder.manifest}: is not the manifest of a run in shards; use another -o, or move this file away"
        ) from error


def write_plan(folder: RunFolder, plan: Plan) -> None:
    """Raises OutputError."""
    write_json(folder.manifest, plan.model_dump(mode="json"))


def check_unchanged(
    folder: RunFolder,
    plan: Plan,
    paths: Sequence[Path],
    asked: Mapping[str, Any],
    shard_rows: int | None,
) -> None:
    """Raises InputError if the run in this folder was begun with something else than what is asked for now."""
    problems = []
    names = [source.name for source in plan.sources]
    now = {name_of(path, paths): path for path in paths}
    if names != list(now):
        problems.append(f"the input is now {_listed(list(now))}, and was {_listed(names)}")
    else:
        problems += [
            f"{now[source.name]}: has changed since the run in {folder.root} began"
            for source in plan.sources
            if fingerprint_of_file(now[source.name]) != source.sha256
        ]
    was = json.loads(json.dumps(plan.reading))
    told = json.loads(json.dumps(dict(asked)))
    problems += [
        f"{key} is {_value_of(key, told)}, and was {_value_of(key, was)} when the run in {folder.root} began"
        for key in sorted({*was, *told})
        if was.get(key) != told.get(key)
    ]
    if shard_rows is not None and shard_rows != plan.shard_rows:
        problems.append(f"--shard-rows is {shard_rows:,}, and was {plan.shard_rows:,} when the run began")
    if problems:
        problems[-1] += "; use another -o for a new run, or the same input and options to continue this one"
        raise InputError(problems)


def _value_of(key: str, values: Mapping[str, Any]) -> str:
    return repr(values[key]) if key in values else "not set"


def name_of(path: Path, paths: Sequence[Path]) -> str:
    """How the report calls a file: without folders, unless two files have one name."""
    names = [each.name for each in paths]
    return path.name if names.count(path.name) == 1 else str(path)


class Planner:
    """Cuts tables into shards, one file after the other, and writes the rows of each."""

    def __init__(
        self, folder: RunFolder, shard_rows: int, *, is_one_file: bool, kept: Mapping[int, str] | None = None
    ) -> None:
        """`kept` are shards whose rows are not written again, with the fingerprints that these have."""
        self._folder = folder
        self.shard_rows = shard_rows
        self._is_one_file = is_one_file
        self._kept = kept or {}
        self.sources: list[InputFile] = []
        self.shards: list[Shard] = []
        self._table: Table | None = None
        self._decimals: dict[str, set[str]] = defaultdict(set)

    @property
    def decimals(self) -> dict[str, str]:
        """Decimal separators of columns with latency and cost that some files tell and others do not."""
        return {
            name: (signs - {""}).pop()
            for name, signs in self._decimals.items()
            if "" in signs and len(signs) == 2
        }

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def add(self, name: str, table: Table, sha256: str, most: int) -> None:
        """Take up to `most` rows of a file. Raises InputError if it has other bots than the first."""
        first = self._table
        if first:
            require_same_bots(self.sources[0].name, first, name, table)
            require_same_units(self.sources[0].name, first, name, table)
        for name_of_column, sign in table.decimals.items():
            self._decimals[name_of_column].add(sign)
        before = self.rows
        taken = min(most, len(table.rows))
        rows = self._numbered(name, table, before) if not self._is_one_file else iter(table.rows)
        wanted = islice(rows, taken)
        while some := list(islice(wanted, min(self.shard_rows, sys.maxsize))):
            number = len(self.shards)
            digest = self._kept.get(number) or write_rows(self._folder.input(number), some)
            self.shards.append(Shard(source=name, rows=len(some), input=digest))
        release_memory()
        self.sources.append(InputFile(name=name, sha256=sha256, rows=taken))
        cut = table.cut_rows + len(table.rows) - taken
        self._table = _together(first, table, cut) if first else replace(table, cut_rows=cut)

    def table(self) -> dict[str, Any]:
        """What all files have in common, in values that JSON knows."""
        if self._table is None:
            return {}
        table = self._table
        reading = {name: value for name, value in table.reading.items() if name != "columns"}
        return {
            **reading,
            "path": table.path.name,
            "sheet": table.sheet,
            "columns": table.reading["columns"],
            "bots": list(table.bots),
            "blank_rows": table.blank_rows,
            "cut_rows": table.cut_rows,
            "chunks": table.chunks,
            "dropped_items": table.dropped_items,
            "has_documents": table.has_documents,
            "with_history": table.with_history,
            "habits": {bot: list(habit) for bot, habit in table.habits.items()},
        }

    @staticmethod
    def _numbered(name: str, table: Table, before: int) -> Iterator[Row]:
        """With numbers that count through all files; each case says where it comes from."""
        for number, row in enumerate(table.rows, before + 1):
            cases = tuple(replace(case, row=number, source=name, source_row=case.row) for case in row.cases)
            yield replace(row, number=number, cases=cases)


def require_same_bots(first_name: str, first: Table, name: str, table: Table) -> None:
    """Raises InputError if a file has other bots than the first."""
    if first.bots != table.bots:
        raise InputError(
            f"{name}: has the bots {', '.join(table.bots)}, but {first_name} has {', '.join(first.bots)}; judge files "
            "with other bots, or in another order, in a run of their own"
        )


def cut(tables: Iterable[Table], most: int, shard_rows: int) -> Iterator[list[Row]]:
    """The rows of each shard, up to `most` altogether. A shard has rows of one file."""
    for table in tables:
        rows = islice(iter(table.rows), most)
        most -= min(most, len(table.rows))
        while some := list(islice(rows, min(shard_rows, sys.maxsize))):
            yield some


def _together(first: Table, table: Table, cut: int) -> Table:
    kinds = dict(first.context_cells)
    for kind, count in table.context_cells.items():
        kinds[kind] = kinds.get(kind, 0) + count
    known = {(use.role, use.bot, use.metric) for use in first.columns}
    more = tuple(use for use in table.columns if (use.role, use.bot, use.metric) not in known)
    return replace(
        first,
        columns=(*first.columns, *more),
        blank_rows=first.blank_rows + table.blank_rows,
        cut_rows=first.cut_rows + cut,
        chunks=first.chunks + table.chunks,
        dropped_items=first.dropped_items + table.dropped_items,
        warnings=tuple(dict.fromkeys((*first.warnings, *table.warnings))),
        context_cells=kinds,
        has_documents=first.has_documents or table.has_documents,
        with_history=first.with_history + table.with_history,
        habits=joined(first.habits, table.habits),
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{counted(len(names), 'file')} ({shown}{' …' if len(names) > 5 else ''})"

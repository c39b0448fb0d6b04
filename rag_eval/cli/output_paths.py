"""Where a run writes: over nothing that it reads or writes otherwise, and only where there is room."""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rag_eval.cli.manifest import exit_code_of
from rag_eval.cli.options import Options
from rag_eval.errors import ExitCode, InputError

if TYPE_CHECKING:
    from rag_eval.cli.history import HistoryOfRun
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.report.outputs import Output, Outputs


class OutputPaths:
    """The files of one run, by the options that name them.

    As a context, it notes on an error that ends the run what its user finds in place of a report.
    """

    def __init__(self, input_path: Path, report: Path, options: Options) -> None:
        self.report = report
        self.is_reported = False
        """Whether the report of this run is written."""
        self._input = input_path
        self._options = options
        self._before: dict[Path, os.stat_result | None] = {}
        """Outputs as they were when the run began."""

    def __enter__(self) -> Self:
        self._before = _statuses(self._files())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._options.show or self._options.dry_run:
            return
        older, is_reported = self.older(), self.is_reported or self._is_new(self.report)
        if older or exit_code_of(error) in _MAY_HAVE_REPORT:
            sentences = ["" if is_reported else "No report was written.", older]
            error.add_note(" ".join(filter(None, sentences)))

    def older(self) -> str:
        """Which files of earlier runs are still in the places of the outputs, in a sentence; empty for none."""
        tables = self._csv_files().values()
        older = {
            (self._options.csv if path in tables else path): datetime.fromtimestamp(status.st_mtime)
            for path, status in self._before.items()
            if status and not self._is_new(path)
        }
        listed = ", ".join(f"{place} ({written:%Y-%m-%d %H:%M})" for place, written in older.items())
        return f"From an earlier run: {listed}." if older else ""

    def _is_new(self, path: Path) -> bool:
        """Whether an output was written since the run began."""
        before, now = self._before.get(path), _statuses([path])[path]
        return now is not None and (before is None or _version(before) != _version(now))

    def check_named(self) -> None:
        """Before anything is written; the manifest is written first of all, with the settings yet unread."""
        from rag_eval.tables.input_files import check_is_file

        for path in filter(
            None, (self._options.config, self._options.baseline, self._options.against, *self._options.labels)
        ):
            check_is_file(path)
        named = {"--json": self._options.json, "--html": self._options.html}
        self._refuse_overwriting(named, {"the configuration": self._options.config})

    def check(self, loaded: "LoadedSettings") -> None:
        """With what the configuration names. Raises InputError."""
        if self.report.suffix.lower() != ".xlsx":
            self._before = {}
            raise InputError(
                f"{self.report}: the report is an Excel workbook; give it a name that ends in .xlsx"
            )
        from rag_eval.configuration.effective import store_path

        read = {f"{path}, which is read": Path(path) for path, is_read in loaded.files.items() if is_read}
        others = {
            "the rubric": loaded.settings.rubric.file,
            "the reply cache": store_path(loaded.settings, self.report),
        }
        named = {"--json": self._json(loaded.settings), "--html": self._html(loaded.settings)}
        before, self._before = self._before, {}  # what may not be overwritten is no output of a run
        self._refuse_overwriting(named, {**read, **others})
        self._before = _statuses(self._files(loaded.settings)) | before
        if self._options.html_no_texts and not named["--html"]:
            raise InputError("--html-no-texts needs a page; add --html PATH or [report] html = true")

    def check_writable(self) -> None:
        """Report and gates can be written. Raises OutputError."""
        from rag_eval.store.replacement import check_writable

        check_writable(self.report)
        for option in ("junit", "markdown"):  # written last of all, when everything is paid for
            if path := getattr(self._options, option):
                check_writable(path, f"--{option}")

    def make_room(self, settings: "Settings") -> None:
        """Remove what killed runs left; then the report, temporary files and replies must have room. Or OutputError."""
        import tempfile

        from rag_eval.configuration.effective import store_path
        from rag_eval.store.leftovers import sweep
        from rag_eval.store.replacement import check_space, needed_space, output_errors

        stored = [] if settings.provider.is_offline else [store_path(settings, self.report)]
        entry = [settings.report.history / "runs" / "run"] if settings.report.history else []
        sweep([*self._files(settings), *entry, *stored])
        with output_errors(self.report):  # on a full disk no folder for temporary files may be usable
            folders = {Path(os.path.realpath(self.report)).parent, Path(tempfile.gettempdir())}
        page = [path for path in [self._html(settings)] if path]
        folders.update(Path(os.path.realpath(path)).parent for path in (*stored, *page))
        needed = needed_space(self._input)
        for folder in folders:
            check_space(folder, needed)

    def open(
        self,
        loaded: "LoadedSettings",
        facts: "RunFacts",
        *,
        has_baseline: bool,
        made_from: Mapping[str, Any] | None = None,
        history: "HistoryOfRun | None" = None,
        rendered: "RenderedCases | None" = None,
    ) -> "Outputs":
        """Every file that was asked for, ready to be written. `made_from`: the run that is reported once more."""
        from rag_eval.configuration.provenance import provenance
        from rag_eval.report.csv_files import CsvReport
        from rag_eval.report.history_record import HistoryRecord
        from rag_eval.report.json_file import JsonReport
        from rag_eval.report.outputs import Outputs
        from rag_eval.report.workbook import ExcelReport

        asked = {key for key, value in loaded.settings.report if value and key != "history"}
        asked |= {"baseline"} if has_baseline else set()
        asked |= {"history"} if history else set()
        factories: list[Callable[[], Output]] = [
            lambda: ExcelReport(self.report, facts, asked, rendered=rendered)
        ]
        if page := self._html(loaded.settings):  # before the JSON, which tells what does not fit on it
            factories.append(lambda: self._page(page, loaded, facts, asked))
        if target := self._json(loaded.settings):
            factories.append(lambda: JsonReport(target, facts, provenance(loaded, made_from)))
        if folder := self._options.csv:
            factories.append(lambda: CsvReport(folder, facts, asked))
        if history:  # after everything else: a run that has no report leaves no entry
            factories.append(lambda: HistoryRecord(history.history.folder, history.id))
        if rendered:
            rendered.suffice = len(factories) == 1
        return Outputs.opened(factories)

    def _page(
        self, target: Path, loaded: "LoadedSettings", facts: "RunFacts", asked: Collection[str]
    ) -> "Output":
        from rag_eval.configuration.provenance import provenance
        from rag_eval.report.page.html_page import HtmlReport

        wanted = loaded.settings.report
        return HtmlReport(
            target,
            facts,
            provenance(loaded)["configuration"],
            asked,
            megabytes=wanted.html_mb,
            has_texts=not self._options.html_no_texts,
            slice_by=wanted.slice_by,
        )

    def _json(self, settings: "Settings") -> Path | None:
        """Where the run is written as JSON; None when that is not wanted."""
        return self._options.json or (self.report.with_suffix(".json") if settings.report.json else None)

    def _html(self, settings: "Settings") -> Path | None:
        """Where the page is written; None when that is not wanted."""
        return self._options.html or (self.report.with_suffix(".html") if settings.report.html else None)

    def _files(self, settings: "Settings | None" = None) -> list[Path]:
        """All that a run replaces, the report first; without settings, as far as options name it."""
        options = self._options
        return [
            self.report,
            *filter(
                None,
                (
                    self._html(settings) if settings else options.html,
                    self._json(settings) if settings else options.json,
                    *self._csv_files().values(),
                    options.junit,
                    options.markdown,
                    options.manifest,
                ),
            ),
        ]

    def _refuse_overwriting(self, named: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
        _refuse_overwriting(
            {
                "--output": self.report,
                **named,
                "--junit": self._options.junit,
                "--markdown": self._options.markdown,
                "--manifest": self._options.manifest,
                **self._csv_files(),
            },
            {
                "the input": self._input,
                "the baseline": self._options.baseline,
                "the file of --against": self._options.against,
                **{f"the labels {path.name}": path for path in self._options.labels},
                **read,
            },
        )

    def _csv_files(self) -> dict[str, Path | None]:
        folder = self._options.csv
        if folder is None:
            return {}
        from rag_eval.report.csv_files import FILES

        return {f"--csv ({name})": folder / name for name in FILES}


_MAY_HAVE_REPORT = {ExitCode.STOPPED, ExitCode.INTERRUPTED, ExitCode.TERMINATED}
"""Exit codes with a partial report, or without one."""


def _statuses(paths: Iterable[Path]) -> dict[Path, os.stat_result | None]:
    """Of each path; None where there is no file."""
    found: dict[Path, os.stat_result | None] = dict.fromkeys(paths)
    for path in found:
        with suppress(OSError):
            status = path.stat()
            found[path] = status if stat.S_ISREG(status.st_mode) else None
    return found


def _version(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns


def _refuse_overwriting(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Raise InputError for an output that is an input or another output, or lies in one as if that were a folder.

    `outputs` are by the option that names them, `inputs` by what they are, such as "the input".
    """
    taken = {name: path for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if path is None:
            continue
        remedy = f"choose another name with {option.partition(' ')[0]}"
        for name, other in taken.items():
            if _is_same(path, other):
                raise InputError(f"{path}: is {name}; {remedy}")
            if _real(other) in _real(path).parents:
                raise InputError(f"{path}: would be in {other}, which is {name} and not a folder; {remedy}")
            if _real(path) in _real(other).parents:
                raise InputError(f"{path}: is the folder of {other}, which is {name}; {remedy}")
        taken["the report" if option == "--output" else f"the output of {option}"] = path


def _is_same(one: Path, other: Path) -> bool:
    """Also under two names, as by a link."""
    return os.path.realpath(one) == os.path.realpath(other) or (
        one.exists() and other.exists() and one.samefile(other)
    )


def _real(path: Path) -> Path:
    """The path without links. Unlike Path.resolve, this does not fail on links that lead in a circle."""
    return Path(os.path.realpath(path))

"""Where a run writes: over nothing that it reads or writes otherwise, and only where there is room."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.options import Options
from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.cli.history import HistoryOfRun
    from rag_eval.configuration import LoadedSettings
    from rag_eval.configuration.settings import Settings
    from rag_eval.records import RunFacts
    from rag_eval.report.case_table import RenderedCases
    from rag_eval.report.outputs import Output, Outputs


class OutputPaths:
    """The files of one run, by the options that name them."""

    def __init__(self, input_path: Path, report: Path, options: Options) -> None:
        self.report = report
        self._input = input_path
        self._options = options

    def check_named(self) -> None:
        """Before anything is written; the manifest is written first of all, with the settings yet unread."""
        named = {"--json": self._options.json, "--html": self._options.html}
        self._refuse_overwriting(named, {"the configuration": self._options.config})

    def check(self, loaded: "LoadedSettings") -> None:
        """With what the configuration names. Raises InputError."""
        if self.report.suffix.lower() != ".xlsx":
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
        self._refuse_overwriting(named, {**read, **others})
        if self._options.html_no_texts and not named["--html"]:
            raise InputError("--html-no-texts needs a page; add --html PATH or [report] html = true")

    def check_writable(self) -> None:
        """Report and gates can be written. Raises OutputError."""
        from rag_eval.store.replacement import check_writable

        check_writable(self.report)
        if junit := self._options.junit:  # written last of all, when everything is paid for
            check_writable(junit, "--junit")

    def make_room(self, settings: "Settings") -> None:
        """Remove what killed runs left; then the report, temporary files and replies must have room. Or OutputError."""
        import tempfile

        from rag_eval.configuration.effective import store_path
        from rag_eval.store.leftovers import sweep
        from rag_eval.store.replacement import check_space, output_errors

        stored = [] if settings.provider.is_offline else [store_path(settings, self.report)]
        options = self._options
        outputs = [
            self.report,
            self._json(settings),
            self._html(settings),
            options.junit,
            options.manifest,
            *self._csv_files().values(),
            settings.report.history and settings.report.history / "runs" / "run",
        ]
        sweep([*filter(None, outputs), *stored])
        with output_errors(self.report):  # on a full disk no folder for temporary files may be usable
            folders = {Path(os.path.realpath(self.report)).parent, Path(tempfile.gettempdir())}
        page = [path for path in [self._html(settings)] if path]
        folders.update(Path(os.path.realpath(path)).parent for path in (*stored, *page))
        for folder in folders:
            if folder.exists():
                check_space(folder)

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
        from rag_eval.report.csv_files import CsvReport
        from rag_eval.report.history_record import HistoryRecord
        from rag_eval.report.json_file import JsonReport
        from rag_eval.report.outputs import Outputs
        from rag_eval.report.provenance import provenance
        from rag_eval.report.workbook import ExcelReport

        wanted = loaded.settings.report
        tables = {
            "has_evidence": wanted.evidence,
            "has_slices": bool(wanted.slice_by),
            "has_side_by_side": wanted.side_by_side,
        }
        factories: list[Callable[[], Output]] = [
            lambda: ExcelReport(
                self.report,
                facts,
                **tables,
                has_baseline=has_baseline,
                has_history=history is not None,
                rendered=rendered,
            )
        ]
        if page := self._html(loaded.settings):  # before the JSON, which tells what does not fit on it
            factories.append(lambda: self._page(page, loaded, facts))
        if target := self._json(loaded.settings):
            factories.append(lambda: JsonReport(target, facts, provenance(loaded, made_from)))
        if folder := self._options.csv:
            factories.append(lambda: CsvReport(folder, facts, **tables))
        if history:  # after everything else: a run that has no report leaves no entry
            factories.append(lambda: HistoryRecord(history.history.folder, history.id))
        return Outputs.opened(factories)

    def _page(self, target: Path, loaded: "LoadedSettings", facts: "RunFacts") -> "Output":
        from rag_eval.report.page import HtmlReport
        from rag_eval.report.provenance import provenance

        wanted = loaded.settings.report
        return HtmlReport(
            target,
            facts,
            provenance(loaded)["configuration"],
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

    def _refuse_overwriting(self, named: Mapping[str, Path | None], read: Mapping[str, Path | None]) -> None:
        _refuse_overwriting(
            {
                "--output": self.report,
                **named,
                "--junit": self._options.junit,
                "--manifest": self._options.manifest,
                **self._csv_files(),
            },
            {
                "the input": self._input,
                "the baseline": self._options.baseline,
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


def _refuse_overwriting(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Raise InputError for an output that is an input or another output, or lies in one as if that were a folder.

    `outputs` are by the option that names them, `inputs` by what they are, such as "the input".
    """
    taken = {name: path for name, path in inputs.items() if path}
    for option, path in outputs.items():
        if path is None:
            continue
        for name, other in taken.items():
            if _is_same(path, other):
                raise InputError(f"{path}: is {name}; choose another name with {option}")
            if _real(other) in _real(path).parents or _real(path) in _real(other).parents:
                raise InputError(
                    f"{path}: cannot be a folder and a file at once, and {other} is {name}; "
                    f"choose another name with {option}"
                )
        taken["the report" if option == "--output" else f"what {option} writes"] = path


def _is_same(one: Path, other: Path) -> bool:
    """Also under two names, as by a link."""
    return os.path.realpath(one) == os.path.realpath(other) or (
        one.exists() and other.exists() and one.samefile(other)
    )


def _real(path: Path) -> Path:
    """The path without links. Unlike Path.resolve, this does not fail on links that lead in a circle."""
    return Path(os.path.realpath(path))

"""The command that lays out what a first evaluation needs: a configuration file and a template of the input."""

import os
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import click

from rag_eval.cli.console import command_line, program_words, remark, set_up_logging
from rag_eval.errors import InputError, OutputError

_CONFIG = "config.ini"
_INPUT = "answers.xlsx"
_MODES = {_CONFIG: 0o600}
"""Permissions of files that may come to hold a key."""


@click.command("init", short_help="Create config.ini and a sample input.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def command(folder: Path) -> None:
    """Create config.ini with all settings and answers.xlsx, a sample input, in FOLDER.

    Without FOLDER, the files go to the current folder. Existing files are never overwritten.
    """
    set_up_logging(debug=False)
    contents = {
        folder / _INPUT: _template(),
        folder / _CONFIG: files("rag_eval.cli").joinpath("config.ini.example").read_bytes(),
    }
    _refuse_existing(contents)
    _write(contents)
    for path in contents:
        remark(f"Written: {path}")
    program = program_words()
    remark("To score the sample with the offline judge, which needs no API key, run:")
    remark(f"  {command_line(*program, folder / _INPUT, '--judge', 'offline', *_config_option(folder))}")
    remark("To see how RAG Eval reads it, or a file of your own or of another tool, run:")
    remark(f"  {command_line(*program, folder / _INPUT, '--show', *_config_option(folder))}")
    remark(f"To use an LLM judge, enter its key, endpoint and model in {folder / _CONFIG} and check them:")
    remark(f"  {command_line(*program, 'doctor', *_config_option(folder))}")


def _template() -> bytes:
    """A workbook with a header, a note on each of its cells, and two example rows."""
    import xlsxwriter

    from rag_eval.report.styles import Formats, Look

    buffer = BytesIO()
    with xlsxwriter.Workbook(buffer, {"in_memory": True}) as book:
        book.set_properties({"title": "Input for RAG Eval", "created": datetime(2025, 1, 1)})
        formats = Formats(book)
        sheet = book.add_worksheet("Answers")
        sheet.freeze_panes(1, 1)
        for column, (name, (width, note)) in enumerate(_COLUMNS.items()):
            sheet.set_column(column, column, width, formats[Look.TEXT])
            sheet.write_string(0, column, name, formats[Look.HEADER])
            sheet.write_comment(0, column, note, {"author": "RAG Eval", "x_scale": 2})
        for number, row in enumerate(_EXAMPLES, 1):
            sheet.set_row(number, _ROW_HEIGHT)
            for column, text in enumerate(row):
                sheet.write_string(number, column, text, formats[Look.TEXT])
    return buffer.getvalue()


_COLUMNS = {
    "Query": (30, "The query. The column may also be called Question, Input or Prompt."),
    "Ground_Truth": (34, "The right answer. Leave cells blank or omit the column if you have none."),
    "Bot_A": (34, "Responses of bot A. Rename the column to Bot_<name>; add a column for each further bot."),
    "Bot_B": (34, "Responses of bot B. A single bot is enough."),
    "Context": (
        50,
        "The retrieved chunks, separated by || or as a JSON list. "
        "If each bot has its own chunks, add a column Context_<name> for each.",
    ),
}
"""Width, in characters, and note by header."""
_EXAMPLES = (
    (
        "How long is the kettle under warranty?",
        "For two years from the day of purchase.",
        "The kettle is under warranty for two years from the day of purchase.",
        "The kettle is under warranty for five years.",
        "The warranty of the kettle ends two years from the day of purchase. || The receipt is proof of purchase.",
    ),
    (
        "Can I put the lid into the dishwasher?",
        "No, the lid must be washed by hand.",
        "No. Please wash the lid by hand.",
        "Yes, you can put all parts into the dishwasher.",
        '["The lid must be washed by hand.", "The jug is dishwasher-safe."]',
    ),
)
_ROW_HEIGHT = 42
"""Points: three lines, for programs that do not fit rows to their text."""


def _refuse_existing(contents: Mapping[Path, bytes]) -> None:
    """Nothing is written unless everything can be. A link that leads nowhere counts as a file."""
    if existing := [path for path in contents if os.path.lexists(path)]:
        raise InputError(
            f"{path}: already exists and is not overwritten; move it, or name another folder"
            for path in existing
        )


def _write(contents: Mapping[Path, bytes]) -> None:
    """Write all files or none."""
    written: list[Path] = []
    path = next(iter(contents))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            with open(path, "xb", opener=partial(os.open, mode=_MODES.get(path.name, 0o666))) as file:
                written.append(path)
                file.write(content)
    except OSError as error:
        for half in written:
            half.unlink()
        raise OutputError(f"{path}: cannot be written: {error.strerror}; name another folder") from error


def _config_option(folder: Path) -> list[str | Path]:
    """Nothing for the current folder, where config.ini is found without being named."""
    return [] if folder.resolve() == Path.cwd() else ["--config", folder / _CONFIG]

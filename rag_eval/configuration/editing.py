"""New values in a config file, with everything else in it as it is."""

import re
from collections.abc import Mapping
from pathlib import Path

from rag_eval.configuration.files import parse_ini, read_text
from rag_eval.errors import SettingsError
from rag_eval.store.replacement import write_text

_HEADER = re.compile(r"^\[(?P<name>[^\]]+)\]")
_KEY = re.compile(r"^(?P<key>[^=\s#;][^=]*?)\s*=")
_VALUE = re.compile(r"^(?P<before>[^=]*=[^\S\r\n]*)(?P<value>.*?)(?P<after>(?:\s+[#;].*)?\s*)$", re.DOTALL)


def check_editable(path: Path) -> None:
    """Raises SettingsError for a file that is there and is no valid config file. One that is missing is fine."""
    if path.exists():
        parse_ini(read_text(path, path.name), path.name)
    elif path.suffix.lower() != ".ini":
        raise SettingsError(f"{path}: there is no such file; name a config file, such as config.ini")


def set_values(path: Path, section: str, values: Mapping[str, str], option: str) -> Path:
    """Set keys of one section, in place where they are set, else below the section's header. Returns the path.

    Comments, order and line ends stay. A missing file or section is created. The file is replaced as a whole; `option`
    names it in an OutputError.
    """
    text = ""
    if path.exists():
        check_editable(path)
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    return write_text(path, _edited(text, section, values), option)


def _edited(text: str, section: str, values: Mapping[str, str]) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    left = dict(values)
    lines = text.splitlines(keepends=True)
    current, place = "", None
    for number, line in enumerate(lines):
        plain = line.removeprefix("\ufeff")
        if header := _HEADER.match(plain):
            current = header["name"]
            if current == section and place is None:
                place = number + 1
        elif current == section and (found := _KEY.match(plain)):
            key = found["key"].strip().lower()
            if key in left:
                lines[number] = _with_value(line, left.pop(key), end)
    added = [f"{key} = {value}{end}" for key, value in left.items()]
    if not added:
        return "".join(lines)
    if place is None:
        place = len(lines)
        added = [*([end] if lines else []), f"[{section}]{end}", *added]
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += end
    return "".join([*lines[:place], *added, *lines[place:]])


def _with_value(line: str, value: str, end: str) -> str:
    """The line with another value; a comment after it stays."""
    ending = end if line.endswith("\n") else ""
    found = _VALUE.match(line.rstrip("\r\n"))
    return f"{found['before']}{value}{found['after'].rstrip()}{ending}" if found else line

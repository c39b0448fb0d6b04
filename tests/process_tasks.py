"""Functions that worker processes of the tests run."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rag_eval.errors import InputError


def squares(offset: int) -> Callable[[int], int]:
    return lambda number: number * number + offset


def echo(_: object) -> Callable[[Any], Any]:
    return lambda value: value


def counts(name: str) -> Callable[[int, Any], list[Any]]:
    return lambda before, results: [name, before, len(results)]


def done_by(task: Mapping[str, Any]) -> dict[str, Any]:
    return {**task, "process": os.getpid()}


def process_ids(_: object) -> Callable[[Any], int]:
    return lambda value: os.getpid()


def sleeper(_: object) -> Callable[[float], float]:
    def sleep(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    return sleep


def dies_on(spec: tuple[int, int, str]) -> Callable[[int], int]:
    """Dies on the number `spec[0]` as often as `spec[1]` says; `spec[2]` is a folder that remembers."""
    number, deaths, folder = spec

    def work(value: int) -> int:
        died = len(list(Path(folder).iterdir()))
        if value == number and died < deaths:
            (Path(folder) / f"{died} {os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    return work


def fails_on(spec: int) -> Callable[[int], int]:
    def work(value: int) -> int:
        if value == spec:
            raise InputError(f"{value} is not allowed")
        return 10 // value

    return work


def prints(_: object) -> Callable[[Any], Any]:
    print("at the start")  # noqa: T201

    def work(value: Any) -> Any:
        print("for an item")  # noqa: T201
        return value

    return work


def cannot_open(_: object) -> Callable[[Any], Any]:
    raise InputError("the specification is not allowed")


def dies_at_once(_: object) -> Callable[[Any], Any]:
    os._exit(7)


def holds(folder: str) -> Callable[[str], str]:
    """Writes down its process id, then works until a file `go` is there."""

    def work(value: str) -> str:
        (Path(folder) / f"{value} {os.getpid()}").touch()
        while not (Path(folder) / "go").exists():
            time.sleep(0.005)
        return value

    return work

"""A second signal ends a run at once, even one that comes while the first is still being answered."""

import os
import select
import signal
import subprocess
import sys

import pytest

_RUN = """
import os, sys
from rag_eval.cli.signals import stopping_on_signals


class Evaluation:
    stop_requested = False

    def request_stop(self, reason):
        self.stop_requested = True
        os.write(1, b"asked to stop")


reader, errors = os.pipe()  # nobody reads it, and it is full: whatever is written to it waits
os.set_blocking(errors, False)
try:
    while True:
        os.write(errors, b"x" * 65536)
except BlockingIOError:
    pass
os.set_blocking(errors, True)
os.dup2(errors, 2)
with stopping_on_signals(Evaluation()):
    os.write(1, b"ready")
    while True:
        sys.stdin.read(1)
"""


def test_a_second_signal_ends_a_run_whose_first_message_waits_for_its_reader() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert said(process) == b"ready"
            process.send_signal(signal.SIGTERM)
            assert said(process) == b"asked to stop"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
        finally:
            process.kill()


def said(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 60)[0], "it says nothing"
    return os.read(process.stdout.fileno(), 100)


_WRITING = """
import os, sys
from pathlib import Path
import click
from rag_eval.cli import _end
from rag_eval.store.leftovers import Scratch


@click.command()
def write():
    with Scratch(Path("report.xlsx")) as folder:
        os.write(1, folder.encode())
        sys.stdin.read()


_end(write)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_while_a_report_is_written_leaves_no_temporary_files(number: int, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            folder = said(process).decode()
            assert os.path.isdir(folder)
            process.send_signal(number)
            assert process.wait(60) == code
            assert not os.path.exists(folder)
        finally:
            process.kill()

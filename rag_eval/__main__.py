"""python -m rag_eval: the command line or, where this Python lacks what it needs, what to do about that.

It must work in any Python 3 without a single package, so it imports nothing else before it has looked.
"""

import os
import sys
from contextlib import suppress

OLDEST = (3, 11)
"""As requires-python in pyproject.toml."""


def start(entry: str) -> None:
    """Run the function of rag_eval.cli that has this name; it ends the process. Without what it needs: exit code 2."""
    if sys.version_info < OLDEST:
        _refuse(
            f"Python {OLDEST[0]}.{OLDEST[1]} or later is needed, and {sys.executable} is {sys.version.split()[0]}"
        )
    try:
        from rag_eval import cli
    except ModuleNotFoundError as error:
        from rag_eval.errors import describe_missing

        problem = describe_missing(error)
        if not problem:
            raise
        _refuse(problem)
    getattr(cli, entry)()


def _refuse(problem: str) -> None:
    with suppress(OSError):  # a stream could be missing, or fail again when it is flushed at the end
        os.write(2, f"rag-eval: {problem}\n".encode("utf-8", "backslashreplace"))
    sys.exit(2)


if __name__ == "__main__":
    start("main")

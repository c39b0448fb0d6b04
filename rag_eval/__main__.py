"""python -m rag_eval: the command line or, where this Python lacks what it needs, what to do about that.

It must work in any Python 3 without a single package, so it imports nothing else before it has looked.
"""

import sys

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
    sys.stderr.write(f"rag-eval: {problem}\n")
    sys.exit(2)


if __name__ == "__main__":
    start("main")

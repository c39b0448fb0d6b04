"""Words for the person at the terminal. Nothing else in the package prints."""

import logging

import click

from rag_eval.terminal import printable


def say(line: str) -> None:
    """A line of the result, on standard output."""
    click.echo(printable(line))


def warn(sentence: str) -> None:
    """Something that the user should know, on standard error."""
    click.echo(f"rag-eval: {printable(sentence)}", err=True)


def complain(problems: str) -> None:
    """Why nothing was done, one line a problem."""
    for problem in problems.splitlines():
        warn(problem)


def set_up_logging(debug: bool) -> None:
    """Our own log alone: the clients' debug logs would show headers and prompts."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    logger = logging.getLogger("rag_eval")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)

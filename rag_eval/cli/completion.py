"""The command that teaches a shell to complete rag-eval's commands and options."""

import click
from click.shell_completion import get_completion_class

from rag_eval.cli.console import say

_SHELLS = ["bash", "zsh", "fish"]


@click.command("completion", short_help="Print a shell completion script.")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that lets SHELL (bash, zsh or fish) complete commands and options of rag-eval.

    docs/cli.md says where to save it.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101 - click knows every shell that the argument takes
    script = completion(ctx.find_root().command, {}, "rag-eval", "_RAG_EVAL_COMPLETE").source()
    for line in script.splitlines():
        say(line)

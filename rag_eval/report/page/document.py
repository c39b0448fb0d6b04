"""What every page begins with: its style, and the policy that forbids every request."""

import base64
import hashlib
from html import escape
from importlib.resources import files

from rag_eval.texts.display import printable, shorten


def head(title: str, version: str, *, has_script: bool = False) -> str:
    """Everything up to the first part of the page. Only page.js may run, and only if it is there."""
    script = f"script-src '{_hash(asset('page.js'))}'; " if has_script else ""
    style = _hash(asset("page.css"))
    policy = f"default-src 'none'; {script}style-src '{style}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="RAG Eval {escape(shorten(version, 40))}">\n'
        f"<title>{escape(printable(title))}</title>\n"
        f"<style>{asset('page.css')}</style>\n</head>\n<body>\n<main>\n"
    )


def asset(name: str) -> str:
    """The text of page.css or page.js."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"

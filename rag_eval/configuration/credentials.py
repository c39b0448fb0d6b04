"""What can be wrong with an API key or an address."""

import re
from urllib.parse import urlsplit

from rag_eval.judge.addresses import is_loopback, shown_path
from rag_eval.judge.providers import Provider


def unwrap(text: str) -> str:
    """`text` without white space and one pair of quotes around it."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].strip()
    return text


def find_key_problem(key: str) -> str | None:
    """What is wrong with an API key, in words that do not show it; None when nothing is."""
    if any(character.isspace() for character in key):
        return "the key has white space inside"
    if not (key.isascii() and key.isprintable()):
        return "the key holds an invisible or non-ASCII character; copy it again"
    if _PLACEHOLDER.fullmatch(key):
        return "this is a placeholder, not a key"
    return None


_PLACEHOLDER = re.compile(
    r"""<.*> | \$\{.*\} | \$\w+ | \{\{.*\}\} | %\w+%   # a template that nobody filled in
    | (sk-)?(x{3,} | \*+ | \.{3,})
    | change[-_]?me | todo | (your|insert|enter|paste|replace)[-_].* | .*[-_]here""",
    re.IGNORECASE | re.VERBOSE,
)


def find_url_problem(url: str, provider: Provider) -> str | None:
    """What is wrong with an endpoint, in words that show its host at most; None when nothing is."""
    if not re.fullmatch(r"[!-\[\]-~]+", url):
        return "the URL holds white space, a backslash or a non-ASCII character"
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        origin = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "this is not a URL"
    if not parts.hostname or parts.scheme not in ("https", "http"):
        return "the URL must begin with https:// and name a host"
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        return "the URL must begin with https://; http is only for localhost, 127.0.0.0/8 and ::1"
    if "@" in parts.netloc:
        return "the URL must not hold a user name or password"
    if re.search(r"[<>]|\byour[-_]resource", parts.netloc, re.IGNORECASE):
        return "this is a placeholder, not the URL of a resource"
    if appended := provider.of_a_request.search(parts.path):
        return f"this is the URL of a request; keep only {origin}{shown_path(parts.path[: appended.start()]) or '/'}"
    if "?" in url or "#" in url:
        return "the URL must not hold a query (?…) or fragment (#…)"
    return None

"""What an address says: whether it is this computer's, and how it is shown to people, since it may hold a secret."""

import ipaddress
import re
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address is this computer's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def safe_url(url: str) -> str:
    """The address without user name, password, query and fragment, and with a shown path; '…' when it is not a URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _HIDDEN
    place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    return f"{parts.scheme}://{place}{safe_path(parts.path)}"


def safe_path(path: str) -> str:
    """The path with '…' in place of every segment that is neither a plain word nor a version."""
    return "/".join(part if _PLAIN.fullmatch(part) else _HIDDEN for part in path.split("/"))


_HIDDEN = "…"
_PLAIN = re.compile(r"(v\d{1,2}((alpha|beta)\d?)?|[a-z]{1,15}([-_][a-z]{1,15})?)?")

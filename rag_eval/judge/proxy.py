"""Which proxy, if any, the environment names for an address."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval.errors import RunStoppedError
from rag_eval.judge.masking import is_loopback


@dataclass(frozen=True, slots=True)
class Proxy:
    """Credentials stand apart from the address, which clients quote in their errors."""

    url: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.url})"

    @classmethod
    def of(cls, url: str) -> Self | None:
        """The proxy for an address; loopback is never called through one.

        Raises RunStoppedError when the environment names one of a kind that cannot be used.
        """
        parts = urlsplit(url)
        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
            return None
        named = _split(proxy if "://" in proxy else f"http://{proxy}")
        if named is None:
            raise RunStoppedError(
                "unusable_proxy",
                "the environment names a proxy that cannot be used; HTTPS_PROXY and ALL_PROXY must be "
                "http://host:port or https://host:port",
            )
        address = urlunsplit(named._replace(netloc=named.netloc.rpartition("@")[2]))
        return cls(address, unquote(named.username or ""), unquote(named.password or ""))

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc


def _split(proxy: str) -> SplitResult | None:
    """The parts of an address that can be used."""
    try:
        parts = urlsplit(proxy)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_usable else None

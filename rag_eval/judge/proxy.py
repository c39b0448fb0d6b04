"""Which proxy, if any, the environment names for an address."""

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval.errors import RunStoppedError
from rag_eval.judge.addresses import is_loopback


@dataclass(frozen=True, slots=True)
class Proxy:
    """Credentials stand apart from the address, which clients quote in their errors."""

    url: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.url})"


def proxy_for(url: str) -> Proxy | None:
    """Loopback is never asked through a proxy. Raises RunStoppedError when it is of a kind that cannot be used."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    named = _split(proxy if "://" in proxy else f"http://{proxy}")
    if named is None:
        raise RunStoppedError(
            "unusable_proxy",
            "the proxy that the environment names cannot be used, it must be http://host:port or https://host:port: "
            "check HTTPS_PROXY and ALL_PROXY",
        )
    address = urlunsplit(named._replace(netloc=named.netloc.rpartition("@")[2]))
    return Proxy(address, unquote(named.username or ""), unquote(named.password or ""))


def proxy_of(url: str) -> str:
    """Host and port of the proxy for an address, without credentials; or empty."""
    proxy = proxy_for(url)
    return urlsplit(proxy.url).netloc if proxy else ""


def _split(proxy: str) -> SplitResult | None:
    """The parts of an address that can be used."""
    try:
        parts = urlsplit(proxy)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_usable else None

"""Which proxy, if any, the environment names for an address."""

import ipaddress
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval.errors import RunStoppedError


def proxy_url(url: str) -> str:
    """The proxy's address, credentials included; or empty. Loopback is never asked through a proxy.

    Raises RunStoppedError when it is of a kind that cannot be used.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    named = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_usable(named):
        raise RunStoppedError(
            "unusable_proxy",
            "the proxy that the environment names cannot be used, it must be http://host:port or https://host:port: "
            "check HTTPS_PROXY and ALL_PROXY",
        )
    return named


def proxy_of(url: str) -> str:
    """Host and port of the proxy for an address, without credentials; or empty."""
    return urlsplit(proxy_url(url)).netloc.rpartition("@")[2]


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_usable(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False

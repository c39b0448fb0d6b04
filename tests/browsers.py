"""Real browsers for tests of the page: Chromium by its driver, Firefox by WebDriver BiDi."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)


@contextmanager
def chromium(downloads: Path) -> Iterator[Any]:
    """A selenium driver of a headless Chromium; skips the test where there is none."""
    selenium = pytest.importorskip(
        "selenium.webdriver", reason="no selenium: pip install -r requirements-dev.txt"
    )
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--window-size=1366,900",
        "--lang=en",
    ):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def requests_of(driver: Any) -> list[str]:
    """What Chromium has asked for since this was called last."""
    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    sent = (each for each in messages if each["method"] == "Network.requestWillBeSent")
    return [each["params"]["request"]["url"] for each in sent]


class Firefox:
    """A headless Firefox, spoken to by WebDriver BiDi: Debian has no geckodriver."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._sent = 0
        self.events: list[dict[str, Any]] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self._context = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._sent:
                assert message["type"] == "success", message
                return message["result"]
            self.events.append(message)

    def get(self, url: str) -> None:
        self.send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """A plain value; a promise is awaited."""
        found = self.send(
            "script.evaluate", expression=expression, target={"context": self._context}, awaitPromise=True
        )
        assert found["type"] == "success", found
        return found["result"].get("value")


_PREFERENCES = {
    "app.normandy.enabled": "false",
    "app.update.disabledForTesting": "true",
    "browser.safebrowsing.update.enabled": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
    "network.captive-portal-service.enabled": "false",
    "network.connectivity-service.enabled": "false",
    "services.settings.server": '"data:,#remote-settings-dummy/v1"',
}
"""Without what Firefox asks of its makers by itself."""


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    """Skips the test where there is no Firefox."""
    websocket = pytest.importorskip(
        "websocket", reason="no websocket-client: pip install -r requirements-dev.txt"
    )
    if FIREFOX is None:
        pytest.skip("no Firefox: apt-get install firefox-esr")
    profile.mkdir()
    (profile / "user.js").write_text(
        "".join(f'user_pref("{name}", {value});\n' for name, value in _PREFERENCES.items())
    )
    arguments = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    with subprocess.Popen([*arguments, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            found = (re.search(r"WebDriver BiDi listening on (ws://\S+)", line) for line in process.stderr)
            address = next(match[1] for match in found if match)
            socket = websocket.create_connection(f"{address}/session", timeout=60, suppress_origin=True)
            try:
                yield Firefox(socket)
            finally:
                with suppress(OSError):
                    socket.close()
        finally:
            process.terminate()

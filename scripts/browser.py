"""Headless Chromium for looking at a page: the tests' and scripts/report-picture's."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root in a container
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


def missing() -> str:
    """What is not there of the browser; empty where all is."""
    lost = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"no {' and no '.join(lost)} (scripts/setup-browser)" if lost else ""


@contextmanager
def browser() -> Iterator[Chrome]:
    """A browser with an empty profile that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="sbudget-browser-") as profile:
        options = ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options, ChromeService(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def show(
    driver: Chrome, file: Path, width: int, height: int, *, dark: bool = False, paper: bool = False
) -> None:
    """Open a file as a screen of that size, or as paper, shows it."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print" if paper else "screen", "features": [scheme]},
    )
    driver.get(file.resolve().as_uri())

"""The page for managers in a real browser: it is drawn, sorts by keyboard, fits phone and paper."""

import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_budget.ledger.store import Ledger

from .conftest import ROOT, Database
from .small_ledger import fill
from .test_reports import of, said

sys.path.insert(0, str(ROOT / "scripts"))

from browser import browser, missing, show
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")

COLOURS = """
const [data, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const pixels = new Uint32Array(
    canvas.getImageData(0, 0, image.width, image.height).data.buffer);
  const found = new Map();
  for (const pixel of pixels) found.set(pixel, (found.get(pixel) || 0) + 1);
  const most = [...found].sort((a, b) => b[1] - a[1])[0][0];
  done([found.size, most & 255]);
};
image.src = "data:image/png;base64," + data;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    file: Path = folder / "budgets.html"
    ledger: Ledger
    with Database("sqlite", f"sqlite:///{folder / 'ledger.db'}").open() as ledger:
        fill(ledger)
        said(of(ledger), "html", "-o", str(file), "start=now-2days")
    return file


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with browser() as started:
        yield started


@pytest.fixture(autouse=True)
def quiet(driver: Chrome) -> Iterator[None]:
    """No page may complain: of its policy, of its script, of anything that is not there."""
    driver.get_log("browser")
    yield
    assert driver.get_log("browser") == []


def seen(driver: Chrome) -> tuple[int, int]:
    """How many colours are to be seen, and how light the commonest is (0 to 255)."""
    picture = driver.get_screenshot_as_base64()
    driver.get("about:blank")
    colours, light = driver.execute_async_script(COLOURS, picture)
    return colours, light


@pytest.mark.parametrize(
    ("width", "dark", "paper", "light"),
    [(1200, False, False, True), (1200, True, False, False), (360, False, False, True),
     (360, True, False, False), (703, False, True, True), (703, True, True, True)],
)  # fmt: skip
def test_it_is_drawn_on_every_screen_and_on_paper(
    driver: Chrome, page: Path, width: int, dark: bool, paper: bool, light: bool
) -> None:
    show(driver, page, width, 1200, dark=dark, paper=paper)
    inside = driver.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert inside == [width, width], "the page itself does not scroll sideways"
    plots = driver.find_elements(By.CSS_SELECTOR, "#use svg.plot")
    assert [plot.is_displayed() for plot in plots].count(True) == 2, "each once"
    assert len(plots) == 4
    colours, lightness = seen(driver)
    assert colours > 20
    assert (lightness > 200) == light
    assert (lightness < 60) != light


def test_tables_sort_by_keyboard_and_come_back(driver: Chrome, page: Path) -> None:
    show(driver, page, 1200, 1200)
    header = driver.find_element(By.CSS_SELECTOR, "#tree thead th:nth-child(8)")
    button = header.find_element(By.TAG_NAME, "button")
    assert button.text == "Standing"

    def order() -> list[float]:
        cells = driver.find_elements(By.CSS_SELECTOR, "#tree tbody td:nth-child(8)")
        return [float(cell.get_attribute("data-value") or "nan") for cell in cells]

    at_first = order()
    assert at_first not in (sorted(at_first), sorted(at_first, reverse=True))
    for direction, key in (("descending", Keys.ENTER), ("ascending", Keys.SPACE)):
        button.send_keys(key)
        assert header.get_attribute("aria-sort") == direction
        assert order() == sorted(at_first, reverse=direction == "descending")
        assert driver.switch_to.active_element == button
    button.send_keys(Keys.ENTER)
    assert header.get_attribute("aria-sort") is None
    assert order() == at_first
    sorts = driver.find_elements(By.CSS_SELECTOR, "[aria-sort]")
    assert sorts == []


def test_rows_without_a_figure_come_last_either_way(driver: Chrome, page: Path) -> None:
    show(driver, page, 1200, 1200)
    button = driver.find_element(By.CSS_SELECTOR, "#tree thead th:nth-child(2) button")
    for _ in range(2):
        button.click()
        last = driver.find_element(By.CSS_SELECTOR, "#tree tbody tr:last-child th")
        assert last.text == "robotics", "it wanted nothing"


def test_it_is_whole_without_its_script(driver: Chrome, page: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(driver, page, 1200, 1200)
        assert driver.find_elements(By.CSS_SELECTOR, "th button") == []
        assert driver.find_element(By.ID, "tree").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_screen_reader_finds_landmarks_and_plots(driver: Chrome, page: Path) -> None:
    show(driver, page, 1200, 1200)
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    found = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes}
    roles = {role for role, _ in found}
    assert {"main", "banner", "contentinfo", "table", "rowheader", "columnheader"} <= roles
    drawn = [n for n in nodes if n["role"]["value"] in ("img", "image") and not n["ignored"]]
    assert len(drawn) == 3
    assert all(n["name"]["value"] and n["description"]["value"] for n in drawn)


def test_it_prints(driver: Chrome, page: Path) -> None:
    show(driver, page, 703, 1200)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 10_000

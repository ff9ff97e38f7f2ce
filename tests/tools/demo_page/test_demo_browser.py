"""The page in a browser: two sentences are typed and compared by keyboard alone, on a screen as wide as a phone's."""

from __future__ import annotations

import json
import shutil
from urllib.parse import urlparse

import pytest

import st_paragram
from st_paragram.tools.demo_page.appearance import number

pytest.importorskip("gradio")
webdriver = pytest.importorskip("selenium.webdriver")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture
def browser(tmp_path):
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    yield driver
    driver.quit()


@pytest.mark.slow
def test_two_sentences_are_compared_by_keyboard(browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    from st_paragram.tools.demo_page.server import served

    def press(*keys):
        ActionChains(browser).send_keys(*keys).perform()

    def focused():
        return browser.execute_script("return document.activeElement.closest('[id]')?.id")

    def tab_to(elem_id):
        for _ in range(12):
            press(Keys.TAB)
            if focused() == elem_id:
                return browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        raise AssertionError(f"{elem_id} cannot be reached by the tab key")

    typed = "A child drinks milk.", "Ein Kind trinkt Milch ${1+1} <b>."
    model = st_paragram.load("p-sp-mini")
    expected = float(model.similarity(*(model.encode([one]) for one in typed)))
    with served(["p-sp-mini"]) as address:
        browser.get(address)
        wait = WebDriverWait(browser, 60)
        field = wait.until(lambda driver: driver.find_element(By.CSS_SELECTOR, "#first-sentence textarea"))
        field.click()
        for elem_id, sentence in zip((None, "second-sentence"), typed, strict=True):
            if elem_id:
                assert tab_to(elem_id) == "solid"
            ActionChains(browser).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
            press(sentence)
        assert tab_to("compare") == "solid"
        press(Keys.ENTER)
        summary = wait.until(lambda driver: driver.find_element(By.CSS_SELECTOR, "#compare-result .sp-summary"))
        assert summary.text == f"Cosine: {number(expected)}"
        assert "$" in [one.text for one in browser.find_elements(By.CSS_SELECTOR, "#compare-result .sp-piece")]
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        hosts = {urlparse(url).netloc for url in asked if url.startswith("http")}
        assert hosts == {urlparse(address).netloc}
        assert not [entry for entry in browser.get_log("browser") if "Content Security Policy" in entry["message"]]

"""The built site: every link leads somewhere, and a browser shows it without complaint.

`make test-docs` builds the site and runs this. With KERNLETS_SCREENSHOTS=FOLDER what
the browser shows is kept.
"""

from __future__ import annotations

import os
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from chromium import Chromium, find_chromium
from kernlets import registry

pytestmark = pytest.mark.slow
SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = sorted(SITE.rglob("*.html"))

#: what a new user looks for -> where it is told, and a word that it is told with
SOUGHT = {
    "install": ("start.html#install", "pip install"),
    "first classifier": ("start.html#a-first-classifier", "ResidualClassifier"),
    "own CSV": ("start.html#your-own-table", "read_table"),
    "missing values": ("fill-gaps.html", "NaN means"),
    "outliers": ("find-outliers.html", "DictionaryOutlierDetector"),
    "photograph": ("restore-photograph.html", "denoise"),
    "rare class": ("howto.html#a-rare-class", "compute_sample_weight"),
    "sparse rows": ("howto.html#sparse-rows", "csr_array"),
    "save a table with text": ("deploy.html#a-table-with-text", "read_table"),
    "slow first call": ("howto.html#the-first-call-is-slow", "compiled"),
    "GPU": ("gpu.html", 'device="cuda"'),
    "cluster": ("scale.html#a-dask-cluster", "Dask"),
    "own kernel": ("howto.html#your-own-kernel", "Callable"),
    "own kernel in a file": ("extend.html#a-kernel", "one file and one name"),
    "drawing": ("draw.html", "Draw a digit"),
    "cite": ("cite.html", "Linearized Kernel Dictionary Learning"),
}
SHOWN = (
    "draw.html",
    "index.html",
    "accuracy.html",
    "damage.html",
    "howto.html",
    "reproduction/README.html",
    "start.html",
    "theory.html",
    "api/KSVD.html",
    "gallery/index.html",
    "gallery/outliers/plot_outlier_reasons.html",
)


class Reader(HTMLParser):
    """Ids, links and text of a page; of links those in the page, not in the margins."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.update(filter(None, [given.get("id"), given.get("name")]))
        link = given.get("href") or given.get("src")
        if link and tag != "base":
            self.links.append(link)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(autouse=True, scope="module")
def built() -> None:
    if not PAGES:
        if os.environ.get("KERNLETS_REQUIRE_SITE") == "1":
            pytest.fail("there is no site, but KERNLETS_REQUIRE_SITE=1")
        pytest.skip("there is no site: make docs")


@cache
def read(page: Path) -> Reader:
    return Reader(page.read_text("utf-8"))


def local_links(page: Path) -> list[tuple[Path, str]]:
    """Files and fragments that a page links to, those of other sites left out."""
    found = []
    for link in read(page).links:
        if urlsplit(link).scheme or link.startswith("//"):
            continue
        address, fragment = urldefrag(link)
        path = unquote(urlsplit(address).path)
        target = (page.parent / path).resolve() if path else page
        found.append((target / "index.html" if target.is_dir() else target, fragment))
    return found


def test_every_link_leads_somewhere():
    broken = set()
    for page in PAGES:
        for target, fragment in local_links(page):
            is_page = target.suffix == ".html" and target.exists()
            if not target.exists() or (
                is_page and fragment and unquote(fragment) not in read(target).ids
            ):
                broken.add(f"{page.relative_to(SITE)} -> {target.name}#{fragment}")
    assert not broken


def test_every_public_name_has_a_page_with_an_example():
    for name in registry.public_objects():
        assert ">>>" in read(SITE / "api" / f"{name}.html").text, name


def test_nothing_is_loaded_from_elsewhere():
    for page in PAGES:
        text = page.read_text("utf-8")
        for tag in ("<script src=", '<link rel="stylesheet" href=', "<img src="):
            for rest in text.split(tag)[1:]:
                assert not rest.lstrip("\"'").startswith(("http", "//")), page


@cache
def clicks(start: Path) -> dict[str, int]:
    """Clicks from `start` to each page, and to each place in a page."""
    found, edge = {f"{start}#": 0}, [start]
    distance = 0
    while edge:
        distance += 1
        new = []
        for page in edge:
            for target, fragment in local_links(page):
                if target.suffix != ".html":
                    continue
                if f"{target}#" not in found:
                    new.append(target)
                found.setdefault(f"{target}#", distance)
                found.setdefault(f"{target}#{fragment}", distance)
        edge = list(dict.fromkeys(new))
    return found


@pytest.mark.parametrize("wish", SOUGHT)
def test_a_new_user_finds_it_in_three_clicks(wish):
    place, word = SOUGHT[wish]
    page, fragment = urldefrag(str(SITE / place))
    assert clicks(SITE / "index.html")[f"{page}#{fragment}"] <= 3
    assert word in read(Path(page)).text


def test_no_page_is_out_of_reach():
    reached = clicks(SITE / "index.html")
    lost = [page.name for page in PAGES if f"{page}#" not in reached]
    assert not lost


@pytest.fixture(scope="module")
def browser():
    find_chromium()
    with Chromium() as page:
        yield page


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_a_browser_shows_it(browser, name, scheme, width):
    browser.open(SITE / name, width, 900, scheme)
    assert browser.complaints == []
    assert browser.evaluate("document.querySelector('h1').innerText.length") > 3
    # nothing sticks out, so that a phone need not scroll sideways
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    red, *_ = map(int, background.partition("(")[2].rstrip(")").split(",")[:3])
    assert (red > 200) == (scheme == "light")
    if folder := os.environ.get("KERNLETS_SCREENSHOTS"):
        shown = f"{Path(name).parent.name}-{Path(name).stem}-{scheme}-{width}.png"
        browser.screenshot(Path(folder) / shown.lstrip("-"))


def test_formulas_are_drawn(browser):
    browser.open(SITE / "theory.html", 1280, 900, "light")
    size = "document.querySelector('.formula math').getBoundingClientRect().height"
    assert browser.evaluate(size) > 20


def test_the_search_finds_a_class(browser):
    browser.open((SITE / "search.html").as_uri() + "?q=KSVD", 1280, 900, "light")
    count = "document.querySelectorAll('#search-results li').length"
    for _ in range(200):
        if browser.evaluate(count) >= 5:
            break
    assert browser.evaluate(count) >= 5

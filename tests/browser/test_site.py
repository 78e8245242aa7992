"""The site builds without warnings and network, with every page and name, and opens from a folder."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from needs import not_here

import compile_lens
from compile_lens.course.lessons import EXERCISES

from .pages import alive
from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.torch, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs"))  # its files are scripts, not installed modules

import make_site  # noqa: E402

RUN = "tutorials/01-one-line-four-stages"
"""The lesson that runs here; all of them run for the published site, and in tests of their own."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built by its command, with one lesson run. The contents beside each page lack the names of the
    API, which take two fifths of the time."""
    if importlib.util.find_spec("sphinx") is None:
        not_here("Sphinx is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site") / "site"
    short = ("-D", "toc_object_entries=0")
    assert make_site.build(folder, f"{RUN}.ipynb", cache=folder.parent / "lessons", options=short) == 0, (
        "see the warnings above"
    )
    return folder


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def pages(site: Path) -> list[Path]:
    return [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]


def test_every_page_is_there(site: Path) -> None:
    patterns = (
        "*.md",
        "docs/*.md",
        "docs/zh/*.md",
        "tutorials/**/*.md",
        "tutorials/**/[0-9]*.ipynb",
        "assets/gallery/*.md",
    )
    wanted = {p.relative_to(ROOT).with_suffix(".html") for pattern in patterns for p in ROOT.glob(pattern)}
    wanted -= {Path("tutorials/solutions.html"), Path("tutorials/INSTRUCTORS.html")}
    built = {page.relative_to(site) for page in pages(site)}
    assert wanted <= built and len(wanted) > 60
    assert 'url=docs/index.html"' in _text(site / "index.html")


def test_every_public_name_is_told(site: Path) -> None:
    text = "".join(map(_text, site.glob("docs/api*.html")))
    names = [f"compile_lens.{name}" for name in compile_lens.__all__]
    names += [f"{compile_lens.course.__name__}.{name}" for name in compile_lens.course.__all__]
    assert not [name for name in names if not re.search(rf'id="[\w.]*{name.rpartition(".")[2]}"', text)]
    assert all(f'id="compile_lens.{name}"' in text for name in ("Capture", "capture", "UsageError"))


class Outside(HTMLParser):
    """Collects resources that a page loads from elsewhere; links that a reader may follow are not loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)
        self.found += re.findall(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^)\"']+)", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and given.get("rel") in ("canonical", "author", "search", "index", "next", "prev"):
            return
        loads = [given.get(name, "") for name in ("src", "srcset", "data", "poster")]
        loads += [given.get("href", "")] if tag in ("link", "image", "use", "base") else []
        self.found += [f"{tag} {value}" for value in loads if re.match(r"(https?:)?//", value)]


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://a.example/x.png">',
        "<style>@font-face { src: url('https://a.example/f.woff') }</style>",
    ],
)
def test_what_is_loaded_from_outside_is_found(planted: str) -> None:
    assert len(Outside(planted).found) == 1
    assert not Outside('<a href="https://a.example">read on</a><img src="data:image/png;base64,AA">').found


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    for page in pages(site):
        assert not Outside(_text(page)).found, page.name
    for style in site.rglob("*.css"):
        assert not Outside(f"<style>{_text(style)}</style>").found, style.name


def test_a_lesson_that_was_run_is_alive_and_another_shows_its_code(site: Path) -> None:
    shown = _text(site / f"{RUN}.html")
    assert "17 eager ops" in shown and "cl-app" in shown
    other = _text(site / "tutorials" / "06-inlining-and-fusion.html")
    assert "cell_input" in other and "cell_output" not in other


def test_no_solution_is_given_away(site: Path) -> None:
    """A student gets it from ``course.solution``, after an attempt."""
    assert not (site / "tutorials" / "solutions.html").exists()
    assert not (site / "tutorials" / "INSTRUCTORS.html").exists(), "it has the answers to the questions"
    assert not [file for file in site.rglob("*") if "INSTRUCTORS" in file.name]
    assert not [page for page in pages(site) if re.search(r'href="[^"]*INSTRUCTORS', _text(page))]
    text = "\n".join(_text(page) for page in pages(site) if "tutorials" in page.parts)
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    assert "return None  # your function" in plain
    assert not [key for key, one in EXERCISES.items() if one.solution in plain]


LIT = """() => document.querySelector(".cl-app").shadowRoot.querySelectorAll(".lit").length > 1"""

SIZES = pytest.mark.parametrize(
    "viewport", [(1280, 720), (390, 844)], ids=lambda size: f"{size[0]}x{size[1]}"
)


PARTS = 4


@pytest.mark.browser
@SIZES
@pytest.mark.parametrize("part", range(PARTS))
def test_it_opens_from_a_folder_and_no_page_scrolls_sideways(
    site: Path, page: Page, watch: Watch, part: int
) -> None:
    """The test fails afterwards if a page requests a file outside of the folder or logs to the console."""
    watch.allow(f"{site.as_uri()}/")
    page.goto((site / "index.html").as_uri())
    page.wait_for_url("**/docs/index.html")
    wide = []
    for file in pages(site)[part::PARTS]:
        if file.parent == site and file.name in (
            "index.html",
            "genindex.html",
            "py-modindex.html",
            "search.html",
        ):
            continue  # built by Sphinx, or absent
        page.goto(file.as_uri())
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(file.relative_to(site).as_posix())
    assert not wide


CUT = """() => [...document.querySelectorAll(".cell_output pre")].filter(
    (one) => one.checkVisibility() && one.scrollWidth > one.clientWidth).map((one) => one.textContent)"""


@pytest.mark.browser
def test_what_a_lesson_printed_is_not_cut(site: Path, page: Page, watch: Watch) -> None:
    """The C++ of lesson 1 has lines that are wider than the column: they wrap."""
    watch.allow(f"{site.as_uri()}/")
    page.goto((site / f"{RUN}.html").as_uri())
    assert page.locator(".cell_output pre").count() > 5
    assert page.evaluate(CUT) == []


@pytest.mark.browser
def test_the_lessons_come_right_after_the_start(site: Path, page: Page, watch: Watch) -> None:
    """They are above the fold in the side bar; the tool's pages come after them."""
    watch.allow(f"{site.as_uri()}/")
    page.goto((site / "docs" / "index.html").as_uri())
    links = page.locator(".bd-links a.reference").evaluate_all(
        "all => all.map((one) => one.getAttribute('href'))"
    )
    assert [one.rpartition("/")[2] for one in links[:3]] == [
        "README.html",
        "README.html",
        "13-make-it-faster.html",
    ]
    assert "tutorials" in links[1] and "tutorials" not in links[0]


@pytest.mark.browser
@SIZES
def test_the_page_of_a_capture_lives_inside_a_lesson(site: Path, page: Page, watch: Watch) -> None:
    watch.allow(f"{site.as_uri()}/")
    page.goto((site / f"{RUN}.html").as_uri())
    app = alive(page, 2).first  # the page of the call; that of the slider follows
    assert app.locator(".lit").count() == 0
    app.get_by_text("torch.cos(x)").first.click()
    page.wait_for_function(LIT)

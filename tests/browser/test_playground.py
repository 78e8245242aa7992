"""The playground in a browser: the page matches the typed program, and an outdated page is marked."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from compile_lens.api.playground import widget
from compile_lens.views.live.playground import widget_module

from .watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

pytestmark = [pytest.mark.browser, pytest.mark.torch, pytest.mark.full]

ROOT = Path(__file__).resolve().parents[2]
TWO = "import torch\n\n\ndef f(x):\n    y = torch.sin(x)\n    return y.sum(-1)\n"
"""Two lines with a result each."""

ONE = "import torch\n\n\ndef f(x):\n    return torch.sin(x) + torch.cos(x)\n"

GRAPH = ".page .frame[data-stage] .node"


@contextmanager
def served(cache: Path) -> Iterator[str]:
    """Return a playground with test limits, and its address. Torch environments are looked up in ``cache``."""
    command = [sys.executable, "-m", "compile_lens", "play", "--no-browser", "--seconds", "6"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "XDG_CACHE_HOME": str(cache),
    }
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    yield process.stderr.readline().partition(": ")[2].strip()
    process.terminate()
    assert process.wait(30) == 0
    process.stderr.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a playground."""
    with served(tmp_path_factory.mktemp("cache")) as address:
        yield address


@pytest.fixture
def play(page: Page, watch: Watch, url: str) -> Page:
    """Return the playground with its initial page."""
    return opened(page, watch, url)


def opened(page: Page, watch: Watch, url: str) -> Page:
    """Open a page with a playground."""
    place = url.partition("#")[0]
    watch.allow(place)
    watch.allow(place.replace("http", "ws") + "socket")
    page.goto(url)
    settled(page, "fresh")
    return page


def settled(page: Page, state: str) -> str:
    """Return the status text once it is the expected one for the last edit, which the editor reads in a frame."""
    page.evaluate("new Promise(requestAnimationFrame)")
    rest = "[data-state=waits]" if state == "lowering" else "[data-state=waits], [data-state=lowering]"
    page.wait_for_selector(f".play:not({rest})", timeout=60_000)
    page.wait_for_selector(f".play[data-state={state}]", timeout=60_000)
    return page.inner_text(".state")


def typed(page: Page, text: str, then: str = "fresh") -> str:
    """Put a program into the editor as one edit; return the resulting status text."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)
    return settled(page, then)


def saved_text(page: Page, folder: Path) -> str:
    """Return the page that the button writes."""
    with page.expect_download() as download:
        page.get_by_role("button", name="save").click()
    saved = folder / "saved.html"
    download.value.save_as(saved)
    return saved.read_text("utf-8")


def test_the_page_follows_the_keys(play: Page) -> None:
    typed(play, TWO)
    play.locator(GRAPH, has_text="sin").first.wait_for()
    play.keyboard.press("Control+Home")
    for _ in range(4):
        play.keyboard.press("ArrowDown")
    play.keyboard.press("End")
    for _ in range(len("sin(x)")):
        play.keyboard.press("Backspace")
    play.keyboard.type("cosh(x)")
    words = settled(play, "fresh")
    assert re.fullmatch(r"up to date · \d+\.\d\d s", words)
    play.locator(GRAPH, has_text="cosh").first.wait_for()
    assert play.locator(GRAPH, has_text="sin").count() == 0
    assert play.inner_text(".inputs") == f"x: float32[64, 128] cpu · torch {torch.__version__}"


@pytest.mark.parametrize(
    ("text", "words", "line", "said"),
    [
        (TWO.replace("sin(x)", "sin(x"), "line 5", 5, "SyntaxError"),
        (TWO.replace("sin(x)", "sine(x)"), "line 5", 5, "has no attribute 'sine'"),
        (TWO.replace("    y =", "    while True: x = x\n    y ="), "stopped after 6 s", 0, "takes longer"),
        ("x = 1\n", "no capture", 0, "there is no function yet"),
    ],
)
@pytest.mark.cases(full=2)
def test_the_last_good_page_stays_and_says_so(
    play: Page, text: str, words: str, line: int, said: str
) -> None:
    typed(play, TWO)
    assert typed(play, text, "failed") == words
    assert said in play.inner_text(".fault")
    assert play.locator(".fault-line").count() == (line > 0)
    if line:
        assert play.inner_text(".fault-line") == text.split("\n")[line - 1]
    assert play.inner_text(".stale-note").startswith("Last version that compiled, 1 edit ago.")
    assert float(play.locator(".pages").evaluate("e => getComputedStyle(e).opacity")) < 0.8
    assert play.locator(GRAPH, has_text="sin").count()
    assert typed(play, TWO + "\n").startswith("up to date")
    assert play.locator(".fault").count() == 0 and not play.is_visible(".stale-note")
    assert play.locator(".pages").evaluate("e => getComputedStyle(e).opacity") == "1"


@pytest.mark.exhaustive
def test_a_page_that_waits_is_dimmed_after_a_moment(play: Page) -> None:
    typed(play, TWO)
    play.click(".cm-content")
    play.keyboard.press("Control+a")
    play.keyboard.insert_text(f"import time\ntime.sleep(3)\n{TWO}")
    play.wait_for_selector(".play[data-state=waits].play-stale")
    opacity = "e => getComputedStyle(e).opacity"
    assert float(play.locator(".pages").evaluate(opacity)) < 0.8 and play.is_visible(".stale-note")
    settled(play, "fresh")
    assert play.locator(".pages").evaluate(opacity) == "1" and not play.is_visible(".stale-note")


SLOW = """import time

import torch


def rest(graph):
    time.sleep(3)


torch._inductor.config.post_grad_custom_pre_pass = rest


def f(x):
    y = torch.sin(x)
    return y.sum(-1)
"""
"""Its lowering takes long enough to look at the page meanwhile."""


def test_the_graph_is_shown_before_the_kernels(play: Page) -> None:
    """The graph is of the new program; the rest of the old one is dimmed, and the note explains it."""
    typed(play, SLOW)
    play.click(".cm-lineNumbers .cm-gutterElement:text-is('14')")
    old = play.locator(".page .frame:not(.frame-traced) .listing-box").last
    typed(play, SLOW.replace("sin", "cosh"), "lowering")
    graph = play.locator(".page .frame-traced .node")
    assert "cosh" in str(graph.and_(play.locator(".lit")).last.text_content()), "the pin"
    assert graph.filter(has_text="sin").count() == 0
    assert play.locator(".page .frame-traced").count() == 1
    assert re.fullmatch(r"lowering … · \d+\.\d\d s", play.inner_text(".state"))
    assert play.inner_text(".stale-note") == "The graph is of this version, all else 1 edit old."
    assert "sin" in old.inner_text() and "cosh" not in old.inner_text()

    def seen(selector: str) -> float:
        opacities = (
            "e => { let o = 1; for (; e; e = e.parentElement) o *= getComputedStyle(e).opacity; return o; }"
        )
        return float(play.locator(selector).first.evaluate(opacities))

    assert seen(".page .frame-traced .node") == 1
    for dimmed in (".page .top", ".page .flow", ".page .listing-box"):
        assert seen(dimmed) < 0.8, dimmed
    words = settled(play, "fresh")
    early = re.fullmatch(r"graph after (\d+\.\d\d) s", str(play.get_attribute(".state", "title")))
    assert early is not None and float(early[1]) < 3 < float(words.split()[-2])
    assert "cosh" in old.inner_text() and play.locator(".page .frame-traced").count() == 0
    assert seen(".page .top") == 1

    # The next key arrives during lowering; then code that does not compile removes the graph again.
    typed(play, SLOW.replace("sin", "tan"), "lowering")
    play.keyboard.type(" ")
    settled(play, "lowering")
    assert play.inner_text(".stale-note") == "The graph is of this version, all else 2 edits old."
    typed(play, SLOW.replace("sin(x)", "sin(x"), "failed")
    assert play.locator(".page .frame-traced").count() == 0 and seen(".page .pages, .pages") < 0.8
    assert play.inner_text(".stale-note").startswith("Last version that compiled, 3 edits ago.")


def test_what_is_pinned_open_and_scrolled_stays(play: Page) -> None:
    typed(play, TWO)
    play.click(".cm-lineNumbers .cm-gutterElement:text-is('5')")
    play.click(".page .frame-tab:has-text('module')")
    box = play.locator(".page .listing-box").last
    box.evaluate("e => e.scrollTo(0, 60)")
    top = box.evaluate("e => e.scrollTop")
    assert top > 0 and play.locator(".page .spot").count() == 1
    typed(play, TWO.replace("sum(-1)", "mean(-1)"))
    play.locator(GRAPH, has_text="mean").first.wait_for()
    assert play.locator(".page .spot").count() == 1, "the pin"
    pressed = play.locator(".page .frame-tab[aria-pressed=true]").all_inner_texts()
    assert any("module" in text for text in pressed), "the tab"
    assert play.locator(".page .listing-box").last.evaluate("e => e.scrollTop") == top
    assert play.locator(".page").count() == 1, "the old page is gone"


def test_code_has_the_colours_of_its_boxes(play: Page) -> None:
    """A line is coloured if it became one box; calls are coloured if several of a line did."""
    for text, selector, wanted in (
        (TWO, ".own-line", ["    y = torch.sin(x)", "    return y.sum(-1)"]),
        (ONE, ".call", ["torch.sin(x)", " + ", "torch.cos(x)"]),
    ):
        typed(play, text)
        spans = play.locator(f".editor {selector}")
        assert spans.all_text_contents() == wanted
        (look,) = re.findall(r"unit-\d", str(spans.first.get_attribute("class")))
        box = play.locator(GRAPH, has_text="sin").first.get_attribute("class")
        assert box is not None and look in box.split()


def test_controls_change_the_capture(play: Page) -> None:
    typed(play, TWO)
    play.get_by_label("requires_grad").check()
    settled(play, "fresh")
    assert play.inner_text(".inputs") == f"x: float32[64, 128] cpu requires_grad · torch {torch.__version__}"
    play.locator(".settings").get_by_label("dtype").select_option("bfloat16")
    settled(play, "fresh")
    play.locator(".settings").get_by_label("rows").focus()
    play.keyboard.press("ArrowRight")
    settled(play, "fresh")
    assert play.inner_text(".inputs") == f"x: bfloat16[72, 128] cpu requires_grad · torch {torch.__version__}"
    play.get_by_label("requires_grad").uncheck()
    play.locator(".settings").get_by_label("target").select_option("h100")
    settled(play, "fresh")
    play.locator(".page .listing-box", has_text="tl.load").first.wait_for()
    play.get_by_role("button", name="options").click()
    play.locator(".switch", has_text="combo_kernels").get_by_role("checkbox").check()
    settled(play, "fresh")
    assert play.get_by_role("button", name="options").inner_text() == "options (1)"


def test_without_environments_there_is_no_choice_of_torch(play: Page) -> None:
    torches = play.locator(".settings label", has_text="torch")
    assert torches.locator("option").all_inner_texts() == [torch.__version__] and not torches.is_visible()


def test_two_targets_stand_beside_each_other(play: Page, tmp_path: Path) -> None:
    """Pins, folds and scroll positions stay; a failure of one is beside the other; link and file contain both."""
    typed(play, TWO)
    play.click(".cm-lineNumbers .cm-gutterElement:text-is('5')")
    play.locator(".settings").get_by_label("beside").select_option("h100")
    settled(play, "fresh")
    columns = play.locator(".page .compare-column")
    assert columns.locator(".frame-title").all_inner_texts() == ["this machine", "h100"]
    assert play.locator(".page .spot").count() == 1, "the pin of the page of one"
    only = play.locator(".page .compare-only")
    only.click()
    play.wait_for_function(
        "document.querySelector('main').shadowRoot.querySelector('.page').shadowRoot.activeElement"
    )
    columns.last.get_by_role("button", name="module").click()
    box = columns.last.locator(".listing-box")
    box.evaluate("e => e.scrollTo(0, 90)")
    typed(play, TWO.replace("sum(-1)", "mean(-1)"))
    play.locator(".page .compare-graph .node", has_text="mean").first.wait_for()
    assert play.locator(".page .spot").count() == 1, "the pin"
    assert columns.last.locator(".frame-tab[aria-pressed=true]").inner_text() == "module"
    assert only.get_attribute("aria-pressed") == "true"
    assert columns.last.locator(".listing-box").evaluate("e => e.scrollTop") == 90
    assert play.locator(".own-line").count() == 2, "the editor has the colours"

    both = saved_text(play, tmp_path)
    assert "cpp_fused" in both and "triton_" in both

    play.locator(".settings").get_by_label("beside").select_option("mps")
    play.locator(".settings").get_by_label("dtype").select_option("float64")
    settled(play, "fresh")
    assert "no float64" in columns.last.locator(".compare-failure").inner_text()
    assert columns.first.locator(".listing-line").count()
    assert play.inner_text(".fault").startswith("mps: ")
    play.get_by_role("button", name="link").click()
    play.locator(".state", has_text="link").wait_for()
    play.reload()
    settled(play, "fresh")
    assert columns.locator(".frame-title").all_inner_texts() == ["this machine", "mps"]
    play.locator(".settings").get_by_label("beside").select_option("")
    settled(play, "fresh")
    assert columns.count() == 0 and play.locator(".fault").count() == 0
    play.locator(GRAPH, has_text="sin").first.wait_for()


def test_a_link_brings_the_program_and_its_settings(play: Page, context: object) -> None:
    typed(play, TWO)
    play.get_by_label("requires_grad").check()
    settled(play, "fresh")
    play.wait_for_url("**/#p=*")
    play.get_by_role("button", name="link").click()
    play.locator(".state", has_text="link").wait_for()
    from compile_lens.api.playground.settings import from_link

    held = from_link(play.evaluate("location.href"))
    assert held.source == TWO and held.settings.requires_grad
    play.reload()
    settled(play, "fresh")
    assert "requires_grad" in play.inner_text(".inputs")
    assert play.get_by_label("requires_grad").is_checked()


def test_the_menu_has_the_gallery_and_save_writes_a_page(play: Page, tmp_path: Path) -> None:
    play.get_by_label("programs").select_option(label="softmax over either dimension")
    settled(play, "fresh")
    play.locator(".settings").get_by_label("function").select_option("first")
    settled(play, "fresh")
    text = saved_text(play, tmp_path)
    assert text.startswith("<!doctype html>") and "<title>first · torch" in text


def test_no_address_and_no_request_holds_the_token(play: Page, url: str) -> None:
    token = url.partition("#t=")[2]
    seen: list[str] = []
    play.on("request", lambda request: seen.append(request.url + str(request.all_headers())))
    play.reload()
    settled(play, "fresh")
    assert token not in play.evaluate("location.href + document.referrer + document.cookie")
    assert not [text for text in seen if token in text]
    assert play.evaluate("document.documentElement.outerHTML").find(token) < 0


@pytest.mark.parametrize("fragment", ["", "#t=" + "A" * 43])
def test_without_the_token_there_is_the_entry_page(page: Page, watch: Watch, url: str, fragment: str) -> None:
    place = url.partition("#")[0]
    watch.allow(place)
    watch.allow(place.replace("http", "ws") + "socket")
    watch.expect("WebSocket connection")
    page.goto(place + fragment)
    page.get_by_role("alert").wait_for()
    assert page.inner_text("body").startswith("This is the entry page of a playground.")


@pytest.mark.parametrize("attack", ["fetch", "socket", "frame"])
def test_a_page_of_another_origin_gets_nothing(
    page: Page, watch: Watch, url: str, tmp_path: Path, attack: str
) -> None:
    """The page simulates a site that the reader visits: it knows the port and even the token."""
    address, _, token = url.partition("#t=")
    tries: dict[str, Callable[[], str]] = {
        "fetch": lambda: f"fetch('{address}', {{credentials: 'include'}}).then(() => 'read')",
        "socket": lambda: (
            f"new Promise((done, no) => {{ const s = new WebSocket('{address.replace('http', 'ws')}socket', "
            f"['compile-lens', '{token}']); s.onmessage = () => done('read'); s.onerror = () => no('closed') }})"
        ),
        "frame": lambda: (
            f"new Promise((done, no) => {{ const f = document.createElement('iframe'); f.src = '{address}'; "
            "f.onload = () => { try { done(f.contentDocument.body.textContent) } catch { no('closed') } }; "
            "document.body.append(f) })"
        ),
    }
    file = tmp_path / "evil.html"
    file.write_text("<!doctype html><title>evil</title><body></body>", "utf-8")
    for place in (file.as_uri(), address, address.replace("http", "ws") + "socket", "chrome-error://"):
        watch.allow(place)
    watch.expect("")
    page.goto(file.as_uri())
    assert page.evaluate(f"{tries[attack]()}.catch(() => 'closed')") == "closed"


def test_a_page_that_leads_the_tab_here_runs_nothing(
    play: Page, url: str, watch: Watch, tmp_path: Path
) -> None:
    """The tab keeps its token when it leaves and returns, at an address that the other page chose."""
    mark = tmp_path / "it ran"
    program = json.dumps({"source": f"open({str(mark)!r}, 'w').close()\n{TWO}", "settings": {}})
    packed = base64.urlsafe_b64encode(zlib.compress(program.encode())).decode().rstrip("=")
    elsewhere = tmp_path / "elsewhere.html"
    link = f"{url.partition('#')[0]}#p={packed}"
    elsewhere.write_text(f"<script>location.href = {link!r}</script>", "utf-8")
    watch.allow(elsewhere.as_uri())
    play.goto(elsewhere.as_uri())
    settled(play, "failed")
    assert play.inner_text(".state") == "not run" and "it ran" in play.inner_text(".cm-content")
    assert "Run it only if you trust it" in play.inner_text(".stale-note")
    play.click(".cm-content")
    play.keyboard.type("# a key")
    assert settled(play, "failed") == "not run"
    play.wait_for_timeout(700)  # later than the address is written
    play.reload()
    assert settled(play, "failed") == "not run" and not mark.exists()

    play.get_by_role("button", name="run").click()
    settled(play, "fresh")
    assert mark.exists()
    mark.unlink()
    play.wait_for_timeout(700)
    play.reload()
    settled(play, "fresh")
    assert mark.exists(), "it is the reader's now"

    play.evaluate(f"location.hash = '#p={packed}'")  # like a user who pastes a link
    assert settled(play, "failed") == "not run"
    play.get_by_label("programs").select_option(label="softmax over either dimension")
    settled(play, "fresh")


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_editor_and_page_take_turns(play: Page) -> None:
    assert play.locator(".cm-content").is_visible() and not play.locator(".page .top").is_visible()
    play.get_by_role("button", name="capture", exact=True).click()
    assert play.locator(".page .top").is_visible() and not play.locator(".cm-content").is_visible()
    assert play.evaluate("document.documentElement.scrollWidth") == 390
    play.get_by_role("button", name="editor", exact=True).click()
    typed(play, TWO)


@pytest.mark.parametrize("viewport", [(390, 844)])
def test_on_a_phone_each_control_is_reached_and_nothing_covers_another(play: Page) -> None:
    def box(selector: str) -> dict[str, float]:
        bounds = play.locator(selector).first.bounding_box()
        assert bounds is not None
        return dict(bounds)

    controls = play.locator(".head :is(button, select), .settings :is(button, select, input)")
    for control in controls.all():
        if control.is_visible():
            control.focus()
            edge = control.bounding_box()
            assert edge is not None and edge["x"] >= 0 and edge["x"] + edge["width"] <= 390
            assert control.evaluate("e => e.matches(':focus')")
    play.get_by_role("button", name="options").click()
    settings, options = box(".settings"), box(".play > .popover")
    assert options["y"] >= settings["y"] + settings["height"], "the row of its button stays in view"
    assert options["x"] >= 0 and options["x"] + options["width"] <= 390
    play.mouse.click(200, 800)
    assert not play.locator(".switch").first.is_visible()

    play.locator(".settings").get_by_label("beside").select_option("h100")
    settled(play, "fresh")
    play.get_by_role("button", name="capture", exact=True).click()
    graph, column = box(".page .compare-graph"), box(".page .compare-column")
    assert graph["height"] >= 200 and column["y"] >= graph["y"] + graph["height"] - 1
    assert column["width"] <= 390


def test_by_keyboard_alone(play: Page) -> None:
    """Tab moves from the editor, which has the focus, to the controls and back, and to the page."""
    assert "Escape, then Tab" in str(play.get_attribute(".cm-content", "aria-description"))
    focused = "document.querySelector('main').shadowRoot.activeElement"
    assert "cm-content" in play.evaluate(f"{focused}.className")
    play.keyboard.press("Control+a")
    play.keyboard.insert_text(TWO)
    settled(play, "fresh")
    play.keyboard.press("Escape")
    play.keyboard.press("Tab")
    assert play.evaluate(f"{focused}.className") == "page", "Tab leaves the editor for the page"
    play.keyboard.press("Shift+Tab")
    assert "cm-content" in play.evaluate(f"{focused}.className")
    play.keyboard.press("Shift+Tab")
    assert play.evaluate(f"{focused}.textContent").startswith("options")
    play.keyboard.press("Enter")
    assert play.locator(".switch").first.is_visible()
    play.keyboard.press("Escape")
    assert not play.locator(".switch").first.is_visible()
    names = ["options", "requires_grad", "dynamic", "columns", "rows", "dtype", "beside", "target"]
    for name in [*names, "save", "link", "present", "programs"]:
        label, outline = play.evaluate(
            f"(e => [e.ariaLabel ?? e.closest('label')?.textContent ?? e.textContent, "
            f"getComputedStyle(e).outlineStyle])({focused})"
        )
        assert label.startswith(name) and outline == "solid", "in turn, and one sees where"
        play.keyboard.press("Shift+Tab")


def test_present_enlarges_what_is_read(play: Page) -> None:
    before = play.locator(".cm-line").first.bounding_box()
    play.get_by_role("button", name="present").click()
    after = play.locator(".cm-line").first.bounding_box()
    assert before is not None and after is not None and after["height"] > 1.4 * before["height"]
    assert play.evaluate("document.documentElement.scrollHeight <= innerHeight")


_RENDERED = """
async ([module, hello]) => {
  const { default: widget } = await import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })));
  const heard = new Set();
  const model = {
    get: () => hello,
    on: (event, hear) => heard.add(hear),
    off: (event, hear) => heard.delete(hear),
    send: async (message) => {
      const answer = JSON.parse(await ask(message));
      heard.forEach((hear) => hear(answer));
    },
  };
  window.views = ["one", "two"].map((id) => {
    const el = document.createElement("div");
    el.id = id;
    document.body.append(el);
    return widget.render({ model, el });
  });
}
"""
"""Renders two views of a widget, as a notebook front end does."""


def test_a_widget_in_a_cell_follows_its_sliders(page: Page) -> None:
    pytest.importorskip("anywidget")

    def f(x: torch.Tensor) -> torch.Tensor:
        if len(x) == 9:
            raise ValueError("nine")
        return torch.sin(x) + torch.cos(x)

    made = widget.play(f, torch.rand(8, requires_grad=True))
    answers: list[dict[str, Any]] = []
    made.send = answers.append

    def ask(message: dict[str, Any]) -> str:
        made._hear(made, message, [])
        return json.dumps(answers.pop())

    def until(view: str, state: str) -> None:
        page.wait_for_selector(f"#{view} .play[data-state={state}]", timeout=60_000)

    page.expose_function("ask", ask)
    page.evaluate(_RENDERED, [widget_module(), made.hello])
    until("one", "fresh")
    until("two", "fresh")
    page.focus("#one input[type=range]")
    page.keyboard.press("ArrowRight")
    until("one", "failed")
    assert "Last settings that compiled. nine" in page.inner_text("#one .stale-note")
    page.keyboard.press("ArrowRight")
    until("one", "fresh")
    assert made.capture.inputs == ("x: float32[10] cpu requires_grad",)
    page.locator(f"#one {GRAPH}", has_text="sin").first.wait_for()
    outputs = page.locator(".setting output").all_inner_texts()
    assert outputs == ["10", "8"], "each view has settings of its own"
    page.evaluate("views.forEach((end) => end())")

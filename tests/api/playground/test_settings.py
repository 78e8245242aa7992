"""Settings, links and menu of the playground: plain data, read without running anything."""

from __future__ import annotations

import ast
import base64
import json
import zlib
from pathlib import Path

import pytest

import compile_lens
from compile_lens import UsageError
from compile_lens.api.playground import play, snippets
from compile_lens.api.playground.settings import MAX_PROGRAM_LENGTH, Program, Settings, from_link

GALLERY = Path(__file__).resolve().parents[3] / "assets" / "gallery" / "programs"


def link(text: bytes) -> str:
    return "http://127.0.0.1:1/#p=" + base64.urlsafe_b64encode(zlib.compress(text)).decode().rstrip("=")


def test_a_link_holds_a_program_and_its_settings() -> None:
    raw = {
        "source": "x = '²'",
        "settings": {"target": "h100", "beside": "t4", "rows": 3, "switches": ["b", "a", "b"]},
    }
    program = from_link(link(json.dumps(raw).encode()))
    assert program == Program("x = '²'", Settings(target="h100", beside="t4", rows=3, switches=("a", "b")))


@pytest.mark.parametrize(
    "bad",
    [
        "http://127.0.0.1:1/#p=",
        "#p=!!!",
        "#p=AAAA",
        link(b"[]"),
        link(b'{"source": 3}'),
        link(b'{"source": "", "settings": {"rows": 0}}'),
        link(b'{"source": "", "settings": {"beside": "own.json"}}'),
        link(b'{"source": "", "settings": {"target": "t4", "beside": "t4"}}'),
        link(b'{"source": "%s"}' % (b"x" * (MAX_PROGRAM_LENGTH + 1))),
        link(b"0" * 100_000_000),
        link(b"{")[:-3],
    ],
)
def test_a_link_that_holds_none_is_said(bad: str) -> None:
    with pytest.raises(UsageError):
        from_link(bad)


def test_the_nine_of_the_gallery_come_along() -> None:
    """Each example has the functions of the gallery's program, verbatim."""
    own = {snippet.file.partition("_")[2]: snippet for snippet in snippets.own()}
    assert set(own) == {path.name for path in GALLERY.glob("*.py")} and len(own) == 9

    def functions(text: str) -> dict[str, str]:
        return {
            item.name: ast.dump(item)
            for item in ast.parse(text).body
            if isinstance(item, (ast.FunctionDef, ast.ClassDef))
            if item.name not in ("setup", "teardown", "cases")
        }

    for name, snippet in own.items():
        text = (GALLERY / name).read_text("utf-8")
        assert functions(snippet.source) == functions(text), name
        assert snippet.title == (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def test_a_folder_is_a_menu_and_a_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text('"""Second"""\n', "utf-8")
    (tmp_path / "a.py").write_text("def broken(:\n", "utf-8")
    (tmp_path / "notes.txt").write_text("no program", "utf-8")
    opening, folder = play.opening(str(tmp_path))
    assert [one.title for one in opening.menu] == ["a.py", "Second"] and folder == str(tmp_path)
    opening, folder = play.opening(str(tmp_path / "b.py"))
    assert (opening.file, opening.program.source, folder) == ("b.py", '"""Second"""\n', str(tmp_path))
    assert len(opening.menu) == 10
    with pytest.raises(UsageError, match=r"cannot read .*none\.py"):
        play.opening(str(tmp_path / "none.py"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no Python file"):
        play.opening(str(tmp_path / "empty"))


def test_without_anything_it_begins_with_the_first_of_the_menu() -> None:
    opening, folder = play.opening("")
    assert opening.program.source == opening.menu[0].source and (opening.file, folder) == ("f.py", "")


def test_the_page_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "NEEDED", ("no_such_package",))
    with pytest.raises(ModuleNotFoundError, match="pip install no_such_package"):
        play.check()


def test_the_room_loads_no_torch() -> None:
    """The server starts immediately; only the child waits for torch."""
    import subprocess
    import sys

    code = "import sys, compile_lens.api.playground.play; print('torch' in sys.modules)"
    root = str(Path(compile_lens.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=120)
    assert done.stdout == "False\n", done.stderr

"""Saving and loading: complete or not at all, clear refusals, no leftover files."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import samples

from compile_lens.api import load
from compile_lens.course.series import series
from compile_lens.errors import RecordError, UsageError
from compile_lens.record import files
from compile_lens.record.program import ProgramGraph
from compile_lens.record.verification import ValueCheck, Verification
from compile_lens.results.capture import Capture
from compile_lens.results.capture_pages import save_captures
from compile_lens.results.divergence import Divergence
from compile_lens.views.exports import save_capture
from compile_lens.views.render import formats


@pytest.mark.parametrize("ending", sorted(formats.CAPTURE))
def test_every_form(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"capture{ending}"
    assert samples.sample().save(path) == path
    content = path.read_bytes()
    assert b"\r" not in content and len(content) > 500
    samples.sample().save(str(path))
    assert path.read_bytes() == content
    beside = {"capture-backward.svg"} if ending == ".svg" else set()
    assert {p.name for p in tmp_path.iterdir()} == {path.name} | beside


def test_json_comes_back_equal(tmp_path: Path) -> None:
    for make in (samples.sample, samples.missing, samples.graph_break, samples.failed, samples.nothing):
        path = make().save(tmp_path / "x.JSON")
        assert load.load(path) == make() == load.load(str(path))


def test_svg_is_the_telling_graph(tmp_path: Path) -> None:
    samples.graph_break().save(tmp_path / "x.svg")
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {
        "x.svg", "x-backward.svg", "x-1.0.svg", "x-1.0-backward.svg", "x-1.1.svg", "x-1.1-backward.svg",
    }  # fmt: skip
    assert "forward of 0/0" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "backward of 1/1" in (tmp_path / "x-1.1-backward.svg").read_text(encoding="utf-8")
    for path in tmp_path.iterdir():
        ET.parse(path)


def test_svg_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no graph to draw: nothing was compiled.*save as \.html"):
        samples.nothing().save(tmp_path / "x.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("string", samples.HOSTILE, ids=lambda s: repr(s[:12]))
@pytest.mark.parametrize("ending", sorted(formats.CAPTURE))
def test_hostile_strings(string: str, ending: str, tmp_path: Path) -> None:
    capture = samples.hostile(string)
    path = capture.save(tmp_path / f"x{ending}")
    path.read_bytes().decode("utf-8")
    if ending == ".json":
        assert load.load(path) == capture
    if ending == ".svg":
        ET.parse(path)


@pytest.mark.parametrize("name", ("x.pdf", "x", "x.html.gz", ".json"))
def test_unknown_ending(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.html.*\.json.*\.svg.*\.md.*\.txt"):
        samples.sample().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_bad_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.html").mkdir()
    for path, message in (
        (tmp_path / "no" / "x.html", "does not exist; make it first"),
        (tmp_path / "file" / "x.html", "is not a folder"),
        (tmp_path / "folder.html", "it is a folder; add a file name"),
        ("", "is not a path"),
        ("a\0.html", "is not a path"),
        (b"x.html", "must be a str or a Path"),
        (None, "must be a str or a Path"),
    ):
        with pytest.raises(UsageError, match=message):
            save_capture(samples.sample(), path)  # type: ignore[arg-type]
    assert {p.name for p in tmp_path.iterdir()} == {"file", "folder.html"}


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Simulated by a refused system call: root may write everywhere.
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UsageError, match="no permission to write here; choose another place"):
        files.write_text(tmp_path / "x.txt", "x")


@pytest.mark.parametrize("step", ("fsync", "replace"))
def test_nothing_half_written(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(UsageError, match="the disk is full"):
        files.write_text(path, "after")
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"] and path.read_text() == "before"


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(tmp_path / "x.txt", "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions and links")
def test_permissions_and_links(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        files.write_text(tmp_path / "new", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    (tmp_path / "kept").write_text("x")
    (tmp_path / "kept").chmod(0o600)
    (tmp_path / "link").symlink_to("kept")
    files.write_text(tmp_path / "link", "é\n")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "kept").read_bytes() == b"\xc3\xa9\n"
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o600


def test_a_name_that_a_dead_process_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reuses process ids, and with them the file names that contain them."""
    monkeypatch.setattr(files, "_count", itertools.count())
    left = [tmp_path / f".compile_lens-{os.getpid()}-{n}.tmp" for n in range(3)]
    for path in left:
        path.write_text("of another")
    (tmp_path / "x.txt").write_text("before")
    files.write_text(tmp_path / "x.txt", "after")
    assert (tmp_path / "x.txt").read_text() == "after"
    assert [p.read_text() for p in left] == ["of another"] * 3
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions and no pipes with a path")
@pytest.mark.parametrize("mode", (0o666, 0o664, 0o755, 0o600))
def test_the_mode_of_a_file_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")
    path.chmod(mode)
    old = os.umask(0o077)
    try:
        files.write_text(path, "after")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o7777 == mode and path.read_text() == "after"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions and no pipes with a path")
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    pipe, loop, listening = tmp_path / "pipe.txt", tmp_path / "loop.txt", tmp_path / "socket.txt"
    os.mkfifo(pipe)
    loop.symlink_to(loop.name)
    (tmp_path / "null.txt").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening))
        for path, message in (
            (pipe, "it is a pipe, not a file"),
            (listening, "it is a socket, not a file"),
            (tmp_path / "null.txt", "it is a device, not a file"),
            (loop, "a link that leads to itself"),
        ):
            with pytest.raises(UsageError, match=message):
                samples.nothing().save(path)
    assert pipe.is_fifo() and loop.is_symlink() and listening.is_socket()
    assert Path("/dev/null").is_char_device()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other links")
def test_a_link_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to("made.txt")
    files.write_text(tmp_path / "link.txt", "x")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "made.txt").read_text() == "x"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("before")
    path.chmod(0o444)
    with pytest.raises(UsageError, match="it may only be read"):
        files.write_text(path, "after")
    assert path.read_text() == "before"


def test_long_names(tmp_path: Path) -> None:
    for ending in (".json", ".html", ".svg"):
        name = "é" * ((255 - len(ending)) // 2) + ending
        path = samples.sample().save(tmp_path / name)
        assert path.name == name and path.exists()
    assert all(len(os.fsencode(p.name)) <= 255 for p in tmp_path.iterdir())
    assert len([p for p in tmp_path.iterdir() if p.suffix == ".svg"]) == 2
    count = len(list(tmp_path.iterdir()))
    for name in ("a" * 252 + ".txt", "a" * 5000 + ".txt"):
        with pytest.raises(UsageError, match="the name is too long"):
            samples.sample().save(tmp_path / name)
        with pytest.raises(UsageError, match=r"cannot be read: .*[Nn]ame (is )?too long"):
            load.load(tmp_path / name)
    assert len(list(tmp_path.iterdir())) == count


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert samples.nothing().save("~/x.txt") == tmp_path / "x.txt"
    assert (tmp_path / "x.txt").exists()


def test_load_refuses(tmp_path: Path) -> None:
    newer = json.loads(samples.nothing().to_json()) | {"schema_version": 999}
    whole = samples.sample().to_json()
    for name, content, error, message in (
        (
            "newer.json",
            json.dumps(newer).encode(),
            RecordError,
            "newer.json.*schema_version 999.*open it with a newer one",
        ),
        ("cut.json", whole[: len(whole) // 2].encode(), RecordError, "cut.json.*not JSON"),
        ("binary.json", b"\x80\x04\x95\xff", RecordError, "not UTF-8"),
        ("empty.json", b"", RecordError, "not JSON"),
        ("other.json", b"[1]", RecordError, "not a record"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=message):
            load.load(tmp_path / name)
    with pytest.raises(UsageError, match="there is no file"):
        load.load(tmp_path / "none.json")
    with pytest.raises(UsageError, match="is a folder"):
        load.load(tmp_path)


def test_a_record_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf" + samples.nothing().to_json().encode())
    assert load.load(tmp_path / "x.json") == samples.nothing()


def test_a_graph_that_cannot_be_captured_has_a_note_with_the_first_line_of_the_reason(tmp_path: Path) -> None:
    graphs = [ProgramGraph(number, f"{number}/0", 1) for number in range(2)]

    def captured(graph: ProgramGraph) -> Capture:
        if graph.number:
            raise UsageError("an input is gone\nask while it is there")
        return samples.sample()

    pages, notes = save_captures(graphs, captured, tmp_path / "report.html")
    assert pages == {"0/0": "report-graph0.html"} and (tmp_path / "report-graph0.html").is_file()
    assert notes == ["graph 1 (1/0) has no page of its capture: an input is gone"]
    with pytest.raises(UsageError, match=r"^graph 1 \(1/0\) has no page of its capture: an input is gone$"):
        save_captures(graphs[1:], captured, tmp_path / "report.html")


def test_a_series_is_a_table_of_what_each_capture_launches_and_moves() -> None:
    one, two = samples.sample(), samples.layers(3)
    rows = [line.split() for line in str(series("rows", {8: one, 16: two})).splitlines()]
    for value, capture in (("8", one), ("16", two)):
        total = capture.ledger.total
        (row,) = (words for words in rows if words[:1] == [value])
        assert row[1:3] == [str(total.eager_ops), str(total.launches)]


def test_the_pages_of_a_divergence_link_to_each_other(tmp_path: Path) -> None:
    check = ValueCheck("result", "float32", (3,), 0.0, 0.0, None, None, True)
    divergence = Divergence("f", samples.sample(), Verification((check,), True))
    page = divergence.save(tmp_path / "d.html").read_text(encoding="utf-8")
    assert 'href="d-code.html"' in page and "compiled and eager values are equal" in page
    assert 'href="d.html"' in (tmp_path / "d-code.html").read_text(encoding="utf-8")

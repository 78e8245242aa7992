"""``compile-lens upgrade``: a reusable, removable environment for each version, and the differences between them.

Packages come from a folder of wheels that the test writes, by the real venv and the real pip.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from torch_environments import environment

from compile_lens.cli import main
from compile_lens.errors import UsageError
from compile_lens.trials import environments
from compile_lens.trials.environments import MARK, EnvironmentFailed

ROOT = Path(__file__).resolve().parents[2]


def wheel(folder: Path, name: str, version: str, needs: str = "") -> None:
    """Build a wheel that contains one empty module."""
    info = f"{name}-{version}.dist-info"
    meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + (
        f"Requires-Dist: {needs}\n" if needs else ""
    )
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", meta)
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build all packages that pip can find."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, version in (("numpy", "2.0"), ("tqdm", "4.60"), ("cloudpickle", "3.0"), ("helper", "1.0")):
        wheel(folder, name, version)
    for version in ("2.12.0", "2.13.0", "2.13.1"):
        wheel(folder, "torch", version)
    wheel(folder, "torch", "2.14.0", "nowhere>=1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_environment_is_made_once_and_kept(
    wheels: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "environments"
    one = environments.make("2.13", folder)
    assert one.whole and one.torch == "2.13.1"  # the newest patch
    code = "import torch, importlib.metadata as m; print(m.version('torch'), torch.__file__)"
    done = subprocess.run([one.python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2.13.1 ") and str(one.folder) in done.stdout
    assert "Successfully installed" in capfd.readouterr().err  # the output of pip is shown
    begin = os.stat(one.folder / MARK).st_mtime_ns
    assert environments.make("2.13", folder) == one and os.stat(one.folder / MARK).st_mtime_ns == begin
    assert capfd.readouterr().err == ""
    # Packages requested beside torch go into the same one, and are remembered.
    more = environments.make("2.13", folder, ["helper"], quiet=True)
    assert more.extra == ("helper",) and more.torch == "2.13.1" and more.folder == one.folder
    assert environments.kept(folder) == [more] and more.size() > 1_000_000
    environments.remove(more)
    assert environments.kept(folder) == [] and not more.folder.exists()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_pip_says_is_the_error(wheels: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    with pytest.raises(EnvironmentFailed, match=r"torch==2\.99\.\*") as caught:
        environments.make("2.99", folder, quiet=True)
    assert "ERROR: No matching distribution found for torch==2.99.*" in str(caught.value)
    with pytest.raises(EnvironmentFailed, match="nowhere>=1"):
        environments.make("2.14", folder, quiet=True)
    assert environments.kept(folder) == []


@pytest.mark.slow
def test_one_that_was_killed_while_it_was_made_is_not_taken_for_whole(wheels: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    code = "import sys; from pathlib import Path; from compile_lens.trials import environments as e; "
    code += "e.make('2.12', Path(sys.argv[1]), quiet=True)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], env=env)
    there = environments.find("2.12", folder)
    until = time.monotonic() + 60
    while not there.python.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    (left,) = environments.kept(folder)
    assert not left.whole and left.python.exists()
    new = environments.make("2.12", folder, quiet=True)
    assert new.whole and new.torch == "2.12.0" and new.folder == left.folder


@pytest.mark.parametrize("body", ["", "{", "[]", '{"torch": "2.13.0"}', '{"torch": "", "with": []}'])
def test_a_mark_that_says_nothing_makes_nothing_whole(tmp_path: Path, body: str) -> None:
    one = environments.find("2.13", tmp_path)
    one.python.parent.mkdir(parents=True)
    one.python.touch()
    assert not environments.find("2.13", tmp_path).whole
    (one.folder / MARK).write_text(body)
    assert not environments.find("2.13", tmp_path).whole
    (one.folder / MARK).write_text('{"torch": "2.13.0", "with": []}')
    assert environments.find("2.13", tmp_path).whole


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("two", "not a version"),
        ("net.py:f", "not a version"),
        ("../2.13", "not a version"),
        ("2.9", "too old"),
    ],
)
def test_versions_that_cannot_be_asked_for(version: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        environments.checked(version)


@pytest.mark.parametrize("version", ["2.13", "2.13.1", "2.15.0rc1", "2.15.0.dev20261101", "2.13.0+cpu"])
def test_versions_that_can(version: str) -> None:
    assert environments.checked(version) == version


def test_list_and_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, half = environments.find("2.13", tmp_path), environments.find("2.11", tmp_path)
    for one in (whole, half):
        one.python.parent.mkdir(parents=True)
        one.python.write_bytes(b"x" * 1000)
    (whole.folder / MARK).write_text('{"torch": "2.13.0+cpu", "with": ["timm"]}')
    words = ["upgrade", "--folder", str(tmp_path)]
    assert main([*words, "--list"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("2.11 ") and "incomplete" in first
    assert second.startswith("2.13 ") and "torch 2.13.0+cpu, with timm" in second
    assert main([*words, "--list", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)["environments"]
    assert [(one["asked"], one["whole"]) for one in body] == [("2.11", False), ("2.13", True)]
    assert body[0]["bytes"] == 1000
    assert main([*words, "--remove", "2.12"]) == 2
    assert "there are: 2.11, 2.13; or all" in capsys.readouterr().err
    assert main([*words, "--remove", "2.11", "--quiet"]) == 0
    assert not half.folder.exists() and whole.folder.exists()
    assert main([*words, "--remove", "all", "--quiet"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_function_environments_are_only_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = environment(tmp_path, "2.12", "2.12.1")
    words = ["upgrade", "--folder", str(tmp_path), "--torch", "2.12"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("2.12 ") and environments.kept(tmp_path) == [there]
    monkeypatch.setattr(
        environments, "make", lambda version, folder, *_: environment(folder, version, "2.13.0")
    )
    assert main([*words, "2.13", "--json", "--quiet"]) == 0
    body = json.loads(capsys.readouterr().out)["environments"]
    assert [(one["asked"], one["torch"]) for one in body] == [("2.12", "2.13.0"), ("2.13", "2.13.0")]
    assert main([*words, "new"]) == 2
    assert "'new' is not a version of torch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a function"),
        (["a.py:f"], "--torch needs two versions or more"),
        (["a.py:f", "--torch", "2.13"], "--torch needs two versions or more"),
        (["a.py:f", "--torch", "2.13", "2.13"], "--torch needs two versions or more"),
        (["a.py:f", "--torch", "2.13", "new"], "'new' is not a version of torch"),
        (["a.py:f", "--torch", "2.13", "2.15", "--records", "nowhere"], "there is no such folder"),
        (["a.py:f", "--torch", "2.13", "2.15", "--out", "d.pdf"], "no known file extension"),
        (["a.py:f", "--torch", "2.13", "2.15", "--fail-on", "speed"], "'speed' is not one of"),
    ],
)
def test_bad_usage_is_named_before_anything_is_made(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "environments"
    assert main(["upgrade", *words, "--folder", str(folder)]) == 2
    assert said in capsys.readouterr().err and not folder.exists()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a folder with two environments that have this torch, by a path file: as pip would have made them."""
    torch = pytest.importorskip("torch")
    folder = tmp_path / "environments"
    for version in (".".join(torch.__version__.split(".")[:2]), torch.__version__.partition("+")[0]):
        one = environments.find(version, folder)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(one.folder)], check=True)
        (packages,) = one.folder.glob("Lib/site-packages" if os.name == "nt" else "lib/*/site-packages")
        (packages / "shared.pth").write_text("\n".join(site.getsitepackages()) + "\n")
        (one.folder / MARK).write_text(json.dumps({"torch": torch.__version__, "with": []}))
    return folder


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_capture_in_each_and_their_difference(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(
        "def f(x, dim):\n    return x.softmax(dim)\n\n\ndef g():\n    import nowhere\n"
    )
    versions = [one.asked for one in environments.kept(made)]
    words = ["upgrade", "--folder", str(made), "--quiet", "--torch", *versions]
    call = ["net.py:f", "--input", "torch.rand(4, 4)", "--kwarg", "dim=-1", "--backward", "no"]
    kept = ["--records", ".", "--fail-on", "kernels", "-o", "d.md"]
    assert main([words[0], *call, *words[1:], *kept]) == 0
    assert (
        "Nothing differs" in capfd.readouterr().out and "Nothing differs" in (tmp_path / "d.md").read_text()
    )
    for version in versions:
        assert (tmp_path / f"torch-{version}.json").exists()
    # An error in one of them is reported unchanged.
    assert main([words[0], "net.py:h", *words[1:]]) == 1
    assert "net.py has no 'h'; what can be called there: f, g" in capfd.readouterr().err
    (tmp_path / "net.py").write_text("import nowhere\n")
    assert main([words[0], "net.py:f", *words[1:]]) == 1
    output = capfd.readouterr().err
    assert "net.py:1 imports nowhere, which is not installed" in output and "--with NAME" in output

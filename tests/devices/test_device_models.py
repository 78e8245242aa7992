"""Device models: those in the package, names of targets, and models of users."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compile_lens.devices import models
from compile_lens.errors import UsageError


@pytest.mark.parametrize(
    ("target", "name", "device", "arch"),
    [
        ("h100", "h100", "cuda", "sm_90"),
        ("cuda", "h100", "cuda", "sm_90"),
        ("cuda:sm_80", "a100", "cuda", "sm_80"),
        ("cuda:rtx4090", "rtx4090", "cuda", "sm_89"),
        ("cuda:sm_86", "rtx3090", "cuda", "sm_86"),
        ("cuda:sm_89", "rtx4090", "cuda", "sm_89"),
        ("cuda:sm_90", "h100", "cuda", "sm_90"),
        ("rtx5090", "rtx5090", "cuda", "sm_120"),
        ("mps", "m2", "mps", "m2"),
        ("mps:m1", "m1", "mps", "m1"),
        ("cpu", "cpu", "cpu", ""),
        ("cpu:avx2", "cpu:avx2", "cpu", "avx2"),
    ],
)
def test_names_of_targets(target: str, name: str, device: str, arch: str) -> None:
    found = models.resolve(target)
    assert (found.name, found.device, found.arch) == (name, device, arch)
    assert models.resolve(found) is found


@pytest.mark.parametrize("target", ["gtx", "cuda:sm_13", "mps:m99", "cpu:mmx", "", "cuda:m1"])
def test_an_unknown_name_lists_the_known_ones(target: str) -> None:
    with pytest.raises(UsageError, match="h100") as raised:
        models.resolve(target)
    assert (
        repr(target) in str(raised.value) and "avx512" in str(raised.value) and "m4max" in str(raised.value)
    )


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("xpu", "Intel's GPUs are not offered, since .* driver"),
        ("b300", "no published figure of its multiprocessors"),
        ("cuda:sm_103", "no published figure of its multiprocessors"),
        ("mi300x", "AMD's GPUs are not offered, since .* ROCm"),
    ],
)
def test_devices_that_exist_say_why_they_are_not_offered(target: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        models.resolve(target)
    with pytest.raises(UsageError, match="is not known: the GPUs are"):
        models.resolve("h9000")


@pytest.mark.parametrize("target", ["rocm", "rocm:gfx942", "hip", "cuda:gfx942"])
def test_amd_says_why_it_is_not_offered(target: str) -> None:
    with pytest.raises(UsageError, match=r"AMD's GPUs are not offered, since .* ROCm"):
        models.resolve(target)


def test_every_figure_has_a_source() -> None:
    found = models.models()
    known = "t4 a100 a10g rtx3090 rtx4090 l4 l40s h100 h200 gh200 b200 rtx5090 m1 m2".split()
    assert {*known} <= {m.name for m in found}
    assert len({m.name for m in found}) == len(found)
    for model in found:
        assert model.properties and all("https://" in f.source for f in model.properties)
        assert model.figure("multi_processor_count") and model.figure("nothing") is None
        if model.device == "cuda":
            assert model.arch == f"sm_{model.figure('major')}{model.figure('minor')}"


def test_an_architecture_of_several_models_has_a_usual_one() -> None:
    archs = [m.arch for m in models.models() if m.device == "cuda"]
    assert {arch for arch in archs if archs.count(arch) > 1} == {*models.USUAL}
    for arch, name in models.USUAL.items():
        assert models.resolve(name).arch == arch


def test_a_model_of_the_users_own(tmp_path: Path) -> None:
    raw = json.loads((models.FOLDER / "h100.json").read_text())
    raw |= {"name": "mine", "title": "My GPU"}
    raw["properties"]["multi_processor_count"]["value"] = 7
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(raw))
    model = models.resolve(str(path))
    assert (model.name, model.figure("multi_processor_count")) == ("mine", 7)
    assert models.resolve(path) == model


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"device": "tpu"}, "'tpu'"),
        ({"colour": 1}, "colour"),
        ({"properties": {}}, "major"),
        ({"properties": {"major": {"value": 9}}}, "source"),
        ({"properties": {"major": {"value": True, "source": "mine"}}}, "its property major is True"),
        ({"properties": {"major": {"value": [9], "source": "mine"}}}, "its property major is [9]"),
        ({"title": None, "properties": None}, "NoneType"),
    ],
)
def test_a_model_that_is_none(tmp_path: Path, change: dict[str, object], said: str) -> None:
    raw = json.loads((models.FOLDER / "h100.json").read_text()) | change
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(UsageError, match="is not a device model") as raised:
        models.resolve(path)
    assert said in str(raised.value) and str(path) in str(raised.value)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"there is no device model 'nowhere.json': .*h100.*h100\.json"):
        models.resolve("nowhere.json")


def test_memory_is_what_cuda_says_where_that_is_known() -> None:
    """PyTorch prints it in MiB: 81090 for an H100. That is neither 80 times 10^9 bytes nor 80 times 2^30."""
    said = {"h100": 81090, "a100-pcie": 81049, "b200": 182631}
    assert {name: models.resolve(name).figure("total_memory") for name in said} == {
        n: m * 2**20 for n, m in said.items()
    }
    assert {n: models.resolve(n).figure("total_memory") for n in ("t4", "rtx5090")} == {
        "t4": 15_843_721_216,
        "rtx5090": 33_677_180_928,
    }

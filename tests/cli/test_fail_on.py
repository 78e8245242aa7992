"""``compile-lens diff --fail-on``: regressions fail, improvements do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import compile_lens
from compile_lens.cli import main
from compile_lens.record import claims

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

X = torch.rand(64, 64)


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + x.cos()


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y + x.cos()


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return records of one kernel that reads x and writes the sum, and of two graphs with a tensor in between."""
    folder = tmp_path_factory.mktemp("records")
    both = [compile_lens.capture(f, X) for f in (whole, broken)]
    explained = [torch._dynamo.explain(f)(X) for f in (whole, broken)]  # torch's own count
    assert [(e.graph_count, e.graph_break_count) for e in explained] == [(1, 0), (2, 1)]
    return tuple(str(one.save(folder / f"{one.function}.json")) for one in both)  # type: ignore[return-value]


@pytest.mark.parametrize(
    "names",
    [
        "kernels",
        "launches",
        "breaks",
        "bytes",
        "graphs",
        "graph_breaks",
        "figures",
        "kernels,breaks,bytes",
        "bytes!=",
    ],
)
def test_what_got_worse_fails(
    records: tuple[str, str], names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = records
    assert main(["diff", good, bad, "--json", "--fail-on", names]) == 4
    assert json.loads(capsys.readouterr().out)["failed_on"] == names.split(",")
    back = 4 if "!=" in names else 0
    assert main(["diff", bad, good, "--json", "--fail-on", names]) == back
    assert main(["diff", good, good, "--json", "--fail-on", names]) == 0


@pytest.mark.parametrize(
    "names", ["kernels!=", "breaks!=", "launches!=", "lowering", "fusion", "changes", "guards"]
)
def test_any_difference_can_be_asked_for(records: tuple[str, str], names: str) -> None:
    good, bad = records
    assert main(["diff", bad, good, "--fail-on", names]) == 4
    assert main(["diff", bad, bad, "--fail-on", names]) == 0


def test_it_says_what_failed(records: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = records
    assert main(["diff", good, bad, "--fail-on", "launches,breaks,extern"]) == 4
    output = capsys.readouterr().out.strip().splitlines()[-2:]
    assert output == [
        "failed on launches, which --fail-on names: launches 1 → 2 (+1)",
        "failed on breaks, which --fail-on names: a new graph break: Call to `torch._dynamo.graph_break()`",
    ]


def test_what_is_no_longer_known_fails(tmp_path: Path, records: tuple[str, str]) -> None:
    """The code of one record was not observed, so additional launches cannot be excluded."""
    body = json.loads(Path(records[0]).read_text(encoding="utf-8"))
    stages = body["compilations"][0]["stages"]
    kept = [stage for stage in stages if stage.get("is") != "Code"]
    assert len(kept) == len(stages) - 1
    body["compilations"][0]["stages"] = [
        *kept,
        {"is": "Missing", "stage": "inference.code", "reason": "not seen"},
    ]
    blind = tmp_path / "blind.json"
    blind.write_text(json.dumps(body), encoding="utf-8")
    assert main(["diff", records[0], str(blind), "--fail-on", "launches"]) == 4
    assert main(["diff", records[0], str(blind), "--fail-on", "graphs"]) == 0
    for name in ("launches", "kernels", "code", "memory", "changes"):
        assert main(["diff", str(blind), str(blind), "--fail-on", name]) == 4, name
    assert main(["diff", str(blind), str(blind), "--fail-on", "operators,fusion,breaks"]) == 0


DIRECTED = ["breaks", "kernels", "figures", "graphs", "bytes", "launches", "groups", "extern", "peak"]


def test_a_repair_passes_and_a_new_failure_does_not(tmp_path: Path, records: tuple[str, str]) -> None:
    def failing(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.rand(3, 3)

    with pytest.raises(RuntimeError):
        failing(X)  # eager PyTorch confirms it
    with pytest.raises(compile_lens.CaptureError) as caught:
        compile_lens.capture(failing, X)
    failed = str(caught.value.capture.save(tmp_path / "failed.json"))
    for name in DIRECTED:
        assert main(["diff", failed, records[0], "--fail-on", name]) == 0, name
        assert main(["diff", failed, records[1], "--fail-on", name]) == 0, name
    assert main(["diff", failed, records[0], "--fail-on", "breaks!="]) == 4
    assert main(["diff", failed, records[0], "--fail-on", "changes"]) == 4
    for name in ("breaks", "kernels", "figures", "bytes", "launches"):
        assert main(["diff", records[0], failed, "--fail-on", name]) == 4, name


def test_an_unknown_name_is_told(records: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("speed", "kernels>", "speed!="):
        assert main(["diff", *records, "--fail-on", name]) == 2
        output = capsys.readouterr().err
        assert (
            f"--fail-on {name!r} is not one of kernels, breaks" in output
            and "changes" in output
            and "kernels!=" in output
        )


def test_a_new_backward_fails_at_the_levels(tmp_path: Path) -> None:
    """The stricter name fails where the other does."""
    both = [compile_lens.capture(whole, x) for x in (X, X.clone().requires_grad_())]
    names = [str(one.save(tmp_path / f"{n}.json")) for n, one in enumerate(both)]
    for wanted in ("kernels", "kernels!=", "operators"):
        assert main(["diff", *names, "--fail-on", wanted]) == 4, wanted


@pytest.mark.parametrize("given", [[""], [" "], [","], ["kernels", ""]])
def test_no_name_at_all_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unset shell variable is refused before any record is read."""
    flags = [word for name in given for word in ("--fail-on", name)]
    assert main(["diff", "a.json", "b.json", *flags]) == 2
    text = capsys.readouterr().err
    assert (
        f"--fail-on {given[-1]!r} names nothing" in text and "kernels, breaks" in text and "changes" in text
    )


def test_help_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("diff", "upgrade"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "gets worse" in (output := " ".join(capsys.readouterr().out.split())) and "kernels!=" in output


@pytest.mark.parametrize(
    ("names", "claim"),
    [
        ("breaks", claims.BREAKS),
        ("graph_breaks", claims.BREAKS),
        ("figures", claims.RECOMPILES),
        ("recompiles!=", claims.RECOMPILES),
        ("fusion", claims.DECISIONS),
        ("rewrites", claims.REWRITES),
        ("guards", claims.GUARDS),
        ("changes", claims.LOWERING),
    ],
)
def test_what_neither_record_saw_was_not_seen_to_be_equal(
    tmp_path: Path, records: tuple[str, str], names: str, claim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Torch may have renamed a hooked function: two breaks, or none, look the same."""
    body = json.loads(Path(records[0]).read_text(encoding="utf-8"))
    body["not_observed"] = [{"is": "Missing", "stage": claim, "reason": "this torch has no such function"}]
    blind = tmp_path / "blind.json"
    blind.write_text(json.dumps(body), encoding="utf-8")
    assert main(["diff", str(blind), str(blind), "--fail-on", names]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "this torch has no such function" in text
    assert "Nothing differs" not in text and "No difference was seen." in text
    assert main(["diff", str(blind), str(blind), "--fail-on", "launches,code"]) == 0

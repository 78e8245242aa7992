"""Machine code of kernels as data: its content, the input it refuses, and its way through processes and files."""

from __future__ import annotations

import dataclasses
import json

import pytest

from compile_lens.devices import models
from compile_lens.engine.kernels import process as message
from compile_lens.errors import StageMissing, UsageError
from compile_lens.record.kernel import FORMS, Candidate, Code, Form, Kernel, Machine

PTX = Form("ptx", "ret;\n", ((1, 4), (1, 7)))
MACHINE = Machine(
    "sm_90a",
    "Triton 3.7.1, ptxas 12.8.93",
    candidate=1,
    forms=(Form("ttir", "module {}\n"), PTX),
    registers=22,
    shared=0,
    spills=0,
    instructions=None,
    missing=(("sass", "nvdisasm failed"),),
)
KERNEL = Kernel("triton_poi_0", "forward", "triton", "pointwise", "text")
WHOLE = dataclasses.replace(
    KERNEL, candidates=(Candidate((("XBLOCK", 128),)), Candidate((("XBLOCK", 256),))), machine=MACHINE
)


def test_a_kernel_hands_out_its_forms() -> None:
    assert WHOLE.ptx == "ret;\n"
    assert MACHINE.form("ptx") is PTX
    assert [form.kind for form in MACHINE.forms] == [kind for kind in FORMS if MACHINE.form(kind)]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (KERNEL, "triton_poi_0 has no sass: the code was only generated; capture with build=True"),
        (dataclasses.replace(KERNEL, machine_note="it needs Triton"), "no sass: it needs Triton"),
        (WHOLE, "triton_poi_0 has no sass: nvdisasm failed"),
    ],
)
def test_a_form_that_was_not_made_says_why(kernel: Kernel, said: str) -> None:
    with pytest.raises(StageMissing, match=said):
        kernel.sass  # noqa: B018


def test_what_a_process_answers_is_what_it_made() -> None:
    sent = json.loads(json.dumps(message.answer(WHOLE)))
    assert message.filled(KERNEL, sent) == WHOLE
    nothing = dataclasses.replace(KERNEL, machine_note="it needs Triton")
    assert message.filled(KERNEL, json.loads(json.dumps(message.answer(nothing)))) == nothing


@pytest.mark.parametrize("name", [model.name for model in models.models()])
def test_a_device_model_crosses_whole(name: str) -> None:
    model = models.resolve(name if models.find(name).device == "cuda" else f"mps:{name}")
    assert message.model(json.loads(json.dumps(dataclasses.asdict(model)))) == model


def test_code_is_built_when_no_triton_kernel_lacks_anything() -> None:
    from compile_lens.engine.kernels.compiled import stamped

    whole = dataclasses.replace(WHOLE, machine=dataclasses.replace(MACHINE, missing=()))
    extern = Kernel("extern_kernels.mm", "forward", "extern", "extern", "")
    code = Code("forward", "", "generated only", "cuda")
    assert stamped(dataclasses.replace(code, kernels=(whole, extern))).stamp == "built"
    for rest in ((WHOLE,), (whole, KERNEL), (extern,), ()):
        assert stamped(dataclasses.replace(code, kernels=rest)).stamp == "generated only"
    ran = dataclasses.replace(code, stamp="ran", kernels=(whole,))
    assert stamped(ran) is ran


def test_a_launch_configuration_is_chosen_by_name_and_phase() -> None:
    from compile_lens.engine.kernels.compiled import choice

    assert choice(KERNEL, {}) == 0
    assert choice(KERNEL, {"triton_poi_0": 2}) == 2
    assert choice(KERNEL, {"triton_poi_0": 2, "forward triton_poi_0": 1, "backward triton_poi_0": 3}) == 1


def test_what_cannot_be_assembled_is_refused() -> None:
    from samples import sample

    from compile_lens.api.assemble import assemble

    with pytest.raises(UsageError, match=r"no Triton kernel \(kernels: cpp.*\): capture with target='cuda'"):
        assemble(sample())


def test_code_that_is_not_there_says_why() -> None:
    from samples import sample

    from compile_lens.record.missing import Missing, NotApplicable

    found = sample()
    with pytest.raises(StageMissing, match="no code of phase 'backwrd'; there is code of forward, backward"):
        found.code["backwrd"]
    only = dataclasses.replace(
        found.compilations[0],
        stages=(
            *(s for s in found.compilations[0].stages if not s.key.startswith("backward")),
            NotApplicable("backward", "backward=False"),
            Missing("inference.code", "cache hit"),
        ),
    )
    for code in (only.code, dataclasses.replace(found, compilations=(only,)).code):
        assert list(code) == ["forward"] and code.get("backward") is None
        with pytest.raises(StageMissing, match="there is no stage backward: backward=False"):
            code["backward"]
        with pytest.raises(KeyError, match="cache hit"):
            code["inference"]


@pytest.mark.parametrize("thing", [3, None, "run.json"])
def test_what_is_no_capture_is_not_assembled(thing: object) -> None:
    from compile_lens.api.assemble import assemble

    with pytest.raises(UsageError, match=f"needs a capture first, got {type(thing).__name__}"):
        assemble(thing)  # type: ignore[arg-type]

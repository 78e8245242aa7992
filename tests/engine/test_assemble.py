"""Machine code without the device: every form, what it is linked to, and that nothing of this machine is in it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from suite import SUITE

from compile_lens import BuildError, UsageError, assemble, capture
from compile_lens.devices.models import resolve
from compile_lens.engine.kernels.compiled import build
from compile_lens.record.capture import Environment
from compile_lens.record.codec import to_json
from compile_lens.record.compilation import Compilation
from compile_lens.record.device import Target
from compile_lens.record.kernel import FORMS, Candidate, Code, Form, Kernel, Machine
from compile_lens.results.capture import Capture
from compile_lens.versions import triton_command

pytestmark = pytest.mark.torch

H100 = resolve("h100")
TRITON = FORMS[:5]

HEAD = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
triton_helpers.set_driver_to_gpu()
"""


def properties(cc: int) -> str:
    return (
        f"DeviceProperties(type='cuda', index=0, multi_processor_count=132, cc={cc}, major={cc // 10}, "
        "regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, warp_size=32)"
    )


def wave(cc: int = 90, name: str = "triton_poi_fused_wave_0") -> str:
    """sin² + cos², as Inductor writes it."""
    return f"""{HEAD}
@triton_heuristics.pointwise(
    size_hints={{'x': 1024}},
    filename=__file__,
    triton_meta={{'signature': {{'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
        'device': {properties(cc)}, 'constants': {{}},
        'configs': [{{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}}]}},
    inductor_meta={{'grid_type': 'Grid1D', 'kernel_name': '{name}', 'mutated_arg_names': [],
        'autotune_hints': set(), 'autotune_local_cache': True, 'autotune_pointwise': True,
        'tiling_scores': {{'x': 1}}}},
    min_elem_per_thread=0
)
@triton.jit
def {name}(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 1000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl_math.sin(tmp0)
    tmp2 = tmp1 * tmp1
    tmp3 = tl_math.cos(tmp0)
    tmp4 = tmp3 * tmp3
    tmp5 = tmp2 + tmp4
    tl.store(out_ptr0 + (x0), tmp5, xmask)
"""


def largest(name: str = "triton_per_fused_largest_0") -> str:
    """The maximum and the sum of rows: both are made by functions of libraries."""
    return f"""{HEAD}
@triton_heuristics.persistent_reduction(
    size_hints={{'x': 128, 'r0_': 1024}},
    reduction_hint=ReductionHint.INNER,
    filename=__file__,
    triton_meta={{'signature': {{'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'xnumel': 'i32', 'r0_numel': 'i32',
        'XBLOCK': 'constexpr'}}, 'device': {properties(90)}, 'constants': {{}},
        'configs': [{{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}}]}},
    inductor_meta={{'grid_type': 'Grid1D', 'kernel_name': '{name}', 'mutated_arg_names': [],
        'autotune_hints': set(), 'autotune_local_cache': True, 'no_x_dim': False, 'num_load': 1, 'num_reduction': 2,
        'num_store': 1}}
)
@triton.jit
def {name}(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 128
    r0_numel = 1000
    R0_BLOCK: tl.constexpr = 1024
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_mask = r0_index < r0_numel
    tmp0 = tl.load(in_ptr0 + (r0_index + 1000*xindex), r0_mask & xmask, other=0.0)
    tmp1 = triton_helpers.max2(tmp0, 1)[:, None].to(tl.float32)
    tmp2 = tl.sum(tmp0, 1)[:, None].to(tl.float32)
    tmp3 = tmp1 + tmp2
    tl.store(out_ptr0 + (xindex), tmp3, xmask)
"""


def code(*kernels: Kernel) -> Code:
    return Code("forward", "", "generated only", "cuda", kernels)


def kernel(source: str, phase: str = "forward") -> Kernel:
    name = re.search(r"^def (\w+)", source, re.M)
    assert name
    return Kernel(name[1], phase, "triton", "pointwise", source)


def record(*kernels: Kernel, device: str = "cuda") -> Capture:
    phases = dict.fromkeys(k.phase for k in kernels)
    stages = tuple(
        Code(p, "", "generated only", device, tuple(k for k in kernels if k.phase == p)) for p in phases
    )
    where = Environment("0", "2", "3", "3.11", "linux", device, "")
    return Capture("f", where, compilations=(Compilation("0/0", "f", "f.py", 1, stages),))


def built(source: str, target: str = "h100", **chosen: int) -> Kernel:
    return build(code(kernel(source)), resolve(target), chosen).kernels[0]


def form(found: Kernel, kind: str) -> Form:
    assert found.machine is not None, found.machine_note
    made = found.machine.form(kind)
    assert made is not None, found.machine.missing
    return made


def sources(found: Kernel, kind: str, pattern: str) -> list[set[str]]:
    """For each line of a form that matches: the lines of Triton that it is linked to."""
    made = form(found, kind)
    triton = found.source.split("\n")
    links: dict[int, set[str]] = {}
    for line, source in made.links:
        links.setdefault(line, set()).add(triton[source - 1].strip())
    matching = [n for n, line in enumerate(made.text.split("\n"), 1) if re.search(pattern, line)]
    assert matching, f"no line of {kind} matches {pattern}"
    return [links.get(n, set()) for n in matching]


LOAD = {"tmp0 = tl.load(in_ptr0 + (x0), xmask)"}
STORE = {"tl.store(out_ptr0 + (x0), tmp5, xmask)"}
SIN, COS = {"tmp1 = tl_math.sin(tmp0)"}, {"tmp3 = tl_math.cos(tmp0)"}
MAX = {"tmp1 = triton_helpers.max2(tmp0, 1)[:, None].to(tl.float32)"}
SUM = {"tmp2 = tl.sum(tmp0, 1)[:, None].to(tl.float32)"}


class TestWithTriton:
    @pytest.fixture(autouse=True)
    def _triton(self) -> None:
        pytest.importorskip("triton")

    def test_a_kernel_has_every_form_and_figures(self) -> None:
        found = built(wave())
        machine = found.machine
        assert machine is not None and machine.missing == () and found.machine_note == ""
        assert tuple(f.kind for f in machine.forms) == TRITON
        assert machine.arch == "sm_90a" and re.fullmatch(r"Triton [\d.]+, ptxas [\d.]+", machine.compiler)
        assert machine.candidate == 0 and machine.shared == 0 and machine.spills == 0
        assert machine.registers is not None and 16 <= machine.registers <= 64
        assert machine.instructions is not None
        assert 100 < machine.instructions <= len(re.findall(r"/\*[0-9a-f]{4}\*/", found.sass))
        assert "tt.load" in found.ttir and "#blocked" in found.ttgir and "define ptx_kernel" in found.llir
        assert ".target sm_90a" in found.ptx and "EXIT" in found.sass

    @pytest.mark.parametrize(
        ("target", "arch"), [("t4", "sm_75"), ("a100", "sm_80"), ("rtx4090", "sm_89"), ("b200", "sm_100a")]
    )
    def test_it_is_compiled_as_triton_compiles_for_the_architecture(self, target: str, arch: str) -> None:
        found = built(wave(int(resolve(target).arch[3:])), target)
        assert found.machine is not None, found.machine_note
        assert found.machine.arch == arch and found.machine.missing == ()
        assert f".target {arch}" in found.ptx

    @pytest.mark.parametrize(
        ("kind", "pattern", "wanted"),
        [
            ("ttir", r"tt\.load", LOAD),
            ("ttir", r"math\.sin", SIN),
            ("ttgir", r"math\.cos", COS),
            ("ttgir", r"tt\.store", STORE),
            ("llir", r"ld\.global\.", LOAD),
            ("llir", r"asm .*st\.global", STORE),
            ("ptx", r"[^.]ld\.global\.(?!nc)", LOAD),
            ("ptx", r"[^.]st\.global", STORE),
            ("sass", r"\bLDG\.E(?!\.CONSTANT)", LOAD),
            ("sass", r"\bSTG\b", STORE),
        ],
    )
    def test_lines_are_linked_to_the_line_they_are_of(
        self, kind: str, pattern: str, wanted: set[str]
    ) -> None:
        assert all(found == wanted for found in sources(built(wave()), kind, pattern))

    @pytest.mark.parametrize(
        ("kind", "pattern"),
        [("llir", "0x3FE45F3060000000|3F22F983"), ("ptx", "0f3F22F983"), ("sass", r"0\.6366")],
    )
    def test_both_functions_of_a_library_are_told_apart(self, kind: str, pattern: str) -> None:
        """Each begins with x·2/π, once for every element of a thread."""
        found = sources(built(wave()), kind, pattern)
        assert {frozenset(f) for f in found} <= {frozenset(SIN), frozenset(COS)}
        assert SIN in found

    @pytest.mark.parametrize(
        ("kind", "pattern"),
        [("ttgir", r'"tt\.reduce"'), ("llir", r"shfl\.sync\.bfly.*%"), ("ptx", "shfl"), ("sass", "SHFL")],
    )
    def test_reductions_are_linked_to_the_call_not_to_the_library(self, kind: str, pattern: str) -> None:
        found = [f for f in sources(built(largest()), kind, pattern) if f]
        assert {frozenset(f) for f in found} == {frozenset(MAX), frozenset(SUM)}
        assert len(found) > 1 and all(len(f) == 1 for f in found)

    def test_every_load_and_store_of_memory_has_its_line(self) -> None:
        found = built(largest())
        assert sources(found, "sass", r"\bSTG\b") == [{"tl.store(out_ptr0 + (xindex), tmp3, xmask)"}]
        loads = sources(found, "sass", r"\bLDG\b")
        assert all(len(f) == 1 and "tl.load(in_ptr0" in next(iter(f)) for f in loads)

    def test_links_lead_from_a_line_to_a_line(self) -> None:
        for source in (wave(), largest()):
            found = built(source)
            last = source.count("\n")
            first = next(n for n, x in enumerate(source.split("\n"), 1) if x.startswith("def "))
            for kind in TRITON:
                made = form(found, kind)
                length = made.text.count("\n")
                assert made.links and list(made.links) == sorted(set(made.links))
                assert all(1 <= line <= length and first <= line_of <= last for line, line_of in made.links)

    def test_ptx_is_whole(self, tmp_path: Path) -> None:
        """The assembler takes it as it stands in the record, and makes the same instructions of it."""
        from triton import knobs
        from triton.backends.nvidia.compiler import get_ptxas

        for source in (wave(), largest()):
            found = built(source)
            file, cubin = tmp_path / "kernel.ptx", tmp_path / "kernel.cubin"
            file.write_text(found.ptx)
            made = [
                get_ptxas(90).path,
                "--regAllocOptLevel=2",
                "--gpu-name=sm_90a",
                str(file),
                "-o",
                str(cubin),
            ]
            subprocess.run(made, check=True)
            again = subprocess.run(
                [knobs.nvidia.nvdisasm.path, "-c", str(cubin)], check=True, capture_output=True, text=True
            )
            assert again.stdout.strip("\n") == found.sass.strip("\n")

    def test_numbering_lines_changes_no_code(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from compile_lens._triton import assembly
        from compile_lens.engine.kernels import compiled as compiling

        found = built(largest())

        def as_it_is(self: Any, llir: str) -> str:
            self.llir = llir
            return llir

        monkeypatch.setattr(assembly._LineNumberHook, "_take", as_it_is)
        compiling._built.cache_clear()
        plain = built(largest())
        compiling._built.cache_clear()
        for kind in TRITON:
            assert form(plain, kind).text == form(found, kind).text
        assert len(form(plain, "ptx").links) < len(form(found, "ptx").links)

    def test_dialects_are_whole(self, tmp_path: Path) -> None:
        """Triton reads them as they stand in the record. Values are called otherwise: by their locations."""
        from triton._C.libtriton import ir
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend

        from compile_lens._triton import mlir

        found = built(largest())
        for kind in ("ttir", "ttgir"):
            context = ir.context()
            ir.load_dialects(context)
            make_backend(GPUTarget("cuda", 90, 32)).load_dialects(context)
            file = tmp_path / f"kernel.{kind}"
            text = form(found, kind).text
            file.write_text(text)
            again = mlir.read(str(ir.parse_mlir_module(str(file), context)), kind).text
            operations = [re.findall(r"\b[a-z]\w*\.[a-z_.]+\w", x) for x in (text, again)]
            assert operations[0] == operations[1] and len(operations[0]) > 20

    def test_launch_configurations_are_listed_and_chosen(self) -> None:
        first = built(wave())
        assert first.candidates == (
            Candidate((("XBLOCK", 256), ("num_warps", 4), ("num_stages", 1))),
            Candidate((("XBLOCK", 128), ("num_warps", 4), ("num_stages", 1))),
        )
        second = built(wave(), triton_poi_fused_wave_0=1)
        assert second.candidates == first.candidates
        assert second.machine is not None and second.machine.candidate == 1
        assert "tensor<256xf32>" in first.ttir and "tensor<128xf32>" in second.ttir

    def test_a_launch_configuration_that_is_not_there_is_refused(self) -> None:
        for index in (2, -1):
            with pytest.raises(
                UsageError, match=rf"no launch configuration {index}: it has 2, 0: XBLOCK=256, num"
            ):
                built(wave(), triton_poi_fused_wave_0=index)

    def test_the_best_of_an_earlier_run_hides_no_launch_configuration(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from torch._inductor.runtime import triton_heuristics

        from compile_lens.engine.kernels import compiled as compiling

        asked: list[Any] = []
        monkeypatch.setattr(triton_heuristics.AutotuneCache, "create", lambda *args: asked.append(args))
        compiling._built.cache_clear()
        assert len(built(wave()).candidates) == 2 and asked == []

    @pytest.mark.parametrize(
        ("source", "note"),
        [
            (wave(80), "generated for sm_80, and NVIDIA H100 SXM is sm_90"),
            (
                wave().replace("type='cuda'", "type='hip'").replace("cc=90", "cc='gfx942'"),
                "its text is for hip",
            ),
            ("def k():\n  return", "its text defines no kernel 'k'"),
            ("def k(:", "its text could not be run: SyntaxError"),
            (
                "def k(): 0\nraise SystemError('no\\n/home/someone/x.py')",
                "could not be run: SystemError: no\nx.py",
            ),
            (wave().replace("tl_math.sin(tmp0)", "tl_math.nothing(tmp0)"), "Triton refuses it"),
        ],
    )
    def test_what_cannot_be_compiled_says_why(self, source: str, note: str) -> None:
        found = build(code(kernel(source)), H100)
        assert found.kernels[0].machine is None and note in found.kernels[0].machine_note
        assert found.stamp == "generated only"
        assert build(code(kernel(source), kernel(wave())), H100).kernels[1].machine is not None

    def test_a_stage_that_fails_leaves_those_before_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from triton.backends.nvidia import compiler

        from compile_lens.engine.kernels import compiled as compiling

        def refuse(*args: Any) -> bytes:
            raise RuntimeError("ptxas said no to /tmp/somewhere/file.ptx")

        monkeypatch.setattr(compiler.CUDABackend, "make_cubin", refuse)
        compiling._built.cache_clear()
        made = build(code(kernel(wave())), H100)
        compiling._built.cache_clear()
        machine = made.kernels[0].machine
        assert machine is not None and made.stamp == "generated only"
        assert tuple(f.kind for f in machine.forms) == TRITON[:4]
        assert machine.missing == (("sass", "RuntimeError: ptxas said no to file.ptx"),)
        assert machine.registers is None and machine.instructions is None

    def test_too_much_shared_memory_is_said(self) -> None:
        small = tuple(
            dataclasses.replace(f, value=16) if f.name == "shared_memory_per_block_optin" else f
            for f in H100.properties
        )
        model = dataclasses.replace(H100, properties=small)
        found = build(code(kernel(largest())), model).kernels[0]
        assert found.machine is not None and found.machine.shared is not None and found.machine.shared > 16
        assert "more than the 16 of NVIDIA H100 SXM" in found.machine_note

    def test_libraries_and_other_languages_stay_as_they_are(self) -> None:
        extern = Kernel("extern_kernels.mm", "forward", "extern", "extern", "")
        metal = Kernel("mps_lib_0", "forward", "metal", "pointwise", "kernel void k() {}")
        found = build(code(extern, metal), H100).kernels
        assert "library" in found[0].machine_note and found[0].machine is None
        assert found[1] is metal

    def test_the_process_is_left_as_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from torch._inductor.runtime import triton_helpers
        from triton import knobs
        from triton.runtime.driver import driver

        from compile_lens.engine.kernels import compiled as compiling

        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
        sentinel = object()
        monkeypatch.setattr(driver, "_active", sentinel)

        def state() -> Any:
            families = (knobs.cache, knobs.compilation, knobs.nvidia, knobs.runtime)
            set_here = [{k: v for k, v in vars(f).items()} for f in families]
            return dict(os.environ), set_here, triton_helpers.set_driver_to_gpu, set(sys.modules), sys.stdout

        built(wave())
        compiling._built.cache_clear()
        before = state()
        built(wave())
        assert state() == before and driver._active is sentinel
        assert list(tmp_path.iterdir()) == []

    def test_nothing_of_this_machine_is_in_it(self) -> None:
        for source in (wave(), largest()):
            found = built(source)
            said = "\n".join([f.text for f in (found.machine or pytest.fail("none")).forms])
            for word in ("/tmp", "/home", "/usr", "site-packages", ".py", str(Path(torch.__file__).parent)):
                assert word not in said

    @pytest.mark.exhaustive
    def test_a_record_is_assembled_in_a_process_of_its_own(
        self, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "json.py").write_text(
            "raise SystemExit('the folder of the caller is none of its business')"
        )
        marked = (
            wave()
            + f"\nimport os\nprint('it ran'); open({str(tmp_path / 'ran')!r}, 'w').write(str(os.getpid()))\n"
        )
        given = record(kernel(marked), kernel(wave(80), "backward"), kernel(largest(), "backward"))
        asked = dataclasses.replace(given, target=Target("h100", H100, ""))
        before = to_json(asked)
        loaded = Capture.from_json(before)
        assert not (tmp_path / "ran").exists(), "opening a record runs nothing"
        made = assemble(loaded, candidates={"forward triton_poi_fused_wave_0": 1})
        assert int((tmp_path / "ran").read_text()) != os.getpid()
        assert "it ran" not in capfd.readouterr().out
        assert to_json(asked) == before and Capture.from_json(to_json(made)) == made
        first, second, third = made.kernels
        assert first.machine is not None and first.machine.candidate == 1
        assert second.machine is None and "sm_80" in second.machine_note
        assert third.machine is not None
        here = build(code(kernel(marked), kernel(largest())), H100, {"triton_poi_fused_wave_0": 1})
        assert (first.machine, third.machine) == tuple(k.machine for k in here.kernels), (
            "the same bytes each time"
        )
        stamps = [s.stamp for s in made.compilations[0].stages if isinstance(s, Code)]
        assert stamps == ["built", "generated only"]

    @pytest.fixture
    def in_this_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from compile_lens.engine.kernels import compiled as compiling
        from compile_lens.engine.kernels import process

        def compiled(kernels: Any, model: Any) -> Any:
            return (compiling.kernel_of(k, model, index) for k, index in kernels)

        monkeypatch.setattr(process, "compiled", compiled)

    @pytest.mark.usefixtures("in_this_process")
    def test_only_what_is_named_is_assembled(self) -> None:
        given = record(
            kernel(wave()), kernel(largest()), kernel(wave(), "backward"), device="NVIDIA H100 80GB HBM3"
        )
        made = assemble(given, kernels=["triton_per_fused_largest_0", given.kernels[2]])
        assert [k.machine is not None for k in made.kernels] == [False, True, True]
        assert made.kernels[0] == given.kernels[0]

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_a_kernel_that_ends_the_process_takes_no_other_with_it(self) -> None:
        deadly = kernel(wave(name="triton_deadly") + "\nimport os\nos.abort()\n")
        given = record(kernel(wave()), deadly, kernel(largest()))
        first, second, third = assemble(given, target="h100").kernels
        assert first.machine is not None and third.machine is not None
        assert second.machine is None and "was ended by signal 6" in second.machine_note

    @pytest.mark.slow
    @pytest.mark.exhaustive
    def test_a_kernel_that_does_not_end_is_given_up(self) -> None:
        from compile_lens.engine.kernels import process

        endless = kernel("def k(): 0\nwhile True: pass")
        found = list(process.compiled([(endless, 0)], H100, seconds=6))
        assert found[0].machine_note == "it was not compiled within 6 seconds"

    def test_what_a_process_answers(self) -> None:
        from compile_lens.engine.kernels.worker import answered

        model = dataclasses.asdict(H100)
        first, second = (
            answered(
                json.dumps(
                    {"model": model, "name": "triton_poi_fused_wave_0", "source": wave(), "index": i}
                ).encode(),
                lambda data: None,
            )
            for i in (1, 5)
        )
        assert first["machine"]["candidate"] == 1 and len(first["candidates"]) == 2 and first["note"] == ""
        assert list(second) == ["refused"] and "no launch configuration 5" in second["refused"]

    def test_a_process_that_cannot_begin_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from compile_lens.engine.kernels import process

        monkeypatch.setattr(process, "__package__", "nowhere")
        with pytest.raises(
            BuildError, match=r"ended with 1: ModuleNotFoundError: .*nowhere.*, before any request"
        ):
            list(process.compiled([(kernel(wave()), 0)], H100))

    @pytest.mark.usefixtures("in_this_process")
    def test_what_is_asked_wrongly_is_refused(self) -> None:
        given = record(kernel(wave()), device="some GPU")
        for arguments, said in (
            (
                {"kernels": ["nothing"]},
                "no Triton kernel is called 'nothing'; there are triton_poi_fused_wave_0",
            ),
            ({"candidates": {"nothing": 1}}, "no Triton kernel is called 'nothing'"),
            ({}, "no model of the device 'some GPU'"),
            ({"target": "h1000"}, "target='h1000' is not known"),
            (
                {"target": "h100", "candidates": {"triton_poi_fused_wave_0": 9}},
                "no launch configuration 9: it has 2",
            ),
        ):
            with pytest.raises(UsageError, match=re.escape(said)):
                assemble(given, **arguments)  # type: ignore[arg-type]

    @pytest.mark.cases(full=1)
    @pytest.mark.slow
    @pytest.mark.parametrize("target", ["a100", "h100", "b200"])
    @pytest.mark.parametrize("name", SUITE)
    def test_every_kernel_of_the_suite_reaches_sass(self, name: str, target: str) -> None:
        fn, args = SUITE[name]()
        for backward in (True, False):
            if isinstance(fn, torch.nn.Module):
                fn.train(backward)
            inputs = args if backward else tuple(a.detach() for a in args)
            with torch.set_grad_enabled(backward):
                found = capture(fn, *inputs, target=target, build=True)
            for k in found.kernels:
                if k.language == "triton":
                    assert k.machine is not None and k.machine.missing == () and k.machine_note == "", k.name
                    assert tuple(f.kind for f in k.machine.forms) == TRITON and k.candidates
                    check_links(k)


def check_links(found: Kernel) -> None:
    """Memory is read and written on the lines that load and store (a library reads a table of its own as well)."""
    for pattern, word in ((r"\bLDG\.(?!E\.CONSTANT)", "load"), (r"\bSTG\b", "store")):
        text = form(found, "sass").text
        if re.search(pattern, text):
            for lines in sources(found, "sass", pattern):
                assert lines and all(word in line or "rand" in line for line in lines), (found.name, lines)


@pytest.mark.exhaustive
def test_without_triton_the_reason_is_said(child: Callable[..., str]) -> None:
    program = f"""
import sys, dataclasses
sys.modules["triton"] = None
import importlib.util
from compile_lens import BuildError, assemble
from compile_lens.engine.kernels import compiled
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_assemble as t
made = compiled.build(t.code(t.kernel(t.wave())), t.H100)
print(made.kernels[0].machine, made.kernels[0].candidates, made.stamp, made.kernels[0].machine_note, sep="|")
try:
    assemble(t.record(t.kernel(t.wave())), target="h100")
except BuildError as error:
    print(error)
"""
    first, second = child(program).splitlines()
    assert first == f"None|()|generated only|it needs Triton: {triton_command()} (there are wheels for Linux)"
    assert second == f"Triton is not installed: {triton_command()} (there are wheels for Linux)"
    assert BuildError and Machine  # named in the program above

"""Runs of a wrapper module generated for a GPU on the CPU: kernels in Triton's interpreter, library calls by PyTorch's
CPU implementations."""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from ...errors import BuildError
from ..ground import hooks
from . import cpu_backed_tensors, reference_attention, user_kernels

_number = itertools.count()
_KERNEL = re.compile(
    r"^(\w+) = async_compile\.triton\('(\w+)', '''(.*?)''', device_str='\w+'\)$", re.S | re.M
)
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)\(")


class Folder:
    """A temporary folder for the texts of interpreted kernels.

    Attributes:
        graphs: the reason why each graph's code was not run; ``""`` if it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.graphs: dict[str, str] = {}


@contextlib.contextmanager
def folder() -> Iterator[Folder]:
    """Yield a folder, within which kernels, including the program's own, run in the interpreter with numpy's functions
    for CUDA's library."""
    import triton
    from torch._inductor.runtime import triton_helpers

    from ..._triton import interpreter

    ours = {
        "libdevice": interpreter.Library(),
        "set_driver_to_gpu": lambda: None,  # no GPU is used
    }
    before = {name: getattr(triton_helpers, name) for name in ours if hasattr(triton_helpers, name)}
    with (
        tempfile.TemporaryDirectory(prefix="compile-lens-") as name,
        user_kernels.comparison(),
        reference_attention.on_cpu(),
        contextlib.ExitStack() as stack,
    ):
        if triton.knobs.runtime.interpret:  # the program itself set it, so all launches are interpreted
            stack.enter_context(interpreter.faster_interpreter())
        for key, value in before.items():
            stack.callback(setattr, triton_helpers, key, value)
            setattr(triton_helpers, key, ours[key])
        yield Folder(Path(name))


def module(text: str, place: Folder, lowering: Any, instead: Callable[[list[Any]], Any]) -> Any:
    """Return the wrapper as a module whose ``call`` runs on CPU tensors.

    If the code cannot run here, ``instead`` runs the graph by eager PyTorch, as the side that it is compared with, and
    ``place`` records the reason.
    """
    draft = hooks.current()
    name = f"graph {draft.id} ({draft.phase})" if draft is not None else "graph"
    place.graphs.setdefault(name, "")
    try:
        wrapper = _wrapper(text, place, lowering)
    except BuildError as error:
        place.graphs[name] = str(error)
        wrapper = types.SimpleNamespace(call=None, __file__=str(place.path / "wrapper.py"), runner=None)
    code = wrapper.call

    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        if not place.graphs[name]:
            before = [(x, x.clone()) for x in given if isinstance(x, torch.Tensor)]
            try:
                return code(list(given))
            except Exception as error:  # the interpreter, numpy and CPU operators raise various exceptions
                lines = (str(error).strip() or type(error).__name__).splitlines()
                place.graphs[name] = lines[0][:300]
                for now, first in before:
                    now.copy_(first)
        return instead(given)

    wrapper.call = call
    return wrapper


def _wrapper(text: str, place: Folder, lowering: Any) -> Any:
    """Return the wrapper as a module.

    Raises:
        BuildError: if the wrapper calls an operator that only the device has; the message names it.
    """
    missing = missing_on_cpu(text)
    if missing:
        raise BuildError(f"{', '.join(missing)} has no implementation for the CPU, so this graph was not run")
    kernels: list[tuple[str, str]] = []

    def extract(match: re.Match[str]) -> str:
        kernels.append((match[2], match[3]))
        return f"{match[1]} = async_compile.kernel({len(kernels) - 1})"

    wrapper = types.ModuleType("compile_lens_interpreted")
    wrapper.__file__ = str(place.path / "wrapper.py")
    rest = _for_cpu(_KERNEL.sub(extract, text))
    if "async_compile.triton(" in rest:
        raise BuildError("the text of a kernel was not found in the wrapper")
    vars(wrapper)["compile_lens_kernels"] = _Kernels(kernels, place)
    exec(compile(rest, wrapper.__file__, "exec"), vars(wrapper))
    if hasattr(wrapper, "assert_size_stride"):
        wrapper.assert_size_stride = _with_states_of_the_cpu(wrapper.assert_size_stride)  # type: ignore[attr-defined]
    for name, value in lowering.constants.items():  # in the text each is None
        setattr(wrapper, name, cpu_backed_tensors.on_cpu(value))
    for name, value in getattr(lowering, "torchbind_constants", {}).items():
        setattr(wrapper, name, value)
    return wrapper


def _with_states_of_the_cpu(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return torch's check of sizes, extended to accept the CPU's random state, whose size differs from the device's
    and which a checkpoint saves for the backward."""
    state = torch.get_rng_state()

    def checked(tensor: Any, size: Any, *rest: Any) -> Any:
        if tuple(size) == (16,) and (tensor.shape, tensor.dtype) == (state.shape, state.dtype):
            return None
        return check(tensor, size, *rest)

    return checked


def missing_on_cpu(text: str) -> list[str]:
    """Return the operators called by the wrapper for which PyTorch has no CPU kernel."""
    operators = dict.fromkeys(_OPERATOR.findall(text))
    return [
        f"{space}.{name}" for space, name, overload in operators if not _runs_on_cpu(space, name, overload)
    ]


def _runs_on_cpu(space: str, name: str, overload: str) -> bool:
    full = f"{space}::{name}" + ("" if overload == "default" else f".{overload}")
    keys = (
        "CPU",
        "CompositeExplicitAutograd",
        "CompositeImplicitAutograd",
        "CompositeExplicitAutogradNonFunctional",
    )
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(full, key) for key in keys)


def kernel(source: str, name: str, place: Folder) -> Any:
    """Return one of Inductor's kernels as an object whose ``run(…)`` launches it in the interpreter."""
    from ..._triton import interpreter

    tuner = interpreter.kernel(source, name, place.path, next(_number))
    tuner.triton_interpret = True  # Inductor's flag for a launch without a device
    tuner.fn = _NamedLaunch(tuner.fn, tuner.triton_meta.get("constants", {}))
    return tuner


class _Kernels:
    """Replacement for the wrapper's ``async_compile``."""

    def __init__(self, kernels: list[tuple[str, str]], place: Folder) -> None:
        self._kernels, self._place = kernels, place

    def kernel(self, index: int) -> Any:
        name, source = self._kernels[index]
        return kernel(source, name, self._place)

    def __getattr__(self, name: str) -> Any:
        """Return Inductor's builder (``cpp_pybinding`` and the like) for CPU parts of a graph for a GPU."""
        if not name.startswith("cpp"):
            raise AttributeError(name)
        from torch._inductor.async_compile import AsyncCompile

        build = getattr(AsyncCompile(), name)

        def built(*args: Any, **kwargs: Any) -> Any:
            try:
                return build(*args, **kwargs)
            except Exception as error:  # torch has several exception types for a missing or failing compiler
                reason = (str(error).strip().splitlines() or [""])[0]
                raise BuildError(
                    f"a part of this graph is computed on the CPU, and its C++ could not be built "
                    f"({type(error).__name__}: {reason}), so it was not run"
                ) from error

        return built

    def wait(self, scope: Any) -> None:
        """Do nothing, since nothing is compiled."""


class _NamedLaunch:
    """A kernel's function, launched with arguments by name: a wrapper passes only those that are not ``constexpr``,
    which may be anywhere in a user kernel."""

    def __init__(self, function: Any, constants: dict[Any, Any]) -> None:
        self._function, self._constants = function, constants

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __getitem__(self, grid: Any) -> Any:
        def launch(*args: Any, **settings: Any) -> None:
            names = [p.name for p in self._function.params if not p.is_constexpr]
            self._function[grid](**{**self._constants, **settings, **dict(zip(names, args))})

        return launch


_EDITS = (
    (
        r"^from torch\._C import _cuda_getCurrentRawStream as get_raw_stream$",
        "get_raw_stream = lambda index: 0",
    ),
    (r"with torch\.cuda\._DeviceGuard\(\d+\):", "if True:"),
    (r"torch\.cuda\.set_device\(\d+\)", "pass"),
    (r"^empty_strided_cuda = .*$", "empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cpu"),
    (r"device\(type='cuda', index=\d+\)|'cuda:\d+'|'cuda'", "'cpu'"),
    (r"^async_compile = AsyncCompile\(\)$", "async_compile = compile_lens_kernels"),
)
"""Device-specific patterns in a wrapper, without its kernels, and their replacements for the CPU."""


def _for_cpu(text: str) -> str:
    for pattern, instead in _EDITS:
        text = re.sub(pattern, instead, text, flags=re.M)
    return text

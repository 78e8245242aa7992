"""Launches of a program's Triton kernels without their device, in Triton's interpreter on the CPU.

``TRITON_INTERPRET=1`` makes all functions interpreted from the import of Triton on; such functions can be neither
captured nor compiled. Here Triton stays unchanged: the interpreter's patches of the language are applied for one launch
and undone, and each function that a kernel calls is parsed again.

A launch works on copies, which are copied back at its end, so that a failed launch changes nothing. The interpreter
accesses any address, so each is checked first.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import interpreter

MAX_ELEMENTS = 1 << 26
"""Limit on the elements that the launches of one capture compute in total, which takes some seconds."""

MIN_ELEMENTS_PER_OPERATION = 1 << 10
"""Minimal number of elements counted per operation, for Python's overhead."""

MAX_COPIED_BYTES = 1 << 28
"""Limit on the bytes of the tensors of one launch, which are copied."""

_ACCESSES = re.compile(r"create_(masked_(load|store)|atomic_\w+)")
_READS = "create_masked_load", "create_atomic_load"


class NotLaunched(NotImplementedError):
    """Raised if a kernel was not launched, or not to its end; the memory that it writes is unchanged."""


class Launches:
    """The launches of one capture, which may compute ``work`` elements in total."""

    def __init__(self, work: int = MAX_ELEMENTS) -> None:
        self._work = self._left = work

    def run(self, kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        """Launch a kernel as ``JITFunction.run`` does; compiler options among ``kwargs`` are ignored.

        Raises:
            NotLaunched: if the interpreter lacks a feature that the kernel uses, or a limit is exceeded.
        """
        if warmup:  # it only compiles
            return
        self._spend(0)
        memory = _Memory()
        kwargs = {k: v for k, v in kwargs.items() if k in kernel.signature.parameters}
        args, kwargs = memory.copied(args), {k: memory.copied(v) for k, v in kwargs.items()}
        if callable(grid):
            bound = kernel.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            grid = grid(dict(bound.arguments))
        for hook in getattr(kernel, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        self._run(kernel, args, kwargs, tuple(map(int, grid)), memory)
        memory.copy_back()

    def _run(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: tuple[int, ...],
        memory: _Memory,
    ) -> None:
        from triton.runtime.interpreter import GridExecutor, InterpreterError

        functions = _Functions()
        try:
            with _interpreted(functions, memory, self._spend), np.errstate(all="ignore"):
                GridExecutor(functions.of(kernel), list(kernel.signature.parameters), grid)(*args, **kwargs)
        except NotLaunched:
            raise
        except Exception as error:  # each unsupported feature raises its own exception type
            cause: BaseException | None = error
            while isinstance(cause, InterpreterError):
                cause = cause.__cause__
            if isinstance(cause, NotLaunched):
                raise cause from None
            cause = error if cause is None else cause
            text = (
                str(cause) if isinstance(cause, NotImplementedError) else f"{type(cause).__name__}: {cause}"
            )
            raise NotLaunched(f"{kernel.__name__} in Triton's interpreter: {text}") from error

    def _spend(self, elements: int) -> None:
        self._left -= max(elements, MIN_ELEMENTS_PER_OPERATION) if elements else 0
        if self._left < 0:
            raise NotLaunched(
                f"its kernels would compute more than {self._work:,} elements in Triton's interpreter, the limit "
                f"of compile_lens; each operation counts as at least {MIN_ELEMENTS_PER_OPERATION:,}"
            )


def launchers() -> tuple[Any, Any]:
    """Return Triton's classes whose ``run`` launches a kernel: plain and autotuned functions."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    return JITFunction, Autotuner


class _Memory:
    """Copies of the memory of a launch, with a record of those written."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[Any, Any]] = {}
        self._written: set[int] = set()
        self._bounds: tuple[Any, Any] | None = None

    def copied(self, value: Any) -> Any:
        """Return ``value`` with its tensors replaced by views of the copies."""
        from triton.runtime.jit import TensorWrapper

        if isinstance(value, tuple):
            items = [self.copied(v) for v in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, TensorWrapper):
            return TensorWrapper(self.copied(value.base), value.dtype)
        if dataclasses.is_dataclass(value) and hasattr(value, "base"):  # a descriptor of a tensor
            return dataclasses.replace(value, base=self.copied(value.base))  # type: ignore[type-var]
        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach())
        if hasattr(value, "data_ptr"):
            raise NotLaunched(f"a kernel is given a {type(value).__name__}, whose memory is not known")
        return value

    def _tensor(self, given: Any) -> Any:
        if given.device.type != "cpu":
            raise NotLaunched(
                f"a kernel is given a tensor on {given.device}, and kernels are interpreted only on the CPU"
            )
        storage = given.untyped_storage()
        key = storage.data_ptr()
        if key not in self._storages:
            if storage.nbytes() + sum(s.nbytes() for s, _ in self._storages.values()) > MAX_COPIED_BYTES:
                raise NotLaunched(
                    f"the tensors of a kernel lie in more than {MAX_COPIED_BYTES:,} bytes, which would have to "
                    "be copied"
                )
            self._storages[key] = storage, storage.clone()
        copy = torch.empty(0, dtype=given.dtype)
        return copy.set_(self._storages[key][1], given.storage_offset(), given.shape, given.stride())

    def check(self, name: str, addresses: Any, width: int) -> None:
        """Raise NotLaunched unless each of the ``addresses``, of elements of ``width`` bytes, is in the launch's
        memory."""
        if self._bounds is None:
            ranges = sorted(
                (c.data_ptr(), c.data_ptr() + c.nbytes(), k) for k, (_, c) in self._storages.items()
            )
            self._keys = [key for _, _, key in ranges]
            self._bounds = tuple(np.array([r[i] for r in ranges], dtype=np.uint64) for i in (0, 1))  # type: ignore[assignment]
            assert self._bounds is not None
        starts, ends = self._bounds
        of = np.searchsorted(starts, addresses, "right").astype(np.int64) - 1
        known = (of >= 0) & (addresses + np.uint64(width) <= ends[of] if len(ends) else False)
        if not known.all():
            what = "reads" if name in _READS else "writes"
            raise NotLaunched(
                f"it {what} {np.count_nonzero(~known):,} elements outside the tensors that it is given"
            )
        if name not in _READS:
            self._written.update(self._keys[i] for i in np.unique(of))

    def copy_back(self) -> None:
        for key in self._written:
            given, copy = self._storages[key]
            given.copy_(copy)


class _Functions:
    """Kernels and the functions that they call, rewritten for the interpreter in separate namespaces."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Callable[..., Any]]] = {}

    def of(self, kernel: Any) -> Callable[..., Any]:
        """Return the interpretable function of ``kernel``, a function with ``@triton.jit``."""
        if id(kernel) not in self._found:
            self._found[id(kernel)] = kernel, _interpretable(kernel)
        return self._found[id(kernel)][1]


def _interpretable(kernel: Any) -> Callable[..., Any]:
    from triton.runtime import interpreter as triton_interpreter

    fn = kernel.fn
    names = {**vars(triton_interpreter), **fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
    library = interpreter.Library()
    for name, value in names.items():
        if isinstance(value, types.ModuleType) and value.__name__.endswith("libdevice"):
            names[name] = library
    tree = triton_interpreter.FunctionRewriter.ast_transformer.visit(ast.parse(kernel.src))
    # Not the kernel's file, so that no frame here is taken for a line of the program.
    code = compile(ast.fix_missing_locations(tree), f"<{fn.__name__}>", "exec", dont_inherit=True)
    exec(code, names)
    function: Callable[..., Any] = names[fn.__name__]
    return function


@contextlib.contextmanager
def _interpreted(functions: _Functions, memory: _Memory, spend: Callable[[int], None]) -> Iterator[None]:
    """Make Triton's functions callable in the interpreter for the duration."""
    import triton.language as tl
    from triton.runtime import interpreter as triton_interpreter
    from triton.runtime.jit import JITFunction

    def called(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return functions.of(kernel)(*args, **kwargs)

    def bound(kernel: Any, owner: Any, kind: Any = None) -> Any:
        """Bind a method of a value in a kernel, such as ``x.sum()``."""
        return functools.partial(kernel, owner) if isinstance(owner, tl.tensor) else kernel

    handle = triton_interpreter.TensorHandle
    init = handle.__init__

    def counted(value: Any, *args: Any, **kwargs: Any) -> None:
        init(value, *args, **kwargs)
        spend(max(getattr(value.data, "size", 1), 1))

    builder = triton_interpreter.interpreter_builder
    with interpreter.faster_interpreter(), contextlib.ExitStack() as stack:

        def put(owner: Any, name: str, value: Any) -> None:
            if name in vars(owner):
                stack.callback(setattr, owner, name, vars(owner)[name])
            else:
                stack.callback(delattr, owner, name)
            setattr(owner, name, value)

        put(triton_interpreter, "_implicit_cvt", _bool_conversion(triton_interpreter._implicit_cvt))
        put(JITFunction, "__call__", called)
        put(JITFunction, "__get__", bound)
        put(handle, "__init__", counted)
        for name in dir(builder):
            if _ACCESSES.fullmatch(name):
                put(builder, name, _bounds_checked(name, getattr(builder, name), memory))
        yield


def _bool_conversion(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a conversion of arguments that converts a ``bool`` to one bit; the interpreter's yields 32 bits, which it
    then rejects."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def value(given: Any) -> Any:
        if isinstance(given, bool):
            return tl.tensor(TensorHandle(np.array([given]), tl.int1), tl.int1)
        return real(given)

    return value


def _bounds_checked(name: str, real: Callable[..., Any], memory: _Memory) -> Callable[..., Any]:
    """Return the interpreter's function for a memory access, with a check of its addresses first."""
    signature = inspect.signature(real)
    at = next(n for n in signature.parameters if n in ("ptr", "ptrs"))

    def access(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        pointers, mask = given[at], given.get("mask")
        addresses = np.asarray(pointers.data)
        if mask is not None:
            addresses = addresses[np.broadcast_to(np.asarray(mask.data).astype(bool), addresses.shape)]
        width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        memory.check(name, addresses.reshape(-1), width)
        return real(*args, **kwargs)

    return access

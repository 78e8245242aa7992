"""A stand-in for the accelerator in torch's C++, so that autograd, the dispatcher and autocast work on fake tensors of
an absent device.

Three parts of torch's C++ query the device before any kernel would run:

1. c10's table of device guards, by device type. A guard written in Python that does nothing is inserted. (The CPU's
does not work: its stream index is -1, with which autograd's engine indexes a list. Nor does torch's own guard for
devices without a driver, which torch 2.11 frees with the thread that created it.) 2. ``at::getAccelerator()``, which
queries the device's hooks object. The object gets a copy of its virtual function table in which ``isBuilt`` and
``hasPrimaryContext`` return true, and, for CUDA, cuDNN is present (``cudnn.py``). 3. The threads of autograd's engine,
which are started once, so that backward of such tensors must stay in one thread.

A wrong offset would crash the process, so this is only for processes of ours. Each step is checked and can be undone.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

from ...errors import UsageError
from ..ground import program_hooks
from . import cudnn
from .replacements import Replacements

NUMBERS = {"cuda": 1, "mps": 13}
"""c10's numbers of the device types, which index the table."""

_DEVICE_TYPES = 21
_META, _PRIVATE = 14, 20
_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS = {"cuda": "_ZN2at6detail12getCUDAHooksEv", "mps": "_ZN2at6detail11getMPSHooksEv"}
_SUFFIXES = (".so", ".dylib")

_WORDS_BEFORE_TABLE, _TOTAL_WORDS = 2, 50
"""Number of words before a class's virtual function table, and in all: CUDA's has 50 (torch 2.11 to 2.15)."""

_IS_BUILT, _IS_AVAILABLE, _HAS_PRIMARY_CONTEXT = 2, 3, 4
"""Indices in that table by ATen/detail/AcceleratorHooksInterface.h, after two destructors."""


class _Unfit(Exception):
    """Raised if this build of torch cannot have the stand-in, with the reason."""


def place(places: Replacements, kind: str, major: int = 0) -> None:
    """Make ``kind`` (``cuda``, ``mps``) the accelerator of this process unless it is present. ``major`` is the major
    compute capability of CUDA.

    Raises ``UsageError``, with everything restored, if torch's libraries are not as expected.
    """
    if is_present(kind):
        return
    replacements = Replacements()
    places.add(replacements.close)
    try:
        _place(replacements, kind, major)
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
        ):  # the check needs gradients, whatever the caller's mode
            _check(kind)
    except (_Unfit, OSError, ValueError, AttributeError, RuntimeError) as error:
        replacements.close()
        raise UsageError(
            f"this build of torch ({torch.__version__}) cannot be given a stand-in for {kind}: {error}. "
            f"Capture on a machine with that device, or with torch's wheel for Linux"
        ) from None


def probe(kind: str) -> str:
    """Install the stand-in and restore everything; if this build is not as expected, a signal may end the process."""
    with Replacements() as places, places:
        place(places, kind)
    return kind


def is_present(kind: str) -> bool:
    """Return True if this machine has a device of this type."""
    return bool(torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available())


def _place(places: Replacements, kind: str, major: int) -> None:
    table, number = _table(), NUMBERS[kind]
    guard = _Guard.place_of(table, kind)
    hooks = _hooks(kind)
    functions = _copied_functions(hooks)
    yes = ctypes.cast(
        ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p
    ).value  # takes no argument and returns 1
    functions[_WORDS_BEFORE_TABLE + _IS_BUILT] = functions[_WORDS_BEFORE_TABLE + _HAS_PRIMARY_CONTEXT] = yes
    if kind == "cuda":
        cudnn.place_cudnn(
            functions, _WORDS_BEFORE_TABLE, major, yes, functions[_WORDS_BEFORE_TABLE + _IS_AVAILABLE]
        )
    if kind == "mps" and torch.version.cuda is not None:  # with two accelerators torch uses none
        others = _hooks("cuda")
        without = _copied_functions(others)
        without[_WORDS_BEFORE_TABLE + _IS_BUILT] = functions[_WORDS_BEFORE_TABLE + _IS_AVAILABLE]
        _point(places, others, without)
    places.add(table.__setitem__, number, table[number])
    table[number] = guard
    _point(places, hooks, functions)


def _library(name: str) -> Any:
    folder = Path(torch.__file__).parent / "lib"
    for suffix in _SUFFIXES:
        if (folder / f"{name}{suffix}").exists():
            return ctypes.CDLL(str(folder / f"{name}{suffix}"))
    raise _Unfit(f"{name} is not in {folder}")


def _table() -> Any:
    """Return c10's table of guards after checks of the device types' numbers. Raises _Unfit if they differ."""
    kinds = {int(value): name for name, value in torch._C._autograd.DeviceType.__members__.items()}
    numbers = {name.upper(): number for name, number in NUMBERS.items()}
    numbers |= {"CPU": 0, "META": _META, "PRIVATEUSE1": _PRIVATE}
    if sorted(kinds) != [*range(_DEVICE_TYPES)] or any(
        kinds[n].upper() != name for name, n in numbers.items()
    ):
        raise _Unfit("its device types have other numbers")
    table: Any = (ctypes.c_void_p * _DEVICE_TYPES).in_dll(_library("libc10"), _TABLE)
    if not table[0] or not table[_META]:
        raise _Unfit("its table of device guards has none for the CPU")
    return table


class _Guard(torch._C._acc.DeviceGuard if hasattr(torch._C, "_acc") else object):  # type: ignore[misc]
    """A guard that switches nothing. One instance lives forever, since torch keeps it registered."""

    kind = "cuda"
    instance: tuple[Any, int] | None = None

    def type_(self) -> Any:
        return getattr(torch._C._autograd.DeviceType, self.kind.upper())

    @classmethod
    def place_of(cls, table: Any, kind: str) -> int:
        """Return the guard's address. It is registered as that of the private type, whose entry is then restored."""
        cls.kind = kind
        if cls.instance is None:
            before = table[_PRIVATE]
            table[_PRIVATE] = None
            try:
                guard = cls()
                done = torch._C._acc.register_python_privateuseone_device_guard(guard)
                if not done or not table[_PRIVATE]:
                    raise _Unfit("it accepts no guard written in Python")
                cls.instance = guard, table[_PRIVATE]
            finally:
                table[_PRIVATE] = before
        return cls.instance[1]


def _hooks(kind: str) -> Any:
    """Return the first word of the hooks object, which is the address of its virtual function table."""
    get = getattr(_library("libtorch_cpu"), _HOOKS[kind])
    get.restype = ctypes.c_void_p
    return ctypes.c_void_p.from_address(get())


def _copied_functions(hooks: Any) -> Any:
    word = ctypes.sizeof(ctypes.c_void_p)
    start = hooks.value - _WORDS_BEFORE_TABLE * word
    return (ctypes.c_void_p * _TOTAL_WORDS).from_buffer_copy(
        (ctypes.c_char * (_TOTAL_WORDS * word)).from_address(start)
    )


def _point(places: Replacements, hooks: Any, functions: Any) -> None:
    places.add(_put_back, hooks, hooks.value, functions)
    hooks.value = ctypes.addressof(functions) + _WORDS_BEFORE_TABLE * ctypes.sizeof(ctypes.c_void_p)


def _put_back(hooks: Any, value: int, used: Any) -> None:
    """Restore the table. The argument ``used`` keeps the replacement alive until now."""
    hooks.value = value


def _check(kind: str) -> None:
    """Raise _Unfit unless torch has this accelerator and autograd works on a fake tensor of it."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    current = torch._C._accelerator_getAccelerator()
    if current is None or current.type != kind:
        raise _Unfit(f"its accelerator is reported as {current}")
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.enable_grad(),
        program_hooks.without_saved_tensor_hooks(),
        torch.autograd.set_multithreading_enabled(False),
    ):
        x = torch.empty(2, 2, device=kind, requires_grad=True)
        (grad,) = torch.autograd.grad((x @ x).sum(), [x])
        library = kind != "cuda" or cudnn.is_used(kind)
    if grad.device.type != kind or grad.shape != x.shape:
        raise _Unfit(f"autograd gave a gradient on {grad.device}")
    if not library:
        raise _Unfit("it takes no cuDNN for convolutions")

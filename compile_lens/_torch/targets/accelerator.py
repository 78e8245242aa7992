"""Makes torch's C++ take an absent device for the accelerator of this build, so that autograd, the dispatcher and
autocast work on fake tensors of it.

Three things in C++ query the device before any kernel would run:

1. c10's table of device guards, by the number of the type. A guard that is written in Python, and does nothing, is put
there. (Not the CPU's: the index of its stream is -1, with which autograd's engine indexes a list. Nor torch's own
stand-in for devices without a driver, which torch 2.11 frees with the thread that made it.) 2.
``at::getAccelerator()``, which queries the object of the device's hooks: it gets a copy of its own table of functions,
in which ``isBuilt`` and ``hasPrimaryContext`` return true. In CUDA's table cuDNN is there too (``cudnn.py``). 3. The
threads of autograd's engine, which are started once: a caller with such tensors must stay in one thread.

A wrong offset would be a crash and no exception, so this is for processes of ours. Each step is checked, and undone.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

from ...errors import UsageError
from . import cudnn
from .replacements import Replacements

NUMBERS = {"cuda": 1, "mps": 13}
"""c10's numbers of the device types, which are their indices in the table."""

_DEVICE_TYPES = 21
_META, _PRIVATE = 14, 20
_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS = {"cuda": "_ZN2at6detail12getCUDAHooksEv", "mps": "_ZN2at6detail11getMPSHooksEv"}
_SUFFIXES = (".so", ".dylib")

_HEAD, _WORDS = 2, 50
"""Words before and in a class's table of functions: CUDA's has 50 (torch 2.11 to 2.15)."""

_IS_BUILT, _IS_AVAILABLE, _HAS_PRIMARY_CONTEXT = 2, 3, 4
"""Indices in that table, by ATen/detail/AcceleratorHooksInterface.h; two destructors precede them."""


class _Unfit(Exception):
    """The reason why this build cannot take the device."""


def place(places: Replacements, kind: str, major: int = 0) -> None:
    """Make ``kind`` (``cuda``, ``mps``) the accelerator of this process, unless it is. ``major`` is the first number
    of CUDA's compute capability.

    Raises ``UsageError`` if torch's libraries do not fit, with everything restored.
    """
    if is_present(kind):
        return
    mine = Replacements()
    places.add(mine.close)
    try:
        _place(mine, kind, major)
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
        ):  # it asks for a gradient, whatever the mode here
            _check(kind)
    except (_Unfit, OSError, ValueError, AttributeError, RuntimeError) as error:
        mine.close()
        raise UsageError(
            f"this build of torch ({torch.__version__}) cannot be given a stand-in for {kind}: {error}. "
            f"Capture on a machine with that device, or with torch's wheel for Linux"
        ) from None


def probe(kind: str) -> str:
    """Place it, and restore everything. If this build is different than it looks, the process ends by a signal."""
    with Replacements() as places, places:
        place(places, kind)
    return kind


def is_present(kind: str) -> bool:
    """Return True if this machine has one."""
    return bool(torch.cuda.is_available() if kind == "cuda" else torch.backends.mps.is_available())


def _place(places: Replacements, kind: str, major: int) -> None:
    table, number = _table(), NUMBERS[kind]
    guard = _Guard.place_of(table, kind)
    hooks = _hooks(kind)
    functions = _copied_functions(hooks)
    yes = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value  # takes nothing, returns 1
    functions[_HEAD + _IS_BUILT] = functions[_HEAD + _HAS_PRIMARY_CONTEXT] = yes
    if kind == "cuda":
        cudnn.place_cudnn(functions, _HEAD, major, yes, functions[_HEAD + _IS_AVAILABLE])
    if kind == "mps" and torch.version.cuda is not None:  # of two accelerators torch takes none
        others = _hooks("cuda")
        without = _copied_functions(others)
        without[_HEAD + _IS_BUILT] = functions[_HEAD + _IS_AVAILABLE]
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
    """Return c10's table of guards, after the checks that are possible from here."""
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
    """A guard that switches nothing. There is one, for ever: torch keeps what is registered."""

    kind = "cuda"
    kept: tuple[Any, int] | None = None

    def type_(self) -> Any:
        return getattr(torch._C._autograd.DeviceType, self.kind.upper())

    @classmethod
    def place_of(cls, table: Any, kind: str) -> int:
        """Return its address. It is made in the place of the private type, whose entry is restored."""
        cls.kind = kind
        if cls.kept is None:
            before = table[_PRIVATE]
            table[_PRIVATE] = None
            try:
                guard = cls()
                done = torch._C._acc.register_python_privateuseone_device_guard(guard)
                if not done or not table[_PRIVATE]:
                    raise _Unfit("it took no guard that is written in Python")
                cls.kept = guard, table[_PRIVATE]
            finally:
                table[_PRIVATE] = before
        return cls.kept[1]


def _hooks(kind: str) -> Any:
    """Return the first word of the hooks' object: the address of its table of functions."""
    get = getattr(_library("libtorch_cpu"), _HOOKS[kind])
    get.restype = ctypes.c_void_p
    return ctypes.c_void_p.from_address(get())


def _copied_functions(hooks: Any) -> Any:
    word = ctypes.sizeof(ctypes.c_void_p)
    start = hooks.value - _HEAD * word
    return (ctypes.c_void_p * _WORDS).from_buffer_copy((ctypes.c_char * (_WORDS * word)).from_address(start))


def _point(places: Replacements, hooks: Any, functions: Any) -> None:
    places.add(_put_back, hooks, hooks.value, functions)
    hooks.value = ctypes.addressof(functions) + _HEAD * ctypes.sizeof(ctypes.c_void_p)


def _put_back(hooks: Any, value: int, used: Any) -> None:
    """Restore the table. ``used`` is kept alive until here: the object's functions were in it."""
    hooks.value = value


def _check(kind: str) -> None:
    """Check that torch has this accelerator, and that autograd works on a fake tensor of it."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    current = torch._C._accelerator_getAccelerator()
    if current is None or current.type != kind:
        raise _Unfit(f"its accelerator is reported as {current}")
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.enable_grad(),
        torch.autograd.set_multithreading_enabled(False),
    ):
        x = torch.empty(2, 2, device=kind, requires_grad=True)
        (grad,) = torch.autograd.grad((x @ x).sum(), [x])
        library = kind != "cuda" or cudnn.is_used(kind)
    if grad.device.type != kind or grad.shape != x.shape:
        raise _Unfit(f"autograd gave a gradient on {grad.device}")
    if not library:
        raise _Unfit("it takes no cuDNN for convolutions")

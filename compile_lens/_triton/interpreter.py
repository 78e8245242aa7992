"""Extensions of Triton's interpreter for Inductor's kernels, and faster replacements; ``launch.py`` launches
kernels."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np


def installed() -> bool:
    """Return True if Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def kernel(source: str, name: str, folder: Path, number: int) -> Any:
    """Return one of Inductor's kernels as an object with ``run(…)``, from a file, since the interpreter reads its
    source."""
    file = folder / f"compile_lens_kernel_{number}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@contextlib.contextmanager
def faster_interpreter() -> Iterator[None]:
    """Speed up the interpreter for the duration: reductions halve the array in each step, and the language is patched
    once per launch instead of once per function. Conversions to bfloat16 round, as on GPUs; the interpreter truncates,
    which makes sums of thousands of elements half a per cent smaller."""
    from triton.runtime import interpreter

    before = interpreter.ReduceOps.generic_reduce, interpreter._patch_lang
    convert: Any = getattr(interpreter, "_convert_float", None)
    if convert is not None:
        interpreter._convert_float = _rounding(convert)
    interpreter.ReduceOps.generic_reduce = _reduce_by_halves
    if hasattr(interpreter, "_LangPatchScope"):
        interpreter._patch_lang = _LanguagePatch(interpreter._patch_lang)
    try:
        yield
    finally:
        interpreter.ReduceOps.generic_reduce, interpreter._patch_lang = before
        if convert is not None:
            interpreter._convert_float = convert


def _rounding(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a conversion that rounds float32 to the nearest bfloat16, ties to even, and is ``real`` for other
    dtypes."""

    def convert(value: Any, source: Any, target: Any, mode: Any) -> Any:
        if (source.name, target.name) != ("fp32", "bf16"):
            return real(value, source, target, mode)
        whole = np.ascontiguousarray(value, dtype=np.float32)
        bits = whole.view(np.uint32)
        nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        not_a_number = (bits >> np.uint32(16)) | np.uint32(0x40)  # rounding could turn a NaN into infinity
        return np.where(np.isnan(whole), not_a_number, nearest).astype(np.uint16)

    return convert


class _LanguagePatch:
    """A patch of the language for interpretation, applied once until restored."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real
        self._scope: Any = None

    def __call__(self, fn: Any) -> Any:
        import triton.language as tl

        if self._scope is None:
            everything = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
            self._scope = self._real(everything)
            # Triton 3.6 passes the array itself to int(), which numpy no longer accepts for arrays with an axis.
            self._scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
            return self
        return types.SimpleNamespace(restore=lambda: None)

    def restore(self) -> None:
        """Restore the language at the end of the launch."""
        scope, self._scope = self._scope, None
        scope.restore()


_SAME_NAMES = (
    "sqrt exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh fmod hypot copysign nextafter ldexp "
    "floor ceil trunc rint"
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME_NAMES.split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "pow": np.power,
    "abs": np.abs,
    "nearbyint": np.rint,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "fma": lambda a, b, c: a * b + c,
    "div_rn": np.divide,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "lgamma": np.vectorize(math.lgamma, otypes=[np.float64]),
    "llrint": lambda x: np.rint(x).astype(np.int64),
}
_TESTS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "signbit": np.signbit,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
}


class Library:
    """CUDA's library of mathematical functions, implemented in numpy."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _FUNCTIONS.get(name) or _TESTS.get(name)
        if function is None:
            raise AttributeError(f"the interpreter does not implement libdevice.{name}")

        def call(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
            return _elementwise(function, args, name in _TESTS)

        return call


def _elementwise(function: Callable[..., Any], args: tuple[Any, ...], is_test: bool) -> Any:
    import triton.language as tl

    values = [a.value if isinstance(a, tl.constexpr) else a for a in args]
    first = next(v for v in values if isinstance(v, tl.tensor))
    with np.errstate(all="ignore"):
        result = np.asarray(function(*(v.handle.data if isinstance(v, tl.tensor) else v for v in values)))
    if is_test:
        return _tensor(result.astype(np.int32), tl.int32)
    if result.dtype == np.int64:
        return _tensor(result, tl.int64)
    return _tensor(result.astype(first.handle.data.dtype), first.dtype.scalar)


def _tensor(data: Any, dtype: Any) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    kind = tl.block_type(dtype, list(data.shape)) if data.ndim else dtype
    return tl.tensor(TensorHandle(data, dtype), kind)


def _every_second_element(array: Any, axis: int, start: int, dtype: Any) -> Any:
    elements = np.take(array, range(start, array.shape[axis], 2), axis)
    return _tensor(np.ascontiguousarray(elements), dtype.scalar)


def _reduce_by_halves(self: Any, value: Any) -> Any:
    """Reduce by any function, combining all pairs of neighbours in one step; the interpreter goes element by
    element."""
    parts, axis = self.unravel(value, self.axis)
    types = [p.dtype for p in parts]
    arrays = [p.handle.data for p in parts]
    rank = arrays[0].ndim
    while arrays[0].shape[axis] > 1:
        pair = [[_every_second_element(a, axis, start, t) for a, t in zip(arrays, types)] for start in (0, 1)]
        combined = self.combine_fn.fn(*pair[0], *pair[1])
        combined = combined if isinstance(combined, tuple) else (combined,)
        arrays = [m.handle.data.astype(a.dtype) for m, a in zip(combined, arrays)]
    reduced = []
    for array, dtype in zip(arrays, types):
        if self.keep_dims:
            data = array if self.axis is not None else array.reshape((1,) * rank)
        else:
            data = array.reshape(()).item() if self.axis is None else np.squeeze(array, axis)
        reduced.append(self.to_tensor(data, dtype))
    return reduced

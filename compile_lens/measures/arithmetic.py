"""Arithmetic of one ATen operator, modelled from its name and its shapes.

Rules: a matrix product of M×K and K×N takes 2·M·N·K operations (a multiply and an add each); an elementwise
operator takes one for each output element: a sine counts as one, like an addition, a comparison or a selection, and
``special`` counts those that are slow on a processor; a reduction takes one for each input element (a variance
four). Operators that only move or fill data take none. Attention counts its matrix products, not its softmax, with
no deduction for a causal mask. Integer operations count like floating-point ones.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

from compile_lens.record import syntax
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Node, Ref, Tensor

MOVES = frozenset(
    "clone _to_copy convert_element_type copy copy_ full full_like zeros zeros_like ones ones_like arange iota fill "
    "fill_ zero_ scalar_tensor cat stack index gather embedding index_select take select_scatter slice_scatter "
    "diagonal_scatter as_strided_scatter constant_pad_nd roll flip repeat device_put lift_fresh_copy _unsafe_index "
    "_unsafe_masked_index scatter scatter_ _unsafe_index_put inductor_seeds inductor_seed inductor_lookup_seed "
    "_assert_async set_ resize_ _local_scalar_dense".split()
)
"""Operators without arithmetic: they copy, convert, fill, gather or scatter."""

PER_ELEMENT = {"fma": 2, "addcmul": 2, "addcdiv": 2, "lerp": 3, "addcmul_": 2, "addcdiv_": 2, "lerp_": 3}
"""Operations per output element of elementwise operators that do several."""

PER_REDUCED = {
    **dict.fromkeys("sum mean amax amin max min argmax argmin any all prod nansum count_nonzero".split(), 1),
    **dict.fromkeys("cumsum cumprod cummax cummin aminmax".split(), 1),
    **dict.fromkeys("var std var_mean std_mean".split(), 4),  # add up; subtract, square, add up
    **dict.fromkeys("norm linalg_vector_norm".split(), 2),
    "prepare_softmax_online": 4,  # compare; subtract, exponential, add up
}
"""Operations for each element that a reduction or scan reads."""

SCATTERS = {"scatter_add": 3, "scatter_add_": 3, "scatter_reduce": 3, "scatter_reduce_": 3, "index_add": 3,
            "index_add_": 3, "_unsafe_masked_index_put_accumulate": 3, "embedding_dense_backward": 0,
            "max_pool2d_with_indices_backward": 0, "max_pool3d_with_indices_backward": 0}  # fmt: skip
"""Operators that add at indices: the position of the argument whose elements they add."""

PRODUCTS = frozenset(
    "mm bmm addmm baddbmm mv addmv dot vdot _int_mm _scaled_mm linear _linear_pointwise".split()
)
CONVOLUTIONS = frozenset("convolution _convolution _convolution_pointwise convolution_backward".split())
POOLS = {"avg_pool2d": 1, "avg_pool3d": 1, "max_pool2d_with_indices": 1, "max_pool3d_with_indices": 1,
         "_low_memory_max_pool_with_offsets": 1, "avg_pool2d_backward": 2, "avg_pool3d_backward": 2}  # fmt: skip
"""Operators over a window: the position of the argument with the window's size."""

SPECIAL = frozenset(
    "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
    "reciprocal div true_divide sigmoid logit erf erfc erfinv lgamma digamma gelu silu mish softplus elu log_sigmoid "
    "log_sigmoid_forward logaddexp prepare_softmax_online".split()
)
"""Operators many times slower than an addition: transcendental functions, roots, divisions."""

SPECIAL_COST = 8
"""Operations that take as long as one special function. An NVIDIA GPU does 16 of these per clock and
multiprocessor, against 64 or 128 multiply-adds of two operations each: 8 or 16 (CUDA C++ Programming Guide, throughput
of native arithmetic instructions). The smaller, since a roofline is a bound: accurate functions take longer."""

ATTENTION = ("_scaled_dot_product", "_flash_attention", "_efficient_attention")
SORTS = frozenset("sort topk msort argsort kthvalue median mode unique_dim _unique2 searchsorted".split())


class Unknown(Exception):
    """Error for an operator whose arithmetic is not known; its message is the reason."""


def name_of(node: Node) -> str:
    """Return the bare name of an ATen operator: ``aten.mm.default`` gives ``mm``."""
    parts = node.target.split(".")
    return parts[1] if len(parts) > 1 and parts[0] in ("aten", "prims", "mkldnn", "inductor") else node.target


def operations(node: Node, nodes: Mapping[str, Node], sizes: Mapping[str, int]) -> int:
    """Return the number of arithmetic operations of ``node``.

    Args:
        nodes: the nodes of its graph by name, for the shapes of its inputs.
        sizes: the observed value of each symbol of a dynamic shape.

    Raises:
        Unknown: with the reason.
    """
    if not node.compute:
        return 0
    node = _wrapped_node(node)
    name = name_of(node)
    if name in MOVES:
        return 0
    if node.kind == "control":
        raise Unknown(f"{node.target} runs a body whose arithmetic is not counted")
    if any(t.dtype.startswith("complex") for t in node.outputs):
        raise Unknown("arithmetic on complex numbers is not modelled")
    if node.kind == "custom":
        raise Unknown(f"what {node.target} computes is not known")
    count = _Shapes(node, nodes, sizes).count(name)
    if not 0 <= count < MAX_OPERATIONS:
        raise Unknown(f"the sizes that {node.target} takes are not ones that a device can hold")
    return count


RNG_WRAPPERS = {
    "run_and_save_rng_state": (0, 1),
    "run_with_rng_state": (1, 0),
    "graphsafe_run_with_rng_state": (0, 0),
}
"""Operators that run another one and manage the RNG state: the index of the inner operator among the arguments, and
the number of results before its own."""


def _wrapped_node(node: Node) -> Node:
    """Return the inner node of an operator of ``RNG_WRAPPERS``; any other node unchanged."""
    outer, _, inner = node.target.partition("(")
    if not inner or outer not in RNG_WRAPPERS:
        return node
    place, more = RNG_WRAPPERS[outer]
    return dataclasses.replace(
        node, target=inner.removesuffix(")"), args=node.args[place + 1 :], outputs=node.outputs[more:]
    )


def special(node: Node, count: int) -> int:
    """Return how many of a node's operations are transcendental functions, roots or divisions.

    Args:
        count: result of ``operations`` for the node.
    """
    name = name_of(node).removesuffix("_")
    if name == "pow":  # Inductor multiplies out an integer power
        power = node.args[1] if len(node.args) > 1 else None
        return 0 if isinstance(power, int) or (isinstance(power, float) and power.is_integer()) else count
    if name not in SPECIAL or (node.dtype or "").startswith(("int", "uint", "bool")):
        return 0
    return count // PER_REDUCED.get(name, 1)


class _Shapes:
    def __init__(self, node: Node, nodes: Mapping[str, Node], sizes: Mapping[str, int]) -> None:
        self.node = node
        self.nodes = nodes
        self.sizes = sizes

    def count(self, name: str) -> int:
        node = self.node
        if name in PRODUCTS:
            return self._product(name)
        if name in CONVOLUTIONS:
            return self._convolution(name)
        if name == "linear_backward":
            return self._linear_backward()
        if name.startswith(ATTENTION):
            return self._attention(name)
        if name in PER_REDUCED:
            return PER_REDUCED[name] * self._elements(self._input(0))
        if name in SCATTERS:
            return self._elements(self._input(SCATTERS[name]))
        if name in ("index_put", "index_put_"):
            adds = len(node.args) > 3 and node.args[3] is True
            return self._elements(self._input(2)) if adds else 0
        if name in POOLS:
            return self._window(POOLS[name]) * self._elements(
                self._input(0) if name.endswith("_backward") else self._output()
            )
        if name == "max_pool2d_backward":  # without indices each window is searched again
            return (self._window(2) + 1) * self._elements(self._input(0))
        if name in SORTS:
            raise Unknown(f"how many comparisons {node.target} takes depends on how it is done")
        if node.kind in ("pointwise", "random", "mutation"):
            return PER_ELEMENT.get(name, 1) * sum(self._elements(t) for t in node.outputs)
        raise Unknown(f"what {node.target} computes is not modelled")

    def _product(self, name: str) -> int:
        elements = self._elements(self._output())
        first = 1 if name in ("addmm", "baddbmm", "addmv") else 0
        inner = self._dims(self._input(first))
        if not inner:
            raise Unknown(f"the shapes of {self.node.target} are not in the record")
        has_bias = name in ("linear", "_linear_pointwise") and len(self.node.args) > 2
        bias = elements if first or (has_bias and isinstance(self.node.args[2], Ref)) else 0
        return 2 * elements * inner[-1] + bias

    def _linear_backward(self) -> int:
        grad, weight = self._elements(self._input(1)), self._dims(self._input(2))
        if not weight:
            raise Unknown(f"the shapes of {self.node.target} are not in the record")
        mask = self._gradient_mask()
        return 2 * grad * weight[-1] * sum(mask[:2]) + (grad if mask[2] else 0)

    def _gradient_mask(self) -> tuple[bool, ...]:
        """Return which gradients a backward computes: those of the input, the weight and the bias."""
        mask = self.node.args[-1]
        if isinstance(mask, tuple) and len(mask) == 3:
            return tuple(bool(m) for m in mask)
        return True, True, True

    def _convolution(self, name: str) -> int:
        if name == "convolution_backward":
            grad, image, weight = self._input(0), self._input(1), self._input(2)
            mask = self._gradient_mask()
            transposed = self._argument(7) is True
            once = self._convolved(image if transposed else grad, weight, transposed)
            return once * sum(mask[:2]) + (self._elements(grad) if mask[2] else 0)
        transposed = name != "_convolution_pointwise" and self._argument(6) is True
        output = self._output()
        bias = self._elements(output) if isinstance(self._argument(2), Ref) else 0
        return self._convolved(self._input(0) if transposed else output, self._input(1), transposed) + bias

    def _convolved(self, places: Tensor, weight: Tensor, transposed: bool) -> int:
        """Return the operations of a convolution: each element of ``places`` meets all weights of its channel."""
        channels = next(iter(self._dims(weight)), 1)
        return 2 * self._elements(places) * (self._elements(weight) // max(channels, 1))

    def _attention(self, name: str) -> int:
        backward = name.endswith("_backward")
        first = 1 if backward else 0
        query, key, value = (self._dims(self._input(first + i)) for i in range(3))
        if not (len(query) == len(key) == len(value) == 4):
            raise Unknown(f"the shapes of {self.node.target} are not those of four-dimensional attention")
        # aten's own layout is batch, heads, length, width; the inner forms have length before heads.
        length, heads = (1, 2) if name.startswith(ATTENTION[1:]) else (2, 1)
        rows = query[0] * query[heads] * query[length] * key[length]
        scores, values = 2 * rows * query[3], 2 * rows * value[3]
        # Backward: the scores again; gradients of the weights and the values; of the queries and the keys.
        return 3 * scores + 2 * values if backward else scores + values

    def _window(self, position: int) -> int:
        window = self._argument(position)
        sides = window if isinstance(window, tuple) else (window, window)
        if not all(isinstance(s, int) for s in sides):
            raise Unknown(f"the window of {self.node.target} is not in the record")
        total = math.prod(int(s) for s in sides)
        return total if len(sides) > 1 else total * total

    def _argument(self, position: int) -> Any:
        return self.node.args[position] if position < len(self.node.args) else None

    def _input(self, position: int) -> Tensor:
        value = self._argument(position)
        source = self.nodes.get(value.name) if isinstance(value, Ref) else None
        if source is None or not source.outputs:
            raise Unknown(f"the shapes that {self.node.target} takes are not in the record")
        return source.outputs[0]

    def _output(self) -> Tensor:
        if not self.node.outputs:
            raise Unknown(f"the shape that {self.node.target} makes is not in the record")
        return self.node.outputs[0]

    def _dims(self, tensor: Tensor) -> list[int]:
        return [length(size, self.sizes) for size in tensor.shape]

    def _elements(self, tensor: Tensor) -> int:
        return math.prod(self._dims(tensor))


MAX_OPERATIONS = 2**128
"""Upper bound on operations of one operator: the product of two 64-bit numbers."""

MAX_SIZE_CHARACTERS = 2000
"""Longest text of a size that is parsed; longer ones could nest too deeply for Python's parser."""


def observed_sizes(compilation: Compilation) -> dict[str, int]:
    """Return the observed value of each size symbol."""
    return {one.symbol: one.hint for one in compilation.dynamic if one.hint is not None}


def node_bytes(node: Node, sizes: Mapping[str, int]) -> int | None:
    """Return the bytes of a node's results, with ``sizes`` for symbols; ``None`` if a size depends on data."""
    known = [one for tensor in node.outputs if (one := _tensor_bytes(tensor, sizes)) is not None]
    return sum(known) if known and len(known) == len(node.outputs) else None


def _tensor_bytes(tensor: Tensor, sizes: Mapping[str, int]) -> int | None:
    bits = 8 if tensor.dtype == "bool" else int((re.findall(r"\d+", tensor.dtype) or [0])[0])
    if tensor.nbytes is not None or not bits or all(isinstance(one, int) for one in tensor.shape):
        return tensor.nbytes
    try:
        return math.prod(length(one, sizes) for one in tensor.shape) * max(bits // 8, 1)
    except Unknown:
        return None


def length(size: int | str, sizes: Mapping[str, int]) -> int:
    """Return a size as a number, with observed values for symbols; raise ``Unknown`` if it depends on data."""
    if isinstance(size, int):
        return size
    value = -1
    if len(size) <= MAX_SIZE_CHARACTERS:
        try:
            value = _value(syntax.parse(size, mode="eval").body, sizes)
        except (SyntaxError, ValueError, TypeError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
            raise Unknown(f"the size {size} depends on data") from None
    if not 0 <= value < 2**64:
        raise Unknown(f"the size {size[:MAX_SIZE_CHARACTERS]} is not one that a device can hold")
    return value


def _value(expression: ast.expr, sizes: Mapping[str, int], depth_left: int = 200) -> int:
    """Return the value of an expression that nests at most ``depth_left`` deep; Python's recursion limit varies."""
    if depth_left == 0:
        raise RecursionError
    if isinstance(expression, ast.Constant) and isinstance(expression.value, int):
        return expression.value
    if isinstance(expression, ast.Name):
        return sizes[expression.id]
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        return -_value(expression.operand, sizes, depth_left - 1)
    if isinstance(expression, ast.BinOp):
        left, right = (_value(side, sizes, depth_left - 1) for side in (expression.left, expression.right))
        for kind, apply in _OPERATORS.items():
            if isinstance(expression.op, kind):
                return int(apply(left, right))
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
        return int(
            _FUNCTIONS[expression.func.id](*(_value(a, sizes, depth_left - 1) for a in expression.args))
        )
    raise KeyError(ast.dump(expression))


def _power(base: int, exponent: int) -> int:
    if not 0 <= exponent <= 8 or abs(base) >= 2**64:  # no size of a tensor
        raise KeyError(f"{base}**{exponent}")
    return int(base**exponent)


_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: _power(a, b),
}
_FUNCTIONS: dict[str, Any] = {
    "Max": max,
    "Min": min,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilDiv": lambda a, b: -(-a // b),
}
"""Functions in torch's texts of sizes."""

"""Zoo: functions of tensors, mostly one expression each."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from zoo import Call, Table, rand

TABLE = Table()
add, op = TABLE.add, TABLE.op


def sin2_cos2(x: torch.Tensor) -> torch.Tensor:
    """The seed example of the project: 1 for every x."""
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def chain(x: torch.Tensor, pairs: int) -> torch.Tensor:
    """A long chain of sin and add, each pair with its own constant."""
    for i in range(pairs):
        x = torch.sin(x) + float(i)
    return x


def naive_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention as one would write it on a blackboard."""
    return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1) @ v


def unpack_int4(packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Two 4-bit numbers in each byte, with offset 8, scaled: of shape (rows, bytes) to (rows, 2 × bytes)."""
    low = ((packed & 0xF) - 8).to(torch.float32) * scale
    high = (((packed >> 4) & 0xF) - 8).to(torch.float32) * scale
    return torch.cat((low, high), dim=1)


def lu_det(m: torch.Tensor) -> torch.Tensor:
    """The determinant from an LU factorisation: the product of the pivots, with a sign for each exchange."""
    lu, pivots, _ = torch.linalg.lu_factor_ex(m)
    order = torch.arange(1, m.shape[-1] + 1, dtype=pivots.dtype)
    exchanges = (pivots != order).sum(-1)
    return lu.diagonal(dim1=-2, dim2=-1).prod(-1) * (1 - 2 * (exchanges % 2))


def det3(m: torch.Tensor) -> torch.Tensor:
    """The closed form of a 3×3 determinant, over a batch."""
    a, b, c, d, e, f, g, h, i = m.reshape(-1, 9).unbind(1)
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


# Pointwise, types and scalars.
op("sin2_cos2", lambda: Call(sin2_cos2, (rand(64, grad=True),)), backward=True)
op("sin2_cos2_inference", lambda: Call(sin2_cos2, (rand(64),)))
op("lambda", lambda: Call(lambda x: torch.sin(x) * 2, (rand(5, 7),)))
op("chain_40", lambda: Call(chain, (rand(64, grad=True), 40)), backward=True)
op("mse_loss", lambda: Call(F.mse_loss, (rand(32, grad=True), rand(32))), backward=True, graphs=1)
op("gelu_tanh", lambda: Call(lambda x: F.gelu(torch.tanh(x)), (rand(33, grad=True),)), backward=True)
op(
    "bf16",
    lambda: Call(lambda x: torch.exp(x) + x, (rand(32, grad=True, dtype=torch.bfloat16),)),
    backward=True,
)
op("fp16", lambda: Call(lambda x: torch.sigmoid(x) * x, (rand(32, dtype=torch.float16),)))
op(
    "fp64",
    lambda: Call(lambda x: torch.log1p(x * x), (rand(32, grad=True, dtype=torch.float64),)),
    backward=True,
)
op("int8", lambda: Call(lambda x: (x * 2 + 1) // 3, (torch.arange(-30, 30, dtype=torch.int8),)))
op(
    "int8_dequantise",
    lambda: Call(
        lambda w, s, x: x @ (w.to(torch.float32) * s),
        (torch.randint(-128, 127, (16, 8), dtype=torch.int8), rand(8), rand(4, 16, grad=True)),
    ),
    backward=True,
)
op("int4_unpack", lambda: Call(unpack_int4, (torch.randint(0, 255, (4, 8), dtype=torch.int32), rand(1))))
op("bool", lambda: Call(lambda a, b: (a & ~b) | (a ^ b), (rand(20) > 0, rand(20) > 0)))
op("promotion", lambda: Call(lambda i, x: i * x + 1, (torch.arange(6), rand(6, grad=True))), backward=True)
op(
    "zero_dim",
    lambda: Call(lambda x, y: x * y + 1, (torch.tensor(2.0, requires_grad=True), torch.tensor(3))),
    backward=True,
)
op("python_scalars", lambda: Call(lambda x, n, s, flag: x * s + n if flag else x, (rand(8), 3, 0.5, True)))
op("zero_size", lambda: Call(lambda x: torch.relu(x).sum(0), (rand(0, 4, grad=True),)), backward=True)
op("bits", lambda: Call(lambda a: ((a << 1) | 1) % 7, (torch.arange(40),)))
op("clamp_round", lambda: Call(lambda x: x.clamp(-1, 1).round().remainder(0.3), (rand(31),)))
op(
    "where_arange",
    lambda: Call(lambda x: torch.where(torch.arange(x.shape[0]) % 2 == 0, x, -x), (rand(17, grad=True),)),
    backward=True,
)
op(
    "masked_fill",
    lambda: Call(
        lambda x: x.masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), float("-inf")),
        (rand(6, 6, grad=True),),
    ),
    backward=True,
)
op(
    "part_needs_grad",
    lambda: Call(lambda a, b, c: a * b + c, (rand(8), rand(8, grad=True), rand(8))),
    backward=True,
)
op("integer_output_beside", lambda: Call(lambda x: (x * 2, x.argmax()), (rand(9, grad=True),)), backward=True)

# Layouts.
op("non_contiguous", lambda: Call(lambda x: torch.cos(x) + x, (rand(6, 8).t(),)))
op("expanded", lambda: Call(lambda x, y: x * y, (rand(4, 1).expand(4, 6), rand(4, 6))))
op("strided_slice", lambda: Call(lambda x: x[1::2, ::3] * 2, (rand(8, 9, grad=True),)), backward=True)
op(
    "views",
    lambda: Call(lambda x: x.reshape(4, 6).t().unsqueeze(0).permute(2, 0, 1), (rand(24, grad=True),)),
    backward=False,
)
op(
    "cat_split_pad",
    lambda: Call(
        lambda x: F.pad(torch.cat([c * 2 for c in x.split(2)], dim=1), (1, 1)).roll(1, 0).flip(1),
        (rand(6, 5, grad=True),),
    ),
    backward=True,
)
op(
    "triu_outer",
    lambda: Call(lambda a, b: torch.outer(a, b).triu(), (rand(5, grad=True), rand(5))),
    backward=True,
)

# Reductions and scans.
op(
    "softmax_last",
    lambda: Call(lambda x: torch.softmax(x, -1), (rand(16, 16, grad=True),)),
    backward=True,
)
op("softmax_first", lambda: Call(lambda x: torch.softmax(x, 0), (rand(16, 16),)))
op(
    "layer_norm",
    lambda: Call(
        lambda x, w, b: F.layer_norm(x, (12,), w, b),
        (rand(5, 12, grad=True), rand(12, grad=True), rand(12, grad=True)),
    ),
    backward=True,
)
op(
    "var_mean",
    lambda: Call(lambda x: torch.var_mean(x, dim=1), (rand(6, 20, grad=True),)),
    backward=True,
)
op(
    "logsumexp",
    lambda: Call(lambda x: x.logsumexp(1) + x.amax(1), (rand(6, 20, grad=True),)),
    backward=True,
)
op(
    "cumsum",
    lambda: Call(lambda x: torch.cos(torch.cumsum(torch.sin(x), 0)), (rand(64, grad=True),)),
    backward=True,
)
op(
    "sort",
    lambda: Call(lambda x: torch.cos(torch.sort(torch.sin(x)).values), (rand(64, grad=True),)),
    backward=True,
)
op("topk", lambda: Call(lambda x: torch.topk(x, 3), (rand(4, 10, grad=True),)), backward=True)
op("argmax", lambda: Call(lambda x: x.argmax(1), (rand(4, 10, grad=True),)))
op("max_pool", lambda: Call(lambda x: F.max_pool2d(x, 2), (rand(1, 2, 6, 6, grad=True),)), backward=True)
op(
    "interpolate",
    lambda: Call(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (rand(1, 2, 4, 4, grad=True),)),
    backward=True,
)

# Indexing.
op(
    "embedding_cross_entropy",
    lambda: Call(
        lambda w, i, t: F.cross_entropy(F.embedding(i, w), t),
        (rand(11, 7, grad=True), torch.randint(11, (6,)), torch.randint(7, (6,))),
    ),
    backward=True,
)
op(
    "gather",
    lambda: Call(lambda x, i: x.gather(1, i), (rand(4, 6, grad=True), torch.randint(6, (4, 3)))),
    backward=True,
)
op(
    "scatter_add",
    lambda: Call(
        lambda x, i: torch.zeros(4, 6).scatter_add(1, i, x), (rand(4, 3, grad=True), torch.randint(6, (4, 3)))
    ),
    backward=True,
)
op(
    "index_put",
    lambda: Call(
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        (rand(6, grad=True), torch.tensor([0, 2, 2]), rand(3, grad=True)),
    ),
    backward=True,
)
op(
    "index",
    lambda: Call(lambda x, i: x[i] * 2, (rand(6, 3, grad=True), torch.tensor([5, 0, 0]))),
    backward=True,
)
op("nonzero", lambda: Call(lambda x: torch.nonzero(x * 2 > 0) + 1, (rand(12),)), graphs=2, breaks=1)

# Library calls.
op(
    "mm_relu",
    lambda: Call(lambda a, b: torch.relu(a @ b), (rand(8, 6, grad=True), rand(6, 4, grad=True))),
    backward=True,
)
op(
    "bmm",
    lambda: Call(
        lambda a, b, c: torch.baddbmm(a, b, c), (rand(2, 3, 5), rand(2, 3, 4, grad=True), rand(2, 4, 5))
    ),
    backward=True,
)
op(
    "einsum",
    lambda: Call(
        lambda a, b: torch.einsum("bij,bjk->bik", a, b), (rand(2, 3, 4, grad=True), rand(2, 4, 5, grad=True))
    ),
    backward=True,
)
op(
    "conv2d",
    lambda: Call(
        lambda x, w: torch.relu(F.conv2d(x, w, padding=1)),
        (rand(1, 3, 8, 8, grad=True), rand(4, 3, 3, 3, grad=True)),
    ),
    backward=True,
)
op(
    "channels_last",
    lambda: Call(
        lambda x, w: F.conv2d(x, w) * 2,
        (
            rand(2, 4, 8, 8).to(memory_format=torch.channels_last),
            rand(4, 4, 3, 3).to(memory_format=torch.channels_last),
        ),
    ),
)
op(
    "naive_attention",
    lambda: Call(
        naive_attention,
        (rand(1, 2, 8, 4, grad=True), rand(1, 2, 8, 4, grad=True), rand(1, 2, 8, 4, grad=True)),
    ),
    backward=True,
)
op(
    "sdpa",
    lambda: Call(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (rand(1, 2, 8, 4, grad=True), rand(1, 2, 8, 4, grad=True), rand(1, 2, 8, 4, grad=True)),
    ),
    backward=True,
)
op("lu_det", lambda: Call(lu_det, (rand(4, 4, grad=True),)), backward=True)
op("closed_det", lambda: Call(det3, (rand(10, 3, 3, grad=True),)), backward=True)
op(
    "solve",
    lambda: Call(torch.linalg.solve, (rand(4, 4, grad=True), rand(4, 2))),
    backward=True,
)
op("complex", lambda: Call(lambda z: z * z.conj() + z, (torch.randn(16, dtype=torch.complex64),)))
op(
    "fft",
    lambda: Call(lambda x: torch.fft.rfft(torch.sin(x)).abs(), (rand(32, grad=True),)),
    backward=True,
)

# Random numbers.
op(
    "rand_like",
    lambda: Call(lambda x: x + torch.rand_like(x), (rand(32, grad=True),)),
    backward=True,
    random=True,
)
op(
    "dropout",
    lambda: Call(lambda x: F.dropout(x, 0.5, True), (rand(64, grad=True),)),
    backward=True,
    random=True,
)


@add("partial_sums", backward=True)
def _partial_sums() -> Call:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(), x.sum(0), x.mean(1, keepdim=True), x.prod(1), (x > 0).any(), x.norm()

    return Call(fn, (rand(5, 6, grad=True),))

"""About ninety short programs: in-place writes, views, losses, gathers, recurrent cells, norms, pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F


def grad(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def ints(end: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, end, shape)


def slice_write(c: Any, k: Any) -> None:
    c[:32] = k.sin()


def add_to_slice(c: Any, k: Any) -> None:
    c[:, 2:6] += k.cos()


def masked_fill(c: Any, m: Any) -> Any:
    c.masked_fill_(m, 0.0)
    return c.sin()


def index_add(c: Any, i: Any, s: Any) -> None:
    c.index_add_(0, i, s.exp())


def index_copy(c: Any, i: Any, s: Any) -> None:
    c.index_copy_(0, i, s.exp())


def scatter(c: Any, i: Any, s: Any) -> None:
    c.scatter_(1, i, s.exp())


def index_fill(c: Any, i: Any) -> Any:
    c.index_fill_(0, i, 1.5)
    return c * 2


def set_by_mask(c: Any, m: Any) -> Any:
    c[m] = 0.5
    return c + 1


def key_value_cache(c: Any, k: Any, p: Any) -> Any:
    c[:, :, p] = k.sin()
    return c.exp().sum(-1)


def zero(c: Any) -> Any:
    c.zero_()
    return c + 1


def foreach(a: Any, b: Any) -> None:
    torch._foreach_mul_(a, 0.9)
    torch._foreach_add_(a, b, alpha=0.1)


def first_row_of_clone(x: Any) -> Any:
    y = x.clone()
    y[0] = 0
    return y.exp()


def rows_of_zeros(x: Any) -> Any:
    y = torch.zeros(64, 64)
    y[2:10] = x.sin()
    return y * 2


def two_writes(x: Any) -> Any:
    y = x.sin().clone()
    y[:, 0] = x[:, 1]
    y[3] *= 2
    return y


def data_replaced(x: Any, w: Any) -> Any:
    w.data = w.data.clamp(-0.5, 0.5)
    return x * w.sin()


def view_of_reshape(x: Any) -> Any:
    y = x.clone().reshape(-1, 4)
    y[:, [2, 0]] = y[:, [0, 2]]
    return y + x


def view_write(x: Any) -> Any:
    y = x.clone().view(-1)
    y[3] = 0.0
    return y.sin()


def rows_swapped(x: Any) -> Any:
    y = x.sin()
    y[[0, 1]] = x[[1, 0]]
    return y * 2


def write_into_view_of_view(x: Any) -> Any:
    y = x.sin()
    z = y.view(-1)[2:30].view(4, 7)
    z.mul_(x.flatten()[:28].view(4, 7))
    z[1].add_(1.0)
    return y.cos()


def two_views(x: Any) -> Any:
    y = x * 2
    y.t()[0].copy_(x[0])
    y.diagonal().zero_()
    return y.exp()


def out_argument(x: Any, o: Any) -> Any:
    torch.sin(x, out=o)
    return o + 1


def checkpoint(x: Any, w: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(lambda a, b: torch.sin(a @ b).exp(), x, w, use_reentrant=False)


MODULES: dict[str, nn.Module] = {
    "lstm_cell": nn.LSTMCell(16, 32),
    "gru_cell": nn.GRUCell(16, 32),
    "batch_norm": nn.BatchNorm1d(64),
    "embedding_bag": nn.EmbeddingBag(1000, 16),
    "embedding": nn.Embedding(1000, 16, padding_idx=0),
    "attention_layer": nn.MultiheadAttention(32, 4, batch_first=True),
}
"""Modules that the patterns of the same name call; their parameters are leaves."""

Pattern = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]

PATTERNS: dict[str, Pattern] = {
    "slice_write": (slice_write, lambda: (rand(64, 64), rand(32, 64))),
    "copy_": (lambda c, k: (c.copy_(k.sin()), None)[1], lambda: (rand(64, 64), rand(64, 64))),
    "lerp_": (lambda a, b: (a.lerp_(b.tanh(), 0.1), None)[1], lambda: (rand(64, 64), rand(64, 64))),
    "add_to_slice": (add_to_slice, lambda: (rand(8, 8), rand(8, 4))),
    "masked_fill_": (masked_fill, lambda: (rand(64, 64), rand(64, 64) > 0)),
    "index_add_": (index_add, lambda: (rand(64, 64), ints(64, 8), rand(8, 64))),
    "index_copy_": (index_copy, lambda: (rand(64, 64), torch.randperm(64)[:8], rand(8, 64))),
    "scatter_": (scatter, lambda: (rand(64, 64), ints(64, 64, 8), rand(64, 8))),
    "index_fill_": (index_fill, lambda: (rand(64, 64), ints(64, 8))),
    "set_by_mask": (set_by_mask, lambda: (rand(64, 64), rand(64, 64) > 0)),
    "key_value_cache": (key_value_cache, lambda: (rand(2, 4, 128, 16), rand(2, 4, 1, 16), torch.tensor([5]))),
    "zero_": (zero, lambda: (rand(64, 64),)),
    "foreach": (foreach, lambda: ([rand(64), rand(32)], [rand(64), rand(32)])),
    "add_ with alpha": (lambda p, g: (p.add_(g.sin(), alpha=-0.1), None)[1], lambda: (rand(64, 64), rand(64, 64))),
    "addmm of no bias": (
        lambda z, x, y: torch.addmm(z, x, y, beta=0).sin(), lambda: (rand(16), rand(8, 16), rand(16, 16))
    ),
    "baddbmm of no bias": (
        lambda z, x, y: torch.baddbmm(z, x, y, beta=0), lambda: (rand(2, 8, 8), rand(2, 8, 4), rand(2, 4, 8))
    ),
    "addmv": (
        lambda z, x, y: torch.addmv(z, x, y) + torch.addmv(z, x, y, beta=0), lambda: (rand(8), rand(8, 8), rand(8))
    ),
    "first_row_of_clone": (first_row_of_clone, lambda: (grad(64, 64),)),
    "rows_of_zeros": (rows_of_zeros, lambda: (grad(8, 64),)),
    "two_writes": (two_writes, lambda: (grad(8, 8),)),
    "data_replaced": (data_replaced, lambda: (rand(8, 8), grad(8, 8))),
    "view_of_reshape": (view_of_reshape, lambda: (grad(2, 4),)),
    "view_write": (view_write, lambda: (grad(2, 4),)),
    "rows_swapped": (rows_swapped, lambda: (grad(2, 4),)),
    "write_into_view_of_view": (write_into_view_of_view, lambda: (grad(6, 7),)),
    "two_views": (two_views, lambda: (grad(6, 6),)),
    "out_argument": (out_argument, lambda: (rand(64, 64), rand(64, 64))),
    "max": (lambda x: x.max(-1).values, lambda: (grad(64, 100),)),
    "topk": (lambda x: x.topk(4)[0].softmax(-1), lambda: (grad(64, 100),)),
    "gather": (lambda x, i: x.sin().gather(1, i), lambda: (grad(64, 100), ints(100, 64, 4))),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x.sin(), i, 1), lambda: (grad(64, 100), ints(100, 64, 4))),
    "index": (lambda x, i: x[i].sin(), lambda: (grad(64, 100), ints(64, 7))),
    "masked_fill": (lambda x, m: x.masked_fill(m, 0).sin(), lambda: (grad(64, 64), rand(64, 64) > 0)),
    "select": (lambda x: x[:, 3].sin(), lambda: (grad(64, 64),)),
    "slice": (lambda x: x[8:16].sin(), lambda: (grad(64, 64),)),
    "unbind": (lambda x: sum(t.sin() for t in x.unbind(0)), lambda: (grad(4, 64),)),
    "cat": (lambda a, b: torch.cat([a.sin(), b], 1).exp(), lambda: (grad(8, 16), grad(8, 16))),
    "cross_entropy": (F.cross_entropy, lambda: (grad(64, 100), ints(100, 64))),
    "cross_entropy, smoothed": (
        lambda x, t: F.cross_entropy(x, t, ignore_index=3, label_smoothing=0.1), lambda: (grad(64, 100), ints(100, 64))
    ),
    "cross_entropy, weighted": (
        lambda x, t, w: F.cross_entropy(x, t, w), lambda: (grad(64, 100), ints(100, 64), torch.rand(100))
    ),
    "nll_loss": (lambda x, t: F.nll_loss(x.log_softmax(1), t), lambda: (grad(64, 100), ints(100, 64))),
    "cross_entropy of images": (F.cross_entropy, lambda: (grad(2, 5, 8, 8), ints(5, 2, 8, 8))),
    "binary_cross_entropy": (F.binary_cross_entropy_with_logits, lambda: (grad(64), torch.rand(64))),
    "kl_div": (
        lambda a, b: F.kl_div(a.log_softmax(1), b.softmax(1), reduction="batchmean"), lambda: (grad(8, 16), grad(8, 16))
    ),
    "huber_loss": (F.huber_loss, lambda: (grad(64), rand(64))),
    "triplet_margin_loss": (F.triplet_margin_loss, lambda: (grad(8, 16), grad(8, 16), grad(8, 16))),
    "multi_margin_loss": (F.multi_margin_loss, lambda: (grad(8, 16), ints(16, 8))),
    "embedding": (lambda i: MODULES["embedding"](i).sin(), lambda: (ints(1000, 8, 5),)),
    "embedding_bag": (lambda i: MODULES["embedding_bag"](i).sin(), lambda: (ints(1000, 8, 5),)),
    "lstm_cell": (lambda x: MODULES["lstm_cell"](x)[0], lambda: (grad(2, 16),)),
    "gru_cell": (lambda x: MODULES["gru_cell"](x), lambda: (grad(2, 16),)),
    "batch_norm": (lambda x: MODULES["batch_norm"](x).relu(), lambda: (grad(8, 64),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (64,), w, b), lambda: (grad(8, 64), grad(64), grad(64))),
    "group_norm": (lambda x: F.group_norm(x, 4).relu(), lambda: (grad(2, 8, 4, 4),)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (64,), w), lambda: (grad(8, 64), grad(64))),
    "attention_layer": (lambda x: MODULES["attention_layer"](x, x, x)[0], lambda: (grad(2, 8, 32),)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda: (grad(2, 4, 16, 8), grad(2, 4, 16, 8), grad(2, 4, 16, 8)),
    ),
    "dropout": (lambda x: F.dropout(x.sin(), 0.3), lambda: (grad(64, 64),)),
    "checkpoint": (checkpoint, lambda: (grad(8, 8), grad(8, 8))),
    "max_pool2d": (lambda x: F.max_pool2d(x.relu(), 2), lambda: (grad(2, 4, 16, 16),)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x.relu(), 2), lambda: (grad(2, 4, 16, 16),)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x.relu(), 3), lambda: (grad(2, 4, 16, 16),)),
    "global_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x.relu(), 1), lambda: (grad(2, 4, 16, 16),)),
    "enlarge": (lambda x: F.interpolate(x, scale_factor=2).sin(), lambda: (grad(2, 4, 8, 8),)),
    "enlarge, bilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear").sin(), lambda: (grad(2, 4, 8, 8),)
    ),
    "shrink": (lambda x: F.interpolate(x, size=(3, 5)).sin(), lambda: (grad(2, 4, 16, 16),)),
    "shrink, bilinear": (
        lambda x: F.interpolate(x, size=(3, 5), mode="bilinear").sin(), lambda: (grad(2, 4, 16, 16),)
    ),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), lambda: (grad(2, 4, 8, 8), grad(2, 8, 8, 2))
    ),
    "reflection": (lambda x: F.pad(x.relu(), (1, 1, 1, 1), mode="reflect"), lambda: (grad(2, 4, 8, 8),)),
    "pad": (lambda x: F.pad(x.sin(), (1, 1)), lambda: (grad(8, 16),)),
    "pad and crop": (lambda x: F.pad(x.sin(), (-3, 5, 2, -1)), lambda: (grad(4, 8, 16),)),
    "shrink between corners": (
        lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", align_corners=True).sin(),
        lambda: (grad(2, 4, 9, 16),)
    ),
    "shrink by a scale": (lambda x: F.interpolate(x, scale_factor=0.3).sin(), lambda: (grad(2, 4, 16),)),
    "unfold": (lambda x: F.unfold(x, 3).sin(), lambda: (grad(2, 4, 8, 8),)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x.sin(), 2), lambda: (grad(2, 4, 8, 8),)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1).relu(), lambda: (grad(2, 4, 8, 8), grad(8, 4, 3, 3))),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2).relu(), lambda: (grad(2, 4, 8, 8), grad(4, 8, 3, 3))
    ),
    "cumsum": (lambda x: x.sin().cumsum(-1), lambda: (grad(8, 64),)),
    "cumprod": (lambda x: x.cumprod(-1), lambda: (grad(8, 64),)),
    "roll": (lambda x: x.roll(3, 1).sin(), lambda: (grad(8, 64),)),
    "flip": (lambda x: x.flip(1).sin(), lambda: (grad(8, 64),)),
    "repeat_interleave": (lambda x: x.repeat_interleave(3, 1).sin(), lambda: (grad(8, 64),)),
    "tril": (lambda x: x.sin().tril(), lambda: (grad(64, 64),)),
    "triu_": (lambda x: x.sin().triu_(1), lambda: (grad(48, 64),)),
    "diag": (lambda x: torch.diag(x).sin(), lambda: (grad(64, 64),)),
    "diag_embed": (lambda x: torch.diag_embed(x.sin()), lambda: (grad(8, 16),)),
    "trace": (lambda x: x.sin().trace(), lambda: (grad(64, 48),)),
    "narrow_copy": (lambda x: torch.narrow_copy(x, 1, 0, 50).sin(), lambda: (rand(32, 100),)),
    "diagonal_copy": (lambda x: torch.diagonal_copy(x, 1).sin(), lambda: (rand(32, 100),)),
    "one_hot": (lambda i: F.one_hot(i, 50).float() * 2, lambda: (ints(50, 64),)),
    "bucketize": (lambda x, b: torch.bucketize(x, b) * 2, lambda: (rand(64), rand(1000).sort()[0])),
    "bucketize, few": (lambda x, b: torch.bucketize(x, b) * 2, lambda: (rand(8), rand(1000).sort()[0])),
    "searchsorted": (lambda b, x: torch.searchsorted(b, x) * 2, lambda: (rand(8, 100).sort(-1)[0], rand(8, 4))),
    "histc": (lambda x: torch.histc(x, 10) * 2, lambda: (rand(640),)),
    "cdist": (lambda a, b: torch.cdist(a, b).exp(), lambda: (grad(8, 4), grad(9, 4))),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b).relu(), lambda: (grad(2, 4, 8), grad(2, 8, 4))),
    "standardize": (lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5), lambda: (grad(64, 16),)),
    "normalize": (lambda x: F.normalize(x, dim=-1), lambda: (grad(8, 64),)),
    "cosine_similarity": (F.cosine_similarity, lambda: (grad(8, 64), grad(8, 64))),
    "amax": (lambda x: x.amax(-1), lambda: (grad(8, 64),)),
    "median": (lambda x: x.median(-1).values, lambda: (grad(8, 64),)),
    "prod": (lambda x: x.prod(-1), lambda: (grad(8, 64),)),
    "index_select": (lambda x, i: x.index_select(1, i).sin(), lambda: (grad(8, 64), ints(64, 4))),
    "scatter_reduce": (
        lambda x, i: torch.zeros(5).scatter_reduce(0, i, x.sin(), "amax"), lambda: (grad(64), ints(5, 64))
    ),
    "index_put": (
        lambda x, i, v: x.index_put((i,), v.sin(), accumulate=True), lambda: (grad(64, 8), ints(64, 5), grad(5, 8))
    ),
    "masked_scatter": (
        lambda x, m, s: x.masked_scatter(m, s.sin()), lambda: (grad(8, 8), rand(8, 8) > 0, grad(64))
    ),
    "expand": (lambda x, b: (x * b.expand(64, 64)).sin(), lambda: (grad(64, 64), grad(64))),
    "narrow": (lambda x: x.narrow(1, 2, 8).contiguous().sin(), lambda: (grad(8, 64),)),
    "chunk": (lambda x: torch.cat([t.sin() for t in x.chunk(4, 1)][::-1], 1), lambda: (grad(8, 64),)),
    "unsafe_split": (lambda x: [t * 2 for t in torch.unsafe_split(x, 3)], lambda: (grad(9, 8),)),
    "unsafe_chunk": (lambda x: [t * 2 for t in torch.unsafe_chunk(x, 3)], lambda: (rand(9, 8),)),
    "transpose": (lambda x: x.t().contiguous().sin(), lambda: (grad(64, 32),)),
    "curvature": (
        lambda x, v: torch.func.jvp(torch.func.grad(lambda a: (a.cosh() * a).sum()), (x,), (v,))[1],
        lambda: (rand(16), rand(16)),
    ),
    "jacobian of a Jacobian": (
        lambda x: torch.func.jacfwd(torch.func.jacrev(lambda a: (a.sigmoid() ** 2).sum()))(x), lambda: (rand(5),)
    ),
    "sgn": (torch.sgn, lambda: (grad(8, 8),)),
}  # fmt: skip

"""Functions of a module that reach objects of another one, in the ways that programs do."""

from __future__ import annotations

import reached_parts as parts
import torch
from reached_parts import NOTHING_GIVEN, net, tied


def direct(x: torch.Tensor) -> torch.Tensor:
    return parts.net(x)


def converted(x: torch.Tensor) -> torch.Tensor:
    return parts.net(x.to(parts.net.inner.weight.dtype))


def imported(x: torch.Tensor) -> torch.Tensor:
    return net(x)


def both(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if parts.net is net and parts.table["first"] is net else x.cos()


def weights(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if bool((tied.inner.weight == 0.5).all()) else x.cos()


def frozen(x: torch.Tensor) -> torch.Tensor:
    return tied.inner(x)


def same_memory(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if net.inner.weight is tied.inner.weight else x.cos()


def tensor(x: torch.Tensor) -> torch.Tensor:
    return x * parts.weight


def namespace(x: torch.Tensor) -> torch.Tensor:
    return getattr(torch, parts.cfg.act)(x)


def of_a_class(x: torch.Tensor) -> torch.Tensor:
    return getattr(torch, parts.Choice.act)(x)


def called(x: torch.Tensor) -> torch.Tensor:
    return parts.choice(x)


def of_an_instance(x: torch.Tensor) -> torch.Tensor:
    return getattr(torch, parts.choice.act)(x) if isinstance(parts.choice, parts.Choice) else x.tan()


def function(x: torch.Tensor) -> torch.Tensor:
    return parts.step(x)


def closure(x: torch.Tensor) -> torch.Tensor:
    return parts.closed(x)


def within_no_grad(x: torch.Tensor) -> torch.Tensor:
    return parts.quiet(x)


def default(x: torch.Tensor) -> torch.Tensor:
    return parts.scaled(x)


def sentinel(x: torch.Tensor) -> torch.Tensor:
    return parts.filled(x, NOTHING_GIVEN)


def late(x: torch.Tensor) -> torch.Tensor:
    from reached_parts import cfg

    return getattr(torch, cfg.act)(x)


def by_name(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) if hasattr(parts, "flag") else torch.cos(x)


def locked(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if parts.lock is not None else x.cos()


def of_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x)

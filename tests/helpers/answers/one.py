"""Answers to the exercises of lesson 1."""

from __future__ import annotations

import torch

from .common import Made, Mistake, halved, loops

RIGHT: dict[str, list[Made]] = {
    "1.1": [loops, lambda x: (x.sin() + x.cos() - x.tanh() * x.exp()).relu()],
    "1.2": [lambda x: torch.relu(x @ x), lambda x: x.sin() @ x, lambda x: torch.sort(x * 2)[0]],
    "1.3": [lambda x: 3 * x, lambda x: -x, lambda x: x + 2 * x],
}

MISLED: dict[str, list[Mistake]] = {
    "1.1": [
        (lambda x: torch.sin(x), "1 operator of eager PyTorch; required: at least 6", ""),
        (
            lambda x: torch.sort(x)[0].sin().cos().exp().tanh().sqrt(),
            "2 launches",
            "A library call is a launch",
        ),
        (lambda x: loops(torch.ones(3)), "It uses none of its inputs", ""),
        (halved, "1 graph break", "nothing is fused across"),
        (
            lambda x: loops(x) if torch.compiler.is_compiling() else x.sin(),
            "operators of eager PyTorch: not known",
            "",
        ),
    ],
    "1.2": [
        (lambda x: (torch.sin(x), torch.cos(x)), "1 launch; required", "several results, need not be"),
        (lambda x: x.sin().cos(), "1 launch; required", "All of it became one loop"),
        (lambda x: torch.softmax(x, 1), "1 launch; required", "were fused into one group"),
        (lambda x: x / x.sum(), "1 launch; required", "Several groups were not fused"),
        (lambda x: (x.sum(0), x.sum(1)), "1 launch; required", "Several groups were not fused"),
        (lambda x: (x.sin(), x[:3].cos()), "1 launch; required", "Several groups were not fused"),
        (lambda x: torch.softmax(x, 0), "1 launch; required", "Several groups were not fused"),
        (lambda x: x @ x, "1 launch; required", "What else could be a launch?"),
        (lambda x: x @ x + x, "1 launch; required", "multiplies and adds in one go"),
        (lambda x: x.addmm(x, x), "1 launch; required", "multiplies and adds in one go"),
        (halved, "1 graph break; required", "to do it inside one graph"),
    ],
    "1.3": [
        (lambda x: torch.sin(x), "1 value saved for the backward", "the backward needs it, so it is saved"),
        (lambda x: x + 1, "0 ATen operators in the backward", "it passes the gradient on unchanged"),
        (lambda x: x.sum(), "0 ATen operators in the backward", "it only repeats the gradient"),
        (lambda x: x.detach() * 3, "0 ATen operators in the backward", "or there is no backward"),
    ],
}

"""Lesson 15: your own backend."""

from __future__ import annotations

from typing import Any

from ..exercise import AT_LEAST, AT_MOST, EXACTLY, MATRIX, UNBROKEN, Exercise, Input, Need, Question, Slip

QUESTIONS = (
    Question(
        "15.given",
        "sin(x) ** 2 + cos(x) ** 2 is compiled: how many calls are in the graph that the backend gets?",
        (("calls", "dynamo_calls"),),
    ),
    Question(
        "15.dead",
        "A backend puts ones_like(x) in the place of the sum in sin(x) ** 2 + cos(x) ** 2, and does no more: how many "
        "operators does its graph run?",
        (("operators", "eager_ops"),),
    ),
)


def doubled(x: Any) -> Any:
    """Apply relu and neg twice each, where relu alone would do."""
    import torch

    return torch.relu(torch.relu(x)) + torch.neg(torch.neg(x))


def added(x: Any) -> Any:
    """Return a matrix product plus x."""
    import torch

    return torch.add(torch.mm(x, x), x)


EXERCISES = (
    Exercise(
        "15.1",
        "Write a function of one matrix of 64 × 64 numbers for which a backend gets one call, and that is at "
        "least five ATen operators after AOTAutograd.",
        MATRIX,
        (Need("dynamo_calls", EXACTLY, 1), Need("aten_ops", AT_LEAST, 5), *UNBROKEN),
        (
            Slip(
                (Need("dynamo_calls", AT_LEAST, 2),),
                "Each torch function that you call is a call in the graph that a backend gets.",
            ),
            Slip(
                (Need("aten_ops", AT_MOST, 4),),
                "This operator has few steps. Which one is a longer formula?",
            ),
        ),
        (
            "Many functions of torch.nn.functional are one call to Dynamo, and a formula to AOTAutograd.",
            "An activation, or a normalization along a row.",
        ),
        "def f(x):\n    return torch.nn.functional.gelu(x)",
    ),
    Exercise(
        "15.2",
        "Write a function that gets the graph module of `doubled`, as a backend does, and returns a function that "
        "computes the same and runs exactly two operators.",
        (Input((1000,)),),
        (Need("eager_ops", EXACTLY, 2), *UNBROKEN),
        (
            Slip(
                (Need("eager_ops", AT_LEAST, 5),),
                "All operators still run. Did you generate the code again from the changed graph?",
            ),
            Slip(
                (Need("eager_ops", AT_LEAST, 3),),
                "One of the pairs is still there, or there are nodes whose results nobody uses.",
            ),
        ),
        (
            "Two relu are the same as one. The users of the outer node can use the inner one instead.",
            "replace_all_uses_with changes the users, eliminate_dead_code removes unused nodes, and recompile "
            "generates the code again.",
        ),
        "def f(module):\n"
        "    for node in module.graph.nodes:\n"
        "        if node.target is torch.relu and node.args[0].target is torch.relu:\n"
        "            node.replace_all_uses_with(node.args[0])\n"
        "        if node.target is torch.neg and node.args[0].target is torch.neg:\n"
        "            node.replace_all_uses_with(node.args[0].args[0])\n"
        "    module.graph.eliminate_dead_code()\n"
        "    module.recompile()\n"
        "    return module.forward",
        doubled,
        program=doubled,
    ),
    Exercise(
        "15.3",
        "Write a function that gets the graph module of `added`, as a backend does, and returns a function that "
        "computes the same and runs exactly one operator.",
        MATRIX,
        (Need("eager_ops", EXACTLY, 1), *UNBROKEN),
        (
            Slip(
                (Need("eager_ops", AT_LEAST, 2),),
                "The product and the addition still run one after the other. Which operator does both?",
            ),
        ),
        (
            "torch.addmm adds a product to a tensor.",
            "Arguments are in node.args: the addition's first argument is the node of the product, and the product's "
            "arguments are the two matrices.",
        ),
        "def f(module):\n"
        "    for node in module.graph.find_nodes(op='call_function', target=torch.add):\n"
        "        product, other = node.args\n"
        "        with module.graph.inserting_before(node):\n"
        "            both = module.graph.call_function(torch.addmm, (other, *product.args))\n"
        "        node.replace_all_uses_with(both)\n"
        "    module.graph.eliminate_dead_code()\n"
        "    module.recompile()\n"
        "    return module.forward",
        added,
        program=added,
    ),
)

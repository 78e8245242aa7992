"""Slips and hints of the practice lessons, from 14 on, in Chinese."""

from __future__ import annotations

Told = tuple[tuple[str, ...], tuple[str, ...]]
"""Sentences for mistakes, and hints, of one exercise."""

VALUE_NEEDED = "函数运行时，Python 仍然要知道一个值。把值留在张量里，用张量的算子来说该怎么处理它。"
"""A graph break where Python asks a tensor for its value."""

EXERCISES: dict[str, Told] = {
    "14.1": (
        (VALUE_NEEDED,),
        (
            "没有小于 0 的数的时候，该减去什么？",
            "减去最小值，但从不超过 0；除以最大值，但从不小于 1：有一个算子给张量设限。",
        ),
    ),
    "14.2": (
        ("前向运行的内核不止一个。函数自己取随机数，就多一次启动。",),
        (
            "随机数已经在 x[1] 里了。剩下的是一次比较和一次选择。",
            "torch.where 逐个数地选择。",
        ),
    ),
    "14.3": (
        (
            "给 Python 的数结束了 Dynamo 的图，而每个图单独录制。",
            "仍有东西在 CPU 上运行，或者要复制到那里：录制到它前面就停了。",
        ),
        (
            "谁需要在 CPU 上知道最大的数？",
            "只有一个数的张量，可以就地去除一个矩阵。",
        ),
    ),
}
"""By the key of the exercise, in the order of the lessons."""

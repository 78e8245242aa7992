"""Slips and hints of exercise 12.4 and of the practice lessons, from 14 on, in Chinese."""

from __future__ import annotations

ExerciseTexts = tuple[tuple[str, ...], tuple[str, ...]]
"""Sentences for mistakes, and hints, of one exercise."""

VALUE_NEEDED = "函数运行时，Python 仍然要知道一个值。把值留在张量里，用张量的算子来说该怎么处理它。"
"""Slip: a graph break because Python reads the value of a tensor."""

EXERCISES: dict[str, ExerciseTexts] = {
    "12.4": (
        (
            VALUE_NEEDED,
            "每个头都有自己的两次乘法。许多个里相同的，能不能写成一个算子？",
            "仍有大的东西经过内存：找一找两次启动之间最大的张量。",
        ),
        (
            "中间的那个数谁需要？四个头是四次调用，还是一个批量？",
            "`q.unflatten(-1, (4, 16)).transpose(1, 2)` 把头变成一个批量。"
            "第 5 课有一个做完整个注意力的算子，第 10 课讲它不存什么。",
            "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)，然后原路返回："
            "transpose(1, 2).flatten(2)。",
        ),
    ),
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
    "15.1": (
        (
            "你写的每一次 torch 函数调用，在后端拿到的图里都是一次调用。",
            "这个算子没有多少步。哪一个要用好几步的公式来定义？",
        ),
        (
            "torch.nn.functional 里许多函数，对 Dynamo 是一次调用，对 AOTAutograd 是一个公式。",
            "激活函数，或者在一行上做的归一化。",
        ),
    ),
    "15.2": (
        (
            "全部算子仍在运行。调用的代码是不是用改过的图重新生成的？",
            "还有一对没有换掉，或者留下了谁也不用的节点。",
        ),
        (
            "两个 relu 和一个 relu 一样。外面那个节点的用户可以改用里面的那个。",
            "replace_all_uses_with 换掉用户，eliminate_dead_code 去掉谁也不用的，recompile 重新生成代码。",
        ),
    ),
    "15.3": (
        ("乘积和加法仍然分开运行。哪一个算子把两样都做了？",),
        (
            "torch.addmm 把乘积加到一个张量上。",
            "图里的参数在 node.args 里：加法的首个参数是乘积的节点，乘积的参数是两个矩阵。",
        ),
    ),
    "16.1": (
        (
            "你自己的内核总是单独一次启动，前后的东西也各是一次启动。",
            "给 Inductor 的不止一个循环。逐个数的算子才会变成一次启动。",
        ),
        (
            "乘以 2 一定要用自己的内核吗？",
            "用 torch 的算子写，全都逐个数地做。",
        ),
    ),
    "16.2": (
        (
            "没有启动 `doubled` 的内核，或者启动了不止一次。",
            "你的内核前面有一个内核，后面也有一个。后面的能不能在它前面做？",
        ),
        (
            "先加倍再加 1，和先加 0.5 再加倍是一样的。",
            "大于 0 的数加倍之后还大于 0：所以 relu 也可以在前面做。",
        ),
    ),
    "16.3": (
        (
            "没有启动 `doubled` 的内核，或者启动了不止一次。",
            "有另一个内核在复制：`doubled` 要的数在内存里要一个挨一个。转置什么时候不用复制？",
        ),
        (
            "转置本身不搬运任何东西：它只是另一种读法。",
            "把加倍之后的矩阵转置。",
        ),
    ),
}
"""Texts by the key of the exercise, in lesson order."""

"""The story in Chinese. Texts of the program and the compiler are not translated."""

from __future__ import annotations

import re

from compile_lens.record.figures import AtLeast, Figure

from ..words.quantities import amount
from .model import Language

SENTENCES: dict[str, str | tuple[str, str]] = {
    # How it ended.
    "title": "{function} 的编译故事",
    "whole": "整个调用都被编译，得到 {graphs}。",
    "partly": "这次调用没有全部被编译；编译了的部分得到 {graphs}。",
    "program": "整个程序里，有 {graphs}到达了这个后端。以 eager 方式运行的部分没有被看到：{reason}。",
    "as_far": "有 {graphs}到达了编译器。是否有部分以 eager 方式运行，没有被看到：{reason}。",
    "nothing": "没有任何部分被编译：{reason}。",
    "unsaid": "记录里没有任何编译，也没有写明原因。",
    "failed": "它在 {stage_key} 阶段以错误结束：{type}：{message}。",
    "failed_at": "当时程序运行到 {place}。",
    "advised": "编译器的建议：{hint}。",
    "avoided": "避免的办法：{hint}。",
    "before_it": "以下是出错之前看到的内容。",
    "breaks": ("有 {n}（graph break），即 Dynamo 无法追踪的位置。",) * 2,
    "breaks_seen": ("至少有 {n}（graph break），即 Dynamo 无法追踪的位置。",) * 2,
    "breaks_at": ("有 {n}（graph break），在 {places} Dynamo 无法追踪的位置。",) * 2,
    "breaks_seen_at": ("至少有 {n}（graph break），在 {places} Dynamo 无法追踪的位置。",) * 2,
    "recompiles": ("发生了 {n}（recompile）。",) * 2,
    "target": "代码是为 {device} 生成的。",
    "modelled_device": "代码是为 {device} 生成的。机器里没有这个设备，由设备模型代替。",
    # What Python did.
    "left": "Dynamo 跳过了 {function}（{place}），它以 eager 方式运行：{reason}。",
    "left_often": "Dynamo 跳过了 {function}（{place}），它以 eager 方式运行，共 {n}：{reason}。",
    "rest": "{function} 的剩余部分（{place}）以 eager 方式运行：{reason}。",
    "limit": "{function} 达到了重新编译的上限（{place}）：不符合任何变体的调用以 eager 方式运行。",
    "never": "{function} 没有运行过，无论编译与否（{place}）：{reason}。",
    "skip": "有一部分没有被编译，记录里称之为“{kind}”：{function}（{place}）：{reason}。",
    # Dynamo.
    "read": "Dynamo 读取了 {function}（{place}）的字节码，记下 {n}。",
    "read_nowhere": "Dynamo 读取了 {function} 的字节码，记下 {n}。",
    "lines": "它们来自 {n}：{places}。",
    "line": "它来自 {n}：{places}。",
    "lineless": "{n}找不到对应的 Python 代码行。",
    "functions": "此外还有每次调用 autograd.Function 的前向和反向，其中另有 {n}。",
    "checkpoints": "此外还有每个检查点（checkpoint）所运行的部分，其中另有 {n}。",
    "bodies": "此外还有高阶算子（分支、循环等）的子图，其中另有 {n}。",
    "again": "这是一次重新编译。",
    "guard_failed": "旧的变体有这条守卫（guard）不成立：{guard}。",
    "recompile_remedy": "避免的办法：{clause}。",
    "dynamic": "有一个维度是符号：{source}，记作 {symbol}。",
    "dynamic_seen": "有一个维度是符号：{source}，记作 {symbol}，这次是 {n}。",
    "number": "有一个数是符号：{source}，记作 {symbol}。",
    "asked": "守卫（guard）对它的要求：{conditions}。",
    "asked_nothing": "没有守卫（guard）对它提出要求。",
    "asked_unknown": "记录里没有写明守卫（guard）对它的要求。",
    "guards": ("{n}全部成立时，这份代码才会被再次使用；这些条件叫守卫（guard）。",) * 2,
    "break": "图在 {place} 中断，由 Python 接手：{reason}。",
    "break_nowhere": "图在这里中断，由 Python 接手：{reason}。",
    "ended": "它以“{kind}”结束：{reason}。",
    "empty": "没有记录到它的任何阶段。",
    # Passes.
    "merged": ("在到达 {stage_key} 阶段之前，{n}与已有的调用计算相同的值，被合并：{names}。",) * 2,
    "rewritten": "在到达 {stage_key} 阶段之前，Inductor 的 pass 做了 {n}。",
    "patterns": "匹配到 {n}：{names}。",
    "miss": "有一个模式差一点匹配：{miss}。",
    # AOTAutograd.
    "joint": "AOTAutograd 用更小的算子把前向和反向写进一张联合图（joint graph）：{n}。",
    "derivatives": "其中 {n} 次由自动微分产生，用于求导。",
    "cut": "这张图被切成两半：前向 {forward}，反向 {backward}。",
    "one_graph": "只有一张图，{n}。",
    "saved": "前向为反向保存 {n}：{names}。",
    "saved_none": "前向不为反向保存任何值。",
    "keeps_free": "保存的值就在输入和结果里，不另占内存。",
    "keeps": "除输入和结果之外，保存的值占用 {bytes}。",
    "default": "AOTAutograd 默认的切分器（partitioner）会保存 {n}：{names}。",
    "recomputed": "两半都计算 {names}：反向把这 {n}重新计算一遍。",
    # Inductor.
    "handed": "交给 Inductor 的有 {n}。",
    "eager": "如果不编译，PyTorch 在这里会派发 {n}。",
    "idle": "其中没有需要计算的内容。",
    "lowered": "下降（lowering）之后得到 {n}。",
    "externs": ("其中 {n} 个是库调用，账本把它们也算作循环。",) * 2,
    "extern": "它是一次库调用，账本把它也算作循环。",
    "steered": ("其中 {n} 个决定运行哪些子图，账本把它们也算作循环。",) * 2,
    "inlined": ("{n}被内联：在读取它的值的地方直接计算，不占缓冲区：{names}。",) * 2,
    "buffered": "{n}得到了缓冲区（{names}）：{clause}。",
    "parted": "{node} 在 {n}中计算，每个循环算出一部分或最终结果：{names}。",
    "one_loop": "只有一个循环，没有可以与它融合的对象：它就是唯一的组。",
    "unfused": "没有发生融合：仍是 {n}。",
    "fused": "融合（fusion）把 {loops}合并成 {n}。",
    "groups": ("融合之后有 {n}。",) * 2,
    "apart": "{first} 和 {second} 没有融合：{clause}",
    "apart_more": "另有 {n}也是如此。",
    "to_try": "{names} 可以试一试：{clause}",
    "kernels": "生成的代码里有 {n}，语言是 {language}：{names}。",
    "calls": ("有 {n}，代码不是 Inductor 写的：{names}。",) * 2,
    "together": "{name} 分成几部分计算，分别在 {kernels} 中。",
    "computed_again": "{name} 被计算了不止一次：在 {kernels} 中。",
    "launches": "每次调用的启动次数：{n}。",
    "counts": "{groups}、{kernels}、{launches}：{clause}。",
    "peak": "同一时刻最多占用 {bytes}。",
    "reused": ("{n}沿用了其他缓冲区的内存。",) * 2,
    "traffic": "每个 ATen 算子单独运行要搬运 {before}；融合之后搬运 {after}。",
    "traffic_eager": "eager PyTorch 的算子要搬运 {before}；融合之后搬运 {after}。",
    "moved_before": "每个 ATen 算子单独运行要搬运 {bytes}。",
    "moved_after": "融合之后搬运 {bytes}。",
    "moved_eager": "eager PyTorch 的算子要搬运 {bytes}。",
    "unknown": "未知：{note}。",
    "missing": "没有看到 {names} 阶段：{reason}。",
    "missing_many": "没有看到这些阶段：{names}。原因：{reason}。",
    "none": "没有 {names} 阶段：{reason}。",
    "none_many": "没有这些阶段：{names}。原因：{reason}。",
    # In all.
    "total": "每张图调用一次，eager PyTorch 需要 {n}，编译后是 {launches}。",
    "some": "{graphs}中有 {known} 张知道以下数字。",
    "total_bytes_eager": "eager PyTorch 的算子的字节数：{before}；融合之后：{after}。",
    "total_bytes": "每个 ATen 算子单独运行的字节数：{before}；融合之后：{after}。",
    "modelled": "字节数是按张量大小推算的，不是测量值。",
    "generated only": "代码只是生成出来，没有构建，也没有运行。",
    "built": "代码已经构建，但没有运行。",
    "ran": "代码已经构建并运行。",
    "note": "捕获时的备注：{note}。",
}

_NOUNS = {
    "graph": "张图",
    "break": "处图中断",
    "broken": "次图中断",
    "place": "处",
    "recompile": "次重新编译",
    "call": "次调用",
    "line": "行代码",
    "condition": "个条件",
    "change": "处改动",
    "pattern": "个模式",
    "value": "个值",
    "operator": "个算子",
    "aten": "个做计算的 ATen 算子",
    "loop": "个循环",
    "group": "个组",
    "pair": "对组",
    "kernel": "个内核",
    "library": "次库调用",
    "launch": "次启动",
    "buffer": "个缓冲区",
    "time": "次",
    "counts.again": "个内核启动了不止一次",
    "counts.gathered": "个内核在一次启动中计算多个组",
    "counts.parted": "个组分在多个内核中",
    "counts.beside": "个内核不属于任何组",
    "counts.unseen": "个组不知道在哪个内核中",
}

NOUNS = {key: (noun, noun) for key, noun in _NOUNS.items()}
"""Nouns with their measure words; singular and plural are the same in Chinese."""

WORDS = {
    "recompile.mark": "在第一次调用之前用 torch._dynamo.mark_dynamic(tensor, dim) 标记这个维度",
    "recompile.small": "不要传大小为 0 或 1 的维度，torch 为这样的大小另编译一个变体",
    "recompile.number": "用 torch.compile(dynamic=True)，它的第一个变体就能接受其他值",
    "recompile.kind": "每次都用同一种张量调用",
    "after": "{} 第 {} 行之后",
    "dynamo": "Dynamo",
    "autograd": "AOTAutograd",
    "forward": "前向",
    "backward": "反向",
    "inference": "推理",
    "total": "总计",
    "cpp": "C++",
    "triton": "Triton",
    "metal": "Metal",
    "realised.output": "图的结果必须写入内存",
    "realised.reduction": "归约、扫描和排序的结果不会为每个读取者重算一遍",
    "realised.extern": "有库调用、模板或程序自己的 Triton kernel 在内存中读写它",
    "realised.many readers": "它被多次读取，而且太大，不值得为每个读取者重算一遍",
    "realised.heavy": "它被多次读取，而且含有 Inductor 不会重算的运算",
    "realised.many operations": "表达式的运算太多，不能继续内联",
    "realised.many reads": "表达式读取的缓冲区太多，不能继续内联",
    "realised.concat": "拼接的各部分直接写到各自的位置",
    "realised.mutation": "有内存被原地改写",
    "realised.hint": "某个算子的 lowering 要求如此",
    "realised.layout": "要求特定的步长（stride）",
    "realised.other": "原因是这个版本不认识的",
    "apart.extern": "其中一个是库调用或手写内核：它的循环不是 Inductor 写的，无法往里面添加运算。",
    "apart.nop": "其中一个本身不做计算（视图、预留内存、库调用的某个结果）：没有可以融合的循环，也省不下什么。",
    "apart.order": "尝试的顺序反了：第二个必须先于第一个运行。",
    "apart.different devices": "它们在不同的设备上运行，而一个内核只在一个设备上运行。",
    "apart.stream": "它们在不同的流（stream）上运行，或使用不同的内存池。",
    "apart.different sizes": "它们的循环次数不同，而一个循环的次数是固定的。",
    "apart.different loops": "它们遍历的元素个数相同，但循环的嵌套或切分方式不同。",
    "apart.reduction sizes": "至少有一个是归约，归约内外的循环与另一个不相配。",
    "apart.reduction barrier": "第二个需要归约的最终结果，而第一个要等整个循环结束才有。",
    "apart.split reduction": (
        "它们是同一个归约的两步；Inductor 把它拆开，让设备更多的部分同时工作，第二步把第一步的所有结果加起来。"
    ),
    "apart.outer loop": "其中一个已经与别的循环只共享外层循环，C++ 后端不会再给这样的节点加入独立的计算。",
    "apart.no shared data": "它们没有共同的数据，融合也省不下访存。",
    "apart.little shared data": "它们共同的数据太少，Inductor 认为不值得融合。",
    "apart.different indices": "两者访问同一个缓冲区，但在循环的同一步里访问的元素或顺序不同。",
    "apart.between": "有一步需要第一个的结果，又被第二个需要，必须在两者之间运行。",
    "apart.cycle": "融合之后两者会互相等待：此前的融合已经让一个依赖于另一个。",
    "apart.too large": "内核会变得过大：循环或缓冲区超过 Inductor 的上限。",
    "apart.peak memory": "融合之后张量要存活更久，同一时刻需要更多内存。",
    "apart.mutation": "其中一个改写了另一个要读的缓冲区，或在原地累加：必须先做完一个，再做另一个。",
    "apart.template": "其中一个是模板（手工调优的矩阵乘、卷积或注意力），只能接纳某些逐元素运算。",
    "apart.foreach": "其中一个是一组同时运行的操作（foreach），其成员与另一个不相配。",
    "apart.scan": "其中一个是分块的扫描（scan），不接纳归约。",
    "apart.tiling": "它们希望的分块形状不同，而一个内核只有一种形状。",
    "apart.steering": "其中一个决定运行哪些子图或运行几次（cond、while_loop）：子图的循环单独生成，外面的不会并入。",
    "apart.combined reductions": "其中一个已由不同顺序的归约合成，Inductor 只会再加入某些运算。",
    "apart.numerics": "融合会改变求和的顺序，而设置要求保持顺序。",
    "apart.config": "有一项设置禁止融合。",
    "apart.slower": "Inductor 试过，融合后的内核更慢，或所需寄存器超过了现有数量。",
    "apart.overtaken": "本来允许融合，但其中一个先与更合适的对象融合了。",
    "apart.backend": "后端拒绝了，没有给出原因。",
    "apart.unsaid": "Inductor 拒绝了，没有给出原因。",
    "apart.other": "Inductor 拒绝了，原因是这个版本不认识的。",
    "try.different sizes": "让两者的形状相同。",
    "try.different loops": "两者保持同一种布局和形状（中间不要 reshape 或转置）。",
    "try.reduction barrier": (
        "在最后一维上归约，这样每一行都在下一行之前完成。按别的顺序存放的数据要先转置，这会把它全部再搬运一遍。"
    ),
    "try.split reduction": (
        "设置 torch._inductor.config.split_reductions = False 得到一个循环，并测量：可能更慢。"
    ),
    "try.little shared data": ("调低 torch._inductor.config.score_fusion_memory_threshold，并测量。"),
    "try.different indices": (
        "让两者以相同的顺序访问相同的元素：两者之间不要切片、移位、gather、reshape 或转置，并在相同的维度上归约。"
    ),
    "try.too large": (
        "调高上限（max_fusion_size、cpp.max_horizontal_fusion_size、max_fusion_unique_io_buffers），并测量。"
    ),
    "try.custom": "用普通的 PyTorch 算子来写这个自定义算子，Inductor 就能融合。",
    "apart.wall": "两者之间有一次对库或手写 kernel 的调用：它必须整个在一个之后、另一个之前运行。",
    "apart.never proposed": "Inductor 没有考虑过这一对。",
    "apart.not seen": "没有看到它们未被融合的原因。",
}
"""Clauses by key, as in English."""

_PART = r"(\([^()]*\)|[\d,.]+(?: [kMGT]?B)?)"

_IN_FIGURES = (
    (_PART + r" per iteration of loop (\d+)", r"循环 \2 每次迭代 \1"),
    (_PART + " per iteration", r"每次迭代 \1"),
    (r" or ", " 或 "),
    (r" to ", " 至 "),
    (r" \(([\d,]+) of ([\d,]+) graphs\)$", r"（\2 张图中的 \1 张）"),
)
"""Patterns for the words of a figure that is not a single number, with their translations."""


def _counted(value: int | Figure | AtLeast, one: str, many: str) -> str:
    if isinstance(value, AtLeast):
        words, of, graphs = _figure(str(value)).partition("（")
        return f"{words} {many}".rstrip() + of + graphs
    return f"{int(value):,} {one}".rstrip()


def _amount(value: Figure | AtLeast) -> str:
    return _figure(amount(value))


def _figure(words: str) -> str:
    for pattern, chinese in _IN_FIGURES:
        words = re.sub(pattern, chinese, words)
    return words


def _more(some: str, left: int) -> str:
    return f"{some} 等，另有 {left:,} 个"


REASONS = {
    "nothing in this graph needs a gradient: there is no backward to join": (
        "这张图里没有需要梯度的值，也就没有反向可以联合"
    ),
    "the outputs that need a gradient alias an input: PyTorch makes those views, and their backward, outside of the "
    "graph": "需要梯度的输出是输入的别名：这些视图和它们的反向由 PyTorch 在图外产生",
    "the graph has no operation: there is nothing to lower": "图里没有运算，没有什么可以下降",
}
"""Translations of the reasons why a stage does not apply, by their English text in the record."""

CHINESE = Language(
    "zh", SENTENCES, NOUNS, WORDS, _counted, _amount, _more, separator="、", between="", reasons=REASONS
)

"""Inputs and outputs of a program: arguments, parameters and buffers with their layouts, the modes of modules, and the
results.

Sizes, strides and types come from the placeholders of Dynamo's graphs, which every record has; ``train()`` or
``eval()`` of a module comes from the guards, which name each flag that the program read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compile_lens.record.capture import Record
from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change
from compile_lens.record.graph import Graph, Tensor
from compile_lens.record.messages import all_names, plain_name, resume_line

from ..input_names import OWN, readable
from .matching import Item, Match, device
from .side import Side, matched

STAGE = "dynamo"
"""Stage whose inputs have the program's names."""

MAX_NAMED = 4
"""Most inputs or modules in one sentence."""

_FLAG = re.compile(r"(.+)\.training == (True|False)")
_SYMBOL = re.compile(r"\b[su]\d+\b")


def input_changes(sides: tuple[Side, Side]) -> Iterator[Change]:
    """Yield changes of the inputs of the two calls: arguments, layouts, parameters, modes of modules."""
    a, b = (side.capture for side in sides)
    yield from _arguments(a, b)
    yield from _tensors(sides)
    yield from _modes(a, b)


def _described(record: Record) -> list[str]:
    """Return the descriptions of the arguments in order, without names, which the program may choose."""
    return [text.partition(": ")[2] or text for text in record.inputs]


def _arguments(a: Record, b: Record) -> Iterator[Change]:
    ones, twos = _described(a), _described(b)
    for number, (one, two) in enumerate(zip(ones, twos), 1):
        if one != two:
            yield Change("settings", CHANGED, f"input {number}: {one} became {two}")
    for kind, more, start in ((REMOVED, ones[len(twos) :], len(twos)), (ADDED, twos[len(ones) :], len(ones))):
        for number, text in enumerate(more, start + 1):
            yield Change("settings", kind, f"input {number} ({text}) is {'new' if kind == ADDED else 'gone'}")


def _tensors(sides: tuple[Side, Side]) -> Iterator[Change]:
    """Yield input tensors of a graph that differ.

    Inputs of the function itself come from the caller. Inputs of a resume function, or of another function compiled
    separately, may come from anywhere: they are listed with the lines, as a consequence of other differences there.
    """
    a, b = (side.stage(STAGE) for side in sides)
    sentences: dict[tuple[str, str, bool], list[int]] = {}
    for one, two in matched(sides, (STAGE, STAGE)).pairs.items():
        if a[one].node.op not in ("placeholder", "get_attr"):
            continue
        ours = all(_is_called(side, item) for side, item in zip(sides, (a[one], b[two])))
        where = "" if ours else _where(sides[1], b[two])
        for sentence in _tensor_differences(sides, a[one], b[two]):
            sentences.setdefault((sentence, where, ours), []).append(two)
    for (sentence, where, ours), group in sentences.items():
        names = list(dict.fromkeys(called(sides[1], b[n]) for n in group))
        text = f"{all_names(names, MAX_NAMED)} {'have' if len(names) > 1 else 'has'} {sentence}{where}"
        readers = dict.fromkeys(user for n in group for user in b[n].users)
        lines = sides[1].lines(b[n].address for n in readers)
        yield Change("settings" if ours else "lines", CHANGED, text, () if ours else lines, follows=not ours)


def _tensor_differences(sides: tuple[Side, Side], a: Item, b: Item) -> Iterator[str]:
    """Yield the differences of two matched tensors. For an argument, the description of the call covers all but the
    layout."""
    for x, y in zip(a.node.outputs, b.node.outputs):
        if not _is_described(sides, a, b):
            if x.dtype != y.dtype:
                yield f"type {y.dtype}, not {x.dtype}"
            if x.shape != y.shape and not _symbolic(x, y):
                yield f"shape {_sizes(y.shape)}, not {_sizes(x.shape)}"
            if device(x.device, a.home) != device(y.device, b.home):
                yield f"device {y.device}, not {x.device}"
            if x.requires_grad != y.requires_grad:
                yield f"requires_grad {y.requires_grad}, not {x.requires_grad}"
        if not same_layout(x, y):
            words = [f"{_sizes(t.stride or ())}{layout(t)}" for t in (y, x)]
            yield f"strides {words[0]}, not {words[1]}"


def _is_described(sides: tuple[Side, Side], a: Item, b: Item) -> bool:
    """Return True if the descriptions of the two calls' arguments cover the difference of two inputs."""
    if a.order is not None and a.order == b.order and a.order[0] == "argument":
        return True
    sources = _source(sides[0], a), _source(sides[1], b)
    if all(sources) or any(_OF_A_MODULE.search(i.node.target) for i in (a, b)):
        # For an input with a known other source, an argument of the same description is no evidence.
        return all(_packed_number(side, source) is not None for side, source in zip(sides, sources))
    pairs = [pair for pair in zip(*(_described(side.capture) for side in sides)) if pair[0] != pair[1]]
    x, y = (f"{i.node.dtype}[{', '.join(map(str, i.node.shape or ()))}] " for i in (a, b))
    return any(one.startswith(x) and two.startswith(y) for one, two in pairs)


def _symbolic(*some: Tensor) -> bool:
    return any(isinstance(size, str) for t in some for size in t.shape)


def same_layout(x: Tensor, y: Tensor) -> bool:
    """Return True if two tensors have the same layout, as far as known. Strides of dimensions of size 0 or 1 do not
    count; for tensors of different sizes only the named layout, or the strides of 0 and 1, do."""
    if x.stride is None or y.stride is None or len(x.stride) != len(y.stride):
        return True
    if x.shape == y.shape and not _symbolic(x, y):
        return all(one == two for size, one, two in zip(x.shape, x.stride, y.stride) if size not in (0, 1))
    dense = [layout(t) for t in (x, y)]
    if all(isinstance(n, int) for t in (x, y) for n in (*t.shape, *(t.stride or ()))):
        return dense[0] == dense[1]
    return all(_stride_alike(one, two) for one, two in zip(_by_dimension(x), _by_dimension(y)))


def _stride_alike(one: int | str, two: int | str) -> bool:
    """Return False if two strides certainly differ: a symbol is neither 0 nor 1, but otherwise unknown."""
    if isinstance(one, int) and isinstance(two, int):
        return one == two or not {one, two} & {0, 1}
    if isinstance(one, str) and isinstance(two, str):
        return one == two
    return not {one, two} & {0, 1}


def _by_dimension(t: Tensor) -> list[int | str]:
    """Return strides with each symbol replaced by the dimension of that size, independent of symbol numbers."""
    places = {size: f"d{n}" for n, size in enumerate(t.shape) if isinstance(size, str)}
    return [
        n
        if isinstance(n, int)
        else "*".join(sorted(_SYMBOL.sub(lambda s: places.get(s[0], s[0]), n).split("*")))
        for n in t.stride or ()
    ]


def layout(t: Tensor) -> str:
    """Return a layout's name in parentheses: ``contiguous``, ``channels last``, ``transposed``; ``""`` if unnamed."""
    if t.stride is None or not all(isinstance(n, int) for n in (*t.shape, *t.stride)):
        return ""
    orders = {tuple(range(len(t.shape))): " (contiguous)"}
    if len(t.shape) in (4, 5):
        last = (0, *range(2, len(t.shape)), 1)
        orders[last] = " (channels last)"
    if len(t.shape) > 1:
        transposed = (*range(len(t.shape) - 2), len(t.shape) - 1, len(t.shape) - 2)
        orders[transposed] = " (transposed)"
    for order, name in orders.items():
        step = 1
        for n in reversed(order):
            if t.shape[n] != 1 and t.stride[n] != step:
                break
            step *= int(t.shape[n])
        else:
            return name
    return ""


def _sizes(sizes: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"


def _is_called(side: Side, item: Item) -> bool:
    """Return True for inputs of the captured function's first graph: Dynamo's frame 0."""
    cid = item.address[0]
    return cid.partition("/")[0] == "0" and resume_line(side.functions[cid]) is None


def _where(side: Side, item: Item) -> str:
    name = side.functions[item.address[0]]
    return (
        f", where {plain_name(name)} goes on" if resume_line(name) is not None else f", in {plain_name(name)}"
    )


def called(side: Side, item: Item) -> str:
    """Return the name of a graph's input tensor: ``input 1 (`x`)``, or its source, ``fc.weight``."""
    name, number = handed(side, item), None
    if item.order is not None and item.order[0] == "argument":
        number = item.order[1]
    elif _PACKED.fullmatch(source := _source(side, item)):
        number = _packed_number(side, source)
        name = side.capture.inputs[number].partition(":")[0] if number is not None else name
    return f"`{name}`" if number is None else f"input {number + 1} (`{name}`)"


def _packed_number(side: Side, source: str) -> int | None:
    """Return the argument number of a source in ``*args``; ``None`` for another source."""
    member = _PACKED.fullmatch(source)
    return _place(side, member[1], int(member[2])) if member else None


def _place(side: Side, packed: str, number: int) -> int | None:
    """Return the argument number of an item of ``*packed``. Torch's wrapper of modules packs all as ``args``."""
    names = [text.partition(":")[0] for text in side.capture.inputs]
    if packed in names:
        return None
    own = [n for n, name in enumerate(names) if name.startswith("argument ")]
    places = own or (list(range(len(names))) if packed == "args" else [])
    return places[number] if number < len(places) else None


def handed(side: Side, item: Item) -> str:
    """Return the program's name for a graph's input tensor: ``x``, ``fc.weight``; ``""`` for a tensor that arises at a
    later stage."""
    while item.address[1] != STAGE:
        before = side.before(item.address[1])
        numbers = (side.numbers(before).get((item.address[0], origin)) for origin in item.node.origins)
        number = next((n for n in numbers if n is not None), None)
        if number is None or side.stage(before)[number].node.op not in ("placeholder", "get_attr"):
            return ""
        item = side.stage(before)[number]
    source = _source(side, item)
    return readable(source) if source else item.node.target.removeprefix("L_").strip("_")


def _source(side: Side, item: Item) -> str:
    return side.handed.get((item.address[0], item.node.target), "")


_OF_A_MODULE = re.compile(r"_(?:parameters|buffers)_")
_PACKED = re.compile(r"L\['(\w+)'\]\[(\d+)\]")

MODES = {"True": "train()", "False": "eval()"}


def _modes(a: Record, b: Record) -> Iterator[Change]:
    """Yield modules whose flag ``training``, which the program read, changed. If no module name is common to both, all
    modules are compared at once, provided that those of each side agree."""
    ones, twos = _flags(a), _flags(b)
    modules: dict[tuple[str, str], list[str]] = {}
    for source, after in twos.items():
        before = ones.get(source)
        if before is not None and before != after:
            modules.setdefault((before, after), []).append(source)
    if ones and twos and not ones.keys() & twos.keys():
        modes = set(ones.values()), set(twos.values())
        if len(modes[0]) == len(modes[1]) == 1 and modes[0] != modes[1]:
            modules[modes[0].pop(), modes[1].pop()] = list(twos)
    for (before, after), sources in modules.items():
        names = [f"`{readable(source)}`" for source in sources]
        own = all(source in [f"L['{name}']" for name in OWN] for source in sources)
        subject = (
            "the module"
            if own
            else f"{'modules' if len(names) > 1 else 'module'} {all_names(names, MAX_NAMED)}"
        )
        text = f"{subject}: {MODES[before]} became {MODES[after]}"
        yield Change("settings", CHANGED, text)


def _flags(record: Record) -> dict[str, str]:
    """Return the flag ``training`` of each module whose flag was read, from the first compile that did."""
    flags: dict[str, str] = {}
    for guard in record.guards:
        flag = _FLAG.fullmatch(guard.text.strip())
        if flag is not None:
            flags.setdefault(flag[1], flag[2])
    return flags


Origin = tuple[str, str]
"""An argument's number (``""`` for a closure or module) and the part of it, or the name, that is read."""


def boundary_changes(sides: tuple[Side, Side]) -> Iterator[Change]:
    """Yield inputs that read another argument in the second capture, and results that differ or are reordered."""
    match = matched(sides, (STAGE, STAGE))
    yield from _reads(sides, match)
    yield from _results(sides, match)


def _reads(sides: tuple[Side, Side], match: Match) -> Iterator[Change]:
    """Yield inputs that read another value than before. A new name for a part of an argument may be a renaming, but not
    if both names exist in the first capture or the argument changed."""
    a, b = (dict(_origins(side)) for side in sides)
    known = set(a.values())
    sentences: dict[str, list[int]] = {}
    for one, two in match.pairs.items():
        if one not in a or two not in b or a[one] == b[two]:
            continue
        moved = a[one][0] != b[two][0] and a[one][0] and b[two][0]
        if moved or b[two] in known:
            sentences.setdefault(
                f"reads {_origin_words(b[two])} in place of {_origin_words(a[one])}", []
            ).append(two)
    items = sides[1].stage(STAGE)
    for sentence, numbers in sentences.items():
        readers = dict.fromkeys(user for number in numbers for user in items[number].users)
        yield Change("lines", CHANGED, sentence, sides[1].lines(items[n].address for n in readers))


def _origins(side: Side) -> Iterator[tuple[int, Origin]]:
    places = {name.partition(":")[0]: str(n) for n, name in enumerate(side.capture.inputs, 1)}
    for number, item in enumerate(side.stage(STAGE)):
        if item.node.op == "placeholder" and item.node.target.startswith("L_"):
            target = item.node.target.removeprefix("L_")
            name = max((n for n in places if target.startswith(f"{n}_")), key=len, default="")
            yield number, (places[name], target[len(name) + 1 :]) if name else ("", target)


def _origin_words(source: Origin) -> str:
    place, part = source
    name = part.strip("_")
    if not place:
        return name
    return f"argument {place}" + (f" ({name})" if name else "")


def _results(sides: tuple[Side, Side], match: Match) -> Iterator[Change]:
    ones, twos = (_returned(side) for side in sides)
    alone = set(match.only_a), set(match.only_b)
    if not ones or not twos or alone[0].intersection(ones) or alone[1].intersection(twos):
        return  # reported as new or gone
    expected = [match.pairs[n] for n in ones]
    if expected == twos:
        return
    if sorted(expected) == sorted(twos):
        how = "results: the same, in another order"
    elif len(ones) != len(twos):
        how = f"results: {len(ones)} of the graph became {len(twos)}"
    else:
        how = "results: different values are returned"
    items = sides[1].stage(STAGE)
    yield Change("lines", CHANGED, how, sides[1].lines(items[n].address for n in twos))


def _returned(side: Side) -> list[int]:
    """Return the nodes whose values are returned by compilations that end with a ``return``."""
    numbers = side.numbers(STAGE)
    results: list[int] = []
    for compilation in side.capture.compilations:
        graph = compilation.graphs.get(STAGE)
        if not isinstance(graph, Graph) or compilation.ending is None or compilation.ending.kind != "return":
            continue
        for name in (name for node in graph.nodes if node.op == "output" for name in node.inputs):
            if (compilation.id, name) in numbers:
                results.append(numbers[compilation.id, name])
    return results

"""Parser for Inductor's generated wrapper module: its kernels and the lines that launch them. It is never run."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...record import syntax
from ...record.graph import Node
from ...record.kernel import UNKNOWN_KIND, UNREACHED, USER_KERNEL, USER_WRITTEN, Flow, Kernel
from ..operators import native_functions
from .wrapper_flow import SYNTAX, branch_name, flow

LANGUAGES = {
    "cpp_pybinding": "cpp",
    "cpp": "cpp",
    "triton": "triton",
    "metal": "metal",
    "mps": "metal",
    "halide": "halide",
    "pallas": "pallas",
    "cutedsl": "cutedsl",
    "cuda": "cuda",
    "rocm": "rocm",
}
CHOICES = frozenset(("multi_kernel", "size_hint_multi_kernel"))
"""Calls that look like a kernel's definition but choose among several kernels by timing on the device."""

NOT_CALL = frozenset(("benchmark_compiled_module", "get_args"))
"""Functions of the wrapper that only benchmark it."""

CLEAR = "torch.ops.aten.zero_.default"
IN_PLACE = {"copy_": "torch.ops.aten.copy_.default", "zero_": CLEAR}
"""The operators behind methods of buffers in a wrapper, such as ``buf1.copy_(buf0, False)``: copies into another type,
layout or device, and the clearing of memory for a kernel."""

OF_PARTS = {
    "sum": "torch.ops.aten.sum.dim_IntList",
    "prod": "torch.ops.aten.prod.dim_int",
    "amax": "torch.ops.aten.amax.default",
    "amin": "torch.ops.aten.amin.default",
    "to": "torch.ops.aten._to_copy.default",
}
"""The operators behind ``buf4 = workspace_0[…].view(…).sum(dim=0).to(…)``, with which the wrapper finishes a reduction
over columns from the partial result of each block of a kernel."""

NOT_KERNELS = frozenset(
    "reinterpret_tensor _reinterpret_tensor as_strided set_ resize_ alloc_from_pool item wait_tensor view "
    "view_as_real view_as_complex _conj _neg_view alias detach lift_fresh permute transpose t squeeze unsqueeze "
    "select slice expand unbind split split_with_sizes diagonal sym_size sym_stride sym_numel".split()
)
"""Operators called by the wrapper that launch nothing: views, allocation, metadata."""


def repeatable(text: str, number: int) -> str:
    """Return a wrapper's text without process-specific details: the graph counter becomes the capture's ``number``, and
    the folders of Triton kernels are removed."""
    return _KERNEL_PATH.sub(r"\1", _COUNT.sub(rf"\g<1>{number}_", text))


_COUNT = re.compile(r"^(# AOT ID: \[')\d+_", re.M)
_KERNEL_PATH = re.compile(r"^(# kernel path: ).*[\\/]", re.M)


def syntax_of(text: str) -> ast.Module | None:
    """Return the syntax tree of a wrapper module, None if it is not Python."""
    try:
        return syntax.parse(text)
    except SyntaxError:  # the reader reports it
        return None


def kernels(
    text: str,
    phase: str,
    launched: Sequence[tuple[str, tuple[str, ...]]],
    groups: Sequence[Node],
    loops: Sequence[Node],
    tree: ast.Module | None = None,
) -> tuple[tuple[Kernel, ...], Flow | None, str]:
    """Return the kernels of a wrapper module, the control flow of a call, and a note for the user (usually ``""``).

    Args:
        tree: the module's syntax tree, if the caller has it.
        launched: for each kernel call that Inductor generated, in order: the kernel's name and its loops.
        groups, loops: the nodes of those stages; the origins of loops are the post-grad nodes that they compute.
    """
    if tree is None:
        try:
            tree = syntax.parse(text)
        except SyntaxError as error:
            return (), None, f"the {phase} wrapper is not Python ({error.msg}): its kernels could not be read"
    definitions = _definitions(tree)
    choices = _choices(tree)
    calls = _calls(tree, {*definitions, *choices})
    if launched and not definitions and not calls and "cpp_wrapper_src" in text:
        # The calls are in the module's C++ source (Inductor's cpp_wrapper).
        definitions, calls = _in_cpp(text, [name for name, _ in launched])
    one_of = {line: choices[callee] for callee, line in calls if callee in choices}
    # A line that launches one of several kernels may launch each of them.
    calls = [(name, line) for callee, line in calls for name in choices.get(callee, (callee,))]
    launched = [(name, members) for kernel, members in launched for name in choices.get(kernel, (kernel,))]
    builder = _KernelBuilder(phase, {m: g for g in groups for m in g.members}, {n.name: n for n in loops})
    records = [builder.generated(name, definitions[name], calls, launched) for name in definitions]
    records += builder.externs(calls, launched, set(definitions))
    records.sort(key=lambda k: (k.launch_lines or (10**9,), k.first_line))
    ran, within = flow(tree, sorted(line for k in records for line in k.launch_lines), one_of)
    if ran is not None:
        records = [
            dataclasses.replace(
                k,
                launch_functions=tuple(
                    branch_name(line, k.name) if line in one_of else within.get(line, UNREACHED)
                    for line in k.launch_lines
                ),
            )
            for k in records
        ]
    return tuple(records), ran, ""


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.Call, ast.Assign]]:
    """Yield each name that the module assigns the result of a call to: name, call, statement."""
    for statement in tree.body:
        if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Call):
            yield target.id, value, statement


def _definitions(tree: ast.Module) -> dict[str, tuple[str, str, int, int]]:
    """Return the generated kernels by name: language, source, first and last line of the definition."""
    definitions: dict[str, tuple[str, str, int, int]] = {}
    for name, value, statement in _assigned(tree):
        language = _language(value.func)
        if language in CHOICES:
            continue
        sources = [a.value for a in value.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if language and sources:
            source = max(sources, key=len)
            definitions[name] = (language, source, statement.lineno, statement.end_lineno or statement.lineno)
    return definitions


def _choices(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return the kernels among which the device chooses, by the name under which one of them is launched."""
    choices: dict[str, tuple[str, ...]] = {}
    for name, value, _ in _assigned(tree):
        if _language(value.func) in CHOICES:
            lists = (a.elts for a in value.args if isinstance(a, ast.List))
            choices[name] = tuple(
                kernel.id for some in lists for kernel in some if isinstance(kernel, ast.Name)
            )
    return choices


def _in_cpp(
    text: str, launched: Sequence[str]
) -> tuple[dict[str, tuple[str, str, int, int]], list[tuple[str, int]]]:
    """Return the kernels and calls of a C++ wrapper; a call that is not found gets line 0."""
    definitions: dict[str, tuple[str, str, int, int]] = {}
    lines = text.splitlines()
    calls = []
    for source in _TRITON_IN_CPP.finditer(text):
        first = text.count("\n", 0, source.start()) + 1
        with contextlib.suppress(SyntaxError, ValueError):
            definitions[source["name"]] = (
                "triton",
                syntax.literal(source["literal"]),
                first,
                first + source[0].count("\n"),
            )
    last = 0
    for name in launched:
        bare = re.escape(name.rpartition(".")[2])
        for number, line in enumerate(lines, 1):
            if name not in definitions and re.match(rf'\s*extern "C"\s+\w+\s+{bare}\(', line):
                rest = "\n".join(lines[number - 1 : number + 200])
                if "{" not in rest or ";" in rest[: rest.index("{")]:
                    continue  # a declaration
                end = _closing(lines, number)
                definitions[name] = ("cpp", "\n".join(lines[number - 1 : end]), number, end)
        numbers = [
            number
            for number, line in enumerate(lines, 1)
            if number > last
            and re.search(rf"\b\w*{bare}\w*\(", line)
            and not re.match(r'\s*(extern "C"|//|static |def )', line)
        ]
        last = numbers[0] if numbers else last
        calls.append((name, numbers[0] if numbers else 0))
    return definitions, calls


_TRITON_IN_CPP = re.compile(
    r"^async_compile\.triton\('(?P<name>\w+)', (?P<literal>'''.*?(?<!\\)''')", re.MULTILINE | re.DOTALL
)
"""A Triton kernel in a C++ wrapper: a string that is compiled at run time."""


def _closing(lines: Sequence[str], first: int) -> int:
    """Return the line that closes the braces of a C++ function that starts at line ``first``."""
    depth = 0
    for number in range(first, len(lines) + 1):
        depth += lines[number - 1].count("{") - lines[number - 1].count("}")
        if depth == 0 and "}" in lines[number - 1]:
            return number
    return first


def _language(func: ast.expr) -> str:
    if (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "async_compile"
    ):
        return LANGUAGES.get(func.attr, func.attr)
    if isinstance(func, ast.Name) and func.id == "compile_mps_shader":
        return "metal"
    return ""


def _calls(tree: ast.Module, defined: set[str]) -> list[tuple[str, int]]:
    """Return the launches of ``call`` and its partitions: (kernel or callee, line), in the order of the text."""
    functions = (function for function in _functions(tree.body) if function.name not in NOT_CALL)
    return _launches((call for function in functions for call in _own_calls(function)), defined)


def _launches(calls: Iterable[ast.Call], defined: set[str]) -> list[tuple[str, int]]:
    """Return the calls that launch something: (kernel or callee, line), in the order of the text."""
    launches = [
        (call.lineno, call.end_col_offset or 0, name)  # in a chain of methods, the first call ends first
        for call in calls
        if (name := _callee(call.func, defined))
    ]
    return [(name, line) for line, _, name in sorted(launches)]


def _functions(body: Iterable[ast.AST]) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module, wherever they are defined; none is inside an expression."""
    pending = list(body)
    for node in pending:
        if isinstance(node, ast.FunctionDef):
            yield node
        fields = vars(node)
        for block in _BLOCKS:
            if block in fields:
                pending += fields[block]


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_NO_CALL = frozenset(
    (
        str,
        int,
        float,
        bool,
        type(None),
        ast.Load,
        ast.Store,
        ast.Name,
        ast.Constant,
        ast.Delete,
        ast.FunctionDef,
    )
)
"""Types of syntax values that contain no call, which are most, and of nested functions, whose calls are their own."""


def library_calls(line: str) -> list[str]:
    """Return the library calls of one line of ``call`` in execution order; none if it is not Python."""
    tree = syntax_of(line)
    calls = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [name for name, _ in _launches(calls, set())]


def _own_calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Yield the calls of a function without those of nested functions."""
    pending: list[Any] = list(function.body)
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind in _NO_CALL or kind not in SYNTAX:
            continue
        if kind is ast.Call:
            yield node
        for value in vars(node).values():
            if type(value) is list:
                pending += value
            elif type(value) not in _NO_CALL:
                pending.append(value)


def _callee(func: ast.expr, defined: set[str]) -> str:
    if isinstance(func, ast.Name):
        return func.id if func.id in defined else ""
    if isinstance(func, ast.Attribute) and func.attr in IN_PLACE:
        return IN_PLACE[func.attr]
    if isinstance(func, ast.Attribute) and func.attr in OF_PARTS and isinstance(func.value, ast.Call):
        return OF_PARTS[func.attr]
    dotted = _dotted(func)
    if not dotted:
        return ""
    first, *rest = parts = dotted.split(".")
    if first in defined:
        return first
    if first == "extern_kernels":
        return dotted
    named = rest[1:] if dotted.startswith("torch.ops.") else parts if first == "aten" else []
    if len(named) < 2 or (named[0] in native_functions.BARE_NAMESPACES and named[1] in NOT_KERNELS):
        return ""
    return dotted


def _dotted(expr: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(expr, ast.Attribute):
        parts.append(expr.attr)
        expr = expr.value
    if not isinstance(expr, ast.Name):
        return ""
    return ".".join([expr.id, *reversed(parts)])


class _KernelBuilder:
    """Builder of kernel records from a phase's loops and the fused group of each."""

    def __init__(self, phase: str, group_of: dict[str, Node], loops: dict[str, Node]) -> None:
        self.phase = phase
        self.group_of = group_of
        self.loops = loops

    def generated(
        self,
        name: str,
        definition: tuple[str, str, int, int],
        calls: list[tuple[str, int]],
        launched: Sequence[tuple[str, tuple[str, ...]]],
    ) -> Kernel:
        """Return the record of a kernel whose source is in the module."""
        language, source, first, last = definition
        loops = [loop for kernel, members in launched if kernel == name for loop in members]
        kernel = self._kernel(name, language, [line for callee, line in calls if callee == name], loops)
        return dataclasses.replace(kernel, source=source, first_line=first, last_line=last)

    def externs(
        self, calls: list[tuple[str, int]], launched: Sequence[tuple[str, tuple[str, ...]]], defined: set[str]
    ) -> list[Kernel]:
        """Return a kernel record for each extern call site, since two calls of ``mm`` have two lines."""
        pending = [(kernel, loops) for kernel, loops in launched if kernel not in defined]
        externs: list[Kernel] = []
        counts: dict[str, int] = {}
        for callee, line in calls:
            if callee in defined:
                continue
            match = next((i for i, (kernel, _) in enumerate(pending) if _same(kernel, callee)), None)
            loops = pending.pop(match)[1] if match is not None else ()
            if loops and all(loop in self.loops and self.loops[loop].kind == "nop" for loop in loops):
                continue  # a view or an allocation by the library
            counts[callee] = counts.get(callee, 0) + 1
            name = callee if counts[callee] == 1 else f"{callee}#{counts[callee]}"
            externs.append(self._kernel(name, "extern", [line], loops))
        return externs

    def _kernel(self, name: str, language: str, lines: list[int], loops: Sequence[str]) -> Kernel:
        groups = list({self.group_of[x].name: self.group_of[x] for x in loops if x in self.group_of}.values())
        origins = dict.fromkeys(o for loop in loops if loop in self.loops for o in self.loops[loop].origins)
        return Kernel(
            name=name,
            phase=self.phase,
            language=language,
            kind="extern" if language == "extern" else _kind(groups),
            source="",
            launch_lines=tuple(lines),
            groups=tuple(g.name for g in groups),
            origins=tuple(origins),
            no_origin="" if origins else _no_origin_reason(name, groups),
            reads=_sum([g.reads for g in groups]),
            writes=_sum([g.writes for g in groups]),
        )


def _same(kernel: str, callee: str) -> bool:
    """Return True if Inductor's name of a kernel is the callee in the text, which may add the overload."""
    kernel, callee = kernel.removeprefix("torch.ops."), callee.removeprefix("torch.ops.")
    return kernel == callee or kernel == callee.rpartition(".")[0]


def _no_origin_reason(name: str, groups: list[Node]) -> str:
    if groups:
        return "Inductor recorded no origin for the loops that it runs"
    if name.partition("#")[0] == CLEAR:
        return "it clears the memory in which the kernel after it works: it stands for no operator of the program"
    return "Inductor did not report which of its nodes this call runs"


def _kind(groups: list[Node]) -> str:
    if groups and all(group.target == USER_KERNEL for group in groups):
        return USER_WRITTEN
    kinds = {g.kind for g in groups}
    for kind in ("template", "scan", "reduction", "pointwise"):
        if kind in kinds:
            return kind
    if kinds == {"extern"}:  # the scheduler treats it as a library call, but Inductor generated a kernel
        return "template"
    return sorted(kinds)[0] if kinds else UNKNOWN_KIND


def _sum(parts: list[int | None]) -> int | None:
    known = [p for p in parts if p is not None]
    return sum(known) if parts and len(known) == len(parts) else None

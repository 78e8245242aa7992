"""State of Dynamo: the capture of a compile, source texts, guards, dynamic sizes, inlined compiled functions."""

from __future__ import annotations

import functools
import inspect
import linecache
import logging
import os
import re
import types
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx

from ...record import claims, messages
from ...record.compilation import DynamicDim, Guard
from ...record.graph import Source
from ...versions import torch_version
from ..graphs import fx_values
from ..ground import hook_points, log_filters, source_places, source_text
from ..ground.hooks import free_hook, is_capturing
from ..ground.recorder import Draft, Recorder
from ..ground.recorder_state import Root
from . import code_copies, eager_lines, parameters

RECORDER_ATTRIBUTE = "compile_lens_recorder"
"""Attribute of our backend with the recorder of the capture."""


_TORCH_MODULES = "/torch/nn/modules/"


def recorder_of(backend: Any) -> Recorder | None:
    """Return the recorder of a backend callable, or None if the backend is not ours."""
    for _ in range(8):
        recorder = getattr(backend, RECORDER_ATTRIBUTE, None)
        if isinstance(recorder, Recorder):
            return recorder
        inner = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(
            backend, "_torchdynamo_orig_callable", None
        )
        if inner is None or inner is backend:
            return None
        backend = inner
    return None


def recorder_around(translator: Any) -> Recorder | None:
    """Return the recorder of the capture that one of Dynamo's translators compiles for, or None."""
    return recorder_of(getattr(getattr(translator, "output", None), "compiler_fn", None))


def current_draft(recorder: Recorder, code: Any, part: int = 0) -> Draft:
    """Return the draft of Dynamo's current compile."""
    compile_id = torch._guards.CompileContext.current_compile_id()
    frame_id = getattr(compile_id, "frame_id", None)
    attempt = getattr(compile_id, "frame_compile_id", None)
    return recorder.draft(-1 if frame_id is None else frame_id, attempt or 0, code, part)


def keep_source(recorder: Recorder, code: Any) -> None:
    """Record the source text of a compiled function."""
    if code is None:
        return
    key = (code.co_filename, code.co_firstlineno, code.co_name)
    if key in recorder.frames.sources:
        return
    source = source_of(code)
    if source is None:
        _note_text(recorder, code)
    else:
        recorder.frames.sources[key] = source


def source_of(code: Any) -> Source | None:
    """Return a function's source text; None if it has none, is a resume function, or is not the program's."""
    if not _has_text(code):
        return None
    linecache.checkcache(code.co_filename)
    if not source_text.check(code):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError):  # created by exec, or the file is gone
        return None
    # Name a method with its class, but without enclosing functions. Python 3.10 has no qualified name.
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return Source(code.co_filename, first, name, "".join(lines))


def no_text(code: Any) -> str:
    """Return why the text of a function is not known; ``""`` if it was compiled from the text in its file, or has no
    file, or is torch's."""
    checked = _has_text(code) and not source_places.is_torch_file(code.co_filename)
    return source_text.reason(code) if checked and not source_text.check(code) else ""


def _note_text(recorder: Recorder, code: Any) -> None:
    if reason := no_text(code):
        recorder.lacking.setdefault(claims.SOURCES, reason)
        recorder.note(reason)


def _has_text(code: Any) -> bool:
    """Return True if a code can have a text of the program's: no resume function, and no module."""
    return not (
        code.co_name.startswith(("torch_dynamo_resume_in_", "<module>"))
        or source_places.is_internal(code.co_filename)
    )


def first_line(recorder: Recorder, code: Any) -> int:
    """Return the line where a function, or the original of a resume function, begins."""
    first: int = code.co_firstlineno
    if not eager_lines.is_resume(code):
        return first
    name = eager_lines.plain_name(code.co_name)
    known = (line for file, line, of in recorder.frames.sources if (file, of) == (code.co_filename, name))
    return max((line for line in known if line <= first), default=first)


def qualified_name(function: Any) -> str:
    """Return the qualified name of a function, ``""`` without one; torch's own builtins as ``torch.sin``."""
    name = str(getattr(function, "__qualname__", "") or "")
    return f"torch.{function.__name__}" if name.startswith("_VariableFunctions") else name


def keep_root(recorder: Recorder, target: Any) -> None:
    """Record the captured callable: its name, its place, and its source text if it has one."""
    while isinstance(target, functools.partial):
        target = target.func
    function = inspect.unwrap(target.forward if isinstance(target, torch.nn.Module) else target)
    name = qualified_name(function) or type(target).__name__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None and not isinstance(target, torch.nn.Module) and not inspect.isbuiltin(target):
        code = getattr(type(target).__call__, "__code__", None)
    if code is None:
        recorder.frames.root = Root(name)
        return
    of_torch = _TORCH_MODULES in code.co_filename.replace("\\", "/")
    recorder.frames.root = Root(name, code.co_filename, code.co_firstlineno, of_torch)
    keep_source(recorder, code)


@free_hook(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.is_co_filename_from_nn_modules", claims.LINES
)
def show_torch_modules(real: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Return False if the captured callable is a module of torch's, so that its lines appear in stack traces. Dynamo
    omits frames in ``torch/nn/modules`` to end a trace with the user's own line, but there is none."""
    recorder = recorder_around(translator)
    root = recorder.frames.root if recorder is not None else None
    if root is not None and root.of_torch:
        return False
    return real(translator, *args, **kwargs)


@free_hook("torch._dynamo.symbolic_convert:InstructionTranslatorBase.frame_summary", claims.CALL_ENDS)
def end_lines(real: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Add the last line of a call to Dynamo's frame summaries, which have only its first line."""
    summary = real(translator, *args, **kwargs)
    positions = getattr(getattr(translator, "current_instruction", None), "positions", None)
    end = getattr(positions, "end_lineno", None)
    recorder = recorder_around(translator)
    ours = recorder is not None
    if recorder is not None:
        _note_text(recorder, translator.f_code)
    if ours and end is not None and getattr(summary, "colno", None) is not None:  # Python 3.10 has no columns
        summary.end_lineno = end
    return summary


@free_hook(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.mark_inconsistent_side_effects",
    claims.OTHER_PATHS,
)
def note_other_path(real: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Note the program's function that asks whether it is compiled (``torch.compiler.is_compiling()``): eager PyTorch
    may run other operators."""
    recorder, code = recorder_around(translator), translator.f_code
    if recorder is not None and not source_places.is_torch_file(code.co_filename):
        recorder.frames.current.other_path = (
            f"{code.co_name} ({os.path.basename(code.co_filename)}:{translator.lineno})"
        )
    return real(translator, *args, **kwargs)


@free_hook("torch._dynamo.output_graph:SubgraphTracer.create_proxy", claims.CALL_ENDS)
def mark_whole_values(real: Any, tracer: Any, *args: Any, **kwargs: Any) -> Any:
    """Mark, in the stack trace of its node, a call that is the whole value of an assignment or return."""
    proxy = real(tracer, *args, **kwargs)
    if source_places.MARKS_WHOLE_VALUES:
        return proxy
    translator = getattr(getattr(tracer, "output_graph", None), "current_tx", None)
    trace = proxy.node.stack_trace
    if not trace or recorder_around(translator) is None:
        return proxy
    while translator is not None:
        trace = source_places.with_whole_value(trace, translator.frame_summary())
        translator = getattr(translator, "parent", None)
    proxy.node.stack_trace = trace
    return proxy


def guards(exported: Any, tensors: Mapping[str, str]) -> tuple[Guard, ...]:
    """Return the guards of a compile in a stable order; ``tensors`` has the text of each tensor's checks by name."""
    records = []
    for guard in exported:
        kind = kind_of(guard)
        lines = conditions(guard)
        name = str(getattr(guard, "name", "") or "")
        if kind == "TENSOR_MATCH" and name in tensors:
            lines.insert(0, tensors[name])
        records.append(
            Guard(
                messages.without_addresses(" and ".join(lines)) or kind,
                messages.without_addresses(name),
                kind,
            )
        )
    return tuple(sorted(set(records), key=lambda g: (g.source, g.kind, g.text)))


def conditions(guard: Any) -> list[str]:
    """Return the conditions of a guard, each once: torch repeats those on global state with each compile."""
    return list(dict.fromkeys(str(line) for line in getattr(guard, "code_list", None) or ()))


def kind_of(guard: Any) -> str:
    """Return the kind of a guard, as torch names it: ``TENSOR_MATCH``."""
    create = getattr(guard, "create_fn_name", None)
    return str(create() if callable(create) else create or "")


_CHECK = re.compile(r"check_tensor\((?P<name>.+?), (?:Tensor|Parameter|[\w.]+), DispatchKeySet", re.DOTALL)


def tensor_checks(manager: Any) -> dict[str, str]:
    """Return the checks of each tensor, by name, from the guards of a cache entry."""
    checks = {}
    for leaf in manager.get_leaf_guards():
        for part in leaf.verbose_code_parts():
            check = _CHECK.match(part)
            if check:
                checks[check["name"]] = part.partition("  # ")[0].strip()
    for child in manager.get_child_managers():
        checks |= tensor_checks(child)
    return checks


def failed_guard(recorder: Recorder, reason: str) -> str:
    """Return why a cache entry did not match, with the entry's id in this capture."""
    text = " ".join(reason.partition("\nUser stack trace:")[0].split())
    match = re.match(r"(\d+)/(\d+): ", text)
    return recorder.numbers.own_id(int(match[1]), int(match[2])) + text[match.end() - 2 :] if match else text


@free_hook("torch._dynamo.guards:profile_guard_manager")
def skip_latency(real: Any, *args: Any, **kwargs: Any) -> float:
    """Skip torch's measurement of guard latency in microseconds, unless its log or trace shows it.

    Torch flushes the processor's caches for it, which takes 20 ms per compile, as long as compiling a small function,
    and slows the next step.
    """
    return 0.0 if is_capturing() and not _shows_latency() else float(real(*args, **kwargs))


def _shows_latency() -> bool:
    place = hook_points.find("torch._dynamo.guards:guards_log")
    log = None if place is None else getattr(*place)
    return log is None or log.isEnabledFor(logging.DEBUG) or log_filters.is_traced()


def dynamic_dims(gm: torch.fx.GraphModule) -> tuple[DynamicDim, ...]:
    """Return the sizes of inputs that were compiled as symbols, with their sources."""
    dims: dict[tuple[str, str], DynamicDim] = {}
    for node in gm.graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("example_value")
        source = _source_name(node)
        if isinstance(value, torch.Tensor):
            for i, length in enumerate(value.shape):
                if isinstance(length, torch.SymInt) and length.node.maybe_as_int() is None:
                    entry = DynamicDim(
                        f"{source}.size({i})", str(fx_values.size(length)), fx_values.hint(length)
                    )
                    dims[entry.source, entry.symbol] = entry
    return tuple(dims.values())


def dynamic_symbols(gm: torch.fx.GraphModule) -> tuple[DynamicDim, ...]:
    """Return ``dynamic_dims``, then symbolic Python numbers and sizes of tensors that are not inputs of the graph."""
    dims = dynamic_dims(gm)
    numbers: dict[str, DynamicDim] = {}
    sizes = {d.symbol for d in dims}
    for node in gm.graph.nodes:
        value = node.meta.get("example_value") if node.op == "placeholder" else None
        if isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None:
            symbol = str(fx_values.size(value))
            if symbol not in sizes:
                source = messages.plain_sizes(_source_name(node))
                numbers.setdefault(source, DynamicDim(source, symbol, fx_values.hint(value)))
        elif getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False):  # a float that is no constant
            source, symbol = _source_name(node), _number_symbol(node)
            if symbol:
                numbers.setdefault(source, DynamicDim(source, symbol))
    return (*dims, *numbers.values())


def with_environment_symbols(known: tuple[DynamicDim, ...], shapes: Any) -> tuple[DynamicDim, ...]:
    """Return a graph's ``known`` symbols, completed from torch's shape environment with values of numbers and with
    symbols that no graph takes, such as a number that is only passed across a graph break."""
    every = {d.source: d for d in symbols(shapes)}
    own = tuple(d if d.observed else every.get(d.source, d) for d in known)
    have = {d.source for d in own}
    return (*own, *(d for source, d in every.items() if source not in have))


def symbols(shapes: Any) -> tuple[DynamicDim, ...]:
    """Return the unspecialised symbols of torch's shape environment, with their example values.

    Symbols of a view's base, which the program does not name, are omitted, as are elements of a tensor, which are data,
    unless a guard checks them.
    """
    guarded = {symbol for guard in getattr(shapes, "guards", ()) for symbol in guard.expr.free_symbols}
    dims = []
    new = hasattr(
        shapes, "backed_var_to_val"
    )  # torch 2.11 has only the old name, which is deprecated in 2.13
    seen = getattr(shapes, "backed_var_to_val" if new else "var_to_val", {})
    for symbol, sources in getattr(shapes, "var_to_sources", {}).items():
        now = shapes.replace(symbol)
        if now.is_number:
            continue
        for source in sources:
            name = source.name if isinstance(source.name, str) else source.name()
            plain_name = messages.plain_numbers(name)
            is_data = plain_name.endswith(".item()") and not now.free_symbols & guarded
            if "._base." not in name and not source.is_ephemeral() and not is_data:
                dims.append(_symbol(plain_name, str(now), seen.get(symbol)))
    return tuple(dims)


def _symbol(name: str, symbol: str, seen: Any) -> DynamicDim:
    source = messages.plain_sizes(name)
    if getattr(seen, "is_Integer", False):
        return DynamicDim(source, symbol, int(seen))
    number = getattr(seen, "is_Float", False)
    return DynamicDim(source, symbol, None, repr(float(seen)) if number else "")


def _number_symbol(node: torch.fx.Node) -> str:
    """Return the symbol of a number that a graph takes as a tensor; the tensor's name if it is never read; ``""`` if
    the symbol was specialised to a constant."""
    values = (user.meta.get("example_value") for user in node.users)
    symbols = [value for value in values if isinstance(value, torch.SymFloat)]
    if any(getattr(value.node.expr, "is_number", False) for value in symbols[:1]):
        return ""
    return str(symbols[0]) if symbols else str(node.name)


def arguments(gm: torch.fx.GraphModule, example_inputs: list[Any], output: Any) -> list[tuple[str, Any]]:
    """Return the inputs of a graph of Dynamo's ``output`` under their names in the function, without parameters and
    buffers of modules."""
    names = parameters.names(output)
    named = zip((_source_name(n) for n in gm.graph.nodes if n.op == "placeholder"), example_inputs)
    module_paths = ("._parameters[", "._buffers[", "._modules[")
    return [
        (names.get(name) or re.sub(r"^L\['(\w+)'\]", r"\1", name), value)
        for name, value in named
        if isinstance(value, torch.Tensor) and not any(part in name for part in module_paths)
    ]


def _source_name(node: torch.fx.Node) -> str:
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    name = getattr(source, "name", None)
    text = name() if callable(name) else name
    return str(text) if text else node.name


def recompile_limit(code: Any, recorder: Recorder) -> int:
    """Return the user's recompile limit, raised by the number of other compiles' entries in the same list."""
    limit = int(torch._dynamo.config.recompile_limit)
    if can_isolate():
        return limit
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return limit + sum(recorder_of(getattr(e, "backend", None)) is not recorder for e in entries)


@functools.cache
def can_isolate() -> bool:
    """Return True if this torch can isolate the entries of one compile in a region that is local to its thread.

    Before 2.15 the region is global to the process: code that another thread compiles during a capture would go to the
    capture's region, never be found, and be compiled again.
    """
    known = inspect.signature(torch._dynamo.eval_frame._optimize).parameters
    return "isolate_recompiles" in known and torch_version() >= (2, 15)


@free_hook("torch._dynamo.variables.functions:WrapperUserFunctionVariable.call_function", claims.NOTES)
def keep_compiled(real: Any, variable: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a wrapper from ``torch.compile`` that Dynamo inlines."""
    wrapper = getattr(variable, "wrapper_obj", None)
    if getattr(wrapper, "_torchdynamo_orig_callable", None) is not None:
        recorder = recorder_around(translator)
        if recorder is not None:
            recorder.frames.inlined[id(wrapper)] = wrapper
    return real(variable, translator, *args, **kwargs)


def compiled_inside(recorder: Recorder, fn: Any) -> list[str]:
    """Return the names of compiled functions that Dynamo inlined, without parts of the module ``fn``, which are noted
    separately."""
    of_parts = {id(_underlying(part.forward)) for _, part in code_copies.submodules(fn)}
    wrappers = [one for key, one in recorder.frames.inlined.items() if key not in of_parts]
    return list(dict.fromkeys(str(one.__qualname__).rpartition("<locals>.")[2] for one in wrappers))


def _underlying(method: Any) -> Any:
    return method.__func__ if isinstance(method, types.MethodType) else method

"""Dynamo: whose compile it is, the text of what it reads, guards, dynamic sizes."""

from __future__ import annotations

import functools
import inspect
import logging
import re
import types
from collections.abc import Mapping
from typing import Any

import torch
import torch.fx

from ...record import messages
from ...record.compilation import DynamicDim, Guard
from ...record.graph import Source
from ...versions import torch_version
from ..graphs import fx_values
from ..ground import hook_points, log_filters, source_places
from ..ground.hooks import free_hook, is_capturing
from ..ground.recorder import Draft, Recorder
from ..ground.recorder_state import Root
from . import code_copies, eager_lines

RECORDER_ATTRIBUTE = "compile_lens_recorder"
"""Attribute of our backend by which Dynamo's objects lead back to the capture that they work for."""


_TORCH_MODULES = "/torch/nn/modules/"


def recorder_of(backend: Any) -> Recorder | None:
    """The recorder behind a backend callable, or None if the backend is not ours."""
    for _ in range(8):
        found = getattr(backend, RECORDER_ATTRIBUTE, None)
        if isinstance(found, Recorder):
            return found
        inner = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(
            backend, "_torchdynamo_orig_callable", None
        )
        if inner is None or inner is backend:
            return None
        backend = inner
    return None


def current_draft(recorder: Recorder, code: Any, part: int = 0) -> Draft:
    """The draft of the compile that Dynamo is in."""
    compile_id = torch._guards.CompileContext.current_compile_id()
    frame_id = getattr(compile_id, "frame_id", None)
    attempt = getattr(compile_id, "frame_compile_id", None)
    return recorder.draft(-1 if frame_id is None else frame_id, attempt or 0, code, part)


def keep_source(recorder: Recorder, code: Any) -> None:
    """Keep the text of a function that was compiled."""
    if code is None:
        return
    key = (code.co_filename, code.co_firstlineno, code.co_name)
    if key in recorder.frames.sources:
        return
    source = source_of(code)
    if source is not None:
        recorder.frames.sources[key] = source


def source_of(code: Any) -> Source | None:
    """The text of a function; None for what has none, is the rest of one, or is not the program's."""
    if code.co_name.startswith(("torch_dynamo_resume_in_", "<module>")):
        return None
    if source_places.is_internal(code.co_filename):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError):  # made by exec, or the file is gone: there is no text to show
        return None
    # A method by its class, but not by the function in which that was written. Python 3.10 does not say.
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return Source(code.co_filename, first, name, "".join(lines))


def first_line(recorder: Recorder, code: Any) -> int:
    """The line where a function begins, also of the code that Dynamo made of its rest."""
    first: int = code.co_firstlineno
    if not eager_lines.is_resume(code):
        return first
    name = eager_lines.plain(code.co_name)
    known = (line for file, line, of in recorder.frames.sources if (file, of) == (code.co_filename, name))
    return max((line for line in known if line <= first), default=first)


def qualified_name(function: Any) -> str:
    """The qualified name of a function, ``""`` without one; torch's own builtins as ``torch.sin``."""
    name = str(getattr(function, "__qualname__", "") or "")
    return f"torch.{function.__name__}" if name.startswith("_VariableFunctions") else name


def keep_root(recorder: Recorder, target: Any) -> None:
    """Remember what was captured: its name, where it is written, and its text where there is one."""
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


@free_hook("torch._dynamo.symbolic_convert:InstructionTranslatorBase.is_co_filename_from_nn_modules")
def show_torch_modules(real: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo leaves frames inside ``torch/nn/modules`` out of stack traces, so that the user's own line comes
    last. Where the captured callable is a module of torch's, there is no such line, and theirs are shown."""
    recorder = recorder_of(getattr(getattr(translator, "output", None), "compiler_fn", None))
    root = recorder.frames.root if recorder is not None else None
    if root is not None and root.of_torch:
        return False
    return real(translator, *args, **kwargs)


@free_hook("torch._dynamo.symbolic_convert:InstructionTranslatorBase.frame_summary")
def end_lines(real: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo's frames do not say in which line a call ends, so that every call seems to end with its line."""
    summary = real(translator, *args, **kwargs)
    positions = getattr(getattr(translator, "current_instruction", None), "positions", None)
    ours = recorder_of(getattr(getattr(translator, "output", None), "compiler_fn", None)) is not None
    end = getattr(positions, "end_lineno", None)
    if ours and end is not None and getattr(summary, "colno", None) is not None:  # Python 3.10 has no columns
        summary.end_lineno = end
    return summary


def guards(exported: Any, tensors: Mapping[str, str]) -> tuple[Guard, ...]:
    """Guards of a compile, in a stable order; ``tensors`` has the text of what is asked of each tensor."""
    found = []
    for guard in exported:
        kind = kind_of(guard)
        lines = conditions(guard)
        name = str(getattr(guard, "name", "") or "")
        if kind == "TENSOR_MATCH" and name in tensors:
            lines.insert(0, tensors[name])
        found.append(Guard(messages.stable(" and ".join(lines)) or kind, messages.stable(name), kind))
    return tuple(sorted(set(found), key=lambda g: (g.source, g.kind, g.text)))


def conditions(guard: Any) -> list[str]:
    """The conditions of a guard, each once: to those of the state of the process torch adds the same ones again with
    each compile."""
    return list(dict.fromkeys(str(line) for line in getattr(guard, "code_list", None) or ()))


def kind_of(guard: Any) -> str:
    """What kind of guard it is, as torch names them: ``TENSOR_MATCH``."""
    create = getattr(guard, "create_fn_name", None)
    return str(create() if callable(create) else create or "")


_CHECK = re.compile(r"check_tensor\((?P<name>.+?), (?:Tensor|Parameter|[\w.]+), DispatchKeySet", re.DOTALL)


def tensor_checks(manager: Any) -> dict[str, str]:
    """What the guards of a compiled form ask of each tensor, by its name."""
    found = {}
    for leaf in manager.get_leaf_guards():
        for part in leaf.verbose_code_parts():
            check = _CHECK.match(part)
            if check:
                found[check["name"]] = part.partition("  # ")[0].strip()
    for child in manager.get_child_managers():
        found |= tensor_checks(child)
    return found


def failed_guard(recorder: Recorder, reason: str) -> str:
    """Why a form of a function did not fit, under the id that the form has in this capture."""
    text = " ".join(reason.partition("\nUser stack trace:")[0].split())
    found = re.match(r"(\d+)/(\d+): ", text)
    return recorder.numbers.own_id(int(found[1]), int(found[2])) + text[found.end() - 2 :] if found else text


@free_hook("torch._dynamo.guards:profile_guard_manager")
def skip_latency(real: Any, *args: Any, **kwargs: Any) -> float:
    """How many microseconds the guards of a form take, for torch's log and trace: nobody asks it of a capture's.

    Before torch measures it writes over all that the processor's caches hold: 20 ms for each compile, as long as a
    small function takes to be compiled, and what comes next finds the caches empty.
    """
    return 0.0 if is_capturing() and not _shows_latency() else float(real(*args, **kwargs))


def _shows_latency() -> bool:
    found = hook_points.find("torch._dynamo.guards:guards_log")
    log = None if found is None else getattr(*found)
    return log is None or log.isEnabledFor(logging.DEBUG) or log_filters.is_traced()


def dynamic_dims(gm: torch.fx.GraphModule) -> tuple[DynamicDim, ...]:
    """Sizes that were compiled as symbols, with where they come from."""
    found: dict[tuple[str, str], DynamicDim] = {}
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
                    found[entry.source, entry.symbol] = entry
    return tuple(found.values())


def dynamic_symbols(gm: torch.fx.GraphModule) -> tuple[DynamicDim, ...]:
    """As ``dynamic_dims``, and numbers of the program, and sizes of tensors that are no inputs of the graph."""
    dims = dynamic_dims(gm)
    found: dict[str, DynamicDim] = {}
    sizes = {d.symbol for d in dims}
    for node in gm.graph.nodes:
        value = node.meta.get("example_value") if node.op == "placeholder" else None
        if isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None:
            symbol = str(fx_values.size(value))
            if symbol not in sizes:
                source = messages.plain_sizes(_source_name(node))
                found.setdefault(source, DynamicDim(source, symbol, fx_values.hint(value)))
        elif getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False):  # a float that is no constant
            source = _source_name(node)
            found.setdefault(source, DynamicDim(source, _number_symbol(node)))
    return (*dims, *found.values())


def with_environment_symbols(known: tuple[DynamicDim, ...], shapes: Any) -> tuple[DynamicDim, ...]:
    """What is known of a graph's symbols with what torch's shape environment says more: the value of a number, and the
    symbols that no graph takes, such as of a number that is only given on to what follows a graph break."""
    every = {d.source: d for d in symbols(shapes)}
    own = tuple(d if d.observed else every.get(d.source, d) for d in known)
    have = {d.source for d in own}
    return (*own, *(d for source, d in every.items() if source not in have))


def symbols(shapes: Any) -> tuple[DynamicDim, ...]:
    """What is a symbol in torch's shape environment, and did not become one value, with what was seen; of a tensor's
    base, which a program does not name, nothing; nor of what a tensor holds, which is data, unless a guard asks for it.
    """
    asked = {symbol for guard in getattr(shapes, "guards", ()) for symbol in guard.expr.free_symbols}
    found = []
    new = hasattr(shapes, "backed_var_to_val")  # torch 2.11 has the other name, of which 2.13 warns
    seen = getattr(shapes, "backed_var_to_val" if new else "var_to_val", {})
    for symbol, sources in getattr(shapes, "var_to_sources", {}).items():
        now = shapes.replace(symbol)
        if now.is_number:
            continue
        for source in sources:
            name = source.name if isinstance(source.name, str) else source.name()
            told = _NUMBER.sub(r"\g<source>", name)
            held = told.endswith(".item()") and not now.free_symbols & asked
            if "._base." not in name and not source.is_ephemeral() and not held:
                found.append(_symbol(told, str(now), seen.get(symbol)))
    return tuple(found)


_NUMBER = re.compile(r"___as_tensor\((?P<source>.+)\)\.item\(\)")
"""A number of the program's, as torch 2.11 names it."""


def _symbol(name: str, symbol: str, seen: Any) -> DynamicDim:
    source = messages.plain_sizes(name)
    if getattr(seen, "is_Integer", False):
        return DynamicDim(source, symbol, int(seen))
    number = getattr(seen, "is_Float", False)
    return DynamicDim(source, symbol, None, repr(float(seen)) if number else "")


def _number_symbol(node: torch.fx.Node) -> str:
    """The symbol of a number that a graph is given in a tensor; the name of that where it is never taken out."""
    values = (user.meta.get("example_value") for user in node.users)
    symbols = [str(value) for value in values if isinstance(value, torch.SymFloat)]
    return symbols[0] if symbols else node.name


def arguments(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> list[tuple[str, Any]]:
    """The inputs of a graph under the names that they have in the function; what a module holds is none of them."""
    named = zip((_source_name(n) for n in gm.graph.nodes if n.op == "placeholder"), example_inputs)
    held = ("._parameters[", "._buffers[", "._modules[")
    return [
        (re.sub(r"^L\['(\w+)'\]", r"\1", name), value)
        for name, value in named
        if isinstance(value, torch.Tensor) and not any(part in name for part in held)
    ]


def _source_name(node: torch.fx.Node) -> str:
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    name = getattr(source, "name", None)
    text = name() if callable(name) else name
    return str(text) if text else node.name


def recompile_limit(code: Any, recorder: Recorder) -> int:
    """The user's limit on recompiles, counted from what this capture compiled: where torch keeps the entries
    of others beside ours, they do not count."""
    limit = int(torch._dynamo.config.recompile_limit)
    if can_isolate():
        return limit
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code)
    return limit + sum(recorder_of(getattr(e, "backend", None)) is not recorder for e in entries)


@functools.cache
def can_isolate() -> bool:
    """Whether this torch can keep the entries of one compile in a region of their own, on its thread alone.

    Before 2.15 there is one region for the whole process: what another thread compiled while a capture ran would
    stand in the capture's, be found by nobody and be compiled again.
    """
    known = inspect.signature(torch._dynamo.eval_frame._optimize).parameters
    return "isolate_recompiles" in known and torch_version() >= (2, 15)


@free_hook("torch._dynamo.variables.functions:WrapperUserFunctionVariable.call_function")
def keep_compiled(real: Any, variable: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo looks through a wrapper: keep it, if it is what ``torch.compile`` returned."""
    wrapper = getattr(variable, "wrapper_obj", None)
    if getattr(wrapper, "_torchdynamo_orig_callable", None) is not None:
        recorder = recorder_of(getattr(getattr(translator, "output", None), "compiler_fn", None))
        if recorder is not None:
            recorder.frames.inlined[id(wrapper)] = wrapper
    return real(variable, translator, *args, **kwargs)


def compiled_inside(recorder: Recorder, fn: Any) -> list[str]:
    """What those are called that were met, without the parts of the module ``fn``, of which more is known."""
    of_parts = {id(_underlying(part.forward)) for _, part in code_copies.submodules(fn)}
    found = [one for key, one in recorder.frames.inlined.items() if key not in of_parts]
    return list(dict.fromkeys(str(one.__qualname__).rpartition("<locals>.")[2] for one in found))


def _underlying(method: Any) -> Any:
    return method.__func__ if isinstance(method, types.MethodType) else method

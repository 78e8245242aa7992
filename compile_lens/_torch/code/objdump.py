"""Parsers for the output of GNU objdump and addr2line: a library's functions, instructions and source lines.

A listing has no addresses: jump targets are ``.L1``, ``.L2``, … and constants ``.LC1``, ``.LC2``, …, in order of
appearance. So the same code gives the same text at any place in the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...record.kernel import Form

Frames = tuple[tuple[str, int], ...]
"""File and line of an instruction, then those of the call sites at which it was inlined, innermost first."""

_FILE = re.compile(r"^(\S.*):\s+file format \S+$")
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\t(\S.*)$")
_CLONE = re.compile(r" \[clone (\.[^\]]+)\]")
_JUMP = re.compile(r"^(.*?)\b([0-9a-f]+) <(.+)>$")
_RELATIVE = re.compile(r"^(.*?)\[rip[+-]0x[0-9a-f]+\](.*?)\s+# ([0-9a-f]+)(?: <(.+)>)?$")
_OFFSET = re.compile(r"[+-]0x[0-9a-f]+$")
_CALL = re.compile(r"^(?:call|bl)\s+[0-9a-f]+ <([^>]+?)(?:@plt)?>$")
_RUNTIME = re.compile(r"^(?:GOMP_|__kmpc_|omp_)")
_PARTS = re.compile(r"^((?:(?:cs|ds|data16|lock|notrack|bnd|rep[nz]*) +)*)(\S+) *(.*)$")
_PADDING = re.compile(r"^(data16\s+|cs\s+|ds\s+)*(nop\b|xchg\s+ax,ax$|int3$|udf\b)")


@dataclass(frozen=True)
class Instruction:
    """One instruction as objdump prints it, with the address and symbol of its operand."""

    address: int
    text: str


@dataclass(frozen=True)
class Function:
    """One function of a library, without the padding after it."""

    name: str
    instructions: tuple[Instruction, ...]

    @property
    def address(self) -> int:
        """Address of the first instruction."""
        return self.instructions[0].address


def libraries(text: str) -> dict[str, tuple[Function, ...]]:
    """Return the functions of each library in the output of ``objdump -d -C --no-show-raw-insn``."""
    functions_by_file: dict[str, tuple[Function, ...]] = {}
    functions: list[Function] = []
    name, instructions = "", list[Instruction]()

    def close() -> None:
        while instructions and _PADDING.match(instructions[-1].text):
            instructions.pop()
        if instructions and name:
            functions.append(Function(name, tuple(instructions)))
        instructions.clear()

    path = ""
    for line in text.splitlines():
        if instruction := _INSTRUCTION.match(line):
            instructions.append(Instruction(int(instruction[1], 16), instruction[2].rstrip()))
        elif function := _FUNCTION.match(line):
            close()
            name = _CLONE.sub(r"\1", function[1])
        elif file := _FILE.match(line):
            close()
            if path:
                functions_by_file[path] = tuple(functions)
            path, name = file[1], ""
            functions.clear()
    close()
    if path:
        functions_by_file[path] = tuple(functions)
    return functions_by_file


def frames(text: str) -> dict[int, Frames]:
    """Return the frames of each address in the output of ``addr2line -a -i``, without addresses that have no line."""
    places_by_address: dict[int, list[tuple[str, int]]] = {}
    address = -1
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            address = int(line, 16)
        elif place := re.match(r"^(.+):(\d+)(?: \(discriminator \d+\))?$", line):
            if int(place[2]) > 0 and place[1] != "??":
                places_by_address.setdefault(address, []).append((place[1], int(place[2])))
    return {address: tuple(places) for address, places in places_by_address.items()}


def reachable(functions: Sequence[Function], symbol: str) -> list[Function]:
    """Return the functions of a kernel: its own, and those of the same library that they call.

    The compiler splits a function: the body of a parallel region is ``symbol._omp_fn.0``, rare code is
    ``symbol.cold``.
    """
    by_name = {f.name: f for f in functions}
    by_address = {f.address: f for f in functions}
    pending = [f for f in functions if is_own(f, symbol)]
    functions_by_name: dict[str, Function] = {}
    while pending:
        function = pending.pop(0)
        if function.name in functions_by_name:
            continue
        functions_by_name[function.name] = function
        for _, address, name in _named_places(function):
            target = by_address.get(address) or by_name.get(name.removesuffix("@plt"))
            if target is not None:
                pending.append(target)
    return list(functions_by_name.values())


def is_own(function: Function, symbol: str) -> bool:
    """Return True if the compiler generated this function from the kernel itself."""
    return function.name == symbol or function.name.startswith(f"{symbol}.")


def _named_places(function: Function) -> Iterator[tuple[Instruction, int, str]]:
    """Yield each instruction that refers to a place, with the place's address and objdump's name for it."""
    for instruction in function.instructions:
        if match := _RELATIVE.match(instruction.text):
            yield instruction, int(match[3], 16), _CLONE.sub(r"\1", match[4] or "")
        elif match := _JUMP.match(instruction.text):
            yield instruction, int(match[2], 16), _CLONE.sub(r"\1", match[3])


def without_runtime(
    functions: Sequence[Function],
    lines: Mapping[int, int],
    frames: Mapping[int, Frames],
    source: Sequence[str],
) -> dict[int, int]:
    """Return the lines of instructions, without the wrong lines that the table has for calls of OpenMP's runtime.

    Compilers give the calls for a ``#pragma omp`` no line of their own, so that the table continues with the previous
    line: a barrier would belong to the store that happens to precede it. The same is true of the instructions after
    such a call, up to the next line.
    """
    kept = dict(lines)
    for function in functions:
        stale: Frames | None = None
        for instruction in function.instructions:
            places = frames.get(instruction.address)
            if (call := _CALL.match(instruction.text)) and _RUNTIME.match(call[1]):
                line = source[lines[instruction.address] - 1] if instruction.address in lines else ""
                stale = places if "#pragma omp" not in line and call[1] not in line else None
            if stale is not None and places == stale:
                kept.pop(instruction.address, None)
            else:
                stale = None
    return kept


def listing(functions: Sequence[Function], lines: Mapping[int, int]) -> Form:
    """Return the text of the functions, with links from its lines to the kernel's source.

    Args:
        lines: the line of the kernel's source by address; addresses without one are missing.
    """
    names = _names(functions)
    text: list[str] = []
    links: list[tuple[int, int]] = []
    for function in functions:
        if text:
            text.append("")
        text.append(f"{function.name}:")
        for instruction in function.instructions:
            if instruction is not function.instructions[0] and instruction.address in names:
                text.append(f"{names[instruction.address]}:")
            prefixes, operation, operands = _PARTS.findall(_rewritten(instruction.text, names))[0]
            text.append(f"        {' '.join([*prefixes.split(), operation]):<12} {operands}".rstrip())
            if instruction.address in lines:
                links.append((len(text), lines[instruction.address]))
    return Form("assembly", "\n".join(text) + "\n", tuple(links))


def _names(functions: Sequence[Function]) -> dict[int, str]:
    """Return the name of each place that the functions refer to."""
    starts = {f.address: f.name for f in functions}
    code = {i.address for f in functions for i in f.instructions}
    named = [place for f in functions for place in _named_places(f)]
    targets = {address for _, address, _ in named if address in code and address not in starts}
    order = [i.address for f in functions for i in f.instructions if i.address in targets]
    names = starts | {address: f".L{number}" for number, address in enumerate(order, 1)}
    constants = 0
    for _, address, name in named:
        if address in names:
            continue
        if name and not _OFFSET.search(name):
            names[address] = name.removesuffix("@plt").partition("@")[0]
        else:  # objdump names the nearest symbol before it, which is unrelated
            constants += 1
            names[address] = f".LC{constants}"
    return names


def _rewritten(text: str, names: Mapping[int, str]) -> str:
    if match := _RELATIVE.match(text):
        return f"{match[1]}{names[int(match[3], 16)]}[rip]{match[2]}"
    if match := _JUMP.match(text):
        return f"{match[1]}{names[int(match[2], 16)]}"
    return text


# Vector width ----------------------------------------------------------------------------------------------

_X86_ARITHMETIC = re.compile(
    r"^v?(?:(?:add|sub|mul|div|sqrt|rsqrt\w*|rcp\w*|max|min|cmp\w*|round|rndscale|reduce|scalef|getexp|getmant|range"
    r"|hadd|hsub|addsub|fn?m(?:add|sub)\w*)p[sdh]"
    r"|cvt\w*p[sdh]\w*"
    r"|p(?:add|sub|mul|madd|dp|max|min|abs|cmp|sll|srl|sra|shl|shr|sad|avg|lzcnt|opcnt|rol|ror|hadd|hsub|sign)\w*)$"
)
_X86_HALF = re.compile(r"^v?cvt(?:ph2ps|ps2ph)$")  # scalars use the same instruction
_X86_BITS = {"x": 128, "y": 256, "z": 512}
_ARM_WHOLE = re.compile(r"\bv\d+\.(?:16b|8h|4s|2d)\b")
_ARM_SCALABLE = re.compile(r"\bz\d+\.[bhsd]\b")
_ARM_MOVES = re.compile(
    r"^(?:mov|ld|st|dup|ins|zip|uzp|trn|ext|tbl|tbx|rev|and|orr|orn|eor|bic|bs[lp]|bi[tf]|sel|not)"
)


def vector_bits(functions: Sequence[Function], scalable: int = 0) -> int | None:
    """Return the bits of the widest vector registers that the code computes with; 0 if it computes on scalars only.

    If it computes nothing, return those that it copies with; None if that is ambiguous, since compilers also copy
    adjacent scalars in vector registers. ``scalable`` is the width of SVE registers in bits.
    """
    texts = [i.text for f in functions for i in f.instructions]
    computing = max((_computes(text, scalable) for text in texts), default=0)
    if computing:
        return computing
    copying = max((_copies(text) for text in texts), default=0)
    if copying > 128:
        return copying
    return None if copying else 0


def _computes(text: str, scalable: int) -> int:
    operation, _, operands = text.partition(" ")
    if _X86_ARITHMETIC.match(operation):
        bits = max((_X86_BITS[kind] for kind in re.findall(r"\b([xyz])mm\d+", operands)), default=0)
        return 0 if bits == 128 and _X86_HALF.match(operation) else bits
    if not _ARM_MOVES.match(operation):
        if _ARM_SCALABLE.search(operands):
            return scalable
        if _ARM_WHOLE.search(operands):
            return 128
    return 0


def _copies(text: str) -> int:
    """Return the bits of the vector that an instruction copies to or from memory outside the stack, else 0."""
    operation, _, operands = text.partition(" ")
    if "[" not in operands or re.search(r"\[(?:[re]?[sb]p|sp)\b", operands):
        return 0
    if re.match(r"^v?mov(?:[au]p[sd]|dq[au]\w*|ntp[sd]|ntdq\w*)$", operation) and (
        kinds := re.findall(r"\b([xyz])mm\d+", operands)
    ):
        return max(_X86_BITS[kind] for kind in kinds)
    return 128 if re.match(r"^(?:ldr|str|ldp|stp)$", operation) and re.match(r"\s*q\d+\b", operands) else 0

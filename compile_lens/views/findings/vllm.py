"""The finding about models compiled by vLLM."""

from __future__ import annotations

from compile_lens.record.logged_code import VllmPass, VllmPiece
from compile_lens.record.program import ProgramRecord

from ..document import NAME, NOTE, NUMBER, TEXT, Finding, Row, Section, Table
from ..words.quantities import NOT_KNOWN, plural


def vllm(program: ProgramRecord) -> Finding | None:
    """Return the finding; ``None`` if vLLM was not used."""
    if not program.vllm:
        return None
    settings: list[Row] = []
    pieces: list[Row] = []
    passes: list[Row] = []
    for number, model in enumerate(program.vllm):
        known = (("compile id", model.id), ("event", model.event), *model.settings)
        known += (("split into", ", ".join(model.submodules)),)
        settings += [Row((str(number), name, value)) for name, value in known if value]
        passes += [_pass((str(number), NOT_KNOWN, NOT_KNOWN), one) for one in model.passes]
        for piece in model.pieces:
            kernels = sum(len(program.modules[n].kernels) for n in piece.modules)
            row = (str(number), piece.submodule, _range(piece), _count(piece.operators))
            modules = ", ".join(map(str, piece.modules))
            pieces.append(Row((*row, modules, str(kernels), "alone" if piece.cudagraph_size else "")))
            passes += [_pass((str(number), piece.submodule, _range(piece)), one) for one in piece.passes]
    sections: list[Section] = [
        Table("", ("model", "setting", "value"), (NUMBER, NAME, TEXT), tuple(settings)),
        Table(
            "",
            ("model", "piece", "tokens", "operators", "modules", "kernels", "size"),
            (NUMBER, NAME, NAME, NUMBER, NAME, NUMBER, NOTE),
            tuple(pieces),
        ),
    ]
    if passes:
        columns = ("model", "piece", "tokens", "pass", "operators", "new lines")
        sections.append(Table("", columns, (NUMBER, NAME, NAME, NAME, NUMBER, NUMBER), tuple(passes)))
    intro = (
        "vLLM's configuration; the pieces into which it split the model, compiled for ranges of numbers of tokens; "
        "and the graph of a piece after each of vLLM's passes, with the printed lines that are new then."
    )
    fact = plural(len(pieces), "piece")
    return Finding("vllm", "vLLM", intro, fact, (), "program.record.vllm", tuple(sections), few=8)


def _pass(of: tuple[str, str, str], one: VllmPass) -> Row:
    return Row((*of, one.name, _count(one.operators), _count(one.changed_lines)))


def _count(number: int | None) -> str:
    return NOT_KNOWN if number is None else str(number)


def _range(piece: VllmPiece) -> str:
    first, last = piece.compile_range
    return f"{first} to {last}" if first != last else str(first)

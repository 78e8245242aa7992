"""The finding about the device model used instead of a device, with the source of each figure."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.device import DeviceModel

from ..document import NAME, NUMBER, TEXT, Finding, Prose, Row, Section, Table
from ..words import quantities, stamp

KEY, TITLE = "target", "Device model"
INTRO = (
    "The device that the code is for, as its maker describes it: the properties given to Inductor and Triton, their "
    "sources, and how the function reached the process that compiled it."
)
WHERE = "capture.target"


def target(capture: Record) -> Finding | None:
    """Return the finding; ``None`` if the code is for a device of this machine."""
    device = capture.target
    if device is None:
        return None
    model = device.model
    rows = figures(model)
    sections: list[Section] = []
    if rows:
        words = (f"{stamp.device(capture)}, requested as {device.requested!r}",)
        sections.append(Table("figures", ("figure", "value", "source"), (NAME, NUMBER, TEXT), rows, words))
    brief = [stamp.device(capture)]
    if how := stamp.how(device):
        sections.append(Prose("how", (how,)))
        brief.append(how)
    if model.flops_note:
        sections.append(Prose("what is not known", (model.flops_note,)))
    if differences := stamp.of_target(device):
        sections.append(Prose(stamp.MAY_DIFFER, differences))
        brief += [f"{stamp.MAY_DIFFER}: {words}" for words in differences]
    fact = f"{model.title}: {quantities.plural(len(rows), 'figure')}" if rows else model.title
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def figures(model: DeviceModel) -> tuple[Row, ...]:
    """Return name, value and source of every figure of a model, its speeds last."""
    rows = [Row((f.name, _value(f.value), f.source)) for f in model.properties]
    if model.bandwidth:
        rows.append(Row(("memory bandwidth", f"{quantities.count(int(model.bandwidth))}B/s", model.source)))
    rows += [
        Row((f"{dtype} operations", f"{quantities.count(int(rate))}/s", model.source))
        for dtype, rate in model.flops
    ]
    return tuple(rows)


def _value(value: int | float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"

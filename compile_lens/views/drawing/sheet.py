"""The style sheet inside an SVG document. It has literal colours, since not every renderer supports CSS variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from compile_lens.layout.plan import LABEL_SIZE, NAME_SIZE, SMALL_SIZE, TARGET_SIZE

from ..words.palette import COLOURS, DARK, LIGHT, Colour, Theme


def style(kinds: set[str], saved: bool, dark: bool = True, stubs: bool = True, derived: bool = False) -> str:
    """Return the rules for the given kinds of nodes: light and, with ``dark``, dark if the reader prefers it.

    Every rule is limited to ``.lens-graph``, so that it does not affect the rest of a page that contains the SVG
    inline. Without dark rules the drawing is a separate image: its rules are not limited and unneeded rules are
    omitted. ``stubs`` says whether the drawing has stubs.
    """
    present = {kind: colour for kind, colour in COLOURS.items() if kind in kinds}
    rules = [
        f"text{{white-space:pre;font-size:{TARGET_SIZE:g}px}}",
        ".title{font-size:14px;font-weight:600}",
        ".caption{font-size:11px}",
        ".node rect,.swatch{stroke-width:1.2}",
        ".node text,.edge text{text-anchor:middle}",
        f".name{{font-size:{NAME_SIZE:g}px;font-weight:600}}",
        *(
            f"{selectors}{{font-size:{size:g}px}}"
            for selectors, size in (
                (".small,.legend text", SMALL_SIZE),
                (".edge text,.stub text", LABEL_SIZE),
            )
            if size != TARGET_SIZE
        ),
        ".edge path,.stub path{fill:none;stroke-width:1.2;stroke-linecap:round;stroke-linejoin:round}",
        ".stub path,.stub rect{stroke-dasharray:3 2.5}",
    ]
    if dark:
        rules.insert(0, ".lens-graph{max-width:100%;height:auto}")  # fits the page that holds it inline
    if saved:
        rules += [".saved>rect{stroke-width:2}", ".lens-graph .badge{stroke:none}"]
        rules += [".node .on-badge{font-size:8.5px;font-weight:600}"]
    if derived:
        rules.append(".derived>rect{stroke-dasharray:5 3}")
    rules += _coloured(present, saved, LIGHT, dark=False)
    if derived:
        rules.append(f".derived .swatch{{fill:none;stroke:{LIGHT.edge}}}")
    if not dark:
        return _without(
            rules, ([] if stubs else [".stub"]) + ([] if saved or derived else [".legend", ".swatch"])
        )
    return (
        _scoped(rules)
        + f"@media (prefers-color-scheme:dark){{{_scoped(_coloured(present, saved, DARK, dark=True))}}}"
    )


def _without(rules: list[str], classes: list[str]) -> str:
    """Return the rules without selectors of the given classes."""
    kept = []
    for rule in rules:
        selectors, body = rule.split("{", 1)
        left = [one for one in selectors.split(",") if not any(name in one for name in classes)]
        kept += [f"{','.join(left)}{{{body}"] if left else []
    return "".join(kept)


def _scoped(rules: list[str]) -> str:
    scoped = []
    for rule in rules:
        selectors, body = rule.split("{", 1)
        names = [s if s.startswith(".lens-graph") else f".lens-graph {s}" for s in selectors.split(",")]
        scoped.append(f"{','.join(names)}{{{body}")
    return "".join(scoped)


def inside(name: str, rules: str) -> str:
    """Limit each rule to documents of this class, so that it does not affect a page that contains one inline."""
    lines = []
    for rule in rules.split("}"):
        if rule:
            selectors, _, body = rule.partition("{")
            lines.append(f"{','.join(f'.{name} {s}' for s in selectors.split(','))}{{{body}}}")
    return "".join(lines)


def fills(kinds: Mapping[str, Colour], dark: bool) -> str:
    """Return a rule for each selector with the fill and line of its colour."""
    rules = ""
    for selector, colour in kinds.items():
        fill, line = (colour.dark_fill, colour.dark_line) if dark else (colour.fill, colour.line)
        rules += f"{selector}{{fill:{fill};stroke:{line}}}"
    return rules


def themed(name: str, base: str, colours: Callable[[Theme, bool], str]) -> str:
    """Return the style of documents of a class: ``base``, and colours that are dark if the reader prefers it."""
    light, dark = inside(name, base + colours(LIGHT, False)), inside(name, colours(DARK, True))
    return f".{name}{{max-width:100%;height:auto}}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _coloured(present: dict[str, Colour], saved: bool, theme: Theme, dark: bool) -> list[str]:
    rules = [
        f".paper{{fill:{theme.paper}}}",
        f".title,.node text,.legend text{{fill:{theme.ink}}}",
        f".caption{{fill:{theme.quiet}}}",
        f".edge path,.stub path{{stroke:{theme.edge}}}",
        f".edge text,.stub text{{fill:{theme.label}}}",
        f".stub rect{{fill:{theme.paper};stroke:{theme.edge}}}",
    ]
    kinds = {f".kind-{kind} rect": colour for kind, colour in present.items()}
    rules += [f"{rule}}}" for rule in fills(kinds, dark).split("}")[:-1]]
    if saved:
        rules += [
            f".saved>rect{{stroke:{theme.saved}}}",
            f".node .badge,.saved .badge{{fill:{theme.saved}}}",
            f".node .on-badge{{fill:{theme.on_saved}}}",
        ]
    return rules

"""Trials of one compiler setting at a time, to see how the code of a function changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..engine.call import check_callable, check_fit
from ..engine.entry import outside_dynamo, separates_keywords
from ..errors import LensError, UsageError
from ..measures.quantities import OF_ALL, OF_PHASES, Quantity
from ..record.capture import Record
from ..record.device import DeviceModel
from ..record.difference import DifferenceRecord
from ..record.what_if import FIGURES, Trial
from ..results.capture import Capture
from ..results.comparison import WhatIf
from ..trials.progress import bar, interrupts, watched
from ..trials.restoration import SavedState
from ..trials.run_figures import LACKS, run_figure
from ..trials.switches import SWITCHES, CaptureContents, Switch, applied, merged, only_run
from .capture import capture

MAX_PAIRS = 6
"""Default number of pairs to try: those of the four best switches."""


@outside_dynamo
@separates_keywords(capture)
def what_if(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    target: str | Path | DeviceModel | None = None,
    switches: Iterable[str] | None = None,
    pairs: bool | int = True,
    show_progress: bool | None = None,
    **options: Any,
) -> WhatIf:
    """Try one compiler switch at a time on ``fn(*args, **kwargs)``, then pairs of those that matter.

    Each trial is a capture with one setting of Inductor or ``torch.compile`` changed, so that the function runs
    once for each, as in a plain call, on the tensors and objects as they were before the first; with ``target`` it
    runs on the CPU in a child process, without results. Code is only generated: launches are counted, bytes and the
    peak are modelled, and times are not known. For ``emulate_precision_casts``, tried if there is half precision,
    code is built (interpreted for an absent GPU) and run as in ``verify``; ``isolate_recompiles`` counts if the
    first call recompiles because of cache entries that this process has for the same code (or is refused at the
    limit). Switches that cannot matter for the capture are left out with the reason. An interrupt (Ctrl-C) ends the
    trials and keeps the results.

    Args:
        fn, kwargs, target: as for ``capture``.
        switches: names of the switches to try (see ``compile_lens.trials.switches``); default: all that may matter.
        pairs: True to try pairs of switches that matter too, or their maximum number, best first; by default six, the
            pairs of four switches. A pair helps if it is better than both of its switches.
        show_progress: True for a progress bar on stderr; by default in a terminal or a notebook.
        options: other options of ``capture``; Inductor ``options`` apply to each trial too.

    Returns:
        A ``WhatIf``: ``.helpful``, ``.trials``, ``.not_tried``, ``.diff(name)``, ``.save("what-if.html")``; its text is
        a table, and in a notebook each row opens the difference that the switch makes.

    Raises:
        UsageError: an argument is invalid, or there is no such switch.
        CaptureError: the function cannot be captured without a switch.
    """
    if "calls" in options:
        check_callable(fn, "what_if")
    else:
        check_fit(fn, args, kwargs, "what_if")
    if not (show_progress is None or isinstance(show_progress, bool)):
        raise UsageError(f"show_progress={show_progress!r} is not one of None, True, False")
    wanted = _wanted(switches)
    pairs = _pairs(pairs)
    trials: list[Trial] = []
    interrupted = False
    quiet = not (watched() if show_progress is None else show_progress)
    # With a target, the function runs in a child: nothing here changes.
    reached = (fn, args, kwargs, options.get("calls")) if target is None else ()
    saved_state = SavedState(*reached, state=True)
    with interrupts() as check:
        base = capture(fn, *args, kwargs=kwargs, target=target, **options)
        left_out: list[tuple[str, str]] = []
        to_try: list[Switch] = []
        contents = CaptureContents(base)
        own = {**(options.get("options") or {}), **options}
        for switch in wanted:
            reason = (
                _given(switch, own)
                or switch.in_force(contents.settings)
                or (switch.idle(contents) if contents.known and switches is None else "")
            )
            if reason:
                left_out.append((switch.name, reason))
            else:
                to_try.append(switch)
        before = _figures(base)

        def run(some: list[Switch]) -> None:
            with bar("what if", quiet=quiet) as tell:
                for number, switch in enumerate(some, 1):
                    check()  # raises an interrupt that was swallowed
                    saved_state.reset()  # a cache that grows in each call has other sizes in the next
                    trial = _trial(switch, base, before, fn, args, kwargs, target, options)
                    if trial.failure:
                        check()  # the failure may come from an interrupt
                    trials.append(trial)
                    tell(switch.name, number, len(some))

        try:
            run(to_try)
            if pairs:
                some = _to_pair(to_try, trials)
                best = sorted(itertools.combinations(range(len(some)), 2), key=lambda two: two[::-1])
                run([merged(some[i] for i in two) for two in best[:pairs]])
        except KeyboardInterrupt:
            interrupted = True
    kept = tuple(t for t in trials if not _unknown_here(t))
    left_out += [(t.name, t.failure) for t in trials if _unknown_here(t)]
    tried = {t.name for t in trials}
    left_out += [(s.name, "not reached: it was interrupted before") for s in to_try if s.name not in tried]
    left_out += only_run(contents) if switches is None else ()
    return WhatIf(base.function, base, kept, tuple(left_out), interrupted)


def _wanted(names: Iterable[str] | None) -> list[Switch]:
    if names is None:
        return list(SWITCHES)
    if isinstance(names, str):
        raise UsageError(f"switches={names!r} is not a list of names: write switches=[{names!r}]")
    known = {switch.name: switch for switch in SWITCHES}
    if not isinstance(names, Iterable):
        raise UsageError(f"switches={names!r} is not a list of names; there are {', '.join(known)}")
    selected = list(names)
    if not selected:
        raise UsageError(f"switches={names!r} names none to try; there are {', '.join(known)}")
    for name in selected:
        if name not in known:
            raise UsageError(f"there is no switch {name!r}; there are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(selected)]


def _to_pair(switches: Iterable[Switch], trials: Iterable[Trial]) -> list[Switch]:
    """Return the switches to combine in pairs, helpful ones first; only the best value of each setting."""
    by_name = {switch.name: switch for switch in switches if not switch.run}
    by_setting: dict[tuple[str, ...], Switch] = {}
    for trial in sorted(trials, key=lambda t: (not t.lower, bool(t.higher))):
        if trial.changes_figures and trial.name in by_name:
            by_setting.setdefault(tuple(by_name[trial.name].values), by_name[trial.name])
    return list(by_setting.values())


def _pairs(asked: bool | int) -> int:
    if not isinstance(asked, int) or asked < 0:
        raise UsageError(
            f"pairs={asked!r} is neither True nor False nor a whole number of 0 or more, the most pairs to try"
        )
    return MAX_PAIRS if asked is True else int(asked)


def _given(switch: Switch, own: dict[str, Any]) -> str:
    """Return why a switch is skipped: the caller has set it. ``""`` if not."""
    named = [name for name in (*switch.options, *switch.arguments) if own.get(name) is not None]
    if named:
        return f"you set {', '.join(f'{name}={own[name]!r}' for name in named)}"
    if switch.options and own.get("mode") is not None:
        return f"mode={own['mode']!r} has settings of its own, and torch accepts no others with it"
    return ""


_UNKNOWN = ("options=", "torch._functorch.config has no")
"""Prefixes of the errors that report an unknown option."""


def _trial(
    switch: Switch,
    base: Capture,
    before: dict[str, Quantity | float],
    fn: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    target: Any,
    options: Any,
) -> Trial:
    from .._torch.graphs.partitioner import patched_settings
    from ..measures.diff.levels import difference

    more = {**options, **switch.arguments}
    if switch.options:
        more["options"] = {**(options.get("options") or {}), **switch.options}
    try:
        with patched_settings(switch.partitioner):
            own = switch.options or switch.arguments or switch.partitioner
            changed_capture = capture(fn, *args, kwargs=kwargs, target=target, **more) if own else base
        after = _figures(changed_capture)
        if switch.run:
            pair = run_figure(switch, base, changed_capture, (fn, args, kwargs), options)
            before, after = ({**known, switch.run: value} for known, value in zip((before, after), pair))
    except LensError as error:
        first = str(error).strip().partition("\n")[0]
        unknown = isinstance(error, UsageError) and first.startswith(_UNKNOWN)
        reason = (LACKS if unknown else "") + first
        return Trial(switch.name, switch.settings, switch.meaning, (), reason, switches=switch.parts)
    code = any(
        change.level != "settings" for change in difference(base, changed_capture, DifferenceRecord).changes
    )
    changed = tuple(
        (name, (_number(before[name]), _number(after[name])))
        for name in FIGURES
        if name in before and before[name] != after[name]
    )
    arguments = None if switch.partitioner or switch.compiling else more
    to_apply = applied(fn, switch, options)
    return Trial(
        switch.name,
        switch.settings,
        switch.meaning,
        changed,
        "",
        changed_capture,
        code,
        arguments,
        to_apply,
        switch.parts,
    )


def _unknown_here(trial: Trial) -> bool:
    return trial.failure.startswith(LACKS)


def _figures(record: Record) -> dict[str, Quantity | float]:
    """Return the figures of a capture."""
    of_phases = {name: OF_PHASES[name](record, "") for name in FIGURES if name in OF_PHASES}
    return {**of_phases, **{name: OF_ALL[name](record) for name in FIGURES if name in OF_ALL}}


def _number(quantity: Quantity | float) -> float | None:
    if isinstance(quantity, int):  # a Figure, too
        return int(quantity)
    return quantity if isinstance(quantity, float) else None

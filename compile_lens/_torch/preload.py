"""Loads what every capture for a device that is not there needs: the child does so while it waits for its request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo


class LateTemplate:
    """A template of a kernel that is compiled when it is first used; few captures use any."""

    def __init__(self, made: Any, source: str) -> None:
        self._made = made
        self._source = source
        self._template: Any = None

    def _real(self) -> Any:
        if self._template is None:
            self._template = self._made(self._source)
        return self._template

    def __bool__(self) -> bool:
        return bool(self._real())  # without jinja2 there is none, and torch asks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy that is being made has nothing yet to ask
            raise AttributeError(name)
        return getattr(self._real(), name)


@contextlib.contextmanager
def late_templates() -> Iterator[None]:
    """For the duration, Inductor's kernels' templates are kept as text: compiling them is a twelfth of its import.

    Changes nothing on a torch that makes them in another way.
    """
    try:
        from torch._inductor.codegen.common import KernelTemplate

        made = KernelTemplate._template_from_string
    except (ImportError, AttributeError):
        yield
        return
    KernelTemplate._template_from_string = staticmethod(lambda source: LateTemplate(made, source))
    try:
        yield
    finally:
        KernelTemplate._template_from_string = staticmethod(made)


@contextlib.contextmanager
def composites_once() -> Iterator[None]:
    """For the duration, torch brings each operator that is composite into ``torch.ops`` once: by itself it asks for all
    of them again with every namespace.

    Changes nothing on a torch that does it in another way.
    """
    try:
        from torch._export import utils

        original = utils._materialize_cpp_cia_ops
        names = torch._C._dispatch_get_registrations_for_dispatch_key
    except (ImportError, AttributeError):
        yield
        return
    there: set[str] = set()

    def materialize() -> None:
        fresh = set(names("CompositeImplicitAutograd")) - there
        if fresh:
            original()
        there.update(fresh)

    utils._materialize_cpp_cia_ops = materialize
    try:
        yield
    finally:
        utils._materialize_cpp_cia_ops = original


with late_templates(), composites_once():
    import torch._inductor.compile_fx

from . import session as session  # noqa: E402
from .operators import inductor_tables as inductors_tables  # noqa: E402
from .targets import stand_in as stand_in  # noqa: E402

inductors_tables.remember()

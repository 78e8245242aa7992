"""Loads the modules that every capture for an absent device needs, in the child while it waits for its request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo


class LateTemplate:
    """A kernel template that is compiled on first use; few captures use any."""

    def __init__(self, factory: Any, source: str) -> None:
        self._made = factory
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
    """For the duration, keep Inductor's kernel templates as text: compiling them is a twelfth of its import.

    Changes nothing on a torch that makes them in another way.
    """
    try:
        from torch._inductor.codegen.common import KernelTemplate

        factory = KernelTemplate._template_from_string
    except (ImportError, AttributeError):
        yield
        return
    KernelTemplate._template_from_string = staticmethod(lambda source: LateTemplate(factory, source))
    try:
        yield
    finally:
        KernelTemplate._template_from_string = staticmethod(factory)


@contextlib.contextmanager
def composites_once() -> Iterator[None]:
    """For the duration, let torch bring each composite operator into ``torch.ops`` once: by itself it queries all of
    them again with every namespace.

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
from .operators import inductor_tables  # noqa: E402
from .targets import stand_in as stand_in  # noqa: E402

inductor_tables.remember()

"""Preloading, in a waiting child process, of the modules that every capture for an absent device needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch._dynamo


class LateTemplate:
    """A kernel template that is compiled on first use; few captures use any."""

    def __init__(self, factory: Any, source: str) -> None:
        self._factory = factory
        self._source = source
        self._template: Any = None

    def _real(self) -> Any:
        if self._template is None:
            self._template = self._factory(self._source)
        return self._template

    def __bool__(self) -> bool:
        return bool(self._real())  # None without jinja2, for which torch tests

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying reads such attributes before there is a template
            raise AttributeError(name)
        return getattr(self._real(), name)


@contextlib.contextmanager
def late_templates() -> Iterator[None]:
    """For the duration, leave Inductor's kernel templates as text; compiling them takes a twelfth of its import time.

    Does nothing if this torch builds templates in another way.
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
    """For the duration, materialize each composite operator in ``torch.ops`` once; torch alone queries all of them
    again for each namespace.

    Does nothing if this torch materializes them in another way.
    """
    try:
        from torch._export import utils

        original = utils._materialize_cpp_cia_ops
        registrations = torch._C._dispatch_get_registrations_for_dispatch_key
    except (ImportError, AttributeError):
        yield
        return
    materialized: set[str] = set()

    def materialize() -> None:
        fresh = set(registrations("CompositeImplicitAutograd")) - materialized
        if fresh:
            original()
        materialized.update(fresh)

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

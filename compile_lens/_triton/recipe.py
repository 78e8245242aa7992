"""What is handed to Triton's compiler for one launch configuration of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """What Inductor hands to Triton's compiler for one launch configuration.

    ``function`` is Triton's, ``backend`` and ``arch`` are Triton's words for the device (``cuda``, 90).
    """

    function: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    attributes: dict[Any, Any]
    options: dict[str, Any]
    backend: str
    arch: int | str
    warp_size: int

"""The table in which c10 looks up how to switch to a device."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

from ...errors import UsageError
from .replaced import Places

SLOTS = {"cuda": 1, "mps": 13}
"""c10's numbers of the device types."""

_SYMBOL = "_ZN3c104impl26device_guard_impl_registryE"
_LIBRARIES = ("libc10.so", "libc10.dylib", "c10.dll")


def place(places: Places, kind: str) -> None:
    """Let the CPU's guard, which does nothing, stand where torch has none for ``kind``.

    Without one, indexing a fake tensor of that device says that PyTorch is not linked with it. Raises ``UsageError``
    where torch's library does not show the table.
    """
    folder = Path(torch.__file__).parent / "lib"
    path = next((folder / name for name in _LIBRARIES if (folder / name).exists()), None)
    try:
        if path is None:
            raise OSError(f"none of {', '.join(_LIBRARIES)} is in torch's lib folder")
        table: Any = (ctypes.c_void_p * (max(SLOTS.values()) + 1)).in_dll(ctypes.CDLL(str(path)), _SYMBOL)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"code for {kind} needs a place in torch's library that this build does not show ({error}): "
            "capture on a machine with that device, or with torch's Linux or macOS wheel"
        ) from None
    slot = SLOTS[kind]
    if not table[slot]:
        places.add(table.__setitem__, slot, None)
        table[slot] = table[0]

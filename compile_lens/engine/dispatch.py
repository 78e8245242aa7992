"""Choice of the process in which a call is captured."""

from __future__ import annotations

from ..results.capture import Capture
from . import remote
from .call import Call
from .local import perform


def dispatch(call: Call) -> Capture:
    """Return the capture of a call, made in this process, or in a child process if it is for another device.

    Raises:
        UsageError, CaptureError: as ``compile_lens.capture`` does.
    """
    if call.model is not None:
        return remote.capture(call)
    return perform(call, launch_backward=call.options.backward is not False)[0]

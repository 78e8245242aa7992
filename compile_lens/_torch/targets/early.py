"""Loads what every capture for a device that is not there needs: the child does so while it waits for its request."""

from __future__ import annotations

import torch._dynamo
import torch._inductor.compile_fx  # noqa: F401

from .. import session as session
from . import stand_in as stand_in

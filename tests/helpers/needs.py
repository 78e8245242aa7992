"""Requirements of tests on the machine, and the handling of a missing one."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

SWITCH = "COMPILE_LENS_BROWSER"
"""Environment variable: ``required`` makes the tests of the viewer fail where they would be skipped."""


def not_here(reason: str) -> NoReturn:
    """Skip the test, or fail it if the environment variable declares that the machine has everything."""
    if os.environ.get(SWITCH) == "required":
        pytest.fail(f"{SWITCH}=required, but {reason}", pytrace=False)
    pytest.skip(reason)

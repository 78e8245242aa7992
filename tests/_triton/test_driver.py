"""The driver that Triton gets for a device model."""

from __future__ import annotations

import pytest

from compile_lens.devices.models import resolve


@pytest.mark.parametrize(("name", "capability"), [("t4", 75), ("a100", 80), ("h100", 90)])
def test_the_target_has_the_compute_capability_of_the_model(name: str, capability: int) -> None:
    pytest.importorskip("triton")
    from compile_lens._triton.driver import ModelDriver

    target = ModelDriver(resolve(name)).get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", capability, 32)

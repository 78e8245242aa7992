"""Settings that are tried as remedies are those of torch's own configuration."""

from __future__ import annotations

import pytest
import torch._dynamo.config as config

from compile_lens._torch.watch import remedy_settings
from compile_lens._torch.watch.remedy_settings import RemedySettings
from compile_lens.record.remedies import CAPTURE_SCALARS, LIMIT, TOTAL_LIMIT, Remedy


@pytest.mark.parametrize(("kind", "value"), [(LIMIT, 3), (TOTAL_LIMIT, 5), (CAPTURE_SCALARS, True)])
def test_a_remedy_sets_its_setting(kind: str, value: int | bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy_settings, "_applied", [])
    with config.patch({kind: getattr(config, kind)}):
        RemedySettings([Remedy(kind, kind, value=int(value))]).apply()
        assert getattr(config, kind) == value

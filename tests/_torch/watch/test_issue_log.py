"""The order of issued collectives, and which of them the process waits for."""

from __future__ import annotations

from compile_lens._torch.watch.issue_log import IssueLog
from compile_lens.record.collectives import Collective, IssuedCollective


def waiting(log: IssueLog) -> list[bool | None]:
    record = log.record()
    return [record.distinct[number].waits for number in record.order]


def test_a_wait_at_once_a_later_one_and_one_that_is_not_known() -> None:
    log = IssueLog()
    issued = IssuedCollective(Collective("all_reduce", ("float32[4]",)), waits=False)
    first, second, third = (log.add(issued) for _ in range(3))
    assert (first, second, third) == (0, 1, 2)
    assert waiting(log) == [False, False, False]
    log.wait(2)
    log.wait(0)
    log.wait_unknown(1)
    assert waiting(log) == [False, None, True]
    assert log.record().waits == ((3, 0),)

"""Functions of torch that the device model answers: Dynamo treats each replacement like torch's own function.

The oracle is plain torch in another process, where the same function object, by which Dynamo recognizes it, runs other
code and answers like an H100. A real H100 with torch 2.11 had a call of ``get_device_capability`` in Dynamo's graph,
and a break (gb0208) at ``is_bf16_supported``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from suite import rand

from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

ASKED = {
    "get_device_capability": "torch.cuda.get_device_capability() >= (9, 0)",
    "get_device_name": "'H100' in torch.cuda.get_device_name()",
    "is_bf16_supported": "torch.cuda.is_bf16_supported()",
    "is_tf32_supported": "torch.cuda.is_tf32_supported()",
    "current_device": "torch.cuda.current_device() == 0",
}

PLAIN = """
import json, logging, sys, torch
logging.disable(logging.CRITICAL)
answers = {
    "get_device_capability": lambda device=None: (9, 0),
    "get_device_name": lambda device=None: "NVIDIA H100 80GB HBM3",
    "is_bf16_supported": lambda including_emulation=True: True,
    "is_tf32_supported": lambda: True,
    "current_device": lambda: 0,
}
for name, answer in answers.items():
    function = getattr(torch.cuda, name)
    function.__code__ = answer.__code__.replace(co_filename=function.__code__.co_filename)
from torch._dynamo.utils import counters
found = {}
def backend(gm, inputs):
    graphs.append([n.name for n in gm.graph.nodes if n.op in ("call_function", "call_method")])
    return gm.forward
for name, text in json.loads(sys.argv[1]).items():
    graphs = []
    torch._dynamo.reset()
    counters.clear()
    torch.compile(eval(f"lambda x: x.sin() if {text} else x.cos()"), backend=backend)(torch.ones(4))
    found[name] = [graphs, [reason.splitlines()[0] for reason in counters["graph_break"]]]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def plainly() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, json.dumps(ASKED)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.full
@pytest.mark.parametrize("name", ASKED)
def test_it_is_traced_as_torchs_own(name: str, plainly: dict[str, Any]) -> None:
    fn = eval(f"lambda x: x.sin() if {ASKED[name]} else x.cos()", {"torch": torch})
    found = perform(Call.read(fn, (rand(8),), None, CaptureOptions(target="h100"), model=resolve("h100")))[0]
    graphs = [[n.name for n in c.graphs["dynamo"].calls] for c in found.compilations if "dynamo" in c.graphs]
    said = dict.fromkeys(one.reason.splitlines()[0] for one in found.breaks)  # as Dynamo counts them
    assert [graphs, [*said]] == plainly[name]


def test_what_the_model_says_of_the_device_is_a_constant() -> None:
    fn = eval(
        "lambda x: x.sin() if torch.cuda.get_device_properties(0).major == 9 else x.cos()", {"torch": torch}
    )
    found = perform(Call.read(fn, (rand(8),), None, CaptureOptions(target="h100"), model=resolve("h100")))[0]
    (compilation,) = found.compilations
    assert [n.name for n in compilation.graphs["dynamo"].calls] == ["sin"] and found.breaks == ()

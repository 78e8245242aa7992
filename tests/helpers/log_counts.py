"""Counts of the entries of a ``TORCH_TRACE`` log, line by line, without any code of the package.

``python log_counts.py FOLDER`` prints the counts of each log in a folder, as in ``tests/record/public_logs.json``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

BACKEND = ("BackendCompilerFailed", "InductorError", "BackendError")


def entries(path: Path) -> list[tuple[dict[str, Any], str]]:
    """Return the JSON of each entry of a log, and its text."""
    every: list[tuple[dict[str, Any], str]] = []
    for raw in path.read_bytes().split(b"\n"):
        line = raw.decode("utf-8", "replace").rstrip("\r")
        if line.startswith("\t"):
            head, text = every[-1]
            every[-1] = head, text + line[1:] + "\n"
        elif "] {" in line:
            every.append((json.loads(line[line.index("] {") + 2 :]), ""))
    return every


def counts(path: Path) -> dict[str, int]:
    """Return the counts of a log."""
    own: Counter[str] = Counter()
    kernels: dict[str, set[str]] = {}
    resumed = 0
    for head, text in entries(path):
        numbered = head.get("frame_id") is not None
        name = head.get("artifact", {}).get("name") or head.get("graph_dump", {}).get("name") or ""
        own["compiles"] += "dynamo_start" in head and not head.get("attempt")
        own["graphs"] += "dynamo_output_graph" in head
        own["breaks"] += name == "dynamo_graph_break_reason"
        own["reasons"] += name == "recompile_reasons"
        own["modules"] += "inductor_output_code" in head or name == "inductor_aot_wrapper_code"
        own["exported"] += "exported_program" in head
        own["ahead"] += not numbered and ("aot_inference_graph" in head or "aot_forward_graph" in head)
        own["collectives"] += (
            text.count("torch.ops._c10d_functional.") if name == "inductor_collective_schedule" else 0
        )
        own["graph_calls"] += name == "inductor_graph_execution"
        if "compilation_metrics" in head and numbered:
            metrics = head["compilation_metrics"] or {}
            own["failures"] += metrics.get("fail_type") not in (None, "SkipFrame")
            own["graphs"] -= metrics.get("fail_type") in BACKEND
            resumed += str(metrics.get("co_name") or "").startswith("torch_dynamo_resume_in_")
        if name == "inductor_provenance_tracking_node_mappings":
            id = f"{head.get('frame_id')}/{head.get('frame_compile_id')}"
            kernels.setdefault(id, set()).update(json.loads(text)["cppCodeToPost"])
    own["breaks"] = own["breaks"] or resumed
    own["kernels"] = sum(map(len, kernels.values()))
    return {what: count for what, count in own.items() if count}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    logs = sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size)
    print(json.dumps({str(path.relative_to(folder)): counts(path) for path in logs}, indent=2))

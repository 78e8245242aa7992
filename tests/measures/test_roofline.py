"""The roofline: verdicts against figures made by hand, and its picture."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest
from full_text import full
from samples import HOSTILE, sample

from compile_lens.devices import models
from compile_lens.errors import UsageError
from compile_lens.measures.roofline import COMPUTE, MEMORY, Bound, Roofline, _bound, _dtype, roof, roofline
from compile_lens.measures.traffic import KernelTraffic
from compile_lens.record.benchmark import Benchmark, DeviceSpeed, Series
from compile_lens.results.capture import Capture
from compile_lens.views.drawing.roofline import to_svg

SPEED = DeviceSpeed("bench", bandwidth=1e9, flops=1e10, dtype="float32", measured=True)
"""A ridge at 10 operations for each byte."""


def moved(
    name: str = "k", nbytes: int | None = 1000, flops: int | None = 1000, dtype: str = "float32"
) -> KernelTraffic:
    return KernelTraffic(name, "forward", reads=nbytes, writes=0, flops=flops, dtype=dtype)


def test_a_speed_that_is_none_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"speed=3 is int, not a DeviceSpeed: compile_lens.measure_speed\(\)"
    ):
        sample().roofline(3)  # type: ignore[arg-type]


def many(count: int, speed: DeviceSpeed | None = SPEED) -> Roofline:
    kernels = [
        moved(f"triton_poi_fused_add_mul_native_layer_norm_gelu_{i}", 1000 + i, 37 * (i + 1) ** 3)
        for i in range(count)
    ]
    return Roofline(speed, tuple(_bound(k, speed) for k in kernels))


@pytest.mark.parametrize(
    ("nbytes", "flops", "bound", "seconds", "rate"),
    [
        (1000, 1000, MEMORY, 1e-6, 1e9),
        (1000, 10_000, MEMORY, 1e-6, 1e10),  # on the ridge itself
        (1000, 100_000, COMPUTE, 1e-5, 1e10),
        (1000, 0, MEMORY, 1e-6, 0.0),
        (0, 1000, COMPUTE, 1e-7, 1e10),
    ],
)
def test_the_slower_side_bounds(nbytes: int, flops: int, bound: str, seconds: float, rate: float) -> None:
    found = _bound(moved(nbytes=nbytes, flops=flops), SPEED)
    assert found.bound == bound and found.seconds == pytest.approx(seconds)
    assert found.rate == pytest.approx(rate)
    assert found.sentence.lower().startswith(f"{bound}-bound") and "modelled" in found.sentence


def test_a_verdict_names_both_times() -> None:
    text = _bound(moved(nbytes=2_000_000, flops=3_000_000), SPEED).sentence
    assert "2 MB takes 2 ms" in text and "3 Mflop 300 µs" in text and "1.5 operations for each byte" in text


def test_what_is_unknown_gives_no_verdict() -> None:
    found = _bound(moved(flops=None), SPEED)
    assert found.bound == "" and found.seconds is None and found.sentence.startswith("No verdict")
    assert Roofline(SPEED, (found, _bound(moved(), SPEED))).seconds is None
    assert _bound(moved(nbytes=0, flops=0), SPEED).bound == ""


def test_another_type_than_the_roofs_is_said() -> None:
    assert "bfloat16" in _bound(moved(dtype="bfloat16"), SPEED).sentence
    assert "It computes in" not in _bound(moved(), SPEED).sentence


def test_the_waves_are_bound_by_memory() -> None:
    found = sample().roofline(SPEED)
    assert [b.bound for b in found.bounds] == [MEMORY, MEMORY] and found.ridge == 10
    assert found.seconds == pytest.approx((8000 + 12000) / 1e9)
    assert "bench (measured)" in full(found) and "Memory-bound" in full(found)
    assert json.loads(json.dumps(found.to_dict()))["kernels"][0]["bound"] == "memory"


def test_without_a_speed_there_is_no_verdict_and_a_reason() -> None:
    found = roofline(sample())
    assert found.speed is None and found.ridge is None and "measure_speed" in found.note
    assert all(b.bound == "" and b.kernel.intensity for b in found.bounds)
    assert "No roof" in full(found) and "No roof" in to_svg(found)


def test_the_speed_of_the_benchmark_is_used_and_its_runs_are_placed() -> None:
    series = Series("compiled", "forward", (2e-5, 1e-5, 3e-5), nbytes=8000)
    seen = Capture(**{**vars(sample()), "benchmark": Benchmark((series,), "bench", "clock", 1, speed=SPEED)})
    found = seen.roofline()
    assert found.speed is SPEED
    (run,) = found.runs
    assert run.seconds == 2e-5 and run.bandwidth == pytest.approx(4e8)
    assert run.rate == pytest.approx(19_000 / 2e-5) and run.intensity == 2.375
    assert "compiled forward" in to_svg(found)


def test_the_table_of_devices() -> None:
    for model in models.models():
        if model.bandwidth:
            assert model.source.partition("https://")[2] and 1e10 < model.bandwidth < 1e14
        else:
            assert model.name == "a10g" and "measure it" in model.flops_note, "its rates are not published"
        assert bool(model.flops) != bool(model.flops_note)
        for dtype, rate in model.flops:
            speed, reason = models.speed(model.title, dtype)
            assert speed is not None and reason == "" and not speed.measured and speed.source == model.source
            assert 5 < rate / model.bandwidth < (450 if model.arch == "sm_89" else 400) or dtype == "float64"
    speed, _ = models.speed("NVIDIA H100 80GB HBM3", "bfloat16")
    assert speed is not None and speed.bandwidth == 3.35e12 and speed.flops == 989.5e12
    assert models.find("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    assert models.speed("Apple M2")[0] is None and "Apple" in models.speed("Apple M2")[1]
    assert models.speed("cpu")[0] is None


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def test_the_picture_names_every_kernel_and_says_what_is_modelled() -> None:
    text = to_svg(many(4), title="waves")
    root = parsed(text)
    assert root.get("role") == "img" and "waves" in (root.get("aria-label") or "")
    said = " ".join(root.itertext())
    for i in range(4):
        assert f"gelu_{i}" in said
    assert "measured" in said and "modelled" in said and "Gflop/s" in said
    assert root.find("{*}title") is not None and "memory-bound" in (root.findtext("{*}desc") or "")


def test_points_stand_on_the_roof() -> None:
    root = parsed(to_svg(many(12)))
    line = next(e for e in root.iter() if e.get("class") == "roof")
    (x0, y0), (x1, y1), (x2, y2) = [
        tuple(map(float, p.split(","))) for p in (line.get("points") or "").split()
    ]
    assert y1 == y2 and x0 < x1 < x2
    circles = [e for e in root.iter() if e.get("class") == "memory"]
    squares = [e for e in root.iter() if e.get("class") == "compute"]
    assert circles and squares
    for circle in circles:
        x, y = float(circle.get("cx") or 0), float(circle.get("cy") or 0)
        assert x <= x1 + 0.2 and y == pytest.approx(y0 + (x - x0) * (y1 - y0) / (x1 - x0), abs=0.3)
    for square in squares:
        assert float(square.get("y") or 0) + 4 == pytest.approx(y1, abs=0.1)


def test_numbers_of_kernels_do_not_overlap() -> None:
    root = parsed(to_svg(many(50)))
    lane = next(e for e in root.iter() if e.get("class") == "numbers")
    texts = [(float(t.get("x") or 0), float(t.get("y") or 0), len(t.text or "") * 6.2) for t in lane]
    for i, (x, y, width) in enumerate(texts):
        assert 0 <= x - width / 2 and x + width / 2 <= 640
        for x2, y2, width2 in texts[i + 1 :]:
            assert y != y2 or abs(x - x2) >= (width + width2) / 2
    numbers = {
        int(n)
        for t in lane
        for a, b in re.findall(r"(\d+)(?:–(\d+))?", t.text or "")
        for n in range(int(a), int(b or a) + 1)
    }
    assert numbers == set(range(1, 51))


def test_it_is_small_stable_and_free_of_what_a_page_must_not_hold() -> None:
    text = to_svg(many(50))
    assert len(text.encode()) < 15_000 and text == to_svg(many(50))
    assert not re.search(r"\bid=|<script|href|url\(|<a\b", text)
    assert "prefers-color-scheme:dark" in text
    style = (
        text.partition("<style>")[2]
        .partition("</style>")[0]
        .replace("@media (prefers-color-scheme:dark){", "")
    )
    for rule in filter(None, style.replace("}}", "}").split("}")):
        assert all(s.startswith(".lens-roofline") for s in rule.partition("{")[0].split(",")), rule


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_text(text: str) -> None:
    speed = DeviceSpeed(text, 1e9, 1e10, text, False)
    found = Roofline(
        speed, (_bound(moved(text, dtype=text), speed), Bound(moved(text, flops=None))), note=text
    )
    svg = to_svg(found, title=text)
    root = parsed(svg)
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "tspan", "g", "path", "polyline", "circle"
    }  # fmt: skip
    assert len(svg) < 20_000


def test_nothing_to_draw() -> None:
    parsed(to_svg(Roofline(None, note="nothing was compiled")))
    parsed(to_svg(Roofline(SPEED)))
    still = Roofline(SPEED, (_bound(moved(flops=0), SPEED),))
    assert "no arithmetic" in " ".join(parsed(to_svg(still)).itertext())


H100 = models.speed("NVIDIA H100 SXM", "float16")[0]


def test_what_is_no_product_runs_at_the_rate_of_the_vector_units() -> None:
    """60 × (sine, multiply, add) on float16: two bytes in, two out. By hand: 600 operations, with a sine as 8."""
    assert H100 is not None and dict(H100.vector) == {"float64": 34e12, "float32": 67e12}
    n = 1 << 20
    chain = KernelTraffic(
        "k", "forward", reads=2 * n, writes=2 * n, flops=180 * n, dtype="float16", special=60 * n
    )
    found = _bound(chain, H100)
    assert found.bound == COMPUTE and found.seconds == pytest.approx(600 * n / 67e12)
    assert "special, as 8 each" in found.sentence
    product = KernelTraffic(
        "k", "forward", reads=2 * n, writes=2 * n, flops=180 * n, dtype="float16", products=180 * n
    )
    assert _bound(product, H100).bound == MEMORY
    one = KernelTraffic("k", "forward", reads=4 * n, writes=4 * n, flops=n, dtype="float32", special=n)
    assert _bound(one, H100).bound == MEMORY, "a sine alone"


def test_products_and_the_rest_may_run_at_once() -> None:
    assert H100 is not None
    both = KernelTraffic("k", "forward", reads=1, writes=1, flops=10**9, dtype="float16", products=9 * 10**8)
    assert _bound(both, H100).seconds == pytest.approx(max(9e8 / 989.5e12, 1e8 / 67e12))


def test_without_a_rate_for_other_arithmetic_the_verdict_says_so() -> None:
    text = _bound(moved(), SPEED).sentence
    assert "Arithmetic other than products is slower than this roof." in text and "special" not in text
    known = DeviceSpeed("bench", 1e9, 1e10, "float32", True, "", (("float32", 1e10),))
    assert "slower" not in _bound(moved(), known).sentence
    product = KernelTraffic("m", "forward", reads=1, writes=1, flops=10, products=10, dtype="float32")
    both = str(Roofline(known, (_bound(moved(), known), _bound(product, known))))
    assert "10 Gflop/s in float32 matrix products (10 in other float32 arithmetic)" in both
    assert "10 Gflop/s in float32 arithmetic; the ridge" in str(Roofline(known, (_bound(moved(), known),)))


def test_the_head_names_only_what_is_there() -> None:
    assert H100 is not None
    plain = roof(Roofline(H100, (_bound(moved(dtype="float16"), H100),)))
    assert (
        "matrix" not in plain and "float64" not in plain and "67,000 Gflop/s in float32 arithmetic" in plain
    )
    assert "the ridge is at 20 operations" in plain and "special" not in plain


def test_one_count_of_operations_decides_and_is_told() -> None:
    """By hand: 1000 sines and 1000 sums on 8000 bytes are 9000 operations, 1.125 per byte."""
    assert H100 is not None
    sines = KernelTraffic("k", "forward", reads=4000, writes=4000, flops=2000, dtype="float32", special=1000)
    found = Roofline(H100, (_bound(sines, H100),))
    assert sines.intensity == 1.125 and "9 kflop (1 k special, as 8 each)" in found.bounds[0].sentence
    assert "(1.12 operations for each byte" in found.bounds[0].sentence
    assert "a special function, such as a sine, counts as 8" in roof(found)


@pytest.mark.parametrize("specials", [0, 500, 1000, 2000, 5000])
def test_without_products_the_ridge_parts_what_memory_bounds_from_what_arithmetic_does(specials: int) -> None:
    assert H100 is not None
    one = KernelTraffic("k", "forward", reads=1000, writes=0, flops=6000, dtype="float32", special=specials)
    found = Roofline(H100, (_bound(one, H100),))
    assert one.intensity is not None and found.ridge == pytest.approx(67e12 / 3.35e12)
    assert (found.bounds[0].bound == COMPUTE) == (one.intensity > found.ridge)


def test_without_products_the_roof_is_that_of_other_arithmetic() -> None:
    half = moved("k", 1000, 1000, "float16")
    assert _dtype((half,)) == "float32"
    assert _dtype((half, KernelTraffic("m", "forward", flops=10, products=10, dtype="float16"))) == "float16"


def test_a_kernel_below_the_roof_is_explained_in_the_picture() -> None:
    assert H100 is not None
    slow = KernelTraffic("k", "forward", reads=4, writes=4, flops=10**6, dtype="float16")
    product = KernelTraffic("m", "forward", reads=4, writes=4, flops=10, products=10, dtype="float16")
    text = " ".join(parsed(to_svg(Roofline(H100, (_bound(slow, H100), _bound(product, H100))))).itertext())
    assert "Below it stands arithmetic that is slower than products." in text
    assert "Below it" not in to_svg(many(4))

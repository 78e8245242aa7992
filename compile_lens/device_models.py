"""How fast devices are by their makers' own figures: for devices that are not in the machine.

Peaks, which real code does not reach: bandwidth of the device's memory, and operations per second by type,
without sparsity. A multiply-add is two operations. ``float32`` is the rate outside of tensor cores, since
PyTorch does not use TF32 unless it is told to; 16-bit types are those of matrix products on tensor cores. CPUs
are not here: what one reaches depends on its memory, its clock and its company, so it has to be measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from .measurement import DeviceSpeed


@dataclass(frozen=True)
class DeviceModel:
    """A device as its maker describes it.

    Attributes:
        name: its usual name.
        known_as: the names that PyTorch gives it, exactly: an RTX 4090 Laptop GPU is no RTX 4090.
        bandwidth: bytes per second of its memory.
        flops: operations per second, by type.
        source: where its maker says so.
        missing: why there is no figure of operations, if there is none.
    """

    name: str
    known_as: tuple[str, ...]
    bandwidth: float
    flops: tuple[tuple[str, float], ...]
    source: str
    missing: str = ""


_APPLE = "Apple publishes no rate of operations for it: measure it with compile_lens.measure_speed('mps')"

MODELS = (
    DeviceModel(
        "NVIDIA H200 SXM",
        ("NVIDIA H200",),
        4.8e12,
        (("float64", 34e12), ("float32", 67e12), ("float16", 989.5e12), ("bfloat16", 989.5e12)),
        "NVIDIA H200 Tensor Core GPU datasheet (half of its figures with sparsity), "
        "https://www.nvidia.com/en-us/data-center/h200/",
    ),
    DeviceModel(
        "NVIDIA H100 SXM",
        ("NVIDIA H100 80GB HBM3",),
        3.35e12,
        (("float64", 34e12), ("float32", 67e12), ("float16", 989.5e12), ("bfloat16", 989.5e12)),
        "NVIDIA H100 Tensor Core GPU datasheet (half of its figures with sparsity), "
        "https://www.nvidia.com/en-us/data-center/h100/",
    ),
    DeviceModel(
        "NVIDIA A100 80GB SXM",
        ("NVIDIA A100-SXM4-80GB",),
        2.039e12,
        (("float64", 9.7e12), ("float32", 19.5e12), ("float16", 312e12), ("bfloat16", 312e12)),
        "NVIDIA A100 Tensor Core GPU datasheet, https://www.nvidia.com/en-us/data-center/a100/",
    ),
    DeviceModel(
        "NVIDIA A100 80GB PCIe",
        ("NVIDIA A100 80GB PCIe",),
        1.935e12,
        (("float64", 9.7e12), ("float32", 19.5e12), ("float16", 312e12), ("bfloat16", 312e12)),
        "NVIDIA A100 Tensor Core GPU datasheet, https://www.nvidia.com/en-us/data-center/a100/",
    ),
    DeviceModel(
        "NVIDIA GeForce RTX 4090",
        ("NVIDIA GeForce RTX 4090",),
        1.008e12,
        (("float64", 1.29e12), ("float32", 82.6e12), ("float16", 165.2e12), ("bfloat16", 165.2e12)),
        "NVIDIA Ada GPU Architecture whitepaper, appendix A (16-bit products summed in 32 bits), "
        "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    DeviceModel(
        "Apple M2",
        (),
        100e9,
        (),
        "Apple, 6 June 2022 (memory bandwidth), https://www.apple.com/newsroom/2022/06/"
        "apple-unveils-m2-with-breakthrough-performance-and-capabilities/",
        _APPLE,
    ),
)


def find(device: str) -> DeviceModel | None:
    """The model of a device, by its usual name or as PyTorch calls it; ``None`` if there is none."""
    return next((model for model in MODELS if device in (model.name, *model.known_as)), None)


def speed(device: str, dtype: str = "float32") -> tuple[DeviceSpeed | None, str]:
    """The peaks of a device for a type, or ``None`` and the reason."""
    model = find(device)
    if model is None:
        return (
            None,
            f"there is no model of the device {device!r}: measure one with compile_lens.measure_speed",
        )
    rates = dict(model.flops)
    if dtype not in rates:
        return None, model.missing or f"{model.name} has no published rate for {dtype} here"
    return DeviceSpeed(model.name, model.bandwidth, rates[dtype], dtype, False, model.source), ""

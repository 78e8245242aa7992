"""A possibly absent device: its figures, each with its source, and the circumstances of a capture for it."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame


@dataclass(frozen=True)
class DeviceProperty:
    """One property of a device, under PyTorch's name, and the vendor's source for it."""

    name: str
    value: int | float | str
    source: str


@dataclass(frozen=True)
class DeviceModel:
    """A device as its vendor describes it.

    Attributes:
        name: its name as a target (``"h100"``).
        title: its usual name.
        device: PyTorch's device type (``cuda``, ``mps``, ``cpu``).
        arch: the architecture of generated code (``sm_90``); for a CPU its vector instructions (``avx512``).
        torch_names: PyTorch's exact names: an RTX 4090 Laptop GPU is no RTX 4090.
        properties: properties that Inductor and Triton query.
        bandwidth: bytes per second of its memory; 0 if unknown.
        flops: operations per second, by type.
        source: the vendor's source of these speeds.
        flops_note: why ``flops`` is empty, if it is.
    """

    name: str
    title: str
    device: str
    arch: str
    torch_names: tuple[str, ...] = ()
    properties: tuple[DeviceProperty, ...] = ()
    bandwidth: float = 0.0
    flops: tuple[tuple[str, float], ...] = ()
    source: str = ""
    flops_note: str = ""

    def figure(self, name: str) -> int | float | str | None:
        """Return the value of a property, ``None`` if the model has none."""
        return next((f.value for f in self.properties if f.name == name), None)


@dataclass(frozen=True)
class DeviceQuery:
    """Place where the program may behave differently than on the device, because the device was absent.

    Attributes:
        query: a query by untraced Python (``"Tensor.is_cuda"``), an autocast region that was entered, a method of a
            scaler that was off, an operator that could not run here or had several implementations, the program's own
            Triton kernel that could not run, or a name that could not be transferred to the child process.
        answer: the answer as Python text; what happened to the region or the call; why the operator or the kernel could
            not run; the implementation that was chosen, and when the device chooses another.
        frame: the Python line.
        count: number of occurrences.
        kind: ``"queried"``, ``"entered"``, ``"called"``, ``"chosen"`` (one implementation of several, where the device
            may choose another), ``"zeros"`` (the operator returned zeros instead of values), ``"not run"`` (Triton's
            interpreter cannot run a kernel of the program, so its outputs are unchanged), or ``"not transferred"``
            (the child has the state from importing the module, or nothing).
    """

    query: str
    answer: str
    frame: Frame
    count: int = 1
    kind: str = "queried"


@dataclass(frozen=True)
class Target:
    """Circumstances of a capture for another device.

    Attributes:
        requested: the requested target (``"h100"``, ``"cuda:sm_80"``).
        model: the device model that answered queries for the device.
        transfer: where the capture ran, and how the function and its inputs were transferred.
        may_differ: sentences on what may differ on the real device.
        queries: places where the program did not get the device's answer.
        tracing: how the program was traced (``"as on the device"``); ``""`` for a target of vector instructions, where
            the CPU is the device.
        resident_bytes: bytes on the device of the tensors reachable from the function and its arguments: parameters
            and buffers of modules, existing gradients, an optimizer's state, inputs. ``None`` if not determined.
    """

    requested: str
    model: DeviceModel
    transfer: str
    may_differ: tuple[str, ...] = ()
    queries: tuple[DeviceQuery, ...] = ()
    tracing: str = ""
    resident_bytes: int | None = None

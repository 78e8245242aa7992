"""A device that need not be in the machine: its figures, each with its source, and what was captured for it."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame


@dataclass(frozen=True)
class DeviceProperty:
    """One property of a device, under the name that PyTorch gives it, and where its maker says so."""

    name: str
    value: int | float | str
    source: str


@dataclass(frozen=True)
class DeviceModel:
    """A device as its maker describes it.

    Attributes:
        name: what it is called as a target (``"h100"``).
        title: its usual name.
        device: PyTorch's type of it (``cuda``, ``mps``, ``cpu``).
        arch: what code is generated for (``sm_90``); of a CPU its vector instructions (``avx512``).
        torch_names: the names that PyTorch gives it, exactly: an RTX 4090 Laptop GPU is no RTX 4090.
        properties: what Inductor and Triton ask of it.
        bandwidth: bytes per second of its memory; 0 where unknown.
        flops: operations per second, by type.
        source: where its maker says how fast it is.
        flops_note: why there is no figure of operations, if there is none.
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
        """The value of a property, ``None`` if the model has none."""
        return next((f.value for f in self.properties if f.name == name), None)


@dataclass(frozen=True)
class DeviceQuery:
    """Place where the program did not get the device's answer, because something stood in for the device.

    Attributes:
        query: what Python that is not traced asked (``"Tensor.is_cuda"``), or the region of autocast that was entered,
            or the method of a scaler that was off, or the operator that could not run here, or of which one of several
            was chosen, or the program's own Triton kernel that could not, or the name of what could not be sent to the
            child process.
        answer: what it was answered, as Python text; what became of the region or the call; why the operator or the
            kernel could not run; what was chosen, and when the device chooses otherwise.
        frame: the Python line.
        count: how often.
        kind: ``"queried"``, ``"entered"``, ``"called"``, ``"chosen"`` (one of several, and the device may choose
            another), ``"zeros"``, which the operator gave in place of values, ``"not run"``, for a kernel of the
            program's own that Triton's interpreter cannot run (what it writes is as it was before), or
            ``"not transferred"``, for what the child has as importing its module makes it, or has nothing of.
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
        requested: the target as it was asked for (``"h100"``, ``"cuda:sm_80"``).
        model: the device model that answered for the device.
        transfer: where the capture ran, and how the function and its inputs came there.
        may_differ: what may be otherwise on the real device, a sentence each.
        queries: where the program did not get what the device would have given.
        tracing: how the program was traced (``"as on the device"``); ``""`` for vector instructions, where the CPU is
            the device.
        resident_bytes: bytes of the tensors that the function and its arguments hold, on the device: parameters and
            buffers of modules, gradients that are there, an optimizer's state, inputs. ``None`` where it was not
            looked.
    """

    requested: str
    model: DeviceModel
    transfer: str
    may_differ: tuple[str, ...] = ()
    queries: tuple[DeviceQuery, ...] = ()
    tracing: str = ""
    resident_bytes: int | None = None

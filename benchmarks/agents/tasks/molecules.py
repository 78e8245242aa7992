"""A network over the atoms of a few molecules is cut into pieces and moves much more memory than its atoms need."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F

LIMITS = {"graphs": 1, "breaks": 0, "allocated": 365000, "launches": 15}


def rand(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class Shape:
    """Sizes of the network."""

    kinds: int = 10
    width: int = 32
    waves: int = 16
    layers: int = 1
    reach: float = 5.0
    molecules: int = 4
    atoms: int = 60
    bonds: int = 900


class Bonds(NamedTuple):
    """Pairs of atoms, with what a layer needs to know of each pair."""

    source: torch.Tensor
    target: torch.Tensor
    length: torch.Tensor
    features: torch.Tensor
    strength: torch.Tensor


class Waves(torch.nn.Module):
    """Bells around lengths, as features of a bond."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.5, shape.reach, shape.waves))
        self.sharpness = (shape.waves / shape.reach) ** 2

    def forward(self, length: torch.Tensor) -> torch.Tensor:
        return torch.exp(-self.sharpness * (length[:, None] - self.centres) ** 2)


class Envelope:
    """A cosine that lets a bond fade out at the reach."""

    def __init__(self, reach: float) -> None:
        self.reach = reach

    def fade(self, length: torch.Tensor) -> torch.Tensor:
        return 0.5 * (torch.cos(length * math.pi / self.reach) + 1)

    def __call__(self, length: torch.Tensor) -> torch.Tensor:
        strength = self.fade(length)
        beyond = length > self.reach
        if beyond.sum() > 0:
            strength = strength.masked_fill(beyond, 0.0)
        return strength


class Gather:
    """Sums and means of what arrives at each atom."""

    def __init__(self, atoms: int) -> None:
        self.atoms = atoms

    def total(self, values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return values.new_zeros(self.atoms, *values.shape[1:]).index_add(0, target, values)

    def count(self, values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return how many values arrive, with which to divide the sum of them."""
        return self.total(torch.ones_like(values[:, :1]), target).clamp(min=1)

    def mean(self, values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.total(values, target) / self.count(values, target)


class Message(torch.nn.Module):
    """Message from one atom to another, along a bond."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2 * shape.width + shape.waves, shape.width)
        self.second = torch.nn.Linear(shape.width, shape.width)

    def forward(self, atoms: torch.Tensor, bonds: Bonds) -> torch.Tensor:
        parts = [atoms[bonds.source], atoms[bonds.target], bonds.features]
        hidden = F.silu(self.first(torch.cat(parts, -1)))
        return self.second(hidden) * bonds.strength[:, None]


class Layer(torch.nn.Module):
    """One round of messages."""

    def __init__(self, shape: Shape, gather: Gather) -> None:
        super().__init__()
        self.message, self.gather = Message(shape), gather
        self.update = torch.nn.Linear(shape.width, shape.width)
        self.norm = torch.nn.LayerNorm(shape.width)

    def forward(self, atoms: torch.Tensor, bonds: Bonds) -> torch.Tensor:
        heard = self.gather.mean(self.message(atoms, bonds), bonds.target)
        return self.norm(atoms + F.silu(self.update(heard)))


class Pool:
    """From atoms to molecules, whose atoms stand one after the other."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def owners(self, sizes: torch.Tensor) -> torch.Tensor:
        """Return the molecule of each atom."""
        return torch.repeat_interleave(torch.arange(len(sizes)), sizes)

    def centre(self, places: torch.Tensor, owner: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        middle = torch.zeros(len(sizes), 3).index_add(0, owner, places) / sizes[:, None]
        return places - middle[owner]

    def energy(self, values: torch.Tensor, owner: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(sizes)).index_add(0, owner, values)


class Shells(torch.nn.Module):
    """Energies of atoms alone, and a first guess of their charges."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.alone = torch.nn.Parameter(torch.randn(shape.kinds))
        self.lean = torch.nn.Parameter(torch.randn(shape.kinds) / 4)

    def forward(
        self, kinds: torch.Tensor, owner: torch.Tensor, sizes: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        lean = self.lean[kinds]
        excess = torch.zeros(len(sizes)).index_add(0, owner, lean) / sizes
        return self.alone[kinds], lean - excess[owner]


class Heads(torch.nn.Module):
    """Figures of each atom: energy, charge and hardness."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.energy = torch.nn.Linear(shape.width, 1)
        self.charge = torch.nn.Linear(shape.width, 1)
        self.hardness = torch.nn.Linear(shape.width, 1)

    def forward(self, atoms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        energy = self.energy(atoms).squeeze(-1)
        charge = torch.tanh(self.charge(atoms)).squeeze(-1)
        return energy, charge, F.softplus(self.hardness(atoms)).squeeze(-1)


def neighbours(places: torch.Tensor, owner: torch.Tensor, reach: float) -> torch.Tensor:
    """Return the pairs of different atoms of one molecule within reach, to prepare a data set."""
    near = torch.cdist(places, places) <= reach
    same = owner[:, None] == owner[None, :]
    other = ~torch.eye(len(places), dtype=torch.bool)
    return (near & same & other).nonzero().T.contiguous()


def batches(sizes: list[int], atoms: int) -> list[list[int]]:
    """Return groups of molecules, in their order, each of which has at most so many atoms."""
    groups: list[list[int]] = [[]]
    filled = 0
    for index, size in enumerate(sizes):
        if size > atoms:
            raise ValueError(f"molecule {index} has {size} atoms, more than {atoms}")
        if filled + size > atoms:
            groups.append([])
            filled = 0
        groups[-1].append(index)
        filled += size
    return groups


class Network(torch.nn.Module):
    """Energies of molecules, and the charges of their atoms."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.kinds = torch.nn.Embedding(self.shape.kinds, self.shape.width)
        self.waves, self.envelope = Waves(self.shape), Envelope(self.shape.reach)
        gather = Gather(self.shape.atoms)
        self.layers = torch.nn.ModuleList(Layer(self.shape, gather) for _ in range(self.shape.layers))
        self.shells, self.heads, self.pool = Shells(self.shape), Heads(self.shape), Pool(self.shape)

    def order(self, pairs: torch.Tensor) -> torch.Tensor:
        """Return the bonds as the layers go through them."""
        pairs = pairs[:, pairs[0].argsort(stable=True)]
        return pairs[:, pairs[1].argsort(stable=True)]

    def bonds(self, places: torch.Tensor, pairs: torch.Tensor) -> Bonds:
        source, target = self.order(pairs).unbind(0)
        length = (places[source] - places[target]).pow(2).sum(-1).add(1e-6).sqrt()
        return Bonds(source, target, length, self.waves(length), self.envelope(length))

    def attraction(self, charge: torch.Tensor, bonds: Bonds) -> torch.Tensor:
        pairs = charge[bonds.source] * charge[bonds.target] / (bonds.length + 1)
        return torch.zeros(self.shape.atoms).index_add(0, bonds.target, pairs * bonds.strength)

    def forward(
        self, kinds: torch.Tensor, places: torch.Tensor, pairs: torch.Tensor, sizes: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        owner = self.pool.owners(sizes)
        bonds = self.bonds(self.pool.centre(places, owner, sizes), pairs)
        atoms = self.kinds(kinds)
        for layer in self.layers:
            atoms = layer(atoms, bonds)
        energy, charge, hardness = self.heads(atoms)
        alone, lean = self.shells(kinds, owner, sizes)
        charge = charge + lean
        total = energy + alone + hardness * charge**2 + 0.5 * self.attraction(charge, bonds)
        return {"energy": self.pool.energy(total, owner, sizes), "charge": charge, "hardness": hardness}


def make() -> torch.nn.Module:
    return Network().eval().requires_grad_(False)


def calls(seed: int) -> list[tuple[torch.Tensor, ...]]:
    shape, rows = Shape(), []
    for n, sizes in enumerate(([20, 10, 18, 12], [9, 21, 16, 14])):
        generator = torch.Generator().manual_seed(seed + n)
        kinds = torch.randint(0, shape.kinds, (shape.atoms,), generator=generator)
        pairs = torch.randint(0, shape.atoms, (2, shape.bonds), generator=generator)
        rows.append((kinds, 2 * rand(seed + n, shape.atoms, 3), pairs, torch.tensor(sizes)))
    return rows

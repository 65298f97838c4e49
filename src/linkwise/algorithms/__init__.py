"""The table of algorithms: public name and method -> driver, inputs, output shape.

A driver is written over any scalar. ``regrouped`` says that it is linear in the link inertias and
may be given the tree of ``model/regroup.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.algorithms import aba, coriolis, crba, energy, kic, kinematics, operational, rnea
from linkwise.model.tree import Tree

Q, V = "nq", "nv"  # lengths of inputs and outputs, as attributes of a Tree


@dataclass(frozen=True)
class Algorithm:
    """One way to compute one public function."""

    function: str
    method: str
    driver: Callable[..., Any]
    inputs: tuple[tuple[str, str], ...]  # (argument, its length)
    output: tuple[str | int, ...]
    regrouped: bool = False
    takes_frame: bool = False
    takes_axes: bool = False
    takes_external: bool = False

    def output_shape(self, tree: Tree) -> tuple[int, ...]:
        """Shape of the result for one state."""
        return tuple(n if isinstance(n, int) else getattr(tree, n) for n in self.output)

    def input_sizes(self, tree: Tree) -> tuple[tuple[str, int], ...]:
        """Arguments and their lengths for one state."""
        return tuple((name, getattr(tree, size)) for name, size in self.inputs)


_q, _qd, _qdd, _tau = ("q", Q), ("qd", V), ("qdd", V), ("tau", V)
_frame = {"takes_frame": True, "takes_axes": True}

_TABLE = [
    Algorithm("inverse_dynamics", "rnea", rnea.rnea, (_q, _qd, _qdd), (V,), True,
              takes_external=True),
    Algorithm("bias", "rnea", rnea.bias, (_q, _qd), (V,), True, takes_external=True),
    Algorithm("gravity_torque", "rnea", rnea.gravity_torque, (_q,), (V,), True,
              takes_external=True),
    Algorithm("forward_dynamics", "crba", crba.forward_dynamics, (_q, _qd, _tau), (V,), True,
              takes_external=True),
    Algorithm("forward_dynamics", "aba", aba.aba, (_q, _qd, _tau), (V,), takes_external=True),
    Algorithm("mass_matrix", "crba", crba.crba, (_q,), (V, V), True),
    Algorithm("mass_matrix_inverse", "crba", crba.mass_matrix_inverse, (_q,), (V, V), True),
    Algorithm("mass_matrix_inverse", "aba", aba.mass_matrix_inverse, (_q,), (V, V)),
    Algorithm("kinetic_energy", "sweep", energy.kinetic_energy, (_q, _qd), ()),
    Algorithm("potential_energy", "sweep", energy.potential_energy, (_q,), ()),
    Algorithm("forward_kinematics", "sweep", kinematics.forward_kinematics, (_q,), (4, 4),
              takes_frame=True),
    Algorithm("jacobian", "sweep", kinematics.jacobian, (_q,), (6, V), **_frame),
    Algorithm("jacobian_dot_qd", "sweep", kinematics.jacobian_dot_qd, (_q, _qd), (6,), **_frame),
    Algorithm("operational_inertia", "crba", operational.operational_inertia, (_q,), (6, 6), True,
              **_frame),
    Algorithm("coriolis_matrix", "composite", coriolis.coriolis_matrix, (_q, _qd), (V, V), True),
    Algorithm("christoffel", "composite", coriolis.christoffel, (_q,), (V, V, V), True),
    Algorithm("inertial_power", "augmented", kic.augmented, (_q,), (V, V, V)),
    Algorithm("inertial_power", "linkwise", kic.linkwise, (_q,), (V, V, V)),
    Algorithm("kinematic_hessian", "sweep", kic.kinematic_hessian, (_q,), (6, V, V),
              takes_frame=True),
]  # fmt: skip

FUNCTIONS: dict[str, dict[str, Algorithm]] = {}
for _entry in _TABLE:
    FUNCTIONS.setdefault(_entry.function, {})[_entry.method] = _entry

"""The libraries that ``linkwise bench`` compares with: which can hold a robot, and which agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from linkwise.bench.bodies import Array
from linkwise.bench.mujoco import mujoco_peer
from linkwise.bench.peer import Peer
from linkwise.bench.pinocchio import pinocchio_peer
from linkwise.bench.states import States, any_method, random_states
from linkwise.bench.xla import XlaPeer
from linkwise.robot import Robot

PEERS = {"pinocchio": pinocchio_peer, "mujoco": mujoco_peer}
COMPARED = 16  # states on which results are compared before anything is timed
AGREE = 1e-9  # results that differ by more are not of the same robot


Some = TypeVar("Some", Peer, XlaPeer)
Makers = Mapping[str, Callable[[Robot, str], Some]]  # of a robot and a frame


class Agreeing(NamedTuple, Generic[Some]):
    """Peers whose results agree with ours, why others are missing, and how far each was off."""

    peers: list[Some]
    missing: dict[str, str]
    agreement: dict[str, dict[str, float]]


def find_peers(robot: Robot, frame: str, makers: Makers[Some]) -> tuple[list[Some], dict[str, str]]:
    """Peers that can hold this robot, and for each of the others why not."""
    if robot.tree.coupled or any(link.joint.nq != 1 for link in robot.tree.links):
        return [], dict.fromkeys(makers, "compared on robots of one-degree joints only")
    found: list[Some] = []
    missing: dict[str, str] = {}
    for name, make in makers.items():
        try:
            found.append(make(robot, frame))
        except ImportError:
            missing[name] = "not installed"
        except ValueError as error:
            missing[name] = str(error)
    return found, missing


def agreeing_peers(
    robot: Robot, frame: str, functions: Sequence[str], makers: Makers[Some]
) -> Agreeing[Some]:
    """Peers to time; one whose results differ is computing something else, and is not timed."""
    found, missing = find_peers(robot, frame, makers)
    agreement = {peer.name: differences(robot, frame, peer, functions) for peer in found}
    for name, errors in agreement.items():
        worst = max(errors.values(), default=0.0)
        if not worst <= AGREE:
            missing[name] = f"results differ by {worst:.1e}: not compared"
    return Agreeing([peer for peer in found if peer.name not in missing], missing, agreement)


def differences(
    robot: Robot, frame: str, peer: Peer | XlaPeer, functions: Sequence[str]
) -> dict[str, float]:
    """Largest difference from the peer's results, relative to the largest entry of their state."""
    states, worst = random_states(robot, COMPARED, seed=1), {}
    for function in functions:
        expected = peer.evaluate(function, states)
        if expected is not None:
            ours = _in_order(_our_results(robot, frame, function, states), peer.order, function)
            entries = tuple(range(1, ours.ndim))
            expected = expected.reshape(ours.shape)
            largest = np.abs(expected).max(axis=entries)
            error = np.abs(ours - expected).max(axis=entries) / np.maximum(largest, 1e-300)
            worst[function] = float(error.max())
    return worst


def _our_results(robot: Robot, frame: str, function: str, states: States) -> Array:
    algorithm = any_method(function)
    extra = (frame,) if algorithm.takes_frame else ()
    results: Array = getattr(robot, function)(*states.given(algorithm), *extra)
    return results


def _in_order(results: Array, order: list[int], function: str) -> Array:
    """Results with their joints in a peer's order."""
    if function == "forward_kinematics":
        return results
    if function in ("mass_matrix", "mass_matrix_inverse"):
        results = results[..., order, :]
    return results[..., order]

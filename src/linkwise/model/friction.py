"""Damping and Coulomb friction of a description's joints, in words."""

from __future__ import annotations

from linkwise.errors import quote
from linkwise.model.description import JointDescription, RobotDescription
from linkwise.model.joints import FIXED


def friction_of(robot: RobotDescription) -> str:
    """Return which joints have damping or friction, and the largest of each; "" if none has.

    >>> from linkwise.model.description import JointDescription, RobotDescription
    >>> joint = JointDescription("hip", "revolute", "base", "leg", damping=0.5)
    >>> friction_of(RobotDescription("r", (), (joint,)))
    'damping of 1 joint (largest 0.5, joint "hip") is'
    """
    moving = [joint for joint in robot.joints if joint.kind != FIXED]
    parts = [
        f"{word} of {_largest([joint for joint in moving if getattr(joint, field)], field)}"
        for word, field in (("damping", "damping"), ("Coulomb friction", "friction"))
        if any(getattr(joint, field) for joint in moving)
    ]
    return " and ".join(parts) + (" are" if len(parts) > 1 else " is") if parts else ""


def _largest(joints: list[JointDescription], field: str) -> str:
    largest = max(joints, key=lambda joint: abs(getattr(joint, field)))
    count = f"{len(joints)} joint{'s' if len(joints) > 1 else ''}"
    return f"{count} (largest {getattr(largest, field):.4g}, joint {quote(largest.name)})"

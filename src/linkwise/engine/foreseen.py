"""How many operations code of a large robot will have, before it is traced.

Code that is written out link by link grows as some power of the number of links. Which one is
found by tracing the first few links of the robot, and twice as many.
"""

from __future__ import annotations

from dataclasses import replace
from math import log2

from linkwise.model.tree import Frame, Tree
from linkwise.trace.tracer import Task, equations

LARGE = 300  # links from which on it is worth while to look ahead
FEW = 16  # links of the smaller part
SPARE = 1.5  # a robot is not alike all over: by so much an estimate may be too large


def operations(task: Task, tree: Tree, large: int = LARGE) -> float:
    """About how many operations a task takes; 0 where a robot is small, or its first links cannot
    be taken for the whole.
    """
    if tree.n_links < large or tree.is_closed or tree.coupled or task.parameters:
        return 0.0
    few, more = (_count(task, tree, links) for links in (FEW, 2 * FEW))
    power = max(log2(more / few), 1.0) if few else 1.0
    return float(more * (tree.n_links / (2 * FEW)) ** power)


def too_many(task: Task, tree: Tree, most: int) -> float:
    """About how many operations, where those are certainly more than so many; else 0."""
    found = operations(task, tree)
    return found if found > SPARE * most else 0.0


def _count(task: Task, tree: Tree, links: int) -> int:
    """Nodes of a task on the first links alone, its frames among them."""

    def nearer(frame: Frame) -> Frame:
        return replace(frame, link=min(frame.link, links - 1))

    own = Tree(tuple(tree.links[:links]), tree.gravity, {}, tree.unmoved)
    frame = None if task.frame is None else nearer(task.frame)
    part = replace(task, frame=frame, external=tuple(map(nearer, task.external)))
    return len(equations(part, own).graph.nodes)

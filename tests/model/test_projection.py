"""Followers in one place: the projection G against dense matrices, and the walks that feed it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linkwise.model.joints import make_joint
from linkwise.model.projection import Projection
from linkwise.model.tree import BASE, Follows, Link, Tree
from linkwise.spatial import RigidInertia, Transform, Vec3
from linkwise.sweep import along_path, at_links, each_link, each_pair, sum_links, to_base

# columns 1 and 4 follow 0 and 3; column 2 has a follower's factor of one and follows 0 too
ROWS = ((0, 1.0), (0, -0.5), (0, 1.0), (1, 1.0), (1, 2.0), (2, 1.0))
G = Projection(ROWS, (0, 3, 5))
DENSE = np.array([[f if i == j else 0.0 for j in range(3)] for i, f in ROWS])


def entries(array: np.ndarray) -> Any:
    return list(np.ndenumerate(array))


def test_vectors_matrices_and_tensors_are_gathered_alike(rng: np.random.Generator) -> None:
    v, x, A, T = rng.normal(size=3), *(rng.normal(size=(6,) * k) for k in (1, 2, 3))
    assert np.allclose(G.column_rates(v), DENSE @ v)
    assert np.allclose(G.vector(entries(x)), DENSE.T @ x)
    assert np.allclose(G.matrix(entries(A)), DENSE.T @ A @ DENSE)
    expected = np.einsum("abc,ai,bj,ck->ijk", T, DENSE, DENSE, DENSE)
    assert np.allclose(G.tensor(entries(T)), expected)


def test_ties_are_what_the_projection_leaves_alone(rng: np.random.Generator) -> None:
    """A G = 0, a row per follower; a multiplier of one makes no driver of a follower."""
    A = np.array([[row.get(c, 0.0) for c in range(6)] for row in G.ties()])
    assert A.shape == (3, 6) and not (A @ DENSE).any()
    assert G.owners_only([1.0, 2.0, 3.0]) == [1.0, 0.0, 0.0, 2.0, 0.0, 3.0]


def link(kind: str, parent: int, q: int, v: int, follows: Follows | None = None) -> Link:
    joint = make_joint(kind)
    return Link(f"l{q}", f"j{q}", parent, joint, Transform(Vec3.zero()), RigidInertia.zero(),
                (1.0, 2.0, 3.0)[: joint.nv], q, v, follows)  # fmt: skip


@pytest.fixture
def tree() -> Tree:
    """A hinge with a follower on it, and a ball on the base."""
    follows = Follows(0, 3.0, 0.1)
    return Tree((link("revolute", BASE, 0, 0), link("revolute", 0, 0, 0, follows),
                 link("spherical", BASE, 1, 1)))  # fmt: skip


def test_a_tree_numbers_its_columns(tree: Tree) -> None:
    assert [list(own) for own in tree.column_numbers] == [[0], [1], [2, 3, 4]]
    assert tree.per_link_v([2.0, 5.0, 6.0, 7.0]) == [[2.0], [6.0], [5.0, 6.0, 7.0]]
    assert tree.gather([[1.0], [10.0], [5.0, 6.0, 7.0]]) == [31.0, 5.0, 6.0, 7.0]
    assert tree.rotors == [1.0 + 9.0, 1.0, 2.0, 3.0]
    assert tree.previous_of_joint == (-1, -1, 1, 2)


def test_a_symmetric_matrix_is_mirrored(tree: Tree) -> None:
    """Of own blocks the lower half counts; both blocks of a driver and its follower meet in one."""
    own = [[1.0, 99.0, 99.0], [2.0, 3.0, 99.0], [4.0, 5.0, 6.0]]
    blocks = [((0, 0), [[1.0]]), ((1, 1), [[1.0]]), ((0, 1), [[1.0]]), ((2, 2), own)]
    M = np.array(tree.gather_symmetric(blocks))
    assert M[0, 0] == 1.0 + 9.0 + 2 * 3.0
    assert M[1:, 1:].tolist() == [[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [4.0, 5.0, 6.0]]
    assert not M[0, 1:].any() and not M[1:, 0].any()


def test_a_driver_must_be_free_and_of_one_degree(tree: Tree) -> None:
    first, follower, ball = tree.links
    message = (
        r"link 2 \('l1'\) follows link 1 \('l0'\): driver and follower must both have one degree "
        "of freedom, and the driver must not follow another joint"
    )
    for bad in (replace(ball, follows=Follows(1, 1.0, 0.0)), replace(
        link("revolute", 1, 1, 1), follows=Follows(1, 1.0, 0.0))):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Tree((first, follower, bad))


# -- walks ----------------------------------------------------------------------------------------


def named(_: Link, state: str, name: str) -> str:
    return f"{state}{name}"


def test_walks_keep_their_contracts(tree: Tree) -> None:
    names = "abc"
    assert each_link(tree, lambda link, x: (link.parent, x), names) == [
        (-1, "a"),
        (0, "b"),
        (-1, "c"),
    ]
    assert sum_links(tree, named, "", names) == "abc"
    assert along_path(tree, 1, named, "", names) == ({0: "a", 1: "ab"}, "ab")
    assert along_path(tree, BASE, named, "base", names) == ({}, "base")
    assert at_links(tree, 0, [(1, 2), (1, 3), (BASE, 9)]) == [0, 5, 0]


def test_a_start_meets_its_own_link_and_each_ancestor(tree: Tree) -> None:
    """It is carried across the links between, and never beyond the last that it meets."""
    crossed = []

    def carry(link: Link, state: str, name: str) -> str:
        crossed.append(name)
        return state + name

    def meet(_: Link, state: str, name: str) -> str:
        return f"{state} at {name}"

    assert list(to_base(tree, 1, carry, meet, "s", "abc")) == [(1, "s at b"), (0, "sb at a")]
    assert crossed == ["b"]
    assert list(to_base(tree, BASE, carry, meet, "s", "abc")) == []
    pairs = dict(each_pair(tree, carry, meet, "xyz", "abc"))
    assert pairs == {(0, 0): "x at a", (1, 1): "y at b", (0, 1): "yb at a", (2, 2): "z at c"}


def random_tree(rng: np.random.Generator, count: int) -> Tree:
    """Links on random parents; some follow a hinge before them."""
    links: list[Link] = []
    hinges: list[int] = []
    nq = nv = 0
    for i in range(count):
        parent = int(rng.integers(-1, i))
        if hinges and rng.random() < 0.3:
            driver = int(rng.choice(hinges))
            q, v = links[driver].q_index, links[driver].v_index
            links.append(link("revolute", parent, q, v, Follows(driver, 2.0, 0.0)))
            continue
        kind = str(rng.choice(["revolute", "spherical"]))
        hinges += [i] if kind == "revolute" else []
        links.append(link(kind, parent, nq, nv))
        nq, nv = nq + links[i].joint.nq, nv + links[i].joint.nv
    return Tree(tuple(links))


def test_degrees_of_freedom_are_eliminated_into_the_nearest_that_they_fill(
    rng: np.random.Generator,
) -> None:
    """The elimination tree, from the mass matrix's zeros filled in one column after another."""
    for count in (1, 2, 5, 9, 14) * 10:
        tree = random_tree(rng, count)
        full = np.eye(tree.nv, dtype=bool)
        for i in range(count):
            way = [j for k in tree.path(i) for j, _ in tree.links[k].dofs]
            full[np.ix_(way, way)] = True
        parents = []
        for k in reversed(range(tree.nv)):
            lower = np.flatnonzero(full[k, :k])
            full[np.ix_(lower, lower)] = True
            parents.append(int(lower[-1]) if len(lower) else BASE)
        assert tree.dof_parent == tuple(reversed(parents))

"""Dense equations of motion of small robots: the reference that the product grid is judged by.

Newton and Euler body by body in world axes, with Jacobians as matrices and Gaussian elimination, in
complex extended precision (64 bits of mantissa on x86). Derivatives are complex steps. Everything
is read off the robot's description: nothing here is shared with the algorithms of the package.

Arrays have states first: q (states, nq), matrices (states, n, m).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

LONG = np.clongdouble
STEP = 1e-40  # of complex steps: its square is below every rounding
Array = np.ndarray


# -- small algebra --------------------------------------------------------------------------------


def skew(v: Array) -> Array:
    """The matrix of the cross product with v (..., 3)."""
    zero = np.zeros_like(v[..., 0])
    x, y, z = (v[..., k] for k in range(3))
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(*v.shape[:-1], 3, 3)


def cross(a: Array, b: Array) -> Array:
    return (skew(a) @ b[..., None])[..., 0]


def times(A: Array, x: Array) -> Array:
    """Matrices (..., n, m) times vectors (..., m)."""
    return (A @ x[..., None])[..., 0]


def transposed(A: Array) -> Array:
    return np.swapaxes(A, -1, -2)


def pose(R: Array, p: Array) -> Array:
    T = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 4, 4), LONG)
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def rotation(axis: Array, angle: Array) -> Array:
    """Rodrigues' formula for a unit axis (..., 3) and angles (...)."""
    k = skew(axis)
    s, c = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.eye(3) + s * k + (1 - c) * (k @ k)


def by_vector(r: Array) -> Array:
    """The rotation of a rotation vector (..., 3) that is not zero."""
    angle = np.sqrt((r * r).sum(-1))
    return rotation(r / angle[..., None], angle)


def of_quaternion(x: Array) -> Array:
    """The rotation of a quaternion (..., 4), scaled to unit length."""
    x = x / np.sqrt((x * x).sum(-1))[..., None]
    w, u = x[..., 0, None, None], skew(x[..., 1:])
    return np.eye(3) + 2 * w * u + 2 * u @ u


def quaternion_product(a: Array, b: Array) -> Array:
    w = a[..., 0] * b[..., 0] - (a[..., 1:] * b[..., 1:]).sum(-1)
    u = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + cross(a[..., 1:], b[..., 1:])
    return np.concatenate([w[..., None], u], -1)


def quaternion_of(R: Array) -> Array:
    """A unit quaternion (..., 4) of rotations, by the largest of its numbers."""
    rows = []
    for A in R.reshape(-1, 3, 3):
        x, y, z = A[0, 0], A[1, 1], A[2, 2]
        four = [1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z]
        k = int(np.argmax([v.real for v in four]))
        a, b, c = A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]
        d, e, f = A[0, 1] + A[1, 0], A[0, 2] + A[2, 0], A[1, 2] + A[2, 1]
        table = [[four[0], a, b, c], [a, four[1], d, e], [b, d, four[2], f], [c, e, f, four[3]]]
        rows.append(np.array(table[k]) / (2 * np.sqrt(four[k])))
    return np.array(rows).reshape(*R.shape[:-2], 4)


def solve(A: Array, B: Array) -> Array:
    """``A⁻¹ B`` of matrices (states, n, n) and (states, n, m), by elimination with pivots."""
    A, B = np.array(A, LONG), np.array(np.broadcast_to(B, (*A.shape[:-2], *B.shape[-2:])), LONG)
    n, at = A.shape[-1], np.arange(len(A))
    for k in range(n):
        p = k + np.argmax(np.abs(A[:, k:, k].real), axis=1)
        for M in (A, B):
            M[at, k], M[at, p] = M[at, p].copy(), M[at, k].copy()
        below = A[:, k + 1 :, k] / A[:, k, k][:, None]
        A[:, k + 1 :] -= below[..., None] * A[:, None, k]
        B[:, k + 1 :] -= below[..., None] * B[:, None, k]
    for k in range(n - 1, -1, -1):
        B[:, k] = (B[:, k] - (A[:, k, None, k + 1 :] @ B[:, k + 1 :])[:, 0]) / A[:, k, k, None]
    return B


# -- machines -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Joint:
    """A joint, and the link that it moves; numbers of parents and of places in q and v."""

    name: str
    link: str
    kind: str  # revolute, prismatic, free
    parent: int  # -1: the world
    origin: Array  # (4, 4)
    axis: Array
    q: int
    v: int
    multiplier: float = 1.0
    offset: float = 0.0
    follows: bool = False
    rotor: float = 0.0
    losses: tuple[float, float] = (0.0, 0.0)  # viscous, Coulomb

    @property
    def nv(self) -> int:
        return 6 if self.kind == "free" else 1


@dataclass(frozen=True)
class Held:
    """Frame a does not move against frame b along rows (k, 6) in axes of b; or a coupling."""

    a: tuple[int, Array] = (-1, np.eye(4))
    b: tuple[int, Array] = (-1, np.eye(4))
    rows: Array | None = None
    place: Array = field(default_factory=lambda: np.zeros(3))  # of a in b
    turned: Array = field(default_factory=lambda: np.eye(3))  # a in b, where turning is held
    curve: tuple[int, int, tuple[float, ...]] | None = None  # dof, driver, polynomial


class Motion(NamedTuple):
    """Poses (states, 4, 4), velocities and accelerations of each link's origin, in world axes."""

    T: list[Array]
    w: list[Array]
    v: list[Array]
    dw: list[Array]
    dv: list[Array]


@dataclass(frozen=True)
class Machine:
    """A tree of joints with bodies, and what is held."""

    joints: tuple[Joint, ...]
    bodies: tuple[tuple[int, Array], ...]  # of a link: ten numbers (10), or (states, 10)
    frames: Mapping[str, tuple[int, Array]]
    gravity: Array
    nq: int
    nv: int
    held: tuple[Held, ...] = ()
    passive: tuple[int, ...] = ()
    placement: Array | None = None  # (..., n, 6)
    _known: dict[bytes, Any] = field(default_factory=dict, compare=False, repr=False)

    def like(self, **changes: Any) -> Machine:
        """The machine with other fields."""
        return replace(self, **changes, _known={})

    # -- kinematics ------------------------------------------------------------------------------

    def relative(self, k: int, q: Array) -> Array:
        """The pose of a link on its parent."""
        joint = self.joints[k]
        base = np.asarray(joint.origin, LONG)
        # the object that arms hold is not on a joint of theirs
        if self.placement is not None and k < np.shape(self.placement)[-2]:
            d = np.asarray(self.placement, LONG)[..., k, :]
            base = base @ pose(by_vector(d[..., :3]), d[..., 3:])
        if joint.kind == "free":
            x = q[:, joint.q : joint.q + 7]
            return base @ pose(of_quaternion(x[:, :4]), x[:, 4:])
        x = joint.multiplier * q[:, joint.q] + joint.offset
        axis = np.broadcast_to(np.asarray(joint.axis, LONG), (len(q), 3))
        if joint.kind == "prismatic":
            return base @ pose(np.broadcast_to(np.eye(3), (len(q), 3, 3)), axis * x[:, None])
        return base @ pose(rotation(axis, x), np.zeros((len(q), 3)))

    def motion(self, q: Array, qd: Array, qdd: Array) -> Motion:
        """All links, parents first."""
        states, m = len(q), Motion([], [], [], [], [])
        none = np.zeros((states, 3), LONG)
        still = np.broadcast_to(np.eye(4, dtype=LONG), (states, 4, 4))
        for k, joint in enumerate(self.joints):
            i = joint.parent
            Tp, w, v, dw, dv = (
                x[i] if i >= 0 else y for x, y in zip(m, (still, *[none] * 4), strict=True)
            )
            T = Tp @ self.relative(k, q)
            r = T[:, :3, 3] - Tp[:, :3, 3]
            turn, slide, dturn, dslide = self._joint_motion(joint, T[:, :3, :3], qd, qdd)
            m.T.append(T)
            m.w.append(w + turn)
            m.v.append(v + cross(w, r) + slide)
            m.dw.append(dw + dturn + cross(w, turn))
            m.dv.append(dv + cross(dw, r) + cross(w, cross(w, r)) + 2 * cross(w, slide) + dslide)
        return m

    def _joint_motion(self, joint: Joint, R: Array, qd: Array, qdd: Array) -> tuple[Array, ...]:
        """Relative velocities and their rates as the parent sees them, in world axes."""
        own = slice(joint.v, joint.v + joint.nv)
        u, du = joint.multiplier * qd[:, own], joint.multiplier * qdd[:, own]
        none = np.zeros((len(R), 3), LONG)
        if joint.kind == "free":
            turn, slide = times(R, u[:, :3]), times(R, u[:, 3:])
            return turn, slide, times(R, du[:, :3]), times(R, du[:, 3:]) + cross(turn, slide)
        a = R @ np.asarray(joint.axis, LONG)
        if joint.kind == "prismatic":
            return none, a * u, none, a * du
        return a * u, none, a * du, none

    def at(self, m: Motion, link: int, X: Array) -> tuple[Array, ...]:
        """Pose, velocity (6) and acceleration (6) of a frame X (4, 4) on a link."""
        states = len(m.T[0])
        if link < 0:
            T = np.broadcast_to(np.asarray(X, LONG), (states, 4, 4))
            return T, np.zeros((states, 6), LONG), np.zeros((states, 6), LONG)
        T = m.T[link] @ X
        r, w, dw = T[:, :3, 3] - m.T[link][:, :3, 3], m.w[link], m.dw[link]
        v = m.v[link] + cross(w, r)
        dv = m.dv[link] + cross(dw, r) + cross(w, cross(w, r))
        return T, np.concatenate([w, v], -1), np.concatenate([dw, dv], -1)

    def jacobians(self, q: Array) -> tuple[Motion, list[Array]]:
        """Poses at rest, and (states, 6, nv) of each link's origin: velocities of unit rates."""
        key = q.tobytes()
        if key not in self._known:
            wide = np.repeat(q, self.nv, axis=0)
            unit = np.tile(np.eye(self.nv, dtype=LONG), (len(q), 1))
            m = self.motion(wide, unit, 0 * unit)
            rows = (np.concatenate([w, v], -1) for w, v in zip(m.w, m.v, strict=True))
            J = [transposed(x.reshape(len(q), self.nv, 6)) for x in rows]
            self._known.clear()
            self._known[key] = Motion([T[:: self.nv] for T in m.T], [], [], [], []), J
        return self._known[key]

    def jacobian(self, q: Array, link: int, X: Array) -> Array:
        """(states, 6, nv) of the origin of a frame on a link, in base axes."""
        if link < 0:
            return np.zeros((len(q), 6, self.nv), LONG)
        m, J = self.jacobians(q)
        R, r = m.T[link][:, :3, :3], np.asarray(X, LONG)[:3, 3]
        lever = times(R, np.broadcast_to(r, (len(q), 3)))
        w, v = J[link][:, :3], J[link][:, 3:]
        return np.concatenate([w, v - skew(lever) @ w], 1)

    # -- dynamics --------------------------------------------------------------------------------

    def body_parts(self, ten: Any) -> tuple[Array, Array, Array]:
        """Mass, first moment and inertia about the link's origin."""
        ten = np.asarray(ten, LONG)
        m, h, (xx, xy, yy, xz, yz, zz) = (
            ten[..., 0],
            ten[..., 1:4],
            np.moveaxis(ten[..., 4:], -1, 0),
        )
        inertia = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(*ten.shape[:-1], 3, 3)
        return m, h, inertia

    def wrench(self, m: Motion, link: int, ten: Any, gravity: bool = True) -> Array:
        """(moment about the link's origin, force) that a body's motion needs, in world axes."""
        mass, h, inertia = self.body_parts(ten)
        R, w, dw = m.T[link][:, :3, :3], m.w[link], m.dw[link]
        h, inertia = times(R, np.broadcast_to(h, (len(R), 3))), R @ inertia @ transposed(R)
        a = m.dv[link] - (np.asarray(self.gravity, LONG) if gravity else 0.0)
        force = np.reshape(mass, (-1, 1)) * a + cross(dw, h) + cross(w, cross(w, h))
        moment = times(inertia, dw) + cross(w, times(inertia, w)) + cross(h, a)
        return np.concatenate([moment, force], -1)

    def inverse(
        self, q: Array, qd: Array, qdd: Array, f_ext: Sequence[tuple[str, Array]] = (),
        parts: bool = True, gravity: bool = True,
    ) -> Array:  # fmt: skip
        """Joint torques (states, nv); ``parts=False`` leaves out rotors and losses."""
        m = self.motion(q, qd, qdd)
        tau = np.zeros((len(q), self.nv), LONG)
        for link, ten in self.bodies:
            J = self.jacobians(q)[1][link]
            tau += times(transposed(J), self.wrench(m, link, ten, gravity))
        for name, w in f_ext:
            J = self.jacobian(q, *self.frames[name])
            tau -= times(transposed(J), np.broadcast_to(np.asarray(w, LONG), (len(q), 6)))
        if not parts:
            return tau
        for joint in self.joints:
            if joint.kind == "free":
                continue
            rate = joint.multiplier * qd[:, joint.v]
            push = joint.rotor * joint.multiplier * qdd[:, joint.v]
            viscous, dry = joint.losses
            push = push + viscous * rate + dry * np.sign(rate.real)
            tau[:, joint.v] += joint.multiplier * push
        return tau

    def mass_matrix(self, q: Array) -> Array:
        """Sums of ``Jᵀ I J``, and rotors."""
        m, J = self.jacobians(q)
        M = np.zeros((len(q), self.nv, self.nv), LONG)
        for link, ten in self.bodies:
            mass, h, inertia = self.body_parts(ten)
            R = m.T[link][:, :3, :3]
            lever, unit = skew(times(R, np.broadcast_to(h, (len(q), 3)))), np.eye(3)
            weight = np.broadcast_to(np.reshape(mass, (-1, 1, 1)) * unit, lever.shape)
            M6 = np.block([[R @ inertia @ transposed(R), lever], [-lever, weight]])
            M = M + transposed(J[link]) @ M6 @ J[link]
        for joint in self.joints:
            if joint.kind != "free":
                M[:, joint.v, joint.v] += joint.rotor * joint.multiplier**2
        return M

    def bias(self, q: Array, qd: Array, f_ext: Any = ()) -> Array:
        return self.inverse(q, qd, 0 * qd, f_ext)

    # -- what is held ----------------------------------------------------------------------------

    def constraint(self, q: Array, qd: Array) -> tuple[Array, Array, Array, Array]:
        """J (states, m, nv), J̇ qd, position errors, and J qd of all that is held."""
        m = self.motion(q, qd, 0 * qd)
        parts = [self._rows(m, q, qd, x) for x in self.held]
        J, drift, error = (np.concatenate(x, 1) for x in zip(*parts, strict=True))
        return J, drift, error, times(J, qd)

    def _rows(self, m: Motion, q: Array, qd: Array, held: Held) -> tuple[Array, Array, Array]:
        if held.curve is not None:
            return self._curve(q, qd, held.curve)
        (Ta, va, aa), (Tb, vb, ab) = self.at(m, *held.a), self.at(m, *held.b)
        back = transposed(Tb[:, :3, :3])
        d, w = Ta[:, :3, 3] - Tb[:, :3, 3], vb[:, :3]
        turn = va[:, :3] - w
        slide = va[:, 3:] - vb[:, 3:] - cross(w, d)
        dturn = aa[:, :3] - ab[:, :3] - cross(w, turn)
        moved = va[:, 3:] - vb[:, 3:]
        dslide = aa[:, 3:] - ab[:, 3:] - cross(ab[:, :3], d) - cross(w, moved) - cross(w, slide)
        Ja, Jb = self.jacobian(q, *held.a), self.jacobian(q, *held.b)
        J = np.concatenate(
            [back @ (Ja[:, :3] - Jb[:, :3]),
             back @ (Ja[:, 3:] - Jb[:, 3:] + skew(d) @ Jb[:, :3])], 1,
        )  # fmt: skip
        still = np.concatenate([times(back, dturn), times(back, dslide)], -1)
        off = times(back, d) - np.asarray(held.place, LONG)
        turned = back @ Ta[:, :3, :3] @ np.asarray(held.turned, LONG).T
        x, y, z = (turned[:, i, j] - turned[:, j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
        trace = np.trace(turned, axis1=-2, axis2=-1)
        angles = np.stack([x, y, z], -1) * (2.0 / (1.0 + trace))[:, None]  # 2 tan of the half
        error = np.concatenate([angles, off], -1)
        rows = np.asarray(held.rows, LONG)
        return rows @ J, still @ rows.T, error @ rows.T

    def _curve(self, q: Array, qd: Array, curve: Any) -> tuple[Array, Array, Array]:
        dof, driver, terms = curve
        at = {joint.v: joint.q for joint in self.joints if not joint.follows}
        p = np.polynomial.Polynomial(terms)
        x, v = q[:, at[driver]], qd[:, driver]
        J = np.zeros((len(q), 1, self.nv), LONG)
        J[:, 0, dof] = 1.0
        J[:, 0, driver] = -p.deriv()(x)
        return J, -(p.deriv(2)(x) * v * v)[:, None], (q[:, at[dof]] - p(x))[:, None]

    def forward(
        self, q: Array, qd: Array, tau: Array, f_ext: Any = (), baumgarte: float | None = None
    ) -> tuple[Array, Array]:
        """Accelerations (states, nv) and forces along what is held (states, m)."""
        M, rhs = self.mass_matrix(q), tau - self.bias(q, qd, f_ext)
        if not self.held:
            return solve(M, rhs[..., None])[..., 0], np.zeros((len(q), 0), LONG)
        J, drift, error, moving = self.constraint(q, qd)
        if baumgarte is not None:
            drift = drift + 2.0 / baumgarte * moving + error / baumgarte**2
        none = np.zeros((len(q), J.shape[1], J.shape[1]), LONG)
        K = np.block([[M, -transposed(J)], [J, none]])
        x = solve(K, np.concatenate([rhs, -drift], -1)[..., None])[..., 0]
        return x[:, : self.nv], x[:, self.nv :]

    def condition(self, q: Array) -> float:
        """Of the mass matrix, and of what is held."""
        q = np.asarray(q, LONG)
        M = self.mass_matrix(q).real.astype(float)
        worst = np.linalg.cond(M).max()
        if self.held:
            J = self.constraint(q, np.zeros((len(q), self.nv), LONG))[0].real.astype(float)
            worst = worst * np.linalg.cond(J @ np.linalg.solve(M, transposed(J))).max()
        return float(worst)

    # -- configurations --------------------------------------------------------------------------

    def rates_of(self, q: Array, v: Array) -> Array:
        """dq/dt at the rates v."""
        out = np.zeros((len(q), self.nq), LONG)
        for joint in self.joints:
            a, b = joint.q, joint.v
            if joint.follows:
                continue
            if joint.kind != "free":
                out[:, a] = v[:, b]
                continue
            turn = np.concatenate([0 * v[:, :1], v[:, b : b + 3]], -1)
            out[:, a : a + 4] = 0.5 * quaternion_product(q[:, a : a + 4], turn)
            R = of_quaternion(q[:, a : a + 4])
            out[:, a + 4 : a + 7] = times(R, v[:, b + 3 : b + 6])
        return out

    def as_rates(self, q: Array, dq: Array) -> Array:
        """The rates (states, nv) at which q changes by dq."""
        out = np.zeros((len(q), self.nv), LONG)
        for joint in self.joints:
            a, b = joint.q, joint.v
            if joint.follows:
                continue
            if joint.kind != "free":
                out[:, b] = dq[:, a]
                continue
            back = q[:, a : a + 4] * np.array([1, -1, -1, -1])
            out[:, b : b + 3] = 2 * quaternion_product(back, dq[:, a : a + 4])[:, 1:]
            R = of_quaternion(q[:, a : a + 4])
            out[:, b + 3 : b + 6] = times(transposed(R), dq[:, a + 4 : a + 7])
        return out

    def moved(self, q: Array, u: Array) -> Array:
        """q after the constant rates u for a second."""
        out = np.array(q, LONG)
        for joint in self.joints:
            a, b = joint.q, joint.v
            if joint.follows:
                continue
            if joint.kind != "free":
                out[:, a] += u[:, b]
                continue
            twist = np.zeros((len(q), 4, 4), LONG)
            twist[:, :3, :3], twist[:, :3, 3] = skew(u[:, b : b + 3]), u[:, b + 3 : b + 6]
            step = exponential(twist)
            old = q[:, a : a + 4] / np.sqrt((q[:, a : a + 4] ** 2).sum(-1))[:, None]
            out[:, a : a + 4] = quaternion_product(old, quaternion_of(step[:, :3, :3]))
            out[:, a + 4 : a + 7] += times(of_quaternion(old), step[:, :3, 3])
        return out


def exponential(A: Array) -> Array:
    """Of matrices (states, n, n), by its series after halving."""
    A, total = A / 2.0**12, np.broadcast_to(np.eye(A.shape[-1], dtype=LONG), A.shape).copy()
    term = total.copy()
    for k in range(1, 12):
        term = term @ A / k
        total = total + term
    for _ in range(12):
        total = total @ total
    return total


# -- from robots ----------------------------------------------------------------------------------


def ten_of(mass: float, com: Any, inertia: Any) -> Array:
    """m, m c and the inertia about the origin, of a body by its centre of mass."""
    c = np.asarray(com, float)
    about = np.asarray(inertia, float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *(mass * c), *about[np.tril_indices(3)]])


def placed(ten: Array, X: Array) -> Array:
    """A body of a frame at X (4, 4) in the frame that X is in."""
    m, h, inertia = Machine.body_parts(None, ten)  # type: ignore[arg-type]
    m, h, inertia = (x.real.astype(float) for x in (m, h, inertia))
    if not m:
        return np.zeros(10)
    R, p = np.asarray(X, float)[:3, :3], np.asarray(X, float)[:3, 3]
    c = h / m
    central = inertia - m * (c @ c * np.eye(3) - np.outer(c, c))
    return ten_of(float(m), R @ c + p, R @ central @ R.T)


def matrix(where: Any) -> Array:
    return np.block([
        [np.array(where.rotation), np.array(where.translation)[:, None]], [np.zeros(3), 1.0]
    ])  # fmt: skip


def machine_of(robot: lw.Robot, friction: bool = False) -> Machine:
    """The machine that a description says: loops of the robot included."""
    description, at = robot.description, {}
    numbers = {joint.name: joint for joint in description.joints}
    children: dict[str, list[Any]] = {}
    for joint in description.joints:
        children.setdefault(joint.parent, []).append(joint)
    frames = {description.base: (-1, np.eye(4))}
    moving = {name: k for k, name in enumerate(robot.link_names)}
    joints: list[Any] = [None] * len(moving)
    queue = [description.base]
    while queue:
        parent = queue.pop(0)
        link, X = frames[parent]
        for joint in children.get(parent, ()):
            origin = X @ matrix(joint.origin)
            queue.append(joint.child)
            if joint.kind == "fixed":
                frames[joint.child] = link, origin
                continue
            k = moving[joint.child]
            frames[joint.child] = k, np.eye(4)
            where = robot.joint(joint.name)
            own = joint.mimic is not None
            times_, plus = (joint.mimic.multiplier, joint.mimic.offset) if own else (1.0, 0.0)
            kind = "revolute" if joint.kind == "continuous" else joint.kind
            assert kind in ("revolute", "prismatic", "free"), kind
            joints[k] = Joint(
                joint.name, joint.child, kind, link, origin, np.array(joint.axis),
                where.q_slice.start, where.v_slice.start, times_, plus, own,
                float(np.max(joint.armature)),
                (joint.damping, joint.friction) if friction else (0.0, 0.0),
            )  # fmt: skip
    assert all(joint.parent < k for k, joint in enumerate(joints)) and numbers
    for extra in description.frames:
        link, X = frames[extra.link]
        frames[extra.name] = link, X @ matrix(extra.origin)
    bodies = []
    for each in description.links:
        if each.inertia is not None and each.name in frames and frames[each.name][0] >= 0:
            body, (link, X) = each.inertia, frames[each.name]
            bodies.append((link, placed(ten_of(body.mass, body.com, body.matrix), X)))
    at = Machine(
        tuple(joints), tuple(bodies), frames, np.array(description.gravity), robot.nq, robot.nv
    )
    return at.like(held=tuple(held_by(robot, at, loop) for loop in robot.loops))


def held_by(robot: lw.Robot, machine: Machine, loop: Any) -> Held:
    """What a loop or a coupling of a robot holds; linear directions only."""
    if isinstance(loop, lw.Coupling):
        dof, driver = (robot.joint(x).v_slice.start for x in (loop.joint, loop.driver))
        return Held(curve=(dof, driver, tuple(loop.polynomial)))
    given = np.asarray(loop.directions)
    rows = given if given.ndim == 2 else np.eye(6)[given.astype(bool)]
    place = np.zeros(3) if loop.pose is None else np.asarray(loop.pose, float)[:3, 3]
    b = (-1, np.eye(4)) if loop.frame_b is None else machine.frames[loop.frame_b]
    return Held(machine.frames[loop.frame_a], b, rows.astype(float), place)


def with_constants(machine: Machine, given: Mapping[str, Any], payload: str) -> Machine:
    """The machine with other numbers, in the shapes of `Robot.parametric`."""
    joints, bodies = list(machine.joints), list(machine.bodies)
    if "inertia" in given:
        ten = np.asarray(given["inertia"])
        bodies = [(k, ten[..., k, :]) for k in range(ten.shape[-2])]
    if "payload" in given:
        link, X = machine.frames[payload]
        assert np.array_equal(X, np.eye(4)), "payloads are of a link's own frame here"
        bodies.append((link, np.asarray(given["payload"])))
    for k, joint in enumerate(joints):
        if joint.follows or joint.kind == "free":
            continue
        if "rotor" in given:
            joint = replace(joint, rotor=np.asarray(given["rotor"])[..., joint.v])
        if "friction" in given:
            own = np.asarray(given["friction"])[..., joint.v, :]
            joint = replace(joint, losses=(own[..., 0], own[..., 1]))
        joints[k] = joint
    return machine.like(
        joints=tuple(joints),
        bodies=tuple(bodies),
        gravity=np.asarray(given.get("gravity", machine.gravity)),
        placement=given.get("placement"),
    )


# -- grasps ---------------------------------------------------------------------------------------


class Grip(NamedTuple):
    """Arms and the object as machines: each on its own with contacts, and the object carried."""

    full: Machine  # the object on a free joint, the last; contacts are held
    tree: Machine  # what q of the grasp moves; the contact that carries the object is no loop
    carrier: tuple[int, Array] | None  # frame of the object, where a contact carries it
    ends: tuple[int, ...]  # rows of `full` up to each contact


def grip_of(grasp: lw.Grasp) -> Grip:
    joints: list[Joint] = []
    bodies: list[Any] = []
    frames: dict[str, Any] = {}
    nq = nv = 0
    for k, (arm, base) in enumerate(zip(grasp.arms, grasp._bases, strict=True)):
        own, first, X = machine_of(arm), len(joints), matrix(base)
        for joint in own.joints:
            at_base = joint.parent < 0
            joints.append(replace(
                joint, parent=-1 if at_base else first + joint.parent,
                origin=X @ joint.origin if at_base else joint.origin,
                q=nq + joint.q, v=nv + joint.v,
            ))  # fmt: skip
        bodies += [(first + link, ten) for link, ten in own.bodies]
        for name, (link, Y) in own.frames.items():
            frames[f"arm{k}/{name}"] = (-1, X @ Y) if link < 0 else (first + link, Y)
        nq, nv = nq + arm.nq, nv + arm.nv
    body = ten_of(grasp.object.mass, grasp.object.com, _inertia(grasp.object.inertia))
    last = len(joints)
    free = Joint("object", "object", "free", -1, np.eye(4), np.zeros(3), nq, nv)
    places = [
        np.eye(4) if c.pose_in_object is None else np.asarray(c.pose_in_object, float)
        for c in grasp.contacts
    ]
    rows = [
        (np.eye(6) if c.kind == "rigid" else np.eye(6)[3:]) @ np.kron(np.eye(2), X[:3, :3].T)
        for c, X in zip(grasp.contacts, places, strict=True)
    ]
    held = tuple(
        Held(frames[f"arm{c.arm}/{c.frame}"], (last, np.eye(4)), D, X[:3, 3], X[:3, :3])
        for c, D, X in zip(grasp.contacts, rows, places, strict=True)
    )
    arms = Machine(tuple(joints), tuple(bodies), frames, grasp.gravity, nq, nv)
    full = arms.like(
        joints=(*joints, free), bodies=(*bodies, (last, body)), nq=nq + 7, nv=nv + 6,
        frames={**frames, "object": (last, np.eye(4))}, held=held,
    )  # fmt: skip
    ends = tuple(np.cumsum([0, *map(len, rows)]).tolist())
    if grasp.object_is_state:
        return Grip(full, full, None, ends)
    first = grasp.contacts[0]
    link, X = frames[f"arm{first.arm}/{first.frame}"]
    X = X @ np.linalg.inv(places[0])
    tree = arms.like(
        bodies=(*bodies, (link, placed(body, X))), frames={**frames, "object": (link, X)},
        held=tuple(replace(x, b=(link, X)) for x in held[1:]),
    )  # fmt: skip
    return Grip(full, tree, (link, X), ends)


def _inertia(given: Any) -> Array:
    array = np.asarray(given, float)
    return np.diag(array) if array.shape == (3,) else array


def whole_state(grip: Grip, q: Array, qd: Array) -> tuple[Array, Array]:
    """The state with that of the object, where an arm carries it."""
    if grip.carrier is None:
        return q, qd
    T, v, _ = grip.tree.at(grip.tree.motion(q, qd, 0 * qd), *grip.carrier)
    R = transposed(T[:, :3, :3])
    own = np.concatenate([times(R, v[:, :3]), times(R, v[:, 3:])], -1)
    return (
        np.concatenate([q, quaternion_of(T[:, :3, :3]), T[:, :3, 3]], -1),
        np.concatenate([qd, own], -1),
    )


def grasp_forward(grip: Grip, q: Array, qd: Array, tau: Array, f_ext: Any = ()) -> Array:
    """Accelerations of the joints (nv), of the object (6), and forces of contacts (contacts 6)."""
    full = grip.full
    nv = grip.tree.nv
    Q, V = whole_state(grip, q, qd)
    push = np.zeros((len(q), full.nv), LONG)
    push[:, :nv] = tau
    qdd, lam = full.forward(Q, V, push, f_ext)
    m = full.motion(Q, V, qdd)
    T, _, a = full.at(m, *full.frames["object"])
    turn = np.zeros((len(q), 6, 6), LONG)
    turn[:, :3, :3] = turn[:, 3:, 3:] = T[:, :3, :3]
    forces = []
    for held, i, j in zip(full.held, grip.ends[:-1], grip.ends[1:], strict=True):
        # forces on the object, at the frame of the contact: the opposite of those on the arm
        forces.append(-times(turn @ np.asarray(held.rows, LONG).T, lam[:, i:j]))
    return np.concatenate([qdd[:, :nv], a, *forces], -1)


# -- derivatives ----------------------------------------------------------------------------------


def twist_of(T: Array, dT: Array) -> Array:
    """The (angular, linear) rate of poses (..., 4, 4) in base axes."""
    W = dT[..., :3, :3] @ transposed(T[..., :3, :3])
    turn = np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], -1)
    return np.concatenate([turn, dT[..., :3, 3]], -1)


def change(f: Callable[..., Array], args: Sequence[Array], k: int, along: Array) -> Array:
    """The rate of a function (complex, states first) as argument k changes along a direction."""
    moved = list(args)
    moved[k] = args[k] + 1j * LONG(STEP) * along
    return f(*moved).imag / np.longdouble(STEP)

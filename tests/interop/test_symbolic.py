"""CasADi and SymPy: the same numbers as the NumPy call, derivatives, and errors."""

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.errors import ProgramTooLarge

LOOPS = ("ccg", "pcg")


def inputs(robot, rng, algorithm):
    sizes = algorithm.input_sizes(robot.tree)
    return [
        robot.random_q(rng) if name in ("q", "q0", "q1") else rng.uniform(0.2, 1.0, size)
        for name, size in sizes
    ]


def close(found, expected, open_=0.0):
    """Equal to rounding; ``open_`` is what rounding leaves open besides."""
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * scale + open_)


def sensitivity(run, values, expected, rng):
    """30 times what roundings of the inputs change: the condition, measured."""
    eps = np.finfo(float).eps
    near = (run([x * (1 + eps * rng.uniform(-1, 1, x.shape)) for x in values]) for _ in range(8))
    return 30 * max(np.abs(x - expected).max(initial=0.0) for x in near)


def agree(robot, rng, made):
    """Every function and method that is an expression, as ``made(name, values, **options)``."""
    frame = robot.frame_names[-1]
    for function, methods in FUNCTIONS.items():
        for method, algorithm in methods.items():
            at = frame if algorithm.takes_frame else None
            place = at and robot.tree.frames[at]
            if method in LOOPS or algorithm.why_not(robot.tree, place):
                continue
            if function == "manipulability_gradient" and robot.nv < 6:
                continue  # of a measure that is zero
            values = inputs(robot, rng, algorithm)

            def run(values, function=function, method=method, at=at):
                return robot.compute(function, *values, method=method, frame=at)

            expected = run(values)
            open_ = sensitivity(run, values, expected, rng)
            if robot.nv < 6 and not open_ < 1e-3 * max(1.0, np.abs(expected).max(initial=0.0)):
                continue  # fewer joints than directions of the frame: singular
            found = made(function, values, method=method, frame=at)
            found = np.asarray(found, float).reshape(np.shape(expected))
            close(found, expected, open_)


@pytest.fixture(scope="module")
def pole():
    """A pole on a cart, and a spherical joint at its end."""
    b = lw.Builder("pole")
    for name in ("cart", "rod", "ball"):
        b.link(name, mass=1.0, com=(0.1, 0.2, -0.3), inertia=(0.3, 0.2, 0.25))
    b.joint("rail", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
    b.joint("hinge", "revolute", parent="cart", child="rod", axis=(0.0, 1.0, 0.0))
    b.joint("socket", "spherical", parent="rod", child="ball")
    return b.build()


class TestCasadi:
    @pytest.fixture(autouse=True)
    def cs(self):
        return pytest.importorskip("casadi")

    def test_functions_have_the_numbers_of_numpy(self, rng):
        robot = lw.load("puma560")
        q, qd, tau = robot.random_q(rng), rng.normal(size=6), rng.normal(size=6)
        f = robot.casadi("forward_dynamics")
        assert f.name() == "puma560_forward_dynamics" and f.name_in() == ["q", "qd", "tau"]
        close(np.array(f(q, qd, tau)).ravel(), robot.forward_dynamics(q, qd, tau))
        M = robot.casadi("mass_matrix", name="M")
        close(np.array(M(q)), robot.mass_matrix(q))
        J = robot.casadi("jacobian", frame="link6", axes="body")
        close(np.array(J(q)), robot.jacobian(q, "link6", axes="body"))
        wrench = rng.normal(size=6)
        f = robot.casadi("inverse_dynamics", f_ext=["link6"])
        assert f.name_in()[-1] == "f_ext_link6"
        expected = robot.inverse_dynamics(q, qd, tau, f_ext={"link6": wrench})
        close(np.array(f(q, qd, tau, wrench)).ravel(), expected)

    def test_operations_are_about_those_of_the_program(self):
        robot = lw.load("puma560")
        f = robot.casadi("forward_dynamics", method="crba")
        assert f.n_instructions() < 1.4 * robot.operation_count("forward_dynamics", "crba").total

    @pytest.mark.full
    def test_every_function(self, pole, rng):
        for robot in (pole, lw.load("puma560")):
            agree(robot, rng, lambda f, values, _of=robot, **o: _of.casadi(f, **o)(*values))

    def test_derivatives(self, pole, rng, cs):
        """By torques: the inverse mass matrix; by rates: a quotient of differences."""
        f = pole.casadi("forward_dynamics")
        q, qd, tau = pole.random_q(rng), rng.normal(size=5), rng.normal(size=5)
        *_, by_qd, by_tau = f.jacobian()(q, qd, tau, 0)
        close(np.array(by_tau), pole.mass_matrix_inverse(q))
        h = 1e-5
        shifted = [pole.forward_dynamics(q, qd + s * h * np.eye(5), tau) for s in (1, -1)]
        np.testing.assert_allclose(np.array(by_qd), ((shifted[0] - shifted[1]) / (2 * h)).T,
                                   atol=1e-7)  # fmt: skip

    def test_calls_with_symbols(self, rng, cs):
        """SX and MX, and derivatives of second order."""
        robot = lw.load("puma560")
        f, x = robot.casadi("potential_energy"), robot.random_q(rng)
        for kind in (cs.SX, cs.MX):
            q = kind.sym("q", 6)
            hessian, gradient = cs.hessian(f(q), q)
            g = cs.Function("g", [q], [gradient, hessian])
            found, second = (np.array(v) for v in g(x))
            close(found.ravel(), robot.gravity_torque(x))
            close(second, second.T)

    def test_loops_are_refused(self):
        robot = lw.load("puma560")
        message = r"casadi: forward_dynamics\[pcg\] iterates until its numbers say stop, which no"
        with pytest.raises(ValueError, match=message + " expression can; expected one of 'crba'"):
            robot.casadi("forward_dynamics", method="pcg")
        with pytest.raises(ValueError, match="jacobian: expected a frame"):
            robot.casadi("jacobian")

    def test_robots_of_very_many_links_are_refused_at_once(self):
        """Each operation would be an expression: hours, and gigabytes, without a word."""
        message = r"^casadi: forward_dynamics\[.*\] of .*50,000 links.*; expected a robot of fewer"
        with pytest.raises(ProgramTooLarge, match=message):
            lw.chain(50_000).casadi("forward_dynamics")
        assert lw.chain(60).casadi("bias").n_out() == 1


class TestSympy:
    @pytest.fixture(autouse=True)
    def sp(self):
        return pytest.importorskip("sympy")

    def test_a_pendulum_by_hand(self, sp):
        b = lw.Builder("pendulum").link("rod", mass=2.0, com=(0.0, 0.0, -0.5), inertia=(1, 1, 0.1))
        b.joint("pivot", "revolute", parent="base", child="rod", axis=(0.0, 1.0, 0.0))
        robot = b.build()
        q, u = sp.symbols("q0 qdd0", real=True)
        (torque,) = robot.sympy("inverse_dynamics")
        by_hand = (1 + 2.0 * 0.25) * u + 2.0 * 9.81 * 0.5 * sp.sin(q)
        assert abs(sp.expand(torque - by_hand).subs({q: 0.7, u: 1.3})) < 1e-14
        assert robot.sympy("mass_matrix").free_symbols == set()

    def test_expressions_have_the_numbers_of_numpy(self, rng, sp):
        robot = lw.load("puma560")
        M, q = robot.sympy("mass_matrix"), robot.random_q(rng)
        assert M.shape == (6, 6)
        symbols = sp.symbols("q:6", real=True)
        close(np.array(sp.lambdify([symbols], M, cse=True)(q)), robot.mass_matrix(q))
        numbers = robot.sympy("mass_matrix", [sp.Float(x, 30) for x in q])
        close(np.array(numbers, float), robot.mass_matrix(q))

    def test_derivatives(self, rng, sp):
        """The gradient of the potential energy is the torque of gravity, as expressions."""
        robot = lw.load("puma560")
        symbols, q = sp.symbols("q:6", real=True), robot.random_q(rng)
        energy = robot.sympy("potential_energy")
        gradient = [sp.diff(energy, x) for x in symbols]
        close(np.array(sp.lambdify([symbols], gradient)(q)), robot.gravity_torque(q))

    @pytest.mark.full
    def test_every_function(self, pole, rng, sp):
        def made(function, values, **options):
            return pole.sympy(function, *([sp.Float(x) for x in v] for v in values), **options)

        agree(pole, rng, made)

    def test_wrenches_are_symbols(self, rng, sp):
        """Also on frames whose names end with a digit."""
        robot = lw.chain(2)
        (frame,) = [name for name in robot.frame_names if name.endswith("2")]
        expressions = robot.sympy("inverse_dynamics", f_ext=[frame])
        names = [f"q{i}" for i in (0, 1)] + [f"f_ext_{frame}_{k}" for k in range(6)]
        numbers = rng.normal(size=8)
        values = dict(zip(names, numbers, strict=True))
        found = expressions.subs({x: values.get(x.name, 0.0) for x in expressions.free_symbols})
        expected = robot.inverse_dynamics(
            numbers[:2], [0.0] * 2, [0.0] * 2, f_ext={frame: numbers[2:]}
        )
        close(np.array(found, float).ravel(), expected)

    def test_expressions_that_would_take_minutes_are_refused(self):
        arm, bar = lw.chain(1), lw.RigidBody(1.0, inertia=(0.1, 0.1, 0.1))
        tip = arm.frame_names[-1]
        grasp = lw.Grasp([arm, arm], bar, [tip, tip])
        message = r"^sympy: forward_dynamics\[ltl\] of .grasp.: expressions of about .*; expected a"
        with pytest.raises(ProgramTooLarge, match=message + " function of fewer joints, numbers"):
            grasp.sympy("forward_dynamics")
        qdd = grasp.sympy("forward_dynamics", [0.1, 0.2], [0.0, 0.0], [1.0, 2.0])
        close(
            np.array(qdd, float).ravel(), grasp.forward_dynamics([0.1, 0.2], [0.0] * 2, [1.0, 2.0])
        )

    def test_mistakes_are_told(self):
        robot = lw.load("puma560")
        with pytest.raises(ValueError, match=r"sympy: forward_dynamics\[ccg\] iterates until"):
            robot.sympy("forward_dynamics", method="ccg")
        with pytest.raises(ValueError, match=r"values of length \[5\]; expected q \(6\)"):
            robot.sympy("mass_matrix", [0] * 5)
        with pytest.raises(TypeError, match=r"was given 3; expected a list for each of q \(6\)"):
            robot.sympy("mass_matrix", 3)
        with pytest.raises(ValueError, match="mass_matrix: f_ext names 'link6'; this function"):
            robot.sympy("mass_matrix", f_ext="link6")


@pytest.mark.parametrize("name", ["casadi", "sympy"])
def test_a_missing_package_tells_how_to_install_it(name, monkeypatch):
    import importlib

    module = importlib.import_module(f"linkwise.interop.{name}")
    getattr(module, f"_{name}").cache_clear()
    monkeypatch.setitem(sys.modules, name, None)
    message = f"robot.{name} needs {name}, which is not installed: pip install 'linkwise\\[{name}"
    with pytest.raises(lw.BackendUnavailable, match=message):
        getattr(lw.load("puma560"), name)("mass_matrix")

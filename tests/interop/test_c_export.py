"""Exported C compiles without a warning, passes its own test, and agrees with the NumPy call."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bits import assert_same
from click.testing import CliRunner

import linkwise as lw
from linkwise.algorithms import FUNCTIONS
from linkwise.backends.cstyle.render import DIALECTS
from linkwise.cli.main import main
from linkwise.errors import NoProgram
from linkwise.export.source import sincos_operations

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler"
)
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
FMA = "fma" in Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else False
FEW = ["forward_dynamics", "mass_matrix", "jacobian@link7"]


def compiled_test(folder: Path, *flags: str) -> subprocess.CompletedProcess:
    command = ["cc", "-std=c99", "-O0", *WARNINGS, *flags, "-o", "t", *folder.glob("*.c"), "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return subprocess.run(["./t"], cwd=folder, capture_output=True, text=True)


def loaded(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def states(robot, rng):
    return robot.random_q(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


@pytest.mark.parametrize("math", ["own", "libm"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_self_test_passes(dtype, math, tmp_path):
    lw.load("iiwa14").export(tmp_path, FEW, dtype, math=math)
    for flags in ([], ["-mfma"], ["-mfma", "-DLINKWISE_PLAIN"]) if FMA else ([],):
        done = compiled_test(tmp_path, "-ffp-contract=off", *flags)
        assert done.returncode == 0, done.stdout
        assert done.stdout == "iiwa14: 0 of 3 functions wrong\n"
    assert ("sincos" in (tmp_path / "iiwa14.c").read_text()) and math in ("own", "libm")


def test_the_self_test_passes_where_there_is_no_answer_and_with_parameters(tmp_path):
    arm = lw.load("puma560")
    far = np.eye(4)
    far[0, 3] = 9.0  # no state closes the loop
    arm.close_loops(lw.Loop("link6", pose=far)).export(tmp_path, "project", name="arm")
    done = compiled_test(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "NAN" in (tmp_path / "arm_test.c").read_text()
    all_of_them = ("inertia", "gravity", "payload", "rotor", "friction", "placement")
    arm.parametric(*all_of_them).export(tmp_path, "forward_dynamics", name="arm")
    done = compiled_test(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "NAN" not in (tmp_path / "arm_test.c").read_text()


def test_the_self_test_notices_a_wrong_number(tmp_path):
    lw.load("puma560").export(tmp_path, "mass_matrix")
    source = tmp_path / "puma560.c"
    text = source.read_text()
    line = next(x for x in text.splitlines() if "result[0] =" in x)
    value = line.partition("= ")[2].rstrip(";")
    source.write_text(text.replace(line, f"    result[0] = {value} * (1 + 1e-12);"))
    done = compiled_test(tmp_path)
    assert done.returncode == 1
    assert "puma560_mass_matrix, state 0: number 0 is" in done.stdout
    assert "puma560: 1 of 1 functions wrong" in done.stdout


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_shared_library_has_the_numbers_of_numpy(
    dtype, tmp_path, rng, assert_close, monkeypatch
):
    """With fused multiply-adds, their bits too."""
    if FMA:
        monkeypatch.setenv("CFLAGS", "-O2 -mfma")
    robot = lw.load("puma560")
    functions = ["forward_dynamics", "mass_matrix", "gravity_torque"]
    paths = robot.export(tmp_path, functions, dtype, name="arm", shared=True)
    assert [p.name for p in paths] == [
        "arm.h", "arm.c", "arm_test.c", "CMakeLists.txt", "libarm.so", "arm.py",
    ]  # fmt: skip
    arm = loaded(paths[-1])
    assert (arm.NQ, arm.NV) == (6, 6)
    q, qd, tau = (x.astype(dtype) for x in states(robot, rng))
    for function, values in (("forward_dynamics", (q, qd, tau)), ("mass_matrix", (q,)),
                             ("gravity_torque", (q,))):  # fmt: skip
        ours, theirs = getattr(robot, function)(*values), getattr(arm, function)(*values)
        assert theirs.dtype == dtype and theirs.shape == ours.shape
        near = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(theirs, ours, rtol=near, atol=near * np.abs(ours).max())
        if FMA:
            assert_same(theirs, ours)
    with pytest.raises(ValueError, match="qd has 5 numbers; expected 6"):
        arm.forward_dynamics(q, qd[:5], tau)
    assert np.isnan(arm.mass_matrix(q * np.nan)).all()


def test_wrenches_status_axes_and_iterations(tmp_path, rng, monkeypatch):
    robot = lw.load("iiwa14")
    names = ["forward_dynamics", "forward_dynamics[pcg]", "jacobian@link7"]
    monkeypatch.setenv("CFLAGS", "-O0")
    options = {"axes": "body", "f_ext": ["link7"], "status": True}
    *_, module = robot.export(tmp_path, names, shared=True, **options)
    assert compiled_test(tmp_path).returncode == 0
    arm, (q, qd, tau) = loaded(module), states(robot, rng)
    wrench = rng.normal(size=6)
    ours = robot.forward_dynamics(q, qd, tau, f_ext={"link7": wrench})
    theirs, status = arm.forward_dynamics(q, qd, tau, wrench)
    np.testing.assert_allclose(theirs, ours, rtol=1e-10)
    assert status == 0 and arm.forward_dynamics(q * np.nan, qd, tau, wrench)[1] != 0
    theirs, iterations, residual, _ = arm.forward_dynamics_pcg(
        q, qd, tau, 0 * tau, wrench, 1e-12, 50
    )
    np.testing.assert_allclose(theirs, ours, rtol=1e-8)
    assert 1 <= iterations <= 50 and residual < 1e-20
    body = robot.jacobian(q, "link7", axes="body")
    np.testing.assert_allclose(arm.jacobian_link7_body(q)[0], body, atol=1e-14)


def test_loops_over_the_links(tmp_path):
    """Counted loops, with tables of constants in the source and arrays on the stack."""
    robot = lw.load("iiwa14").with_codegen("rolled")
    robot.export(tmp_path, ["inverse_dynamics", "forward_dynamics[aba]"], "float32")
    assert "for (int k = 0" in (tmp_path / "iiwa14.c").read_text()
    assert "Arrays on the stack" in (tmp_path / "iiwa14.h").read_text()
    done = compiled_test(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_function_and_method(dtype, tmp_path):
    robot = lw.load("puma560")
    names = [
        f"{f}[{m}]" + ("@link6" if a.takes_frame else "")
        for f, methods in FUNCTIONS.items()
        for m, a in methods.items()
        if f != "generalized_jacobian"
    ]
    robot.export(tmp_path, names, dtype)
    done = compiled_test(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.full
def test_every_joint_kind(tmp_path, rng, random_robot, all_kinds):
    for k in range(4):
        robot = lw.Robot(random_robot(rng, 7, kinds=all_kinds, mimic=True, base="free"))
        folder = tmp_path / str(k)
        names = ["forward_dynamics", "inverse_dynamics", "integrate", "difference"]
        robot.export(folder, names, name="arm")
        done = compiled_test(folder)
        assert done.returncode == 0, done.stdout


def test_derivatives(tmp_path):
    lw.load("puma560").export(tmp_path, "inverse_dynamics_derivatives", "float32")
    done = compiled_test(tmp_path)
    assert done.returncode == 0, done.stdout


def test_joints_are_named_in_the_header(tmp_path):
    b, parent = lw.Builder("3 *arms* /é"), "base"
    for k, name in enumerate(["a-b", "a b", "été"]):
        b.link(f"l{k}", mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        b.joint(name, "revolute", parent=parent, child=f"l{k}", axis=(0.0, k % 2, 1 - k % 2))
        parent = f"l{k}"
    robot = b.build()
    robot.export(tmp_path, "forward_dynamics")
    (header,) = tmp_path.glob("*.h")
    text = header.read_text()
    assert header.stem == "robot_3_arms"
    for line in ("ROBOT_3_ARMS_NV 3", "ROBOT_3_ARMS_Q_A_B 0", "ROBOT_3_ARMS_V_A_B_2 1"):
        assert f"#define {line}" in text
    assert compiled_test(tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["test", "Math"])
def test_files_hide_no_header_and_no_target(name, tmp_path):
    """CMake has a target test, and math.h would be found in place of that of C."""
    files = lw.load("puma560").rename(name=name).export(tmp_path, "gravity_torque")
    assert files[0].name == f"robot_{name}.h"


def test_counts_are_those_of_the_program(tmp_path):
    """The header's number of instructions: of the program, its guard included."""
    robot = lw.load("puma560")
    robot.export(tmp_path, "mass_matrix")
    text = " ".join((tmp_path / "puma560.h").read_text().split()).replace(" * ", " ")
    code = (tmp_path / "puma560.c").read_text().partition("void puma560_mass_matrix")[2]
    fused = code.count("LINKWISE_FMA(")
    apart = sum(code.count(op) for op in (" * ", " + ", " / ")) + sum(
        line.count(" - ") for line in code.splitlines() if "LINKWISE_FMA" not in line
    )
    assert f"so {fused + apart} instructions with fused multiply-adds" in text
    near, far = sincos_operations(DIALECTS["float64"])
    assert f"Each sincos is {near} instructions, and {far} more" in text


def test_the_command(tmp_path):
    runner, folder = CliRunner(), tmp_path / "made"
    arguments = ["export", "puma560", "--functions", "mass_matrix, jacobian@link6", "--dtype"]
    done = runner.invoke(main, [*arguments, "float32", "-o", str(folder), "--shared"])
    assert done.exit_code == 0, done.output
    assert done.output.split() == [
        str(folder / name) for name in ("puma560.h", "puma560.c", "puma560_test.c",
                                        "CMakeLists.txt", "libpuma560.so", "puma560.py")
    ]  # fmt: skip
    assert "const float q[6]" in (folder / "puma560.h").read_text()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_cmake_builds_and_tests(tmp_path):
    lw.load("puma560").export(tmp_path, "gravity_torque")
    for command in ("cmake -B build .", "cmake --build build", "ctest --test-dir build"):
        done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "100% tests passed" in done.stdout


def test_mistakes_are_told(tmp_path, monkeypatch):
    robot = lw.load("puma560")

    def refused(match, functions="mass_matrix", error=ValueError, of=robot, **options):
        with pytest.raises(error, match=match):
            of.export(tmp_path / "none", functions, **options)
        assert not (tmp_path / "none").exists()

    refused("functions is empty; expected names such as 'forward_dynamics'", [])
    refused("function 'a b'; expected a text such as 'mass_matrix'", "a b")
    refused("function 'mass': expected one of inverse_dynamics", "mass")
    refused("mass_matrix expects one of 'auto', 'crba'", "mass_matrix[aba]")
    refused("jacobian: expected a frame", "jacobian")
    refused('frame "hand": robot "puma560" has no such frame|hand', "jacobian@hand")
    refused("dtype 'float16': expected 'float64' or 'float32'", dtype="float16")
    refused("math is 'fast'; expected 'own' or 'libm'", math="fast")
    refused("name is '2x'; expected an identifier of C", name="2x")
    refused("name is 'math', which a header of C or a target of CMake has", name="math")
    refused("f_ext is for dynamics; mass_matrix take no wrenches", f_ext=["link6"])
    refused("axes 'body': none of mass_matrix takes axes", axes="body")
    long = lw.chain(2000)
    refused("put together of results of other functions .*solve_mass", "mass_matrix_inverse",
            NoProgram, long)  # fmt: skip
    refused("a scan by loops is several programs", "forward_dynamics[scan]", NoProgram, long)
    refused("needs .* bytes of arrays, and C that allocates nothing has them on the stack",
            "forward_dynamics[aba]", NoProgram, lw.chain(20_000))  # fmt: skip
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(lw.BackendUnavailable, match="'no-such-compiler' is not found: install one"):
        robot.export(tmp_path / "late", "mass_matrix", shared=True)
    monkeypatch.setenv("CC", "cc")
    monkeypatch.setenv("CFLAGS", "-ffast-math")
    with pytest.raises(lw.BackendUnavailable, match="compile without -ffast-math"):
        robot.export(tmp_path / "fast", "mass_matrix", shared=True)
    assert os.environ["CC"] == "cc"


def test_functions_that_are_no_names_are_named(tmp_path):
    with pytest.raises(TypeError, match=r"export: functions is None; expected a name such as 'for"):
        lw.load("puma560").export(tmp_path, None)

"""The public names of the design exist, are documented and typed, and import nothing heavy."""

import inspect
import subprocess
import sys
from pathlib import Path

import linkwise as lw
from linkwise import errors

METHODS = [
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias",
    "gravity_torque", "kinetic_energy", "potential_energy", "forward_kinematics", "jacobian",
    "generalized_jacobian",
    "jacobian_dot_qd", "operational_inertia", "operational_inertia_inverse", "joint_wrenches",
    "coriolis_matrix", "christoffel", "inertial_power", "kinematic_hessian", "solve_mass",
    "manipulability", "manipulability_gradient",
    "center_of_mass", "com_jacobian", "com_bias", "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate", "centroidal_momentum", "centroidal_bias", "kic",
    "inverse_kinematics", "link_poses", "frame_velocity", "frame_acceleration", "position_inertia",
    "regressor", "energy_regressor", "operation_count", "source",
]  # fmt: skip


def test_all_is_what_it_says():
    assert all(hasattr(lw, name) for name in lw.__all__)


def test_every_warning_is_public_documented_and_of_one_family():
    warnings = {
        name: x for name, x in vars(errors).items()
        if inspect.isclass(x) and issubclass(x, Warning)
    }  # fmt: skip
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    for name, warning in warnings.items():
        assert issubclass(warning, lw.LinkwiseWarning), name
        assert getattr(lw, name) is warning and name in lw.__all__, name
        assert f".. autoclass:: linkwise.{name}\n" in page, name


def test_every_exception_is_public_and_documented():
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    for name, x in vars(errors).items():
        if inspect.isclass(x) and issubclass(x, Exception) and not issubclass(x, Warning):
            assert getattr(lw, name) is x and name in lw.__all__, name
            assert f".. autoexception:: linkwise.{name}\n" in page, name


def test_every_public_method_has_a_sentence_and_types():
    for name in METHODS:
        method = getattr(lw.Robot, name)
        assert (inspect.getdoc(method) or "").split("\n")[0].endswith((".", ":", "`.")), name
        signature = inspect.signature(method)
        if inspect.ismethoddescriptor(method):
            continue  # compiled: its types are those of the Python method, which mypy holds
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in list(signature.parameters.values())[1:]:
            assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)


def test_batch_functions_share_their_options():
    for name in METHODS[:27]:
        parameters = inspect.signature(getattr(lw.Robot, name)).parameters
        assert {"out", "threads"} <= set(parameters), name


def test_ways_to_a_robot_show_their_options():
    """Though they are written once: help() and editors read the signature."""
    for way in (lw.load, lw.check, lw.from_dh, lw.from_mujoco, lw.from_pinocchio, lw.Builder.build):
        parameters = inspect.signature(way).parameters
        shown = {name: p.default for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
        assert shown.items() >= {"base": "fixed", "strict": True, "repair": None}.items(), way


def test_importing_linkwise_brings_in_no_extra():
    heavy = "llvmlite pinocchio mujoco mpmath hypothesis scipy matplotlib torch jax".split()
    heavy += ["viser", "trimesh"]
    code = f"import sys, linkwise; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_is_typed():
    from importlib import resources

    assert resources.files("linkwise").joinpath("py.typed").is_file()

"""The scene of a robot: where bodies are, what they look like, and what users are told."""

import sys
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.view import look, scene
from linkwise.view.arguments import home, scene_of
from linkwise.view.meshes import thinned

ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><origin xyz="0 0 0.2"/>
    <inertia ixx="0.03" iyy="0.03" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>{visual}</link>
  <joint name="swing" type="revolute"><parent link="base"/><child link="upper"/>
    <axis xyz="0 -1 0"/><limit lower="0.5" upper="1.5" effort="1" velocity="1"/></joint>
</robot>"""
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture(scope="module", params=["fixed", "free"])
def robot(request, random_robot, all_kinds):
    rng = np.random.default_rng(5)
    return lw.Robot(random_robot(rng, 12, kinds=all_kinds, mimic=True, base=request.param))


def test_bodies_are_where_forward_kinematics_has_them(robot):
    q = robot.random_q(seed=1, size=3)
    poses = scene.link_poses(robot.tree, q)
    for marker in scene.markers_of(robot.tree):
        own = np.eye(4) if marker.body < 0 else poses[0, marker.body]
        expected = robot.evaluate("forward_kinematics", list(q[0]), frame=marker.name)
        assert np.allclose(own @ marker.pose, np.array(expected, float), atol=1e-13)


def test_sliders_stand_for_every_configuration(robot):
    sliders = scene.sliders_of(robot.tree, 1.0)
    for q in robot.random_q(seed=2, size=5):
        again = scene.configuration(sliders, scene.values_of(sliders, q), robot.nq)
        assert np.allclose(scene.link_poses(robot.tree, again), scene.link_poses(robot.tree, q))
    assert all(s.lower < s.upper for s in sliders)


def test_bones_meet_at_the_joints(robot):
    """However the joints turn: a bone ends on the axis of the joint that comes next."""
    bones = look.skeleton(robot.tree)
    poses = scene.link_poses(robot.tree, robot.random_q(seed=3))
    for i, link in enumerate(robot.tree.links):
        if link.parent >= 0 and scene.KINDS[type(link.joint)] in ("revolute", "spherical"):
            node = poses[i] @ [*bones.nodes[i], 1.0]
            ends = [poses[link.parent] @ [*end, 1.0] for end in bones.ends[link.parent]]
            assert min(np.linalg.norm(node - end) for end in ends) < 1e-12


def test_ellipsoids_have_the_inertia_of_their_bodies(robot):
    for i, link in enumerate(robot.tree.links):
        shape = look.ellipsoid(link.inertia, i, look.MASS, scene.INERTIA, np.eye(4), 0.0)
        R, com, m = shape.pose[:3, :3], shape.pose[:3, 3], link.inertia.m
        assert np.linalg.det(R) == pytest.approx(1.0)
        second = R @ np.diag(np.square(shape.size)) @ R.T * m / 5 + m * np.outer(com, com)
        xx, xy, xz, yy, yz, zz = link.inertia.second
        expected = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert np.allclose(second, expected, atol=1e-12 * np.abs(expected).max())


def test_axes_point_where_the_file_says():
    robot = lw.load(ARM.format(visual=""))
    arrow = next(s for s in scene_of(robot).shapes if s.layer == scene.AXES)
    at = scene.link_poses(robot.tree, [0.7])[0] @ arrow.pose
    assert np.allclose(at[:3, 2], [0, -1, 0])


def test_a_robot_begins_within_its_limits():
    assert home(lw.load(ARM.format(visual="")))[0] == 1.0


def test_the_tip_is_a_link():
    robot = lw.load("puma560")
    assert scene.tip_of(robot) == "link6"


# --- shapes and meshes -----------------------------------------------------------------------


def test_shapes_of_the_file_are_drawn_with_their_colours():
    visual = (
        '<visual><origin xyz="1 2 3"/><geometry><box size="0.1 0.2 0.3"/></geometry>'
        '<material name="red"><color rgba="1 0 0 1"/></material></visual>'
    )
    made = scene_of(lw.load(ARM.format(visual=visual)))
    box = next(s for s in made.shapes if s.layer == scene.VISUAL)
    assert (box.kind, box.size, box.rgba) == ("box", (0.1, 0.2, 0.3), (1, 0, 0, 1))
    at = scene.link_poses(made.tree, [0.0])[0] @ box.pose
    assert np.allclose(at[:3, 3], [1, 2, 3])


def mesh_arm(folder, name):
    visual = f'<visual><geometry><mesh filename="{name}" scale="2 2 2"/></geometry></visual>'
    path = folder / "arm.urdf"
    path.write_text(ARM.format(visual=visual))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lw.load(path)


def test_meshes_beside_the_file_are_drawn(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "part.obj").write_text(TETRAHEDRON)
    made = scene_of(mesh_arm(tmp_path, "part.obj"))
    assert made.notes == () and made.has_visuals
    assert made.meshes[0].vertices.max() == 2.0 and len(made.meshes[0].faces) == 4


@pytest.mark.parametrize("outside", ["absolute", "climbing", "link", "far"])
def test_meshes_outside_the_declared_folders_are_not_opened(tmp_path, outside, monkeypatch):
    inside, other = tmp_path / "package", tmp_path / "other"
    for folder in (inside, other):
        folder.mkdir()
    (inside / "package.xml").write_text("<package/>")
    secret = other / "secret.obj"
    secret.write_text(TETRAHEDRON)
    (inside / "link.obj").symlink_to(secret)
    names = {"absolute": str(secret), "climbing": "../other/secret.obj", "link": "link.obj",
             "far": "https://example.org/part.obj"}  # fmt: skip
    opened = []
    monkeypatch.setattr("linkwise.view.meshes.read_mesh", opened.append)
    made = scene_of(mesh_arm(inside, names[outside]))
    assert not opened and not made.has_visuals
    expected = "1 mesh not shown: not found in the folders that the robot file may name"
    assert made.notes == (expected,)


def test_a_missing_reader_is_told_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    (tmp_path / "part.obj").write_text(TETRAHEDRON)
    made = scene_of(mesh_arm(tmp_path, "part.obj"))
    (note,) = made.notes
    assert "pip install 'linkwise[view]'" in note and "trimesh" in note


def test_a_broken_mesh_is_told_and_left_out(tmp_path):
    pytest.importorskip("trimesh")
    (tmp_path / "part.stl").write_bytes(b"solid nothing")
    (note,) = scene_of(mesh_arm(tmp_path, "part.stl")).notes
    assert note.startswith("1 mesh not shown: part.stl cannot be read")


def test_large_meshes_are_thinned():
    n, most = 120, 5000
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    vertices = np.column_stack([x.ravel(), y.ravel(), np.sin(3 * x.ravel())])
    k = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate(
        [np.column_stack([k, k + 1, k + n]), np.column_stack([k + 1, k + n + 1, k + n])]
    )
    thin = thinned(scene.Mesh(vertices, faces), most)
    assert 1000 < len(thin.faces) <= most
    a, b, c = (thin.vertices[thin.faces[:, i]] for i in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    assert area == pytest.approx(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2, rel=0.06)


# --- arguments -------------------------------------------------------------------------------


def test_batches_become_ghosts_and_motions_tracks():
    robot = lw.load("puma560")
    q = robot.random_q(seed=0, size=100)
    made = scene_of(robot, q)
    assert len(made.q) == 25 and (made.q[0] == q[0]).all() and (made.q[-1] == q[-1]).all()
    t = np.linspace(0, 1, 20)
    rows = np.array(q[:60]).reshape(3, 20, 6)
    rows[1, 12:] = np.nan  # a row that failed stays where it was
    made = scene_of(robot, motion=(t, rows))
    assert made.tracks.shape == (3, 20, 6) and (made.tracks[1, 12:] == rows[1, 11]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": np.zeros(5)}, r"q has shape \(5,\); expected \(\.\.\., 6\) of robot 'puma560'"),
        ({"q": np.full(6, np.nan)}, "not finite in 1 of 1 rows"),
        ({"frame": "lnk6"}, "lnk6"),
        ({"forces": {"nose": np.zeros(6)}}, "no frame is called 'nose'"),
        ({"forces": {"link6": np.zeros(3)}}, r"has shape \(3,\); expected \(6\)"),
        ({"motion": (np.zeros(3), np.zeros((4, 6)))}, r"expected \(T\) and \(\.\.\., T, 6\)"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        scene_of(lw.load("puma560"), **arguments)


def test_what_is_no_motion_is_named(tmp_path):
    robot = lw.load("puma560")
    with pytest.raises(TypeError, match="a motion is a int; expected a linkwise"):
        robot.save_html(tmp_path / "x.html", 3)
    with pytest.raises(ValueError, match="both a motion and q are given"):
        robot.save_html(tmp_path / "x.html", (np.zeros(1), np.zeros((1, 6))), q=np.zeros(6))


def test_robots_too_long_to_draw_are_refused():
    with pytest.raises(ValueError, match="has 3,000 moving links; expected at most 2,000"):
        scene_of(lw.chain(3000))
    assert lw.chain(3000)._repr_html_() is None


def test_forces_of_closed_loops_are_arrows():
    robot = lw.load("puma560").close_loops(lw.Loop("link6", None), at=np.zeros(6))
    made = scene_of(robot, np.zeros(6))
    (push,) = made.pushes
    still = np.zeros(6)
    torques = robot.inverse_dynamics(np.zeros(6), still, still)
    expected = robot.constraint_forces(np.zeros(6), still, torques)
    assert made.frames[push.frame].name == "link6"
    assert np.array_equal(push.wrenches, np.array(expected)) and len(made.ties) == 1


@pytest.mark.full
def test_a_grasp_shows_its_arms_its_object_and_the_forces_of_all_contacts():
    arm = lw.load("puma560")
    side = np.eye(4)
    side[1, 3] = 0.6
    bar = lw.RigidBody(2.0, inertia=(0.05, 0.002, 0.05))
    grasp = lw.Grasp([arm, arm], bar, ["link6", "link6"], [np.eye(4), side])
    q = np.tile([0.0, -0.6, 0.4, 0.1, 0.5, 0.0], 2)
    grasp = grasp.holding(q)
    made = scene_of(grasp, q)
    assert not made.has_visuals  # so that bones are drawn
    assert [s.layer for s in made.shapes if s.rgba == look.OBJECT] == [scene.BONES]
    still = np.zeros(12)
    forces = grasp.contact_forces(q, still, grasp.inverse_dynamics(q, still, still))
    assert [made.frames[p.frame].name for p in made.pushes] == ["arm0/link6", "arm1/link6"]
    shown = np.array([p.wrenches[0] for p in made.pushes])
    assert np.allclose(shown, forces) and np.allclose(shown[:, 3:].sum(0), [0, 0, 2.0 * 9.81])


def test_sliders_reach_what_is_shown_where_there_is_no_limit() -> None:
    rows = [lw.DHRow(a=0.5, mass=1.0, inertia=(0.1, 0.1, 0.1)) for _ in range(7)]
    turning = lw.from_dh(rows).with_joint("joint2", limits=(-1.0, 1.0))
    shown = np.zeros((2, 7))
    shown[1, :3] = -7.0, 2.0, np.nan
    sliders = scene.sliders_of(turning.tree, 1.0, shown)
    assert [(s.lower, s.upper) for s in sliders[:3]] == [
        (pytest.approx(-3 * np.pi), pytest.approx(np.pi)),
        (-1.0, 1.0),
        (pytest.approx(-np.pi), pytest.approx(np.pi)),
    ]

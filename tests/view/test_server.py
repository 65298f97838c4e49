"""The live viewer: served to this machine alone, moved by sliders, targets and time."""

import contextlib
import socket
import sys
import time
import types

import numpy as np
import pytest
from click.testing import CliRunner

import linkwise as lw
from linkwise.cli.main import main
from linkwise.view.arguments import scene_of
from linkwise.view.readings import reading, text

Q = np.array([0.3, 0.7, 0.2, -1.4, 0.1, 0.9, 0.0])


def test_a_reading_is_that_of_the_robots_functions():
    robot = lw.load("iiwa14")
    read = reading(robot, Q, "link7")
    J, Minv = robot.jacobian(Q, "link7")[3:], robot.mass_matrix_inverse(Q)
    assert np.allclose(read.velocity.half, np.linalg.svd(J)[1])
    assert np.allclose(np.sort(1 / read.masses), np.linalg.eigvalsh(J @ Minv @ J.T))
    assert np.linalg.det(read.velocity.axes) == pytest.approx(1.0)
    shown = text(scene_of(robot, Q), read)
    assert f"| joint2 | {robot.gravity_torque(Q)[1]:.3g} N m |" in shown
    stretched = reading(robot, np.zeros(7), "link7")
    assert np.isinf(stretched.masses).any() and "∞" in text(scene_of(robot), stretched)


def test_text_of_a_robot_file_is_no_markdown():
    robot = lw.Builder("r").link("a").build(base="free")
    made = scene_of(robot)
    read = reading(robot, robot.neutral(), "a")
    assert "<" not in text(made, read)


def test_a_missing_viewer_is_told_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    expected = r"robot.show needs viser, which is not installed: pip install 'linkwise\[view\]'"
    with pytest.raises(lw.BackendUnavailable, match=expected):
        lw.load("puma560").show()


# --- with viser ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served():
    pytest.importorskip("viser")
    robot = lw.load("iiwa14")
    with robot.show(Q, open_browser=False, block=False, port=0) as viewer:
        yield robot, viewer


@pytest.fixture
def shown(served):
    robot, viewer = served
    viewer.update(Q)
    return robot, viewer


def pose_of(viewer, robot):
    """Of the last body, as viser has it."""
    import viser.transforms

    node = viewer.stage._robots[0][-1]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = viser.transforms.SO3(np.array(node.wxyz)).as_matrix(), node.position
    frame = robot.tree.frames["link7"]
    own = np.eye(4)
    own[:3, :3], own[:3, 3] = frame.rotation, frame.origin
    return T @ own


def test_a_slider_moves_the_robot(shown):
    robot, viewer = shown
    assert np.allclose(pose_of(viewer, robot), robot.forward_kinematics(Q, "link7"))
    viewer._sliders[3].value = -0.5
    q = np.array([*Q[:3], -0.5, *Q[4:]])
    assert np.allclose(viewer.q, q)
    assert np.allclose(pose_of(viewer, robot), robot.forward_kinematics(q, "link7"))
    assert f"{robot.forward_kinematics(q, 'link7')[0, 3]:.3f}" in viewer._text.content


def test_joints_follow_a_target(shown):
    robot, viewer = shown
    target = robot.forward_kinematics(Q, "link7")
    target[:3, 3] += [0.05, -0.05, 0.05]
    viewer.reach(target)
    assert np.allclose(robot.forward_kinematics(viewer.q, "link7"), target, atol=1e-5)
    target[:3, 3] *= 10  # out of reach: as near as can be
    viewer.reach(target)
    assert np.isfinite(viewer.q).all()
    viewer.update(Q)
    assert np.array_equal(viewer.q, Q)
    with pytest.raises(ValueError, match=r"update: q has shape \(3,\); expected \(7,\)"):
        viewer.update(np.zeros(3))


def test_only_this_machine_is_served(shown):
    _, viewer = shown
    port = int(viewer.url.rsplit(":", 1)[1])
    assert viewer.url.startswith("http://127.0.0.1:")
    with socket.socket() as listener:  # were it bound to all addresses, this one would be taken
        listener.bind(("127.0.0.2", port))
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def test_a_motion_plays():
    pytest.importorskip("viser")
    robot = lw.load("iiwa14")
    t = np.linspace(0, 1, 11)
    rows = Q + np.outer(t, np.ones(7))
    with robot.animate((t, rows), open_browser=False, block=False, port=0) as viewer:
        began = viewer.q
        end = time.monotonic() + 20
        while np.array_equal(viewer.q, began) and time.monotonic() < end:
            time.sleep(0.05)
        assert not np.array_equal(viewer.q, began)
        viewer._plays.value = False
        viewer._time.value = 0.5
        assert np.allclose(viewer.q, rows[5])


@pytest.mark.full
def test_closed_loops_stay_closed_and_show_their_forces():
    pytest.importorskip("viser")
    robot = lw.load("iiwa14")
    closed = robot.close_loops(lw.Loop("link7", None, [0, 0, 0, 1, 1, 1]), at=Q)
    with closed.show(Q, open_browser=False, block=False, port=0) as viewer:
        assert "forces" in viewer.stage._extra
        viewer._sliders[0].value = 0.5
        assert not np.array_equal(viewer.q, Q)
        assert np.abs(closed.residual(viewer.q).position).max() < 1e-9
        assert "forces" not in viewer.stage._extra  # they belong to another state


@pytest.mark.full
def test_the_page_reaches_a_browser(shown, browse):
    """Its sliders are there, by their names."""
    _, viewer = shown
    named = "[1, 2, 3, 4, 5, 6, 7].every(k => document.body.innerText.includes(`joint${k}, rad`))"
    assert browse(viewer.url, f"document.querySelector('canvas') && {named}")


def port_of(viewer):
    return int(viewer.url.rsplit(":", 1)[1])


def answer(viewer, **headers):
    """The status line of a request with these headers."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=10) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        return connection.recv(64).split(b"\r\n")[0].decode()


UPGRADE = {
    "Upgrade": "websocket", "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec_WebSocket_Version": "13",
}  # fmt: skip


def test_requests_of_foreign_pages_are_refused(shown):
    _, viewer = shown
    port = port_of(viewer)
    here = {"Host": f"127.0.0.1:{port}"}
    assert " 200 " in answer(viewer, **here)
    assert " 200 " in answer(viewer, Host="localhost:9000")  # a forwarded port
    for host in (f"evil.example:{port}", "127.0.0.1.evil.example", f"127.0.0.1:{port}@evil.x", ""):
        assert " 403 " in answer(viewer, Host=host)
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}",
                   f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}"):  # fmt: skip
        assert " 403 " in answer(viewer, **here, Origin=origin, **UPGRADE)
        assert " 403 " in answer(viewer, **here, Origin=origin)
    assert " 403 " not in answer(viewer, **here, Origin=f"http://127.0.0.1:{port}", **UPGRADE)


HOSTILE = """<!doctype html><title>wait</title><script>
const socket = new WebSocket("ws://127.0.0.1:%d/", ["viser-v%s"]);
socket.onopen = () => { document.title = "connected"; };
socket.onerror = () => { document.title = "refused"; };
</script>"""


def test_a_page_of_another_origin_cannot_connect(shown, browse, tmp_path):
    """A real page, of another port of this machine, in a real browser."""
    import http.server
    import threading

    import viser

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((HOSTILE % (port_of(viewer), viser.__version__)).encode())

        def log_message(self, *_):
            pass

    _, viewer = shown
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{site.server_address[1]}/"
            assert browse(url, "document.title === 'refused'")
        finally:
            site.shutdown()


@pytest.mark.parametrize("sent", [1e300, -1e300, float("nan"), float("inf")])
def test_what_a_page_sends_stays_within_the_sliders_range(shown, sent):
    _, viewer = shown
    slider = viewer._sliders[2]
    slider._impl.value = sent  # as viser stores what a page sends
    viewer._slid()
    assert np.isfinite(viewer.q).all()
    assert slider.min <= viewer.q[2] <= slider.max


def test_a_viewer_that_answers_foreign_pages_is_refused(monkeypatch):
    pytest.importorskip("viser")
    from linkwise.view import server

    monkeypatch.setattr(server, "checked_listener", contextlib.nullcontext)
    with pytest.raises(lw.BackendUnavailable, match="answers web pages of other sites; expected"):
        lw.load("puma560").show(open_browser=False, block=False, port=0)


def test_repeated_calls_use_one_port():
    pytest.importorskip("viser")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    robot = lw.load("puma560")
    first = robot.show(open_browser=False, block=False, port=port)
    with robot.show(open_browser=False, block=False, port=port) as second:
        assert "closed" in repr(first) and second.url == first.url


# --- notebooks -------------------------------------------------------------------------------


def test_a_notebook_gets_a_page_without_a_server(monkeypatch, tmp_path):
    shell = types.SimpleNamespace(kernel=object())
    notebook = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "viser", None)  # it is not needed
    robot = lw.load("puma560")
    made = robot.show([0.1] * 6)
    assert "srcdoc=" in made._repr_html_() and "127.0.0.1" not in made._repr_html_()
    assert made.save(tmp_path / "arm.html").stat().st_size > 10_000
    motion = lw.simulate(robot, [0.1] * 6, duration=0.05)
    assert "srcdoc=" in robot.animate(motion)._repr_html_()
    assert "srcdoc=" in motion._repr_html_()
    for asked in (robot.show, lambda **how: robot.animate(motion, **how)):
        with pytest.raises(lw.BackendUnavailable, match="needs viser"):
            asked(live=True)  # served from a notebook too
    assert motion.save_html(tmp_path / "motion.html").stat().st_size > 10_000
    shell = None  # a terminal of IPython has no kernel
    with pytest.raises(lw.BackendUnavailable, match="needs viser"):
        robot.show()
    assert "srcdoc=" in robot.show(live=False)._repr_html_()  # a page anywhere


def test_a_trajectory_that_cannot_be_drawn_has_no_page(tmp_path):
    robot = lw.chain(2)
    motion = lw.simulate(robot, [0.1, 0.0], duration=0.05)
    motion.save(tmp_path / "motion.npz")
    loaded = lw.Trajectory.load(tmp_path / "motion.npz")
    assert loaded._repr_html_() is None
    with pytest.raises(ValueError, match="save_html: the trajectory has no robot; expected one of"):
        loaded.save_html(tmp_path / "motion.html")
    assert lw.simulate(robot, [0.1, 0.0], duration=0.05, every=None)._repr_html_() is None


def test_figures_display_themselves_in_notebooks():
    motion = lw.simulate(lw.chain(2), [0.1, 0.0], duration=0.05)
    assert motion.plot()._repr_png_().startswith(b"\x89PNG")
    assert lw.plots.workspace(lw.chain(2), samples=100)._repr_png_().startswith(b"\x89PNG")


# --- the command -----------------------------------------------------------------------------


def test_the_command_writes_a_page(tmp_path):
    path = tmp_path / "arm.html"
    done = CliRunner().invoke(
        main, ["view", "iiwa14", "--save", str(path), "--q", "0,0.5,0,-1,0,1,0"]
    )
    assert done.exit_code == 0, done.output
    assert "opens in any browser" in done.output and '"values":[[0.0,0.5,' in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--q", "1,2"], "2 numbers; expected 7, finite"),
        (["--q", "a"], "expected numbers"),
        (["--save", "x.html", "--frame", "nose"], "nose"),
    ],
)
def test_the_command_names_what_is_wrong(arguments, message):
    done = CliRunner().invoke(main, ["view", "iiwa14", *arguments])
    assert done.exit_code != 0 and message in done.output

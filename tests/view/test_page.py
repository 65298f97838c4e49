"""The page: one file that needs nothing else, run in a real browser where there is one."""

import json
import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.view.arguments import scene_of
from linkwise.view.page import MOST_NUMBERS, data_of, page
from linkwise.view.scene import configuration, link_poses, markers_of, sliders_of, values_of


def test_a_page_names_nothing_outside_itself(tmp_path):
    path = lw.load("iiwa14").save_html(tmp_path / "arm.html")
    text = path.read_text()
    assert not re.findall(r"https?://|<link|<img|@import|\bsrc=", text)
    assert "default-src 'none'" in text and path.stat().st_size < 100_000


def test_text_of_a_robot_file_is_data():
    evil = "</script><script>alert(1)</script><!--"
    robot = lw.Builder(evil).link("a").build()
    text = page(scene_of(robot))
    assert evil not in text and text.count("<script") == 2
    assert "&lt;/script&gt;" in text  # its title


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    text = lw.load("puma560")._repr_html_()
    assert text.startswith('<iframe sandbox="allow-scripts"') and "puma560" in text


def test_long_motions_are_thinned():
    robot = lw.load("puma560")
    t = np.linspace(0, 1, 100_000)
    made = data_of(scene_of(robot, motion=(t, np.zeros((len(t), 6)))))
    assert (
        np.prod(made["tracks"]["shape"]) <= MOST_NUMBERS
        and len(made["t"]) == made["tracks"]["shape"][1]
    )


COUNT = """
  const count = () => {  // pixels that are neither ground nor sky, and where they are
    linkwise.draw();
    const c = document.getElementById('view'), g = c.getContext('webgl2');
    const p = new Uint8Array(4 * c.width * c.height);
    g.readPixels(0, 0, c.width, c.height, g.RGBA, g.UNSIGNED_BYTE, p);
    let n = 0, sum = 0;
    for (let k = 0; k < p.length; k += 4) {
      const c3 = [p[k], p[k + 1], p[k + 2]];
      if (Math.max(...c3) - Math.min(...c3) > 40) { n++; sum += (k / 4) % c.width; }
    }
    return [n / (p.length / 4), sum / Math.max(n, 1) / c.width];
  };
"""


def test_a_slider_moves_the_robot_in_a_browser(browser, tmp_path):
    """Offline; the page's own numbers are those of the robot's functions."""
    robot = lw.load("iiwa14")
    q = np.array([0.3, 0.7, 0.2, -1.4, 0.1, 0.9, 0.0])
    path = robot.save_html(tmp_path / "arm.html", q=q)
    found = browser(path, COUNT + """
      const before = count(), slider = document.getElementById('joint0');
      slider.value = 2.0; slider.dispatchEvent(new Event('input'));
      const after = count(), read = linkwise.readings(linkwise.state.values, linkwise.data.tip);
      return {before, after, q: linkwise.state.q, M: read.M,
              tip: linkwise.framePose(read.T, linkwise.data.tip),
              gravity: read.gravity, J: read.J,
              shown: document.getElementById('pose').textContent,
              requests: performance.getEntriesByType('resource').length};
    """)  # fmt: skip
    assert found["requests"] == 0
    assert found["before"][0] > 0.01 and found["after"][0] > 0.01  # not blank
    assert abs(found["before"][1] - found["after"][1]) > 0.02  # and elsewhere
    q[0] = 2.0
    assert np.allclose(found["q"], q)
    expected = {
        "tip": np.array(robot.evaluate("forward_kinematics", list(q), frame="link7")).T.ravel(),
        "M": np.array(robot.evaluate("mass_matrix", list(q))),
        "gravity": np.array(robot.evaluate("gravity_torque", list(q))),
        "J": np.array(robot.evaluate("jacobian", list(q), frame="link7")),
    }
    for name, wanted in expected.items():  # central differences: 1e-10, and rounding over 1e-5
        assert np.allclose(found[name], wanted, atol=1e-8 * np.abs(wanted).max()), name
    x, y, z = expected["tip"][12:15]
    assert f"{x:.3f}  {y:.3f}  {z:.3f}" in found["shown"]


@pytest.mark.full
def test_poses_in_a_browser_are_those_of_every_joint_kind(
    browser, tmp_path, random_robot, all_kinds
):
    rng = np.random.default_rng(11)
    robot = lw.Robot(random_robot(rng, 14, kinds=all_kinds, mimic=True, base="free"))
    q = robot.random_q(seed=4, size=4)
    path = robot.save_html(tmp_path / "tree.html", q=q)
    found = browser(path, COUNT + f"""
      const q = {json.dumps(q.tolist())}, frames = linkwise.data.frames.map((_, k) => k);
      return {{poses: q.map(x => frames.map(k => linkwise.framePose(linkwise.poses(x), k))),
               again: q.map(x => linkwise.toQ(linkwise.toValues(x))), pixels: count()[0],
               names: linkwise.data.frames.map(f => f.name)}};
    """)  # fmt: skip
    assert found["names"] == list(robot.frame_names) and found["pixels"] > 0.003
    wanted = link_poses(robot.tree, q)
    for k, marker in enumerate(markers_of(robot.tree)):
        on = np.eye(4) if marker.body < 0 else wanted[:, marker.body]
        poses = np.array([row[k] for row in found["poses"]]).reshape(-1, 4, 4).transpose(0, 2, 1)
        assert np.allclose(poses, on @ marker.pose, atol=1e-12 * max(1.0, np.abs(wanted).max()))
    sliders = sliders_of(robot.tree, 1.0)
    for row, again in zip(q, found["again"], strict=True):
        assert np.allclose(again, configuration(sliders, values_of(sliders, row), robot.nq))


@pytest.mark.full
def test_a_target_is_reached_in_a_browser_and_a_motion_plays(browser, tmp_path):
    robot = lw.load("iiwa14")
    q0 = np.array([0.3, 0.7, 0.2, -1.4, 0.1, 0.9, 0.0])
    goal = robot.forward_kinematics(q0 + 0.2, "link7")
    t = np.linspace(0, 1, 11)
    path = robot.save_html(tmp_path / "arm.html", (t, q0 + np.outer(t, np.ones(7))))
    found = browser(path, f"""
      const there = linkwise.reach({json.dumps(goal.T.ravel().tolist())});
      linkwise.setTime(0.5);
      return {{there, half: linkwise.state.q, shown: document.getElementById('now').textContent,
               wide: document.documentElement.scrollWidth}};
    """, (400, 800))  # fmt: skip
    there = robot.forward_kinematics(np.array(found["there"]), "link7")
    assert np.allclose(there, goal, atol=1e-5)
    assert np.allclose(found["half"], q0 + 0.5, atol=1e-6)
    assert found["shown"] == "0.50 / 1.00 s"
    assert found["wide"] <= 500  # nothing sticks out of a phone (browsers are 500 wide at least)


@pytest.mark.full
def test_closed_loops_stay_closed_in_a_browser(browser, tmp_path):
    """Loops in all six directions and in three, to the world and to a frame that moves."""
    arm = lw.load("iiwa14")
    q = np.array([0.3, 0.7, 0.2, -1.4, 0.1, 0.9, 0.0])
    wall = arm.close_loops(lw.Loop("link7"), at=q)
    two = arm.with_attached(arm, "base", np.eye(4), "b/")
    ring = two.close_loops(lw.Loop("link7", "b/link7", [0, 0, 0, 1, 1, 1]), at=np.tile(q, 2))
    for robot, start, number in ((wall, q, 0), (ring, np.tile(q, 2), 3)):
        path = robot.save_html(tmp_path / "closed.html", q=start)
        found = browser(path, f"""
          const slider = document.getElementById('joint{number}');
          slider.value = +slider.value + 0.1; slider.dispatchEvent(new Event('input'));
          const moved = linkwise.state.q;
          slider.value = 3; slider.dispatchEvent(new Event('input'));  // cannot be
          return {{moved, stays: linkwise.state.q,
                   gaps: linkwise.gaps(linkwise.poses({json.dumps((start + 1e-3).tolist())}))}};
        """)  # fmt: skip
        moved = np.array(found["moved"])
        assert moved[number] == pytest.approx(start[number] + 0.1)
        assert np.abs(robot.residual(moved).position).max() < 1e-8
        assert np.abs(robot.residual(np.array(found["stays"])).position).max() < 1e-8
        # near the closed state, gaps are what `residual` tells, up to the square of turns
        assert np.allclose(found["gaps"], robot.residual(start + 1e-3).position, atol=1e-5)

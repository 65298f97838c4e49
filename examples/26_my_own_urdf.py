"""A robot file of your own: mistakes are named with their line, and what loads can be looked at.

The motion is saved as a page for any browser, and as a picture, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

text = """<robot name="crane">
  <link name="base"/>
  <link name="boom">
    <inertial><origin xyz="0.5 0 0"/><mass value="20"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="2" iyz="0" izz="9"/></inertial>
  </link>
  <link name="jib">
    <inertial><origin xyz="0.3 0 0"/><mass value="5"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial>
  </link>
  <joint name="lift" type="revolute">
    <parent link="base"/><child link="boom"/><axis xyz="0 -1 0"/>
    <limit lower="0" upper="1.4" effort="500" velocity="1"/>
  </joint>
  <joint name="extend" type="prismatic">
    <parent link="boom"/><child link="jib"/><origin xyz="1 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.8" effort="300" velocity="0.5"/>
  </joint>
</robot>"""

try:
    lw.load(text)
except lw.RobotFileError as error:
    print("refused:", error)
for problem in lw.check(text):
    print("found:  ", problem)

robot = lw.load(text.replace('izz="9"', 'izz="2"'))
print(robot)
motion = lw.simulate(
    robot,
    [0.9, 0.1],
    controller=lw.control.computed_torque(robot, 5.0, 4.5, [0.2, 0.7]),
    duration=4.0,
)
print("torques at the start", motion.tau[0].round(1), "at the end", motion.tau[-1].round(1))
robot.save_html("my_own_urdf.html", motion)
print("my_own_urdf.html saved: open it in a browser")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    side, torques = figure.subplots(1, 2)
    robot = robot.with_frame("tip", "jib", np.array([[1, 0, 0, 0.6], *np.eye(4)[1:]]))
    places = robot.forward_kinematics(motion.q, ["base", "jib", "tip"])[..., [0, 2], 3]
    for k in range(0, len(places), 250):
        shade = str(0.85 - 0.85 * k / len(places))  # later is darker
        side.plot(*places[k, :2].T, "-", color=shade, lw=5, solid_capstyle="round")
        side.plot(*places[k, 1:].T, "-", color=shade, lw=2)
    side.set(title="the crane comes down and extends", xlabel="x, m", ylabel="z, m", aspect="equal")
    torques.plot(motion.t, motion.tau[:, 0], color="k", label="lift, N m")
    torques.plot(motion.t, motion.tau[:, 1], "--", color="k", label="extend, N")
    torques.set(title="what its motors do", xlabel="time, s")
    torques.legend()
    torques.grid(alpha=0.3)
    figure.savefig("my_own_urdf.png", dpi=110)
    print("my_own_urdf.png saved")

"""A whole arm from noisy data: masses, inertias, rotors and friction of all seven joints.

The arm runs a periodic motion, a few harmonics per joint, chosen among random ones so that its
parameters show (`lw.base_parameters`, a condition number). Encoders and torques are noisy; rates
and accelerations come from the harmonics that fit the encoders. `lw.identify` starts from bodies
that are a third off and finds bodies that can exist. Then a motion that it has not seen: how well
are its torques foretold? A picture is saved, where matplotlib is installed.
"""

import numpy as np

import linkwise as lw

PERIOD, HARMONICS, SAMPLES = 10.0, 5, 1000  # seconds; of each joint; of one period
ENCODER, TORQUE = 2e-4, 0.3  # noise: rad, N m

rng = np.random.default_rng(0)
truth, guess = lw.load("iiwa14").with_friction(), lw.load("iiwa14")
for joint, link in zip(truth.joint_names, truth.link_names, strict=True):
    mass, com = truth.inertia(link).mass, truth.inertia(link).com
    body = mass * np.array([0.008, 0.009, 0.006])  # kg m², of a body about 20 cm across
    truth = truth.with_inertia(link, mass, com, body).with_joint(
        joint, armature=0.1, damping=0.5, friction=0.4
    )
    off = 1.0 + 0.35 * rng.uniform(-1, 1)
    guess = guess.with_inertia(link, mass * off, com, body * off)

# a motion and its rates, from the sines and cosines of its harmonics
t = np.linspace(0.0, PERIOD, SAMPLES, endpoint=False)
w = 2 * np.pi * np.arange(1, HARMONICS + 1) / PERIOD
wave = np.exp(1j * w * t[:, None])
base = [np.hstack([(wave * (1j * w) ** k).real, (wave * (1j * w) ** k).imag]) for k in range(3)]


def motion(c):
    """q, qd, qdd (..., samples, joints) of coefficients (..., 2 harmonics, joints)."""
    return [b @ c for b in base]


tries = rng.normal(scale=0.35, size=(60, 2 * HARMONICS, truth.nv))
shown = lw.base_parameters(guess).columns
Y = guess.regressor(*(x[:, ::10] for x in motion(tries)))[..., shown].reshape(60, -1, len(shown))
conditions = np.linalg.cond(Y / np.linalg.norm(Y, axis=1, keepdims=True))
chosen = tries[np.argmin(conditions)]
print(f"condition of 60 random motions: {conditions.min():.0f} to {conditions.max():.0f}")

q, qd, qdd = motion(chosen)
tau = truth.inverse_dynamics(q, qd, qdd) + TORQUE * rng.normal(size=q.shape)
seen = q + ENCODER * rng.normal(size=q.shape)
fitted = np.linalg.lstsq(base[0], seen, rcond=None)[0]  # what encoders say of the harmonics
found = lw.identify(guess, *motion(fitted), tau, rotor=True, friction=True)
print(repr(found))

new = motion(rng.normal(scale=0.35, size=chosen.shape))
true = truth.inverse_dynamics(*new)
robots = {"before": guess, "identified": found.robot}
foretold = {name: robot.inverse_dynamics(*new) for name, robot in robots.items()}
errors = {name: np.sqrt(np.mean((x - true) ** 2, axis=0)) for name, x in foretold.items()}
size = np.sqrt(np.mean(true**2, axis=0))
for name, error in errors.items():
    print(f"a new motion, {name}: {np.round(error, 2)} N m, {100 * (error / size).max():.1f} %")

try:
    from matplotlib.figure import Figure
except ImportError:
    print("\nno picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    noisy = true[:, 5] + TORQUE * rng.normal(size=len(t))
    left.plot(t, noisy, ".", color="0.7", ms=2, label="measured")
    left.plot(t, foretold["before"][:, 5], "--", color="C1", label="before")
    left.plot(t, foretold["identified"][:, 5], color="C0", lw=1.2, label="identified")
    left.set(xlabel="time, s", ylabel="torque, N m", title="sixth joint, a motion not seen before")
    low, high = left.get_ylim()
    left.set_ylim(low, high + 0.15 * (high - low))
    left.legend(loc="upper center", ncols=3)
    place = np.arange(truth.nv)
    right.bar(place - 0.2, errors["before"], 0.4, color="C1", label="before")
    right.bar(place + 0.2, errors["identified"], 0.4, color="C0", label="identified")
    right.axhline(TORQUE, color="0.5", ls=":", label="noise of one measurement")
    right.set(yscale="log", ylim=(5e-3, 60.0), xlabel="joint", title="errors there")
    right.set_ylabel("root mean square, N m")
    right.set_xticks(place, [str(k + 1) for k in place])
    right.legend()
    figure.savefig("identify_arm.png", dpi=110)
    print("\nidentify_arm.png saved")

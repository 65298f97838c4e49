"""A policy trained by PyTorch: it balances a pole on a cart.

`lw.torch` gives forward dynamics with gradients: the loss of whole motions, of many carts at once,
is differentiated by the weights of a small network.
"""

import sys

import linkwise as lw

try:
    import torch
except ImportError:
    print("no policy without PyTorch: pip install 'linkwise[torch]'")
    sys.exit()

CARTS, STEPS, DT, ROUNDS, FORCE = 64, 50, 0.03, 60, 20.0  # 1.5 s, N
cart = lw.Builder("cart_pole").link("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
cart.link("pole", mass=0.2, com=(0.0, 0.0, 0.4), inertia=(0.02, 0.02, 1e-3))
cart.joint("rail", "prismatic", parent="base", child="cart", axis=(1.0, 0.0, 0.0))
cart.joint("hinge", "revolute", parent="cart", child="pole", axis=(0.0, 1.0, 0.0))
dynamics = lw.torch.forward_dynamics(cart.build())  # (q, qd, tau) -> qdd, with gradients

torch.set_num_threads(1)
torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
policy[2].weight.data *= 0.1
starts = 0.3 * torch.randn(CARTS, 4)  # m, rad, and their rates
adam, losses, leaning = torch.optim.Adam(policy.parameters(), lr=0.03), [], []
for _ in range(ROUNDS + 1):
    q, qd, loss, leans = starts[:, :2], starts[:, 2:], 0.0, []
    for _ in range(STEPS):
        force = FORCE * torch.tanh(policy(torch.cat((q, qd), dim=1)))
        qd = qd + DT * dynamics(q, qd, torch.nn.functional.pad(force, (0, 1)))
        q = q + DT * qd
        loss = loss + (1 - torch.cos(q[:, 1]) + 0.1 * q[:, 0] ** 2 + 1e-4 * force[:, 0] ** 2).mean()
        leans.append(q[:, 1].detach())
    losses.append(loss.item() / STEPS)
    leaning.append(torch.stack(leans))  # (steps, carts)
    (loss / STEPS).backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 0.3)
    adam.step()
    adam.zero_grad()
up = (leaning[-1][-1].abs() < 0.1).float().mean()
print(f"loss {losses[0]:.3f}, after {ROUNDS} rounds {losses[-1]:.3f}: {up:.0%} of the poles stand")
assert losses[-1] < 0.1 * losses[0]
try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'linkwise[plot]'")
else:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    first, *others = figure.subplots(1, 3)
    first.semilogy(losses)
    first.set(title="loss", xlabel="round")
    for plot, k, name in zip(others, (0, -1), ("before training", "after"), strict=True):
        plot.plot(DT * torch.arange(1, STEPS + 1), leaning[k][:, :16], lw=1)
        plot.set(title=f"16 poles {name}", xlabel="s", ylabel="leaning, rad", ylim=(-4, 4))
    figure.savefig("torch_policy.png", dpi=110)
    print("torch_policy.png saved")

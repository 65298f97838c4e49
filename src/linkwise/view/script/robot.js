// The robot: poses, how they change, masses, inverse kinematics, closed loops.

const bodies = data.bodies.map(b => ({ ...b, placement: fromRows(b.placement) }));
const frames = data.frames.map(f => ({ ...f, pose: fromRows(f.pose) }));
for (const t of data.ties) t.poses = t.poses.map(fromRows);
const sliders = data.sliders;

function jointPose(b, q) {
  const x = b.times * q[b.q] + b.plus, k = b.q;
  switch (b.kind) {
    case "revolute": return turnZ(x);
    case "prismatic": return shift(0, 0, x);
    case "helical": return mul(shift(0, 0, b.pitch * x), turnZ(x));
    case "universal": return mul(turnZ(x), turnX(q[k + 1]));
    case "planar": return mul(shift(x, q[k + 1], 0), turnZ(q[k + 2]));
    case "spherical": return turnQ(q[k], q[k + 1], q[k + 2], q[k + 3]);
    default: return mul(shift(q[k + 4], q[k + 5], q[k + 6]), turnQ(q[k], q[k + 1], q[k + 2], q[k + 3]));
  }
}
function poses(q) {  // of all bodies
  const out = [];
  for (const b of bodies) {
    const own = mul(b.placement, jointPose(b, q));
    out.push(b.parent < 0 ? own : mul(out[b.parent], own));
  }
  return out;
}
const bodyPose = (T, i) => i < 0 ? eye() : T[i];
const framePose = (T, f) => mul(bodyPose(T, frames[f].body), frames[f].pose);

function toQ(values) {  // sliders -> q
  const q = new Array(data.nq).fill(0);
  sliders.forEach((s, i) => {
    if (s.angle < 0) q[s.q] = values[i];
    else if (s.angle === 0) {
      const [r, p, y] = [0, 1, 2].map(k => values[i + k] / 2);
      const [cr, sr, cp, sp, cy, sy] = [Math.cos(r), Math.sin(r), Math.cos(p), Math.sin(p), Math.cos(y), Math.sin(y)];
      q[s.q] = cr * cp * cy + sr * sp * sy; q[s.q + 1] = sr * cp * cy - cr * sp * sy;
      q[s.q + 2] = cr * sp * cy + sr * cp * sy; q[s.q + 3] = cr * cp * sy - sr * sp * cy;
    }
  });
  return q;
}
function toValues(q) {  // q -> sliders
  return sliders.map(s => {
    if (s.angle < 0) return q[s.q];
    const n = Math.hypot(q[s.q], q[s.q + 1], q[s.q + 2], q[s.q + 3]) || 1;
    const [w, x, y, z] = [0, 1, 2, 3].map(k => q[s.q + k] / n);
    if (s.angle === 0) return Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y));
    if (s.angle === 1) return Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x))));
    return Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
  });
}

// How the pose of every body changes with each slider, by central differences: all that read-outs
// and inverse kinematics need.
const STEP = 1e-5;
function changes(values) {
  return sliders.map((_, k) => {
    const one = values.slice(), other = values.slice();
    one[k] += STEP; other[k] -= STEP;
    const a = poses(toQ(one)), b = poses(toQ(other));
    return a.map((m, i) => m.map((x, e) => (x - b[i][e]) / (2 * STEP)));
  });
}
function jacobian(T, dT, f) {  // rows: angular, linear
  const body = frames[f].body, R = framePose(T, f), rows = Array.from({ length: 6 }, () => []);
  for (const d of dT) {
    const dF = body < 0 ? new Array(16).fill(0) : mul(d[body], frames[f].pose);
    // w~ = dR R^T
    const w = (i, j) => dF[i] * R[j] + dF[4 + i] * R[4 + j] + dF[8 + i] * R[8 + j];
    [w(2, 1), w(0, 2), w(1, 0), dF[12], dF[13], dF[14]].forEach((x, i) => rows[i].push(x));
  }
  return rows;
}
// M_jk = sum over bodies of tr(dT_j P dT_k^T), P the pseudo-inertia; gravity: -g . d(T P e4)
function massMatrix(dT) {
  const n = sliders.length, M = Array.from({ length: n }, () => new Array(n).fill(0));
  bodies.forEach((b, i) => {
    const P = b.inertia, moved = dT.map(d => {
      const m = d[i];
      if (m.every(x => x === 0)) return null;
      const out = [];
      for (let r = 0; r < 3; r++) for (let c = 0; c < 4; c++)
        out.push(m[r] * P[c] + m[4 + r] * P[4 + c] + m[8 + r] * P[8 + c] + m[12 + r] * P[12 + c]);
      return out;
    });
    for (let j = 0; j < n; j++) if (moved[j]) for (let k = 0; k <= j; k++) if (moved[k]) {
      const m = dT[k][i];
      let t = 0;
      for (let r = 0; r < 3; r++) for (let c = 0; c < 4; c++) t += moved[j][4 * r + c] * m[4 * c + r];
      M[j][k] += t;
    }
    const own = sliders.findIndex(s => s.q === b.q && s.angle < 0);
    if (own >= 0) b.armature.forEach((a, c) => { if (sliders[own + c]) M[own + c][own + c] += a * b.times * b.times; });
  });
  for (let j = 0; j < n; j++) for (let k = 0; k < j; k++) M[k][j] = M[j][k];
  return M;
}
function gravityTorques(dT) {
  const g = data.gravity;
  return dT.map(d => -bodies.reduce((t, b, i) => {
    const m = d[i], P = b.inertia;
    for (let r = 0; r < 3; r++) t += g[r] * (m[r] * P[3] + m[4 + r] * P[7] + m[8 + r] * P[11] + m[12 + r] * P[15]);
    return t;
  }, 0));
}
// --- closed loops

const tieEnds = (T, t) => [0, 1].map(k => at(mul(bodyPose(T, t.bodies[k]), t.poses[k])));
// How far loops are open: along each direction, in axes of the second frame, at the first's origin.
function gaps(T) {
  return data.ties.flatMap(t => {
    const [a, b] = [0, 1].map(k => mul(bodyPose(T, t.bodies[k]), t.poses[k]));
    const column = (m, k) => m.slice(4 * k, 4 * k + 3), entry = (i, j) => dot(column(b, i), column(a, j));
    const turn = [entry(2, 1) - entry(1, 2), entry(0, 2) - entry(2, 0), entry(1, 0) - entry(0, 1)].map(x => x / 2);
    const step = sub(at(a), at(b)), apart = [...turn, ...[0, 1, 2].map(k => dot(column(b, k), step))];
    return t.directions.map(row => dot(row, apart));
  });
}
// The sliders near by at which loops are closed while one slider stays; null where there are none.
function closed(values, stays) {
  let now = values.slice();
  const enough = 1e-9 * Math.max(1, data.reach);
  for (let step = 0; step < 40; step++) {
    const e = gaps(poses(toQ(now)));
    if (norm(e) < enough) return now;
    const columns = sliders.map((_, k) => {
      const one = now.slice(), other = now.slice();
      one[k] += STEP; other[k] -= STEP;
      const a = gaps(poses(toQ(one))), b = gaps(poses(toQ(other)));
      return k === stays ? a.map(() => 0) : a.map((x, i) => (x - b[i]) / (2 * STEP));
    });
    const A = e.map((_, i) => e.map((_, j) => columns.reduce((t, c) => t + c[i] * c[j], i === j ? 1e-12 : 0)));
    const y = solve(A, e);
    if (!y) return null;
    const move = columns.map(c => -dot(c, y)), most = Math.max(...move.map(Math.abs));
    now = now.map((x, k) => x + move[k] * Math.min(1, 0.3 / most));
  }
  return null;
}

const MOST_LIVE = 80;  // sliders, up to which dynamics is computed while one is moved
function readings(values, f) {
  const T = poses(toQ(values));
  if (sliders.length > MOST_LIVE) return { T };
  const dT = changes(values), J = jacobian(T, dT, f), V = J.slice(3);
  const velocity = V.map(a => V.map(b => dot(a, b)));
  const out = { T, J, gravity: gravityTorques(dT), velocity: eigen(velocity) };
  const M = massMatrix(dT), columns = V.map(row => solve(M, row));
  if (!data.ties.length && columns.every(c => c)) out.mobility = eigen(V.map(a => columns.map(c => dot(a, c))));
  out.M = M;
  return out;
}

// Damped least squares, limits kept: the sliders after a few steps toward a target pose.
function reachFor(values, f, target, turns, steps) {
  let best = values.slice();
  for (let step = 0; step < steps; step++) {
    const T = poses(toQ(best)), F = framePose(T, f), J = jacobian(T, changes(best), f);
    let e = sub(at(target), at(F)), rows = J.slice(3);
    if (turns) {
      const w = [0, 0, 0];
      for (let c = 0; c < 3; c++) {
        const [a, b] = [F, target].map(m => m.slice(4 * c, 4 * c + 3));
        cross(a, b).forEach((x, i) => { w[i] += x / 2; });
      }
      e = [...w.map(x => x * data.reach), ...e];
      rows = [...J.slice(0, 3).map(r => r.map(x => x * data.reach)), ...rows];
    }
    const size = norm(e);
    if (size < 1e-7 * data.reach) break;
    const free = sliders.map(() => 1), damping = 1e-4 * data.reach ** 2 + 0.02 * size * size;
    let move;
    for (let pass = 0; pass < 3; pass++) {
      const A = rows.map((a, i) => rows.map((b, j) => a.reduce((t, x, k) => t + free[k] * x * b[k], i === j ? damping : 0)));
      const y = solve(A, e);
      if (!y) return best;
      move = sliders.map((_, k) => free[k] * rows.reduce((t, r, i) => t + r[k] * y[i], 0));
      const leaves = (s, x, m) => (x >= s.upper && m > 0) || (x <= s.lower && m < 0);
      const out = move.map((m, k) => free[k] && leaves(sliders[k], best[k], m));
      if (!out.some(x => x)) break;
      out.forEach((x, k) => { if (x) free[k] = 0; });
    }
    best = best.map((x, k) => Math.max(sliders[k].lower, Math.min(sliders[k].upper, x + move[k])));
  }
  return best;
}

"use strict";
// A robot in a page: kinematics of the exported tree, a small renderer on WebGL 2, and controls.
// Matrices are 4 by 4, by columns, as WebGL has them; spatial quantities are in base axes, SI units.
(() => {
const data = JSON.parse(document.getElementById("scene").textContent);
const $ = id => document.getElementById(id);

// --- matrices -------------------------------------------------------------------------------

const eye = () => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const fromRows = r => [r[0], r[4], r[8], 0, r[1], r[5], r[9], 0, r[2], r[6], r[10], 0, r[3], r[7], r[11], 1];
function mul(a, b) {
  const out = new Array(16);
  for (let c = 0; c < 16; c += 4) for (let r = 0; r < 4; r++)
    out[c + r] = a[r] * b[c] + a[4 + r] * b[c + 1] + a[8 + r] * b[c + 2] + a[12 + r] * b[c + 3];
  return out;
}
const point = (m, p) => [0, 1, 2].map(r => m[r] * p[0] + m[4 + r] * p[1] + m[8 + r] * p[2] + m[12 + r]);
const shift = (x, y, z) => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, x, y, z, 1];
const scaling = (x, y, z) => [x, 0, 0, 0, 0, y, 0, 0, 0, 0, z, 0, 0, 0, 0, 1];
const turnZ = a => { const c = Math.cos(a), s = Math.sin(a); return [c, s, 0, 0, -s, c, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]; };
const turnX = a => { const c = Math.cos(a), s = Math.sin(a); return [1, 0, 0, 0, 0, c, s, 0, 0, -s, c, 0, 0, 0, 0, 1]; };
function turnQ(w, x, y, z) {
  const n = Math.hypot(w, x, y, z) || 1; w /= n; x /= n; y /= n; z /= n;
  return [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
          2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
          2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0, 0, 0, 0, 1];
}
const sub = (a, b) => a.map((x, i) => x - b[i]);
const add = (a, b, k = 1) => a.map((x, i) => x + k * b[i]);
const dot = (a, b) => a.reduce((t, x, i) => t + x * b[i], 0);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = a => Math.hypot(...a);
const unit = a => { const n = norm(a) || 1; return a.map(x => x / n); };
const at = m => [m[12], m[13], m[14]];

function solve(A, b) {  // A symmetric and positive definite, by Cholesky; null where it is not
  const n = b.length, L = A.map(r => r.slice()), x = b.slice();
  for (let j = 0; j < n; j++) {
    for (let k = 0; k < j; k++) for (let i = j; i < n; i++) L[i][j] -= L[i][k] * L[j][k];
    if (!(L[j][j] > 0)) return null;
    const d = Math.sqrt(L[j][j]);
    for (let i = j; i < n; i++) L[i][j] /= d;
  }
  for (let i = 0; i < n; i++) { for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k]; x[i] /= L[i][i]; }
  for (let i = n - 1; i >= 0; i--) { for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k]; x[i] /= L[i][i]; }
  return x;
}
function eigen(S) {  // of a symmetric 3 by 3 matrix, by Jacobi's turns: values, and axes as columns
  const A = S.map(r => r.slice()), V = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let sweep = 0; sweep < 24; sweep++) for (const [p, q] of [[0, 1], [0, 2], [1, 2]]) {
    if (Math.abs(A[p][q]) < 1e-300) continue;
    const h = (A[q][q] - A[p][p]) / (2 * A[p][q]);
    const t = Math.sign(h || 1) / (Math.abs(h) + Math.sqrt(h * h + 1)), c = 1 / Math.sqrt(t * t + 1), s = t * c;
    for (let k = 0; k < 3; k++) [A[k][p], A[k][q]] = [c * A[k][p] - s * A[k][q], s * A[k][p] + c * A[k][q]];
    for (let k = 0; k < 3; k++) [A[p][k], A[q][k]] = [c * A[p][k] - s * A[q][k], s * A[p][k] + c * A[q][k]];
    for (let k = 0; k < 3; k++) [V[k][p], V[k][q]] = [c * V[k][p] - s * V[k][q], s * V[k][p] + c * V[k][q]];
  }
  return { values: [A[0][0], A[1][1], A[2][2]], axes: V };
}

// --- the robot ------------------------------------------------------------------------------

const bodies = data.bodies.map(b => ({ ...b, placement: fromRows(b.placement) }));
const frames = data.frames.map(f => ({ ...f, pose: fromRows(f.pose) }));
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
      const out = move.map((m, k) => free[k] && ((best[k] >= sliders[k].upper && m > 0) || (best[k] <= sliders[k].lower && m < 0)));
      if (!out.some(x => x)) break;
      out.forEach((x, k) => { if (x) free[k] = 0; });
    }
    best = best.map((x, k) => Math.max(sliders[k].lower, Math.min(sliders[k].upper, x + move[k])));
  }
  return best;
}

// --- geometry -------------------------------------------------------------------------------

function decode(text, Kind) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Kind(bytes.buffer);
}
// A surface of revolution about z from points (radius, height) with normals.
function lathe(profile, around = 40) {
  const p = [], n = [], f = [];
  profile.forEach(([r, z, nr, nz]) => {
    for (let k = 0; k <= around; k++) {
      const a = 2 * Math.PI * k / around, c = Math.cos(a), s = Math.sin(a);
      p.push(r * c, r * s, z); n.push(nr * c, nr * s, nz);
    }
  });
  for (let i = 0; i + 1 < profile.length; i++) for (let k = 0; k < around; k++) {
    const a = i * (around + 1) + k, b = a + around + 1;
    f.push(a, a + 1, b, a + 1, b + 1, b);
  }
  return { p, n, f };
}
function arc(radius, z, from, to, steps = 14) {
  return Array.from({ length: steps + 1 }, (_, k) => {
    const a = from + (to - from) * k / steps;
    return [radius * Math.cos(a), z + radius * Math.sin(a), Math.cos(a), Math.sin(a)];
  });
}
function cylinder(edge = 0.06) {  // unit radius and height, with a rounded edge
  const b = edge;
  return lathe([[0, -0.5, 0, -1], [1 - b, -0.5, 0, -1], [1 - b, -0.5, 0.2, -1], [1, -0.5 + b, 1, -0.2],
    [1, -0.5 + b, 1, 0], [1, 0.5 - b, 1, 0], [1, 0.5 - b, 1, 0.2], [1 - b, 0.5, 0.2, 1], [1 - b, 0.5, 0, 1], [0, 0.5, 0, 1]]);
}
function box() {
  const p = [], n = [], f = [];
  for (let axis = 0; axis < 3; axis++) for (const side of [-1, 1]) {
    const start = p.length / 3, u = (axis + 1) % 3, v = (axis + 2) % 3;
    for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
      const x = [0, 0, 0], m = [0, 0, 0];
      x[axis] = side / 2; x[u] = a / 2; x[v] = b / 2; m[axis] = side;
      p.push(...x); n.push(...m);
    }
    f.push(...(side > 0 ? [0, 1, 2, 0, 2, 3] : [0, 2, 1, 0, 3, 2]).map(k => start + k));
  }
  return { p, n, f };
}
// A mesh with normals that are smooth but across edges sharper than 40 degrees.
function smooth(mesh) {
  const corners = decode(mesh.corners, Uint16Array), faces = decode(mesh.faces, Uint32Array);
  const m = faces.length / 3, flat = new Float32Array(faces.length), p = new Float32Array(3 * faces.length), n = new Float32Array(3 * faces.length);
  const meet = new Map(), key = k => corners[3 * k] * 4294967296 + corners[3 * k + 1] * 65536 + corners[3 * k + 2];
  const x = k => [0, 1, 2].map(i => mesh.low[i] + mesh.size[i] * corners[3 * k + i] / 65535);
  for (let t = 0; t < m; t++) {
    const [a, b, c] = [0, 1, 2].map(i => x(faces[3 * t + i])), w = cross(sub(b, a), sub(c, a));
    flat.set(w, 3 * t);
    for (let i = 0; i < 3; i++) {
      const own = key(faces[3 * t + i]);
      if (!meet.has(own)) meet.set(own, []);
      meet.get(own).push(t);
    }
    [a, b, c].forEach((v, i) => p.set(v, 9 * t + 3 * i));
  }
  for (let t = 0; t < m; t++) {
    const own = unit([flat[3 * t], flat[3 * t + 1], flat[3 * t + 2]]);
    for (let i = 0; i < 3; i++) {
      const total = [0, 0, 0];
      for (const s of meet.get(key(faces[3 * t + i]))) {
        const w = [flat[3 * s], flat[3 * s + 1], flat[3 * s + 2]];
        if (dot(own, w) >= 0.77 * norm(w)) for (let e = 0; e < 3; e++) total[e] += w[e];
      }
      n.set(unit(total), 9 * t + 3 * i);
    }
  }
  return { p, n, f: null };
}

// --- drawing --------------------------------------------------------------------------------

const canvas = $("view");
const gl = canvas.getContext("webgl2", { antialias: true, stencil: true, alpha: false, preserveDrawingBuffer: true });
if (!gl) {
  $("fail").hidden = false;
  $("fail").textContent = "This page draws with WebGL 2, which this browser does not offer or has switched off. The sliders and numbers still work.";
}
const VERTEX = `#version 300 es
uniform mat4 view, model; uniform mat3 turn; in vec3 p, n; out vec3 at, normal;
void main() { vec4 w = model * vec4(p, 1.0); at = w.xyz; normal = turn * n; gl_Position = view * w; }`;
const SOLID = `#version 300 es
precision highp float; uniform vec4 colour; uniform vec3 eye, light; uniform float flatness;
in vec3 at, normal; out vec4 result;
void main() {
  vec3 v = normalize(eye - at), n = normalize(normal); if (dot(n, v) < 0.0) n = -n;
  vec3 base = pow(max(colour.rgb, vec3(0.09)), vec3(2.2));
  float key = max(dot(n, light), 0.0), fill = max(dot(n, normalize(vec3(-light.y, light.x, 0.35))), 0.0);
  vec3 sky = mix(vec3(0.20, 0.19, 0.18), vec3(0.44, 0.47, 0.51), 0.5 + 0.5 * n.z);
  float shine = pow(max(dot(n, normalize(light + v)), 0.0), 48.0), rim = pow(1.0 - max(dot(n, v), 0.0), 4.0);
  vec3 c = base * (0.94 * sky + 0.60 * key + 0.14 * fill) + 0.11 * shine + 0.10 * rim * sky;
  c = mix(c, base, flatness);
  float rimmed = colour.a < 1.0 && flatness < 0.5 ? colour.a * (0.55 + 1.1 * pow(1.0 - max(dot(n, v), 0.0), 2.0)) : colour.a;
  result = vec4(pow(c, vec3(1.0 / 2.2)), min(rimmed, 1.0));
}`;
const GROUND = `#version 300 es
precision highp float; uniform vec4 colour; uniform vec3 eye; uniform float spacing, wide; in vec3 at; out vec4 result;
float lines(vec2 x, float width) { vec2 d = fwidth(x), g = abs(fract(x - 0.5) - 0.5) / d; return 1.0 - min(min(g.x, g.y) / width, 1.0); }
void main() {
  float far = length(at.xy) / wide, fade = smoothstep(0.55, 0.06, far);
  float fine = lines(at.xy / spacing, 1.0) * 0.12, coarse = lines(at.xy / (5.0 * spacing), 1.3) * 0.24;
  vec3 ground = mix(vec3(0.925, 0.936, 0.947), vec3(0.895, 0.908, 0.922), fade);
  result = vec4(ground - fade * max(fine, coarse) * vec3(0.62, 0.56, 0.5), smoothstep(1.0, 0.4, far));
}`;
const FLAT = `#version 300 es
precision highp float; uniform vec4 colour; out vec4 result; void main() { result = colour; }`;

function program(fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text); gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "p"); gl.bindAttribLocation(made, 1, "n");
  gl.linkProgram(made);
  const places = {};
  for (const name of ["view", "model", "turn", "colour", "eye", "light", "flatness", "spacing", "wide"])
    places[name] = gl.getUniformLocation(made, name);
  return { made, places };
}
function upload({ p, n, f }) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  [p, n].forEach((values, slot) => {
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(slot);
    gl.vertexAttribPointer(slot, 3, gl.FLOAT, false, 0, 0);
  });
  if (f) {
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(f), gl.STATIC_DRAW);
  }
  return { array, count: f ? f.length : p.length / 3, indexed: !!f };
}

const solids = {};
function solid(kind, size, mesh) {  // geometry, and the scale that gives it its size
  const key = kind === "capsule" ? `capsule ${size}` : kind === "mesh" ? `mesh ${mesh}` : kind;
  const make = {
    sphere: () => lathe(arc(1, 0, -Math.PI / 2, Math.PI / 2, 28)),
    cylinder: () => cylinder(), box, cone: () => lathe([[0, 0, 0, -1], [1, 0, 0, -1], [1, 0, 1, 0.4], [0, 1, 1, 0.4]], 28),
    rod: () => lathe([[1, 0, 1, 0], [1, 1, 1, 0]], 20),
    capsule: () => lathe([...arc(size[0], -size[1] / 2, -Math.PI / 2, 0), ...arc(size[0], size[1] / 2, 0, Math.PI / 2)]),
    mesh: () => smooth(data.meshes[mesh]),
  };
  return solids[key] ??= upload(make[kind]());
}
function pieces(shape) {  // [geometry, local matrix] that a shape is drawn by
  const s = shape.size, own = fromRows(shape.pose);
  switch (shape.kind) {
    case "sphere": return [[solid("sphere"), mul(own, scaling(s[0], s[0], s[0]))]];
    case "ellipsoid": return [[solid("sphere"), mul(own, scaling(...s))]];
    case "cylinder": return [[solid("cylinder"), mul(own, scaling(s[0], s[0], s[1]))]];
    case "box": return [[solid("box"), mul(own, scaling(...s))]];
    case "arrow": return arrow(own, s[0], s[1]);
    case "capsule": return [[solid("capsule", s), own]];
    default: return [[solid("mesh", s, shape.mesh), own]];
  }
}
function arrow(pose, radius, length) {
  const head = Math.min(7 * radius, 0.45 * length);
  return [[solid("rod"), mul(pose, scaling(radius, radius, length - head))],
    [solid("cone"), mul(mul(pose, shift(0, 0, length - head)), scaling(2.6 * radius, 2.6 * radius, head))]];
}
function alongZ(from, direction) {  // a pose whose z has a direction
  const z = unit(direction), least = z.map(Math.abs).indexOf(Math.min(...z.map(Math.abs)));
  const x = unit(cross(z, [0, 1, 2].map(k => +(k === least)))), y = cross(z, x);
  return [...x, 0, ...y, 0, ...z, 0, ...from, 1];
}

// The world is drawn with z up, whatever gravity says.
const upright = (() => {
  const z = data.up;
  if (Math.abs(z[2] - 1) < 1e-9) return eye();
  const x = unit(cross(Math.abs(z[1]) < 0.9 ? [0, 1, 0] : [0, 0, -1], z)), y = cross(z, x);
  return [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, 0, 0, 0, 1];
})();

const layers = {
  visual: { title: "Shapes", on: data.visuals, there: data.visuals },
  bones: { title: "Bones", on: !data.visuals, there: true },
  inertia: { title: "Inertia", on: !data.visuals, there: data.shapes.some(s => s.layer === "inertia") },
  axes: { title: "Joint axes", on: !data.visuals, there: data.shapes.some(s => s.layer === "axes") },
  frames: { title: "Frames", on: false, there: true },
  velocity: { title: "Manipulability", on: false, there: sliders.length <= MOST_LIVE, key: "#0072b2" },
  mobility: { title: "Mobility", on: false, there: sliders.length <= MOST_LIVE && !data.ties.length, key: "#cc79a7" },
  path: { title: "Path", on: true, there: data.t.length > 1 },
  forces: { title: "Forces", on: true, there: data.pushes.length > 0 },
};

let drawables = [];
const programs = {};
if (gl) {
  drawables = data.shapes.flatMap(s => pieces(s).map(([geometry, local]) => ({ ...s, geometry, local })));
  Object.assign(programs, { solid: program(SOLID), ground: program(GROUND), flat: program(FLAT) });
}

const tracks = (() => {
  const [rows, times, nq] = data.tracks.shape, numbers = decode(data.tracks.data, Float32Array);
  return { rows, times, at: (row, k) => Array.from(numbers.subarray((row * times + k) * nq, (row * times + k + 1) * nq)) };
})();

const state = {
  values: data.values[0].slice(), q: data.q[0].slice(), ghosts: data.q.slice(1), frame: data.tip,
  time: 0, playing: false, speed: 1, moved: false, looked: false, drag: false, target: null, turns: true,
  read: null, orbit: { yaw: -0.85, pitch: 0.32, distance: 1, centre: [0, 0, 0] },
};

function extent(wanted) {  // of what is shown, in upright axes: low and high corners
  const low = [1e30, 1e30, 1e30], high = [-1e30, -1e30, -1e30];
  const seen = tracks.times ? [0, 0.25, 0.5, 0.75, 1].map(x => tracks.at(0, Math.round(x * (tracks.times - 1)))) : [state.q];
  for (const q of [...seen, ...state.ghosts]) {
    const T = poses(q);
    for (const s of data.shapes) if (wanted.includes(s.layer)) {
      const pose = mul(mul(upright, bodyPose(T, s.body)), fromRows(s.pose));
      const ends = s.kind === "mesh" ? meshEnds(data.meshes[s.mesh]) : boxEnds(s);
      for (const e of ends) point(pose, e).forEach((x, i) => { low[i] = Math.min(low[i], x); high[i] = Math.max(high[i], x); });
    }
  }
  return low[0] > high[0] ? [[-0.5, -0.5, 0], [0.5, 0.5, 1]] : [low, high];
}
const corners8 = (a, b) => [0, 1, 2, 3, 4, 5, 6, 7].map(k => [0, 1, 2].map(i => (k >> i) & 1 ? b[i] : a[i]));
const meshEnds = m => corners8(m.low, add(m.low, m.size));
function boxEnds(s) {
  const [a, b, c] = s.size;
  const h = { sphere: [a, a, a], ellipsoid: [a, b, c], box: [a / 2, b / 2, c / 2], cylinder: [a, a, b / 2], capsule: [a, a, a + b / 2] }[s.kind] || [0, 0, 0];
  return corners8(h.map(x => -x), h);
}
const [low, high] = extent(data.visuals ? ["visual"] : ["bones", "inertia"]);
const size = Math.max(norm(sub(high, low)), 1e-3), lowest = extent([data.visuals ? "visual" : "bones"])[0][2];
const ground = lowest < -0.02 * size ? lowest : 0;
state.orbit.centre = add(low, sub(high, low), 0.5);
const steps = [1, 2, 5].flatMap(m => [-3, -2, -1, 0, 1].map(e => m * 10 ** e)).sort((a, b) => a - b);
const spacing = steps.find(s => s > size / 14) || 10;

function frameCamera() {
  const narrow = Math.min(1, Math.max(canvas.clientWidth, 1) / Math.max(canvas.clientHeight, 1));
  state.orbit.distance = 1.06 * size / (2 * Math.sin(FOV / 2) * narrow);
}
const FOV = 0.62;
function camera() {
  const { yaw, pitch, distance, centre } = state.orbit;
  const eye = add(centre, [Math.cos(pitch) * Math.cos(yaw), Math.cos(pitch) * Math.sin(yaw), Math.sin(pitch)], distance);
  const z = unit(sub(eye, centre)), x = unit(cross([0, 0, 1], z)), y = cross(z, x);
  const look = [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1];
  const near = distance / 100, far = distance + 30 * size, f = 1 / Math.tan(FOV / 2), aspect = canvas.width / Math.max(canvas.height, 1);
  const projection = [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
  return { eye, x, y, z, matrix: mul(projection, look) };
}
function project(cam, p) {  // a point in base axes -> pixels of the page
  const w = point(upright, p), m = cam.matrix;
  const c = [0, 1, 3].map(r => m[r] * w[0] + m[4 + r] * w[1] + m[8 + r] * w[2] + m[12 + r]);
  return [(c[0] / c[2] + 1) / 2 * canvas.clientWidth, (1 - c[1] / c[2]) / 2 * canvas.clientHeight];
}

const LIGHT = unit([0.45, -0.55, 0.95]);
const shade = (() => { const [x, y, z] = LIGHT, g = ground; return [1, 0, 0, 0, 0, 1, 0, 0, -x / z, -y / z, 0, 0, g * x / z, g * y / z, g + 0.0005 * size, 1]; })();

function draw() {
  const wide = Math.round(canvas.clientWidth * Math.min(devicePixelRatio, 2)), tall = Math.round(canvas.clientHeight * Math.min(devicePixelRatio, 2));
  if (canvas.width !== wide || canvas.height !== tall) {
    canvas.width = wide; canvas.height = tall;
    if (!state.looked) frameCamera();
  }
  if (!wide || !tall) return;
  const cam = camera();
  placeLabel(cam);
  if (!gl) return;
  gl.viewport(0, 0, wide, tall);
  gl.clearColor(0.935, 0.945, 0.955, 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST); gl.enable(gl.BLEND); gl.disable(gl.STENCIL_TEST); gl.depthMask(true);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const T = poses(state.q), shown = drawables.filter(d => layers[d.layer].on);
  const opaque = shown.filter(d => d.rgba[3] >= 1);
  const extra = [...triads(T), ...ties(T), ...path()], above = [...wrenches(T), ...targetPieces()];

  use("ground", cam);
  gl.uniform1f(programs.ground.places.spacing, spacing); gl.uniform1f(programs.ground.places.wide, 6 * size);
  gl.depthMask(false);
  one(programs.ground, solid("box"), mul(shift(0, 0, ground), scaling(12 * size, 12 * size, 1e-9)), [0, 0, 0, 1], eye());
  // shadows: all that is opaque, flattened along the light, each pixel darkened once
  use("flat", cam);
  gl.enable(gl.STENCIL_TEST); gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
  for (const d of opaque) one(programs.flat, d.geometry, mul(bodyPose(T, d.body), d.local), [0.1, 0.13, 0.18, 0.17], mul(shade, upright));
  gl.disable(gl.STENCIL_TEST); gl.depthMask(true);

  use("solid", cam);
  for (const d of opaque) one(programs.solid, d.geometry, mul(bodyPose(T, d.body), d.local), d.rgba);
  for (const d of extra) one(programs.solid, d.geometry, d.matrix, d.rgba, upright, d.flat || 0);
  // ghosts: depth first, so that each is one silhouette
  for (const q of ghosts()) {
    const G = poses(q);
    for (const pass of [0, 1]) {
      gl.colorMask(pass, pass, pass, pass); gl.depthFunc(pass ? gl.LEQUAL : gl.LESS);
      for (const d of opaque) if (d.layer !== "axes" && d.body >= 0) one(programs.solid, d.geometry, mul(bodyPose(G, d.body), d.local), [...d.rgba.slice(0, 3), 0.22]);
    }
    gl.depthFunc(gl.LESS);
  }
  gl.depthMask(false);
  gl.enable(gl.CULL_FACE);
  const clear = shown.filter(d => d.rgba[3] < 1).map(d => ({ geometry: d.geometry, matrix: mul(bodyPose(T, d.body), d.local), rgba: d.rgba })).concat(ellipsoids());
  const away = d => dot(sub(point(upright, at(d.matrix)), cam.eye), cam.z);
  for (const d of clear.sort((a, b) => away(a) - away(b))) for (const side of [gl.FRONT, gl.BACK]) {
    gl.cullFace(side);
    one(programs.solid, d.geometry, d.matrix, d.rgba);
  }
  gl.disable(gl.CULL_FACE); gl.depthMask(true);
  gl.clear(gl.DEPTH_BUFFER_BIT);  // forces and targets are seen through the robot
  for (const d of above) one(programs.solid, d.geometry, d.matrix, d.rgba);
}
function use(name, cam) {
  const { made, places } = programs[name];
  gl.useProgram(made);
  gl.uniformMatrix4fv(places.view, false, cam.matrix);
  gl.uniform3fv(places.eye, cam.eye); gl.uniform3fv(places.light, LIGHT);
}
function one({ places }, geometry, matrix, rgba, world = upright, flatness = 0) {
  const m = mul(world, matrix);
  // normals turn by the inverse transpose, up to a factor: the cofactors
  const c = [0, 4, 8].map(k => m.slice(k, k + 3)), turn = [cross(c[1], c[2]), cross(c[2], c[0]), cross(c[0], c[1])].flat();
  gl.uniformMatrix4fv(places.model, false, m);
  gl.uniformMatrix3fv(places.turn, false, turn);
  gl.uniform4fv(places.colour, rgba);
  gl.uniform1f(places.flatness, flatness);
  gl.bindVertexArray(geometry.array);
  if (geometry.indexed) gl.drawElements(gl.TRIANGLES, geometry.count, gl.UNSIGNED_INT, 0);
  else gl.drawArrays(gl.TRIANGLES, 0, geometry.count);
}

const RGB = [[0.80, 0.22, 0.05, 1], [0.0, 0.55, 0.40, 1], [0.0, 0.38, 0.75, 1]];  // x, y, z
function triad(pose, length) {
  const toX = [0, 0, -1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1], toY = [1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
  return [toX, toY, eye()].flatMap((turn, k) => arrow(mul(pose, turn), 0.035 * length, length).map(([geometry, matrix]) => ({ geometry, matrix, rgba: RGB[k] })));
}
function triads(T) {
  const length = 0.055 * size, all = layers.frames.on ? frames.map((_, k) => k).slice(0, 300) : [];
  return [...all.flatMap(k => triad(framePose(T, k), 0.7 * length)), ...(frames.length ? triad(framePose(T, state.frame), 1.3 * length) : [])];
}
function arrows(from, vector, factor, radius, rgba) {
  const length = factor * norm(vector);
  if (!(length > 1e-9)) return [];
  return arrow(alongZ(from, vector), radius, length).map(([geometry, matrix]) => ({ geometry, matrix, rgba }));
}
// Arrows end on the frame that they push; those of a motion are of its time, others of the first q.
const strongest = Math.max(1e-300, ...data.pushes.flatMap(p => p.wrenches.map(w => norm(w.slice(3)))));
const twist = Math.max(1e-300, ...data.pushes.flatMap(p => p.wrenches.map(w => norm(w.slice(0, 3)))));
function wrenches(T) {
  if (!layers.forces.on || state.moved) return [];
  return data.pushes.flatMap(p => {
    const w = p.wrenches[Math.min(timeIndex(), p.wrenches.length - 1)], where = at(framePose(T, p.frame));
    const k = 0.28 * size / strongest, force = w.slice(3);
    const moment = norm(w.slice(0, 3)) > 1e-9 * (1 + twist) ? arrows(where, w.slice(0, 3), 0.14 * size / Math.max(twist, strongest * 0.1 * data.reach), 0.004 * size, [0.80, 0.47, 0.65, 1]) : [];
    return [...arrows(add(where, force, -k), force, k, 0.007 * size, [0.83, 0.15, 0.10, 1]), ...moment];
  });
}
function ties(T) {
  return data.ties.flatMap(t => {
    const [a, b] = [0, 1].map(k => point(bodyPose(T, t.bodies[k]), t.points[k])), apart = norm(sub(a, b));
    const r = 0.011 * size, rgba = apart > 1e-3 * data.reach ? [0.83, 0.15, 0.10, 1] : [0.0, 0.62, 0.45, 1];
    const ball = p => ({ geometry: solid("sphere"), matrix: mul(shift(...p), scaling(r, r, r)), rgba });
    const rod = apart > 1e-6 ? [{ geometry: solid("rod"), matrix: mul(alongZ(a, sub(b, a)), scaling(r / 3, r / 3, apart)), rgba }] : [];
    return [ball(a), ball(b), ...rod];
  });
}
let pathCache = { frame: -1, pieces: [] };
function path() {
  if (!layers.path.on || !tracks.times) return [];
  if (pathCache.frame !== state.frame) {
    const n = Math.min(tracks.times, 240), points = [];
    for (let k = 0; k < n; k++) points.push(at(framePose(poses(tracks.at(0, Math.round(k * (tracks.times - 1) / Math.max(n - 1, 1)))), state.frame)));
    pathCache = { frame: state.frame, pieces: points.slice(1).flatMap((p, k) => {
      const step = sub(p, points[k]), length = norm(step);
      return length < 1e-9 ? [] : [{ geometry: solid("rod"), matrix: mul(alongZ(points[k], step), scaling(0.0025 * size, 0.0025 * size, length)), rgba: [0.90, 0.45, 0.0, 1], flat: 0.6 }];
    }) };
  }
  return pathCache.pieces;
}
const SHADES = { velocity: [0.0, 0.45, 0.70, 0.30], mobility: [0.80, 0.47, 0.65, 0.34] };
function ellipsoids() {
  const found = [];
  for (const name of ["velocity", "mobility"]) if (layers[name].on && state.read?.[name]) {
    const { values, axes } = state.read[name], root = values.map(x => Math.sqrt(Math.max(x, 0)));
    const largest = Math.max(...root, 1e-12), factor = name === "velocity" ? 0.28 : 0.2 * data.reach / largest;
    const half = root.map(x => Math.max(factor * x, 0.004 * size));
    const pose = [0, 1, 2].flatMap(c => [axes[0][c], axes[1][c], axes[2][c], 0]).concat([...at(framePose(state.read.T, state.frame)), 1]);
    found.push({ geometry: solid("sphere"), matrix: mul(pose, scaling(...half)), rgba: SHADES[name] });
  }
  return found;
}
function targetPieces() {
  if (!state.target) return [];
  const r = 0.016 * size, m = mul(state.target, scaling(r, r, r));
  return [{ geometry: solid("sphere"), matrix: m, rgba: [0.95, 0.55, 0.05, 1] }, ...triad(state.target, 0.09 * size)];
}
const timeIndex = () => {
  if (!tracks.times) return 0;
  let k = 0;
  while (k + 1 < data.t.length && data.t[k + 1] <= state.time) k++;
  return k;
};
function ghosts() {
  if (!tracks.times) return state.ghosts;
  return Array.from({ length: Math.max(tracks.rows - 1, 0) }, (_, r) => tracks.at(r + 1, timeIndex()));
}

// --- controls -------------------------------------------------------------------------------

const fixed = (x, digits) => (Object.is(x, -0) || Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits);
const significant = x => !isFinite(x) ? "∞" : Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(+x.toPrecision(4));
const degrees = x => x * 180 / Math.PI;
let pending = false;
function redraw() {
  if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); }
}
function make(tag, text = "", attributes = {}) {
  const e = Object.assign(document.createElement(tag), attributes);
  e.textContent = text;
  return e;
}

const rows = sliders.map((s, k) => {
  const row = make("div", "", { className: "row" }), input = make("input", "", { type: "range", min: s.lower, max: s.upper, step: "any" });
  const label = make("label", s.name, { title: s.name }), value = make("span", "", { className: "v" });
  input.id = `joint${k}`; label.htmlFor = input.id;
  const end = x => s.unit === "rad" ? `${fixed(degrees(x), 0)}°` : `${significant(x)} m`;
  const ends = make("div", "", { className: "ends" }), torque = make("span");
  ends.append(make("span", end(s.lower)), torque, make("span", end(s.upper)));
  row.append(label, value, input, ends);
  $("sliders").append(row);
  input.addEventListener("input", () => { state.values[k] = +input.value; pause(); setValues(state.values); });
  return { input, value, torque };
});

function setValues(values, keep = false) {
  state.values = values.slice();
  state.q = toQ(values);
  if (!keep) state.moved = true;
  refresh();
}
function setQ(q) {
  state.q = q.slice();
  state.values = toValues(q);
  state.moved = false;
  refresh();
}
function refresh() {
  state.read = readings(state.values, state.frame);
  rows.forEach((r, k) => {
    const s = sliders[k], x = state.values[k];
    r.input.value = x;
    r.value.textContent = s.unit === "rad" ? `${fixed(degrees(x), 1)}°` : `${fixed(x, 3)} m`;
    const g = state.read.gravity?.[k];
    r.torque.textContent = g === undefined || s.angle >= 0 ? "" : `gravity ${Math.abs(g) < 1e-9 ? 0 : significant(+g.toPrecision(3))} ${s.unit === "rad" ? "N m" : "N"}`;
  });
  table();
  if (!state.drag) state.target = state.target && framePose(state.read.T, state.frame);
  redraw();
}
function table() {
  const F = framePose(state.read.T, state.frame), out = [];
  const pitch = Math.asin(Math.max(-1, Math.min(1, -F[2])));
  out.push(["position", at(F).map(x => fixed(x, 3)).join("  ") + " m"]);
  out.push(["roll, pitch, yaw", [Math.atan2(F[6], F[10]), pitch, Math.atan2(F[1], F[0])].map(x => fixed(degrees(x), 1)).join("  ") + "°"]);
  if (state.read.velocity) {
    const roots = name => state.read[name].values.map(x => Math.sqrt(Math.max(x, 0))).sort((a, b) => b - a).map((x, _, all) => x < 1e-6 * all[0] ? 0 : x);
    out.push(["manipulability, m", roots("velocity").map(significant).join("  "), SHADES.velocity]);
    if (state.read.mobility) out.push(["effective mass, kg", state.read.mobility.values.map(x => x > 1e-9 ? 1 / x : Infinity).sort((a, b) => a - b).map(significant).join("  "), SHADES.mobility]);
  }
  for (const t of data.ties) {
    const [a, b] = [0, 1].map(k => point(bodyPose(state.read.T, t.bodies[k]), t.points[k]));
    out.push([t.name, `open by ${significant(1000 * norm(sub(a, b)))} mm`]);
  }
  $("pose").replaceChildren(...out.map(([name, text, shade]) => {
    const tr = make("tr"), left = make("td", name);
    if (shade) { const dotted = make("span", "", { className: "key" }); dotted.style.background = `rgb(${shade.slice(0, 3).map(x => Math.round(255 * x))})`; left.prepend(dotted); }
    tr.append(left, make("td", text, { className: "n" }));
    return tr;
  }));
}

function chips(parent, entries) {
  for (const { title, on, click, toggle } of entries) {
    const b = make("button", title);
    b.classList.toggle("on", !!on);
    if (toggle) b.setAttribute("aria-pressed", String(!!on));
    b.addEventListener("click", () => { const now = click(); if (toggle) { b.classList.toggle("on", now); b.setAttribute("aria-pressed", String(now)); } redraw(); });
    parent.append(b);
  }
}
chips($("layers"), Object.values(layers).filter(l => l.there).map(l => ({ title: l.title, on: l.on, toggle: true, click: () => (l.on = !l.on) })));
chips($("poses"), [
  { title: data.t.length ? "Start" : "As given", click: () => { data.t.length ? setTime(0) : setQ(data.q[0]); } },
  { title: "Zero", click: () => { pause(); setValues(sliders.map(s => Math.max(s.lower, Math.min(s.upper, 0)))); } },
  { title: "Random", click: () => { pause(); setValues(sliders.map(s => s.lower + Math.random() * (s.upper - s.lower))); } },
  { title: "Reset view", click: () => { state.orbit.yaw = -0.85; state.orbit.pitch = 0.32; state.orbit.centre = add(low, sub(high, low), 0.5); state.looked = false; frameCamera(); } },
]);
const canReach = sliders.length > 0 && sliders.length <= MOST_LIVE && !data.ties.length;
if (canReach) chips($("follow"), [
  { title: "Drag a target", toggle: true, click: () => { state.target = state.target ? null : framePose(state.read.T, state.frame); hint(); return !!state.target; } },
  { title: "Keep orientation", toggle: true, on: true, click: () => (state.turns = !state.turns) },
]);
function hint() {
  $("hint").textContent = state.target ? "Drag the orange ball: the joints follow by inverse kinematics, within their limits." : "";
}
frames.forEach((f, k) => $("frame").append(make("option", f.name, { value: k })));
$("frame").value = state.frame;
$("frame").addEventListener("change", () => { state.frame = +$("frame").value; refresh(); });
$("title").querySelector("h1").textContent = data.name;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
$("title").querySelector("p").textContent = `${plural(bodies.length, "moving link")}, grid ${significant(spacing)} m`;
for (const note of data.notes) $("notes").append(make("p", note, { className: "note" }));
if (data.pushes.length) $("extra").append(make("h2", "Forces"), ...data.pushes.map(p => make("p", `${p.name || frames[p.frame].name}: up to ${significant(Math.max(...p.wrenches.map(w => norm(w.slice(3)))))} N`, { className: "note" })));

function placeLabel(cam) {
  const label = $("label");
  if (!frames.length) return;
  const [x, y] = project(cam, at(framePose(poses(state.q), state.frame)));
  label.hidden = false;
  label.textContent = frames[state.frame].name;
  label.style.left = `${x}px`; label.style.top = `${y}px`;
}

// --- time -----------------------------------------------------------------------------------

function setTime(t) {
  const end = data.t[data.t.length - 1];
  state.time = Math.max(data.t[0], Math.min(end, t));
  setQ(tracks.at(0, timeIndex()));
  $("time").value = state.time;
  $("now").textContent = `${fixed(state.time, 2)} / ${fixed(end, 2)} s`;
}
function pause() { state.playing = false; $("play").textContent = "Play"; }
function play() {
  state.playing = true;
  $("play").textContent = "Pause";
  if (state.time >= data.t[data.t.length - 1]) state.time = data.t[0];
  let last = performance.now();
  const tick = now => {
    if (!state.playing) return;
    const end = data.t[data.t.length - 1], next = state.time + state.speed * (now - last) / 1000;
    last = now;
    setTime(next > end ? data.t[0] : next);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}
if (data.t.length > 1) {
  $("clock").hidden = false;
  $("time").min = data.t[0]; $("time").max = data.t[data.t.length - 1];
  $("time").addEventListener("input", () => { pause(); setTime(+$("time").value); });
  $("play").addEventListener("click", () => state.playing ? pause() : play());
  $("speed").addEventListener("change", () => { state.speed = +$("speed").value; });
}

// --- pointer --------------------------------------------------------------------------------

const pointers = new Map();
let span = 0;
canvas.addEventListener("pointerdown", e => {
  canvas.setPointerCapture(e.pointerId);
  pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
  if (state.target && pointers.size === 1) {
    const [x, y] = project(camera(), at(state.target));
    state.drag = Math.hypot(e.offsetX - x, e.offsetY - y) < (e.pointerType === "touch" ? 44 : 26);
  }
  canvas.classList.add("dragging");
});
canvas.addEventListener("pointermove", e => {
  if (!pointers.has(e.pointerId)) return;
  const before = pointers.get(e.pointerId), dx = e.offsetX - before[0], dy = e.offsetY - before[1];
  pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
  const cam = camera(), perPixel = 2 * state.orbit.distance * Math.tan(FOV / 2) / canvas.clientHeight;
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
    if (span) zoom(span / now);
    span = now;
    slide(cam, dx * perPixel / 2, dy * perPixel / 2);
  } else if (state.drag) dragTarget(cam, e.offsetX, e.offsetY);
  else if (e.shiftKey || e.buttons === 4 || e.buttons === 2) slide(cam, dx * perPixel, dy * perPixel);
  else {
    state.orbit.yaw -= 0.008 * dx;
    state.orbit.pitch = Math.max(-1.5, Math.min(1.55, state.orbit.pitch + 0.008 * dy));
  }
  state.looked = true;
  redraw();
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, e => {
  pointers.delete(e.pointerId);
  span = 0; state.drag = false;
  canvas.classList.remove("dragging");
  if (state.target) refresh();
});
canvas.addEventListener("wheel", e => { e.preventDefault(); zoom(Math.exp(0.0012 * e.deltaY)); redraw(); }, { passive: false });
canvas.addEventListener("contextmenu", e => e.preventDefault());
function zoom(factor) { state.looked = true; state.orbit.distance = Math.max(0.05 * size, Math.min(20 * size, state.orbit.distance * factor)); }
function slide(cam, x, y) { state.orbit.centre = add(add(state.orbit.centre, cam.x, -x), cam.y, y); }
function dragTarget(cam, x, y) {  // in the plane through the target that faces the camera
  const here = point(upright, at(state.target)), depth = dot(sub(cam.eye, here), cam.z);
  const per = 2 * depth * Math.tan(FOV / 2) / canvas.clientHeight, [px, py] = project(cam, at(state.target));
  const world = add(add(here, cam.x, (x - px) * per), cam.y, -(y - py) * per);
  const u = upright, back = [0, 1, 2].map(c => u[4 * c] * world[0] + u[4 * c + 1] * world[1] + u[4 * c + 2] * world[2]);
  state.target = [...state.target.slice(0, 12), ...back, 1];
  pause();
  setValues(reachFor(state.values, state.frame, state.target, state.turns, 12));
}
canvas.addEventListener("keydown", e => {
  const turn = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
  if (e.key === " " && data.t.length > 1) { e.preventDefault(); state.playing ? pause() : play(); }
  if (!turn) return;
  e.preventDefault();
  state.orbit.yaw += turn[0];
  state.orbit.pitch = Math.max(-1.5, Math.min(1.55, state.orbit.pitch + turn[1]));
  redraw();
});
new ResizeObserver(redraw).observe(canvas);

frameCamera();
if (data.t.length > 1) setTime(data.t[0]); else setQ(data.q[0]);
if (data.t.length > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches && location.hash !== "#still") play();
draw();
// for scripts of other pages, and for tests
window.linkwise = {
  data, state, poses, framePose, toQ, toValues, readings, setValues, setQ, setTime, layers, redraw, draw, extent: [low, high],
  reach: (target, frame = state.frame, turns = true, steps = 100) => reachFor(state.values, frame, target, turns, steps),
};
document.documentElement.dataset.ready = "yes";
})();

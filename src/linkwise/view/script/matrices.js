// A robot in a page: kinematics of the exported tree, a small renderer on WebGL 2, and controls.
// Matrices are 4 by 4, by columns, as WebGL has them; spatial quantities are in base axes, SI units.

// Data of the page, and small matrices.

const data = JSON.parse(document.getElementById("scene").textContent);
const $ = id => document.getElementById(id);

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

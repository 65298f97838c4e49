// Triangles of boxes, balls, surfaces of revolution and meshes.

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
  const m = faces.length / 3, flat = new Float32Array(3 * m), p = new Float32Array(9 * m), n = new Float32Array(9 * m);
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

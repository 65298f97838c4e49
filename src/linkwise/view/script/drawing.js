// The picture: shaders, layers, camera, shadows, and everything that is drawn.

const canvas = $("view");
const gl = canvas.getContext("webgl2", { antialias: true, stencil: true, alpha: false, preserveDrawingBuffer: true });
if (!gl) {
  $("fail").hidden = false;
  $("fail").textContent = "This page draws with WebGL 2, which this browser does not offer or has switched off. "
    + "The sliders and numbers still work.";
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
float lines(vec2 x, float width) {
  vec2 g = abs(fract(x - 0.5) - 0.5) / fwidth(x);
  return 1.0 - min(min(g.x, g.y) / width, 1.0);
}
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
    const T = poses(q), of = state.ghosts.includes(q) ? wanted.filter(x => x !== "inertia") : wanted;
    for (const s of data.shapes) if (of.includes(s.layer)) {
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
  const halves = {
    sphere: [a, a, a], ellipsoid: [a, b, c], box: [a / 2, b / 2, c / 2], cylinder: [a, a, b / 2], capsule: [a, a, a + b / 2],
  };
  const h = halves[s.kind] || [0, 0, 0];
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
  const near = distance / 100, far = distance + 30 * size, deep = near - far;
  const f = 1 / Math.tan(FOV / 2), aspect = canvas.width / Math.max(canvas.height, 1);
  const projection = [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / deep, -1, 0, 0, 2 * far * near / deep, 0];
  return { eye, x, y, z, matrix: mul(projection, look) };
}
function project(cam, p) {  // a point in base axes -> pixels of the page
  const w = point(upright, p), m = cam.matrix;
  const c = [0, 1, 3].map(r => m[r] * w[0] + m[4 + r] * w[1] + m[8 + r] * w[2] + m[12 + r]);
  return [(c[0] / c[2] + 1) / 2 * canvas.clientWidth, (1 - c[1] / c[2]) / 2 * canvas.clientHeight];
}

const LIGHT = unit([0.45, -0.55, 0.95]);
const shade = (() => {  // flattens onto the ground, along the light
  const [x, y, z] = LIGHT, g = ground;
  return [1, 0, 0, 0, 0, 1, 0, 0, -x / z, -y / z, 0, 0, g * x / z, g * y / z, g + 0.0005 * size, 1];
})();
const whole = (d, T) => mul(bodyPose(T, d.body), d.local);  // where a shape is

function draw() {
  const dense = Math.min(devicePixelRatio, 2);
  const wide = Math.round(canvas.clientWidth * dense), tall = Math.round(canvas.clientHeight * dense);
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
  const below = mul(shade, upright);
  for (const d of opaque) one(programs.flat, d.geometry, whole(d, T), [0.1, 0.13, 0.18, 0.17], below);
  gl.disable(gl.STENCIL_TEST); gl.depthMask(true);

  use("solid", cam);
  for (const d of opaque) one(programs.solid, d.geometry, whole(d, T), d.rgba);
  for (const d of extra) one(programs.solid, d.geometry, d.matrix, d.rgba, upright, d.flat || 0);
  // ghosts: depth first, so that each is one silhouette
  const ghostly = opaque.filter(d => d.layer !== "axes" && d.body >= 0);
  for (const q of ghosts()) {
    const G = poses(q);
    for (const pass of [0, 1]) {
      gl.colorMask(pass, pass, pass, pass); gl.depthFunc(pass ? gl.LEQUAL : gl.LESS);
      for (const d of ghostly) one(programs.solid, d.geometry, whole(d, G), [...d.rgba.slice(0, 3), 0.22]);
    }
    gl.depthFunc(gl.LESS);
  }
  gl.depthMask(false);
  gl.enable(gl.CULL_FACE);
  const misty = shown.filter(d => d.rgba[3] < 1).map(({ geometry, rgba, ...d }) => ({ geometry, rgba, matrix: whole(d, T) }));
  const clear = [...misty, ...ellipsoids()];
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
const coloured = (pieces, rgba) => pieces.map(([geometry, matrix]) => ({ geometry, matrix, rgba }));
function triad(pose, length) {
  const toX = [0, 0, -1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1], toY = [1, 0, 0, 0, 0, 0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
  return [toX, toY, eye()].flatMap((turn, k) => coloured(arrow(mul(pose, turn), 0.035 * length, length), RGB[k]));
}
function triads(T) {
  const length = 0.055 * size, all = layers.frames.on ? frames.map((_, k) => k).slice(0, 300) : [];
  const read = frames.length ? triad(framePose(T, state.frame), 1.3 * length) : [];
  return [...all.flatMap(k => triad(framePose(T, k), 0.7 * length)), ...read];
}
function arrows(from, vector, factor, radius, rgba) {
  const length = factor * norm(vector);
  if (!(length > 1e-9)) return [];
  return coloured(arrow(alongZ(from, vector), radius, length), rgba);
}
// Arrows end on the frame that they push; those of a motion are of its time, others of the first q.
const largest = part => Math.max(1e-300, ...data.pushes.flatMap(p => p.wrenches.map(w => norm(part(w)))));
const forceOf = w => w.slice(3), momentOf = w => w.slice(0, 3);
const strongest = largest(forceOf), twist = largest(momentOf);
function wrenches(T) {
  if (!layers.forces.on || state.moved) return [];
  const perForce = 0.28 * size / strongest, perMoment = 0.14 * size / Math.max(twist, 0.1 * data.reach * strongest);
  return data.pushes.flatMap(p => {
    const w = p.wrenches[Math.min(timeIndex(), p.wrenches.length - 1)], where = at(framePose(T, p.frame));
    const start = add(where, forceOf(w), -perForce);
    const force = arrows(start, forceOf(w), perForce, 0.007 * size, [0.83, 0.15, 0.10, 1]);
    const moment = arrows(where, momentOf(w), perMoment, 0.004 * size, [0.80, 0.47, 0.65, 1]);
    return norm(momentOf(w)) > 1e-9 * twist ? [...force, ...moment] : force;
  });
}
const rod = (from, step, radius, rgba, flat = 0) => ({
  geometry: solid("rod"), matrix: mul(alongZ(from, step), scaling(radius, radius, norm(step))), rgba, flat,
});
function ties(T) {
  return data.ties.flatMap(t => {
    const [a, b] = tieEnds(T, t), apart = norm(sub(a, b)), r = 0.011 * size;
    const rgba = apart > 1e-3 * data.reach ? [0.83, 0.15, 0.10, 1] : [0.0, 0.62, 0.45, 1];
    const ball = p => ({ geometry: solid("sphere"), matrix: mul(shift(...p), scaling(r, r, r)), rgba });
    return [ball(a), ball(b), ...(apart > 1e-6 ? [rod(a, sub(b, a), r / 3, rgba)] : [])];
  });
}
let pathCache = { frame: -1, pieces: [] };
function path() {
  if (!layers.path.on || !tracks.times) return [];
  if (pathCache.frame !== state.frame) {
    const n = Math.min(tracks.times, 240), points = [];
    for (let k = 0; k < n; k++) {
      const T = poses(tracks.at(0, Math.round(k * (tracks.times - 1) / Math.max(n - 1, 1))));
      points.push(at(framePose(T, state.frame)));
    }
    const steps = points.slice(1).map((p, k) => [points[k], sub(p, points[k])]).filter(([, step]) => norm(step) > 1e-9);
    const pieces = steps.map(([from, step]) => rod(from, step, 0.0025 * size, [0.90, 0.45, 0.0, 1], 0.6));
    pathCache = { frame: state.frame, pieces };
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
    const columns = [0, 1, 2].flatMap(c => [axes[0][c], axes[1][c], axes[2][c], 0]);
    const pose = [...columns, ...at(framePose(state.read.T, state.frame)), 1];
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

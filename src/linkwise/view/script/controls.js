// What users touch: sliders, read-outs, time, pointer.

const fixed = (x, digits) => (Object.is(x, -0) || Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits);
function significant(x) {
  if (!isFinite(x)) return "∞";
  const far = Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3);
  return far ? x.toExponential(2) : String(+x.toPrecision(4));
}
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
  const row = make("div", "", { className: "row" });
  const input = make("input", "", { type: "range", min: s.lower, max: s.upper, step: "any" });
  const label = make("label", s.name, { title: s.name }), value = make("span", "", { className: "v" });
  input.id = `joint${k}`; label.htmlFor = input.id;
  const end = x => s.unit === "rad" ? `${fixed(degrees(x), 0)}°` : `${significant(x)} m`;
  const ends = make("div", "", { className: "ends" }), torque = make("span");
  ends.append(make("span", end(s.lower)), torque, make("span", end(s.upper)));
  row.append(label, value, input, ends);
  $("sliders").append(row);
  input.addEventListener("input", () => {
    ask(state.values.map((x, i) => i === k ? +input.value : x), k);
  });
  return { input, value, torque };
});

function ask(values, stays = -1) {  // by hand: loops stay closed, or everything stays as it is
  pause();
  setValues(data.ties.length ? closed(values, stays) || state.values : values);
}
function setValues(values) {
  state.values = values.slice();
  state.q = toQ(values);
  state.moved = true;
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
    const shown = Math.abs(g) < 1e-9 ? 0 : significant(+(g ?? 0).toPrecision(3)), unit = s.unit === "rad" ? "N m" : "N";
    r.torque.textContent = g === undefined || s.angle >= 0 ? "" : `gravity ${shown} ${unit}`;
  });
  table();
  if (!state.drag) state.target = state.target && framePose(state.read.T, state.frame);
  redraw();
}
function table() {
  const F = framePose(state.read.T, state.frame), out = [];
  const pitch = Math.asin(Math.max(-1, Math.min(1, -F[2])));
  out.push(["position", at(F).map(x => fixed(x, 3)).join("  ") + " m"]);
  const angles = [Math.atan2(F[6], F[10]), pitch, Math.atan2(F[1], F[0])];
  out.push(["roll, pitch, yaw", angles.map(x => fixed(degrees(x), 1)).join("  ") + "°"]);
  if (state.read.velocity) {
    const speeds = state.read.velocity.values.map(x => Math.sqrt(Math.max(x, 0))).sort((a, b) => b - a);
    const shown = speeds.map(x => significant(x < 1e-6 * speeds[0] ? 0 : x));
    out.push(["manipulability, m", shown.join("  "), SHADES.velocity]);
  }
  if (state.read.mobility) {
    const masses = state.read.mobility.values.map(x => x > 1e-9 ? 1 / x : Infinity).sort((a, b) => a - b);
    out.push(["effective mass, kg", masses.map(significant).join("  "), SHADES.mobility]);
  }
  for (const t of data.ties) {
    const [a, b] = tieEnds(state.read.T, t);
    const gap = 1000 * norm(sub(a, b));
    out.push([t.name, gap < 1e-6 ? "closed" : `open by ${significant(gap)} mm`]);
  }
  $("pose").replaceChildren(...out.map(([name, text, shade]) => {
    const tr = make("tr"), left = make("td", name);
    if (shade) {
      const spot = make("span", "", { className: "key" });
      spot.style.background = `rgb(${shade.slice(0, 3).map(x => Math.round(255 * x))})`;
      left.prepend(spot);
    }
    tr.append(left, make("td", text, { className: "n" }));
    return tr;
  }));
}

function chips(parent, entries) {
  for (const { title, on, click, toggle } of entries) {
    const b = make("button", title);
    const mark = now => { b.classList.toggle("on", now); b.setAttribute("aria-pressed", String(now)); };
    if (toggle) mark(!!on);
    b.addEventListener("click", () => {
      const now = click();
      if (toggle) mark(now);
      redraw();
    });
    parent.append(b);
  }
}
const offered = Object.values(layers).filter(l => l.there);
chips($("layers"), offered.map(l => ({ title: l.title, on: l.on, toggle: true, click: () => (l.on = !l.on) })));
function resetView() {
  Object.assign(state.orbit, { yaw: -0.85, pitch: 0.32, centre: add(low, sub(high, low), 0.5) });
  state.looked = false;
  frameCamera();
}
function switchTarget() {
  state.target = state.target ? null : framePose(state.read.T, state.frame);
  const words = "Drag the orange ball: the joints follow by inverse kinematics, within their limits.";
  $("hint").textContent = state.target ? words : "";
  return !!state.target;
}
chips($("poses"), [
  { title: data.t.length ? "Start" : "As given", click: () => { data.t.length ? setTime(0) : setQ(data.q[0]); } },
  { title: "Zero", click: () => ask(sliders.map(s => Math.max(s.lower, Math.min(s.upper, 0)))) },
  { title: "Random", click: () => ask(sliders.map(s => s.lower + Math.random() * (s.upper - s.lower))) },
  { title: "Reset view", click: resetView },
]);
const canReach = sliders.length > 0 && sliders.length <= MOST_LIVE && !data.ties.length;
if (canReach) chips($("follow"), [
  { title: "Drag a target", toggle: true, click: switchTarget },
  { title: "Keep orientation", toggle: true, on: true, click: () => (state.turns = !state.turns) },
]);
frames.forEach((f, k) => $("frame").append(make("option", f.name, { value: k })));
$("frame").value = state.frame;
$("frame").addEventListener("change", () => { state.frame = +$("frame").value; refresh(); });
$("title").querySelector("h1").textContent = data.name;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
$("title").querySelector("p").textContent = `${plural(bodies.length, "moving link")}, grid ${significant(spacing)} m`;
for (const note of data.notes) $("notes").append(make("p", note, { className: "note" }));
if (data.pushes.length) $("extra").append(make("h2", "Forces"));
for (const p of data.pushes) {
  const most = significant(Math.max(...p.wrenches.map(w => norm(forceOf(w)))));
  $("extra").append(make("p", `${p.name}: up to ${most} N`, { className: "note" }));
}

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
function zoom(factor) {
  state.looked = true;
  state.orbit.distance = Math.max(0.05 * size, Math.min(20 * size, state.orbit.distance * factor));
}
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
  data, state, poses, framePose, toQ, toValues, readings, gaps, setValues, setQ, setTime, layers, redraw, draw, extent: [low, high],
  reach: (target, frame = state.frame, turns = true, steps = 100) => reachFor(state.values, frame, target, turns, steps),
};
document.documentElement.dataset.ready = "yes";

// The Map tab: all rows as points, a lasso, and a circle for the keyboard.

import { getBytes } from "/static/api.js";
import { app, onState } from "/static/state.js";
import { $, colorOf, el, keyed, mark, plural, setMark, shapeOf } from "/static/dom.js";

const NONE = 65535;
const HIDDEN = 2; // reserved for the audit
const base = document.createElement("canvas");
let canvas;
let open = () => null;
let places = null; // x, y of every row
let classes = null;
let flags = null;
let layout = 0;
let seen = ""; // the predictions that are drawn
let busy = false;
let scale = 1;
let path = null; // the lasso, in CSS pixels
const circle = { x: 0.5, y: 0.5, r: 0.08 };

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// "#rrggbb" as the 32 bits of a pixel.
function pixel(color) {
  const n = parseInt(color.slice(1), 16);
  return ((255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}

async function update() {
  if (app.tab !== "map" || busy) return;
  const { state } = app;
  const wanted = `${state.version} ${state.n_events_seen} ${state.n_events}`;
  if (!places) {
    $("map-message").textContent = state.map ? "Loading the map…" : "The map comes when the rows are clustered.";
  }
  busy = true;
  try {
    if (state.map !== layout) {
      const bytes = await getBytes("/api/map");
      if (bytes) places = new Uint16Array(bytes);
      layout = state.map;
    }
    if (wanted !== seen && places) {
      const bytes = await getBytes("/api/predictions");
      const n = bytes ? bytes.byteLength >> 2 : 0;
      classes = bytes ? new Uint16Array(bytes, 0, n) : null;
      flags = bytes ? new Uint8Array(bytes, 3 * n, n) : null;
      seen = wanted;
    }
    if (places) $("map-message").textContent = "";
  } catch (error) {
    $("map-message").textContent = error.message;
    return;
  } finally {
    busy = false;
  }
  paint();
  const now = app.state;
  if (now.map !== layout || wanted !== `${now.version} ${now.n_events_seen} ${now.n_events}`) update();
}

const count = () => (places ? places.length >> 1 : 0);
const classAt = (i) => (classes && i < classes.length ? classes[i] : NONE);
const hidden = (i) => Boolean(flags && flags[i] & HIDDEN);

// Position of a row in pixels of a box of the given size.
const margin = 10;
const xOf = (i, width) => margin + (places[2 * i] / 65535) * (width - 2 * margin);
const yOf = (i, height) => margin + (places[2 * i + 1] / 65535) * (height - 2 * margin);

function paint() {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return;
  scale = devicePixelRatio || 1;
  const w = Math.round(width * scale);
  const h = Math.round(height * scale);
  base.width = canvas.width = w;
  base.height = canvas.height = h;
  const context = base.getContext("2d");
  const image = context.createImageData(w, h);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(pixel(css("--background")));
  const colors = Array.from({ length: 10 }, (_, i) => css(`--class-${i}`));
  const codes = colors.map(pixel);
  const plain = pixel(css("--border"));
  const n = count();
  const size = Math.max(1, Math.round((n > 20000 ? 1.5 : n > 3000 ? 2.5 : 4) * scale));
  const labeled = [];
  for (let i = 0; i < n; i++) {
    if (hidden(i)) continue;
    if (flags && flags[i] & 1) labeled.push(i);
    const c = classAt(i);
    const code = c === NONE ? plain : codes[colorOf(c)];
    const x0 = Math.round(xOf(i, width) * scale - size / 2);
    const y0 = Math.round(yOf(i, height) * scale - size / 2);
    for (let y = y0; y < y0 + size; y++) pixels.fill(code, y * w + x0, y * w + x0 + size);
  }
  context.putImageData(image, 0, 0);
  context.strokeStyle = css("--background");
  context.lineWidth = 3;
  for (const i of labeled) {
    const c = classAt(i);
    if (c === NONE) continue;
    const shape = new Path2D(shapeOf(c));
    context.setTransform(scale, 0, 0, scale, xOf(i, width) * scale, yOf(i, height) * scale);
    context.translate(-8, -8);
    context.stroke(shape);
    context.fillStyle = colors[colorOf(c)];
    context.fill(shape);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  overlay();
}

function overlay() {
  const context = canvas.getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  if (!base.width) return;
  context.drawImage(base, 0, 0);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  const shape = new Path2D();
  if (path) path.forEach(([x, y], i) => (i ? shape.lineTo(x, y) : shape.moveTo(x, y)));
  else shape.arc(...center(), radius(), 0, 2 * Math.PI);
  context.strokeStyle = css("--background");
  context.lineWidth = 5;
  context.stroke(shape);
  context.strokeStyle = css("--text");
  context.lineWidth = 2;
  context.stroke(shape);
}

const center = () => [circle.x * canvas.clientWidth, circle.y * canvas.clientHeight];
const radius = () => circle.r * Math.min(canvas.clientWidth, canvas.clientHeight);

function rowsWhere(inside) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const rows = [];
  for (let i = 0; i < count(); i++) if (!hidden(i) && inside(xOf(i, width), yOf(i, height))) rows.push(i);
  return rows;
}

function rowsInCircle() {
  const [cx, cy] = center();
  const r2 = radius() ** 2;
  return rowsWhere((x, y) => (x - cx) ** 2 + (y - cy) ** 2 <= r2);
}

// Even-odd rule: count the edges to the left of the point.
function rowsInLasso(points) {
  const xs = points.map((p) => p[0]);
  const ys = points.map((p) => p[1]);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return rowsWhere((x, y) => {
    if (x < left || x > right || y < top || y > bottom) return false;
    let odd = false;
    for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
      if (ys[i] > y === ys[j] > y) continue;
      if (x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) odd = !odd;
    }
    return odd;
  });
}

function tellCircle() {
  const rows = rowsInCircle();
  const tally = new Map();
  for (const i of rows) tally.set(classAt(i), (tally.get(classAt(i)) ?? 0) + 1);
  const [best] = [...tally].sort((a, b) => b[1] - a[1]);
  const name = best && app.state.classes[best[0]]?.name;
  const most = name ? `, most predicted as ${name}` : "";
  $("map-count").textContent = `Circle: ${plural(rows.length, "row")}${most}`;
}

function moveCircle(dx, dy, grow = 1) {
  const clip = (v) => Math.min(1, Math.max(0, v));
  circle.x = clip(circle.x + dx);
  circle.y = clip(circle.y + dy);
  circle.r = Math.min(0.5, Math.max(0.01, circle.r * grow));
  overlay();
  tellCircle();
}

function openRows(rows) {
  if (rows.length) open(rows);
  else $("map-count").textContent = "There are no rows here.";
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = event.shiftKey ? 0.1 : 0.02;
  const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step],
    "+": [0, 0, 1.25], "=": [0, 0, 1.25], "-": [0, 0, 0.8], "−": [0, 0, 0.8] };
  if (event.key === "Enter") openRows(rowsInCircle());
  else if (event.key === "Escape" && path) endLasso(false);
  else if (Object.hasOwn(moves, event.key)) moveCircle(...moves[event.key]);
  else return;
  event.preventDefault();
}

const at = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left - canvas.clientLeft, event.clientY - box.top - canvas.clientTop];
};

function endLasso(use) {
  const points = path;
  path = null;
  if (!points) return;
  const [x0, y0] = points[0];
  const long = points.some(([x, y]) => Math.hypot(x - x0, y - y0) > 6);
  if (use && !long) {
    circle.x = x0 / canvas.clientWidth;
    circle.y = y0 / canvas.clientHeight;
    tellCircle();
  }
  overlay();
  if (use && long) openRows(rowsInLasso(points));
}

function pointers() {
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    canvas.setPointerCapture(event.pointerId);
    path = [at(event)];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!path || !event.isPrimary) return;
    path.push(at(event));
    overlay();
  });
  canvas.addEventListener("pointerup", (event) => { if (event.isPrimary) endLasso(true); });
  canvas.addEventListener("pointercancel", () => endLasso(false));
}

function legend() {
  keyed($("map-legend"), app.state.classes, (c) => c.name,
    (c) => el("li", {}, mark(-1), el("span", { textContent: ` ${c.name}` })),
    (node, c, i) => setMark(node.firstChild, i));
}

export function showMap() {
  if (places) paint();
  update();
}

export function startMap(onOpen) {
  canvas = $("map-canvas");
  open = onOpen;
  pointers();
  canvas.addEventListener("keydown", keys);
  canvas.addEventListener("focus", () => places && tellCircle());
  $("map-smaller").addEventListener("click", () => moveCircle(0, 0, 0.8));
  $("map-larger").addEventListener("click", () => moveCircle(0, 0, 1.25));
  $("map-open").addEventListener("click", () => openRows(rowsInCircle()));
  new ResizeObserver(() => app.tab === "map" && paint()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.tab === "map" && paint());
  onState(() => {
    legend();
    update();
  });
}

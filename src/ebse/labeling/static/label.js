// The Label tab: one example, one key, the next example at once.

import { get, pending } from "/static/api.js";
import { app, classIndex, onState } from "/static/state.js";
import { $, beginning, capital, classButtons, el, picture } from "/static/dom.js";
import { onUndone, perform, say, warn } from "/static/actions.js";
import { findClass } from "/static/dialogs.js";

const AHEAD = 8;
let how = "suggest";
let before = "suggest"; // the choice to go back to after the audit
let current = null;
let queue = [];
let shownAt = 0;
let request = 0;
let tick = 0;
let naming = false;
const answered = new Map(); // row -> the action that answered it

// Fetches the next examples. Rows that this page answered after the server chose them are left out.
async function refill(replace) {
  if (how === "own") return;
  const mode = how;
  const start = ++tick;
  const mine = ++request;
  let reply;
  try {
    reply = await get(`/api/next?how=${mode}&n=${Math.min(AHEAD + 1 + pending(), 30)}`);
  } catch (error) {
    if (error.status) say(error.message, "error");
    return;
  }
  if (mine !== request || mode !== how) return;
  const next = replace ? [] : queue;
  const seen = new Set([current, ...next].map((item) => item?.row));
  for (const item of reply.items) {
    if (seen.has(item.row) || (answered.get(item.row)?.tick ?? 0) > start) continue;
    item.how = mode;
    next.push(item);
  }
  const loaded = new Map(queue.map((item) => [item.row, item]));
  queue = next.slice(0, AHEAD).map((item) => loaded.get(item.row) ?? item);
  queue.forEach(load);
  if (!current) advance(reply.items.length === 0);
}

// Loads the image of an example before it is shown.
function load(item) {
  if (item.image && !item.picture) item.picture = picture(item, `Image of ${item.name}`);
}

function advance(nothing = false) {
  current = queue.shift() ?? null;
  show(nothing);
  if (queue.length < AHEAD / 2 && !nothing) refill(how !== "random");
}

function emptyText(nothing) {
  if (how === "own") return "Enter the number of a row.";
  if (app.state.phase === "failed") return app.state.error ?? "The model failed.";
  if (!nothing || pending()) return "Looking for the next example…";
  if (app.state.phase !== "ready" && !app.state.version) return "The examples come when the data are read.";
  return how === "audit" ? "No example is left for the audit." : "No example is left.";
}

// Tells a screen reader which example is shown.
function announce(text) {
  if (app.tab === "label" && $("live-example").textContent !== text) $("live-example").textContent = text;
}

function show(nothing = false) {
  const example = $("example");
  const body = $("example-body");
  shownAt = performance.now();
  $("audit-notice").hidden = (current?.how ?? how) !== "audit";
  const label = current?.how === "own" ? current.label : null;
  $("example-label").hidden = $("unlabel-button").hidden = !label;
  $("example-label").textContent = label ? `Label now: ${label}` : "";
  if (current) example.dataset.row = current.row;
  else delete example.dataset.row;
  $("example-name").textContent = current ? capital(current.name) : "No example";
  if (!current) {
    const text = emptyText(nothing);
    body.replaceChildren(el("p", { className: "muted", textContent: text }));
    announce(text);
    if (how === "own" && app.tab === "label") $("own-number").focus();
    refresh();
    return;
  }
  load(current);
  const start = current.image ? "" : beginning(current);
  announce(`Example: ${current.name}${start && `, ${start}`}`);
  const parts = [];
  if (current.image) parts.push(el("div", { className: "picture" }, current.picture));
  const words = current.text ?? [];
  const cells = current.cells ?? [];
  if (words.length || cells.length) {
    const box = el("div", { className: "long", tabIndex: 0, role: "region", "aria-label": "Values" });
    for (const [name, value] of words) {
      box.append(el("h3", { textContent: name }), el("p", { className: "words", textContent: value }));
    }
    if (cells.length) {
      box.append(el("table", {}, el("tbody", {}, ...cells.map(([name, value]) => el("tr", {},
        el("th", { scope: "row", textContent: name }), el("td", { textContent: value }))))));
    }
    parts.push(box);
  }
  body.replaceChildren(...parts);
  refresh();
}

// Shows an example again; the one that was shown comes after it.
function putBack(item) {
  answered.delete(item.row);
  queue = queue.filter((other) => other.row !== item.row);
  if (current && current.row !== item.row) queue.unshift(current);
  current = item;
  show();
}

function answer(event, what) {
  const item = current;
  if (!item) {
    say("There is no example to answer.");
    return;
  }
  // Kept to be shown again, but without its image, or all images would stay in memory.
  item.picture = null;
  const entry = perform(event, `${capital(item.name)}: ${what}`, { item, onFail: () => putBack(item) });
  answered.set(item.row, entry);
  entry.done.then((saved) => { if (saved) entry.tick = ++tick; });
  naming = false;
  advance();
}

// Gives a class to the example. The label creates a class that does not exist yet, so that one undo takes
// both back.
export function give(name) {
  if (!current) {
    if (classIndex(name) < 0) perform({ type: "class", name }, `New class ${name}`);
    naming = false;
    refresh();
    return;
  }
  const ms = Math.round(performance.now() - shownAt);
  answer({ type: "label", rows: [current.row], class: name, from: current.how, ms }, name);
}

export const skip = () => answer({ type: "skip", rows: [current?.row] }, "skipped");
export const unsure = () => answer({ type: "unsure", rows: [current?.row] }, "unsure");

export function setHow(value) {
  $(`how-${value}`).checked = true;
  $("own-form").hidden = value !== "own";
  if (value === how) return;
  if (value === "audit") before = how;
  how = value;
  queue = [];
  current = null;
  request += 1;
  show();
  refill(true);
}

export const toggleAudit = () => setHow(how === "audit" ? before : "audit");

async function showRow(row, focus) {
  try {
    const { items } = await get(`/api/items?rows=${row}`);
    if (!items.length) throw new Error("There is no such row, or it is reserved for the audit.");
    if (how === "own") current = null;
    putBack({ ...items[0], how: items[0].how ?? "own" });
    if (focus) $("example").focus();
  } catch (error) {
    say(error.message, "error");
  }
}

// The form for a new class: always there while there is no class.
export function openNaming() {
  naming = true;
  refresh();
  $("new-class-name").focus();
}

export function closeNaming() {
  naming = false;
  refresh();
  $("example").focus();
}

function refresh() {
  const { classes } = app.state;
  const first = app.known && classes.length === 0 && current !== null && pending() === 0;
  const form = $("new-class-form");
  const opened = form.hidden;
  form.hidden = !(naming || first);
  $("new-class-cancel").hidden = first;
  $("new-class-title").textContent = current ? "Name the class of this example" : "Name of the new class";
  if (opened && first && app.tab === "label" && document.activeElement === document.body) {
    $("new-class-name").focus();
  }
  classButtons($("classes"), classes, give);
  $("find-class").disabled = classes.length === 0;
  $("skip-button").disabled = $("unsure-button").disabled = current === null;
}

export const typeAhead = (letter = "") => {
  if (app.state.classes.length) findClass(letter, give);
  else openNaming();
};

export function startLabel() {
  for (const radio of document.querySelectorAll("input[name=how]")) {
    radio.addEventListener("change", () => setHow(radio.value));
  }
  $("own-form").addEventListener("submit", (event) => {
    event.preventDefault();
    showRow($("own-number").valueAsNumber - 1, true);
    $("own-number").value = "";
  });
  $("new-class-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = $("new-class-name").value.trim();
    if (!name) return;
    $("new-class-name").value = "";
    give(name);
    if (how !== "own" || current) $("example").focus();
  });
  $("new-class-cancel").addEventListener("click", closeNaming);
  $("new-class").addEventListener("click", openNaming);
  $("find-class").addEventListener("click", () => typeAhead());
  $("skip-button").addEventListener("click", skip);
  $("unsure-button").addEventListener("click", unsure);
  $("unlabel-button").addEventListener("click", () => {
    if (current) answer({ type: "unlabel", rows: [current.row] }, "label removed");
  });
  onUndone((items, rows) => {
    if (items) items.forEach(putBack);
    else if (rows.length === 1) showRow(rows[0], false);
  });
  onState((state, old) => {
    refresh();
    if (state.n_rows) $("own-number").max = state.n_rows;
    if (!current) refill(true);
    else if (how !== "random" && state.version !== old.version) refill(true);
  });
  addEventListener("unhandledrejection", (event) => {
    warn(`Error in the page: ${event.reason?.message ?? ""}`);
  });
}

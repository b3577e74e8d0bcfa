// The Gallery tab: rows of a predicted class, or of a region of the map; relabel the wrong ones at once.

import { get } from "/static/api.js";
import { app, classIndex, onState } from "/static/state.js";
import { $, brief, capital, classButtons, el, keyed, mark, number, percent, plural } from "/static/dom.js";
import { perform, say } from "/static/actions.js";
import { findClass } from "/static/dialogs.js";

const LIMIT = 300;
let items = [];
let selected = new Set();
let lasso = null; // the rows of a region of the map
let total = 0;
let shownAt = 0;
let version = 0;
let request = 0;
let loaded = "";

async function load() {
  const name = $("gallery-class").value;
  const mine = ++request;
  if (!lasso && !name) {
    items = [];
    draw();
    return;
  }
  $("gallery-message").textContent = "Loading…";
  const order = $("gallery-how").value;
  const path = lasso ? `/api/items?rows=${lasso.join(",")}`
    : `/api/gallery?class=${encodeURIComponent(name)}&how=${order}&n=60`;
  try {
    const reply = await get(path);
    if (mine !== request) return;
    items = reply.items;
    version = app.state.version;
    shownAt = performance.now();
    loaded = name;
    // What was selected meanwhile stays selected, if it is still there.
    selected = new Set(items.map((item) => item.row).filter((row) => selected.has(row)));
    draw();
  } catch (error) {
    if (mine === request) $("gallery-message").textContent = error.message;
  }
}

function card(item) {
  const props = { type: "button", className: "card", "data-row": item.row, onclick: () => toggle(item.row) };
  return el("button", props, brief(item),
    el("span", { className: "name", textContent: capital(item.name) }),
    el("span", { className: "predicted" }), el("span", { className: "state" }));
}

function updateCard(node, item) {
  const [, , predicted, state] = node.children;
  const pressed = selected.has(item.row);
  node.setAttribute("aria-pressed", String(pressed));
  const parts = [];
  if (item.label) parts.push(mark(classIndex(item.label)), ` label: ${item.label}`);
  else if (item.predicted) {
    const p = Number.isFinite(item.probability) ? `, ${percent(item.probability)}` : "";
    parts.push(mark(classIndex(item.predicted)), ` ${item.predicted}${p}`);
  } else parts.push("no prediction");
  predicted.replaceChildren(...parts);
  state.textContent = pressed ? "✓ selected" : "";
}

function message() {
  if (!lasso && !app.state.classes.length) return "There are no classes yet. Label some examples first.";
  if (!items.length) return lasso ? "There are no rows here." : "No row is predicted as this class yet.";
  if (lasso && total > lasso.length) return `${number(lasso.length)} of ${number(total)} rows are shown.`;
  if (app.state.version === version) return "";
  return "There are new predictions. Press “Load again” to see them.";
}

function draw() {
  $("gallery-title").textContent = lasso ? `Rows in the lasso: ${number(total)}` : "Gallery";
  $("gallery-how").disabled = lasso !== null;
  $("gallery-message").textContent = message();
  keyed($("gallery-grid"), items, (item) => item.row, card, updateCard);
  count();
}

function count() {
  const n = selected.size;
  $("gallery-count").textContent = `${n} of ${plural(items.length, "row")} selected`;
  $("gallery-all").disabled = items.length === 0;
  $("gallery-none").disabled = n === 0;
}

function toggle(row) {
  if (!selected.delete(row)) selected.add(row);
  draw();
}

export function selectNone() {
  selected.clear();
  draw();
}

// One event for all selected rows.
export async function relabel(name) {
  const chosen = items.filter((item) => selected.has(item.row));
  if (!chosen.length) {
    say("Select the wrong rows first.");
    return;
  }
  const rows = chosen.map((item) => item.row);
  const event = { type: "label", rows, class: name, from: lasso ? "map" : "gallery",
    ms: Math.round(performance.now() - shownAt) };
  selected = new Set();
  draw();
  const saved = await perform(event, `${plural(rows.length, "row")}: ${name}`).done;
  if (saved) chosen.forEach((item) => { item.label = name; });
  else rows.forEach((row) => selected.add(row));
  draw();
}

export const findForSelection = () => {
  if (selected.size) findClass("", relabel);
  else say("Select the wrong rows first.");
};

// Takes rows of the map for the next show; of a large region only a part, evenly.
export function openRows(rows) {
  total = rows.length;
  const step = Math.max(1, rows.length / LIMIT);
  lasso = Array.from({ length: Math.min(LIMIT, rows.length) }, (_, i) => rows[Math.floor(i * step)]);
  items = [];
}

function fillClasses() {
  const select = $("gallery-class");
  const names = app.state.classes.map((c) => c.name);
  const wanted = lasso ? "" : select.value || names[0] || "";
  const list = lasso ? ["", ...names] : names;
  const same = list.length === select.options.length && list.every((n, i) => n === select.options[i].value);
  if (!same) {
    select.replaceChildren(...list.map((name) => el("option",
      { value: name, textContent: name || "Rows in the lasso" })));
  }
  select.value = list.includes(wanted) ? wanted : list[0] ?? "";
}

export function showGallery() {
  fillClasses();
  if (!lasso || !items.length) load();
}

export function startGallery() {
  $("gallery-class").addEventListener("change", () => {
    if ($("gallery-class").value) lasso = null;
    fillClasses();
    load();
  });
  $("gallery-how").addEventListener("change", load);
  $("gallery-reload").addEventListener("click", load);
  $("gallery-none").addEventListener("click", selectNone);
  $("gallery-find").addEventListener("click", findForSelection);
  $("gallery-all").addEventListener("click", () => {
    items.forEach((item) => selected.add(item.row));
    draw();
  });
  onState((state, old) => {
    classButtons($("gallery-classes"), state.classes, relabel, false);
    if (app.tab !== "gallery") return;
    fillClasses();
    const value = $("gallery-class").value;
    const moved = state.version !== old.version;
    if (!lasso && (value !== loaded || (moved && !items.length))) load();
    else if (moved) $("gallery-message").textContent = message();
  });
}

export const reloadGallery = load;

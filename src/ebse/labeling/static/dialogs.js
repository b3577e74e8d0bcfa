// The dialogs: shortcuts, rename a class, find a class by typing.

import { app, classIndex } from "/static/state.js";
import { $, el, mark } from "/static/dom.js";
import { perform } from "/static/actions.js";

const STORE = "ebse-shortcuts";

export const shortcutsOn = () => $("shortcuts-on").checked;
export const openHelp = () => $("help").showModal();

let renamed = "";
export function openRename(name) {
  renamed = name;
  $("rename-title").textContent = `Rename the class ${name}`;
  $("rename-name").value = name;
  noteRename();
  $("rename").showModal();
  $("rename-name").select();
}

function noteRename() {
  const name = $("rename-name").value.trim();
  const merges = name !== renamed && classIndex(name) >= 0;
  $("rename-note").textContent = merges ? "This class exists. The two classes are merged." : "";
}

async function rename(event) {
  event.preventDefault();
  const name = $("rename-name").value.trim();
  $("rename").close();
  if (!name || name === renamed) return;
  const done = perform({ type: "rename", class: renamed, name }, `${renamed} renamed to ${name}`).done;
  if (await done) document.querySelector(`[data-rename="${CSS.escape(name)}"]`)?.focus();
}

// Type-ahead: names that start with the text come first, then names that contain it, then "new class".
let options = [];
let active = 0;
let pick = () => null;

function matches(text) {
  const wanted = text.toLowerCase();
  const rank = (name) => {
    const at = name.toLowerCase().indexOf(wanted);
    return at < 0 ? 3 : at === 0 ? (name.length === wanted.length ? 0 : 1) : 2;
  };
  const found = app.state.classes.map((c) => c.name).filter((name) => rank(name) < 3);
  found.sort((a, b) => rank(a) - rank(b));
  const list = found.slice(0, 9).map((name) => ({ name, fresh: false }));
  if (text && classIndex(text) < 0) list.push({ name: text, fresh: true });
  return list;
}

function filter() {
  options = matches($("find-name").value.trim());
  active = 0;
  drawOptions();
}

function drawOptions() {
  $("find-list").replaceChildren(...options.map(({ name, fresh }, i) => el("li", {
    role: "option", id: `find-${i}`, "aria-selected": String(i === active),
    onclick: () => { active = i; take(); },
  }, mark(fresh ? -1 : classIndex(name)),
  el("span", { textContent: fresh ? `new class “${name}”` : name }))));
  $("find-name").setAttribute("aria-activedescendant", options.length ? `find-${active}` : "");
}

function take() {
  const option = options[active];
  if (!option) return;
  $("find").close();
  pick(option.name);
}

export function findClass(text, onPick) {
  pick = onPick;
  $("find-name").value = text;
  filter();
  $("find").showModal();
  $("find-name").focus();
  $("find-name").setSelectionRange(text.length, text.length);
}

export function startDialogs() {
  try {
    $("shortcuts-on").checked = localStorage.getItem(STORE) !== "off";
  } catch { /* no storage: the shortcuts are on */ }
  $("shortcuts-on").addEventListener("change", () => {
    try {
      localStorage.setItem(STORE, shortcutsOn() ? "on" : "off");
    } catch { /* kept until the next reload only */ }
  });
  $("help-button").addEventListener("click", openHelp);
  $("rename-form").addEventListener("submit", rename);
  $("rename-name").addEventListener("input", noteRename);
  $("rename-cancel").addEventListener("click", () => $("rename").close());
  $("find-cancel").addEventListener("click", () => $("find").close());
  $("find-name").addEventListener("input", filter);
  $("find-form").addEventListener("submit", (event) => {
    event.preventDefault();
    take();
  });
  $("find-name").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !options.length) return;
    event.preventDefault();
    active = (active + step + options.length) % options.length;
    drawOptions();
  });
}

// The labeling page: tabs, keys, and the stream of states.

import { get } from "/static/api.js";
import { accept, app, classByKey, notify } from "/static/state.js";
import { $ } from "/static/dom.js";
import { say, undo, unwarn } from "/static/actions.js";
import { openHelp, shortcutsOn, startDialogs } from "/static/dialogs.js";
import * as label from "/static/label.js";
import * as gallery from "/static/gallery.js";
import { showMap, startMap } from "/static/map.js";
import { startPanel } from "/static/panel.js";
import { showDoubtful, showHistory, startLists } from "/static/lists.js";

const TABS = ["label", "map", "gallery", "doubtful", "history", "export"];
const SHOW = { map: showMap, gallery: gallery.showGallery, doubtful: showDoubtful, history: showHistory };

function select(tab, focus = false) {
  app.tab = tab;
  for (const name of TABS) {
    const button = $(`tab-${name}`);
    button.setAttribute("aria-selected", String(name === tab));
    button.tabIndex = name === tab ? 0 : -1;
    $(`panel-${name}`).hidden = name !== tab;
  }
  if (location.hash !== `#${tab}`) history.replaceState(null, "", `#${tab}`);
  if (focus) $(`tab-${tab}`).focus();
  SHOW[tab]?.();
}

function fromHash() {
  const tab = location.hash.slice(1);
  if (TABS.includes(tab)) select(tab);
}

function startTabs() {
  for (const name of TABS) $(`tab-${name}`).addEventListener("click", () => select(name, true));
  $("tabs").addEventListener("keydown", (event) => {
    const at = TABS.indexOf(app.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    select(TABS[(to + TABS.length) % TABS.length], true);
  });
  addEventListener("hashchange", fromHash);
  select(TABS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "label");
}

// Moves to a tab; a focus that would be hidden goes to the tab.
function goTo(tab) {
  const lost = app.tab !== tab && $(`panel-${app.tab}`).contains(document.activeElement);
  select(tab, lost || $("tabs").contains(document.activeElement));
}

function toAudit() {
  goTo("label");
  label.setHow("audit");
  $("example").focus();
}

const TEXT = "textarea, select, input:not([type=radio], [type=checkbox])";
const isText = (node) => node.matches?.(TEXT);

function digitOf(event) {
  if (/^\d$/.test(event.key)) return event.key;
  // Keyboards on which the row of digits needs Shift.
  return !event.shiftKey && /^Digit\d$/.test(event.code) ? event.code[5] : null;
}

async function undoAndRefresh() {
  await undo();
  if (app.tab === "gallery") gallery.reloadGallery();
}

const ANYWHERE = { "?": openHelp, l: () => goTo("label"), g: () => goTo("gallery"), m: () => goTo("map"),
  backspace: undoAndRefresh };
const ON_LABEL = { n: label.openNaming, s: label.skip, u: label.unsure, a: label.toggleAudit,
  "/": () => label.typeAhead() };
const ELSEWHERE = { a: toAudit };
const ON_GALLERY = { ...ELSEWHERE, n: gallery.findForSelection, "/": gallery.findForSelection };

const isShortcut = (key) => /^\d$/.test(key) || Object.hasOwn(ON_LABEL, key) || Object.hasOwn(ANYWHERE, key);

// Whether a letter finds the classes that begin with it. None does while the name of some class begins with a
// shortcut: who typed that name would skip an example, for instance, and label the next one.
function findsClasses(letter) {
  const names = app.state.classes.map((c) => c.name.toLowerCase());
  return names.some((name) => name.startsWith(letter)) && !names.some((name) => isShortcut(name[0]));
}

// What a key does in the tab that is shown; null if nothing.
function actionOf(event) {
  const key = event.key.toLowerCase();
  const own = { label: ON_LABEL, gallery: ON_GALLERY }[app.tab] ?? ELSEWHERE;
  const digit = digitOf(event);
  if (digit !== null) {
    if (app.tab !== "label" && app.tab !== "gallery") return null;
    const name = classByKey(digit);
    if (name === undefined) return () => say(`No class has the key ${digit}.`);
    return () => (app.tab === "label" ? label.give(name) : gallery.relabel(name));
  }
  if (Object.hasOwn(own, key)) return own[key];
  if (Object.hasOwn(ANYWHERE, key)) return ANYWHERE[key];
  if (app.tab === "label" && /^\p{L}$/u.test(key) && findsClasses(key)) return () => label.typeAhead(key);
  return null;
}

function keys(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (event.target === $("new-class-name")) label.closeNaming();
    else if (app.tab === "gallery") gallery.selectNone();
    unwarn();
    return;
  }
  if (isText(event.target) || !shortcutsOn()) return;
  const action = actionOf(event);
  if (!action) return;
  event.preventDefault();
  if (!event.repeat) action();
}

const LOST = "Connection lost, trying again. If the server was stopped, start the same command again; nothing is "
  + "lost.";
const NEW_LINK = "This page needs a new link; nothing is lost. Press Enter in the terminal, or use .url in Python, "
  + "and open the link.";

// Says what is wrong with the connection; an empty text: nothing.
function showConnection(text) {
  $("connection").hidden = !text;
  if ($("connection").textContent !== text) $("connection").textContent = text;
}

// The server sends every new state. A new connection may reach a server that was started again.
function connect() {
  const source = new EventSource("/api/stream");
  let fresh = true;
  source.addEventListener("open", () => {
    fresh = true;
    showConnection("");
  });
  source.addEventListener("state", (event) => {
    showConnection("");
    accept(JSON.parse(event.data), fresh);
    fresh = false;
  });
  source.addEventListener("error", async () => {
    if (source.readyState !== EventSource.CLOSED) {
      showConnection(LOST);
      return;
    }
    // The server answered without a stream. The status says why, and only another request can read it.
    try {
      await get("/api/state");
    } catch (error) {
      showConnection(error.status === 403 ? NEW_LINK : LOST);
    }
    setTimeout(connect, 3000);
  });
}

async function start() {
  startDialogs();
  label.startLabel();
  gallery.startGallery();
  startMap((rows) => {
    gallery.openRows(rows);
    goTo("gallery");
  });
  startPanel(toAudit);
  startLists();
  startTabs();
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("content").focus();
  });
  $("undo-button").addEventListener("click", undoAndRefresh);
  $("alert-close").addEventListener("click", unwarn);
  document.addEventListener("keydown", keys);
  try {
    accept(await get("/api/state"));
  } catch (error) {
    say(error.message, "error");
    notify();
  }
  connect();
}

start();

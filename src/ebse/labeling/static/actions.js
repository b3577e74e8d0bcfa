// What the user does: send it, say whether it is saved, undo it.

import { submit } from "/static/api.js";
import { app, onState } from "/static/state.js";
import { $, plural } from "/static/dom.js";

const stack = [];
let clock = 0;
let warnedAt = 0;
let newest = null;
let undone = () => null;
export const onUndone = (handler) => { undone = handler; };

export function say(text, kind = "", announce = true) {
  $("status").textContent = text;
  $("status").className = kind;
  if (announce) $("live-status").textContent = text;
}

export function warn(text) {
  $("alert-text").textContent = text;
  $("alert").hidden = false;
  warnedAt = ++clock;
}

export function unwarn() {
  $("alert").hidden = true;
}

export function explain(error, what) {
  if (error.status === 507) {
    return `The disk is full. ${what}: not saved. Free some space, then answer again. (${error.message})`;
  }
  if (error.status === 0) return `${what}: not saved. The server does not answer. Try again when it is back.`;
  return `${what}: not saved. ${error.message}`;
}

// Sends an event. `text` says what was done, `item` is the example to show again after an undo.
// `entry.done` resolves to true if the action is saved.
export function perform(event, text, { item = null, onFail = null } = {}) {
  const entry = { item, id: null, tick: Infinity, version: app.state.version, made: ++clock };
  stack.push(entry);
  newest = { entry, text };
  say(`${text}, saving…`, "", false);
  entry.done = submit(event).then((reply) => {
    entry.id = reply.id;
    if (entry.made > warnedAt) unwarn();
    if (newest?.entry === entry) {
      newest.saved = true;
      tell();
    }
    return true;
  }, (error) => {
    const at = stack.indexOf(entry);
    if (at >= 0) stack.splice(at, 1);
    if (newest?.entry === entry) newest = null;
    const message = explain(error, text);
    warn(message);
    say(`${text}: not saved.`, "error", false);
    onFail?.(error);
    return false;
  });
  return entry;
}

function tell() {
  const { state } = app;
  const moved = state.version !== newest.entry.version && state.changed !== null;
  const change = moved ? ` ${plural(state.changed, "prediction")} changed.` : "";
  say(`${newest.text}, saved.${change}`, "ok");
}

onState((state, before) => {
  if (newest?.saved && state.version !== before.version) tell();
});

// Forgets an event that was undone in the history.
export function forget(id) {
  const at = stack.findIndex((entry) => entry.id === id);
  if (at >= 0) stack.splice(at, 1);
}

// Undoes the last action of this page, or the last event of all after a reload.
export async function undo() {
  const entry = stack.pop();
  if (!entry && !app.state.can_undo) {
    say("There is nothing to undo.");
    return;
  }
  newest = null;
  if (entry?.item) undone([entry.item]);
  say("Undo, saving…", "", false);
  const event = () => {
    if (!entry) return { type: "undo" };
    return entry.id === null ? null : { type: "undo", event: entry.id };
  };
  try {
    const reply = await submit(event);
    say(entry?.item ? `${entry.item.name}: answer undone, saved.` : "Undone, saved.", "ok");
    if (!entry?.item) undone(null, reply?.rows ?? []);
  } catch (error) {
    const message = explain(error, "Undo");
    warn(message);
    say("Undo: not saved.", "error", false);
    if (entry && error.status !== 409 && error.status !== 400) stack.push(entry);
  }
}

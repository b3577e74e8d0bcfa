// The state of the server as last received, and who wants to hear about a new one.

const EMPTY = { name: "", n_rows: null, phase: "reading", progress: null, error: null, version: 0,
  n_events: 0, n_events_seen: 0, members: null, changed: null, classes: [], n_labels: 0,
  n_skipped: 0, n_unsure: 0,
  labels_per_minute: null, advice: null, audit: null, best: null, can_undo: false, map: 0 };

export const app = { state: EMPTY, tab: "label", known: false };
const listeners = [];

export const onState = (listener) => listeners.push(listener);

// Takes a new state. Replies and the stream can overtake each other: an older state is ignored, except the
// first one after a new connection (a restarted server counts its versions from 0).
export function accept(state, fresh = false) {
  const now = app.state;
  if (!fresh && app.known && (state.n_events < now.n_events || state.version < now.version)) return;
  app.state = state;
  app.known = true;
  document.body.dataset.version = state.version;
  document.body.dataset.saved = state.n_events;
  document.body.dataset.seen = state.n_events_seen;
  document.body.dataset.phase = state.phase;
  for (const listener of listeners) listener(state, now);
}

export const notify = () => listeners.forEach((listener) => listener(app.state, app.state));
export const classIndex = (name) => app.state.classes.findIndex((c) => c.name === name);
export const classByKey = (digit) => app.state.classes[digit === "0" ? 9 : Number(digit) - 1]?.name;

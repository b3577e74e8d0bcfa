// The panel at the side: what the model does, the audit, the labels of each class.

import { app, onState } from "/static/state.js";
import { $, colorOf, el, keyed, mark, number, percent, plural, setMark } from "/static/dom.js";
import { perform } from "/static/actions.js";
import { openRename } from "/static/dialogs.js";

const PHASES = { reading: "Reading the data", clustering: "Clustering the rows",
  features: "Learning features", ready: "Ready", failed: "Failed" };

// Sets a text; an empty text hides the element.
function put(id, text) {
  $(id).hidden = !text;
  if ($(id).textContent !== (text ?? "")) $(id).textContent = text ?? "";
}

function model(state) {
  const behind = state.n_events > state.n_events_seen && state.phase === "ready" && state.n_labels > 0;
  const step = state.progress && state.progress.name !== state.phase ? `: ${state.progress.name}` : "";
  let phase = `${PHASES[state.phase] ?? state.phase}${step}`;
  if (behind) phase = "Updating the predictions…";
  if (state.phase === "failed" && state.error) phase = `Failed: ${state.error}`;
  put("phase", phase);
  $("phase").className = state.phase === "failed" ? "error" : "";
  const bar = $("phase-progress");
  bar.hidden = state.progress === null;
  if (state.progress?.total) {
    bar.max = state.progress.total;
    bar.value = state.progress.done;
  } else bar.removeAttribute("value");
  let version = "Predictions: none yet";
  if (state.members) {
    version = `Predictions: version ${state.version}`;
    if (state.changed !== null && state.n_rows !== null) {
      version += `, ${number(state.changed)} of ${plural(state.n_rows, "row")} changed`;
    }
  }
  put("version", version);
  put("members", state.members ? {
    propagation: "Predicted by label propagation. The other classifiers follow.",
    all: "Predicted by all classifiers.",
  }[state.members] : "");
  put("advice", state.advice);
}

function audit(state) {
  const a = state.audit;
  put("audit-text", a?.text || "No checks yet.");
  put("audit-unjudged", a?.unjudged ? `${number(a.unjudged)} could not be judged.` : "");
  const look = a?.next_look ? ` It is looked at again at ${number(a.next_look)} checks.` : "";
  put("audit-target", a ? `Target: ${percent(a.target)} right.${look}` : "");
  put("audit-enough", a?.enough_text);
  $("audit-enough").className = a?.enough ? "ok" : "";
  $("audit-button").disabled = !a?.n_rows;
  $("best").hidden = !state.best;
  put("best-text", state.best?.text);
}

function labels(state) {
  const parts = [plural(state.n_labels, "label")];
  if (state.n_skipped) parts.push(`${number(state.n_skipped)} skipped`);
  if (state.n_unsure) parts.push(`${number(state.n_unsure)} unsure`);
  if (state.labels_per_minute !== null) parts.push(`${state.labels_per_minute.toFixed(1)} labels per minute`);
  put("counts", parts.join(", "));
  keyed($("shares"), state.classes, (c) => c.name, (c) => el("li", {},
    el("span", {}, mark(-1), ` ${c.name}: `, el("span", { className: "muted" })),
    el("button", { type: "button", textContent: "✎", title: `Rename ${c.name}`, "data-rename": c.name,
      "aria-label": `Rename ${c.name}`, onclick: () => openRename(c.name) }),
    el("div", { className: "track", "aria-hidden": "true" }, el("div", { className: "fill" }))),
  (node, c, i) => {
    const [line, , track] = node.children;
    setMark(line.firstChild, i);
    const share = c.share === null ? "" : `, ${percent(c.share)} of the rows`;
    line.lastChild.textContent = `${plural(c.n_labels, "label")}${share}`;
    track.hidden = c.share === null;
    track.firstChild.style.width = `${100 * (c.share ?? 0)}%`;
    track.firstChild.style.background = `var(--class-${colorOf(i)})`;
  });
}

export function startPanel(onAudit) {
  $("audit-button").addEventListener("click", onAudit);
  $("best-button").addEventListener("click", () => {
    const { best } = app.state;
    if (best) perform({ type: "restore", event: best.event }, "Earlier state restored");
  });
  onState((state) => {
    $("data-name").textContent = state.name || "Labeling";
    model(state);
    audit(state);
    labels(state);
  });
}

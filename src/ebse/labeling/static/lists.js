// The tabs Doubtful labels, History and Export.

import { get, post, submit } from "/static/api.js";
import { app, onState } from "/static/state.js";
import { $, brief, capital, classButtons, el, fileSize, keyed, number, percent, plural }
  from "/static/dom.js";
import { explain, forget, perform, say, warn } from "/static/actions.js";

// Doubtful labels

let doubts = [];
let looked = false;
let polling = false;
let progress = "";
// Labels that stay as they are, and labels whose change is being saved: not shown if they are received again.
const settled = new Set();
const labelKey = (item) => `${item.row} ${item.label}`;

async function poll() {
  if (polling) return;
  polling = true;
  try {
    for (;;) {
      const reply = await get("/api/doubtful");
      showDoubts(reply);
      if (!reply.running) break;
      looked = true;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  } catch (error) {
    $("doubtful-text").textContent = error.message;
  } finally {
    polling = false;
    $("doubtful-button").disabled = false;
  }
}

function showDoubts({ running, done, total, items }) {
  $("doubtful-button").disabled = running;
  const bar = $("doubtful-progress");
  bar.hidden = !running;
  if (total) {
    bar.max = total;
    bar.value = done;
  }
  doubts = items.filter((item) => !settled.has(labelKey(item)));
  progress = running ? `${number(done)} of ${plural(total, "label")} looked at` : "";
  drawDoubts();
}

function drawDoubts() {
  const none = looked ? "No label is doubtful." : "";
  const text = progress || (doubts.length ? `${plural(doubts.length, "label")} to look at` : none);
  if ($("doubtful-text").textContent !== text) $("doubtful-text").textContent = text;
  keyed($("doubtful-list"), doubts, labelKey, doubt, (node, item) => {
    node.querySelector("p").textContent = `The other labels predict ${item.predicted}; your label ${item.label} `
      + `has a probability of ${percent(item.own_probability)}.`;
    const box = node.querySelector(".classes");
    const label = (name) => ({ type: "label", rows: [item.row], class: name, from: "own", ms: 0 });
    classButtons(box, app.state.classes, (name) => decide(item, label(name), name), false);
    // The number keys do not work here.
    for (const button of box.children) {
      button.firstChild.hidden = true;
      button.removeAttribute("aria-keyshortcuts");
      button.hidden = button.dataset.class === item.label;
    }
  });
}

function doubt(item) {
  const name = capital(item.name);
  return el("li", { "data-row": item.row }, el("div", { className: "doubt" }, brief(item), el("div", {},
    el("h3", { textContent: `${name}: label ${item.label}` }),
    el("p"),
    el("div", { className: "classes", role: "group", "aria-label": `Label ${name} as` }),
    el("div", { className: "line" },
      el("button", { type: "button", textContent: "Keep", "aria-label": `Keep the label of ${name}`,
        onclick: () => drop(item) }),
      el("button", { type: "button", textContent: "Remove label", "aria-label": `Remove the label of ${name}`,
        onclick: () => decide(item, { type: "unlabel", rows: [item.row] }, "label removed") })))));
}

// Takes an item off the list; the focus goes to the next one.
function drop(item) {
  settled.add(labelKey(item));
  const at = doubts.findIndex((other) => labelKey(other) === labelKey(item));
  doubts.splice(at, 1);
  drawDoubts();
  const next = $("doubtful-list").children[Math.min(at, doubts.length - 1)];
  (next?.querySelector("button:not([hidden])") ?? $("doubtful-button")).focus();
}

async function decide(item, event, what) {
  const { done } = perform(event, `${capital(item.name)}: ${what}`);
  drop(item);
  const saved = await done;
  // An undo can bring the label back, and then it is doubtful again.
  settled.delete(labelKey(item));
  if (!saved) {
    doubts.unshift(item);
    drawDoubts();
  }
}

// History

async function showHistory() {
  try {
    const { events } = await get("/api/history");
    $("history-text").textContent = events.length ? "Newest first." : "Nothing has been done yet.";
    keyed($("history-list"), events, (e) => `${e.id} ${e.undone} ${e.can_undo} ${e.text}`, historyLine);
  } catch (error) {
    $("history-text").textContent = error.message;
  }
}

function historyLine(event) {
  const what = el("span", { className: "what" });
  if (event.undone) what.append(el("s", { textContent: event.text }), " (undone)");
  else what.append(event.text);
  return el("li", { className: event.undone ? "undone" : "", "data-event": event.id },
    el("span", { className: "muted", textContent: event.time }), what,
    event.undone || event.can_undo === false ? null : el("button", { type: "button", textContent: "Undo",
      "aria-label": `Undo: ${event.text}`, onclick: (click) => undoEvent(event, click.target) }));
}

async function undoEvent(event, button) {
  button.disabled = true;
  try {
    await submit({ type: "undo", event: event.id });
    forget(event.id);
    say(`Undone: ${event.text}, saved.`, "ok");
  } catch (error) {
    warn(explain(error, "Undo"));
    button.disabled = false;
    return;
  }
  await showHistory();
  $("history-list").querySelector("button")?.focus();
}

// Export

async function exportAll() {
  $("export-button").disabled = true;
  $("export-text").className = "";
  $("export-text").textContent = "Exporting…";
  try {
    const reply = await post("/api/export", {});
    $("export-text").textContent = `Written to ${reply.folder}`;
    $("export-files").replaceChildren(...reply.files.map((file) => el("li", {},
      el("a", { href: `/download/${encodeURIComponent(file.name)}`, download: file.name,
        textContent: file.name }), ` (${fileSize(file.bytes)}): ${file.what}`)));
    $("export-command").textContent = reply.command;
    $("export-result").hidden = false;
  } catch (error) {
    $("export-text").className = "error";
    const full = error.status === 507 ? "The disk is full. " : "";
    $("export-text").textContent = `${full}${error.message}`;
  } finally {
    $("export-button").disabled = false;
  }
}

async function copyCommand() {
  try {
    await navigator.clipboard.writeText($("export-command").textContent);
    say("The command is copied.", "ok");
  } catch {
    getSelection().selectAllChildren($("export-command"));
    say("The command is selected. Copy it with Ctrl+C.");
  }
}

export const showDoubtful = poll;
export { showHistory };

export function startLists() {
  $("doubtful-button").addEventListener("click", async () => {
    $("doubtful-button").disabled = true;
    looked = true;
    try {
      await post("/api/doubtful", {});
    } catch (error) {
      $("doubtful-text").textContent = error.message;
      $("doubtful-button").disabled = false;
      return;
    }
    poll();
  });
  $("export-button").addEventListener("click", exportAll);
  $("export-copy").addEventListener("click", copyCommand);
  onState((state, old) => {
    if (app.tab === "history" && state.n_events !== old.n_events) showHistory();
    if (doubts.length) drawDoubts();
  });
}

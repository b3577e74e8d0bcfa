// Helpers for elements: text from the data goes in by textContent only.

export const $ = (id) => document.getElementById(id);

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

// Shows one child for each entry of a list. Nodes of entries that stay are kept, and so is the focus: a node
// loses it whenever it is taken out, if only to be put back.
export function keyed(parent, list, keyOf, make, update) {
  const old = new Map([...parent.children].map((node) => [node.keyOfEntry, node]));
  const nodes = list.map((entry, i) => {
    const key = keyOf(entry);
    let node = old.get(key);
    if (!node) {
      node = make(entry, i);
      node.keyOfEntry = key;
    }
    update?.(node, entry, i);
    return node;
  });
  const focused = document.activeElement;
  const stay = new Set(nodes);
  for (const node of old.values()) if (!stay.has(node)) node.remove();
  nodes.forEach((node, i) => {
    if (parent.children[i] !== node) parent.insertBefore(node, parent.children[i] ?? null);
  });
  // The node in focus may have been moved.
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

export const number = (n) => n.toLocaleString("en-US");
export const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
export const capital = (name) => (/^row \d+$/.test(name) ? `R${name.slice(1)}` : name);

export function percent(p) {
  if (p > 0 && p < 0.01) return "less than 1 %";
  if (p < 1 && p > 0.99) return "more than 99 %";
  return `${Math.round(100 * p)} %`;
}

export function fileSize(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// A class has a color and a shape. Colors repeat after ten classes, with other shapes.
const SHAPES = [
  "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14z",
  "M2 2h12v12H2z",
  "M8 1l7.5 14H.5z",
  "M8 0l8 8-8 8-8-8z",
  "M6 1h4v5h5v4h-5v5H6v-5H1V6h5z",
  "M8 15L.5 1h15z",
  "M8 0l2.4 5.3 5.6.7-4.2 3.9L13 16l-5-3-5 3 1.2-6.1L0 6l5.6-.7z",
  "M3 0l5 5 5-5 3 3-5 5 5 5-3 3-5-5-5 5-3-3 5-5-5-5z",
  "M1 1h14l-5 7 5 7H1l5-7z",
  "M0 5h16v6H0z",
];
export const colorOf = (i) => i % 10;
export const shapeOf = (i) => SHAPES[(i + Math.floor(i / 10)) % SHAPES.length];

const SVG = "http://www.w3.org/2000/svg";
export function mark(i) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "mark");
  svg.setAttribute("aria-hidden", "true");
  setMark(svg, i);
  return svg;
}

export function setMark(svg, i) {
  if (svg.classIndex === i) return;
  svg.classIndex = i;
  const path = document.createElementNS(SVG, "path");
  if (i >= 0) path.setAttribute("d", shapeOf(i));
  path.style.fill = i >= 0 ? `var(--class-${colorOf(i)})` : "none";
  svg.replaceChildren(path);
}

// An image of a row. Small images are enlarged without smoothing.
export function picture(item, alt, className = "") {
  const image = new Image();
  image.alt = alt;
  image.className = className;
  image.onload = () => image.classList.toggle("pixels", image.naturalWidth < 100);
  image.onerror = () => {
    image.replaceWith(el("span", { className: "muted", textContent: "The image cannot be shown." }));
  };
  image.src = `/image/${item.row}`;
  return image;
}

const cut = (text, n) => (text.length > n ? `${text.slice(0, n)}…` : text);

// The start of a row's text or, without a text, its first cells.
export function beginning(item) {
  if (item.text?.length) return cut(item.text.map((pair) => pair[1]).join(" · "), 180);
  return (item.cells ?? []).slice(0, 6).map(([key, value]) => `${key}: ${cut(value, 40)}`).join(", ");
}

// A row in short: its image, or the beginning of its text or cells.
export function brief(item) {
  const box = el("span", { className: "brief" });
  if (item.image) {
    const image = picture(item, "", "thumb");
    image.loading = "lazy";
    box.append(image);
  } else {
    box.append(el("span", { className: item.text?.length ? "" : "cells", textContent: beginning(item) }));
  }
  return box;
}

// One button for each class; keeps the focus when only the counts change.
export function classButtons(parent, classes, pick, counts = true) {
  keyed(parent, classes, (c) => c.name, (c) => el("button", {
    type: "button", "data-class": c.name, onclick: () => pick(c.name),
  }, el("kbd"), mark(-1), el("span", { textContent: c.name }), el("span", { className: "count" })),
  (node, c, i) => {
    const [key, svg, , count] = node.children;
    const digit = i < 9 ? String(i + 1) : i === 9 ? "0" : "";
    key.textContent = digit;
    key.hidden = digit === "";
    if (digit) node.setAttribute("aria-keyshortcuts", digit);
    else node.removeAttribute("aria-keyshortcuts");
    setMark(svg, i);
    count.textContent = counts ? plural(c.n_labels, "label") : "";
  });
}

/** Make an element. Props are properties, attributes or listeners (`onclick`); text is never HTML. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value; // that one is read-only
    else node.setAttribute(name, value === true ? "" : value);
  }
  fill(node, ...children);
  return node;
}

/** Replace what is in an element; null and false are left out. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child != null && child !== false));
  return node;
}

/** Make a button that shows its key. */
export function button(text, onclick, key, props = {}) {
  const shortcut = key && {"aria-keyshortcuts": key};
  return h("button", {type: "button", onclick, ...shortcut, ...props},
    h("span", {}, text), key && h("kbd", {"aria-hidden": "true"}, key));
}

/** Open a dialog with a title; it closes by Esc, by its button, or by calling `close()` on it. */
export function dialog(title, ...children) {
  const close = button("Close", () => box.close(), "Esc");
  const box = h("dialog", {"aria-label": title, onclose: () => box.remove()},
    h("div", {class: "row"}, h("h2", {}, title), close), ...children);
  document.body.append(box);
  box.showModal();
  return box;
}

/** Say something to screen readers, and on the line for it, which every screen has, all or a part. */
export function say(text, shown = text) {
  const live = document.getElementById("live");
  live.textContent = text === live.textContent ? `${text}\u00a0` : text;
  for (const note of document.querySelectorAll(".note")) note.textContent = shown;
}

/** Write a number with thousands apart, and with its noun in the right form. */
export function count(n, noun, nouns = `${noun}s`) {
  const text = n.toLocaleString("en");
  return noun ? `${text} ${n === 1 ? noun : nouns}` : text;
}

/** Write a probability as a percentage; never 0 or 100. */
export function percent(p) {
  return p > 0.99 ? "over 99" : p < 0.01 ? "under 1" : `${Math.round(100 * p)}`;
}

/** Make a random UUID; `crypto.randomUUID` exists on secure pages only. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Keys: single letters, fixed, shown on `?`, and never twice by holding one. */
import {dialog, h} from "./dom.js";

const help = [
  ["Y N U", "it is there, it is not, unsure"],
  ["A X", "accept, reject the suggestion; in Sweep X marks"],
  ["1 – 9", "question of this picture"],
  ["← →", "previous, next picture; in Sweep move"],
  ["Space", "Sweep: mark, next mark, unmark; Settle: more classes"],
  ["Enter", "Sweep: answer the page; Settle: done, next picture"],
  ["I + −", "look closer, zoom in, out; Esc goes back"],
  ["Z Backspace", "undo, again for further back"],
  ["Shift Z", "redo"],
  ["E H", "examples of the class, history"],
  ["F S T P", "Focus, Sweep, Settle, Progress"],
  ["/ ? Esc", "filter or search, keys, close"],
];
const OFF = "balancemix.keys";
const moves = /^(Arrow|Home|End|[+\-]$)/;

/** Name a key: a lower-case letter, "shift z", or as `event.key` has it. */
export function keyName(event) {
  const {key, code, shiftKey} = event;
  const place = /^(?:Key|Digit)(.)$/.exec(code)?.[1].toLowerCase();
  const letter = /^[a-z]$/i.test(key) ? key.toLowerCase()
    : place && (/\d/.test(place) ? !/[!-~]/.test(key) : !/^[ -~]+$/.test(key)) ? place : null;
  if (!letter) return key;
  return shiftKey && /[a-z]/.test(letter) ? `shift ${letter}` : letter;
}

/** Call the function that the first of the given tables has for a pressed key. */
export function listen(tables) {
  addEventListener("keydown", (event) => {
    const target = event.target;
    // A held Enter clicks a focused button again and again; a held letter answers again and again.
    if (event.repeat && /^(Enter| )$/.test(event.key)) event.preventDefault();
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    if (target.closest?.("input:not([type=checkbox],[type=radio]),textarea,select,dialog")) return;
    let name = keyName(event);
    if (event.ctrlKey || event.metaKey) {
      if (!/^(shift )?z$/.test(name)) return;
    } else if (/^(.|shift .)$/.test(name) && name !== " " && localStorage.getItem(OFF)) return;
    if (event.repeat && !moves.test(name)) return;
    // Enter and Space belong to a focused control, as long as the screen does not say otherwise.
    if (name === "Enter" && target.closest?.("button,a,summary,[role=option]:not([data-grid])")) return;
    if (name === " " && target.closest?.("button,a,summary,input")) return;
    for (const table of tables()) {
      if (!table?.[name]) continue;
      event.preventDefault();
      table[name](event);
      return;
    }
  });
}

/** Show all keys, and the switch that turns single ones off. */
export function showKeys() {
  const rows = help.map(([keys, words]) =>
    h("tr", {}, h("td", {}, ...keys.split(" ").map((key) => h("kbd", {}, key))), h("td", {}, words)));
  const box = h("input", {type: "checkbox", checked: !localStorage.getItem(OFF), onchange: () =>
    (box.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"))});
  dialog("Keys", h("table", {class: "keys"}, h("tbody", {}, ...rows)),
    h("label", {class: "row"}, box, "Single keys work (Enter, arrows, Esc and Ctrl Z always do)"));
}

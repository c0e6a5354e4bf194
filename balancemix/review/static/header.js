/** The header: what is reviewed, where one is, what is asked, whether it is saved, and who answers. */
import {button, count, dialog, fill, h} from "./dom.js";
import {showKeys} from "./keys.js";

/** What the kinds of findings are called. */
export const kinds = {"": "both kinds", missing: "missing", wrong: "wrong", unknown: "unknown"};

/** Say which class and kind are asked about. */
export function filterWords(app) {
  const {class: id, kind} = app.filter;
  return `${id === "" ? "All classes" : app.classes.get(Number(id))?.name} · ${kinds[kind]}`;
}

/** Draw the header of a screen. */
export function drawHeader(app, current) {
  const {data, rows, me} = app.state, asks = current === "focus" || current === "sweep";
  const tabs = ["focus", "sweep", "settle", "progress"].map((name) => {
    const query = name === "focus" || name === "sweep" ? new URLSearchParams(app.filter) : "";
    return h("a", {href: `#${name}?${query}`, "aria-current": name === current && "page",
      "aria-keyshortcuts": {settle: "T"}[name] ?? name[0].toUpperCase()}, name[0].toUpperCase() + name.slice(1));
  });
  fill(document.getElementById("header"),
    h("div", {class: "what"}, h("a", {class: "brand", href: "#start"}, "balancemix"),
      h("span", {class: "data"}, `${data} · ${count(rows, app.noun)}`)),
    me && h("nav", {"aria-label": "Screens"}, ...tabs),
    h("div", {class: "who"},
      me && asks && button(filterWords(app), () => showFilter(app), null, {class: "filter", "aria-keyshortcuts": "/"}),
      h("span", {id: "saved"}),
      me && h("button", {type: "button", class: "me", "aria-label": `${me}: menu`, onclick: () => showMenu(app)},
        h("span", {class: "face", "aria-hidden": "true"}, [...me][0].toUpperCase()), h("span", {class: "name"}, me))));
  showBanner(app);
}

/** Show whether answers are saved, and in the banner what hinders it. */
export function showBanner(app) {
  const {outbox, state} = app, n = outbox?.waiting ?? 0, problem = outbox?.problem ?? app.problem;
  const saved = document.getElementById("saved");
  if (saved && outbox) {
    if (saved.title !== outbox.words) {
      saved.title = outbox.words;
      const [mark, ...rest] = outbox.words.split(" ");
      fill(saved, h("span", {}, mark), h("span", {class: "rest"}, ` ${rest.join(" ")}`));
    }
    saved.className = n ? "waits" : "";
  }
  let text = state?.changed ?? "", parts; // of which the second is left out on a phone
  if (problem?.status === 0) {
    const wait = n ? `${count(n, "answer")} ${n === 1 ? "waits" : "wait"}` : "", full = outbox?.full;
    parts = [`The server does not answer. ${wait}`, n ? " in this browser and will be sent when it is back" : "",
      `${n ? ". " : ""}${full ? "Nothing more can be answered until the server is back. Closing this page loses nothing. " : ""}`,
      state ? `Start it again with: ${state.commands.review}` : ""];
    text = parts.join("");
  } else if (problem?.status === 507) {
    text = "The disk is full: this answer is not saved. It waits in this browser.";
  } else if (problem && state) text = problem.message;
  const banner = document.getElementById("banner");
  if (banner.textContent !== text) fill(banner, ...(parts ?? [text]).map((part, i) => h("span", {class: i === 1 && "rest"}, part)));
  banner.hidden = !text;
}

/** Let the person choose class and kind. */
export async function showFilter(app) {
  await app.refresh(); // for the counts
  let kind = app.filter.kind;
  const list = h("div", {class: "list"});
  const search = h("input", {type: "search", placeholder: `Find one of ${count(app.classes.size)} classes`,
    "aria-label": "Class", oninput: draw, autofocus: true});
  const choose = (id) => {
    box.close();
    app.go(document.body.dataset.screen === "sweep" ? "sweep" : "focus", {class: id, kind});
  };
  function draw() {
    const text = search.value.toLowerCase();
    const found = app.state.classes.filter((one) => one.name.toLowerCase().includes(text))
      .map((one) => [one, kind ? one[kind] : one.missing + one.wrong + one.unknown]).sort((a, b) => b[1] - a[1]);
    fill(list, !text && button("All classes", () => choose("")), found.slice(0, 200).map(([one, open]) =>
      button(one.name, () => choose(one.id), null, {"data-open": one.judged ? count(open) : "not judged"})));
  }
  const radios = Object.entries(kinds).map(([value, words]) => h("label", {class: "chip"},
    h("input", {type: "radio", name: "kind", checked: value === kind, onchange: () => { kind = value; draw(); }}), words));
  const box = dialog("What to ask about", h("div", {class: "chips"}, ...radios), search, list);
  draw();
  search.focus();
}

function showMenu(app) {
  const name = h("input", {value: app.state.me, "aria-label": "Your name", maxLength: 80, required: true});
  const go = (words, act, key) => button(words, () => { box.close(); act(); }, key);
  const box = dialog("Menu",
    h("form", {class: "row", onsubmit: async (event) => {
      event.preventDefault();
      // What waits was answered under the old name.
      if (app.outbox.waiting || !name.value.trim()) return;
      await app.key(null, name.value.trim());
      box.close();
      app.refresh();
    }}, name, h("button", {}, "Change name")),
    h("div", {class: "list"}, go(`Ask about: ${filterWords(app)}`, () => showFilter(app), "/"),
      go("History", () => app.go("history"), "H"), go("Second opinions", () => app.go("dispute")),
      go("Keys", showKeys, "?"), go("Start page", () => app.go("start"))));
}

/** Sweep: one class, as many tiles as fit. It adds or confirms labels, and never removes one. */
import {look} from "./closer.js";
import {ruleLine} from "./dispute.js";
import {button, count, fill, h, say, uuid} from "./dom.js";
import {address} from "./stage.js";
import {Tile, atWork, stored} from "./tile.js";

const MOST = 32, HELD = 60; // tiles on a page, findings in the browser
const CLICK = matchMedia("(pointer: coarse)").matches ? "Tap" : "Click";
const quoted = (name) => ["“", h("bdi", {}, name), "”"];
const missing = {
  title: (name) => ["None of these is labelled ", ...quoted(name), `. ${CLICK} those that `, h("u", {}, "do not"), " show it."],
  badges: ["+", "✕ not here", "? unsure"], states: ["will be added", "not here", "unsure"],
  verdicts: ["present", "absent", "unsure"], marks: 2,
  act: (name, n) => `Add “${name}” to ${n}`,
  counts: (all, marked, unsure) => `${marked} not here · ${unsure} unsure`,
  did: (name, n, rest) => `added “${name}” to ${n}, left ${rest} as they were`,
};
const kinds = {
  missing,
  wrong: {
    title: (name) => ["All of these are labelled ", ...quoted(name), `. ${CLICK} those where you `, h("u", {}, "see"), " it."],
    badges: ["?", "✓ I see it", "? unsure"], states: ["goes to Focus", "seen", "unsure"],
    verdicts: [null, "present", "unsure"], marks: 1,
    act: (name, n) => `Keep “${name}” on ${n}`,
    counts: (all, marked, unsure) => `${all - marked - unsure} go to Focus${unsure ? ` · ${unsure} unsure` : ""}`,
    did: (name, n, rest) => `kept “${name}” on ${n}, ${rest} go to Focus`,
    aside: `A sweep never removes a label. What you do not ${CLICK.toLowerCase()} is asked again, one by one, at full size.`,
  },
  unknown: {...missing,
    title: (name) => ["Whether these show ", ...quoted(name), ` is not known. ${CLICK} those that `, h("u", {}, "do not"), "."]},
};
let app, main, subject, kind, words; // what is swept
let tiles, ahead, aside, marks, current, page, open, others, anyway, began, spent, shape, closer; // how far it is
let turning = 0, live = false; // number of the turn, so that what comes late is dropped; whether the screen is shown
const grid = h("div", {class: "tiles", role: "listbox", tabIndex: 0, "aria-multiselectable": "true"});
const title = h("h1"), place = h("p", {class: "small"}), counts = h("span", {class: "tally"}), left = h("span", {class: "small left"});
const act = button("", answer, "Enter");
const watch = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting: inView} of entries) tiles.find((tile) => tile.node === target)?.see({inView});
}, {threshold: 0.95});

export const screen = {
  name: "sweep",
  show(main_, app_, query) {
    [app, main, subject] = [app_, main_, app_.classes.get(Number(query.class || NaN))];
    kind = kinds[query.kind] ? query.kind : Object.keys(kinds).find((each) => subject?.[each]) ?? "missing";
    words = kinds[kind];
    [tiles, ahead, aside, marks, page, anyway, spent, closer] = [[], [], [], new Map(), 0, 0, 0, null];
    if (!subject) return choose();
    live = true;
    layOut();
    turn();
    addEventListener("resize", resized);
  },
  hide() {
    turning++;
    live = false;
    watch.disconnect();
    removeEventListener("resize", resized);
  },
  subject: () => subject?.id,
  /** What others decided meanwhile leaves, or is no longer asked where it is shown. */
  changed(labels) {
    for (const {row, class: id, who, state} of labels) {
      const mine = who === app.state.me;
      if (!live || id !== subject.id || (state === "unsure" && !mine)) continue;
      const by = state === "open" ? null : mine ? "other tab" : who;
      if (by) ahead = ahead.filter((item) => item.image.row !== row);
      const tile = tiles.find((each) => each.row === row);
      if (tile) answered(tile, by);
    }
  },
  reopened: () => live && again(0, []),
  keys: {
    " ": () => mark(), x: () => mark(), Enter: answer,
    y: () => closer?.answer("present"), n: () => closer?.answer("absent"),
    u: () => (closer ? closer.answer("unsure") : mark(current, 2)),
    i: () => (closer ? closer.stage.closer() : lookCloser()), Escape: () => closer && back(),
    "+": () => closer?.stage.zoom(1.5), "-": () => closer?.stage.zoom(1 / 1.5),
    ArrowLeft: () => move(current - 1), ArrowRight: () => move(current + 1), Home: () => move(0),
    ArrowUp: () => move(current - shape?.columns), ArrowDown: () => move(current + shape?.columns),
    End: () => move(tiles.length - 1),
  },
};

/** Say how many columns and rows of tiles a space holds without scrolling; two columns on a phone, whose tiles are wide. */
export function fit(width, height) {
  const narrow = width < 480, columns = narrow ? 2 : Math.min(8, Math.floor(2 + width / 230));
  const rows = Math.round(height / (width / columns) * (narrow ? 4 / 3 : 1));
  return {columns, rows: Math.max(1, Math.min(rows, Math.floor(MOST / columns)))};
}

/** Lay out a few tiles as large as they can be. */
export function spread(width, height, n) {
  const shapes = Array.from({length: n}, (_, i) => ({columns: i + 1, rows: Math.ceil(n / (i + 1))}));
  const side = ({columns, rows}) => Math.min(width / columns, height / rows);
  return shapes.reduce((best, each) => (side(each) > side(best) ? each : best));
}

/** Let the person choose a class. */
function choose() {
  const total = (one) => one.missing + one.wrong + one.unknown;
  const rows = app.state.classes.filter(total).sort((a, b) => total(b) - total(a)).slice(0, 200).map((one) =>
    h("li", {}, h("span", {}, one.name), Object.keys(kinds).map((each) => one[each] > 0 &&
      button(`${count(one[each])} ${each}`, () => app.go("sweep", {class: one.id, kind: each})))));
  fill(main, h("div", {class: "middle"}, h("h1", {}, rows.length ? "Which class?" : "No finding is open."),
    rows.length > 0 && h("p", {}, "A sweep shows many pictures of one class at once."), h("ul", {class: "sweeps"}, rows)));
}

const undo = () => button("Undo", () => app.undo(), "Z", {class: "undo"});

function layOut() {
  const aside = words.aside ?? ruleLine(app, subject.id);
  fill(title, ...words.title(subject.name));
  grid.setAttribute("aria-label", title.textContent);
  fill(main, h("section", {class: "sweep"},
    h("div", {class: "row"}, h("div", {}, h("div", {class: "row"}, place, h("span", {class: "phone"}, undo())), title),
      h("aside", {class: `small ${words.aside || subject.rule ? "" : "quiet"}`}, aside)), grid));
  act.className = words.marks === 1 ? "go ink" : "go plus";
  const hints = [["Space", words.badges[1].slice(2)], ["U", "unsure"], ["I", "look closer"]];
  fill(app.foot, act, counts, h("span", {class: "hints small"}, hints.map(([key, text]) => [h("kbd", {}, key), ` ${text} `])),
    h("span", {class: "note"}), undo(), left);
}

async function ask(n) {
  await stored(app);
  const held = [...tiles.map((tile) => tile.row), ...ahead.map((item) => item.image.row), ...aside];
  const reply = await app.get(`/api/grid?class=${subject.id}&kind=${kind}&n=${n}&anyway=${anyway}&holding=${held}`);
  ({open, others} = reply);
  return reply.items.map((item) => ({...item, over: reply.over}));
}

/** Show the next page, and fetch the one after it. */
async function turn() {
  const now = ++turning;
  watch.disconnect();
  tiles = [];
  act.disabled = true;
  shape = fit(grid.clientWidth, grid.clientHeight);
  const size = shape.columns * shape.rows;
  if (ahead.length < size) {
    const more = await ask(size - ahead.length);
    if (now !== turning) return;
    ahead.push(...more);
  }
  if (!ahead.length || ahead[0].over) return stop(ahead.length);
  if (ahead.length < size) shape = spread(grid.clientWidth, grid.clientHeight, ahead.length);
  const side = devicePixelRatio * grid.clientWidth / shape.columns, width = side > 600 ? 1280 : side > 300 ? 512 : 256;
  tiles = ahead.splice(0, size).map((item, i) => new Tile(item, width, () => mark(i), gate));
  const pages = page + Math.ceil(open / size);
  place.textContent = `${subject.name} · ${kind} · page ${page + 1} of ${pages} · surest first`;
  const minutes = Math.round(spent / page * (pages - page) / 60_000); // of those spent so far
  left.textContent = `${tiles.length} of ${count(open)}${page ? ` · about ${Math.max(1, minutes)} min left` : ""}`;
  app.bar(page / pages);
  grid.style.setProperty("--columns", shape.columns);
  grid.style.setProperty("--rows", shape.rows);
  fill(grid, tiles.map((tile, i) => Object.assign(tile.node, {id: `tile${i}`})));
  for (const tile of tiles) {
    watch.observe(tile.node);
    paint(tile);
  }
  move(0);
  gate();
  began = performance.now();
  const later = await ask(Math.min(size, HELD - size));
  if (now !== turning) return;
  ahead.push(...later);
  for (const {image} of later) if (image.values == null) new Image().src = address(image, width);
}

/** Only a page of which every tile has been seen can be answered. */
function gate() {
  act.disabled = !tiles.every((tile) => tile.seen);
  for (const tile of tiles) if (tile.bad && !aside.includes(tile.row)) aside.push(tile.row);
  tally();
}

const markOf = (tile) => marks.get(tile.row) ?? 0;

/** Mark a tile: the next mark in turn, or one that a key names. */
function mark(i = current, to = null) {
  const tile = tiles[i];
  if (closer || !tile?.asked) return;
  const is = markOf(tile);
  marks.set(tile.row, to === null ? (is + 1) % (words.marks + 1) : is === to ? 0 : to);
  move(i);
  paint(tile);
  document.getElementById("live").textContent = tile.words; // the tile itself shows it
}

/** Note that somebody else answered about a tile; not under the pointer. */
function answered(tile, by) {
  if (tile.node.matches(":hover")) return tile.node.addEventListener("pointerleave", () => answered(tile, by), {once: true});
  tile.answered = by;
  paint(tile);
}

function paint(tile) {
  const is = markOf(tile), current_ = tile === tiles[current] ? " current" : "";
  if (tile.answered) tile.paint(`answered${current_}`, `✓ ${tile.answered}`, `answered: ${tile.answered}`, false);
  else tile.paint(`${kind} ${["", "marked", "unsure"][is]}${current_}`, words.badges[is], words.states[is], is === 1);
  tally();
}

function tally() {
  const asked = tiles.filter((tile) => tile.asked), of = [0, 0, 0];
  for (const tile of asked) of[markOf(tile)]++;
  act.firstChild.textContent = words.act(subject.name, of[words.verdicts.indexOf("present")]);
  counts.textContent = words.counts(asked.length, of[1], of[2]);
}

function move(to) {
  if (closer || !tiles.length) return;
  const before = tiles[current];
  current = Math.max(0, Math.min(tiles.length - 1, to));
  if (before) paint(before);
  paint(tiles[current]);
  tiles[current].node.scrollIntoView({block: "nearest"});
  grid.setAttribute("aria-activedescendant", `tile${current}`);
}

/** Answer the page: one request, one batch, one undo. */
function answer() {
  if (closer || !tiles.length || app.blocked()) return;
  const unseen = tiles.filter((tile) => !tile.seen).length;
  if (unseen) return say(`${count(unseen, "picture")} not seen yet.`);
  const time = performance.now() - began, ms = Math.round(time / tiles.length), swept = marks, class_ = subject.name;
  const items = tiles.map((tile) => tile.item), decisions = [], passed = [];
  for (const tile of tiles.filter((each) => each.asked)) {
    const label = {image: tile.name, class: class_}, verdict = words.verdicts[markOf(tile)];
    const [{suggested, p}] = tile.item.findings, width = Math.round(devicePixelRatio * tile.node.clientWidth);
    if (verdict) decisions.push({...label, verdict, mode: "sweep", suggested, p, probe: false, width, whole: false, ms});
    else passed.push(label);
  }
  const there = decisions.filter((each) => each.verdict === "present").length;
  const note = words.did(class_, there, decisions.length + passed.length - there);
  const here = () => live && swept === marks;
  const send = () => {
    const batch = uuid();
    if (decisions.length + passed.length) {
      app.post("/api/decisions", {decisions: decisions.map((each) => ({client: uuid(), batch, ...each})), passed});
      app.did({batch, words: `“${class_}” on ${count(items.length, "picture")} is open again.`, redo: send, undone: () => {
        if (here()) again(-1, [...items, ...tiles.map((tile) => tile.item), ...ahead]);
      }});
      say(`Page ${page + 1}: ${note}.`);
    }
    if (here()) again(1, [...tiles.map((tile) => tile.item), ...ahead].filter((item) => !items.includes(item)));
  };
  spent += time;
  send();
}

function again(by, items) {
  page += by;
  ahead = items.slice(0, HELD);
  if (closer || !grid.isConnected) back();
  turn();
}

function resized() {
  if (!closer && tiles.length) again(0, [...tiles.map((tile) => tile.item), ...ahead]);
}

function lookCloser() {
  const tile = tiles[current];
  if (!tile?.asked) return;
  closer = look(main, app, tile.item, (verdict) => {
    tile.answered = verdict;
    if (!closer) paint(tile);
  }, back);
}

function back() {
  closer = null;
  main.classList.remove("gated");
  layOut();
  tiles.forEach(paint);
}

function stop(over) {
  app.bar(null);
  fill(app.foot, h("span", {class: "note"}), undo());
  const focus = () => app.go("focus", {class: subject.id});
  const taken = !over && atWork(others, app);
  fill(main, h("div", {class: "middle"},
    h("h1", {}, over ? "From here on fewer than half would be right." : taken || `Nothing open for “${subject.name}”, ${kind}.`),
    h("div", {class: "chips"},
      taken && button("Show them anyway", () => { anyway = 1; again(0, []); }, null, {class: "main"}),
      button("Go on in Focus", focus, null, {class: over ? "main" : ""}),
      button("Another class", async () => { await app.refresh(); app.go("sweep"); }))));
}

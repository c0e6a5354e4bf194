/** Settle: one whole picture, all of its labels, without what the audit thinks. */
import {button, count, fill, h, say, uuid} from "./dom.js";
import {Stage, prefetch} from "./stage.js";
import {atWork, stored} from "./tile.js";

const PAGE = 24, AHEAD = 3, STEP = 50; // classes of the palette outside a sample, pictures, of a sample
const CLICK = matchMedia("(pointer: coarse)").matches ? "Tap" : "Click";
const said = {doubted: "not there", added: "there", unsure: "unsure"};
let app, main, order, sample, stage; // what is settled
let item, marks, shown, start, began, ahead, past, aside, visit, others, anyway; // how far it is
let ready = false; // whether the picture can be seen
let turning = 0; // number of the turn, so that what comes late is dropped
const place = h("p", {class: "small"}), left = h("span", {class: "small left"}), pager = h("div", {class: "row pager"});
const labelled = h("div", {class: "chips"}), palette = h("div", {class: "chips"});
const search = h("input", {type: "search", "aria-label": "Find a class", "aria-keyshortcuts": "/", oninput: draw, onkeydown: typed});
const done = button("Done, next picture", () => settle(), "Enter", {class: "go ink"});
// Only what was in view beside its picture counts as shown.
const watch = new IntersectionObserver((entries) => {
  if (!ready) return;
  for (const {target, isIntersecting} of entries) if (isIntersecting) shown.add(Number(target.dataset.id));
  gate();
}, {threshold: 0.9});

export const screen = {
  name: "settle",
  show(main_, app_, query) {
    [app, main, order, sample, item] = [app_, main_, query.order, app_.state.sample, null];
    [ahead, past, aside, visit, anyway] = [[], [], [], {}, 0];
    wait(); // until a picture is decoded
    if (!order && sample && sample.answered < sample.drawn) order = "sample";
    if (order) begin();
    else choose();
  },
  hide() {
    turning++;
    watch.disconnect();
    item = visit = null;
    wait();
  },
  reopened() {
    if (!visit || !order) return;
    ahead = [];
    layOut();
    next();
  },
  get keys() { return item ? {...stage.keys, ...keys} : {}; },
};

const keys = {
  Enter: () => settle(),
  " ": more,
  PageDown: more,
  "/": () => search.focus(),
  ArrowLeft() {
    if (!past.length) return;
    ahead.unshift(item);
    show(past.pop());
  },
  ArrowRight() {
    if (!ahead.length) return;
    ahead.push(item);
    next();
  },
};

const nameOf = (id) => app.classes.get(id).name;
const byName = (a, b) => nameOf(a).localeCompare(nameOf(b));
const isSample = () => order === "sample";

/** Let the person choose which pictures to settle. */
function choose() {
  const card = (title, text, words, to) => h("section", {class: "card"}, h("h2", {}, title), h("p", {}, text),
    button(words, () => app.go("settle", {order: to}), null, {class: to === "sample" && "main"}));
  fill(main, h("div", {class: "middle wide"}, h("h1", {}, "Which pictures?"), h("div", {class: "cards"},
    card("To know how many labels are wrong", "Pictures drawn at random. The result is shown when all are done.",
      sample ? "See the result" : `Settle ${STEP} random pictures`, "sample"),
    card("A better model", "The pictures first in which most errors are expected.", "Most errors first", "errors"),
    card("A better model, evenly", "Pictures in random order.", "In random order", "random"))));
}

async function begin(size = sample ? 0 : STEP) {
  const now = ++turning;
  if (isSample() && size) ({sample} = await app.post("/api/sample", {size}));
  if (now !== turning) return;
  layOut();
  next();
}

const undo = () => button("Undo", () => app.undo(), "Z", {class: "undo"});

function layOut() {
  stage = new Stage(h("div"));
  const ask = (words, mark, rest) => h("p", {class: "small"}, `${words}. ${CLICK} what `, h("b", {}, mark), rest);
  fill(main, h("section", {class: `split ${app.classes.size > PAGE ? "many" : ""}`}, stage.frame.parentNode, h("div", {class: "side"}, place,
    h("h1", {}, "What is in this picture?"), ask("Labelled", "is not", " there."), labelled,
    h("div", {class: "row find"}, ask("Not labelled", "is", " there, or type a class."), search), palette, pager)));
  stage.tools.append(h("span", {class: "phone"}, undo()));
  fill(app.foot, undo(), h("span", {class: "note"}), left, done);
  search.placeholder = `Find one of ${count(app.classes.size)} classes`;
}

/** Show the next picture, and fetch those after it. */
async function next() {
  const now = ++turning;
  item = null;
  wait();
  if (!ahead.length) {
    const more = await ask();
    if (now !== turning) return;
    ahead.push(...more);
  }
  if (!ahead.length) {
    const taken = atWork(others, app), show = button("Show them anyway", () => { anyway = 1; begin(); }, null, {class: "main"});
    return taken ? stop(taken, [], show) : isSample() ? over() : stop("Every picture is settled.");
  }
  show({item: ahead.shift(), marks: new Map()});
  if (ahead.length < AHEAD) ahead.push(...await ask().then((more) => (now === turning ? more : [])));
  for (const {image} of ahead) if (image.values == null) prefetch(image, stage.width).catch(() => null);
}

async function ask() {
  await stored(app);
  const held = [item, ...ahead, ...aside].filter(Boolean).map(({image}) => image.row);
  const reply = await app.get(`/api/settle?order=${order}&n=${AHEAD - ahead.length}&anyway=${anyway}&holding=${held}`);
  others = reply.others;
  // An answer that is on its way is counted here already.
  sample = reply.sample && {...reply.sample, answered: Math.max(reply.sample.answered, sample?.answered ?? 0)};
  return reply.items;
}

async function show(what) {
  ({item, marks} = what);
  [shown, start, began] = [what.shown ?? new Set(item.labels), 0, performance.now()];
  const now = item;
  const which = isSample() ? `Random sample · picture ${sample.answered + 1} of ${sample.drawn}` : item.image.name;
  place.textContent = `${which} · the audit’s opinion is hidden`;
  left.textContent = isSample() ? "The result is shown when all are done." : "";
  app.bar(isSample() ? sample.answered / sample.drawn : null);
  // Every class in a sample, by the alphabet; else the likeliest first, by the alphabet on each page.
  item.others = item.palette ?? [...app.classes.keys()].filter((id) => !item.labels.includes(id)).sort(byName);
  search.value = "";
  wait();
  draw();
  place.parentNode.scrollTop = 0;
  try {
    await stage.show(item.image);
    if (item !== now) return;
    ready = true;
    draw(); // so that what is in view is noticed again
    if (!palette.children.length) gate();
  } catch (error) {
    if (item === now) unreadable(error.message);
  }
}

/** Let nothing be answered until there is a picture to see. */
function wait() {
  ready = false;
  done.disabled = true;
}

/** In a sample a picture is done once every class was in view beside it; until then the button shows more. */
function gate() {
  const rest = unseen().length;
  done.disabled = false;
  done.firstChild.textContent = rest ? `Show more · ${count(rest, "class", "classes")} not seen` : "Done, next picture";
}

const unseen = () => (isSample() ? item.others.filter((id) => !shown.has(id)) : []);

/** Bring classes into view that have not been there; outside of a sample, the next page of them. */
function more() {
  if (!item) return;
  if (search.value) {
    search.value = "";
    draw();
  }
  const next = [...palette.children].find((node) => !shown.has(Number(node.dataset.id)));
  if (next) next.scrollIntoView();
  else if (!pager.hidden && start + PAGE < item.others.length) turn(PAGE);
}

function turn(by) {
  start += by;
  draw();
}

function draw() {
  const text = search.value.trim().toLowerCase(), {others} = item, page = isSample() ? others.length : PAGE;
  const found = text ? others.filter((id) => nameOf(id).toLowerCase().includes(text)).slice(0, page) : others.slice(start, start + page);
  const marked = others.filter((id) => marks.has(id) && !found.includes(id));
  watch.disconnect();
  fill(labelled, [...item.labels].sort(byName).map((id) => chip(id, "doubted", "−")));
  fill(palette, [...marked, ...found.sort(byName)].map((id) => chip(id, "added", "+")));
  for (const node of palette.children) watch.observe(node);
  pager.hidden = text || others.length <= page;
  fill(pager, h("span", {class: "small"}, `${start + 1} – ${Math.min(start + PAGE, others.length)} of ${count(others.length)} classes`),
    button("‹", () => turn(-PAGE), null, {disabled: !start, "aria-label": "Earlier classes"}),
    button("›", () => turn(PAGE), null, {disabled: start + PAGE >= others.length, "aria-label": "More classes"}));
}

/** A label: a click changes it, another one makes it unsure, a third leaves it as it was. */
function chip(id, look, sign) {
  const is = marks.get(id);
  return h("button", {type: "button", class: `chip ${is ?? ""}`, "data-id": id, "aria-pressed": String(Boolean(is)),
    "aria-label": is && `${nameOf(id)}: ${said[is]}`,
    onmousedown: (event) => event.preventDefault(), // keeps the focus, so that Enter is still for the picture
    onclick: ({currentTarget}) => {
      const focused = document.activeElement === currentTarget;
      if (is === "unsure") marks.delete(id);
      else marks.set(id, is ? "unsure" : look);
      draw();
      if (focused) main.querySelector(`[data-id="${id}"]`)?.focus();
      document.getElementById("live").textContent = `${nameOf(id)}: ${said[marks.get(id)] ?? "as it was"}`;
    }}, is && h("span", {}, is === "unsure" ? "?" : sign), h("bdi", {class: "name"}, nameOf(id)));
}

/** Enter in the search takes the first class that was found; Esc leaves it. */
function typed(event) {
  const taken = event.key === "Enter" && !event.repeat;
  if (!taken && event.key !== "Escape") return;
  event.preventDefault();
  const first = taken && search.value.trim() && [...palette.children].find((node) => !marks.has(Number(node.dataset.id)));
  search.value = "";
  if (first) first.click();
  draw();
  if (taken) search.focus();
  else search.blur();
}

/** Save the picture: what is there, what is not, and what was shown. */
function settle(unread = false) {
  if (!item || (done.disabled && !unread) || app.blocked()) return;
  if (!unread && unseen().length) return more();
  const {image, labels} = item, mine = {item, marks, shown}, all = [...app.classes.keys()], ms = Math.round(performance.now() - began);
  const of = (mark) => all.filter((id) => marks.get(id) === mark).map(nameOf);
  const seen = [...new Set([...shown, ...marks.keys()])];
  const kept = labels.filter((id) => !marks.has(id)).map(nameOf);
  const answer = unread ? {there: [], not_there: [], unsure: all.map(nameOf)}
    : {there: [...kept, ...of("added")], not_there: of("doubted"), unsure: of("unsure")};
  const body = {image: image.name, ...answer, shown: seen.map(nameOf), sample: isSample() ? sample.id : null, ms};
  const here = visit;
  const send = () => {
    const client = uuid();
    app.post("/api/settle", {client, ...body});
    app.did({client, words: `${image.name} is open again.`, redo: send, undone: () => visit === here && reopen(mine)});
    say(`${image.name} is settled.`);
    if (visit !== here || item !== mine.item) return;
    past.push(mine);
    if (sample) sample.answered++;
    next();
  };
  send();
}

/** Show a picture again after its answer was undone. */
function reopen(mine) {
  past = past.filter((each) => each !== mine);
  if (item) ahead.unshift(item);
  if (sample) sample.answered--;
  turning++;
  if (!palette.isConnected) layOut();
  show(mine);
}

/** A picture that nobody can see: in a sample it counts as unsure, since leaving it out would bias the result. */
function unreadable(why) {
  const skip = () => (isSample() ? settle(true) : next(aside.push(item)));
  fill(stage.frame, h("div", {class: "middle"}, h("p", {}, why),
    button(isSample() ? "Next: it counts as unsure" : "Next", skip, null, {class: "main"})));
}

/** The sample is done: say what it measured, once that is worked out. */
async function over() {
  const now = turning;
  stop("All pictures of the sample are settled.", ["Working out the result …"]);
  for (;;) {
    const reply = await app.get("/api/sample").catch(({message}) => ({sample, result: [message]}));
    if (now !== turning) return;
    sample = reply.sample;
    const [first, ...rest] = reply.result ?? [];
    if (reply.result) app.refresh(); // the findings are measured now
    if (reply.result) return stop(first ?? `${sample.drawn} pictures are too few to measure anything.`, rest,
      button(`${STEP} more`, () => begin(sample.drawn + STEP), null, {class: first ? "" : "main"}),
      button("Go through the findings", () => app.go("focus"), null, {class: first && "main"}));
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function stop(title, lines = [], ...buttons) {
  app.bar(null);
  fill(app.foot, undo(), h("span", {class: "note"}));
  fill(main, h("div", {class: "middle result"}, h("h1", {}, title), lines.map((line) => h("p", {}, line)),
    h("div", {class: "chips"}, buttons)));
}

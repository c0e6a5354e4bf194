/** The page: boot, talk to the server, show one screen at a time. */
import {fill, h, say, uuid} from "./dom.js";
import {drawHeader, kinds, showBanner, showFilter} from "./header.js";
import {listen, showKeys} from "./keys.js";
import {Outbox} from "./outbox.js";
import {undoStack} from "./undo.js";
import {screen as dispute} from "./dispute.js";
import {screen as done} from "./done.js";
import {screen as focus} from "./focus.js";
import {examples, earlier, screen as history} from "./history.js";
import {screen as progress} from "./progress.js";
import {screen as settle} from "./settle.js";
import {screen as start} from "./start.js";
import {screen as sweep} from "./sweep.js";

const ME = "balancemix.me";
const screens = {start, focus, sweep, settle, progress, dispute, history, done};
const main = document.getElementById("main");
const tab = (sessionStorage.tab ??= uuid());
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let shown = null;

/**
 * What a screen may use. A screen is {name, show(main, app, query), hide(), keys, changed(labels),
 * reopened({row, class}), subject()}: `changed` gets what others answered, `reopened` what was undone
 * from before this page was loaded, `subject` is the class id for `E`; only `show` is needed.
 * Put the screen's line into `app.foot`, which is emptied before `show`.
 */
export const app = {
  state: null,
  classes: new Map(), // by id
  filter: {class: "", kind: ""}, // of Focus and Sweep, kept in the address
  problem: null, // why the last request failed
  foot: h("div", {class: "foot"}),
  say,

  /** Get JSON; waits while the server does not answer. Rejects with {status, code, message}. */
  async get(path) {
    for (;;) {
      try {
        return await request(path);
      } catch (error) {
        if (error.status && error.status < 500) throw error;
        await pause(1000);
      }
    }
  },
  /** Post an answer through the outbox; resolves with the reply. */
  post(path, body) {
    const reply = app.outbox.send(path, body);
    reply.catch((error) => say(`Not saved: ${error.message}`));
    return reply;
  },
  /** Whether nothing may be answered now; says why. */
  blocked() {
    if (app.outbox.full) say("Answers wait to be saved: nothing more can be answered now.");
    return app.outbox.full;
  },
  /** Show a screen by its name; a query as an object. */
  go(name, query = {}) {
    const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
    const hash = `#${name}${text && `?${text}`}`;
    if (location.hash === hash) route();
    else location.hash = hash;
  },
  /** Post key or name at once, not through the outbox. */
  key: (key, name) => request("/api/key", {key, name}),
  /** Read the state again and draw the header. */
  async refresh() {
    app.state = await app.get("/api/state");
    app.noun = app.state.pictures ? "picture" : "row";
    app.classes = new Map(app.state.classes.map((one) => [one.id, one]));
    if (app.state.me) localStorage.setItem(ME, app.state.me);
    drawHeader(app, shown?.name);
  },
  /** Show how much is done in the bar under the header; null hides it. */
  bar(part) {
    const bar = document.getElementById("bar");
    bar.hidden = part == null;
    bar.firstElementChild.style.width = `${100 * (part ?? 0)}%`;
  },
};

async function request(path, body) {
  const headers = {Tab: tab};
  if (app.state) headers.Store = app.state.store;
  if (body) headers["Content-Type"] = "application/json";
  let error = {status: 0, code: "offline", message: "The server does not answer."};
  try {
    const reply = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body),
      cache: "no-store", signal: AbortSignal.timeout(30_000)});
    if (reply.ok) {
      const value = reply.status === 204 ? null : await reply.json();
      noticed(null);
      return value;
    }
    const {error: code, message = `The server answers ${reply.status}.`} = await reply.json().catch(() => ({}));
    error = {status: reply.status, code, message};
  } catch { /* no reply, or half of one */ }
  noticed(error);
  throw error;
}

function noticed(problem) {
  const back = app.problem?.status === 0 && !problem;
  app.problem = problem;
  showBanner(app);
  if (back) app.outbox?.wake();
}

/** Show the screen that the address names. */
function route() {
  const [name, text] = location.hash.slice(1).split("?");
  const query = Object.fromEntries(new URLSearchParams(text));
  if (!app.classes.has(Number(query.class || NaN))) delete query.class;
  if (!kinds[query.kind]) delete query.kind;
  if (!query.class) delete query.labelled; // all pictures with that label
  const next = app.state.me ? screens[name] ?? start : start;
  shown?.hide?.();
  shown = next;
  for (const box of document.querySelectorAll("dialog")) box.close();
  if (next === focus || next === sweep) app.filter = {class: query.class ?? "", kind: query.kind ?? ""};
  if (next !== start) localStorage.setItem(`balancemix.last.${app.state.store}`, location.hash);
  document.body.dataset.screen = next.name;
  document.title = `${next.name[0].toUpperCase()}${next.name.slice(1)} · ${app.state.data} · balancemix`;
  app.bar(null);
  main.className = "";
  fill(app.foot);
  fill(main);
  drawHeader(app, next.name);
  next.show(main, app, query);
  if (!main.contains(document.activeElement)) main.focus({preventScroll: true});
}

const everywhere = {
  z: () => app.undo(),
  Backspace: () => app.undo(),
  "shift z": () => app.redo(),
  f: () => app.go("focus", app.filter),
  s: () => app.go("sweep", app.filter),
  t: () => app.go("settle"),
  p: () => app.go("progress"),
  h: () => app.go("history"),
  e: () => examples(app, shown.subject?.()),
  "/": () => showFilter(app),
  "?": showKeys,
};

async function poll() {
  for (;;) {
    await pause(3000);
    app.outbox.adopt();
    if (document.hidden) continue;
    const reply = await request(`/api/changes?since=${app.state.seq}`).catch(() => null);
    if (!reply) continue;
    app.state.seq = reply.seq;
    if (reply.labels.length) shown.changed?.(reply.labels);
  }
}

async function boot() {
  const key = new URLSearchParams(location.hash.slice(1)).get("k");
  try {
    if (key) {
      // Out of the address bar and of the history, before anything else can fail.
      window.history.replaceState(null, "", location.pathname);
      await app.key(key, null);
    }
    await app.refresh();
    const name = localStorage.getItem(ME); // outlives a cookie that the browser lost
    if (name && !app.state.me) {
      await app.key(null, name);
      await app.refresh();
    }
  } catch (error) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "This page needs its key"), h("p", {}, ...error.message.split("`").map((text, i) => h(i % 2 ? "code" : "span", {}, text)))));
    return;
  }
  app.outbox = new Outbox(app.state.store, tab, request, () => showBanner(app));
  Object.assign(app, undoStack((body) => app.post("/api/decisions", body), (before) => earlier(app, before),
    (step) => shown.reopened?.(step)));
  const last = localStorage.getItem(`balancemix.last.${app.state.store}`);
  if (!location.hash && last && app.state.me) window.history.replaceState(null, "", last);
  listen(() => (app.state.me ? [shown.keys, everywhere] : []));
  addEventListener("hashchange", route);
  fill(document.getElementById("footer"), app.foot);
  route();
  poll();
}

boot();

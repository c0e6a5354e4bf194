/** Focus: one picture at a time, its questions one by one. */
import {button, count, fill, h, percent, uuid} from "./dom.js";
import {ruleLine} from "./dispute.js";
import {nothingLeft} from "./done.js";
import {showKeys} from "./keys.js";
import {Stage, address, prefetch} from "./stage.js";

const BEHIND = 3, AHEAD = 5, HELD = 14; // pictures
const answers = {present: "Yes", absent: "No", unsure: "Unsure"};
let focus = null;

export const screen = {
  name: "focus",
  show(main, app, query) { focus = new Focus(main, app, query); },
  hide() { focus.live = false; },
  changed: (labels) => focus.changed(labels),
  subject: () => focus.finding?.class,
  get keys() { return {...focus.stage.keys, ...focus.keys}; },
};

class Focus {
  constructor(main, app, query) {
    Object.assign(this, {main, app, query, items: [], at: -1, live: true, aside: new Set(), told: 0, todo: null});
    this.stage = new Stage(h("div"));
    this.ask = h("section", {class: "ask", "aria-label": "Question"});
    this.answers = h("div", {class: "answers", role: "group", "aria-label": "Answer",
      onkeydown: still, onkeyup: still, onmousedown: (event) => event.preventDefault()});
    this.labels = h("section", {class: "labels", "aria-label": "Labels of this picture"});
    this.strip = h("nav", {class: "strip", "aria-label": "Pictures"});
    this.left = h("span", {class: "small left"});
    const undo = () => button("Undo", () => app.undo(), "Z");
    this.stage.tools.append(h("span", {class: "phone"}, undo()));
    fill(main, this.stage.frame.parentNode, this.ask, this.labels, this.answers);
    fill(app.foot, button("← Back", () => this.step(-1), null, {"aria-keyshortcuts": "ArrowLeft"}), undo(),
      this.strip, h("span", {class: "note"}), this.left, button("Keys", showKeys, "?"));
    this.keys = {
      y: () => this.answer("present"), n: () => this.answer("absent"), u: () => this.answer("unsure"),
      a: () => this.answer(this.finding?.suggested ? "present" : "absent"),
      x: () => this.answer(this.finding?.suggested ? "absent" : "present"),
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
    };
    for (let n = 1; n <= 9; n++) this.keys[n] = () => this.choose(n - 1);
    this.next();
  }

  get item() { return this.items[this.at]; }
  get finding() { return this.item?.findings[this.pick]; }

  /** Whether a finding is still to be asked; others' answers close it, `unsure` asks once more. */
  asks(finding) {
    const {class: id, kind} = this.app.filter;
    if (finding.closed || (id !== "" && finding.class !== Number(id)) || (kind && finding.problem !== kind)) return false;
    return this.query.unsure ? finding.mine === "unsure" && !finding.again : finding.mine == null;
  }

  open(item) { return !this.aside.has(item.image.row) && item.findings.some((finding) => this.asks(finding)); }

  /** Go to the next picture with an open question, or say that there is none. */
  async next() {
    const {items} = this;
    let i = items.findIndex((item, j) => j > this.at && this.open(item));
    if (i < 0) i = items.findIndex((item) => this.open(item));
    if (i >= 0) return this.go(i);
    if (await this.refill() || items.some((item) => this.open(item))) return this.live && this.next();
    if (this.live) nothingLeft(this.main, this.app, this.query, this.todo, () => {
      this.query.others = 1;
      this.app.go("focus", {...this.query});
    });
  }

  /** Fetch more pictures; resolves to whether any came. */
  refill() {
    return (this.filling ??= this.fetchMore().finally(() => { this.filling = null; }));
  }

  async fetchMore() {
    const held = [...this.items.map((item) => item.image.row), ...this.aside];
    const query = new URLSearchParams({...this.query, n: AHEAD + 1, holding: held.join(",")});
    this.todo = await this.app.get(`/api/queue?${query}`);
    const more = this.todo.items.filter((item) => !held.includes(item.image.row));
    this.items.push(...more);
    while (this.items.length > HELD && this.at > BEHIND) {
      this.items.shift();
      this.at--;
    }
    if (this.live && this.at >= 0) this.drawStrip();
    return more.length > 0;
  }

  async go(i, pick) {
    this.at = i;
    const {item} = this;
    this.pick = pick ?? Math.max(0, item.findings.findIndex((finding) => this.asks(finding)));
    this.draw();
    this.main.classList.add("gated");
    if (this.stage.image !== item.image) {
      try {
        if (!await this.stage.show(item.image)) return;
      } catch (error) {
        return this.setAside(item, error.message);
      }
    }
    this.since = performance.now();
    this.main.classList.toggle("gated", !this.stage.ready);
    for (const later of this.items.slice(i + 1, i + 4)) if (later.image.values == null) prefetch(later.image).catch(() => {});
    if (this.items.length - i <= AHEAD) this.refill();
  }

  setAside(item, why) {
    this.aside.add(item.image.row);
    const n = item.findings.length;
    fill(this.ask, h("h1", {}, "Set aside"), h("p", {role: "alert"}, `${why} Its ${count(n, "finding")} ${n === 1 ? "is" : "are"} set aside.`),
      button("Next", () => this.next(), null, {class: "main"}));
    fill(this.answers);
    fill(this.labels);
    this.ask.querySelector("button").focus();
  }

  step(by) {
    const i = this.at + by;
    if (i < 0) return this.app.say("This is the first picture.");
    if (i >= this.items.length) return this.next();
    this.go(i);
  }

  choose(pick) {
    if (!this.item?.findings[pick] || this.aside.has(this.item.image.row)) return;
    this.pick = pick;
    this.since = performance.now();
    this.draw();
  }

  /** Answer the question, once its picture can be seen; shows the next one at once. */
  answer(verdict, event) {
    const {app, stage, item, finding} = this;
    if (!finding || !stage.ready || stage.image !== item.image || app.blocked()) return;
    if (event?.detail > 1) return; // the second click of two was meant for this question, not the next
    const decision = {image: item.image.name, class: app.classes.get(finding.class).name, verdict, mode: "focus",
      batch: null, suggested: finding.suggested, p: finding.p, probe: finding.probe,
      width: stage.picture ? stage.shownWidth : null, whole: stage.whole, ms: Math.round(performance.now() - this.since)};
    this.write(item, finding, decision);
    const rest = item.findings.findIndex((each) => this.asks(each));
    if (rest >= 0) this.choose(rest);
    else this.next();
  }

  write(item, finding, decision) {
    const {app} = this, client = uuid(), before = {mine: finding.mine, again: finding.again};
    Object.assign(finding, {mine: decision.verdict, again: true});
    this.told++;
    app.post("/api/decisions", {decisions: [{client, ...decision}]}).then((reply) => {
      for (const {who, verdict} of reply.told) {
        app.say(who === app.state.me ? `You answered this in another tab: ${answers[verdict]}.`
          : `${who} has just answered this one. Yours counts as a second opinion.`);
      }
    }, () => Object.assign(finding, before));
    app.did({
      client,
      words: `“${decision.class}” on ${decision.image} is open again.`,
      undone: () => { Object.assign(finding, before); this.told--; this.back(item, finding); },
      redo: () => { this.back(item, finding); this.write(item, finding, decision); this.draw(); },
    });
    app.say(`${effect(finding, decision.verdict)} ${decision.class}. ${this.place()}`);
    if (!this.live) return;
    this.drawStrip();
  }

  /** Show a picture again, also if it has left the list. */
  back(item, finding) {
    if (!this.live) return;
    if (!this.items.includes(item)) this.items.unshift(item);
    this.go(this.items.indexOf(item), item.findings.indexOf(finding));
  }

  /** Take in what others, or oneself in another tab, answered; never under one's eyes. */
  async changed(labels) {
    for (const {row, class: id} of labels) {
      const item = this.items.find((each) => each.image.row === row);
      const finding = item?.findings.find((each) => each.class === id);
      if (!finding || finding.mine != null || item === this.item) continue;
      const fresh = (await this.app.get(`/api/item?row=${row}`)).findings.find((each) => each.class === id);
      if (fresh && finding.mine == null) Object.assign(finding, fresh, {closed: fresh.state !== "open"});
    }
  }

  place() {
    if (!this.todo) return "";
    const done = this.todo.answered + this.told;
    return `${count(done)} of ${count(this.todo.answered + this.todo.open)}`;
  }

  draw() {
    if (!this.live) return;
    const {app, item, finding} = this, {name} = app.classes.get(finding.class);
    const [before, after] = app.state.question.split("{class}");
    const n = item.findings.length;
    fill(this.ask,
      h("p", {class: "small"}, n === 1 ? "One question about this picture" : `Question ${this.pick + 1} of ${n} about this picture`),
      h("h1", {}, before, h("bdi", {}, name), after),
      h("p", {class: "soft"}, ...evidence(app.state, finding)),
      ruleLine(app, finding.class),
      h("p", {class: "note phone"}));
    const given = finding.given === 1, [yes, no] = given ? [`keep “${name}”`, `− remove “${name}”`]
      : [`+ add “${name}”`, finding.given === 0 ? "leave it off" : "mark it as not there"];
    const answer = (verdict, key, words, mark) => h("button", {type: "button", "aria-keyshortcuts": key,
      "aria-pressed": String(finding.mine === verdict), class: mark, onclick: (event) => this.answer(verdict, event)},
    h("strong", {}, answers[verdict]), h("span", {}, words), h("kbd", {"aria-hidden": "true"}, key));
    fill(this.answers, answer("present", "Y", yes, given ? "" : "adds"), answer("absent", "N", no, given ? "removes" : ""),
      answer("unsure", "U", "changes nothing", "unsure"));
    const asked = new Set(item.findings.map((each) => each.class));
    fill(this.labels, h("p", {class: "small row"}, h("span", {}, "Labels of this picture"), h("span", {}, item.image.name)),
      h("div", {class: "chips"}, item.findings.map((each, i) => this.chip(each, i)),
        item.labels.filter((id) => !asked.has(id)).map((id) => h("span", {class: "chip"}, app.classes.get(id).name))));
    this.drawStrip();
  }

  chip(finding, i) {
    const {given, mine, suggested, p} = finding, {name} = this.app.classes.get(finding.class);
    const there = mine ? mine === "present" : suggested === 1;
    const [style, sign] = mine === "unsure" ? ["unsure", "?"] : there === (given === 1) && mine ? ["", there ? "" : "no"]
      : there ? ["added", "+"] : [given === 1 ? "doubted" : "", given === 1 ? "−" : "no"];
    return h("button", {type: "button", class: `chip ${style}`, "aria-current": String(i === this.pick),
      "aria-keyshortcuts": i < 9 && `${i + 1}`, onclick: () => this.choose(i)},
    sign && h("span", {}, sign), !mine && i < 9 && this.item.findings.length > 1 && h("kbd", {}, `${i + 1}`),
    h("bdi", {class: "name"}, name), mine ? mine !== "unsure" && h("span", {}, "✓")
      : !this.app.state.blind && h("small", {}, `${percent(p)} %`));
  }

  drawStrip() {
    const {items, at, todo} = this, from = Math.max(0, at - BEHIND);
    fill(this.strip, items.slice(from, at + AHEAD + 1).map((item, j) => {
      const done = !this.open(item), {image} = item;
      return h("button", {type: "button", class: done ? "done" : "", "aria-current": String(from + j === at),
        "aria-label": `${image.name}${done ? ", answered" : ""}`, onclick: () => this.go(from + j)},
      image.values == null && h("img", {src: address(image, 256), alt: ""}));
    }));
    if (!todo) return;
    this.left.textContent = this.place() + (todo.minutes ? ` · about ${count(todo.minutes)} min left` : "");
    this.app.bar((todo.answered + this.told) / Math.max(1, todo.answered + todo.open));
  }
}

/** Say what is known: the label, and what the audit thinks of it. */
function evidence({measured, blind}, {given, problem, p}) {
  const label = given === 1 ? "Labelled." : given === 0 ? "Not labelled." : "Label unknown.";
  if (blind) return [label];
  if (measured) return [`${label} Findings like this are right `, h("strong", {}, `${percent(p)} times in 100`), " (measured)."];
  return problem === "wrong" ? [`${label} The audit is `, h("strong", {}, `${percent(p)} %`), " sure that it is not there (modelled)."]
    : [`${label} The audit gives it `, h("strong", {}, `${percent(p)} %`), " (modelled)."];
}

function effect({given}, verdict) {
  if (verdict === "unsure") return "Unsure about";
  return verdict === "present" ? (given === 1 ? "Kept" : "Added") : given === 1 ? "Removed" : "Left off";
}

/** Space scrolls and answers nothing, also on a button that was clicked before. */
function still(event) {
  if (event.key === " ") event.preventDefault();
}

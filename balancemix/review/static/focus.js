/** Focus: one picture at a time, its questions one by one. */
import {button, count, fill, h, uuid} from "./dom.js";
import {nothingLeft} from "./done.js";
import {showKeys} from "./keys.js";
import {answers, drawAnswers, drawLabels, drawQuestion, effect} from "./question.js";
import {Stage, address, prefetch} from "./stage.js";

const BEHIND = 3, AHEAD = 5, HELD = 14; // pictures
let focus = null;

export const screen = {
  name: "focus",
  show(main, app, query) { focus = new Focus(main, app, query); },
  hide() { focus.live = false; },
  changed: (labels) => focus.changed(labels),
  reopened: (step) => focus.reopened(step),
  subject: () => focus.finding?.class,
  get keys() { return {...focus.stage.keys, ...focus.keys}; },
};

class Focus {
  constructor(main, app, query) {
    Object.assign(this, {main, app, query, items: [], at: -1, live: true, aside: new Set(), finished: 0});
    this.place = h("div");
    this.stage = new Stage(this.place);
    this.ask = h("section", {class: "ask", "aria-label": "Question"});
    this.bar = h("div", {class: "answers", role: "group", "aria-label": "Answer",
      onkeydown: still, onkeyup: still, onmousedown: (event) => event.preventDefault()});
    this.note = h("p", {class: "note phone"});
    this.labels = h("section", {class: "labels", "aria-label": "Labels of this picture"});
    this.strip = h("div", {class: "strip", role: "group", "aria-label": "Pictures"});
    this.left = h("span", {class: "small left"});
    const undo = () => button("Undo", () => app.undo(), "Z");
    this.stage.tools.append(h("span", {class: "phone"}, undo()));
    this.layOut();
    fill(app.foot, button("← Back", () => this.step(-1), null, {"aria-keyshortcuts": "ArrowLeft"}), undo(),
      this.strip, h("span", {class: "note"}), this.left, button("Keys", showKeys, "?"));
    this.keys = {
      y: () => this.answer("present"), n: () => this.answer("absent"), u: () => this.answer("unsure"),
      a: () => this.judge(1), x: () => this.judge(0),
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
    };
    for (let n = 1; n <= 9; n++) this.keys[n] = () => this.choose(n - 1);
    this.next();
  }

  layOut() { fill(this.main, this.place, this.ask, this.labels, this.bar); }

  /** Accept or reject what the audit suggests, if it does. */
  judge(right) {
    const {suggested} = this.finding ?? {};
    if (suggested != null) this.answer(suggested === right ? "present" : "absent");
  }

  get item() { return this.items[this.at]; }
  get finding() { return this.item?.findings[this.pick]; }

  /** Whether a finding is still to be asked about; unsure ones once more if that was chosen. */
  asks({mine, state, again}) {
    return this.query.unsure ? state === "unsure" && !again : mine == null && /open|unsure/.test(state);
  }

  open(item) { return !this.aside.has(item.image.row) && item.findings.some((each) => this.asks(each)); }

  /** Go to the next picture with an open question, or say that there is none. */
  async next() {
    const {items} = this;
    let i = items.findIndex((item, j) => j > this.at && this.open(item));
    if (i < 0) i = items.findIndex((item) => this.open(item));
    if (i >= 0) return this.go(i);
    this.gate(true);
    const more = await this.refill();
    if (!this.live) return;
    if (more) this.next();
    else nothingLeft(this.main, this.app, this.query, this.todo);
  }

  /** Let nothing be answered until there is a picture to see. */
  gate(shut) {
    this.gated = shut;
    this.main.classList.toggle("gated", shut);
  }

  /** Fetch more pictures; resolves to whether any came. */
  refill() {
    return (this.filling ??= this.fetchMore().finally(() => { this.filling = null; }));
  }

  async fetchMore() {
    const held = [...this.items.map((item) => item.image.row), ...this.aside], {finished} = this;
    const exact = !this.todo || !this.app.outbox.waiting; // else the server does not know all answers yet
    const todo = await this.app.get(`/api/${this.query.labelled ? "labelled" : "queue"}?${new URLSearchParams({...this.query, n: AHEAD + 1, holding: held.join()})}`);
    if (exact) {
      this.todo = todo;
      this.finished -= finished;
    }
    this.items.push(...todo.items);
    while (this.items.length > HELD && this.at > BEHIND) {
      this.items.shift();
      this.at--;
    }
    if (this.live && this.item) this.drawStrip();
    return todo.items.length > 0;
  }

  async go(i, pick) {
    this.at = i;
    const {item, stage} = this;
    this.pick = pick ?? Math.max(0, item.findings.findIndex((each) => this.asks(each)));
    this.draw();
    if (stage.image !== item.image) {
      this.gate(true);
      try {
        if (!await stage.show(item.image)) return;
      } catch (error) {
        return this.setAside(item, error.message);
      }
    }
    const first = !this.since;
    this.since = performance.now();
    this.gate(!stage.ready);
    if (first) this.drawStrip();
    for (const {image} of this.items.slice(this.at + 1, this.at + 4)) if (image.values == null) prefetch(image, stage.width).catch(() => {});
    if (this.items.length - this.at <= AHEAD) this.refill();
  }

  setAside(item, why) {
    this.aside.add(item.image.row);
    const n = item.findings.length;
    const text = `${why} ${n === 1 ? "Its finding is" : `Its ${n} findings are`} set aside.`;
    const next = button("Next", () => this.next(), null, {class: "main"});
    fill(this.ask, h("h1", {}, "No picture"), h("p", {role: "alert"}, text), next);
    fill(this.bar);
    fill(this.labels);
    next.focus();
  }

  step(by) {
    const i = this.at + by;
    if (i < 0) this.app.say("This is the first picture.");
    else if (i < this.items.length) this.go(i);
    else this.next();
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
    if (!finding || this.gated || app.blocked()) return;
    if (event?.detail > 1) return; // the second click of two was not meant for the next question
    this.write(item, finding, {
      image: item.image.name, class: app.classes.get(finding.class).name, verdict, mode: "focus", batch: null,
      suggested: finding.suggested, p: finding.p, probe: finding.probe, width: stage.picture && stage.shownWidth,
      whole: stage.whole, ms: Math.round(performance.now() - this.since)});
    const rest = item.findings.findIndex((each) => this.asks(each));
    if (rest >= 0) this.choose(rest);
    else this.next();
  }

  write(item, finding, decision) {
    const {app} = this, client = uuid(), before = {mine: finding.mine, again: finding.again};
    const set = (values) => {
      const was = this.open(item);
      Object.assign(finding, values);
      this.finished += was - this.open(item);
    };
    set({mine: decision.verdict, again: true});
    app.post("/api/decisions", {decisions: [{client, ...decision}]}).then((reply) => {
      for (const {who, verdict} of reply.told) {
        app.say(who === app.state.me ? `You answered this in another tab: ${answers[verdict]}.`
          : `${who} has just answered this one. Yours counts as a second opinion.`);
      }
    }, () => set(before));
    app.did({
      client,
      words: `“${decision.class}” on ${decision.image} is open again.`,
      undone: () => {
        set(before);
        if (this.live) this.back(item, finding);
        else if (focus.live) focus.reopened({row: item.image.row, class: decision.class});
      },
      redo: () => { this.back(item, finding); this.write(item, finding, decision); this.back(item, finding); },
    });
    const said = `${effect(finding, decision.verdict)} “${decision.class}”.`;
    app.say(`${said} ${this.progress()}`, said);
  }

  /** Show a picture again, also if it has left the list. */
  back(item, finding) {
    if (!this.live) return;
    if (!this.items.includes(item)) this.items.unshift(item);
    this.go(this.items.indexOf(item), item.findings.indexOf(finding));
  }

  /** Ask again what was undone, from before this page was loaded. */
  async reopened({row, class: name}) {
    if (row == null) return;
    const item = this.items.find((each) => each.image.row === row) ?? await this.app.get(`/api/item?row=${row}`);
    const finding = item.findings.find((each) => this.app.classes.get(each.class).name === name);
    if (!finding) return;
    finding.mine = null;
    this.back(item, finding);
  }

  /** Take in what others, or oneself in another tab, answered; not under one's eyes. */
  async changed(labels) {
    for (const {row, class: id} of labels) {
      const item = this.items.find((each) => each.image.row === row);
      const finding = item?.findings.find((each) => each.class === id);
      if (!finding || finding.mine || item === this.item) continue;
      const {findings} = await this.app.get(`/api/item?row=${row}`);
      if (!finding.mine) Object.assign(finding, findings.find((each) => each.class === id));
    }
  }

  progress() {
    const {answered, open} = this.todo;
    return `${count(answered + this.finished)} of ${count(answered + open, this.app.noun)}`;
  }

  draw() {
    if (!this.live) return;
    const {app, item, finding, pick} = this;
    if (!this.ask.isConnected) this.layOut(); // after the end was shown
    drawQuestion(this.ask, app, finding, pick, item.findings.length);
    this.ask.append(this.note);
    drawAnswers(this.bar, app, finding, (verdict, event) => this.answer(verdict, event));
    drawLabels(this.labels, app, item, pick, (i) => this.choose(i));
    this.drawStrip();
  }

  /** Draw the pictures before and after; they are fetched only once the first picture is there. */
  drawStrip() {
    const {items, at, todo, since} = this, from = Math.max(0, at - BEHIND);
    fill(this.strip, items.slice(from, at + AHEAD + 1).map((item, j) => {
      const done = !this.open(item), {image} = item;
      return h("button", {type: "button", class: done && "done", "aria-current": String(from + j === at),
        "aria-label": `${image.name}${done ? ", answered" : ""}`, onclick: () => this.go(from + j)},
      image.values == null ? since && h("img", {src: address(image, 256), alt: "", onerror: (event) => event.target.remove()})
        : h("small", {}, image.name));
    }));
    const {minutes} = todo;
    this.left.textContent = this.progress() + (minutes ? ` · about ${count(minutes)} min left` : "");
    this.app.bar((todo.answered + this.finished) / Math.max(1, todo.answered + todo.open));
  }
}

/** Space scrolls and answers nothing, also on a button that was clicked before. */
function still(event) {
  if (event.key === " ") event.preventDefault();
}

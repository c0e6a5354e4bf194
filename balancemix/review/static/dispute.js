/** Dispute: two people differ about a label; a third look resolves it. And the rules of classes. */
import {button, count, fill, h, uuid} from "./dom.js";
import {answers, drawAnswers} from "./question.js";
import {Stage} from "./stage.js";

const RECORD = "Your answer resolves it. Both earlier answers stay on record.";
let shown = null;

export const screen = {
  name: "dispute",
  show(main, app) { shown = new Dispute(main, app); },
  hide() { shown.live = false; },
  subject: () => shown.item?.class,
  get keys() { return {...shown.stage.keys, ...shown.keys}; },
};

class Dispute {
  constructor(main, app) {
    Object.assign(this, {main, app, live: true, at: 0, items: []});
    const place = h("div");
    this.stage = new Stage(place);
    this.ask = h("section", {class: "ask", "aria-label": "Question"});
    this.labels = h("section", {class: "labels", "aria-label": "Rule"});
    this.bar = h("div", {class: "answers", role: "group", "aria-label": "Answer", onmousedown: (event) => event.preventDefault()});
    this.keys = {y: () => this.answer("present"), n: () => this.answer("absent"), u: () => this.step(1),
      ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1)};
    this.parts = [place, this.ask, this.labels, this.bar];
    const undo = () => button("Undo", () => app.undo(), "Z");
    this.stage.tools.append(h("span", {class: "phone"}, undo()));
    fill(app.foot, undo(), h("span", {class: "note"}, RECORD));
    this.load();
  }

  get item() { return this.items[this.at]; }

  async load() {
    const {items} = await this.app.get("/api/disputes");
    if (!this.live) return;
    this.items = items;
    this.draw();
  }

  step(by) {
    this.at = (this.at + by + this.items.length) % Math.max(1, this.items.length);
    this.draw();
  }

  async draw() {
    const {app, item, items, main, stage} = this;
    if (!item) {
      fill(app.foot);
      fill(main, h("div", {class: "middle"}, h("h1", {}, "Nobody differs."), h("p", {}, "Labels on which two people give different answers are asked again here."),
        button("Go on in Focus", () => app.go("focus"), null, {class: "main"})));
      return;
    }
    if (!main.contains(this.bar)) fill(main, ...this.parts);
    const {name} = app.classes.get(item.class), [before, after] = app.state.question.split("{class}");
    fill(this.ask, h("p", {class: "small"}, `Second opinions · ${count(this.at + 1)} of ${count(items.length)} · ${item.image.name}`),
      h("h1", {}, before, h("bdi", {}, name), after), h("div", {class: "opinions"}, item.opinions.map(opinion)),
      h("p", {class: "soft"}, "Until this is resolved the label stays as it was given: ",
        h("strong", {}, item.given === 1 ? h("bdi", {}, name) : item.given === 0 ? `no “${name}”` : "unknown"), ", not verified."), h("p", {class: "note phone"}, RECORD));
    fill(this.labels, ruleLine(app, item.class));
    drawAnswers(this.bar, app, item, (verdict) => (verdict === "unsure" ? this.step(1) : this.answer(verdict)));
    const [words, why] = this.bar.lastChild.children;
    words.textContent = "Leave it open";
    why.textContent = "it stays as given";
    if (stage.image === item.image) return;
    main.classList.add("gated");
    const done = await stage.show(item.image).catch((error) => this.ask.append(h("p", {role: "alert"}, error.message)));
    this.since = performance.now();
    if (done) main.classList.toggle("gated", !stage.ready);
  }

  answer(verdict) {
    const {app, item, stage} = this;
    if (!item || !stage.ready || stage.image !== item.image || app.blocked()) return;
    const decision = {image: item.image.name, class: app.classes.get(item.class).name, verdict, mode: "resolve",
      width: stage.picture && stage.shownWidth, whole: stage.whole, ms: Math.round(performance.now() - this.since)};
    this.write(item, decision);
  }

  write(item, decision) {
    const {app} = this, client = uuid();
    app.post("/api/decisions", {decisions: [{client, ...decision}]});
    this.items = this.items.filter((each) => each !== item);
    this.at = Math.min(this.at, Math.max(0, this.items.length - 1));
    app.did({client, words: `“${decision.class}” on ${decision.image} is in dispute again.`,
      undone: () => {
        this.items.unshift(item);
        this.at = 0;
        if (this.live) this.draw();
      },
      redo: () => this.write(item, decision)});
    app.say(`Resolved: ${answers[decision.verdict]}, “${decision.class}” on ${decision.image}.`);
    if (this.live) this.draw();
  }
}

function opinion({who, verdict, at, mode, ms}) {
  return h("div", {class: "card"}, h("div", {class: "row"}, h("span", {class: "face", "aria-hidden": "true"}, [...who][0].toUpperCase()), h("span", {}, who)),
    h("strong", {}, answers[verdict]), h("p", {class: "small"}, `${when(at)} · ${mode}${ms ? `, ${(ms / 1000).toFixed(1)} s` : ""}`));
}

/** Write a time as people say it. */
export function when(at) {
  const then = new Date(at), time = then.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
  return `${then.toDateString() === new Date().toDateString() ? "today" : then.toLocaleDateString()} ${time}`;
}

/** Show a class's rule, with a way to edit it on the spot; other screens place it beside a question. */
export function ruleLine(app, id) {
  const place = h("div", {class: "rule"});
  const draw = () => {
    const {name, rule} = app.classes.get(id);
    fill(place, button(rule || "Add a rule", edit, null, {"aria-label": `Rule for “${name}”: ${rule || "none"}. Edit`, title: `Rule for “${name}”, shown with every question about it`}));
  };
  const edit = () => {
    const one = app.classes.get(id);
    const text = h("input", {value: one.rule, maxLength: 200, "aria-label": `Rule for “${one.name}”`, onkeydown: (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      draw();
    }});
    fill(place, h("form", {onsubmit: (event) => {
      event.preventDefault();
      const line = text.value.trim().replace(/\s+/g, " ");
      if (line !== one.rule) app.post("/api/rules", {class: one.name, text: line});
      one.rule = line;
      draw();
      place.firstChild.focus();
    }}, h("label", {class: "small"}, `Rule for “${one.name}”, shown with every question about it`, text), h("button", {}, "Save the rule")));
    text.focus();
  };
  draw();
  return place;
}

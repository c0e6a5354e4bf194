/** History: every answer, any of which can be changed. And examples of a class. */
import {button, dialog, fill, h, uuid} from "./dom.js";
import {when} from "./dispute.js";
import {answers, drawAnswers} from "./question.js";
import {Stage, address} from "./stage.js";

const said = {...answers, settled: "Settled"};
const open = (one) => (one.class === null ? `${one.image} is to be settled again.` : `“${one.class}” on ${one.image} is open again.`);

export const screen = {
  name: "history",
  show(main, app) {
    const list = h("ol"), more = button("Show more", () => load());
    fill(main, h("div", {class: "history"}, h("h1", {}, "History"), list, more, h("p", {class: "note", role: "status"})));
    more.hidden = true; // hidden later, it would take the focus with it
    let before = "";
    async function load() {
      const reply = await app.get(`/api/history?before=${before}`);
      list.append(...reply.entries.map((one) => line(app, one)));
      before = reply.before ?? "";
      more.hidden = !reply.before;
      if (!list.children.length) fill(list, h("li", {}, "Nobody has answered anything yet."));
    }
    load();
  },
};

function line(app, one) {
  const {who, image, class: name, verdict, at, undone, row} = one, item = h("li");
  const about = name === null ? [said[verdict], " · ", image] : [said[verdict], " · ", h("bdi", {}, name), " · ", image];
  fill(item, h("span", {class: undone && "gone"}, ...about), h("span", {class: "small"}, `${who} · ${one.mode} · ${when(at)}${undone ? " · undone" : ""}`),
    row != null && name !== null && button("Change", () => change(app, one), null, {class: "change", "aria-label": `Change “${name}” on ${image}`}),
    who === app.state.me && !undone && button("Undo", () => {
      app.post("/api/decisions", {decisions: [{client: uuid(), verdict: "undone", undoes: one.client}]});
      app.say(`Undone: ${open(one)}`);
      const next = line(app, {...one, undone: true});
      item.replaceWith(next);
      next.querySelector("button")?.focus();
    }, null, {"aria-label": `Undo “${name ?? "all"}” on ${image}`}));
  return item;
}

/** Show the picture of an answer and ask again. */
async function change(app, {row, class: name}) {
  const place = h("div"), bar = h("div", {class: "answers"}), column = [...app.classes.values()].find((one) => one.name === name);
  if (!column) return;
  const {image, labels, findings} = await app.get(`/api/item?row=${row}`);
  const found = findings.find((each) => each.class === column.id);
  const box = dialog(`Is “${name}” there?`, h("div", {class: "look gated"}, place, bar));
  const stage = new Stage(place), since = performance.now();
  drawAnswers(bar, app, found ?? {class: column.id, given: labels.includes(column.id) ? 1 : 0}, (verdict) => {
    if (!stage.ready || app.blocked()) return;
    const client = uuid();
    app.post("/api/decisions", {decisions: [{client, image: image.name, class: name, verdict, mode: "focus",
      suggested: found?.suggested ?? null, p: found?.p ?? null, width: stage.picture && stage.shownWidth,
      whole: stage.whole, ms: Math.round(performance.now() - since)}]}).then(() => app.go("history"));
    app.did({client, words: `“${name}” on ${image.name} is as it was before.`, undone: () => {}});
    app.say(`${said[verdict]}: “${name}” on ${image.name}.`);
    box.close();
  });
  await stage.show(image).catch((error) => fill(bar, h("p", {role: "alert"}, error.message)));
  if (stage.ready) bar.parentNode.classList.remove("gated");
}

/** Find one's newest answer before a number of the log that is not undone: {client, words, seq}, or null. */
export async function earlier(app, before) {
  const {entries: [one]} = await app.get(`/api/history?mine=1&n=1&before=${before ?? ""}`);
  if (!one) return null;
  const words = one.mode === "sweep" ? `the page with ${one.image} is open again.` : open(one);
  return {client: one.batch ?? one.client, words, seq: one.seq, row: one.row, class: one.class};
}

/** Show six verified examples of a class. */
export async function examples(app, id) {
  if (id == null) return;
  const {name} = app.classes.get(id), {images} = await app.get(`/api/examples?class=${id}`);
  dialog(`Examples of “${name}”`, images.length ? h("div", {class: "examples"}, images.map((image) => (image.values == null
    ? h("img", {src: address(image, 512), alt: image.name}) : h("p", {}, `${image.name}: ${image.values}`))))
    : h("p", {}, `Nobody has verified a picture of “${name}” yet.`));
}

/** Done: what was decided, where it is stored, and what comes next; and why there is nothing to ask. */
import {button, count, fill, h} from "./dom.js";
import {address} from "./stage.js";
import {atWork} from "./tile.js";

const THUMBS = 6;

export const screen = {
  name: "done",
  async show(main, app) {
    await app.refresh();
    const {file, open, unsure, commands} = app.state;
    const command = (text) => h("div", {class: "command row"}, h("code", {}, text), copy(text));
    const counts = h("div", {class: "counts"}), tell = (n, words) => h("p", {}, h("strong", {}, count(n)), words);
    app.get("/api/progress").then(({answered, fixed, unsure: not, seconds}) => fill(counts, tell(fixed, "labels fixed"),
      tell(answered - fixed - not, "kept as they were"), tell(not, "unsure"), tell(Math.round(seconds / 60), "min of your time")));
    const thumbs = app.state.pictures && h("div", {class: "thumbs"});
    if (thumbs) last(app).then((done) => fill(thumbs, done));
    fill(main, h("div", {class: "middle"}, thumbs,
      h("h1", {}, open ? `${count(open, "finding is", "findings are")} still open.` : "Every finding is decided."),
      h("p", {}, "All answers are saved in ", h("strong", {}, file), ". Your label files have not been touched."),
      counts,
      h("p", {}, "Write them in the format they came in:"), command(commands.export),
      h("p", {}, "Or let the next audit and training trust them:"), command(commands.train),
      h("div", {class: "chips"},
        open > 0 && button("Go on", () => app.go("focus"), null, {class: "main"}),
        unsure > 0 && button(`Look at the ${count(unsure)} unsure again`, () => app.go("focus", {unsure: 1})),
        toSample(app, "Measure what is left"))));
  },
};

/** Show the pictures that were answered last, with what became of each. */
async function last(app) {
  const {entries} = await app.get("/api/history?n=50"), newest = new Map(); // by row
  for (const one of entries) if (!one.undone && one.row != null && !newest.has(one.row)) newest.set(one.row, one);
  return Promise.all([...newest.values()].slice(0, THUMBS).map(async ({row, class: name, verdict}) => {
    const {image, labels} = await app.get(`/api/item?row=${row}`);
    const given = labels.some((id) => app.classes.get(id).name === name);
    const sign = verdict === "unsure" ? "?" : verdict === "settled" || given === (verdict === "present") ? "✓" : given ? "−" : "+";
    return h("span", {class: {"+": "missing", "−": "removed"}[sign]},
      h("img", {src: address(image, 256), alt: `${sign} ${name ?? "settled"}: ${image.name}`, onerror: ({target}) => target.parentNode.remove()}), h("span", {class: "badge", "aria-hidden": "true"}, sign));
  }));
}

/** Whether all pictures of the random sample are settled. */
export const sampled = ({state: {sample}}) => Boolean(sample) && sample.answered >= sample.drawn;

/** Make the button that leads to the random sample: to begin, to go on, or to see what it says. */
export function toSample(app, words, props) {
  const {sample} = app.state, begun = sample?.answered > 0;
  return button(sampled(app) ? "See the result" : begun ? `Go on: ${count(sample.answered)} of ${count(sample.drawn)} settled` : words,
    () => app.go("settle", {order: "sample"}), null, props);
}

/** Say how many errors are modelled, if that is not measured. */
export function errorsInAll(app) {
  const {expected, labels, measured} = app.state;
  return measured ? "How many labels are wrong in all is measured, by a random sample."
    : `About ${count(Math.round(expected.wrong + expected.missing), "error")} are modelled among ${count(labels)} labels; there may be many times more.`;
}

function copy(text) {
  const made = button("Copy", async () => {
    // Browsers give a clipboard to secure pages only; elsewhere the text is selected.
    try {
      await navigator.clipboard.writeText(text);
      made.firstChild.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(made.previousSibling);
    }
  });
  return made;
}

/** Say why Focus has nothing to ask: a filter, other people, no findings, or all done. */
export function nothingLeft(main, app, query, todo) {
  const one = app.classes.get(Number(query.class || NaN)), {findings} = app.state;
  const show = (text, ...buttons) => fill(main, h("div", {class: "middle"}, h("h1", {}, text[0]), text[1] && h("p", {}, text[1]),
    h("div", {class: "chips"}, ...buttons)));
  const all = button("Show all classes", () => app.go("focus"));
  const taken = atWork(todo.others, app);
  if (taken) {
    show([taken], button("Show them anyway", () => app.go("focus", {...query, anyway: 1})));
  } else if (query.labelled) {
    show([`Every label of “${one.name}” is answered.`], all);
  } else if (one && !one.judged) {
    show([`Nothing to review for “${one.name}”.`, `“${one.name}” has ${count(one.given, "label")}, too few to judge. The audit says nothing about it, neither good nor bad.`],
      one.given > 0 && button(one.given === 1 ? "Look at it" : `Look at all ${count(one.given)}`, () => app.go("focus", {class: one.id, labelled: 1}), null, {class: "main"}), all);
  } else if (!findings) {
    show(["The audit found nothing to ask about.", errorsInAll(app)], toSample(app, "Settle 50 random pictures", {class: "main"}));
  } else if (one || query.kind) {
    show([`Nothing open for ${one ? `“${one.name}”` : "all classes"}${query.kind ? `, ${query.kind}` : ""}.`], all);
  } else app.go("done");
}

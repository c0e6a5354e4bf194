/** Done: what was decided, where it is stored, and what comes next; and why there is nothing to ask. */
import {button, count, fill, h} from "./dom.js";

export const screen = {
  name: "done",
  async show(main, app) {
    await app.refresh();
    const {file, open, unsure, commands} = app.state;
    const command = (text) => h("div", {class: "command row"}, h("code", {}, text), copy(text));
    const counts = h("div", {class: "counts"}), tell = (n, words) => h("p", {}, h("strong", {}, count(n)), words);
    app.get("/api/progress").then(({answered, fixed, unsure: not, seconds}) => fill(counts, tell(fixed, "labels fixed"),
      tell(answered - fixed - not, "kept as they were"), tell(not, "unsure"), tell(Math.round(seconds / 60), "min of your time")));
    fill(main, h("div", {class: "middle"},
      h("h1", {}, open ? `${count(open, "finding is", "findings are")} still open.` : "Every finding is decided."),
      h("p", {}, "All answers are saved in ", h("strong", {}, file), ". Your label files have not been touched."),
      counts,
      h("p", {}, "Write them in the format they came in:"), command(commands.export),
      h("p", {}, "Or let the next audit and training trust them:"), command(commands.train),
      h("div", {class: "chips"},
        open > 0 && button("Go on", () => app.go("focus"), null, {class: "main"}),
        unsure > 0 && button(`Look at the ${count(unsure)} unsure again`, () => app.go("focus", {unsure: 1})),
        button("Measure what is left", () => app.go("settle", {order: "sample"})))));
  },
};

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
  const one = app.classes.get(Number(query.class || NaN)), {findings, expected, labels} = app.state;
  const show = (text, ...buttons) => fill(main, h("div", {class: "middle"}, h("h1", {}, text[0]), text[1] && h("p", {}, text[1]),
    h("div", {class: "chips"}, ...buttons)));
  const all = button("Show all classes", () => app.go("focus"));
  const people = Object.entries(todo.others ?? {});
  if (people.length) {
    const [who, n] = people[0];
    const last = `looking at the last ${count(n, app.noun)}`;
    show([who === app.state.me ? `You are ${last} in another tab.` : `${who} is ${last}.`], button("Show them anyway", () => app.go("focus", {...query, anyway: 1})));
  } else if (one && !one.judged) {
    show([`Nothing to review for “${one.name}”.`, `“${one.name}” has ${count(one.given, "label")}, too few to judge. The audit says nothing about it, neither good nor bad.`], all);
  } else if (!findings) {
    const sure = Math.round(expected.wrong + expected.missing);
    show(["The audit found nothing to ask about.", `About ${count(sure, "error")} are modelled among ${count(labels)} labels; there may be many times more.`],
      button("Settle 50 random pictures", () => app.go("settle", {order: "sample"}), null, {class: "main"}));
  } else if (one || query.kind) {
    show([`Nothing open for ${one ? `“${one.name}”` : "all classes"}${query.kind ? `, ${query.kind}` : ""}.`], all);
  } else app.go("done");
}

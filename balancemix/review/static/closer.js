/** A tile of a sweep at full size: the question of Focus, about this one picture. */
import {button, fill, h, say, uuid} from "./dom.js";
import {answers, drawAnswers, drawLabels, drawQuestion, effect} from "./question.js";
import {Stage} from "./stage.js";

/** Show a picture of a sweep; `note(verdict)` hears each answer, null if it was undone. Returns {answer, stage}. */
export function look(main, app, item, note, back) {
  const stage = new Stage(h("div")), began = performance.now(), {image, findings: [finding]} = item;
  const ask = h("section", {class: "ask", "aria-label": "Question"}), labels = h("section", {class: "labels"});
  const bar = h("div", {class: "answers", role: "group", "aria-label": "Answer"}), {name} = app.classes.get(finding.class);
  const leave = () => button("Back to the page", back, "Esc");
  drawQuestion(ask, app, finding, 0, 1);
  drawAnswers(bar, app, finding, answer);
  drawLabels(labels, app, item, 0, () => {});
  stage.tools.append(h("span", {class: "phone"}, leave()));
  fill(main, stage.frame.parentNode, ask, labels, bar);
  fill(app.foot, leave(), h("span", {class: "note"}));
  main.classList.add("gated");
  stage.show(image).then(() => main.classList.remove("gated"), (error) => say(error.message));
  function answer(verdict) {
    if (!stage.ready || app.blocked()) return;
    const {suggested, p} = finding, ms = Math.round(performance.now() - began);
    const seen = {suggested, p, probe: false, width: stage.shownWidth, whole: stage.whole, ms};
    const send = () => {
      const client = uuid();
      app.post("/api/decisions", {decisions: [{client, image: image.name, class: name, verdict, mode: "focus", batch: null, ...seen}], passed: []});
      app.did({client, words: `“${name}” on ${image.name} is open again.`, redo: send, undone: () => note(null)});
      note(answers[verdict]);
    };
    send();
    say(`${effect(finding, verdict)} “${name}”.`);
    back();
  }
  return {answer, stage};
}

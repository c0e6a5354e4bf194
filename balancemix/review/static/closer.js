/** A tile of a sweep at full size, where Yes, No and Unsure answer about this one picture. */
import {button, fill, h, say, uuid} from "./dom.js";
import {Stage} from "./stage.js";

/** Show a picture of a sweep; `note(verdict)` hears each answer, null if it was undone. Returns {answer, stage}. */
export function look(main, app, item, subject, note, back) {
  const stage = new Stage(h("div")), began = performance.now(), {image, findings: [{suggested, p, given}]} = item;
  const acts = [["Yes", given === 1 ? "keep" : "+ add", "present", "Y"], ["No", given === 1 ? "− remove" : "leave it off", "absent", "N"],
    ["Unsure", "changes nothing", "unsure", "U"]];
  const name = `“${subject.name}”`;
  const buttons = acts.map(([word, what, verdict, key]) => button(`${word}: ${what}`, () => answer(verdict), key));
  fill(main, h("section", {class: "split"}, stage.frame.parentNode, h("div", {class: "side"}, h("p", {class: "small"}, image.name),
    h("h1", {}, app.state.question.replace("{class}", subject.name)), h("div", {class: "list"}, buttons),
    button("Back to the page", back, "Esc"))));
  stage.show(image).catch((error) => say(error.message));
  function answer(verdict) {
    if (!stage.ready || app.blocked()) return;
    const seen = {width: stage.shownWidth, whole: stage.whole, ms: Math.round(performance.now() - began)};
    const send = () => {
      const client = uuid();
      app.post("/api/decisions", {decisions: [{client, image: image.name, class: subject.name, verdict, mode: "focus",
        batch: null, suggested, p, probe: false, ...seen}], passed: []});
      app.did({client, words: `${name} on ${image.name} is open again.`, redo: send, undone: () => note(null)});
      note(verdict);
    };
    send();
    say(`${name}: ${verdict}`);
    back();
  }
  return {answer, stage};
}

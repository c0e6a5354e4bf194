/** A question about a picture: its words, its three answers, and the picture's labels. */
import {fill, h, percent} from "./dom.js";
import {ruleLine} from "./dispute.js";

/** What an answer is called. */
export const answers = {present: "Yes", absent: "No", unsure: "Unsure"};

/** Fill `ask` with the question about a finding, the nth of some about its picture. */
export function drawQuestion(ask, app, finding, n, of) {
  const {question, pictures} = app.state;
  const [before, after] = (pictures ? question : question.replace("in this picture", "true of this row")).split("{class}");
  fill(ask,
    h("p", {class: "small"}, `${of === 1 ? "One question" : `Question ${n + 1} of ${of}`} about this ${app.noun}`),
    h("h1", {}, before, h("bdi", {}, app.classes.get(finding.class).name), after),
    h("p", {class: "soft"}, ...evidence(finding)), app.classes.get(finding.class).rule && ruleLine(app, finding.class));
}

/** Say what is known: the label, and what the audit thinks of it. */
function evidence({given, p, measured}) {
  const label = given === 1 ? "Labelled." : given === 0 ? "Not labelled." : "Label unknown.";
  if (p == null) return [label];
  const sure = h("strong", {}, measured ? `${percent(p)} times in 100` : `${percent(p)} %`);
  if (measured) return [`${label} Findings like this are right `, sure, " (measured)."];
  return given === 1 ? [`${label} The audit is `, sure, " sure that it is not there (modelled)."]
    : [`${label} The audit gives it `, sure, " (modelled)."];
}

/** Fill `bar` with Yes, No and Unsure, each with what it does; `act(verdict, event)` answers. */
export function drawAnswers(bar, app, {class: id, given, mine}, act) {
  const {name} = app.classes.get(id);
  const [yes, no] = given === 1 ? [`keep “${name}”`, `− remove “${name}”`]
    : [`+ add “${name}”`, given === 0 ? "leave it off" : "mark it as not there"];
  const one = (verdict, key, words, mark) => h("button", {type: "button", class: mark, "aria-keyshortcuts": key,
    "aria-pressed": String(mine === verdict), onclick: (event) => act(verdict, event)},
  h("strong", {}, answers[verdict]), h("span", {}, words), h("kbd", {"aria-hidden": "true"}, key));
  fill(bar, one("present", "Y", yes, given === 1 ? "" : "adds"), one("absent", "N", no, given === 1 ? "removes" : ""),
    one("unsure", "U", "changes nothing", "unsure"));
}

/** Fill `box` with the labels of a picture, findings first; `choose(i)` asks about one of them. */
export function drawLabels(box, app, item, pick, choose) {
  const {findings, labels, image} = item, asked = findings.map((each) => each.class);
  const nameOf = (id) => h("bdi", {class: "name"}, app.classes.get(id).name), id = asked[pick];
  const chip = (finding, i) => {
    const {mine, p} = finding, [style, sign] = look(finding);
    return h("button", {type: "button", class: `chip ${style}`, "aria-current": String(i === pick), onclick: () => choose(i),
      "aria-keyshortcuts": i < 9 && `${i + 1}`}, sign && h("span", {}, sign),
    !mine && asked.length > 1 && i < 9 && h("kbd", {"aria-hidden": "true"}, `${i + 1}`), nameOf(finding.class),
    mine ? mine !== "unsure" && h("span", {}, "✓") : p != null && h("small", {}, `${percent(p)} %`));
  };
  fill(box, h("p", {class: "small row"}, h("span", {}, `Labels of this ${app.noun}`), h("span", {}, image.name)),
    h("div", {class: "chips"}, findings.map(chip),
      labels.filter((id) => !asked.includes(id)).map((id) => h("span", {class: "chip"}, nameOf(id)))),
    !app.classes.get(id).rule && h("div", {class: "quiet"}, ruleLine(app, id)));
}

/** Style and sign of a label: what will be of it, or what the audit suggests. */
function look({given, suggested, mine}) {
  if (mine === "unsure") return ["unsure", "?"];
  if (!mine && suggested == null) return ["", ""]; // the audit says nothing
  const there = mine ? mine === "present" : suggested === 1;
  if (there) return given === 1 ? ["", ""] : ["added", "+"];
  return given === 1 ? ["doubted", "−"] : ["", "no"];
}

/** Say what an answer does to a label. */
export function effect({given}, verdict) {
  if (verdict === "unsure") return "Unsure about";
  return verdict === "present" ? (given === 1 ? "Kept" : "Added") : given === 1 ? "Removed" : "Left off";
}

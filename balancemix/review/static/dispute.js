/** Dispute: to be filled. */
import {fill, h} from "./dom.js";

export const screen = {
  name: "dispute",
  show(main) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "Dispute")));
  },
};

/** Show a class's rule, with a way to edit it on the spot; other screens place it beside a question. */
export function ruleLine(app, id) {
  const {rule} = app.classes.get(id);
  return h("p", {class: "rule"}, rule);
}

/** History: every answer, any of which can be changed. To be filled. */
import {dialog, fill, h} from "./dom.js";

export const screen = {
  name: "history",
  show(main) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "History")));
  },
};

/** Find one's newest answer before a number of the log that is not undone: {client, words, seq}, or null. */
export async function earlier() {
  return null;
}

/** Show six verified examples of a class. */
export function examples(app, id) {
  if (id != null) dialog(`Examples of “${app.classes.get(id).name}”`);
}

/** Progress: to be filled. */
import {fill, h} from "./dom.js";

export const screen = {
  name: "progress",
  show(main) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "Progress")));
  },
};

/** Sweep: to be filled. */
import {fill, h} from "./dom.js";

export const screen = {
  name: "sweep",
  show(main) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "Sweep")));
  },
};

/** Settle: to be filled. */
import {fill, h} from "./dom.js";

export const screen = {
  name: "settle",
  show(main) {
    fill(main, h("div", {class: "middle"}, h("h1", {}, "Settle")));
  },
};

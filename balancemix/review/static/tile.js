/** A tile of a sweep: its picture, its badge, and whether it has been seen. */
import {count, fill, h} from "./dom.js";
import {address} from "./stage.js";

export class Tile {
  /** Make a tile; `changed()` is called when it may have become seen. */
  constructor(item, width, onclick, changed) {
    const {image} = item;
    this.badge = h("span", {class: "badge"});
    const picture = image.values == null ? h("img", {alt: "", src: address(image, width), draggable: false})
      : h("p", {}, h("b", {}, image.name), h("br"), image.values);
    this.node = h("div", {role: "option", onclick}, picture, this.badge);
    Object.assign(this, {item, changed, row: image.row, name: image.name, seen: false});
    Promise.resolve(picture.decode?.()).then(() => this.see({drawn: true}), () => {
      fill(this.node, h("p", {}, `${image.name} cannot be read. It is set aside.`));
      this.see({bad: true});
    });
  }

  /** A tile is seen once it is drawn and in view, or cannot be. */
  see(news) {
    Object.assign(this, news);
    this.seen ||= Boolean(this.bad || (this.drawn && this.inView));
    this.changed();
  }

  /** Whether the page asks about it. */
  get asked() { return !this.bad && !this.answered; }

  paint(look, badge, words, selected) {
    this.node.className = `tile ${look}`;
    this.badge.textContent = badge;
    this.words = `${this.name}: ${words}`;
    this.node.setAttribute("aria-label", this.words);
    this.node.setAttribute("aria-selected", String(selected));
  }
}

/** Say who looks at the pictures that are left; nothing if nobody does. */
export function atWork(others, app) {
  const names = Object.keys(others), n = Object.values(others).reduce((sum, each) => sum + each, 0);
  const last = `looking at the last ${count(n, app.noun)}`;
  if (names.length === 1 && names[0] === app.state.me) return `You are ${last} in another tab.`;
  return n ? `${names.join(" and ")} ${names.length > 1 ? "are" : "is"} ${last}.` : "";
}

/** Wait until what was answered is stored: else the server would ask about it again. */
export async function stored(app) {
  while (app.outbox.waiting) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A picture to look at closely; it knows when it can be seen, and how large it was seen. */
import {button, fill, h} from "./dom.js";

const WIDTHS = [512, 1280, 2048], KEPT = 12, CLOSEST = 8;
const decoded = new Map(); // address → promise of an image

/** Name the address of a picture at one of the widths 256, 512, 1280, 2048. */
export const address = (image, width) => `/image/${image.row}/${width}?v=${image.v}`;

/** Fetch and decode a picture before it is asked for. */
export function prefetch(image, width = 1280) {
  const url = address(image, width);
  if (!decoded.has(url)) {
    const picture = h("img", {alt: image.name, draggable: false, src: url});
    decoded.set(url, picture.decode().then(() => picture));
    decoded.get(url).catch(() => decoded.delete(url));
    if (decoded.size > KEPT) decoded.delete(decoded.keys().next().value);
  }
  return decoded.get(url);
}

/** Ask why a picture was not sent; null if it is worth trying again. */
async function reason(url) {
  const reply = await fetch(url).catch(() => null);
  if (!reply || reply.ok || reply.status >= 500) return null;
  return (await reply.json().catch(() => null))?.message ?? "This picture cannot be read.";
}

export class Stage {
  /** Fill an element with a frame for the picture and the controls beside it. */
  constructor(element) {
    this.frame = h("div", {class: "frame"});
    this.scale = button("fit", () => this.closer(), "I", {"aria-label": "Look closer, or fit"});
    this.tools = h("div", {class: "tools"},
      button("−", () => this.zoom(1 / 1.5), null, {"aria-label": "Zoom out"}), this.scale,
      button("+", () => this.zoom(1.5), null, {"aria-label": "Zoom in"}));
    fill(element, this.frame, this.tools);
    element.classList.add("stage");
    this.watch = new ResizeObserver(() => this.place());
    this.watch.observe(this.frame);
    this.keys = {"+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5),
      i: () => this.closer(), Escape: () => this.fit()};
    this.ready = false;
    this.pointers = new Map();
    this.frame.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event);
    }, {passive: false});
    for (const name of ["down", "move", "up", "cancel"]) {
      this.frame.addEventListener(`pointer${name}`, (event) => this.drag(name, event));
    }
  }

  /** The width at which pictures are fetched first: as many pixels as there is room for, at most 1280. */
  get width() {
    const longest = Math.max(this.frame.clientWidth, this.frame.clientHeight) * devicePixelRatio;
    return WIDTHS.find((each) => each >= Math.min(longest, 1280));
  }

  /** Show a picture; resolves to whether it is still the one to show, once it is painted. */
  async show(image) {
    Object.assign(this, {image, ready: false, picture: null, shownWidth: 0, factor: 1, x: 0, y: 0});
    if (image.values != null) {
      fill(this.frame, h("div", {class: "values"}, h("h2", {}, image.name), h("p", {}, image.values)));
    } else {
      const {width} = this;
      let picture;
      while (!picture) {
        picture = await prefetch(image, width).catch(() => null);
        if (this.image !== image) return false;
        if (picture) break;
        const why = await reason(address(image, width));
        if (this.image !== image) return false;
        if (why) {
          fill(this.frame);
          throw new Error(why);
        }
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
      this.swap(picture);
    }
    await new Promise(requestAnimationFrame);
    if (this.image !== image) return false;
    return (this.ready = true);
  }

  /** Whether every pixel of the file, or every value of the row, has been shown. */
  get whole() {
    return !this.picture || this.shownWidth >= Math.max(this.image.w, this.image.h, 1);
  }

  swap(picture) {
    this.picture = picture;
    fill(this.frame, picture);
    this.place();
  }

  /** Lay the picture out, and note how many pixels its longer side has had. */
  place() {
    const {picture, frame, factor} = this;
    if (!picture) return;
    const {naturalWidth: w, naturalHeight: hh} = picture, {clientWidth: W, clientHeight: H} = frame;
    const size = Math.min(W / w, H / hh) * factor;
    const free = (side, room) => Math.max(0, (side * size - room) / 2);
    this.x = Math.max(-free(w, W), Math.min(free(w, W), this.x));
    this.y = Math.max(-free(hh, H), Math.min(free(hh, H), this.y));
    const left = (W - w * size) / 2 + this.x, top = (H - hh * size) / 2 + this.y;
    Object.assign(picture.style, {width: `${w * size}px`, height: `${hh * size}px`,
      transform: `translate(${left}px, ${top}px)`});
    const pixels = Math.max(w, hh) * Math.min(1, size * devicePixelRatio);
    this.shownWidth = Math.max(this.shownWidth, Math.round(pixels));
    this.pixel = size * devicePixelRatio * w / (this.image.w ?? w); // screen pixels for one of the file
    frame.classList.toggle("close", factor > 1);
    this.scale.firstChild.textContent = factor > 1 ? `${Math.round(100 * this.pixel)} %` : "fit";
  }

  /** Zoom by a factor about a point of the screen, or the middle. */
  async zoom(by, point) {
    if (!this.picture) return;
    const box = this.frame.getBoundingClientRect(), old = this.factor;
    this.factor = Math.max(1, Math.min(CLOSEST, old * by));
    const about = (at, start, size) => (point ? at - start - size / 2 : 0);
    const dx = about(point?.clientX, box.left, box.width), dy = about(point?.clientY, box.top, box.height);
    this.x = dx - (dx - this.x) * this.factor / old;
    this.y = dy - (dy - this.y) * this.factor / old;
    this.place();
    const {image} = this;
    if (this.factor === 1 || this.picture.naturalWidth >= Math.min(image.w, 2048)) return;
    const sharp = await prefetch(image, 2048).catch(() => null);
    if (sharp && this.image === image) this.swap(sharp);
  }

  /** One pixel of the file a pixel of the screen, or back. */
  closer() {
    if (this.factor > 1) this.fit();
    else this.zoom(this.pixel < 0.9 ? 1 / this.pixel : 2);
  }

  fit() {
    this.zoom(1 / this.factor);
  }

  drag(name, event) {
    const {pointers} = this, old = pointers.get(event.pointerId);
    if (name === "down") this.frame.setPointerCapture(event.pointerId);
    if (name === "up" || name === "cancel") return pointers.delete(event.pointerId);
    if (name === "move" && !old) return;
    pointers.set(event.pointerId, event);
    if (name === "down") return;
    const other = [...pointers.values()].find((each) => each !== event);
    const apart = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
    if (other) return this.zoom(apart(event) / Math.max(1, apart(old)), other);
    this.x += event.clientX - old.clientX;
    this.y += event.clientY - old.clientY;
    this.place();
  }
}

/** A curve of labels fixed by answers given, with what is to come. */
const SVG = "http://www.w3.org/2000/svg";
const W = 480, H = 220, LEFT = 46, RIGHT = 14, TOP = 30, FOOT = 34;

function s(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text != null) node.textContent = text;
  return node;
}

/** Choose round numbers up to a largest one, about so many. */
export function ticks(most, about = 3) {
  const rough = Math.max(most, 1) / about, ten = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((each) => each * ten).find((each) => each >= rough));
  return Array.from({length: Math.floor(most / step)}, (_, i) => (i + 1) * step);
}

/** Draw the curve: `past` has pairs, `ahead` answers, labels fixed and the ends of an interval. */
export function curve({past, ahead, stops}, words) {
  const [now, fixed] = past.at(-1), last = ahead.at(-1) ?? [now, fixed];
  // What is far off is not worth the room.
  const end = Math.min(last[0], Math.max(2 * now, (stops ?? 0) * 1.25, 100));
  const shown = ahead.filter(([n]) => n <= end);
  const most = Math.max(10, ...shown.map(([, middle, , high]) => high ?? middle), fixed) * 1.05;
  const x = (n) => (LEFT + (W - LEFT - RIGHT) * n / Math.max(end, now, 1)).toFixed(1);
  const y = (n) => (H - FOOT - (H - FOOT - TOP) * n / most).toFixed(1);
  const line = (points) => points.map(([n, v], i) => `${i ? "L" : "M"}${x(n)} ${y(v)}`).join("");
  const label = (n) => n.toLocaleString("en");
  const svg = s("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": words, class: "curve"});
  for (const n of ticks(most)) {
    svg.append(s("path", {d: `M${LEFT} ${y(n)}H${W - RIGHT}`, class: "grid"}),
      s("text", {x: LEFT - 8, y: Number(y(n)) + 4, "text-anchor": "end"}, label(n)));
  }
  svg.append(s("path", {d: `M${LEFT} ${y(0)}H${W - RIGHT}`, class: "axis"}));
  for (const n of [0, ...ticks(Math.max(end, now, 1))]) {
    svg.append(s("text", {x: x(n), y: H - 12, "text-anchor": "middle"}, label(n)));
  }
  if (shown.length > 1 && shown[0][2] != null) {
    const edge = [...shown.map(([n, , low]) => [n, low]), ...shown.map(([n, , , high]) => [n, high]).reverse()];
    svg.append(s("path", {d: `${line(edge)}Z`, class: "band"}));
  }
  svg.append(s("path", {d: line(shown), class: "next"}), s("path", {d: line(past), class: "past"}));
  if (stops != null && stops <= end && stops > now) {
    const right = Number(x(stops)) > W - 80;
    svg.append(s("path", {d: `M${x(stops)} ${TOP}V${y(0)}`, class: "stops"}),
      s("text", {x: x(stops), y: TOP - 8, "text-anchor": right ? "end" : "middle"}, "stops paying"));
  }
  const near = Number(x(now)) < LEFT + 70, below = near && Number(y(fixed)) < H - FOOT - 20;
  svg.append(s("circle", {cx: x(now), cy: y(fixed), r: 5, class: "now"}),
    s("text", {x: Number(x(now)) + (near ? 10 : -10), y: Number(y(fixed)) + (below ? 16 : -10),
      "text-anchor": near ? "start" : "end", class: "now"}, `now: ${label(fixed)}`));
  return svg;
}

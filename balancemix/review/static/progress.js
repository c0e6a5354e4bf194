/** Progress: what is fixed, what is left, and whether it is worth going on. */
import {curve} from "./curve.js";
import {errorsInAll, sampled, toSample} from "./done.js";
import {button, count, fill, h} from "./dom.js";

const ENOUGH = 50, PROBES = 20, FEWEST = 10, CLASSES = 8; // answers, random ones, those that tell a pace; rows

export const screen = {
  name: "progress",
  async show(main, app) {
    const page = h("div", {class: "progress"}, h("h1", {class: "away"}, "Progress"));
    fill(main, page);
    const [now] = await Promise.all([app.get("/api/progress"), app.refresh()]);
    if (!page.isConnected) return;
    page.append(left(app, now), card("Labels fixed by answers given", "wide", curve(now.curve, said(now)), key(now)),
      right(now), minute(app, now), people(app, now), classes(app, now), whole(app));
  },
};

const card = (title, style, ...children) =>
  h("section", {class: `card ${style}`}, h("h2", {}, title), ...children);
const big = (value, range) => h("p", {class: "big"}, h("strong", {}, value), range && h("span", {}, ` ${range}`));
const small = (...text) => h("p", {class: "small"}, ...text);
const round = (n) => count(Math.round(n));
const range = ({low, high}) => `${round(low)} – ${round(high)}`;
const share = (n) => `${Math.round(100 * n)}`;
const about = (n, noun) => `about ${count(Math.max(1, Math.round(n)), noun)}`;

function left(app, now) {
  const {left: found, probes, open, answered, expected, fixed} = now;
  const number = found ? [big(round(found.value), range(found)),
    small(`95 % interval, measured by ${count(probes)} questions drawn at random. `,
      `The audit expected ${round(expected)} among all its findings (modelled); ${count(fixed, "label")} ${fixed === 1 ? "is" : "are"} fixed.`)]
    : [big(count(open), `of ${count(now.findings)}`),
      h("p", {}, now.findings < ENOUGH ? `Fewer than ${ENOUGH} answers are only counted.`
        : answered < ENOUGH ? `${answered} of ${ENOUGH} answers. After ${ENOUGH} this page says how good the findings are and what is left.`
        : `${probes} of ${PROBES} random questions answered. After ${PROBES} this page says how many errors are left.`)];
  return card(found ? "Estimated wrong or missing labels among the findings not yet seen" : "Findings not yet seen", "wide first", ...number, advice(app, now));
}

function advice(app, {advice: {kind, fixes, minutes, more, stop}, answered, left: found, open, findings}) {
  const go = (words, style = {class: "main"}) => button(words, () => app.go("focus"), null, style);
  const box = (strong, text, then, ...buttons) => h("div", {class: "advice", "data-kind": kind},
    h("p", {}, strong && h("strong", {}, `${strong} `), text, then && h("span", {class: "small"}, ` ${then}`)), ...buttons);
  const next = `The next ${count(Math.min(50, open), "answer")}`;
  if (kind === "over") {
    const below = app.state.measured ? errorsInAll(app) : "What lies below the list is unknown until measured.";
    return findings ? box("Every finding is decided.", below, null, toSample(app, "Measure what is left", {class: "main"}))
      : box("The audit found nothing to ask about.", errorsInAll(app), null, toSample(app, "Settle 50 random pictures", {class: "main"}));
  }
  if (kind === "early") {
    return box(null, "The surest findings come first. One question in ten is drawn at random: these measure what is left.", null, go("Go on"));
  }
  if (kind === "stop") {
    return box("Time to stop.", `${next} would fix ${about(fixes, "label")}. ${found ? `${range(found)} errors may be left among the findings.` : ""}`,
      null, toSample(app, "Measure what is left", {class: "main"}), go("Go on anyway", {}));
  }
  return box("Worth going on.", `${next} should fix ${about(fixes, "label")} in ${count(Math.max(1, Math.round(minutes)), "minute")}.`,
    more == null ? "It pays to the end of the list." : more === 0 ? ""
      : `It stops paying after about ${count(more)} more: then fewer than 1 answer in ${Math.round(1 / stop)} changes anything.`, go("Go on"));
}

const said = ({answered, fixed, curve: {ahead, stops}}) => `${count(fixed, "label")} fixed by ${count(answered, "answer")}; ` +
  `${round(ahead.at(-1)?.[1] ?? fixed)} expected at the end of the list${stops ? `; stops paying after ${count(stops)}` : ""}`;
const key = ({curve: {ahead}}) => small(ahead[0]?.[2] == null ? "Answers. Dotted: modelled." : "Answers. Dotted: modelled; shaded: as far as the random questions allow.");

/** How often findings are right: those drawn at random first, since the surest say more than is true of all. */
function right({precision: {all, probes, wrong, missing, unknown}}) {
  const of = (words, part) => part.of > 0 && `${words} ${count(part.right)} of ${count(part.of)}`;
  const parts = [of("wrong", wrong), of("missing", missing), of("unknown", unknown)].filter(Boolean);
  const first = probes.of ? probes : all, random = first === probes;
  return card("When the audit says “error”, it is one", "", first.value == null
    ? big(first.of ? `${first.right} of ${first.of}` : "–", first.of ? (random ? "drawn at random" : "answers") : "")
    : [big(`${share(first.value)} %`, `${share(first.low)} – ${share(first.high)} %`), meter(first)],
  small(first.value != null ? `${count(first.right)} of ${count(first.of)} questions ${random ? "drawn at random" : "answered"}.` : `From ${ENOUGH} on as a share.`,
    promised(first)),
  random && small(`Of all ${count(all.of)} answers, most of them to the surest findings, ${all.value == null ? count(all.right) : `${share(all.value)}\u00a0%`} are right.`,
    promised(all), all.unsure ? ` ${count(all.unsure)} unsure left out.` : ""),
  parts.length > 0 && small(`Of these ${parts.join(" · ")}.`));
}

const promised = ({promised: p}) => (p == null ? "" : ` The audit promised ${share(p)}\u00a0%.`);

function meter({value, low, high}) {
  const bar = h("div", {class: "meter", "aria-hidden": "true"}, h("div"), h("i"));
  Object.assign(bar.firstChild.style, {left: `${100 * low}%`, width: `${100 * (high - low)}%`});
  bar.lastChild.style.left = `${100 * value}%`;
  return bar;
}

/** How fast labels are fixed: what was measured first, and the forecast only where nothing was. */
function minute(app, {minute: {last, first, next}, answered}) {
  const about = next != null && `about ${next < 10 ? next : Math.round(next)}`;
  const then = answered > ENOUGH && first != null ? `${first} over the first 50; ` : "";
  return card("Fixed per minute", "", last != null ? big(last, `last ${Math.min(50, answered)}`) : big(about || "–", about ? "next 50" : ""),
    last != null && small(`${then}pauses over 30 s are not counted.`),
    about && small(`${last == null ? "" : `The next 50: ${about}. `}Modelled, at ${answered < FEWEST ? "the usual" : "your median"} time an answer.`),
    small("For a better model ", link("settle pictures", "#settle?order=errors"), ": fewer labels a minute, but training gains more (docs/tables/worth.md)."));
}

const link = (words, href, props = {}) => h("a", {href, ...props}, words);

function people(app, {agreement: {people: names, both, same, kappa, disputed, overlap}}) {
  if (names.length < 2) {
    return card("Two people on the same label", "", big("One person so far"),
      small(`Somebody else can open the same address under another name. Then ${share(overlap)} % of the questions are put to both.`));
  }
  return card("Two people on the same label", "", big(`${count(same)} of ${count(both)}`, "agree"),
    small(kappa ? `Cohen’s κ ${kappa.value.toFixed(2)} (${kappa.low.toFixed(2)} – ${kappa.high.toFixed(2)}). ` : both < ENOUGH ? `From ${ENOUGH} on with Cohen’s κ. ` : "",
      disputed ? `${count(disputed)} ${disputed === 1 ? "is" : "are"} open. ` : "None is open.", disputed > 0 && link(disputed === 1 ? "Resolve it" : "Resolve them", "#dispute")));
}

function classes(app, {classes: rows}) {
  const body = h("tbody"), head = ["class", "fixed", "open", "errors left", "audit right", h("span", {class: "away"}, "sweep")];
  const draw = (shown) => fill(body, rows.slice(0, shown).map((row) => {
    const {name, missing, wrong} = app.classes.get(row.class);
    return h("tr", {}, h("th", {scope: "row"}, h("bdi", {}, name)), ...[row.fixed, row.open, row.open ? `≈ ${round(row.left)}` : "–", row.of ? `${row.right} of ${row.of}` : "–"].map((cell) =>
      h("td", {}, typeof cell === "number" ? count(cell) : cell)),
    h("td", {}, missing + wrong > 0 && link("Sweep", `#sweep?class=${row.class}&kind=${missing >= wrong ? "missing" : "wrong"}`, {"aria-label": `Sweep ${name}`})));
  }), rows.length > shown && h("tr", {}, h("td", {colSpan: 6}, button(`All ${count(rows.length)} classes`, () => draw(rows.length)))));
  draw(CLASSES);
  return card("By class", "half", rows.length ? h("div", {class: "scroll", tabIndex: 0, role: "group", "aria-label": "By class"},
    h("table", {}, h("thead", {}, h("tr", {}, head.map((words) => h("th", {scope: "col"}, words)))), body)) : small("Nothing is listed."),
  small("Errors left of a class are modelled, corrected by the answers so far."));
}

function whole(app) {
  const box = card("The whole data set", "half"), done = sampled(app);
  box.append(done ? "" : big("Not measured yet"), h("p", {}, done ? "Working out the result …"
    : "The numbers above only count what the audit listed. To know how many labels are wrong in all, " +
      "settle 50 pictures drawn at random, without seeing what the audit thinks: about 15 minutes."),
  toSample(app, "Settle 50 random pictures"));
  if (done) measured(app, box);
  return box;
}

/** Say what the sample measured, once that is worked out. */
async function measured(app, box) {
  for (let working = true, result; working;) {
    ({working, result} = await app.get("/api/sample"));
    if (!box.isConnected) return;
    if (working) await new Promise((resolve) => setTimeout(resolve, 1000));
    else if (result) {
      const [first = "The pictures are too few to measure anything.", ...more] = result;
      fill(box, box.firstChild, h("p", {class: "result"}, first), more.map((line) => small(line)), toSample(app));
    }
  }
}

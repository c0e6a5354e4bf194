/** Start: the name, then what the review is for. */
import {sampled, toSample} from "./done.js";
import {button, count, fill, h} from "./dom.js";

export const screen = {
  name: "start",
  show(main, app) {
    if (app.state.me) purposes(main, app);
    else who(main, app);
  },
};

function who(main, app) {
  const name = h("input", {name: "name", autocomplete: "name", maxLength: 80, required: true,
    list: "people", "aria-describedby": "why"});
  const people = app.state.people.map((value) => h("option", {value}));
  fill(main, h("form", {class: "middle", onsubmit: async (event) => {
    event.preventDefault();
    if (!name.value.trim()) return;
    await app.key(null, name.value.trim());
    await app.refresh();
    app.go("start");
  }},
  h("h1", {}, h("label", {}, "Who is reviewing?", name)), h("datalist", {id: "people"}, people),
  h("p", {id: "why"}, "Your name goes with your answers."),
  h("button", {class: "main"}, "Start")));
  name.focus();
}

function purposes(main, app) {
  const {findings, rows} = app.state, done = sampled(app);
  const worth = h("span", {}, "Surest first");
  app.get("/api/progress").then(({minute}) => {
    if (minute.next) worth.textContent = `About ${count(Math.round(minute.next), "fix", "fixes")} a minute (modelled)`;
  });
  const card = (small, title, text, act) => h("section", {class: "card"},
    h("p", {class: "small"}, small), h("h2", {}, title), h("p", {}, text), act);
  fill(main, h("div", {class: "middle wide"},
    h("h1", {}, `${count(findings, "finding")} in ${count(rows, app.noun)}. What do you want?`),
    h("p", {}, "Nothing is changed until you export."),
    h("div", {class: "cards"},
      card(done ? "Measured" : "First, if you have 15 minutes", "To know how many labels are wrong",
        done ? "All pictures of the random sample are settled." : "Settle 50 pictures drawn at random. Then every number on this page is measured, not modelled.",
        toSample(app, "Settle 50 random pictures", {class: "main"})),
      card(worth, "A cleaner data set",
        "Go through the findings, surest first, one by one or a class at a time.",
        button("Go through the findings", () => app.go("focus"))),
      card("About 3 pictures a minute", "A better model",
        "Settle whole pictures. Fewer labels are fixed a minute, but training gains more from them.",
        button("Settle pictures", () => app.go("settle", {order: "errors"}))))));
}

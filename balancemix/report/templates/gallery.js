// Filter cards by kind and class, and sort them; without it all are shown, surest first.
for (const gallery of document.querySelectorAll(".gallery")) {
  const list = gallery.querySelector(".cards"), cards = [...list.children];
  const buttons = [...gallery.querySelectorAll("button")];
  const [column, sort] = gallery.querySelectorAll("select");
  const keys = card => card.dataset.keys.split(" ");
  const orders = {
    surest: () => 0,
    most: (a, b) => keys(b).length - keys(a).length,
    name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, "en", { numeric: true }),
  };
  const show = () => {
    const kind = buttons.find(button => button.getAttribute("aria-pressed") === "true").value;
    const fits = key => {
      const [problem, k] = key.split(":");
      return (!kind || problem === kind) && (!column.value || k === column.value);
    };
    cards.forEach(card => { card.hidden = !keys(card).some(fits); });
    const shown = cards.filter(card => !card.hidden).length;
    const noun = list.dataset.noun;
    gallery.querySelector("output").textContent =
      shown ? `${shown} ${noun}${shown === 1 ? "" : "s"}` : "None of these is both.";
  };
  buttons.forEach(button => button.addEventListener("click", () => {
    buttons.forEach(each => each.setAttribute("aria-pressed", String(each === button)));
    show();
  }));
  column.addEventListener("change", show);
  sort.addEventListener("change", () => list.append(...[...cards].sort(orders[sort.value])));
  show();
}

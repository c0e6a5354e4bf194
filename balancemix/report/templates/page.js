// Sort tables by a click on a head, and show one of many figures at a time; without it all is shown.
document.documentElement.classList.add("js");
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") === "descending" ||
        (!head.hasAttribute("aria-sort") && head.classList.contains("text"));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[k].dataset.value ?? row.cells[k].textContent;
      const order = (a, b) => a === "" ? 1 : b === "" ? -1 :
        (up ? 1 : -1) * a.localeCompare(b, "en", { numeric: true });
      const number = (a, b) => isNaN(a) || isNaN(b) || a === "" || b === "" ? order(a, b) :
        (up ? 1 : -1) * (a - b);
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => number(key(a), key(b))));
    };
  });
}
for (const chooser of document.querySelectorAll(".choose")) {
  const selects = [...chooser.querySelectorAll("select")];
  const figures = chooser.parentElement.querySelectorAll(".choice");
  const show = () => figures.forEach(figure => figure.classList.toggle(
    "shown", selects.every(select => figure.dataset[select.name] === select.value)));
  selects.forEach(select => { select.onchange = show; });
  show();
}

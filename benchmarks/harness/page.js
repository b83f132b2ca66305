// Tables that sort by a click on a heading, rows that filter, curves that hide.
"use strict";

const value = (row, column) => {
  const cell = row.cells[column];
  const text = (cell.dataset.value ?? cell.textContent).trim();
  const number = parseFloat(text.replace("−", "-"));
  return text === "" ? null : Number.isNaN(number) ? text : number;
};

const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));

const sort = (table, column, sign) => {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row, column), row]);
  rows.sort(([a], [b]) =>
    a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
  body.append(...rows.map(([, row]) => row));
};

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.tabIndex = 0;
    const click = () => {
      const up = heading.getAttribute("aria-sort") !== "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table, column, up ? 1 : -1);
    };
    heading.addEventListener("click", click);
    heading.addEventListener("keydown", (event) => event.key === "Enter" && click());
  });
}

for (const bar of document.querySelectorAll(".filters")) {
  const table = document.getElementById(bar.dataset.table);
  const fields = [...bar.querySelectorAll("input, select")];
  const filter = () => {
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      const keep = fields.every((field) => field.tagName === "SELECT"
        ? !field.value || row.dataset[field.name] === field.value
        : field.value.toLowerCase().split(/\s+/).every((word) => text.includes(word)));
      row.classList.toggle("hidden", !keep);
      shown += keep;
    }
    bar.querySelector("output").textContent = `${shown} of ${table.tBodies[0].rows.length}`;
  };
  fields.forEach((field) => field.addEventListener("input", filter));
  filter();
}

for (const item of document.querySelectorAll(".legend li[data-series]")) {
  item.addEventListener("click", () => {
    const off = item.classList.toggle("off");
    const parts = item.closest("figure").querySelectorAll(
      `svg.chart [data-series="${item.dataset.series}"]`);
    parts.forEach((part) => part.classList.toggle("hidden", off));
  });
}

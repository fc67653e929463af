"use strict";
// Tables sort by their headers: once, the other way, and back to the order of the page. Without
// this the page is whole, and its tables stay as they are.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    const value = (row) => row.cells[place].dataset.value;
    const filled = rows.map(value).filter((text) => text !== "");
    const numbers = filled.every((text) => !Number.isNaN(Number(text)));
    const turns = numbers ? ["descending", "ascending"] : ["ascending", "descending"];
    const compare = (a, b) => numbers ? Number(a) - Number(b) : a.localeCompare(b);
    button.addEventListener("click", () => {
      const turn = turns[turns.indexOf(header.getAttribute("aria-sort")) + 1];
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      table.classList.toggle("sorted", turn !== undefined);
      if (turn === undefined) {
        body.append(...rows);
        return;
      }
      header.setAttribute("aria-sort", turn);
      const sign = turn === "ascending" ? 1 : -1;
      const known = rows.filter((row) => value(row) !== "");
      const unknown = rows.filter((row) => value(row) === "");
      known.sort((a, b) => sign * compare(value(a), value(b)));
      body.append(...known, ...unknown);
    });
  });
}

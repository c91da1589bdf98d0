// Sorting and searching tables, names of lines under the pointer, plots as SVG files. The page is
// complete without it.
(() => {
  const each = (selector, act, within = document) => within.querySelectorAll(selector).forEach(act);

  each("table.sortable", (table) => {
    const body = table.tBodies[0];
    const key = (row, at) => {
      const cell = row.cells[at];
      return cell.dataset.sort === undefined ? cell.textContent.trim() : cell.dataset.sort;
    };
    const compare = (a, b) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      const [x, y] = [Number(a), Number(b)];
      return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
    };
    each("thead th:not(.fixed)", (head) => {
      // No button element: browsers do not print those where a head repeats on the next page.
      const button = document.createElement("span");
      button.setAttribute("role", "button");
      button.tabIndex = 0;
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        button.click();
      });
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        each("thead th", (other) => other.removeAttribute("aria-sort"), table);
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
        // Rows without a value stay last.
        rows.sort(([a], [b]) => (down && a !== "" && b !== "" ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    }, table);
    const search = table.closest("section").querySelector("input.search");
    if (search) {
      search.closest(".find").hidden = false;
      search.addEventListener("input", () => {
        const wanted = search.value.trim().toLowerCase();
        let shown = 0;
        for (const row of body.rows) {
          row.hidden = !row.textContent.toLowerCase().includes(wanted);
          shown += !row.hidden;
        }
        search.nextElementSibling.value = wanted ? `${shown} of ${body.rows.length}` : "";
      });
    }
  });

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  each("svg", (svg) => {
    svg.addEventListener("pointermove", (event) => {
      const part = event.target.closest("circle, rect, path, g");
      let title = part && part.querySelector(":scope > title");
      if (part && !title) title = part.closest("g")?.querySelector(":scope > title");
      tip.hidden = !title;
      if (!title) return;
      tip.textContent = title.textContent;
      const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      tip.style.left = `${Math.max(left, 8)}px`;
      tip.style.top = `${event.clientY + 18}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  });

  const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity",
    "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "display"];
  each("button[data-svg]", (button) => {
    const svg = button.closest("figure").querySelector("svg");
    if (!svg) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      const copy = svg.cloneNode(true);
      const copies = [copy, ...copy.querySelectorAll("*")];
      [svg, ...svg.querySelectorAll("*")].forEach((part, at) => {
        const style = getComputedStyle(part);
        for (const name of kept) {
          const value = style.getPropertyValue(name);
          if (value) copies[at].setAttribute(name, value);
        }
        copies[at].removeAttribute("style");
      });
      const [, , width, height] = svg.getAttribute("viewBox").split(" ");
      const paper = document.createElementNS(svg.namespaceURI, "rect");
      const colour = getComputedStyle(svg.closest("section")).backgroundColor;
      for (const [name, value] of Object.entries({ width, height, fill: colour })) paper.setAttribute(name, value);
      copy.prepend(paper);
      copy.setAttribute("width", width);
      copy.setAttribute("height", height);
      const text = new XMLSerializer().serializeToString(copy);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
      link.download = button.dataset.svg;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  });
})();

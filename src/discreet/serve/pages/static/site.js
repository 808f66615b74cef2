// Conveniences for forms. Everything works without this script.
"use strict";

// A search field for long lists of codes.
for (const box of document.querySelectorAll("details[data-codes]")) {
  const items = [...box.querySelectorAll(".tick, select option")];
  if (items.length < 12) continue;
  const name = box.querySelector("summary").firstChild.textContent.trim();
  const find = document.createElement("input");
  find.type = "search";
  find.className = "find";
  find.placeholder = "Search";
  find.setAttribute("aria-label", `Search codes of ${name}`);
  const count = document.createElement("p");
  count.className = "vh";
  count.setAttribute("role", "status");
  find.addEventListener("input", () => {
    const text = find.value.toLowerCase();
    let left = 0;
    for (const item of items) {
      item.hidden = !item.textContent.toLowerCase().includes(text);
      left += !item.hidden;
    }
    count.textContent = `${left} of ${items.length}`;
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  box.querySelector("summary").after(find, count);
}

// URLs without empty fields. The first field of rows stays, for tables without row variables.
for (const form of document.querySelectorAll("form.ask")) {
  form.addEventListener("submit", () => {
    for (const field of form.querySelectorAll("select:not([multiple])")) {
      if (field.value === "" && field.id !== "rows-1") field.disabled = true;
    }
    setTimeout(() => {
      for (const field of form.querySelectorAll("select")) field.disabled = false;
    });
  });
}

// Buttons that copy the link or the citation, where the browser permits it.
if (navigator.clipboard) {
  for (const field of document.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    const what = field.id === "cite" ? "citation" : "link";
    button.textContent = `Copy ${what}`;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(field.value);
        button.textContent = "Copied";
      } catch {
        field.select();
        button.textContent = "Press Ctrl+C";
      }
    });
    field.closest("label").after(button);
  }
}

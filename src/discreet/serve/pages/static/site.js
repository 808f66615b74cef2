// What makes forms shorter to use. Everything works without it.
"use strict";

// Lists of codes: type to find some.
for (const box of document.querySelectorAll("details[data-codes]")) {
  const items = [...box.querySelectorAll(".tick, select option")];
  if (items.length < 12) continue;
  const name = box.querySelector("summary").firstChild.textContent.trim();
  const find = document.createElement("input");
  find.type = "search";
  find.className = "find";
  find.placeholder = "Find";
  find.setAttribute("aria-label", `Find codes of ${name}`);
  const told = document.createElement("p");
  told.className = "vh";
  told.setAttribute("role", "status");
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    let left = 0;
    for (const item of items) {
      item.hidden = !item.textContent.toLowerCase().includes(wanted);
      left += !item.hidden;
    }
    told.textContent = `${left} of ${items.length}`;
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  box.querySelector("summary").after(find, told);
}

// Addresses without what says nothing. The first field of rows stays, for a table without any.
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

// A button that copies a link or a citation, where the browser lets it.
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

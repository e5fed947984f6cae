// The script of every page: menu, search, copy buttons and tables that scroll.
"use strict";

/** Creates an element. Properties are set on it; children are nodes or strings. */
function element(name, properties = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in created) created[key] = value;
    else created.setAttribute(key, value);
  }
  created.append(...children.flat(Infinity));
  return created;
}

// A long sidebar shows the current page.
const sidebar = document.getElementById("sidebar");
const currentLink = sidebar?.querySelector("[aria-current]");
if (currentLink) sidebar.scrollTop = currentLink.offsetTop - sidebar.clientHeight / 2;

// Menu of small screens.
const menu = document.getElementById("menu");
menu?.addEventListener("click", () => {
  const open = sidebar.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(open));
});

// Copy buttons.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without HTTPS, browsers offer only the older way.
  const area = element("textarea", { value: text, readOnly: true });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function copyButton(label, text) {
  const button = element("button", { type: "button", className: "copy", textContent: label });
  button.addEventListener("click", async () => {
    await copyText(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/** Returns the commands of a terminal session without prompts and output, or the whole text of other code. */
function copiedCode(code) {
  const lines = code.textContent.trimEnd().split("\n");
  if (!code.classList.contains("language-console")) return lines.join("\n");
  const commands = [];
  let continues = false;
  for (const line of lines) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (continues) commands.push(line);
    else continue;
    continues = line.endsWith("\\");
  }
  return commands.join("\n");
}

for (const code of document.querySelectorAll("pre > code")) {
  if (copiedCode(code)) code.parentElement.prepend(copyButton("Copy", () => copiedCode(code)));
}

// A table that scrolls can be focused, so that the keyboard can scroll it.
function updateTables() {
  for (const table of document.querySelectorAll(".table")) {
    const scrolls = table.scrollWidth > table.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "Scrollable table"]]) {
      if (scrolls) table.setAttribute(name, value);
      else table.removeAttribute(name);
    }
  }
}
addEventListener("resize", updateTables);
updateTables();

// Search.
const MAX_RESULTS = 12;
const search = document.getElementById("search");
const results = document.getElementById("results");
let index;

/** Reads the index once: the URL, page, heading and text of each section. */
function loadIndex() {
  index ??= fetch("/docs/search.json").then((response) => response.json()).then((entries) =>
    entries.map(([url, page, heading, text]) => ({
      url, page, heading, text, lower: [heading, page, text].map((part) => part.toLowerCase()),
    })));
  return index;
}

/** Returns how well a section matches: 0 unless it contains every word. */
function score({ lower: [heading, page, text], url }, words) {
  let total = 0;
  for (const word of words) {
    let points = 0;
    if (heading.includes(word)) points += heading.startsWith(word) ? 12 : 8;
    if (page.includes(word)) points += 4;
    if (text.includes(word)) points += 1;
    if (url.endsWith(word)) points += 20;
    if (!points) return 0;
    total += points;
  }
  return total;
}

/** Returns the part of the text around the first word that it contains. */
function excerpt({ text, lower: [, , lower] }, words) {
  const at = Math.max(0, ...words.map((word) => lower.indexOf(word)));
  const start = at < 30 ? 0 : text.indexOf(" ", at - 30) + 1;
  return (start ? "… " : "") + text.slice(start, start + 120);
}

async function showResults() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return closeResults();
  const entries = await loadIndex();
  const found = entries
    .map((entry) => [score(entry, words), entry])
    .filter(([points]) => points)
    .sort(([a], [b]) => b - a);
  const links = found.slice(0, MAX_RESULTS).map(([, entry]) => {
    const title = entry.heading === entry.page ? entry.page : `${entry.page}: ${entry.heading}`;
    return element("li", {}, element("a", { href: entry.url }, title, element("small", {}, excerpt(entry, words))));
  });
  const count = found.length === 1 ? "1 result" : `${found.length || "No"} results`;
  results.replaceChildren(element("p", {}, count), element("ul", {}, links));
  results.hidden = false;
}

function closeResults() {
  results.hidden = true;
  results.replaceChildren();
}

search.addEventListener("focus", loadIndex);
search.addEventListener("input", showResults);
results.addEventListener("click", (event) => { if (event.target.closest("a")) closeResults(); });
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) closeResults(); });
document.addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, textarea");
  if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  }
  if (results.hidden) return;
  const stops = [search, ...results.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    closeResults();
    search.focus();
  } else if (event.key === "Enter" && at === 0) {
    stops[1]?.click();
  } else if (step && at >= 0) {
    event.preventDefault();
    stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
  }
});

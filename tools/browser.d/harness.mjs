// What the browser tests share: counted checks, pages that report what they must not do, and axe.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const started = performance.now();
const failures = [];
let checks = 0;

export function check(condition, message) {
  checks += 1;
  if (!condition) {
    failures.push(message);
    console.log(`  failed: ${message}`);
  }
}

/** Prints the number of checks and ends the process. */
export function finish(name, details) {
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(`${name}: ${checks} checks, ${failures.length} failed; ${details}; ${seconds} s`);
  process.exit(failures.length ? 1 : 0);
}

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" });
}

/** Reports requests to other origins than these, violations of the security policy, and errors of scripts. */
export function watch(page, origins) {
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    check(protocol === "data:" || origins.includes(origin), `${page.url()} requests ${request.url()}`);
  });
  page.on("pageerror", (error) => check(false, `${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // Chromium also reports responses of 400 and above, which some checks expect.
    const isFailure = message.type() === "error" && !message.text().startsWith("Failed to load resource");
    check(!isFailure, `${page.url()}: ${message.text()}`);
  });
}

/** Runs axe, and checks that neither the page nor one of these parts is wider than its place. */
export async function inspect(page, name, parts = "pre, textarea") {
  // Evaluated through the debugger, which a security policy does not restrict.
  await page.evaluate(axe);
  const violations = await page.evaluate(async () => {
    const { violations } = await window.axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  });
  check(violations.length === 0, `${name}: axe finds ${violations.join("; ")}`);
  const wide = await page.evaluate((selector) => {
    const page = document.documentElement;
    // Widths of parts are rounded.
    const found = [...document.querySelectorAll(selector)].filter((part) => part.scrollWidth > part.clientWidth + 1);
    if (page.scrollWidth > page.clientWidth) found.push(page);
    return found.map((part) => part.outerHTML.slice(0, 80));
  }, parts);
  check(wide.length === 0, `${name}: wider than its place: ${wide.join("; ")}`);
}

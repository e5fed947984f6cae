// The API explorer: a form for each operation of /openapi.json. `site.js` defines `element`, `copyButton`, `menu` and `sidebar`.
"use strict";

const METHODS = ["get", "post", "put", "delete"];
const ID = /^(cli|usr|ses|plan|sub|pay|led)_[0-9a-f]{32}$/;
const view = document.getElementById("operation");
const clientId = document.getElementById("client-id");
const accessToken = document.getElementById("access-token");
/** The latest id of each kind in a response; forms use it instead of the document's example. */
const knownIds = new Map();
let api;

/** Follows the reference of a part of the document, if it is one. */
function resolve(part) {
  if (!part?.$ref) return part ?? {};
  const keys = part.$ref.slice(2).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return resolve(keys.reduce((value, key) => value?.[key], api));
}

/** Returns the example of a parameter, media type or schema. */
function exampleOf(part) {
  const { example, examples, schema } = part;
  if (example !== undefined) return example;
  if (Array.isArray(examples)) return examples[0];
  if (examples) return resolve(Object.values(examples)[0]).value;
  if (schema) return exampleOf(resolve(schema));
  if (part.properties) {
    const fields = Object.entries(part.properties).map(([name, field]) => [name, exampleOf(resolve(field))]);
    return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
  }
  return undefined;
}

/** Replaces ids of the document's examples by those of records that the explorer has seen. */
function withKnownIds(value) {
  if (typeof value === "string") return knownIds.get(ID.exec(value)?.[1]) ?? value;
  if (Array.isArray(value)) return value.map(withKnownIds);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, withKnownIds(field)]));
  }
  return value;
}

function rememberIds(value) {
  if (typeof value === "string" && ID.test(value)) knownIds.set(ID.exec(value)[1], value);
  // The first record of a list wins.
  else if (value && typeof value === "object") Object.values(value).reverse().forEach(rememberIds);
}

/** Renders the document's text: `code` and [links](url). */
function prose(text = "") {
  const parts = text.replaceAll(/\s*\n\s*/g, " ").split(/(`[^`]+`|\[[^\]]+\]\([^)]+\))/);
  return parts.map((part) => {
    const link = /^\[(.+)\]\((.+)\)$/.exec(part);
    if (link) return element("a", { href: link[2] }, link[1]);
    return part.startsWith("`") ? element("code", {}, part.slice(1, -1)) : part;
  });
}

/** Indents JSON without parsing it, because parsing would change amounts: 19.90 to 19.9. */
function indent(json) {
  let output = "", depth = 0, inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    const line = () => `\n${"  ".repeat(depth)}`;
    if (inString) {
      output += char;
      if (char === "\\") output += json[at += 1];
      else if (char === '"') inString = false;
    } else if (char === '"') {
      inString = true;
      output += char;
    } else if ("{[".includes(char)) {
      const isEmpty = /^\s*[}\]]/.test(json.slice(at + 1, at + 20));
      depth += 1;
      output += isEmpty ? char : char + line();
    } else if ("}]".includes(char)) {
      depth -= 1;
      output += "{[".includes(output.at(-1)) ? char : line() + char;
    } else if (char === ",") output += char + line();
    else if (char === ":") output += ": ";
    else if (!/\s/.test(char)) output += char;
  }
  return output;
}

/** Returns all operations in the order of the document's tags. */
function operations() {
  const all = Object.entries(api.paths).flatMap(([path, item]) => METHODS.filter((method) => item[method]).map((method) => ({
    path, method: method.toUpperCase(), ...item[method],
    parameters: [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(resolve),
  })));
  return api.tags.map(({ name, description }) => ({
    name, description, operations: all.filter(({ tags }) => tags?.[0] === name),
  }));
}

/** Returns whether the operation takes an access token: "required", "optional" or undefined. */
function tokenUse({ security }) {
  const ways = security ?? api.security ?? [];
  if (!ways.some((way) => way.bearer)) return undefined;
  return ways.every((way) => way.bearer) ? "required" : "optional";
}

function takesClientId({ security }) {
  return (security ?? api.security ?? []).some((way) => way["client-id"]);
}

function typeOf(schema) {
  const resolved = resolve(schema);
  const several = resolved.oneOf ?? resolved.anyOf;
  if (several) return several.map(typeOf).join(" or ");
  const type = [resolved.type ?? "any"].flat().join(" or ");
  return resolved.items ? `${type} of ${typeOf(resolved.items)}` : type;
}

function fieldList(schema) {
  const { properties = {}, required = [] } = schema;
  return element("dl", {}, Object.entries(properties).map(([name, field]) => {
    const resolved = resolve(field);
    const values = resolved.enum ? ` One of: ${resolved.enum.filter((value) => value !== null).join(", ")}.` : "";
    const note = `${typeOf(field)}${required.includes(name) ? ", required" : ""}`;
    return [
      element("dt", {}, element("code", {}, name), " ", element("small", {}, note)),
      element("dd", {}, prose((field.description ?? resolved.description ?? "") + values)),
    ];
  }));
}

/** Returns the field of a parameter. Only a required one has a value; others show the example as a hint. */
function parameterField(parameter) {
  const id = `${parameter.in}-${parameter.name}`;
  const example = withKnownIds(exampleOf(parameter));
  const input = element("input", {
    id, autocomplete: "off", spellcheck: false, required: parameter.required ?? false,
    value: parameter.required ? String(example ?? "") : "",
    placeholder: parameter.required || example === undefined ? "" : `Example: ${example}`,
    "aria-describedby": `${id}-hint`,
  });
  parameter.input = input;
  const label = element("label", { htmlFor: id }, element("code", {}, parameter.name));
  if (parameter.required) label.append(" required");
  return element("div", { className: "field" }, label, input,
    element("p", { className: "hint", id: `${id}-hint` }, prose(parameter.description)));
}

function parameterGroup(title, parameters) {
  if (!parameters.length) return [];
  const fields = parameters.map(parameterField);
  if (parameters.some((parameter) => parameter.required)) return fields;
  return [element("details", {}, element("summary", {}, `${title} (${parameters.length}, optional)`), fields)];
}

/** Returns the request that the form describes. */
function buildRequest(operation, body) {
  const filled = operation.parameters.filter(({ input }) => input.value !== "");
  let url = operation.path;
  const query = new URLSearchParams(), headers = {};
  for (const { name, in: place, input } of filled) {
    if (place === "path") url = url.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (place === "query") query.append(name, input.value);
    else if (place === "header") headers[name] = input.value;
  }
  if (query.size) url += `?${query}`;
  if (takesClientId(operation) && clientId.value) headers["client-id"] = clientId.value.trim();
  if (tokenUse(operation) && accessToken.value) headers.authorization = `Bearer ${accessToken.value.trim()}`;
  if (body) headers["content-type"] = "application/json";
  return { url, options: { method: operation.method, headers, body: body?.value } };
}

/** Returns the request as a command for the shell that `perennial dev` has prepared. */
function curl({ url, options: { method, headers, body } }) {
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quote(location.origin + url)}`];
  for (const [name, value] of Object.entries(headers)) {
    lines.push(name === "client-id" ? '-H "client-id: $CLIENT_ID"' : `-H ${quote(`${name}: ${value}`)}`);
  }
  if (body !== undefined) lines.push(`-d ${quote(body)}`);
  return lines.join(" \\\n  ");
}

async function send(operation, body, output) {
  const { url, options } = buildRequest(operation, body);
  const started = performance.now();
  let response, text;
  try {
    response = await fetch(url, options);
    text = await response.text();
  } catch (error) {
    output.replaceChildren(element("p", { className: "status failed" }, `No response: ${error.message}`));
    return;
  }
  const milliseconds = Math.round(performance.now() - started);
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const value = isJson ? JSON.parse(text) : undefined;
  rememberIds(value);
  if (response.ok && value?.access_token) accessToken.value = value.access_token;
  const status = `${response.status} ${response.statusText}`.trim();
  const parts = [
    element("h3", {}, "Response"),
    element("p", { className: response.ok ? "status" : "status failed" }, `${status} · ${milliseconds} ms`),
  ];
  if (!response.ok && value?.code) {
    parts.push(element("p", {}, "How to fix it: ", element("a", { href: `/docs/errors/${value.code}` }, value.code)));
  }
  if (text) {
    const shown = isJson ? indent(text) : text;
    parts.push(element("pre", {}, copyButton("Copy", () => shown), element("code", {}, shown)));
  }
  const headers = [...response.headers].map(([name, content]) => `${name}: ${content}`).join("\n");
  parts.push(element("details", {}, element("summary", {}, "Response headers"), element("pre", {}, element("code", {}, headers))));
  output.replaceChildren(...parts);
}

/** Returns the responses, with a link to the page of each error code. */
function responseList(responses) {
  const codes = resolve(resolve(api.components.schemas.Problem).properties?.code).enum ?? [];
  const linked = (part) => (codes.includes(part.textContent) ? element("a", { href: `/docs/errors/${part.textContent}` }, part) : part);
  return element("dl", {}, Object.entries(responses).map(([status, response]) => [
    element("dt", {}, element("code", {}, status)),
    element("dd", {}, prose(resolve(response).description).map(linked)),
  ]));
}

function show(operation) {
  const { method, path, summary, description, parameters, requestBody, responses } = operation;
  const inside = (place) => parameters.filter((parameter) => parameter.in === place);
  const content = resolve(requestBody).content?.["application/json"];
  const schema = resolve(content?.schema);
  const form = element("form", {},
    inside("path").map(parameterField), parameterGroup("Query parameters", inside("query")),
    parameterGroup("Headers", inside("header")));
  let body;
  if (content) {
    const example = JSON.stringify(withKnownIds(exampleOf(content) ?? {}), null, 2);
    body = element("textarea", { id: "body", value: example, rows: Math.min(example.split("\n").length + 1, 24), spellcheck: false });
    form.append(element("div", { className: "field" }, element("label", { htmlFor: "body" }, "Body (JSON)"), body));
  }
  const output = element("div", { role: "status" });
  const copy = copyButton("Copy as curl", () => curl(buildRequest(operation, body)));
  copy.className = "";
  form.append(element("div", { className: "actions" }, element("button", { className: "send" }, "Send"), copy));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(operation, body, output);
  });
  const token = tokenUse(operation);
  const heading = element("h2", { tabIndex: -1 }, summary);
  view.replaceChildren(heading,
    element("p", { className: "route" }, element("span", { className: `method ${method}` }, method), element("code", {}, path)),
    element("p", {}, prose(description)),
    ...(token ? [element("p", { className: "hint" }, `Access token: ${token}.`)] : []),
    form, output,
    ...(schema.properties ? [element("details", {}, element("summary", {}, "Fields of the body"), fieldList(schema))] : []),
    element("details", {}, element("summary", {}, "Responses"), responseList(responses)));
  return heading;
}

async function start() {
  api = await (await fetch("/openapi.json")).json();
  const groups = operations();
  for (const [number, group] of groups.entries()) {
    const id = `tag-${number}`;
    sidebar.append(
      element("p", { id, title: group.description ?? "" }, group.name),
      element("ul", { "aria-labelledby": id }, group.operations.map(({ method, summary, operationId }) =>
        element("li", {}, element("a", { href: `#${operationId}`, className: "operation" },
          element("span", { className: `method ${method}` }, method), summary)))));
  }
  const all = groups.flatMap((group) => group.operations);
  // The first list needs nothing but the API key.
  const first = all.find(({ operationId }) => operationId === "listPlans") ?? all[0];
  const open = (isNavigation) => {
    const operation = all.find(({ operationId }) => `#${operationId}` === location.hash) ?? first;
    for (const link of sidebar.querySelectorAll("a")) {
      if (link.hash === `#${operation.operationId}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const heading = show(operation);
    if (isNavigation) {
      sidebar.classList.remove("open");
      menu.setAttribute("aria-expanded", "false");
      heading.focus();
      heading.scrollIntoView();
    }
  };
  addEventListener("hashchange", () => open(true));
  open(false);
}

start().catch((error) => view.replaceChildren(element("p", { className: "status failed" }, `Cannot read /openapi.json: ${error.message}`)));

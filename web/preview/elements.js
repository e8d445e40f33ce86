/** Small helpers for making elements. Nothing runs on import. */

/** An element with a class, attributes and children (strings become text). */
export function make(tag, className, attributes = {}, children = []) {
  const element = document.createElement(tag);
  element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A button that calls run(event); label: a text, an element, or a list of them. */
export function button(label, run, attributes = {}) {
  const element = make("button", "button", { type: "button", ...attributes }, [label].flat());
  element.addEventListener("click", run);
  return element;
}

export function makeCanvas(className, width, height) {
  const canvas = make("canvas", className, { "aria-hidden": "true" });
  Object.assign(canvas, { width, height });
  return canvas;
}

/** Set a text only if it changed, so that a live region speaks once. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const PREVIEW_CSS = new URL("preview.css", import.meta.url).href;

/** Add a style sheet to the page, unless the page has it already; resolves when it applies. */
export function addStyleSheet(href = PREVIEW_CSS) {
  const links = [...document.head.querySelectorAll("link[rel=stylesheet]")];
  let link = links.find((other) => other.href === href);
  if (!link) document.head.append(link = make("link", "", { rel: "stylesheet", href }));
  return new Promise((done) => {
    if (link.sheet) done();
    for (const end of ["load", "error"]) link.addEventListener(end, done, { once: true });
  });
}

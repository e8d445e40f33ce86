/** Small helpers for making elements. Nothing runs on import. */

/** An element with a class, attributes and children (strings become text). */
export function make(tag, className, attributes = {}, children = []) {
  const element = document.createElement(tag);
  element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function makeCanvas(className, width, height) {
  const canvas = make("canvas", className, { "aria-hidden": "true" });
  Object.assign(canvas, { width, height });
  return canvas;
}

/** Text that is only written where it changed, so that a live region speaks once. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A style sheet beside the modules, once a page. */
export function addStyleSheet(name = "preview.css") {
  const href = new URL(name, import.meta.url).href;
  const there = [...document.head.querySelectorAll("link[rel=stylesheet]")];
  if (there.some((link) => link.href === href)) return;
  document.head.append(make("link", "", { rel: "stylesheet", href }));
}

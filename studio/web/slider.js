/** A line over a picture, moved by pointer, touch and keys: an ARIA slider. Knows no picture. */

import { addStyleSheet, make } from "./core/elements.js";

export const clamp = (value, { min, max }) => Math.min(Math.max(value, min), max);

/**
 * The value after a key, or null for other keys. `down` is the way of the downward keys: 1 where
 * a larger value lies further down on the page.
 */
export function afterKey(key, value, { min, max, step, leap, down }) {
  const ways = {
    ArrowLeft: -step, ArrowRight: step, ArrowUp: -down * step, ArrowDown: down * step,
    PageUp: -down * leap, PageDown: down * leap, Home: min - value, End: max - value,
  };
  return Object.hasOwn(ways, key) ? clamp(value + ways[key], { min, max }) : null;
}

/** The value that a share (0..1) of the way stands for, whole steps only. */
export function atShare(share, { min, max, whole, step }) {
  return clamp(Math.round((share * whole) / step) * step, { min, max });
}

export class Slider {
  /**
   * field: the element the line lies over. range(): {min, max, whole, step, leap, down}, where
   * `whole` is the value at the far edge. move(value) is called for every new value the user sets.
   * anywhere(): whether a pointer moves the line from any place of the field, not its handle alone.
   */
  constructor(field, { name, vertical, range, move, anywhere = () => true }) {
    this.styled = addStyleSheet(new URL("slider.css", import.meta.url).href);
    Object.assign(this, { field, vertical, range, move, anywhere });
    this.handle = make("div", "ssd-handle", {
      role: "slider", tabindex: "0", "aria-label": name,
      "aria-orientation": vertical ? "vertical" : "horizontal",
    }, [make("span", "ssd-knob")]);
    this.handle.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("pointerdown", (event) => this.#grasp(event));
    field.addEventListener("pointermove", (event) => this.#drag(event));
    field.addEventListener("click", (event) => this.#mayMove(event) && this.#to(event));
    field.addEventListener("lostpointercapture", () => (this.grasped = false));
    field.addEventListener("mousedown", (event) => event.preventDefault()); // drags no picture
    field.append(this.handle);
  }

  /** Show a value; `text` is read aloud. */
  set(value, text) {
    const { min, max, whole } = this.range();
    this.value = value;
    this.field.style.setProperty("--ssd-at", `${(100 * value) / whole}%`);
    const state = { valuemin: min, valuemax: max, valuenow: value, valuetext: text };
    for (const [name, entry] of Object.entries(state)) {
      this.handle.setAttribute(`aria-${name}`, entry);
    }
  }

  #key(event) {
    const value = afterKey(event.key, this.value, this.range());
    if (value === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.#change(value);
  }

  /** A finger that moves down a picture scrolls the page, unless it has the handle. */
  #grasp(event) {
    const scrolls = this.vertical && event.pointerType === "touch";
    if (event.button !== 0 || !event.isPrimary || !this.#mayMove(event)) return;
    if (scrolls && !this.handle.contains(event.target)) return;
    this.grasped = true;
    this.field.setPointerCapture(event.pointerId);
    this.#to(event);
  }

  #mayMove(event) {
    return this.anywhere() || this.handle.contains(event.target);
  }

  #drag(event) {
    if (this.grasped && event.isPrimary) this.#to(event);
  }

  #to(event) {
    this.handle.focus({ preventScroll: true });
    const box = this.field.getBoundingClientRect();
    const share = this.vertical
      ? (event.clientY - box.top) / box.height : (event.clientX - box.left) / box.width;
    this.#change(atShare(share, this.range()));
  }

  #change(value) {
    if (value !== this.value) this.move(value);
  }
}

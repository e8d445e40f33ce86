/** Pictures over the whole page: one at any zoom, or two with a divider. */

import { make } from "./core/elements.js";

const STEP = 1.25; // of zoom, a notch of the wheel or a key
const [LEAST, MOST] = [0.1, 32];

/** A dialog that leaves the page when it is closed; a click beside its contents closes it. */
function open(words, name, ...children) {
  const close = make("button", "ssd-close", { type: "button", "aria-label": words.close }, ["✕"]);
  const dialog = make("dialog", `ssd-dialog ${name}`, {}, [...children, close]);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** left, right: [address, label] each. */
export function compareDialog(words, left, right) {
  const divider = make("ssd-divider", "", { left: left[0], right: right[0],
    "left-label": left[1], "right-label": right[1] });
  return open(words, "ssd-compare", divider);
}

/** One picture at any zoom; its pixels stay sharp squares. */
export function fullScreen(words, src) {
  const image = make("img", "ssd-zoomed", { src, alt: "", draggable: "false" });
  const hint = make("p", "ssd-hint", {}, [words.zoom]);
  const dialog = open(words, "ssd-full", image, hint);
  dialog.requestFullscreen?.().catch(() => {}); // where it is refused, the dialog fills the window
  dialog.addEventListener("fullscreenchange", () => document.fullscreenElement || dialog.close());
  new Zoom(dialog, image);
  return dialog;
}

class Zoom {
  #at = { scale: 1, x: 0, y: 0 };
  #pointers = new Map(); // where each finger, or the mouse, was last

  constructor(field, image) {
    Object.assign(this, { field, image });
    field.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    field.addEventListener("keydown", (event) => this.#key(event));
    image.addEventListener("pointerdown", (event) => {
      image.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, placeOf(event));
    });
    image.addEventListener("pointermove", (event) => this.#drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      image.addEventListener(end, (event) => this.#pointers.delete(event.pointerId));
    }
    image.addEventListener("dblclick", () => this.#fit());
    const fit = () => this.#fit();
    image.addEventListener("load", fit);
    addEventListener("resize", fit);
    field.addEventListener("close", () => removeEventListener("resize", fit));
  }

  #fit() {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    if (!width) return;
    const scale = Math.min(this.field.clientWidth / width, this.field.clientHeight / height);
    this.#set({ scale, x: (this.field.clientWidth - width * scale) / 2,
      y: (this.field.clientHeight - height * scale) / 2 });
  }

  #set(at) {
    this.#at = at;
    this.image.style.transform = `translate(${at.x}px, ${at.y}px) scale(${at.scale})`;
    this.image.dataset.scale = at.scale.toFixed(2);
  }

  /** Zoom by a factor; the point (x, y) of the field stays where it is. */
  #by(factor, x, y) {
    const scale = Math.min(MOST, Math.max(LEAST, this.#at.scale * factor));
    const grown = scale / this.#at.scale;
    this.#set({ scale, x: x - (x - this.#at.x) * grown, y: y - (y - this.#at.y) * grown });
  }

  #wheel(event) {
    event.preventDefault();
    this.#by(event.deltaY < 0 ? STEP : 1 / STEP, event.clientX, event.clientY);
  }

  #key(event) {
    const factor = { "+": STEP, "=": STEP, "-": 1 / STEP }[event.key];
    if (factor) this.#by(factor, this.field.clientWidth / 2, this.field.clientHeight / 2);
  }

  /** One pointer moves the picture; two also zoom it. */
  #drag(event) {
    if (!this.#pointers.has(event.pointerId)) return;
    const before = spread(this.#pointers);
    this.#pointers.set(event.pointerId, placeOf(event));
    const after = spread(this.#pointers);
    const { scale, x, y } = this.#at;
    this.#set({ scale, x: x + after.x - before.x, y: y + after.y - before.y });
    if (before.apart && after.apart) this.#by(after.apart / before.apart, after.x, after.y);
  }
}

function placeOf(event) {
  return { x: event.clientX, y: event.clientY };
}

/** The middle of the first two pointers, and how far they are apart (0 for one alone). */
function spread(pointers) {
  const [a, b = a] = pointers.values();
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
}

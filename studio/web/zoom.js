/** Moves and zooms pictures that lie on each other in a field, and keeps them in sight. */

const STEP = 1.25; // a key or a button
const MOST = 32; // screen pixels for each pixel
const PAN = 64; // px, an arrow key
const CLOSE_UP = 3; // a double click

/** Where a picture of `size` px stands in `room` px: in the middle, or without a gap at an edge. */
export function held(at, size, room) {
  return size <= room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at));
}

export class Zoom {
  #at = { scale: 1, x: 0, y: 0 };
  #pointers = new Map(); // where each finger, or the mouse, was last
  #observer = new ResizeObserver(() => (this.fitted ? this.fit() : this.#set(this.#at)));
  fitted = true; // as large as the field takes it, also when the field changes

  /** images: all get the size of the first one. changed(): called after each change. */
  constructor(field, images, changed = () => {}) {
    Object.assign(this, { field, images, changed });
    for (const image of images) image.addEventListener("load", () => this.fit());
    field.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    field.addEventListener("dblclick", (event) => this.#double(event));
    field.addEventListener("pointerdown", (event) => this.#grasp(event));
    field.addEventListener("pointermove", (event) => this.#drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      field.addEventListener(end, (event) => this.#pointers.delete(event.pointerId));
    }
    this.#observer.observe(field);
  }

  /** Screen pixels for each pixel of the picture. */
  get scale() {
    return this.#at.scale;
  }

  /** Whether the whole picture is seen. */
  get whole() {
    return this.#at.scale <= this.#fitting * 1.001;
  }

  /** The left and the right edge of what is seen of the picture, in px of the field. */
  get edges() {
    const right = this.#at.x + this.#size.width * this.#at.scale;
    return [Math.max(0, this.#at.x), Math.min(this.field.clientWidth, right)];
  }

  get #size() {
    return { width: this.images[0].naturalWidth, height: this.images[0].naturalHeight };
  }

  get #fitting() {
    const { width, height } = this.#size;
    return Math.min(this.field.clientWidth / width, this.field.clientHeight / height);
  }

  /** Show the whole picture, as large as the field takes it. */
  fit() {
    if (this.#size.width && this.field.clientWidth) this.#set({ scale: this.#fitting, x: 0, y: 0 });
  }

  /** Zoom by a factor; the point (x, y) of the field, by default its middle, stays where it is. */
  by(factor, x = this.field.clientWidth / 2, y = this.field.clientHeight / 2) {
    const least = Math.min(this.#fitting, 1 / devicePixelRatio);
    const scale = Math.max(least, Math.min(MOST, this.#at.scale * factor));
    const grown = scale / this.#at.scale;
    this.#set({ scale, x: x - (x - this.#at.x) * grown, y: y - (y - this.#at.y) * grown });
  }

  /** Do what a key stands for; returns whether it stands for something. */
  key(key) {
    const whole = 1 / this.scale / devicePixelRatio;
    const factor = { "+": STEP, "=": STEP, "-": 1 / STEP, 1: whole }[key];
    const [x, y] = { ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN],
      ArrowDown: [0, -PAN] }[key] ?? [0, 0];
    if (factor) this.by(factor);
    else if (key === "0") this.fit();
    else if ((x || y) && !this.whole) this.#move(x, y);
    else return false;
    return true;
  }

  #set({ scale, x, y }) {
    const { width, height } = this.#size;
    if (!width) return;
    const at = this.#at = { scale, x: held(x, width * scale, this.field.clientWidth),
      y: held(y, height * scale, this.field.clientHeight) };
    this.fitted = Math.abs(scale / this.#fitting - 1) < 0.001;
    for (const image of this.images) {
      Object.assign(image.style, { width: `${width}px`, height: `${height}px`,
        transform: `translate(${at.x}px, ${at.y}px) scale(${scale})` });
    }
    this.field.classList.toggle("zoomed", !this.whole);
    this.changed();
  }

  #move(x, y) {
    this.#set({ scale: this.#at.scale, x: this.#at.x + x, y: this.#at.y + y });
  }

  #wheel(event) {
    event.preventDefault();
    const notch = event.deltaMode === 1 ? 40 : 1; // lines or px
    this.by(Math.exp(-event.deltaY * notch / 500), ...this.#inField(event));
  }

  #double(event) {
    if (this.whole) this.by(CLOSE_UP, ...this.#inField(event));
    else this.fit();
  }

  #inField({ clientX, clientY }) {
    const box = this.field.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top];
  }

  #grasp(event) {
    const slides = event.target.matches("input"); // two fingers zoom there, too
    if (event.button !== 0 || (slides && !this.whole)) return;
    if (!slides) this.field.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, this.#inField(event));
  }

  /** One pointer moves the picture; two also zoom it. */
  #drag(event) {
    if (!this.#pointers.has(event.pointerId)) return;
    const before = spread(this.#pointers);
    this.#pointers.set(event.pointerId, this.#inField(event));
    const after = spread(this.#pointers);
    this.#move(after.x - before.x, after.y - before.y);
    if (before.apart && after.apart) this.by(after.apart / before.apart, after.x, after.y);
  }

  stop() {
    this.#observer.disconnect();
  }
}

/** The middle of the first two pointers, and how far they are apart (0 for one alone). */
export function spread(pointers) {
  const [a, b = a] = pointers.values();
  return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2,
    apart: Math.hypot(a[0] - b[0], a[1] - b[1]) };
}

/**
 * The things of a picture as one touches them: what the pointer rests on glows and is named, a
 * click offers other words for it, and it can be dragged to another place. Knows no host.
 *
 * `shows` is what the server says of a picture: {rows, columns, prompt, things, scene}; a thing is
 * {phrase, name, box: [top, left, rows, columns], mask, choices}, and choices are [{kind, title,
 * options: [{label, prompt, now, at}]}].
 */

import { addStyleSheet, button, make, makeCanvas, setText } from "./elements.js";
import { Mask } from "./mask.js";

const FINE = 8; // pixels of an outline for each cell
const DRAGGED = 6; // screen pixels after which a press is a drag
const HELD = 500; // ms that a finger rests on a thing until its words open
const NARROW = 600; // pixels of a window in which the words open at its lower edge
const LOWEST = 200; // pixels: of the words where the picture leaves less
const [SLIM, WIDE, APART] = [180, 300, 8]; // pixels: widths of the words, and beside the rest
const CONSIDERED = 150; // ms on a choice until what it changes is shown
const SWATCHES = Object.entries({ "#d23b36": ["red", "红色"], "#ec8a2b": ["orange", "橙色"],
  "#f2cf3a": ["yellow", "黄色"], "#4f9d4f": ["green", "绿色"], "#3f74c9": ["blue", "蓝色"],
  "#8453b5": ["purple", "紫色"], "#ee8fb4": ["pink", "粉色"], "#fff": ["white", "白色"],
  "#222": ["black", "黑色"], "#8a5a33": ["brown", "棕色"], "#8c8c8c": ["grey", "gray", "灰色"],
  "#d4a62a": ["golden", "金色"] });
const LARGER = 2; // at most: the name of a thing where the picture is shown smaller
const ALONE = new Set(["remove", "another"]); // choices that need no title

export class Touch {
  #things = []; // as the server lists them, with their masks unpacked
  #lit = null;
  #drag = null; // {thing, from: [x, y], moved}
  #held = 0;
  #pointed = null; // where the pointer is
  #clicked = null; // a click that waits until the things are known

  /**
   * field: the element that the picture fills. words: texts. source(): the picture, an image or
   * canvas. on: chosen(prompt), and if the host takes them considered(prompt), null at the end, and
   * moved(thing, [rows, columns]) for a way that no words tell. scrolls: whether the page may
   * scroll the picture above the words on a phone. room(): the element beside whose edges the words
   * may open.
   */
  constructor(field, words, source, on, { scrolls = true, room = () => null } = {}) {
    addStyleSheet(new URL("touch.css", import.meta.url).href);
    Object.assign(this, { field, words, source, on, scrolls, room, enabled: true });
    this.cutout = makeCanvas("touch-cutout", 1, 1);
    this.tag = make("span", "touch-tag", { "aria-hidden": "true", hidden: "" });
    this.list = make("ul", "touch-things", { "aria-label": words.things });
    this.element = make("div", "touch", {}, [this.cutout, this.tag, this.list]);
    this.menu = new Choices(words, { chosen: (prompt) => this.#choose(prompt),
      considered: (prompt) => this.#consider(prompt), closed: () => this.light(null) });
    field.append(this.element, this.menu.element);
    this.end = new AbortController();
    for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave",
      "click", "contextmenu"]) {
      field.addEventListener(name, (event) => this.#pointer(name, event),
        { signal: this.end.signal });
    }
  }

  /** Show the things of a picture; null: nothing is known of it. */
  show(shows) {
    this.menu.close();
    this.settle();
    this.light(null);
    this.shows = shows;
    this.#things = (shows?.things ?? []).map((thing) => ({ ...thing,
      cells: Mask.unpacked(thing.mask).inverted() }));
    this.list.replaceChildren(...this.#things.map((thing) => this.#item(thing)),
      ...(shows?.scene?.length ? [this.#item(null)] : []));
    this.enable(this.enabled);
    if (!shows) this.#clicked = null; // it was on another picture
    else if (this.enabled) this.#catchUp();
  }

  /** What the pointer did while nothing was known yet. */
  #catchUp() {
    const [clicked, pointed] = [this.#clicked, this.#pointed];
    this.#clicked = null;
    if (clicked) this.open(this.#at(clicked), null, clicked);
    else if (pointed) this.#name(pointed);
  }

  /** Give the first thing the focus. */
  focus() {
    this.list.querySelector("button")?.focus();
  }

  /** Let the things be touched, or not while something else is done with the picture. */
  enable(on) {
    this.enabled = on;
    this.list.hidden = !on;
    if (!on) {
      this.menu.close();
      this.light(null);
    }
  }

  /** A thing as a button for keys and screen readers; null: the scene. */
  #item(thing) {
    const name = thing?.name ?? this.words.scene;
    const item = button(name, () => this.open(thing, item), { class: "touch-thing" });
    item.addEventListener("focus", () => this.light(thing));
    item.addEventListener("blur", () => this.menu.isOpen || this.light(null));
    const { rows, columns } = this.shows;
    const [top, left, tall, wide] = thing?.box ?? [0, 0, rows, columns];
    Object.assign(item.style, { top: `${(100 * top) / rows}%`, left: `${(100 * left) / columns}%`,
      height: `${(100 * tall) / rows}%`, width: `${(100 * wide) / columns}%` });
    return make("li", "", {}, [item]);
  }

  /** The thing at a point of the screen, or the one beside it; null if there is none. */
  #at({ clientX, clientY }) {
    const box = this.field.getBoundingClientRect();
    const { rows, columns } = this.shows;
    const x = Math.floor((columns * (clientX - box.left)) / box.width);
    const y = Math.floor((rows * (clientY - box.top)) / box.height);
    const near = [-1, 0, 1].flatMap((dy) => [-1, 0, 1].map((dx) => [x + dx, y + dy]));
    return this.#things.find(({ cells }) => cells.has(x, y))
      ?? this.#things.find(({ cells }) => near.some(([x, y]) => cells.has(x, y))) ?? null;
  }

  // Pointers

  #pointer(name, event) {
    if (name === "contextmenu") {
      if (this.#held) event.preventDefault(); // a finger that is held opens the words instead
      return;
    }
    if (name === "pointermove") this.#pointed = event;
    if (name === "pointerleave") this.#pointed = null;
    if (!this.enabled) return;
    if (!this.shows) {
      if (name === "click") this.#clicked = event;
      return;
    }
    if (name === "click") this.#click(event);
    if (!event.isPrimary) return;
    if (name === "pointerdown") this.#down(event);
    if (name === "pointermove") this.#move(event);
    if (name === "pointerup") this.#up(event);
    if (name === "pointercancel" || name === "pointerleave") this.#leave();
  }

  #down(event) {
    if (event.button !== 0) return;
    const thing = this.#at(event);
    this.#drag = { thing, from: [event.clientX, event.clientY], moved: false };
    if (event.pointerType === "touch") {
      this.light(thing);
      this.#held = setTimeout(() => this.#release(event), HELD);
    } else if (thing) {
      this.light(thing);
      event.preventDefault(); // no text is selected on the way
      this.field.setPointerCapture(event.pointerId);
    }
  }

  #release(event) {
    if (!this.#drag) return;
    const { thing } = this.#drag;
    this.#drag = null;
    this.open(thing, null, event);
  }

  #move(event) {
    if (this.menu.isOpen) return;
    if (!this.#drag) {
      if (event.pointerType !== "touch") this.#name(event);
      return;
    }
    const { thing, from } = this.#drag;
    const way = [event.clientX - from[0], event.clientY - from[1]];
    if (Math.hypot(...way) < DRAGGED && !this.#drag.moved) return;
    clearTimeout(this.#held);
    if (event.pointerType === "touch" || !this.#movable(thing)) { // a finger scrolls the page
      this.#drag = null;
      this.light(null);
      return;
    }
    this.#drag.moved = true;
    this.field.dataset.dragging = "true";
    const [x, y] = way.map((pixels) => pixels / this.#zoom);
    this.cutout.style.translate = `${x}px ${y}px`;
    const place = this.#placeFor(thing, way[0]);
    this.tag.hidden = place === null || !this.#isOver(event);
    if (place) setText(this.tag, place.label);
  }

  #up(event) {
    clearTimeout(this.#held);
    if (!this.#drag?.moved) return;
    const { thing, from } = this.#drag;
    delete this.field.dataset.dragging;
    this.#drag = { moved: true }; // until the click that follows
    const way = [event.clientX - from[0], event.clientY - from[1]];
    this.element.dataset.dropped = "true"; // it stays there until the host settles it
    if (!this.#isOver(event) || !this.#drop(thing, ...way)) this.settle();
  }

  /** Whether a point is on the picture: a thing that is dragged away from it stays. */
  #isOver({ clientX, clientY }) {
    const { left, right, top, bottom } = this.field.getBoundingClientRect();
    return clientX > left && clientX < right && clientY > top && clientY < bottom;
  }

  /** The place nearest to where a thing was dragged; null if no words tell places. */
  #placeFor(thing, dx) {
    const [, left, , wide] = thing.box;
    const to = (left + wide / 2) / this.shows.columns
      + dx / this.field.getBoundingClientRect().width;
    return placesOf(thing).reduce((a, b) => (
      a === null || Math.abs(b.at - to) < Math.abs(a.at - to) ? b : a), null);
  }

  /** The words open by a click: those of another thing were closed by then. */
  #click(event) {
    const dragged = this.#drag?.moved;
    this.#drag = null;
    if (!dragged && event.target === this.field) this.open(this.#at(event), null, event);
  }

  #movable(thing) {
    return thing !== null && (placesOf(thing).length > 0 || this.on.moved !== undefined);
  }

  /** Screen pixels of a pixel of the page: a host may zoom the picture. */
  get #zoom() {
    return this.field.getBoundingClientRect().width / this.field.offsetWidth || 1;
  }

  /** A dragged thing goes where words can tell, or else as many cells as it was dragged. */
  #drop(thing, dx, dy) { // returns whether anything changes
    const box = this.field.getBoundingClientRect();
    const { rows, columns } = this.shows;
    const place = this.#placeFor(thing, dx);
    if (place !== null) {
      if (!place.now) this.on.chosen(place.prompt);
      return !place.now;
    }
    const cells = [Math.round((rows * dy) / box.height), Math.round((columns * dx) / box.width)];
    const moves = cells.some(Boolean);
    if (moves) this.on.moved(thing, cells);
    return moves;
  }

  /** What was dragged is no longer shown where it was dropped: it is drawn, or not wanted. */
  settle() {
    if (!this.element.dataset.dropped) return;
    delete this.element.dataset.dropped;
    this.cutout.style.translate = "";
    if (!this.menu.isOpen) this.light(null);
  }

  #endDrag() {
    this.#drag = null;
    delete this.field.dataset.dragging;
    if (!this.element.dataset.dropped) this.cutout.style.translate = "";
  }

  #leave() {
    clearTimeout(this.#held);
    this.#held = 0;
    if (this.#drag?.moved) this.#endDrag();
    this.#drag = null;
    if (!this.menu.isOpen) this.light(null);
  }

  // Looks

  /** Let a thing glow and say its name; null: none. */
  light(thing) {
    if (thing === this.#lit && thing !== null) return;
    this.#lit = thing;
    this.element.dataset.lit = String(thing !== null);
    this.field.dataset.over = thing ? "thing" : "";
    this.tag.hidden = thing === null;
    if (thing === null) return;
    setText(this.tag, thing.name);
    this.#cut(thing);
    const [top, left, , wide] = thing.box;
    const { rows, columns } = this.shows;
    const scale = Math.min(1 / this.#zoom, LARGER);
    const half = (scale * this.tag.offsetWidth) / this.field.offsetWidth / 2;
    const middle = Math.max(Math.min((left + wide / 2) / columns, 1 - half), half);
    Object.assign(this.tag.style, { left: `${100 * middle}%`, top: `${(100 * top) / rows}%`,
      scale: String(scale) });
    this.tag.classList.toggle("inside", top < 2);
  }

  /** Let the thing at a point glow; where there is none, the scene is named beside the pointer. */
  #name(event) {
    const thing = this.#at(event);
    this.light(thing);
    if (thing || !this.shows.scene.length) return;
    const box = this.field.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    setText(this.tag, this.words.scene);
    this.tag.hidden = false;
    this.tag.classList.remove("inside");
    Object.assign(this.tag.style, { left: `${100 * Math.min(Math.max(x, 0.1), 0.9)}%`,
      top: `${(100 * Math.max(event.clientY - box.top, 32)) / box.height}%` });
    this.field.dataset.over = "scene";
  }

  /** Cut the thing out of the picture, with a soft edge. */
  #cut({ cells }) {
    const { rows, columns } = cells;
    const source = this.source();
    const width = source.naturalWidth || source.width;
    const height = source.naturalHeight || source.height;
    Object.assign(this.cutout, { width, height });
    const context = this.cutout.getContext("2d");
    context.drawImage(stencil(cells), 0, 0, columns * FINE, rows * FINE, 0, 0, width, height);
    context.globalCompositeOperation = "source-in";
    context.drawImage(source, 0, 0, width, height);
  }

  // Words

  /** Offer words for a thing, or for the scene. from: the button to which the focus returns. */
  open(thing, from = null, event = null) {
    const box = this.field.getBoundingClientRect();
    const at = event ? (event.clientX - box.left) / box.width : 0.5;
    const choices = thing ? thing.choices : nearest(this.shows?.scene ?? [], at);
    if (choices.length === 0 && !thing) return;
    this.light(thing);
    if (innerWidth < NARROW && this.scrolls) this.field.scrollIntoView({ block: "start" });
    this.menu.open({ name: thing?.name ?? this.words.scene, choices, phrase: thing?.phrase ?? "",
      prompt: this.shows.prompt }, anchor(thing, this, event), from);
  }

  /** What a choice would change is shown in place of the thing. */
  #consider(prompt) {
    if (!this.on.considered) return;
    this.element.dataset.lit = String(prompt === null && this.#lit !== null);
    this.on.considered(prompt);
  }

  #choose(prompt) {
    this.menu.close();
    this.on.chosen(prompt);
  }

  dispose() {
    this.end.abort();
    clearTimeout(this.#held);
    this.menu.dispose();
    this.element.remove();
  }
}

/** The choices with one option for each label, at the place nearest to where one has clicked. */
function nearest(choices, at) {
  const away = (option) => Math.abs((option.at ?? at) - at);
  return choices.map(({ options, ...rest }) => {
    const best = new Map();
    for (const option of options) {
      const other = best.get(option.label);
      if (!other || away(option) < away(other)) best.set(option.label, option);
    }
    return { ...rest, options: [...best.values()] };
  });
}

/** The words for other places of a thing. */
function placesOf({ choices }) {
  return choices.find(({ kind }) => kind === "place")?.options ?? [];
}

/**
 * What the words open beside: the picture, on the side of the thing or of the click, where there is
 * room for them; otherwise the thing.
 */
function anchor(thing, { field, shows: { rows, columns }, room }, event) {
  const box = field.getBoundingClientRect();
  const { left: first, right: last } = room()?.getBoundingClientRect()
    ?? { left: 0, right: innerWidth };
  const [top, left, , wide] = thing?.box ?? [0, 0, rows, columns];
  const across = (column) => box.left + (box.width * column) / columns;
  const middle = thing ? across(left + wide / 2) : event?.clientX ?? box.right;
  return { left: across(left), right: across(left + wide),
    top: thing ? box.top + (box.height * top) / rows : event?.clientY ?? box.top,
    leftward: middle < box.left + box.width / 2, picture: box, first, last };
}

/** The cells of a mask as a picture of FINE pixels a cell, with rounded corners and soft edges. */
function stencil(cells) {
  const { rows, columns } = cells;
  const canvas = makeCanvas("", columns * FINE, rows * FINE);
  const pixels = new ImageData(canvas.width, canvas.height);
  const value = (x, y) => Number(cells.has(Math.min(Math.max(x, 0), columns - 1),
    Math.min(Math.max(y, 0), rows - 1)));
  for (let py = 0; py < canvas.height; py++) {
    const v = (py + 0.5) / FINE - 0.5;
    const [y, b] = [Math.floor(v), v - Math.floor(v)];
    for (let px = 0; px < canvas.width; px++) {
      const u = (px + 0.5) / FINE - 0.5;
      const [x, a] = [Math.floor(u), u - Math.floor(u)];
      const share = (1 - b) * ((1 - a) * value(x, y) + a * value(x + 1, y))
        + b * ((1 - a) * value(x, y + 1) + a * value(x + 1, y + 1));
      const inside = Math.min(Math.max((share - 0.3) / 0.25, 0), 1);
      pixels.data[4 * (py * canvas.width + px) + 3] = 255 * inside;
    }
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

/** The words that a click offers: chips by kind, and a line for any others. */
class Choices {
  #timer = 0;
  #from = null;

  /** on: chosen(prompt), considered(prompt or null), closed(). */
  constructor(words, on) {
    Object.assign(this, { words, on });
    this.element = make("div", "touch-menu", { popover: "auto", role: "dialog" });
    this.element.addEventListener("beforetoggle", ({ newState }) => newState === "closed"
      && this.#closed());
    this.element.addEventListener("keydown", (event) => this.#key(event));
    for (const name of ["pointerdown", "pointerup", "pointermove", "click"]) {
      this.element.addEventListener(name, (event) => event.stopPropagation());
    }
    const at = () => this.isOpen && this.#place();
    this.observer = new ResizeObserver(at);
    this.observer.observe(this.element);
  }

  get isOpen() {
    return this.element.matches(":popover-open");
  }

  open({ name, choices, phrase, prompt }, where, from) {
    const close = button("×", () => this.close(), { class: "touch-close",
      "aria-label": this.words.close });
    this.element.setAttribute("aria-label", name);
    this.element.replaceChildren(make("div", "touch-head", {}, [make("strong", "", {}, [name]),
      close]), ...this.#groups(choices), ...(phrase ? [this.#line(phrase, prompt)] : []));
    Object.assign(this, { where });
    this.#from = from;
    this.element.showPopover();
    this.#place();
    const chip = (name) => this.element.querySelector(`.touch-chip${name}`);
    if (from) (chip("[aria-pressed=true]") ?? chip(""))?.focus();
  }

  #groups(choices) {
    const titled = choices.filter(({ kind }) => !ALONE.has(kind));
    const alone = choices.filter(({ kind }) => ALONE.has(kind));
    const chips = (list) => list.flatMap(({ kind, options }) => options.map(
      (option) => this.#chip(option, kind)));
    return [...titled.map((group) => make("div", "touch-group",
      { role: "group", "aria-label": group.title, "data-kind": group.kind },
      [make("span", "touch-title", {}, [group.title]),
        make("div", "touch-chips", {}, chips([group]))])),
    ...(alone.length ? [make("div", "touch-chips touch-alone", {}, chips(alone))] : [])];
  }

  #chip({ label, prompt, now = false }, kind) {
    const chip = button(label, () => now || this.on.chosen(prompt),
      { class: "touch-chip", "aria-pressed": String(now) });
    const swatch = kind === "colour" && SWATCHES.find(([, names]) => names.includes(label));
    if (swatch) chip.prepend(make("span", "touch-swatch"));
    if (swatch) chip.firstChild.style.background = swatch[0];
    const consider = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.on.considered(now ? null : prompt), CONSIDERED);
    };
    chip.addEventListener("pointerenter", consider);
    chip.addEventListener("focus", consider);
    chip.addEventListener("pointerleave", () => {
      clearTimeout(this.#timer);
      this.on.considered(null);
    });
    return chip;
  }

  /** Any other words in place of the thing's own. */
  #line(phrase, prompt) {
    const input = make("input", "", { type: "text", value: phrase, "aria-label": this.words.other,
      enterkeyhint: "go" });
    const form = make("form", "touch-line", {}, [input,
      make("button", "button small", { type: "submit" }, [this.words.draw])]);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const at = prompt.toLowerCase().indexOf(phrase.toLowerCase());
      const text = input.value.trim();
      if (text === "" || text === phrase || at < 0) return;
      this.on.chosen(prompt.slice(0, at) + text + prompt.slice(at + phrase.length));
    });
    return form;
  }

  /** The arrow keys go from chip to chip. */
  #key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || event.target.matches("input")) return;
    const chips = [...this.element.querySelectorAll(".touch-chip")];
    const next = chips.indexOf(document.activeElement) + step;
    chips.at(next % chips.length)?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** Beside the thing, wholly inside the window; on a phone at its lower edge. */
  #place() {
    const { style } = this.element;
    const { left, right, top, leftward, picture, first, last } = this.where;
    if (innerWidth < NARROW) {
      const room = Math.max(LOWEST, innerHeight - picture.bottom - APART);
      Object.assign(style, { inset: "auto 0 0 0", width: "auto", maxHeight: `${room}px` });
      return;
    }
    style.maxHeight = "";
    const beyond = (from, to) => [picture.left - from, to - picture.right]
      .map((gap) => gap - 2 * APART);
    const near = beyond(first, last);
    const gaps = Math.max(...near) >= SLIM ? near : beyond(0, innerWidth);
    const onLeft = gaps[leftward ? 0 : 1] >= SLIM ? leftward : !leftward;
    const beside = Math.max(...gaps) >= SLIM; // all of the picture stays in sight
    const width = beside ? Math.min(gaps[onLeft ? 0 : 1], WIDE) : Math.min(WIDE, innerWidth - 16);
    style.width = `${width}px`;
    const [from, to] = beside ? [picture.left, picture.right] : [left, right];
    const x = onLeft ? from - APART - width : to + APART;
    const y = Math.max(8, Math.min(top, innerHeight - this.element.offsetHeight - 8));
    Object.assign(style, { inset: "auto", top: `${y}px`,
      left: `${Math.max(8, Math.min(x, innerWidth - width - 8))}px` });
  }

  #closed() {
    clearTimeout(this.#timer);
    this.on.considered(null);
    this.on.closed();
    this.#from?.focus();
    this.#from = null;
  }

  close() {
    if (this.isOpen) this.element.hidePopover();
  }

  dispose() {
    this.close();
    this.observer.disconnect();
    this.element.remove();
  }
}

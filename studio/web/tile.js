/** A saved picture in the grid of the history: its thumbnail, its words, a tick and a star. */

import { button, make } from "./core/elements.js";

const LONG = 500; // ms of a press that chooses

/** What a picture is called: its prompt, or what kind of picture it is. */
export const nameOf = ({ title, kind }, words) => (kind === "race" ? words.race : title);

/** The browser's own locale, if it is of the page's language. */
const localeOf = (language) => (navigator.language.startsWith(language) ? navigator.language
  : language);

const DAY = 24 * 3600 * 1000; // ms

/** When a picture was saved: the time of today, else the day. */
export function whenSaved(savedAt, language, now = new Date()) {
  const at = new Date(savedAt);
  const [today, year] = [now - at < DAY && now.getDate() === at.getDate(),
    now.getFullYear() === at.getFullYear()];
  const parts = today ? { hour: "numeric", minute: "2-digit" }
    : { day: "numeric", month: "short", ...(year ? {} : { year: "numeric" }) };
  return new Intl.DateTimeFormat(language, parts).format(at);
}

export class Tile {
  /** on: open(event), large(), star(), choose(on, shift). */
  constructor(app, entry, on) {
    Object.assign(this, { entry, on });
    const { history: words, stage } = app.words;
    const name = nameOf(entry, words);
    const image = make("img", "", { src: entry.thumbnail, alt: "", loading: "lazy",
      decoding: "async", draggable: "false" });
    this.button = make("button", "picture-open", { type: "button", title: name }, [
      make("span", "picture-box", {}, [image]), make("span", "picture-title", {}, [name]),
      make("span", "small hint clip", {},
        [[entry.quality, entry.kind === "partial" && words.partial,
          whenSaved(entry.saved_at, localeOf(app.language))].filter(Boolean).join(" · ")])]);
    this.box = make("input", "", { type: "checkbox",
      "aria-label": app.say(words.choosePicture, { name }) });
    this.star = button("★", () => on.star(), { class: "picture-star", title: stage.favourite,
      "aria-label": `${stage.favourite}: ${name}` });
    this.count = make("button", "picture-count", { type: "button", hidden: "" });
    this.element = make("li", "picture", { "data-id": entry.id },
      [this.button, make("label", "picture-check", {}, [this.box]), this.star,
        make("span", "picture-over", {}, [this.count])]);
    this.named = (count) => app.say(words.stack, { count, name });
    this.#listen();
  }

  #listen() {
    this.button.addEventListener("click", (event) => {
      if (this.held) event.preventDefault();
      else this.on.open(event);
      this.held = false;
    });
    this.button.addEventListener("dblclick", () => this.on.large());
    this.box.addEventListener("click",
      ({ shiftKey }) => this.on.choose(this.box.checked, shiftKey));
    this.button.addEventListener("pointerdown", ({ pointerType }) => {
      this.held = false;
      if (pointerType === "touch") this.timer = setTimeout(() => this.#hold(), LONG);
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      this.button.addEventListener(end, () => clearTimeout(this.timer));
    }
    this.button.addEventListener("contextmenu", (event) => this.held && event.preventDefault());
  }

  /** A long press chooses; the click that follows it opens nothing. */
  #hold() {
    this.held = true;
    this.on.choose(!this.box.checked, false);
  }

  /** Whether the Tab key reaches it. */
  reach(on) {
    const controls = [this.button, this.box, this.star, this.count];
    for (const control of controls) control.tabIndex = on ? 0 : -1;
  }

  /** Others lie behind it: so many; turn() shows them, or folds them again. */
  stack(others, open = false, turn = null) {
    this.count.hidden = others === 0;
    this.count.textContent = open ? "−" : String(others + 1);
    this.count.title = this.named(others + 1);
    this.count.setAttribute("aria-label", this.count.title);
    this.count.setAttribute("aria-expanded", String(open));
    this.count.onclick = turn;
    this.element.classList.toggle("stacked", others > 0 && !open);
  }

  focus() {
    this.button.focus();
  }

  update(choice, open) {
    const { id, favourite } = this.entry;
    this.box.checked = choice.has(id);
    this.element.classList.toggle("chosen", choice.has(id));
    this.element.classList.toggle("favourite", favourite);
    this.star.setAttribute("aria-pressed", String(favourite));
    if (id === open) this.button.setAttribute("aria-current", "true");
    else this.button.removeAttribute("aria-current");
  }
}

/**
 * Words of the prompt that the model does not know: underlined where they stand, by a layer behind
 * the text area, and each with the nearest word that it knows.
 */

import { button, make } from "./core/elements.js";

const LISTED = 6;
const TOLD = new Set(["cannot", "refused"]); // notes that name what is unknown themselves
const LETTER = /[\p{L}\p{N}]/u;

/**
 * The unknown words of a plan's notes as [{start, end, word, nearest}] in `text`. The server counts
 * code points, from the first that is no blank. Pure.
 */
export function unknownIn(notes, text) {
  const points = [...text.trimStart()];
  const before = text.length - text.trimStart().length;
  const at = (count) => before + points.slice(0, count).join("").length;
  return notes.filter(({ kind, end }) => kind === "unknown" && end > 0)
    .map(({ start, end, nearest }) => ({ start: at(start), end: at(end), nearest,
      word: text.slice(at(start), at(end)) }));
}

/** Marks of the text `before` in the text `after`, without those that the change touches. Pure. */
export function shifted(marks, before, after) {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const [by, last] = [after.length - before.length, before.length - tail];
  const grown = (at) => LETTER.test(after[at] ?? "");
  return marks.flatMap((mark) => {
    if (mark.end < head || (mark.end === head && !grown(head))) return [mark];
    const moved = { ...mark, start: mark.start + by, end: mark.end + by };
    return mark.start < last || grown(moved.start - 1) ? [] : [moved];
  });
}

export class Marks {
  #text = ""; // that the marks belong to
  #watchers = new Set();
  list = [];

  constructor(app, area) {
    Object.assign(this, { app, area, layer: make("div", "prompt-layer", { "aria-hidden": "true" }),
      offer: make("button", "chip offer", { type: "button", id: "nearest" }) });
    this.offer.hidden = true;
    this.offer.addEventListener("click", () => this.take(this.offered));
    area.addEventListener("click", () => this.#offer());
    app.settings.watch((_, names) => names.includes("prompt") && this.#follow());
    app.planner.watch((answer) => this.#learn(answer));
  }

  /** Call look(list) now and whenever the unknown words change. */
  watch(look) {
    this.#watchers.add(look);
    look(this.list);
  }

  /** Write the nearest known word in place of an unknown one; the browser can undo it. */
  take({ start, end, nearest }) {
    this.area.focus();
    this.area.setSelectionRange(start, end);
    if (document.execCommand("insertText", false, nearest)) return;
    this.area.setRangeText(nearest, start, end, "end");
    this.area.dispatchEvent(new Event("input"));
  }

  #follow() {
    const list = shifted(this.list, this.#text, this.area.value);
    this.#show(list);
  }

  #learn({ settings, notes = [] }) {
    if (settings?.prompt === this.area.value.trim()) this.#show(unknownIn(notes, this.area.value));
  }

  #show(list) {
    const text = this.area.value;
    const same = text === this.#text && JSON.stringify(list) === JSON.stringify(this.list);
    if (same) return;
    Object.assign(this, { list });
    this.#text = text;
    this.offer.hidden = true;
    let done = 0;
    const pieces = list.flatMap(({ start, end }) => {
      const plain = text.slice(done, start);
      done = end;
      return [plain, make("mark", "", {}, [text.slice(start, end)])];
    });
    this.layer.replaceChildren(...pieces, `${text.slice(done)}\u200b`); // a last empty line counts
    for (const look of this.#watchers) look(list);
  }

  /** Offer the nearest word below the unknown one that was clicked. */
  #offer() {
    const at = this.area.selectionStart;
    const n = this.list.findIndex(({ start, end }) => start <= at && at <= end);
    this.offered = this.list[n];
    this.offer.hidden = !this.offered?.nearest || at !== this.area.selectionEnd;
    if (this.offer.hidden) return;
    this.offer.textContent = this.offered.nearest;
    this.offer.title = this.app.words.words.takeNearest;
    const mark = this.layer.querySelectorAll("mark")[n];
    Object.assign(this.offer.style, { left: `${mark.offsetLeft}px`,
      top: `${mark.offsetTop + mark.offsetHeight + 2}px` });
  }
}

/** A line that lists the unknown words; those with a known neighbour are buttons. */
export function suggestions(app, marks) {
  const { words } = app.words;
  const element = make("div", "row small hint suggestions", { id: "unknown", role: "group",
    "aria-label": words.unknown });
  marks.watch((list) => {
    const noted = app.planner.answer?.notes?.some(({ kind }) => TOLD.has(kind)) ?? false;
    const each = [...new Map(list.map((mark) => [mark.word, mark])).values()]
      .filter(({ nearest }) => nearest || !noted);
    const first = each.slice(0, LISTED).map((mark) => suggestion(app, marks, mark));
    const more = each.length > LISTED ? [`+${each.length - LISTED}`] : [];
    element.hidden = each.length === 0;
    element.replaceChildren(make("span", "", {}, [words.unknown]), ...first, ...more);
  });
  return element;
}

/** A click takes the nearest word wherever the unknown one stands. */
function suggestion(app, marks, { word, nearest }) {
  if (!nearest) return make("span", "unknown-word", {}, [word]);
  return button(`${word} → ${nearest}`, () => {
    const same = marks.list.filter((mark) => mark.word === word);
    for (const mark of same.reverse()) marks.take(mark);
  }, { class: "chip", title: app.words.words.takeNearest });
}

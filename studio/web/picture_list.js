/** The saved pictures as a grid that grows as one scrolls: newest first. */

import { button, make, setText } from "./core/elements.js";
import { Tile } from "./tile.js";

const [PAGE, MOST] = [48, 500]; // pictures in one answer

export class PictureList {
  entries = [];
  choosing = false; // a click chooses, even while none is chosen
  #tiles = new Map(); // by id
  #asking = null; // ends the question that goes on
  #query = {};
  #focused = null; // id of the tile that the Tab key reaches
  #unfolded = new Set(); // keys of groups whose pictures are all shown

  /**
   * choice: a Choice. on: open(entry, {focus}), large(entry), star(entry), remove(entry), escape(),
   * and look(entry), called when the arrow keys reach a picture.
   */
  constructor(app, choice, on) {
    Object.assign(this, { app, words: app.words.history, choice, on });
    this.element = make("ul", "pictures",
      { id: "pictures", "aria-label": app.words.places.history });
    this.hint = make("p", "hint small", { id: "history-hint" });
    this.more = button(this.words.more, () => this.#ask(), { id: "history-more", hidden: "" });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focusin", ({ target }) => this.#reach(
      target.closest("li")?.dataset.id));
    this.nearing = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.#ask(),
      { rootMargin: "600px" });
  }

  get ids() {
    return this.entries.map(({ id }) => id);
  }

  /** The pictures that are not folded behind others. */
  get #shown() {
    return this.entries.filter(({ id }) => !this.#tiles.get(id).element.hidden);
  }

  entry(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  /** List what matches: {search, favourites}. */
  find(query) {
    this.#query = query;
    return this.#ask({ anew: true });
  }

  /** List anew what matched. */
  again() {
    return this.#ask({ anew: true });
  }

  /** Ask whether there are new pictures; what is shown stays where it is. */
  async refresh() {
    if (this.#asking) return;
    if (this.entries.length === 0) {
      await this.again();
      return;
    }
    const limit = Math.min(MOST, Math.max(PAGE, this.entries.length));
    const answer = await this.#answer({ limit });
    if (!answer) return;
    const known = answer.entries.findIndex(({ id }) => id === this.entries[0].id);
    const rest = answer.entries.slice(known).map(({ id }) => id);
    if (known < 0 || rest.some((id, n) => id !== this.entries[n]?.id)) {
      this.#show(answer, true);
      return;
    }
    const fresh = answer.entries.slice(0, known);
    this.entries.unshift(...fresh);
    this.element.prepend(...fresh.map((entry) => this.#tile(entry)));
    this.#fold();
    setText(this.hint, answer.hint);
  }

  /** Take pictures out that are gone. */
  drop(ids) {
    const first = this.entries.findIndex(({ id }) => ids.includes(id));
    const next = this.entries.slice(first).find(({ id }) => !ids.includes(id));
    for (const id of ids) {
      this.#tiles.get(id)?.element.remove();
      this.#tiles.delete(id);
    }
    this.entries = this.entries.filter(({ id }) => !ids.includes(id));
    this.#fold();
    this.#reach((next ?? this.entries.at(-1))?.id);
  }

  /** Show what has become of these pictures: chosen, favourite, open in the panel. */
  update(open = null) {
    this.element.classList.toggle("choosing", this.choice.size > 0 || this.choosing);
    for (const tile of this.#tiles.values()) tile.update(this.choice, open);
  }

  /** Make a change of the page after which a picture stands as high on the screen as before. */
  hold(id, change) {
    const top = () => this.#tiles.get(id)?.element.getBoundingClientRect().top ?? 0;
    const before = top();
    change();
    scrollBy(0, top() - before);
  }

  focus(id = this.#focused) {
    this.#tiles.get(id)?.focus();
  }

  async #ask({ anew = false } = {}) {
    if (this.#asking && !anew) return;
    const before = anew ? {} : { before: this.entries.at(-1)?.id };
    const answer = await this.#answer(before);
    if (answer) this.#show(answer, anew);
  }

  /** Pictures that match; null if another question was asked since, or if this one failed. */
  async #answer(parameters) {
    this.#asking?.abort();
    const asking = this.#asking = new AbortController();
    const { search = "", favourites = false } = this.#query;
    try {
      return await this.app.api.get("history",
        { search, favourites, limit: PAGE, ...parameters }, asking.signal);
    } catch (error) {
      if (error.name !== "AbortError") setText(this.hint, error.message);
      return null;
    } finally {
      if (this.#asking === asking) this.#asking = null;
    }
  }

  #show({ entries, more, hint }, anew) {
    if (anew) {
      this.#tiles.clear();
      this.element.replaceChildren();
      this.entries = [];
    }
    this.entries.push(...entries);
    this.element.append(...entries.map((entry) => this.#tile(entry)));
    this.#fold();
    this.more.hidden = !more;
    this.nearing.unobserve(this.more); // and anew: it may still be near
    this.nearing.observe(this.more);
    setText(this.hint, hint);
    this.hint.classList.toggle("nothing", this.entries.length === 0);
    this.#reach(this.#tiles.has(this.#focused) ? this.#focused : this.entries[0]?.id);
    this.on.listed();
  }

  /** Fold what was made of one picture with the same words, one after the other, to one tile. */
  #fold() {
    const groups = [];
    for (const entry of this.entries) {
      const key = entry.source && `${entry.source} ${entry.prompt}`;
      if (key && groups.at(-1)?.key === key) groups.at(-1).ids.push(entry.id);
      else groups.push({ key, ids: [entry.id] });
    }
    for (const { key, ids } of groups) {
      const [front, ...others] = ids.map((id) => this.#tiles.get(id));
      const open = this.#unfolded.has(key);
      for (const tile of others) {
        tile.element.hidden = !open;
        tile.stack(0);
      }
      front.element.hidden = false;
      front.stack(others.length, open, () => this.#turn(key));
    }
  }

  /** Unfold a group, or fold it again. */
  #turn(key) {
    if (!this.#unfolded.delete(key)) this.#unfolded.add(key);
    this.#fold();
  }

  #tile(entry) {
    const tile = new Tile(this.app, entry, {
      open: (event) => this.#clicked(entry, event), large: () => this.on.large(entry),
      star: () => this.on.star(entry),
      choose: (on, shift) => this.choice.turn(entry.id, on, shift ? this.#shownIds : null),
    });
    this.#tiles.set(entry.id, tile);
    tile.reach(false);
    tile.update(this.choice, null);
    return tile.element;
  }

  /** While some are chosen, or with Ctrl or Shift, a click chooses; otherwise it opens. */
  #clicked(entry, { ctrlKey, metaKey, shiftKey, detail }) {
    if (ctrlKey || metaKey || shiftKey || this.choosing || this.choice.size) {
      const on = shiftKey || !this.choice.has(entry.id);
      this.choice.turn(entry.id, on, shiftKey ? this.#shownIds : null);
    } else {
      this.on.open(entry, { focus: detail === 0 }); // after a mouse click keys go on here
    }
    if (detail > 0) this.focus(entry.id); // Safari does not focus what is clicked
  }

  /** Only one tile is reached by the Tab key; the arrow keys go to the others. */
  #reach(id) {
    if (!this.#tiles.has(id)) return;
    this.#tiles.get(this.#focused)?.reach(false);
    this.#focused = id;
    this.#tiles.get(id).reach(true);
  }

  get #shownIds() {
    return this.#shown.map(({ id }) => id);
  }

  #key(event) {
    const entries = this.#shown;
    const at = entries.findIndex(({ id }) => id === this.#focused);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const entry = entries[at];
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - this.#columns,
      ArrowDown: at + this.#columns, Home: 0, End: entries.length - 1 }[event.key];
    const does = { x: () => this.choice.turn(entry.id), f: () => this.on.star(entry),
      Delete: () => this.on.remove(entry), Escape: () => this.on.escape() }[event.key];
    if (to === undefined && !does) return;
    event.preventDefault();
    if (does) does();
    else this.#go(entries[to]);
  }

  #go(entry) {
    if (!entry) return;
    this.focus(entry.id);
    this.on.look(entry);
  }

  get #columns() {
    const [first, ...others] = this.#shown.map(({ id }) => this.#tiles.get(id).element);
    const next = others.findIndex((tile) => tile.offsetTop > first.offsetTop);
    return next < 0 ? others.length + 1 : next + 1;
  }
}

/** The place of all saved pictures: to find, choose, compare, save, delete, and draw on from. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { Choice } from "./choice.js";
import { openButton } from "./incoming.js";
import { isOver } from "./jobs.js";
import { compareTwo, detailsOf, favour, remove, showLarge, zipUrl } from "./picture_actions.js";
import { PictureList } from "./picture_list.js";
import { PicturePanel } from "./picture_panel.js";

const PAUSE = 250; // ms after the last key, before it is searched

export function mount(section, app) {
  addStyleSheet(new URL("history.css", import.meta.url).href);
  return new HistoryPlace(section, app);
}

class HistoryPlace {
  #shown = false;
  #scrolled = 0; // px, when the place was left
  #over = 0; // jobs that were over when the list was asked for

  constructor(section, app) {
    Object.assign(this, { app, words: app.words.history });
    this.choice = new Choice(() => this.#update());
    const star = (entry) => this.#star([entry]);
    const large = (entry) => this.#large(entry);
    const removed = (entry) => this.#remove([entry.id]);
    this.list = new PictureList(app, this.choice, { star, large, remove: removed,
      open: (entry, options) => this.#open(entry, options), listed: () => this.#update(),
      escape: () => (this.choice.size ? this.choice.drop() : this.panel.hide()),
      look: (entry) => this.panel.entry && this.#open(entry) });
    this.panel = new PicturePanel(app, { star, large, remove: removed,
      open: (id) => this.#openById(id), hold: (id, change) => this.list.hold(id, change),
      closed: (id) => {
        this.#update();
        this.list.focus(id);
      } });
    section.append(make("div", "history", {}, [
      make("h1", "unseen", {}, [app.words.places.history]),
      make("div", "history-head", {}, [this.#finding(), this.#acting()]),
      make("div", "history-body", {}, [make("div", "stack", {}, [this.list.element,
        make("div", "row history-end", {}, [this.list.more]), this.list.hint]),
      make("div", "panel-place", {}, [this.panel.element,
        make("p", "hint small", {}, [this.words.clickOne])])])]));
    app.jobs.watch((jobs) => this.#look(jobs));
    this.list.find({});
  }

  shown(value) {
    this.#shown = true;
    this.list.refresh();
    setTimeout(() => scrollTo(0, this.#scrolled)); // the browser itself scrolls to the place first
    if (value?.show) this.#openById(value.show);
  }

  hidden() {
    this.#shown = false;
    this.#scrolled = scrollY;
  }

  /** Pictures that were saved meanwhile appear. */
  #look(jobs) {
    const over = jobs.filter(isOver).length;
    if (over !== this.#over && this.#shown) this.list.refresh();
    this.#over = over;
  }

  #finding() {
    const { app, words } = this;
    this.search = make("input", "", { type: "search", id: "history-search",
      placeholder: words.search, "aria-label": words.search, maxlength: "200" });
    let timer;
    this.search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.#find(), PAUSE);
    });
    this.only = this.#toggle("history-only", ["★", make("span", "", {}, [words.favourites])],
      () => this.#find());
    this.pick = this.#toggle("history-pick", [words.choose], (on) => {
      this.list.choosing = on;
      if (!on) this.choice.drop();
      this.#update();
    });
    this.finding = make("div", "row", { role: "search" }, [make("div", "grow", {}, [this.search]),
      this.only, this.pick, ...openButton(app, words.openFile)]);
    return this.finding;
  }

  /** A button that is on or off. */
  #toggle(id, children, turned) {
    return button(children, ({ currentTarget: pressed }) => {
      const on = pressed.getAttribute("aria-pressed") !== "true";
      pressed.setAttribute("aria-pressed", String(on));
      turned(on);
    }, { id, "aria-pressed": "false" });
  }

  #find() {
    this.choice.drop();
    this.list.find({ search: this.search.value.trim(),
      favourites: this.only.getAttribute("aria-pressed") === "true" });
  }

  /** What can be done with the chosen pictures; stands where the search was. */
  #acting() {
    const { app, words } = this;
    const act = (name, run, className = "button") => button(words[name], run,
      { class: className, id: `chosen-${name}` });
    this.count = make("strong", "", { role: "status" });
    this.compare = act("compare", () => compareTwo(app, this.#chosen));
    this.zip = make("a", "button", { id: "chosen-zip", download: "pictures.zip" }, [words.zip]);
    this.acting = make("div", "row acting", { hidden: "", role: "toolbar",
      "aria-label": words.chosenTools }, [this.count, this.compare, this.zip,
      act("star", () => this.#star(this.#chosen)),
      ...(app.schema.local ? [act("remove", () => this.#remove(this.#chosen.map(({ id }) => id)),
        "button danger")] : []),
      act("done", () => this.#done(), "button plain")]);
    return this.acting;
  }

  get #chosen() {
    return this.choice.among(this.list.ids).map((id) => this.list.entry(id));
  }

  #done() {
    this.pick.setAttribute("aria-pressed", "false");
    this.list.choosing = false;
    this.choice.drop();
    this.list.focus();
  }

  #update() {
    if (!this.panel) return; // still being made
    const chosen = this.#chosen;
    this.list.update(this.panel.entry?.id);
    this.panel.update();
    this.finding.hidden = chosen.length > 0;
    this.acting.hidden = chosen.length === 0;
    this.compare.disabled = chosen.length !== 2;
    this.zip.href = zipUrl(chosen.map(({ id }) => id));
    setText(this.count, this.app.say(this.words.chosen, { count: chosen.length }));
  }

  #open(entry, options) {
    this.list.hold(entry.id, () => this.panel.show(entry, options));
    this.#update();
  }

  async #openById(id) {
    const entry = this.list.entry(id) ?? await detailsOf(this.app, id);
    if (entry) this.#open(entry, { focus: true });
  }

  /** Over the whole page; a picture that is not listed stands alone. */
  #large(entry) {
    const at = this.list.ids.indexOf(entry.id);
    return at < 0 ? showLarge(this.app, [entry], 0) : showLarge(this.app, this.list.entries, at);
  }

  /** Mark pictures, or unmark them if all are marked. */
  async #star(entries) {
    const on = entries.some(({ favourite }) => !favourite);
    const done = favour(this.app, entries, on);
    this.#update();
    if (!await done) this.#update();
  }

  async #remove(ids) {
    const done = remove(this.app, ids, () => this.list.refresh());
    if (ids.includes(this.panel.entry?.id)) this.panel.hide();
    this.list.drop(ids);
    this.choice.drop(ids);
    this.list.focus();
    if (!await done || this.list.entries.length === 0) this.list.again();
  }
}

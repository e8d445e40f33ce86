/**
 * What is known about a saved picture, and what can be done with it: beside the grid, or a sheet.
 */

import { button, make, setText } from "./core/elements.js";
import { copyLine, detailsOf, restore } from "./picture_actions.js";
import { pixelMode } from "./pixels.js";
import { nameOf } from "./tile.js";
import { sendMenu } from "./send.js";

export class PicturePanel {
  entry = null;

  /**
   * on: closed(id), hold(id, change), large(entry), star(entry), remove(entry), and open(id) for
   * another picture.
   */
  constructor(app, on) {
    Object.assign(this, { app, words: app.words.history, on });
    this.image = make("img", "", { alt: "" });
    const large = button(this.image, () => on.large(this.entry),
      { class: "panel-picture", title: app.words.stage.full, "aria-label": app.words.stage.full });
    pixelMode.mark(large);
    this.title = make("h2", "panel-title", { tabindex: "-1" });
    this.close = this.#button("close", () => this.hide(), ["×"], "button plain icon");
    this.close.setAttribute("aria-label", app.words.common.close);
    this.facts = make("dl", "facts");
    this.made = make("p", "row made", { hidden: "" });
    this.actions = make("div", "panel-actions");
    this.element = make("aside", "picture-panel stack", { id: "picture-panel", hidden: "",
      "aria-label": this.words.panel }, [make("div", "panel-head", {}, [this.title, this.close]),
      large, this.actions, this.made, this.facts]);
    this.element.addEventListener("keydown", ({ key }) => { // an open menu closes first
      if (key === "Escape" && !this.element.querySelector(":popover-open")) this.hide();
    });
  }

  /** Show a picture; focus: go there, too. */
  async show(entry, { focus = false } = {}) {
    this.entry = entry;
    this.element.hidden = false;
    setText(this.title, nameOf(entry, this.words));
    Object.assign(this.image, { src: entry.picture, alt: entry.title });
    this.actions.replaceChildren(...this.#actions());
    this.facts.replaceChildren();
    this.made.hidden = true;
    if (focus) this.title.focus({ preventScroll: true });
    const details = await detailsOf(this.app, entry.id);
    if (details && this.entry?.id === entry.id) this.#fill(details);
  }

  hide() {
    if (!this.entry) return;
    const { id } = this.entry;
    this.entry = null;
    this.on.hold(id, () => (this.element.hidden = true));
    this.on.closed(id);
  }

  #fill({ facts, source, copy, paintable }) {
    this.settings = copy.copy_settings;
    this.copySettings.hidden = !this.settings;
    this.paint.hidden = !paintable;
    this.restore.classList.toggle("main", !paintable); // one main button at a time
    this.facts.replaceChildren(...facts.filter(([, value]) => value !== this.entry.prompt)
      .flatMap(([name, value]) => [make("dt", "", {}, [name]), make("dd", "", {}, [value])]));
    this.#showKin(source);
  }

  #actions() {
    const { app, words, entry } = this;
    const { stage } = app.words;
    const known = entry.seed !== null;
    const single = entry.kind !== "race";
    const send = sendMenu(app, () => entry, "button");
    this.star = this.#button("favourite", () => this.on.star(entry), [`★ ${stage.favourite}`]);
    this.copySettings = this.#button("copy-settings", () => copyLine(app, this.settings),
      [words.copySettings]);
    this.paint = this.#button("paint", () => this.#paint(), [words.paint], "button main");
    this.restore = this.#button("restore", () => restore(app, entry.id), [words.restore],
      "button main");
    this.copySettings.hidden = this.paint.hidden = true; // until more is known
    this.update();
    return [
      this.paint,
      known && this.restore,
      single && this.#button("edit", () => app.go("create", { edit: entry.id }), [stage.edit]),
      known && single && this.#button("seeds", () => app.go("seeds", { like: entry.id }),
        [stage.seeds]),
      send.button, send.menu,
      known && this.#button("copy-prompt", () => copyLine(app, entry.prompt), [words.copyPrompt]),
      this.copySettings, this.star,
      app.schema.local && this.#button("delete", () => this.on.remove(entry), [words.remove],
        "button danger"),
    ].filter(Boolean);
  }

  /** Have the pixels painted of a picture that shows codes, then open that one. */
  async #paint() {
    const { app, words, paint, entry: { id } } = this;
    paint.disabled = true;
    const job = await app.attempt(app.jobs.submit("paint", { id }));
    if (job) {
      app.toast(words.painting);
      const ended = await app.jobs.ended(job.id);
      if (ended?.error) app.toast(ended.error, { bad: true });
      else if (ended?.saved.length) this.on.open(ended.saved[0].id);
    }
    paint.disabled = false;
  }

  #button(name, run, children, className = "button") {
    return button(children, run, { class: className, "data-action": name });
  }

  /** Show whether the picture is a favourite. */
  update() {
    this.star?.setAttribute("aria-pressed", String(Boolean(this.entry?.favourite)));
  }

  /** The picture that this one was made from, and those that were made from it. */
  async #showKin(source) {
    const { id } = this.entry;
    const answer = await this.app.api.get("steps", { id }).catch(() => ({ entries: [] }));
    if (this.entry?.id !== id) return;
    const made = answer.entries.filter((entry) => entry.source === id);
    this.made.hidden = !source && made.length === 0;
    this.made.replaceChildren();
    if (source) this.made.append(this.#kin("source", source, "", this.words.source));
    if (made.length) this.made.append(make("span", "", {}, [this.words.made]));
    this.made.append(...made.map((entry, n) => this.#kin("made", entry.id,
      `${this.words.made} ${n + 1}`)));
  }

  /** A picture to open; name: what it is called where it has no label. */
  #kin(action, id, name, label = "") {
    const path = id.split("/").map(encodeURIComponent).join("/");
    const image = make("img", "", { src: `api/thumbnail/${path}`, alt: name, height: "40" });
    return button([image, label], () => this.on.open(id),
      { class: "button plain", "data-action": action });
  }
}

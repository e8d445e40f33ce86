/**
 * The Edit tool on the stage: one paints the cells that are to be redrawn, or changes the words of
 * the prompt beside it. Each edit is a step that can be gone back to.
 */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { LiveCells } from "./core/live_cells.js";
import { Mask } from "./core/mask.js";
import { MaskCanvas } from "./core/mask_canvas.js";
import { Line, PaintTools } from "./edit_tools.js";
import { EditWords } from "./edit_words.js";
import { enable } from "./form.js";
import { keep } from "./kept.js";
import { detailsOf } from "./picture_actions.js";
import { pixelMode } from "./pixels.js";
import { freshSeed, savesRecipe, withSeed } from "./seed.js";
import { statusText, timeLeft } from "./status.js";
import { Steps } from "./steps.js";
import { Suggestions } from "./suggestions.js";
import { varyMenu } from "./vary_menu.js";

const SUGGESTED = 4;
const masks = new Map(); // by id of an edited picture: what was redrawn, to go back to

/**
 * What edits the picture of this id; null if it is gone. options: `tool` to begin with, `mask`
 * (packed), `size` to extend it to, `words` (false: the prompt stays), `job`, an edit that goes on,
 * and `vary`, how far four variations are from it. on: tell(line, bad), progress(share), saved(),
 * open(id, options) for another picture, and close(entry).
 */
export async function openEdit(app, id, options, on) {
  const [look, entry] = await Promise.all([app.api.get("look", { id }), detailsOf(app, id)]);
  if (!entry) return null;
  if (options.words !== false) takeWords(app, look, true);
  const view = new EditView(app, entry, look, options, on);
  await view.complete;
  return view;
}

/** An edit begins with the words that its picture was drawn from. */
function takeWords(app, { drawn }, offersUndo = false) {
  if (drawn === null) return;
  const names = ["prompt", "negative", "fixed", "open"];
  const before = Object.fromEntries(names.map((name) => [name, app.settings.get(name)]));
  app.settings.set({ prompt: drawn[0], negative: drawn[1], fixed: "", open: "" });
  if (!offersUndo || before.prompt === "" || before.prompt === drawn[0]) return;
  app.toast(app.words.edit.prompt,
    { action: { label: app.words.common.undo, run: () => app.settings.set(before) } });
}

class EditView {
  #job = null; // the edit that goes on, {id, settings}
  #next = []; // edits that wait for it
  #last = null; // id of the last one that ended
  #live = null;
  #unfollow = () => {};
  #comparing = false;
  #disposed = false;

  constructor(app, entry, look, options, on) {
    addStyleSheet(new URL("edit.css", import.meta.url).href);
    const own = `${entry.width}x${entry.height}`;
    Object.assign(this, { app, words: app.words.edit, entry, look, on,
      size: options.size && options.size !== own ? options.size : "" }); // to extend it to
    this.canvas = new MaskCanvas(this.#grid(), { name: this.words.canvas, help: this.words.keys },
      { changed: () => this.#update(), moved: (x, y, open) => this.#sayCell(x, y, open) });
    this.image = make("img", "edit-picture", { draggable: "false" });
    this.canvas.layers.append(this.image);
    this.steps = new Steps(app, (step) => this.#chosen(step));
    this.strip = this.steps.element;
    this.#build();
    this.#showPicture(entry);
    this.complete = Promise.all([this.#begin(options), ready(entry.picture)]);
    this.keys = (event) => this.#key(event);
    document.addEventListener("keydown", this.keys);
  }

  /** The cells of the picture, extended if it is. */
  #grid() {
    const { rows, columns } = this.look;
    const tall = this.size ? Number(this.size.split("x")[1]) : this.entry.height;
    return { rows: (rows * tall) / this.entry.height, columns };
  }

  #build() {
    const { app, words, canvas } = this;
    this.paint = new PaintTools(app, canvas, { undo: () => this.#undo(), redo: () => this.#redo(),
      can: () => ({ undo: canvas.canUndo || Boolean(this.steps.before(this.entry)),
        redo: canvas.canRedo || Boolean(this.steps.after(this.entry)) }) });
    this.line = new Line(app, canvas, this.look, { size: this.size,
      resized: (size) => this.on.open(this.entry.id, { size, tool: "rows", words: false }) });
    this.prompt = new EditWords(app, canvas, () => this.#update());
    this.start = button(words.apply, () => this.apply(),
      { class: "button main", id: "edit-apply" });
    this.suggest = button(words.suggest, () => this.apply(SUGGESTED), { id: "edit-suggest" });
    this.again = button(words.again, () => this.#tryAgain(), { id: "edit-again" });
    const vary = varyMenu(app, (strength) => this.#vary(strength));
    vary.button.id = "edit-vary";
    vary.button.className = "button";
    this.compare = button(words.compare, () => this.#compare(),
      { id: "edit-compare", title: words.compareHint });
    this.close = button(words.close, () => this.#leave(), { id: "edit-close" });
    this.suggestions = new Suggestions(app);
    this.hint = make("p", "hint small", { title: this.look.how });
    this.aloud = make("p", "unseen", { role: "status" });
    const { rows } = canvas.grid;
    const frame = make("div", "edit-frame", {}, [canvas.element, this.prompt.legend,
      this.suggestions.spread]);
    frame.style.setProperty("--width", String(this.entry.width));
    frame.style.setProperty("--height",
      String((this.entry.height * rows) / this.look.rows));
    this.image.style.height = `${(100 * this.look.rows) / rows}%`;
    pixelMode.mark(frame);
    this.element = make("section", "edit", { "aria-label": words.name }, [
      make("div", "edit-box", {}, [frame]), make("div", "edit-controls", {}, [
        this.paint.element, make("div", "row edit-actions", {}, [this.start, this.suggest,
          this.again, vary.button, vary.menu, this.compare, this.close]),
        make("div", "row edit-context", {}, [this.suggestions.choice, this.line.element,
          this.prompt.element, this.hint]), this.aloud])]);
  }

  async #begin({ tool = "brush", mask = null, job = null, vary = "" }) {
    const { finished, rows } = this.look;
    const grows = this.size !== "" || finished !== null;
    if (grows) this.canvas.setFree(finished ?? rows);
    if (mask) this.canvas.begin(Mask.unpacked(mask));
    this.canvas.choose(grows && !mask ? "rows" : tool);
    this.#beginWords();
    if (job) this.#run(job);
    await this.steps.refresh(this.entry.id);
    this.#update();
    if (vary) this.#vary(vary);
  }

  /** Words can be changed where those of the whole picture are known. */
  #beginWords() {
    const { drawn, finished } = this.look;
    const whole = finished === null && this.size === "";
    this.prompt.begin(whole && drawn ? drawn[0] : null, this.entry.id);
  }

  #showPicture(entry) {
    this.entry = entry;
    Object.assign(this.image, { src: entry.picture, alt: entry.prompt ?? entry.name });
  }

  /** Everything that depends on mask, steps and runs; the plan counts the cells of the mask. */
  #update() {
    if (this.#disposed || !this.aloud) return; // not built yet
    const { app, canvas, words } = this;
    this.line.update(); // may change the mask
    this.paint.update();
    this.prompt?.update();
    const { count, cells } = canvas.mask;
    const some = count > 0 && count < cells.length;
    const { old_prompt } = this.prompt.settings();
    for (const starts of [this.start, this.suggest]) {
      enable(starts, Boolean(count || old_prompt), canvas.element);
    }
    this.again.hidden = this.#last === null || this.#job !== null;
    this.compare.hidden = this.steps.entries.length < 2;
    const share = Math.max(1, Math.round((100 * count) / cells.length));
    setText(this.hint, this.look.encoded ? words.encoded
      : count ? app.say(words.open, { share }) : old_prompt ? words.worded : words.hint);
    app.settings.set(some || old_prompt ? { parent: this.entry.id, old_prompt,
      keep_mask: some ? canvas.mask.packed() : "" }
      : { parent: "", keep_mask: "", old_prompt: "" });
    this.#remember();
  }

  /** Leave the tool; a mask that was painted can be had again. */
  #leave() {
    const { app, canvas, entry, size } = this;
    const mask = canvas.mask.count ? canvas.mask.packed() : null;
    this.on.close(entry);
    if (!mask) return;
    app.toast(this.words.left, { action: { label: app.words.common.undo,
      run: () => app.go("create", { edit: entry.id, mask, size, words: false }) } });
  }

  /** What a reload of the page goes on with. */
  #remember() {
    const { canvas, entry: { id }, size } = this;
    const mask = canvas.mask.count ? canvas.mask.packed() : null;
    keep("edit", { edit: id, mask, size, words: false }, { ofTab: true });
  }

  #sayCell(x, y, open) {
    setText(this.aloud, this.app.say(open ? this.words.cellOpen : this.words.cellKept,
      { row: y + 1, column: x + 1 }));
  }

  // Runs

  /** Redraw the cells of the mask; several pictures are suggestions to choose from. */
  async apply(pictures = 1) {
    const { app, canvas } = this;
    const { count } = canvas.mask;
    const { old_prompt } = this.prompt.settings();
    if (count === 0 && !old_prompt) {
      app.toast(this.words.nothing);
      return;
    }
    await this.#submit({ pictures, old_prompt, keep_mask: count ? canvas.mask.packed() : "" });
  }

  async #submit(changes) {
    const { app } = this;
    enable(this.start, false, this.canvas.element);
    const job = await withSeed(app, (settings) => app.jobs.submit("edit",
      { settings, metadata: savesRecipe() }), { parent: this.entry.id, ...changes });
    this.#update();
    if (!job) return;
    if (this.#job === null) this.#run(job);
    else if (![this.#job, ...this.#next].some(({ id }) => id === job.id)) {
      this.#next.push(job);
      app.toast(app.words.queue.added);
    }
  }

  /** Four pictures that are like this one, by its own settings. */
  async #vary(strength) {
    const answer = await this.app.attempt(this.app.api.get("restore", { id: this.entry.id }));
    if (!answer) return;
    const { settings } = answer;
    const edited = settings.keep_mask || settings.old_prompt;
    await this.#submit({ ...settings, parent: edited ? settings.parent : this.entry.id,
      pictures: SUGGESTED, variation: this.app.schema.strengths[strength],
      variation_seed: freshSeed() });
  }

  /** The same edit of the same picture with another seed. */
  async #tryAgain() {
    const job = await this.app.attempt(this.app.jobs.act(this.#last, "repeat"));
    if (job) this.#run(job);
  }

  /** Follow an edit: its cells appear in their places. */
  #run(job) {
    this.#end();
    this.#job = job;
    const { parent, keep_mask: mask, pictures } = job.settings;
    const source = this.steps.entry(parent);
    if (source && source.id !== this.entry.id) this.#showPicture(source);
    const { rows, columns } = this.canvas.grid;
    this.#live = new LiveCells(mask ? Mask.unpacked(mask) : new Mask(rows, columns).inverted());
    this.canvas.layers.append(this.#live.element);
    this.canvas.element.dataset.busy = "true";
    this.suggestions.offer(pictures, (n) => this.#live.show(n));
    this.#unfollow = this.app.jobs.follow(job.id, (entry) => this.#take(entry));
    this.#update();
  }

  async #take(entry) {
    const job = this.#job;
    for (const message of entry.messages) this.#live.feed(message);
    const { words } = this.app;
    this.on.progress(entry.state === "running" ? entry.progress ?? 0 : 0);
    this.on.tell(statusText(entry, words.stage, true) || timeLeft(entry, words.stage),
      entry.state === "failed");
    if (entry.state === "done") await this.#done(job, entry.saved);
    else if (["failed", "cancelled", "gone"].includes(entry.state)) this.#end();
    else return;
    if (this.#next.length && !this.#disposed) this.#run(this.#next.shift());
    this.#update();
  }

  async #done(job, saved) {
    this.#last = job.id;
    if (job.settings.keep_mask) {
      for (const { id } of saved) masks.set(id, job.settings.keep_mask);
    }
    const { result } = await this.app.attempt(this.app.api.get(`jobs/${job.id}`)) ?? {};
    const order = result?.order?.length ? result.order : saved.map((_, n) => n);
    await this.steps.refresh(saved[order[0]].id);
    const steps = order.map((n) => this.steps.entry(saved[n].id)).filter(Boolean);
    await this.#go(steps[0]);
    this.#end();
    this.suggestions.offer(steps.length, (n) => this.#go(steps[n]), steps);
    this.on.saved();
    this.on.tell((result?.notes ?? []).join(" "));
    if (result?.unchanged && !result.notes.length) this.app.toast(this.words.unchanged);
  }

  /** Follow no run any more. */
  #end() {
    this.#unfollow();
    this.#live?.dispose();
    this.#job = this.#live = null;
    this.suggestions.hide();
    delete this.canvas.element.dataset.busy;
    this.on.progress(0);
  }

  // Steps

  #chosen(step) {
    this.suggestions.spread.hidden = true;
    if (this.#comparing) this.#compareWith(step);
    else if (this.#job) this.on.open(step.id, {}); // the run goes on without being followed
    else this.#go(step);
  }

  /** Show another step in place; its words are taken, and a mask if it is known. */
  async #go(step, mask = null) {
    if (!step || (step.id === this.entry.id && !mask)) return;
    this.on.tell(""); // what was told of another step
    const { width, height, look } = { ...this.entry, look: this.look };
    const other = await this.app.attempt(this.app.api.get("look", { id: step.id }));
    if (!other || this.#disposed) return;
    const tall = this.size ? Number(this.size.split("x")[1]) : height;
    if (step.width !== width || step.height !== height || tall !== height
      || other.finished !== look.finished) {
      this.on.open(step.id, { mask });
      return;
    }
    this.look = other;
    await ready(step.picture);
    this.#showPicture(step);
    takeWords(this.app, other);
    this.canvas.begin(mask ? Mask.unpacked(mask) : undefined);
    if (this.canvas.tool === "rows") this.canvas.choose("brush");
    this.#beginWords();
    this.steps.mark(step.id);
    this.#update();
  }

  /** Take back a stroke, or else the last edit: its mask is there again. */
  #undo() {
    if (this.#job) return;
    if (this.canvas.canUndo) this.canvas.undo();
    else this.#go(this.steps.before(this.entry), masks.get(this.entry.id));
  }

  #redo() {
    if (this.#job) return;
    if (this.canvas.canRedo) this.canvas.redo();
    else this.#go(this.steps.after(this.entry));
  }

  #compare() {
    this.#comparing = !this.#comparing;
    this.compare.setAttribute("aria-pressed", String(this.#comparing));
    this.on.tell(this.#comparing ? this.words.compareWith : "");
    if (this.#comparing) this.strip.querySelector("button")?.focus();
  }

  async #compareWith(step) {
    this.#compare();
    const { compare } = await import("./viewer.js");
    const shown = [step, this.entry].map((entry) => ({ src: entry.picture,
      label: this.app.say(this.words.step, { number: this.steps.numberOf(entry.id) }) }));
    compare(this.app, ...shown);
  }

  // Keys

  /** The tools' keys hold wherever nothing is typed. */
  #key(event) {
    const { target, key, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (this.app.places.current !== "create" || altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (target.matches("textarea, select, input:not([type=radio], [type=range])")) return;
    if (ctrlKey || metaKey) {
      const way = { z: shiftKey ? "redo" : "undo", y: "redo" }[key.toLowerCase()];
      if (!way) return;
      event.preventDefault();
      if (way === "undo") this.#undo();
      else this.#redo();
      return;
    }
    if (this.canvas.key(key)) event.preventDefault();
  }

  dispose() {
    this.#disposed = true;
    document.removeEventListener("keydown", this.keys);
    this.#unfollow();
    this.#live?.dispose();
    this.prompt.dispose();
    this.canvas.dispose();
    this.element.remove();
    keep("edit", null, { ofTab: true });
    this.app.settings.set({ parent: "", keep_mask: "", old_prompt: "" });
  }
}

/** Resolves once a picture can be shown at once. */
async function ready(src) {
  const image = make("img", "", { src });
  await image.decode().catch(() => {}); // a missing one is told where it is shown
}

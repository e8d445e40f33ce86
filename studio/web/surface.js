/**
 * A picture on the stage, as one works on it: its things are touched, parts are painted over, and
 * its words are changed. What comes of it is a step that can be gone back to.
 */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { LiveCells } from "./core/live_cells.js";
import { Mask } from "./core/mask.js";
import { MaskCanvas } from "./core/mask_canvas.js";
import { Touch } from "./core/touch.js";
import { Line, PaintTools } from "./edit_tools.js";
import { enable } from "./form.js";
import { icon } from "./icons.js";
import { keep, recall } from "./kept.js";
import { unknownIn } from "./marks.js";
import { detailsOf } from "./picture_actions.js";
import { PictureWords } from "./picture_words.js";
import { pixelMode } from "./pixels.js";
import { freshSeed, savesRecipe, withSeed } from "./seed.js";
import { statusText, timeLeft } from "./status.js";
import { Suggestions } from "./suggestions.js";

const SUGGESTED = 4;
const KNOWN = "touched"; // whether this browser's visitor has changed a thing by a click
const PAUSE = 250; // ms without a change until the server is asked what an edit takes
const AGAIN = 1000; // ms until a server that was drawing is asked for the things again
const MOST = 16; // pictures of which the page keeps what was found
// What is known of a picture that the loaded model cannot redraw
const UNKNOWN = { rows: 1, columns: 1, finished: null, taller: [], prompt: null,
  prompt_expanded: null };
const redrawn = new Map(); // by id of an edited picture: its mask, to go back to
const painted = new Map(); // by id: a mask that was painted when another picture was shown
const found = new Map(); // by id: the things of a picture

/**
 * The surface with the picture of this id; null if it is gone. options: `entry`, if it is known;
 * `tool` to begin with, `mask` (packed), `size` to extend it to, `take`, whether the prompt becomes
 * its words, or `prompt`, others, `seed` of an edit by them, `note` to tell of it, `job`, an edit
 * that goes on, and `vary`, how far four variations are from it. on: tell(line, bad),
 * progress(share), saved(), shown(entry), open(id, options) for another picture, and isWanted(),
 * whether the picture is still to be shown.
 */
export async function openSurface(app, id, options, on) {
  const [look, entry] = await Promise.all([
    app.api.get("look", { id }).catch(({ message }) => ({ ...UNKNOWN, problem: message })),
    options.entry ?? detailsOf(app, id)]);
  if (!entry) return null;
  const surface = new Surface(app, entry, look, options, on);
  await surface.complete;
  return surface;
}

class Surface {
  #job = null; // the edit that goes on, {id, settings}
  #next = []; // edits that wait for it
  #last = null; // id of the last one that ended
  #live = null;
  #unfollow = () => {};
  #disposed = false;
  asking = false; // whether an edit was asked for that is not followed yet
  #planned = { timer: null, abort: null, line: "", key: "", bad: false };
  #awaited = null; // id of the step that was chosen last, until it is shown
  #looking = null; // id of the picture whose things are asked for
  #notes = ""; // what is told of the last edit

  constructor(app, entry, look, options, on) {
    const own = `${entry.width}x${entry.height}`;
    Object.assign(this, { app, words: app.words.edit, entry, look, on, seed: options.seed ?? null,
      size: options.size && options.size !== own ? options.size : "" }); // to extend it to
    this.canvas = new MaskCanvas(this.#grid(), { name: this.words.canvas, help: this.words.keys },
      { changed: () => this.#update(), moved: (x, y, open) => this.#sayCell(x, y, open) });
    this.image = make("img", "edit-picture", { draggable: "false" });
    this.image.addEventListener("error", () => this.element.prepend(
      make("p", "notice", {}, [app.words.stage.noPicture])), { once: true });
    this.canvas.layers.append(this.image);
    this.touch = new Touch(this.canvas.element, app.words.touch, () => this.image, {
      chosen: (prompt) => this.#choose(prompt), moved: (thing, way) => this.#move(thing, way),
      considered: (prompt) => this.prompt.consider(prompt) },
    { room: () => this.element.closest(".stage") });
    this.#build();
    this.#showPicture(entry);
    this.complete = Promise.all([this.#begin(options), ready(entry.picture),
      addStyleSheet(new URL("surface.css", import.meta.url).href)]);
    this.keys = (event) => this.#key(event);
    document.addEventListener("keydown", this.keys);
    for (const name of ["pointerenter", "pointermove", "pointerdown", "focus"]) {
      this.canvas.element.addEventListener(name, () => this.#findThings());
    }
  }

  /** Whether the loaded model can redraw parts of the picture. */
  get #editable() {
    return this.look.problem === undefined;
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
      can: () => ({ undo: canvas.canUndo || Boolean(app.strip.before(this.entry)),
        redo: canvas.canRedo || Boolean(app.strip.after(this.entry)) }) });
    this.line = new Line(app, canvas, this.look, { size: this.size,
      resized: (size) => this.on.open(this.entry.id, { size, tool: "rows" }) });
    this.prompt = new PictureWords(app, canvas, (prompt) => this.#settings(prompt),
      () => this.#isDrawn, { changed: () => this.#update() });
    this.start = button(words.apply, () => this.apply(),
      { class: "button main", id: "edit-apply", title: words.applyHint });
    this.suggest = this.#sign("suggest", () => this.apply(SUGGESTED));
    this.again = this.#sign("again", () => this.#tryAgain());
    this.paint.element.append(this.suggest, this.again);
    this.suggestions = new Suggestions(app);
    this.aloud = make("p", "unseen", { role: "status" });
    const { rows } = canvas.grid;
    const frame = make("div", "edit-frame", {}, [this.paint.element, canvas.element,
      this.prompt.legend, this.suggestions.spread]);
    this.frame = frame;
    frame.style.setProperty("--width", String(this.entry.width));
    frame.style.setProperty("--height", String((this.entry.height * rows) / this.look.rows));
    this.image.style.height = `${(100 * this.look.rows) / rows}%`;
    pixelMode.mark(frame);
    this.controls = [this.start, this.prompt.element,
      make("span", "row", {}, [this.suggestions.choice, this.line.element])];
    this.paint.element.hidden = !this.#editable;
    this.element = make("section", "edit edit-box", { "aria-label": words.name },
      [frame, this.aloud]);
  }

  /** The picture stands on the stage: its controls stand where the page has room for them. */
  mount({ apply, words, line }) {
    const controls = this.#editable ? this.controls : [];
    [apply, words, line].forEach((slot, n) => slot.replaceChildren(
      ...controls.slice(n, n + 1)));
  }

  #sign(name, run) {
    const hint = this.words[`${name}Hint`] ?? this.words[name];
    return button(icon(name), run, { class: "button plain icon", id: `edit-${name}`,
      "aria-label": this.words[name], title: hint });
  }

  async #begin({ tool, job = null, vary = "", note = "", prompt, take = false, ...options }) {
    const { mask = painted.get(this.entry.id) } = options;
    const { finished, rows } = this.look;
    const grows = this.size !== "" || finished !== null;
    if (grows) this.canvas.setFree(finished ?? rows);
    if (mask) this.canvas.begin(Mask.unpacked(mask));
    const words = prompt ?? (take ? this.look.prompt : null);
    this.#beginWords(this.on.isWanted() ? words : null);
    this.#notes = note;
    const first = this.#editable && (grows && !mask ? "rows" : tool ?? (mask ? "brush" : "touch"));
    this.#chooseTool(first || "touch");
    if (job) this.#run(job);
    await this.app.strip.show(this.entry);
    this.#update();
    if (vary) this.vary(vary);
  }

  #chooseTool(tool) {
    this.canvas.choose(tool === "touch" && !this.#touchable ? "brush" : tool);
  }

  /** Things are known by the words of a picture that was drawn to its end. */
  get #touchable() {
    return !this.#editable || (this.look.prompt_expanded !== null && this.look.finished === null
      && this.size === "");
  }

  /** Words can be changed where those of the whole picture are known; a mask takes any. */
  #beginWords(take = null) {
    const { prompt, prompt_expanded: drawn, finished } = this.look;
    const whole = finished === null && this.size === "";
    this.prompt.begin(whole ? drawn : null, prompt, take);
    this.touch.show(found.get(this.entry.id) ?? null);
  }

  #showPicture(entry) {
    if (entry.id !== this.entry.id) painted.delete(this.entry.id); // it was drawn
    this.entry = entry;
    Object.assign(this.image, { src: entry.picture, alt: entry.prompt ?? entry.name ?? "" });
    this.element.dataset.picture = entry.id;
  }

  /** Everything that depends on mask, words, steps and runs. */
  #update() {
    if (this.#disposed || !this.element) return; // not built yet
    const { canvas } = this;
    this.line.update(); // may change the mask
    this.paint.update(this.#touchable);
    this.prompt?.update();
    this.#enableTouch();
    for (const starts of [this.start, this.suggest]) {
      enable(starts, Boolean(canvas.mask.count || this.prompt.old) && this.prompt.text !== ""
        && !this.#planned.bad, canvas.element);
    }
    this.again.hidden = this.#last === null || this.#job !== null;
    this.#plan();
    this.#remember();
  }

  /** Things can be touched while no run changes them; until they are known, the focus waits. */
  #enableTouch() {
    const { canvas: { element, tool }, touch } = this;
    const touches = this.#editable && tool === "touch";
    const waits = touches && (this.#isDrawn || !found.has(this.entry.id));
    const focused = touch.list.contains(document.activeElement);
    if (touches) element.tabIndex = waits ? 0 : -1;
    if (focused && waits) element.focus({ preventScroll: true });
    touch.enable(touches && !this.#isDrawn);
  }

  /** Whether an edit is drawn, or was just asked for. */
  get #isDrawn() {
    return this.asking || this.#job !== null;
  }

  /** Whether pointer or focus rest on the picture. */
  get #isWatched() {
    return this.canvas.element.matches(":hover, :focus");
  }

  /** Id of the edit that goes on here, if one does. */
  get job() {
    return this.#job?.id;
  }

  /** What a reload of the page goes on with, and another view of this picture. */
  #remember() {
    this.#keepPaint();
    const { entry: { id }, size, prompt: { differ, text } } = this;
    keep("shown", { edit: id, mask: this.#mask(), size, ...(differ && { prompt: text }) },
      { ofTab: true });
  }

  /** A mask that was painted is there again when its picture is, however soon that is asked. */
  #keepPaint() {
    const mask = this.#editable ? this.#mask() : null;
    if (mask && this.size === "" && this.look.finished === null) painted.set(this.entry.id, mask);
    else painted.delete(this.entry.id);
  }

  #mask() {
    return this.canvas.mask.count ? this.canvas.mask.packed() : null;
  }

  #sayCell(x, y, open) {
    setText(this.aloud, this.app.say(open ? this.words.cellOpen : this.words.cellKept,
      { row: y + 1, column: x + 1 }));
  }

  // What is told below the picture

  /** Ask what the edit would take, once nothing changes any more. */
  #plan() {
    const { mask } = this.canvas;
    const part = mask.count > 0 && mask.count < mask.cells.length;
    const asked = !this.#isDrawn && (part || this.prompt.old !== null);
    const settings = asked ? { ...this.app.settings.values, ...this.#settings(), pictures: 1,
      keep_mask: part ? mask.packed() : null } : null;
    const key = JSON.stringify(settings);
    this.#tell();
    if (key === this.#planned.key) return;
    clearTimeout(this.#planned.timer);
    this.#planned.abort?.abort();
    const abort = new AbortController();
    this.#planned = { key, line: "", bad: false, abort, timer: asked && setTimeout(async () => {
      const answer = await this.app.api.post("plan", { settings }, abort.signal).catch(() => null);
      if (answer === null || abort.signal.aborted) return;
      const refused = answer.notes.find(({ kind }) => kind === "refused")?.text;
      const left = leftOut(this.app, answer.notes, settings.prompt);
      Object.assign(this.#planned, { bad: Boolean(refused ?? answer.problem),
        line: refused ?? [left, answer.problem ?? answer.text].filter(Boolean).join(" ") });
      this.#update();
    }, PAUSE) };
    this.#tell();
  }

  #tell() {
    if (this.#job) return; // its state is told
    if (this.asking) {
      this.on.tell(this.app.words.stage.asked);
      return;
    }
    const { words, look, canvas: { mask } } = this;
    const { line, bad } = this.#planned;
    const share = Math.max(1, Math.round((100 * mask.count) / mask.cells.length));
    const hint = !this.#editable ? look.problem : look.encoded && !mask.count ? words.encoded
      : mask.count && !this.prompt.text ? words.unsaid
      : mask.count ? this.app.say(words.open, { share }) : this.prompt.old ? words.worded
        : this.#looking ? words.looking : this.#quietHint();
    this.on.tell([bad ? "" : hint, line].filter(Boolean).join(" "), bad);
  }

  /** What is told of the last edit, and what one can do, unless the visitor knows. */
  #quietHint() {
    const { app, words, canvas: { tool } } = this;
    const next = tool === "touch" ? words.rest : words.hint;
    if (!this.#notes) return next;
    return recall(KNOWN, false) ? this.#notes : app.say(words.then, { line: this.#notes, next });
  }

  // Things

  /** Ask for the things once, when the pointer or the focus first comes to the picture. */
  async #findThings() {
    const { app, entry: { id }, canvas } = this;
    if (found.has(id) || this.#looking || !this.touch.enabled || app.jobs.running) return;
    this.#looking = id;
    this.#tell();
    const answer = await app.api.get("things", { id }).catch(() => ({ things: [], scene: [] }));
    if (answer.busy) await new Promise((resolve) => setTimeout(resolve, AGAIN));
    else found.set(id, answer);
    if (found.size > MOST) found.delete(found.keys().next().value);
    this.#looking = null;
    if (this.#disposed || this.entry.id !== id) return;
    if (answer.busy) {
      if (this.#isWatched) this.#findThings();
      return;
    }
    const waits = document.activeElement === canvas.element;
    this.touch.show(answer);
    if (waits && canvas.element.matches(":focus-visible")) this.touch.focus();
    this.#update();
  }

  /** Other words were chosen: they are drawn at once, or else the words before are there again. */
  async #choose(prompt) {
    const { settings } = this.app;
    const before = settings.get("prompt");
    keep(KNOWN, true);
    if (this.canvas.mask.count) this.canvas.clear(); // the words alone say what changes
    this.prompt.set(prompt);
    if (!await this.apply() && settings.get("prompt") === prompt) settings.set({ prompt: before });
  }

  /** A thing was dragged where no words tell: its cells, old and new, are redrawn. */
  #move({ cells }, [down, right]) {
    const { columns } = cells;
    const old = [...cells.cells.keys()].filter((cell) => cells.cells[cell]);
    const moved = old.map((cell) => [Math.floor(cell / columns) + down, (cell % columns) + right])
      .filter(([y, x]) => y >= 0 && x >= 0 && y < cells.rows && x < columns)
      .map(([y, x]) => y * columns + x);
    this.canvas.set(this.canvas.mask.with([...old, ...moved]));
    this.apply();
  }

  // Runs

  /** The settings of an edit of this picture by its words, or by others. */
  #settings(prompt = this.prompt.text) {
    const { negative_expanded: negative } = this.look;
    return { ...this.app.settings.values, prompt, prompt_expanded: null, negative_expanded: null,
      expand: Boolean(this.look.completes) && this.prompt.fills(prompt),
      ...(typeof negative === "string" && { negative }), open: [], panel: "",
      parent: this.entry.id, old_prompt: this.prompt.old };
  }

  /**
   * Redraw what is painted, or what the words change; several pictures are suggestions. Resolves to
   * whether that is going to be drawn.
   */
  async apply(pictures = 1) {
    if (this.canvas.mask.count === 0 && !this.prompt.old) {
      this.app.toast(this.words.nothing);
      return false;
    }
    const { seed, ...settings } = { ...this.#settings(), pictures, keep_mask: this.#mask() };
    // Words change the picture that is there, so they are drawn by its own seed
    const own = this.prompt.old === null ? null : this.seed ?? this.entry.seed;
    return this.#submit(settings, own);
  }

  /**
   * seed: of this run; null: that of the next picture, which then gets another one. Resolves to
   * whether it is going to be drawn.
   */
  async #submit(changes, seed = null) {
    const { app } = this;
    enable(this.start, false, this.canvas.element);
    this.asking = true;
    this.canvas.element.dataset.busy = "true";
    this.#plan(); // no longer
    this.prompt.rest();
    const job = await app.jobs.ask((isDropped) => {
      const ask = (settings) => app.jobs.submit("edit", { settings, metadata: savesRecipe() },
        isDropped);
      return seed === null ? withSeed(app, ask, changes) : app.attempt(ask({ ...changes, seed }));
    });
    this.asking = false;
    if (!job) this.#takeBack();
    this.#update();
    if (this.#disposed || !job) return job !== null;
    if (this.#job === null) this.#run(job);
    else if (![this.#job, ...this.#next].some(({ id }) => id === job.id)) {
      this.#next.push(job);
      app.toast(app.words.queue.added);
    }
    return true;
  }

  /** What was asked for is not drawn: what was dragged is where it was. */
  #takeBack() {
    this.touch.settle();
    if (this.#job === null) delete this.canvas.element.dataset.busy;
  }

  /** Four pictures that are like this one, by its own settings. */
  async vary(strength) {
    const answer = await this.app.attempt(this.app.api.get("restore", { id: this.entry.id }));
    if (!answer) return;
    const { settings } = answer;
    const edited = settings.keep_mask || settings.old_prompt;
    const variation = freshSeed();
    await this.#submit({ ...this.app.settings.values, ...settings, pictures: SUGGESTED,
      parent: edited ? settings.parent : this.entry.id,
      variation: this.app.schema.strengths[strength], variation_seed: variation }, settings.seed);
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
    const source = this.app.strip.step(parent);
    if (source && source.id !== this.entry.id) this.#showPicture(source);
    const { rows, columns } = this.canvas.grid;
    this.#live = new LiveCells(mask ? Mask.unpacked(mask) : new Mask(rows, columns).inverted());
    this.canvas.layers.append(this.#live.element);
    this.canvas.element.dataset.busy = "true";
    this.suggestions.offer(pictures, (n) => this.#live.show(n));
    this.#unfollow = this.app.jobs.follow(job.id, (entry) => this.#take(entry));
    this.on.tell(this.app.words.stage.starting);
    this.#update();
  }

  async #take(entry) {
    const job = this.#job;
    for (const message of entry.messages) this.#live.feed(message);
    if (entry.progress) this.touch.settle(); // what was dragged gives way to what is drawn
    const { words } = this.app;
    this.on.progress(entry.state === "running" ? entry.progress ?? 0 : 0);
    this.on.tell(statusText(entry, words.stage, true) || timeLeft(entry, words.stage),
      entry.state === "failed");
    if (entry.state === "done") await this.#done(job, entry.saved);
    else if (["failed", "cancelled", "gone"].includes(entry.state)) this.#end();
    else return;
    if (entry.state === "cancelled") this.app.toast(this.words.stopped);
    if (this.#next.length && !this.#disposed) this.#run(this.#next.shift());
    else if (["done", "cancelled"].includes(entry.state)) this.#update();
    if (this.#isWatched) this.#findThings();
  }

  async #done(job, saved) {
    const { app } = this;
    this.#last = job.id;
    if (job.settings.keep_mask) {
      for (const { id } of saved) redrawn.set(id, job.settings.keep_mask);
    }
    const [answer] = await Promise.all([app.attempt(app.api.get(`jobs/${job.id}`)),
      app.strip.show(saved[0])]);
    const { result } = answer ?? {};
    const order = result?.order?.length ? result.order : saved.map((_, n) => n);
    const steps = order.map((n) => app.strip.step(saved[n].id)).filter(Boolean);
    await this.#go(steps[0], null, this.app.settings.get("prompt") === job.settings.prompt);
    this.#end();
    this.suggestions.offer(steps.length, (n) => this.#go(steps[n]), steps);
    this.on.saved();
    this.#notes = (result?.notes ?? []).join("; ");
    if (result?.unchanged && !this.#notes) app.toast(this.words.unchanged);
  }

  /** Follow no run any more. */
  #end() {
    this.touch.settle();
    this.#unfollow();
    this.#live?.dispose();
    this.#job = this.#live = null;
    this.suggestions.hide();
    delete this.canvas.element.dataset.busy;
    this.on.progress(0);
  }

  // Steps

  /** A step was clicked; false: this surface cannot show it in place. */
  chosen(step) {
    this.suggestions.spread.hidden = true;
    if (this.#job) return false; // the run goes on without being followed
    if (step.id === this.entry.id) this.#tell();
    this.#go(step);
    return true;
  }

  /** Show another step in place, with a mask if it is known. */
  async #go(step, mask = null, take = true) {
    if (!step || (step.id === this.entry.id && !mask)) return;
    const [before, { look }] = [this.entry, this];
    const { width, height } = before;
    this.#awaited = step.id;
    this.app.strip.mark([step.id]);
    this.touch.show(null);
    if (step.id !== before.id) this.image.src = step.thumbnail; // until it is there
    const [other] = await Promise.all([
      this.app.attempt(this.app.api.get("look", { id: step.id })), ready(step.picture)]);
    if (this.#disposed || this.#awaited !== step.id) return;
    this.#awaited = null;
    if (!other) {
      this.#showPicture(before);
      this.app.strip.mark([before.id]);
      return;
    }
    const tall = this.size ? Number(this.size.split("x")[1]) : height;
    if (step.width !== width || step.height !== height || tall !== height
      || other.finished !== look.finished) {
      this.on.open(step.id, { mask });
      return;
    }
    const follows = take || this.app.settings.get("prompt").trim() === look.prompt?.trim();
    this.look = other;
    this.seed = null;
    this.#notes = "";
    this.#showPicture(step);
    this.canvas.begin(mask ? Mask.unpacked(mask) : undefined);
    if (this.canvas.tool === "rows") this.#chooseTool("touch");
    this.#beginWords(follows ? other.prompt : null);
    this.app.strip.mark([step.id]);
    this.on.shown(step);
    this.#update();
  }

  /** Take back a stroke, or else the last edit: its mask is there again. */
  #undo() {
    if (this.#job) return;
    if (this.canvas.canUndo) this.canvas.undo();
    else this.#go(this.app.strip.before(this.entry), redrawn.get(this.entry.id));
  }

  #redo() {
    if (this.#job) return;
    if (this.canvas.canRedo) this.canvas.redo();
    else this.#go(this.app.strip.after(this.entry));
  }

  // Keys

  /** The tools' keys hold wherever nothing is typed. */
  #key(event) {
    const { target, key, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (this.app.places.current !== "create" || altKey || event.defaultPrevented) return;
    if (!this.#editable || document.querySelector("dialog[open], .touch-menu:popover-open")) return;
    if (target.matches("textarea, select, input:not([type=radio], [type=range])")) return;
    if (ctrlKey || metaKey) {
      const way = { z: shiftKey ? "redo" : "undo", y: "redo" }[key.toLowerCase()];
      if (!way) return;
      event.preventDefault();
      if (way === "undo") this.#undo();
      else this.#redo();
      return;
    }
    if (key.toLowerCase() === "v") this.#chooseTool("touch");
    else if (!this.canvas.key(key)) return;
    event.preventDefault();
  }

  dispose() {
    this.#disposed = true;
    this.#keepPaint();
    clearTimeout(this.#planned.timer);
    this.#planned.abort?.abort();
    document.removeEventListener("keydown", this.keys);
    this.#unfollow();
    this.#live?.dispose();
    this.prompt.dispose();
    this.touch.dispose();
    this.canvas.dispose();
    this.element.remove();
    for (const control of this.controls) control.remove();
  }
}

/** What of the words is not drawn, by the notes of their plan; "" if all of it is. */
function leftOut({ words: { words } }, notes, prompt) {
  const unknown = unknownIn(notes, prompt).map(({ word }) => word);
  return notes.find(({ kind }) => kind === "cannot")?.text
    ?? (unknown.length ? `${words.unknown} ${unknown.join(", ")}.` : "");
}

/** Resolves once a picture can be shown at once. */
async function ready(src) {
  const image = make("img", "", { src });
  await image.decode().catch(() => {}); // a missing one is told where it is shown
}

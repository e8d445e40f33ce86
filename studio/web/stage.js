/**
 * The stage of Create: a gallery until the first picture, then the run that goes on, a finished
 * picture, or a picture that is edited. What a page needs only then is loaded then.
 */

import { make, setText } from "./core/elements.js";
import { gallery } from "./gallery.js";
import { isOver, neverBegan } from "./jobs.js";

const KINDS = new Set(["draw", "redo", "edit", "control"]);

export class Stage {
  #view = null; // what is shown: {element, dispose()}
  #job = null; // id of the shown job
  #turn = 0; // counts what was asked for; what is loaded too late is not shown
  #tools = null; // loaded with the first picture
  #following = true; // whether the next run that begins is shown
  #going = new Set(); // ids of runs that are not over

  editing = null; // the view of the Edit tool, while it is open

  /**
   * onSaved(): called whenever pictures were saved. onEdit(): when Edit is opened or closed.
   * onShown(ids): when other saved pictures are shown, or none.
   */
  constructor(app) {
    this.app = app;
    this.onSaved = this.onEdit = this.onShown = () => {};
    this.progress = make("span", "");
    this.bar = make("div", "bar", { "aria-hidden": "true" }, [this.progress]);
    this.status = make("p", "status", { role: "status", id: "status" });
    this.line = make("div", "stage-line row small", {}, [this.status]);
    this.body = make("div", "stage-body");
    this.element = make("section", "stage", { id: "create-stage",
      "aria-label": app.words.stage.name }, [this.bar, this.body, this.line]);
    this.body.addEventListener("click", ({ target }) => this.#clicked(target));
    app.jobs.watch((jobs) => this.#look(jobs));
    if (this.#view === null) this.#show(gallery(app));
  }

  /** Show the next run, or the one that goes on. */
  follow() {
    this.#following = true;
    this.#look(this.app.jobs.list);
  }

  /** Show a saved picture; the stage stays with it until the next run is asked for. */
  async showPicture(entry) {
    const turn = this.#leave();
    const { SavedView } = await import("./saved_view.js");
    if (turn !== this.#turn) return;
    this.#show(new SavedView(this.app, entry));
    await this.#offer([entry], { replay: this.#runOf(entry.id) !== undefined });
  }

  /** The run that drew a picture, while the server has it. */
  #runOf(id) {
    return this.app.jobs.list.find(({ kind, saved }) => KINDS.has(kind)
      && saved.some((picture) => picture.id === id));
  }

  /** Show a picture of a file: text says what was taken from it. */
  async showFile(file, text, actions) {
    const turn = this.#leave();
    const { FileView } = await import("./saved_view.js");
    if (turn !== this.#turn) return;
    this.#show(new FileView(this.app, file, text, actions));
    await this.#offer([]);
  }

  async showById(id) {
    const entry = await this.app.attempt(this.app.api.get(`history/${encodeURI(id)}`));
    if (entry) this.showPicture(entry);
  }

  /** Edit a saved picture; options: as of `openEdit`. */
  async edit(id, options = {}) {
    const turn = this.#leave();
    if (options.job) this.#job = options.job.id;
    const { openEdit } = await import("./edit.js");
    const view = await this.app.attempt(openEdit(this.app, id, options, {
      tell: (line, bad) => this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: () => this.onSaved(),
      open: (other, more) => this.edit(other, more),
      close: (entry) => this.showPicture(entry),
    }));
    if (!view) return;
    if (turn !== this.#turn) {
      view.dispose();
      return;
    }
    this.#show(view, view);
    await this.#offer([]);
  }

  /** No longer follow the runs; returns the turn of what comes instead. */
  #leave() {
    this.#following = false;
    this.#job = null;
    this.#tell("");
    this.#turn += 1;
    return this.#turn;
  }

  /** Offer the tools for these saved pictures, of which one is chosen. */
  async #offer(saved, options = {}) {
    this.onShown(saved.map(({ id }) => id));
    if (!this.#tools && saved.length === 0) return;
    const turn = this.#turn;
    const { Tools } = await import("./tools.js");
    if (!this.#tools) {
      this.#tools = new Tools(this.app, {
        overlay: (id) => this.#ofRun("overlay", id),
        replay: (id) => this.#ofRun("replay", id),
        details: (id) => this.#ofRun("details", id),
        edit: (id, more) => this.edit(id, more),
      });
      this.line.append(this.#tools.line);
      this.element.append(this.#tools.element);
    }
    if (turn !== this.#turn) return;
    this.#tools.offer(saved, { overlay: Boolean(this.#view.preview?.overlay), ...options });
  }

  /** Do something with the run of a picture, which takes the place of the picture alone. */
  async #ofRun(name, id) {
    if (!this.#view[name]) await this.#showRun(this.#runOf(id), id);
    await this.#view.over;
    return this.#view[name]?.() ?? false;
  }

  /** A click on a finished picture shows it over the whole page. */
  #clicked(target) {
    const picture = target.closest(".saved:not(.of-file) .saved-picture, .opens .ssd-picture");
    if (!picture || this.#tools === null || this.#tools.element.hidden) return;
    const own = [...this.body.querySelectorAll(".ssd-picture")];
    this.#tools.full(own.length > 1 ? own.indexOf(picture) : undefined);
  }

  /** The jobs have changed: show the one that runs, or tell how the shown one stands. */
  #look(jobs) {
    const own = jobs.filter((job) => KINDS.has(job.kind) && !neverBegan(job));
    this.#tellKept(own);
    const begun = own.find(({ state }) => state === "running")
      ?? (this.#job === null ? own.findLast(({ state }) => state !== "waiting") : undefined)
      ?? own.find(({ state }) => state === "waiting" && this.#job === null);
    if (this.#following && begun && begun.id !== this.#job) this.#showRun(begun);
    this.#tellKept(own);
    this.#title(own.find(({ state }) => state === "running"));
  }

  /** What was stopped while others wait is in the history: the stage goes on to the next run. */
  #tellKept(jobs) {
    const { app } = this;
    for (const { id, result } of jobs.filter(isOver)) {
      if (!this.#going.delete(id) || !result?.kept) continue; // an earlier visit was told
      this.onSaved();
      app.toast(app.say(app.words.stage.keptAt, { row: result.stopped_rows, rows: result.rows }),
        { action: { label: app.words.stage.goOn,
          run: () => app.go("create", { redo: result.kept }) } });
    }
    for (const { id } of jobs.filter((job) => !isOver(job))) this.#going.add(id);
  }

  /** chosen: id of one of its pictures. */
  async #showRun(job, chosen = undefined) {
    if (job.kind === "edit" && !isOver(job)) {
      this.edit(job.settings.parent, { job });
      return;
    }
    this.#job = job.id;
    this.#turn += 1;
    const turn = this.#turn;
    const { RunView } = await import("./run_view.js");
    if (turn !== this.#turn) return;
    if (!chosen) this.#offer([]);
    this.#show(new RunView(this.app, job.id, {
      tell: (line, bad) => this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: (pictures) => {
        this.onSaved();
        return this.#offer(pictures, { replay: true, chosen });
      },
      stopped: (saved) => saved && this.onSaved(),
    }));
  }

  #show(view, editing = null) {
    this.#view?.dispose();
    this.#view = view;
    this.body.replaceChildren(view.element);
    this.editing = editing;
    this.onEdit();
    this.#progress(0);
  }

  #tell(line, bad = false) {
    setText(this.status, line);
    this.status.classList.toggle("bad", bad);
  }

  #progress(share) {
    this.progress.style.width = `${100 * share}%`;
  }

  /** The share that is done stands in the title of the browser's tab. */
  #title(running) {
    const share = running?.progress;
    const name = "SSD Studio";
    document.title = running && share ? `${Math.floor(100 * share)} % · ${name}` : name;
  }
}

/**
 * The stage of Create: a gallery until the first picture, then the run that goes on, or a picture
 * that one works on. What a page needs only then is loaded then.
 */

import { button, make, setText } from "./core/elements.js";
import { isOver, neverBegan } from "./jobs.js";
import { emptyPicture } from "./empty_picture.js";
import { keep } from "./kept.js";

const SHOWN = 6; // postcards before the first picture
const KINDS = new Set(["draw", "redo", "edit", "control"]);

export class Stage {
  #view = null; // what is shown: {element, dispose()}
  #job = null; // id of the shown job
  #turn = 0; // counts what was asked for; what is loaded too late is not shown
  #tools = null; // loaded with the first picture
  #following = true; // whether the next run that begins is shown
  #going = new Set(); // ids of runs that are not over

  /** onSaved(): called whenever pictures were saved. */
  constructor(app) {
    this.app = app;
    this.onSaved = () => {};
    this.progress = make("span", "");
    this.bar = make("div", "bar", { "aria-hidden": "true" }, [this.progress]);
    this.status = make("p", "status", { role: "status", id: "status" });
    this.own = make("span", "slot"); // of the picture's own controls
    this.line = make("div", "stage-line row small", {}, [this.status, this.own]);
    this.body = make("div", "stage-body");
    this.element = make("section", "stage", { id: "create-stage",
      "aria-label": app.words.stage.name }, [this.bar, this.body, this.line]);
    this.body.addEventListener("click", ({ target }) => this.#clicked(target));
    app.jobs.watch((jobs) => this.#look(jobs));
    if (this.#view === null) this.#show(gallery(app));
  }

  /** Show the next run, or the one that goes on. job: the one that was just asked for. */
  follow(job = null) {
    this.#following = true;
    if (job) this.#going.add(job.id); // it may be over by now
    this.#look(this.app.jobs.list);
  }

  /** Show a saved picture; a step of the one that is there takes its place. */
  showPicture(entry) {
    if (!this.app.strip.step(entry.id) || !this.#view.chosen?.(entry)) {
      this.open(entry.id, { entry });
    } else this.#turn += 1; // one that was chosen before and is not there yet does not come
  }

  /** The run that drew a picture, while the server has it. */
  #runOf(id) {
    return this.app.jobs.list.find(({ kind, saved }) => KINDS.has(kind)
      && saved.some((picture) => picture.id === id));
  }

  /** Show a picture of a file: text says what was taken from it. */
  async showFile(file, text, actions) {
    this.#leave();
    this.#show(fileView(file, text, actions));
    await this.#offer([]);
  }

  /**
   * Show a saved picture, to work on it; the stage stays with it until the next run is asked for.
   * options: as of `openSurface`.
   */
  async open(id, options = {}) {
    const turn = this.#leave();
    if (options.job) this.#job = options.job.id;
    await this.#surface(id, { take: true, ...options }, turn, this.#runOf(id));
  }

  /** run: the one that drew the picture, if it is known, with its `saved` pictures. */
  async #surface(id, options, turn, run = undefined) {
    const { openSurface } = await import("./surface.js");
    const own = run?.saved.find((picture) => picture.id === id);
    let view = null;
    const isWanted = () => turn === this.#turn || (view !== null && view === this.#view);
    view = await this.app.attempt(openSurface(this.app, id, { note: own?.summary,
      ...options }, {
      isWanted,
      tell: (line, bad) => isWanted() && this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: () => this.onSaved(),
      shown: (entry) => this.#offer([entry], { replay: this.#runOf(entry.id) !== undefined }),
      open: (other, more) => this.open(other, more),
    }));
    if (!view) return;
    if (turn !== this.#turn) {
      view.dispose();
      return;
    }
    this.#show(view);
    Object.assign(view.element.dataset, { state: "done", job: run?.id ?? "" });
    await this.#offer(run?.saved ?? [view.entry], { replay: Boolean(run), chosen: id });
  }

  /** No longer follow the runs; returns the turn of what comes instead. */
  #leave() {
    this.#following = false;
    this.#job = null;
    this.#forget();
    this.#tell("");
    this.#turn += 1;
    return this.#turn;
  }

  /** A reload of the page does not go on with the picture that was shown. */
  #forget() {
    keep("shown", null, { ofTab: true });
  }

  /** Offer the tools for these saved pictures, of which one is chosen. */
  async #offer(saved, options = {}) {
    this.app.strip.mark(options.chosen ? [options.chosen] : saved.map(({ id }) => id));
    if (!this.#tools && saved.length === 0) return;
    const turn = this.#turn;
    const { Tools } = await import("./tools.js");
    if (!this.#tools) {
      this.#tools = new Tools(this.app, {
        overlay: (id) => this.#ofRun("overlay", id),
        replay: (id) => this.#ofRun("replay", id),
        details: (id) => this.#ofRun("details", id),
        show: (id) => this.open(id),
        vary: (id, strength) => this.#vary(id, strength),
      });
      this.line.append(this.#tools.line);
    }
    if (turn !== this.#turn) return;
    (this.#view.frame ?? this.body).append(this.#tools.element); // on its corner
    this.#tools.offer(saved, { overlay: Boolean(this.#view.preview?.overlay), ...options });
  }

  /**
   * Do something with the run of a picture, which takes the place of the picture alone until it is
   * as it was. Resolves to whether it is on.
   */
  async #ofRun(name, id) {
    if (!this.#view[name]) await this.#showRun(this.#runOf(id), id);
    const view = this.#view;
    await view.over;
    const on = view[name]?.() ?? false;
    if (view.isPlain && view === this.#view) this.open(id);
    return on;
  }

  #vary(id, strength) {
    if (this.#view.entry?.id === id) this.#view.vary(strength);
    else this.open(id, { vary: strength });
  }

  /** A click on one of several finished pictures chooses it. */
  #clicked(target) {
    const picture = target.closest(".opens .ssd-picture");
    const all = [...this.body.querySelectorAll(".ssd-picture")];
    if (picture) this.#tools?.choose(all.indexOf(picture));
  }

  /** The jobs have changed: show the one that runs, or tell how the shown one stands. */
  #look(jobs) {
    const own = jobs.filter((job) => KINDS.has(job.kind) && !neverBegan(job));
    // A quick run begins and ends between two looks
    const ended = own.findLast((job) => isOver(job) && this.#going.has(job.id));
    this.#tellKept(own);
    const begun = own.find(({ state }) => state === "running") ?? ended
      ?? (this.#job === null ? own.findLast(({ state }) => state !== "waiting") : undefined)
      ?? own.find(({ state }) => state === "waiting" && this.#job === null);
    if (this.#following && begun && begun.id !== this.#job) {
      if (begun.id === this.#view?.job) this.#job = begun.id; // the picture itself follows it
      else if (begun.kind !== "edit" || !this.#view?.asking) this.#showRun(begun);
    }
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
      this.open(job.settings.parent, { job });
      return;
    }
    this.#job = job.id;
    this.#forget();
    this.#turn += 1;
    const turn = this.#turn;
    const { RunView } = await import("./run_view.js");
    if (turn !== this.#turn) return;
    if (!chosen) {
      this.app.strip.leave();
      this.#offer([]);
    }
    this.#show(new RunView(this.app, job.id, {
      tell: (line, bad) => this.#tell(line, bad),
      progress: (share) => this.#progress(share),
      saved: async (pictures) => {
        this.onSaved();
        if (pictures.length > 1 || chosen) await this.#offer(pictures, { replay: true, chosen });
        else await this.#surface(pictures[0].id, {}, turn, { id: job.id, saved: pictures });
      },
      stopped: (saved) => saved && this.onSaved(),
    }));
  }

  /**
   * Show at once the empty picture of a run that was asked for with these settings; returns what
   * takes that back.
   */
  asked({ size }) {
    const before = this.#view;
    const told = [this.status.textContent, this.status.matches(".bad")];
    const element = emptyPicture(this.app, size);
    this.body.replaceChildren(element);
    this.element.dataset.asked = "true";
    this.#tell(this.app.words.stage.asked);
    return () => {
      if (!element.isConnected) return;
      this.#show(before, false);
      this.#tell(...told);
    };
  }

  /** isNew: not the view that was there before. */
  #show(view, isNew = true) {
    if (isNew) this.#view?.dispose();
    delete this.element.dataset.asked;
    this.#view = view;
    this.body.replaceChildren(view.element);
    view.mount?.(this.app.slots);
    this.#progress(0);
  }

  #tell(line, bad = false) {
    setText(this.status, line);
    this.status.title = line; // where it is cut off
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

/** A picture that was dropped, pasted or chosen: it is not in the history. actions: buttons. */
function fileView(file, text, actions) {
  const src = URL.createObjectURL(file);
  const image = make("img", "edit-picture", { src, alt: "" });
  const element = make("figure", "of-file", {}, [image, make("figcaption", "small hint", {},
    [text, make("div", "row", {}, actions)])]);
  const dispose = () => {
    URL.revokeObjectURL(src);
    element.remove();
  };
  return { element, dispose };
}

/** What stands there before the first picture: finished postcards, whose words can be drawn. */
function gallery(app) {
  const { words, schema, settings } = app;
  const tiles = schema.examples.slice(0, SHOWN).map(({ prompt, picture, seed }) => {
    const image = make("img", "", { src: picture, alt: "", width: "384", height: "384" });
    const tile = button([image, make("span", "", {}, [prompt])], () => {
      settings.set({ prompt, ...(seed ? { seed } : {}) });
      app.draw();
    }, { class: "example" });
    return make("li", "", {}, [tile]);
  });
  const element = make("div", "gallery", { id: "gallery" }, [
    make("h2", "title", {}, [words.stage.welcome]),
    make("p", "hint", {}, [words.stage.welcomeHint]), make("ul", "", {}, tiles)]);
  return { element, dispose: () => element.remove() };
}

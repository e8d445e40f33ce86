/**
 * <ssd-stage jobs="ID[,ID..]" names='{"exact": "Faithful"}' mp4>: the live preview of each job, fed
 * until all of them are over; then the tools for the finished picture.
 *
 * Without jobs it shows where the picture will be. names: how to call the runs of these labels.
 * mp4: whether the server can write videos.
 */

import { make, setText } from "./core/elements.js";
import { Preview } from "./core/preview.js";
import { Feed } from "./feed.js";
import { PersistentElement } from "./persistent.js";
import { listOf, pageLanguage, pageWords } from "./host.js";
import { Replay } from "./replay.js";
import { statusText, timeLeft } from "./status.js";
import { Tools } from "./tools.js";

/** One job on the page: a status line, the time left (not read aloud every second), its preview. */
export class Run {
  #entry = null;
  #messages = [];
  #replay = null;

  /** options: `names` and `mp4` of the stage. */
  constructor(id, words, language, options) {
    Object.assign(this, { id, words, language, options });
    this.preview = this.#newPreview({ teach: true });
    this.status = make("div", "ssd-status", { role: "status" });
    this.left = make("div", "ssd-status", { "aria-hidden": "true" });
    this.tools = new Tools(words, { replay: () => this.#startReplay() });
    this.side = make("div", "ssd-side", {}, [this.left, this.preview.bar, this.tools.element]);
    this.main = make("div", "ssd-main", {}, [this.preview.element]);
    this.element = make("div", "ssd-run", {}, [this.status, this.main, this.side]);
    this.tell(false);
  }

  #newPreview(options = {}) {
    return new Preview({ language: this.language, fills: true, words: this.words.preview,
      ...options });
  }

  /** Take an entry of the feed. */
  take(entry) {
    const messages = entry.messages.map((message) => this.#named(message));
    this.#entry = entry;
    this.#messages.push(...messages);
    for (const message of messages) this.preview.feed(message);
    this.tools.offer((entry.saved ?? []).map((picture) => this.#named(picture)));
    this.tell(false);
  }

  /** A message or a picture with the name of its speed as its label. */
  #named(item) {
    const name = this.options.names[item.label];
    return name === undefined ? item : { ...item, label: name };
  }

  /** Put the replay in the place of the preview, or end it. */
  #startReplay() {
    if (this.#replay) {
      this.#replay.dispose();
      this.#replay = null;
      this.main.replaceChildren(this.preview.element);
      this.tools.element.before(this.preview.bar);
    } else {
      this.#replay = new Replay(this.id, this.#messages, {
        words: this.words, overlay: this.preview.overlay, mp4: this.options.mp4,
        newPreview: (options) => this.#newPreview(options),
      });
      this.preview.bar.remove();
      this.main.replaceChildren(this.#replay.element);
    }
    return this.#replay !== null;
  }

  /** `lost`: whether the server has stopped answering. */
  tell(lost) {
    const text = lost ? this.words.lost : statusText(this.#entry, this.words, this.begun);
    const left = text === "" ? timeLeft(this.#entry, this.words) : "";
    for (const [line, said] of [[this.status, text], [this.left, left]]) {
      setText(line, said);
      line.hidden = said === "";
    }
    this.element.dataset.state = this.#entry?.state ?? "";
  }

  get begun() {
    return Object.keys(this.preview.state.panels).length > 0;
  }

  dispose() {
    this.#replay?.dispose();
    this.preview.dispose();
    this.element.remove();
  }
}

export class SsdStage extends PersistentElement {
  static observedAttributes = ["jobs", "names", "mp4"];
  #runs = new Map();
  #feed = null;
  #changed = false;

  connectedCallback() {
    this.#begin();
  }

  /** Gradio changes one attribute after the other: then all of them count at once. */
  attributeChangedCallback() {
    if (!this.#feed || this.#changed) return;
    this.#changed = true;
    queueMicrotask(() => {
      this.#changed = false;
      if (this.#feed) this.#begin();
    });
  }

  disconnectedCallback() {
    this.#end();
  }

  #begin() {
    this.#end();
    const jobs = listOf(this, "jobs");
    const [words, language] = [pageWords(), pageLanguage()];
    const options = { names: JSON.parse(this.getAttribute("names") || "{}"),
      mp4: this.hasAttribute("mp4") };
    for (const id of jobs.length ? jobs : [""]) {
      this.#runs.set(id, new Run(id, words, language, options));
    }
    this.show(...[...this.#runs.values()].map((run) => run.element));
    this.#feed = new Feed(jobs, {
      take: (id, entry) => this.#runs.get(id).take(entry),
      lost: (lost) => this.#runs.forEach((run) => run.tell(lost)),
    });
  }

  #end() {
    this.#feed?.stop();
    this.#feed = null;
    for (const run of this.#runs.values()) run.dispose();
    this.#runs.clear();
  }
}

/**
 * <ssd-stage jobs="ID[,ID..]">: the live preview of each job, fed until all of them are over.
 *
 * Without jobs it shows where the picture will be.
 */

import { make, setText } from "./core/elements.js";
import { Preview } from "./core/preview.js";
import { Feed } from "./feed.js";
import { HeldElement } from "./held.js";
import { listOf, pageLanguage, pageWords } from "./host.js";
import { statusText, timeLeft } from "./status.js";

/** One job on the page: a status line, the time left (not read aloud every second), its preview. */
export class Run {
  #entry = null;

  constructor(words, language) {
    this.words = words;
    this.preview = new Preview({ language });
    this.status = make("div", "ssd-status", { role: "status" });
    this.left = make("div", "ssd-status", { "aria-hidden": "true" });
    this.element = make("div", "ssd-run", {}, [this.status, this.left, this.preview.element]);
    this.tell(false);
  }

  /** Take an entry of the feed. */
  take(entry) {
    this.#entry = entry;
    for (const message of entry.messages) this.preview.feed(message);
    this.tell(false);
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
    this.preview.dispose();
    this.element.remove();
  }
}

export class SsdStage extends HeldElement {
  static observedAttributes = ["jobs"];
  #runs = new Map();
  #feed = null;

  connectedCallback() {
    this.#begin();
  }

  /** Attributes of the first page come before the element is connected: that is no change. */
  attributeChangedCallback() {
    if (this.#feed) this.#begin();
  }

  disconnectedCallback() {
    this.#end();
  }

  #begin() {
    this.#end();
    const jobs = listOf(this, "jobs");
    const [words, language] = [pageWords(), pageLanguage()];
    for (const id of jobs.length ? jobs : [""]) this.#runs.set(id, new Run(words, language));
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

/**
 * A finished run played again from its messages: a slider over its moments, play, and its film as a
 * file, which the server makes.
 */

import { decodePng } from "./core/drawing.js";
import { button, make, setText } from "./core/elements.js";
import { say } from "./core/strings.js";
import { filmSeconds, finishedStrips, timed, upTo } from "./moments.js";

const STEPS = 1000; // of the slider

export class Replay {
  #fed = 0; // messages that the preview has
  #wanted = null; // how many it is to have, while it is being painted
  #frame = null;
  #disposed = false;

  /**
   * newPreview(options): an empty preview that fills the room it gets. mp4: can the server write
   * one?
   */
  constructor(job, messages, { words, overlay, mp4, newPreview }) {
    Object.assign(this, { job, words, newPreview, moments: timed(messages) });
    this.finished = new Map([...finishedStrips(messages)].map(
      ([run, strips]) => [run, strips.map((strip) => decodePng(strip).catch(() => null))]));
    this.length = this.moments.at(-1)?.[0] ?? 0; // s of the run
    this.#build(mp4);
    this.preview = this.#fresh(overlay);
    this.#begin();
  }

  #build(mp4) {
    const { words } = this;
    this.play = button(words.play, () => (this.#frame === null ? this.#begin() : this.#stop()),
      { class: "button play" });
    this.slider = make("input", "grow", { type: "range", min: "0", max: String(STEPS),
      value: "0", "aria-label": words.moment });
    this.slider.addEventListener("input", () => {
      this.#stop();
      this.#show();
    });
    this.moment = make("span", "moment small");
    this.films = Object.fromEntries([["webp", words.saveWebp], ["mp4", words.saveMp4]]
      .slice(0, mp4 ? 2 : 1).map(([kind, label]) => [kind,
        make("a", "button plain", { download: `replay.${kind}` }, [label])]));
    for (const link of Object.values(this.films)) {
      link.addEventListener("click", (event) => this.#save(event, link));
    }
    const missing = mp4 ? [] : [make("span", "small hint", {}, [words.noMp4])];
    this.place = make("div", "replayed");
    this.element = make("div", "replay", {}, [this.place,
      make("div", "row scrubber", {}, [this.play, this.slider, this.moment,
        ...Object.values(this.films), ...missing])]);
  }

  /** An empty preview; its overlay is in the film, too. */
  #fresh(overlay) {
    const preview = this.newPreview({ finished: this.finished });
    preview.overlay = overlay;
    this.#link(preview);
    return preview;
  }

  setOverlay(on) {
    this.preview.setOverlay(on);
    this.#link(this.preview);
  }

  #link({ overlay }) {
    for (const [kind, link] of Object.entries(this.films)) {
      link.href = `studio/replay/${this.job}.${kind}${overlay ? "?overlay=1" : ""}`;
    }
  }

  /** Save the film behind a link, or tell why the server has none. */
  async #save(event, link) {
    event.preventDefault();
    if (link.ariaBusy === "true") return; // it is being made
    link.ariaBusy = "true";
    try {
      const answer = await fetch(link.href);
      if (answer.ok) saveFile(await answer.blob(), link.download);
      else setText(this.moment, await answer.text());
    } catch {
      setText(this.moment, this.words.lost);
    } finally {
      link.ariaBusy = "false";
    }
  }

  /** Show the slider's moment; of those asked for while one is painted, the last one counts. */
  async #show() {
    const seconds = (Number(this.slider.value) / STEPS) * this.length;
    setText(this.moment, say(this.words.momentOf,
      { seconds: seconds.toFixed(1), all: this.length.toFixed(1) }));
    this.slider.setAttribute("aria-valuetext", this.moment.textContent);
    const busy = this.#wanted !== null;
    this.#wanted = upTo(this.moments, seconds);
    if (busy) return;
    while (this.#wanted !== this.#fed && !this.#disposed) await this.#paint(this.#wanted);
    this.#wanted = null;
  }

  /** An earlier moment is painted anew, out of sight until it is complete. */
  async #paint(count) {
    const before = this.preview;
    if (count < this.#fed) {
      this.preview = this.#fresh(before.overlay);
      this.#fed = 0;
    }
    for (const [, message] of this.moments.slice(this.#fed, count)) this.preview.feed(message);
    this.#fed = count;
    await this.preview.settled();
    if (this.#disposed) return;
    this.place.replaceChildren(this.preview.element);
    if (before !== this.preview) before.dispose();
  }

  #begin() {
    if (Number(this.slider.value) >= STEPS) this.slider.value = "0";
    const [from, began] = [Number(this.slider.value) / STEPS, performance.now()];
    setText(this.play, this.words.pause);
    const step = (now) => {
      const share = from + (now - began) / 1000 / filmSeconds(this.length);
      this.slider.value = String(Math.round(Math.min(1, share) * STEPS));
      this.#show();
      if (share >= 1) this.#stop();
      else this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  #stop() {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    setText(this.play, this.words.play);
  }

  dispose() {
    this.#disposed = true;
    this.#stop();
    this.preview.dispose();
    this.element.remove();
    for (const bitmap of [...this.finished.values()].flat()) bitmap.then((image) => image?.close());
  }
}

function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", "", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // by then the browser has read it
}

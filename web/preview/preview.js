/**
 * The live preview as a widget for any host: an element, `feed(message)`, `dispose()`.
 *
 * Messages follow protocol.js. Nothing runs on import; a Preview listens to nothing but its own
 * button and the size of its own element.
 */

import { CELL, panelColumns, tile } from "./drawing.js";
import { paragraphs } from "./drawn_from.js";
import { addStyleSheet, button, make, makeCanvas, setText } from "./elements.js";
import { aloud, problemText } from "./figures.js";
import { Message } from "./message.js";
import { Panel } from "./panel.js";
import { IDLE, fold } from "./protocol.js";
import { say, stringsFor } from "./strings.js";

const LINE = "auto minmax(0, 1fr) auto auto"; // heading, pictures, figures, notes
const REMEMBERED = "ssd.preview.overlay";

export class Preview {
  #panels = new Map();
  #frame = null;
  #disposed = false;
  #observer = new ResizeObserver(() => this.#arrange());

  /**
   * language: the host's, such as "zh-CN". fills: whether the host sets the element's height. most
   * and smooth: as in drawing.fit. prompt: as typed, which names the pictures. words: texts that
   * replace some of ours. teach: show the overlay until the first run ends, if the user has not
   * chosen yet. finished: by run, bitmaps of finished pictures, from which the strips are then
   * painted. legible: px that a panel needs for its figures, if not the usual ones.
   */
  constructor({ language = "en", fills = false, most, smooth, prompt = "", words = {},
    teach = false, finished, legible } = {}) {
    addStyleSheet();
    this.state = IDLE;
    Object.assign(this, { fills, most, smooth, prompt, finished, legible });
    this.words = { ...stringsFor(language), ...words };
    this.teaching = teach && recall() === null;
    this.overlay = this.teaching || recall() === "on";
    this.#build();
    this.#render();
  }

  #build() {
    const { words } = this;
    this.error = new Message(words);
    this.note = make("div", "ssd-note");
    this.drawn = make("div", "ssd-drawn", { title: words.drawnHint });
    this.panels = make("div", "ssd-panels");
    this.toggle = button(words.overlay, () => this.setOverlay(!this.overlay),
      { class: "ssd-toggle", title: words.overlayHint });
    this.legend = make("span", "ssd-legend", {}, ["accepted", "repaired", "draft"].map(
      (name) => make("span", "ssd-key", {}, [swatch(name[0]), words[name]])));
    this.aloud = make("div", "ssd-aloud", { role: "status", "aria-live": "polite" });
    this.bar = make("div", "ssd-bar", {}, [this.toggle, this.legend]);
    this.element = make("div", this.fills ? "ssd-preview ssd-fills" : "ssd-preview",
      { role: "group", "aria-label": this.words.group },
      [this.error.element, this.note, this.drawn, this.panels, this.bar, this.aloud]);
    this.#observer.observe(this.element);
  }

  /** Handle one message of the protocol; never throws, even if the message is wrong. */
  feed(message) {
    if (this.#disposed) return;
    const before = this.state;
    this.state = fold(before, message);
    if (this.state === before) return;
    if (this.state.panels !== before.panels) {
      if (message.kind === "started") this.recover();
      this.#pass(message);
      if (message.kind === "finished") this.#taught();
    }
    this.#schedule();
  }

  /** Show the finished picture without the overlay; from then on the switch decides. */
  #taught() {
    const panels = Object.values(this.state.panels);
    if (this.teaching && panels.every((panel) => panel.end !== null)) this.setOverlay(false);
  }

  #pass(message) {
    const state = this.state.panels[message.panel];
    const current = this.#panels.get(message.panel);
    const panel = current?.state.run === state.run ? current : this.#newPanel(message.panel);
    panel.take(state, message);
  }

  #newPanel(number) {
    const { fills, most, smooth, prompt, finished } = this;
    const panel = new Panel(this.words, { fills, most, smooth, prompt, finished },
      () => this.#schedule());
    this.#panels.get(number)?.dispose();
    this.#panels.set(number, panel);
    this.panels.append(panel.element);
    this.#arrange();
    return panel;
  }

  /** Arrange the panels in lines of equal columns; each panel has four grid rows of its line. */
  #arrange() {
    const count = Math.max(0, ...this.#panels.keys()) + 1;
    const columns = panelColumns(count, this.panels.clientWidth,
      this.fills ? this.panels.clientHeight : null, this.legible);
    this.panels.style.gridTemplateRows = `repeat(${Math.ceil(count / columns)}, ${LINE})`;
    for (const [number, { element }] of this.#panels) {
      element.style.gridColumn = (number % columns) + 1;
      element.style.gridRow = `${4 * Math.floor(number / columns) + 1} / span 4`;
    }
  }

  /** Show why there is no new picture; the visible one is partial or of an earlier run. */
  fail(sentence) {
    this.sayError(sentence);
    this.element.classList.add("ssd-failed");
  }

  /** The text of the error; empty once the next run begins. */
  sayError(sentence = "") {
    this.error.say(sentence);
    this.element.classList.toggle("ssd-says", sentence !== "");
  }

  /** Mark the visible picture as the latest result again. */
  recover() {
    this.sayError();
    this.element.classList.remove("ssd-failed");
  }

  /** Show nothing, as before any run. */
  clear() {
    this.recover();
    for (const panel of this.#panels.values()) panel.dispose();
    this.#panels.clear();
    this.#arrange();
    this.state = IDLE;
    this.#schedule();
  }

  setOverlay(on) {
    this.teaching = false;
    this.overlay = on;
    remember(on ? "on" : "off");
    this.#render();
  }

  #schedule() {
    this.#frame ??= requestAnimationFrame(() => this.#render());
  }

  #render() {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    const idle = this.#panels.size === 0 ? this.words.idle : "";
    setText(this.note, problemText(this.state.problem, this.words) || idle);
    this.note.hidden = this.note.textContent === "";
    this.toggle.setAttribute("aria-pressed", String(this.overlay));
    this.legend.hidden = !this.overlay;
    this.#renderDrawn();
    for (const panel of this.#panels.values()) panel.render(this.overlay);
    const sentences = Object.values(this.state.panels)
      .map((panel) => aloud(panel, this.words, this.prompt));
    setText(this.aloud, sentences.filter(Boolean).join(". "));
  }

  /** Show the drawn words; rebuilt only if they changed, to keep the scroll position. */
  #renderDrawn() {
    const every = paragraphs(Object.values(this.state.panels));
    this.drawn.hidden = every.length === 0;
    const key = JSON.stringify(every);
    if (this.drawn.dataset.key === key) return;
    this.drawn.dataset.key = key;
    this.drawn.replaceChildren(...every.map(({ pictures, pieces }) => make("p", "", {}, [
      pictures ? say(this.words.pictures, { numbers: pictures.join(", ") }) : "",
      ...pieces.map(([text, added]) => (added ? make("span", "ssd-added", {}, [text]) : text)),
    ])));
  }

  /** Resolves when all messages fed so far are painted. */
  async settled() {
    await Promise.all([...this.#panels.values()].map((panel) => panel.settled()));
    if (!this.#disposed) this.#render();
  }

  /** Remove the preview; later messages and strips that are still being decoded do nothing. */
  dispose() {
    this.#disposed = true;
    this.#observer.disconnect();
    this.error.dispose();
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    for (const panel of this.#panels.values()) panel.dispose();
    this.element.remove();
  }
}

function swatch(mark) {
  const canvas = makeCanvas("ssd-swatch", CELL, CELL);
  canvas.getContext("2d").putImageData(new ImageData(tile(mark), CELL), 0, 0);
  return canvas;
}

/** The remembered choice; a page without storage remembers nothing. */
function recall() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

function remember(choice) {
  try {
    localStorage.setItem(REMEMBERED, choice);
  } catch {
    // private windows may refuse; the switch still works while the page is open
  }
}

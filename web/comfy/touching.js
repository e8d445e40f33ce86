/**
 * The things of the finished picture on a node: a click on one offers other words for it. Knows no
 * ComfyUI by itself.
 */

import { addStyleSheet, button, make } from "../preview/elements.js";
import { Touch } from "../preview/touch.js";

const RESTS = 150; // ms on a picture until its things are asked for
const AGAIN = 1000; // ms until a server that was drawing is asked again
const NOTHING = { things: [], scene: [] };

export class Touching {
  #run = null; // the one that drew the picture
  #touch = null;
  #offered = null; // what the server says of the picture
  #asking = false;
  #timer = 0;
  #moved = null; // the last movement of the pointer

  /**
   * words: texts. host: ask(run) promises what the server tells, null if it refuses; draw(prompt,
   * offered) says whether a node takes the words; add(prompt, offered) adds one that does.
   */
  constructor(preview, words, host) {
    Object.assign(this, { preview, words, host });
    addStyleSheet(new URL("touching.css", import.meta.url).href);
    preview.fed = () => this.#follow();
  }

  /** Begin with a picture once it is finished, until the next run. */
  #follow() {
    const run = finishedRun(this.preview.state);
    if (run === this.#run) return;
    this.dispose();
    this.#run = run;
    if (run !== null) this.#begin(this.preview.element.querySelector(".ssd-picture"));
  }

  #begin(picture) {
    picture.tabIndex = 0;
    picture.setAttribute("role", "group"); // nobody reads what is inside of an image
    this.#touch = new Touch(picture, this.words.touch, () => picture.querySelector(".ssd-pixels"),
      { chosen: (prompt) => this.#choose(prompt) }, { scrolls: false });
    const { element } = this.#touch.menu;
    document.body.append(element); // the canvas takes keys and wheels on its nodes
    picture.addEventListener("pointermove", (event) => {
      this.#moved = event;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#find(picture), RESTS);
    });
    picture.addEventListener("pointerleave", () => {
      this.#moved = null;
      clearTimeout(this.#timer);
    });
    picture.addEventListener("focus", () => this.#find(picture));
    element.addEventListener("keydown", keep);
  }

  /** Ask for the things once, when pointer or focus first rest on the picture. */
  async #find(picture) {
    const run = this.#run;
    if (this.#offered || this.#asking || run === null) return;
    this.#asking = true;
    picture.dataset.looking = "true";
    const offered = await this.host.ask(run).catch(() => null) ?? NOTHING;
    if (offered.busy) await new Promise((resolve) => setTimeout(resolve, AGAIN));
    delete picture.dataset.looking;
    this.#asking = false;
    if (run !== this.#run) return;
    const focused = picture.matches(":focus-visible"); // by a key
    if (offered.busy) {
      if (this.#moved || focused) await this.#find(picture);
      return;
    }
    this.#offered = offered;
    this.#touch.show(offered);
    if (focused) this.#touch.focus();
  }

  #choose(prompt) {
    if (!this.host.draw(prompt, this.#offered)) this.#offer(prompt, this.#offered);
  }

  /** Offer to add the node that draws the words, where their menu was. */
  #offer(prompt, offered) {
    const offer = make("div", "touch-menu ssd-offer", { popover: "auto", role: "dialog",
      "aria-label": this.words.addEdit });
    const add = button(this.words.addEdit, () => {
      offer.hidePopover();
      this.host.add(prompt, offered);
    }, { class: "ssd-add" });
    offer.append(make("p", "", {}, [this.words.noEdit]), add);
    offer.style.cssText = this.#touch.menu.element.style.cssText;
    offer.addEventListener("keydown", keep);
    offer.addEventListener("toggle", ({ newState }) => newState === "closed" && offer.remove());
    document.body.append(offer);
    offer.showPopover();
    add.focus();
  }

  dispose() {
    clearTimeout(this.#timer);
    this.#touch?.dispose();
    this.#moved = null;
    this.#touch = this.#offered = this.#run = null;
  }
}

/** Keep keys from ComfyUI, which would delete a node or turn a list round. */
function keep(event) {
  event.stopPropagation();
}

/** The run that drew the only picture of a preview to its end; null if there is none. */
function finishedRun({ panels }) {
  const [panel, ...others] = Object.values(panels);
  const whole = panel?.end?.kind === "finished" && panel.start?.pictures === 1;
  return whole && others.length === 0 ? panel.run : null;
}

/**
 * Short messages in the head: gone after a while; those that tell of an error stay until closed.
 */

import { make } from "./core/elements.js";

const SHOWN = 6000; // ms
const OFFERED = 12_000; // ms, with a button

export class Toasts {
  constructor(root, words) {
    Object.assign(this, { root, words });
  }

  /** Show a line; action: {label, run} of a button beside it. */
  say(line, { bad = false, action } = {}) {
    const close = make("button", "button plain icon", { type: "button",
      "aria-label": this.words.close }, ["×"]);
    const toast = make("div", bad ? "toast bad" : "toast", {}, [make("span", "grow", {}, [line])]);
    const end = () => toast.remove();
    if (action) toast.append(this.#button(action, end));
    toast.append(close);
    close.addEventListener("click", end);
    this.root.append(toast);
    if (!bad) setTimeout(end, action ? OFFERED : SHOWN);
    return end;
  }

  #button({ label, run }, end) {
    const button = make("button", "button", { type: "button" }, [label]);
    button.addEventListener("click", () => {
      end();
      run();
    });
    return button;
  }
}

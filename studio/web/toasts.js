/**
 * Short messages in the head: gone after a while; those that tell of an error stay until closed,
 * or until something is asked for, changed or visited that makes them old.
 */

import { button, make } from "./core/elements.js";

const SHOWN = 6000; // ms
const OFFERED = 12_000; // ms, with a button

export class Toasts {
  constructor(root, words) {
    Object.assign(this, { root, words });
  }

  /** Show a line; action: {label, run} of a button beside it. */
  say(line, { bad = false, action } = {}) {
    const toast = make("div", bad ? "toast bad" : "toast", {}, [make("span", "grow", {}, [line])]);
    const end = () => toast.remove();
    if (action) {
      toast.append(button(action.label, () => {
        end();
        action.run();
      }));
    }
    toast.append(button("×", end, { class: "button plain icon", "aria-label": this.words.close }));
    this.root.append(toast);
    toast.since = performance.now();
    if (!bad) setTimeout(end, action ? OFFERED : SHOWN);
    return end;
  }

  /** Take away errors that were told before this time. */
  settle(time = performance.now()) {
    for (const toast of this.root.querySelectorAll(".bad")) if (toast.since < time) toast.remove();
  }
}

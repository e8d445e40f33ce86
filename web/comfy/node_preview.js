/** The preview of a node; another node may replace its node during a run. */

import { Preview } from "../preview/preview.js";

/** A preview that knows which run each of its panels shows completely. */
export class NodePreview extends Preview {
  #runs = new Map();
  fed = () => {}; // called after every message

  follow({ panel, run }) {
    this.#runs.set(panel, run);
  }

  follows({ panel, run }) {
    return this.#runs.get(panel) === run;
  }

  feed(message) {
    super.feed(message);
    this.fed();
  }

  /** Show all messages of a run. */
  replay({ messages }) {
    this.clear();
    for (const message of messages) {
      this.follow(message);
      this.feed(message);
    }
  }
}

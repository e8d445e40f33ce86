/** The preview of a node, which other nodes may take the place of in mid-run. */

import { Preview } from "../preview/preview.js";

/** A preview that knows which run each of its panels has followed from the first message on. */
export class NodePreview extends Preview {
  #runs = new Map();

  follow({ panel, run }) {
    this.#runs.set(panel, run);
  }

  follows({ panel, run }) {
    return this.#runs.get(panel) === run;
  }

  /** Show what was said of a run, from its first message on. */
  retell({ messages }) {
    this.clear();
    for (const message of messages) {
      this.follow(message);
      this.feed(message);
    }
  }
}

/** The preview of a node. */

import { Preview } from "./preview.js";

/** A preview that knows which run each of its panels has followed from the first message on. */
export class NodePreview extends Preview {
  #runs = new Map();

  follow({ panel, run }) {
    this.#runs.set(panel, run);
  }

  follows({ panel, run }) {
    return this.#runs.get(panel) === run;
  }
}

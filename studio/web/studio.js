/** Defines the studio's elements; the one script that the page loads. */

import { SsdStage } from "./stage.js";

const ELEMENTS = { "ssd-stage": SsdStage };

for (const [name, element] of Object.entries(ELEMENTS)) {
  if (!customElements.get(name)) customElements.define(name, element);
}

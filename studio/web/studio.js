/** Defines the studio's elements; the one script that the page loads. */

import "./leaving.js";
import "./manners.js";
import { SsdDivider } from "./divider.js";
import { SsdFilled } from "./filled.js";
import { SsdKeepLine } from "./keep_line.js";
import { SsdSeeds } from "./seeds.js";
import { SsdStage } from "./stage.js";
import { SsdWords } from "./words.js";

const ELEMENTS = {
  "ssd-stage": SsdStage,
  "ssd-seeds": SsdSeeds,
  "ssd-divider": SsdDivider,
  "ssd-keep-line": SsdKeepLine,
  "ssd-words": SsdWords,
  "ssd-filled": SsdFilled,
};

for (const [name, element] of Object.entries(ELEMENTS)) {
  if (!customElements.get(name)) customElements.define(name, element);
}

/**
 * Draws the frames of a sampler on the subgraph node around it, on the classic canvas: the page
 * keeps them in the node's `imgs`, but shows them in Nodes 2.0 only.
 */

import { chain } from "./chain.js";

const LEAST = 300; // px of a node's width
const MARGIN = 10;
const drawn = new WeakSet(); // subgraph nodes

/** Make room for frames on a subgraph node, and draw them there from now on. */
export function showFrames(node, isClassic) {
  const width = Math.max(node.size[0], LEAST);
  const height = node.computeSize()[1] + width - MARGIN;
  if (isClassic()) node.setSize([width, Math.max(node.size[1], height)]);
  if (drawn.has(node)) return;
  drawn.add(node);
  chain(node, "onDrawForeground", (context) => {
    const frame = node.imgs?.at(-1);
    if (isClassic() && !node.flags?.collapsed && frame?.naturalWidth) draw(context, node, frame);
  });
}

/** Draw a frame as large as it fits below the node's widgets. */
function draw(context, node, frame) {
  const top = node.computeSize()[1];
  const [width, height] = [node.size[0] - 2 * MARGIN, node.size[1] - top - MARGIN];
  const scale = Math.min(width / frame.naturalWidth, height / frame.naturalHeight);
  if (scale <= 0) return;
  const [wide, tall] = [scale * frame.naturalWidth, scale * frame.naturalHeight];
  context.drawImage(frame, (node.size[0] - wide) / 2, top, wide, tall);
}

/**
 * Advanced inputs folded away on the classic canvas too; Nodes 2.0 does so by itself.
 */

const BUTTON = "ssd_advanced";

/**
 * Add the button that folds and shows what the server calls advanced. isClassic() says whether
 * nodes are drawn on the canvas now. Older frontends know no advanced inputs: nothing is folded.
 */
export function addFold(node, words, isClassic) {
  if (!advancedOf(node).length) return;
  const button = node.addWidget("button", BUTTON, null, () => {
    const before = node.computeSize()[1];
    node.showAdvanced = !node.showAdvanced;
    fold(node, words, isClassic);
    node.setSize([node.size[0], node.size[1] + node.computeSize()[1] - before]);
  }, { canvasOnly: true, serialize: false });
  button.serialize = false;
  fold(node, words, isClassic);
}

/** Hide or show a node's advanced inputs; those that are connected stay, else links would end. */
export function fold(node, words, isClassic) {
  for (const widget of advancedOf(node)) {
    const linked = node.inputs?.some((one) => one.widget?.name === widget.name && one.link != null);
    widget.hidden = isClassic() && !node.showAdvanced && !linked;
  }
  const button = node.widgets?.find((widget) => widget.name === BUTTON);
  if (button) button.label = node.showAdvanced ? words.lessInputs : words.moreInputs;
}

const advancedOf = (node) => (node.widgets ?? []).filter((widget) => widget.options?.advanced);

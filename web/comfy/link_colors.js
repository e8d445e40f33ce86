/** Colours of the links and slots of our types. */

export const COLORS = {
  SSD_MODEL: "#a78bfa",
  SSD_RUN: "#2dd4bf",
};

/**
 * Give our types their colours in the canvas's tables. Every palette that is loaded writes "" for
 * the types that it does not know, so the colour comes back wherever nothing else is set.
 */
export function colorLinks(...tables) {
  for (const table of tables) {
    for (const [type, color] of Object.entries(COLORS)) {
      let palettes = table[type];
      Object.defineProperty(table, type, {
        configurable: true,
        enumerable: true,
        get: () => palettes || color,
        set: (value) => {
          palettes = value;
        },
      });
    }
  }
}

/** The same for Nodes 2.0; a palette's own colour is set on the element and comes first. */
export function styleOf() {
  const lines = Object.entries(COLORS).map(([type, color]) => `--color-datatype-${type}: ${color}`);
  return `:root { ${lines.join("; ")} }`;
}

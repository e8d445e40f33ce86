/**
 * The words that are drawn, where some were added to those typed. Pure: state to paragraphs.
 */

/**
 * One paragraph for each of the prompts, {pictures, pieces}; a piece is [text, added]. `pictures`
 * are numbers over all panels, null where all pictures have the same words.
 */
export function paragraphs(panels) {
  const every = panels.flatMap((panel) => panel?.start?.words ?? []);
  const found = new Map();
  every.forEach((pieces, i) => {
    const key = JSON.stringify(pieces);
    if (!found.has(key)) found.set(key, { pictures: [], pieces });
    found.get(key).pictures.push(i + 1);
  });
  const several = found.size > 1;
  return [...found.values()].map((one) => ({ ...one, pictures: several ? one.pictures : null }));
}

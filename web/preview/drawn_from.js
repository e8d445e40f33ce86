/**
 * The drawn words, if the expansion added some to the typed ones. Pure: state to paragraphs.
 */

/**
 * One paragraph for each of the prompts, {pictures, pieces}; a piece is [text, added]. `pictures`
 * are numbers over all panels, null where all pictures have the same words.
 */
export function paragraphs(panels) {
  const every = panels.flatMap((panel) => panel?.start?.words ?? []);
  const prompts = new Map();
  every.forEach((pieces, i) => {
    const key = JSON.stringify(pieces);
    if (!prompts.has(key)) prompts.set(key, { pictures: [], pieces });
    prompts.get(key).pictures.push(i + 1);
  });
  const several = prompts.size > 1;
  return [...prompts.values()].map(
    ({ pictures, pieces }) => ({ pictures: several ? pictures : null, pieces }));
}

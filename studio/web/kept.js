/** Small choices that this browser remembers as JSON, or this tab alone. */

const storage = (ofTab) => (ofTab ? sessionStorage : localStorage);

/** What was kept under a key; `otherwise` if there is nothing. */
export function recall(key, otherwise, { ofTab = false } = {}) {
  try {
    return JSON.parse(storage(ofTab).getItem(`ssd-studio-${key}`)) ?? otherwise;
  } catch {
    return otherwise; // no storage, or something else wrote there
  }
}

export function keep(key, value, { ofTab = false } = {}) {
  try {
    storage(ofTab).setItem(`ssd-studio-${key}`, JSON.stringify(value));
  } catch {
    // private windows may refuse
  }
}

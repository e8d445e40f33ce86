/**
 * Tells the server the page's language, in which nodes give their errors, notes and reports.
 */

export class Language {
  #told = "";

  /** tell: sends {page, language}; returns a promise. */
  constructor(tell) {
    this.tell = tell;
  }

  /** Say it, unless it was said already or the page has no id yet. */
  say(page, language) {
    const now = JSON.stringify([page, language]);
    if (!page || now === this.#told) return;
    this.#told = now;
    this.tell({ page, language }).catch(() => { this.#told = ""; });
  }
}

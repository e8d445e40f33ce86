/**
 * Sends the page's language to the server, for the errors, notes and reports of the nodes.
 */

export class Language {
  #sent = "";

  /** post: sends {page, language}; returns a promise. */
  constructor(post) {
    this.post = post;
  }

  /** Send the language, unless it was sent already or the page has no id yet. */
  send(page, language) {
    const message = JSON.stringify([page, language]);
    if (!page || message === this.#sent) return;
    this.#sent = message;
    this.post({ page, language }).catch(() => { this.#sent = ""; });
  }
}

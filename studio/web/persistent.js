/** An element that keeps its children, although Gradio removes what it did not put on the page. */

export class PersistentElement extends HTMLElement {
  #children = [];
  #observer = new MutationObserver(() => this.#restore());

  /** Show these children, and nothing else, until the next call. */
  show(...children) {
    this.#children = children;
    this.#restore();
    this.#observer.observe(this, { childList: true });
  }

  #restore() {
    const current = this.childNodes;
    const same = current.length === this.#children.length
      && this.#children.every((child, i) => child === current[i]);
    if (!same) this.replaceChildren(...this.#children);
    this.#observer.takeRecords();
  }
}

/** An element whose children stay: Gradio takes away what it did not put on the page itself. */

export class HeldElement extends HTMLElement {
  #children = [];
  #observer = new MutationObserver(() => this.#restore());

  /** Show these children, and nothing else, until told otherwise. */
  show(...children) {
    this.#children = children;
    this.#restore();
    this.#observer.observe(this, { childList: true });
  }

  #restore() {
    const there = this.childNodes;
    const same = there.length === this.#children.length
      && this.#children.every((child, i) => child === there[i]);
    if (!same) this.replaceChildren(...this.#children);
    this.#observer.takeRecords();
  }
}

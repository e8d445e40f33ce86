/** An element around a Frame: begun anew when an attribute changes, ended when it is taken away. */

import { PersistentElement } from "./persistent.js";
import { pageWords } from "./host.js";

export class FramedElement extends PersistentElement {
  frame = null;

  connectedCallback() {
    this.#renew();
  }

  /** Attributes of the first page come before the element is connected: that is no change. */
  attributeChangedCallback() {
    if (this.frame) this.#renew();
  }

  disconnectedCallback() {
    this.end();
  }

  #renew() {
    this.end();
    this.words = pageWords();
    this.begin(); // of the subclass: makes `frame`, and what is in it
    this.show(this.frame.element);
  }

  end() {
    this.frame?.dispose();
    this.frame = null;
  }
}

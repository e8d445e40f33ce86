/** Pictures over the whole page: one of several at any zoom, or two with a divider between them. */

import { addStyleSheet, button, make, setText } from "./core/elements.js";
import { pixelMode } from "./pixels.js";
import { Slider } from "./slider.js";
import { Zoom } from "./zoom.js";

/** Show one of some pictures; each is {src, label}. Returns the dialog. */
export function view(app, pictures, at = 0) {
  return new Pictures(app, pictures, at).dialog;
}

/** Show two pictures, {src, label} each, on each other: a line divides them. Returns the dialog. */
export function compare(app, left, right) {
  return new Pair(app, left, right).dialog;
}

/** The dialog, its field and the controls below it; it leaves the page when it is closed. */
class Viewer {
  constructor(app, name, images) {
    this.styled = [addStyleSheet(new URL("viewer.css", import.meta.url).href)];
    Object.assign(this, { app, words: app.words.viewer, images });
    this.field = make("div", "viewer-field", { tabindex: "0", autofocus: "", role: "group",
      "aria-label": name });
    pixelMode.mark(this.field);
    this.label = make("p", "viewer-label grow clip", { role: "status" });
    this.share = make("output", "viewer-share");
    this.zoom = new Zoom(this.field, images, () => this.changed());
    this.dialog = make("dialog", "viewer", { "aria-label": name }, [this.field, this.#bar()]);
    this.dialog.addEventListener("keydown", (event) => this.#key(event));
    this.dialog.addEventListener("close", () => {
      this.zoom.stop();
      this.dialog.remove();
    });
    for (const image of images) {
      image.addEventListener("error", () => image.src && setText(this.label, this.words.noPicture));
    }
  }

  /** Not before its style sheets apply: pictures and the divider fit themselves to the field. */
  async open() {
    await Promise.all(this.styled);
    document.body.append(this.dialog);
    this.dialog.showModal();
  }

  #bar() {
    const { zoom } = this;
    this.steps = make("div", "row");
    return make("div", "viewer-bar", {}, [this.label, this.steps, make("div", "row", {}, [
      this.button("smaller", "−", () => zoom.key("-")), this.share,
      this.button("larger", "+", () => zoom.key("+")),
      this.button("fit", "⤢", () => zoom.fit())]),
    this.button("close", "×", () => this.dialog.close())]);
  }

  button(name, sign, run) {
    return button(sign, run,
      { class: "button plain icon", title: this.words[name], "aria-label": this.words[name] });
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.matches("input") && event.key.length > 1) return; // the line's own keys
    if (this.step?.(event.key) || this.zoom.key(event.key)) event.preventDefault();
  }

  changed() {
    setText(this.share, `${Math.round(100 * this.zoom.scale * devicePixelRatio)} %`);
  }
}

class Pictures extends Viewer {
  constructor(app, pictures, at) {
    const image = make("img", "viewer-image", { alt: "", draggable: "false" });
    super(app, app.words.viewer.name, [image]);
    this.pictures = pictures;
    this.field.append(image);
    if (pictures.length > 1) {
      this.steps.append(this.button("before", "‹", () => this.#show(this.at - 1)),
        this.button("next", "›", () => this.#show(this.at + 1)));
    }
    this.#show(at);
    this.open();
  }

  /** Left and right go to another picture while this one is seen as a whole. */
  step(key) {
    const way = this.zoom.whole && { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (way) this.#show(this.at + way);
    return Boolean(way);
  }

  #show(at) {
    const { length } = this.pictures;
    this.at = (at + length) % length;
    const { src, label } = this.pictures[this.at];
    const place = { number: this.at + 1, count: length, label };
    Object.assign(this.images[0], { src, alt: label });
    setText(this.label, length > 1 ? this.app.say(this.words.place, place) : label);
  }
}

class Pair extends Viewer {
  constructor(app, left, right) {
    const images = [left, right].map(({ src, label }) => make("img", "viewer-image",
      { src, alt: label, draggable: "false" }));
    super(app, app.words.viewer.compare, images);
    this.labels = [left.label, right.label];
    this.field.append(...images.map((image, n) => make("div", "viewer-layer", {},
      [image, make("span", "viewer-stamp stamp", { "aria-hidden": "true" }, [this.labels[n]])])));
    this.slider = new Slider(this.field,
      { name: this.words.divider, move: (share) => this.#divide(share) });
    this.styled.push(this.slider.styled);
    this.slider.input.setAttribute("autofocus", "");
    this.field.removeAttribute("autofocus");
    setText(this.label, this.words.hint);
    this.#divide(50);
    this.open();
  }

  /** Let the line stand at a share of the field, in percent; it stays on the picture. */
  #divide(wanted) {
    const edges = this.zoom.edges.map((edge) => Math.round(100 * edge / this.field.clientWidth));
    const [min, max] = edges[0] < edges[1] ? edges : [0, 100]; // before the pictures have come
    const share = Math.min(max, Math.max(min, wanted));
    const [left, right] = this.labels;
    this.slider.set(share, { min, max, whole: 100 },
      this.app.say(this.words.shown, { share, left, right }));
  }

  changed() {
    super.changed();
    if (this.slider) this.#divide(Number(this.slider.input.value));
  }
}

/** Downloads of models: what one takes is shown first; its progress is found again by any page. */

import { button, make, setText } from "./core/elements.js";
import { sizeText } from "./core/strings.js";

const STEP = 500; // ms between two looks

/** Show size, place and licence of a download; accepted(): it is wanted. */
export function quoteDialog(app, model, quote, accepted) {
  const { models: words } = app.words;
  const { licence } = quote;
  const [all, missing] = [quote.bytes, quote.missing].map(sizeText);
  const start = button(app.say(words.download, { size: missing }), () => {
    dialog.close();
    accepted();
  }, { class: "button main grow", id: "download-start" });
  const dialog = make("dialog", "quote", { "aria-label": model.title }, [
    make("div", "stack", {}, [make("h2", "", {}, [model.title]),
      make("p", "", {}, [app.say(words.quoted, { size: all, missing, where: quote.where })]),
      make("p", "", {}, [make("a", "", { href: licence.link, target: "_blank", rel: "noreferrer" },
        [licence.name]), `: ${licence.restricts}`]),
      make("div", "row", {}, [start, button(words.cancel, () => dialog.close())])])]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** How far the download has come that goes on, or how the last one ended. */
export class DownloadLine {
  #timer = null;

  /** ended(): called when a download is over. */
  constructor(app, ended) {
    Object.assign(this, { app, words: app.words.models, ended });
    this.text = make("span", "grow", { role: "status" });
    this.bar = make("progress", "", { "aria-label": app.words.models.get, max: "1" });
    this.cancel = button(app.words.models.cancel, () => app.attempt(app.api.post("models/cancel")),
      { id: "download-cancel" });
    this.element = make("div", "row card", { id: "download", hidden: "" },
      [this.text, this.bar, this.cancel]);
  }

  async start({ name, missing }) {
    const { app } = this;
    const begun = await app.attempt(
      app.api.post("models/download", { name, bytes: missing }));
    if (begun) this.follow(true);
  }

  /** Show it until it is over. */
  async follow(going = false) {
    clearTimeout(this.#timer);
    const download = await this.app.api.get("models/download").catch(() => null);
    if (download?.name === null) return;
    if (download) this.#show(download);
    if (download?.over) {
      if (going) this.ended();
      return;
    }
    this.#timer = setTimeout(() => this.follow(true), STEP);
  }

  #show(download) {
    const { name, done, total, over, error } = download;
    this.element.hidden = false;
    this.cancel.hidden = this.bar.hidden = over;
    if (total) this.bar.value = done / total;
    else this.bar.removeAttribute("value");
    this.text.classList.toggle("bad", Boolean(error));
    setText(this.text, over ? this.#end(download)
      : this.app.say(this.words.going, { name, done: sizeText(done), total: sizeText(total) }));
  }

  #end({ name, error, cancelled, where }) {
    if (error) return error;
    return this.app.say(this.words[cancelled ? "cancelled" : "downloaded"], { name, where });
  }
}

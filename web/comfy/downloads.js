/**
 * Offers the download of a known model that is not here, on the node that names it: its licence,
 * whether it fits, the size that the Hub tells, and the progress, which any page finds again.
 * Nothing is asked of the network before the button is pressed. Knows no ComfyUI by itself.
 */

import { addStyleSheet, button, make, setText } from "../preview/elements.js";
import { say, sizeText, stringsFor } from "../preview/strings.js";
import { chain } from "./chain.js";
import { widgetOf } from "./graph.js";
import { NodeBox } from "./node_box.js";

const STEP = 500; // ms between two looks at a download
const WIDTH = 360; // px: for the longest names with their sizes
const LEAST = 120; // px: a few lines, and the buttons
const WORDS = {
  en: {
    label: "{name}  (download, {size})",
    labelPlain: "{name}  (download)",
    absent: "{title} is not here yet",
    about: "about {size}",
    facts: { size: "Download", memory: "Memory", time: "Time", note: "Note", licence: "Licence" },
    ask: "Download…",
    asking: "Asking for its size…",
    quoted: "{missing} to download to {where}",
    resumed: "{missing} of {size} are still to download to {where}",
    start: "Download {size}",
    not: "Not now",
    going: "{done} of {size}",
    cancel: "Cancel",
    cancelled: "Cancelled. What has arrived is kept.",
    resume: "Resume",
    again: "Try again",
    here: "{title} is here. Press Run.",
    unreachable: "ComfyUI does not answer: look at its terminal.",
  },
  zh: {
    label: "{name}（下载 {size}）",
    labelPlain: "{name}（下载）",
    absent: "{title} 尚未下载",
    about: "约 {size}",
    facts: { size: "下载", memory: "内存", time: "时间", note: "说明", licence: "许可证" },
    ask: "下载…",
    asking: "正在查询大小…",
    quoted: "需下载 {missing} 到 {where}",
    resumed: "共 {size}，还需下载 {missing} 到 {where}",
    start: "下载 {size}",
    not: "暂不下载",
    going: "{done}，共 {size}",
    cancel: "取消",
    cancelled: "已取消，已下载的部分会保留。",
    resume: "继续",
    again: "重试",
    here: "{title} 已下载，请运行。",
    unreachable: "ComfyUI 没有回应：请查看它的终端。",
  },
};

export class Downloads {
  #absent = {}; // about how many bytes they take, by name
  #cards = new Map(); // by node
  #timer;

  /**
   * host: language(), get(route, query) and post(route, values), which return promises of JSON,
   * null from `get` if the server refuses; arrived(nodes), called when the model that they name
   * is here.
   */
  constructor(host) {
    this.host = host;
  }

  get words() {
    return stringsFor(this.host.language(), WORDS);
  }

  /** Mark the models that are not here in a node's list, and offer the chosen one. */
  attach(node) {
    const list = widgetOf(node, "model");
    list.options.getOptionLabel = (name) => this.#labelOf(name);
    for (const name of ["model", "dtype"]) {
      chain(widgetOf(node, name), "callback", () => setTimeout(() => this.refresh(node)));
    }
    node.size[0] = Math.max(node.size[0], WIDTH);
    chain(node, "onRemoved", () => this.#drop(node));
  }

  /** Ask which models are not here. */
  async learn() {
    this.#absent = await this.host.get("/ssd/models", {}) ?? {};
  }

  #labelOf(name) {
    if (!Object.hasOwn(this.#absent, name)) return String(name ?? "");
    const bytes = this.#absent[name];
    return say(bytes ? this.words.label : this.words.labelPlain, { name, size: sizeText(bytes) });
  }

  /** Offer the model that a node names, if it is known and not here. */
  async refresh(node) {
    const name = widgetOf(node, "model").value;
    const card = this.#cardOf(node, name);
    if (!card) return;
    const dtype = widgetOf(node, "dtype")?.value ?? "auto";
    const news = await this.host.get("/ssd/model",
      { model: name, dtype, language: this.host.language() });
    if (this.#cards.get(node) !== card) return; // another model was chosen
    if (!news?.offer) {
      this.#drop(node);
      return;
    }
    card.show(news.offer);
    const { over, error, cancelled } = news.download;
    if (!over || error || cancelled) this.#take(news.download); // else it was removed since
  }

  /** The card of a node for the model that it names; none if that is here. */
  #cardOf(node, name) {
    if (this.#cards.get(node)?.name !== name) this.#drop(node);
    if (!Object.hasOwn(this.#absent, name)) return null;
    if (!this.#cards.has(node)) {
      this.#cards.set(node, new Card(node, name, this.#absent[name], this));
    }
    return this.#cards.get(node);
  }

  #drop(node) {
    this.#cards.get(node)?.remove();
    this.#cards.delete(node);
  }

  /** The answer of a route that does something; one with `error` if it could not. */
  async post(route, values) {
    const body = { ...values, language: this.host.language() };
    return this.host.post(route, body).catch(() => ({ error: this.words.unreachable }));
  }

  /** Download a model whose quote was seen. */
  async start(name, bytes) {
    const answer = await this.post("/ssd/download", { model: name, bytes });
    if (answer.error && !answer.name) return answer.error;
    this.#take(answer);
    return null;
  }

  async cancel() {
    this.#take(await this.post("/ssd/cancel", {}));
  }

  /** Show how far a download is, and look again until it is over. */
  #take(download) {
    clearTimeout(this.#timer);
    const cards = [...this.#cards.values()].filter(({ name }) => name === download?.name);
    for (const card of cards) card.follow(download);
    if (!cards.length) return;
    if (!download.over) this.#timer = setTimeout(() => this.#look(download), STEP);
    else if (!download.error && !download.cancelled) this.#arrived(cards);
  }

  async #look(before) {
    const query = { language: this.host.language() };
    const news = await this.host.get("/ssd/model", query).catch(() => null);
    this.#take(news?.download ?? before);
  }

  #arrived(cards) {
    delete this.#absent[cards[0].name];
    this.host.arrived(cards.map(({ node }) => node));
  }
}

/** What a node says of a model that is not here, and the buttons. */
class Card {
  /** bytes: about what the download takes, null if that is unknown. */
  constructor(node, name, bytes, downloads) {
    addStyleSheet(new URL("../preview/message.css", import.meta.url).href);
    addStyleSheet(new URL("downloads.css", import.meta.url).href);
    Object.assign(this, { node, name, bytes, downloads, isGoing: false, shownName: name });
    this.title = make("div", "ssd-download-title", {}, [say(this.words.absent, { title: name })]);
    this.facts = make("dl", "ssd-download-facts");
    this.state = make("div", "ssd-download-state", { role: "status" });
    this.bar = make("progress", "", { "aria-label": name, max: "1" });
    this.buttons = make("div", "ssd-message-bar");
    this.text = make("div", "ssd-download-text", {}, [this.title, this.facts]);
    this.inner = make("div", "ssd-download-inner", {},
      [this.text, this.state, this.bar, this.buttons]);
    this.element = make("div", "ssd-download", { role: "group" }, [this.inner]);
    this.box = new NodeBox(node, "ssd_download", this.element,
      () => this.inner.scrollHeight + this.text.scrollHeight - this.text.clientHeight, LEAST);
    this.observer = new ResizeObserver(() => this.box.fit());
    for (const part of [this.title, this.facts, this.state]) this.observer.observe(part);
    this.#offer();
  }

  get words() {
    return this.downloads.words;
  }

  show({ title, licence, facts }) {
    const { words } = this;
    this.shownName = title;
    setText(this.title, say(words.absent, { title }));
    const link = make("a", "", { href: licence.link, target: "_blank", rel: "noreferrer" },
      [licence.name]);
    const size = this.bytes && say(words.about, { size: sizeText(this.bytes) });
    const lines = { ...(size && { size }), ...facts, licence: [link, `: ${licence.restricts}`] };
    this.facts.replaceChildren(...Object.entries(lines).flatMap(([fact, text]) => [
      make("dt", "", {}, [words.facts[fact]]), make("dd", "", {}, [text].flat())]));
    if (!this.isGoing) this.#offer();
  }

  #offer() {
    this.#say("", [[this.words.ask, () => this.#ask()]]);
  }

  /**
   * text: how things stand; buttons: [label, what a click does]; isBrief: without the facts;
   * share: 0..1 of a download.
   */
  #say(text, buttons, { isError = false, isBrief = isError, share = null } = {}) {
    this.facts.hidden = isBrief || share !== null; // known by then
    setText(this.state, text);
    this.state.hidden = text === "";
    this.state.classList.toggle("ssd-download-error", isError);
    this.bar.hidden = share === null;
    this.bar.value = share ?? 0;
    const labels = buttons.map(([label]) => label).join();
    if (labels !== this.labels) { // a button keeps the focus while the bar moves
      this.labels = labels;
      this.buttons.replaceChildren(...buttons.map(([label, run]) => button(label, run,
        { class: "ssd-button" })));
      this.buttons.hidden = buttons.length === 0;
    }
    this.box.fit();
  }

  /** The quote: exact size and place, before anything is downloaded. */
  async #ask() {
    const { words } = this;
    this.#say(words.asking, []);
    const quote = await this.#quote();
    if (!quote) return;
    const [size, missing] = [quote.bytes, quote.missing].map(sizeText);
    const text = quote.missing < quote.bytes ? words.resumed : words.quoted;
    this.#say(say(text, { size, missing, where: quote.where }),
      [[say(words.start, { size: missing }), () => this.#start(quote)],
        [words.not, () => this.#offer()]]);
  }

  async #quote() {
    const quote = await this.downloads.post("/ssd/quote", { model: this.name });
    if (!quote.error) return quote;
    this.#fail(quote.error);
    return null;
  }

  async #start({ missing }) {
    this.#say(this.words.asking, []);
    const error = await this.downloads.start(this.name, missing);
    if (error) this.#fail(error);
  }

  /** Go on with what was agreed to before. */
  async #resume() {
    this.#say(this.words.asking, []);
    const quote = await this.#quote();
    if (quote) await this.#start(quote);
  }

  #fail(error) {
    this.#say(error, [[this.words.again, () => this.#ask()]], { isError: true });
  }

  /** Show a download of this model that is going on, or how it ended. */
  follow({ done, total, over, cancelled, error }) {
    const { words } = this;
    this.isGoing = !over;
    if (error) this.#fail(error);
    else if (cancelled) this.#say(words.cancelled, [[words.resume, () => this.#resume()]]);
    else if (over) {
      setText(this.title, say(words.here, { title: this.shownName }));
      this.#say("", [], { isBrief: true });
    } else {
      const text = say(words.going, { done: sizeText(done), size: sizeText(total) });
      this.#say(text, [[words.cancel, () => this.downloads.cancel()]],
        { share: total ? done / total : 0 });
    }
  }

  remove() {
    this.observer.disconnect();
    this.box.remove();
    this.element.remove();
  }
}

/** Requests to the server's JSON. An error is one line, ready to be shown. */

const TOKEN = "ssd-studio-visitor"; // of a browser tab; survives a reload

/** What the server refused, or that it cannot be reached (status 0). */
export class ApiError extends Error {
  constructor(line, status) {
    super(line);
    this.status = status;
  }
}

/** The token by which the server knows this tab: 64 hexadecimal digits that nobody can guess. */
export function visitor() {
  const fresh = [...crypto.getRandomValues(new Uint8Array(32))]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
  try {
    const token = sessionStorage.getItem(TOKEN) ?? fresh;
    sessionStorage.setItem(TOKEN, token);
    return token;
  } catch {
    return fresh; // no storage: the tab is known until it is reloaded
  }
}

export class Api {
  /** lost: the line for a server that does not answer. fetch: as the browser's. */
  constructor({ token = visitor(), lost = "The server does not answer.", fetcher } = {}) {
    Object.assign(this, { token, lost });
    this.fetch = fetcher ?? ((...args) => fetch(...args));
  }

  /** The answer to `GET api/<path>`; query: an object or a list of pairs. */
  get(path, query = {}, signal = undefined) {
    const text = new URLSearchParams(query).toString();
    return this.#ask(`${path}${text && `?${text}`}`, { signal });
  }

  post(path, values = {}, signal = undefined) {
    const headers = { "content-type": "application/json" };
    return this.#ask(path, { method: "POST", headers, body: JSON.stringify(values), signal });
  }

  /** Send a file as the body of a `POST`. */
  upload(path, file, query = {}) {
    const text = new URLSearchParams({ name: file.name ?? "picture.png", ...query }).toString();
    return this.#ask(`${path}?${text}`, { method: "POST", body: file });
  }

  /** Also from a page that is left. */
  remove(path) {
    return this.#ask(path, { method: "DELETE", keepalive: true });
  }

  async #ask(path, options) {
    let answer;
    try {
      answer = await this.fetch(`api/${path}`, { cache: "no-store", ...options,
        headers: { ...options.headers, "x-ssd-visitor": this.token } });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(this.lost, 0);
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new ApiError(body.error ?? `${answer.status}`, answer.status);
    return body;
  }
}

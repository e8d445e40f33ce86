/**
 * The latest messages of every node, so that a new widget for it can show them again. Pure.
 *
 * The key is the workflow's id and the node's id in it: widgets are made anew by every undo and
 * every change of the tab.
 */

/** The id of every graph without an id of its own; it identifies no workflow. */
export const NO_ID = "00000000-0000-0000-0000-000000000000";

const MOST = 64; // nodes

const keyOf = ({ graph, node }) => `${graph ?? ""}\n${node}`;

export class Memory {
  #records = new Map();

  /** Store a message; returns whether it is new. */
  add(message) {
    const { graph = "", node, serial } = message;
    const record = this.#records.get(keyOf(message)) ?? { graph, node, messages: [], serial: 0 };
    if (serial <= record.serial) return false;
    record.serial = serial ?? record.serial;
    record.messages = [...withoutOld(record.messages, message), message];
    this.#put(record);
    return true;
  }

  /** Replace a node's messages by those of a whole run, which may be older. */
  replace(graph, node, messages) {
    const serial = this.get(graph, node)?.serial ?? 0;
    const record = { graph, node, messages, serial };
    this.#put(record);
    return record;
  }

  #put(record) {
    const key = keyOf(record);
    this.#records.delete(key); // the latest are last
    this.#records.set(key, record);
    if (this.#records.size > MOST) this.#records.delete(this.#records.keys().next().value);
  }

  get(graph, node) {
    return this.#records.get(keyOf({ graph, node }));
  }

  /** The records of a workflow; none if it has no id. */
  of(graph) {
    if (!graph || graph === NO_ID) return [];
    return [...this.#records.values()].filter((record) => record.graph === graph);
  }

  /** Does the node show the run of this message already? */
  knows({ graph, node, run }) {
    return this.get(graph, node)?.messages.some((message) => message.run === run) ?? false;
  }
}

/** The messages that a new one leaves valid: those of its run that it does not paint over. */
function withoutOld(messages, message) {
  if (message.kind === "started") {
    return messages.filter(({ panel, run }) => panel !== message.panel || run === message.run);
  }
  return messages.filter((old) => !paintedOver(old, message));
}

/** Whether a new message replaces all pixels of an old one; "cells" has all current drafts. */
function paintedOver(old, { kind, panel, run, first, last }) {
  if (old.kind !== kind || old.panel !== panel || old.run !== run) return false;
  return kind === "cells" || (kind === "rows" && first <= old.first && old.last <= last);
}

/** A message with its strips read from files; of kind "gone" if the files no longer exist. */
export async function withStrips(message, fetchFile) {
  if (!message.files) return message;
  const strips = await Promise.all(message.files.map((file) => base64Of(file, fetchFile)));
  return strips.includes(null) ? { ...message, kind: "gone" } : { ...message, strips };
}

async function base64Of(file, fetchFile) {
  const answer = await fetchFile(`/view?${new URLSearchParams(file)}`);
  if (!answer.ok) return null;
  const bytes = new Uint8Array(await answer.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

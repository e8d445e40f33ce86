/**
 * What every node last showed, so that a new widget for it can show it again. Pure.
 *
 * Nodes are known by the id of their workflow and their own id in it; widgets come and go with
 * every undo and every change of the tab.
 */

/** The id of a graph that was given none: it says nothing about which workflow this is. */
export const NO_ID = "00000000-0000-0000-0000-000000000000";

const MOST = 64; // nodes

const keyOf = ({ graph, node }) => `${graph ?? ""}\n${node}`;

export class Memory {
  #records = new Map();

  /** Keep a message, and tell whether it is news. */
  add(message) {
    const { graph = "", node, serial } = message;
    const record = this.#records.get(keyOf(message)) ?? { graph, node, messages: [], serial: 0 };
    if (serial <= record.serial) return false;
    record.serial = serial ?? record.serial;
    record.messages = [...withoutOld(record.messages, message), message];
    this.#put(record);
    return true;
  }

  /** The messages of a whole run in place of what the node showed, though it may be older. */
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

  /** The records of a workflow; none where it has no id to be known by. */
  of(graph) {
    if (!graph || graph === NO_ID) return [];
    return [...this.#records.values()].filter((record) => record.graph === graph);
  }

  /** Does the node show the run of this message already? */
  knows({ graph, node, run }) {
    return this.get(graph, node)?.messages.some((told) => told.run === run) ?? false;
  }
}

/** The messages that still count beside a new one: of its run, and not painted over by it. */
function withoutOld(messages, message) {
  if (message.kind === "started") {
    return messages.filter(({ panel, run }) => panel !== message.panel || run === message.run);
  }
  return messages.filter((old) => !paintedOver(old, message));
}

/** Are an old message's pixels gone? The newest message of cells has all that are in flight. */
function paintedOver(old, { kind, panel, run, first, last }) {
  if (old.kind !== kind || old.panel !== panel || old.run !== run) return false;
  return kind === "cells" || (kind === "rows" && first <= old.first && old.last <= last);
}

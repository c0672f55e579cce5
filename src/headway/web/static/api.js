/** The server's answers as data, and its refusals as errors with a sentence for the reader. */

/** A refusal: `message` is the server's sentence. */
export class Refused extends Error {
  /** @param {number} status @param {string} message @param {any} body */
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

/** No answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer. Is “headway” still running?");
  }
}

/** Who is speaking: one name per tab, so that a tab knows its own changes. */
export const CLIENT = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) =>
  byte.toString(16).padStart(2, "0"),
).join("");

/**
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal}} [options] with a body it is a POST
 * @returns {Promise<any>}
 */
export async function ask(path, options = {}) {
  return (await answer(path, options)).json();
}

/**
 * Objects one by one, as the server sends them: one JSON text a line.
 *
 * @param {string} path
 * @param {{body: unknown, signal?: AbortSignal}} options
 * @returns {AsyncGenerator<any>}
 */
export async function* askForLines(path, options) {
  const { body } = await answer(path, options);
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : (lines.pop() ?? "");
    for (const line of lines) if (line.trim()) yield JSON.parse(line);
    if (done) return;
  }
}

/** @param {string} path @param {{body?: unknown, signal?: AbortSignal}} options */
async function answer(path, { body, signal }) {
  /** @type {RequestInit} */
  const init = { signal, headers: { "X-Client": CLIENT } };
  if (body !== undefined) {
    init.method = "POST";
    init.headers = { ...init.headers, "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    throw isAbort(error) ? error : new Unreachable();
  }
  if (response.ok) return response;
  throw await refusal(response);
}

/** @param {Response} response */
async function refusal(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    // a proxy's page, say
  }
  const said = typeof body?.error === "string" ? body.error : `The server answered ${response.status}.`;
  return new Refused(response.status, said, body);
}

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Any error as a sentence for the reader. @param {unknown} error */
export function sentence(error) {
  const text = error instanceof Error ? error.message : String(error);
  const start = text.charAt(0).toLocaleUpperCase() + text.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}

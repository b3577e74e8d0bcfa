// Requests to the server. Events go out one at a time, in order.

import { accept } from "/static/state.js";

const TOKEN = document.querySelector("meta[name=ebse-token]").content;
const PAUSES = [500, 1000, 2000];

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function check(reply) {
  if (reply.ok) return reply;
  let message = `The server answered with status ${reply.status}.`;
  try {
    message = (await reply.json()).error ?? message;
  } catch { /* not JSON: the status is all there is */ }
  throw new ApiError(message, reply.status);
}

async function request(path, options) {
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new ApiError("The server does not answer.", 0);
  }
  return check(reply);
}

export const get = async (path) => (await request(path)).json();

// The bytes of a binary answer; null if there is none yet.
export async function getBytes(path) {
  const reply = await request(path);
  return reply.status === 204 ? null : reply.arrayBuffer();
}

export async function post(path, body, timeout = 0) {
  const reply = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Ebse-Token": TOKEN },
    body: JSON.stringify(body),
    signal: timeout ? AbortSignal.timeout(timeout) : undefined,
  });
  return reply.json();
}

// The same key at every try: the server applies the event once.
async function postEvent(body) {
  const event = { key: crypto.randomUUID(), ...body };
  for (let i = 0; ; i++) {
    try {
      return await post("/api/event", event, 20000);
    } catch (error) {
      if (error.status !== 0 || i === PAUSES.length) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSES[i]));
    }
  }
}

let last = Promise.resolve();
let waiting = 0;
export const pending = () => waiting;

// Sends an event after all earlier ones, and returns the reply. The event can be a function, called when its
// turn comes; null sends nothing.
export function submit(event) {
  waiting += 1;
  const run = last.then(async () => {
    let reply = null;
    try {
      const body = typeof event === "function" ? event() : event;
      if (body) reply = await postEvent(body);
    } finally {
      waiting -= 1;
    }
    if (reply?.state) accept(reply.state);
    return reply;
  });
  last = run.catch(() => null);
  return run;
}

addEventListener("beforeunload", (event) => {
  if (waiting) event.preventDefault();
});

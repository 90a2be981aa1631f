// The playground's way to the gateway: a token in this page's memory, a request, its stream.
"use strict";

window.Playground = (function () {
  const FRESH_MS = 15000; // so long the gateway may not know a new token
  const AGAIN_MS = 300;
  const RENEW_AT = 0.8; // of a token's life
  let held = null; // {text, madeAt, seconds}
  let making = null;

  class Refused extends Error {
    constructor(code, words, seconds) {
      super(words);
      this.code = code;
      this.seconds = seconds; // until it may be asked again; 0: nobody knows
    }
  }

  function words() {
    return document.getElementById("words").dataset;
  }

  function say(template, ...values) {
    return values.reduce((text, value) => text.replace("%s", () => value), template);
  }

  async function makeToken() {
    const csrf = document.querySelector("#ask [name=csrfmiddlewaretoken]").value;
    const options = { method: "POST", headers: { "X-CSRFToken": csrf }, redirect: "manual" };
    const answer = await fetch(words().tokenUrl, options);
    if (answer.type === "opaqueredirect") throw new Refused("logged_out", words().loggedOut, 0);
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refused(told.code || "token", told.words || words().loggedOut, 0);
    held = { text: told.token, madeAt: Date.now(), seconds: told.seconds };
    return held;
  }

  // One that will last a while; all who wait for it get the same.
  function token(isNew) {
    const isGood = held && Date.now() - held.madeAt < held.seconds * 1000 * RENEW_AT;
    if (isGood && !isNew) return Promise.resolve(held);
    making = making || makeToken().finally(() => { making = null; });
    return making;
  }

  function wait(milliseconds, signal) {
    return new Promise(function (resolve, reject) {
      const timer = setTimeout(resolve, milliseconds);
      const stop = function () {
        clearTimeout(timer);
        reject(new DOMException("stopped", "AbortError"));
      };
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
    });
  }

  function send(url, body, text, signal) {
    const headers = { "Authorization": "Bearer " + text, "Content-Type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(body), signal };
    return fetch(url, { ...options, credentials: "omit", cache: "no-store" });
  }

  async function answerOf(url, body, signal) {
    let used = await token(false);
    let hasRenewed = false;
    for (;;) {
      let answer;
      try {
        answer = await send(url, body, used.text, signal);
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refused("unreachable", words().unreachable, 0);
      }
      if (answer.status !== 401) return answer;
      await answer.body?.cancel();
      if (Date.now() - used.madeAt < FRESH_MS) {
        await wait(AGAIN_MS, signal); // it has not heard of the token yet
      } else if (!hasRenewed) {
        hasRenewed = true;
        used = await token(true);
      } else {
        throw new Refused("invalid_api_key", words().notLetIn, 0);
      }
    }
  }

  async function refusalOf(answer) {
    const seconds = Number(answer.headers.get("retry-after")) || 0;
    const told = await answer.json().catch(() => null);
    const error = (told && told.error) || {};
    return new Refused(error.code || String(answer.status), error.message || words().unreadable, seconds);
  }

  // The data of each event of a stream, until its end.
  async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) yield line.slice(5).trim();
      }
    }
  }

  function parsed(data) {
    try {
      return JSON.parse(data);
    } catch {
      throw new Refused("unreadable", words().unreadable, 0);
    }
  }

  // Asks once and hands on what comes: onPart(kind, text), kind "content" or "reasoning". Answers
  // {tokens, firstMs, streamMs, ending, model}; Refused, or an AbortError when `signal` stops it.
  async function ask(url, body, signal, onPart) {
    const asked = performance.now();
    const found = { tokens: 0, firstMs: null, streamMs: 0, ending: "", model: "" };
    const answer = await answerOf(url, body, signal);
    if (!answer.ok) throw await refusalOf(answer);
    let parts = 0;
    let isWhole = false;
    try {
      for await (const data of events(answer.body)) {
        if (data === "[DONE]") { isWhole = true; continue; }
        const event = parsed(data);
        if (event.error) throw new Refused(event.error.code || "error", event.error.message || "", 0);
        const choice = (event.choices || [])[0];
        const delta = (choice && choice.delta) || {};
        for (const [kind, text] of [["reasoning", delta.reasoning_content], ["content", delta.content]]) {
          if (!text) continue;
          parts += 1;
          if (found.firstMs === null) found.firstMs = performance.now() - asked;
          found.streamMs = performance.now() - asked - found.firstMs;
          onPart(kind, text);
        }
        if (choice && choice.finish_reason) { found.ending = choice.finish_reason; isWhole = true; }
        found.model = event.model || found.model;
        if (event.usage) found.tokens = event.usage.completion_tokens || 0;
      }
    } catch (error) {
      if (error.name === "AbortError" || error instanceof Refused) throw error;
      throw new Refused("broken", words().broken, 0);
    }
    if (!isWhole) throw new Refused("broken", words().broken, 0);
    found.tokens = found.tokens || parts;
    return found;
  }

  return { Refused, ask, say, token, wait, words };
})();

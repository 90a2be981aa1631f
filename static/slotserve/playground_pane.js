// The playground's pane: one lane, its conversation, and how it is asked and shows what comes; before it what
// panes are made of: elements, Markdown made safe, numbers, what is announced.
"use strict";

(function () {
  const P = window.Playground;
  if (!document.getElementById("words")) return; // there is no lane to chat with
  const words = P.words();
  const language = document.documentElement.lang || "en";
  const byId = (id) => document.getElementById(id);
  const number = (value, digits) => new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value);

  // Markdown, made safe: no image, no script, nothing from elsewhere.
  const TAGS = ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre",
    "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"];
  const SAFE = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "start"], ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i, RETURN_DOM_FRAGMENT: true };
  // HTML in an answer is shown as it was written, an image as its words.
  const written = ({ text }) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  window.marked.use({ gfm: true, breaks: true, renderer: { html: written, image: written } });

  function markdown(text) {
    const safe = window.DOMPurify.sanitize(window.marked.parse(text), SAFE);
    for (const link of safe.querySelectorAll("a[href]")) {
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
    }
    for (const block of safe.querySelectorAll("pre")) block.tabIndex = 0;
    return safe;
  }

  function made(tag, classes, text) {
    const element = document.createElement(tag);
    if (classes) element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function announce(text) {
    byId("said").textContent = text;
  }

  function copyButton(source) {
    const button = made("button", "btn btn-sm btn-ghost-secondary copy", words.copy);
    button.type = "button";
    button.addEventListener("click", async function () {
      await navigator.clipboard.writeText(source());
      button.textContent = words.copied;
      setTimeout(() => { button.textContent = words.copy; }, 2000);
    });
    return button;
  }

  Object.assign(P, { announce, byId, copyButton, language, made, markdown, number });
})();

(function () {
  const P = window.Playground;
  if (!document.getElementById("words")) return; // there is no lane to chat with
  const { announce, byId, copyButton, language, made, markdown, number } = P;
  const WAITS = new Set(["model_loading", "model_switching", "gateway_starting"]);
  const LEAST_WAIT = 1;
  const PAINT_MS = 100;
  const words = P.words();

  function options() {
    const temperature = byId("temperature").valueAsNumber;
    const most = byId("max-tokens").valueAsNumber;
    return {
      ...(Number.isFinite(temperature) ? { temperature } : {}),
      ...(Number.isFinite(most) && most >= 1 ? { max_tokens: Math.floor(most) } : {}),
    };
  }

  // `again` asks a pane anew, as if its question had just been sent; false: another is being asked.
  class Pane {
    constructor(option, again) {
      this.again = again;
      this.slug = option.value;
      this.name = option.dataset.name;
      this.turns = []; // {role, content}
      this.card = made("section", "card pane");
      this.card.setAttribute("aria-label", this.name);
      const head = made("div", "card-header");
      head.append(made("h2", "card-title", this.name));
      this.badge = made("span", "badge bg-secondary-lt ms-2", option.dataset.preset);
      this.badge.hidden = !option.dataset.preset;
      head.append(this.badge);
      this.figures = made("span", "pane-figures text-secondary ms-auto");
      head.append(this.figures);
      this.talk = made("div", "card-body talk");
      this.talk.tabIndex = 0;
      this.talk.setAttribute("role", "group");
      this.talk.setAttribute("aria-label", this.name);
      this.card.append(head, this.talk);
      this.clear();
    }

    get address() {
      return words.gateway + "/lanes/" + encodeURIComponent(this.slug);
    }

    clear() {
      this.turns = [];
      this.figures.textContent = "";
      this.talk.replaceChildren(made("p", "text-secondary nothing", words.nothing));
    }

    // What is sent: a question that was never answered gives way to the next.
    messages() {
      const system = byId("system").value.trim();
      const kept = this.turns.filter((turn, place) => turn.role !== "user" || this.turns[place + 1]?.role !== "user");
      return [...(system ? [{ role: "system", content: system }] : []), ...kept];
    }

    add(role, text) {
      this.talk.querySelector(".nothing")?.remove();
      const turn = made("article", "turn turn-" + role);
      turn.append(made("h3", "turn-who", role === "user" ? words.you : this.name));
      const body = made("div", "turn-text" + (role === "user" ? " turn-plain" : " markdown"), text || "");
      turn.append(body);
      this.talk.append(turn);
      this.toEnd();
      return { turn, body };
    }

    toEnd() {
      this.talk.scrollTop = this.talk.scrollHeight;
    }

    async ask(text, signal) {
      this.turns.push({ role: "user", content: text });
      this.add("user", text);
      await this.answer(signal);
    }

    // Asks until there is an answer, a refusal that waiting does not help, or a stop.
    async answer(signal) {
      const shown = this.add("assistant", "");
      for (;;) {
        try {
          await this.stream(shown, signal);
          return;
        } catch (error) {
          if (error.name === "AbortError") { this.note(shown, words.stopped); return; }
          if (!(error instanceof P.Refused)) throw error;
          if (!WAITS.has(error.code) || shown.text) { await this.refused(shown, error); return; }
          if (!await this.waited(shown, error, signal)) return;
        }
      }
    }

    async stream(shown, signal) {
      shown.text = "";
      shown.thought = "";
      shown.turn.classList.add("turn-coming");
      this.figures.textContent = "";
      const paint = () => { shown.timer = null; this.paint(shown); };
      const body = { model: "auto", messages: this.messages(), ...options(), stream: true,
        stream_options: { include_usage: true } };
      try {
        const found = await P.ask(this.address + "/v1/chat/completions", body, signal, (kind, text) => {
          if (kind === "content") shown.text += text;
          else shown.thought += text;
          shown.timer = shown.timer || setTimeout(paint, PAINT_MS);
        });
        this.tell(found);
        if (found.ending === "length") this.note(shown, words.cut);
        if (!shown.text && !shown.thought) this.note(shown, words.empty);
      } finally {
        clearTimeout(shown.timer);
        shown.timer = null;
        shown.turn.classList.remove("turn-coming");
        this.paint(shown);
        if (shown.text) this.keep(shown);
      }
    }

    keep(shown) {
      this.turns.push({ role: "assistant", content: shown.text });
      if (navigator.clipboard) shown.turn.querySelector(".turn-who").append(copyButton(() => shown.text));
    }

    paint(shown) {
      const isAtEnd = this.talk.scrollHeight - this.talk.scrollTop - this.talk.clientHeight < 60;
      const parts = [];
      if (shown.thought) {
        const details = made("details", "thought");
        details.open = shown.body.querySelector("details")?.open || false;
        details.append(made("summary", "text-secondary", words.thinking), made("div", "turn-plain text-secondary", shown.thought));
        parts.push(details);
      }
      shown.body.replaceChildren(...parts, markdown(shown.text));
      if (isAtEnd) this.toEnd();
    }

    // Time to the first token by this page's clock, tokens by the server's count.
    tell(found) {
      if (found.model) this.badge.textContent = found.model; // the lane may have changed it
      this.badge.hidden = !this.badge.textContent;
      const told = [P.say(words.tokens, number(found.tokens, 0))];
      if (found.tokens > 1 && found.streamMs > 0) {
        told.unshift(P.say(words.speed, number((found.tokens - 1) / (found.streamMs / 1000), 1)));
      }
      if (found.firstMs !== null) told.push(P.say(words.firstToken, number(found.firstMs / 1000, 2)));
      this.figures.textContent = told.join(" · ");
    }

    note(shown, text) {
      shown.turn.querySelector(".turn-note")?.remove();
      const note = made("p", "turn-note text-secondary", text);
      shown.turn.append(note);
      this.toEnd();
      return note;
    }

    // Counts down and lets it be asked again; false: it was stopped.
    async waited(shown, refusal, signal) {
      const text = words[camel(refusal.code)] || refusal.message;
      const note = this.note(shown, text + " ");
      const left = made("span", "nowrap");
      left.setAttribute("aria-hidden", "true");
      note.append(left);
      announce(`${this.name}: ${text}`);
      try {
        for (let seconds = Math.max(refusal.seconds, LEAST_WAIT); seconds > 0; seconds -= 1) {
          left.textContent = P.say(words.retryIn, number(seconds, 0));
          await P.wait(1000, signal);
        }
      } catch {
        this.note(shown, words.stopped);
        return false;
      }
      note.remove();
      return true;
    }

    async refused(shown, refusal) {
      const isReserved = refusal.code === "gpu_reserved";
      const text = isReserved ? await reservedBy(this.slug) : refusal.message;
      const box = made("div", "alert alert-warning turn-refusal");
      box.append(made("p", "mb-2", text));
      const actions = made("div", "btn-list");
      if (isReserved) {
        const link = made("a", "btn btn-sm btn-primary", words.book);
        link.href = words.bookUrl + "?lane=" + encodeURIComponent(this.slug);
        actions.append(link);
      }
      const again = made("button", "btn btn-sm", words.again);
      again.type = "button";
      again.addEventListener("click", () => { if (this.again(this)) shown.turn.remove(); });
      actions.append(again);
      if (refusal.seconds) actions.append(countdown(refusal.seconds));
      box.append(actions);
      shown.turn.append(box);
      this.toEnd();
      announce(`${this.name}: ${text}`);
    }
  }

  function camel(code) {
    return code.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  }

  function countdown(seconds) {
    const left = made("span", "text-secondary align-self-center");
    left.setAttribute("aria-hidden", "true");
    const until = Date.now() + seconds * 1000;
    const show = function () {
      const rest = Math.ceil((until - Date.now()) / 1000);
      left.textContent = rest > 0 ? P.say(words.askIn, number(rest, 0)) : "";
      if (rest > 0) setTimeout(show, 1000);
    };
    show();
    return left;
  }

  // Who holds the lane, and until when, as its members are told.
  async function reservedBy(slug) {
    try {
      const answer = await fetch(words.laneApi + encodeURIComponent(slug) + "/");
      const booking = answer.ok && (await answer.json()).booking;
      if (!booking) return words.gpuReservedUnknown;
      const until = new Date(booking.end);
      const isToday = until.toDateString() === new Date().toDateString();
      const style = isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
      return P.say(words.gpuReserved, booking.owner, new Intl.DateTimeFormat(language, style).format(until));
    } catch {
      return words.gpuReservedUnknown;
    }
  }

  Object.assign(P, { Pane, options });
})();

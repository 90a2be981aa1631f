// The playground: conversations side by side with what lanes have loaded. Kept in this page alone.
"use strict";

document.addEventListener("DOMContentLoaded", function () {
  const P = window.Playground;
  const root = document.getElementById("playground");
  if (!root) return;
  const { announce, byId, copyButton } = P;
  const words = P.words();
  let panes = [];
  let running = null; // the AbortController of what is being answered

  async function run(some, step) {
    if (running) return;
    running = new AbortController();
    showRunning(true);
    const names = some.map((pane) => pane.name).join(", ");
    announce(P.say(words.answering, names));
    try {
      await Promise.all(some.map((pane) => step(pane, running.signal)));
    } finally {
      const wasStopped = running.signal.aborted;
      running = null;
      showRunning(false);
      if (wasStopped) announce(words.stopped);
      else if (some.every((pane) => pane.turns.at(-1)?.role === "assistant")) announce(P.say(words.answered, names));
      showCode();
    }
  }

  function again(pane) {
    if (running) return false;
    run([pane], (each, signal) => each.answer(signal));
    return true;
  }

  function showRunning(isRunning) {
    byId("stop").hidden = !isRunning;
    byId("send").hidden = isRunning;
    for (const id of ["lane", "beside", "clear"]) byId(id).disabled = isRunning;
    root.classList.toggle("is-running", isRunning);
  }

  function send() {
    const text = byId("prompt").value.trim();
    if (!text || running) return;
    byId("prompt").value = "";
    run(panes, (pane, signal) => pane.ask(text, signal));
  }

  function stop() {
    if (running) running.abort();
  }

  // Panes of lanes that stay chosen keep their conversation.
  function choose() {
    const chosen = [byId("lane"), byId("beside")].map((select) => select.selectedOptions[0]);
    const wanted = chosen.filter((option, place) => option && option.value && (!place || option.value !== chosen[0].value));
    panes = wanted.map((option) => panes.find((pane) => pane.slug === option.value) || new P.Pane(option, again));
    byId("panes").replaceChildren(...panes.map((pane) => pane.card));
    showCode();
  }

  function showCode() {
    const pane = panes[0];
    if (byId("code").hidden || !pane) return;
    const draft = byId("prompt").value.trim();
    const messages = pane.messages();
    if (draft) messages.push({ role: "user", content: draft });
    const talk = { address: pane.address, messages, options: P.options() };
    for (const [name, write] of Object.entries(P.code)) byId("code-text-" + name).textContent = write(talk);
  }

  byId("ask").addEventListener("submit", function (event) {
    event.preventDefault();
    event.stopPropagation();
    send();
  });
  byId("prompt").addEventListener("keydown", function (event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
  byId("stop").addEventListener("click", function () {
    stop();
    byId("prompt").focus();
  });
  byId("clear").addEventListener("click", function () {
    for (const pane of panes) pane.clear();
    announce(words.nothing);
    byId("prompt").focus();
    showCode();
  });
  byId("show-code").addEventListener("click", function (event) {
    const isShown = byId("code").hidden;
    byId("code").hidden = !isShown;
    event.currentTarget.setAttribute("aria-expanded", String(isShown));
    showCode();
  });
  for (const id of ["lane", "beside"]) byId(id).addEventListener("change", choose);
  for (const id of ["system", "temperature", "max-tokens", "prompt"]) byId(id).addEventListener("input", showCode);
  for (const button of document.querySelectorAll("[data-copy-code]")) {
    if (!navigator.clipboard) break;
    button.replaceWith(copyButton(() => byId(button.dataset.copyCode).textContent));
  }
  byId("show-code").hidden = byId("clear").hidden = false;
  choose();
  P.token(false).catch(() => {}); // so that the gateway knows it by the first question
});

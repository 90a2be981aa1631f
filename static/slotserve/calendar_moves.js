// Moves of bookings in the calendar: asks the server, says what came of it, offers to undo it.
"use strict";

window.slotserveMoves = (function () {
  const root = () => document.getElementById("calendar");
  let undo = null; // the move that leads back, while it is offered

  // --- Words: one at a time, until the next or until closed --------------------------------------
  function say(words, buttons, isRefused) {
    undo = null;
    const toast = document.createElement("div");
    toast.className = "calendar-toast" + (isRefused ? " refused" : "");
    const text = document.createElement("p");
    text.textContent = words;
    toast.append(text);
    for (const [label, act] of [...buttons, [root().dataset.close, () => {}]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn btn-sm";
      button.textContent = label;
      button.addEventListener("click", () => { silence(); act(); });
      toast.append(button);
    }
    document.getElementById("calendar-said").replaceChildren(toast);
  }

  function silence() {
    undo = null;
    document.getElementById("calendar-said").replaceChildren();
  }

  // --- Questions: answers what was chosen, or null ------------------------------------------------
  function ask(words, choices) {
    const dialog = document.getElementById("calendar-dialog");
    document.getElementById("calendar-dialog-title").textContent = words;
    dialog.querySelector(".calendar-dialog-body").replaceChildren();
    return new Promise(function (resolve) {
      const buttons = [...choices, { words: root().dataset.cancel, at: null }].map(function (choice) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = choice.at === null ? "btn" : "btn btn-primary";
        button.textContent = choice.words;
        button.addEventListener("click", () => { answer = choice.at; dialog.close(); });
        return button;
      });
      let answer = null;
      dialog.querySelector(".calendar-dialog-buttons").replaceChildren(...buttons);
      dialog.addEventListener("close", () => resolve(answer), { once: true });
      dialog.showModal();
    });
  }

  // --- Moves --------------------------------------------------------------------------------------
  async function post(move) {
    const answer = await fetch(root().dataset.move, {
      method: "POST",
      credentials: "same-origin",
      redirect: "error", // to the log-in page: the session has ended
      headers: {
        "Content-Type": "application/json",
        "X-CSRFToken": root().querySelector("[name=csrfmiddlewaretoken]").value,
      },
      body: JSON.stringify(move),
    });
    return { isDone: answer.ok, ...(await answer.json()) };
  }

  // A move: {booking, seen, start, end, lane}. Answers whether it was made; says so or why not.
  async function make(move, verb) {
    let said;
    try {
      said = await post(move);
    } catch {
      say(root().dataset.notMoved, [], true);
      return false;
    }
    if (said.choices) {
      const chosen = await ask(said.detail, said.choices);
      return chosen !== null && make({ ...move, [said.field]: chosen }, verb);
    }
    if (!said.isDone) {
      say(said.detail, (said.nearest || []).map((slot) => [
        `${root().dataset.moveTo} ${slot.words}`,
        () => makeAndShow({ ...move, start: slot.start, end: slot.end, is_sure: false }),
      ]), true);
      return false;
    }
    const back = { booking: said.booking, seen: said.seen, ...move.seen };
    const isUndone = verb === root().dataset.undone;
    const goBack = () => makeAndShow(back, root().dataset.undone);
    say(`${verb} ${said.words}`, isUndone ? [] : [[root().dataset.undo, goBack]], false);
    undo = isUndone ? null : () => { silence(); goBack(); };
    return true;
  }

  async function makeAndShow(move, verb) {
    if (await make(move, verb || root().dataset.moved)) {
      document.dispatchEvent(new CustomEvent("calendar:changed"));
    }
  }

  // What was dragged: to another lane only when that is meant.
  async function dragged(move, lanes) {
    if (move.lane !== move.seen.lane) {
      const choice = { at: "yes", words: `${root().dataset.laneChange}: ${lanes}` };
      if ((await ask(root().dataset.toLane, [choice])) === null) return false;
    }
    return make(move, root().dataset.moved);
  }

  // --- One booking, with what can be done with it ---------------------------------------------------
  async function open(id) {
    const back = encodeURIComponent(location.pathname + location.search);
    const address = root().dataset.details.replace("/0/", `/${id}/`) + "?next=" + back;
    let text = null;
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" }, redirect: "error" });
      if (answer.ok && !answer.headers.has("HX-Redirect")) text = await answer.text();
    } catch { /* the page itself says what is wrong */ }
    if (text === null) {
      location.assign(address);
      return;
    }
    const dialog = document.getElementById("calendar-dialog");
    const title = document.getElementById("calendar-dialog-title");
    title.textContent = title.dataset.words;
    dialog.querySelector(".calendar-dialog-body").innerHTML = text;
    const close = document.createElement("button");
    close.type = "button";
    close.className = "btn";
    close.textContent = root().dataset.close;
    close.addEventListener("click", () => dialog.close());
    dialog.querySelector(".calendar-dialog-buttons").replaceChildren(close);
    dialog.showModal();
  }

  document.addEventListener("keydown", function (event) {
    const isTyping = event.target.matches("input, textarea, select");
    if (undo && !isTyping && (event.ctrlKey || event.metaKey) && event.key === "z") {
      event.preventDefault();
      undo();
    }
  });

  return { dragged, open, say };
})();

// How to call a lane's model, in a dialog over the overview. Without scripts the same links lead to
// that part of the lane's page, where the model's name follows what the lane is to run.
"use strict";

(function () {
  let dialog = null;
  let opener = null;

  function make() {
    dialog = document.createElement("dialog");
    dialog.className = "book-dialog";
    dialog.setAttribute("aria-labelledby", "use");
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", function () {
      dialog.replaceChildren();
      if (opener && opener.isConnected) opener.focus();
    });
    document.body.append(dialog);
  }

  function closer() {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn-close ms-auto";
    button.setAttribute("aria-label", document.body.dataset.close);
    button.addEventListener("click", () => dialog.close());
    return button;
  }

  // False when this is something else, such as a page to log in.
  function fill(html) {
    const part = new DOMParser().parseFromString(html, "text/html").querySelector("[data-use]");
    if (!part) return false;
    if (!dialog) make();
    part.querySelector(".card-header").append(closer());
    dialog.replaceChildren(part);
    for (const button of dialog.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
    dialog.showModal();
    return true;
  }

  async function open(link) {
    opener = link;
    try {
      const answer = await fetch(link.dataset.useAt, { credentials: "same-origin" });
      if (answer.ok && fill(await answer.text())) return;
    } catch { /* the server is away: the browser says so */ }
    window.location.assign(link.href);
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest("a[data-use-at]");
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
    if (!link || !isPlain || event.defaultPrevented) return;
    event.preventDefault();
    open(link);
  });

  document.addEventListener("htmx:afterSwap", function () {
    const live = document.getElementById("live");
    if (!live || !live.dataset.model) return;
    for (const name of document.querySelectorAll("[data-model-name]")) name.textContent = live.dataset.model;
  });
})();

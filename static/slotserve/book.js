// The booking form: in a dialog over the page that leads to it, and shown as far as it is needed.
// Without scripts the same links lead to the same form on a page of its own.
"use strict";

(function () {
  const path = document.body.dataset.bookPath;
  let dialog = null;
  let opener = null;

  // --- The form's parts ------------------------------------------------------------------------
  function chosen(form, name) {
    const field = form.elements.namedItem(name); // elements.length is a number
    return field ? field.value : "";
  }

  function show(id, isShown) {
    const part = document.getElementById(id);
    if (!part) return;
    part.hidden = !isShown;
    for (const input of part.querySelectorAll("input, select")) input.disabled = !isShown;
  }

  function showNeeded(form) {
    show("field-start", chosen(form, "begins") === "later");
    show("field-end", chosen(form, "length") === "");
    show("field-which_start", chosen(form, "begins") === "later");
    show("field-which_end", chosen(form, "length") === "");
    show("field-days", chosen(form, "repeat") === "weekly");
    for (const name of ["until", "count", "leave_out"]) {
      show("field-" + name, chosen(form, "repeat") !== "");
    }
  }

  // Of the presets, those on the host of the chosen lane; the whole GPU fits everywhere.
  function offerFitting(lane, what, all) {
    const host = lane.selectedOptions[0] && lane.selectedOptions[0].dataset.host;
    const before = what.value;
    what.replaceChildren(...all.filter((o) => !o.dataset.host || o.dataset.host === host));
    what.value = before;
    if (what.selectedIndex < 0) what.selectedIndex = 0;
  }

  function watch() {
    const form = document.getElementById("book");
    if (!form) return;
    const lane = form.elements.namedItem("lane"), what = form.elements.namedItem("what");
    const all = [...what.options];
    offerFitting(lane, what, all);
    lane.addEventListener("change", () => offerFitting(lane, what, all));
    form.addEventListener("change", () => showNeeded(form));
    form.addEventListener("input", function (event) { // which of two moments was asked of another time
      const asked = document.getElementById("field-which_" + event.target.name);
      if (asked) asked.remove();
    });
    showNeeded(form);
  }

  // --- The dialog ------------------------------------------------------------------------------
  function make() {
    dialog = document.createElement("dialog");
    dialog.className = "book-dialog";
    dialog.setAttribute("aria-labelledby", "book-title");
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", function () {
      const asking = dialog.querySelector("#expect");
      if (asking) window.htmx.trigger(asking, "htmx:abort");
      dialog.replaceChildren();
      if (opener && opener.isConnected) opener.focus();
    });
    document.body.append(dialog);
  }

  function head(title) {
    const close = document.createElement("button");
    close.type = "button";
    close.className = "btn-close";
    close.setAttribute("aria-label", document.body.dataset.close);
    close.addEventListener("click", () => dialog.close());
    const row = document.createElement("div");
    row.className = "book-head";
    row.append(title, close);
    return row;
  }

  // False when this is no page of the form, such as one to log in.
  function fill(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const parts = page.getElementById("book-parts"), title = page.getElementById("book-title");
    if (!parts || !title) return false;
    if (!dialog) make();
    dialog.replaceChildren(head(title), parts);
    if (!dialog.open) dialog.showModal();
    watch();
    window.htmx.process(dialog);
    const first = dialog.querySelector("[data-focus]") || dialog.querySelector("[name=lane]");
    first.focus();
    return true;
  }

  async function open(url, from) {
    opener = from || document.activeElement;
    try {
      const answer = await fetch(url, { credentials: "same-origin" });
      if (answer.ok && fill(await answer.text())) return;
    } catch { /* the server is away: the browser says so */ }
    window.location.assign(url);
  }

  async function send(form, submitter) {
    const body = new URLSearchParams(new FormData(form, submitter));
    try {
      const own = submitter && submitter.hasAttribute("formaction");
      const answer = await fetch(own ? submitter.formAction : form.action, {
        method: "POST", body, credentials: "same-origin", headers: { "X-In-Dialog": "1" },
      });
      const place = answer.headers.get("X-Location");
      if (place) window.location.assign(place);
      else if (!fill(await answer.text())) window.location.reload();
    } catch {
      sendPlainly(form, submitter);
    }
  }

  // As the browser would: with the button that was pressed, which may be to look, not to book.
  function sendPlainly(form, submitter) {
    if (submitter && submitter.hasAttribute("formaction")) form.action = submitter.formAction;
    if (submitter && submitter.name) {
      const pressed = document.createElement("input");
      Object.assign(pressed, { type: "hidden", name: submitter.name, value: submitter.value });
      form.append(pressed);
    }
    form.submit();
  }

  function isOwn(link) {
    const isHere = window.location.pathname === path || !window.htmx;
    return !isHere && link && link.origin === window.location.origin && link.pathname === path;
  }

  document.addEventListener("click", function (event) {
    const link = event.target.closest("a[href]");
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
    if (!isPlain || event.defaultPrevented || !isOwn(link)) return;
    event.preventDefault();
    open(link.href, dialog && dialog.contains(link) ? opener : link);
  });
  document.addEventListener("submit", function (event) {
    if (event.defaultPrevented || !dialog || !dialog.contains(event.target)) return;
    event.preventDefault();
    send(event.target, event.submitter);
  });
  document.addEventListener("DOMContentLoaded", watch);
  window.openBooking = open; // for the calendar
})();

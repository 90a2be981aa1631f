// What pages need besides htmx: the viewer's zone and colour scheme, forms that are sent once and
// ask before something is lost, and refreshes that say when the server is away.
"use strict";

(function () {
  const SENT_MS = 10000; // after that a form may be sent again: the first try got lost
  const sent = new WeakMap();

  function kept(name, value) {
    try {
      if (value !== undefined) window.localStorage.setItem(name, value);
      return window.localStorage.getItem(name);
    } catch { // storage is forbidden
      return null;
    }
  }

  // --- Zone: times are written by the server, so it must know. ---------------------------------
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const known = (document.cookie.match(/(?:^|; )zone=([^;]*)/) || [])[1] || "";
  // Not decoded: it may be another program's, which cannot be.
  if (zone && ![zone, encodeURIComponent(zone)].includes(known)) {
    document.cookie = "zone=" + encodeURIComponent(zone) + ";path=/;max-age=31536000;samesite=lax";
    const isPlain = document.documentElement.dataset.method === "GET";
    if (isPlain && document.cookie.includes("zone=")) window.location.reload();
  }

  // --- Light and dark --------------------------------------------------------------------------
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const theme = kept("theme") || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.bsTheme = theme;
  }
  paint();
  dark.addEventListener("change", paint);

  // --- Forms -----------------------------------------------------------------------------------
  document.addEventListener("submit", function (event) {
    const form = event.target;
    const isSentAlready = Date.now() - (sent.get(form) || 0) < SENT_MS;
    const words = form.dataset.confirm;
    if (isSentAlready || (words && !window.confirm(words))) {
      event.preventDefault();
      return;
    }
    sent.set(form, Date.now());
    setTimeout(setButtons, 0, form, true); // a disabled button would not say that it was pressed
    setTimeout(setButtons, SENT_MS, form, false);
  });

  function setButtons(form, isDisabled) {
    for (const button of form.querySelectorAll("button:not([type=button])")) {
      button.disabled = isDisabled;
    }
  }

  // A form that is sent leads elsewhere, and may end the session or what the page shows. What a part
  // of the old page learns of that must not lead elsewhere too: the browser would not get there.
  const LEAVING_MS = 30000;
  let leftAt = -LEAVING_MS;
  const isBeingLeft = () => performance.now() - leftAt < LEAVING_MS;
  window.addEventListener("submit", function (event) { // after all who may keep it from being sent
    if (!event.defaultPrevented) leftAt = performance.now();
  });
  window.addEventListener("pageshow", () => { leftAt = -LEAVING_MS; }); // by going back to it
  document.addEventListener("htmx:beforeOnLoad", function (event) {
    if (isBeingLeft() && event.detail.xhr.getResponseHeader("HX-Redirect")) event.preventDefault();
  });

  // --- Refreshes -------------------------------------------------------------------------------
  function sayConnection(isLost) {
    const note = document.getElementById("connection");
    const words = isLost ? note.dataset.words : "";
    if (note.textContent !== words) note.textContent = words;
  }

  function refresh() {
    if (document.hidden || !window.htmx) return;
    document.querySelectorAll("[data-poll]").forEach((part) => window.htmx.trigger(part, "now"));
  }

  document.addEventListener("htmx:beforeRequest", function (event) {
    if (document.hidden && event.detail.elt.matches("[data-poll]")) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", function (event) {
    const status = event.detail.xhr.status;
    if (!status) return; // given up, as by a dialog that is closed, or without an answer: see below
    if (status !== 404) sayConnection(status < 200 || status >= 400 || "streamLost" in document.body.dataset);
    else if (!isBeingLeft()) window.location.reload(); // what the page shows is gone: say that instead
  });
  for (const kind of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(kind, () => sayConnection(true));
  }
  document.addEventListener("visibilitychange", refresh);

  // What somebody is typing in a part outlives its refresh.
  let typed = new Map();
  document.addEventListener("htmx:beforeSwap", function (event) {
    const fields = [...event.detail.target.querySelectorAll("input[id], textarea[id]")];
    const isTyped = (field) => ["text", "textarea"].includes(field.type) && field.value !== field.defaultValue;
    typed = new Map(fields.filter(isTyped).map((field) => [field.id, field.value]));
  });
  document.addEventListener("htmx:afterSwap", function () {
    for (const [id, value] of typed) {
      const field = document.getElementById(id);
      if (field && field.value !== value) field.value = value;
    }
  });

  // --- Small things ----------------------------------------------------------------------------
  function toggleTheme() {
    const isDark = document.documentElement.dataset.bsTheme === "dark";
    document.documentElement.dataset.bsTheme = isDark ? "light" : "dark";
    kept("theme", isDark ? "light" : "dark");
  }

  // A menu that is open closes like any other: by Escape, or by turning to something else.
  function closeMenus(event) {
    for (const menu of document.querySelectorAll("details.own-menu[open]")) {
      const isOut = event.type === "keydown" ? event.key === "Escape" : !menu.contains(event.target);
      if (!isOut) continue;
      menu.open = false;
      if (event.type === "keydown") menu.querySelector("summary").focus();
    }
  }
  for (const kind of ["click", "focusin", "keydown"]) document.addEventListener(kind, closeMenus);

  function offerCopies() {
    if (!navigator.clipboard) return; // only on secure pages
    for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  }

  document.addEventListener("click", async function (event) {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = document.body.dataset.copied;
  });

  document.addEventListener("DOMContentLoaded", function () {
    const toggle = document.getElementById("theme");
    if (toggle) toggle.addEventListener("click", toggleTheme);
    offerCopies();
    const told = document.querySelector("[data-focus]");
    if (told) told.focus();
    // Reloading the page of a new token must not make another one.
    const once = document.querySelector("[data-once]");
    if (once) history.replaceState(null, "", once.dataset.once || location.href);
  });

  // The back button brings a page back as it was left: forms are sendable, refreshes go on.
  window.addEventListener("pageshow", function (event) {
    for (const form of document.forms) {
      sent.delete(form);
      setButtons(form, false);
    }
    if (event.persisted) refresh();
  });
})();

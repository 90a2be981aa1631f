// The calendar's page: reads what is shown, follows the address, and does what is asked of bookings.
"use strict";

(function (at) {
  const PHONE = window.matchMedia("(max-width: 767.98px)");
  const STALE_MS = 300000; // then what is shown is read again: bands and the past move on
  const GATHER_MS = 60; // news that come together are read together
  const HOUR = 60; // minutes

  const root = document.getElementById("calendar");
  const place = document.getElementById("timeline");
  const asked = new URLSearchParams(location.search);
  const shown = { view: asked.get("view") || "day", date: asked.get("date") || "" };
  let reading = 0;
  let busy = null; // what is being read
  let again = 0; // timer of the next reading

  // --- Address ------------------------------------------------------------------------------------
  function query() {
    const said = new URLSearchParams({ view: shown.view });
    if (shown.date) said.set("date", shown.date);
    const words = root.querySelector("[name=q]").value.trim();
    if (words) said.set("q", words);
    for (const lane of asked.getAll("lane")) said.append("lane", lane);
    return said;
  }

  function isListed() {
    const form = new URLSearchParams(location.search).get("as");
    return form === "list" || (!form && !root.dataset.form && PHONE.matches);
  }

  function go(changed) {
    Object.assign(shown, changed);
    if (shown.view === "month") return location.assign("?" + query()); // a page without a timeline
    history.pushState(null, "", "?" + query() + "&as=picture");
    busy = show();
  }

  // --- Reading --------------------------------------------------------------------------------------
  async function show() {
    const number = ++reading;
    let said;
    try {
      const answer = await fetch(root.dataset.events + "?" + query(), { redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      said = await answer.json();
    } catch {
      window.slotserveMoves.say(root.dataset.failed, [], true);
      return;
    }
    if (number !== reading || at.isDragging) return; // a newer one is on its way, or comes after the drag
    const isNew = !at.feed || at.feed.view !== said.view || at.feed.first !== said.first;
    at.feed = said;
    frame();
    at.draw(isNew);
  }

  function frame() {
    document.getElementById("calendar-title").textContent = at.feed.title;
    document.getElementById("calendar-notes").replaceChildren(...at.feed.notes.map(function (words) {
      const note = document.createElement("div");
      note.className = "alert alert-warning calendar-note";
      note.setAttribute("role", "note");
      note.textContent = words;
      return note;
    }));
    for (const link of root.querySelectorAll("[data-view]")) {
      const isCurrent = link.dataset.view === at.feed.view;
      link.classList.toggle("active", isCurrent);
      if (isCurrent) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const name of ["view", "date"]) root.querySelector(`[name=${name}]`).value = at.feed[name];
  }

  // --- What is done with it -------------------------------------------------------------------------
  function open(event) {
    if (event.kinds.includes("block")) {
      go({ view: { week: "day", day: "hours" }[at.feed.view] || "hours", date: event.start.slice(0, 10) });
      return;
    }
    window.slotserveMoves.open(event.id);
  }

  function clicked(event) {
    const grip = event.target.closest("[data-booking]"), track = event.target.closest(".tl-track");
    if (grip) return open(at.feed.events.find((one) => one.id === grip.dataset.booking));
    if (!track) return null;
    const unit = Math.floor(at.surface.unitAt(event.clientX));
    return at.book(track.dataset.lane, unit, unit + HOUR / at.surface.minutes());
  }

  // --- Start ------------------------------------------------------------------------------------------
  async function follow(event) {
    const link = event.target.closest("[data-view], [data-go]");
    if (!link || isListed() || event.ctrlKey || event.metaKey || event.shiftKey || !at.feed) return;
    event.preventDefault();
    if (link.dataset.view) return go({ view: link.dataset.view });
    await busy; // what is earlier and later depends on what is shown then
    return go({ date: { today: "", previous: at.feed.previous, following: at.feed.following }[link.dataset.go] });
  }

  function begin() {
    root.classList.toggle("is-listed", isListed());
    place.hidden = isListed();
    document.getElementById("calendar-list").hidden = !isListed();
    const form = isListed() ? "list" : "picture";
    for (const link of root.querySelectorAll("[data-as]")) link.classList.toggle("active", link.dataset.as === form);
    if (isListed()) return;
    show();
    setInterval(() => document.hidden || show(), STALE_MS);
  }

  root.addEventListener("click", follow);
  root.querySelector(".calendar-search").addEventListener("submit", function (event) {
    if (isListed()) return;
    event.preventDefault();
    event.stopPropagation(); // it is not sent: its button stays usable
    go({});
  });
  window.addEventListener("popstate", function () {
    const said = new URLSearchParams(location.search);
    if (said.get("as") === "list") return location.reload();
    Object.assign(shown, { view: said.get("view") || "day", date: said.get("date") || "" });
    root.querySelector("[name=q]").value = said.get("q") || "";
    return show();
  });
  for (const name of ["live:bookings", "calendar:changed"]) {
    document.addEventListener(name, function () {
      if (isListed()) return;
      clearTimeout(again);
      again = setTimeout(show, GATHER_MS);
    });
  }
  place.addEventListener("click", clicked);
  at.drag(at.surface, { move: async (booking, change) => { await at.move(booking, change); show(); } });
  begin();
})(window.slotserveCalendar);

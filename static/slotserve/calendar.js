// The calendar's page: reads what is shown, follows the address, and does what is asked of bookings.
"use strict";

(function (at) {
  const PHONE = window.matchMedia("(max-width: 767.98px)");
  const STALE_MS = 300000; // then what is shown is read again: bands and the past move on
  const GATHER_MS = 60; // news that come together are read together
  const DAY = 86400000; // milliseconds

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
  async function open(event) {
    if (event.extendedProps.kinds.includes("block")) {
      go({ view: { week: "day", day: "hours" }[at.feed.view] || "hours", date: event.extendedProps.start.slice(0, 10) });
      return;
    }
    const back = encodeURIComponent(location.pathname + location.search);
    const address = root.dataset.details.replace("/0/", `/${event.id}/`) + "?next=" + back;
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
    close.textContent = root.dataset.close;
    close.addEventListener("click", () => dialog.close());
    dialog.querySelector(".calendar-dialog-buttons").replaceChildren(close);
    dialog.showModal();
  }

  function isBookable(lane, start) {
    const found = lane && at.feed.lanes.find((one) => one.id === lane.id);
    return Boolean(found && found.enabled && start >= at.feed.now.slice(0, 16));
  }

  function book(lane, start, end) {
    const times = { lane, begins: "later", start: start.slice(0, 16), end: end.slice(0, 16) };
    window.openBooking(root.dataset.book + "?" + new URLSearchParams(times));
  }

  function clicked(info) {
    if (isBookable(info.resource, info.dateStr)) {
      const end = new Date(Date.parse(info.dateStr.slice(0, 19) + "Z") + 3600000);
      book(info.resource.id, info.dateStr, end.toISOString());
    }
  }

  async function moved(info, isResized) {
    const was = info.oldEvent.extendedProps;
    const lane = info.event.resourceIds[0];
    const move = { booking: was.id, seen: was.seen, lane };
    if (+info.event.start !== +info.oldEvent.start) {
      move.start = shifted(was.start, isResized ? info.startDelta : info.delta);
      if (isResized) move.end = was.seen.end;
    } else if (isResized && +info.event.end !== +info.oldEvent.end) {
      move.end = shifted(was.end, info.endDelta);
    }
    const isChanged = move.start || move.end || lane !== was.lane;
    const name = (at.feed.lanes.find((one) => one.id === lane) || {}).name;
    if (!isChanged || !(await window.slotserveMoves.dragged(move, name))) info.revert();
    place.dataset.filled = "";
    show();
  }

  // The library's dates are of the browser's zone, in which the time on the wall may not exist.
  function shifted(wall, by) {
    const milliseconds = by.days * DAY + by.seconds * 1000;
    return new Date(Date.parse(wall + "Z") + milliseconds).toISOString().slice(0, 19);
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
      again = setTimeout(() => { place.dataset.filled = ""; show(); }, GATHER_MS);
    });
  }
  Object.assign(at, { open, isBookable, book, clicked, moved });
  begin();
})(window.slotserveCalendar);

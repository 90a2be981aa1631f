// The month's table under the pointer: a drag across days books them, a click on a free day an hour
// of it; the viewer's bookings get handles in the strips, by which they are moved and resized by days.
"use strict";

(function (at) {
  const DAY = 86400000; // milliseconds
  const MORNING = 9 / 24; // of a day: where a click books
  const HOUR = 1 / 24;

  const root = document.getElementById("calendar");
  const place = () => document.getElementById("calendar-month");
  const rows = () => [...place().querySelectorAll("tbody tr:not(.month-host)")];
  const laneOf = (row) => row.querySelector("td a").hash.slice(1);
  const first = () => Date.parse(at.feed.first + "T00:00Z");
  let readAt = 0;

  // --- The table as a surface: its units are days -----------------------------------------------------
  function unitAt(x) {
    const days = rows()[0].querySelectorAll("td");
    const left = days[0].getBoundingClientRect().left;
    return ((x - left) / (days[days.length - 1].getBoundingClientRect().right - left)) * days.length;
  }

  function side() {
    return rows()[0].querySelector("th").offsetWidth;
  }

  function laneAt(x, y) {
    const box = place().getBoundingClientRect();
    const inside = Math.min(Math.max(x, box.left + side() + 2), box.right - 20);
    const cell = document.elementsFromPoint(inside, y).find((one) => one.matches("#calendar-month td"));
    return cell && cell.querySelector("a") ? laneOf(cell.parentElement) : null;
  }

  const surface = {
    get place() { return place(); },
    unitAt, laneAt, side, preview,
    units: () => rows()[0].querySelectorAll("td").length,
    unitOf: (wall) => (Date.parse(wall.slice(0, 19) + "Z") - first()) / DAY,
    wallOf: (unit) => new Date(first() + Math.round((unit * DAY) / 1000) * 1000).toISOString().slice(0, 19),
    now: () => new Date(Date.parse(at.feed.now + "Z") + performance.now() - readAt).toISOString().slice(0, 19),
  };

  function put(box, from, to) {
    const low = Math.max(from, 0), high = Math.min(to, surface.units());
    box.style.left = `${(100 * low) / surface.units()}%`;
    box.style.width = `${(100 * (high - low)) / surface.units()}%`;
  }

  // What lies over all days of a lane.
  function layer(row, name) {
    const cell = row.querySelector("td");
    const found = cell.querySelector("." + name) || document.createElement("div");
    found.className = name;
    found.style.width = `${surface.units()}00%`;
    cell.append(found);
    return found;
  }

  function preview(shown) {
    for (const old of place().querySelectorAll(".month-preview")) old.remove();
    const row = shown && rows().find((one) => laneOf(one) === shown.lane);
    if (!row) return;
    const box = document.createElement("div");
    put(box, shown.from, shown.to);
    layer(row, "month-preview").append(box);
  }

  // --- Handles ----------------------------------------------------------------------------------------
  async function read() {
    const said = new URLSearchParams(location.search);
    said.set("view", "month");
    try {
      const answer = await fetch(root.dataset.events + "?" + said, { redirect: "error" });
      if (!answer.ok) return;
      at.feed = await answer.json();
    } catch { return; } // the table is there, and its days lead on
    readAt = performance.now();
    if (!at.isDragging) draw();
  }

  function draw() {
    for (const row of rows()) {
      const own = at.feed.events.filter((event) => event.lane === laneOf(row));
      const old = row.querySelector(".month-handles");
      if (own.length) layer(row, "month-handles").replaceChildren(...own.map(handle));
      else if (old) old.remove();
    }
    place().classList.add("has-handles");
  }

  function handle(event) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "month-handle" + (event.begun ? " begun" : "");
    button.dataset.booking = event.id;
    button.setAttribute("aria-label", event.label);
    button.title = event.label;
    button.tabIndex = -1; // its day leads to it by keys
    put(button, surface.unitOf(event.start), surface.unitOf(event.end));
    return button;
  }

  // --- What is done ---------------------------------------------------------------------------------
  function clicked(event) {
    if (!at.feed || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const grip = event.target.closest("[data-booking]"), link = event.target.closest("td a");
    if (grip) return window.slotserveMoves.open(grip.dataset.booking);
    if (!link || link.textContent.trim()) return; // a day with something leads to its timeline
    const day = link.closest("td").cellIndex - 1, lane = laneOf(link.closest("tr"));
    if (at.whyNot(lane, day)) return;
    event.preventDefault();
    const morning = day + MORNING, isOver = surface.wallOf(morning) < surface.now();
    const from = isOver ? surface.unitOf(surface.now()) - 1e-6 : morning;
    at.book(lane, from, from + HOUR);
  }

  async function moved(booking, change) {
    await at.move(booking, change);
    changed();
  }

  function changed() {
    window.htmx.trigger(place(), "now");
  }

  function begin() {
    if (!rows().length) return;
    at.surface = surface;
    place().addEventListener("click", clicked);
    at.drag(surface, { move: moved });
    document.addEventListener("calendar:changed", changed);
    document.addEventListener("htmx:afterSettle", (event) => event.target.closest("#calendar-month") && read());
    read();
  }

  begin();
})(window.slotserveCalendar);

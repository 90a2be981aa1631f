// The calendar's timeline: lanes as rows, drawn from the server's feed. Times come as the viewer's
// wall clock shows them, and are taken as they are: a zone that changes its clocks has no say here.
// A row is drawn when it comes near what is in sight, a few milliseconds of rows in a frame; what
// lies under them (hours, the past, now) is one element each for all rows.
// calendar_ruler.js makes the line of hours, calendar.js reads and acts, calendar_keys.js moves the
// focus, calendar_drag.js drags: they share slotserveCalendar.
"use strict";

(function (at) {
  const { made } = at;
  const MINUTE = 60000, DAY = 86400000; // milliseconds
  // Minutes that a drag goes by, pixels of them, and of how many a line, a number and a day are.
  const SCALES = {
    hours: { minutes: 5, width: 24, line: 3, label: 3 },
    day: { minutes: 15, width: 22, line: 4, label: 4 },
    week: { minutes: 30, width: 7.5, line: 8, label: 8 },
  };
  const NEAR = "400px 0px"; // rows so far out of sight are drawn as well
  const FRAME_MS = 6; // of each frame, for drawing rows
  const WIDE = 240, SMALL = 40; // pixels: a booking's words follow what is in sight; have no place

  const root = document.getElementById("calendar");
  const place = document.getElementById("timeline");
  const folded = new Set(); // hosts whose lanes are not shown
  const rows = new Map(); // by lane: {track, name, host, events, bands, said, isDrawn}
  const waiting = new Set(); // rows to be drawn
  const seen = new IntersectionObserver(come, { root: place, rootMargin: NEAR });
  let scale = SCALES.day;
  let first = 0; // the span's first moment, as its wall clock says it
  let units = 0; // of the whole span
  let outline = ""; // of the frame that is drawn
  let readAt = 0; // when the feed came

  // --- Frame: hours above, lanes beside, and what lies under the rows ------------------------------
  function draw(isNew) {
    scale = SCALES[at.feed.view];
    first = Date.parse(at.feed.first + "T00:00Z");
    units = (Date.parse(at.feed.last + "T00:00Z") + DAY - first) / MINUTE / scale.minutes;
    readAt = performance.now();
    if (outline !== outlineOf()) frame();
    share();
    for (const row of rows.values()) if (!row.isDrawn) seen.observe(row.track);
    keepFocus();
    markNow();
    if (isNew) scrollToTime();
    if (isNew) scrollToLane(location.hash.slice(1));
    place.dataset.shown = `${at.feed.view} ${at.feed.first}`;
  }

  const outlineOf = () => JSON.stringify([at.feed.view, at.feed.first, at.feed.lanes]);

  function frame() {
    outline = outlineOf();
    seen.disconnect();
    rows.clear();
    waiting.clear();
    place.setAttribute("aria-label", root.dataset.grid);
    place.style.setProperty("--width", `${units * scale.width}px`);
    place.style.setProperty("--line", `${scale.line * scale.width}px`);
    place.style.setProperty("--day", `${(DAY / MINUTE / scale.minutes) * scale.width}px`);
    const span = { first, units, scale, isWeek: at.feed.view === "week" };
    place.replaceChildren(...(at.feed.lanes.length ? [at.ruler(span), body()] : [made("empty", root.dataset.none)]));
    place.dataset.view = at.feed.view;
  }

  function body() {
    const both = made("tl-body"), names = made("tl-names"), tracks = made("tl-tracks");
    const isGrouped = new Set(at.feed.lanes.map((lane) => lane.host)).size > 1;
    tracks.append(made("tl-under"), made("tl-past"), made("tl-now"));
    let host = null;
    for (const lane of at.feed.lanes) {
      if (isGrouped && lane.host !== host) {
        names.append(hostName(lane.host));
        tracks.append(made("tl-host"));
      }
      host = lane.host;
      const row = laneRow(lane);
      show(row, !isGrouped || !folded.has(host));
      names.append(row.name);
      tracks.append(row.track);
    }
    both.append(names, tracks);
    return both;
  }

  function hostName(host) {
    const head = made("tl-name tl-host", host), button = document.createElement("button");
    button.type = "button";
    button.className = "tl-fold";
    button.append(made("tl-arrow"));
    button.addEventListener("click", () => fold(host));
    head.dataset.host = host;
    head.append(button);
    nameFold(head);
    return head;
  }

  function nameFold(head) {
    const button = head.querySelector("button"), isFolded = folded.has(head.dataset.host);
    button.setAttribute("aria-label", `${isFolded ? root.dataset.unfold : root.dataset.fold}: ${head.dataset.host}`);
    button.setAttribute("aria-expanded", String(!isFolded));
  }

  function laneRow(lane) {
    const name = made("tl-name", lane.name), track = made("tl-track");
    name.title = lane.name;
    track.dataset.lane = lane.id;
    track.classList.toggle("disabled", !lane.enabled);
    const row = { track, name, host: lane.host, events: [], bands: [], said: "", isDrawn: false };
    rows.set(lane.id, row);
    return row;
  }

  function show(row, isShown) {
    row.name.hidden = row.track.hidden = !isShown;
  }

  function fold(host) {
    if (!folded.delete(host)) folded.add(host);
    for (const row of rows.values()) if (row.host === host) show(row, !folded.has(host));
    for (const head of place.querySelectorAll("[data-host]")) nameFold(head);
    keepFocus();
  }

  // --- Rows ---------------------------------------------------------------------------------------
  // Give each row its bookings and bands; what is as it was stays drawn.
  function share() {
    const found = new Map([...rows.keys()].map((lane) => [lane, { events: [], bands: [] }]));
    for (const event of at.feed.events) found.get(event.lane).events.push(event);
    for (const band of at.feed.bands) found.get(band.lane).bands.push(band);
    for (const [lane, row] of rows) {
      const said = JSON.stringify(found.get(lane));
      if (said === row.said) continue;
      if (row.isDrawn) drawSoon(row);
      Object.assign(row, found.get(lane), { said, isDrawn: false });
    }
  }

  function drawSoon(row) {
    waiting.add(row);
    requestAnimationFrame(work);
  }

  function come(entries) {
    for (const entry of entries) {
      const row = rows.get(entry.target.dataset.lane);
      if (!entry.isIntersecting || !row || row.track !== entry.target) continue;
      seen.unobserve(entry.target);
      if (!row.isDrawn) drawSoon(row);
    }
  }

  function work() {
    const until = performance.now() + FRAME_MS;
    for (const row of waiting) {
      drawRow(row);
      if (performance.now() > until) break;
    }
    if (waiting.size) requestAnimationFrame(work);
  }

  function drawRow(row) {
    if (at.isDragging) return;
    waiting.delete(row);
    if (row.isDrawn) return;
    row.isDrawn = true;
    seen.unobserve(row.track);
    const focused = row.track.contains(document.activeElement) && document.activeElement.dataset.booking;
    row.track.replaceChildren(...row.bands.map(band), ...row.events.map(booking));
    if (focused && row.events.some((event) => event.id === focused)) at.focus(focused);
  }

  function put(element, start, end) {
    const from = unitOf(start), to = unitOf(end);
    element.style.left = `${from * scale.width}px`;
    element.style.width = `${Math.max((to - from) * scale.width, 3)}px`;
    return (to - from) * scale.width;
  }

  function booking(event) {
    const element = document.createElement("button"), words = document.createElement("span");
    element.type = "button";
    element.className = `tl-event ${event.kinds.join(" ")}`;
    element.dataset.booking = event.id;
    element.setAttribute("aria-label", event.label);
    element.title = event.label;
    element.tabIndex = event.id === at.focused ? 0 : -1;
    if (event.seen) element.classList.add("movable");
    if (event.begun) element.classList.add("begun");
    const width = put(element, event.start, event.end);
    if (width > WIDE) element.classList.add("wide");
    if (width < SMALL) element.classList.add("small"); // its signs alone
    words.textContent = width < SMALL ? "" : event.title;
    element.append(words);
    return element;
  }

  function band(one) {
    const element = made(`tl-band band ${one.kind}`);
    put(element, one.start, one.end);
    element.title = one.words;
    return element;
  }

  // One booking is reached by Tab: the last that had the focus, else the next to come.
  function keepFocus() {
    const isThere = (event) => !rows.get(event.lane).track.hidden;
    const shown = at.feed.events.filter(isThere);
    if (!shown.some((event) => event.id === at.focused)) {
      const next = shown.find((event) => event.end > at.feed.now) || shown[0];
      at.focused = next ? next.id : "";
    }
    place.tabIndex = at.focused ? -1 : 0;
    const row = at.focused && rows.get(shown.find((event) => event.id === at.focused).lane);
    if (row) drawRow(row);
    for (const element of place.querySelectorAll("[data-booking]")) element.tabIndex = element.dataset.booking === at.focused ? 0 : -1;
  }

  // --- Time and place -------------------------------------------------------------------------------
  // What a wall clock shows, as units from the span's first moment on; and the other way round.
  const unitOf = (wall) => (Date.parse(wall.slice(0, 19) + "Z") - first) / MINUTE / scale.minutes;
  const wallOf = (unit) => new Date(first + Math.round(unit * scale.minutes * 60) * 1000).toISOString().slice(0, 19);
  const now = () => new Date(Date.parse(at.feed.now + "Z") + performance.now() - readAt).toISOString().slice(0, 19);

  function markNow() {
    const unit = Math.min(Math.max(unitOf(now()), 0), units);
    place.style.setProperty("--past", `${unit * scale.width}px`);
    place.classList.toggle("is-present", unit > 0 && unit < units);
  }

  function unitAt(x) {
    return (x - place.querySelector(".tl-under").getBoundingClientRect().left) / scale.width;
  }

  const side = () => place.querySelector(".tl-corner").offsetWidth;

  function laneAt(x, y) {
    const box = place.getBoundingClientRect();
    const inside = Math.min(Math.max(x, box.left + side() + 1), box.right - 20);
    const track = document.elementsFromPoint(inside, y).find((one) => one.matches(".tl-track"));
    return track ? track.dataset.lane : null;
  }

  // What a drag would make, in its row.
  function preview(shown) {
    const box = place.querySelector(".tl-preview") || made("tl-preview");
    if (!shown) return box.remove();
    const row = rows.get(shown.lane);
    put(box, wallOf(shown.from), wallOf(shown.to));
    box.textContent = `${wallOf(shown.from).slice(11, 16)} \u2013 ${wallOf(shown.to).slice(11, 16)}`;
    if (row) row.track.append(box);
  }

  // A month's cell leads to a lane of the day.
  function scrollToLane(lane) {
    const row = rows.get(lane);
    if (row) place.scrollTop = row.track.offsetTop - place.clientHeight / 3;
  }

  // To now; on another day than today, to its morning.
  function scrollToTime() {
    const isPresent = at.feed.date === now().slice(0, 10);
    const morning = unitOf(at.feed.date + "T07:00:00");
    const before = isPresent ? place.clientWidth / 6 : 0; // some of what has just been stays in sight
    place.scrollLeft = (isPresent ? unitOf(now()) : morning) * scale.width - before;
  }

  // The row of a booking, drawn and unfolded, so that it can have the focus.
  function bring(event) {
    const row = rows.get(event.lane);
    if (row.track.hidden) fold(row.host);
    drawRow(row);
    return row.track.querySelector(`[data-booking="${CSS.escape(event.id)}"]`);
  }

  setInterval(() => at.feed && !document.hidden && markNow(), 20000);
  window.addEventListener("beforeprint", () => rows.forEach(drawRow)); // paper has no frames
  const lanes = () => [...rows.keys()];
  const surface = { place, unitAt, unitOf, wallOf, laneAt, side, preview, now, units: () => units, minutes: () => scale.minutes };
  Object.assign(at, { draw, bring, lanes, surface });
})(window.slotserveCalendar);

// The calendar's timeline: lanes as rows, drawn by @event-calendar from the server's feed.
// Times come as the viewer's wall clock shows them; the library takes them as they are.
"use strict";

(function () {
  const PHONE = window.matchMedia("(max-width: 767.98px)");
  const STALE_MS = 300000; // then what is shown is read again: bands and the past move on
  const HOST = "host:"; // rows that only head a group
  const GATHER_MS = 60; // news that come together are read together
  const OVERSCAN = 4; // rows above and below those in sight that are drawn as well
  const DAY = 86400000; // milliseconds

  const root = document.getElementById("calendar");
  const place = document.getElementById("timeline");
  const asked = new URLSearchParams(location.search);
  const shown = { view: asked.get("view") || "day", date: asked.get("date") || "" };
  let calendar = null;
  let feed = null; // the newest answer
  let isDragging = false;
  let focused = ""; // id of the booking that Tab leads to
  let drawn = new Set(); // lanes whose bookings are drawn
  let reading = 0;
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
    show();
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
    if (number !== reading || isDragging) return; // a newer one is on its way, or comes after the drag
    const isNew = !feed || feed.view !== said.view || feed.first !== said.first;
    feed = said;
    draw(isNew);
  }

  function draw(isNew) {
    frame();
    const options = {
      view: feed.view,
      date: feed.date,
      timeZone: feed.offset,
      resources: resources(),
    };
    if (!calendar) mount(options);
    else for (const [name, value] of Object.entries(options)) {
      if (isNew || name !== "date") calendar.setOption(name, value);
    }
    place.style.setProperty("--past", `${100 * past()}%`);
    if (isNew) scrollToLane(decodeURIComponent(location.hash.slice(1)));
    fill();
    if (isNew) requestAnimationFrame(scrollToTime);
  }

  function frame() {
    document.getElementById("calendar-title").textContent = feed.title;
    document.getElementById("calendar-notes").replaceChildren(...feed.notes.map(function (words) {
      const note = document.createElement("div");
      note.className = "alert alert-warning calendar-note";
      note.setAttribute("role", "note");
      note.textContent = words;
      return note;
    }));
    for (const link of root.querySelectorAll("[data-view]")) {
      const isCurrent = link.dataset.view === feed.view;
      link.classList.toggle("active", isCurrent);
      if (isCurrent) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const name of ["view", "date"]) root.querySelector(`[name=${name}]`).value = feed[name];
  }

  function resources() {
    const hosts = Map.groupBy ? [...Map.groupBy(feed.lanes, (lane) => lane.host)] : [];
    const row = (lane) => ({ id: lane.id, title: lane.name });
    if (hosts.length < 2) return feed.lanes.map(row);
    return hosts.map(([host, lanes]) => ({
      id: HOST + host, title: host, children: lanes.map(row),
    }));
  }

  // How much of the span is past, 0 to 1.
  function past() {
    const first = Date.parse(feed.first + "T00:00Z");
    const length = Date.parse(feed.last + "T00:00Z") + DAY - first;
    const gone = Date.parse(feed.now + "Z") - first;
    return Math.min(Math.max(gone / length, 0), 1);
  }

  // --- Drawing ------------------------------------------------------------------------------------
  function mount(options) {
    const timeline = { type: "resourceTimelineDay", slotLabelInterval: "01:00" };
    calendar = window.EventCalendar.create(place, {
      ...options,
      views: {
        hours: { ...timeline, slotDuration: "00:05", slotWidth: 24, snapDuration: "00:05", slotLabelInterval: "00:15" },
        day: { ...timeline, slotDuration: "00:15", slotWidth: 22, snapDuration: "00:15" },
        week: { type: "resourceTimelineWeek", slotDuration: "02:00", slotWidth: 30, snapDuration: "00:30", slotLabelInterval: "04:00" },
      },
      locale: document.documentElement.lang,
      firstDay: 1,
      headerToolbar: { start: "", center: "", end: "" },
      dayHeaderFormat: { weekday: "short", day: "numeric", month: "short" },
      slotLabelFormat: { hour: "2-digit", minute: "2-digit", hour12: false },
      nowIndicator: true,
      lazyFetching: false,
      scrollTime: "00:00",
      editable: false,
      selectable: true,
      eventResizableFromStart: true,
      eventContent: content,
      eventDidMount: name,
      eventClick: (info) => open(info.event),
      eventAllUpdated: mend,
      selectConstraint: (info) => isBookable(info.resource, info.startStr),
      select: (info) => book(info.resource.id, info.startStr, info.endStr),
      dateClick: clicked,
      dragConstraint: (info) => !info.event.resourceIds[0].startsWith(HOST),
      eventDragStart: () => { isDragging = true; },
      eventResizeStart: () => { isDragging = true; },
      eventDrop: (info) => moved(info, false),
      eventResize: (info) => moved(info, true),
      eventDragStop: () => { isDragging = false; },
      eventResizeStop: () => { isDragging = false; },
    });
    const main = place.querySelector(".ec-main");
    let waiting = 0;
    main.addEventListener("scroll", function () {
      clearTimeout(waiting);
      waiting = setTimeout(fill, 80);
    });
    place.addEventListener("keydown", pressed);
  }

  // Only what is in sight is given to the library: it needs a millisecond for each booking.
  function fill() {
    if (isDragging || !feed) return;
    const sight = rowsInSight(0);
    const isDrawn = place.dataset.filled === state() && [...sight].every((row) => drawn.has(row));
    if (isDrawn) return;
    const rows = rowsInSight(OVERSCAN);
    const events = feed.events.filter((event) => rows.has(event.lane)).map(booking);
    const bands = feed.bands.filter((band) => rows.has(band.lane)).map(band);
    drawn = rows;
    place.dataset.filled = state();
    const hadFocus = document.activeElement && document.activeElement.dataset.booking;
    calendar.setOption("events", [...bands, ...events]);
    if (hadFocus) requestAnimationFrame(() => focus(hadFocus));
  }

  function state() {
    return [feed.view, feed.first, feed.now].join(" ");
  }

  // Lanes whose rows can be seen, and so many rows above and below.
  function rowsInSight(more) {
    const view = place.querySelector(".ec-main").getBoundingClientRect();
    const boxes = [...place.querySelectorAll(".ec-body .ec-row-head")].map((head) => head.getBoundingClientRect());
    const isSeen = (box) => box.bottom > view.top && box.top < view.bottom;
    const first = Math.max(boxes.findIndex(isSeen), 0);
    const last = boxes.findLastIndex(isSeen);
    return new Set(rowIds().slice(Math.max(first - more, 0), last + 1 + more));
  }

  // Rows as they are drawn: hosts between their lanes, unless there is one host only.
  function rowIds() {
    return resources().flatMap((row) => [row.id, ...(row.children || []).map((lane) => lane.id)]);
  }

  function booking(event) {
    const isMovable = Boolean(event.seen);
    return {
      id: event.id,
      resourceId: event.lane,
      start: event.start,
      end: event.end,
      title: event.title,
      startEditable: isMovable && !event.begun,
      durationEditable: isMovable,
      classNames: event.kinds,
      extendedProps: event,
    };
  }

  function band(band) {
    return {
      resourceId: band.lane,
      start: band.start,
      end: band.end,
      display: "background",
      classNames: ["band", band.kind],
      extendedProps: band,
    };
  }

  function content(info) {
    if (info.event.display === "background") return "";
    const title = document.createElement("div");
    title.className = "ec-event-title";
    title.textContent = info.event.title || "";
    return { domNodes: [title] };
  }

  function name(info) {
    const said = info.event.extendedProps;
    if (info.event.display === "background") {
      info.el.title = said.words;
      info.el.setAttribute("role", "presentation");
    } else if (said.label) {
      info.el.setAttribute("aria-label", said.label);
      info.el.title = said.label;
      info.el.dataset.booking = said.id;
      info.el.tabIndex = said.id === focused ? 0 : -1;
    }
  }

  // The library's roles say that this is a table, whose rows it does not have.
  function mend() {
    const ec = place.querySelector(".ec");
    ec.setAttribute("role", "group");
    ec.setAttribute("aria-label", root.dataset.grid);
    for (const part of ec.querySelectorAll("[role=row], [role=rowgroup], [role=rowheader], [role=cell], [role=columnheader]")) {
      part.removeAttribute("role");
      part.removeAttribute("aria-colindex");
    }
    for (const side of ec.querySelectorAll("aside")) side.setAttribute("role", "presentation");
    const bookings = [...ec.querySelectorAll("[data-booking]")];
    const isThere = bookings.some((element) => element.dataset.booking === focused);
    if (!isThere && bookings.length) {
      const inOrder = new Set(bookings.map((element) => element.dataset.booking));
      const first = feed.events.find((event) => inOrder.has(event.id) && event.end > feed.now);
      focused = (first || { id: bookings[0].dataset.booking }).id;
      for (const element of bookings) element.tabIndex = element.dataset.booking === focused ? 0 : -1;
    }
    const main = place.querySelector(".ec-main");
    main.tabIndex = bookings.length ? -1 : 0;
  }

  // A month's cell leads to a lane of the day.
  function scrollToLane(lane) {
    const head = place.querySelectorAll(".ec-body .ec-row-head")[rowIds().indexOf(lane)];
    const main = place.querySelector(".ec-main");
    if (head) main.scrollTop += head.getBoundingClientRect().top - main.getBoundingClientRect().top - main.clientHeight / 3;
  }

  function scrollToTime() {
    const main = place.querySelector(".ec-main");
    const days = place.querySelectorAll(".ec-body .ec-day");
    if (!days.length) return;
    const width = main.scrollWidth - place.querySelector(".ec-sidebar").offsetWidth;
    const isPresent = past() > 0 && past() < 1;
    const morning = 7 / 24 / { week: 7 }[feed.view] || 7 / 24;
    const before = isPresent ? main.clientWidth / 6 : 0; // some of what has just been stays in sight
    main.scrollLeft = width * (isPresent ? past() : morning) - before;
  }

  // --- Keyboard -------------------------------------------------------------------------------------
  const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

  function pressed(event) {
    const here = event.target.dataset.booking;
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = feed.events.findIndex((one) => one.id === here);
    const next = following(index, event.key);
    if (!next) return;
    event.preventDefault();
    focus(next.id);
  }

  function following(index, key) {
    const events = feed.events;
    if (key in STEPS) return events[index + STEPS[key]];
    if (key === "Home") return events[0];
    if (key === "End") return events[events.length - 1];
    if (key !== "ArrowDown" && key !== "ArrowUp") return null;
    const lanes = rowIds();
    const row = lanes.indexOf(events[index].lane);
    const step = key === "ArrowDown" ? 1 : -1;
    for (let other = row + step; other >= 0 && other < lanes.length; other += step) {
      const there = events.filter((one) => one.lane === lanes[other]);
      if (there.length) return there.find((one) => one.start >= events[index].start) || there[there.length - 1];
    }
    return null;
  }

  function focus(id) {
    focused = id;
    const found = place.querySelector(`[data-booking="${CSS.escape(id)}"]`);
    if (!found) return bring(id);
    for (const other of place.querySelectorAll("[data-booking][tabindex='0']")) other.tabIndex = -1;
    found.tabIndex = 0;
    found.focus();
    found.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // A booking whose row is out of sight is drawn once its row is scrolled to.
  function bring(id) {
    const event = feed.events.find((one) => one.id === id);
    const row = event && rowIds().indexOf(event.lane);
    const heads = place.querySelectorAll(".ec-body .ec-row-head");
    if (!event || !heads[row]) return;
    heads[row].scrollIntoView({ block: "center" });
    fill();
    requestAnimationFrame(() => place.querySelector(`[data-booking="${CSS.escape(id)}"]`) && focus(id));
  }

  // --- What is done with it -------------------------------------------------------------------------
  async function open(event) {
    if (event.extendedProps.kinds.includes("block")) {
      go({ view: { week: "day", day: "hours" }[feed.view] || "hours", date: event.extendedProps.start.slice(0, 10) });
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
    const found = lane && feed.lanes.find((one) => one.id === lane.id);
    return Boolean(found && found.enabled && start >= feed.now.slice(0, 16));
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
    const name = (feed.lanes.find((one) => one.id === lane) || {}).name;
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
  function follow(event) {
    const link = event.target.closest("[data-view], [data-go]");
    if (!link || isListed() || event.ctrlKey || event.metaKey || event.shiftKey || !feed) return;
    event.preventDefault();
    if (link.dataset.view) go({ view: link.dataset.view });
    else go({ date: { today: "", previous: feed.previous, following: feed.following }[link.dataset.go] });
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
  begin();
})();

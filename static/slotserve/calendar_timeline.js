// The calendar's timeline: lanes as rows, drawn by @event-calendar from the server's feed.
// Times come as the viewer's wall clock shows them; the library takes them as they are.
// calendar.js reads and acts, calendar_keys.js moves the focus: all three share slotserveCalendar.
"use strict";

window.slotserveCalendar = { feed: null, isDragging: false, focused: "" };

(function (at) {
  const HOST = "host:"; // rows that only head a group
  const OVERSCAN = 4; // rows above and below those in sight that are drawn as well
  const DAY = 86400000; // milliseconds

  const root = document.getElementById("calendar");
  const place = document.getElementById("timeline");
  let calendar = null;
  let drawn = new Set(); // lanes whose bookings are drawn
  const folded = new Set(); // hosts whose lanes are not shown

  // --- Drawing ------------------------------------------------------------------------------------
  function draw(isNew) {
    const options = {
      view: at.feed.view,
      date: at.feed.date,
      timeZone: at.feed.offset,
      resources: resources(),
    };
    if (!calendar) mount(options);
    else for (const [name, value] of Object.entries(options)) {
      if (isNew || name !== "date") calendar.setOption(name, value);
    }
    place.style.setProperty("--past", `${100 * past()}%`);
    if (isNew) scrollToLane(location.hash.slice(1));
    fill();
    if (isNew) requestAnimationFrame(scrollToTime);
  }

  function resources() {
    const hosts = Map.groupBy ? [...Map.groupBy(at.feed.lanes, (lane) => lane.host)] : [];
    const row = (lane) => ({ id: lane.id, title: lane.name });
    if (hosts.length < 2) return at.feed.lanes.map(row);
    return hosts.map(([host, lanes]) => ({
      id: HOST + host, title: host, children: lanes.map(row), expanded: !folded.has(HOST + host),
    }));
  }

  // How much of the span is past, 0 to 1.
  function past() {
    const first = Date.parse(at.feed.first + "T00:00Z");
    const length = Date.parse(at.feed.last + "T00:00Z") + DAY - first;
    const gone = Date.parse(at.feed.now + "Z") - first;
    return Math.min(Math.max(gone / length, 0), 1);
  }

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
      buttonText: (texts) => ({ ...texts, expand: root.dataset.unfold, collapse: root.dataset.fold }),
      resourceExpand: (info) => fold(info.resource.id),
      lazyFetching: false,
      scrollTime: "00:00",
      editable: false,
      selectable: true,
      eventResizableFromStart: true,
      eventContent: content,
      eventDidMount: name,
      eventClick: (info) => at.open(info.event),
      eventAllUpdated: mend,
      selectConstraint: (info) => at.isBookable(info.resource, info.startStr),
      select: (info) => at.book(info.resource.id, info.startStr, info.endStr),
      dateClick: (info) => at.clicked(info),
      dragConstraint: (info) => !info.event.resourceIds[0].startsWith(HOST),
      eventDragStart: () => { at.isDragging = true; },
      eventResizeStart: () => { at.isDragging = true; },
      eventDrop: (info) => at.moved(info, false),
      eventResize: (info) => at.moved(info, true),
      eventDragStop: () => { at.isDragging = false; },
      eventResizeStop: () => { at.isDragging = false; },
    });
    const main = place.querySelector(".ec-main");
    let waiting = 0;
    main.addEventListener("scroll", function () {
      clearTimeout(waiting);
      waiting = setTimeout(fill, 80);
    });
  }

  // Only what is in sight is given to the library: it needs a millisecond for each booking.
  function fill() {
    if (at.isDragging || !at.feed) return;
    const sight = rowsInSight(0);
    const isDrawn = place.dataset.filled === state() && [...sight].every((row) => drawn.has(row));
    if (isDrawn) return;
    const rows = rowsInSight(OVERSCAN);
    const events = at.feed.events.filter((event) => rows.has(event.lane)).map(booking);
    const bands = at.feed.bands.filter((band) => rows.has(band.lane)).map(band);
    drawn = rows;
    place.dataset.filled = state();
    const hadFocus = document.activeElement && document.activeElement.dataset.booking;
    calendar.setOption("events", [...bands, ...events]);
    if (hadFocus) requestAnimationFrame(() => at.focus(hadFocus));
  }

  function fold(host) {
    if (!folded.delete(host)) folded.add(host);
    requestAnimationFrame(fill);
  }

  function state() {
    return [at.feed.view, at.feed.first, at.feed.now].join(" ");
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
    const lanes = (row) => (folded.has(row.id) ? [] : row.children || []).map((lane) => lane.id);
    return resources().flatMap((row) => [row.id, ...lanes(row)]);
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
      info.el.tabIndex = said.id === at.focused ? 0 : -1;
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
    const isThere = bookings.some((element) => element.dataset.booking === at.focused);
    if (!isThere && bookings.length) {
      const inOrder = new Set(bookings.map((element) => element.dataset.booking));
      const first = at.feed.events.find((event) => inOrder.has(event.id) && event.end > at.feed.now);
      at.focused = (first || { id: bookings[0].dataset.booking }).id;
      for (const element of bookings) element.tabIndex = element.dataset.booking === at.focused ? 0 : -1;
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
    const morning = 7 / 24 / { week: 7 }[at.feed.view] || 7 / 24;
    const before = isPresent ? main.clientWidth / 6 : 0; // some of what has just been stays in sight
    main.scrollLeft = width * (isPresent ? past() : morning) - before;
  }

  Object.assign(at, { draw, fill, rowIds });
})(window.slotserveCalendar);

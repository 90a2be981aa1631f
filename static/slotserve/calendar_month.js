// The month's table by keys: one day is reached by Tab, the others by arrows, Home, End and pages.
"use strict";

(function () {
  const PAGE = 10; // lanes
  let here = [0, null]; // lane and day that Tab leads to

  const table = () => document.querySelector("#calendar-month table");
  const rows = () => [...table().querySelectorAll("tbody tr:not(.month-host)")];
  const days = (row) => [...row.querySelectorAll("td a")];

  function today() {
    const heads = [...table().querySelectorAll("thead th")];
    return Math.max(heads.findIndex((head) => head.hasAttribute("aria-current")) - 1, 0);
  }

  // What has been read anew has no such mark yet.
  function mark() {
    if (!rows().length) return;
    if (here[1] === null) here[1] = today();
    rows().forEach(function (row, lane) {
      days(row).forEach((link, day) => { link.tabIndex = lane === here[0] && day === here[1] ? 0 : -1; });
    });
  }

  function go(lane, day) {
    const all = rows();
    const row = all[Math.min(Math.max(lane, 0), all.length - 1)];
    const links = days(row);
    const link = links[Math.min(Math.max(day, 0), links.length - 1)];
    const before = days(all[here[0]] || row)[here[1]];
    if (before) before.tabIndex = -1;
    here = [all.indexOf(row), links.indexOf(link)];
    link.tabIndex = 0;
    link.focus();
  }

  document.addEventListener("keydown", function (event) {
    const cell = event.target.closest("#calendar-month td");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const lane = rows().indexOf(cell.parentElement);
    const day = cell.cellIndex - 1;
    const steps = {
      ArrowRight: [lane, day + 1], ArrowLeft: [lane, day - 1],
      ArrowDown: [lane + 1, day], ArrowUp: [lane - 1, day],
      Home: [lane, 0], End: [lane, Infinity],
      PageDown: [lane + PAGE, day], PageUp: [lane - PAGE, day],
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    go(...steps[event.key]);
  });
  // Where not all days are in sight: from the day before today.
  function bringToday() {
    const place = document.getElementById("calendar-month");
    const head = table().querySelectorAll("thead th")[today()];
    if (today()) place.scrollLeft = head.offsetLeft - table().querySelector("thead th").offsetWidth;
  }

  document.addEventListener("htmx:afterSettle", mark);
  mark();
  bringToday();
})();

// The timeline's bookings by keys: Tab leads to one, arrows from one to the next, also out of sight.
"use strict";

(function (at) {
  const place = document.getElementById("timeline");

  const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

  function pressed(event) {
    const here = event.target.dataset.booking;
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = at.feed.events.findIndex((one) => one.id === here);
    const next = following(index, event.key);
    if (!next) return;
    event.preventDefault();
    focus(next.id);
  }

  function following(index, key) {
    const events = at.feed.events;
    if (key in STEPS) return events[index + STEPS[key]];
    if (key === "Home") return events[0];
    if (key === "End") return events[events.length - 1];
    if (key !== "ArrowDown" && key !== "ArrowUp") return null;
    const lanes = at.lanes();
    const row = lanes.indexOf(events[index].lane);
    const step = key === "ArrowDown" ? 1 : -1;
    for (let other = row + step; other >= 0 && other < lanes.length; other += step) {
      const there = events.filter((one) => one.lane === lanes[other]);
      if (there.length) return there.find((one) => one.start >= events[index].start) || there[there.length - 1];
    }
    return null;
  }

  // Also one whose row is out of sight or hidden.
  function focus(id) {
    const event = at.feed.events.find((one) => one.id === id);
    const found = event && at.bring(event);
    if (!found) return;
    at.focused = id;
    for (const other of place.querySelectorAll("[data-booking][tabindex='0']")) other.tabIndex = -1;
    found.tabIndex = 0;
    found.focus({ preventScroll: true });
    found.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  place.addEventListener("keydown", pressed);
  at.focus = focus;
})(window.slotserveCalendar);

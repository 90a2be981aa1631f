// Dragging in the calendar, alike in a timeline and in a month: across what is free to book, a
// booking to move it, its edges to make it longer or shorter. Escape lets go; a finger waits first.
"use strict";

window.slotserveCalendar = window.slotserveCalendar || { feed: null, isDragging: false, focused: "" };

(function (at) {
  const root = document.getElementById("calendar");
  const EDGE = 7; // pixels of a booking's ends that make it longer or shorter
  const NARROW = 24; // pixels: what is narrower has no ends to take hold of
  const SLIP = 4; // pixels: less is a click
  const HOLD_MS = 400; // a finger that moves sooner scrolls
  const BORDER = 40, STEP = 14; // pixels: so near the border it scrolls, so far in a frame

  // A surface has `place` (which scrolls), `unitAt(x)`, `laneAt(x, y)`, `unitOf(wall)`, `wallOf(unit)`,
  // `units()`, `now()`, `side()` (pixels of names beside it), and `preview({lane, from, to} or null)`.
  // `hooks.move(booking, {by, lane, edge})` is told what was dragged.
  function watch(surface, hooks) {
    let drag = null;

    function begin(event) {
      if (event.button !== 0 || drag) return;
      const grip = event.target.closest("[data-booking]");
      const lane = surface.laneAt(event.clientX, event.clientY);
      const what = grip ? hold(grip, event.clientX) : lane && create(lane, event.clientX);
      if (!what || lane === null) return;
      drag = { ...what, lane, pointer: event.pointerId, x: event.clientX, y: event.clientY, unit: surface.unitAt(event.clientX), isOn: false };
      if (event.pointerType === "touch") drag.timer = setTimeout(() => drag && start(), HOLD_MS);
    }

    function hold(grip, x) {
      const booking = at.feed && at.feed.events.find((one) => one.id === grip.dataset.booking);
      if (!booking || !booking.seen) return null;
      const box = grip.getBoundingClientRect(), isNarrow = box.width < NARROW;
      if (!isNarrow && x > box.right - EDGE) return { booking, edge: "end" };
      if (booking.begun) return null;
      return { booking, edge: !isNarrow && x < box.left + EDGE ? "start" : "" };
    }

    function create(lane, x) {
      return !at.whyNot(lane, Math.floor(surface.unitAt(x))) ? { booking: null, edge: "" } : null;
    }

    function start() {
      drag.isOn = at.isDragging = true;
      surface.place.setPointerCapture(drag.pointer);
      surface.place.classList.add("is-dragging");
      show();
      requestAnimationFrame(scroll);
    }

    function go(event) {
      if (!drag || event.pointerId !== drag.pointer) return;
      const isFar = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > SLIP;
      if (!drag.isOn && isFar && drag.timer) return end();
      Object.assign(drag, { nowX: event.clientX, nowY: event.clientY });
      if (!drag.isOn && isFar) start();
      if (drag.isOn) show();
    }

    function show() {
      drag.found = drag.booking ? changed() : stretched();
      surface.preview(drag.found);
    }

    function stretched() {
      const unit = surface.unitAt(drag.nowX ?? drag.x);
      const low = Math.max(Math.floor(Math.min(unit, drag.unit)), 0);
      const high = Math.min(Math.ceil(Math.max(unit, drag.unit)), surface.units());
      const from = !at.whyNot(drag.lane, low) ? low : Math.floor(drag.unit);
      return { lane: drag.lane, from, to: Math.max(high, from + 1) };
    }

    function changed() {
      const by = Math.round(surface.unitAt(drag.nowX ?? drag.x) - drag.unit);
      const start = surface.unitOf(drag.booking.start), end = surface.unitOf(drag.booking.end);
      const most = Math.ceil(end - start) - 1; // what is left has a length
      if (drag.edge === "end") return { lane: drag.lane, from: start, to: end + Math.max(by, -most), by: Math.max(by, -most) };
      if (drag.edge === "start") return { lane: drag.lane, from: start + Math.min(by, most), to: end, by: Math.min(by, most) };
      const lane = surface.laneAt(drag.nowX ?? drag.x, drag.nowY ?? drag.y) || (drag.found || drag).lane;
      return { lane, from: start + by, to: end + by, by };
    }

    function scroll() {
      if (!drag || !drag.isOn) return;
      const box = surface.place.getBoundingClientRect();
      const x = step(drag.nowX, box.left + surface.side(), box.right), y = step(drag.nowY, box.top, box.bottom);
      if (x || y) {
        surface.place.scrollBy({ left: x, top: drag.edge || !drag.booking ? 0 : y, behavior: "instant" });
        show();
      }
      requestAnimationFrame(scroll);
    }

    function step(here, low, high) {
      if (here === undefined) return 0;
      return here > high - BORDER ? STEP : here < low + BORDER / 2 && here > low - BORDER ? -STEP : 0;
    }

    function drop(event) {
      if (!drag || event.pointerId !== drag.pointer) return;
      const { isOn, booking, edge, found } = drag;
      end();
      if (!isOn) return;
      swallow();
      if (!booking) at.book(found.lane, found.from, found.to);
      else if (found.by || found.lane !== booking.lane) hooks.move(booking, { by: found.by, lane: found.lane, edge });
    }

    function end() {
      if (!drag) return;
      clearTimeout(drag.timer);
      surface.preview(null);
      surface.place.classList.remove("is-dragging");
      drag = null;
      at.isDragging = false;
    }

    surface.place.addEventListener("pointerdown", begin);
    document.addEventListener("pointermove", go);
    document.addEventListener("pointerup", drop);
    document.addEventListener("pointercancel", end);
    surface.place.addEventListener("dragstart", (event) => event.preventDefault());
    surface.place.addEventListener("contextmenu", (event) => drag && drag.isOn && event.preventDefault());
    surface.place.addEventListener("touchmove", (event) => drag && drag.isOn && event.preventDefault(), { passive: false });
    document.addEventListener("keydown", function (event) {
      if (event.key !== "Escape" || !drag || !drag.isOn) return;
      end();
      document.addEventListener("pointerup", swallow, { once: true });
    });
  }

  // The click that ends a drag is none.
  function swallow() {
    const stop = (event) => { event.stopPropagation(); event.preventDefault(); };
    document.addEventListener("click", stop, { capture: true, once: true });
    setTimeout(() => document.removeEventListener("click", stop, { capture: true }), 0);
  }

  // --- What a drag does -----------------------------------------------------------------------------
  // Why a lane's unit cannot be booked; empty: it can, of the present one what is left.
  function whyNot(lane, unit) {
    const found = at.feed && at.feed.lanes.find((one) => one.id === lane);
    if (!found || !found.enabled) return root.dataset.disabled;
    return at.surface.wallOf(unit + 1) > at.surface.now() ? "" : root.dataset.over;
  }

  // Opens the form for these units of a lane, or says why not.
  function book(lane, from, to) {
    const no = whyNot(lane, Math.floor(from));
    if (no) return window.slotserveMoves.say(no, [], true);
    const start = at.surface.wallOf(from).slice(0, 16), end = at.surface.wallOf(to).slice(0, 16);
    const times = start < at.surface.now() ? { begins: "now" } : { begins: "later", start };
    return window.openBooking(root.dataset.book + "?" + new URLSearchParams({ lane, ...times, end }));
  }

  // A booking goes by so many units; `edge`: "start", "end", or all of it. Answers whether it did.
  function move(booking, { by, lane, edge }) {
    const wish = { booking: booking.id, seen: booking.seen, lane };
    const shifted = (wall) => at.surface.wallOf(at.surface.unitOf(wall) + by);
    if (by && edge !== "end") wish.start = shifted(booking.start);
    if (edge === "start") wish.end = booking.seen.end;
    if (edge === "end") wish.end = shifted(booking.end);
    const name = (at.feed.lanes.find((one) => one.id === lane) || {}).name;
    return window.slotserveMoves.dragged(wish, name);
  }

  Object.assign(at, { drag: watch, whyNot, book, move });
})(window.slotserveCalendar);

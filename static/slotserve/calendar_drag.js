// Dragging in the calendar, alike in a timeline and in a month: across what is free to book, a
// booking to move it, its edges to make it longer or shorter. Escape lets go; a finger waits first.
"use strict";

(function (at) {
  const EDGE = 7; // pixels of a booking's ends that make it longer or shorter
  const NARROW = 24; // pixels: what is narrower has no ends to take hold of
  const SLIP = 4; // pixels: less is a click
  const HOLD_MS = 400; // a finger that moves sooner scrolls
  const BORDER = 40, STEP = 14; // pixels: so near the border it scrolls, so far in a frame

  // A surface has `place` (which scrolls), `unitAt(x)`, `laneAt(x, y)`, `unitOf(wall)`, `wallOf(unit)`,
  // `units()`, `side()` (pixels of names beside it), and `preview({lane, from, to} or null)`. Hooks: `booking(element)` is what is dragged,
  // `mayBook(lane, unit)`, `book(lane, from, to)`, `move(booking, {by, lane, edge})`.
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
      const booking = hooks.booking(grip);
      if (!booking || !booking.seen) return null;
      const box = grip.getBoundingClientRect(), isNarrow = box.width < NARROW;
      if (!isNarrow && x > box.right - EDGE) return { booking, edge: "end" };
      if (booking.begun) return null;
      return { booking, edge: !isNarrow && x < box.left + EDGE ? "start" : "" };
    }

    function create(lane, x) {
      return hooks.mayBook(lane, Math.floor(surface.unitAt(x))) ? { booking: null, edge: "" } : null;
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
      const from = hooks.mayBook(drag.lane, low) ? low : Math.floor(drag.unit);
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
      if (!booking) hooks.book(found.lane, found.from, found.to);
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

  at.drag = watch;
})(window.slotserveCalendar);

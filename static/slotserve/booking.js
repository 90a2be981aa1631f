// Counts down to a booking's start and end by the server's clock, and asks for its state anew when
// that moment has come.
"use strict";

(function () {
  const LATE_MS = 1500; // after the moment, when the server has seen it, too
  const language = document.documentElement.lang || "en";
  const days = new Intl.NumberFormat(language, { style: "unit", unit: "day", unitDisplay: "long" });
  const units = [ // as spans are written elsewhere: h, min and s are symbols in every language
    { seconds: 86400, words: (count) => days.format(count) },
    { seconds: 3600, words: (count) => count + " h" },
    { seconds: 60, words: (count) => count + " min" },
    { seconds: 1, words: (count) => count + " s" },
  ];
  let said = "", ahead = 0; // what the server's clock was told as, and how far it is ahead of ours
  let asked = ""; // the moment for which the state was asked for anew

  function left(seconds) {
    const first = Math.max(0, units.findIndex((unit) => seconds >= unit.seconds));
    const at = seconds >= 1 ? first : units.length - 1;
    const whole = Math.floor(seconds / units[at].seconds);
    const parts = [units[at].words(whole)];
    const next = units[at + 1];
    const rest = next ? Math.floor((seconds - whole * units[at].seconds) / next.seconds) : 0;
    if (rest) parts.push(next.words(rest));
    return parts.join(" ");
  }

  function show() {
    const place = document.getElementById("countdown");
    if (!place) return;
    if (place.dataset.now !== said) {
      said = place.dataset.now;
      ahead = Date.parse(said) - Date.now();
    }
    const now = Date.now() + ahead;
    const isBefore = now < Date.parse(place.dataset.start);
    const moment = isBefore ? place.dataset.start : place.dataset.end;
    const seconds = Math.max(0, Math.ceil((Date.parse(moment) - now) / 1000));
    const words = (isBefore ? place.dataset.before : place.dataset.within).replace("{left}", left(seconds));
    if (place.textContent !== words) place.textContent = words;
    askAfter(place, now);
  }

  // Which moment was passed last: its news are asked for once.
  function askAfter(place, now) {
    const passed = [place.dataset.end, place.dataset.start].find((each) => now - Date.parse(each) > LATE_MS);
    if (!passed || passed === asked || Date.parse(said) > Date.parse(passed)) return;
    asked = passed;
    window.htmx.trigger(document.getElementById("live"), "now");
  }

  document.addEventListener("DOMContentLoaded", function () {
    show();
    setInterval(() => document.hidden || show(), 1000);
    document.addEventListener("visibilitychange", () => document.hidden || show());
    document.addEventListener("htmx:afterSwap", show);
  });
})();

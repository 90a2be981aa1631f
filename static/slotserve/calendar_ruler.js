// The line of hours, and in a week of days, above the timeline's rows.
"use strict";

window.slotserveCalendar = { feed: null, isDragging: false, focused: "" };

(function (at) {
  const MINUTE = 60000, DAY = 86400000; // milliseconds

  function made(name, words) {
    const element = document.createElement("div");
    element.className = name;
    if (words !== undefined) element.textContent = words;
    return element;
  }

  // As the server writes days: "30 Nov".
  const language = () => document.documentElement.lang.replace(/^en$/, "en-GB");
  const format = (parts) => new Intl.DateTimeFormat(language(), { ...parts, timeZone: "UTC" });

  // Of a span: its first moment, how many units it has, of which scale.
  function ruler({ first, units, scale, isWeek }) {
    const line = made("tl-head"), hours = made("tl-hours");
    line.setAttribute("aria-hidden", "true"); // each booking says its times
    const clock = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    for (let unit = 0; unit < units; unit += scale.label) {
      const hour = made("tl-hour", clock.format(first + unit * scale.minutes * MINUTE));
      hour.style.left = `${unit * scale.width}px`;
      hours.append(hour);
    }
    line.append(made("tl-corner"), hours);
    if (isWeek) hours.append(...days(first, scale));
    return line;
  }

  function days(first, scale) {
    const day = format({ weekday: "short", day: "numeric", month: "short" });
    return Array.from({ length: 7 }, function (_, number) {
      const box = made("tl-day"), words = document.createElement("span");
      words.textContent = day.format(first + number * DAY);
      box.style.left = `${((number * DAY) / MINUTE / scale.minutes) * scale.width}px`;
      box.append(words);
      return box;
    });
  }

  Object.assign(at, { made, ruler });
})(window.slotserveCalendar);

// The log page: stays at the end while its reader is there, keeps what it shows within bounds, and
// follows only while that is wished.
"use strict";

document.addEventListener("DOMContentLoaded", function () {
  const MOST_CHARACTERS = 1000000;
  const NEAR_PIXELS = 40; // from the end: still at it
  const log = document.getElementById("log");
  const follow = document.getElementById("log-follow");
  const more = document.getElementById("log-more");
  if (!log || !follow || !more) return;
  let isAtEnd = true;

  function toEnd() {
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  function trim() {
    let size = log.textContent.length;
    while (size > MOST_CHARACTERS && log.childElementCount > 1) {
      size -= log.firstElementChild.textContent.length;
      log.firstElementChild.remove();
    }
  }

  log.addEventListener("scroll", function () {
    isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR_PIXELS;
  });
  document.addEventListener("htmx:oobAfterSwap", function (event) {
    if (event.detail.target !== log) return;
    trim();
    toEnd();
  });
  follow.addEventListener("click", function () {
    const isOn = follow.getAttribute("aria-pressed") !== "true";
    follow.setAttribute("aria-pressed", String(isOn));
    isAtEnd = isOn || isAtEnd;
    toEnd();
    if (isOn) window.htmx.trigger(more, "now");
  });
  document.addEventListener("htmx:beforeRequest", function (event) {
    const isPaused = follow.getAttribute("aria-pressed") !== "true";
    if (event.detail.elt === more && isPaused) event.preventDefault();
  });
  follow.hidden = false;
  toEnd();
});

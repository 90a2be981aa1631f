// The viewer's zone and colour scheme, and a confirmation before what cannot be undone.
"use strict";

(function () {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const known = (document.cookie.match(/(?:^|; )zone=([^;]*)/) || [])[1] || "";
  if (zone && decodeURIComponent(known) !== zone) {
    document.cookie = "zone=" + encodeURIComponent(zone) + ";path=/;max-age=31536000;samesite=lax";
    const isPlain = document.documentElement.dataset.method === "GET";
    if (isPlain && navigator.cookieEnabled && document.cookie.includes("zone=")) {
      window.location.reload();
    }
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const chosen = window.localStorage.getItem("theme");
    const theme = chosen || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.bsTheme = theme;
  }
  paint();
  dark.addEventListener("change", paint);

  document.addEventListener("DOMContentLoaded", function () {
    const toggle = document.getElementById("theme");
    if (toggle) {
      toggle.addEventListener("click", function () {
        const isDark = document.documentElement.dataset.bsTheme === "dark";
        window.localStorage.setItem("theme", isDark ? "light" : "dark");
        paint();
      });
    }
    showStart();
    document.addEventListener("change", showStart);
  });

  // The start picker matters only when the slot starts later.
  function showStart() {
    const later = document.querySelector('input[name="begins"][value="later"]');
    const field = document.getElementById("field-start");
    if (later && field) {
      field.hidden = !later.checked;
    }
  }

  document.addEventListener("submit", function (event) {
    const words = event.target.dataset.confirm;
    if (words && !window.confirm(words)) {
      event.preventDefault();
    }
  });
})();

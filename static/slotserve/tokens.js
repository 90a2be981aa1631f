// The time that a token expires at is asked when one's own is chosen; without this script, always.
"use strict";

(function () {
  document.addEventListener("DOMContentLoaded", function () {
    const lifetime = document.getElementById("id_lifetime");
    const time = document.getElementById("field-expires_at");

    function show() {
      time.hidden = lifetime.value !== "time";
    }

    lifetime.addEventListener("change", show);
    window.addEventListener("pageshow", show); // a browser that comes back keeps what was chosen
    show();
  });
})();

// The page of approvals: a box that ticks all. What is ticked is sent with each refresh.
"use strict";

(function () {
  const boxes = () => [...document.querySelectorAll("#waiting input[name=booking]")];

  function show() {
    const all = document.getElementById("all");
    if (!all) return;
    all.closest("[data-all]").hidden = false;
    const ticked = boxes().filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && ticked < boxes().length;
  }

  document.addEventListener("change", function (event) {
    if (event.target.id === "all") for (const box of boxes()) box.checked = event.target.checked;
    show();
  });
  document.addEventListener("htmx:afterSwap", show);
  document.addEventListener("DOMContentLoaded", show);
})();

// The page of approvals: a box that ticks all. Ticks and the comment outlive a refresh.
"use strict";

(function () {
  const boxes = () => [...document.querySelectorAll("#waiting input[name=booking]")];
  let comment = "";

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
  document.addEventListener("htmx:beforeSwap", function () {
    const field = document.getElementById("comment");
    comment = field ? field.value : "";
  });
  document.addEventListener("htmx:afterSwap", function () {
    const field = document.getElementById("comment");
    if (field && field.value !== comment) field.value = comment;
    show();
  });
  document.addEventListener("DOMContentLoaded", show);
})();

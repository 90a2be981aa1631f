// The page of approvals: a box that ticks all. What is ticked is sent with each refresh; the comment,
// which would be emptied by it, stays.
"use strict";

(function () {
  const boxes = () => [...document.querySelectorAll("#waiting input[name=booking]")];

  let comment = "";

  function keep(event) {
    if (event.target.id === "comment") comment = event.target.value;
  }

  function putBack() {
    const field = document.getElementById("comment");
    if (field && field.value !== comment) field.value = comment;
  }

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
  document.addEventListener("input", keep);
  document.addEventListener("htmx:afterSwap", function () {
    putBack();
    show();
  });
  document.addEventListener("DOMContentLoaded", function () {
    const field = document.getElementById("comment");
    if (field) comment = field.value; // as it was typed, where a decision was refused
    show();
  });
})();

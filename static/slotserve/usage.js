// Charts of usage, drawn from the tables beside them, in the colours of the page's theme.
"use strict";

document.addEventListener("DOMContentLoaded", function () {
  const DAY = 86400;
  const language = document.documentElement.lang || "en";
  const colours = { used: "--tblr-green", loading: "--tblr-yellow", idle: "--tblr-orange", gpu: "--tblr-azure",
    answer: "--tblr-azure", prompt: "--tblr-purple" };
  const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", timeZone: "UTC" });
  const count = new Intl.NumberFormat(language, { notation: "compact" });

  // As a canvas takes it: what the theme names may be a mixture of other names.
  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  // Days and, for each column, its numbers; days that the table leaves out are nothing.
  function read(table, columns) {
    const rows = new Map();
    for (const row of table.querySelectorAll("tr[data-day]")) {
      const numbers = columns.map((name) => Number(row.querySelector(`[data-${name}]`).dataset[name]));
      rows.set(Date.parse(row.dataset.day + "T00:00:00Z") / 1000, numbers);
    }
    const first = Math.min(...rows.keys());
    const last = Math.max(...rows.keys());
    const days = [];
    for (let at = first; at <= last; at += DAY) days.push(at);
    return { days, columns: columns.map((_, place) => days.map((at) => (rows.get(at) || [])[place] || 0)) };
  }

  // Each drawn as high as it and those below it, the highest first, so that they stand on each other.
  function stacked(columns) {
    const sums = [];
    columns.forEach((column, place) => sums.push(column.map((value, at) => value + (place ? sums[place - 1][at] : 0))));
    return sums.reverse();
  }

  function draw(place) {
    const names = place.dataset.columns.split(" ");
    const found = read(document.getElementById(place.dataset.chart), names);
    if (!found.days.length) return;
    const axis = { stroke: colour("--tblr-secondary"), grid: { stroke: colour("--tblr-border-color"), width: 1 },
      ticks: { show: false }, border: { show: false }, font: "12px sans-serif" };
    const bars = window.uPlot.paths.bars({ size: [0.8, 40] });
    const series = [...names].reverse().map((name) => ({ fill: colour(colours[name]), width: 0, paths: bars, points: { show: false } }));
    place.replaceChildren();
    new window.uPlot({
      width: place.clientWidth,
      height: place.clientHeight,
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { range: () => [found.days[0] - DAY / 2, found.days.at(-1) + DAY / 2] }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
      axes: [
        { ...axis, grid: { show: false }, space: 60, incrs: [1, 2, 7, 14, 28, 56, 112].map((days) => days * DAY),
          values: (_, splits) => splits.map((at) => (at % DAY ? "" : day.format(at * 1000))) },
        { ...axis, size: 48, values: (_, splits) => splits.map((value) => count.format(value)) },
      ],
      series: [{}, ...series],
      tzDate: (at) => window.uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    }, [found.days, ...stacked(found.columns)], place);
  }

  function drawAll() {
    for (const place of document.querySelectorAll("[data-chart]")) draw(place);
  }

  drawAll();
  new MutationObserver(drawAll).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
  let width = window.innerWidth;
  window.addEventListener("resize", function () {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    drawAll();
  });
});

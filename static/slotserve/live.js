// Keeps a page true: one stream of server-sent events says what has changed, and the parts that
// show it are asked for anew. A part names its topics in data-live and carries their digests in
// data-live-digest; one that shows another digest than the stream tells is stale. So a message that
// is lost, doubled or late changes nothing, and waking up is the same as any other news.
//
// For other scripts: document events `live:<kind>` (detail: topic), such as `live:bookings`, and
// `live:figures`; [data-figure="lane.name"] elements are filled in here.
"use strict";

(function () {
  const AGAIN_MS = [500, 60000]; // between two tries to connect: at first, at most
  const LOST_MS = 5000; // without a stream: say so
  const OUT_MS = 10000; // after the session has ended
  const STAYED_MS = 10000; // after a form was sent, when the page is still there
  const SILENT_MS = 40000; // the stream speaks each 15 s at least
  const HIDDEN_MS = 10000; // hidden pages keep no stream: browsers have six connections to a host
  const GATHER_MS = 60; // changes that come together are asked for together
  const STALE_MS = 1500; // before a part is asked for again that has stayed behind
  const WHOLE = 4; // so many stale parts of one whole: the whole is asked for

  const root = document.documentElement;
  const told = new Map(); // topic: digest
  const figures = new Map(); // lane: its figures
  const asked = new WeakMap(); // part: the digests that were last asked for, and when
  let stream = null, tries = 0, timers = {}, isWhole = false, heardAt = 0;

  // What a reader has opened stays open when its part is asked for anew.
  window.Idiomorph.defaults.callbacks.beforeAttributeUpdated = function (name, element) {
    return name !== "open" || element.localName !== "details";
  };

  // --- The stream ------------------------------------------------------------------------------
  function connect() {
    clearTimeout(timers.again);
    if (stream || document.hidden) return;
    heardAt = Date.now();
    isWhole = false; // the first state is everything
    stream = new EventSource(document.body.dataset.events);
    stream.addEventListener("open", heard);
    stream.addEventListener("beat", heard);
    stream.addEventListener("state", (event) => { heard(); takeState(JSON.parse(event.data)); });
    stream.addEventListener("you", (event) => { heard(); showUnread(JSON.parse(event.data).unread); });
    stream.addEventListener("end", (event) => {
      const isOut = JSON.parse(event.data).why === "session";
      if (isOut) refreshAll(); // which leads to the log-in page
      lost(isOut ? OUT_MS : 0);
    });
    stream.addEventListener("error", function () {
      // An answer that is no stream: whoever is logged out is led to log in by the next fragment.
      if (stream && stream.readyState === EventSource.CLOSED) refreshAll();
      lost();
    });
  }

  function heard() {
    heardAt = Date.now();
    tries = 0;
    clearTimeout(timers.lost);
    timers.lost = null;
    say(false);
  }

  function close() {
    if (stream) stream.close();
    stream = null;
  }

  // Our own pauses, not EventSource's: it gives up for good on an answer that is no stream.
  function lost(least) {
    close();
    if (!timers.lost) timers.lost = setTimeout(say, LOST_MS, true);
    const pause = Math.max(least || 0, Math.min(AGAIN_MS[1], AGAIN_MS[0] * 2 ** tries++));
    clearTimeout(timers.again);
    timers.again = setTimeout(retry, pause * (0.5 + Math.random()));
  }

  function retry() {
    if (tries > 2) refreshAll(); // without a stream the page is still kept true, slowly
    connect();
  }

  function say(isLost) {
    document.body.toggleAttribute("data-stream-lost", isLost);
    const note = document.getElementById("connection");
    const words = isLost ? note.dataset.words : "";
    if (note && note.textContent !== words) note.textContent = words;
  }

  // --- What it tells ---------------------------------------------------------------------------
  function takeState(news) {
    if (!isWhole) forgetAbsent(news.topics);
    const changed = Object.keys(news.topics).filter((topic) => told.get(topic) !== news.topics[topic]);
    for (const topic of changed) {
      if (news.topics[topic] === null) told.delete(topic);
      else told.set(topic, news.topics[topic]);
    }
    for (const [lane, values] of Object.entries(news.figures)) figures.set(lane, values);
    showFigures();
    settle();
    if (isWhole) for (const topic of changed) tell(topic);
    isWhole = true;
  }

  function forgetAbsent(topics) {
    for (const topic of told.keys()) if (!(topic in topics)) told.delete(topic);
  }

  function tell(topic) {
    const name = "live:" + topic.split(":")[0];
    document.dispatchEvent(new CustomEvent(name, { detail: topic }));
  }

  // --- Parts -----------------------------------------------------------------------------------
  function wanted(part) {
    return part.dataset.live.split(" ").map((topic) => told.get(topic) || "").join(" ");
  }

  function isStale(part) {
    const now = wanted(part);
    const last = asked.get(part);
    const shown = part.dataset.liveDigest || (last && last.digests); // or what was asked for last
    if (!now.trim() || now === shown) return false;
    return !last || last.digests !== now || Date.now() - last.at > STALE_MS;
  }

  function settle() {
    clearTimeout(timers.settle);
    timers.settle = setTimeout(refreshStale, GATHER_MS);
  }

  function refreshStale() {
    if (document.hidden || !window.htmx) return;
    const stale = [...document.querySelectorAll("[data-live]")].filter(isStale);
    const wholes = new Set(stale.filter((part) => isTooMuch(part, stale)).map(wholeOf));
    for (const part of stale) {
      asked.set(part, { digests: wanted(part), at: Date.now() });
      if (!wholes.has(wholeOf(part)) || wholeOf(part) === part) refresh(part);
    }
    for (const whole of wholes) if (!stale.includes(whole)) refresh(whole);
    if (stale.length) timers.settle = setTimeout(refreshStale, STALE_MS + 100); // until all are true
  }

  function wholeOf(part) {
    return part.closest("[data-live-whole]");
  }

  function isTooMuch(part, stale) {
    const whole = wholeOf(part);
    return whole && (stale.includes(whole) || stale.filter((one) => wholeOf(one) === whole).length >= WHOLE);
  }

  function refresh(part) {
    window.htmx.trigger(part, "now");
  }

  function refreshAll() {
    if (document.hidden || !window.htmx) return;
    const parts = [...document.querySelectorAll("[data-live]")];
    parts.filter((part) => !part.parentElement.closest("[data-live]")).forEach(refresh);
  }

  // --- Figures, meters and loads ---------------------------------------------------------------
  const number = new Intl.NumberFormat(root.lang, { maximumFractionDigits: 1 });

  function showFigures() {
    for (const place of document.querySelectorAll("[data-figure]")) showFigure(place);
    document.dispatchEvent(new CustomEvent("live:figures", { detail: figures }));
  }

  function showFigure(place) {
    const dot = place.dataset.figure.lastIndexOf("."); // slugs may have dots
    const values = figures.get(place.dataset.figure.slice(0, dot));
    if (!values) return;
    const value = values[place.dataset.figure.slice(dot + 1)];
    if (place.tagName === "METER") {
      if (value !== null && place.value !== value) place.value = value;
      return;
    }
    const words = value === null ? "–" : number.format(place.dataset.unit === "gib" ? value / 1024 : value);
    if (place.textContent !== words) place.textContent = words;
  }

  // A load goes on by itself between two fragments: by how long it had run when this one came.
  const begun = new WeakMap();

  function showLoads() {
    for (const bar of document.querySelectorAll("progress[data-load-seconds]")) showLoad(bar);
  }

  function showLoad(bar) {
    const { loadAge, loadSeconds } = bar.dataset;
    let start = begun.get(bar);
    if (!start || start.age !== loadAge) begun.set(bar, (start = { age: loadAge, at: performance.now() }));
    const age = Number(loadAge) + (performance.now() - start.at) / 1000;
    const share = Math.min(0.99, age / Math.max(0.001, Number(loadSeconds)));
    bar.value = Math.max(share * 100, 0);
    const words = document.getElementById(bar.getAttribute("aria-describedby"));
    if (!words) return;
    const left = Math.max(1, Math.round(Number(loadSeconds) - age));
    const text = share < 0.99 ? words.dataset.left : words.dataset.over;
    const said = text.replace("{percent}", Math.round(share * 100)).replace("{seconds}", left);
    if (words.textContent !== said) words.textContent = said;
    const minute = words.parentElement.querySelector("[data-load-eta]"); // when it is late, nobody knows
    if (minute) minute.hidden = share >= 0.99;
  }

  function showUnread(count) {
    const bell = document.getElementById("unread");
    if (!bell) return;
    const link = bell.closest("a");
    bell.hidden = !count;
    bell.textContent = count > 99 ? "99+" : String(count);
    const words = count === 1 ? link.dataset.one : link.dataset.many;
    link.setAttribute("aria-label", count ? words.replace("{count}", count) : link.dataset.none);
  }

  // --- The page's life -------------------------------------------------------------------------
  function wake() {
    clearTimeout(timers.hidden);
    if (document.hidden) {
      timers.hidden = setTimeout(close, HIDDEN_MS);
      return;
    }
    if (isSilent()) close(); // the machine has slept
    tries = 0;
    connect();
    settle();
  }

  // It may have ended the session, as logging out does, and the page is about to be left.
  function formSent(event) {
    if (event.defaultPrevented) return;
    close();
    clearTimeout(timers.again);
    timers.again = setTimeout(connect, STAYED_MS);
  }

  // A connection that broke without a word, as when a phone changes its network, stays "open".
  function isSilent() {
    return stream && Date.now() - heardAt > SILENT_MS;
  }

  let day = new Date().toDateString();

  function eachSecond() {
    if (document.hidden) return;
    showLoads();
    if (isSilent() || (stream && stream.readyState === EventSource.CLOSED)) lost();
    const today = new Date().toDateString();
    if (day !== today) refreshAll(); // times are written with the day when it is not today
    day = today;
  }

  document.addEventListener("DOMContentLoaded", function () {
    if (!document.body.dataset.events || !window.EventSource) return;
    connect();
    setInterval(eachSecond, 1000);
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("pageshow", (event) => event.persisted && wake());
    window.addEventListener("pagehide", close);
    window.addEventListener("submit", formSent); // after all who may keep it from being sent
    window.addEventListener("online", wake);
    window.addEventListener("offline", function () {
      say(true);
      lost();
    });
    document.addEventListener("htmx:afterSwap", function () {
      showFigures();
      showLoads();
    });
  });
})();

// What the playground's parts are made of: elements, Markdown made safe, numbers, what is announced.
"use strict";

(function () {
  const P = window.Playground;
  if (!document.getElementById("words")) return; // there is no lane to chat with
  const words = P.words();
  const language = document.documentElement.lang || "en";
  const byId = (id) => document.getElementById(id);
  const number = (value, digits) => new Intl.NumberFormat(language, { maximumFractionDigits: digits }).format(value);

  // Markdown, made safe: no image, no script, nothing from elsewhere.
  const TAGS = ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre",
    "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"];
  const SAFE = { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "start"], ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i, RETURN_DOM_FRAGMENT: true };
  // HTML in an answer is shown as it was written, an image as its words.
  const written = ({ text }) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  window.marked.use({ gfm: true, breaks: true, renderer: { html: written, image: written } });

  function markdown(text) {
    const safe = window.DOMPurify.sanitize(window.marked.parse(text), SAFE);
    for (const link of safe.querySelectorAll("a[href]")) {
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
    }
    for (const block of safe.querySelectorAll("pre")) block.tabIndex = 0;
    return safe;
  }

  function made(tag, classes, text) {
    const element = document.createElement(tag);
    if (classes) element.className = classes;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function announce(text) {
    byId("said").textContent = text;
  }

  function copyButton(source) {
    const button = made("button", "btn btn-sm btn-ghost-secondary copy", words.copy);
    button.type = "button";
    button.addEventListener("click", async function () {
      await navigator.clipboard.writeText(source());
      button.textContent = words.copied;
      setTimeout(() => { button.textContent = words.copy; }, 2000);
    });
    return button;
  }

  Object.assign(P, { announce, byId, copyButton, language, made, markdown, number });
})();

// What allauth's script for passkeys leaves to the page: saying that one did not work, and why none
// is offered. Its buttons ask the browser for a passkey, so they are of no use without.
"use strict";

(function () {
  const BUTTONS = "#passkey_login, #mfa_webauthn_add, #mfa_webauthn_authenticate, #mfa_webauthn_reauthenticate";

  function say(name) {
    const note = document.getElementById("passkey-trouble");
    note.textContent = note.dataset[name];
    note.hidden = false;
  }

  document.addEventListener("allauth.error", function (event) {
    event.preventDefault();
    say("failed");
  });

  document.addEventListener("DOMContentLoaded", function () {
    const buttons = document.querySelectorAll(BUTTONS);
    const isNamed = !/^[\d.]+$|^\[/.test(window.location.hostname); // no passkey is of a bare address
    if (!buttons.length || (window.PublicKeyCredential && isNamed)) return;
    for (const button of buttons) button.hidden = true;
    if (!document.getElementById("passkey_login")) say("missing");
  });
})();

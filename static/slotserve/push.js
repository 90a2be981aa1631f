"use strict";
// Turns notices in this browser on. The words are the page's.
(() => {
  const place = document.getElementById("push");
  if (!place) return;
  const button = place.querySelector("[data-push-on]");
  const status = place.querySelector("[role=status]");
  const say = (name) => { status.textContent = place.dataset[name] || ""; };

  const bytes = (text) => {
    const padded = text.replace(/-/g, "+").replace(/_/g, "/") + "=".repeat((4 - (text.length % 4)) % 4);
    return Uint8Array.from(atob(padded), (letter) => letter.charCodeAt(0));
  };

  if (!("serviceWorker" in navigator) || !("PushManager" in window)) {
    say("unable");
    return;
  }
  button.hidden = false;

  const browser = () => {
    const brands = (navigator.userAgentData && navigator.userAgentData.brands) || [];
    const known = brands.map((each) => each.brand).find((name) => !/not/i.test(name));
    const found = /(Firefox|Edg|Chrome|Safari)\//.exec(navigator.userAgent);
    const name = known || (found && found[1].replace("Edg", "Edge")) || "";
    const system = (navigator.userAgentData && navigator.userAgentData.platform) || navigator.platform || "";
    return `${name} ${system}`.trim();
  };

  const subscribe = async () => {
    const worker = await navigator.serviceWorker.register(place.dataset.worker);
    await navigator.serviceWorker.ready;
    const made = await worker.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: bytes(place.dataset.key),
    });
    const told = made.toJSON();
    const body = new FormData(place.querySelector("form[data-push-form]"));
    body.set("endpoint", told.endpoint);
    body.set("p256dh", told.keys.p256dh);
    body.set("auth", told.keys.auth);
    body.set("browser", browser());
    const answer = await fetch(place.dataset.address, { method: "POST", body });
    if (!answer.ok) throw new Error(String(answer.status));
  };

  button.addEventListener("click", async () => {
    button.disabled = true;
    say("");
    try {
      if ((await Notification.requestPermission()) !== "granted") {
        say("denied");
      } else {
        await subscribe();
        location.reload();
      }
    } catch {
      say("failed");
    } finally {
      button.disabled = false;
    }
  });
})();

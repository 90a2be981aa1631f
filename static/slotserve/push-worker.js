"use strict";
// Shows what is pushed, and opens the page it is about.
self.addEventListener("push", (event) => {
  let told = {};
  try {
    told = event.data.json();
  } catch {
    told = {};
  }
  const path = typeof told.path === "string" && /^\/(?!\/)/.test(told.path) ? told.path : "/notices/";
  event.waitUntil(self.registration.showNotification(told.title || "SlotServe", {
    body: told.body || "",
    tag: told.tag || undefined,
    data: { path },
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(event.notification.data.path));
});

// What is marked `data-live` is brought up to date from the page as the server renders it now, whenever the line says something.
"use strict";
(() => {
  const { events, self, every } = document.body.dataset;
  const REST_MS = 600;
  const NAMES = ["JobPage", "JobChanged", "JobProgress", "PromptRefused", "VideoFinished"];
  let timer = 0;
  let last = 0;

  function keepOpen(old, fresh) {
    const before = old.querySelectorAll("details");
    fresh.querySelectorAll("details").forEach((details, n) => { details.open = before[n]?.open ?? false; });
  }

  function swap(old, fresh) {
    keepOpen(old, fresh);
    if (fresh.isEqualNode(old)) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (focused?.matches("input, textarea, select")) return;
    const place = focused ? [...old.querySelectorAll("a, button, summary, [tabindex]")].indexOf(focused) : -1;
    old.replaceWith(fresh);
    if (focused) fresh.querySelectorAll("a, button, summary, [tabindex]")[place]?.focus();
  }

  async function refresh() {
    timer = 0;
    last = performance.now();
    const answer = await fetch(self).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [shown, now] = [document.getElementById("player"), page.getElementById("player")];
    if (now && !shown) return location.reload();
    if (now && now.dataset.kind !== shown.dataset.kind) offer();
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(old.id);
      if (fresh) swap(old, document.importNode(fresh, true));
      else old.classList.add("gone");
    }
    const main = document.getElementById("main");
    for (const fresh of page.querySelectorAll("section[data-live]")) {
      if (!document.getElementById(fresh.id)) main.append(document.importNode(fresh, true));
    }
    document.dispatchEvent(new Event("refreshed"));
  }

  function offer() {
    const place = document.getElementById("whole");
    if (!place || place.firstChild) return;
    const link = document.createElement("a");
    link.href = location.pathname;
    link.textContent = "The video is finished: show it.";
    place.append(link);
  }

  function soon() {
    if (!timer) timer = setTimeout(refresh, Math.max(0, last + REST_MS - performance.now()));
  }

  if (events) {
    const mark = document.getElementById("link");
    const say = (text, on) => { mark.textContent = text; mark.classList.toggle("on", on); };
    const source = new EventSource(events);
    source.onopen = () => { say("live", true); soon(); };
    source.onerror = () => say("connection lost, trying again", false);
    for (const name of NAMES) source.addEventListener(name, soon);
    addEventListener("pagehide", () => source.close());
  }
  if (every) setInterval(refresh, 1000 * Number(every));
})();

// The parts of the pages that need script: countdowns on the server's clock, live figures, shortcuts, the position of
// mistakes in JSON.
// The pages work without it.
"use strict";

(() => {
  // The server's clock: the last time it sent, and how long ago that was.
  let said = Number(document.body.dataset.now || 0);
  let heard = performance.now();
  const runs = document.body.dataset.stopped === undefined;
  const now = () => said + (runs ? performance.now() - heard : 0);
  const hear = (root) => {
    const telling = root.matches?.("[data-now]") ? root : root.querySelector("[data-now]");
    if (telling) {
      said = Number(telling.dataset.now);
      heard = performance.now();
    }
  };

  const units = [[31536000, "y"], [86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  const span = (seconds) => {
    const parts = [];
    for (const [length, unit] of units) {
      if (seconds >= length) {
        parts.push(`${Math.floor(seconds / length).toLocaleString("en")} ${unit}`);
        seconds %= length;
      } else if (parts.length) break;
      if (parts.length === 2) break;
    }
    return parts.join(" ") || "0 s";
  };

  const tick = () => {
    const time = now();
    for (const clock of document.querySelectorAll("#clock, .live-clock")) {
      if (said) clock.textContent = new Date(time).toISOString().slice(0, 19).replace("T", " ");
    }
    for (const countdown of document.querySelectorAll("[data-expiry]")) {
      const left = Number(countdown.dataset.expiry) - time;
      const row = countdown.closest("tr");
      if (left <= 0) {
        countdown.querySelector(".left").textContent = "expired";
        countdown.classList.add("over");
        if (row && !row.classList.contains("dying")) {
          row.classList.add("dying");
          setTimeout(() => row.remove(), 900);
        }
        continue;
      }
      countdown.querySelector(".left").textContent = span(Math.ceil(left / 1000));
      countdown.classList.toggle("soon", left < 60000);
      const bar = countdown.querySelector("progress");
      if (bar) bar.value = Math.min(left, bar.max);
    }
  };
  tick();
  setInterval(tick, 250);

  // Fragments that the server renders again. The element with the keyboard focus keeps it.
  const rates = new WeakMap();
  const rate = (box) => {
    const figure = box.querySelector("[data-rate]");
    const note = box.querySelector(".rate");
    if (!figure || !note) return;
    const [count, at] = [Number(figure.dataset.rate), performance.now()];
    const before = rates.get(box);
    rates.set(box, [count, at]);
    if (!before) return;
    const speed = ((count - before[0]) * 1000) / (at - before[1]);
    if (speed > 0) note.textContent = `${Math.round(speed).toLocaleString("en")} a second`;
  };
  const refresh = async (box) => {
    if (document.hidden || box.contains(document.activeElement)) return;
    try {
      const answer = await fetch(box.dataset.live, { headers: { "x-fragment": "1" } });
      if (answer.status === 401) return location.reload();
      if (!answer.ok) return;
      box.innerHTML = await answer.text();
      hear(box);
      rate(box);
      tick();
    } catch {
      // The server does not answer; the next update tries again.
    }
  };
  for (const box of document.querySelectorAll("[data-live]")) {
    rate(box);
    setInterval(() => refresh(box), Number(box.dataset.every || 5) * 1000);
  }

  // Shows mistakes in JSON: while typing, and the line that the server has named.
  for (const field of document.querySelectorAll("textarea[data-json]")) {
    const note = document.getElementById(field.getAttribute("aria-describedby"));
    if (field.dataset.line) {
      const lines = field.value.split("\n");
      const start = lines.slice(0, Number(field.dataset.line) - 1).join("\n").length + (field.dataset.line > 1 ? 1 : 0);
      const line = lines[Number(field.dataset.line) - 1] || "";
      field.focus();
      field.setSelectionRange(start, start + line.length);
    }
    let later = 0;
    field.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(() => {
        try {
          JSON.parse(field.value);
          note.textContent = "";
          field.removeAttribute("aria-invalid");
        } catch (error) {
          note.textContent = error.message;
          field.setAttribute("aria-invalid", "true");
        }
      }, 400);
    });
  }

  // Shortcuts. Letters alone are ignored in text fields.
  const rows = () => [...document.querySelectorAll("[data-row]")];
  const choose = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("chosen"));
    const next = all[Math.max(0, Math.min(all.length - 1, at + step))];
    if (at >= 0) all[at].classList.remove("chosen");
    next.classList.add("chosen");
    next.scrollIntoView({ block: "nearest" });
    next.querySelector("a")?.focus({ preventScroll: true });
  };
  const follow = (selector) => {
    const link = document.querySelector(selector);
    if (link) link.click();
    return Boolean(link);
  };
  let going = -Infinity;
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field?.form) {
      event.preventDefault();
      return field.form.requestSubmit();
    }
    if (field) {
      if (event.key === "Escape") field.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (performance.now() - going < 1500 && /^[a-z]$/.test(key)) {
      going = -Infinity;
      if (follow(`nav.tabs [data-key="${key}"], nav.global [data-key="${key}"], nav.tree [data-key="${key}"]`)) event.preventDefault();
      return;
    }
    if (key === "g") going = performance.now();
    else if (key === "?") follow('[data-key="?"]');
    else if (key === "j") choose(1);
    else if (key === "k") choose(-1);
    else if (key === "a") follow('main [data-key="a"]');
    else if (key === "n") follow('.pager [data-key="n"], .pager button');
    else if (key === "p") follow('.pager [data-key="p"]');
    else if (key === "/") {
      const box = document.querySelector('[data-focus="/"]');
      if (box) {
        event.preventDefault();
        box.focus();
      }
    }
  });
})();

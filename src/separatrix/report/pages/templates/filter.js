"use strict";
(() => {
  const form = document.querySelector("form.filter");
  if (!form) return;
  const claims = [...document.querySelectorAll("li.claim")];
  const groups = [...document.querySelectorAll("section.document")];
  const status = form.querySelector("[role=status]");
  const apply = () => {
    const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set([...form.querySelectorAll("input[name=verdict]:checked")].map((box) => box.value));
    let shown = 0;
    for (const claim of claims) {
      const text = claim.textContent.toLowerCase();
      claim.hidden = !(verdicts.has(claim.dataset.verdict) && words.every((word) => text.includes(word)));
      shown += claim.hidden ? 0 : 1;
    }
    for (const group of groups) group.hidden = !group.querySelector("li.claim:not([hidden])");
    status.textContent = shown === claims.length ? "" : `${shown} of ${claims.length} claims shown.`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
})();

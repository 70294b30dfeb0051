"use strict";
(() => {
  const split = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  const follow = (form, apply) => {
    if (!form) return;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    apply();
  };

  const claims = [...document.querySelectorAll("li.claim")];
  const groups = [...document.querySelectorAll("section.document")];
  const ledger = document.querySelector('form[data-filters="claims"]');
  follow(ledger, () => {
    const words = split(ledger.words.value);
    const verdicts = new Set([...ledger.querySelectorAll("input[name=verdict]:checked")].map((box) => box.value));
    let shown = 0;
    for (const claim of claims) {
      const text = claim.textContent.toLowerCase();
      claim.hidden = !(verdicts.has(claim.dataset.verdict) && words.every((word) => text.includes(word)));
      shown += claim.hidden ? 0 : 1;
    }
    for (const group of groups) group.hidden = !group.querySelector("li.claim:not([hidden])");
    const status = ledger.querySelector("[role=status]");
    status.textContent = shown === claims.length ? "" : `${shown} of ${claims.length} claims shown.`;
  });

  const pictures = [...document.querySelectorAll("li.picture")];
  const gallery = document.querySelector('form[data-filters="gallery"]');
  follow(gallery, () => {
    const words = split(gallery.words.value);
    const key = gallery.elements.document.value;
    const verdict = gallery.elements.verdict.value;
    let shown = 0;
    for (const picture of pictures) {
      const has = (!key || picture.dataset.document === key) && (!verdict || split(picture.dataset.verdicts).includes(verdict));
      picture.hidden = !(has && words.every((word) => picture.dataset.words.includes(word)));
      shown += picture.hidden ? 0 : 1;
    }
    const status = gallery.querySelector("[role=status]");
    status.textContent = shown === pictures.length ? "" : `${shown} of ${pictures.length} pictures shown.`;
  });
})();

// Waits until the document has not changed for `quiet` milliseconds, at most `maxWait` milliseconds.
([quiet, maxWait]) => new Promise((resolve) => {
  const noted = window[Symbol.for("recrawl")];
  const began = performance.now();
  const check = () => {
    const now = performance.now();
    if (!noted || now - Math.max(noted.lastChange, began) >= quiet || now - began >= maxWait) resolve(true);
    else setTimeout(check, 25);
  };
  check();
})

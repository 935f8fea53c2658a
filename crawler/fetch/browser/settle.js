// Waits until the document has been left alone for so many milliseconds, or so many have passed in all.
([quiet, longest]) => new Promise((resolve) => {
  const noted = window[Symbol.for("recrawl")];
  const began = performance.now();
  const look = () => {
    const now = performance.now();
    if (!noted || now - Math.max(noted.lastChange, began) >= quiet || now - began >= longest) resolve(true);
    else setTimeout(look, 25);
  };
  look();
})

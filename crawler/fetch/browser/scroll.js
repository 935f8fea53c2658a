// Scrolls down by one window and returns whether there is more below. Listeners get an event even if nothing scrolls.
() => {
  const before = window.scrollY;
  window.scrollBy(0, window.innerHeight);
  if (window.scrollY === before) document.dispatchEvent(new Event("scroll", { bubbles: true }));
  const root = document.scrollingElement;
  return !!root && window.scrollY + window.innerHeight < root.scrollHeight - 2;
}

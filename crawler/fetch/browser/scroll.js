// Scrolls one window further; whether there is more below. What listens is told even where nothing can be scrolled.
() => {
  const before = window.scrollY;
  window.scrollBy(0, window.innerHeight);
  if (window.scrollY === before) document.dispatchEvent(new Event("scroll", { bubbles: true }));
  const root = document.scrollingElement;
  return !!root && window.scrollY + window.innerHeight < root.scrollHeight - 2;
}

// Runs in each document before its own scripts, to record when they change it and what is not in its HTML.
(() => {
  const noted = { urls: new Set(), roots: new WeakMap(), lastChange: performance.now() };
  Object.defineProperty(window, Symbol.for("recrawl"), { value: noted });

  for (const name of ["pushState", "replaceState"]) {
    const original = History.prototype[name];
    History.prototype[name] = function (state, title, url) {
      if (url !== undefined && url !== null && noted.urls.size < 500) {
        try { noted.urls.add(new URL(url, document.baseURI).href); } catch { /* an invalid URL */ }
      }
      return original.apply(this, arguments);
    };
  }

  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    noted.roots.set(this, root);
    watch(root);
    return root;
  };

  const observer = new MutationObserver(() => { noted.lastChange = performance.now(); });
  const watch = (root) => observer.observe(root, { childList: true, subtree: true, characterData: true });
  watch(document);

  // Disable what opens windows, sends data in the background or bypasses the proxy.
  window.open = () => null;
  navigator.sendBeacon = () => true;
  delete window.RTCPeerConnection;
  delete window.webkitRTCPeerConnection;
  delete window.WebTransport;
})();

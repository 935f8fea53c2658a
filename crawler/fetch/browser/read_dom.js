// Returns the rendered document as HTML without scripts, with shadow trees and same-origin frames inlined.
([maxChars, maxUrls]) => {
  const noted = window[Symbol.for("recrawl")];
  const DROPPED = new Set(["SCRIPT", "NOSCRIPT", "STYLE", "TEMPLATE"]);
  const VOID = new Set(["AREA", "BASE", "BR", "COL", "EMBED", "HR", "IMG", "INPUT", "LINK", "META", "SOURCE", "TRACK", "WBR"]);
  const NAMED = /^[a-z][a-z0-9:._-]*$/i;
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const quote = (text) => escape(text).replace(/"/g, "&quot;");
  const parts = [];
  let size = 0, isCut = false;
  const put = (text) => {
    size += text.length;
    if (size > maxChars) { isCut = true; return; }
    parts.push(text);
  };

  const frameOf = (element) => {
    try { return element.contentDocument && element.contentDocument.body; } catch { return null; }
  };
  const rootOf = (element) => {
    const notes = element.ownerDocument.defaultView && element.ownerDocument.defaultView[Symbol.for("recrawl")];
    return element.shadowRoot || (notes && notes.roots.get(element)) || null;
  };

  // An explicit stack, because documents may be nested deeper than the call stack allows.
  const stack = [document.documentElement];
  while (stack.length && !isCut) {
    const node = stack.pop();
    if (typeof node === "string") { put(node); continue; }
    if (node.nodeType === Node.TEXT_NODE) { put(escape(node.data)); continue; }
    if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(node.tagName.toUpperCase())) continue;
    const body = node.tagName === "IFRAME" || node.tagName === "FRAME" ? frameOf(node) : null;
    const name = body ? "div" : node.localName;
    if (!NAMED.test(name)) continue;
    // The content of a frame replaces it; its URL is kept as a link.
    if (body && node.getAttribute("src")) put(`<a href="${quote(node.src)}" hidden></a>`);
    let open = "<" + name;
    for (const { name: key, value } of body ? [] : node.attributes) {
      if (NAMED.test(key) && !/^on/i.test(key)) open += ` ${key}="${quote(value)}"`;
    }
    put(open + ">");
    if (VOID.has(node.tagName)) continue;
    stack.push(`</${name}>`);
    const root = rootOf(node);
    let children = body ? body.childNodes : root ? root.childNodes : node.childNodes;
    if (node.tagName === "SLOT") {
      const assigned = node.assignedNodes();
      if (assigned.length) children = assigned;
    }
    for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
  }

  // Links in JSON data for the page's scripts.
  const urls = new Set(noted ? noted.urls : []);
  const isPage = (text) => text.length < 500 && /^(\/(?!\/)|https?:\/\/)[^\s"'<>{}\\]*$/.test(text)
    && !/\.(js|mjs|css|json|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|mp[34]|webm)([?#]|$)/i.test(text);
  const take = (text) => {
    if (urls.size >= maxUrls || !isPage(text)) return;
    try {
      const url = new URL(text, document.baseURI);
      if (url.origin === location.origin) urls.add(url.href);
    } catch { /* not a URL */ }
  };
  for (const script of document.querySelectorAll('script[type$="json"]')) {
    if (script.text.length > 2e6) continue;
    try { JSON.parse(script.text, (_, value) => { if (typeof value === "string") take(value); return value; }); }
    catch { /* not JSON */ }
  }
  // Scripts can change location.href, so return the URL that was navigated to.
  const [navigation] = performance.getEntriesByType("navigation");
  const url = navigation ? navigation.name : location.href;
  return { html: "<!DOCTYPE html>" + parts.join(""), isCut, urls: [...urls], url };
}

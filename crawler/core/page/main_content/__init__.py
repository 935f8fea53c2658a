"""The main content of a page: which of its lines a reader would call the page, without menus and other boilerplate."""

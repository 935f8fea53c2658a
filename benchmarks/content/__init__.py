"""Measure how well the content of pages is separated from menus, navigation and other boilerplate."""

"""Charts: drawn in the terminal in plain characters, or written as SVG files."""

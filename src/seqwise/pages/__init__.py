"""Pages for a browser that need nothing but themselves: what their text, charts and tables are made of."""

"""Reports in Markdown and HTML, and their building blocks."""

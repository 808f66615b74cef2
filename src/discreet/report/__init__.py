"""Reports for people: their building blocks as Markdown and HTML."""

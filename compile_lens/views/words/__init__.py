"""Words and numbers of all views, before they are text, HTML or Markdown."""

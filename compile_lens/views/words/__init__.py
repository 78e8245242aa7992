"""What every view says, before it is text, HTML or Markdown."""

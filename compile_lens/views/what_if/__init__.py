"""What switches would change, as text, Markdown, HTML and JSON: what helps first, its difference below it."""

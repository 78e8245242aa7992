"""A capture as HTML: the page, and the pieces that it is made of."""

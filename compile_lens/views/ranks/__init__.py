"""Programs of several ranks side by side: what differs, in every form that a program has."""

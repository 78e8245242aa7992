"""The only folder that touches private torch: small named hooks, each of which may be missing on some torch."""

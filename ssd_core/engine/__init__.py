"""The decoding loop: draft heads, state, acceptance rules, plans, events, methods."""

"""Training of draft heads and row drafters, for any backbone. Here: what learns, and how long."""

HEADS, ROW, BOTH = "heads", "row", "both"
KINDS = {HEADS: (HEADS,), ROW: (ROW,), BOTH: (HEADS, ROW)}
# Of each kind from one's own pictures, of which there may be few: results/learned.md
LEAST_STEPS = {HEADS: 200, ROW: 500}

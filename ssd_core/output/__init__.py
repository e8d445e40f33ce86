"""What a run shows and saves: texts, previews, sheets, recipes, PNGs. Knows no user interface."""

"""The tabs, one a file: components and what their buttons do. studio.runs does the work."""

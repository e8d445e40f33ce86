"""The tabs, one file each: components, and what their buttons do. studio.runs does the work."""

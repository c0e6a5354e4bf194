"""People's tables: cells as their files have them, and the same files with some cells changed."""

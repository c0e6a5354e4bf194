"""Pages and figures: one HTML file that opens anywhere."""

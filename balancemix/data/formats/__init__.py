"""What files say of labels: one module a format."""

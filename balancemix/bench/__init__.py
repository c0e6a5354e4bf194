"""Many runs as one plan, side by side, and the tables made of them."""

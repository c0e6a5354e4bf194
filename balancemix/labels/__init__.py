"""What is given, what is believed of it, and what training makes of it."""

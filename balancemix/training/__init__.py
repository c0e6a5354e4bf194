"""A plan carried out: the one loop and what it stands on."""

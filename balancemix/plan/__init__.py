"""All that a run depends on; each default has its one home here."""

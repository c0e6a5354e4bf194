"""Which labels to fix, and the corrected set."""

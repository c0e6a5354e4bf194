"""Images or features to logits: a backbone, a head, and a fast copy for passes without gradient."""

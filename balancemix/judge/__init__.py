"""How wrong are the labels? Asked of something that did not learn them."""

"""What the page asks and says over HTTP: each module has `routes`."""

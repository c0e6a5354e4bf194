"""The review page: a local server on which people decide what the audit only suspects."""

"""The paper's tables, made from a bench's runs: what has ended is in them, the rest is a dash."""

from __future__ import annotations

from balancemix.paper_tables.layouts import make_tables
from balancemix.paper_tables.render import plain, write_tables
from balancemix.paper_tables.table import Cell, Row, Table

__all__ = ["Cell", "Row", "Table", "make_tables", "plain", "write_tables"]

"""Findings to other tools and decisions back: Label Studio, FiftyOne, cleanlab, spreadsheets."""

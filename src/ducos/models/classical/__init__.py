"""Filters and fits without trained weights."""

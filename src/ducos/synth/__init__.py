"""Procedural rooms and tabletops rendered with Blender: a training set anyone can rebuild."""

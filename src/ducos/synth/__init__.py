"""Procedural rooms and tabletops rendered with Blender: a training set anyone can rebuild.

It runs inside Blender's own Python, so only `errors` and `children` enter from the other
rooms.
"""

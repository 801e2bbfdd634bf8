"""Procedural rooms and tabletops rendered with Blender: a training set anyone can rebuild.

It runs inside Blender's own Python, so nothing but `errors` enters from the other rooms.
"""

"""Depth super-resolution: a colour image and a small, noisy depth map in, a sharp one out."""

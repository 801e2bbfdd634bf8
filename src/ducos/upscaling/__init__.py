"""upscaling."""

"""Recordings as apps, SDKs and ROS write them, read frame by frame. No conversion, no unpacking.

A folder or a file enters; frames leave: image, depth with its unit, confidence, cameras, pose and
time. Nothing is written, and nothing but the frame asked for is held in memory.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.captures.bag_images import message_colour, message_depth
    from ducos.captures.frame import Capture, Frame, FrameRef
    from ducos.captures.table import IMPORTERS, Importer, find_frames, read_frame
else:
    __getattr__, __dir__, __all__ = doors(__name__)

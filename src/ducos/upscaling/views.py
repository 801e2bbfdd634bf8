"""Results in space, to be looked at."""

from ducos.cameras import Camera, Cloud, orbit, render
from ducos.errors import InputError
from ducos.pictures import Picture, side_by_side

VIEWS = {"from the left and above": (28.0, 18.0), "from the right": (-28.0, 4.0)}  # yaw, pitch


def cloud_picture(cloud: Cloud, camera: Camera, width: int = 480) -> Picture:
    """The cloud seen from two other places, side by side: what hangs in the air shows at once."""
    if not len(cloud):
        raise InputError("the cloud has no point to show")
    view = camera.scaled(width, max(1, round(camera.height * width / camera.width)))
    panels = []
    for name, (yaw, pitch) in VIEWS.items():
        panels.append((name, render(cloud, view, orbit(cloud, yaw, pitch))))
    return side_by_side(panels)

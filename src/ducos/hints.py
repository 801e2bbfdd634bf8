"""What a user can tell about the maker of a depth map, as networks are told it.

A smooth map may be a faithful one of a smooth scene or a time-of-flight camera's of a sharp one;
nothing in it shows which. Whoever owns the camera knows.
"""

from ducos.errors import InputError

SENSORS = {
    "unknown": "the network judges by map and picture",
    "tof": "time of flight: Kinect v2, Azure Kinect, Femto, L515, the ToF chip of a phone",
    "lidar": "few laser spots blown up to a map: iPhone, iPad",
    "stereo": "stereo or structured light: RealSense D400, ZED, OAK-D, Kinect v1",
}
"""Name -> which cameras are meant. Weights have a list of their own: the names they were taught."""


def check_sensor(name: str) -> None:
    """Complain about a name that is none of SENSORS."""
    if name not in SENSORS:
        raise InputError(f"unknown sensor {name!r}; choose one of: {', '.join(SENSORS)}")

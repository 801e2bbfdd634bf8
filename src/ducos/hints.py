"""What a user can tell about a depth map, as networks are told it: the mode, and its sensor.

A smooth map may be a faithful one of a smooth scene or a time-of-flight camera's of a sharp one;
nothing in it shows which. Whoever owns the camera knows.
"""

from ducos.errors import InputError

SENSORS = {
    "unknown": "not said",
    "tof": "time of flight: Kinect v2, Azure Kinect, Femto, L515, the ToF chip of a phone",
    "lidar": "few laser spots blown up to a map: iPhone, iPad",
    "stereo": "stereo or structured light: RealSense D400, ZED, OAK-D, Kinect v1",
}
"""Name -> which cameras are meant. Weights have a list of their own: the names they were taught."""


MODES = {
    "faithful": "the map is right within its noise; the result, downsampled, agrees with it",
    "repair": "silhouettes may move onto the image's edges, and flying pixels are resolved",
}
"""Name -> what the result owes to the measurements."""

REPAIRED = ("tof",)  # sensors whose silhouettes are wrong by more than a pixel of their map


def mode_of(mode: str, sensor: str) -> str:
    """The mode that a user asked for; `auto` is what fits the sensor."""
    if mode == "auto":
        return "repair" if sensor in REPAIRED else "faithful"
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}; choose one of: auto, {', '.join(MODES)}")
    return mode


def check_sensor(name: str) -> None:
    """Complain about a name that is none of SENSORS."""
    if name not in SENSORS:
        raise InputError(f"unknown sensor {name!r}; choose one of: {', '.join(SENSORS)}")

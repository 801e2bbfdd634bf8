"""Where the cameras of a bag stand to each other: tf_static, or RealSense's own extrinsics."""

from typing import Any

import numpy as np

from ducos.cameras import Extrinsics
from ducos.captures.places import Pose, pose_of_quaternion
from ducos.files import refusing

MOST_TRANSFORMS = 10_000  # of a robot; a bag with more is damaged


def camera_transform(reader: Any, source: str, target: str, name: Any) -> Extrinsics | None:
    """Points of the frame `source` into the frame `target`, by /tf_static; None if it is silent."""
    parents: dict[str, tuple[str, Pose]] = {}
    wanted = [c for c in reader.connections if c.topic == "/tf_static"]
    if not wanted:
        return None
    with refusing(name, "a bag"):
        for connection, _, raw in reader.messages(wanted):
            for each in reader.deserialize(raw, connection.msgtype).transforms:
                pose = pose_of_transform(each.transform)
                if pose is not None and len(parents) < MOST_TRANSFORMS:
                    parents[each.child_frame_id.lstrip("/")] = (
                        each.header.frame_id.lstrip("/"),
                        pose,
                    )
    chains = up(source, parents), up(target, parents)
    shared = next((frame for frame in chains[0] if frame in chains[1]), None)
    if shared is None:
        return None
    way = np.linalg.inv(chains[1][shared]) @ chains[0][shared]
    return Extrinsics(way[:3, :3], way[:3, 3], "extrinsics: of the bag's tf_static")


def up(frame: str, parents: dict[str, tuple[str, Pose]]) -> dict[str, Pose]:
    """Every frame above, with what takes points of this one there."""
    way = np.eye(4)
    seen = {frame: way}
    while frame in parents:
        frame, pose = parents[frame]
        if frame in seen:
            break
        way = pose @ way
        seen[frame] = way
    return seen


def realsense_transform(reader: Any, depth: str, colour: str, name: Any) -> Extrinsics | None:
    """Depth to colour of a RealSense recording: each stream's /tf/0 leads to a common one."""
    ways = []
    for topic in (depth, colour):
        if not topic.startswith("/device_") or not topic.endswith("/image/data"):
            return None
        start = topic.removesuffix("/image/data") + "/tf/"
        wanted = [c for c in reader.connections if c.topic.startswith(start) and c.msgcount]
        if not wanted:
            return None
        with refusing(name, "a bag"):
            for connection, _, raw in reader.messages(wanted[:1]):
                pose = pose_of_transform(reader.deserialize(raw, connection.msgtype))
                if pose is None:
                    return None
                ways.append(pose)
                break
    if len(ways) != 2:
        return None
    way = np.linalg.inv(ways[1]) @ ways[0]
    return Extrinsics(way[:3, :3], way[:3, 3], "extrinsics: of the recording")


def pose_of_transform(transform: Any) -> Pose | None:
    """(4, 4) of geometry_msgs/Transform."""
    turn, shift = transform.rotation, transform.translation
    return pose_of_quaternion((turn.x, turn.y, turn.z, turn.w), (shift.x, shift.y, shift.z))

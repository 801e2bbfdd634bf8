"""examples/ros2: messages in, a message out that ROS can send; no ROS is here, `rosbags` is."""

import importlib.util
import py_compile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from ducos.captures import message_depth
from ducos.upscaling import Upscaler
from tests.captures import recordings as made
from tests.examples.kit import EXAMPLES, loaded, run

STORE = get_typestore(Stores.ROS2_HUMBLE)
IMAGE = "sensor_msgs/msg/Image"
RAW, PACKED = made.RAW, made.PACKED


@pytest.fixture(scope="module")
def node() -> ModuleType:
    return loaded("ros2/depth_node.py")


@pytest.fixture(scope="module")
def upscaler() -> Upscaler:
    return Upscaler(sensor="stereo", shift="off")


def through_the_wire(fields: dict[str, Any]) -> Any:
    """The answer as another node receives it: packed as CDR and read again."""
    assert fields["data"].typecode == "B"  # the type of uint8[] in rclpy
    fields = {**fields, "data": np.frombuffer(fields["data"], np.uint8)}
    packed = STORE.serialize_cdr(STORE.types[IMAGE](**fields), IMAGE)
    return STORE.deserialize_cdr(packed, IMAGE)


def test_it_compiles(tmp_path: Path) -> None:
    target = tmp_path / "node.pyc"
    py_compile.compile(str(EXAMPLES / "ros2/depth_node.py"), cfile=str(target), doraise=True)
    assert target.exists()


@pytest.mark.parametrize("topics", [RAW, PACKED], ids=["raw", "packed"])
def test_a_pair_becomes_an_image_of_metres(
    node: ModuleType, upscaler: Upscaler, topics: tuple[str, str]
) -> None:
    sent = made.messages(STORE, 1)
    colour, depth = (sent[topic] for topic in topics)
    answer = through_the_wire(node.sharpened(upscaler, colour, depth))
    assert (answer.encoding, answer.width, answer.height) == ("32FC1", made.W, made.H)
    assert answer.header == colour.header  # so colour's camera_info holds for it
    metres = message_depth(answer, "answer")
    assert metres.dtype == np.float32
    assert abs(metres[24, 32] - 1.2) < 0.02  # the box
    assert abs(metres[40, 6] - 2.0) < 0.02  # the wall
    assert np.isfinite(metres).all()  # the hole was filled


def test_floats_are_metres_and_nan_is_a_hole(node: ModuleType, upscaler: Upscaler) -> None:
    """The same scene as 32FC1 gives what 16UC1 gave."""
    sent = made.messages(STORE, 1)
    colour, whole = sent[RAW[0]], sent[RAW[1]]
    plane = np.where(made.metres(1) > 0, made.metres(1), np.nan).astype("<f4")
    floats = STORE.types[IMAGE](
        header=whole.header, height=made.h, width=made.w, encoding="32FC1", is_bigendian=0,
        step=4 * made.w, data=plane.view(np.uint8).ravel(),
    )  # fmt: skip
    first, second = (
        message_depth(through_the_wire(node.sharpened(upscaler, colour, each)), "answer")
        for each in (whole, floats)
    )
    assert np.abs(first - second).max() < 1e-4


def test_holes_that_stay_are_nan(node: ModuleType) -> None:
    keeping = Upscaler("bicubic", shift="off", keep_holes=True)
    sent = made.messages(STORE, 0)
    answer = through_the_wire(node.sharpened(keeping, sent[RAW[0]], sent[RAW[1]]))
    metres = message_depth(answer, "answer")
    assert np.isnan(metres[0, -1])
    assert np.isfinite(metres[-1, 0])


@pytest.mark.skipif(importlib.util.find_spec("rclpy") is not None, reason="ROS 2 is installed")
def test_without_ros_it_says_so() -> None:
    finished = run("ros2/depth_node.py")
    assert finished.returncode == 1
    assert finished.stderr.startswith("this is a ROS 2 node")
    assert "Traceback" not in finished.stderr

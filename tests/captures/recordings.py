"""Small recordings in their real layouts, each written with the format's own library if it has one.

All show the same: a box before a wall, 3 frames, colour 64×48, depth 32×24 (Azure Kinect's has its
own size). `TRUTH` is the depth in metres, 0 where there is a hole.
"""

import csv
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import av
import imagecodecs
import numpy as np
from PIL import Image
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

FRAMES = 3
W, H, w, h = 64, 48, 32, 24
FX, CX, CY = 50.0, 31.5, 23.5


def colours(number: int) -> np.ndarray:
    """(48, 64, 3) uint8: smooth, so that JPEG changes it little; the box moves with the frame."""
    v, u = np.mgrid[:H, :W]
    image = np.stack([2 * u, 3 * v, 60 + u + v], -1).astype(np.uint8)
    image[12:36, 16 + 4 * number : 40 + 4 * number] = (220, 40, 40)
    return image


def metres(number: int) -> np.ndarray:
    """(24, 32) float32: the wall at 2 m, the box at 1.2 m, a hole."""
    depth = np.full((h, w), 2.0, np.float32)
    depth[6:18, 8 + 2 * number : 20 + 2 * number] = 1.2
    depth[:4, -5:] = 0
    return depth


def trust(number: int) -> np.ndarray:
    """(24, 32) ARKit's levels: 2 almost everywhere, 1 in a corner, 0 in another."""
    levels = np.full((h, w), 2, np.uint8)
    levels[-4:, :4] = 1
    levels[-4:, -4:] = 0
    return levels


def steps(number: int, per_metre: float = 1000) -> np.ndarray:
    return np.rint(metres(number) * per_metre).astype(np.uint16)


def jpeg(image: np.ndarray) -> bytes:
    memory = BytesIO()
    Image.fromarray(image).save(memory, "JPEG", quality=95, subsampling=0)
    return memory.getvalue()


def png(image: np.ndarray) -> bytes:
    memory = BytesIO()
    Image.fromarray(image).save(memory, "PNG")
    return memory.getvalue()


def save(path: Path, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = jpeg(image) if path.suffix.lower() in (".jpg", ".jpeg") else png(image)
    path.write_bytes(packed)


def moved(number: int) -> np.ndarray:
    """Camera to world (4, 4), x right, y down, z forward: a step to the right for each frame."""
    pose = np.eye(4)
    pose[0, 3] = 0.1 * number
    return pose


def arkit(number: int) -> np.ndarray:
    """The same pose as ARKit has it: y up, z backwards."""
    return moved(number) @ np.diag([1.0, -1, -1, 1])


K = np.array([[FX, 0, CX], [0, FX, CY], [0, 0, 1]])


def named(place: Path) -> Path:
    for n in range(FRAMES):
        save(place / f"{n}-Color.PNG", colours(n))
        save(place / f"{n}-Depth.PNG", steps(n))
    return place


def stamped(place: Path) -> Path:
    """Folders of time stamps in microseconds; the depth 7 ms later."""
    for n in range(FRAMES):
        save(place / "color" / f"{1_700_000_000_000_000 + 100_000 * n}.jpg", colours(n))
        save(place / "depth" / f"{1_700_000_000_007_000 + 100_000 * n}.png", steps(n))
    return place


def scenes(place: Path) -> Path:
    """A folder of each frame, as examples of networks come: no word agrees, and a picture of the
    depth lies beside it."""
    for n in range(FRAMES):
        save(place / str(n) / "rgb.png", colours(n))
        save(place / str(n) / "raw_depth.png", steps(n))
        save(place / str(n) / "raw_depth_color.png", colours(n))
        np.savetxt(place / str(n) / "intrinsics.txt", K)
    return place


def pgm(path: Path, image: np.ndarray) -> None:
    """16 bits, the higher byte first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"P5\n# of a Kinect\n{image.shape[1]} {image.shape[0]}\n65535\n".encode()
    path.write_bytes(head + image.astype(">u2").tobytes())


def numbered(place: Path) -> Path:
    """Only the numbers agree; depth as PGM, the camera beside it in somebody's own words."""
    for n in range(FRAMES):
        save(place / f"rgb_{n}.png", colours(n))
        pgm(place / f"raw_depth_{n}.pgm", steps(n))
    words = {"img_width": W, "img_height": H, "fx": FX, "fy": FX, "x_offset": CX, "y_offset": CY}
    (place / "camera_params.json").write_text(json.dumps(words))
    return place


def tum(place: Path) -> Path:
    rgb, depth, truth = [], [], []
    for n in range(FRAMES):
        time = 1305031102.175304 + 0.1 * n
        save(place / "rgb" / f"{time:.6f}.png", colours(n))
        save(place / "depth" / f"{time + 0.005:.6f}.png", steps(n, 5000))
        rgb.append(f"{time:.6f} rgb/{time:.6f}.png")
        depth.append(f"{time + 0.005:.6f} depth/{time + 0.005:.6f}.png")
        truth.append(f"{time + 0.002:.4f} {0.1 * n} 0 0 0 0 0 1")
    head = "# {}\n# file: 'rgbd_dataset_freiburg3_tiny.bag'\n# timestamp filename\n"
    for name, lines in (("rgb", rgb), ("depth", depth), ("groundtruth", truth)):
        (place / f"{name}.txt").write_text(head.format(name) + "\n".join(lines) + "\n")
    return place


def seven_scenes(place: Path) -> Path:
    for n in range(FRAMES):
        save(place / f"frame-{n:06}.color.png", colours(n))
        stored = steps(n)
        save(place / f"frame-{n:06}.depth.png", np.where(stored == 0, 65535, stored).astype("u2"))
        np.savetxt(place / f"frame-{n:06}.pose.txt", moved(n))
    return place


def scannet(place: Path) -> Path:
    for n in range(FRAMES):
        save(place / "color" / f"{n}.jpg", colours(n))
        save(place / "depth" / f"{n}.png", steps(n))
        (place / "pose").mkdir(exist_ok=True)
        np.savetxt(place / "pose" / f"{n}.txt", moved(n))
    (place / "intrinsic").mkdir()
    whole = np.eye(4)
    whole[:3, :3] = K
    np.savetxt(place / "intrinsic" / "intrinsic_color.txt", whole)
    return place


def sens(place: Path) -> Path:
    whole = np.eye(4, dtype="<f4")
    whole[:3, :3] = K
    content = (
        struct.pack("<IQ", 4, 4) + b"tiny" + whole.tobytes() + 3 * np.eye(4, dtype="<f4").tobytes()
    )
    content += struct.pack("<iiIIIIfQ", 2, 1, W, H, w, h, 1000.0, FRAMES)
    for n in range(FRAMES):
        colour, depth = jpeg(colours(n)), zlib.compress(steps(n).astype("<u2").tobytes())
        head = struct.pack("<QQQQ", 100_000 * n, 100_000 * n, len(colour), len(depth))
        content += moved(n).astype("<f4").tobytes() + head + colour + depth
    path = place / "scene0000_00.sens"
    path.write_bytes(content)
    return path


def redwood(place: Path) -> Path:
    log = []
    for n in range(FRAMES):
        save(place / "image" / f"{n + 1:07}-{33_000 * n:012}.jpg", colours(n))
        save(place / "depth" / f"{n + 1:07}-{33_000 * n + 4000:012}.png", steps(n))
        log += [f"{n} {n} {n + 1}", *(" ".join(map(str, row)) for row in moved(n))]
    (place / "trajectory.log").write_text("\n".join(log) + "\n")
    camera = {"width": W, "height": H, "intrinsic_matrix": K.T.ravel().tolist()}
    (place / "camera_primesense.json").write_text(json.dumps(camera))
    return place


def scanner_app(place: Path) -> Path:
    for n in range(FRAMES):
        save(place / f"frame_{n:05}.jpg", colours(n))
        save(place / f"depth_{n:05}.png", steps(n))
        save(place / f"conf_{n:05}.png", trust(n))
        about = {
            "intrinsics": K.ravel().tolist(),
            "cameraPoseARFrame": arkit(n).ravel().tolist(),
            "time": 100.5 + n,
        }
        (place / f"frame_{n:05}.json").write_text(json.dumps(about))
    save(place / "depth_00099.png", steps(0))  # depth is stored more often than pictures
    return place


def rendered(place: Path) -> Path:
    """As `ducos synth --path` writes; tests/synth compares with a real one."""
    for n in range(FRAMES):
        save(place / f"000007_{n:04}_rgb.jpg", colours(n))
        save(place / f"000007_{n:04}_depth.png", steps(n, 4000))
        about = {
            "width": W,
            "height": H,
            "intrinsics": {"fx": FX, "fy": FX, "cx": CX, "cy": CY},
            "camera_to_world": arkit(n).tolist(),
        }
        (place / f"000007_{n:04}.json").write_text(json.dumps(about))
    (place / "manifest.jsonl").write_text("{}\n")
    return place


def stray(place: Path) -> Path:
    place.mkdir(exist_ok=True)
    with av.open(str(place / "rgb.mp4"), "w") as out:
        stream = out.add_stream("libx264", rate=30, options={"crf": "1"})
        stream.width, stream.height, stream.pix_fmt = W, H, "yuv444p"
        for n in range(FRAMES):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(colours(n), format="rgb24")))
        out.mux(stream.encode())
    for n in range(FRAMES):
        save(place / "depth" / f"{n:06}.png", steps(n))
        save(place / "confidence" / f"{n:06}.png", trust(n))
    np.savetxt(place / "camera_matrix.csv", K, delimiter=",")
    with (place / "odometry.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        # As newer versions of the app write it; the last two are empty in most rows.
        names = ["timestamp", "frame", *"xyz", "qx", "qy", "qz", "qw", "fx", "fy", "cx", "cy"]
        more = ["distortion_center_x", "distortion_center_y"]
        rows.writerow([f" {name}" for name in names + more])
        for n in range(FRAMES):
            tail = [f" {W / 2}", f" {H / 2}"] if n == 1 else [" ", " "]
            rows.writerow([0.1 * n, f" {n:06}", 0.1 * n, 0, 0, 0, 0, 0, 1, FX, FX, CX, CY, *tail])
    return place


def record3d(place: Path) -> Path:
    path = place / "walk.r3d"
    about = {
        "w": W, "h": H, "dw": w, "dh": h, "fps": 30, "K": K.T.ravel().tolist(),
        "poses": [[1, 0, 0, 0, 0.1 * n, 0, 0] for n in range(FRAMES)],
        "frameTimestamps": [0.1 * n for n in range(FRAMES)],
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata", json.dumps(about))
        for n in range(FRAMES):
            archive.writestr(f"rgbd/{n}.jpg", jpeg(colours(n)))
            depth = np.where(metres(n) > 0, metres(n), np.nan).astype("<f4").tobytes()
            archive.writestr(f"rgbd/{n}.depth", imagecodecs.lzfse_encode(depth))
            archive.writestr(f"rgbd/{n}.conf", imagecodecs.lzfse_encode(trust(n).tobytes()))
    return path


def arkitscenes(place: Path) -> Path:
    rows = []
    for n in range(FRAMES):
        name = f"40753679_{6791.5 + 0.1 * n:.3f}"
        save(place / "wide" / f"{name}.png", colours(n))
        save(place / "lowres_depth" / f"{name}.png", steps(n))
        save(place / "confidence" / f"{name}.png", trust(n))
        (place / "wide_intrinsics").mkdir(exist_ok=True)
        line = f"{W} {H} {FX} {FX} {CX} {CY}"
        (place / "wide_intrinsics" / f"{name}.pincam").write_text(line)
        rows.append(f"{6791.51 + 0.1 * n:.3f} 0 0 0 {-0.1 * n} 0 0")  # world to camera
    (place / "lowres_wide.traj").write_text("\n".join(rows) + "\n")
    return place


KINECT_SIZE = (320, 288)  # depth of an Azure Kinect, narrow and binned


def kinect_metres(number: int) -> np.ndarray:
    """(288, 320): as `metres`, of the size that this camera has."""
    return np.kron(metres(number), np.ones((12, 10), np.float32))


def kinect_calibration() -> dict[str, Any]:
    """Both cameras the same lens in the same place, so that registration moves nothing much."""
    depth = [0.5, 0.5, 0.5, 0.5, *(0.0,) * 10]
    colour = [0.5, 0.5, 0.75, 1.0, *(0.0,) * 10]

    def part(purpose: str, lens: list[float], shift: list[float]) -> dict[str, Any]:
        return {
            "Purpose": f"CALIBRATION_CameraPurpose{purpose}",
            "Intrinsics": {
                "ModelType": "CALIBRATION_LensDistortionModelBrownConrady",
                "ModelParameters": lens,
            },
            "Rt": {"Rotation": np.eye(3).ravel().tolist(), "Translation": shift},
        }

    parts = [part("Depth", depth, [0, 0, 0]), part("PhotoVideo", colour, [-0.01, 0, 0])]
    return {"CalibrationInformation": {"Cameras": parts}}


def kinect(place: Path) -> Path:
    path = place / "output.mkv"
    with av.open(str(path), "w", options={"allow_raw_vfw": "1"}) as out:
        colour = out.add_stream("mjpeg", rate=30)
        colour.width, colour.height, colour.pix_fmt = 4 * W, 4 * H, "yuvj444p"
        colour.metadata["title"] = "COLOR"
        depth = out.add_stream("rawvideo", rate=30)
        depth.width, depth.height = KINECT_SIZE
        depth.pix_fmt = "gray16be"
        depth.metadata["title"] = "DEPTH"
        text = json.dumps(kinect_calibration()).encode()
        out.add_attachment("calibration.json", "application/octet-stream", text)
        for n in range(FRAMES):
            image = np.kron(colours(n), np.ones((4, 4, 1), np.uint8))
            stored = np.rint(1000 * kinect_metres(n)).astype(np.uint16)
            for stream, array, form in ((colour, image, "rgb24"), (depth, stored, "gray16le")):
                frame = av.VideoFrame.from_ndarray(array, format=form)
                if form != "rgb24":
                    frame = frame.reformat(format="gray16be")
                frame.pts = n
                out.mux(stream.encode(frame))
        for stream in (colour, depth):
            out.mux(stream.encode())
    return path


def messages(store: Any, number: int) -> dict[str, Any]:
    """Topic -> message of one moment, as a RealSense node publishes them."""
    types = store.types
    Header, Time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    more = {"seq": number} if "seq" in Header.__dataclass_fields__ else {}

    def header(frame: str) -> Any:
        stamp = Time(sec=100, nanosec=100_000_000 * number)
        return Header(stamp=stamp, frame_id=frame, **more)

    Image_, Packed = types["sensor_msgs/msg/Image"], types["sensor_msgs/msg/CompressedImage"]
    Info, Region = types["sensor_msgs/msg/CameraInfo"], types["sensor_msgs/msg/RegionOfInterest"]
    region = Region(x_offset=0, y_offset=0, height=0, width=0, do_rectify=False)
    small = "k" in Info.__dataclass_fields__
    P = np.zeros((3, 4))
    P[:, :3] = K

    def info(frame: str, width: int, height: int) -> Any:
        scale = np.diag([width / W, height / H, 1.0])
        values = {
            "d": np.zeros(5),
            "k": (scale @ K).ravel(),
            "r": np.eye(3).ravel(),
            "p": P.ravel(),
        }
        named = values if small else {key.upper(): value for key, value in values.items()}
        return Info(
            header=header(frame), height=height, width=width, distortion_model="plumb_bob",
            binning_x=0, binning_y=0, roi=region, **named,
        )  # fmt: skip

    stored = steps(number)
    packed = struct.pack("<iff", 0, 0.0, 0.0) + png(stored)
    padded = np.pad(stored.view(np.uint8).reshape(h, -1), ((0, 0), (0, 6)))
    return {
        "/camera/color/image_raw": Image_(
            header=header("colour"), height=H, width=W, encoding="bgr8", is_bigendian=0,
            step=3 * W, data=colours(number)[..., ::-1].ravel(),
        ),
        "/camera/color/image_raw/compressed": Packed(
            header=header("colour"), format="rgb8; jpeg compressed",
            data=np.frombuffer(jpeg(colours(number)), np.uint8),
        ),
        "/camera/depth/image_rect_raw": Image_(
            header=header("depth"), height=h, width=w, encoding="16UC1", is_bigendian=0,
            step=2 * w + 6, data=padded.ravel(),
        ),
        "/camera/depth/image_rect_raw/compressedDepth": Packed(
            header=header("depth"), format="16UC1; compressedDepth png",
            data=np.frombuffer(packed, np.uint8),
        ),
        "/camera/color/camera_info": info("colour", W, H),
        "/camera/depth/camera_info": info("depth", w, h),
    }  # fmt: skip


def static(store: Any) -> Any:
    """/tf_static: the colour camera 10 mm to the right of the depth camera."""
    types = store.types
    Header, Time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    more = {"seq": 0} if "seq" in Header.__dataclass_fields__ else {}
    Stamped = types["geometry_msgs/msg/TransformStamped"]
    Transform = types["geometry_msgs/msg/Transform"]
    Vector, Turn = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    way = Transform(translation=Vector(x=0.01, y=0.0, z=0.0), rotation=Turn(x=0, y=0, z=0, w=1))
    stamp = Header(stamp=Time(sec=100, nanosec=0), frame_id="depth", **more)
    return types["tf2_msgs/msg/TFMessage"](
        transforms=[Stamped(header=stamp, child_frame_id="colour", transform=way)]
    )


PACKED = ("/camera/color/image_raw/compressed", "/camera/depth/image_rect_raw/compressedDepth")
RAW = ("/camera/color/image_raw", "/camera/depth/image_rect_raw")


def bag(place: Path, version: int = 1, leave: tuple[str, ...] = PACKED, plugin: Any = None) -> Path:
    """A ROS bag with raw images, or with compressed ones; and tf_static."""
    store = get_typestore(Stores.ROS1_NOETIC if version == 1 else Stores.ROS2_HUMBLE)
    if version == 1:
        lines = "geometry_msgs/TransformStamped[] transforms"
        store.register(get_types_from_msg(lines, "tf2_msgs/msg/TFMessage"))
        path = place / "walk.bag"
        writer: Any = Writer1(path)
        pack = store.serialize_ros1
    else:
        path = place / "walk"
        writer = Writer2(path, version=9, storage_plugin=plugin or StoragePlugin.SQLITE3)
        pack = store.serialize_cdr
    with writer:
        channels = {}
        for n in range(FRAMES):
            sent = messages(store, n) | ({"/tf_static": static(store)} if n == 0 else {})
            for topic, message in sent.items():
                if topic in leave:
                    continue
                kind = message.__msgtype__
                if topic not in channels:
                    channels[topic] = writer.add_connection(topic, kind, typestore=store)
                time = 100_000_000_000 + 100_000_000 * n
                writer.write(channels[topic], time, bytes(pack(message, kind)))
    return path


def bag2(place: Path) -> Path:
    return bag(place, 2, RAW)


def mcap(place: Path) -> Path:
    return next(bag(place, 2, PACKED, StoragePlugin.MCAP).glob("*.mcap"))


def realsense(place: Path) -> Path:
    """As the SDK's recorder writes it: its own topics, its own unit, extrinsics of each stream."""
    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    Vector, Turn = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    Transform, Float = types["geometry_msgs/msg/Transform"], types["std_msgs/msg/Float32"]
    turn = Turn(x=0, y=0, z=0, w=1)
    streams = {
        "/camera/depth/": "/device_0/sensor_0/Depth_0/",
        "/camera/color/": "/device_0/sensor_1/Color_0/",
    }
    path = place / "d435.bag"
    with Writer1(path) as writer:

        def put(topic: str, message: Any, time: int) -> None:
            kind = message.__msgtype__
            known = next((c for c in writer.connections if c.topic == topic), None)
            channel = known or writer.add_connection(topic, kind, typestore=store)
            writer.write(channel, time, bytes(store.serialize_ros1(message, kind)))

        put("/device_0/sensor_0/option/Depth_Units/value", Float(data=0.00025), 1)
        for target, shift in zip(streams.values(), (0.0, 0.01)):
            way = Transform(translation=Vector(x=shift, y=0.0, z=0.0), rotation=turn)
            put(f"{target}tf/0", way, 1)
        for n in range(FRAMES):
            time = 100_000_000_000 + 100_000_000 * n
            for topic, message in messages(store, n).items():
                if topic in PACKED:
                    continue
                start = next(key for key in streams if topic.startswith(key))
                end = "info/camera_info" if topic.endswith("info") else "image/data"
                if topic == RAW[1]:
                    message.encoding, message.step = "mono16", 2 * w
                    message.data = steps(n, 4000).view(np.uint8).ravel()
                put(streams[start] + end, message, time)
    return path


RECORDINGS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "named": ("named", named),
    "time stamps": ("named", stamped),
    "scenes": ("named", scenes),
    "numbers": ("named", numbered),
    "tum": ("tum", tum),
    "7scenes": ("7scenes", seven_scenes),
    "scannet": ("scannet", scannet),
    "sens": ("sens", sens),
    "redwood": ("redwood", redwood),
    "3dscanner": ("3dscanner", scanner_app),
    "rendered": ("rendered", rendered),
    "stray": ("stray", stray),
    "record3d": ("record3d", record3d),
    "arkitscenes": ("arkitscenes", arkitscenes),
    "mkv": ("mkv", kinect),
    "ros1": ("bag", bag),
    "ros2": ("bag", bag2),
    "mcap": ("bag", mcap),
    "realsense": ("bag", realsense),
}
"""Name -> layout it is to be recognised as, and what writes it into a folder."""

GUESSED = ("named", "time stamps", "scenes", "numbers")  # units
NO_CAMERA = ("named", "time stamps")
TRUSTED = ("3dscanner", "stray", "record3d", "arkitscenes")
POSED = ("tum", "7scenes", "rendered", "scannet", "sens", "redwood", *TRUSTED)
APART = ("mkv", "ros1", "ros2", "mcap", "realsense")
EXACT_COLOURS = ("named", "scenes", "numbers", "tum", "7scenes", "ros1", "mcap", "realsense",
                 "arkitscenes")  # fmt: skip

"""Small files of points, each in its own layout, written by hand from the formats' pages."""

from pathlib import Path

import imagecodecs
import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.float64]


def ply(path: Path, places: Places, form: str = "binary_little_endian") -> Path:
    """With colours and a second element behind the vertices, as meshes have."""
    order = ">" if form == "binary_big_endian" else "<"
    head = [
        "ply", f"format {form} 1.0", "comment a test", f"element vertex {len(places)}",
        "property float x", "property float y", "property float z", "property uchar red",
        "element face 0", "property list uchar int vertex_indices", "end_header", "",
    ]  # fmt: skip
    rows = np.zeros(
        len(places), [("x", f"{order}f4"), ("y", f"{order}f4"), ("z", f"{order}f4"), ("r", "u1")]
    )
    rows["x"], rows["y"], rows["z"] = places.T
    body = rows.tobytes()
    if form == "ascii":
        body = "".join(f"{x:.6f} {y:.6f} {z:.6f} 7\n" for x, y, z in places).encode()
    path.write_bytes("\n".join(head).encode() + body)
    return path


def pcd(path: Path, places: Places, data: str = "binary") -> Path:
    """With an intensity and three bytes of padding, as lidar drivers write."""
    rows = np.zeros(
        len(places), [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("i", "<f4"), ("pad", "u1", 3)]
    )
    rows["x"], rows["y"], rows["z"] = places.T
    head = (
        "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z intensity _\nSIZE 4 4 4 4 1\nTYPE F F F F U\n"
        f"COUNT 1 1 1 1 3\nWIDTH {len(places)}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\n"
        f"POINTS {len(places)}\nDATA {data}\n"
    )
    body = rows.tobytes()
    if data == "ascii":
        body = "".join(f"{x:.6f} {y:.6f} {z:.6f} 0 0 0 0\n" for x, y, z in places).encode()
    if data == "binary_compressed":
        loose = b"".join(rows[name].tobytes() for name in rows.dtype.names or ())
        packed = imagecodecs.lzf_encode(loose)
        body = np.array([len(packed), len(loose)], "<u4").tobytes() + packed
    path.write_bytes(head.encode() + body)
    return path


def csv(path: Path, places: Places, head: str = "time,x,y,z\n") -> Path:
    rows = "".join(f"0.5,{x:.6f},{y:.6f},{z:.6f}\n" for x, y, z in places)
    path.write_text(head + rows)
    return path


def colmap_text(path: Path, places: Places) -> Path:
    rows = (f"{n} {x:.6f} {y:.6f} {z:.6f} 9 9 9 0.5 1 {n}\n" for n, (x, y, z) in enumerate(places))
    path.write_text("# 3D point list\n" + "".join(rows))
    return path


def colmap_binary(path: Path, places: Places) -> Path:
    content = np.array([len(places)], "<u8").tobytes()
    for number, place in enumerate(places):
        content += np.array([number], "<u8").tobytes() + place.astype("<f8").tobytes() + b"\7" * 3
        content += np.array([0.5], "<f8").tobytes() + np.array([2], "<u8").tobytes() + b"\0" * 16
    path.write_bytes(content)
    return path


POINT_FILES = {
    "ply": lambda folder, places: ply(folder / "p.ply", places),
    "ply ascii": lambda folder, places: ply(folder / "p.ply", places, "ascii"),
    "ply big endian": lambda folder, places: ply(folder / "p.ply", places, "binary_big_endian"),
    "pcd": lambda folder, places: pcd(folder / "p.pcd", places),
    "pcd ascii": lambda folder, places: pcd(folder / "p.pcd", places, "ascii"),
    "pcd compressed": lambda folder, places: pcd(folder / "p.pcd", places, "binary_compressed"),
    "csv": lambda folder, places: csv(folder / "p.csv", places),
    "colmap text": lambda folder, places: colmap_text(folder / "points3D.txt", places),
    "colmap binary": lambda folder, places: colmap_binary(folder / "points3D.bin", places),
}

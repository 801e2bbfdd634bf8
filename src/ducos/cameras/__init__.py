"""Cameras and space: intrinsics, poses, registration, point clouds, and what flying pixels are.

Numbers and files enter, never a network.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.cameras.calibration import (
        as_camera,
        as_extrinsics,
        checked_camera,
        read_camera,
        read_extrinsics,
    )
    from ducos.cameras.cloud import (
        Cloud,
        Mesh,
        flying_pixels,
        flying_share,
        mesh,
        orbit,
        point_cloud,
        render,
        write_glb,
        write_ply,
    )
    from ducos.cameras.intrinsics import Camera, Extrinsics
    from ducos.cameras.outputs import check_cloud_output, check_mesh_output
    from ducos.cameras.registration import register, registered
else:
    __getattr__, __dir__, __all__ = doors(__name__)

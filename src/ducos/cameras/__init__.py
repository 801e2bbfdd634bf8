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
    from ducos.cameras.camera_files import ENDINGS
    from ducos.cameras.cloud import (
        Cloud,
        Mesh,
        mesh,
        orbit,
        point_cloud,
        render,
        write_glb,
        write_ply,
    )
    from ducos.cameras.flying import (
        CLOSE,
        EDGE,
        RADIUS,
        flying_at_edges,
        flying_pixels,
        flying_share,
        foretold,
        off_both,
        surfaces,
    )
    from ducos.cameras.intrinsics import Camera, Extrinsics
    from ducos.cameras.outputs import check_cloud_output, check_mesh_output
    from ducos.cameras.projection import points_as_map
    from ducos.cameras.registration import register, registered
else:
    __getattr__, __dir__, __all__ = doors(__name__)

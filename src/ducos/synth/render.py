"""A scene description into Blender, and two pictures out of it: light and depth.

Colour: Cycles on the CPU, 2 samples a pixel, the built-in denoiser, ambient occlusion instead of a
third bounce. Depth: a second pass with one sample through the exact centre of each pixel, so that
every value is the planar distance of one surface and no edge is a blend of two.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
from numpy.typing import NDArray

from ducos.synth.blender import blender
from ducos.synth.camera import Camera, Caster, Rays
from ducos.synth.materials import Material
from ducos.synth.mesh import Mesh
from ducos.synth.nodes import METRIC_LAYER, PICTURE_LAYER
from ducos.synth.placement import Pose
from ducos.synth.scene import Light, Scene, Sky
from ducos.synth.shaders import build_material

SAMPLES = 2
SMOOTH_BELOW = np.radians(38)  # edges flatter than this are shaded round
FARTHEST = 60.0  # metres; beyond lies the sky

Size = tuple[int, int]


class Renderer:
    """One scene loaded into Blender, rendered by one thread. Blender holds one at a time."""

    def __init__(self, scene: Scene, size: Size) -> None:
        self.bpy = blender()
        self.size = size
        self.bpy.ops.wm.read_factory_settings(use_empty=True)
        self.scene = self.bpy.context.scene
        self._materials: dict[int, Any] = {}
        for thing in scene.things:
            item = self._object(thing.name, self._mesh(thing.mesh), thing.pose)
            if thing.outdoor:
                item.visible_diffuse = item.visible_shadow = False
        for light in scene.lights:
            self._light(light)
        self._sky(scene.sky)
        self.camera = self._object("camera", self.bpy.data.cameras.new("camera"), np.eye(4))
        self.camera.data.sensor_fit = "HORIZONTAL"
        self.camera.data.clip_start, self.camera.data.clip_end = 0.01, 200.0
        self.scene.camera = self.camera
        self._configure()
        self.bpy.context.view_layer.update()

    # Building -------------------------------------------------------------------------------

    def _object(self, name: str, data: Any, pose: Pose) -> Any:
        item = self.bpy.data.objects.new(name, data)
        item.matrix_world = _matrix(pose)
        self.scene.collection.objects.link(item)
        return item

    def _mesh(self, mesh: Mesh) -> Any:
        built = self.bpy.data.meshes.new("mesh")
        built.vertices.add(len(mesh.vertices))
        built.vertices.foreach_set("co", mesh.vertices.astype(np.float32).ravel())
        built.loops.add(len(mesh.corners))
        built.loops.foreach_set("vertex_index", mesh.corners.astype(np.int32))
        built.polygons.add(len(mesh.face_sizes))
        starts = np.cumsum(mesh.face_sizes) - mesh.face_sizes
        built.polygons.foreach_set("loop_start", starts.astype(np.int32))
        for material in mesh.materials:
            built.materials.append(self._material(material))
        built.polygons.foreach_set("material_index", mesh.slots.astype(np.int32))
        for name, values in ((PICTURE_LAYER, mesh.uv), (METRIC_LAYER, mesh.metric)):
            layer = built.uv_layers.new(name=name)
            layer.data.foreach_set("uv", values.astype(np.float32).ravel())
        built.update(calc_edges=True)
        built.validate()
        built.shade_smooth()
        built.set_sharp_from_angle(angle=SMOOTH_BELOW)
        return built

    def _material(self, material: Material) -> Any:
        """Built once per recipe; recipes are kept alive by the meshes, so their ids are unique."""
        if id(material) not in self._materials:
            self._materials[id(material)] = build_material(material)
        return self._materials[id(material)]

    def _light(self, light: Light) -> None:
        lamp = self.bpy.data.lights.new("light", light.kind)
        lamp.energy, lamp.color = light.power, light.colour
        if light.kind == "AREA":
            lamp.shape, (lamp.size, lamp.size_y) = "RECTANGLE", light.size
        elif light.kind == "POINT":
            lamp.shadow_soft_size = light.size[0]
        else:
            lamp.angle = 0.01
        self._object("light", lamp, light.pose).visible_camera = False

    def _sky(self, sky: Sky) -> None:
        """A plain colour lights the room; an HDRI is only looked at.

        Sampling a bright HDRI through small windows would double the cost and the noise.
        """
        world = self.bpy.data.worlds.new("sky")
        self.scene.world = world
        nodes, links = world.node_tree.nodes, world.node_tree.links
        background = nodes["Background"]
        background.inputs["Color"].default_value = (*sky.colour, 1.0)
        background.inputs["Strength"].default_value = sky.strength
        if sky.hdri is not None:
            image = nodes.new("ShaderNodeTexEnvironment")
            image.image = self.bpy.data.images.load(str(sky.hdri), check_existing=True)
            mapping = nodes.new("ShaderNodeMapping")
            mapping.inputs["Rotation"].default_value = (0.0, 0.0, sky.turn)
            links.new(nodes.new("ShaderNodeTexCoord").outputs["Generated"], mapping.inputs[0])
            links.new(mapping.outputs[0], image.inputs[0])
            path = nodes.new("ShaderNodeLightPath")
            seen = nodes.new("ShaderNodeMath")
            seen.operation = "MAXIMUM"
            links.new(path.outputs["Is Camera Ray"], seen.inputs[0])
            links.new(path.outputs["Is Glossy Ray"], seen.inputs[1])
            mix = nodes.new("ShaderNodeMix")
            mix.data_type = "RGBA"
            links.new(seen.outputs[0], mix.inputs[0])
            mix.inputs[6].default_value = (*sky.colour, 1.0)
            links.new(image.outputs[0], mix.inputs[7])
            links.new(mix.outputs[2], background.inputs["Color"])
        world.cycles.sampling_method = "NONE"
        world.light_settings.distance = 3.0
        world.light_settings.ao_factor = 0.6

    def _configure(self) -> None:
        render, cycles = self.scene.render, self.scene.cycles
        render.engine = "CYCLES"
        render.resolution_y, render.resolution_x = self.size
        render.resolution_percentage = 100
        render.threads_mode, render.threads = "FIXED", 1
        render.use_persistent_data = True
        cycles.device = "CPU"
        cycles.use_adaptive_sampling = False
        cycles.diffuse_bounces = cycles.glossy_bounces = 2
        cycles.transmission_bounces, cycles.transparent_max_bounces = 3, 6
        cycles.caustics_reflective = cycles.caustics_refractive = False
        cycles.sample_clamp_indirect = 4.0
        cycles.blur_glossy = 1.0
        cycles.use_light_tree = False
        cycles.use_fast_gi = True
        cycles.ao_bounces = cycles.ao_bounces_render = 1
        cycles.denoiser = "OPENIMAGEDENOISE"
        cycles.denoising_input_passes = "RGB_ALBEDO_NORMAL"
        cycles.denoising_prefilter = "FAST"
        cycles.denoising_quality = "BALANCED"
        self.scene.view_layers[0].use_pass_z = True
        settings = render.image_settings
        settings.media_type = "MULTI_LAYER_IMAGE"
        settings.file_format = "OPEN_EXR_MULTILAYER"
        settings.color_depth, settings.exr_codec = "32", "NONE"

    # Looking --------------------------------------------------------------------------------

    def caster(self) -> Caster:
        """Casts rays against the loaded scene."""
        graph = self.bpy.context.evaluated_depsgraph_get()

        def cast(origin: Rays, directions: Rays) -> tuple[Rays, list[str]]:
            distances, names = np.full(len(directions), np.inf), [""] * len(directions)
            for k, direction in enumerate(directions):
                hit, place, _, _, item, _ = self.scene.ray_cast(
                    graph, origin.tolist(), direction.tolist()
                )
                if hit:
                    distances[k] = np.linalg.norm(np.array(place) - origin)
                    names[k] = item.name
            return distances, names

        return cast

    def light(self, camera: Camera, seed: int) -> NDArray[np.float32]:
        """(H, W, 3) linear radiance, denoised."""
        cycles = self.scene.cycles
        cycles.samples, cycles.use_denoising, cycles.max_bounces = SAMPLES, True, 2
        cycles.pixel_filter_type, cycles.filter_width = "BLACKMAN_HARRIS", 1.5
        cycles.seed = seed
        layers = self._shoot(camera)
        return np.stack([_channel(layers, f"Combined.{c}") for c in "RGB"], -1)

    def depth(self, camera: Camera) -> NDArray[np.float32]:
        """(H, W) planar depth in metres of the first surface; 0 where there is none."""
        cycles = self.scene.cycles
        cycles.samples, cycles.use_denoising, cycles.max_bounces = 1, False, 0
        cycles.pixel_filter_type, cycles.filter_width = "BOX", 0.01
        cycles.seed = 0
        layers = self._shoot(camera)
        depth = _channel(
            layers, "Depth.V" if any(k.endswith("Depth.V") for k in layers) else "Depth.Z"
        )
        return np.where(np.isfinite(depth) & (depth < FARTHEST), depth, np.float32(0))

    def _shoot(self, camera: Camera) -> dict[str, NDArray[np.float32]]:
        self.camera.matrix_world = _matrix(camera.pose)
        self.camera.data.angle = camera.fov
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "shot.exr"
            self.scene.render.filepath = str(file)
            self.bpy.ops.render.render(write_still=True)
            layers: dict[str, NDArray[np.float32]] = {}
            with OpenEXR.File(str(file), separate_channels=True) as stored:
                for part in stored.parts:
                    for name, channel in part.channels.items():
                        layers[name] = np.array(channel.pixels, np.float32)
        return layers


def _channel(layers: dict[str, NDArray[np.float32]], ending: str) -> NDArray[np.float32]:
    return next(values for name, values in layers.items() if name.endswith(ending))


def _matrix(pose: Pose) -> Any:
    """Blender reads a plain nested list by columns; its own Matrix reads it by rows."""
    from mathutils import Matrix

    return Matrix(pose.tolist())

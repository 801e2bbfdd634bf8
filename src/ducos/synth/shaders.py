"""Materials as Cycles node trees: one function per pattern."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ducos.synth.blender import blender
from ducos.synth.materials import Image, Material
from ducos.synth.nodes import PICTURE_LAYER, Graph

# Each pattern returns the colour socket (or constant) and the socket of its relief, or None.
Paint = tuple[Any, Any]


def _plain(graph: Graph) -> Paint:
    return graph.material.colours[0], None


def _mottled(graph: Graph) -> Paint:
    spots = graph.noise(graph.place(), 1.0, 5.0)
    base, stain = graph.material.colours
    return graph.mix(spots, base, stain), spots


def _grain(graph: Graph, vector: Any) -> Any:
    """Wood grain: wide bands warped by slow noise, over fine streaks."""
    bands = graph.node(
        "TexWave", Vector=vector, Scale=0.35, Distortion=7.0, Detail=2.0, Detail_Scale=1.2
    )
    bands.bands_direction = "Y"
    streaks = graph.noise(vector, 12.0, 3.0)
    return graph.math("MULTIPLY_ADD", streaks, 0.65, graph.math("MULTIPLY", bands.outputs[1], 0.35))


def _wood(graph: Graph) -> Paint:
    grain = _grain(graph, graph.place(stretch=9.0))
    dark, light = graph.material.colours
    return graph.mix(graph.steepen(grain, 0.15, 0.75), dark, light), grain


def _planks(graph: Graph) -> Paint:
    boards = graph.bricks(graph.place(), 7.0, 0.37, 0.015)
    grain = graph.steepen(_grain(graph, graph.place(stretch=9.0)), 0.1, 0.8)
    shade = graph.mix(grain, (0.72, 0.68, 0.64), (1.0, 1.0, 1.0))
    return graph.mix(1.0, boards.outputs[0], shade, "MULTIPLY"), _raised(graph, boards)


def _raised(graph: Graph, bricks: Any) -> Any:
    return graph.math("SUBTRACT", 1.0, bricks.outputs[1])


def _tiles(graph: Graph) -> Paint:
    joints = graph.bricks(graph.place(), 1.0, 0.0, 0.012)
    cloud = graph.mix(graph.noise(graph.place(), 2.5, 4.0), (0.85, 0.85, 0.85), (1.0, 1.0, 1.0))
    return graph.mix(1.0, joints.outputs[0], cloud, "MULTIPLY"), _raised(graph, joints)


def _bricks(graph: Graph) -> Paint:
    vector = graph.place()
    node = graph.bricks(vector, 1.0, 0.5, 0.04)
    node.inputs["Row Height"].default_value = 0.34
    grit = graph.noise(vector, 14.0, 3.0)
    shade = graph.mix(grit, (0.6, 0.6, 0.6), (1.0, 1.0, 1.0))
    relief = graph.math("MULTIPLY_ADD", grit, 0.3, _raised(graph, node))
    return graph.mix(1.0, node.outputs[0], shade, "MULTIPLY"), relief


def _wave(graph: Graph, direction: str) -> Any:
    node = graph.node("TexWave", Vector=graph.place(), Scale=0.314, Distortion=0.0)
    node.bands_direction = direction
    return node.outputs[1]


def _weave(graph: Graph) -> Paint:
    threads = graph.math("MULTIPLY", _wave(graph, "X"), _wave(graph, "Y"))
    uneven = graph.noise(graph.place(), 0.35, 2.0)
    share = graph.math("MULTIPLY_ADD", threads, 0.6, graph.math("MULTIPLY", uneven, 0.4))
    return graph.between(share), threads


def _stripes(graph: Graph) -> Paint:
    return graph.between(graph.steepen(_wave(graph, "X"), 0.45, 0.55)), None


def _gingham(graph: Graph) -> Paint:
    across = graph.steepen(_wave(graph, "X"), 0.45, 0.55)
    along = graph.steepen(_wave(graph, "Y"), 0.45, 0.55)
    both = graph.math("MULTIPLY", graph.math("ADD", across, along), 0.5)
    return graph.between(both), None


def _checks(graph: Graph) -> Paint:
    first, second = graph.material.colours
    node = graph.node("TexChecker", Vector=graph.place(), Color1=first, Color2=second, Scale=1.0)
    return node.outputs[0], None


def _carpet(graph: Graph) -> Paint:
    tufts = graph.noise(graph.place(), 1.0, 2.0)
    return graph.between(graph.steepen(tufts, 0.3, 0.7)), tufts


def _marble(graph: Graph) -> Paint:
    cloud = graph.noise(graph.place(), 1.2, 6.0, distortion=0.5)
    ridge = graph.math("ABSOLUTE", graph.math("SUBTRACT", cloud, 0.5))
    base, vein = graph.material.colours
    return graph.mix(graph.steepen(ridge, 0.0, 0.05), vein, base), None


def _terrazzo(graph: Graph) -> Paint:
    chips = graph.node("TexVoronoi", Vector=graph.place(), Scale=1.0)
    chips.voronoi_dimensions = "2D"
    tone = graph.node("SeparateColor", Color=chips.outputs[1])
    chip, ground, other = graph.material.colours
    colour = graph.mix(graph.math("GREATER_THAN", tone.outputs[0], 0.5), chip, other)
    return graph.mix(graph.math("GREATER_THAN", chips.outputs[0], 0.4), colour, ground), None


def _leather(graph: Graph) -> Paint:
    cells = graph.node("TexVoronoi", Vector=graph.place(), Scale=1.0)
    cells.voronoi_dimensions = "2D"
    worn = graph.noise(graph.place(), 0.05, 3.0)
    return graph.between(worn), cells.outputs[0]


def _brushed(graph: Graph) -> Paint:
    streaks = graph.noise(graph.place(stretch=20.0), 3.0, 2.0)
    return graph.between(streaks), None


def _image_node(graph: Graph, vector: Any) -> Any:
    node = graph.node("TexImage", Vector=vector)
    assert graph.material.image is not None
    node.image = load_image(graph.material.image)
    return node


def _adjusted(graph: Graph, colour: Any) -> Any:
    hue, saturation, value = graph.material.adjust
    if (hue, saturation, value) == (0.0, 1.0, 1.0):
        return colour
    node = graph.node(
        "HueSaturation", Hue=0.5 + hue, Saturation=saturation, Value=value, Color=colour
    )
    return node.outputs[0]


def _picture(graph: Graph) -> Paint:
    layer = graph.node("UVMap")
    layer.uv_map = PICTURE_LAYER
    node = _image_node(graph, layer.outputs[0])
    return _adjusted(graph, node.outputs[0]), None


def _tiled(graph: Graph) -> Paint:
    node = _image_node(graph, graph.place())
    return _adjusted(graph, node.outputs[0]), node.outputs[0]


PATTERNS: dict[str, Callable[[Graph], Paint]] = {
    "plain": _plain,
    "mottled": _mottled,
    "wood": _wood,
    "planks": _planks,
    "tiles": _tiles,
    "bricks": _bricks,
    "weave": _weave,
    "stripes": _stripes,
    "gingham": _gingham,
    "checks": _checks,
    "carpet": _carpet,
    "marble": _marble,
    "terrazzo": _terrazzo,
    "leather": _leather,
    "brushed": _brushed,
    "picture": _picture,
    "tiled": _tiled,
}


def load_image(image: Image) -> Any:
    """A Blender image from a file, or from (H, W, 3) bytes."""
    data = blender().data
    if isinstance(image, Path):
        return data.images.load(str(image), check_existing=True)
    height, width = image.shape[:2]
    pixels = np.ones((height, width, 4), np.float32)
    pixels[..., :3] = image[::-1] / np.float32(255)  # Blender counts rows from below
    loaded = data.images.new("print", width, height)
    loaded.pixels.foreach_set(pixels.ravel())
    loaded.update()
    return loaded


def build_material(material: Material) -> Any:
    """The Blender material of this recipe."""
    built = blender().data.materials.new(material.pattern)
    graph = Graph(built.node_tree, material)
    surface = built.node_tree.nodes["Principled BSDF"]
    colour, relief = PATTERNS[material.pattern](graph)
    surface.inputs["Roughness"].default_value = material.roughness
    surface.inputs["Metallic"].default_value = material.metallic
    surface.inputs["Specular IOR Level"].default_value = 0.35
    if material.emission > 0:
        graph.feed(surface.inputs["Base Color"], (0.0, 0.0, 0.0))
        graph.feed(surface.inputs["Emission Color"], colour)
        surface.inputs["Emission Strength"].default_value = material.emission
        built.cycles.emission_sampling = "NONE"  # seen, but not a lamp: lamps are cheaper
    else:
        graph.feed(surface.inputs["Base Color"], colour)
    if relief is not None and material.bump > 0:
        bump = graph.node("Bump", Strength=1.0, Distance=material.bump, Height=relief)
        graph.feed(surface.inputs["Normal"], bump.outputs[0])
    if material.cutout:
        # Alpha is cut at one half: a blend would make the depth of a leaf's rim random.
        texture = next(node for node in built.node_tree.nodes if node.type == "TEX_IMAGE")
        graph.feed(surface.inputs["Alpha"], graph.math("GREATER_THAN", texture.outputs[1], 0.5))
    return built

"""Short-hand for building Blender node trees."""

from typing import Any

from ducos.synth.materials import Material

METRIC_LAYER = "metric"


PICTURE_LAYER = "picture"


class Graph:
    """Short-hand for building a node tree: sockets go in as arguments, constants too."""

    def __init__(self, tree: Any, material: Material) -> None:
        self.tree = tree
        self.material = material

    def node(self, kind: str, **inputs: Any) -> Any:
        """A node of type ShaderNode<kind>; inputs by name, spaces written as underscores."""
        node = self.tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            self.feed(node.inputs[name.replace("_", " ")], value)
        return node

    def feed(self, socket: Any, value: Any) -> None:
        """Link a socket to another one, or set it to a constant."""
        if hasattr(value, "is_output"):
            self.tree.links.new(value, socket)
        elif isinstance(value, tuple) and len(value) == 3 and socket.type == "RGBA":
            socket.default_value = (*value, 1.0)
        else:
            socket.default_value = value

    def place(self, stretch: float = 1.0) -> Any:
        """Coordinates in units of the pattern's scale; stretch > 1 draws it out along u."""
        layer = self.node("UVMap")
        layer.uv_map = METRIC_LAYER
        size = 1.0 / self.material.scale
        mapping = self.node(
            "Mapping",
            Vector=layer.outputs[0],
            Location=(*self.material.shift, 0.0),
            Rotation=(0.0, 0.0, self.material.turn),
            Scale=(size / stretch, size, 1.0),
        )
        return mapping.outputs[0]

    def noise(self, vector: Any, scale: float, detail: float = 3.0, distortion: float = 0.0) -> Any:
        texture = self.node(
            "TexNoise", Vector=vector, Scale=scale, Detail=detail, Distortion=distortion
        )
        texture.noise_dimensions = "2D"
        return texture.outputs[0]

    def mix(self, share: Any, low: Any, high: Any, blend: str = "MIX") -> Any:
        """Colour between low (share 0) and high (share 1)."""
        node = self.node("Mix")
        node.data_type, node.blend_type = "RGBA", blend
        self.feed(node.inputs[0], share)
        self.feed(node.inputs[6], low)
        self.feed(node.inputs[7], high)
        return node.outputs[2]

    def between(self, share: Any) -> Any:
        """Colour between the material's first (share 0) and second (share 1)."""
        return self.mix(share, self.material.colours[0], self.material.colours[1])

    def math(self, operation: str, *values: Any) -> Any:
        node = self.node("Math")
        node.operation = operation
        for socket, value in zip(node.inputs, values):
            self.feed(socket, value)
        return node.outputs[0]

    def steepen(self, value: Any, low: float, high: float) -> Any:
        """Stretch [low, high] to [0, 1], clamped."""
        node = self.node("MapRange")
        for socket, number in zip(node.inputs, (value, low, high, 0.0, 1.0)):
            self.feed(socket, number)
        return node.outputs[0]

    def bricks(self, vector: Any, width: float, offset: float, joint: float) -> Any:
        first, second, mortar = self.material.colours
        node = self.node(
            "TexBrick",
            Vector=vector,
            Color1=first,
            Color2=second,
            Mortar=mortar,
            Scale=1.0,
            Mortar_Size=joint,
            Mortar_Smooth=0.1,
            Brick_Width=width,
            Row_Height=1.0,
        )
        node.offset = offset
        return node

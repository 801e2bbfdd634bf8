"""Why a model cannot be traced, in words: what torch says of it names an operator, not a reason."""

from ducos.errors import one_line

SIZES = "which follow from the size of the image; the tracer cannot follow numbers, only tensors"
REASONS = {
    "upsample_bicubic2d() received": f"it resizes position embeddings by factors {SIZES}",
    "define __round__": f"it rounds sizes {SIZES}",
    "must be Tensor, not int": f"it compares sizes {SIZES}",
    "Can't call numpy() on Tensor": "it computes with numpy, which no graph can hold",
    "can not be treated as": "it computes with OpenCV, which no graph can hold",
    "cv2": "it computes with OpenCV, which no graph can hold",
    "aten::linalg_": "it solves small systems of equations by an operator that ONNX does not have",
    "aten::fft": "it computes a Fourier transform, for which the tracer has no operator",
    "kernel of unknown shape": "it convolves with a kernel whose size the tracer does not know",
    "could not be broadcast": "it computes with numpy, of which the graph keeps what it was once",
    "ShapeInferenceError": "the graph keeps sizes of the trace",
    "scipy": "it computes with scipy, which no graph can hold",
}
"""A part of what torch or a library says -> what it means."""


def reason(problem: Exception) -> str:
    """One sentence; what was said itself, if nothing is known about it."""
    said = f"{type(problem).__module__}: {problem}"
    return next((why for part, why in REASONS.items() if part in said), one_line(problem))

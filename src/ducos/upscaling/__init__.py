"""The one way in: files, arrays or tensors become a sharp metric depth map.

Units, masks, registration, shift, normalisation and tiling happen here and nowhere else.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.upscaling.catalogue import model_rows, prompt_rows
    from ducos.upscaling.counting import count_all, gmac, parameter_count
    from ducos.upscaling.loading import device_of, load
    from ducos.upscaling.options import FILES, OPTIONS, Options, memory_limit
    from ducos.upscaling.prediction import doubted, predict
    from ducos.upscaling.result import SOURCES, Result
    from ducos.upscaling.runtimes import chosen_runtime
    from ducos.upscaling.upscaler import Upscaler, documented, super_resolve
    from ducos.upscaling.views import cloud_picture
    from ducos.upscaling.weights import WEIGHTS, default_model, find_weights, version_of
else:
    __getattr__, __dir__, __all__ = doors(__name__)

"""The one way in: files, arrays or tensors become a sharp metric depth map.

Units, masks, registration, shift, normalisation and tiling happen here and nowhere else.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.upscaling.catalogue import gmac, model_rows, parameter_count, prompt_rows
    from ducos.upscaling.upscaler import (
        SOURCES,
        WEIGHTS,
        Result,
        default_model,
        load,
        memory_limit,
        predict,
        resolve,
        super_resolve,
    )
    from ducos.upscaling.views import cloud_picture
else:
    __getattr__, __dir__, __all__ = doors(__name__)

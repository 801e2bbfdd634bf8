"""Foundation models as prompts: an image in, four feature maps and a relative depth out.

Colour images enter; a prompt never sees a depth map.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.prompts.depth_anything_v2 import VARIANTS
    from ducos.prompts.dpt import DPTHead
    from ducos.prompts.image import imagenet, size_near, to_image_size, to_working_size
    from ducos.prompts.licence import check_licence
    from ducos.prompts.prompt import Prompt, PromptModel, is_frozen, run_prompt, set_tuning
    from ducos.prompts.table import PROMPTS, Entry, create_prompt
    from ducos.prompts.tiny import STRIDE, TinyPrompt, normalised
    from ducos.prompts.transformers_layout import is_transformers_layout, to_authors_keys
    from ducos.prompts.vit import PATCH, SHAPES, VisionTransformer
    from ducos.prompts.weights import (
        State,
        load_strictly,
        only_known_repositories,
        read_weights,
    )
else:
    __getattr__, __dir__, __all__ = doors(__name__)

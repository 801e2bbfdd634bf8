"""Pictures for people: palettes, crops worth a look, previews and charts.

Arrays enter; nothing here knows models, datasets or training.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.pictures.charts import Bar, Curve, Panel, Point, bar_panels, curve_panels, scatter
    from ducos.pictures.palette import check_image_output, colourise, write_image
    from ducos.pictures.preview import Picture, captioned, comparison, side_by_side
else:
    __getattr__, __dir__, __all__ = doors(__name__)

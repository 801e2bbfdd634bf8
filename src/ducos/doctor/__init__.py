"""What is wrong with a pair of colour image and depth map, before anybody blames the model.

Whatever `super_resolve` takes enters; findings leave, each with what to do.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.doctor.cheap import cheap_warnings
    from ducos.doctor.colour import check_shift
    from ducos.doctor.correction import common_shift, shift_to_undo
    from ducos.doctor.direction import check_direction
    from ducos.doctor.examination import examine, look_at, place
    from ducos.doctor.findings import SEVERITIES, Finding, Report, as_json, as_lines, worst_of
    from ducos.doctor.picture import report_picture
    from ducos.doctor.pixels import noise_of
    from ducos.doctor.recording import RecordingReport, examine_recording
    from ducos.doctor.refinement import View
    from ducos.doctor.registration import common_misalignment, misalignment
    from ducos.doctor.rig import rig_shift, spread_out
    from ducos.doctor.shift_option import Correction, parse_shift
else:
    __getattr__, __dir__, __all__ = doors(__name__)

"""Many pairs: a folder or a list in, a folder of sharp depth maps out, stopped and resumed at will.

    from ducos.batch import find_pairs, run_batch
    summary = run_batch(find_pairs("recording").pairs, "sharp", workers=4)
    summary.made, summary.failures

A frame's bytes are those of `ducos upscale` with one thread (OMP_NUM_THREADS=1).
"""

from ducos.batch.frame import Options
from ducos.batch.recording import RecordingReport, examine_recording
from ducos.batch.run import Summary, run_batch
from ducos.files.pairs import Failure, Found, FramePair, find_pairs

__all__ = [
    "Failure",
    "Found",
    "FramePair",
    "Options",
    "RecordingReport",
    "Summary",
    "examine_recording",
    "find_pairs",
    "run_batch",
]

"""run_batch: what is to do, workers that do it, and an account of it at the end."""

import csv
import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from ducos import __version__
from ducos.batch.journal import (
    FAILURES,
    JOURNAL,
    SET_ASIDE,
    UNFINISHED,
    Journal,
    Record,
    claimed,
    digest_of,
    stamps_of,
)
from ducos.batch.ray_engine import Cluster, ray_answers
from ducos.batch.storage import Places, Returns, at_hand, used_often
from ducos.batch.team import local_answers
from ducos.batch.worker import Answer, Job
from ducos.captures import FrameRef, read_frame
from ducos.doctor import Correction
from ducos.errors import InputError
from ducos.files import (
    PREVIEWS,
    Failure,
    FramePair,
    atomic_write,
    check_output_folder,
    check_replaced,
    inputs_of,
    on_disk,
    picture_size,
    result_names,
)
from ducos.upscaling import Options, find_weights

CLOUDS = "cloud"
FRAME_SECONDS = 600.0
"""What a frame may take by default."""


@dataclass
class Summary:
    """What became of a batch; also its state on the way.

    total: frames asked for. made, kept: written now, and found whole from an earlier run.
    remade: frames of an earlier run that do not count, by why: other "settings", other "inputs", or
    "damaged", that is missing or changed since. units: frames by what their numbers were taken for.
    shift: by how much all depth maps were moved back, in whole pixels of the images.
    """

    out: Path | str
    total: int
    made: int = 0
    kept: int = 0
    remade: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    units: dict[str, int] = field(default_factory=dict)
    shift: Correction = field(default_factory=Correction)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def finished(self) -> int:
        """Frames that need nothing more, for better or worse."""
        return self.made + self.kept + len(self.failures)

    def facts(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "out": str(self.out)}


@dataclass(frozen=True)
class Frame:
    """A pair to make. files: for each result's name, where it is made before it takes it."""

    job: Job
    files: dict[str, Path]
    record: Record


def run_batch(
    pairs: Sequence[FramePair],
    out: str | Path,
    *,
    options: Options | None = None,
    suffix: str = ".png",
    preview: bool = False,
    cloud: bool = False,
    workers: int = 1,
    cluster: Cluster | None = None,
    unmatched: Sequence[Failure] = (),
    overwrite: bool = False,
    timeout: float = FRAME_SECONDS,
    source: str | Path | None = None,
    places: Places | None = None,
    progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Super-resolve pairs into a folder; what an earlier run finished there is kept.

    Args:
        out: folder for the results, failures.csv and journal.jsonl; made if it is not there.
        suffix: of results whose pair does not name one: .png, .exr, .npz, ...
        preview: also write preview/NAME.png, an image that shows RGB | input | result.
        cloud: also write cloud/NAME.ply, the result in space; needs the colour camera, from the
            options or from the recording.
        workers: processes, one thread each.
        cluster: make the frames with Ray instead of processes of this machine's own.
        unmatched: failures from before, such as `Found.unmatched`, to be listed with the rest.
        overwrite: replace files of the folder that are not results of ours; never inputs.
        timeout: seconds that one frame may take, or the start of a worker; of a cluster, the
            longest time without an answer from any worker.
        source: the CSV file that lists the pairs, if there is one: it is an input, too.
        places: where recording and results really are, if not here: see `storage`.
        progress: called at the start and after each frame.

    One bad pair does not stop the rest: it is listed in the summary and in failures.csv. An
    InputError means that the batch as a whole makes no sense or cannot go on.
    """
    started = time.monotonic()
    options = options or Options()
    folder = Path(out)
    names = result_names(pairs, suffix)
    check(pairs, workers, timeout)
    options.check_depth(pairs[0].depth)
    inputs = [*inputs_of(pairs), *options.inputs, *([] if source is None else [Path(source)])]
    check_output_folder(folder)
    check_own_files(folder, inputs)
    from ducos.doctor import rig_shift, spread_out

    if places is not None:
        places = replace(places, shared=used_often(pairs))
    with at_hand(places, inputs_of(spread_out(pairs))):
        if cloud:
            check_clouds(pairs, names, options)
        # What nothing depends on is looked at beside the work, unless files come and go there.
        beside = options.shift == "check" and places is None
        shift, doubts = Correction(), list[str]()
        if not beside:
            shift, doubts = rig_shift(pairs, options.shift, options.unit, options.scale)
    looked = in_thread(rig_shift, pairs, "check", options.unit, options.scale) if beside else None
    options = replace(options, shift=(shift.x, shift.y))
    settings = settings_of(options)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder} cannot be the folder of results: {problem}") from None
    with claimed(folder), workshop_in(folder) as workshop:
        returns = None
        if places is not None and places.results is not None:
            returns = Returns(places.results, folder)
        journal = Journal(folder, None if returns is None else returns.lengths)
        summary = Summary(
            folder if returns is None else returns.store.address,
            len(pairs) + len(unmatched),
            failures=list(unmatched),
        )
        if journal.damaged:
            summary.warnings.append(
                f"{len(journal.damaged)} lines of {journal.path} were damaged and are now in "
                f"{SET_ASIDE}; their frames are made again"
            )
        frames = [
            planned(pair, name, workshop / str(number), settings, preview, cloud, places)
            for number, (pair, name) in enumerate(zip(pairs, names))
        ]
        targets = [folder / name for frame in frames for name in frame.files]
        known = {folder / name for record in journal.records.values() for name in record.files}
        check_replaced(targets, inputs, overwrite=True)
        check_replaced([path for path in targets if path not in known], (), overwrite=overwrite)
        if returns is not None and not overwrite:
            returns.check_replaced(
                name for frame in frames for name in frame.files if folder / name not in known
            )
        (folder / FAILURES).unlink(missing_ok=True)  # it tells of the last run only
        to_do = without_done(frames, journal, summary)
        if progress:
            progress(summary)
        ordered = in_buckets(to_do)
        engine = (
            local_answers(ordered, options, workers, timeout)
            if cluster is None
            else ray_answers(ordered, options, workers, cluster, timeout)
        )
        with closing(engine) as finished:
            for frame, answer in finished:
                trouble = answer.error or publish(frame, answer, journal)
                if trouble:
                    words = (frame.job.rgb, frame.job.depth, trouble)
                    told = words if places is None else map(places.told, words)
                    summary.failures.append(Failure(frame.record.out, *told))
                else:
                    summary.made += 1
                    if returns is not None:
                        returns.keep()
                if progress:
                    progress(summary)
        if looked is not None:
            shift, doubts = looked.result()
        summary.shift = shift
        summary.warnings += [*doubts, *([shift.note] if shift.warns else [])]
        account_units(summary, journal, names, options)
        if summary.failures:
            write_failures(folder / FAILURES, summary.failures)
        if returns is not None:
            returns.keep(now=True)
    summary.seconds = time.monotonic() - started
    return summary


# Before the work


def check(pairs: Sequence[FramePair], workers: int, timeout: float) -> None:
    """Refuse what would go wrong for every pair."""
    if not pairs:
        raise InputError("got no pairs, expected at least one")
    if workers < 1:
        raise InputError(f"got {workers} workers, expected at least 1")
    if not 0 < timeout < threading.TIMEOUT_MAX:
        raise InputError(f"a timeout is a number of seconds above 0, got {timeout:g}")


def check_own_files(folder: Path, inputs: list[Path]) -> None:
    """Refuse a folder where our own lists would take the place of an input or of another list."""
    for name in (JOURNAL, FAILURES):
        path = folder / name
        check_replaced([path], inputs, overwrite=True)
        if path.is_file() and path.stat().st_size and not _is_list_of_ours(path):
            raise InputError(
                f"{path} exists, is not of an earlier batch and would be replaced; choose "
                "another folder for -o"
            )


def _is_list_of_ours(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(100_000)
    if path.name == FAILURES:
        return start.startswith(b"name,rgb,depth,reason")
    return b'{"out": ' in start or b"\0" in start  # a power cut may leave zeros


def check_clouds(pairs: Sequence[FramePair], names: list[str], options: Options) -> None:
    """Refuse clouds without a camera, and results whose names clouds would take."""
    taken = next((name for name in names if PurePosixPath(name).parts[0] == CLOUDS), None)
    if taken:
        raise InputError(f"got the result {taken!r}, but {CLOUDS}/ is for point clouds")
    if options.unit == "relative":
        raise InputError("a cloud needs metres; got --unit relative: pass another, or --scale")
    if options.rgb_intrinsics is not None or options.field_of_view is not None:
        return
    camera = None
    if isinstance(pairs[0], FrameRef):
        camera = read_frame(pairs[0], options.unit, options.scale).camera
    if camera is None:
        raise InputError(
            "clouds need the colour camera, and this recording states none: pass --rgb-intrinsics, "
            "or --field-of-view DEGREES"
        )


def settings_of(options: Options) -> dict[str, Any]:
    """All that decides a result's bytes beside its inputs; refuses a model that cannot be used."""
    from ducos.upscaling import Upscaler, chosen_runtime  # mistakes need not wait for libraries

    Upscaler(**options.plain())
    name = str(options.chosen_model)
    weights = find_weights(name)
    digest = None if weights is None else digest_of(weights)
    decided = {"model": name, "weights": digest, "runtime": chosen_runtime(options)}
    if options.foundation is not None and options.foundation.file is not None:
        decided["prompt_weights"] = digest_of(options.foundation.file)
    return {**options.plain(), **decided, "ducos": __version__}


@contextmanager
def workshop_in(folder: Path) -> Iterator[Path]:
    """A folder for files that have no name yet. What a killed run left there goes.

    Each run has its own, so that a killed run's last worker, still busy, cannot meddle.
    """
    place = folder / UNFINISHED
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(exist_ok=True)
    try:
        yield Path(tempfile.mkdtemp(dir=place))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def planned(
    pair: FramePair,
    name: str,
    unnamed: Path,
    settings: dict[str, Any],
    preview: bool,
    cloud: bool,
    places: Places | None = None,
) -> Frame:
    """The job of one pair, and its record as far as it is known before the work."""
    files = {name: unnamed.with_name(unnamed.name + PurePosixPath(name).suffix)}
    picture = None
    if preview:
        picture = unnamed.with_name(unnamed.name + "-preview.png")
        files[str(PurePosixPath(PREVIEWS, name).with_suffix(".png"))] = picture
    points = None
    if cloud:
        points = unnamed.with_name(unnamed.name + "-cloud.ply")
        files[str(PurePosixPath(CLOUDS, name).with_suffix(".ply"))] = points
    place = None
    if isinstance(pair, FrameRef):
        place = {
            "source": str(pair.source), "layout": pair.layout, "key": pair.key, "out": pair.out
        }  # fmt: skip
    job = Job(
        rgb=str(pair.rgb),
        depth=str(pair.depth),
        mask=str(pair.mask) if pair.mask else None,
        confidence=str(pair.confidence) if pair.confidence else None,
        out=str(files[name]),
        preview=str(picture) if picture else None,
        cloud=str(points) if points else None,
        place=place,
        places=None if places is None else places.plain(),
        names={} if places is None else {str(path): name for name, path in files.items()},
    )
    files_in = {"rgb": pair.rgb, "depth": pair.depth, "mask": pair.mask}
    if pair.confidence:
        files_in["confidence"] = pair.confidence
    inputs = stamps_of(files_in)
    return Frame(job, files, Record(name, dict.fromkeys(files, ""), settings, inputs))


def without_done(frames: list[Frame], journal: Journal, summary: Summary) -> list[Frame]:
    """The frames that an earlier run has not finished, or not like this; counts both."""
    to_do = []
    for frame in frames:
        state = journal.state(frame.record)
        if state == "done":
            summary.kept += 1
            continue
        to_do.append(frame)
        if state != "new":
            summary.remade[state] = summary.remade.get(state, 0) + 1
    return to_do


def in_buckets(frames: list[Frame]) -> list[Frame]:
    """Pairs of the same sizes one after another, so that caches for a size serve many.

    The largest come first: if memory does not suffice, that shows early.
    """
    sizes = {frame.record.out: (_size(frame.job.rgb), _size(frame.job.depth)) for frame in frames}
    by_name = sorted(frames, key=lambda frame: frame.record.out)
    return sorted(by_name, key=lambda frame: sizes[frame.record.out], reverse=True)


def _size(path: str) -> tuple[int, int]:
    """Width and height of a picture; of other files the length, which will do."""
    return picture_size(Path(path)) or (os.path.getsize(path) if os.path.exists(path) else 0, 0)


# The work


def in_thread(work: Callable[..., Any], *told: Any) -> Future[Any]:
    """Begin a call that need not come to its end if this process does not."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work(*told))
        except BaseException as problem:
            future.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return future


def publish(frame: Frame, answer: Answer, journal: Journal) -> str | None:
    """Note the frame in the journal, then let its files take their names; returns what failed."""
    record = replace(frame.record, unit=answer.unit, scale=answer.scale)
    try:
        if answer.sent:
            digests = {name: digest for name, (digest, _) in answer.sent.items()}
            lengths = {name: length for name, (_, length) in answer.sent.items()}
            journal.add(replace(record, files=digests, lengths=lengths))
            return None
        digests = {name: digest_of(path) or "" for name, path in frame.files.items()}
        journal.add(replace(record, files=digests))
        for name, path in frame.files.items():
            target = journal.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.copymode(target, path)
            path.replace(target)
            on_disk(target.parent)
    except OSError as problem:
        return f"it cannot be written: {problem}"
    return None


# After the work


def account_units(summary: Summary, journal: Journal, names: list[str], options: Options) -> None:
    """Count what the inputs' numbers were taken for; one camera has one unit, so several warn."""
    failed = {failure.name for failure in summary.failures}
    records = [journal.records[name] for name in names if name not in failed]
    units = Counter(_meaning(record) for record in records)
    summary.units = dict(units.most_common())
    if options.unit == "auto" and options.scale is None and len(units) > 1:
        example = {_meaning(record): record.out for record in reversed(records)}
        counts = [f"{unit} for {n} (such as {example[unit]})" for unit, n in units.most_common()]
        summary.warnings.append(
            f"depth files were taken for different units: {', '.join(counts)}; if that is wrong, "
            "pass --unit or --scale"
        )


def _meaning(record: Record) -> str:
    return f"{record.scale:g} m" if record.unit == "custom" else record.unit


def write_failures(path: Path, failures: list[Failure]) -> None:
    """The list of frames without result, as CSV."""
    with atomic_write(path) as temporary, temporary.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([column.name for column in fields(Failure)])
        rows.writerows(astuple(failure) for failure in failures)

"""What a job gets of the device table: renditions by name, fitted to its pictures, or refused with the reason."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from schemas.errors import BadInputError
from schemas.records import Rendition, VideoFormat
from streams.encoding.levels import faults
from streams.encoding.presets import Preset

MAX_RENDITIONS = 4
"""Of one job: each is encoded by its stitcher, one after the other."""


def planned_renditions(
    names: Sequence[str], size: VideoFormat, gop_frames: int, table: Mapping[str, Preset]
) -> tuple[Rendition, ...]:
    """What a job of that size gets. Key frames are where those of the main encode are, so that players can change over.

    Raises: BadInputError naming the field and the rule: unknown, duplicate, count, enlarged, size, level or tiles.
    """
    if len(names) > MAX_RENDITIONS:
        raise BadInputError(field="renditions", rule="count", message=f"{len(names)} of them, at most {MAX_RENDITIONS}")
    fps = Fraction(size.fps_num, size.fps_den)
    planned: list[Rendition] = []
    for index, name in enumerate(names):
        field = f"renditions[{index}]"
        if name not in table:
            message = f"{name!r:.60} is not one of {', '.join(sorted(table))}"
            raise BadInputError(field=field, rule="unknown_rendition", message=message)
        if name in names[:index]:
            raise BadInputError(field=field, rule="duplicate", message=f"{name} is asked for twice")
        width, height = _fitted(field, name, table[name], size)
        rendition = table[name].rendition(name, width, height, gop_frames)
        for fault in faults(rendition, fps):
            raise BadInputError(field=field, rule=fault.rule, message=f"{name}: {fault.message}")
        planned.append(rendition)
    return tuple(planned)


def _fitted(field: str, name: str, preset: Preset, size: VideoFormat) -> tuple[int, int]:
    """The largest even size of the picture's shape in the device's box, turned as the picture is."""
    box = sorted(preset.size, reverse=size.width >= size.height)
    scale = min(Fraction(box[0], size.width), Fraction(box[1], size.height))
    width, height = (2 * round(side * scale / 2) for side in (size.width, size.height))
    if scale > 1:
        message = f"{name} is {width}x{height}, more than the job's {size.width}x{size.height}: nothing is enlarged"
        raise BadInputError(field=field, rule="enlarged", message=message)
    return width, height

"""What a segment is about, for engines that take one text at a time."""

from schemas.records import Instruction, PlannedShot, SegmentRequested, Transition


def described(instruction: Instruction) -> str:
    """The text of a shot: the prompt, and what was said of the camera apart from it."""
    camera = instruction.camera.replace("_", " ")
    return instruction.text if not camera or camera in instruction.text else f"{instruction.text} Camera: {camera}."


def shown(request: SegmentRequested) -> tuple[PlannedShot, ...]:
    """The shots of which the segment has frames."""
    end = request.start_frame + request.frames
    starts = [*(shot.start_frame for shot in request.shots[1:]), end]
    return tuple(
        shot
        for shot, following in zip(request.shots, starts, strict=True)
        if shot.start_frame < end and following > request.start_frame
    )


def text_of(request: SegmentRequested) -> str:
    """One text for the whole segment: its shots in their order."""
    return " Then: ".join(described(shot.instruction) for shot in shown(request))


def begins_take(request: SegmentRequested) -> bool:
    """Nothing is carried over from the segment before: the first one, and one that begins with a cut or dissolve."""
    first = shown(request)[0]
    return request.segment == 0 or (
        first.start_frame == request.start_frame and first.transition is not Transition.CONTINUOUS
    )

"""From a backdrop to its scenery."""

from collections.abc import Callable, Mapping

from gpu_consumers.engines.animatic.canvas import Stage
from gpu_consumers.engines.animatic.scenery import air, land, ranges, rooms, town, waters
from gpu_consumers.engines.animatic.scenery.set import Scenery

_BUILDERS: Mapping[str, Callable[[Stage], Scenery]] = {
    "city": town.city,
    "village": town.village,
    "forest": land.forest,
    "mountains": land.mountains,
    "desert": land.desert,
    "field": land.field,
    "ice": land.ice,
    "sea": waters.sea,
    "beach": waters.beach,
    "lake": waters.lake,
    "underwater": waters.underwater,
    "sky": air.above_clouds,
    "space": air.space,
    "interior": rooms.interior,
    "studio": rooms.studio,
}
_WITH_ROAD = ("forest", "mountains", "desert", "field", "ice", "village")


def scenery_of(stage: Stage) -> Scenery:
    """The scenery of the stage's backdrop."""
    scenery = _BUILDERS[stage.backdrop.place](stage)
    if stage.backdrop.road and stage.backdrop.place in _WITH_ROAD:
        return ranges.road_on(stage, scenery)
    if stage.backdrop.rails and scenery.grounded:
        return ranges.rails_on(stage, scenery)
    return scenery

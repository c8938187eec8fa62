import itertools

import msgspec
import pytest
from tests_app_streams import PLAIN, experiment_records

from gptscope.app.viewmodels.experiment_view import ExperimentView
from gptscope.app.viewmodels.pace import LONGEST_S, Pace, is_tight
from gptscope.profiling.experiment import Variant
from gptscope.profiling.records import Progress, RunStarted

TICK_S = 1 / 30


def redraws(share: float, cost_s: float, seconds: float) -> list[float]:
    """When a view redraws whose every redraw costs so much processor time."""
    pace, used, drawn = Pace(), 0.0, []
    for tick in range(int(seconds / TICK_S)):
        if pace.allows(tick * TICK_S, used, share):
            drawn.append(tick * TICK_S)
            used += cost_s
    return drawn


@pytest.mark.parametrize(("share", "cost_s"), [(0.02, 0.005), (0.02, 0.012), (0.25, 0.02)])
def test_redrawing_takes_no_more_than_its_share(share: float, cost_s: float) -> None:
    drawn = redraws(share, cost_s, 60.0)
    assert 0.75 * share < len(drawn) * cost_s / 60.0 <= 1.02 * share


def test_cheap_redraws_happen_at_every_tick() -> None:
    assert len(redraws(0.25, 0.001, 10.0)) == 300


def test_even_the_dearest_redraw_comes_back_after_a_second() -> None:
    drawn = redraws(0.015, 0.5, 10.0)
    gaps = [after - before for before, after in itertools.pairwise(drawn)]
    assert max(gaps) <= LONGEST_S + 2.5 * TICK_S


def started(variant: Variant, *, physical: int, logical: int, device: str) -> ExperimentView:
    view = ExperimentView()
    cores = {"physical_cores": physical, "logical_cores": logical, "device": device}
    for record in experiment_records(variant)[:20]:
        if isinstance(record, RunStarted):
            machine = msgspec.structs.replace(record.machine, **cores)
            view.apply(msgspec.structs.replace(record, machine=machine))
        else:
            view.apply(record)
    view.apply(Progress(phase="measure", done=1, total=4))
    return view


def test_a_run_on_all_cores_is_disturbed_least() -> None:
    assert is_tight(started(PLAIN, physical=2, logical=2, device="cpu"))
    assert is_tight(started(PLAIN, physical=2, logical=4, device="cpu")), "the second thread of a core is no free core"
    assert not is_tight(started(Variant(threads=1), physical=2, logical=2, device="cpu"))
    assert not is_tight(started(PLAIN, physical=2, logical=2, device="cuda"))


def test_loading_is_not_measured_so_the_window_may_draw() -> None:
    view = started(PLAIN, physical=2, logical=2, device="cpu")
    view.apply(Progress(phase="load", done=1, total=4))
    assert not is_tight(view)

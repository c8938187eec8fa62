"""Labels of symbols keep out of each other's way and inside the plot."""

from PySide6.QtCore import QPointF, QRectF

from gptscope.app.gui.charts.axes import Frame
from gptscope.app.gui.charts.spots import label_box, spot_at
from gptscope.app.viewmodels.chart_data import Axis, Spot

FRAME = Frame(area=QRectF(40, 8, 400, 200), x_axis=Axis(low=0, high=4), y_axis=Axis(low=0, high=1))


def spot(x: float, y: float, label: str = "A", high: float | None = None) -> Spot:
    return Spot(x=x, y=y, label=label, tip="", key=label, x_low=None if high is None else 2 * x - high, x_high=high)


def test_a_label_stands_right_of_the_interval() -> None:
    box = label_box(spot(2, 0.5, high=2.5), FRAME, 60, 16, [])
    assert box.left() > FRAME.x(2.5)
    assert box.center().y() == FRAME.y(0.5)


def test_labels_of_symbols_close_to_each_other_do_not_overlap() -> None:
    taken: list[QRectF] = []
    for shift in (0.0, 0.01, -0.01, 0.02):
        taken.append(label_box(spot(2 + shift, 0.5), FRAME, 60, 16, taken))
    pairs = [(one, other) for i, one in enumerate(taken) for other in taken[i + 1 :]]
    assert not any(one.intersects(other) for one, other in pairs)


def test_a_label_at_the_right_end_goes_where_it_is_not_cut_off() -> None:
    box = label_box(spot(3.95, 0.5), FRAME, 60, 16, [])
    assert box.right() <= FRAME.area.right() + 12


def test_the_symbol_under_the_pointer_is_found_the_last_drawn_first() -> None:
    spots = (spot(2, 0.5, "A"), spot(2.02, 0.5, "B"), spot(3, 0.1, "C"))
    assert (found := spot_at(spots, FRAME, QPointF(FRAME.x(2.01), FRAME.y(0.5)))) is not None
    assert found.key == "B"
    assert spot_at(spots, FRAME, QPointF(FRAME.x(1), FRAME.y(0.9))) is None

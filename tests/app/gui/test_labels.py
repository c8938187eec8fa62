"""Labels inside charts keep out of each other's way."""

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPixmap

from gptscope.app.gui.charts import marks
from gptscope.app.gui.charts.axes import Frame
from gptscope.app.gui.charts.marks import paint_chart
from gptscope.app.gui.theme import Theme
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Level, Line, Region, floats


def drawn(chart: ChartData, look: Theme, monkeypatch: pytest.MonkeyPatch) -> list[QRectF]:
    """Rooms of the labels of one chart, in the order of painting."""
    boxes: list[QRectF] = []

    def noting(original):  # type: ignore[no-untyped-def]
        def place(*given, **named):  # type: ignore[no-untyped-def]
            box = original(*given, **named)
            if box is not None:
                boxes.append(QRectF(box))
            return box

        return place

    for name in ("_paint_end", "_level_label_box", "_region_label_box"):
        monkeypatch.setattr(marks, name, noting(getattr(marks, name)))
    picture = QPixmap(600, 160)
    picture.fill()
    painter = QPainter(picture)
    frame = Frame(area=QRectF(40, 8, 540, 130), x_axis=chart.x_axis, y_axis=chart.y_axis)
    paint_chart(painter, look, chart, frame)
    painter.end()
    return boxes


@pytest.mark.parametrize("last", [2.0, 10.0, 25.0, 50.0, 75.0, 95.0])
@pytest.mark.parametrize("baseline", [3.0, 30.0, 60.0, 90.0])
def test_no_label_covers_another(last: float, baseline: float, look: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = ChartData(
        x_axis=Axis(low=0, high=20),
        y_axis=Axis(low=0, high=100),
        lines=(Line(name="run", x=floats([0, 17.5]), y=floats([50, last]), end_label="47.0 tok/s", end_note="last"),),
        levels=(Level(y=baseline, label="baseline FP32 plain 18.6", role="baseline", low=1, high=99),),
        regions=(
            Region(start=0.1, end=3, kind="hatched", label="warm-up,\nnot counted"),
            Region(start=3.1, end=6, kind="warn", label="machine busy:\nslice repeated"),
            Region(start=17.6, end=18, kind="hatched", label="profiled,\nnot counted"),
        ),
    )
    boxes = drawn(chart, look, monkeypatch)
    assert len(boxes) >= 4
    for index, box in enumerate(boxes):
        for other in boxes[index + 1 :]:
            assert not box.intersects(other), (box, other)


def test_the_label_of_a_low_level_keeps_off_the_names_of_the_axis(look: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = ChartData(
        x_axis=Axis(low=0, high=20),
        y_axis=Axis(low=0, high=5000),
        lines=(Line(name="memory", x=floats([0, 18.9]), y=floats([4000, 300]), end_label="300 MB"),),
        levels=(Level(y=18.9, label="weights 18.9 MB", role="context"),),
    )
    end, weights = drawn(chart, look, monkeypatch)
    assert weights.bottom() <= 138, "the area ends there"
    assert not weights.intersects(end)


def test_a_label_without_room_is_left_out(look: Theme) -> None:
    region = Region(start=0, end=1, kind="hatched", label="profiled,\nnot counted")
    frame = Frame(area=QRectF(0, 8, 200, 60), x_axis=Axis(low=0, high=1), y_axis=Axis(low=0, high=1))
    everywhere = [QRectF(0, 0, 200, 80)]
    assert marks._region_label_box(look, region, region.label.split("\n"), frame, everywhere) is None

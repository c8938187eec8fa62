"""Parts of charts are pointed at and clicked by keyboard as by mouse."""

from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from tests_app_streams import comparison_records, experiment_records

from gptscope.app.gui.charts.bars_chart import BarsCanvas
from gptscope.app.gui.charts.canvas import PlotCanvas
from gptscope.app.gui.charts.columns_chart import ColumnsCanvas
from gptscope.app.gui.charts.pointed import Pointed, PointedCanvas
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import ElidedLabel, Panel
from gptscope.app.gui.window import COMPARE, LIVE, MainWindow
from gptscope.app.viewmodels.chart_data import Axis, ChartData, Line, Point, Spot, floats
from gptscope.app.viewmodels.charts.bars import BarChart, BarPart, BarRow, ColumnChart, ColumnLayer, no_bars

LEFT, RIGHT, UP, DOWN = Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down
HOME, END, ENTER, ESC = Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Return, Qt.Key.Key_Escape
AXIS = Axis(low=0, high=10)


def bars(look: Theme) -> BarsCanvas:
    """Two bars: gemm of a and b (and an empty part), norm of c."""
    sizes = {"GEMM": {"a": 4.0, "none": 0.0, "b": 3.0}, "norm": {"c": 2.0}}
    rows = tuple(
        BarRow(
            name=name,
            key=name,
            text="",
            parts=tuple(BarPart(value=v, look=name, key=key, label=f"part {key}") for key, v in parts.items()),
        )
        for name, parts in sizes.items()
    )
    canvas = BarsCanvas(look)
    canvas.show_chart(BarChart(axis=AXIS, rows=rows, summary="all bars"))
    return canvas


def columns(look: Theme) -> ColumnsCanvas:
    """Three steps."""
    layer = ColumnLayer(name="work", look="GEMM", heights=(1.0, 2.0, 3.0))
    canvas = ColumnsCanvas(look)
    canvas.show_chart(
        ColumnChart(
            x_axis=AXIS,
            y_axis=AXIS,
            keys=("a", "b", "c"),
            labels=("part a", "part b", "part c"),
            layers=(layer,),
            summary="all columns",
        )
    )
    return canvas


def dots(look: Theme) -> PlotCanvas:
    """From left to right a, b and a symbol c; from the top b, c, a."""
    points = [
        Point(x=x, y=y, size=4, category="GEMM", key=key, label=f"part {key}")
        for key, x, y in (("b", 5, 9), ("a", 1, 1))
    ]
    spot = Spot(x=8, y=4, label="c", tip="part c", key="c")
    canvas = PlotCanvas(look)
    canvas.show_chart(ChartData(x_axis=AXIS, y_axis=AXIS, points=tuple(points), spots=(spot,), summary="all dots"))
    return canvas


def focused(canvas: PointedCanvas, qtbot: QtBot) -> tuple[QWidget, QWidget]:  # type: ignore[type-arg]
    """In a window, beside another widget that takes the focus, too; returns both."""
    holder = QWidget()
    column = QVBoxLayout(holder)
    other = QWidget()
    other.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    column.addWidget(canvas)
    column.addWidget(other)
    holder.resize(500, 300)
    qtbot.addWidget(holder)
    holder.show()
    holder.activateWindow()
    qtbot.waitUntil(holder.isActiveWindow)
    other.setFocus()
    canvas.setFocus(Qt.FocusReason.TabFocusReason)
    return holder, other


@pytest.mark.parametrize(
    ("make", "keys", "expected"),
    [
        (bars, [RIGHT, RIGHT, RIGHT, DOWN, DOWN, UP, HOME, END], "abbccaab"),
        (columns, [RIGHT, RIGHT, DOWN, DOWN, LEFT, HOME, END, UP], "abccbacb"),
        (dots, [RIGHT, RIGHT, RIGHT, LEFT, LEFT, UP, UP, UP, DOWN, HOME, END], "abcbacbbcac"),
    ],
)
def test_arrows_move_and_enter_clicks(
    make: object, keys: list[Qt.Key], expected: str, look: Theme, qtbot: QtBot
) -> None:
    assert callable(make)
    canvas = make(look)
    _holder, _ = focused(canvas, qtbot)
    told: list[str] = []
    clicked: list[str] = []
    canvas.told.connect(told.append)
    canvas.clicked.connect(clicked.append)
    qtbot.keyClick(canvas, ENTER)
    assert clicked == [], "nothing is pointed at yet"
    for key in keys:
        qtbot.keyClick(canvas, key)
        qtbot.keyClick(canvas, ENTER)
        assert canvas.accessibleDescription() == f"part {clicked[-1]}"
    assert "".join(clicked) == expected
    assert told == [f"part {key}" for n, key in enumerate(expected) if n == 0 or expected[n - 1] != key]
    qtbot.keyClick(canvas, ESC)
    assert told[-1] == ""
    assert canvas.accessibleDescription() == canvas.chart.summary
    before = len(clicked)
    qtbot.keyClick(canvas, ENTER)
    assert len(clicked) == before


@pytest.mark.parametrize("make", [bars, columns, dots])
def test_the_ring_shows_only_where_the_keyboard_came_in_and_leaving_lets_go(
    make: object, look: Theme, qtbot: QtBot
) -> None:
    assert callable(make)
    canvas = make(look)
    _holder, other = focused(canvas, qtbot)
    accent = look.color("accent").name()

    def ring() -> bool:
        QApplication.processEvents()
        image = canvas.grab().toImage()
        return all(image.pixelColor(x, 0).name() == accent for x in range(20, canvas.width() - 20))

    assert ring()
    qtbot.keyClick(canvas, RIGHT)
    other.setFocus(Qt.FocusReason.TabFocusReason)
    assert not ring()
    assert canvas.accessibleDescription() == canvas.chart.summary
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert canvas.hasFocus()
    assert not ring()


def test_a_chart_without_parts_is_no_stop(look: Theme) -> None:
    canvas = bars(look)
    assert canvas.focusPolicy() == Qt.FocusPolicy.StrongFocus
    canvas.show_chart(no_bars("n/a: nothing was recorded"))
    assert canvas.focusPolicy() == Qt.FocusPolicy.NoFocus
    assert canvas.accessibleDescription() == "n/a: nothing was recorded"


def test_keys_move_the_hairline_over_curves(look: Theme, qtbot: QtBot) -> None:
    canvas = PlotCanvas(look)
    line = Line(name="memory", x=floats([0, 5, 10]), y=floats([1, 2, 3]))
    canvas.show_chart(ChartData(x_axis=AXIS, y_axis=AXIS, lines=(line,)))
    _holder, _ = focused(canvas, qtbot)
    moved: list[float | None] = []
    canvas.hovered.connect(moved.append)
    canvas.hovered.connect(canvas.set_hover)
    for key in (HOME, RIGHT, RIGHT, LEFT, END, ESC):
        qtbot.keyClick(canvas, key)
    assert moved[:-1] == pytest.approx([0, 0.2, 0.4, 0.2, 10])
    assert moved[-1] is None


def test_what_is_pointed_at_stays_when_the_chart_is_drawn_anew(look: Theme, qtbot: QtBot) -> None:
    canvas = dots(look)
    _holder, _ = focused(canvas, qtbot)
    clicked: list[str] = []
    canvas.clicked.connect(clicked.append)
    for key in (RIGHT, END):
        qtbot.keyClick(canvas, key)
    canvas.show_chart(canvas.chart)
    qtbot.keyClick(canvas, ENTER)
    qtbot.keyClick(canvas, LEFT)
    qtbot.keyClick(canvas, ENTER)
    assert clicked == ["c", "b"]


def test_rows_of_kernel_times_and_of_the_waterfall_are_told_in_the_place_of_the_source(
    window: MainWindow, session: Any, qtbot: QtBot
) -> None:
    window.controller.run()
    session.feed(*experiment_records())
    window.show_view(LIVE)
    assert window.live is not None
    check_rows(window.live.kernels, window.live.kernel_chart, qtbot)
    window.controller.run()
    session.feed(*comparison_records())
    window.show_view(COMPARE)
    assert window.compare is not None
    check_rows(window.compare.waterfall, window.compare.canvas, qtbot)


def check_rows(panel: Panel, chart: Pointed[Any], qtbot: QtBot) -> None:
    qtbot.waitUntil(chart._has_parts, timeout=5_000)
    said: list[str] = []
    chart.told.connect(said.append)
    source = panel.source.text()
    for key in (DOWN, DOWN, DOWN, UP, END):
        qtbot.keyClick(chart, key)
    assert len(said) == 5
    assert said[1] == said[3]
    assert chart.accessibleDescription() == said[-1]
    assert said[-1] in {label.text() for label in panel.findChildren(ElidedLabel) if not label.isHidden()}
    assert panel.source.isHidden()
    qtbot.keyClick(chart, ESC)
    assert not panel.source.isHidden()
    assert panel.source.text() == source

"""The Live view: progress, big numbers, charts, device, events; a reopened run looks the same."""

import time
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent, QTextCursor
from PySide6.QtWidgets import QGridLayout, QPlainTextEdit, QScrollArea, QVBoxLayout, QWidget

from gptscope.app.gui.charts.chart_panel import ChartPanel
from gptscope.app.gui.charts.device_panel import DeviceTiles
from gptscope.app.gui.charts.exporting import Exportable
from gptscope.app.gui.charts.kernel_panel import KernelChart, kernel_csv
from gptscope.app.gui.charts.pointed import tell_in_header
from gptscope.app.gui.charts.small_bars import BytesBar
from gptscope.app.gui.controller import Controller
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.widgets.basics import Panel, ThemedIcons, set_text
from gptscope.app.gui.widgets.event_list import EventList
from gptscope.app.gui.widgets.evidence_strip import EvidenceStrip
from gptscope.app.gui.widgets.failure_strip import FailureStrip
from gptscope.app.gui.widgets.guarded import guarded
from gptscope.app.gui.widgets.metric_card import MetricCard
from gptscope.app.gui.widgets.phase_strip import PhaseStrip
from gptscope.app.viewmodels import formatting as fmt
from gptscope.app.viewmodels.cards import cards
from gptscope.app.viewmodels.charts import bandwidth, device, kernel_times, latency_histogram, tokens_per_second
from gptscope.app.viewmodels.evidence import ineffective
from gptscope.app.viewmodels.help_texts import help_for
from gptscope.app.viewmodels.pace import FREE_SHARE, TIGHT_SHARE, Pace, is_tight
from gptscope.app.viewmodels.phases import strip

NARROW = 1020
"""Below this width of the view (a window of about 1340 with Setup) panels stand under each other."""
_NUMBERS_PERIOD_S = 0.25
_TIGHT_NUMBERS_PERIOD_S = 1.0


class LiveView(QScrollArea):
    """Draws the controller's experiment. `refresh` is called by the window's redraw timer."""

    def __init__(
        self,
        controller: Controller,
        theme: Theme,
        icons: ThemedIcons,
        export: Callable[[Exportable, str], object],
        try_again: Callable[[], object],
    ) -> None:
        super().__init__()
        self._controller, self._theme = controller, theme
        self._zoom: tuple[float, float] | None = None
        self._narrow: bool | None = None
        self._shown: tuple[object, ...] = ()
        self._sensed: tuple[object, ...] = ()
        self._numbers_at, self._numbers_due, self._curves_due = 0.0, False, False
        self._numbers_period_s = _NUMBERS_PERIOD_S
        self._pace = Pace()
        self._text_shown = ""
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        holder = QWidget()
        holder.setObjectName("canvas")
        column = QVBoxLayout(holder)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(8)
        self.failure = FailureStrip(theme, icons, try_again)
        self.strip = PhaseStrip(theme)
        column.addWidget(self.failure)
        column.addWidget(self.strip)
        self.evidence = EvidenceStrip(theme)
        column.addWidget(self.evidence)
        self.cards = [MetricCard(theme, main=index == 0) for index in range(4)]
        self._make_charts(theme, icons, export)
        self._grid = QGridLayout()
        self._grid.setSpacing(8)
        column.addLayout(self._grid, 1)
        self.setWidget(holder)
        controller.failed.connect(self.failure.show_failure)
        controller.experiment_opened.connect(self._on_opened)
        self._arrange(narrow=False)

    def _make_charts(self, theme: Theme, icons: ThemedIcons, export: Callable[[Exportable, str], object]) -> None:
        self.speed = ChartPanel(
            "Tokens per second", theme, icons, help_key="tokens_per_second", zoomable=True,
            read_out=tokens_per_second.read_out, export=export,
        )  # fmt: skip
        self.latency = ChartPanel("Latency per token", theme, icons, help_key="latency_histogram", export=export)
        self.bandwidth = ChartPanel(
            "Memory bandwidth", theme, icons, help_key="bandwidth", source="GB/s", zoomable=True,
            read_out=bandwidth.read_out, export=export,
        )  # fmt: skip
        self.bandwidth.set_chip("modelled")
        self.bytes_bar = BytesBar(theme)
        self.bandwidth.body.addWidget(self.bytes_bar)
        self.kernels = Panel("Kernel time per token")
        self.kernels.title.setToolTip(help_for("kernel_time"))
        self.kernel_chart = KernelChart(theme)
        self.kernels.body.addWidget(self.kernel_chart, 1)
        tell_in_header(self.kernel_chart, self.kernels)
        self.device = Panel("Device")
        self.device.title.setToolTip(help_for("device"))
        self.tiles = DeviceTiles(theme)
        self.device.body.addWidget(self.tiles, 1)
        self.events = Panel("Events")
        self.event_list = EventList(theme)
        self.events.body.addWidget(self.event_list, 1)
        self.text = Panel("Generated text")
        self.text_pane = QPlainTextEdit()
        self.text_pane.setReadOnly(True)
        self.text_pane.setMinimumHeight(96)
        self.text_pane.setAccessibleName("Generated text")
        self.text.body.addWidget(self.text_pane, 1)
        self.text.hide()
        for panel in (self.speed, self.bandwidth):
            panel.canvas.hovered.connect(self._share_hover)
            panel.canvas.range_chosen.connect(self._on_range)

    # ---------------------------------------------------------------------------------------------- layout

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange(narrow=self.viewport().width() < NARROW)

    def _arrange(self, *, narrow: bool) -> None:
        if narrow == self._narrow:
            return
        self._narrow = narrow
        while self._grid.takeAt(0) is not None:
            pass
        for row in range(8):
            self._grid.setRowStretch(row, 0)
            self._grid.setRowMinimumHeight(row, 0)
        places = _NARROW_PLACES if narrow else _WIDE_PLACES
        widgets = [
            *self.cards,
            self.speed,
            self.latency,
            self.text,
            self.kernels,
            self.bandwidth,
            self.device,
            self.events,
        ]
        for widget, (row, column, width) in zip(widgets, places, strict=True):
            self._grid.addWidget(widget, row, column, 1, width)
        for row, (stretch, least) in (_NARROW_ROWS if narrow else _WIDE_ROWS).items():
            self._grid.setRowStretch(row, stretch)
            self._grid.setRowMinimumHeight(row, least)
        for column in range(24):
            self._grid.setColumnStretch(column, 1)

    # ---------------------------------------------------------------------------------------------- interaction

    def _share_hover(self, x: float | None) -> None:
        for panel in (self.speed, self.bandwidth):
            panel.show_hover(x)

    def _on_range(self, chosen: tuple[float, float] | None) -> None:
        self._zoom = chosen
        self._shown = ()
        self.refresh()

    def reset_zoom(self) -> None:
        """Show the whole time axis."""
        self._on_range(None)

    def _on_opened(self) -> None:
        self.failure.hide()
        self._zoom, self._shown, self._numbers_at, self._text_shown = None, (), 0.0, "\0"
        self.refresh()

    def exportables(self) -> list[Exportable]:
        """Everything here that can be saved as a picture."""
        kernels = Exportable(self.kernels.title.text(), self.kernel_chart, lambda: kernel_csv(self.kernel_chart.times))
        return [*(panel.exportable() for panel in (self.speed, self.latency, self.bandwidth)), kernels]

    # ---------------------------------------------------------------------------------------------- showing

    def rewrite(self) -> None:
        """Write all figures anew."""
        self._shown, self._numbers_at = (), 0.0
        self.refresh()

    def tick(self) -> None:
        """Called by the redraw timer while a run goes on: draw what changed, as often as the run can bear it."""
        view = self._controller.experiment
        if view is None:
            return
        tight = is_tight(view)
        self._numbers_period_s = _TIGHT_NUMBERS_PERIOD_S if tight else _NUMBERS_PERIOD_S
        if self._pace.allows(time.monotonic(), time.thread_time(), TIGHT_SHARE if tight else FREE_SHARE):
            self.refresh()

    def refresh(self) -> None:
        """Draw what changed since the last call."""
        view, baseline = self._controller.experiment, self._controller.shown_baseline()
        if view is None:
            return
        now = time.monotonic()
        state = (
            view,
            view.revision,
            baseline,
            baseline.revision if baseline else 0,
            self._zoom,
            self._controller.running,
        )
        if state == self._shown and not self._controller.running:
            return
        live = self._controller.running
        changed, self._shown = state != self._shown, state
        self._numbers_due, self._curves_due = self._numbers_due or changed, self._curves_due or changed
        progress = strip(view, self._controller.clock, now)
        self.strip.show_strip(progress)
        if self._numbers_due and (now - self._numbers_at >= self._numbers_period_s or not live):
            self._numbers_at, self._numbers_due = now, False
            self._refresh_numbers()
            if live:
                return  # the curves come with the next tick: both in one would be the longest gap between frames
        if self._curves_due:
            self._curves_due = False
            self._refresh_curves(progress.left_s if progress is not None else None)

    def _refresh_curves(self, left_s: float | None) -> None:
        """What moves: at the timer's pace."""
        view, baseline = self._controller.experiment, self._controller.shown_baseline()
        assert view is not None
        run, live = view.current, self._controller.running
        window = tokens_per_second.time_window(view.zero_ns, view.now_s, left_s, self._zoom)
        self.speed.show_chart(tokens_per_second.build(run, baseline, window, live=live))
        self.bandwidth.show_chart(
            bandwidth.build(run, baseline, view.peaks or self._controller.peaks, window, live=live)
        )
        sensed = (view, view.sensors.revision, view.machine)
        if sensed != self._sensed:  # four samples a second
            self._sensed = sensed
            self.tiles.show_tiles(device.tiles(view.sensors, view.machine, view.zero_ns))
        self.event_list.show_events(view.events, len(view.events) + view.events_dropped)
        self._refresh_text()

    def _refresh_numbers(self) -> None:
        """Numbers that a person reads: four times a second is enough."""
        view, baseline = self._controller.experiment, self._controller.shown_baseline()
        assert view is not None
        run = view.current
        for widget, card in zip(self.cards, cards(run, baseline), strict=True):
            widget.show_card(card)
        kind = run.main_kind if run is not None else "decode"
        self.latency.show_chart(latency_histogram.build(run, baseline))
        set_text(self.latency.title, latency_histogram.TITLES[kind])
        set_text(self.latency.source, latency_histogram.source(run))
        summary = run.summary() if run is not None else None
        unit = kernel_times.per_unit(kind)
        self.bytes_bar.show_parts(bandwidth.bytes_parts(summary.step_bytes if summary is not None else None), unit)
        self._refresh_kernels(unit)
        self.evidence.show_levers(ineffective(run))
        gpu = f"GPU {fmt.unknown(view.sensors.gpu_reason)}" if view.sensors.gpu_reason else ""
        set_text(self.device.source, view.machine.device_name if view.machine is not None else "")
        set_text(self.device.read_out, gpu)

    def _refresh_kernels(self, unit: str) -> None:
        view, baseline = self._controller.experiment, self._controller.shown_baseline()
        assert view is not None
        run = view.current
        profile = run.profile if run is not None else None
        base = baseline.profile if baseline is not None else None
        set_text(self.kernels.title, f"Kernel time per {unit}")
        ended_without = run is not None and run.finished is not None and profile is None
        empty = kernel_times.NOT_PROFILED if ended_without else kernel_times.WAITING
        self.kernel_chart.show_times(kernel_times.build(profile, base, rows=self.kernel_chart.rows_that_fit), empty)
        if profile is not None:
            set_text(self.kernels.source, f"self time, {profile.steps} profiled {unit}s")
            self.kernels.set_chip(
                f"overhead {fmt.ratio(profile.overhead)}", "plain" if profile.overhead < 1.25 else "warn"
            )
        else:
            set_text(self.kernels.source, "")
            self.kernels.set_chip("")

    def _refresh_text(self) -> None:
        view = self._controller.experiment
        run = view.current if view is not None else None
        work = view.experiment.workload if view is not None and view.experiment is not None else None
        self.text.setVisible(work is not None and work.kind == "generate")
        text = run.text if run is not None else ""
        if text == self._text_shown:
            return
        if self._text_shown and text.startswith(self._text_shown):
            cursor = QTextCursor(self.text_pane.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(self._text_shown) :])
        else:
            self.text_pane.setPlainText(text)
        self._text_shown = text
        bar = self.text_pane.verticalScrollBar()
        bar.setValue(bar.maximum())
        cut = run is not None and run.text_cut
        set_text(
            self.text.source, "the newest part; the run's export has all" if cut else "first sequence of the batch"
        )


# Row, column and width on a grid of 24 columns, in the order: four cards, speed, latency, text, kernels, bandwidth,
# device, events.
_WIDE_PLACES = (
    (0, 0, 7), (0, 7, 6), (0, 13, 6), (0, 19, 5),
    (1, 0, 16), (1, 16, 8), (2, 0, 24), (3, 0, 12), (3, 12, 12), (4, 0, 16), (4, 16, 8),
)  # fmt: skip
_NARROW_PLACES = (
    (0, 0, 12), (0, 12, 12), (1, 0, 12), (1, 12, 12),
    (2, 0, 24), (4, 12, 12), (3, 0, 24), (5, 0, 24), (4, 0, 12), (6, 0, 24), (7, 0, 24),
)  # fmt: skip
_WIDE_ROWS = {1: (5, 190), 3: (5, 210), 4: (2, 120)}
_NARROW_ROWS = {2: (1, 200), 4: (1, 210), 5: (1, 240), 6: (0, 128), 7: (0, 140)}

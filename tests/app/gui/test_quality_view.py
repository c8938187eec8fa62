import csv
import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import (
    INT8,
    RICH_CAPABILITIES,
    compared,
    layer_errors,
    losses,
    quality,
    scales,
)
from tests_app_steps import shown
from tests_app_streams import FUSED, INSPECTED, PEAKS

from gptscope.app.gui.charts.exporting import export_chart
from gptscope.app.gui.charts.layer_map_chart import readable
from gptscope.app.gui.theme import Theme
from gptscope.app.gui.window import LIVE, QUALITY, MainWindow
from gptscope.profiling.experiment import Variant, Workload
from gptscope.profiling.records import StartExperiment

TRAINING = Workload(kind="train", batch=8, context=128, steps=60)


def test_the_view_appears_once_there_is_something_to_show(rich: MainWindow, session: Any) -> None:
    assert not rich.tabs.isTabVisible(QUALITY)
    assert not rich.actions_by_id["view_quality"].isEnabled()
    rich.controller.run()
    session.feed(*compared())
    assert not rich.tabs.isTabVisible(QUALITY)
    view = shown(rich, session, quality())
    assert rich.tabs.isTabVisible(QUALITY)
    assert rich.current_view() is view
    rich.show_view(LIVE)


def test_cards_verdict_and_names_tell_the_comparison(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality(), layer_errors())
    assert [card.value.text() for card in view.cards] == ["+3.06", "0.190", "84.1", "2 of 8", "12.8"]
    assert view.cards[0].accessibleName().startswith("Perplexity: +3.06, ± 0.21, 14.9 → 17.9")
    assert view.verdict.text() == "Faster, output changed"
    assert view.candidate.currentText() == "A INT8 dynamic, granularity tensor"
    assert view.against.text() == "FP32 plain"


def test_clicking_a_module_keeps_it_and_gives_it_back(rich: MainWindow, session: Any, qtbot: QtBot) -> None:
    view = shown(rich, session, quality(), layer_errors())
    chart = view.layer_map.chart
    view.mix.slider.setValue(0)
    assert view.mix.read_out.text() == "0 of 211"
    for _ in range(4):  # sizes that depend on widths settle
        QApplication.processEvents()
    place = chart.cell_box(6, 28).center().toPoint()
    qtbot.mouseMove(chart, place + QPoint(1, 1))
    qtbot.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert view._kept == ("blocks.28.mlp.down",)
    assert view.mix.kept.text() == "down 28"
    assert chart.shown is not None
    assert chart.shown.cells[6, 28].rank == 1
    qtbot.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert view._kept == ()
    head = chart.outside_box(0).center().toPoint()
    qtbot.mouseClick(chart, Qt.MouseButton.LeftButton, pos=head)
    assert view._kept == ("lm_head",)


def test_the_map_is_worked_by_the_keyboard(rich: MainWindow, session: Any, qtbot: QtBot) -> None:
    view = shown(rich, session, quality(), layer_errors())
    view.mix.slider.setValue(0)
    chart = view.layer_map.chart
    chart.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down):
        qtbot.keyClick(chart, key)
    assert view.layer_map.read_out.text().startswith("layer 1, k   KL +")
    qtbot.keyClick(chart, Qt.Key.Key_Space)
    assert view._kept == ("blocks.1.attn.qkv.k",)


def test_the_worst_are_proposed_and_one_click_verifies_them(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality(), layer_errors())
    view.mix.slider.setValue(3)
    assert view.mix.kept.text() == "down 1, 28, 29"
    session.sent.clear()
    view.mix.fill_button.click()
    setup = rich.controller.setup
    keep = "blocks.1.mlp.down+blocks.29.mlp.down+blocks.28.mlp.down"
    assert setup.variant.options["int8-dynamic"] == {"granularity": "tensor", "keep": keep}
    assert setup.compare
    assert not any(isinstance(sent, StartExperiment) for sent in session.sent), "filling Setup alone runs nothing"
    assert rich.dock.variant_name.text() == "INT8 dynamic, granularity tensor, keeps 3"
    view.mix.verify_button.click()
    started = session.sent[-1]
    assert isinstance(started, StartExperiment)
    assert [variant.precision for variant in started.experiment.variants] == ["fp32", "int8-dynamic"]
    assert started.experiment.variants[1].options["int8-dynamic"]["keep"] == keep
    assert started.experiment.quality
    assert rich.current_view() is rich.live


def test_a_recipe_that_cannot_keep_modules_says_so(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality(), layer_errors(), candidate=FUSED)
    assert not view.mix.verify_button.isEnabled()
    assert view.mix.reason.text() == "BF16 has no setting that leaves single modules alone."


@pytest.mark.parametrize("name", ["dark", "light"])
def test_numbers_on_the_heat_ramp_can_be_read_and_brighter_or_darker_means_more(look: Theme, name: Any) -> None:
    def luminance(colour: QColor) -> float:
        parts = (colour.redF(), colour.greenF(), colour.blueF())
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    look.choose(name)
    ramp = [look.heat(step / 60) for step in range(61)]
    for colour in ramp:
        high, low = sorted((luminance(colour), luminance(readable(colour))), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5
    steps = [luminance(b) - luminance(a) for a, b in pairwise(ramp)]
    assert all(step > 0 for step in steps) or all(step < 0 for step in steps)
    look.choose("dark")


def test_without_a_map_the_view_offers_to_measure_it(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality())
    assert view.layer_map.isHidden()
    assert view.mix.isHidden()
    view.measure_map.click()
    assert session.sent[-1].experiment.layer_map
    assert session.sent[-1].experiment.variants[1] == INT8


def test_texts_mark_the_first_difference_and_survive_markup(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality())
    panel = view.text
    assert "2 exact" in panel.counts.text()
    assert "&lt;b&gt;&amp;</span>" in panel.candidate.text()
    assert "a real change" in panel.sentence.text()
    panel.prompts.setCurrentIndex(panel.prompts.model().index(5, 0))
    assert panel.sentence.text() == "token 26: margin 0.0200, a near-tie"
    panel.prompts.setCurrentIndex(panel.prompts.model().index(2, 0))
    assert panel.sentence.text() == "All 48 tokens are the same."


def test_training_shows_losses_and_scales(rich: MainWindow, session: Any) -> None:
    fp8 = Variant(precision="fp8-delayed")
    view = shown(rich, session, losses("r0"), losses("r1", 0.03), scales(), candidate=fp8, workload=TRAINING)
    assert not view.losses.isHidden()
    assert view.layer_map.isHidden()
    assert view.text.isHidden()
    assert [card.isHidden() for card in view.cards] == [False, False, True, True, True]
    assert view.scales.chip.text().startswith("clipped at ")
    view.scales.tensor.choose("grad")
    view.scales.tensor.activated.emit(view.scales.tensor.currentIndex())
    assert "gradient" in view.scales.canvas.chart.summary


def test_every_chart_can_be_saved(rich: MainWindow, session: Any, tmp_path: Path) -> None:
    view = shown(rich, session, quality(), layer_errors(), scales())
    found = view.exportables()
    assert [chart.title for chart in found] == [
        "Layer map",
        "Keep the worst",
        "Where the text changes",
        "Error through the layers",
        "Largest value and scale",
    ]
    for chart in found:
        assert len(list(csv.reader(io.StringIO(chart.csv())))) > 5
    for kind in ("png", "svg", "pdf", "csv"):
        file = tmp_path / f"map.{kind}"
        export_chart(found[0], file)
        assert file.stat().st_size > 500


def test_a_layer_map_is_offered_only_where_something_is_rounded(rich: MainWindow, session: Any) -> None:
    view = shown(rich, session, quality(), candidate=Variant(fusions=("norm",)))
    assert view._offer.source.text() == "In FP32 no module is rounded, so there is nothing to map."
    assert view.measure_map.isHidden()
    view = shown(rich, session, quality())
    assert not view.measure_map.isHidden()


def test_a_switch_without_effect_is_red_and_says_why(rich: MainWindow, session: Any) -> None:
    shown(rich, session, quality(), candidate=FUSED)
    rich.show_view(LIVE)
    assert rich.live is not None
    strip = rich.live.evidence
    assert strip.isVisible()
    assert strip.accessibleName() == "norm is not in effect: no fused kernel ran"
    assert rich.theme.hex("bad") in strip.sentences.text()
    session_events = rich.controller.experiment
    assert session_events is not None
    assert any(event.level == "error" and "norm is not in effect" in event.text for event in session_events.events)


def test_a_reopened_comparison_shows_the_same_figures_and_can_be_exported(
    rich: MainWindow, session: Any, bare_window: Any, qtbot: QtBot
) -> None:
    view = shown(rich, session, quality(), layer_errors())
    library = rich.controller.library
    assert library is not None
    qtbot.waitUntil(lambda: (e := library.find("r1")) is not None and e.outcome == "done", timeout=15_000)
    values = [card.value.text() for card in view.cards]
    rich.close()
    again: MainWindow = bare_window()
    session.feed(RICH_CAPABILITIES, INSPECTED, PEAKS)
    assert not again.export_button.isEnabled()
    assert again.controller.reopen("r1")
    assert again.export_button.isEnabled()
    again.show_view(QUALITY)
    assert again.quality is not None
    assert [card.value.text() for card in again.quality.cards] == values
    assert not again.quality.layer_map.isHidden()

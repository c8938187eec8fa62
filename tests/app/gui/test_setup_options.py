from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot
from tests_app_quality_streams import RICH_CAPABILITIES
from tests_app_streams import INSPECTED, PEAKS

from gptscope.app.gui.forms.options_form import OptionsForm
from gptscope.app.gui.window import MainWindow
from gptscope.profiling.records import LeverOptionInfo


@pytest.fixture
def rich(bare_window: Any, session: Any) -> MainWindow:
    """A window whose engine knows recipes with settings."""
    window: MainWindow = bare_window()
    session.feed(RICH_CAPABILITIES, INSPECTED, PEAKS)
    return window


def choose(window: MainWindow, segment: str, recipe: str) -> OptionsForm:
    form = window.dock.levers_form.precision_form
    form.segments.segment(segment).click()
    form.recipes.choose(recipe)
    form.recipes.activated.emit(form.recipes.currentIndex())
    return form.options


def test_plain_formats_and_families_stand_side_by_side(rich: MainWindow) -> None:
    form = rich.dock.levers_form.precision_form
    assert list(form.segments._buttons) == ["fp32", "tf32", "bf16", "fp16", "INT8", "FP8"]
    assert form.recipes.isHidden()
    form.segments.segment("INT8").click()
    assert rich.controller.setup.variant.precision == "int8-weight-only"
    assert form.recipes.isVisible()
    assert form.segments.value() == "INT8"
    form.segments.segment("bf16").click()
    assert form.recipes.isHidden()
    assert form.options.isHidden()


def test_options_appear_with_the_recipe_and_change_name_and_cost(rich: MainWindow, qtbot: QtBot) -> None:
    options = choose(rich, "INT8", "int8-dynamic")
    assert options.isVisible()
    assert list(options.editors) == ["granularity", "keep", "keep-worst", "alpha"]
    granularity: Any = options.editors["granularity"]
    granularity.choose("tensor")
    granularity.activated.emit(granularity.currentIndex())
    assert rich.controller.setup.variant.options == {"int8-dynamic": {"granularity": "tensor"}}
    assert rich.dock.variant_name.text() == "INT8 dynamic, granularity tensor"
    assert rich.dock.differs.text() == "1 lever differs from FP32 plain"
    assert rich.dock.memory.text() != "n/a"
    keep: Any = options.editors["keep"]
    qtbot.keyClicks(keep, "lm_head")
    qtbot.keyClick(keep, Qt.Key.Key_Return)
    assert rich.controller.setup.variant.options["int8-dynamic"]["keep"] == "lm_head"
    assert options._count.text() == "2 changed"
    options.reset.click()
    assert rich.controller.setup.variant.options == {}
    assert keep.text() == ""
    assert options.reset.isHidden()


def test_more_settings_fold_out(rich: MainWindow) -> None:
    options = choose(rich, "INT8", "int8-dynamic")
    assert options.more.text() == "2 more"
    options.more.click()
    assert len(options.editors) == 6
    head: Any = options.editors["head"]
    head.click()
    assert rich.controller.setup.variant.options == {"int8-dynamic": {"head": False}}
    options.more.click()
    assert list(options.editors) == ["granularity", "keep", "keep-worst", "alpha", "head"]


def test_limits_cannot_be_passed(rich: MainWindow) -> None:
    options = choose(rich, "INT8", "int8-dynamic")
    alpha: Any = options.editors["alpha"]
    alpha.setValue(7)
    assert rich.controller.setup.variant.options["int8-dynamic"]["alpha"] == 1.0
    worst: Any = options.editors["keep-worst"]
    worst.setValue(-3)
    assert "keep-worst" not in rich.controller.setup.variant.options["int8-dynamic"]


def test_emulated_recipes_say_that_no_speedup_is_to_be_expected(rich: MainWindow) -> None:
    choose(rich, "FP8", "fp8-delayed")
    note = rich.dock.levers_form.precision_form.note
    assert note.isVisible()
    assert "no speedup" in note.text()
    assert rich.dock.memory.text() != "n/a"


def test_unavailable_recipes_prunings_and_guesses_are_grey_with_the_reason(rich: MainWindow) -> None:
    form = rich.dock.levers_form
    form.precision.segment("FP8").click()
    recipes, pruning = form.precision_form.recipes, form.combos["pruning"]
    for combo, name, words in ((recipes, "nvfp4", "torch.compile"), (pruning, "2:4", "NVIDIA GPU")):
        index = combo.findData(name)
        assert not combo.model().flags(combo.model().index(index, 0)) & Qt.ItemFlag.ItemIsEnabled
        assert words in combo.itemData(index, Qt.ItemDataRole.ToolTipRole)
    form_kind = rich.dock.workload_form.kind
    form_kind.segment("train").click()
    assert not form.precision.segment("INT8").isEnabled()
    assert "INT8 weight-only works for prefill, decode and generate only." in form.precision.segment("INT8").toolTip()


def test_pruning_and_speculation_are_levers_with_settings(rich: MainWindow) -> None:
    form = rich.dock.levers_form
    for group, name in (("pruning", "heads"), ("speculation", "prompt-lookup")):
        combo = form.combos[group]
        combo.choose(name)
        combo.activated.emit(combo.currentIndex())
    variant = rich.controller.setup.variant
    assert (variant.pruning, variant.speculation) == ("heads", "prompt-lookup")
    assert rich.dock.variant_name.text() == "FP32, heads, prompt-lookup"
    assert rich.dock.ceiling.text() == "n/a: depends on how many guesses are right"
    drafts: Any = form.options["speculation"].editors["drafts"]
    drafts.setValue(99)
    assert rich.controller.setup.variant.options == {"prompt-lookup": {"drafts": 32}}
    rich.dock.workload_form.kind.segment("prefill").click()
    assert rich.controller.setup.experiment(RICH_CAPABILITIES).variants[0].speculation == "none"


def test_comparing_outputs_is_asked_for_in_setup(rich: MainWindow, session: Any) -> None:
    form = rich.dock.output_form
    assert not form.compare.isEnabled()
    assert form.compare.toolTip() == "This variant is the baseline, FP32 plain: change a lever first."
    choose(rich, "INT8", "int8-dynamic")
    form.layer_map.click()
    assert form.compare.isChecked()
    assert form.text.isVisible()
    rich.controller.run()
    started = session.sent[-1].experiment
    assert [variant.precision for variant in started.variants] == ["fp32", "int8-dynamic"]
    assert (started.quality, started.layer_map) == (True, True)


def test_what_cannot_be_is_told_at_its_field_and_run_waits(rich: MainWindow, session: Any) -> None:
    form, dock = rich.dock.workload_form, rich.dock
    room = INSPECTED.model.context_length - 128
    form.spins["new_tokens"].setValue(room + 1)
    assert form.problem.isVisible()
    assert form.problem.text().endswith(f"after a context of 128, at most {room} new tokens fit.")
    assert not dock.run.isEnabled()
    assert dock.run.toolTip() == dock.run.accessibleDescription() == form.problem.text()
    rich.actions_by_id["run"].trigger()
    assert rich.status_text.text() == form.problem.text()
    assert not rich.controller.running
    form.spins["new_tokens"].setValue(room)
    assert form.problem.isHidden()
    assert dock.run.isEnabled()
    assert dock.run.toolTip() == "Run this setting (Ctrl+R)"


def test_a_missing_file_is_told_below_its_setting(bare_window: Any, session: Any, tmp_path: Path) -> None:
    ranges = LeverOptionInfo(name="ranges", title="saved ranges", kind="file", default="", summary="A file.")
    levers = tuple(
        msgspec.structs.replace(lever, options=(ranges,)) if lever.name == "int8-dynamic" else lever
        for lever in RICH_CAPABILITIES.levers
    )
    window: MainWindow = bare_window()
    session.feed(msgspec.structs.replace(RICH_CAPABILITIES, levers=levers), INSPECTED, PEAKS)
    options = choose(window, "INT8", "int8-dynamic")
    field: Any = options.editors["ranges"]
    field.line.setText("/nowhere/ranges.json")
    field.line.editingFinished.emit()
    assert options.problems["ranges"].isVisible()
    assert options.problems["ranges"].text() == "There is no file /nowhere/ranges.json."
    assert field.line.toolTip().startswith("/nowhere/ranges.json"), "a long path is cut off in the field"
    assert not window.dock.run.isEnabled()
    there = tmp_path / "ranges.json"
    there.write_text("{}")
    field.line.setText(str(there))
    field.line.editingFinished.emit()
    assert options.problems["ranges"].isHidden()
    assert window.dock.run.isEnabled()


def test_ctrl_r_runs_what_is_still_being_typed(rich: MainWindow, session: Any, qtbot: QtBot) -> None:
    rich.activateWindow()
    spin = rich.dock.workload_form.spins["new_tokens"]
    spin.setFocus()
    spin.selectAll()
    qtbot.keyClicks(spin, "77")
    assert rich.controller.setup.workload.new_tokens != 77
    rich.actions_by_id["run"].trigger()
    assert session.sent[-1].experiment.workload.new_tokens == 77
    assert spin.hasFocus()


def test_training_is_compared_over_seeds(rich: MainWindow, session: Any) -> None:
    form = rich.dock.output_form
    choose(rich, "FP8", "fp8-delayed")
    form.compare.click()
    assert not form.seeds.isVisible(), "they compare training losses"
    rich.dock.workload_form.kind.segment("train").click()
    assert form.seeds.isVisible()
    form.seeds.setValue(5)
    assert form._seeds_note.text() == "4 more, not timed"
    rich.dock.copy_command()
    assert QGuiApplication.clipboard().text().endswith("--no-quality --seeds 5")
    rich.controller.run()
    assert session.sent[-1].experiment.seeds == 5
    rich.controller.setup.compare = False
    assert rich.controller.setup.experiment(RICH_CAPABILITIES).seeds == 1


def test_every_setting_can_be_reached_and_is_named(rich: MainWindow) -> None:
    options = choose(rich, "INT8", "int8-dynamic")
    options.more.click()
    names = [editor.accessibleName() for editor in options.editors.values()]
    assert names[0] == "INT8 dynamic: Weight scales"
    assert len({*names}) == 6
    assert all(editor.focusPolicy() == Qt.FocusPolicy.StrongFocus for editor in options.editors.values())

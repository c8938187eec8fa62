from typing import Any

from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from pytestqt.qtbot import QtBot

from gptscope.app.gui.window import MainWindow


def test_unavailable_levers_are_grey_and_say_why_in_three_places(window: MainWindow) -> None:
    tf32 = window.dock.levers_form.precision.segment("tf32")
    reason = "TF32 needs an NVIDIA GPU, Ampere or newer. This machine has none."
    assert not tf32.isEnabled()
    assert tf32.toolTip() == tf32.statusTip() == tf32.accessibleDescription() == reason
    optimizer = window.dock.levers_form.switches["optimizer"]
    assert not optimizer.isEnabled()
    assert optimizer.toolTip() == optimizer.accessibleDescription() == "optimizer works for train only."


def test_levers_change_the_variant_its_name_and_its_cost(window: MainWindow, qtbot: QtBot) -> None:
    dock, setup = window.dock, window.controller.setup
    before = dock.ceiling.text()
    qtbot.mouseClick(dock.levers_form.precision.segment("bf16"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(dock.levers_form.switches["qkv"], Qt.MouseButton.LeftButton, pos=QPoint(10, 12))
    qtbot.mouseClick(dock.levers_form.kv_cache.segment("static"), Qt.MouseButton.LeftButton)
    qtbot.mouseClick(dock.levers_form.compile.segment("on"), Qt.MouseButton.LeftButton)
    assert (setup.variant.precision, setup.variant.fusions, setup.variant.kv_cache) == (
        "bf16",
        ("qkv", "compile"),
        "static",
    )
    assert dock.differs.text() == "4 levers differ from FP32 plain"
    assert dock.ceiling.text() != before
    assert dock.memory.text() != "n/a"


def test_all_and_none(window: MainWindow) -> None:
    form, setup = window.dock.levers_form, window.controller.setup
    form.all_button.click()
    assert setup.variant.fusions == ("attention", "qkv", "mlp", "norm", "packed_linear")
    window.actions_by_id["no_fusions"].trigger()
    assert setup.variant.fusions == ()


def test_a_switch_is_worked_by_the_keyboard(window: MainWindow, qtbot: QtBot) -> None:
    switch = window.dock.levers_form.switches["norm"]
    switch.setFocus()
    qtbot.keyClick(switch, Qt.Key.Key_Space)
    assert window.controller.setup.variant.fusions == ("norm",)


def test_the_form_shows_only_what_applies(window: MainWindow) -> None:
    form = window.dock.workload_form
    for kind, new_tokens, prompt in (("train", False, False), ("decode", True, False), ("generate", True, True)):
        form.kind.segment(kind).click()
        assert form.spins["new_tokens"].isVisible() == new_tokens
        assert form.prompt.isVisible() == prompt
    assert not form.spins["context"].isEnabled(), "one's own text sets the length"
    form.prompt.setPlainText("")
    form.kind.segment("decode").click()
    assert window.controller.setup.workload.prompt is None


def test_context_cannot_exceed_the_model(window: MainWindow) -> None:
    spin = window.dock.workload_form.spins["context"]
    spin.setValue(999_999)
    assert window.controller.setup.workload.context == 2048


def test_threads_at_the_default_are_no_difference(window: MainWindow) -> None:
    spin = window.dock.levers_form.threads
    assert spin.maximum() == 2
    spin.setValue(1)
    assert window.controller.setup.variant.threads == 1
    spin.setValue(2)
    assert window.controller.setup.variant.threads is None


def test_copy_as_command(window: MainWindow) -> None:
    window.dock.copy_command()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("gptscope run --model bundled --workload decode --precision fp32 --fuse none")
    assert window.status_text.text() == f"Copied: {text}"


def test_the_picker_offers_bundled_catalogue_presets_and_recent_models(window: MainWindow) -> None:
    window.settings.add_recent_model("/models/mine")
    form = window.dock.model_form
    form.refresh_choices()
    texts = [form.picker.itemText(i) for i in range(form.picker.count())]
    assert texts[0] == "Bundled model"
    assert {"mine", "smollm2-135m", "gpt2-124m", "tiny"} <= set(texts)
    heading = texts.index("Recent")
    assert not form.picker.model().flags(form.picker.model().index(heading, 0)) & Qt.ItemFlag.ItemIsSelectable


def test_models_of_the_same_name_are_told_apart_by_their_folder(window: MainWindow) -> None:
    window.settings.add_recent_model("/one/model")
    form = window.dock.model_form
    form.choose("/other/model")
    texts = [form.picker.itemText(i) for i in range(form.picker.count())]
    places = [i for i, text in enumerate(texts) if text == "model"]
    tips = {form.picker.itemData(i, Qt.ItemDataRole.ToolTipRole) for i in places}
    assert tips == {"/one/model", "/other/model"}
    assert form.picker.toolTip().startswith("/other/model\n")


def test_a_dropped_folder_becomes_the_model(window: MainWindow, session: Any, tmp_path: Any) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    position = QPoint(500, 300).toPointF()
    event = QDropEvent(
        position, Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)
    assert window.controller.setup.model == str(tmp_path)
    assert session.sent[-1].model == str(tmp_path)


def test_every_control_has_an_accessible_name(window: MainWindow) -> None:
    from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit, QPlainTextEdit

    for kind in (QAbstractButton, QAbstractSpinBox, QComboBox, QPlainTextEdit):
        for widget in window.dock.findChildren(kind):
            own = widget.objectName() != "qt_spinbox_lineedit" and not isinstance(widget.parent(), QAbstractSpinBox)
            if own and widget.isVisible() and not widget.objectName().startswith("qt_"):
                assert widget.accessibleName() or getattr(widget, "text", str)(), widget
    assert all(edit.accessibleName() for edit in window.history.findChildren(QLineEdit) if edit.objectName() == "")  # type: ignore[union-attr]

"""What the command palette finds, and what it says when there is nothing."""

from pathlib import Path

from pytestqt.qtbot import QtBot
from tests_app_traces import write_trace

from gptscope.app.gui.palette import CommandPalette
from gptscope.app.gui.window import MainWindow


def test_the_palette_finds_by_menus_and_says_when_nothing_is_found(window: MainWindow) -> None:
    palette = CommandPalette(window)
    palette.input.setText("theme")
    assert [entry.text for entry in palette._found][:3] == ["Follow the system", "Dark", "Light"]
    palette.input.setText("zzz")
    assert [palette.list.item(row).text() for row in range(palette.list.count())] == ["Nothing found"]
    palette._do()
    assert palette.list.currentItem() is None, "what says so cannot be chosen"
    palette.deleteLater()


def test_the_palette_leads_to_the_tables_and_exports_of_the_trace(
    window: MainWindow, tmp_path: Path, qtbot: QtBot
) -> None:
    file = tmp_path / "t.json"
    write_trace(file)
    window.tracing.open(file)
    view = window.tracing.view
    assert view is not None
    qtbot.waitUntil(lambda: view.trace is not None, timeout=20_000)
    palette = CommandPalette(window)
    palette.input.setText("export")
    assert "For Perfetto (Chrome JSON)" in [entry.text for entry in palette._found]
    palette.input.setText("operators")
    found = [entry.text for entry in palette._found]
    palette.list.setCurrentRow(found.index("Trace table: Operators"))
    palette._do()
    assert view.tables.front_key() == "operators"

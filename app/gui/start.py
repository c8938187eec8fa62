"""Builds the application's look and the window from their parts."""

from pathlib import Path

from PySide6.QtWidgets import QApplication

from gptscope.app.gui.controller import Controller
from gptscope.app.gui.session import Session
from gptscope.app.gui.settings import Settings, cache_folder
from gptscope.app.gui.theme import Theme, ThemeChoice
from gptscope.app.gui.window import MainWindow
from gptscope.app.viewmodels.formatting import show_digits


def prepare_application(
    app: QApplication,
    *,
    theme: ThemeChoice | None = None,
    settings: Settings | None = None,
    system_font: bool | None = None,
) -> tuple[Theme, Settings]:
    """Name the application and give it its look."""
    app.setApplicationName("gptscope")
    app.setApplicationDisplayName("gptscope")
    app.setDesktopFileName("gptscope")
    settings = settings or Settings()
    show_digits(settings.digits)
    look = Theme(cache_folder(), theme or settings.theme, system_font=system_font)
    look.apply(app)
    app.setWindowIcon(look.icon("gptscope", "t1", 64))
    return look, settings


def build_window(
    theme: Theme,
    settings: Settings,
    *,
    library: str | None = None,
    model: str | None = None,
    trace: str | None = None,
    session: Session | None = None,
) -> MainWindow:
    """The window with its controller; `library`, `model` and `trace`, a file to open, hold for this start only."""
    controller = Controller(session or Session(), settings)
    if model:
        controller.setup.model = model
    window = MainWindow(controller, theme, settings, library=Path(library) if library else None)
    if trace:
        window.ready.connect(lambda: window.tracing.open(Path(trace)))
    return window

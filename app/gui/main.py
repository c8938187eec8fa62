"""Opens the window. Imports as little as possible before the first paint."""

import argparse
import os
import sys
from collections.abc import Sequence

from gptscope.app.gui.guard import refusal


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gptscope gui", description="Open the gptscope window.")
    parser.add_argument("--theme", choices=("system", "dark", "light"), help="colours, for this start only")
    parser.add_argument("--library", metavar="FOLDER", help="library of runs (default: your data folder)")
    parser.add_argument("--model", help="model to begin with")
    parser.add_argument("--trace", metavar="FILE", help="trace to open")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window and stay until it is closed. Returns the exit code."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    sentence = refusal()
    if sentence is not None:
        print(sentence, file=sys.stderr)
        return 1
    os.environ.setdefault("QT_LOGGING_RULES", "qt.qpa.*.warning=false")
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from gptscope.app.gui.start import build_window, prepare_application

    app = QApplication.instance() or QApplication(["gptscope"])
    assert isinstance(app, QApplication)
    theme, settings = prepare_application(app, theme=options.theme)
    window = build_window(theme, settings, library=options.library, model=options.model, trace=options.trace)
    window.show()
    _let_ctrl_c_end(app, QTimer(app))
    return int(app.exec())


def _let_ctrl_c_end(app: object, timer: object) -> None:
    """Ctrl+C in the terminal closes the window: Python handles signals only when it runs, so let it run at times."""
    import signal

    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    assert isinstance(app, QApplication)
    assert isinstance(timer, QTimer)
    signal.signal(signal.SIGINT, lambda *_: app.closeAllWindows())
    timer.timeout.connect(lambda: None)
    timer.start(500)


if __name__ == "__main__":
    sys.exit(main())

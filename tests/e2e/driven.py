"""The real window in a process of its own; answers questions about itself on stdin and stdout.

It is only asked, never told: everything that happens in the window comes from real mouse and key events.
The model it starts with is the first argument.
Questions, one JSON per line: {"center": accessible name} -> [x, y] on the screen; {"get": expression over `window`}.
"""

import json
import sys
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier
from PySide6.QtWidgets import QApplication, QWidget

from gptscope.app.gui.start import build_window, prepare_application
from gptscope.app.gui.window import MainWindow


def center_of(name: str) -> list[int] | None:
    """Where a visible, enabled widget with this accessible name lies on the screen."""
    for widget in QApplication.allWidgets():
        if widget.accessibleName() == name and widget.isVisible() and widget.isEnabled():
            point = widget.mapToGlobal(widget.rect().center())
            return [point.x(), point.y()]
    return None


def answer(window: MainWindow, question: dict[str, Any]) -> Any:
    if "center" in question:
        return center_of(question["center"])
    names = {
        "window": window,
        "live": window.live,
        "profile": window.profile,
        "history": window.history,
        "c": window.controller,
    }
    return eval(question["get"], {**names, "QApplication": QApplication, "QWidget": QWidget})


class Answerer(QObject):
    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_question)

    def _on_question(self) -> None:
        line = sys.stdin.readline()
        if not line:
            self._notifier.setEnabled(False)
            QApplication.exit(1)
            return
        try:
            reply = {"value": answer(self._window, json.loads(line))}
        except Exception as error:  # noqa: BLE001 - the test shows it
            reply = {"error": repr(error)}
        print(json.dumps(reply, default=str), flush=True)


def main() -> int:
    app = QApplication(["gptscope"])
    theme, settings = prepare_application(app, theme="dark", system_font=False)
    window = build_window(theme, settings, model=sys.argv[1])
    window.ready.connect(lambda: print(json.dumps({"ready": True}), flush=True))
    Answerer(window)
    window.show()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())

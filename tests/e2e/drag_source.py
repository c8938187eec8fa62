"""A small window that offers one folder or file for dragging, as a file manager does."""

import sys

from PySide6.QtCore import QMimeData, Qt, QTimer, QUrl
from PySide6.QtGui import QDrag, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QLabel


class Source(QLabel):
    def __init__(self, path: str) -> None:
        super().__init__("drag me")
        self._path, self._told = path, False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 (Qt's name)
        if event.buttons() & Qt.MouseButton.LeftButton:
            data = QMimeData()
            data.setUrls([QUrl.fromLocalFile(self._path)])
            drag = QDrag(self)
            drag.setMimeData(data)
            drag.exec(Qt.DropAction.CopyAction)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 (Qt's name)
        super().paintEvent(event)
        if not self._told:
            self._told = True
            QTimer.singleShot(200, lambda: print("shown", flush=True))  # by then the window manager has placed it


app = QApplication(sys.argv)
source = Source(sys.argv[1])
source.setWindowTitle("drag source")
source.setWindowFlags(Qt.WindowType.WindowStaysOnTopHint)
source.setGeometry(20, 40, 120, 60)
source.show()
sys.exit(app.exec())

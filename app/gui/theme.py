"""Colours, fonts and icons: one table of tokens, one QPalette, one small style sheet, in dark and light."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPen,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from gptscope.assets import ASSETS

ThemeName = Literal["dark", "light"]
ThemeChoice = Literal["system", "dark", "light"]

_ROLES = {
    QPalette.ColorRole.Window: "bg1",
    QPalette.ColorRole.Base: "bg2",
    QPalette.ColorRole.AlternateBase: "bg1",
    QPalette.ColorRole.Button: "bg2",
    QPalette.ColorRole.Text: "t1",
    QPalette.ColorRole.WindowText: "t1",
    QPalette.ColorRole.ButtonText: "t1",
    QPalette.ColorRole.BrightText: "bad",
    QPalette.ColorRole.Highlight: "sel",
    QPalette.ColorRole.HighlightedText: "t1",
    QPalette.ColorRole.Accent: "accent",
    QPalette.ColorRole.Link: "accentText",
    QPalette.ColorRole.PlaceholderText: "t3",
    QPalette.ColorRole.ToolTipBase: "bg3",
    QPalette.ColorRole.ToolTipText: "t1",
    QPalette.ColorRole.Mid: "line2",
    QPalette.ColorRole.Midlight: "bg3",
    QPalette.ColorRole.Light: "line2",
    QPalette.ColorRole.Dark: "line",
    QPalette.ColorRole.Shadow: "bg0",
}
_DISABLED_ROLES = (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText)
_ARROW = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><path d="{path}" fill="none" stroke="{colour}" '
    'stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_ARROWS = {"down_arrow": "M2 3.5 5 6.5 8 3.5", "up_arrow": "M2 6.5 5 3.5 8 6.5"}


class Theme(QObject):
    """The look of the application. Widgets that paint themselves ask it for colours and repaint on `changed`."""

    changed = Signal()

    def __init__(self, cache_folder: Path, choice: ThemeChoice = "system", *, system_font: bool | None = None) -> None:
        """Load the tokens; `cache_folder` holds the two arrows that a style sheet can only take from files.

        `system_font` False uses the bundled Inter everywhere (exact screenshots); None: only on Linux, whose default
        font differs from one machine to the next.
        """
        super().__init__()
        self._tokens: dict[str, dict[str, Any]] = json.loads((ASSETS / "themes" / "tokens.json").read_text("utf-8"))
        self._sheet = (ASSETS / "themes" / "app.qss").read_text("utf-8")
        self._cache_folder = cache_folder
        self._system_font = sys.platform in ("darwin", "win32") if system_font is None else system_font
        self._family = ""
        self._icons: dict[tuple[str, str, int, int], QIcon] = {}
        self._colours: dict[tuple[str, float], QColor] = {}
        self._fonts: dict[tuple[int, bool], QFont] = {}
        self._metrics: dict[tuple[int, bool], QFontMetricsF] = {}
        self.choice: ThemeChoice = choice
        self.name: ThemeName = self._resolve(choice)

    @staticmethod
    def _resolve(choice: ThemeChoice) -> ThemeName:
        if choice != "system":
            return choice
        hints = QGuiApplication.styleHints()
        return "light" if hints.colorScheme() == Qt.ColorScheme.Light else "dark"

    def apply(self, app: QApplication) -> None:
        """Set style, font, palette and style sheet; follow the system while the choice is `system`."""
        app.setStyle("Fusion")
        if not self._system_font:
            for file in ("Inter-Regular.otf", "Inter-SemiBold.otf"):
                QFontDatabase.addApplicationFont(str(ASSETS / "fonts" / file))
            self._family = "Inter"
        app.setFont(self.font(13))
        self._refresh(app)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    def choose(self, choice: ThemeChoice) -> None:
        """Switch between following the system, dark and light."""
        self.choice = choice
        name = self._resolve(choice)
        if name != self.name:
            self.name = name
            app = QApplication.instance()
            assert isinstance(app, QApplication)
            self._refresh(app)

    def _on_system_scheme(self) -> None:
        if self.choice == "system":
            self.choose("system")

    def _refresh(self, app: QApplication) -> None:
        self._icons.clear()
        self._colours.clear()
        palette = QPalette()
        for role, token in _ROLES.items():
            palette.setColor(role, self.color(token))
        for role in _DISABLED_ROLES:
            palette.setColor(QPalette.ColorGroup.Disabled, role, self.color("t4"))
        app.setPalette(palette)
        app.setStyleSheet(self._sheet % {**self._tokens[self.name], **self._arrow_files()})
        self.changed.emit()

    def _arrow_files(self) -> dict[str, str]:
        self._cache_folder.mkdir(parents=True, exist_ok=True)
        paths = {}
        for key, path in _ARROWS.items():
            file = self._cache_folder / f"{key}-{self.name}.svg"
            text = _ARROW.format(path=path, colour=self.hex("t3"))
            if not file.exists() or file.read_text("utf-8") != text:
                file.write_text(text, "utf-8")
            paths[key] = file.as_posix()
        return paths

    def hex(self, token: str) -> str:
        """The token's colour as `#RRGGBB`."""
        value = self._tokens[self.name][token]
        assert isinstance(value, str)
        return value

    def color(self, token: str, alpha: float = 1.0) -> QColor:
        """The token's colour; `alpha` 0 to 1."""
        key = (token, alpha)
        if key not in self._colours:
            colour = QColor(self.hex(token))
            if alpha < 1.0:
                colour.setAlphaF(alpha)
            self._colours[key] = colour
        return self._colours[key]

    def category(self, category: str) -> QColor:
        """Fill of a kernel category; unknown ones look like `other`."""
        table = self._tokens[self.name]["categories"]
        return QColor(table.get(category, table["other"])["fill"])

    def category_label(self, category: str) -> QColor:
        """Text colour on that fill."""
        table = self._tokens[self.name]["categories"]
        return QColor(table.get(category, table["other"])["label"])

    def heat(self, position: float) -> QColor:
        """Colour on the heat ramp, 0 is none and 1 is most."""
        ramp = self._tokens[self.name]["heat"]
        place = min(max(position, 0.0), 1.0) * (len(ramp) - 1)
        below = min(int(place), len(ramp) - 2)
        low, high, share = QColor(ramp[below]), QColor(ramp[below + 1]), place - below
        parts = ((low.redF(), high.redF()), (low.greenF(), high.greenF()), (low.blueF(), high.blueF()))
        red, green, blue = (a + (b - a) * share for a, b in parts)
        return QColor.fromRgbF(red, green, blue)

    def pen(self, token: str, width: float = 1.0, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        """A flat-capped pen in a token's colour."""
        return QPen(self.color(token), width, style, Qt.PenCapStyle.FlatCap, Qt.PenJoinStyle.RoundJoin)

    def hatch(self, token: str) -> QBrush:
        """Diagonal hatch: something that is not counted (`line2`) or a gap (`t3`)."""
        return QBrush(self.color(token), Qt.BrushStyle.BDiagPattern)

    def font(self, pixels: int, *, bold: bool = False) -> QFont:
        """The interface font with figures of equal width. Shared, like `metrics`: to make one takes 10 µs."""
        key = (pixels, bold)
        if key not in self._fonts:
            font = QFont(self._family) if self._family else QFont(QGuiApplication.font())
            font.setPixelSize(pixels)
            font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
            font.setFeature(QFont.Tag("tnum"), 1)
            self._fonts[key] = font
        return self._fonts[key]

    def metrics(self, pixels: int, *, bold: bool = False) -> QFontMetricsF:
        """Widths and heights of text in `font` on the screen."""
        key = (pixels, bold)
        if key not in self._metrics:
            self._metrics[key] = QFontMetricsF(self.font(pixels, bold=bold))
        return self._metrics[key]

    def icon(self, name: str, token: str = "t2", size: int = 16, gap: int = 0) -> QIcon:
        """One of our icons, tinted; the disabled state is drawn in `t4`.

        `gap` adds empty pixels on the right: the only way to widen a button's distance between icon and text.
        """
        key = (name, token, size, gap)
        if key not in self._icons:
            icon = QIcon()
            for ratio in (1, 2):
                normal = self._pixmap(name, token, size, ratio, gap)
                icon.addPixmap(normal, QIcon.Mode.Normal)
                icon.addPixmap(normal, QIcon.Mode.Selected)
                icon.addPixmap(self._pixmap(name, "t4", size, ratio, gap), QIcon.Mode.Disabled)
            self._icons[key] = icon
        return self._icons[key]

    def pixmap(self, name: str, token: str = "t2", size: int = 16) -> QPixmap:
        """The icon as a picture for a label."""
        return self.icon(name, token, size).pixmap(QSize(size, size))

    def _pixmap(self, name: str, token: str, size: int, ratio: int, gap: int) -> QPixmap:
        svg = (ASSETS / "icons" / f"{name}.svg").read_text("utf-8").replace("currentColor", self.hex(token))
        pixmap = QPixmap((size + gap) * ratio, size * ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        QSvgRenderer(QByteArray(svg.encode("utf-8"))).render(painter, QRectF(0, 0, size * ratio, size * ratio))
        painter.end()
        pixmap.setDevicePixelRatio(ratio)
        return pixmap

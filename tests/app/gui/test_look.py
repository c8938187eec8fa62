import json
import re
from pathlib import Path

import pytest
from PySide6.QtGui import QPalette, QRawFont
from PySide6.QtWidgets import QApplication

from gptscope.app.gui.theme import Theme
from gptscope.app.gui.window import MainWindow
from gptscope.app.viewmodels.charts.kernel_times import CATEGORY_TITLES
from gptscope.assets import ASSETS
from gptscope.profiling.trace.categories import CATEGORIES


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["dark", "light"])
def test_texts_and_marks_can_be_read(look: Theme, name: str) -> None:
    tokens = look._tokens[name]
    for background in ("bg0", "bg1", "bg2", "bg3", "sel"):
        for text in ("t1", "t2", "t3"):
            assert contrast(tokens[text], tokens[background]) >= 4.5, (text, background)
    for tone in ("good", "warn", "bad"):
        assert contrast(tokens[tone], tokens[f"{tone}Bg"]) >= 4.5
        assert contrast(tokens[tone], tokens["bg1"]) >= 4.5
    for category in tokens["categories"].values():
        assert contrast(category["fill"], tokens["bg1"]) >= 3.0
        assert contrast(category["label"], category["fill"]) >= 4.5


def test_the_style_sheet_uses_only_tokens_and_no_colour_of_its_own(look: Theme) -> None:
    sheet = (ASSETS / "themes" / "app.qss").read_text("utf-8")
    used = set(re.findall(r"%\((\w+)\)s", sheet))
    assert used <= {*look._tokens["dark"], "up_arrow", "down_arrow"}
    assert not re.findall(r"#[0-9a-fA-F]{6}", sheet)
    assert set(look._tokens["dark"]) == set(look._tokens["light"])


def test_every_icon_that_is_asked_for_exists(repository: Path) -> None:
    known = {file.stem for file in (ASSETS / "icons").glob("*.svg")}
    for file in (repository / "app" / "gui").rglob("*.py"):
        for name in re.findall(r'\.on_(?:button|label)\([^,]+, "([\w-]+)"', file.read_text("utf-8")):
            assert name in known, f"{file.name} asks for {name}"


def test_switching_the_theme_repaints_and_is_remembered(window: MainWindow, qapp: QApplication) -> None:
    dark = qapp.palette().color(QPalette.ColorRole.Window).name()
    window.theme_button.click()
    assert qapp.palette().color(QPalette.ColorRole.Window).name() != dark
    assert window.settings.theme == "light"
    assert window.actions_by_id["theme_light"].isChecked()
    window.actions_by_id["theme_dark"].trigger()
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == dark


def test_following_the_system_is_a_choice(window: MainWindow) -> None:
    window.actions_by_id["theme_system"].trigger()
    assert window.theme.choice == "system"
    assert window.theme.name in ("dark", "light")


def test_an_error_while_painting_is_logged_and_does_not_end_the_program(
    look: Theme, qapp: QApplication, caplog: pytest.LogCaptureFixture
) -> None:
    from gptscope.app.gui.widgets.painted import Painted

    class Broken(Painted):
        def paint(self, _painter: object) -> None:
            raise RuntimeError("no")

    broken = Broken(look)
    broken.resize(50, 50)
    broken.grab()
    assert "Broken.paintEvent failed" in caplog.text
    caplog.clear()


def test_every_sign_of_the_interface_is_in_the_bundled_font(look: Theme, repository: Path) -> None:
    sources = [*(repository / "app" / "gui").rglob("*.py"), *(repository / "app" / "viewmodels").rglob("*.py")]
    texts = [file.read_text("utf-8") for file in sources]
    texts += [(repository / "assets" / "help" / "texts.json").read_text("utf-8")]
    used = {sign for text in texts for sign in text if sign.isprintable() and ord(sign) > 127}
    assert {"×", "µ"} <= used
    for name in ("Regular", "SemiBold"):
        font = QRawFont(str(repository / "assets" / "fonts" / f"Inter-{name}.otf"), 13)
        assert font.isValid()
        missing = sorted(sign for sign in used if not font.supportsCharacter(ord(sign)))
        assert not missing, f"Inter {name} lacks {missing}: another font of the machine would draw them, or none"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_category_of_the_profiler_has_its_own_colour_and_title(theme: str) -> None:
    tokens = json.loads((ASSETS / "themes" / "tokens.json").read_text("utf-8"))
    assert set(tokens[theme]["categories"]) == set(CATEGORIES) == set(CATEGORY_TITLES)


def test_a_label_that_cannot_be_drawn_is_logged(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(window.status_text, "foregroundRole", broken)
        window.status_text.repaint()
    assert "ElidedLabel.paintEvent failed" in caplog.text
    caplog.clear()

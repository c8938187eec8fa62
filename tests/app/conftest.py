"""Makes the record streams importable (`from tests_app_streams import …`): test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

_NAME = "tests_app_streams"
if _NAME not in sys.modules:
    _spec = importlib.util.spec_from_file_location(_NAME, Path(__file__).with_name("streams.py"))
    assert _spec is not None
    assert _spec.loader is not None
    _module = importlib.util.module_from_spec(_spec)
    sys.modules[_NAME] = _module
    _spec.loader.exec_module(_module)

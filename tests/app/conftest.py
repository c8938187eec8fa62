"""Makes the record streams importable (`from tests_app_streams import …`): test folders are no packages."""

import importlib.util
import sys
from pathlib import Path

for _name in ("streams", "quality_streams", "traces", "gui/steps"):
    _full = f"tests_app_{Path(_name).name}"
    if _full not in sys.modules:
        _spec = importlib.util.spec_from_file_location(_full, Path(__file__).parent / f"{_name}.py")
        assert _spec is not None
        assert _spec.loader is not None
        _module = importlib.util.module_from_spec(_spec)
        sys.modules[_full] = _module
        _spec.loader.exec_module(_module)

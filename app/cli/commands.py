"""Every command by its name, in the order of the help."""

from gptscope.app.cli.bench_machine import BenchMachine
from gptscope.app.cli.calibrate import CalibrateCommand
from gptscope.app.cli.command import Command
from gptscope.app.cli.compare import Compare
from gptscope.app.cli.demo import Demo
from gptscope.app.cli.doctor import Doctor
from gptscope.app.cli.finetune import FineTuneCommand
from gptscope.app.cli.gui import Gui
from gptscope.app.cli.history import History
from gptscope.app.cli.models import Models
from gptscope.app.cli.quality import Quality
from gptscope.app.cli.run import Run
from gptscope.app.cli.trace import TraceCommand

COMMANDS: dict[str, Command] = {
    "demo": Demo(),
    "run": Run(),
    "compare": Compare(),
    "quality": Quality(),
    "finetune": FineTuneCommand(),
    "calibrate": CalibrateCommand(),
    "models": Models(),
    "history": History(),
    "trace": TraceCommand(),
    "doctor": Doctor(),
    "bench-machine": BenchMachine(),
    "gui": Gui(),
}

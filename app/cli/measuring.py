"""What `run`, `compare` and `demo` share around the experiment: targets checked first, results written last."""

import argparse
from pathlib import Path

from gptscope.app.cli import console
from gptscope.app.cli.failing import FAILED, GOOD, USAGE, CommandError
from gptscope.app.cli.files import FileOutput
from gptscope.app.cli.json_output import JsonOutput, check_writable
from gptscope.app.cli.keeping import Keeping
from gptscope.app.cli.progress import progress_view
from gptscope.app.cli.session import Outcome, failure_error, run_experiment
from gptscope.app.cli.trace_output import TraceOutput
from gptscope.profiling.experiment import Experiment

_SHOWN_ID = 12
"""Characters of a run's id that are enough to find it."""


class Measuring:
    """One experiment from checked targets to its exit code.

    Attributes:
        out: Where the report goes.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        """Check every target before time is spent.

        Raises:
            CommandError: a file or the library cannot be written.
        """
        self._json = JsonOutput(args.json)
        trace: Path | None = args.trace
        if trace is not None:
            check_writable(trace, "--trace")
            if args.profile_steps == 0:
                raise CommandError("--trace needs profiled steps, but --profile-steps is 0.", code=USAGE)
        self._trace = TraceOutput(trace) if trace is not None else None
        self._csv = FileOutput(args.csv)
        self._keeping = Keeping(args)
        self.out = self._json.console()

    def measure(self, experiment: Experiment) -> Outcome:
        """Run it.

        Raises:
            CommandError: nothing at all was measured; with code 2 when the request was impossible.
        """
        view = progress_view(console.messages())
        outcome = run_experiment(experiment, keeping=self._keeping, view=view, trace=self._trace)
        if not outcome.measured:
            if outcome.failures:
                raise failure_error(outcome.failures[0])
            raise CommandError("Stopped before anything was measured." if outcome.stopped else "Nothing was measured.")
        return outcome

    def finish(self, outcome: Outcome) -> int:
        """Write the files, say where the run is kept, and give the exit code. A file that fails stops no other."""
        written, failed = self._write_files(outcome)
        self._say_where(outcome, written)
        for problem in (*outcome.problems, *failed):
            console.messages().line(f"Warning: {problem}", "warn")
        return self._code(outcome, failed_to_write=bool(failed))

    def _write_files(self, outcome: Outcome) -> tuple[list[Path], list[str]]:
        """What was written, and sentences about what could not be."""
        written = list(self._trace.written.values()) if self._trace is not None else []
        failed = list(self._trace.failed) if self._trace is not None else []
        if self._trace is not None and not written and not failed:
            failed.append("No trace was written, because nothing was profiled.")
        tables, reasons = self._csv.write(outcome.records, outcome.run_ids)
        written, failed = written + tables, failed + reasons
        try:
            self._json.write_experiment(
                outcome.records, outcome.run_ids, kept_in=self._keeping.folder, not_kept=self._keeping.reason
            )
        except CommandError as error:
            failed.append(str(error))
        return written, failed

    def _say_where(self, outcome: Outcome, written: list[Path]) -> None:
        self.out.line()
        for path in written:
            self.out.line(f"Written: {path}", "dim")
        if self._keeping.reason is not None:
            wanted = self._keeping.asked_not_to
            self.out.line(f"Not kept: {self._keeping.reason.removesuffix('.')}.", "dim" if wanted else "warn")
            return
        run_id = outcome.run_ids[-1][:_SHOWN_ID]
        library = f" --library {self._keeping.folder}" if self._keeping.given else ""
        self.out.line(f"Kept in {self._keeping.folder} as {', '.join(outcome.run_ids)}", "dim")
        self.out.line(f"  gptscope history show {run_id}{library}", "dim")
        self.out.line(f"  gptscope history export {run_id} --trace trace.json.gz --csv kernels.csv{library}", "dim")

    def _code(self, outcome: Outcome, *, failed_to_write: bool) -> int:
        messages = console.messages()
        for failure in outcome.failures:
            messages.line(f"gptscope: {failure.message}", "bad")
        if outcome.stopped:
            messages.line("gptscope: Stopped. What was measured until then is above.", "bad")
        good = outcome.finished == "done" and not outcome.failures and not outcome.stopped and not failed_to_write
        return GOOD if good else FAILED

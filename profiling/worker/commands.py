"""What the worker does for each command. Importing this file imports torch."""

from collections.abc import Mapping

import torch

from gptscope.profiling.records import (
    AskCapabilities,
    Calibrate,
    Command,
    EvaluateWindow,
    FetchModel,
    FineTune,
    ForceTokens,
    GreedyPrompt,
    InspectModel,
    LoadVariant,
    MapLayers,
    MeasurePeaks,
    MemoryPeak,
    RecordProfile,
    RunSlice,
    SaveModel,
    TrainSeed,
    WarmUp,
)
from gptscope.profiling.temp_folders import temporary_folder
from gptscope.profiling.worker import capture, memory, model_info, profile_report
from gptscope.profiling.worker.calibration import calibrate
from gptscope.profiling.worker.capabilities import capabilities
from gptscope.profiling.worker.failures import RequestError
from gptscope.profiling.worker.finetune import finetune
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.peaks import measure_peaks
from gptscope.profiling.worker.reporting import StepReporter
from gptscope.profiling.worker.saving import save_model
from gptscope.profiling.worker.scales import send_scales
from gptscope.profiling.worker.seeds import SeedTrainer
from gptscope.profiling.worker.variant import LoadedVariant, load_variant
from gptscope.profiling.worker.warmup import warm_up


class Commands:
    """Carries out commands, one at a time, on at most one loaded variant.

    Args:
        output: Where records go.
        environment: The environment variables that this process was started with.
    """

    def __init__(self, output: Output, environment: Mapping[str, str]) -> None:
        self._output, self._environment = output, environment
        self._variant: LoadedVariant | None = None
        self._trainer: SeedTrainer | None = None

    def do(self, command: Command) -> None:
        """Carry out one command.

        Raises:
            Exception: Anything that goes wrong; the caller tells it.
        """
        output = self._output
        match command:
            case LoadVariant():
                output.run_id = command.run_id
                self._variant = self._trainer = None
                self._variant = load_variant(command, output, self._environment)
            case WarmUp():
                variant = self._loaded()
                warm_up(variant.bench, output, variant.run_id)
            case RunSlice():
                self._run_slice(command)
            case RecordProfile():
                self._record_profile(command.steps)
            case EvaluateWindow() | GreedyPrompt() | ForceTokens() | MapLayers():
                self._examine(command)
            case TrainSeed():
                self._train_seed(command)
            case _:
                self._answer(command)

    def _answer(self, command: Command) -> None:
        """Answer a question that needs no variant."""
        output = self._output
        match command:
            case AskCapabilities():
                output.emit(capabilities(command.device))
            case InspectModel():
                output.emit(model_info.inspect_model(command.model))
            case FetchModel():
                output.emit(model_info.fetch(command.model, output))
            case SaveModel():
                output.emit(save_model(command, output))
            case MeasurePeaks():
                measure_peaks(command, output)
            case Calibrate():
                output.emit(calibrate(command, output))
            case FineTune():
                output.emit(finetune(command, output))
            case _:
                raise RequestError(f"A worker cannot do {command.__struct_config__.tag}; the engine does that itself.")

    def _examine(self, command: EvaluateWindow | GreedyPrompt | ForceTokens | MapLayers) -> None:
        variant, output = self._loaded(), self._output
        match command:
            case EvaluateWindow():
                variant.examiner.send_window(command.window, output)
            case GreedyPrompt():
                variant.examiner.continue_prompt(command.prompt, command.new_tokens, output)
            case ForceTokens():
                variant.examiner.judge_tokens(command.prompt, command.new_tokens, command.token_ids, output)
            case MapLayers():
                variant.map_layers(command.baseline_run_id, output)

    def _loaded(self) -> LoadedVariant:
        if self._variant is None:
            raise RequestError("No model is loaded in this worker.")
        return self._variant

    def _run_slice(self, command: RunSlice) -> None:
        variant = self._loaded()
        if not variant.measuring:
            # Loading, compiling and warming up may need more memory than the steps that are measured.
            memory.reset_peak(variant.prepared.device)
            variant.measuring = True
        reporter = StepReporter(self._output, variant.run_id, "measure", command.slice)
        variant.bench.run(reporter, command.steps)
        variant.keep_durations(reporter.durations_ns)
        send_scales(variant.prepared, self._output, variant.run_id)
        self._output.emit(
            MemoryPeak(
                run_id=variant.run_id,
                process_bytes=memory.process_peak_bytes(),
                device_bytes=memory.device_peak_bytes(variant.prepared.device),
                kv_cache_bytes=variant.bench.cache_bytes,
            )
        )

    def _train_seed(self, command: TrainSeed) -> None:
        """Give the measured model up, so that its memory serves the next one."""
        if self._trainer is None:
            variant = self._loaded()
            prepared, copies = variant.prepared, variant.copies
            self._trainer = SeedTrainer(
                variant.run_id, copies.source, prepared.context, prepared.device, variant.work, variant.tokenizer
            )
            self._variant = None
        self._trainer.train(command, self._output)

    def _record_profile(self, steps: int) -> None:
        if steps < 1:
            raise RequestError(f"profile steps is {steps}, but it must be 1 or more.")
        variant, output = self._loaded(), self._output
        output.progress("profile", 0, steps, "steps")
        with temporary_folder() as folder:
            reporter = StepReporter(output, variant.run_id, "profile")
            variant.prepared.reset_counters()
            recording = capture.record(variant.bench, steps, folder, reporter)
            output.progress("profile", recording.steps, recording.steps, "steps")
            slower = capture.overhead(recording.durations_ns, variant.unprofiled_ns(recording.steps))
            profile = profile_report.profile_record(recording, slower, variant.run_id)
            output.emit(profile)
            output.emit(profile_report.evidence_record(variant.prepared, profile, recording.steps, variant.run_id))
            send_scales(variant.prepared, output, variant.run_id)
            profile_report.send_trace(recording.trace, output, variant.run_id)
        if variant.prepared.device.type == "cuda":
            torch.cuda.empty_cache()

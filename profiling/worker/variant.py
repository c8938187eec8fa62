"""One variant in this process: loaded, its levers applied, ready to run steps."""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from gptscope.models.levers import LeverContext
from gptscope.models.loaders import ModelDescription, Tokenizer, describe_model, load_model
from gptscope.models.precision import RECIPES
from gptscope.models.prepare import PreparedModel, prepare, resolve_fusions
from gptscope.profiling import processes
from gptscope.profiling.experiment import Variant, Workload, variant_name
from gptscope.profiling.machine import facts
from gptscope.profiling.records import LoadVariant, MachineInfo, ModelLoaded, RunStarted, StepKind
from gptscope.profiling.worker.benches import make_bench
from gptscope.profiling.worker.calibration import calibration_for
from gptscope.profiling.worker.copies import ModelCopies
from gptscope.profiling.worker.drafts import load_draft
from gptscope.profiling.worker.judging import judge_variants
from gptscope.profiling.worker.layer_map import MapRequest, map_layers
from gptscope.profiling.worker.model_info import prepared_info, progress_to
from gptscope.profiling.worker.output import Output
from gptscope.profiling.worker.repeat import command_line, environment_that_matters
from gptscope.profiling.worker.request import (
    check_levers,
    check_memory,
    check_sizes,
    choose_device,
    choose_threads,
    lever_context,
)
from gptscope.profiling.worker.steps import Workbench
from gptscope.profiling.worker.texts import FirstSequenceText, TokenSource, read_text
from gptscope.profiling.worker.windows import Examiner


@dataclass
class LoadedVariant:
    """What the worker keeps of a variant between commands."""

    run_id: str
    work: Workload
    prepared: PreparedModel
    bench: Workbench
    source: TokenSource
    tokenizer: Tokenizer | None
    copies: ModelCopies
    text: str | None = None
    """What outputs are compared on; None: the evaluation text that comes with gptscope."""
    text_name: str = "the evaluation text that comes with gptscope"
    measuring: bool = False
    """True from the first measured slice on."""
    _measured_ns: list[list[int]] = field(default_factory=list)
    """Durations of the bench's kind of step, one list per slice, for the profiler's overhead."""
    _examiner: Examiner | None = None

    @property
    def examiner(self) -> Examiner:
        """Answers questions about the output's quality."""
        if self._examiner is None:
            assert self.tokenizer is not None
            self._examiner = Examiner(self.prepared, self._text_ids(), self.tokenizer)
        return self._examiner

    def map_layers(self, baseline_run_id: str, output: Output) -> None:
        """Send the layer map."""
        request = MapRequest(
            self.run_id, baseline_run_id, self.prepared.context, self.work, self._text_ids(), self.text_name
        )
        map_layers(request, self.copies, output)

    def _text_ids(self) -> Tensor:
        if self.text is not None:
            assert self.tokenizer is not None
            return torch.tensor(self.tokenizer.encode(self.text), dtype=torch.long)
        ids = self.source.text_ids
        assert ids is not None, "the engine asks only models with a tokenizer"
        return ids

    def keep_durations(self, durations_ns: Mapping[StepKind, list[int]]) -> None:
        """Remember the measured steps of one slice."""
        self._measured_ns.append(list(durations_ns[self.bench.kind]))

    def unprofiled_ns(self, steps: int) -> list[int]:
        """Durations to compare with `steps` profiled ones; measured now when no slice was run.

        Decode steps grow with the text, so only those at the same places of a sequence are taken.
        """
        first = steps if self.bench.kind == "decode" else None
        known = [duration for one in self._measured_ns for duration in one[:first]]
        return known or [_time_once(self.bench)]


def _time_once(bench: Workbench) -> int:
    bench.before_profile(1)
    bench.watch.start()
    bench.single()
    bench.watch.lap()
    return int(statistics.median(bench.watch.take().duration_ns))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run happens."""

    device: torch.device
    machine: MachineInfo


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request that was found possible."""

    description: ModelDescription
    context: LeverContext
    fusions: tuple[str, ...]
    skipped: dict[str, str]


def load_variant(command: LoadVariant, output: Output, environment: Mapping[str, str]) -> LoadedVariant:
    """Load a model, apply a variant's levers, and say so: `RunStarted`, `Progress`, `ModelLoaded`.

    Args:
        command: Which variant of which experiment.
        output: Where records go.
        environment: The environment variables that this process was started with.

    Raises:
        ModelError: The model is missing, damaged or unsupported.
        LeverError: A lever that does not exist or is not available here.
        RequestError: The sizes do not fit the model.
        NotEnoughMemoryError: The model does not fit into memory.
    """
    work = command.experiment.workload
    variant = command.experiment.variants[command.variant_index]
    place = _announce(command, variant, output, environment)
    start_s = processes.own_age_s()
    begun_s = time.monotonic()
    if work.prompt is not None and work.kind != "generate":
        output.warn(f"The prompt is not used: the workload {work.kind} reads {work.context} tokens of its own.")
    output.progress("load", 0, 0, note=f"reading {variant.model or command.experiment.model}")
    model = variant.model or command.experiment.model
    asked_text = command.experiment.text if command.experiment.quality else None
    text = None if asked_text is None else read_text(asked_text)
    judge_variants(command.experiment, place.machine)
    plan = _plan(model, variant, work, place)
    recipe = RECIPES[plan.context.precision]
    loaded = load_model(
        model,
        dtype=recipe.weight_dtype(training=plan.context.training),
        seed=work.seed,
        progress=progress_to(output),
    )
    source = TokenSource(loaded.tokenizer, loaded.model.config.vocab_size, work.seed)
    prompts_BL = _prompts(work, source, plan.description)
    stream = None
    if work.kind == "generate" and loaded.tokenizer is not None:
        stream = FirstSequenceText(output, command.run_id, loaded.tokenizer)
    calibration = calibration_for(plan.context, loaded, model, output)
    draft = load_draft(plan.context, loaded.tokenizer, output)
    prepared = prepare(loaded.model, plan.context, place.device, calibration, draft)
    bench = make_bench(prepared, work, source, prompts_BL, stream)
    for warning in prepared.warnings:
        output.warn(warning)
    output.emit(
        ModelLoaded(
            run_id=command.run_id,
            model=prepared_info(loaded.description, prepared),
            fusions=plan.fusions,
            skipped=plan.skipped,
            load_s=time.monotonic() - begun_s,
            start_s=start_s,
        )
    )
    copies = ModelCopies(model, work.seed, place.device, loaded.tokenizer)
    made = LoadedVariant(command.run_id, work, prepared, bench, source, loaded.tokenizer, copies)
    if text is not None and asked_text is not None:
        made.text, made.text_name = text, Path(asked_text).name
    return made


def _announce(command: LoadVariant, variant: Variant, output: Output, environment: Mapping[str, str]) -> _Place:
    """Choose device and threads, and send `RunStarted`."""
    experiment, work = command.experiment, command.experiment.workload
    device = choose_device(experiment.device)
    threads = choose_threads(variant)
    torch.set_num_threads(threads)
    torch.manual_seed(work.seed)
    machine = facts.machine_info("cuda" if device.type == "cuda" else "cpu")
    output.emit(
        RunStarted(
            run_id=command.run_id,
            experiment_id=command.experiment_id,
            variant=variant,
            name=variant_name(variant),
            workload=work,
            model=experiment.model,
            command=command_line(experiment, variant, device=device.type, threads=threads),
            started_unix_ns=time.time_ns(),
            machine=machine,
            versions=facts.package_versions(),
            environment=environment_that_matters(environment),
            threads=threads,
            seed=work.seed,
        )
    )
    return _Place(device, machine)


def _plan(model: str, variant: Variant, work: Workload, place: _Place) -> _Plan:
    """See that the request is possible, before anything large is read."""
    description = describe_model(model)
    asked = lever_context(variant, work, description.config, place.machine)
    check_levers(asked)
    fusions, skipped = resolve_fusions(variant.fusions, asked)
    context = replace(asked, fusions=frozenset(fusions))
    if work.prompt is None or work.kind != "generate":
        check_sizes(work, None, description.config, description.name)
    check_memory(description.config, work, context, place.device, description.name)
    return _Plan(description, context, fusions, skipped)


def _prompts(work: Workload, source: TokenSource, description: ModelDescription) -> Tensor:
    """What prefill, decode and generate read, `[batch, L]`."""
    if work.kind == "generate" and work.prompt is not None:
        ids = source.prompt_ids(work.prompt)
        check_sizes(work, len(ids), description.config, description.name)
        return ids.expand(work.batch, -1)
    return source.beginning(work.batch, work.context)

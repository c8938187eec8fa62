"""What this machine offers: every lever with the reason why it cannot be used."""

from dataclasses import asdict

from gptscope.models.config import PRESETS
from gptscope.models.levers import LeverDescription
from gptscope.models.loaders import CATALOGUE
from gptscope.models.prepare import list_levers
from gptscope.profiling.experiment import WorkloadKind
from gptscope.profiling.machine import facts
from gptscope.profiling.records import Capabilities, LeverInfo, LeverOptionInfo
from gptscope.profiling.worker.request import choose_device, to_lever_machine

_INFERENCE: WorkloadKind = "decode"
_TRAINING: WorkloadKind = "train"


def capabilities(device: str) -> Capabilities:
    """Describe machine, levers, versions and the names of models.

    Args:
        device: `auto`, `cpu` or `cuda`.

    Raises:
        RequestError: That device cannot be used.
    """
    chosen = choose_device(device)
    machine = facts.machine_info("cuda" if chosen.type == "cuda" else "cpu")
    lever_machine = to_lever_machine(machine)
    for_inference = list_levers(lever_machine, None, _INFERENCE)
    for_training = {(lever.group, lever.name): lever for lever in list_levers(lever_machine, None, _TRAINING)}
    return Capabilities(
        machine=machine,
        levers=tuple(_info(lever, for_training[lever.group, lever.name]) for lever in for_inference),
        versions=facts.package_versions(),
        presets=tuple(PRESETS),
        catalogue=tuple(CATALOGUE),
    )


def _info(for_inference: LeverDescription, for_training: LeverDescription) -> LeverInfo:
    """A lever's answer for a workload that it has a part in; which ones those are stands in `workloads`."""
    lever = for_inference if _INFERENCE in for_inference.workloads else for_training
    return LeverInfo(
        name=lever.name,
        group=lever.group,
        title=lever.title,
        summary=lever.summary,
        unavailable_reason=lever.unavailable_reason,
        warning=lever.warning,
        workloads=tuple(lever.workloads),
        options=tuple(LeverOptionInfo(**asdict(option)) for option in lever.options),
    )

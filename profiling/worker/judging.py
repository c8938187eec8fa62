"""Judges all variants of an experiment before the first of them is loaded: nobody waits for half a comparison."""

from gptscope.models.levers import LeverError
from gptscope.models.loaders import describe_model
from gptscope.models.prepare import resolve_fusions
from gptscope.profiling.experiment import Experiment, variant_name
from gptscope.profiling.records import MachineInfo
from gptscope.profiling.worker.request import check_levers, lever_context


def judge_variants(experiment: Experiment, machine: MachineInfo) -> None:
    """See that the levers of every variant exist, have possible settings and are available here.

    Raises:
        ModelError: A variant's model is missing, damaged or unsupported.
        LeverError: A lever of a variant cannot be used; among several variants the message begins with its name.
    """
    models = {variant.model or experiment.model for variant in experiment.variants}
    configs = {model: describe_model(model).config for model in models}
    for variant in experiment.variants:
        config = configs[variant.model or experiment.model]
        context = lever_context(variant, experiment.workload, config, machine)
        try:
            check_levers(context)
            resolve_fusions(variant.fusions, context)
        except LeverError as error:
            if len(experiment.variants) == 1:
                raise
            raise LeverError(f"{variant_name(variant)}: {error}") from error

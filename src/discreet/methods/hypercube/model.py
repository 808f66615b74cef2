"""The published model of a cube: everything that a query needs besides its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from discreet.methods.hypercube.calibration import CalibratedCube
from discreet.methods.hypercube.design import CubeDesign, PreparedControl
from discreet.methods.hypercube.noisy_measurements import CubeMeasurements
from discreet.post.cubes.margins import Floats, Margin, Problem
from discreet.post.cubes.model import (
    AxisModel,
    CalibrationModel,
    ControlModel,
    CubeModel,
    IntegersModel,
    LevelModel,
    NoiseModel,
    RakedModel,
    SamplingModel,
)
from discreet.post.cubes.sampling import fit_gvf, replicate_noise, replicate_variance, tail

NAMED = 20  # problems that are listed


def cube_model(
    measurements: CubeMeasurements,
    simulated: bool,
    calibrated: CalibratedCube | None,
    raked: Sequence[RakedModel],
    exceptions: Sequence[Problem] | None,
    sampling: SamplingModel | None,
) -> CubeModel:
    """The model file of a cube."""
    design = measurements.design
    axes = tuple(AxisModel(name=a.name, columns=a.columns, codes=a.published) for a in design.domain.attributes)
    levels = tuple(
        LevelModel(name=a.name, columns=a.columns, codes=a.published, axis=place, groups=tuple(groups.tolist()))
        for a, place, groups in design.coarser_levels()
    )
    return CubeModel(
        cube=design.name,
        simulation=simulated,
        form=design.spec.form,
        measure=design.spec.measure,
        estimate="calibrated" if design.calibrates_cells else design.spec.measure,
        axes=axes,
        levels=levels,
        variance=measurements.variance,
        fourth=measurements.fourth,
        unit=measurements.largest_noise_unit,
        counts=_counts(design),
        controls=tuple(_control(measurements, control) for control in design.controls),
        calibration=None if calibrated is None else _calibration(design, calibrated, raked),
        whole=None if exceptions is None else IntegersModel(problems=_listed(exceptions)),
        sampling=sampling,
    )


def _control(measurements: CubeMeasurements, control: PreparedControl) -> ControlModel:
    margin = control.margin
    return ControlModel(
        name=control.name,
        by=tuple(control.spec.by),
        kind=control.kind,
        axes=margin.places if margin.ungrouped else None,
        variance=measurements.variance_of(control),
    )


def _counts(design: CubeDesign) -> NoiseModel | None:
    distribution = design.count_distribution
    if distribution is None or design.spec.measure == "count":
        return None
    return NoiseModel(variance=distribution.variance(), fourth=distribution.fourth_cumulant())


def _listed(problems: Sequence[Problem]) -> tuple[str, ...]:
    return tuple(f"{p.margin}, cell {p.cell}: {p.kind}, {p.detail}" for p in problems[:NAMED])


def _calibration(design: CubeDesign, calibrated: CalibratedCube, raked: Sequence[RakedModel]) -> CalibrationModel:
    return CalibrationModel(
        asked=design.spec.calibration.by,
        done="rake" if calibrated.raked else "regression",
        converged=calibrated.converged,
        cycles=calibrated.cycles,
        largest_gap=calibrated.largest_gap,
        problems=_listed(calibrated.problems),
        raked=tuple(raked),
    )


def variance_function(measurements: CubeMeasurements, sums: Callable[[Margin], Floats]) -> SamplingModel | None:
    """The generalised variance function fitted to protected cells of some small tables; None if they do not determine
    one."""
    columns = []
    for coarse, numbers in zip(measurements.design.deviation_tables, measurements.deviations, strict=True):
        margin = Margin.of(coarse, "sampling variances")
        sizes = _sizes(margin)
        perturbation = np.maximum(measurements.perturbation.of(sizes), 0.0)
        fourth = tail(perturbation, None if measurements.design.controls else measurements.fourth * sizes.prod(axis=1))
        columns.append((sums(margin), perturbation, fourth, _variances(measurements, numbers)))
    x, perturbation, fourth, v = (np.concatenate(column) for column in zip(*columns, strict=True))
    fit = fit_gvf(
        x, v, noise_of_estimates=perturbation, spread_of_variances=_spread(measurements), fourth_of_estimates=fourth
    )
    if fit.basis == "nothing":
        return None
    return SamplingModel(
        kind="gvf", a=fit.a, b=fit.b, a_error=fit.a_error, b_error=fit.b_error, basis=fit.basis, cells=fit.cells
    )


def _variances(measurements: CubeMeasurements, numbers: Floats) -> Floats:
    """Unbiased estimates of the sampling variance of each cell."""
    replicates = measurements.design.spec.replicates
    if replicates is not None:
        return replicate_variance(numbers, factor=float(replicates.factor), noise=measurements.deviation_noise[0])
    return numbers[:, 0] * _scale(measurements)


def _scale(measurements: CubeMeasurements) -> float:
    """The variance that one step of the measured Σ w²/max stands for."""
    squares, weights = measurements.design.spec.squared_weights, measurements.design.spec.weights
    return 0.0 if squares is None or weights is None else float(squares.design_effect * weights.max)


def _spread(measurements: CubeMeasurements) -> Callable[[Floats], Floats]:
    """The variance of these estimates from noise, as a function of the sampling variance."""
    replicates, (noise, fourth) = measurements.design.spec.replicates, measurements.deviation_noise

    def spread(variances: Floats) -> Floats:
        if replicates is None:
            return np.full(len(variances), _scale(measurements) ** 2 * noise)
        factor = float(replicates.factor)
        return replicate_noise(
            variances, replicates=measurements.design.replicates, factor=factor, noise=noise, fourth=fourth
        )

    return spread


def _sizes(margin: Margin) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """How many codes of each of the cube's axes a cell of a margin adds up."""
    sizes = np.tile(np.array(margin.shape, np.int64), (margin.cells, 1))
    children = [np.bincount(axis.groups, minlength=axis.size) for axis in margin.axes]
    for axis, grid in zip(margin.axes, np.meshgrid(*children, indexing="ij"), strict=True):
        sizes[:, axis.place] = grid.reshape(-1)
    return sizes

"""Weakens one guarantee at a time, in a copy, and expects its tests to fail: run `make mutations`.

A mutation is a place in the source where one text is replaced by another that claims too much, and the tests that must
notice. `python scripts/mutations.py WORD` tries those only whose name or file contains the word. The exit code is 1 if
one survives, and 2 if one cannot be tried: because its text is not there exactly once, because its tests do not run, or
because they fail without any mutation, which would make every failure worthless.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src", "certcal")

# Seconds after which tests are taken to hang.
PATIENCE = 900

# The copy must be what is imported; its own exit code tells that from a failing test.
FOREIGN = 97
RUN = f"""
import sys, certcal, pytest
if not certcal.__file__.startswith(sys.argv[1]):
    print("imported", certcal.__file__)
    sys.exit({FOREIGN})
sys.exit(pytest.main(sys.argv[2:]))
"""


class Mutation(NamedTuple):
    """What is claimed too much, where, by which change; and the tests that must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


class CannotTryError(Exception):
    """A mutation that proves nothing."""


def mutation(name: str, file: str, old: str, new: str, *tests: str) -> Mutation:
    """A mutation whose tests are in one file: tests/ROOM/test_FILE.py::test_… with the part before :: said once."""
    module = tests[0].partition("::")[0]
    return Mutation(name, file, old, new, tuple(t if ".py" in t else f"{module}::{t}" for t in tests))


MUTATIONS = (
    # --------------------------------------------------------------------------------------------- checked pages
    mutation(
        "check: the text around the numbers is not compared",
        "verbs/check.py",
        "if (one := _pieces(page)) == (other := _pieces(again)):",
        "if (one := _pieces(page))[0] == (other := _pieces(again))[0]:",
        "tests/verbs/test_check.py::test_a_number_changed_in_the_visible_text_alone_does_not_hold",
    ),
    mutation(
        "check: numbers need not agree",
        "verbs/check.py",
        "_TOLERANCE, _OF_NETWORKS, _PRINTED = (1e-9, 1e-12)",
        "_TOLERANCE, _OF_NETWORKS, _PRINTED = (1e-1, 1e-12)",
        "tests/verbs/test_check.py::test_every_number_of_the_json_is_compared",
    ),
    mutation(
        "check: what is only on the page is passed over",
        "verbs/check.py",
        "for key in {**again, **page} if key not in",
        "for key in again if key not in",
        "tests/verbs/test_check.py::test_whatever_is_changed_in_the_json_does_not_hold",
    ),
    mutation(
        "check: another file goes through where the numbers are the same",
        "verbs/check.py",
        "        same = digest in there\n",
        "        same = bool(there)\n",
        "tests/verbs/test_check.py::test_another_table_is_told_by_its_digest_even_where_all_numbers_are_the_same",
    ),
    # ------------------------------------------------------------------------------------------------- answers
    mutation(
        "groups: each has the level of all of them",
        "verbs/groups.py",
        "share = (1 - level) / max(1, len(groups))",
        "share = 1 - level",
        "tests/verbs/test_groups.py::test_intervals_of_all_groups_hold_together_and_are_no_wider_than_that_needs",
    ),
    mutation(
        "groups: slopes are not widened for all of them",
        "verbs/groups.py",
        "quantile(1 - share / 2) / quantile",
        "quantile(0.975) / quantile",
        "tests/verbs/test_groups.py::test_slopes_of_groups_are_widened_to_hold_together",
    ),
    mutation(
        "groups: their limits take more than an answer leaves them",
        "verbs/groups.py",
        "level: float = 1 - SEGMENTS",
        "level: float = 1 - 5 * SEGMENTS",
        "tests/verbs/test_groups.py::"
        "test_of_2000_calibrated_tables_with_overlapping_groups_at_most_one_in_twenty_is_called_wrong",
    ),
    mutation(
        "groups: the p-value of one event is for draws that are alike",
        "verbs/groups.py",
        "n * p if hits == 1",
        "1 - (1 - p) ** n if hits == 1",
        "tests/verbs/test_groups.py::test_the_p_value_of_one_event_is_for_draws_that_differ",
    ),
    mutation(
        "answers: a range that ends where the scores do is the highest",
        "verbs/answers.py",
        "return span[0] is found.groups[0], span[-1] is found.groups[-1]",
        "return span[0] is found.groups[0], span[-1].end >= found.groups[-1].end",
        "tests/verbs/test_answers.py::test_scores_that_are_all_0_or_1_err_in_two_directions",
    ),
    mutation(
        "answers: groups have the level of all of them each",
        "verbs/answers.py",
        'Reliability.of_bins(bins, "joint", 1 - alpha)',
        'Reliability.of_bins(bins, "per-bin", 1 - alpha)',
        "tests/verbs/test_answers.py::test_shares_of_the_level_add_up_and_a_shown_sentence_of_calibrated_scores_is_rare",
        "test_limits_of_groups_are_those_of_clopper_and_pearson_and_averages_limit_their_union",
    ),
    mutation(
        "answers: all samples have more than their share of the level",
        "verbs/answers.py",
        "rate_of(bins, WHOLE)",
        "rate_of(bins, 4 * WHOLE)",
        "tests/verbs/test_answers.py::"
        "test_limits_of_groups_are_those_of_clopper_and_pearson_and_averages_limit_their_union",
    ),
    mutation(
        "answers: each class has the level of all classes",
        "verbs/answers.py",
        "SLOPE / classes, identical=False",
        "SLOPE, identical=False",
        "tests/verbs/test_answers.py::test_limits_of_classes_share_what_the_slope_has_of_other_scores",
    ),
    mutation(
        "answers: the slope has the level of its interval alone",
        "verbs/answers.py",
        "inv_cdf(1 - SLOPE / 2) /",
        "inv_cdf(1 - 5 * SLOPE) /",
        "tests/verbs/test_answers.py::test_shares_of_the_level_add_up_and_a_shown_sentence_of_calibrated_scores_is_rare",
    ),
    mutation(
        "answers: the limit of the error takes more than its share",
        "verbs/answers.py",
        "(1 - error.interval.level) / 2 > ERROR + 1e-12",
        "(1 - error.interval.level) / 2 > 2 * ERROR + 1e-12",
        "tests/verbs/test_answers.py::test_calibrated_scores_are_never_shown_to_be_calibrated_and_their_error_has_a_limit",
    ),
    # ----------------------------------------------------------------------------------------------- arguments
    mutation(
        "arguments: one of a wrong type is not named",
        "_base/arguments.py",
        "and not _fits(value, hint):",
        "and False:",
        "tests/test_wrong_calls.py::test_a_wrong_argument_is_a_sentence",
    ),
    mutation(
        "arguments: a failure is blamed on arguments that are right",
        "_base/arguments.py",
        "        return _converts(value, operator.index if hint is int else float)",
        "        return False",
        "tests/test_wrong_calls.py::test_what_is_no_fault_of_the_arguments_stays_as_it_is",
    ),
    # --------------------------------------------------------------------------------------------------- files
    mutation(
        "files: those that were moved before one failed stay",
        "_base/files.py",
        "for place, identity, kept in reversed(moved):",
        "for place, identity, kept in ():",
        "tests/report/test_files.py::test_wherever_writing_fails_all_files_are_there_or_none",
        "test_one_that_appears_meanwhile_stays_and_none_of_ours_is_there",
    ),
    mutation(
        "files: what was replaced is not kept until all are in their places",
        "_base/files.py",
        "            elif len(files) > 1:",
        "            elif len(files) > 9:",
        "tests/report/test_files.py::test_wherever_writing_fails_all_files_are_there_or_none",
    ),
    mutation(
        "files: each is moved as soon as it is written",
        "cli/emit.py",
        "            write_together(files, force=self.force, folder=folder)",
        "            [write_together({path: files[path]}, force=self.force, folder=folder) for path in files]",
        "tests/cli/test_outputs.py::test_a_disk_that_is_full_at_the_last_file_leaves_none",
    ),
    mutation(
        "ray: what outlives a cluster of one's own is left alone",
        "engines/_ray_connection.py",
        "signal.pidfd_send_signal(process, signal.SIGKILL)",
        "pass",
        "tests/engines/test_ray_own.py::"
        "test_what_outlives_a_cluster_of_ones_own_is_ended_and_does_not_bring_its_folder_back",
    ),
    mutation(
        "signals: what is temporary stays when a command is ended",
        "cli/errors.py",
        "        signal.signal(each, leave)\n",
        "        pass\n",
        "tests/cli/test_process.py::test_what_came_through_standard_input_is_gone_when_a_signal_has_ended_the_command",
    ),
    # ------------------------------------------------------------------------------------------------- kernels
    mutation(
        "kernels: what is interpreted puts edges into the bin below",
        "_kernels/bins.py",
        'np.searchsorted(inner[:-1], values.astype(np.float64), "right")',
        'np.searchsorted(inner[:-1], values.astype(np.float64), "left")',
        "tests/test_kernels.py::test_both_ways_give_the_same_bits",
    ),
    mutation(
        "kernels: a run half as heavy as a bin is taken to have one of its own",
        "_kernels/sorted_bins.py",
        "if heavy >= total if whole else",
        "if 2 * heavy >= total if whole else",
        "tests/metrics/test_sweep.py::test_tied_scores_have_the_bins_of_the_definition",
    ),
    # ------------------------------------------------------------------------------------------------- the worst case
    mutation(
        "worst case: correct samples only just reach a bin",
        "_kernels/signs.py",
        "right_high[right_order[next_right]] < t",
        "right_high[right_order[next_right]] <= t",
        "tests/worst_case/test_calibration.py::"
        "test_the_value_is_the_largest_over_all_sign_patterns_and_the_witness_attains_it",
    ),
    mutation(
        "worst case: incorrect samples stay at their lower end",
        "_kernels/signs.py",
        "stay_wrong[wrong_high[r]] += wrong_sums[r, 1]",
        "stay_wrong[wrong_high[r]] -= wrong_sums[r, 2]",
        "tests/worst_case/test_calibration.py::"
        "test_the_value_is_the_largest_over_all_sign_patterns_and_the_witness_attains_it",
    ),
    mutation(
        "worst case: a witness on the edge is in the wrong bin",
        "_kernels/signs.py",
        "np.nextafter(edges[q + 1], -1.0)",
        "edges[q + 1]",
        "tests/worst_case/test_calibration.py::"
        "test_the_value_is_the_largest_over_all_sign_patterns_and_the_witness_attains_it",
    ),
    mutation(
        "worst Brier score and log loss: the nearer end",
        "worst_case/_scores.py",
        "(part.correct == 1) != best, part.lower, part.upper",
        "(part.correct == 1) != best, part.upper, part.lower",
        "tests/worst_case/test_scores.py::test_no_feasible_confidences_are_beyond_the_worst_or_the_best",
    ),
    mutation(
        "equal mass: a bound three per cent smaller",
        "worst_case/equal_mass.py",
        "return total / self.n, Changes(",
        "return 0.97 * total / self.n, Changes(",
        "tests/worst_case/test_equal_mass.py::test_a_bound_that_is_three_per_cent_smaller_is_exceeded",
    ),
    mutation(
        "worst KS error: without the limit just before a threshold",
        "worst_case/_ks.py",
        "(float(down.max()), -1), (float(down_before.max()), -2))",
        "(float(down.max()), -1))",
        "tests/worst_case/test_ks.py::test_the_limit_before_a_breakpoint_counts",
        "test_the_value_is_the_largest_over_all_thresholds_and_the_witness_attains_it",
    ),
    # ------------------------------------------------------------------------------ from the samples to the population
    mutation(
        "population bound: the largest capital in place of the average",
        "worst_case/_gains.py",
        "math.log(float(np.exp(logs - top).mean()))",
        "0.0",
        "tests/worst_case/test_population.py::test_the_bound_is_where_the_least_capital_reaches_one_over_delta",
    ),
    mutation(
        "population bound: two per cent less deviation",
        "worst_case/_population.py",
        "delta, worst_case.value) - worst_case.value)",
        "delta, worst_case.value) - worst_case.value) * 0.98",
        "tests/worst_case/test_population.py::test_the_bound_is_where_the_least_capital_reaches_one_over_delta",
    ),
    mutation(
        "population bound: free samples all correct",
        "worst_case/_gains.py",
        "np.minimum(solve(right + more, wrong), solve(right, wrong + less))",
        "solve(right + more, wrong)",
        "tests/worst_case/test_population.py::test_the_least_capital_is_that_of_all_sign_patterns_and_never_more",
    ),
    mutation(
        "population bound: ends of intervals rounded inward",
        "worst_case/_gains.py",
        "self._places(high, 2)",
        "self._places(high, -2000)",
        "tests/worst_case/test_population.py::test_the_least_capital_is_that_of_all_sign_patterns_and_never_more",
    ),
    mutation(
        "population bound: a failing certificate counts once",
        "worst_case/_population.py",
        "failures = 2 * alpha /",
        "failures = alpha /",
        "tests/worst_case/test_population.py::test_wrong_certificates_cost_up_to_twice_their_probability",
    ),
    mutation(
        "averaged noise: samples that may be outside the sum are inside",
        "worst_case/_pooled.py",
        "np.where(maybe, np.maximum(alone, pooled), pooled)",
        "pooled",
        "tests/worst_case/test_pooled.py::test_the_value_is_the_largest_over_all_signs_and_ends",
    ),
    mutation(
        "averaged noise: the deviation of the sum is not paid",
        "worst_case/_pooled.py",
        "+ ends.deviation) / n",
        ") / n",
        "tests/worst_case/test_pooled.py::test_no_ends_that_keep_the_limits_are_worse",
    ),
    mutation(
        "averaged noise: squares cost two per cent less",
        "smoothing/_pooled.py",
        "return -np.log1p(-bet) - bet",
        "return 0.98 * (-np.log1p(-bet) - bet)",
        "tests/smoothing/test_pooled.py::test_the_price_of_squares_is_just_what_a_rare_drop_costs",
    ),
    mutation(
        "averaged noise: the mean of the whole run in place of tangents",
        "smoothing/_pooled.py",
        "slope, intercept = lines(point, r)",
        "slope, intercept = lines(point, 0.9 * r)",
        "tests/smoothing/test_pooled.py::test_estimates_are_expected_below_their_ends_whatever_the_first_half_is",
    ),
    mutation(
        "averaged noise: predictions without the union over samples",
        "smoothing/_certificates.py",
        '["prediction"], 2 * n)',
        '["prediction"], 2)',
        "tests/smoothing/test_pooled.py::test_predictions_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: predictions with the level of one limit of two",
        "smoothing/_certificates.py",
        '["prediction"], 2 * n)',
        '["prediction"], n)',
        "tests/smoothing/test_pooled.py::test_predictions_fail_with_just_the_probability_that_the_ledger_gives_them",
        "tests/smoothing/test_certificates.py::test_the_ledger_adds_up_to_alpha_and_familywise_to_alpha_for_all_samples",
    ),
    mutation(
        "averaged noise: the limits of the ends with 2N for 4N",
        "smoothing/_pooled.py",
        "4 * len(counts))\n",
        "2 * len(counts))\n",
        "tests/smoothing/test_pooled.py::test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: outward limits with twice their level",
        "smoothing/_pooled.py",
        "kind(chosen, distance, 2 * part)",
        "kind(chosen, distance, 4 * part)",
        "tests/smoothing/test_pooled.py::test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: inward limits of the other end",
        "smoothing/_pooled.py",
        "((-1, False), (1, True))",
        "((-1, True), (1, False))",
        "tests/smoothing/test_pooled.py::test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: inward limits read from the other side",
        "smoothing/_pooled.py",
        "inner[inside] = 1 - limit if flip else limit",
        "inner[inside] = limit if flip else 1 - limit",
        "tests/smoothing/test_pooled.py::test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: all of delta for the sum of the ends",
        "smoothing/_pooled.py",
        'pooled.deviation(spent["sum_of_the_ends"], end != 0)',
        "pooled.deviation(level, end != 0)",
        "tests/smoothing/test_pooled.py::test_the_limits_of_all_ends_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "averaged noise: estimates rounded to nearest",
        "smoothing/_pooled.py",
        "rounding = 1e-12 * (1 + worth[:, -1])",
        "rounding = 0.0",
        "tests/smoothing/test_pooled.py::test_no_estimate_of_an_end_is_above_that_of_fifty_digits",
    ),
    mutation(
        "averaged noise: the deviation rounded to nearest",
        "smoothing/_pooled.py",
        "(self.bet * self.scale) * (1 + 1e-12)",
        "(self.bet * self.scale)",
        "tests/smoothing/test_pooled.py::test_no_deviation_of_a_sum_is_below_that_of_fifty_digits",
    ),
    mutation(
        "averaged noise: halves that do not depend on the run",
        "smoothing/_pooled.py",
        "default_rng([counts.seed, HALVES])",
        "default_rng(HALVES)",
        "tests/smoothing/test_pooled.py::test_halves_and_coins_are_those_of_the_seed",
    ),
    mutation(
        "tangent: coins that do not depend on the run",
        "smoothing/_counts.py",
        "mix_bits(np.array([self.seed], np.uint64)) + self.index",
        "mix_bits(np.array([0], np.uint64)) + self.index",
        "tests/smoothing/test_certificates.py::test_intervals_agree_with_those_written_down_slowly",
    ),
    mutation(
        "interval of the ECE: what calibrated scores vary by is less where the error is larger",
        "metrics/_intervals.py",
        "math.sqrt(float(found.noise.sum()) + max(ratio, 0.0) * mean**2)",
        "math.sqrt(max(float(found.noise.sum()) + ratio * mean**2, 0.0))",
        "tests/metrics/test_intervals.py::"
        "test_scores_that_are_sure_and_nearly_never_right_keep_the_noise_of_calibrated_ones",
    ),
    mutation(
        "interval of the ECE: a higher level may have a higher end",
        "metrics/_intervals.py",
        "for each in _LADDER if each > tail",
        "for each in () if each > tail",
        "tests/metrics/test_intervals.py::"
        "test_the_ends_of_usual_levels_contain_each_other_where_other_bins_are_clear_at_other_levels",
    ),
    mutation(
        "interval of the ECE: low levels have the noise of high ones",
        "metrics/_intervals.py",
        "range(50 if q >= 1 else 0)",
        "range(50)",
        "tests/metrics/test_intervals.py::test_intervals_of_low_levels_cover_as_often_as_they_say",
    ),
    mutation(
        "interval of the ECE: bins within their noise show a sign",
        "metrics/_intervals.py",
        "quantile(min(_UNCLEAR / self.gap.size, tail / 2))",
        "quantile(0.4)",
        "tests/metrics/test_intervals.py::test_every_interval_covers_the_population_value",
    ),
    mutation(
        "interval of the ECE: less is taken from the lower end than noise adds to gaps",
        "metrics/_intervals.py",
        "np.exp(-(far**2) / 2)",
        "np.exp(-(far**2) * 2)",
        "tests/metrics/test_intervals.py::test_what_is_taken_from_a_gap_is_what_noise_adds_or_more",
    ),
    mutation(
        "interval of the ECE: the lower end of calibrated bins loses its level",
        "metrics/_intervals.py",
        "np.exp(-(far**2) / 2)",
        "np.exp(-(far**2) * 2)",
        "tests/metrics/test_intervals.py::test_the_interval_of_the_ece_covers_and_is_narrow",
    ),
    mutation(
        "interval of the ECE: the upper end takes all gaps for 0",
        "metrics/_intervals.py",
        "x = total / sd",
        "x = 0.0",
        "tests/metrics/test_intervals.py::test_the_interval_of_the_ece_covers_and_is_narrow",
    ),
    mutation(
        "interval of the ECE: a lower end by the norm needs no quantile",
        "metrics/_intervals.py",
        "lower = middle - max(below(middle), found.norm_quantile(q, max(ratio * middle**2, 0.0)))",
        "lower = middle - 0.7 * below(middle)",
        "tests/metrics/test_intervals.py::test_the_interval_of_the_ece_covers_and_is_narrow",
    ),
    mutation(
        "tangent: the run's seed is not passed on",
        "smoothing/_run.py",
        "seed=m.seed,",
        "seed=0,",
        "tests/smoothing/test_run.py::test_a_run_counts_every_draw_once",
    ),
    mutation(
        "limits from above: no union over thresholds",
        "smoothing/_bands.py",
        "limits = _shared_limits(rows)\n    limits.fill(rows.n",
        "limits = lower_limits(rows.n, rows.level)\n    limits.fill(rows.n",
        "tests/smoothing/test_soundness.py::test_what_no_certificate_can_exceed_is_exceeded_with_at_most_its_level_by_enumeration",
    ),
    mutation(
        "limits from above: the estimate",
        "smoothing/_bands.py",
        "above = ndtr(-limits.scores[::-1] - rows.r)",
        "above = ndtr(np.linspace(-9, 9, rows.n + 1) - rows.r)",
        "tests/smoothing/test_soundness.py::test_what_no_certificate_can_exceed_is_exceeded_with_at_most_its_level_by_enumeration",
    ),
    mutation(
        "limits from above: rounded to nearest",
        "smoothing/_bands.py",
        "+ 2 * SLACK, 1.0)",
        "+ SLACK, 1.0)",
        "tests/smoothing/test_certificates.py::test_no_limit_of_an_end_from_above_is_below_that_of_fifty_digits",
    ),
    mutation(
        "failing certificates: their number rounded to nearest",
        "smoothing/_certificates.py",
        " * (1 + 1e-9) <= delta",
        " <= delta",
        "tests/smoothing/test_certificates.py::test_the_number_of_failing_certificates_and_the_variance_have_room_for_their_rounding",
    ),
    mutation(
        "bernstein: the variance rounded to nearest",
        "smoothing/_bands.py",
        "mean**2 + 1e-14",
        "mean**2",
        "tests/smoothing/test_certificates.py::test_the_number_of_failing_certificates_and_the_variance_have_room_for_their_rounding",
    ),
    mutation(
        "population bound, given certified: all of delta twice",
        "worst_case/_summary.py",
        "population_bound(worst, delta - spent, alpha, certified_fraction=fraction)",
        "population_bound(worst, delta, alpha, certified_fraction=fraction)",
        "tests/worst_case/test_summary.py::test_failing_certificates_are_paid_for_with_a_bound_on_the_certified_share",
    ),
    mutation(
        "averaged noise: radii that hold together each have all of the sum's share",
        "smoothing/_pooled.py",
        "part if name in once else equal_part(part, one.together)",
        "part",
        "tests/verbs/test_headline.py::test_radii_that_hold_together_pay_once_for_what_is_one_event",
    ),
    mutation(
        "headline: JSON names the worst case of the intervals",
        "verbs/certification.py",
        'document["headline"] = self.headline.sentence',
        'document["headline"] = self.summary.headline.replace(" where every certificate holds", "")',
        "tests/verbs/test_headline.py::test_every_door_has_one_calibration_error_over_one_set_of_samples",
    ),
    # ------------------------------------------------------------------------------------------------ claims and ledger
    mutation(
        "ledger: parts rounded to nearest",
        "claims.py",
        "added.append((name, value if Fraction(value) <= part else math.nextafter(value, 0.0)))",
        "added.append((name, value))",
        "tests/test_claims.py::test_splitting_spends_all_that_remains_in_proportion_and_not_one_bit_more",
    ),
    mutation(
        "ledger: what is spent rounded to nearest",
        "claims.py",
        "return total if Fraction(total) >= self._exact else math.nextafter(total, math.inf)",
        "return total",
        "tests/test_claims.py::test_a_ledger_never_spends_more_than_its_budget_and_refuses_what_would",
        "test_splitting_spends_all_that_remains_in_proportion_and_not_one_bit_more",
    ),
    mutation(
        "print: to the nearest digit",
        "_base/rounding.py",
        'rounded = Decimal(value).quantize(step, ROUND_CEILING if side == "upper" else ROUND_FLOOR)',
        "rounded = Decimal(value).quantize(step)",
        "tests/test_claims.py::test_printed_numbers_are_on_the_safe_side_and_within_one_unit",
    ),
    mutation(
        "worst calibration error: nothing given away for rounding",
        "worst_case/_program.py",
        "return 2.0**-52 * (16 + 2 * self.count)",
        "return 2.0**-1000",
        "tests/worst_case/test_claims.py::test_values_are_on_the_safe_side_of_exact_arithmetic",
        "test_the_printed_worst_case_is_never_below_the_exact_one",
    ),
    mutation(
        "worst KS error: not rounded outward",
        "worst_case/_ks.py",
        "ROUNDING = 8 * 2.0**-52",
        "ROUNDING = 0.0",
        "tests/worst_case/test_claims.py::test_values_are_on_the_safe_side_of_exact_arithmetic",
        "test_a_million_samples_do_not_bring_the_ks_error_below_the_exact_one",
    ),
    mutation(
        "worst MCE: not rounded outward",
        "worst_case/_mce.py",
        "ROUNDING = 8 * 2.0**-52",
        "ROUNDING = 0.0",
        "tests/worst_case/test_claims.py::test_values_are_on_the_safe_side_of_exact_arithmetic",
    ),
    mutation(
        "worst MCE: a plain running sum",
        "worst_case/_mce.py",
        "running_shares(gaps * times)",
        "np.cumsum(gaps * times)",
        "tests/worst_case/test_claims.py::test_a_million_samples_do_not_bring_the_mce_below_the_exact_one",
    ),
    mutation(
        "worst Brier score: nothing given away for rounding",
        "worst_case/_scores.py",
        "ROUNDING, UNDERFLOW = 64 * 2.0**-52, 1e-300",
        "ROUNDING, UNDERFLOW = 0.0, 1e-300",
        "tests/worst_case/test_claims.py::test_losses_too_small_for_a_sum_are_not_lost_from_the_brier_score",
    ),
    mutation(
        "worst Brier score: free samples rounded to nearest",
        "worst_case/_scores.py",
        "0.0 if perfect and total == 0 else",
        "0.0 if perfect else",
        "tests/worst_case/test_claims.py::test_free_samples_do_not_bring_the_brier_score_below_the_exact_one",
    ),
    # ------------------------------------------------------------------------------------------- logs and recalibration
    mutation(
        "logs: a noise level is found that does not explain every radius",
        "lab/logs/_log.py",
        "if sigma and _PrintedIntervals(radii - half, radii + half, sigma, n).consistent_levels([level]):",
        "if sigma:",
        "tests/smoothing/test_logs.py::test_a_noise_level_is_refused_at_which_one_radius_is_none_of_the_possible_ones",
    ),
    mutation(
        "logs: the largest radius of a single sample is taken for that of all votes",
        "lab/logs/_log.py",
        "    if holders > 1:\n",
        "    if holders > 0:\n",
        "tests/smoothing/test_logs.py::test_no_noise_level_is_found_where_radii_leave_it_open",
    ),
    mutation(
        "logs: only the radii that tell most",
        "lab/logs/_log.py",
        "parts = order[:_TELLING], order[_TELLING:]",
        "parts = (order[:_TELLING],)",
        "tests/smoothing/test_logs.py::test_every_radius_is_asked_and_not_only_those_that_tell_most",
    ),
    mutation(
        "recalibration: a sample of the fit stays in a run that was extended",
        "calibrators/_files.py",
        "return fit[fit < n]",
        "return fit[fit < n][1:]",
        "tests/cli/test_recalibrate.py::"
        "test_no_sample_of_the_fit_is_in_a_bound_on_the_population_after_the_run_was_extended",
    ),
    # --------------------------------------------------------------------------------------------------- certificates
    mutation(
        "bands: nothing given away for rounding",
        "smoothing/_bands.py",
        "SLACK = 1e-12",
        "SLACK = 0.0",
        "tests/smoothing/test_certificates.py::test_no_end_of_a_million_draws_is_inside_that_of_fifty_digits",
    ),
    mutation(
        "certificates: R/σ smaller by more than the rooms for rounding",
        "smoothing/_kinds.py",
        "r = radius / counts.sigma",
        "r = radius / counts.sigma * (1 - 1e-11)",
        "tests/smoothing/test_certificates.py::test_no_end_of_a_million_draws_is_inside_that_of_fifty_digits",
    ),
    mutation(
        "radii: rounded to nearest",
        "smoothing/_bands.py",
        "ROUNDING = 1e-12",
        "ROUNDING = 0.0",
        "tests/smoothing/test_certificates.py::test_no_certified_radius_is_above_that_of_fifty_digits",
    ),
    mutation(
        "certificates: samples count whose radius is smaller",
        "smoothing/_certificates.py",
        "certified = ~abstained & (radii >= distance)",
        "certified = ~abstained",
        "tests/smoothing/test_certificates.py::test_samples_that_are_not_certified_may_have_any_confidence",
    ),
    mutation(
        "tight band: no union over thresholds",
        "smoothing/_bands.py",
        "math.nextafter(rows.level / rows.side.widths.size, 0.0)",
        "rows.level",
        "tests/smoothing/test_certificates.py::test_intervals_agree_with_those_written_down_slowly",
    ),
    mutation(
        "standard and Bernstein: confidences rounded up to the grid",
        "smoothing/_bands.py",
        "edges = np.concatenate(([0.0], np.cumsum(self.widths)))",
        "edges = np.concatenate((np.cumsum(self.widths), [1.0]))",
        "tests/smoothing/test_certificates.py::test_intervals_agree_with_those_written_down_slowly",
    ),
    mutation(
        "standard: the upper end ignores what rounding the sum down has left out",
        "smoothing/_bands.py",
        "1 - mean - 1 / UNITS if self.flip",
        "1 - mean if self.flip",
        "tests/smoothing/test_certificates.py::test_standard_is_hoeffdings_interval_of_the_exact_mean_rounded_outward",
    ),
    mutation(
        "standard: confidences are rounded up before they are added",
        "smoothing/_counts.py",
        "sums=np.floor(x * UNITS)",
        "sums=np.ceil(x * UNITS)",
        "tests/smoothing/test_certificates.py::test_standard_is_hoeffdings_interval_of_the_exact_mean_rounded_outward",
    ),
    mutation(
        "sampler: confidences are rounded up before they are added",
        "_kernels/counting.py",
        "np.floor(confidence * units)",
        "np.ceil(confidence * units)",
        "tests/smoothing/test_sampler.py::test_a_confidence_on_a_threshold_is_at_least_that_threshold",
    ),
    mutation(
        "parts: what another part is writing is removed as a leftover",
        "smoothing/_sample.py",
        "remove_leftovers(folder, {Path(unit.name).name for unit in _units(manifest, part)} | {FILE})",
        "remove_leftovers(folder)",
        "tests/smoothing/test_run_parts.py::test_what_another_part_is_writing_is_not_taken_for_a_leftover",
    ),
    mutation(
        "runs: sums that no histogram allows are used",
        "smoothing/_shards.py",
        "good = bool(np.all((sums >= least_and_most[0]) & (sums <= least_and_most[1])))",
        "good = True",
        "tests/smoothing/test_run.py::test_numbers_that_no_drawing_gives_are_found_even_with_their_digest",
    ),
    mutation(
        "attacks: the noise of a piece is that of the first samples",
        "attacks/subject.py",
        "return range(self.first + part.start, self.first + part.stop)",
        "return range(part.start, part.stop)",
        "tests/attacks/test_attack.py::test_pieces_find_what_all_samples_at_once_find",
    ),
    mutation(
        "parts: work that was begun with other settings goes on",
        "data/work_folder.py",
        "if before.get(name) != now.get(name):",
        "if False:",
        "tests/attacks/test_attack.py::test_parts_in_any_order_find_what_one_process_finds",
    ),
    mutation(
        "parts: an attack of one's own with other parameters goes on",
        "verbs/attack.py",
        'made_with = sorted(getattr(method, "__dict__", {}).items())',
        "made_with = []",
        "tests/attacks/test_attack.py::test_an_attack_with_other_parameters_or_outputs_does_not_resume",
    ),
    mutation(
        "parts: the only part has a lock of its own",
        "smoothing/_sample.py",
        "part = None if part is None or part.of == 1 else part",
        "part = part",
        "tests/smoothing/test_run_parts.py::test_the_only_part_is_the_whole_run_and_has_its_lock",
    ),
    mutation(
        "bands: survival at the threshold below",
        "_kernels/certificates.py",
        "above += counts[last - j] if flip else counts[j]",
        "above += counts[last - j] if flip else counts[j - 1]",
        "tests/smoothing/test_soundness.py::test_the_tight_bound_at_one_threshold_is_exact_and_two_per_cent_less_would_fail",
    ),
    mutation(
        "tangent: twice the level",
        "smoothing/_tangent.py",
        "target = nats + 1e-9",
        "target = math.log(0.5 / level) + 1e-9",
        "tests/smoothing/test_certificates.py::test_intervals_agree_with_those_written_down_slowly",
    ),
    mutation(
        "tangent: bets chosen by the part that is bet on, too",
        "_kernels/certificates.py",
        "past[i] += dealt[b, i]",
        "past[i] += dealt[b + 1, i]",
        "tests/smoothing/test_soundness.py::test_the_bet_on_a_part_is_chosen_by_the_parts_before_it",
    ),
    mutation(
        "tangent: the same draws are bet on twice in the first part",
        "_kernels/certificates.py",
        "parts[part, i] = parts[0, i] - earlier",
        "parts[part, i] = parts[0, i]",
        "tests/smoothing/test_soundness.py::test_draws_are_dealt_out_by_fair_coins_that_do_not_look_at_them",
    ),
    mutation(
        "tangent: bounds two per cent narrower",
        "_kernels/certificates.py",
        "out[row] = max(low - 1e-12 * (1.0 + widest), 0.0)",
        "out[row] = max(low + 0.02 * (0.5 - low), 0.0)",
        "tests/smoothing/test_soundness.py::test_a_tangent_bound_is_nearly_exact_where_every_draw_is_a_hit"
        "_and_two_per_cent_less_would_fail",
    ),
    mutation(
        "certificates: radii that hold together do not share alpha",
        "smoothing/_certificates.py",
        'equal_part(spent["lower"] + spent["upper"], sharing)',
        'equal_part(spent["lower"] + spent["upper"], 1)',
        "tests/smoothing/test_certificates.py::test_radii_that_hold_together_share_alpha_where_each_has_an_event",
    ),
    mutation(
        "failing certificates: one fewer",
        "smoothing/_certificates.py",
        "betainc(k + 1, n - k, level)",
        "betainc(k + 2, n - k, level)",
        "tests/smoothing/test_certificates.py::test_the_number_of_failing_certificates_is_a_binomial_quantile",
    ),
    mutation(
        "failing certificates: one sample fewer is free",
        "worst_case/_gains.py",
        "self.with_free(self.free + k)",
        "self.with_free(self.free + k - 1)",
        "tests/worst_case/test_failing.py::"
        "test_the_bound_is_never_below_the_worst_choice_of_failing_samples_and_mostly_is_that",
    ),
    mutation(
        "failing certificates: 2 per cent less of what they add",
        "worst_case/_gains.py",
        "- k * floors",
        "- k * floors - 0.02 * k * (1 - floors)",
        "tests/worst_case/test_failing.py::"
        "test_the_bound_is_never_below_the_worst_choice_of_failing_samples_and_mostly_is_that",
    ),
    mutation(
        "failing certificates: nothing added for them",
        "smoothing/_certificates.py",
        "worst.with_failing(failed.count)",
        "worst.value",
        "tests/smoothing/test_certificates.py::"
        "test_a_claim_about_this_data_set_counts_failing_certificates_or_shares_alpha",
    ),
    mutation(
        "noise: sigma rounded to the nearest float32",
        "smoothing/_noise.py",
        "return nearest if float(nearest) >= sigma else np.nextafter(nearest, np.float32(np.inf))",
        "return nearest",
        "tests/smoothing/test_sampler.py::test_noise_is_never_of_a_smaller_sigma_than_certificates_use",
    ),
    mutation(
        "exact noise: a quarter of its distance from the Gaussian",
        "smoothing/_noise.py",
        "Fraction(dimension * draws * (len(self.lower) + 2), 2**BITS)",
        "Fraction(dimension * draws * (len(self.lower) + 2), 2 ** (BITS + 2))",
        "tests/smoothing/test_exact_noise.py::test_the_distance_in_total_variation_is_what_is_claimed",
    ),
    mutation(
        "decisions: one vote fewer for the last verdict",
        "smoothing/_sequential.py",
        '- above, side="right")) - 1',
        '- above, side="right")) - (j < last)',
        "tests/smoothing/test_sequential.py::test_errors_are_as_rare_as_claimed_at_every_truth",
    ),
    mutation(
        "decisions: what was spent before is forgotten",
        "smoothing/_sequential.py",
        "below, above = (spent + lost for spent in self._spent)",
        "below, above = lost, lost",
        "tests/smoothing/test_sequential.py::test_errors_are_as_rare_as_claimed_at_every_truth",
    ),
    mutation(
        "decisions: two per cent more of alpha",
        "smoothing/_sequential.py",
        "alpha * (1 - _ROUNDING)",
        "alpha * 1.02",
        "tests/smoothing/test_sequential.py::test_nearly_all_of_alpha_is_spent_with_many_draws",
    ),
    mutation(
        "beyond chance: four tests paid for instead of five",
        "lab/logs/_chance.py",
        "spent = level / _TESTS",
        "spent = level / (_TESTS - 1)",
        "tests/smoothing/test_chance.py::test_each_test_spends_exactly_its_share_of_the_level",
    ),
    mutation(
        "plans: networks are ranked on different samples",
        "lab/plans/certified.py",
        'if len({each.whole["data"] for each in networks}) > 1:',
        "if False:",
        "tests/plans/test_certified.py::test_runs_of_different_samples_are_not_ranked",
    ),
    mutation(
        "plans: networks far below the highest accuracy compete",
        "lab/plans/certified_layouts.py",
        "accuracy >= highest - within - 1e-12",
        "accuracy >= highest - 3 * within",
        "tests/plans/test_certified.py::test_the_rule_gives_table_2_from_table_4",
    ),
    mutation(
        "plans: a difference is printed although the experiment is another",
        "lab/plans/outcome.py",
        "if self.as_printed and isinstance",
        "if isinstance",
        "tests/plans/test_reproduce.py::test_differences_are_shown_where_the_experiment_is_the_papers_and_patterns_anywhere",
    ),
    mutation(
        "certified accuracy: a sample still counts just beyond its radius",
        "smoothing/robustness/accuracy.py",
        'np.asarray(radius, np.float64), side="left")]',
        'np.asarray(radius, np.float64), side="right") - 1]',
        "tests/smoothing/test_robustness.py::test_the_staircase_is_the_twin_at_every_radius_and_the_highest_is_the_best_of_two",
    ),
    mutation(
        "certified accuracy as drawn: of steps too close to be told apart, the last alone",
        "report/charts.py",
        "if not before == place == after]",
        "if place != after]",
        "tests/report/test_compared.py::test_certified_accuracy_is_drawn_as_known_at_every_radius_and_nowhere_above",
    ),
    mutation(
        "verdicts on logs: also about the last p that abstained samples can reach",
        "lab/logs/_dominance.py",
        "told = where > open_to",
        "told = where >= open_to",
        "tests/smoothing/test_robustness.py::test_a_verdict_on_logs_holds_for_all_votes_that_fit",
        "tests/smoothing/test_robustness.py::test_open_votes_decide_nothing_that_they_might_change",
    ),
    mutation(
        "verdicts on logs: above if it is for the most votes that fit",
        "lab/logs/_dominance.py",
        "if above.any() and np.all(a_low >= b_high):",
        "if above.any() and np.all(a_high >= b_high):",
        "tests/smoothing/test_robustness.py::test_a_verdict_on_logs_holds_for_all_votes_that_fit",
    ),
    mutation(
        "certified confidences: bounds as printed, rounded to nearest",
        "lab/logs/_published.py",
        ".T - np.array([halves[name] for name in names]).T",
        ".T",
        "tests/smoothing/test_published.py::test_certified_confidences_are_read_rounded_down_and_can_be_certified",
    ),
    # ---------------------------------------------------------------------------------------------------- verification
    mutation(
        "trees: the largest leaf on the right counts for less",
        "_kernels/leaves.py",
        "value = max(value, best[local.right[node], c - (dear >> 1)])",
        "value = max(value, best[local.right[node], c - (dear >> 1)] - 0.02)",
        "tests/verification/test_trees.py::test_intervals_are_what_brute_force_over_the_thresholds_finds",
    ),
    mutation(
        "trees: the library's sums are taken as exact",
        "verification/trees.py",
        "room = size * sum(",
        "room = 0.0 * size * sum(",
        "tests/verification/test_trees.py::test_intervals_are_what_brute_force_over_the_thresholds_finds",
    ),
    mutation(
        "boxes: the ends of computed amounts are rounded inward",
        "verification/boxes.py",
        "(1 + 2.0**-50)",
        "(1 - 2.0**-40)",
        "tests/verification/test_boxes.py::test_an_amount_that_was_computed_leaves_nothing_out",
    ),
    mutation(
        "sources: series whose index is in another order are joined by position",
        "data/sources.py",
        "        _refuse_other_order(y_true=y_true, y_prob=y_prob, **beside)",
        "        pass",
        "tests/test_sources.py::test_what_would_be_a_wrong_number_is_one_sentence",
    ),
    mutation(
        "sources: swapped arrays are taken as they stand",
        "data/sources.py",
        "            self._refuse_swapped(outcomes, chances)",
        "            pass",
        "tests/verbs/test_mistakes.py::test_arguments_that_do_not_exist_are_answered_with_the_right_ones",
    ),
    mutation(
        "margins: a margin of logits takes the same end of both",
        "data/intervals.py",
        "np.nextafter(least - upper, -np.inf)",
        "np.nextafter(least - lower, -np.inf)",
        "tests/data/test_class_bounds.py::"
        "test_margins_and_logits_give_the_intervals_of_their_softmax_however_they_are_written",
    ),
    mutation(
        "margins: a softmax subtracts logits exactly",
        "_base/margins.py",
        "sign * 2 * unit * (np.abs(each) + behind)",
        "sign * 0 * unit",
        "tests/verification/test_boxes.py::test_large_logits_that_a_softmax_rounds_stay_inside",
    ),
    mutation(
        "margins: confidences are rounded inward",
        "_base/margins.py",
        "low * (1 - room) - tiny",
        "low * (1 + room)",
        "tests/verification/test_boxes.py::test_confidences_from_margins_hold_every_softmax_and_are_nearly_reached",
    ),
    # -------------------------------------------------------------------------------------------------- concentration
    mutation(
        "Clopper-Pearson: a level a millionth too large",
        "bounds/concentration.py",
        "* (1 + _BETA) <= level",
        "<= level * (1 + 1e-6)",
        "tests/bounds/test_concentration.py::"
        "test_clopper_pearson_limits_are_on_the_safe_side_in_exact_arithmetic_and_next_to_the_limit",
    ),
    mutation(
        "Hoeffding: a narrower width",
        "bounds/concentration.py",
        "width = np.sqrt(math.log(1 / _level_of_side(alpha, side)) / (2 * draws))",
        "width = np.sqrt(math.log(1 / _level_of_side(alpha, side)) / (2.1 * draws))",
        "tests/bounds/test_concentration.py::test_hoeffding_is_its_formula_rounded_outward",
    ),
    mutation(
        "empirical Bernstein: without its second term",
        "bounds/concentration.py",
        "np.sqrt(2 * spread * log / draws) + 3 * log / draws",
        "np.sqrt(2 * spread * log / draws)",
        "tests/bounds/test_concentration.py::test_limits_of_means_fail_with_at_most_alpha_by_enumeration",
    ),
    mutation(
        "DKW: a twentieth narrower",
        "bounds/concentration.py",
        "return _float_or_array(width * (1 + _SUM))",
        "return _float_or_array(width * 0.95)",
        "tests/bounds/test_concentration.py::"
        "test_dkw_holds_by_the_exact_distribution_and_five_per_cent_less_would_not_for_many_draws",
    ),
    mutation(
        "betting: the sum of the capitals instead of their mean",
        "bounds/concentration.py",
        "np.exp(logs - safe).mean(axis=0)",
        "np.exp(logs - safe).sum(axis=0)",
        "tests/bounds/test_concentration.py::test_limits_of_means_fail_with_at_most_alpha_by_enumeration",
    ),
    mutation(
        "Chernoff: a tenth less of the divergence",
        "bounds/concentration.py",
        "allowed = math.log(1 / delta) / n * (1 + 1e-12) + 1e-15",
        "allowed = math.log(1 / delta) / n * 0.9",
        "tests/bounds/test_bounded_variation.py::"
        "test_deviations_five_per_cent_smaller_fail_where_the_inequalities_are_sharp",
    ),
    # --------------------------------------------------------------------------------- bounds on the calibration error
    mutation(
        "draw of the outcomes: three per cent less",
        "bounds/_shared.py",
        "bernstein = deviation * math.sqrt(2 * log) + largest * log / 3",
        "bernstein = 0.97 * deviation * math.sqrt(2 * log) + largest * log / 3",
        "tests/bounds/test_outcome_term.py::test_two_per_cent_less_fails_where_the_inequality_is_sharp",
    ),
    mutation(
        "draw of the outcomes: the Brier score without its deviation",
        "bounds/_shared.py",
        "half = largest * math.sqrt(log_variance / 2)",
        "half = log_variance = 0.0",
        "tests/bounds/test_outcome_term.py::test_the_variance_must_be_paid_for",
    ),
    mutation(
        "draw of the outcomes: the share set aside is not taken from the candidates",
        "bounds/_shared.py",
        "log, log_variance = math.log(candidates / (delta - aside)), math.log(1 / aside)",
        "log, log_variance = math.log(candidates / delta), math.log(1 / aside)",
        "tests/bounds/test_outcome_term.py::test_the_term_is_that_of_its_twin_and_never_much_larger_than_hoeffding_s",
    ),
    mutation(
        "true error: the capital needs to reach less",
        "bounds/_bets.py",
        "log = math.log(logs.size / delta) + 1e-9 + rounding",
        "log = 0.96 * math.log(logs.size / delta)",
        "tests/bounds/test_lipschitz.py::test_two_per_cent_less_of_the_deviation_fails_where_betting_is_sharp",
    ),
    mutation(
        "bounded variation: the best number of buckets instead of the mean over them",
        "bounds/_bets.py",
        "log = math.log(logs.size / delta) + 1e-9 + rounding",
        "log = math.log(bets.size / delta) + 1e-9 + rounding",
        "tests/bounds/test_bounded_variation.py::test_the_value_is_where_the_mean_capital_reaches_one_over_delta",
    ),
    mutation(
        "bounded variation: gaps of the other sign cost what they cost for small bets",
        "bounds/_bounded_variation.py",
        "n * np.arctanh(bets) * bias",
        "n * bets * bias",
        "tests/bounds/test_bounded_variation.py::test_the_value_is_where_the_mean_capital_reaches_one_over_delta",
    ),
    mutation(
        "bounded variation: 98 hundredths of the bias",
        "bounds/_bounded_variation.py",
        "variation * largest / (2 * n)",
        "0.98 * variation * largest / (2 * n)",
        "tests/bounds/test_bounded_variation.py::test_the_bias_is_attained_by_a_jump_in_the_middle_of_equal_scores",
    ),
    mutation(
        "bounded variation, published: half of the variation denoised",
        "bounds/_bounded_variation.py",
        "4 * t2 * allowed",
        "2 * t2 * allowed",
        "tests/bounds/test_bounded_variation.py::test_every_term_of_proposition_1_is_its_formula",
    ),
    mutation(
        "Lipschitz: 96 hundredths of the constant",
        "bounds/_lipschitz.py",
        "slope * (place[ends] - place[0]) + each",
        "0.96 * slope * (place[ends] - place[0]) + each",
        "tests/bounds/test_lipschitz.py::test_two_per_cent_less_of_the_constant_does_not_cover_the_steepest_function",
    ),
    mutation(
        "Lipschitz, published: nine tenths of the deviation of a bucket's mean",
        "bounds/_lipschitz.py",
        "deviation = np.sqrt(2 * mean * (1 - mean) * rate)",
        "deviation = 0.9 * np.sqrt(2 * mean * (1 - mean) * rate)",
        "tests/bounds/test_lipschitz.py::"
        "test_with_a_tenth_less_of_the_bucket_means_deviation_the_published_form_fails_too_often",
    ),
    mutation(
        "Lipschitz, published: the level of every candidate is that of all",
        "bounds/_lipschitz.py",
        "level = delta / (len(candidates) * folds)",
        "level = delta / folds",
        "tests/bounds/test_lipschitz.py::test_the_published_form_is_the_least_of_all_partitions_each_by_its_formula",
    ),
    mutation(
        "Lipschitz: after a zero a gap keeps its sign",
        "_kernels/runs.py",
        "if rises or sign == 1:  # else",
        "if sign == 1:  # else",
        "tests/bounds/test_lipschitz.py::test_the_least_capital_is_that_over_every_choice_of_zeros_and_signs",
    ),
    mutation(
        "perturbed scores: half of the draw of the outcomes",
        "bounds/_smooth.py",
        'outcome_term(budget["outcomes"], 1, fit.squares, fit.errors, fit.largest),',
        'outcome_term(budget["outcomes"], 1, fit.squares, fit.errors, fit.largest) / 2,',
        "tests/bounds/test_smooth.py::test_every_term_of_the_direct_form_is_its_formula",
    ),
    mutation(
        "perturbed scores: without the bias",
        "bounds/_smooth.py",
        "bias = around.mean_error + around.rounding_of_error",
        "bias = around.rounding_of_error",
        "tests/bounds/test_smooth.py::test_every_term_of_the_direct_form_is_its_formula",
    ),
    mutation(
        "analytic fit: 98 % of the distance from the interpolation",
        "bounds/_analytic.py",
        "return product * np.sqrt(1 + product * product / 4)",
        "return 0.98 * product * np.sqrt(1 + product * product / 4)",
        "tests/bounds/test_analytic.py::"
        "test_scores_whose_outcomes_alternate_are_as_far_from_their_interpolation_as_claimed",
    ),
    mutation(
        "analytic fit: signs that are spread as the variance is not",
        "bounds/_analytic.py",
        "spread * max(float(np.linalg.eigvalsh(seen)[-1]), 0.0) * room",
        "spread * float(np.linalg.eigvalsh(seen).mean()) * room",
        "tests/bounds/test_analytic.py::test_every_part_of_a_fit_is_its_formula",
    ),
    mutation(
        "analytic fit: what changes within a cell is free",
        "bounds/_analytic.py",
        "moved = cells.within / (4 * h * h)",
        "moved = 0.0 * cells.within",
        "tests/bounds/test_analytic.py::test_cells_change_a_fit_by_no_more_than_they_pay_for",
    ),
    mutation(
        "Lipschitz: in a cell with a zero the gap never falls",
        "_kernels/runs.py",
        "    if mixed[zone]:  # there",
        "    if False and mixed[zone]:  # there",
        "tests/bounds/test_lipschitz.py::"
        "test_in_a_cell_with_several_scores_and_a_zero_the_gap_may_have_fallen_as_steeply_as_it_can",
    ),
    mutation(
        "logit noise, Lipschitz: a function of the log-odds rises less than it may",
        "bounds/_lipschitz.py",
        "less = own if not on_log_odds or slope >= 0.25 else 0.0",
        "less = own",
        "tests/bounds/test_logit_noise.py::"
        "test_how_much_a_gap_can_rise_and_fall_is_in_the_table_of_the_lipschitz_bound",
    ),
    mutation(
        "logit noise, Lipschitz: scores that are rounded to 1 have the log-odds of the nearest that is not",
        "bounds/_lipschitz.py",
        "(np.finfo(np.float64).tiny, 1 - _NEAR)",
        "(np.finfo(np.float64).tiny, 2.0)",
        "tests/bounds/test_logit_noise.py::test_scores_without_log_odds_have_signs_of_their_own",
    ),
    mutation(
        "logit noise: derivatives as on the probability scale",
        "bounds/_smooth.py",
        "h /= where.stretch",
        "h /= 1.0",
        "tests/bounds/test_logit_noise.py::test_every_term_of_the_smooth_bound_is_its_formula",
    ),
    mutation(
        "bounds: a published formula without a proof passes for a bound",
        "bounds/_every.py",
        'if form != "published":',
        "if form:",
        "tests/cli/test_bound.py::test_the_published_and_the_repaired_form_can_be_asked_for",
    ),
    mutation(
        "calibrators: the bound on served scores assumes other noise than is served",
        "calibrators/_perturbed.py",
        "return smooth(scores, outcomes, self.bandwidth_, delta,",
        "return smooth(scores, outcomes, 1.05 * self.bandwidth_, delta,",
        "tests/calibrators/test_perturbed.py::test_the_bandwidth_is_chosen_kept_and_that_of_noise_and_bound",
    ),
    mutation(
        "classwise: all of delta for every class",
        "bounds/_every.py",
        "delta=share) for",
        "delta=level) for",
        "tests/bounds/test_binned.py::test_classwise_bounds_spend_delta_over_the_classes_and_bound_their_mean",
    ),
    mutation(
        "binned error: no room for rounding",
        "bounds/_bets.py",
        "rounding = 1e-9 + n * (points + 10) * 2.0**-51",
        "rounding = 0.0",
        "tests/bounds/test_binned.py::test_the_value_of_ten_billion_samples_has_the_capital_to_forty_digits",
    ),
    mutation(
        "binned error: three times the level",
        "bounds/_bets.py",
        "return math.log(1 / delta) + rounding",
        "return math.log(1 / delta) - math.log(3) + rounding",
        "tests/bounds/test_binned.py::"
        "test_in_one_bin_the_bound_fails_with_at_most_delta_and_a_part_of_the_deviation_more_often",
        "test_the_value_is_where_the_least_capital_reaches_one_over_delta",
    ),
    mutation(
        "binned error: samples of a cell at its lower end",
        "bounds/_binned.py",
        "np.zeros_like(mean), where=width > 0), 0, 1)",
        "np.zeros_like(mean), where=width > 0), 0, 0)",
        "tests/bounds/test_binned.py::test_samples_at_the_two_ends_of_a_cell_do_not_count_as_samples_in_its_middle",
    ),
    mutation(
        "binned error: one sign for every bin",
        "_kernels/capital.py",
        "total += min(plus, minus)",
        "total += plus",
        "tests/bounds/test_binned.py::test_the_value_is_where_the_least_capital_reaches_one_over_delta",
    ),
    mutation(
        "binned error from below: signs chosen by the sample that is tested",
        "_kernels/capital.py",
        "up[i] = total[at] + min(",
        "up[i] = total[at] + gap + min(",
        "tests/bounds/test_binned.py::test_signs_are_not_chosen_by_the_sample_that_is_tested",
    ),
    mutation(
        "weighted binned error: every sample at full stake",
        "bounds/_binned.py",
        "np.column_stack((corners.number, corners.other, corners.gap,",
        "np.column_stack((corners.number, corners.other / corners.other.max(), corners.gap,",
        "tests/bounds/test_weighted.py::test_the_value_is_where_the_least_capital_reaches_one_over_delta",
    ),
    mutation(
        "both sides: all of delta for each",
        "bounds/_binned.py",
        'half = failure_probability(delta, "delta") / 2',
        'half = failure_probability(delta, "delta")',
        "tests/bounds/test_weighted.py::test_both_sides_are_the_bounds_at_half_the_level",
    ),
    mutation(
        "weighted binned error: corners of a cell at the sample's own node only",
        "bounds/_bets.py",
        "np.clip((values - nodes[below]) / (nodes[below + 1] - nodes[below]), 0, 1)",
        "np.zeros(values.size)",
        "tests/bounds/test_weighted.py::test_the_value_is_where_the_least_capital_reaches_one_over_delta",
        "tests/bounds/test_difference.py::test_the_ends_are_where_the_least_capital_reaches_two_over_delta",
    ),
    mutation(
        "accuracies: one direction of each difference is tested for free",
        "lab/logs/_accuracies.py",
        "(2 * len(found) - rank) * found[place].p",
        "(len(found) - rank) * found[place].p",
        "tests/smoothing/test_accuracies.py::test_of_two_equal_networks_one_is_ahead_with_exactly_the_level",
    ),
    mutation(
        "changes: sentences are shown beyond the level of the answer",
        "verbs/changed_answers.py",
        "_FAILURE, _ROOM = 0.05, 1e-9",
        "_FAILURE, _ROOM = 0.15, 1e-9",
        "tests/verbs/test_changes.py::test_sentences_are_shown_while_their_failures_add_up_to_the_level",
    ),
    mutation(
        "changes: gaps of bins in which next to nothing happened show how much they vary",
        "metrics/differences.py",
        "if min(_count_rarer(before), _count_rarer(after)) < _FEW",
        "if min(_count_rarer(before), _count_rarer(after)) < 0",
        "tests/metrics/test_differences.py::"
        "test_of_a_few_events_the_change_of_the_binned_error_is_covered_by_enumeration",
    ),
    mutation(
        "changes: a bin whose sign is unclear has the sign that is seen",
        "metrics/differences.py",
        "np.sign(other[places])[np.searchsorted((places[1:] + places[:-1]) / 2, np.arange(size))]",
        "np.sign(other)",
        "tests/metrics/test_differences.py::test_the_interval_of_a_change_of_the_binned_error_covers_that_of_the_population",
    ),
    mutation(
        "changes: sizes of unclear gaps are no larger than their means",
        "metrics/differences.py",
        "_norm_quantile(own, np.concatenate((np.zeros(size, np.bool_), free)), q)",
        "0.0",
        "tests/metrics/test_differences.py::test_the_interval_of_a_change_of_the_binned_error_covers_that_of_the_population",
    ),
    mutation(
        "changes: what two answers share is left out of the noise of their difference",
        "metrics/differences.py",
        "np.where(both != 0, both * shared, np.abs(shared))",
        "np.where(both != 0, both * shared, 0 * shared)",
        "tests/metrics/test_differences.py::test_ends_of_a_change_are_those_of_terms_bin_by_bin",
    ),
    mutation(
        "difference: all of delta for each end",
        "bounds/_difference.py",
        'level = failure_probability(delta, "delta") / 2',
        'level = failure_probability(delta, "delta")',
        "tests/bounds/test_difference.py::test_the_ends_are_where_the_least_capital_reaches_two_over_delta",
        "test_what_is_claimed_is_one_sentence_with_its_assumptions",
    ),
    mutation(
        "difference: every sign of the second is the best one",
        "bounds/_difference.py",
        "gaps_with_past_signs(*second, edges, closed, order)",
        "np.abs(gaps_with_past_signs(*second, edges, closed, order))",
        "tests/bounds/test_difference.py::test_the_ends_are_where_the_least_capital_reaches_two_over_delta",
    ),
    mutation(
        "KS error: no cut-off inside a cell",
        "_kernels/capital.py",
        "first = min(whole, level + slope * row[place])",
        "first = whole",
        "tests/bounds/test_cumulative.py::test_cells_never_raise_the_capital",
    ),
    mutation(
        "KS error: one sign only",
        "_kernels/capital.py",
        "sign, place = 1.0 - 2.0 * half, 6 + 3 * half",
        "sign, place = 1.0, 6",
        "tests/bounds/test_cumulative.py::test_the_value_is_where_the_least_capital_reaches_one_over_delta",
        "test_cells_never_raise_the_capital",
    ),
    mutation(
        "KS and Kuiper errors: three times the level",
        "bounds/_cumulative.py",
        "target = math.log(1 / level) + 1e-9",
        "target = math.log(1 / level) - math.log(3) + 1e-9",
        "tests/bounds/test_cumulative.py::test_the_value_is_where_the_least_capital_reaches_one_over_delta",
        "test_cells_cost_next_to_nothing",
    ),
    mutation(
        "KS error from below: cut-off chosen on the tested half",
        "bounds/_cumulative.py",
        "_best_cut(sort_pairs(z[~tested], c[~tested]), interval=interval)",
        "_best_cut(sort_pairs(z[tested], c[tested]), interval=interval)",
        "tests/bounds/test_cumulative.py::test_cut_offs_are_not_chosen_on_the_half_that_is_tested",
    ),
    mutation(
        "groups: all of delta for each",
        "verbs/bound.py",
        "equal_share(settings.delta, len(read.groups))",
        "settings.delta",
        "tests/cli/test_bound.py::test_groups_share_delta_and_none_is_dropped",
    ),
    mutation(
        "groups of a table of intervals: all of delta for each",
        "verbs/certify.py",
        "equal_share(settings.delta, len(table.groups))",
        "settings.delta",
        "tests/verbs/test_certify.py::test_the_groups_of_a_table_share_delta_and_the_whole_has_its_own",
    ),
    mutation(
        "certify: the radii that the votes have reached decide how alpha is shared",
        "verbs/certify.py",
        "most = replace(counts, votes=counts.draws)",
        "most = counts",
        "tests/verbs/test_headline.py::"
        "test_radii_that_the_votes_have_reached_share_alpha_among_all_that_they_might_have",
    ),
    mutation(
        "averaged claim: halves by the numbers that draws may come from",
        "smoothing/_pooled.py",
        "np.random.default_rng([counts.seed, HALVES])",
        "np.random.default_rng(counts.seed)",
        "tests/smoothing/test_pooled.py::test_halves_are_not_cut_by_the_numbers_that_draws_may_come_from",
    ),
    mutation(
        "averaged claim: predictions have more than their share of the ledger",
        "smoothing/_pooled.py",
        'SHARES = {"predictions": 1, "limits_of_the_ends": 2',
        'SHARES = {"predictions": 1, "limits_of_the_ends": 4',
        "tests/smoothing/test_pooled.py::test_predictions_fail_with_just_the_probability_that_the_ledger_gives_them",
    ),
    mutation(
        "certificates as papers count: a claim with three times alpha",
        "smoothing/_certificates.py",
        'delta = self.alpha / 3 if self.accounting == "published" else self.alpha',
        "delta = self.alpha",
        "tests/verbs/test_headline.py::test_as_papers_count_the_claim_has_one_of_three_times_alpha",
    ),
    mutation(
        "verdicts: of several settings the surest says how often they fail",
        "verdict/judging.py",
        "failure=max(one.failure for one in judged)",
        "failure=min(one.failure for one in judged)",
        "tests/test_verdict_table.py::test_several_settings_count_in_what_holds_together_and_not_in_what_passes",
    ),
    mutation(
        "verdicts: worst cases of intervals that may fail count as sure",
        "verdict/judging.py",
        '"All" if len(chances) == len(self.judgements) else "Those"',
        '"All"',
        "tests/test_verdict.py::test_several_requirements_say_what_chance_can_do",
    ),
    mutation(
        "verdicts: the first setting decides",
        "verdict/judging.py",
        "worst = max(judged, key=lambda one: one.badness)\n    return replace(worst, failure",
        "worst = judged[0]\n    return replace(worst, failure",
        "tests/test_verdict_table.py::test_the_worst_of_the_settings_decides_in_every_door",
        "test_every_asks_each_group_about_the_worst_of_the_settings",
    ),
    mutation(
        "verdicts: that the worst group is not met is as sure as of one group",
        "verdict/judging.py",
        "any_fails = sum(Decimal(repr(one.failure)) for one in parts)",
        "any_fails = Decimal(repr(worst.failure))",
        "tests/test_verdict.py::test_that_the_worst_of_several_groups_is_not_met_is_as_sure_as_all_of_them_together",
    ),
    mutation(
        "verdicts: the best group speaks for every group",
        "verdict/judging.py",
        "worst, failed = max(parts, key=lambda one: one.badness)",
        "worst, failed = min(parts, key=lambda one: one.badness)",
        "tests/test_verdict.py::test_every_asks_each_group_and_fails_when_one_does",
    ),
    mutation(
        "percent: a bound is rounded to the nearest",
        "_base/rounding.py",
        'f"{value:.4f}" if side is None else round_outward(value, side), percent=True',
        'f"{value:.4f}", percent=True',
        "tests/report/views/test_bounds.py::test_terms_are_rounded_in_the_direction_of_the_bound",
        "tests/report/test_document.py::test_what_an_attack_reached_is_rounded_down",
    ),
    mutation(
        "verdicts: numbers at several settings hold together as often as one",
        "verdict/judging.py",
        "Decimal(repr(each.failure)) * each.settings_judged",
        "Decimal(repr(each.failure))",
        "tests/test_verdict_table.py::test_several_settings_count_in_what_holds_together_and_not_in_what_passes",
    ),
    mutation(
        "verdicts: every end comes nearer like 1/n",
        "verdict/ends.py",
        "_POWER, _POWER_OF_TRUE_ERROR = 2.0, 2.7",
        "_POWER, _POWER_OF_TRUE_ERROR = 1.0, 1.0",
        "tests/test_verdict.py::test_about_so_many_samples_would_show_it",
        "test_bounds_of_the_true_error_need_more_than_four_times_the_samples_for_half_the_error",
    ),
    mutation(
        "verdicts: what is not shown is not met",
        "verdict/judging.py",
        "not asked.met_by(far.value):",
        "not asked.met_by(near.value):",
        "tests/test_verdict.py::test_what_is_met_in_truth_is_called_not_met_with_at_most_the_level_by_enumeration",
        "test_the_other_end_of_an_interval_shows_the_opposite_and_between_them_nothing_is_shown",
    ),
    mutation(
        "verdicts: a lower limit of the true error contradicts the binned one",
        "verdict/ends.py",
        "and beyond >= 0 and (beyond > 0 or",
        "and (beyond != 0 or",
        "tests/test_verdict.py::test_a_bound_is_contradicted_by_a_claim_on_the_other_side_of_the_same_quantity_or_of_a_"
        "smaller_one",
    ),
    mutation(
        "claims: the upper end of an interval is rounded down in print",
        "claims.py",
        'round_outward(self.upper, "upper", digits)',
        'round_outward(self.upper, "lower", digits)',
        "tests/test_claims.py::"
        "test_an_interval_is_said_to_show_resampling_and_promises_no_level_in_the_sentence_nor_in_json",
    ),
    mutation(
        "claims: percentiles of a biased metric decide alone",
        "claims.py",
        "if spread.resampled else own",
        "if False else own",
        "tests/test_verdict.py::test_percentiles_of_resamples_show_either_outcome_only_with_their_mirror_image",
        "tests/metrics/test_differences.py::test_percentiles_of_a_biased_metric_do_not_show_a_change",
    ),
    mutation(
        "verdicts: two bounds hold together as often as one",
        "verdict/judging.py",
        "if low.claim is not high.claim:",
        "if False:",
        "tests/test_verdict.py::test_both_ends_of_two_bounds_hold_with_the_sum_of_their_failures",
    ),
    mutation(
        "claims: how sure they are is rounded up",
        "_base/rounding.py",
        "exact.quantize(Decimal(1).scaleb(-places), ROUND_FLOOR)",
        "exact.quantize(Decimal(1).scaleb(-places), ROUND_CEILING)",
        "tests/test_claims.py::test_nothing_is_said_to_be_surer_than_it_is",
    ),
    mutation(
        "together: all of delta for each",
        "verbs/bound.py",
        "equal_share(settings.delta, several)",
        "settings.delta",
        "tests/cli/test_bound.py::test_what_is_to_hold_together_shares_delta_over_everything",
    ),
    mutation(
        "binned error from below: two per cent more",
        "bounds/_binned.py",
        "limit = -mean_limit(-values,",
        "limit = -1.02 * mean_limit(-values,",
        "tests/bounds/test_binned.py::"
        "test_the_lower_bound_fails_with_at_most_a_small_level_and_two_per_cent_more_of_it_more_often",
    ),
    mutation(
        "binned error from below: the best order instead of the mean over them",
        "bounds/_bets.py",
        "float(np.logaddexp.reduce(logs.ravel())) - math.log(logs.size) >= target",
        "float(np.logaddexp.reduce(logs.ravel())) - math.log(bets.size) >= target",
        "tests/bounds/test_binned.py::"
        "test_the_lower_value_is_where_the_mean_capital_over_orders_falls_below_one_over_delta",
    ),
    mutation(
        "observed over expected: the mean score of few events is taken to be known",
        "metrics/binary.py",
        "math.hypot(events - low_events, product - below)",
        "math.hypot(0.0, product - below)",
        "tests/metrics/test_binary.py::test_the_interval_of_the_ratio_covers_in_the_enumeration_of_all_samples",
    ),
    mutation(
        "observed over expected: a rate at twice the failure probability",
        "metrics/binary.py",
        "low_rate, high_rate = share_ends(evidence, evidence.arrays[1], rate, tail)",
        "low_rate, high_rate = share_ends(evidence, evidence.arrays[1], rate, 2 * tail)",
        "tests/metrics/test_binary.py::test_the_interval_of_the_ratio_covers_in_the_enumeration_of_all_samples",
    ),
    mutation(
        "observed over expected: infinite here, and so for everybody",
        "metrics/binary.py",
        "ratio_ends(evidence, tail), 0.0, math.inf, False)",
        "ratio_ends(evidence, tail), 0.0, math.inf)",
        "tests/metrics/test_binary.py::test_the_interval_of_the_ratio_covers_in_the_enumeration_of_all_samples",
    ),
    mutation(
        "observed over expected: weights that go with scores and outcomes",
        "metrics/binary.py",
        "math.sqrt(max(1.0, seen / parts))",
        "math.sqrt(min(1.0, seen / parts))",
        "tests/metrics/test_binary.py::test_the_width_of_the_ratio_is_that_of_its_residuals_where_samples_are_many",
    ),
    mutation(
        "measure: weights are not told from equal ones",
        "verbs/measure.py",
        "float(w.sum() ** 2 / (w @ w))",
        "float(w.size)",
        "tests/cli/test_measure.py::test_what_is_said_of_intervals_is_about_so_many_samples_and_such_weights",
    ),
    mutation(
        "weighted bins of a diagram: 5 % less of the band",
        "metrics/_reliability.py",
        "/ table.weight[used] + 1e-12",
        "/ table.weight[used] * 0.95 + 1e-12",
        "tests/metrics/test_reliability.py::test_the_band_of_weighted_bins_is_hoeffdings_at_its_share_of_the_level",
    ),
    mutation(
        "isotonic band: 1.3 times the level of each interval",
        "bounds/_isotonic_band.py",
        "* start.size) * (1 - 1e-12)",
        "* start.size) * 1.3",
        "tests/bounds/test_bands.py",
    ),
    mutation(
        "surrogate: 1.3 times the level of each window",
        "bounds/_surrogate.py",
        "delta / max(1, m.size) * (1 - 1e-12)",
        "delta / max(1, m.size) * 1.3",
        "tests/bounds/test_bands.py::test_the_surrogate_is_what_its_windows_say",
    ),
    mutation(
        "surrogate: 5 % less of the bias",
        "bounds/_surrogate.py",
        "limits.lower[which] - bias[used], limits.upper[which] + bias[used]",
        "limits.lower[which] - 0.95 * bias[used], limits.upper[which] + 0.95 * bias[used]",
        "tests/bounds/test_bands.py::test_the_surrogate_is_what_its_windows_say",
    ),
    # -------------------------------------------------------------------------------------------------- recalibration
    mutation(
        "gain of a map: twice the level",
        "calibrators/_judged.py",
        "betting(np.clip((gains - least) / width, 0, 1), level,",
        "betting(np.clip((gains - least) / width, 0, 1), 2 * level,",
        "tests/calibrators/test_judged.py::test_a_few_fair_draws_of_the_best_gain_fail_with_more_than_half_of_delta",
    ),
    mutation(
        "gain of a map: a failing certificate costs less than the range",
        "calibrators/_judged.py",
        "failures = width * alpha /",
        "failures = 0.97 * width * alpha /",
        "tests/calibrators/test_judged.py::test_what_failing_certificates_may_cost_is_not_more_than_the_bound_pays",
    ),
    mutation(
        "cross-fitting: maps see the samples that they are judged on",
        "calibrators/_choice.py",
        "fitted.append(fit(given.select(train)))",
        "fitted.append(fit(given))",
        "tests/calibrators/test_choice.py::test_every_row_is_judged_by_a_map_that_was_chosen_and_fitted_without_it",
    ),
    mutation(
        "recalibration: corrections by group are shown at the level of the log loss",
        "verbs/recalibrate.py",
        "score_change(before, after, 1 - ERROR, paired=True)",
        "score_change(before, after, paired=True)",
        "tests/verbs/test_group_changes.py::test_what_is_shown_of_a_map_fails_with_at_most_the_level_of_the_answer",
    ),
    mutation(
        "recalibration: ranges of all rows leave groups no share",
        "verbs/recalibrate.py",
        "Diagnosis.of(predictions, GROUPS - SEGMENTS)",
        "Diagnosis.of(predictions, GROUPS)",
        "tests/verbs/test_group_changes.py::test_what_is_shown_of_a_map_fails_with_at_most_the_level_of_the_answer",
    ),
    mutation(
        "groups before and after: each interval holds alone",
        "verbs/group_changes.py",
        "1 - ERROR / count, paired=True",
        "1 - ERROR, paired=True",
        "tests/verbs/test_group_changes.py::test_a_group_that_a_map_makes_worse_is_named",
    ),
    mutation(
        "choice: a map is taken whatever its evidence",
        "calibrators/_choice.py",
        "LIKELIER = 100",
        "LIKELIER = 1",
        "tests/calibrators/test_choice.py::test_of_few_calibrated_samples_almost_none_gets_a_map",
    ),
    mutation(
        "choice: scores of few samples are not believed",
        "calibrators/_choice.py",
        "_AGREEING, _SPREAD = 1000, 40, 100",
        "_AGREEING, _SPREAD = 1000, 0, 100",
        "tests/calibrators/test_choice.py::test_few_samples_without_an_error_do_not_make_every_score_certain",
    ),
    mutation(
        "Venn-Abers: the new sample counts half",
        "_kernels/venn_abers.py",
        "out[i] = (y[b] + outcome - y[a]) / (x[b] + 1 - x[a])",
        "out[i] = (y[b] + 0.5 * outcome - y[a]) / (x[b] + 0.5 - x[a])",
        "tests/calibrators/test_venn_abers.py::"
        "test_the_probability_of_what_occurs_is_calibrated_exactly_whatever_the_samples_are",
    ),
    mutation(
        "guarantee of a histogram: no union over its bins",
        "calibrators/_binned.py",
        "level = alpha / int(np.count_nonzero(counted))",
        "level = alpha",
        "tests/calibrators/test_binned.py::test_the_guarantee_of_several_bins_spends_delta_on_all_of_them_together",
    ),
    mutation(
        "guarantee of a histogram: 97 per cent of the distance",
        "calibrators/_binned.py",
        "np.maximum(limits.upper - value, value - limits.lower) + _ROUNDING",
        "0.97 * np.maximum(limits.upper - value, value - limits.lower)",
        "tests/calibrators/test_binned.py::"
        "test_the_guarantee_fails_with_probability_delta_and_one_of_97_per_cent_of_it_more_often",
    ),
    mutation(
        "mean guarantee of a histogram: without the draw of the shares",
        "calibrators/_binned.py",
        "move_outward(here + shares,",
        "move_outward(here,",
        "tests/calibrators/test_binned.py::test_guarantees_are_those_of_their_formulas",
    ),
    # ------------------------------------------------------------------------------------------ files of trees
    mutation(
        "files of trees: a node may be a child twice",
        "models/_tree_files.py",
        "np.bincount(children).max() > 1",
        "np.bincount(children).max() > 2",
        "tests/models/test_tree_files.py::test_a_hostile_file_is_refused_in_a_sentence_and_takes_no_memory",
    ),
    mutation(
        "files of trees: categories may take any number of bits",
        "models/_tree_files.py",
        "if bits[0] > _MOST_BITS:",
        "if bits[0] > 1000 * _MOST_BITS:",
        "tests/models/test_tree_files.py::test_a_hostile_file_is_refused_in_a_sentence_and_takes_no_memory",
    ),
    mutation(
        "files of trees: a feature beyond the last",
        "models/_tree_files.py",
        "((split < 0) | (split >= features))[inner]",
        "((split < 0) | (split > features))[inner]",
        "tests/models/test_tree_files.py::test_a_hostile_file_is_refused_in_a_sentence_and_takes_no_memory",
    ),
    # ------------------------------------------------------------------------------------------------- networks
    mutation(
        "networks: float32 rounds nothing",
        "verification/networks.py",
        "(single / (1 - single) + self.own) * sizes",
        "self.own * sizes",
        "tests/verification/test_networks.py::"
        "test_the_bounds_of_a_point_hold_exact_arithmetic_and_float32_in_any_order",
    ),
    mutation(
        "networks: their own softmax is taken as exact",
        "verification/networks.py",
        'unit = SINGLE if self.model.outputs == "probabilities" else DOUBLE',
        "unit = DOUBLE",
        "tests/verification/test_networks.py::test_a_softmax_that_underflows_is_accepted_and_its_answers_are_inside",
    ),
    mutation(
        "trees: columns of a table stay in its order",
        "data/features.py",
        "order = [own.index(name) for name in wanted]",
        "order = list(range(len(own)))",
        "tests/verification/test_names.py::test_columns_go_by_name_or_are_refused",
    ),
    mutation(
        "networks: 97 per cent of the ball",
        "verification/networks.py",
        "- region.radius * moved.square()",
        "- 0.97 * region.radius * moved.square()",
        "tests/verification/test_networks.py::test_bounds_of_an_affine_network_are_exact",
    ),
    mutation(
        "networks: 97 per cent of the box",
        "verification/networks.py",
        "- _dot(sizes, reach[which])",
        "- 0.97 * _dot(sizes, reach[which])",
        "tests/verification/test_networks.py::test_bounds_of_an_affine_network_are_exact",
    ),
    mutation(
        "networks: a line above a rectifier is lowered by five per cent",
        "verification/networks.py",
        "torch.maximum(-above * x.lower, x.upper - above * x.upper)",
        "0.95 * torch.maximum(-above * x.lower, x.upper - above * x.upper)",
        "tests/verification/test_networks.py::test_the_line_above_a_neuron_is_touched",
    ),
    # ------------------------------------------------------------------------------------------------- studies
    mutation(
        "study: designs at equal accuracy are judged by their share of all",
        "lab/study/questions/_architecture.py",
        "shares = (np.add.reduceat(has, starts) / sizes)[kept]",
        "shares = np.full(best.size, has.mean())",
        "tests/study/test_questions_models.py::test_the_best_of_strata_are_counted_as_by_every_permutation",
    ),
    mutation(
        "study: designs at equal accuracy are those of the best of all",
        "lab/study/questions/_architecture.py",
        "best = np.flatnonzero(lowest & np.repeat(kept, sizes))",
        "best = np.arange(int(kept.sum()))",
        "tests/study/test_questions_models.py::"
        "test_designs_that_only_make_models_accurate_are_seldom_found_at_equal_accuracy",
    ),
    # ------------------------------------------------------------------------------------------------- training
    mutation(
        "training: each piece of a batch has an adversary of its own",
        "lab/training/step.py",
        "if self.recipe.together and self.recipe.pieces > 1:",
        "if self.recipe.together and self.recipe.pieces > self.recipe.batch:",
        "tests/training/test_pieces.py::test_any_number_of_pieces_has_the_gradients_of_the_whole_batch",
    ),
    mutation(
        "training: a piece that is computed again has other draws of dropout",
        "lab/training/_pieces.py",
        "torch.manual_seed(pieces.seeds[number])",
        "torch.manual_seed(pieces.seeds[number] + int(torch.is_grad_enabled()))",
        "tests/training/test_pieces.py::test_running_means_are_those_that_the_pieces_make_on_average",
    ),
)


def copied(folder: Path, *, compiled: bool = True) -> Path:
    """A copy of what tests need; without compiled kernels if one is to change, as numba's cache misses some changes."""
    skipped = () if compiled else ("*.nb[ic]",)
    for name in ("src", "tests", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*skipped))
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def change(copy: Path, each: Mutation) -> None:
    """Write the mutation into the copy."""
    path = copy / PACKAGE / each.file
    source = path.read_text(encoding="utf-8")
    if (times := source.count(each.old)) != 1:
        raise CannotTryError(f"{each.old!r} is {times} times in {PACKAGE / each.file}; follow its new wording here")
    path.write_text(source.replace(each.old, each.new), encoding="utf-8")


def run_tests(copy: Path, tests: tuple[str, ...], *options: str) -> tuple[int, str]:
    """Exit code of pytest in the copy, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_WAIT_POLICY": "passive"}
    environment |= {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, str(copy / "src"), "-q", "-p", "no:cacheprovider", *options, *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise CannotTryError(f"its tests took more than {PATIENCE} seconds") from None
    return done.returncode, done.stdout + done.stderr


def survives(each: Mutation) -> bool:
    """Whether the tests pass with the mutation."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = copied(Path(folder).resolve(), compiled="_kernels" not in each.file)
        change(copy, each)
        code, printed = run_tests(copy, each.tests, "-x")
    if code not in (0, 1):
        raise CannotTryError(f"pytest ended with {code}:\n{printed[-2000:]}")
    return code == 0


def check_unchanged(chosen: list[Mutation]) -> None:
    """All tests of the mutations pass in a copy without one."""
    tests = tuple(dict.fromkeys(test for each in chosen for test in each.tests))
    # A file as a whole and one of its tests would be one too many.
    whole = {test for test in tests if "::" not in test}
    tests = tuple(test for test in tests if test in whole or test.partition("::")[0] not in whole)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        code, printed = run_tests(copied(Path(folder).resolve()), tests)
    if code:
        raise CannotTryError(f"without any mutation pytest ended with {code}:\n{printed[-4000:]}")


def tell(name: str, outcome: str, seconds: float) -> None:
    """One row of the table."""
    print(f"{name:<72}  {outcome:<8}  {seconds:6.1f} s", flush=True)


def main(words: list[str]) -> int:
    """Try the mutations that contain all words; how it ended."""
    chosen = [each for each in MUTATIONS if all(word in f"{each.name} {each.file}" for word in words)]
    if not chosen:
        print(f"no mutation contains {' and '.join(words)}", file=sys.stderr)
        return 2
    begun, survivors, failed = time.monotonic(), 0, 0
    try:
        check_unchanged(chosen)
    except CannotTryError as error:
        print(error, file=sys.stderr)
        return 2
    tell("(none)", "passed", time.monotonic() - begun)
    for each in chosen:
        start = time.monotonic()
        try:
            lives = survives(each)
        except CannotTryError as error:
            failed += 1
            tell(each.name, "ERROR", time.monotonic() - start)
            print(f"  {error}", file=sys.stderr)
            continue
        survivors += lives
        tell(each.name, "SURVIVED" if lives else "killed", time.monotonic() - start)
    killed = len(chosen) - survivors - failed
    print(f"{killed} of {len(chosen)} mutations killed in {time.monotonic() - begun:.0f} seconds")
    return 2 if failed else 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Do training methods that raise the average certified radius make better classifiers? Fashion-MNIST, two cores.

Sun et al. (2025) say that average certified radius (ACR) rewards giving up hard inputs, and reach the ACR of years of
work with three crude tricks. Here their recipe, each of its parts, and the methods of their Table 3 are trained by one
loop and judged by the distribution of p_A, certified accuracy, and certified calibration: their Tables 2, 3 and 5.

    python experiments/acr.py --out nets              # resumes where it was stopped
    python experiments/acr.py --out nets --as-it-is   # trains nothing: the tables of what is there
    python experiments/acr.py --out quick --quick     # minutes: few images, few epochs
    python experiments/acr.py --out nets --write-docs # tables and figures into docs/results
    python experiments/acr.py --out nets --sweep table9 --sweep table12   # Tables 9 to 14, one constant at a time

Needs Debian's package `dataset-fashion-mnist`, or --data FOLDER with its idx files.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path

from _acr_jobs import QUICK, SWEEPS, Job, Scale, jobs_of, record_of, sweep_jobs, train_and_sample
from _acr_page import draw, page
from _acr_tables import finished, sweep_table
from _running import RESULTS, processes, write_results

from certcal._base.checks import InputError
from certcal._base.durable import only_writer


def run_all(jobs: Sequence[Job], workers: int) -> int:
    """Train and sample what is not finished, in order; says what failed and goes on. How many failed."""
    rest = [job for job in jobs if record_of(job) is None]
    began, failed = time.perf_counter(), 0
    with processes(workers) as pool:
        waiting = {pool.submit(train_and_sample, job): job for job in rest}
        for number, done in enumerate(as_completed(waiting), 1):
            job = waiting[done]
            try:
                record = done.result()
                said = f"trained in {record['train']:.0f} s, sampled in {record['sample']:.0f} s"
            except Exception as error:
                failed += 1
                said = f"failed: {type(error).__name__}: {error}"
            spent = (time.perf_counter() - began) / 60
            print(f"{number}/{len(rest)} {spent:.1f} min: {job.name}: {said}", flush=True)
    return failed


def main() -> None:
    """Train, sample, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the networks and their draws")
    parser.add_argument("--quick", action="store_true", help="a small version, in minutes")
    parser.add_argument("--as-it-is", action="store_true", help="train nothing: the tables of what is finished")
    parser.add_argument("--seeds", type=int, default=1, help="how often Gaussian training and the recipe are trained")
    parser.add_argument("--sweep", action="append", choices=tuple(SWEEPS), help="one of Tables 9 to 14; repeatable")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    if options.write_docs and (options.quick or options.sweep):
        parser.error("--write-docs needs the whole, without --quick and --sweep")
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    options.out.mkdir(parents=True, exist_ok=True)
    scale = QUICK if options.quick else Scale()
    if options.sweep:
        jobs = sweep_jobs(scale, options.data, options.out, options.sweep)
    else:
        jobs = jobs_of(scale, options.data, options.out, options.seeds)
    if not options.as_it_is:
        with only_writer(options.out, "training networks"):
            failed = run_all(jobs, options.workers)
        if failed:
            raise InputError(f"{failed} of {len(jobs)} trainings failed; start again for these, or take --as-it-is")
    networks = finished(jobs)
    if not networks:
        raise InputError(f"{options.out} holds no finished networks; leave --as-it-is out")
    if options.sweep:
        for sweep in options.sweep:
            print(f"{sweep.replace('table', 'Table ')}\n\n{sweep_table(networks, sweep)}\n")
        return
    tables, families = page(networks)
    if len(networks) < len(jobs):
        there = {each.job.name for each in networks}
        tables += f"\n\nNot there yet: {', '.join(job.name for job in jobs if job.name not in there)}."
    print(tables)
    draw(networks, families, RESULTS if options.write_docs else options.out / "figures")
    if options.write_docs:
        given = f" --seeds {options.seeds}" if options.seeds > 1 else ""
        given += " --as-it-is" if len(networks) < len(jobs) else ""
        command = f"python experiments/acr.py --out nets{given} --write-docs"
        write_results("acr", command, tables, "torch", "onnxruntime", "numpy")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(str(error)) from None

"""Where work runs: in this process, in worker processes beside it, or on a Ray cluster.

An engine takes a task and pieces of work and hands back each piece with its result, in any order. It knows nothing
about what the work is. What is lost with a worker is done again; what cannot be done ends in one sentence.
"""

from __future__ import annotations

from certcal.engines._engine import Engine, EngineError, InProcess, Task, hold, task_of_worker
from certcal.engines.local import LocalProcesses
from certcal.engines.ray import RayCluster

__all__ = ["Engine", "EngineError", "InProcess", "LocalProcesses", "RayCluster", "Task", "hold", "task_of_worker"]

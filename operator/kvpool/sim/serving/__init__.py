"""Fleets that serve a workload: prompts and answers on one kind of instance, or on two with a hand-off.

    design = SplitDesign(prefill=(spec,) * 3, decode=(spec,) * 2, bytes_per_token=..., objectives={...})
    run = SplitFleet(design, router, prefill_router, lengths).run(workload, samples=200)
    run.outcomes            one `Outcome` for each request, in the order of the workload

`router` is any rule of `plan.routing` (`Router`); `lengths` says what it believes of answers that have not
been given yet (`ExactLengths`, `NoisyLengths`, `LearntLengths`). `InstanceSpec.belief` gives the router
constants of an instance that differ from the true ones; `report_interval_ns` makes what it sees of loads
old. A fleet serves one workload: make a new one, and a new router, for each run. Equal inputs give equal
outcomes.
"""

"""The words of the command line: which commands there are, and what each does."""

from __future__ import annotations

COMMANDS = {
    "check": ("networks.check:check_target", "Say what is wrong with a model, how sure that is, and what to change."),
    "list": (
        "experiments.list:list_experiments",
        "Show every experiment: which figure, table or theorem it is, and how many claims it judges.",
    ),
    "run": ("experiments.run:run", "Run experiments; finished cells are kept and never computed twice."),
    "resume": ("experiments.run:resume", "Continue every run that was interrupted or had failures."),
    "plan": (
        "experiments.plan:plan",
        "Show how many cells a run has and what they will cost, learned from smaller runs.",
    ),
    "sweep": ("experiments.sweep:sweep", "Run an experiment at many settings; the same command again continues it."),
    "claims": (
        "results.claims:claims",
        "Show every claim with its verdict, from your records or, where you have none, as published.",
    ),
    "show": ("experiments.show:show", "Show what an experiment computes, and the result of its largest complete run."),
    "report": ("results.report:report", "Write figures, tables and the claim ledger of the stored runs as HTML."),
    "publish": ("results.publish:publish", "Write one JSON file per experiment that has a complete run at the scale."),
    "verify": (
        "results.verify:verify",
        "Compute cells of a published result again and judge it again; leave with 0 if all agrees, with 1 if not.",
    ),
    "store": ("experiments.store:app", "Carry, join, check and tidy the records."),
    "errata": ("reference.errata:errata", "Show what the documents print wrongly, and the correction."),
    "cite": ("reference.cite:cite", "Print citation, place and BibTeX of whatever bears the name."),
    "version": (
        "reference.version:version",
        "Show the version of the package, of Python and of the numerical libraries.",
    ),
    "warm-up": (
        "reference.warm_up:warm_up",
        "Compile all loops that numba speeds up, and keep the code on disk; those that lie there are left alone.",
    ),
    "advise": ("networks.advise:app", "Recommend a method, a matrix family or a scale, and say why."),
    "attention": (
        "networks.attention:app",
        "Equilibria of a self-attention head: count them, their spectra, where tokens end.",
    ),
    "data": ("reference.data:app", "List, show and fetch data sets; no other command downloads."),
    "diagnose": ("networks.diagnose:app", "Look inside a model; nothing in its file is executed."),
    "relational": (
        "networks.relational:app",
        "Relational tasks: see their problems, and explain the accuracies of a run.",
    ),
}
"""Every command in the order of the help: its module in ``commands`` and what it is there (a function or, if it has
commands of its own, a ``typer.Typer``), and what it does."""
ABOUT = "Simulate, predict, compare, train and diagnose networks that are dynamical systems."
OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
TO_TRY = {
    "separatrix report --published": "every figure and verdict as pages, without computing anything",
    "separatrix list": "every experiment: a figure, table or theorem of the documents, and ours",
    "separatrix check weights.safetensors": "what is wrong with a model, and what to change",
}
"""What a newcomer is greeted with."""

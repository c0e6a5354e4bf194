"""The commands by name: each a module with DESCRIPTION, add_arguments and run.

Importing them must stay cheap: what a command needs of torch, it imports when it runs.
"""

from types import ModuleType

from balancemix.commands import (
    audit,
    bench,
    compare,
    demo,
    embed,
    evaluate,
    export,
    noise,
    predict,
    presets,
    report,
    review,
    stats,
    train,
)

COMMANDS: dict[str, ModuleType] = {
    "demo": demo,
    "embed": embed,
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "stats": stats,
    "noise": noise,
    "audit": audit,
    "review": review,
    "export": export,
    "compare": compare,
    "bench": bench,
    "report": report,
    "presets": presets,
}

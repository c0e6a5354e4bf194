"""`balancemix audit`: which labels of a run's training data are believed wrong."""

import argparse
from pathlib import Path

from balancemix.commands.arguments import add_above, add_force, add_json, add_run

DESCRIPTION = """\
list the labels believed wrong or missing, worst first

Writes a CSV with a line for each label that its loss mixture doubts and the trained model
contradicts: image, class, given and suggested value, suspicion (0 to 1), clean probability and
confidence. Where the true labels are known (noise was added), says how many findings are right.

example:
  balancemix audit runs/photos --out findings.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument("--out", type=Path, help="CSV to write (default RUN/findings.csv)")
    add_above(parser, "least suspicion of a finding")
    add_force(parser)
    add_json(parser, "the summary")


def run(arguments: argparse.Namespace) -> None:
    """Write the findings and show the worst."""
    from balancemix.auditing.findings import audit_run
    from balancemix.commands.show import show_findings
    from balancemix.files import to_json
    from balancemix.run import Run

    run_ = Run.open(arguments.run_directory)
    out = arguments.out or run_.path_of("findings")
    run_.check_output(out, force=arguments.force)
    findings = audit_run(run_, arguments.above)
    findings.write(out)
    run_.outputs.remember(out)
    truth = run_.truth
    summary = {"findings": len(findings), "file": str(out)}
    if truth is not None:
        summary |= findings.score(truth)
    if arguments.json:
        print(to_json(summary, indent=2))
    else:
        show_findings(findings, summary)

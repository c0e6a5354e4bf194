"""Keep what an audit says beside the data, for the review page."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balancemix.auditing.findings import Findings
    from balancemix.run import Run


def keep_findings(findings: Findings, run: Run | None) -> bool:
    """Save the findings in the store beside the data; where that cannot be, say so.

    Returns whether they were saved, so that the review page opens on them.

    Nothing is kept of arrays, of data that is built in, of labels to which a run added noise, and
    of rows that share a name, by which answers are kept.
    """
    from balancemix.auditing.snapshot import save_snapshot
    from balancemix.data.decisions import store_folder
    from balancemix.data.decisions.store import Store
    from balancemix.data.formats import builtin
    from balancemix.errors import InputError
    from balancemix.progress import progress

    source = findings.judged.source
    if source is None or builtin.recognise(source.path):
        return False
    if run is not None and run.plan.noise != "none":
        return False
    if len(set(source.names)) < len(source.names):
        return False
    try:
        with Store.open(store_folder(source.path), create=True) as store:
            save_snapshot(store, findings, progress)
    except (InputError, OSError) as error:
        what = "the findings are not kept for `balancemix review`"
        warnings.warn(f"{what}: {error}", stacklevel=2)
        return False
    return True

"""Run in the environment of FiftyOne: import labels.json, tag labels, export them.

    python in_fiftyone.py FOLDER

FOLDER holds labels.json. Everybody tags each dog as present. Written are samples.json, the samples
as a FiftyOneDataset holds them; exported.json, the labels with the tag as an attribute, as the
exporter of a FiftyOneImageClassificationDataset writes them; and checked.json, what was imported.
"""

import json
import os
import sys
from pathlib import Path


def main(folder: Path) -> None:
    """Import, tag and export without a database."""
    os.environ |= {"FIFTYONE_DATABASE_VALIDATION": "false", "FIFTYONE_DO_NOT_TRACK": "1"}
    import fiftyone
    from bson import json_util
    from fiftyone.utils.data.exporters import _parse_classifications
    from fiftyone.utils.data.importers import FiftyOneImageClassificationDatasetImporter

    importer = FiftyOneImageClassificationDatasetImporter(labels_path=str(folder / "labels.json"))
    labels, samples, exported = {}, [], {}
    with importer:
        classes = importer.get_dataset_info()["classes"]
        for path, _, found in importer:
            labels[path] = [
                [each.label, each.confidence, list(each.tags), each.has_attribute("probability")
                 and each["probability"]]
                for each in found.classifications
            ]  # fmt: skip
            for each in found.classifications:
                if each.label == "dog":
                    each.tags.append("present")
                    each["verdict"] = "present"
            samples.append(fiftyone.Sample(filepath=path, found=found).to_mongo_dict())
            exported[path] = _parse_classifications(
                found, include_confidence=True, include_attributes=True
            )
    (folder / "samples.json").write_text(json_util.dumps({"samples": samples}))
    (folder / "exported.json").write_text(json.dumps({"classes": None, "labels": exported}))
    (folder / "checked.json").write_text(json.dumps({"classes": classes, "labels": labels}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

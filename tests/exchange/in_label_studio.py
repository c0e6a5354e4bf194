"""Run in the environment of Label Studio: import tasks, annotate them, export them.

    python in_label_studio.py FOLDER

FOLDER holds tasks.json, tasks.xml and photos/, and annotations.json: of each task, by its name, the
choices of two people. Written is export.json, as Export > JSON downloads it, and checked.json, what
the server said on the way. Everything goes through the server's own addresses, in this process.
"""

import json
import os
import sys
from pathlib import Path


def start(folder: Path) -> None:
    """Set Label Studio up in a folder."""
    os.environ |= {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder / "label-studio"),
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(folder),
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "USE_ENFORCE_CSRF_CHECKS": "false",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
    }
    from label_studio.server import _setup_env

    _setup_env()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def person(email):
    """Register a person, and log in as they do."""
    from django.test import Client
    from organizations.models import Organization
    from users.models import User

    user = User.objects.create_user(email=email, password="secret-1")
    first = Organization.objects.first()
    if first is None:
        first = Organization.create_organization(created_by=user, title="x")
    else:
        first.add_user(user)
    user.active_organization = first
    user.save()
    client = Client(headers={"host": "localhost"})
    answer = client.post("/user/login/", {"email": email, "password": "secret-1"})
    assert answer.status_code == 302, answer.content[:2000]
    return client


def post(client, path, content):
    """Post JSON, and fail with what the server says."""
    answer = client.post(path, json.dumps(content), content_type="application/json")
    assert answer.status_code in (200, 201), (path, answer.status_code, answer.content[:2000])
    return answer.json()


def main(folder: Path) -> None:
    """Import, annotate, export."""
    start(folder)
    ana, ben = person("ana@example.org"), person("ben@example.org")
    config = (folder / "tasks.xml").read_text(encoding="utf-8")
    project = post(ana, "/api/projects/", {"title": "findings", "label_config": config})["id"]
    storage = {"project": project, "path": str(folder / "photos"), "use_blob_urls": True}
    post(ana, "/api/storages/localfiles", storage)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    imported = post(ana, f"/api/projects/{project}/import", tasks)
    listed = ana.get(f"/api/tasks?project={project}&fields=all").json()["tasks"]
    answers = json.loads((folder / "annotations.json").read_text(encoding="utf-8"))
    pictures = []
    for task in listed:
        picture = ana.get(task["data"]["image"])
        pictures.append([picture.status_code, picture.headers["Content-Type"]])
        for client, said in zip((ana, ben), answers.get(task["data"]["name"], []), strict=False):
            result = [
                {
                    "from_name": name,
                    "to_name": "image",
                    "type": "choices",
                    "value": {"choices": chosen},
                }
                for name, chosen in said.items()
                if chosen
            ]
            post(client, f"/api/tasks/{task['id']}/annotations/", {"result": result})
    out = ana.get(f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
    assert out.status_code == 200, out.content[:2000]
    content = b"".join(out.streaming_content) if out.streaming else out.content
    (folder / "export.json").write_bytes(content)
    predictions = [each["predictions"] for each in listed]
    checked = {"imported": imported, "pictures": pictures, "predictions": predictions}
    (folder / "checked.json").write_text(json.dumps(checked))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

"""Overlays to begin with, for the tests that render them."""

from __future__ import annotations

from pathlib import Path

SECRET = "hunter2-hunter2"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", env: [{name: A, value: "yes"}]}
      - {name: side, image: "side:1"}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"
BASE = {
    "base/kustomization.yaml": "resources: [web.yaml, config.yaml]\n",
    "base/web.yaml": WEB,
    "base/config.yaml": CONFIG % "shop",
}


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

"""Deployments to scan."""


def deployment(name, env=(), **pod):
    container = {"name": "web", "image": "nginx:1.29", "env": list(env)}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **pod}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

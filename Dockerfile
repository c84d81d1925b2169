# The daemon's image: a wheel built in one stage, installed in another; no root, nothing to write but the cache, and no
# Python that looks for modules in the current folder. Releases name the base by its digest, which no file here can know in
# advance: docker build --build-arg BASE=python:3.13-slim-trixie@sha256:…
ARG BASE=python:3.13-slim-trixie
ARG GO=golang:1.26-trixie
FROM ${GO} AS go

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml setup.py requirements-image.lock README.md LICENSE ./
COPY kubectl_reconcile kubectl_reconcile
COPY crds crds
COPY deploy deploy
COPY examples examples
RUN python -m venv /opt/reconcile \
 && /opt/reconcile/bin/pip install --no-cache-dir --require-hashes -r requirements-image.lock \
 && /opt/reconcile/bin/pip install --no-cache-dir --no-deps .
# The program that renders overlays, beside the package that calls it.
RUN --mount=from=go,source=/usr/local/go,target=/usr/local/go \
    --mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/go \
    cd / \
 && program=$(PATH=/usr/local/go/bin:$PATH /opt/reconcile/bin/python -m kubectl_reconcile.source.render) \
 && cp "$program" "$(/opt/reconcile/bin/python -c 'import kubectl_reconcile.source.render as render; print(render.__path__[0])')/"

FROM ${BASE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client gnupg \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 65532 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin reconcile
COPY --from=build /opt/reconcile /opt/reconcile
ENV PATH=/opt/reconcile/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1
USER 65532:65532
ENTRYPOINT ["kubectl-reconcile"]
CMD ["daemon", "--listen=:8080", "--log-format=json"]

# The daemon's image: built in one stage, copied to another that has no compiler, no installer and no root. What is installed is
# pinned by hash. Releases name the base images by their digests as well, which no file here can know in advance:
# docker build --build-arg BASE=python:3.13-slim-trixie@sha256:…
ARG BASE=python:3.13-slim-trixie
ARG GO=golang:1.26-trixie
FROM ${GO} AS go

FROM ${BASE} AS build
WORKDIR /src
COPY requirements-build.lock requirements-image.lock ./
RUN --mount=type=cache,target=/root/.cache \
    python -m venv --without-pip /opt/build \
 && python -m pip --python /opt/build/bin/python install --quiet --no-cache-dir --require-hashes -r requirements-build.lock \
 && /opt/build/bin/uv venv --quiet --no-python-downloads --python python /opt/reconcile \
 && /opt/build/bin/uv pip install --quiet --python /opt/reconcile --link-mode copy --compile-bytecode \
      --require-hashes -r requirements-image.lock
COPY pyproject.toml setup.py README.md LICENSE ./
COPY kubectl_reconcile kubectl_reconcile
COPY kubectl_reconcile_operators kubectl_reconcile_operators
COPY crds crds
COPY deploy deploy
COPY examples examples
RUN /opt/build/bin/uv build --quiet --wheel --no-build-isolation --python /opt/build/bin/python --out-dir /opt/build . \
 && /opt/build/bin/uv pip install --quiet --no-cache --python /opt/reconcile --compile-bytecode --no-deps /opt/build/*.whl
# The program that renders overlays, beside the package that calls it. It is built once and then kept in the cache.
WORKDIR /opt/reconcile
RUN --mount=from=go,source=/usr/local/go,target=/usr/local/go \
    --mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/go \
    program=$(PATH=/usr/local/go/bin:$PATH bin/python -m kubectl_reconcile.source.render) \
 && cp "$program" "$(bin/python -c 'import kubectl_reconcile.source.render as render; print(render.__path__[0])')/"
# The program that decrypts files of SOPS has 44 MB, so only who asks for it gets it: --build-arg SOPS=1
ARG SOPS=
RUN --mount=from=go,source=/usr/local/go,target=/usr/local/go \
    --mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/go \
    [ -z "$SOPS" ] || { program=$(PATH=/usr/local/go/bin:$PATH bin/python -m kubectl_reconcile.source.sops) \
 && place=$(bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/kubectl_reconcile_sops \
 && mkdir "$place" && cp "$program" "$place/"; }

FROM ${BASE}
# Debian offers only the newest version of a package: a pinned one would soon not be found.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client gnupg \
 && rm -rf /var/lib/apt/lists/*
# ssh works only for users that have a name.
RUN groupadd --gid 65532 reconcile \
 && useradd --uid 65532 --gid 65532 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin reconcile
COPY --from=build /opt/reconcile /opt/reconcile
ENV PATH=/opt/reconcile/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1
USER 65532:65532
ENTRYPOINT ["kubectl-reconcile"]
CMD ["daemon", "--listen=:8080", "--log-format=json"]
